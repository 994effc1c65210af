"""The documents of a task: of one split, processed by the task's own function, every one with every column."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from evalcore.core.records.array import ColumnRecord
from evalcore.core.records.document import encode_alike
from evalcore.core.records.errors import EvalError, locate, place, require, unknown
from evalcore.core.records.frozen_dict import thaw_value
from evalcore.shell.prompts.settings import TaskSettings
from evalcore.shell.prompts.templates.compile import Doc

Splits = Mapping[str, Sequence[Doc]]


class DocTable(ColumnRecord, frozen=True, eq=False):
    """Documents, and the names of their columns in order."""

    columns: tuple[str, ...]
    docs: Sequence[Doc]


def tabulate_docs(docs: Iterable[Mapping[str, object]]) -> DocTable:
    """Give every document every column, None if it has no value, as Hugging Face's datasets do.

    >>> tabulate_docs([{"a": 1}, {"b": 2}]).docs
    ({'a': 1, 'b': None}, {'a': None, 'b': 2})
    """
    rows = [doc if type(doc) is dict else dict(doc) for doc in docs]
    shapes = dict.fromkeys(map(tuple, rows))
    columns = tuple(dict.fromkeys(chain.from_iterable(shapes)))
    if len(shapes) > 1:
        rows = [{name: doc.get(name) for name in columns} for doc in rows]
    return DocTable(columns, rows)


def read_eval_table(settings: TaskSettings, splits: Splits) -> DocTable:
    """Read the documents to ask about: the test split or, without one, the validation split."""
    name = name_asked_split(settings)
    if name is None:
        raise EvalError(f"expected a test_split or a validation_split, got neither{place(settings.task)}")
    return _read_split(settings.task, splits, name, settings.process_docs)


def name_asked_split(settings: TaskSettings) -> str | None:
    """Name the split that is asked about."""
    return settings.test_split if settings.test_split is not None else settings.validation_split


def read_shot_docs(settings: TaskSettings, splits: Splits) -> Sequence[Doc]:
    """Read the documents that few-shot examples are drawn from, by lm-eval's order of preference."""
    shots = settings.fewshot_config
    if shots.split is not None:
        return _read_split(settings.task, splits, shots.split, shots.process_docs).docs
    if shots.samples is not None:
        fixed = thaw_value(shots.samples)
        given = _call_own(settings.task, "samples", shots.samples) if callable(shots.samples) else fixed
        return _check_docs(settings.task, "fewshot_config.samples", given)
    for name in (settings.training_split, settings.validation_split, settings.test_split):
        if name is not None:
            return _read_split(settings.task, splits, name, settings.process_docs).docs
    return ()


def share_documents(settings: TaskSettings, splits: Splits) -> bool:
    """Whether examples and questions come from one file, given for several splits."""
    drawn, asked = _name_shot_split(settings), name_asked_split(settings)
    return drawn is not None and asked is not None and drawn != asked and splits[drawn] is splits[asked]


def may_leak(settings: TaskSettings) -> bool:
    """Whether examples come from the split that is asked about, and lm-eval does not notice: it compares two keys.

    >>> may_leak(TaskSettings(task="t", test_split="test")), may_leak(TaskSettings(task="t", validation_split="test"))
    (True, False)
    """
    overlap = settings.fewshot_config.split == settings.test_split
    return not overlap and _name_shot_split(settings) == name_asked_split(settings)


def _name_shot_split(settings: TaskSettings) -> str | None:
    shots = settings.fewshot_config
    named = (settings.training_split, settings.validation_split, settings.test_split)
    return shots.split or (None if shots.samples is not None else next((name for name in named if name), None))


def _read_split(task: str, splits: Splits, name: str, process: Callable[..., object] | None) -> DocTable:
    try:
        docs = splits[name]
    except KeyError as missing:
        raise unknown("split", name, splits, place(task)) from missing
    if process is None:
        return _tabulate_dataset(docs)
    made = _call_own(task, "process_docs", _process_docs, process, docs)
    return _tabulate_dataset(made if hasattr(made, "features") else _check_docs(task, "process_docs", made))


def _process_docs(process: Callable[..., object], docs: Sequence[Doc]) -> object:
    """Apply ``process_docs`` to the dataset that lm-eval gives it, without a progress bar."""
    datasets = require("datasets", "hf")
    given = docs if hasattr(docs, "features") else datasets.Dataset.from_list(list(tabulate_docs(docs).docs))
    silent = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        return process(given)
    finally:
        if not silent:
            datasets.enable_progress_bars()


def _tabulate_dataset(docs: object) -> DocTable:
    """Turn a dataset into rows; it keeps the columns that it names even if it has no rows."""
    features = getattr(docs, "features", None)
    if features is None:
        return tabulate_docs(docs)  # type: ignore[arg-type]  # splits are rows otherwise
    to_list = getattr(docs, "to_list", None)
    if callable(to_list) and getattr(docs, "format", {}).get("type") is None:
        return DocTable(tuple(features), to_list())  # ten times as fast as iterating over rows
    return DocTable(tuple(features), list(docs))  # type: ignore[call-overload]  # a dataset is a sequence


def _check_docs(task: str, what: str, given: object) -> Sequence[Doc]:
    rows: list[object] = list(given) if isinstance(given, Iterable) and not isinstance(given, Mapping) else [given]
    docs = [one for one in rows if isinstance(one, dict)]
    if len(docs) < len(rows):
        wrong = next(one for one in rows if not isinstance(one, dict))
        raise EvalError(f"expected {what} to give a list of documents, got {wrong!r}{place(task)}")
    return docs


def _call_own(task: str, what: str, function: Callable[..., object], *given: object) -> object:
    try:
        return function(*given)
    except EvalError as wrong:
        raise locate(wrong, place(task)) from wrong
    except Exception as raised:
        raise EvalError(f"{what}: {type(raised).__name__}: {raised}{place(task)}") from raised


# --- as bytes --------------------------------------------------------------------------------------------------


def encode_doc(doc: Doc) -> bytes:
    """Encode a document as JSON; what JSON has no word for is written as in lm-eval's logs.

    >>> encode_doc({"q": "é", "n": [1, None]}), encode_doc({"x": float("nan"), "when": {1}})
    (b'{"q":"\\xc3\\xa9","n":[1,null]}', b'{"x": NaN, "when": [1]}')
    """
    encoded = encode_alike(doc)
    return json.dumps(doc, default=_convert_value).encode() if encoded is None else encoded


def _convert_value(value: object) -> object:
    for name in ("tolist", "item"):  # numpy arrays and scalars
        plain = getattr(value, name, None)
        if callable(plain):
            return plain()
    return sorted(value, key=str) if isinstance(value, set | frozenset) else str(value)
