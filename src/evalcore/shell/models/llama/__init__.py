"""A GGUF file in this process, by llama.cpp.

tokens   texts to tokens to the calls that evaluate them
chat     the chat template of a model file, in the sandbox
weights  weights, tokenizer, and a cache of what was evaluated
decode   logits to log-likelihoods and next tokens
work     questions with a common beginning, one after the other
backend  the backend, its arguments and its identity
"""
