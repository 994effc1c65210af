"""A model of vLLM in this process.

vllm_settings  its arguments
vllm_work      questions to token prompts, outputs to replies
backend        loading, and what names the model
"""
