"""Servers with an OpenAI-compatible API, local or OpenAI's own.

arguments     model_args, read and checked; secrets hidden
endpoint      addresses and headers, with keys from the environment
body          requests as lm-eval words them, and the texts in replies
logprobs      log-likelihoods from echoed log-probabilities
token_counts  the tokens that a server says it read and wrote
http_faults   what to do about a fault: again, after how long, or not at all
http_flow     many requests, a bounded number at a time, fewer after a complaint
http_wire     whether replies over a kept connection are those of their requests
http_session  the connections to a server, and what is known of it
http_client   one request, with deadlines, retries and a size limit
probe         whether a server echoes log-probabilities, checked before they are needed
backend       the four backends
"""
