"""Answers of many documents in order, from the replies of a model to the batches that metrics take.

table     AnswerTable: requests and replies as columns, one row per request
group     group_by_doc: answers in any order, sorted into documents
chunk     some documents of a task with their answers; what of these is usable
filtrate  what the filters of a pipeline leave of a chunk, repeat by repeat
batch     what a metric receives: many documents under one pipeline and one repeat
choice    the batch of documents with choices
result    one document's record, for functions that look at one at a time
"""
