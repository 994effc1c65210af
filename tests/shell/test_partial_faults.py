"""Partials that nobody should merge: of a log that changed, with a damaged head, that unpack to far too much."""

from __future__ import annotations

import random
import tracemalloc
import zlib

import pytest
from msgspec.structs import replace
from unit_logs import write_logs

from evalcore import EvalError
from evalcore.core.partials.codec import pack, unpack
from evalcore.core.partials.partial import MAGIC, VERSION, decode_partial, encode_partial
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.shell.cli import main
from evalcore.shell.score.units.merge import merge
from evalcore.shell.score.units.partial_scores import score_partials

# --- a log that changed --------------------------------------------------------------------------------------------

KEYS = ("--answer", "reply", "--gold", "gold", "--metric", "exact_match", "--unit", "2000")


def score_part(log, folder, part):
    return main(["score", str(log), "--partial_only", "--partials", str(folder), "--part", part, "-q", *KEYS])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.jsonl"
    row = '{"id": %d, "reply": "%d", "gold": "4", "question": "what is two and two, the %dth time?"}\n'
    path.write_text("".join(row % (i, i % 7, i) for i in range(400)))
    return path


@pytest.mark.parametrize("line", [0, 200, 399])
def test_a_log_that_changed_between_parts_is_named(table, tmp_path, capsys, line):
    parts = tmp_path / "parts"
    assert score_part(table, parts, "1/2") == 0
    lines = table.read_text().splitlines(keepends=True)
    lines[line] = lines[line].replace('"gold": "4"', '"gold": "5"')  # as long as before
    table.write_text("".join(lines))
    assert score_part(table, parts, "2/2") == 0
    assert main(["merge", str(parts), "-q"]) == 2
    assert "t.jsonl changed between partials: bytes " in capsys.readouterr().err
    assert score_part(table, parts, "1/2") == 0  # as the message says
    assert main(["merge", str(parts), "-q"]) == 0


def test_a_log_that_grew_between_parts_is_named(table, tmp_path, capsys):
    parts = tmp_path / "parts"
    score_part(table, parts, "1/2")
    table.write_text(table.read_text() + table.read_text().splitlines()[0].replace('"id": 0', '"id": 1000') + "\n")
    score_part(table, parts, "2/2")
    assert main(["merge", str(parts), "-q"]) == 2
    assert "t.jsonl changed between partials" in capsys.readouterr().err
    score_part(table, parts, "1/2")
    assert main(["merge", str(parts), "-q"]) == 0


# --- damaged heads -------------------------------------------------------------------------------------------------

JUNK = (None, 0, -1, 1 << 70, 1.5, float("nan"), "", "x", "\x00", "\ud800", b"x", True, (), (1,), ((),), [], [1], {})
JUNK = (*JUNK, {1: 2}, {"a": 1}, FrozenDict({"a": ()}), ("a", None), "x" * 5000, {"acc": {"acc": 1}})
RULES = {"metric": ["exact_match"], "filter": ["take_first"]}


def list_places(value, at=()):
    yield at
    pairs = value.items() if isinstance(value, FrozenDict) else enumerate(value) if isinstance(value, tuple) else ()
    for name, inner in pairs:
        yield from list_places(inner, (*at, name))


def edit(value, at, new):
    """Replace what is at a place; ``...`` takes it away."""
    if not at:
        return new
    items = dict(value) if isinstance(value, FrozenDict) else dict(enumerate(value))
    items[at[0]] = edit(items.get(at[0]), at[1:], new)
    kept = {name: item for name, item in items.items() if item is not ...}
    return FrozenDict(kept) if isinstance(value, FrozenDict) else tuple(kept.values())


def fuzz_heads(folder, count, seed):
    """Merge partials with edited heads; anything but an ``EvalError`` is what is looked for."""
    rng, told = random.Random(seed), 0
    run = write_logs(folder / "run")
    made = [score_partials(run, partials=folder / str(i), only="sums", **own)[0] for i, own in enumerate(({}, RULES))]
    parts, path = [decode_partial(file.read_bytes()) for file in made], folder / "one.partial"
    for _ in range(count):
        part = rng.choice(parts)
        at = rng.choice([place for place in list_places(part.head) if place])
        path.write_bytes(encode_partial(replace(part, head=edit(part.head, at, rng.choice((..., *JUNK))))))
        try:
            merge(path)
        except EvalError:
            told += 1
    return told


def test_no_edit_of_a_head_is_a_traceback(tmp_path):
    assert fuzz_heads(tmp_path, 150, seed=1) > 15


@pytest.mark.slow
def test_no_edit_of_many_is_a_traceback(tmp_path):
    assert fuzz_heads(tmp_path, 5000, seed=2) > 500


FOUND = {  # what once was a traceback: a place in the head, and what is put there
    "metric": (("keys", "metric"), (["x"],)),
    "filter": (("keys", "filter"), 5),
    "only": (("keys", "only"), 1.5),
    "numbers": (("results",), FrozenDict({"results": FrozenDict({"sums": FrozenDict({3: 1.0})})})),
    "configs": (("results",), FrozenDict({"configs": FrozenDict({None: {}, "a": {}})})),
}


@pytest.mark.parametrize(("place", "value"), FOUND.values(), ids=FOUND)
def test_edits_that_were_tracebacks_name_the_file(tmp_path, capsys, place, value):
    file = score_partials(write_logs(tmp_path / "run"), partials=tmp_path / "parts", only="sums", **RULES)[0]
    part = decode_partial(file.read_bytes())
    file.write_bytes(encode_partial(replace(part, head=edit(part.head, place, value))))
    assert main(["merge", str(file), "-q"]) == 2
    said = capsys.readouterr().err
    assert file.name in said
    assert "again" in said


# --- what unpacks to too much --------------------------------------------------------------------------------------


def test_a_bomb_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "bomb.partial"
    squeeze = zlib.compressobj(9)
    packed = b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(256)) + squeeze.flush()
    path.write_bytes(MAGIC % VERSION + packed)
    tracemalloc.start()
    with pytest.raises(EvalError, match=r"bomb\.partial: expected packed scores, got damaged bytes: more than "):
        merge(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80 << 20


def test_what_packs_very_well_is_still_read():
    value = {"a": "x" * (40 << 20)}
    assert unpack(pack(value)) == value


# --- what is said of paths and flags -------------------------------------------------------------------------------

WANTED = "expected partial scores, which `score --partial_only` writes (*.partial), found "
PATHS = {
    "empty": f"empty: {WANTED}no file there",
    "t.jsonl": "t.jsonl: expected a partial of evalcore, got ",
    "other": f"other: {WANTED}none among 1 files there (t.jsonl)",
    "none": "none: no such file or folder",
    "z*.partial": f"z*.partial: {WANTED}no file of such a name",
}


@pytest.mark.parametrize("given", PATHS)
def test_merge_says_what_is_wrong_with_a_path(table, tmp_path, capsys, given):
    for name in ("empty", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "t.jsonl").write_text(table.read_text())
    score_part(table, tmp_path / "parts", "1/1")
    assert main(["merge", str(tmp_path / "parts"), str(tmp_path / given), "-q"]) == 2
    assert PATHS[given] in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("flag", [("-o", "out"), ("--json",), ("--csv",), ("--overwrite",)])
def test_partial_only_refuses_what_it_cannot_write(table, tmp_path, capsys, flag):
    given = ["score", str(table), "--partial_only", "--partials", str(tmp_path / "parts"), "-q", *KEYS, *flag]
    assert main(given) == 2
    assert "give it to `evalcore merge`" in capsys.readouterr().err
    assert not (tmp_path / "parts").exists()
