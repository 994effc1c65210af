"""lmms-eval's consolidate step: its outputs in, its six mappings out; lmms-eval is not imported.

results, samples, configs, versions, num_fewshot, higher_is_better = consolidate(eval_tasks, task_dict)

host           the protocols of lmms-eval that are used
keys           the document of each score
scores         lists of scores as columns
aggregations   how its tasks aggregate: a known name, or a function of theirs
trees          its nested task dict as group trees
consolidation  outputs of one process, or of every rank, to six mappings
"""

from evalcore.adapters.lmms_eval.consolidation import (
    LmmsRules,
    consolidate,
    consolidate_ranks,
    report_scores,
    score_ranks,
)
from evalcore.adapters.lmms_eval.trees import read_trees

__all__ = ["LmmsRules", "consolidate", "consolidate_ranks", "read_trees", "report_scores", "score_ranks"]
