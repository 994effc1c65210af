"""Raw replies to answers: filters by name, chained into pipelines.

reply    the replies of many documents in one flat batch
select   which replies stay
pattern  regular expressions, searched as little as possible
extract  the answer in a reply
letter   the letter of a choice in a reply
rewrite  how an answer is written
chain    FILTERS, and a pipeline as one function
reasons  which rule of a filter fired, in words
spans    where in a reply a filter found what it left
"""
