"""Where files are: on this machine, or in a store that has an address.

address      what an address says, and what of it may be shown
faults       the errors of stores: what is tried again, and what is said
stores       the kinds of stores, and connections to them
remote_path  a file or folder of a store, as a path
remote_file  the bytes of such a file
given        paths, addresses and globs as people write them, into paths
confinement  files that lie inside some folders, wherever links lead
"""
