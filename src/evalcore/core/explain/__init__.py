"""One document, from its replies to its part in every number.

trace         the document through the pipe again, every step in sight
verdict       how a score came about, in words
contribution  what the document does to its task and its groups
"""
