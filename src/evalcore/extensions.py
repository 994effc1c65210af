"""What a host's own entries are made of, and the tables they go into that are not at the root."""

from evalcore.core.aggregate.aggregations import from_callable
from evalcore.core.answers.kind import batch_of, result_of, results_of
from evalcore.core.answers.result import GenResult, LLResult, MCResult, Result, RollingResult, metric_inputs
from evalcore.core.compare.lines import CORRECTIONS, Correction
from evalcore.core.filters.reply import Filter, each_text
from evalcore.core.groups.averages import AVERAGES, Average, Share, Term
from evalcore.core.groups.rules import GROUP_RULES, GroupRule
from evalcore.core.metrics.custom import per_document
from evalcore.core.metrics.dispatch import Scorer
from evalcore.core.metrics.metric import Marks, Metric
from evalcore.core.metrics.process_results import from_process_results, scorer_of
from evalcore.core.records.estimate import Aggregation, Bracket, Evidence, smooth
from evalcore.core.repeats.repeat import Reducer, ReducerAt, Repeats
from evalcore.core.stats.intervals import INTERVALS, Interval
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.data.readers import DATA_READERS, read_files
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.models import MODELS
from evalcore.shell.models.model import Backend, Heard, Model, Question
from evalcore.shell.output.terminal.screen import Renderer, render_form
from evalcore.shell.output.terminal.show import RENDERERS

__all__ = [
    "AVERAGES",
    "CORRECTIONS",
    "DATA_READERS",
    "GROUP_RULES",
    "INTERVALS",
    "MODELS",
    "RENDERERS",
    "Aggregation",
    "Average",
    "Backend",
    "Bracket",
    "Correction",
    "Evidence",
    "Filter",
    "GenResult",
    "GroupRule",
    "Heard",
    "Interval",
    "LLResult",
    "MCResult",
    "Marks",
    "Metric",
    "Model",
    "Question",
    "Reducer",
    "ReducerAt",
    "Renderer",
    "Repeats",
    "Result",
    "RollingResult",
    "Scorer",
    "Share",
    "Spent",
    "Term",
    "batch_of",
    "each_text",
    "from_callable",
    "from_process_results",
    "metric_inputs",
    "open_bytes",
    "per_document",
    "read_files",
    "render_form",
    "result_of",
    "results_of",
    "scorer_of",
    "smooth",
]
