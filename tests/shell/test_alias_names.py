"""Tasks are called alike in every command: as `run` calls them in tables, and by either name where they are chosen."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from evalcore.shell.cli import main
from evalcore.shell.compare.check import check_run
from evalcore.shell.compare.compare import compare
from evalcore.shell.compare.power import plan_power
from evalcore.shell.explain.explain import explain_document
from evalcore.shell.output.check.gate_tables import draw_gates
from evalcore.shell.output.terminal.screen import Screen
from evalcore.shell.report.shown_run import show_run
from evalcore.shell.run.run import run

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "config.yaml"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    folder = tmp_path_factory.mktemp("runs")
    run(QUICKSTART, output_path=folder / "a")
    for seed in (1, 2):
        run(QUICKSTART, model="dummy", model_args={"seed": seed}, output_path=folder / f"d{seed}")
    return str(folder / "a"), str(folder / "d1"), str(folder / "d2")


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(list(arguments)) == code
    out = capsys.readouterr()
    return out.err if code == 2 else out.out


COMMANDS = {
    "show": (1, (), 0),
    "compare": (2, (), 0),
    "compare three": (3, (), 0),
    "check": (1, ("--baseline",), 1),
    "power": (1, (), 0),
    "explain": (1, ("--doc", "0"), 0),
}


def type_command(name: str, runs: tuple[str, str, str]) -> list[str]:
    count, more, _ = COMMANDS[name]
    against = [runs[0]] if more == ("--baseline",) else []
    return [name.split()[0], *(runs[1:2] if against else runs[:count]), *more, *against]


@pytest.mark.parametrize("name", COMMANDS)
def test_rows_are_called_by_their_aliases_and_filters_stand_before_metrics(
    name: str, runs: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    task = ["--task", "one_step"] if name == "explain" else []
    text = told(capsys, *type_command(name, runs), *task, code=COMMANDS[name][2])
    head = next(line for line in text.splitlines() if "Tasks" in line)
    assert re.match(r" *Tasks +(Version +)?Filter +(n-shot +)?Metric ", head)
    assert re.search(r"(?m)^.*\bone_step\b.*\bstrict-match\b.*\bexact_match\b", text)
    table = text[text.index(head) :].split("\n\n")[0]
    assert "quickstart_" not in table


@pytest.mark.parametrize("name", [one for one in COMMANDS if one != "show"])
def test_either_name_chooses_the_same(
    name: str, runs: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    by_alias, by_name = (
        told(capsys, *type_command(name, runs), "--task", task, code=COMMANDS[name][2])
        for task in ("simple questions", "quickstart_simple_questions")
    )
    assert by_alias == by_name
    near = told(capsys, *type_command(name, runs), "--task", "natur", code=2)
    assert "did you mean 'quickstart_nature'" in near


NOTEBOOKS: dict[str, Callable[[str, str], object]] = {
    "compare": compare,
    "check": lambda a, b: check_run(b, baseline=a),
    "power": lambda a, b: plan_power(a, difference=0.05),
    "explain": lambda a, b: explain_document(a, task="one_step", doc=0),
    "report": lambda a, b: show_run(a).report,
}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_call_rows_as_terminals_do(name: str, runs: tuple[str, str, str]) -> None:
    shown = NOTEBOOKS[name](*runs[:2])._repr_html_()  # type: ignore[attr-defined]
    (table,) = (one for one in shown.split("<table")[1:] if ">Tasks<" in one and ">Metric<" in one)
    heads = filter(None, re.findall(r"<th [^>]*>([^<]*)</th>", table))
    assert list(heads)[:3] == ["Tasks", "Filter", "Metric"]
    cells = [one.lstrip(" -") for one in re.findall(r"<td [^>]*>([^<]*)</td>", table)]
    assert "one_step" in cells
    assert not any(one.startswith("quickstart_") for one in cells)


def test_diff_and_report_take_aliases(
    runs: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "on 35 documents" in told(capsys, "diff", runs[0], runs[0], "--task", "nature").replace("the ", "")
    page = tmp_path / "p.html"
    told(capsys, "report", *runs[:2], "--task", "nature,world", "-o", str(page))
    found = re.search(r'<script type="application/json" id="head">(.*?)</script>', page.read_text("utf-8"))
    assert found is not None
    numbers = json.loads(found[1])["comparison"]["numbers"]
    assert {one["task"] for one in numbers} == {"quickstart_nature", "quickstart_world"}


def test_programs_get_the_names_of_tasks(runs: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--task", "nature")
    rows = csv.DictReader(io.StringIO(told(capsys, "compare", *runs[:2], *asked, "--csv")))
    assert {row["task"] for row in rows} == {"quickstart_nature"}
    for arguments in (("check", runs[1], "--min", "nature/acc=0.9"), ("check", runs[1], "--baseline", runs[0], *asked)):
        gates = json.loads(told(capsys, *arguments, "--json", code=1))["gates"]
        assert {gate["task"] for gate in gates} == {"quickstart_nature"}


def test_runs_that_do_not_agree_on_an_alias_show_names(runs: tuple[str, str, str], tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for path in Path(runs[1]).iterdir():
        text = path.read_text("utf-8")
        (other / path.name).write_text(text.replace('"alias": "nature"', '"alias": "wildlife"'), "utf-8")
    both = compare(runs[0], other)
    assert "quickstart_nature" not in both.aliases
    assert both.aliases["quickstart_world"] == "world"


@pytest.mark.parametrize(("width", "shown"), [(200, 4), (80, 3)])
def test_gates_show_the_interval_of_the_change_at_every_width(
    width: int, shown: int, runs: tuple[str, str, str]
) -> None:
    checked = check_run(runs[1], baseline=runs[0], task="nature", metric="acc")
    text = draw_gates(checked, Screen(width))
    (gate,) = checked.gates
    assert gate.difference_ci is not None
    assert " to ".join(f"{end:+.{shown}f}" for end in gate.difference_ci) in text
    assert f" {gate.n} " in text
    assert f" {gate.value:.{shown}f} " in text
    assert ("adjusted p" in text) is (width == 200)  # p-values go first


@pytest.mark.parametrize(("width", "heads"), [(200, {"pull", "weight"}), (80, set())])
def test_the_part_of_a_document_keeps_whole_names(
    width: int,
    heads: set[str],
    runs: tuple[str, str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("evalcore.shell.output.terminal.screen._screen_of", lambda stream: Screen(width))
    text = told(capsys, "explain", runs[0], "--task", "simple questions", "--doc", "0").partition("Contribution\n")[2]
    head, _, row, *_ = text.splitlines()
    assert heads == {"pull", "weight"} & set(head.split())
    assert re.match(r" +simple questions( +first-word +|/)exact_match@mean(,first-word)? +30 +0\.4167 ", row)
