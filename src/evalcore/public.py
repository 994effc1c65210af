"""The public names of evalcore, one list."""

from evalcore.core.aggregate import Inference, aggregate_metric
from evalcore.core.aggregations import AGGREGATIONS, from_callable
from evalcore.core.answers import AnswerTable, Requests, request_table, tabulate
from evalcore.core.arrays import Array
from evalcore.core.columns import (
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
from evalcore.core.compare import compare_estimates
from evalcore.core.comparing import compare_sides
from evalcore.core.comparison import Comparison, Line, adjust
from evalcore.core.consolidate import lm_eval_results, lmms_eval_results, sample_rows
from evalcore.core.document_scorers import from_process_results, of
from evalcore.core.documents import document_table, request_key, select_docs
from evalcore.core.errata import ERRATA
from evalcore.core.errors import EvalError
from evalcore.core.estimate import Aggregation, Estimate, Resampling
from evalcore.core.filters import FILTERS, Filter, explain
from evalcore.core.filters.replies import each_text
from evalcore.core.grouping import group_by_doc
from evalcore.core.groups import (
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
from evalcore.core.groups.build import build_trees, group_from_config, group_to_dict
from evalcore.core.groups.lint import lint
from evalcore.core.metrics.metric import Marks, Metric
from evalcore.core.metrics.text import per_document
from evalcore.core.outcome import Failed, NotEmitted, Ok, Outcome, Unscorable
from evalcore.core.pipeline import build_report, clusters_of, report_groups, report_task
from evalcore.core.policy import LM_EVAL_0_4_13, POLICIES
from evalcore.core.records import (
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
    MetricKey,
    MetricSpec,
    OutputType,
    Pipeline,
    Rolling,
    Sample,
    Step,
    Task,
    options,
)
from evalcore.core.repeats import REDUCERS, Repeats, reduce_repeats
from evalcore.core.reports import GroupReport, Report, TaskReport, leaf_from_flat
from evalcore.core.results import GenResult, LLResult, MCResult, Result, RollingResult, results_of
from evalcore.core.scorers import SCORERS, Scorer
from evalcore.core.scoring import Scored, merge_scored, score_doc, score_task
from evalcore.core.sides import Side
from evalcore.core.signature import VERSION as __version__
from evalcore.core.spreads import cluster_codes
from evalcore.core.stats.compare import Difference, detectable, paired_binary, required_n, sign_flip
from evalcore.core.stats.families import benjamini_hochberg, holm
from evalcore.core.tables import EVALCORE, METRICS, Tables
from evalcore.core.task_config import repeats_of, task_from_config

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
