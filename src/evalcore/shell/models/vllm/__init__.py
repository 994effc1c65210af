"""A model of vLLM in this process.

engine_settings  the arguments that vLLM takes as they are
vllm_settings  all of its arguments
vllm_work      questions to token prompts, outputs to replies
backend        loading, and what names the model
"""
