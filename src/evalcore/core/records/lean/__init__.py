"""Arrays of very many numbers in less memory than the numbers take: what they are made from is kept instead.

steps  numbers that follow each other, that are all the same, or that are 0 or 1
slim   arrays made lean where their numbers allow it, and kept so
blend  statistics column by column, and their weighted sum: influences
"""
