"""Frozen is frozen: no record that evalcore makes while it runs, scores and compares holds a value that can change."""

from __future__ import annotations

import dataclasses
import json
import pickle
import sys
import threading
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
)
from itertools import islice
from pathlib import Path
from types import FrameType
from zipfile import ZipFile

import msgspec
import numpy as np
import pytest

import evalcore
from evalcore.core.records.array import Array
from evalcore.core.records.frozen_dict import FrozenDict

QUICKSTART = Path(__file__).parents[1] / "examples" / "quickstart" / "config.yaml"
EXEMPT: Mapping[tuple[str, str], str] = {
    ("AskedRow", "own"): "a row of a log, as msgspec decodes it; freezing each would cost more than reading it",
    (
        "Logged",
        "scores",
    ): "what a log says of a document, as msgspec decodes it; freezing it made --score a tenth slower",
    ("Logged", "kept"): "what a log says of a document, as msgspec decodes it; freezing it made --score a tenth slower",
    ("Row", "fields"): "a row of a log, as msgspec decodes it; freezing each would cost more than reading it",
    ("TableRow", "cells"): "a row of a table, as its reader decodes it; freezing each would cost more than reading it",
    ("DocTable", "docs"): "documents of the user, whose own code expects dicts",
}
"""Fields of frozen records that may hold a value that can change, and why."""
CHANGING = (MutableMapping, MutableSequence, MutableSet)
HELD = (list, tuple, dict)
MOST = 20
"""How many items of a local list, tuple or dict are looked at."""


def is_record(value: object) -> bool:
    """Whether a value is a frozen record of evalcore's."""
    kind = type(value)
    if not kind.__module__.startswith("evalcore."):
        return False
    if isinstance(value, msgspec.Struct):
        return bool(kind.__struct_config__.frozen)  # type: ignore[attr-defined]
    return dataclasses.is_dataclass(value) and bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]


def list_fields(record: object) -> Iterator[tuple[str, object]]:
    names = getattr(record, "__struct_fields__", None) or [one.name for one in dataclasses.fields(record)]  # type: ignore[arg-type]
    return ((name, getattr(record, name)) for name in names)


def find_changing(value: object, path: str = "", known: Collection[int] = ()) -> Iterator[str]:
    """The path and type of every value below this one that can change; ``known`` are the ids of records to skip."""
    if isinstance(value, CHANGING):
        yield f"{path}: {type(value).__name__}"
    elif isinstance(value, np.ndarray):
        if value.flags.writeable:
            yield f"{path}: writable array"
    elif isinstance(value, Array):
        yield from find_changing(value.data, path)
    elif is_record(value):
        for name, held in list_fields(value) if id(value) not in known else ():
            if (type(value).__name__, name) not in EXEMPT:
                yield from find_changing(held, f"{path}.{name}", known)
    elif isinstance(value, Mapping):
        for key, held in value.items():
            yield from find_changing(held, f"{path}[{key!r}]", known)
    elif isinstance(value, tuple | frozenset):
        for at, held in enumerate(value):
            yield from find_changing(held, f"{path}[{at}]", known)


class Watch:
    """Keeps every frozen record that a function of evalcore returns, yields or holds when it ends."""

    def __init__(self) -> None:
        self.seen: dict[int, object] = {}
        self.changing: dict[str, str] = {}

    def __enter__(self) -> Watch:
        threading.setprofile(self.look)
        sys.setprofile(self.look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def look(self, frame: FrameType, event: str, given: object) -> None:
        if event == "return" and str(frame.f_globals.get("__name__", "")).startswith("evalcore."):
            for value in (given, *frame.f_locals.values()):
                self.keep(value)
                for item in (
                    islice(value.values() if type(value) is dict else value, MOST) if type(value) in HELD else ()
                ):
                    self.keep(item)

    def keep(self, value: object) -> None:
        if id(value) in self.seen or not is_record(value):
            return
        self.seen[id(value)] = value  # which also keeps its id from being used again
        for name, held in list_fields(value):
            if (type(value).__name__, name) not in EXEMPT:
                for found in find_changing(held, known=self.seen):
                    self.changing.setdefault(f"{type(value).__module__}.{type(value).__name__}.{name}", found)

    @property
    def kinds(self) -> set[str]:
        return {type(record).__name__ for record in self.seen.values()}


def write_inspect(path: Path) -> Path:
    """An Inspect log of two samples in two epochs, whose scorer gives two scores."""
    score = {"value": {"right": 1.0, "brief": 0.5}, "answer": "4"}
    sample = {"input": "2+2?", "target": ["4", "four"], "output": {"completion": "4"}, "scores": {"both": score}}
    header = {"eval": {"task": "sums", "model": "m", "config": {"epochs": 2}}, "status": "success", "results": {}}
    with ZipFile(path, "w") as zipped:
        zipped.writestr("header.json", json.dumps(header))
        for name, epoch in ((1, 1), (1, 2), (2, 1), (2, 2)):
            zipped.writestr(f"samples/{name}_epoch_{epoch}.json", json.dumps({"id": name, "epoch": epoch, **sample}))
    return path


def send(score: Callable[[object], object], chunks: Iterable[object]) -> Iterator[object]:
    """What a pool of workers does to chunks and their scores."""
    for chunk in chunks:
        sent = pickle.loads(pickle.dumps(chunk))
        assert list(find_changing(sent)) == []
        came = pickle.loads(pickle.dumps(score(sent)))
        assert list(find_changing(came)) == []
        yield came


def test_no_record_holds_a_value_that_can_change(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("question,answer,gold,right\na,4,4,1\nb,5,4,0\n", "utf-8")
    folder = tmp_path / "run"
    with Watch() as watch:
        given = [
            evalcore.run(QUICKSTART, output_path=str(folder)),
            evalcore.score(folder, output_path=tmp_path / "again"),
            evalcore.score(folder, score="acc", only="quickstart_world"),
            evalcore.score(table, answer="answer", gold="gold", output_path=tmp_path / "table"),
            evalcore.score(table, answer="answer", score="right"),
            evalcore.score(write_inspect(tmp_path / "sums.eval"), output_path=tmp_path / "sums"),
            evalcore.compare(folder, tmp_path / "again"),
        ]
    assert [found for one in given for found in find_changing(one, type(one).__name__)] == []
    assert watch.changing == {}
    wanted = (
        "LogTask Logged LogTable Cells Recorded Piece RunFacts RunFiles ResultsFile Placed FileHead Scored Task Plan"
    )
    assert set(wanted.split()) <= watch.kinds
    assert {kind for kind, _ in EXEMPT} <= watch.kinds


def test_what_goes_to_workers_comes_back_the_same(tmp_path: Path) -> None:
    here = evalcore.run(QUICKSTART, output_path=str(tmp_path / "a"))
    there = evalcore.run(QUICKSTART, output_path=str(tmp_path / "b"), map=send)
    assert there.report == here.report


class Careless(msgspec.Struct, frozen=True):
    held: object


Careless.__module__ = "evalcore.careless"


@pytest.mark.parametrize(
    ("held", "found"),
    [
        ({"a": 1}, ".held: dict"),
        (("a", ["b"]), ".held[1]: list"),
        (FrozenDict({"a": {"b"}}), ".held['a']: set"),
        (Careless(bytearray(b"a")), ".held.held: bytearray"),
        (np.zeros(2), ".held: writable array"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_can_change_is_found(held: object, found: str) -> None:
    assert list(find_changing(Careless(held))) == [found]
