"""Which column holds the question, the answer, the choices, the id and the subject: by usual names, then by content."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenRecord
from evalcore.shell.starter.table import Doc, split_choices

LOOKED_AT = 1000
"""Rows on which columns are judged."""


class Picked(NamedTuple):
    """What was chosen, and why."""

    columns: tuple[str, ...] = ()
    why: str = ""

    @property
    def one(self) -> str | None:
        return self.columns[0] if self.columns else None


class Columns(FrozenRecord, frozen=True):
    """The columns of a file by what they hold."""

    question: Picked = Picked()
    answer: Picked = Picked()
    choices: Picked = Picked()
    id: Picked = Picked()
    group_by: Picked = Picked()


USUAL: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "qid", "question_id", "doc_id", "uid", "uuid", "idx", "index", "task_id", "example_id"),
    "group_by": ("subject", "category", "topic", "domain", "subset", "section", "difficulty", "level", "language"),
    "choices": ("choices", "options", "endings", "candidates", "alternatives"),
    "answer": (
        *("answer", "answer_key", "answerkey", "gold", "target", "label", "correct_answer", "correct", "right_answer"),
        *("correct_option", "answer_index", "answer_idx", "gold_index", "solution", "expected", "expected_output"),
        *("reference", "ground_truth", "final_answer", "output", "response", "completion", "summary", "translation"),
    ),
    "question": (
        *("question", "query", "prompt", "problem", "instruction", "input", "question_text", "sentence", "goal", "ctx"),
        *("context", "text", "document", "article", "passage", "source", "content", "premise"),
    ),
}
"""Names that say what a column holds, the plainest first; in the order in which columns are taken."""

SAID = re.compile(r"(^|_)(model|prediction|predicted|output|response|reply|completion|generated|generation)(_|$)")
"""Names of columns that a model wrote, which are no questions."""

CHOICE_PREFIXES = ("", "option", "choice", "answer", "ending", "opt", "candidate", "sol", "alternative", "option_text")
PLACES = re.compile(r"(.*?)[\s_.-]*(?:([a-j])|(\d{1,2}))")


def fold_name(name: str) -> str:
    """A name without case, spaces and marks.

    >>> fold_name(" Answer-Key "), fold_name("correctAnswer")
    ('answer_key', 'correct_answer')
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"\W+", "_", parted.lower()).strip("_")


def pick_columns(docs: Sequence[Doc], given: Mapping[str, Sequence[str]]) -> Columns:
    """Pick columns: those that were given, else those of usual names, else by their content.

    >>> picked = pick_columns([{"Q": "Capital of France?", "A": "Paris"}], {})
    >>> picked.question, picked.answer.one
    (Picked(columns=('Q',), why='its texts are the longest'), 'A')
    """
    names, some = list(docs[0]), docs[:LOOKED_AT]
    found = {role: Picked(tuple(given[role]), "as you said") for role in given if given[role]}
    for role, picked in found.items():
        for column in picked.columns:
            if column not in names:
                raise unknown(f"column for --{role}", column, names)
    for role in USUAL:
        taken = {column for picked in found.values() for column in picked.columns}
        free = [name for name in names if name not in taken and any(doc.get(name) is not None for doc in some)]
        if role in given:
            found.setdefault(role, Picked((), "as you said"))
        else:
            found[role] = PICKERS[role](free, some) if role in PICKERS else _pick_usual(role, free)
    columns = Columns(**{role: found[role] for role in Columns.__struct_fields__})
    return _pick_by_content(columns, names, some, given)


def _pick_usual(role: str, free: Sequence[str]) -> Picked:
    folded = {fold_name(name.rpartition(".")[2]): name for name in reversed(free)}
    folded |= {fold_name(name): name for name in reversed(free)}
    for usual in USUAL[role]:
        if usual in folded:
            return Picked((folded[usual],), f"it is called {folded[usual]!r}")
    return Picked()


def _pick_group(free: Sequence[str], docs: Sequence[Doc]) -> Picked:
    """A column of subjects has few values, each several times."""
    usual = _pick_usual("group_by", free)
    values = {str(doc.get(usual.one or "")) for doc in docs}
    if usual.one is None or not 1 < len(values) <= max(2, len(docs) // 2):
        return Picked()
    return Picked(usual.columns, f"{usual.why}, with {len(values)} values")


def _pick_choices(free: Sequence[str], docs: Sequence[Doc]) -> Picked:
    usual = _pick_usual("choices", free)
    lists = [name for name in free if all(_is_list(doc.get(name)) for doc in docs) and _hold_texts(name, docs)]
    if usual.one is not None and _are_choices(usual.one, docs):
        return Picked(usual.columns, f"{usual.why} and holds lists")
    if len(lists) == 1 and _are_choices(lists[0], docs):
        return Picked((lists[0],), "it alone holds lists")
    series = find_series(free)
    if series and len(free) > len(series):
        return Picked(series, "one column for each")
    series = find_lettered(free)
    named = [name for name in free if name not in series and _name_choices(name, series, docs)]
    return Picked(series, f"the cells of {named[0]!r} are their letters") if named else Picked()


def _is_list(cell: object) -> bool:
    return isinstance(cell, list | tuple) or (isinstance(cell, str) and cell.lstrip().startswith("["))


def _hold_texts(name: str, docs: Sequence[Doc]) -> bool:
    cells = (doc.get(name) for doc in docs)
    return all(isinstance(cell, str) or any(isinstance(one, str) for one in cell) for cell in cells if cell)  # type: ignore[attr-defined]


def _are_choices(name: str, docs: Sequence[Doc]) -> bool:
    return all(split_choices(doc.get(name)) is not None for doc in docs)


def find_series(names: Iterable[str]) -> tuple[str, ...]:
    """Columns that number the choices: A, B, C, D; option_a, option_b; choice1, choice2; ending0, ending1.

    >>> find_series(["question", "A", "B", "C", "answer"]), find_series(["sentence1", "sentence2"])
    (('A', 'B', 'C'), ())
    >>> find_series(["id", "option1", "option2"])
    ('option1', 'option2')
    """
    series: dict[tuple[str, bool], dict[int, str]] = {}
    for name in names:
        found = PLACES.fullmatch(fold_name(name))
        if found and found[1].strip("_") in CHOICE_PREFIXES:
            prefix, place = found[1].strip("_"), ord(found[2]) - 97 if found[2] else int(found[3])
            if prefix or found[2]:
                series.setdefault((prefix, bool(found[2])), {})[place] = name
    for places in sorted(series.values(), key=len, reverse=True):
        order = sorted(places)
        if len(order) > 1 and order[0] in (0, 1) and order[-1] - order[0] == len(order) - 1:
            return tuple(places[at] for at in order)
    return ()


def find_lettered(names: Iterable[str]) -> tuple[str, ...]:
    """Three columns or more of one name, in any language, with the letters from A on behind it.

    >>> find_lettered(["Frage", "Antwort A", "Antwort B", "Antwort C"]), find_lettered(["text_a", "text_b"])
    (('Antwort A', 'Antwort B', 'Antwort C'), ())
    """
    series: dict[str, dict[str, str]] = {}
    for name in names:
        prefix, _, letter = fold_name(name).rpartition("_")
        if prefix and len(letter) == 1:
            series.setdefault(prefix, {})[letter] = name
    for places in sorted(series.values(), key=len, reverse=True):
        if len(places) > 2 and "".join(sorted(places)) == "abcdefghij"[: len(places)]:
            return tuple(places[letter] for letter in sorted(places))
    return ()


PICKERS = {"group_by": _pick_group, "choices": _pick_choices}


def _name_choices(name: str, choices: Sequence[str], docs: Sequence[Doc]) -> bool:
    """Whether every cell is the letter of a choice that has a column of its own, and not always the same."""
    cells = {str(cell).strip().upper() for doc in docs if (cell := doc.get(name)) not in (None, "")}
    return len(cells) > 1 and cells <= set("ABCDEFGHIJ"[: len(choices)])


def _pick_by_content(columns: Columns, names: Sequence[str], docs: Sequence[Doc], given: Collection[str]) -> Columns:
    """Where names say nothing: the question is the column of the longest texts, the answer the last one left."""
    picked = {role: getattr(columns, role) for role in Columns.__struct_fields__}
    taken = {column for one in picked.values() for column in one.columns}
    free = [name for name in names if name not in taken and any(doc.get(name) not in (None, "") for doc in docs)]
    texts = [name for name in free if any(isinstance(doc.get(name), str) for doc in docs)]
    texts = [name for name in texts if not SAID.search(fold_name(name))] or texts
    if picked["question"].one is None and "question" not in given and texts:
        longest = max(texts, key=lambda name: median(len(str(doc.get(name) or "")) for doc in docs))
        picked["question"] = Picked((longest,), "its texts are the longest")
        free.remove(longest)
    plain = [name for name in free if all(isinstance(doc.get(name), str | int | float | None) for doc in docs)]
    if picked["answer"].one is None and "answer" not in given and plain and picked["question"].one is not None:
        named = [name for name in plain if _name_choices(name, columns.choices.columns, docs)]
        last = Picked((plain[-1],), "it is the last column left")
        picked["answer"] = Picked((named[0],), "its cells are letters of choices") if named else last
    if picked["question"].one is None:
        told = ", ".join(map(repr, names[:20]))
        raise EvalError(f"expected a column of texts to ask; name it with --question. Columns: {told}")
    return Columns(**picked)
