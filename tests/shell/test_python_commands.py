"""What a command prints, Python can have: the functions take what the flags take and return what ``--json`` prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from sample_runs import write_run

from evalcore.core.compare.lines import CORRECTIONS
from evalcore.shell.cli import main
from evalcore.shell.compare.check import check_run
from evalcore.shell.compare.compare import compare
from evalcore.shell.compare.power import plan_power
from evalcore.shell.explain.diff import diff_runs
from evalcore.shell.explain.explain import explain_document
from evalcore.shell.output.check.renderers import RENDERERS as CHECKS
from evalcore.shell.output.compare.renderers import RENDERERS as COMPARISONS
from evalcore.shell.output.explain.renderers import DIFF_RENDERERS as DIFFS
from evalcore.shell.output.explain.renderers import RENDERERS as DOCUMENTS
from evalcore.shell.output.power.renderers import RENDERERS as PLANS
from evalcore.shell.output.terminal.screen import Renderer, render_form

OLD = {"t": [float(at % 2 == 0) for at in range(40)], "u": [float(at % 5 > 1) for at in range(40)]}
NEW = {"t": [float(at % 3 == 0) for at in range(40)], "u": [float(at % 5 > 0) for at in range(40)]}

CASES: list[tuple[list[str], Callable[..., object], tuple[str, ...], dict[str, object], Mapping[str, Renderer]]] = [
    (["compare", "new", "old"], compare, ("new", "old"), {}, COMPARISONS),
    (
        ["compare", "new", "old", "new", "--names", "a,b,c", "--task", "t", "--metric", "acc", "--flips", "all"],
        compare,
        ("new", "old", "new"),
        {"names": ["a", "b", "c"], "task": "t", "metric": "acc", "flips": None},
        COMPARISONS,
    ),
    (
        ["compare", "new", "old", "--cluster", "passage", "--confidence", "0.9", "--correction", "bh", "--seed", "3"],
        compare,
        ("new", "old"),
        {"cluster": "passage", "confidence": 0.9, "correction": "bh", "seed": 3},
        COMPARISONS,
    ),
    (
        ["compare", "new", "old", "--match", "question", "--lower_is_better", "acc"],
        compare,
        ("new", "old"),
        {"match": ["question"], "lower_is_better": "acc"},
        COMPARISONS,
    ),
    (["check", "new", "--min", "acc=0.3"], check_run, ("new",), {"min": "acc=0.3"}, CHECKS),
    (
        ["check", "new", "--max", "t/acc=0.9", "--strict", "--baseline", "old", "--max_unscored", "0.1"],
        check_run,
        ("new",),
        {"max": ["t/acc=0.9"], "strict": True, "baseline": "old", "max_unscored": 0.1},
        CHECKS,
    ),
    (
        ["check", "new", "--baseline", "old", "--margin", "0.01", "--alpha", "0.1", "--task", "u,t"],
        check_run,
        ("new",),
        {"baseline": "old", "margin": 0.01, "alpha": 0.1, "task": ("u", "t")},
        CHECKS,
    ),
    (["power", "new"], plan_power, ("new",), {}, PLANS),
    (
        ["power", "new", "old", "--difference", "0.05", "--repeats", "2,4"],
        plan_power,
        ("new", "old"),
        {"difference": 0.05, "repeats": (2, 4)},
        PLANS,
    ),
    (
        ["power", "new", "--half-width", "0.05", "--correlation", "0.3", "--cluster", "passage"],
        plan_power,
        ("new",),
        {"half_width": 0.05, "correlation": 0.3, "cluster": "passage"},
        PLANS,
    ),
    (["explain", "new", "--task", "t", "--doc", "3"], explain_document, ("new", "3"), {"task": "t"}, DOCUMENTS),
    (
        ["explain", "new", "--task", "u", "--doc", "#4", "--metric", "acc", "--filter", "none"],
        explain_document,
        ("new", "#4"),
        {"task": "u", "metric": "acc", "filter": "none"},
        DOCUMENTS,
    ),
    (["diff", "old", "new"], diff_runs, ("old", "new"), {}, DIFFS),
    (
        ["diff", "old", "new", "--task", "t", "--metric", "acc", "--limit", "2"],
        diff_runs,
        ("old", "new"),
        {"task": "t", "metric": ["acc"], "limit": 2},
        DIFFS,
    ),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("python")
    write_run(folder / "new", NEW)
    write_run(folder / "old", OLD)
    return folder


@pytest.mark.parametrize(("argv", "function", "given", "keys", "renderers"), CASES, ids=lambda one: None)
@pytest.mark.parametrize("form", ["json", "markdown", "table"])
def test_a_function_returns_what_its_command_prints(
    argv: list[str],
    function: Callable[..., object],
    given: tuple[str, ...],
    keys: dict[str, object],
    renderers: Mapping[str, Renderer],
    form: str,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(home)
    assert main([*argv, *([] if form == "table" else [f"--{form}"])]) in (0, 1)
    assert render_form(renderers, form, function(*given, **keys)) == capsys.readouterr().out


def test_paths_and_numbers_do_as_well_as_texts(home: Path) -> None:
    assert compare(home / "new", home / "old") == compare(str(home / "new"), str(home / "old"))
    assert (
        explain_document(home / "new", 3, task="t").logged == explain_document(str(home / "new"), "3", task="t").logged
    )


@pytest.mark.parametrize("name", sorted(CORRECTIONS))
def test_a_correction_under_another_name_behaves_the_same(name: str, home: Path) -> None:
    """What a host passes is obeyed: nothing asks what it is called."""
    mine, runs = replace(CORRECTIONS[name], name="mine"), (home / "new", home / "old")
    for form in COMPARISONS:
        ours, theirs = (render_form(COMPARISONS, form, compare(*runs, correction=one)) for one in (name, mine))
        assert theirs.replace("(mine)", f"({name})").replace('"mine"', f'"{name}"') == ours
    for form in CHECKS:
        keys = {"baseline": runs[1], "min": ["t/acc=0.2", "u/acc=0.9"], "margin": 0.01}
        ours, theirs = (render_form(CHECKS, form, check_run(runs[0], correction=one, **keys)) for one in (name, mine))
        assert theirs.replace("(mine)", f"({name})").replace('"mine"', f'"{name}"') == ours
