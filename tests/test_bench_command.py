"""``python -m bench`` lists every bench, runs them with small sizes, and writes their sections."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bench import page
from bench.__main__ import run_bench
from bench.rows import Row, Section, at_least, at_most, tabulate_rows
from bench.scale.cluster import Cluster, Costs, Course, simulate
from bench.table import BENCHES, Bench, run_script

ROOT = Path(__file__).parents[1]
ROOMS = [path.parent for path in sorted((ROOT / "bench").rglob("__init__.py"))]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


# --- the table ---


def test_every_bench_is_in_the_table() -> None:
    """A file that measures rows is listed, and only the command starts one."""
    texts = {path: path.read_text("utf-8") for path in (ROOT / "bench").rglob("*.py")}
    named = {path: ".".join(path.relative_to(ROOT / "bench").with_suffix("").parts) for path in texts}
    measuring = {named[path] for path, text in texts.items() if "\ndef measure_rows(" in text}
    assert measuring == {bench.module for bench in BENCHES.values() if not bench.script}
    scripts = {named[path] for path, text in texts.items() if "\nif __name__ ==" in text} - {"__main__"}
    assert scripts == {bench.module for bench in BENCHES.values() if bench.script}


def test_a_script_is_told_as_it_prints(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys, bench\nprint('took', *sys.argv[1:])\n")
    assert list(run_script(tmp_path / "script.py", given="3 --fast")) == [Section("", "", "```\ntook 3 --fast\n```")]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_lists_its_files(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
    files = [path.stem for path in room.glob("*.py") if not path.stem.startswith("__")]
    folders = [f"{path.parent.name}/" for path in room.glob("*/__init__.py")]
    assert sorted(re.findall(r"(?m)^(\w+/?) {2,}\S", text)) == sorted(files + folders)


def test_the_list_names_all() -> None:
    done = run("--list")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(BENCHES)


def test_unknown_names_and_options_are_refused() -> None:
    assert "expected the name of a bench, got scorng" in run("scorng").stderr
    assert "unrecognized arguments: --gb" in run("aggregation", "--gb", "1").stderr


# --- what runs ---


def test_small_benches_run_side_by_side() -> None:
    sizes = ("--least", "100", "--most", "1000", "--rounds", "1", "--gb", "0.0004", "--times", "1")
    model = ("--documents", "100000", "--micros", "10", "--bytes-each", "1000", "--start", "1", "--unit", "1000")
    done = run("aggregation", "rescoring", "growth", "cluster", "--json", *sizes, *model)
    assert done.returncode == 0, done.stderr
    rows = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert {row["bench"] for row in rows} == {"aggregation", "rescoring", "growth", "cluster"}
    assert all(row["ours"] > 0 for row in rows)
    assert {row["what"].split(",")[0] for row in rows if row["bench"] == "rescoring"} == {"sums", "endings", "both"}


def test_what_is_missing_or_fails_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    quiet = Namespace(json=False, write=False)
    assert run_bench("far", Bench("after.reward", "Far.", ("no_such_peer",), "text"), quiet)
    assert 'far: left out, needs no_such_peer: pip install "evalcore[text]"' in capsys.readouterr().out
    assert run_bench("tool", Bench("after.reward", "Tool.", programs=("no-such-program",)), quiet)
    assert "needs the program no-such-program" in capsys.readouterr().out
    assert not run_bench("broken", Bench("after.no_such_module", "Broken."), quiet)
    assert "broken: failed; the others go on" in capsys.readouterr().out


# --- what is written ---


def test_the_page_has_a_section_for_each_bench() -> None:
    text = page.PAGE.read_text("utf-8")
    assert re.findall(r"(?m)^<!-- (\w+) -->\n## \1\n", text) == list(BENCHES)
    assert re.findall(r"(?m)^<!-- /(\w+) -->$", text) == list(BENCHES)


def test_one_section_is_written_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = tmp_path / "benchmarks.md"
    written.write_text("# Benchmarks\n\n<!-- a -->\nold\n<!-- /a -->\n\nkept\n")
    (tmp_path / "other.md").write_text("<!-- part -->\n<!-- /part -->\n")
    monkeypatch.setattr(page, "PAGE", written)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    found = [
        Row(what="b", peer=20.0, ours=4.0, unit="s"),
        Section("other.md", "part", "told"),
        Section("x.svg", "", "<svg/>"),
    ]
    page.write_bench("a", Bench("x", "Says.", ("msgspec",)), [*found, Section("", "", "own words")], ["--docs 3"])
    text = written.read_text()
    assert "old" not in text
    assert text.endswith("<!-- /a -->\n\nkept\n")
    assert "| b | 20.0 | 4.00 | 5.00 |" in text
    assert "`python -m bench a --docs 3` on" in text
    assert "own words\n\nIt writes its tables into [other.md](other.md)." in text
    assert (tmp_path / "other.md").read_text() == "<!-- part -->\ntold\n<!-- /part -->\n"
    assert (tmp_path / "x.svg").read_text() == "<svg/>"


def test_a_new_section_stands_where_the_table_has_it(tmp_path: Path) -> None:
    written = tmp_path / "benchmarks.md"
    written.write_text("# Benchmarks\n")
    first, second, third = list(BENCHES)[:3]
    for name in (first, third, second, first):
        page.add_section(written, name)
    assert re.findall(r"<!-- (\w+) -->", written.read_text()) == [first, second, third]


def test_a_table_has_the_columns_that_rows_fill() -> None:
    plain = Row(what="a", ours=3.0, unit="ms", floor=2.0, targets=(at_most(2, "floors"),))
    assert tabulate_rows([plain]).splitlines() == [
        "| ms | evalcore | floor | times the floor | target |",
        "| --- | --- | --- | --- | --- |",
        "| a | 3.00 | 2.00 | 1.50 | ≤ 2 floors: met |",
    ]
    other = Row(what="b", peer=8.0, of="scipy", ours=4.0, unit="s", targets=(at_least(3),))
    assert tabulate_rows([plain, other]).splitlines()[-1] == "| b | 8.00 s | 4.00 s | 2.00 |  |  | ≥ 3x: MISSED |"
    third = Row(what="c", peer=8.0, of="numpy", ours=4.0, unit="s")
    assert tabulate_rows([other, third]).splitlines()[-1] == "| c | numpy 8.00 | 4.00 | 2.00 |  |"


# --- the simulated cluster ---

COSTS = Costs(each=1e-5, bytes_each=1000, start=2.0, read=1e8, dispatch=0.0, open=0.0, merge=0.0, notice=10.0)
CALM = Cluster(cores=10, spread=0.0, lifetime=1e12)


def test_equal_cores_without_losses_take_what_they_must() -> None:
    course = simulate(10**7, 10**5, COSTS, CALM)
    assert course == Course(pytest.approx(2 + 10**7 * 2e-5 / 10), 0.0, pytest.approx(1 - 20 / 22), 0)


def test_losses_and_stragglers_cost_time_and_less_in_small_units() -> None:
    calm, rough = simulate(10**7, 10**5, COSTS, CALM), Cluster(10, 0.5, 100.0)
    few, many = (simulate(10**7, unit, COSTS, rough) for unit in (10**6, 10**4))
    assert few == simulate(10**7, 10**6, COSTS, rough), "the seed is fixed"
    assert few.losses > 0 < many.losses
    assert calm.seconds < many.seconds < few.seconds
    assert many.lost_share < few.lost_share


def test_a_busy_coordinator_limits_small_units() -> None:
    slow = replace(COSTS, dispatch=0.01)
    assert simulate(10**6, 10**2, slow, CALM).seconds > 10**4 * 0.01
