"""evalcore inside other programs: small modules on the public API that import their host on first use.

lm_eval/    lm-eval's evaluate, whole or its second half
lmms_eval/  lmms-eval's consolidate step
inspect/    Inspect scorers, metrics and reducers
texts       what the two adapters below share: a task from short descriptions, completions and golds
evaluate    the calls of Hugging Face's evaluate
verifiers/  functions that may hang or crash, in processes that can be killed
reward/     rewards for training loops
"""
