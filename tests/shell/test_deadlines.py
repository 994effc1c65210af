"""What would run for ever ends, through the real command line: the document is unscorable and all others have scores."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
import yaml

import evalcore
from evalcore.shell.engines.deadline import StepWorker
from evalcore.shell.engines.processes import end_worker
from evalcore.shell.safety.timer import TimeUp, run_within

STUCK = "a" * 40 + "!"
PATTERN = "(a+)+$"
SAID = ["aaaa", STUCK, "aaaa"]
REGEX = f'regex={{"regex_pattern": "{PATTERN}"}}'
COLUMNS = ("--answer", "reply", "--gold", "gold", "--id", "id", "--metric", "exact_match")
TOLD = "took longer than 0.5 s (doc_timeout)"
LAST = 300
"""Seconds after which a test that hangs is ended."""


def typed(*argv: object, code: int) -> str:
    """All that a command prints."""
    command = [sys.executable, "-m", "evalcore", *map(str, argv)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LAST, check=False, env={**os.environ})
    out = done.stdout + done.stderr
    assert done.returncode == code, out
    assert "Traceback" not in out
    return out


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three answers, the second of which a regular expression never gets through with."""
    path = tmp_path / "t.jsonl"
    rows = [{"id": i, "reply": text, "gold": "aaaa"} for i, text in enumerate(SAID)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def numbers(folder: Path, task: str) -> dict[str, object]:
    found = json.loads((folder / "results.json").read_text())["results"][task]
    assert isinstance(found, dict)
    return found


def test_a_pattern_of_a_flag_then_of_the_logs_own_filters_and_explain(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    out = typed("score", table, *COLUMNS, "--filter", REGEX, "--doc_timeout", 0.5, "-o", folder, "-q", code=1)
    assert TOLD in out
    assert numbers(folder, "t")["exact_match,none"] == 1.0
    again = typed("score", folder, "--doc_timeout", 0.5, "-q", code=1)
    assert TOLD in again
    assert f"stopped again: it {TOLD}" in typed("explain", folder, "--doc", 1, "--doc_timeout", 0.5, code=0)


def test_partials_of_what_was_stopped_merge_and_are_made_again(table: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    given = ("score", table, *COLUMNS, "--filter", REGEX, "--partials", kept, "--doc_timeout", 0.5)
    for engine in ("processes", "serial"):
        out = typed(*given, "--engine", engine, "--workers", 1, code=1)
        assert f"1 score {TOLD}; these documents are unscorable, and are scored again next time" in out
    assert TOLD in typed("merge", kept, code=1)


RUN_TASK = {
    "task": "stuck",
    "output_type": "generate_until",
    "test_split": "test",
    "doc_to_text": "{{q}}",
    "doc_to_target": "aaaa",
    "filter_list": [
        {"name": "mine", "filter": [{"function": "regex", "regex_pattern": PATTERN}, {"function": "take_first"}]}
    ],
    "metric_list": [{"metric": "exact_match"}, {"metric": "rougeL"}],
}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Run a task on three documents, whose answers are recorded."""

    def run(*flags: object, code: int, **keys: object) -> str:
        (tmp_path / "stuck.yaml").write_text(yaml.safe_dump({**RUN_TASK, **keys}))
        docs = [{"q": f"say {i}", "text": STUCK} for i in range(len(SAID))]
        (tmp_path / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
        said = [{"doc": doc, "doc_id": i, "target": "aaaa", "resps": [[SAID[i]]], "filtered_resps": [SAID[i]],
                 "arguments": [[doc["q"], {"until": ["\n\n"]}]], "exact_match": 0.0}
                for i, doc in enumerate(docs)]  # fmt: skip
        (tmp_path / "samples_stuck_2025-01-01T00-00-00.jsonl").write_text("".join(json.dumps(r) + "\n" for r in said))
        given = ("--model", "replay", "--model_args", f"path={tmp_path / 'samples_stuck_2025-01-01T00-00-00.jsonl'}")
        tasks = ("--tasks", tmp_path / "stuck.yaml", "--data", json.dumps({"stuck": str(tmp_path / "docs.jsonl")}))
        return typed("run", *given, *tasks, "-o", tmp_path / "run", "--doc_timeout", 0.5, *flags, code=code)

    return run


def test_a_pattern_of_a_task_file(run: Callable[..., str], tmp_path: Path) -> None:
    assert TOLD in run(code=1)
    found = numbers(tmp_path / "run", "stuck")
    assert found["exact_match,mine"] == 1.0
    assert "samples_stuck" in str(list((tmp_path / "run").iterdir()))


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ text | regex_replace('(a+)+$', 'b') }}", f"the pattern '(a+)+$' {TOLD}"),
        ("{{ [text] | map('regex_replace', '(a+)+$', 'b') | list }}", f"the pattern '(a+)+$' {TOLD}"),
        ("{% for a in range(9999) %}{% set x = range(99999) | sort %}{% endfor %}", f"the template {TOLD}"),
        (
            "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}{{q}}",
            "expected at most 1000000 turns of loops and calls",
        ),
        ("{{ q | regex_replace('a{99999999999}', 'b') }}", "the repetition number is too large"),
    ],
    ids=["regex", "map", "work", "loops", "repetition"],
)
def test_a_template_that_does_not_end(run: Callable[..., str], template: str, told: str) -> None:
    out = run(*([] if TOLD in told else ["--doc_timeout", 0]), code=2, doc_to_text=template)
    assert told in out
    assert " - at stuck" in out


@pytest.mark.parametrize(
    ("pattern", "told"),
    [("a{99999999999}", "the repetition number is too large"), ("(" * 3000 + ")" * 3000, "too many groups within")],
    ids=["repetition", "groups"],
)
def test_a_pattern_that_cannot_be_compiled(table: Path, pattern: str, told: str) -> None:
    step = f"regex={json.dumps({'regex_pattern': pattern})}"
    out = typed("score", table, *COLUMNS, "--filter", step, code=2)
    assert told in out
    assert len(out) < 600


def test_metrics_that_compare_all_with_all_have_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    rows = [{"id": 0, "reply": "a b " * 150_000, "gold": "b a " * 150_000}, {"id": 1, "reply": "a b", "gold": "a b"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = [part for name in ("rougeL", "rougeLsum", "ter", "anls") for part in ("--metric", name)]
    out, _ = json.JSONDecoder().raw_decode(typed("score", path, *COLUMNS[:6], *metrics, "--json", "-q", code=1))
    numbers = out["results"]["long"]
    assert [numbers[f"{name},none"] for name in ("rougeL", "rougeLsum", "ter", "anls")] == [1.0, 1.0, 0.0, 1.0]
    told = "expected at most 100,000,000,000 pairs of characters (said × gold), got 600,000 × 600,000"
    assert told in json.dumps(out, ensure_ascii=False)


def test_a_thread_hears_no_timer_and_has_a_worker(table: Path) -> None:
    found: list[evalcore.RunResult] = []

    def work() -> None:
        found.append(
            evalcore.score(
                table, answer="reply", gold="gold", id="id", metric="exact_match", filter=REGEX, doc_timeout=0.5
            )
        )

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(LAST)
    [result] = found
    assert result.results["results"]["t"]["exact_match,none"] == 1.0
    assert TOLD in str(result.results)


OWN = """
import os
def own(references, predictions, **options):
    return float(os.environ["JUDGE_API_KEY"])
"""
IN_A_THREAD = """
from threading import Thread
from evalcore import Answer, Generate, Instance, MetricSpec, Sample, Task, score_task
from evalcore.shell.engines.deadline import Deadline
def work():
    task = Task("t", "generate_until", (MetricSpec("own", function=own),))
    answers = [Answer(Instance("t", 0, 0, Generate("?")), ("x",))]
    print(score_task(task, [Sample(0, gold="x")], answers, guard=Deadline()).columns[0].column.rows)
thread = Thread(target=work)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("first", [OWN, "from own import own"], ids=["of the script itself", "of a module"])
def test_a_metric_has_in_a_thread_what_it_has_elsewhere(first: str, tmp_path: Path) -> None:
    """A worker has no function of the script that started it, and a judge needs its key."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "script.py").write_text(first + IN_A_THREAD)
    command, environ = [sys.executable, tmp_path / "script.py"], {**os.environ, "JUDGE_API_KEY": "7"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LAST, check=False, env=environ)
    assert (ran.stdout, ran.stderr) == ("Floats(values=Array([7.]))\n", "")


def test_threads_that_share_a_guard_have_a_worker_each() -> None:
    worker = StepWorker()
    first, second = worker._take(), worker._take()
    assert first.pid != second.pid
    for process in (first, second):
        end_worker(process)


def test_a_metric_that_cannot_be_closed_is_a_loss(table: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def close(items):\n    raise RuntimeError('broken')\n")
    metrics = [{"metric": "exact_match"}, {"metric": "acc", "aggregation": "close"}]
    task = tmp_path / "t.yaml"
    written = yaml.safe_dump({"task": "t", "output_type": "generate_until", "metric_list": metrics})
    task.write_text(written.replace("aggregation: close", "aggregation: !function own.close"))
    out = typed("score", table, *COLUMNS[:6], "--task", task, "--trust", tmp_path, code=1)
    assert "RuntimeError: broken" in out
    assert "3 documents: 0 scored, 0 unscorable, 3 failed, 0 not run" in out


# --- the timer --------------------------------------------------------------------------------------------------------


def spin() -> None:
    while True:
        try:
            while True:
                pass
        except Exception:  # as careless code does
            continue


def test_the_time_is_up_whatever_code_catches_and_the_timer_is_given_back() -> None:
    def outer() -> None:
        with pytest.raises(TimeUp):
            run_within(0.05, spin)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0, "the outer timer goes on"
        spin()

    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeUp):
        run_within(0.2, outer)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is before
