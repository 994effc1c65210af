"""Answers of many documents in order, from the replies of a model to the batches that metrics take.

table       AnswerTable: requests and replies as columns, one row per request
group       group_by_doc: answers in any order, sorted into documents
chunk       some documents of a task with their answers; what of these is usable
filtrate    what the filters of a pipeline leave of a chunk, repeat by repeat
result      what one document came to, for functions that look at one at a time
batch       what a metric receives: many documents under one pipeline and one repeat
likelihood  the batch of documents with one likelihood
choice      the batch of documents with choices
text        the batch of documents with generated texts
kind        which batch and result belong to each output type
"""
