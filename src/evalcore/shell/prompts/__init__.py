"""Prompts: from a task's configuration and documents to requests, as lm-eval 0.4.13 writes them."""
