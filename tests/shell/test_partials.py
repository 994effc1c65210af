"""Partial scores as files: whatever the number, the order or the machine, they merge to the run of the whole logs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from msgspec.structs import replace
from unit_logs import TABLE_KEYS, write_eval, write_logs, write_table

import evalcore
from evalcore import EvalError
from evalcore.core.partials.partial import decode_partial, encode_partial
from evalcore.core.records.array import Array
from evalcore.core.records.frozen_dict import FrozenDict, thaw_dict
from evalcore.shell.cli import main
from evalcore.shell.score.units import unit_score
from evalcore.shell.score.units.merge import merge
from evalcore.shell.score.units.partial_scores import score_partials


def results(found):
    return json.dumps(thaw_dict(found.results))


@pytest.fixture
def folder(tmp_path):
    return write_logs(tmp_path / "run")


@pytest.mark.parametrize("unit", [1 << 30, 4000, pytest.param(1, marks=pytest.mark.slow)])
def test_any_number_of_partials_is_the_whole(folder, tmp_path, unit):
    files = score_partials(folder, partials=tmp_path / "parts", unit=unit)
    assert len(files) == {1 << 30: 2, 4000: len(files), 1: len(files)}[unit]
    assert unit > 1 or len(files) > 500
    whole = results(evalcore.score(folder))
    for seed in (0, 1):
        order = np.random.default_rng(seed).permutation(len(files)).tolist()
        assert results(merge([files[at] for at in order])) == whole
    assert results(merge(tmp_path / "parts", engine="processes", workers=1)) == whole


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet", "log.eval"])
def test_partials_of_every_form(tmp_path, name):
    log = write_eval(tmp_path / name) if name.endswith(".eval") else write_table(tmp_path / name)
    keys = {} if name.endswith(".eval") else TABLE_KEYS
    score_partials(log, partials=tmp_path / "parts", unit=1, **keys)
    assert results(merge(tmp_path / "parts")) == results(evalcore.score(log, **keys))


def test_results_files_are_equal_to_the_byte(folder, tmp_path):
    evalcore.score(folder, output_path=tmp_path / "whole", log_samples=False)
    score_partials(folder, partials=tmp_path / "parts", unit=3000)
    merge(tmp_path / "parts", output_path=tmp_path / "merged")
    files = [tmp_path / name / "results.json" for name in ("whole", "merged")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not list((tmp_path / "whole").glob("samples_*"))


def test_the_rules_travel_and_closing_can_differ(folder, tmp_path):
    keys = {"only": "sums", "filter": ['regex={"regex_pattern": "([0-9]+)"}', "take_first"], "metric": "exact_match"}
    score_partials(folder, partials=tmp_path / "parts", unit=1500, **keys)
    shutil.rmtree(folder)  # merging needs no log
    closed = merge(tmp_path / "parts", confidence=0.9)
    again = evalcore.score(write_logs(folder), confidence=0.9, **keys)
    assert results(closed) == results(again)


def test_filters_of_a_file_travel(folder, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("filter_list: [{name: low, filter: [{function: lowercase}, {function: take_first}]}]\n")
    score_partials(folder, partials=tmp_path / "parts", only="sums", filters=rules)
    whole = results(evalcore.score(folder, only="sums", filters=rules))
    rules.unlink()
    assert results(merge(tmp_path / "parts")) == whole


# --- shares, growth, going on ---------------------------------------------------------------------------------------


def test_shares_of_the_work(folder, tmp_path):
    parts = [score_partials(folder, partials=tmp_path / "parts", unit=3000, part=f"{at}/3") for at in (1, 2, 3)]
    assert all(parts)
    assert len({path for share in parts for path in share}) == sum(map(len, parts))
    assert results(merge(tmp_path / "parts")) == results(evalcore.score(folder))


@pytest.fixture
def scored_units(monkeypatch):
    """The units that are scored, as they are."""
    scored, real = [], unit_score.score_unit

    def counting(planned, item):
        scored.append(item)
        return real(planned, item)

    monkeypatch.setattr(unit_score, "score_unit", counting)
    return scored


def test_what_is_kept_is_not_scored_again(folder, tmp_path, scored_units):
    whole = results(evalcore.score(folder))
    keys = {"partials": tmp_path / "parts", "unit": 3000}
    first = results(evalcore.score(folder, **keys))
    count = len(scored_units)
    assert count > 10
    assert results(evalcore.score(folder, **keys)) == first == whole
    assert len(scored_units) == count
    evalcore.score(folder, confidence=0.5, **keys)  # closing is not scoring
    assert len(scored_units) == count
    evalcore.score(folder, only="sums", metric="f1", **keys)
    assert len(scored_units) > count


def test_a_grown_log_is_scored_where_it_grew(tmp_path, scored_units):
    """Old ranges are hashed; they are neither decoded nor scored."""
    table, keys = write_table(tmp_path / "t.jsonl", 400), {**TABLE_KEYS, "partials": tmp_path / "parts", "unit": 2000}
    evalcore.score(table, **keys)
    before = len(scored_units)
    write_table(table, 500)
    assert results(evalcore.score(table, **keys)) == results(evalcore.score(table, **TABLE_KEYS))
    grown = [item for item in scored_units[before:] if item.spans]
    assert 0 < len(grown) < before / 2
    assert min(item.spans[0].start for item in grown) > 0
    assert results(merge(tmp_path / "parts")) == results(evalcore.score(table, **TABLE_KEYS))  # none is left of before


def test_a_changed_range_is_scored_again(tmp_path, scored_units):
    table, keys = write_table(tmp_path / "t.jsonl"), {**TABLE_KEYS, "partials": tmp_path / "parts", "unit": 500}
    evalcore.score(table, **keys)
    before = len(scored_units)
    table.write_text(table.read_text().replace('"d39", "said": "it is', '"d39", "said": "it IS'))
    assert results(evalcore.score(table, **keys)) == results(evalcore.score(table, **TABLE_KEYS))
    assert len([item for item in scored_units[before:] if item.spans]) <= 2


def test_an_error_keeps_what_was_scored(folder, tmp_path, scored_units):
    log = folder / "samples_sums.jsonl"
    good = log.read_text()
    lines = good.splitlines(keepends=True)
    lines[60] = lines[60][: len(lines[60]) // 2] + "\n"
    log.write_text("".join(lines))
    keys = {"partials": tmp_path / "parts", "unit": 2000}
    with pytest.raises(EvalError, match=r"samples_sums.jsonl:61"):
        evalcore.score(folder, **keys)
    kept = len(list((tmp_path / "parts").iterdir()))
    assert kept > 5
    log.write_text(good)
    before = len(scored_units)
    assert results(evalcore.score(folder, **keys)) == results(evalcore.score(folder))
    assert len([item for item in scored_units[before:] if item.spans]) < before


def test_a_damaged_partial_is_scored_again_and_never_merged(folder, tmp_path):
    files = score_partials(folder, partials=tmp_path / "parts", unit=5000)
    files[1].write_bytes(files[1].read_bytes()[:-9])
    with pytest.raises(EvalError, match=rf"{files[1].name}: expected packed scores"):
        merge(tmp_path / "parts")
    assert results(evalcore.score(folder, partials=tmp_path / "parts", unit=5000)) == results(evalcore.score(folder))
    assert results(merge(tmp_path / "parts")) == results(evalcore.score(folder))


# --- what is refused ------------------------------------------------------------------------------------------------


HOSTILE = {  # how a partial is edited, and what is said of it
    "spans": (lambda part: replace(part, spans=(3,)), "'spans' of a Partial cannot be"),
    "clusters": (lambda part: edit_scored(part, clusters=((0, None),)), "'clusters' of a Scored cannot be"),
    "huge": (lambda part: edit_scored(part, clusters=((0, 1 << 70),)), "'clusters' of a Scored cannot be"),
    "tables": (lambda part: edit_scored(part, tables=None), "'tables' of a Scored cannot be"),
    "short": (lambda part: edit_column(part, status=Array(np.zeros(1, np.uint8))), "do not belong together"),
    "order": (lambda part: edit_column(part, keys=Array(part_keys(part)[::-1].copy())), "out of order"),
    "kind": (lambda part: edit_column(part, keys=Array(part_keys(part) * 1.0)), "do not belong together"),
    "head": (lambda part: replace(part, head=FrozenDict({**part.head, "model": ()})), "'model' of a HeadFields"),
    "no head": (lambda part: replace(part, head=FrozenDict()), "'name' of a HeadFields"),
}


def edit_scored(part, **fields):
    return replace(part, scored=(replace(part.scored[0], **fields), *part.scored[1:]))


def edit_column(part, **fields):
    first, *rest = part.scored[0].columns
    return edit_scored(part, columns=(replace(first, column=replace(first.column, **fields)), *rest))


def part_keys(part):
    return part.scored[0].columns[0].column.keys.ints


@pytest.mark.parametrize(("edit", "told"), HOSTILE.values(), ids=HOSTILE)
def test_a_partial_that_was_edited_is_refused(folder, tmp_path, edit, told):
    file = score_partials(folder, partials=tmp_path / "parts")[0]
    file.write_bytes(encode_partial(edit(decode_partial(file.read_bytes()))))
    with pytest.raises(EvalError, match=f"{file.name}: .*{told}.*; score its log again"):
        merge(tmp_path / "parts")


def test_partials_that_overlap_are_told(folder, tmp_path):
    for unit in (3000, 5000):
        score_partials(folder, partials=tmp_path / str(unit), unit=unit)
    with pytest.raises(
        EvalError, match=r"expected ranges that do not overlap, got bytes .*; merge partials of one --unit"
    ):
        merge([tmp_path / "3000", tmp_path / "5000"])


def test_a_missing_range_is_named(folder, tmp_path):
    files = score_partials(folder, partials=tmp_path / "parts", unit=3000)
    lost = decode_partial(files[2].read_bytes()).spans[0]
    files[2].unlink()
    with pytest.raises(EvalError, match=f"missing are {lost}; score them"):
        merge(tmp_path / "parts")


def test_equal_partials_collapse_and_contradictory_ones_are_located(folder, tmp_path):
    files = score_partials(folder, partials=tmp_path / "parts", unit=3000)
    shutil.copy(files[0], tmp_path / "parts" / "copy.partial")
    assert results(merge(tmp_path / "parts")) == results(evalcore.score(folder))
    part = decode_partial(files[0].read_bytes())
    column = part.scored[0].columns[0]
    flipped = replace(column.column, rows=replace(column.column.rows, values=1 - column.column.rows.values.floats))
    scored = replace(part.scored[0], columns=(replace(column, column=flipped), *part.scored[0].columns[1:]))
    (tmp_path / "parts" / "copy.partial").write_bytes(encode_partial(replace(part, scored=(scored,))))
    with pytest.raises(EvalError, match=f"expected one partial of {part.spans[0]}, got two with different scores"):
        merge(tmp_path / "parts")


@pytest.mark.parametrize("at", [0, 1])
def test_partials_of_other_programs_are_refused(folder, tmp_path, at):
    files = score_partials(folder, partials=tmp_path / "parts", unit=3000)
    part = decode_partial(files[0].read_bytes())
    made = list(part.made)
    made[at] = made[at].split()[0] + " 9.9"
    files[0].write_bytes(encode_partial(replace(part, made=tuple(made))))
    with pytest.raises(EvalError, match=rf"got one made by .*{made[at]}.*score its log again"):
        merge(tmp_path / "parts")


def test_other_versions_and_other_files_are_refused(tmp_path):
    path = tmp_path / "x.partial"
    path.write_bytes(b"evalcore partial 7\n")
    with pytest.raises(EvalError, match="expected a partial of version 2, got version 7"):
        merge(path)
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(EvalError, match="expected a partial of evalcore"):
        merge(path)
    with pytest.raises(EvalError, match="expected partial scores"):
        merge(write_logs(tmp_path / "run"))


def test_partials_by_other_flags_do_not_mix(folder, tmp_path):
    score_partials(folder, partials=tmp_path / "parts", only="sums")
    score_partials(folder, partials=tmp_path / "parts", only="ends", on_unscorable="zero")
    with pytest.raises(EvalError, match="expected partials made by the same flags, got others for on_unscorable, only"):
        merge(tmp_path / "parts")


def test_tables_of_a_host_need_a_name_and_must_be_passed(folder, tmp_path):
    tables = replace(evalcore.EVALCORE, metrics=evalcore.METRICS)
    own = replace(tables, unreduced="mean")
    with pytest.raises(EvalError, match="give yours another name than 'evalcore'"):
        score_partials(folder, partials=tmp_path / "parts", tables=own)
    own = replace(own, name="mine")
    score_partials(folder, partials=tmp_path / "parts", tables=own)
    with pytest.raises(EvalError, match="made with tables 'mine'; pass them"):
        merge(tmp_path / "parts")
    assert results(merge(tmp_path / "parts", tables=own)) == results(evalcore.score(folder, tables=own))


def test_a_full_disk_is_told(folder, tmp_path, monkeypatch):
    from evalcore.shell.safety import replacement

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replacement.os, "replace", full)
    with pytest.raises(EvalError, match=r"cannot write .*\.partial: No space left on device"):
        score_partials(folder, partials=tmp_path / "parts")


def test_own_code_is_named_by_its_file_and_needed_to_merge(folder, tmp_path):
    code, task = tmp_path / "own.py", tmp_path / "own.yaml"
    code.write_text("def middle(scores):\n    return sorted(scores)[len(scores) // 2]\n")
    text = "task: own\noutput_type: generate_until\ndoc_to_text: '{{question}}'\ndoc_to_target: '{{answer}}'\n"
    text += "metric_list: [{metric: exact_match, aggregation: !function own.middle}]\ndataset_path: json\n"
    task.write_text(text)
    keys = {"task": str(task), "trust": [str(code)], "only": "sums"}
    whole = results(evalcore.score(folder, **keys))
    files = score_partials(folder, partials=tmp_path / "parts", unit=3000, **keys)
    assert results(merge(tmp_path / "parts")) == whole
    code.write_text("def middle(scores):\n    return max(scores)\n")
    assert set(score_partials(folder, partials=tmp_path / "parts", unit=3000, **keys)).isdisjoint(files)


def test_commands(folder, tmp_path, capsys):
    parts = str(tmp_path / "parts")
    assert (
        main(["score", str(folder), "-q", "--partial-only", "--partials", parts, "--unit", "3000", "--part", "1/2"])
        == 0
    )
    assert capsys.readouterr().out.count(".partial\n") > 2
    assert main(["merge", parts, "-q"]) == 2
    assert "missing are bytes" in capsys.readouterr().err
    assert main(["score", str(folder), "-q", "--partial_only", "--partials", parts, "--unit", "3000"]) == 0
    capsys.readouterr()
    assert main(["merge", parts, "-q", "--json"]) == 1  # a task cannot be closed
    merged = capsys.readouterr().out
    assert main(["score", str(folder), "-q", "--json"]) == 1
    assert capsys.readouterr().out == merged
    assert main(["score", str(folder), "-q", "--part", "1/2"]) == 2
    assert main(["score", str(folder), "-q", "--partial_only"]) == 2
    assert main(["merge", str(tmp_path / "none"), "-q"]) == 2


def test_a_killed_command_goes_on(tmp_path, scored_units):
    """The coordinator dies while its workers score: what they kept is not scored again."""
    log, parts = write_table(tmp_path / "t.jsonl", 3000), tmp_path / "parts"
    flags = [f"--{key}={value}" for key, value in TABLE_KEYS.items() if isinstance(value, str)]
    flags += [f"--{key}={one}" for key in ("filter", "metric") for one in TABLE_KEYS[key]]
    command = [sys.executable, "-m", "evalcore", "score", str(log), "-q", *flags, "--partials", str(parts)]
    going = subprocess.Popen(
        [*command, "--unit", "300", "--engine", "processes", "--workers", "2"], stdout=subprocess.DEVNULL
    )
    while not (parts.is_dir() and len(list(parts.glob("*.partial"))) > 3) and going.poll() is None:
        time.sleep(0.01)
    going.kill()
    going.wait()
    kept = len(list(parts.glob("*.partial")))
    assert kept > 3
    whole = results(evalcore.score(log, **TABLE_KEYS))
    scored_units.clear()
    assert results(evalcore.score(log, partials=parts, unit=300, **TABLE_KEYS)) == whole
    assert len(scored_units) <= len(list(parts.glob("*.partial"))) - kept
