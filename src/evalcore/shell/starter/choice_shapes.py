"""Answers that are choices: by letter, label, place or text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from evalcore.shell.starter.answer_view import ASKED, MEAN, PLAIN_NUMBER, QA, Config, View

LETTERS = "ABCDEFGHIJ"
LABEL = re.compile(r"\w[\w .,'/+-]{0,40}")
MOST_LABELS = 10
ACCURACIES = ({"metric": "acc", **MEAN}, {"metric": "acc_norm", **MEAN})


def fit_letters(view: View) -> str:
    letters = LETTERS[: view.width]
    whole = len(view.choices) in (1, view.width) and view.width <= len(LETTERS)  # no column is empty throughout
    good = whole and view.width and view.golds and all(len(one) == 1 and one.upper() in letters for one in view.texts)
    return f"answers are letters, {letters[0]} to {letters[-1]}, and there are {view.width} choices" if good else ""


def ask_letters(view: View) -> Config:
    letters = LETTERS[: view.width]
    names = view.choices if len(view.choices) > 1 else [f"{view.listed}[{at}]" for at in range(view.width)]
    shown = "\n".join(f"{letter}. {{{{{name}}}}}" for letter, name in zip(letters, names, strict=True))
    return {
        "doc_to_text": f"{{{{{view.question}}}}}\n{shown}\nAnswer:",
        "doc_to_choice": list(letters),
        "doc_to_target": f'{{{{ "{letters}".index({view.answer}|trim|upper) }}}}',
        "metric_list": list(ACCURACIES[:1]),
    }


def fit_labels(view: View) -> str:
    """ARC's form: ``{"text": [...], "label": ["A", ...]}``."""
    for doc, gold in zip(view.docs, view.texts, strict=False) if view.choices and view.lists else ():
        cell = doc.get(view.choices[0])
        labels = cell.get("label") if isinstance(cell, Mapping) else None
        if not isinstance(labels, list | tuple) or gold not in labels:
            return ""
    return "each answer is one of its choices' labels" if view.choices and view.lists and view.golds else ""


def fit_index(view: View) -> str:
    numbers = [int(one) for one in view.texts if one.isascii() and one.isdigit()]
    if not view.lists or not numbers or len(numbers) < len(view.texts):
        return ""
    if any(not one and other for doc in view.docs for one, other in pairwise(map(doc.get, view.choices))):
        return ""  # a choice behind an empty one has another place in the list than in the row
    least = min(map(len, view.lists))
    if max(numbers) > max(map(len, view.lists)) or (min(numbers) == 0 and max(numbers) >= max(map(len, view.lists))):
        return ""
    if min(numbers) == 0:
        return f"answers are numbers from 0 to {max(numbers)}: the place of the right choice, counted from 0"
    sure = "" if max(numbers) >= least else "; none is 0, but check this: they may count from 0"
    return f"answers are numbers from {min(numbers)} to {max(numbers)}: the place of the right choice, from 1{sure}"


def ask_index(view: View) -> Config:
    number = view.answer if view.number else f"{view.answer}|int"
    first = 0 if min(map(int, view.texts)) == 0 else 1
    return ask_choices(view, f"{{{{ ({number}) - 1 }}}}" if first else f"{{{{ {number} }}}}")


def fit_choice_texts(view: View) -> str:
    if not view.lists or not view.golds or len(view.golds) < len(view.docs):
        return ""
    good = all(str(doc.get(view.answer or "")) in one for doc, one in zip(view.docs, view.lists, strict=True))
    return "each answer is the text of one of its choices" if good else ""


def ask_choices(view: View, target: str) -> Config:
    return {
        "doc_to_text": QA % view.question,
        "doc_to_choice": f"{{{{{view.listed}}}}}",
        "doc_to_target": target,
        "metric_list": list(ACCURACIES),
    }


def fit_lone_letters(view: View) -> str:
    few = sorted({one.upper() for one in view.texts})
    good = not view.choices and len(few) > 1 and all(one in LETTERS[:6] and len(one) == 1 for one in few)
    return f"answers are letters, {few[0]} to {few[-1]}; the choices are taken to be in the question" if good else ""


def ask_lone_letters(view: View) -> Config:
    letters = LETTERS[: LETTERS.index(max(one.upper() for one in view.texts)) + 1]
    return {
        "doc_to_text": ASKED % view.question,
        "doc_to_choice": list(letters),
        "doc_to_target": f'{{{{ "{letters}".index({view.answer}|trim|upper) }}}}',
        "metric_list": list(ACCURACIES[:1]),
    }


def list_labels(view: View) -> list[str]:
    return sorted({str(one) for one in view.golds})


def fit_classes(view: View) -> str:
    labels = list_labels(view)
    few = 1 < len(labels) <= MOST_LABELS and len(view.golds) >= 4 * len(labels)
    plain = all(LABEL.fullmatch(one) and not PLAIN_NUMBER.fullmatch(one) for one in labels)
    told = ", ".join(map(repr, labels[:4])) + (", ..." if len(labels) > 4 else "")
    return f"answers are one of {len(labels)} labels ({told})" if few and plain and not view.choices else ""


def ask_classes(view: View) -> Config:
    labels = list_labels(view)
    return {
        "doc_to_text": ASKED % view.question,
        "doc_to_choice": labels,
        "doc_to_target": f"{{{{ {labels!r}.index({view.answer}|string) }}}}",
        "metric_list": list(ACCURACIES[:1]),
    }
