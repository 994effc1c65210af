"""Up to the model call.

startup    imports and commands that only print
index      names of lm-eval's task library
prompts    requests made from documents
"""
