"""evalcore inside lm-eval 0.4.13: its tasks, groups and filled instances in, its results out; nothing is patched.

from evalcore.adapters.lm_eval import evaluate
results = evaluate(lm, TaskManager().load(["gsm8k", "mmlu"]))     # instead of lm_eval.evaluator.evaluate
"""

from evalcore.adapters.lm_eval.evaluator import evaluate, score_tasks
from evalcore.adapters.lm_eval.part import score_one
from evalcore.adapters.lm_eval.ranks import gather_ranks, pack_scores

__all__ = ["evaluate", "gather_ranks", "pack_scores", "score_one", "score_tasks"]
