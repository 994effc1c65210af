"""evalcore inside lm-eval 0.4.13: its tasks and filled instances in, its results out; nothing is patched.

results = evaluate(lm, TaskManager().load(["gsm8k", "mmlu"]))     # instead of lm_eval.evaluator.evaluate

host       the protocols of lm-eval that are used, and the one import of it
requests   requests built by lm-eval and put to the model
documents  documents and replies of an lm-eval task
tasks      lm-eval's task objects as evalcore's
part       one task's instances to its scores and sample rows
ranks      scores of several processes, packed and gathered
results    a report in lm-eval's result object
evaluator  evaluate and score_tasks
"""

from evalcore.adapters.lm_eval.evaluator import evaluate, score_tasks
from evalcore.adapters.lm_eval.part import score_one
from evalcore.adapters.lm_eval.ranks import gather_ranks, pack_scores

__all__ = ["evaluate", "gather_ranks", "pack_scores", "score_one", "score_tasks"]
