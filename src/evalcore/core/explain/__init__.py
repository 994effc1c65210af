"""One document, from its replies to its part in every number.

trace         the document through the pipe again, every step in sight
contribution  what the document does to its task and its groups
stages        where two runs part on the document
"""
