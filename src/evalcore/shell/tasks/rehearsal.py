"""A task scored without documents, to find what would stop it before anything is read or asked."""

from __future__ import annotations

from collections.abc import Mapping

from evalcore.core.lm_eval.task_config import task_from_config
from evalcore.core.pipeline import report_task, score_task
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, MULTIPLE_CHOICE
from evalcore.core.tables import EVALCORE
from evalcore.shell.config.yaml_file import FunctionTag
from evalcore.shell.prompts.overrides import select_scoring
from evalcore.shell.prompts.settings import decode_settings
from evalcore.shell.tasks.code import FunctionRef, map_values
from evalcore.shell.tasks.evaluate_scripts import find_scripts


def rehearse_task(config: Mapping[str, object], folder: str = "") -> str | None:
    """Find why a task cannot run, whatever its documents: its keys, metrics, filters, patterns, reducers, aggregations.

    Scripts of metrics are looked for from its ``folder``, too.

    >>> rehearse_task({"task": "t", "doc_to_text": "q", "metric_list": [{"metric": "exact_mtch"}]})
    "unknown metric 'exact_mtch'; did you mean 'exact_match'? Known: ..."
    """
    try:
        given = find_scripts(config, EVALCORE.metrics[GENERATE_UNTIL], folder)
        settings = decode_settings({key: map_values(_stand_in, value) for key, value in given.items()})
        if settings.output_type == MULTIPLE_CHOICE and settings.doc_to_choice is None:
            return "expected doc_to_choice, which multiple_choice needs"
        report_task(score_task(task_from_config(select_scoring(settings)), [], []))
    except EvalError as wrong:
        return str(wrong).partition(" - at ")[0]
    return None


def _stand_in(value: object) -> object:
    """Stand in for code that is not trusted yet, by a function of the same name."""
    if not isinstance(value, FunctionTag | FunctionRef):
        return value

    def unknown_code(*given: object, **named: object) -> object:
        return None

    unknown_code.__name__ = value.name.rpartition(".")[2]
    return unknown_code
