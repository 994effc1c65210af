"""A model of transformers in this process.

hf_settings   its arguments
tokenizer     texts to tokens, each text once
network       rows of tokens evaluated after a kept prefix
row_probe     whether a model takes packed rows
walk          likelihoods by a walk of the prefix tree
continuation  texts by a walk of the prefix tree
plain         batches without a tree
hf_work       questions to tokens, tokens to replies
hf_loader     weights, tokenizer and chat template, and what names the model
hf_processes  several processes, each with subtrees of its own
backend       its entry in the table of models
"""
