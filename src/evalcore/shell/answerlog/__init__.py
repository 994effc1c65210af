"""The answer log: an append-only file from which the state of a run is folded.

spent   what a reply took: tokens, seconds, tries
line    one line: JSON with a checksum
lock    one writer at a time, also on network file systems
writer  answers appended, on the disk before they count
fold    the lines to the answers at hand
"""
