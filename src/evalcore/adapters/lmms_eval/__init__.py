"""evalcore for lmms-eval: what it has before its consolidate step in, its six mappings out; it is not imported at all.

from evalcore.adapters.lmms_eval import consolidate
results, samples, configs, versions, num_fewshot, higher_is_better = consolidate(eval_tasks, task_dict)
"""

from evalcore.adapters.lmms_eval.consolidation import (
    Rules,
    consolidate,
    consolidate_ranks,
    report_scores,
    score_ranks,
)
from evalcore.adapters.lmms_eval.trees import read_trees

__all__ = ["Rules", "consolidate", "consolidate_ranks", "read_trees", "report_scores", "score_ranks"]
