"""evalcore: from model answers to numbers people can trust, pure, immutable and typed.

``docs/api.md`` lists the public names: those below, and those of each namespace. All are loaded on first use, so
that a command line which needs none of them (``evalcore tasks``) does not wait for numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalcore.core.aggregate.aggregations import AGGREGATIONS as AGGREGATIONS
    from evalcore.core.aggregate.value import aggregate_metric as aggregate_metric
    from evalcore.core.answers.group import group_by_doc as group_by_doc
    from evalcore.core.filters.chain import FILTERS as FILTERS
    from evalcore.core.groups.tree import fold_group as fold_group
    from evalcore.core.metrics.dispatch import METRICS as METRICS
    from evalcore.core.metrics.dispatch import SCORERS as SCORERS
    from evalcore.core.pipeline import build_report as build_report
    from evalcore.core.pipeline import report_task as report_task
    from evalcore.core.pipeline import score_doc as score_doc
    from evalcore.core.pipeline import score_task as score_task
    from evalcore.core.records.errors import EvalError as EvalError
    from evalcore.core.records.estimate import Estimate as Estimate
    from evalcore.core.records.outcome import Failed as Failed
    from evalcore.core.records.outcome import NotEmitted as NotEmitted
    from evalcore.core.records.outcome import Ok as Ok
    from evalcore.core.records.outcome import Unscorable as Unscorable
    from evalcore.core.records.report import GroupReport as GroupReport
    from evalcore.core.records.report import Report as Report
    from evalcore.core.records.report import TaskReport as TaskReport
    from evalcore.core.records.request import GENERATE_UNTIL as GENERATE_UNTIL
    from evalcore.core.records.request import LOGLIKELIHOOD as LOGLIKELIHOOD
    from evalcore.core.records.request import LOGLIKELIHOOD_ROLLING as LOGLIKELIHOOD_ROLLING
    from evalcore.core.records.request import MULTIPLE_CHOICE as MULTIPLE_CHOICE
    from evalcore.core.records.request import Answer as Answer
    from evalcore.core.records.request import Failure as Failure
    from evalcore.core.records.request import Generate as Generate
    from evalcore.core.records.request import Instance as Instance
    from evalcore.core.records.request import Likelihood as Likelihood
    from evalcore.core.records.request import LogLikelihood as LogLikelihood
    from evalcore.core.records.request import OutputType as OutputType
    from evalcore.core.records.request import Rolling as Rolling
    from evalcore.core.records.request import Sample as Sample
    from evalcore.core.records.request import freeze_options as freeze_options
    from evalcore.core.records.score import Scored as Scored
    from evalcore.core.records.score import merge_scored as merge_scored
    from evalcore.core.records.task import MetricKey as MetricKey
    from evalcore.core.records.task import MetricSpec as MetricSpec
    from evalcore.core.records.task import Pipeline as Pipeline
    from evalcore.core.records.task import Step as Step
    from evalcore.core.records.task import Task as Task
    from evalcore.core.repeats.reduce import reduce_repeats as reduce_repeats
    from evalcore.core.repeats.reducers import REDUCERS as REDUCERS
    from evalcore.core.tables import EVALCORE as EVALCORE
    from evalcore.core.tables import Tables as Tables
    from evalcore.shell.compare.compare import compare as compare
    from evalcore.shell.run.run import run as run
    from evalcore.shell.score.score import score as score

    __version__: str

_MODULES = {
    # what is asked, and what comes back
    "core.records.task": "Task MetricSpec MetricKey Pipeline Step",
    "core.records.request": "Sample Instance Generate LogLikelihood Rolling Answer Likelihood Failure OutputType "
    "GENERATE_UNTIL LOGLIKELIHOOD LOGLIKELIHOOD_ROLLING MULTIPLE_CHOICE freeze_options",
    "core.records.errors": "EvalError",
    # what a document gets, and what a task comes to
    "core.records.outcome": "Ok Unscorable Failed NotEmitted",
    "core.records.score": "Scored merge_scored",
    "core.records.estimate": "Estimate",
    "core.records.report": "TaskReport GroupReport Report",
    # the verbs, in the order data takes
    "core.answers.group": "group_by_doc",
    "core.pipeline": "score_doc score_task report_task build_report",
    "core.repeats.reduce": "reduce_repeats",
    "core.aggregate.value": "aggregate_metric",
    "core.groups.tree": "fold_group",
    # tables of behaviour
    "core.tables": "EVALCORE Tables",
    "core.metrics.dispatch": "METRICS SCORERS",
    "core.filters.chain": "FILTERS",
    "core.repeats.reducers": "REDUCERS",
    "core.aggregate.aggregations": "AGGREGATIONS",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}
_HOMES["__version__"] = "core.aggregate.signature:VERSION"
"""Where each public name lives: its module, and its name there if it has another."""

_COMMANDS = {"run": "shell.run.run", "score": "shell.score.score", "compare": "shell.compare.compare"}
"""Public as well, but no star import loads the shell, nor brings words as common as these."""

_NAMESPACES = (
    *("comparisons", "traces", "stats", "groups", "logs", "starter"),
    *("lm_eval", "extensions", "frames", "scale", "testing"),
)

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return import_module(f"evalcore.{name}")
    home = _HOMES.get(name) or _COMMANDS.get(name)
    if home is None:
        raise AttributeError(f"module 'evalcore' has no attribute {name!r}")
    module, _, own = home.partition(":")
    return getattr(import_module(f"evalcore.{module}"), own or name)


def __dir__() -> list[str]:
    return [*_HOMES, *_COMMANDS, *_NAMESPACES]
