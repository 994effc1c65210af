"""Laws for a host's own parts: hypothesis strategies for every record, and checkers that name the broken law.

records       strategies for what enters the pipe
scores        strategies for what comes out of it
cases         strategies for whole small tasks
fingerprints  values as hashable trees of bits
metrics       laws of metrics, reducers and filters
merges        laws of merging
aggregations  laws of aggregations
"""

from evalcore.core.records.errors import require

require("hypothesis", "testing")  # first of all: its error says what to install

from evalcore.testing.aggregations import check_aggregation, check_resamples  # noqa: E402
from evalcore.testing.cases import Case, batches, cases, make_batch  # noqa: E402
from evalcore.testing.fingerprints import fingerprint  # noqa: E402
from evalcore.testing.merges import check_merge, check_task  # noqa: E402
from evalcore.testing.metrics import check_filter, check_metric, check_reducer  # noqa: E402
from evalcore.testing.records import (  # noqa: E402
    answers,
    instances,
    likelihoods,
    requests,
    results,
    samples,
    texts,
)
from evalcore.testing.scores import columns, estimates, group_trees, repeats, task_reports  # noqa: E402

__all__ = [
    "Case",
    "answers",
    "batches",
    "cases",
    "check_aggregation",
    "check_filter",
    "check_merge",
    "check_metric",
    "check_reducer",
    "check_resamples",
    "check_task",
    "columns",
    "estimates",
    "fingerprint",
    "group_trees",
    "instances",
    "likelihoods",
    "make_batch",
    "repeats",
    "requests",
    "results",
    "samples",
    "task_reports",
    "texts",
]
