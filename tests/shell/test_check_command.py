"""``evalcore check`` on run folders: what fails, what is noise, exit codes, JUnit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from small_tasks import evalcore_here

from evalcore.core.compare.gates import Gate
from evalcore.core.records.task import MetricKey
from evalcore.shell.cli import main
from evalcore.shell.compare.check import Checked
from evalcore.shell.output.check.junit import render_junit

YES = {"lopsided": 32, "even": 19}
"""Of 40 documents, those that "yes" is the answer to; "no" is that of the others."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that says yes and one that says no, on two tasks and their group; ``broken`` lost some answers."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "tasks").mkdir()
    for name, count in YES.items():
        rows = [{"q": f"{name} {at}?", "right": "yes" if at < count else "no"} for at in range(40)]
        (folder / f"tasks/{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        task = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": f"{name}.jsonl"}},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": "{{q}}",
            "doc_to_target": "{{right}}",
            "generation_kwargs": {"until": ["\n"]},
            "metric_list": [{"metric": "exact_match"}],
        }
        (folder / f"tasks/{name}.yaml").write_text(yaml.safe_dump(task))
    both = {"group": "both", "task": list(YES), "aggregate_metric_list": [{"metric": "exact_match"}]}
    (folder / "tasks/both.yaml").write_text(yaml.safe_dump(both))
    common = ("run", "--include_path", "tasks", "--quiet")
    for says in ("yes", "no"):
        model = ("--model", "dummy", "--model_args", f"text={says}")
        for tasks, out in (("both", says), ("even", f"even_{says}")):
            done = evalcore_here(folder, *common, *model, "--tasks", tasks, "--output_path", out)
            assert done.returncode == 0, done.stderr
    shutil.copytree(folder / "even_yes", folder / "short")
    log = folder / "short/answers.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-5]))
    replay = ("--model", "replay", "--model_args", "path=short/answers.jsonl")
    done = evalcore_here(folder, *common, *replay, "--tasks", "even", "--output_path", "broken")
    assert done.returncode == 1, done.stderr
    return folder


@pytest.fixture
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(home)
    return home


pytestmark = pytest.mark.usefixtures("at_home")


def judged(
    capsys: pytest.CaptureFixture[str], *arguments: object, code: int
) -> dict[tuple[str, str], dict[str, object]]:
    assert main(["check", *map(str, arguments), "--json"]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is (code == 0)
    return {(gate["gate"], gate["task"]): gate for gate in found["gates"]}


# --- baselines ----------------------------------------------------------------------------------------------------------


def test_a_run_against_itself_passes(capsys: pytest.CaptureFixture[str]) -> None:
    gates = judged(capsys, "yes", "--baseline", "yes", code=0)
    assert {name for _, name in gates} == {"lopsided", "even", "both"}
    assert all(gate["difference"] == 0 and gate["p_adjusted"] >= 0.5 for gate in gates.values())


def test_a_real_regression_fails_and_its_mirror_image_passes(capsys: pytest.CaptureFixture[str]) -> None:
    gates = judged(capsys, "no", "--baseline", "yes", code=1)
    fallen = gates["baseline", "lopsided"]
    assert (fallen["passed"], fallen["verdict"]) == (False, "worse")
    assert (fallen["value"], fallen["baseline"], fallen["difference"]) == pytest.approx((0.2, 0.8, -0.6))
    assert gates["baseline", "even"]["passed"] is True
    gains = judged(capsys, "yes", "--baseline", "no", code=0)
    assert gains["baseline", "lopsided"]["p_value"] == pytest.approx(1 - fallen["p_value"])


def test_a_drop_that_is_noise_passes(capsys: pytest.CaptureFixture[str]) -> None:
    gates = judged(capsys, "even_yes", "--baseline", "even_no", code=0)
    gate = gates["baseline", "even"]
    assert gate["difference"] == pytest.approx(-0.05)
    assert 0.2 < gate["p_adjusted"] < 0.5
    assert gate["verdict"] == "not shown to be worse"


def test_what_is_missing_fails_and_is_an_error_if_nothing_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    gates = judged(capsys, "even_yes", "--baseline", "yes", code=1)
    assert gates["baseline", "lopsided"]["verdict"] == "missing: the run has no such task"
    assert gates["baseline", "even"]["passed"] is True
    judged(capsys, "even_yes", "--baseline", "yes", "--allow_missing", code=0)
    lone = evalcore_here(
        Path.cwd(), "run", "yes/config.yaml", "--tasks", "lopsided", "--output_path", "lone", "--quiet"
    )
    assert lone.returncode == 0, lone.stderr
    assert main(["check", "lone", "--baseline", "even_yes"]) == 2
    assert "nothing of the run can be held against the baseline" in capsys.readouterr().err


def test_documents_without_a_score_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "broken", "--min", "exact_match=0.1"]) == 0
    assert "even: 5 of 40 documents failed" in capsys.readouterr().out


# --- limits -----------------------------------------------------------------------------------------------------------


def test_a_limit_fails_on_evidence_and_says_which_of_three(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = {
        value: judged(capsys, "yes", "--min", f"lopsided/exact_match={value}", code=code)["min", "lopsided"]["verdict"]
        for value, code in ((0.6, 0), (0.85, 0), (0.95, 1))
    }
    assert verdicts == {0.6: "met", 0.85: "not shown to be below", 0.95: "below"}
    mirrored = {
        value: judged(capsys, "yes", "--max", f"lopsided/exact_match={value}", code=code)["max", "lopsided"]["verdict"]
        for value, code in ((0.95, 0), (0.75, 0), (0.6, 1))
    }
    assert mirrored == {0.95: "met", 0.75: "not shown to be above", 0.6: "above"}
    strict = judged(capsys, "yes", "--min", "lopsided/exact_match=0.85", "--strict", code=1)
    assert strict["min", "lopsided"]["verdict"] == "below"


def test_alpha_decides_how_much_evidence_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    loose = judged(capsys, "yes", "--min", "lopsided/exact_match=0.9", "--alpha", 0.2, code=1)["min", "lopsided"]
    firm = judged(capsys, "yes", "--min", "lopsided/exact_match=0.9", "--alpha", 0.001, code=0)["min", "lopsided"]
    assert firm["ci_low"] < loose["ci_low"] < 0.8 < loose["ci_high"] < 0.9 < firm["ci_high"]


def test_a_bare_metric_is_every_task_and_group_and_all_gates_are_judged(capsys: pytest.CaptureFixture[str]) -> None:
    limits = ("--min", "exact_match=0.7", "--max", "both/exact_match,none=0.99")
    gates = judged(capsys, "yes", *limits, "--baseline", "no", code=1)
    assert set(gates) == {
        *(("min", name) for name in ("lopsided", "even", "both")),
        ("max", "both"),
        *(("baseline", name) for name in ("lopsided", "even", "both")),
    }
    assert [name for (_, name), gate in gates.items() if gate["passed"] is False] == ["even"]
    assert main(["check", "yes", *limits]) == 1
    text = capsys.readouterr().out
    assert text.endswith("FAILED: 3 passed, 1 failed\n")
    assert "97.5 % interval" in text  # four limits
    assert "≥ 0.7000" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("yes",), "expected a gate"),
        (("yes", "--min", "exact_match"), "KEY=VALUE"),
        (("yes", "--min", "exact_mach=0.5"), "did you mean 'exact_match'"),
        (("yes", "--min", "evn/exact_match=0.5"), "did you mean 'even/exact_match'"),
        (("yes", "--min", "exact_match=0.5", "--alpha", "0.5"), "--alpha"),
        (("yes", "--baseline", "nowhere"), "nowhere"),
        (("yes", "--baseline", "no", "--correction", "hom"), "did you mean 'holm'"),
        (("nowhere", "--min", "acc=1"), "nowhere"),
        (("yes", "--min", "exact_match=0.5", "--junit", "tasks/even.yaml/report.xml"), "report.xml"),
    ],
)
def test_bad_input_is_a_message_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert main(["check", *arguments]) == 2
    out = capsys.readouterr()
    assert message in out.err
    assert "unexpected" not in out.err


# --- JUnit --------------------------------------------------------------------------------------------------------------


def test_junit_has_a_case_for_every_gate_and_counts_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "reports/junit.xml"
    assert main(["check", "no", "--min", "even/exact_match=0.4", "--baseline", "yes", "--junit", str(file)]) == 1
    suite = ElementTree.fromstring(file.read_bytes()).find("testsuite")
    assert suite is not None
    cases = {case.get("name"): case for case in suite}
    assert set(cases) == {
        "even exact_match min",
        *(f"{name} exact_match baseline" for name in ("lopsided", "even", "both")),
    }
    failed = [name for name, case in cases.items() if case.find("failure") is not None]
    assert failed[0] == "lopsided exact_match baseline"
    message = cases[failed[0]].find("failure").get("message")
    assert "0.2000 (n = 40) against 0.8000, changed by -0.6000" in message
    counts = {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": str(len(failed)), "errors": "0", "skipped": "0"}
    assert {case.get("classname") for case in suite} == {"no"}
    assert float(suite.get("time")) >= 0
    assert list(file.parent.iterdir()) == [file]


def test_junit_has_the_attributes_of_pytests_own(pytest_report: ElementTree.Element) -> None:
    ours = ElementTree.fromstring(render_junit(Checked(run="r", gates=(GATE,)))).find("testsuite")
    theirs = pytest_report.find("testsuite")
    assert ours is not None
    assert theirs is not None
    assert set(ours.attrib) <= set(theirs.attrib)
    assert set(ours.find("testcase").attrib) <= set(theirs.find("testcase").attrib)


@pytest.fixture
def pytest_report(tmp_path: Path) -> ElementTree.Element:
    """What pytest writes for a test that passes."""
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    options = ["-q", "-p", "no:cacheprovider", "--junitxml=out.xml", "-c", "/dev/null", "--rootdir=."]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_it.py"], cwd=tmp_path, check=True, capture_output=True
    )
    return ElementTree.fromstring((tmp_path / "out.xml").read_bytes())


GATE = Gate(kind="min", name="t", key=MetricKey("acc"), passed=True, verdict="met", value=0.5, limit=0.4)


def test_junit_is_well_formed_whatever_names_hold() -> None:
    evil = "a<b>&\"'\x00\x1b[31m\ud800\ufffe]]> é"
    gates = [
        Gate(kind="min", name=evil, key=MetricKey(evil, evil), passed=passed, verdict=evil, value=0.5, limit=0.4)
        for passed in (True, False, None)
    ]
    text = render_junit(Checked(run=evil, gates=tuple(gates)))
    suite = ElementTree.fromstring(text.encode("ascii")).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [case[0].tag for case in suite] == ["system-out", "failure", "skipped"]
    assert "a<b>&\"'\\x00\\x1b[31m\\ud800\\ufffe]]> é" in suite[1].get("name")
