"""A GGUF file in this process, by llama.cpp.

tokens   tokens to the calls that evaluate them
weights  weights, tokenizer, and a cache of what was evaluated
work     questions with a common beginning, one after the other
backend  the backend, its arguments and its identity
"""
