"""What a file of questions holds, guessed from its columns, with the reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord, freeze_dict, thaw_dict
from evalcore.core.records.request import MULTIPLE_CHOICE
from evalcore.shell.config.values import Names, list_names
from evalcore.shell.files.given import parse_path
from evalcore.shell.starter.answer_view import View
from evalcore.shell.starter.column_roles import Columns, pick_columns
from evalcore.shell.starter.shapes import SHAPES
from evalcore.shell.starter.table import clean_documents, count_header, name_safely, read_table, split_choices
from evalcore.shell.starter.uneven_choices import explain_misfit

DOCUMENTS = "documents.jsonl"
"""The copy of the data that the task reads."""

FEW, MOST_WORDS = 30, 8
"""Rows that say little, and words that a column's name has at most."""


class Preview(FrozenRecord, frozen=True):
    """The first document as a model is asked it: the prompt, the right answer and the choices."""

    prompt: str
    gold: str
    choices: tuple[str, ...] = ()


class Guess(FrozenRecord, frozen=True, kw_only=True):
    """What a file holds, and the task that measures it.

    ``columns`` are the file's, by what they hold; ``names`` is what the task calls each. ``shape`` is a name of
    ``SHAPES``, ``why`` the reason for it. ``config`` is the task in lm-eval's words. ``notes`` are oddities.
    """

    path: str
    rows: int
    name: str
    columns: Columns
    names: Mapping[str, str]
    shape: str
    why: str
    config: Mapping[str, object]
    preview: Preview
    notes: tuple[str, ...] = ()

    @property
    def output_type(self) -> str:
        return SHAPES[self.shape].output_type


def look_at_file(
    path: str | Path,
    *,
    question: str | None = None,
    answer: str | None = None,
    choices: Names = (),
    id: str | None = None,
    group_by: str | None = None,
    output_type: str | None = None,
    name: str | None = None,
) -> Guess:
    """Look at a file of questions, and guess what is not said; an empty text says that there is no such column."""
    file = parse_path(path)
    given = {"question": question, "answer": answer, "id": id, "group_by": group_by}
    said: dict[str, Sequence[str]] = {role: [one] if one else [] for role, one in given.items() if one is not None}
    if choices:
        said["choices"] = [one for one in list_names(choices) if one]
    if output_type is not None:
        require_known("output type", [output_type], {shape.output_type for shape in SHAPES.values()})
    docs = read_table(file)
    columns = pick_columns(docs, said)
    names = name_safely(docs[0])
    view = view_documents(docs, columns, names, count_header(file))
    shape, why = _choose_shape(view, output_type or (MULTIPLE_CHOICE if said.get("choices") else None))
    made = name_task(file, name)
    config = {
        "task": made,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": DOCUMENTS}},
        "test_split": "test",
        "output_type": SHAPES[shape].output_type,
        **SHAPES[shape].config(view),
        "metadata": {"version": 1.0},
    }
    return Guess(
        path=str(path),
        rows=len(docs),
        name=made,
        columns=columns,
        names=FrozenDict(names),
        shape=shape,
        why=why,
        config=freeze_dict(config),
        preview=preview_document(config, view.docs[0]),
        notes=(*SHAPES[shape].notes(view), *_note_oddities(docs, columns, names, SHAPES[shape].needs)),
    )


def view_documents(
    docs: Sequence[Mapping[str, object]], columns: Columns, names: Mapping[str, str], header: int = 0
) -> View:
    """The documents as the task reads them; rows without an answer, which could not be scored, are left out."""
    chosen, answer = columns.choices.columns, columns.answer.one
    rows = [at for at, doc in enumerate(docs) if answer is None or doc.get(answer) not in (None, "")]
    kept = [docs[at] for at in rows]
    if not kept:
        raise EvalError(f"expected answers in the column {answer!r}, found none; name another with --answer")
    clean = clean_documents(kept, names, chosen)
    if len(chosen) > 1:
        lists = [tuple(cell for one in chosen if (cell := str(doc[names[one]]))) for doc in clean]
    else:
        lists = [split_choices(doc[names[one]]) or () for doc in clean for one in chosen]
    question = columns.question.one
    safe = tuple(names[one] for one in chosen)
    return View(
        clean,
        names[question or ""],
        names[answer] if answer else None,
        safe,
        lists if any(lists) else (),
        [header + 1 + at for at in rows],
        {names[one]: one for one in chosen},
    )


def _choose_shape(view: View, output_type: str | None) -> tuple[str, str]:
    for name, shape in SHAPES.items():
        wanted = shape.guessed if output_type is None else shape.output_type == output_type
        if wanted and (why := shape.fits(view)):
            return name, why
    if output_type == MULTIPLE_CHOICE and view.choices and view.golds:
        raise explain_misfit(view)
    raise EvalError(LACKING.get(output_type or "", LACKING[""]))


LACKING = {
    "": "expected a column of answers, found none; name it with --answer",
    "multiple_choice": "multiple_choice needs choices and answers; name their columns with --choices and --answer",
    "loglikelihood_rolling": 'loglikelihood_rolling measures texts without answers; say so with --answer ""',
}


def name_task(file: Path, given: str | None = None) -> str:
    """The name that was given, if it can be one, else the file's with what is harmless of it.

    >>> name_task(Path("My questions (v2).csv")), name_task(Path("???.jsonl.gz"))
    ('my_questions_v2', 'my_task')
    """
    if given is not None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}", given):
            raise EvalError(f"expected a name of letters, digits, _ and -, got {given!r}")
        return given
    stem = file.name.partition(".")[0]
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:60].strip("_") or "my_task"


def preview_document(config: Mapping[str, object], doc: Mapping[str, object]) -> Preview:
    """The first document as the task asks it."""
    from evalcore.core.records.request import Generate, LogLikelihood
    from evalcore.shell.prompts.build import build_task
    from evalcore.shell.prompts.ready_task import Asking

    built = build_task({**thaw_dict(config)}, {"test": [dict(doc)]}, Asking())
    sample, first = built.samples[0], built.requests[0]
    prompt = first.prompt if isinstance(first, Generate) else first.context if isinstance(first, LogLikelihood) else ""
    gold = sample.gold
    if isinstance(gold, int) and sample.choices:
        gold = sample.choices[gold] if 0 <= gold < len(sample.choices) else f"choice number {gold}, which is not there"
    told = "" if gold is None else " or ".join(map(str, gold)) if isinstance(gold, tuple) else str(gold)
    return Preview(prompt, told, sample.choices)


def _is_odd(name: str) -> bool:
    """Whether a name in a header is more likely a cell under one."""
    return name.endswith(("?", ".")) or len(name.split()) > MOST_WORDS


def _note_oddities(
    docs: Sequence[Mapping[str, object]], columns: Columns, names: Mapping[str, str], needs: tuple[str, str]
) -> list[str]:
    from importlib.util import find_spec

    used = {one for role in columns.__struct_fields__ for one in getattr(columns, role).columns}
    changed = {old: new for old, new in names.items() if old != new}
    out = [f"the column {old!r} is called {new} in the task" for old, new in changed.items() if old in used]
    others = len(changed.keys() - used)
    told = "1 other column has another name" if others == 1 else f"{others} other columns have other names"
    out += [f"{told} in {DOCUMENTS}, which templates can use"] if others else []
    for role, left_out in (("question", False), ("answer", True)):
        column = getattr(columns, role).one
        empty = sum(doc.get(column) in (None, "") for doc in docs) if column else 0
        have = "has" if empty == 1 else "have"
        left = f", and {'is' if empty == 1 else 'are'} left out" * left_out
        out += [f"{empty:,} of {len(docs):,} rows {have} no {role}{left}"] if empty else []
    twice = [name for name in names if re.fullmatch(r"(.+)\.[0-9]+", name) and name.rpartition(".")[0] in names]
    out += [f"the header has {name.rpartition('.')[0]!r} twice; the other is {name!r}" for name in twice]
    out += [f"the first line is taken as the header, but {name!r} looks like data" for name in used if _is_odd(name)][
        :1
    ]
    if len(docs) < FEW:
        out.append(f"{'1 row says' if len(docs) == 1 else f'{len(docs)} rows say'} little: intervals will be wide")
    if needs[0] and find_spec(needs[0]) is None:
        out.append(f'its metric needs {needs[0]}: pip install "evalcore[{needs[1]}]"')
    return out
