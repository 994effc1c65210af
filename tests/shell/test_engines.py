"""Engines: the same results wherever the work is done, and clear errors where a worker is lost or a range is damaged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from unit_logs import TABLE_KEYS, write_eval, write_logs, write_table

import evalcore
from evalcore import EvalError
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.core.secret_names import drop_secrets
from evalcore.shell.cli import main
from evalcore.shell.engines.engines import ENGINES, choose_engine
from evalcore.shell.engines.interface import Means, WorkerLost
from evalcore.shell.engines.processes import KEPT, spread_over_processes


def results(*given, **keys):
    return json.dumps(thaw_dict(evalcore.score(*given, **keys).results))


@pytest.fixture
def folder(tmp_path):
    return write_logs(tmp_path / "run")


def forms(tmp_path):
    """Every form of log that is cut, with the keys that score it."""
    return {
        "samples": (write_logs(tmp_path / "run", 12), {}),
        "jsonl": (write_table(tmp_path / "t.jsonl"), TABLE_KEYS),
        "parquet": (write_table(tmp_path / "t.parquet"), TABLE_KEYS),
        "inspect": (write_eval(tmp_path / "log.eval"), {}),
    }


@pytest.mark.parametrize("form", ["samples", "jsonl", "parquet", "inspect"])
def test_a_log_in_units_gives_the_same_results(tmp_path, form):
    """Cut at every document (or row group), scored here one unit after another."""
    log, keys = forms(tmp_path)[form]
    whole = results(log, **keys)
    counts = []

    def counting(work, units):
        counts.append(len(units))
        return map(work, units)

    for size in (1, 1000, 500_000):
        assert results(log, map=counting, unit=size, **keys) == whole
    assert counts[0] > 10 > counts[-1]


def test_processes_give_the_same_results(folder, tmp_path):
    table = write_table(tmp_path / "t.jsonl")
    assert results(folder, engine="processes", workers=2, unit=3000) == results(folder)
    assert results(table, engine="processes", workers=2, unit=500, **TABLE_KEYS) == results(table, **TABLE_KEYS)


def test_a_pool_of_the_callers_own(folder):
    with ProcessPoolExecutor(1) as pool:
        assert results(folder, map=pool.map, unit=3000) == results(folder)


def test_groups_of_a_field_keep_their_order(tmp_path):
    table = write_table(tmp_path / "t.jsonl")
    keys = {**TABLE_KEYS, "group_by": "gold"}
    assert results(table, map=map, unit=1, **keys) == results(table, **keys)


@pytest.mark.parametrize("keys", [{"limit": 7}, {"keep_going": True}, {"policy": "lm-eval-0.4.13"}, {"metric": "f1"}])
def test_other_keys_give_the_same_results(folder, keys):
    only = {"only": "sums"} if "metric" in keys else {}
    assert results(folder, map=map, unit=1000, **keys, **only) == results(folder, **keys, **only)


def test_samples_are_written_by_workers_too(folder, tmp_path):
    evalcore.score(folder, output_path=tmp_path / "one")
    evalcore.score(folder, output_path=tmp_path / "two", engine="processes", workers=2)
    names = sorted(path.name for path in (tmp_path / "one").iterdir() if path.name != "run.json")
    assert "samples_sums.jsonl" in names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


# --- what cannot be cut ---------------------------------------------------------------------------------------------


class Told:
    """Keeps what is told on the way."""

    def __init__(self):
        self.texts = []

    def stage(self, name, total, *, known=0): ...

    def advance(self, n=1, *, failed=()): ...

    def warn(self, text):
        self.texts.append(text)


def test_a_packed_log_is_one_unit_and_says_so(folder, monkeypatch):
    import gzip

    plain = folder / "samples_sums.jsonl"
    (folder / "samples_sums.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    monkeypatch.setattr("evalcore.shell.score.units.gather.UNIT", 100)
    told = Told()
    evalcore.score(folder, map=map, shown=told)
    assert told.texts == ["sums is one unit of work: samples_sums.jsonl.gz is compressed, or no file of lines"]


def test_a_filter_of_the_whole_task_is_one_unit_and_says_so(folder, monkeypatch):
    from evalcore import EVALCORE, FILTERS

    wide = replace(FILTERS["lowercase"], scope="task")
    tables = replace(EVALCORE, filters=FILTERS.set("lowercase", wide), name="wide")
    monkeypatch.setattr("evalcore.shell.score.units.gather.UNIT", 100)
    told, keys = Told(), {"only": "sums", "filter": ["lowercase", "take_first"], "tables": tables}
    assert results(folder, map=map, shown=told, **keys) == results(folder, **keys)
    assert told.texts == ["sums is one unit of work: a filter looks at all documents at once"]


# --- faults ---------------------------------------------------------------------------------------------------------


def damage(folder: Path, line: int) -> None:
    log = folder / "samples_sums.jsonl"
    lines = log.read_text().splitlines()
    lines[line] = lines[line][:-20]
    log.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_damaged_range_names_its_line(folder, engine):
    damage(folder, 31)
    with pytest.raises(EvalError, match=r"samples_sums.jsonl:32: .*score --keep-going lists all that is wrong"):
        evalcore.score(folder, engine=engine, unit=2000)


def test_rows_that_disagree_are_told_as_without_units(folder):
    """One document lacks its row under the second filter: units alone see nothing wrong."""
    log = folder / "samples_sums.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(EvalError) as alone:
        evalcore.score(folder)
    with pytest.raises(EvalError) as cut:
        evalcore.score(folder, map=map, unit=1000)
    assert str(cut.value) == str(alone.value)
    assert "expected as many rows of each document" in str(cut.value)


def test_a_document_twice_is_told_as_without_units(tmp_path):
    table = write_table(tmp_path / "t.jsonl")
    lines = table.read_text().splitlines(keepends=True)
    table.write_text("".join([*lines, lines[0]]))
    with pytest.raises(EvalError, match="expected each id once, got 'd0' again"):
        evalcore.score(table, map=map, unit=1, **TABLE_KEYS)


def die_once(path: str, unit: int) -> bytes:
    """Kill this worker at the third unit, the first time that it is done."""
    if unit == 3 and not os.path.exists(path):
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return b"%d" % unit


def test_the_unit_of_a_lost_worker_is_done_again(tmp_path):
    sys.path.insert(0, str(Path(__file__).parent))
    try:
        work = partial(die_once, str(tmp_path / "died"))
        done = list(spread_over_processes(work, range(8), b"".join, Means(workers=2)))
    finally:
        sys.path.remove(str(Path(__file__).parent))
    assert done == [b"%d" % unit for unit in range(8)]
    assert (tmp_path / "died").exists()


def tell_process(unit: int) -> bytes:
    return b"%d" % os.getpid()


@pytest.mark.parametrize("here", [True, False])
def test_this_process_is_one_of_the_workers_where_it_may(here, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    done = list(spread_over_processes(tell_process, range(4), b"".join, Means(workers=1, here=here)))
    assert (done == [tell_process(0)] * 4) is here


def test_what_goes_wrong_here_is_told_as_elsewhere():
    with pytest.raises(EvalError, match=r"unexpected TypeError: .* \(in this process\)"):
        list(spread_over_processes(len, [5], b"".join, Means(workers=1, here=True)))


def test_own_code_runs_in_workers_only(folder, monkeypatch):
    """It may take its process with it."""
    seen = []
    spread = ENGINES["serial"].spread

    def watch(work, units, merge, means):
        seen.append(means.here)
        return spread(work, units, merge, means)

    engine = replace(ENGINES["serial"], spread=watch)
    evalcore.score(folder, engine=engine)
    monkeypatch.setattr("evalcore.shell.score.units.log_plan.ScorePlan.code", {"own.py": "0"})
    evalcore.score(folder, engine=engine)
    assert seen == [True, False]


def test_a_unit_that_loses_every_worker_is_a_clear_error():
    with pytest.raises(WorkerLost, match="2 worker processes were lost over one unit of work"):
        list(spread_over_processes(os._exit, [9], b"".join, Means(workers=1)))


def test_workers_that_print_or_fail(folder):
    with pytest.raises(EvalError, match="unexpected TypeError"):
        list(spread_over_processes(len, [5], b"".join, Means()))
    with pytest.raises(EvalError, match="importable"):
        list(spread_over_processes(lambda unit: b"", [5], b"".join, Means()))


def test_no_worker_is_left_behind(folder):
    evalcore.score(folder, engine="processes", workers=2, unit=3000)
    left = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    assert "engines.worker" not in left.stdout


# --- which ----------------------------------------------------------------------------------------------------------


def test_the_command_line_takes_processes_for_large_logs():
    assert choose_engine(1).title == ENGINES["serial"].title
    several = len(os.sched_getaffinity(0)) > 1
    assert choose_engine(1 << 40).title == ENGINES["processes" if several else "serial"].title


def test_flags(folder, capsys):
    assert main(["score", str(folder), "-q", "--json"]) == 1  # a task cannot be closed
    alone = capsys.readouterr().out
    assert (
        main(["score", str(folder), "-q", "--json", "--engine", "processes", "--workers", "1", "--unit", "4000"]) == 1
    )
    assert capsys.readouterr().out == alone
    assert main(["score", str(folder), "-q", "--engine", "spark"]) == 2
    assert "unknown engine 'spark'" in capsys.readouterr().err
    assert main(["score", str(folder), "-q", "--workers", "0"]) == 2
    assert "expected --workers to be a positive integer, got 0" in capsys.readouterr().err


def test_without_ray_the_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EvalError, match=r'pip install "evalcore\[ray\]"'):
        evalcore.score(folder, engine="ray")


def test_a_worker_gets_the_secrets_of_stores_and_of_ray_alone() -> None:
    given = {"OPENAI_API_KEY": "a", "RAY_AUTH_TOKEN": "b", "AWS_SECRET_ACCESS_KEY": "c", "HF_TOKEN": "d", "HOME": "e"}
    assert drop_secrets(given, KEPT).keys() == given.keys() - {"OPENAI_API_KEY"}
