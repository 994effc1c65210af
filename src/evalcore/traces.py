"""From one document to every number above it: what filters made of its replies, what it moves, what changed."""

from evalcore.core.explain.contribution import Contribution, contributions
from evalcore.core.explain.trace import trace_document
from evalcore.core.filters.chain import Trace, trace_filters
from evalcore.shell.explain.diff import Diffed, diff_runs
from evalcore.shell.explain.explain import Explained, explain_document

__all__ = [
    "Contribution",
    "Diffed",
    "Explained",
    "Trace",
    "contributions",
    "diff_runs",
    "explain_document",
    "trace_document",
    "trace_filters",
]
