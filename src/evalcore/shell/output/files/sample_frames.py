"""A row of a sample log, of any year, as a flat record of a fixed schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite, nan

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, Failure, OutputType
from evalcore.shell.logs.lm_eval.requests import guess_output_type, list_arguments
from evalcore.shell.logs.lm_eval.rows import decode_fields, read_row_scores
from evalcore.shell.safety.strict_json import dump_json, to_plain

Plain = Mapping[str, object]

SAMPLES: Mapping[str, str] = {
    "task": "text",
    "doc_id": "count",
    "filter": "text",
    "doc": "text",
    "target": "text",
    "prompt": "text",
    "arguments": "text",
    "resps": "texts",
    "filtered_resps": "texts",
    "loglikelihoods": "numbers",
    "doc_hash": "text",
    "prompt_hash": "text",
    "target_hash": "text",
    "cluster": "text",
    "unscored": "text",
    "escaped": "flag",
}
"""The columns that every table of samples has, before one for each metric."""


def find_metric_kinds(rows: Iterable[Plain]) -> dict[str, str]:
    """Metric -> ``number`` if every logged score is one, else ``text``.

    >>> find_metric_kinds([{"doc_id": 0, "metrics": ["acc", "bleu"], "acc": 1, "bleu": ["a", "b"]}])
    {'acc': 'number', 'bleu': 'text'}
    """
    kinds: dict[str, str] = {}
    for row in rows:
        for name, score in _read_scores(row).items():
            plain_number = score is None or isinstance(score, int | float)
            kinds[name] = kinds.get(name, "number") if plain_number else "text"
    return kinds


def name_metric_columns(metrics: Iterable[str]) -> dict[str, str]:
    """Metric -> its column: its name, with a tail where that is taken.

    >>> name_metric_columns(["acc", "prompt"])
    {'acc': 'acc', 'prompt': 'prompt_score'}
    """
    out: dict[str, str] = {}
    for metric in metrics:
        name = escape_surrogates(metric)
        while name in SAMPLES or name in out.values():
            name += "_score"
        out[metric] = name
    return out


def flatten_sample(row: Plain, kinds: Mapping[str, str], columns: Mapping[str, str]) -> dict[str, object]:
    """A document under a filter; ``kinds`` and ``columns`` are those of the metrics.

    >>> row = {"doc_id": 0, "doc": {"q": "é"}, "arguments": [["Q:", {}]], "resps": [["4", "5"]], "acc": 1}
    >>> flat = flatten_sample(row, {"acc": "number"}, {"acc": "acc"})
    >>> flat["doc"], flat["prompt"], flat["resps"], flat["acc"], flat["escaped"]
    ('{"q": "é"}', 'Q:', ['4', '5'], 1.0, False)
    """
    given = decode_fields(row)
    kind = guess_output_type(given)
    asked = list_arguments(given.get("arguments"))
    own = given.get("evalcore")
    extra: Plain = own if isinstance(own, Mapping) else {}
    replies = list(_list_replies(given.get("resps"), kind))
    record: dict[str, object] = {
        **{name: _write_text(given.get(name)) for name in AS_THEY_ARE},
        "doc_id": given["doc_id"],
        "doc": _write_json(given.get("doc")),
        "prompt": _write_text(asked[0][0] if asked and asked[0] else None),
        "arguments": _write_json(given.get("arguments")),
        "resps": [_write_text(one) for one in replies],
        "filtered_resps": [_write_text(one) for one in _as_list(given.get("filtered_resps"))],
        "loglikelihoods": None if kind == GENERATE_UNTIL else [_read_likelihood(one) for one in replies],
        "cluster": _write_text(extra.get("cluster")),
        "unscored": _write_json(extra["unscored"]) if "unscored" in extra else None,
        **{
            columns[name]: _write_json(score) if kinds[name] == "text" else to_finite(score)
            for name, score in _read_scores(given).items()
        },
    }
    escaped = {name: _escape_all(value) for name, value in record.items()}
    return {**escaped, "escaped": escaped != record}


AS_THEY_ARE = ("task", "filter", "target", "doc_hash", "prompt_hash", "target_hash")


def _read_scores(row: Plain) -> dict[str, object]:
    """What a row has under the names of metrics; the name of its task, which a reader may add, is none of them."""
    if not isinstance(row, Mapping) or "doc_id" not in row:
        raise EvalError(f"expected rows of a sample log (doc_id, doc, scores), got {str(row)[:60]!r}")
    return read_row_scores({name: value for name, value in row.items() if name != "task"})


def _list_replies(given: object, kind: OutputType) -> Iterator[object]:
    """Every reply in order, request by request; before 2024 a likelihood stood without a list around it."""
    for request in _as_list(given):
        single = kind != GENERATE_UNTIL and isinstance(request, list) and len(request) > 1 and _is_flag(request[1])
        yield from [request] if single else _as_list(request)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool) or value in ("True", "False")


def _read_likelihood(reply: object) -> float | None:
    value = reply[0] if isinstance(reply, list | tuple) and reply else reply
    try:
        return to_finite(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None


def to_finite(value: object) -> float | None:
    """A number as one that every table holds, else None.

    >>> to_finite(1), to_finite(True), to_finite(float("inf")), to_finite("N/A"), to_finite(10**400)
    (1.0, 1.0, None, None, None)
    """
    try:
        number = float(value) if isinstance(value, int | float) else nan
    except OverflowError:
        return None
    return number if isfinite(number) else None


def _write_text(value: object) -> str | None:
    """Text as it is, nothing for nothing, other data as JSON."""
    if value is None or isinstance(value, Failure):
        return None
    return value if isinstance(value, str) else _write_json(value)


def _write_json(value: object) -> str:
    """JSON for people, in Unicode; in ASCII, which means the same, where some of it is not UTF-8."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=to_plain)
        text.encode()
    except (ValueError, TypeError):
        return dump_json(value)
    return text


def escape_surrogates(text: str) -> str:
    r"""Text with lone surrogates, which UTF-8 has no bytes for, as escapes.

    >>> escape_surrogates("é \ud83d")
    'é \\ud83d'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _escape_all(value: object) -> object:
    if isinstance(value, list):
        return [_escape_all(one) for one in value]
    return escape_surrogates(value) if isinstance(value, str) else value


def _as_list(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
