"""The public names of evalcore, one list."""

from evalcore.core.aggregate.aggregations import AGGREGATIONS, from_callable
from evalcore.core.aggregate.signature import VERSION as __version__
from evalcore.core.aggregate.spread import cluster_codes, clusters_of
from evalcore.core.aggregate.value import Inference, aggregate_metric
from evalcore.core.answers.group import group_by_doc
from evalcore.core.answers.result import GenResult, LLResult, MCResult, Result, RollingResult, results_of
from evalcore.core.answers.table import AnswerTable, Requests, request_table
from evalcore.core.compare.estimates import compare_estimates
from evalcore.core.compare.lines import Comparison, Line, Side, adjust
from evalcore.core.compare.sides import compare_sides
from evalcore.core.filters.chain import FILTERS, Filter, explain
from evalcore.core.filters.reply import each_text
from evalcore.core.groups.build import build_trees, group_from_config, group_to_dict
from evalcore.core.groups.lint import lint
from evalcore.core.groups.tree import (
    Group,
    GroupMetric,
    Leaf,
    Tree,
    all_groups,
    all_tasks,
    fold_group,
    map_leaves,
    parents_of,
)
from evalcore.core.lm_eval.errata import ERRATA
from evalcore.core.lm_eval.policy import LM_EVAL_0_4_13, POLICIES
from evalcore.core.lm_eval.result_file import lm_eval_results, lmms_eval_results, sample_rows
from evalcore.core.lm_eval.task_config import repeats_of, task_from_config
from evalcore.core.metrics.dispatch import SCORERS, Scorer
from evalcore.core.metrics.metric import Marks, Metric
from evalcore.core.metrics.process_results import from_process_results, of
from evalcore.core.metrics.text import per_document
from evalcore.core.pipeline import build_report, report_groups, report_task, score_doc, score_task, tabulate
from evalcore.core.records.array import Array
from evalcore.core.records.column import (
    Column,
    Floats,
    Labels,
    Objects,
    Stats,
    column,
    merge_all,
    merge_columns,
    outcomes,
)
from evalcore.core.records.document import document_table, request_key, select_docs
from evalcore.core.records.errors import EvalError
from evalcore.core.records.estimate import Aggregation, Estimate, Resampling
from evalcore.core.records.outcome import Failed, NotEmitted, Ok, Outcome, Unscorable
from evalcore.core.records.report import GroupReport, Report, TaskReport, leaf_from_flat
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    Failure,
    Generate,
    Instance,
    Likelihood,
    LogLikelihood,
    OutputType,
    Rolling,
    Sample,
    options,
)
from evalcore.core.records.score import Scored, merge_scored
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline, Step, Task
from evalcore.core.repeats.reduce import reduce_repeats
from evalcore.core.repeats.reducers import REDUCERS, Repeats
from evalcore.core.stats.families import benjamini_hochberg, holm
from evalcore.core.stats.pair_tests import Difference, detectable, paired_binary, required_n, sign_flip
from evalcore.core.tables import EVALCORE, METRICS, Tables

__all__ = [
    "AGGREGATIONS",
    "ERRATA",
    "EVALCORE",
    "FILTERS",
    "GENERATE_UNTIL",
    "LM_EVAL_0_4_13",
    "LOGLIKELIHOOD",
    "LOGLIKELIHOOD_ROLLING",
    "METRICS",
    "MULTIPLE_CHOICE",
    "POLICIES",
    "REDUCERS",
    "SCORERS",
    "Aggregation",
    "Answer",
    "AnswerTable",
    "Array",
    "Column",
    "Comparison",
    "Difference",
    "Estimate",
    "EvalError",
    "Failed",
    "Failure",
    "Filter",
    "Floats",
    "GenResult",
    "Generate",
    "Group",
    "GroupMetric",
    "GroupReport",
    "Inference",
    "Instance",
    "LLResult",
    "Labels",
    "Leaf",
    "Likelihood",
    "Line",
    "LogLikelihood",
    "MCResult",
    "Marks",
    "Metric",
    "MetricKey",
    "MetricSpec",
    "NotEmitted",
    "Objects",
    "Ok",
    "Outcome",
    "OutputType",
    "Pipeline",
    "Repeats",
    "Report",
    "Requests",
    "Resampling",
    "Result",
    "Rolling",
    "RollingResult",
    "Sample",
    "Scored",
    "Scorer",
    "Side",
    "Stats",
    "Step",
    "Tables",
    "Task",
    "TaskReport",
    "Tree",
    "Unscorable",
    "__version__",
    "adjust",
    "aggregate_metric",
    "all_groups",
    "all_tasks",
    "benjamini_hochberg",
    "build_report",
    "build_trees",
    "cluster_codes",
    "clusters_of",
    "column",
    "compare_estimates",
    "compare_sides",
    "detectable",
    "document_table",
    "each_text",
    "explain",
    "fold_group",
    "from_callable",
    "from_process_results",
    "group_by_doc",
    "group_from_config",
    "group_to_dict",
    "holm",
    "leaf_from_flat",
    "lint",
    "lm_eval_results",
    "lmms_eval_results",
    "map_leaves",
    "merge_all",
    "merge_columns",
    "merge_scored",
    "of",
    "options",
    "outcomes",
    "paired_binary",
    "parents_of",
    "per_document",
    "reduce_repeats",
    "repeats_of",
    "report_groups",
    "report_task",
    "request_key",
    "request_table",
    "required_n",
    "results_of",
    "sample_rows",
    "score_doc",
    "score_task",
    "select_docs",
    "sign_flip",
    "tabulate",
    "task_from_config",
]
