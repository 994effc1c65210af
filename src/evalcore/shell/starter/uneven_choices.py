"""Answers that are choices in nearly every row, and what does not fit in the others."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.core.records.errors import EvalError
from evalcore.shell.starter.answer_view import Config, View
from evalcore.shell.starter.choice_shapes import ACCURACIES, LETTERS, ask_choices

NEARLY = 0.75
"""The part of the answers that must be choices."""

MOST_TOLD = 8
"""Rows that are named."""


def letter_choices(view: View) -> list[str]:
    """The letters of each row's choices: of its columns that are filled, or as many as its list is long."""
    if len(view.choices) < 2:
        return [LETTERS[: len(one)] for one in view.lists]
    return ["".join(at for at, name in zip(LETTERS, view.choices, strict=False) if doc[name]) for doc in view.docs]


def _read_letters(view: View) -> list[bool]:
    return [len(one) == 1 and one.upper() in its for one, its in zip(view.texts, letter_choices(view), strict=True)]


def _read_texts(view: View) -> list[bool]:
    return [str(gold) in its for gold, its in zip(view.golds, view.lists, strict=True)]


def _read_places(view: View) -> list[bool]:
    placed = zip(view.texts, view.lists, strict=True)
    return [one.isascii() and one.isdigit() and len(one) < 4 and int(one) <= len(its) for one, its in placed]


READINGS = {"letters": _read_letters, "numbers": _read_places, "texts": _read_texts}
"""Whether each answer is one of its row's choices, by what answers may be."""


def _fit_nearly(view: View, kind: str) -> str:
    if not view.golds or not view.lists or not all(view.lists):
        return ""
    good, widths = READINGS[kind](view), set(map(len, view.lists))
    if all(good):
        told = " to ".join(str(one) for one in sorted({min(widths), max(widths)}))
        return f"answers are {kind} of their choices, of which there are {told}"
    return f"{sum(good):,} of {len(good):,} answers are {kind} of their choices" if _are_most(good) else ""


def _are_most(good: Sequence[bool]) -> bool:
    return sum(good) >= NEARLY * len(good)


def fit_most_letters(view: View) -> str:
    most = max(len(view.choices), *map(len, view.lists)) if view.lists else 0
    return _fit_nearly(view, "letters") if 0 < most <= len(LETTERS) else ""


def fit_most_texts(view: View) -> str:
    return _fit_nearly(view, "texts")


def ask_most_letters(view: View) -> Config:
    """Letters before the choices that a row has; an answer that is none of them is a text that a run reports."""
    if len(view.choices) > 1:
        part = {name: not all(doc[name] for doc in view.docs) for name in view.choices}
        lines = [f"{at}. {{{{{name}}}}}\n" for at, name in zip(LETTERS, part, strict=False)]
        lines = [
            f"{{% if {name} %}}{line}{{% endif %}}" if part[name] else line
            for name, line in zip(part, lines, strict=True)
        ]
        pairs = ", ".join(f'["{at}", {name}]' for at, name in zip(LETTERS, part, strict=False))
        picked = f"{{{{ [{pairs}]|selectattr(1)|map(attribute=0)|list }}}}"
        shown, offered = "".join(lines), picked if any(part.values()) else list(LETTERS[: len(part)])
    else:
        letters = LETTERS[: max(map(len, view.lists))]
        shown = f'{{% for one in {view.listed} %}}{{{{ "{letters}"[loop.index0] }}}}. {{{{ one }}}}\n{{% endfor %}}'
        offered = f'{{{{ "{letters}"[:{view.listed}|length]|list }}}}'
    gold = f"{view.answer}|trim|upper"
    return {
        "doc_to_text": f"{{{{{view.question}}}}}\n{shown}Answer:",
        "doc_to_choice": offered,
        "doc_to_target": f"{{{{ {gold} }}}}"
        if all(map(str.isalpha, view.texts))
        else _guard(view, gold, f"({gold})[:1].isalpha()"),
        "metric_list": list(ACCURACIES[:1]),
    }


def ask_most_texts(view: View) -> Config:
    text = f"{view.answer}|string"
    return ask_choices(view, _guard(view, f"({view.listed}).index({text})", f"({text}) in {view.listed}"))


def _guard(view: View, gold: str, fine: str) -> str:
    """The gold where it is fine, else a text that is no choice: digits alone would be the place of one."""
    return f'{{{{ {gold} if {fine} else "no choice: " ~ {view.answer} }}}}'


def note_letters(view: View) -> list[str]:
    """The rows whose answer is no letter of theirs, and those that lack a choice."""
    offered = letter_choices(view)
    odd = [
        (row, f"answer {gold!r} is none of {_span_letters(its)}")
        for row, gold, its, good in zip(view.rows, view.texts, offered, _read_letters(view), strict=True)
        if not good
    ]
    filled = zip(view.rows, view.docs, strict=True) if len(view.choices) > 1 else ()
    bare = [
        (row, f"choice {view.called[name]!r} is empty") for row, doc in filled for name in view.choices if not doc[name]
    ]
    return _name_rows(odd) + _name_rows(bare)


def note_texts(view: View) -> list[str]:
    """The rows whose answer is no choice of theirs."""
    good = zip(view.rows, view.golds, _read_texts(view), strict=True)
    return _name_rows([(row, f"answer {str(gold)!r} is none of its choices") for row, gold, fine in good if not fine])


def _span_letters(letters: str) -> str:
    whole = letters == LETTERS[: len(letters)] and len(letters) > 2
    return f"{letters[0]} to {letters[-1]}" if whole else ", ".join(letters)


def _name_rows(odd: Sequence[tuple[int, str]]) -> list[str]:
    told = [f"row {row}: {what}" for row, what in odd]
    more = [f"{len(told) - MOST_TOLD:,} more like these"] if len(told) > MOST_TOLD else []
    return [*told[:MOST_TOLD], *more]


def explain_misfit(view: View) -> EvalError:
    """Why the answers of rows with choices are not read as choices."""
    if not view.lists:
        told = ", ".join(map(repr, view.called.values()))
        return EvalError(f"expected lists of choices in {told}, found none; or name a column for each: --choices A,B,C")
    bare = [row for row, its in zip(view.rows, view.lists, strict=True) if not its]
    if bare:
        return EvalError(f"expected choices in every row, found none in row {bare[0]}{_count_more(bare)}")
    read = {kind: reads(view) for kind, reads in READINGS.items()}
    best = max(read, key=lambda kind: sum(read[kind]))
    odd = [(row, gold) for row, gold, good in zip(view.rows, view.texts, read[best], strict=True) if not good]
    told = f"{sum(read[best]):,} of {len(view.rows):,} are {best}"
    wrong = f", but not {odd[0][1]!r} in row {odd[0][0]}{_count_more(odd)}" if odd else ""
    return EvalError(
        f"expected answers that are letters, numbers or texts of their choices; {told}{wrong}"
        ' (name other columns with --answer and --choices; --choices "" asks without choices)'
    )


def _count_more(found: Sequence[object]) -> str:
    return f" and {len(found) - 1:,} more" if len(found) > 1 else ""
