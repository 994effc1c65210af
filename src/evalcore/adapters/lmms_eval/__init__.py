"""lmms-eval's consolidate step: its outputs in, its mappings out; lmms-eval is not imported.

results, samples, configs, versions, num_fewshot, higher_is_better = consolidate_results(eval_tasks)
results, versions, show_group_table, task_aggregation_list = consolidate_group_results(results, versions, task_dict)

host           the protocols of lmms-eval that are used
keys           the document of each score
numbers        the numbers in scores, and the clusters they name
repeats        the scores of every reply to a question
scores         lists of scores as columns
aggregations   how its tasks aggregate: a known name, or a function of theirs
trees          its nested task dict as group trees
task_row       a task's row of results
consolidation  outputs of one process, or of every rank, to six mappings
group_step     rows of tasks to rows of groups
"""

from evalcore.adapters.lmms_eval.consolidation import (
    LmmsRules,
    consolidate,
    consolidate_ranks,
    consolidate_results,
    report_scores,
    score_ranks,
)
from evalcore.adapters.lmms_eval.group_step import consolidate_group_results
from evalcore.adapters.lmms_eval.trees import read_trees

__all__ = [
    "LmmsRules",
    "consolidate",
    "consolidate_group_results",
    "consolidate_ranks",
    "consolidate_results",
    "read_trees",
    "report_scores",
    "score_ranks",
]
