"""A page's head without anything that may quote a document, a prompt or a reply, or name a path."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from evalcore.shell.compare.compare import Compared

Plain = dict[str, object]

LEFT_OUT = "left out of this page"
QUOTING = frozenset({"reason"})
"""Fields whose words are made of what documents, replies and errors say."""
LISTS = frozenset({"failed_reasons", "unscorable_reasons"})


def redact_head(head: Mapping[str, object], *, warnings: bool) -> Plain:
    """A head without reasons, which may quote what they are about; ``warnings`` name paths, and are left out if asked.

    How many there were stays.

    >>> redact_head({"runs": [{"reason": "got 'secret'", "warnings": ["/home/me/a: odd"], "n": 3}]}, warnings=True)
    {'runs': [{'reason': 'left out of this page', 'warnings': ['1 warning left out of this page'], 'n': 3}]}
    """
    return {key: _redact(value, {**HIDERS, **(WARNINGS if warnings else {})}) for key, value in head.items()}


def redact_compared(compared: Compared, *, warnings: bool) -> Compared:
    """A comparison without reasons, which its sentences and warnings repeat, and if asked without warnings."""

    def cut(told: tuple[str, ...]) -> tuple[str, ...]:
        return (_count_left_out(len(told)),) if warnings and told else told

    comparisons = tuple(
        replace(
            one,
            warnings=cut(one.warnings),
            lines=tuple(replace(line, reason=line.reason and LEFT_OUT) for line in one.lines),
        )
        for one in compared.comparisons
    )
    runs = tuple(replace(run, warnings=cut(run.warnings)) for run in compared.runs)
    return replace(compared, comparisons=comparisons, runs=runs, warnings=cut(compared.warnings))


Hide = Callable[[object], object]


def _redact(value: object, hiders: Mapping[str, Hide]) -> object:
    if isinstance(value, Mapping):
        return {key: hiders[key](one) if key in hiders else _redact(one, hiders) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_redact(one, hiders) for one in value]
    return value


def _hide_words(value: object) -> object:
    return LEFT_OUT if isinstance(value, str) and value else value


def _hide_reasons(value: object) -> object:
    """Reasons with their counts, as one."""
    counts = [one[1] for one in value if isinstance(one[1], int)] if isinstance(value, list) else []
    return [[LEFT_OUT, sum(counts)]] if counts else value


def _hide_warnings(value: object) -> object:
    return [_count_left_out(len(value))] if isinstance(value, list) and value else value


def _count_left_out(many: int) -> str:
    return f"{many} warning{'s' * (many > 1)} {LEFT_OUT}"


HIDERS: Mapping[str, Hide] = {
    **dict.fromkeys(QUOTING, _hide_words),
    **dict.fromkeys(LISTS, _hide_reasons),
}
WARNINGS: Mapping[str, Hide] = {"warnings": _hide_warnings}
