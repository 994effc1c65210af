"""lmms-eval's samples, whose rows have the prompt in place of the arguments and may leave out replies and document."""

from __future__ import annotations

from collections.abc import Mapping

Plain = dict[str, object]


def is_lmms(row: Mapping[str, object]) -> bool:
    """Whether a row is one of lmms-eval's.

    >>> is_lmms({"doc_id": 0, "input": "Q", "filtered_resps": ["A"]}), is_lmms({"doc_id": 0, "arguments": ["Q"]})
    (True, False)
    """
    flat = row.get("arguments")
    return "filtered_resps" in row and ("input" in row if flat is None else isinstance(flat, list) and _is_flat(flat))


def add_arguments(row: Plain) -> Plain:
    """Bring a row into lm-eval's form. Replies that filters leave unchanged are logged once, as filtered.

    >>> add_arguments({"doc_id": 0, "input": "Q", "filtered_resps": ["A"]})["resps"]
    [['A']]
    """
    replies = row.get("resps", None)
    if replies is None:
        given = row["filtered_resps"]
        listed = given if isinstance(given, list) else [given]
        replies = listed if all(_is_several(one) for one in listed) else [listed]
    flat = row.get("arguments")
    prompt = flat[0] if isinstance(flat, list) else row.get("input")
    if isinstance(prompt, list) and prompt:
        prompt = prompt[0]
    scored = any(_is_pair(one) for each in _lists(replies) for one in _lists(each) or [each])
    arguments = [[str(prompt), ""]] if scored else [[str(prompt), {}]]
    return {**row, "resps": replies, "arguments": arguments}


def _is_flat(arguments: list[object]) -> bool:
    """lmms-eval puts the arguments of all requests into one list, without what JSON cannot hold."""
    return len(arguments) > 2 and isinstance(arguments[0], str)


def _is_several(reply: object) -> bool:
    return isinstance(reply, list) and not _is_pair(reply)


def _is_pair(reply: object) -> bool:
    """A log-likelihood and whether it is greedy."""
    return isinstance(reply, list) and len(reply) == 2 and reply[1] in ("True", "False", True, False)


def _lists(value: object) -> list[object]:
    return value if isinstance(value, list) else []
