"""What a model computes.

hf  a model of transformers, beside lm-eval's HFLM on the same requests
"""
