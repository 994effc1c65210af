"""What a host's own entries are made of: metrics, filters, scorers, aggregations, models, readers of data."""

from evalcore.core.aggregate.aggregations import from_callable
from evalcore.core.answers.kind import batch_of, result_of, results_of
from evalcore.core.answers.result import GenResult, LLResult, MCResult, Result, RollingResult, metric_inputs
from evalcore.core.filters.reply import Filter, each_text
from evalcore.core.metrics.custom import per_document
from evalcore.core.metrics.dispatch import Scorer
from evalcore.core.metrics.metric import Marks, Metric
from evalcore.core.metrics.process_results import from_process_results, scorer_of
from evalcore.core.records.estimate import Aggregation, smooth
from evalcore.core.repeats.repeat import Repeats
from evalcore.shell.data.readers import read_files
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.models import MODELS
from evalcore.shell.models.model import Heard, Model, Question

__all__ = [
    "MODELS",
    "Aggregation",
    "Filter",
    "GenResult",
    "Heard",
    "LLResult",
    "MCResult",
    "Marks",
    "Metric",
    "Model",
    "Question",
    "Repeats",
    "Result",
    "RollingResult",
    "Scorer",
    "batch_of",
    "each_text",
    "from_callable",
    "from_process_results",
    "metric_inputs",
    "open_bytes",
    "per_document",
    "read_files",
    "result_of",
    "results_of",
    "scorer_of",
    "smooth",
]
