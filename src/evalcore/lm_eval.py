"""lm-eval's task configs, result files and numbers, and the errata in which evalcore differs."""

from evalcore.core.lm_eval.errata import ERRATA
from evalcore.core.lm_eval.lmms_results import lmms_eval_results
from evalcore.core.lm_eval.policy import LM_EVAL_0_4_13, POLICIES
from evalcore.core.lm_eval.result_file import lm_eval_results, show_group_table, task_aggregation_list
from evalcore.core.lm_eval.sample_log import sample_rows
from evalcore.core.lm_eval.task_config import repeats_of, task_from_config
from evalcore.shell.output.files.tracker import write_lm_eval

__all__ = [
    "ERRATA",
    "LM_EVAL_0_4_13",
    "POLICIES",
    "lm_eval_results",
    "lmms_eval_results",
    "repeats_of",
    "sample_rows",
    "show_group_table",
    "task_aggregation_list",
    "task_from_config",
    "write_lm_eval",
]
