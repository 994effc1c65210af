"""A task's config and documents to requests, character by character as in lm-eval 0.4.13.

settings    a task's config as a typed record
letters     choices, and questions that ask for their letter
overrides   what a run changes in it
templates/  Jinja templates, compiled once, in a sandbox
fields      question, target and choices of a document
documents   the documents of a task's split
clusters    the cluster of a document
fewshot     the examples that each document gets
turns       a prompt as turns of a conversation
asker       one document to its requests, gold and choices
mistakes    mistakes that show before a model is asked
build       config and documents to a task that is ready
ready_task  a task that is ready: requests, samples, scoring
"""
