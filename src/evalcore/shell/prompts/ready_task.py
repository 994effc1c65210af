"""A task ready to be asked: its scoring, its requests, its documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from evalcore.core.answers.table import Requests
from evalcore.core.records.array import ColumnRecord
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.core.records.request import Request, Sample
from evalcore.core.records.task import Task
from evalcore.shell.prompts.turns import ChatTemplate
from evalcore.shell.safety.safe_text import visible


class Asking(FrozenRecord, frozen=True):
    """How a run asks its tasks, in lm-eval's words. ``chat`` is the model's template if it is to be applied.

    ``as_host``: as lm-eval 0.4.13 does even where that is wrong (E51, E53).
    """

    num_fewshot: int | None = None
    seed: int | None = 1234
    limit: float | None = None
    samples: tuple[int, ...] | None = None
    system_instruction: str | None = None
    chat: ChatTemplate | None = None
    multiturn: bool = False
    gen_kwargs: Mapping[str, object] | None = None
    predict_only: bool = False
    cluster: str | None = None
    as_host: bool = False
    multiple_choice_by: str | None = None


class Built(ColumnRecord, frozen=True, eq=True):
    """A task ready to be asked; ``requests[i]`` belongs to the document and place in row ``i`` of ``asked``.

    ``n_original`` counts the documents before a limit. ``targets`` is what ``doc_to_target`` gives for each sample,
    shown in sample logs: mostly, but not always, its gold.
    """

    task: Task
    asked: Requests
    requests: Sequence[Request]
    samples: tuple[Sample, ...]
    config: Mapping[str, object]
    warnings: tuple[str, ...] = ()
    targets: tuple[object, ...] = ()
    n_original: int | None = None


def first_prompt(built: Built) -> str:
    """The first request of a task, for its author to read.

    >>> from evalcore.shell.prompts.build import build_task
    >>> config = {"task": "t", "test_split": "test", "doc_to_text": "{{q}}?", "doc_to_target": "a"}
    >>> print(first_prompt(build_task(config, {"test": [{"q": "why", "a": "so"}]}, Asking())), end="")
    --- t: 1 requests, the first one ---
    why?
    ---
    """
    if not built.requests:
        return f"--- {built.task.name}: no requests ---\n"
    request = built.requests[0]
    text = "".join(part for part in map(partial(getattr, request), request.__struct_fields__) if isinstance(part, str))
    shown = "\n".join(map(visible, text.split("\n")))
    return f"--- {built.task.name}: {len(built.requests)} requests, the first one ---\n{shown}\n---\n"
