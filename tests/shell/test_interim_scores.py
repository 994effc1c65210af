"""Numbers while a model is asked: those of the final code, only of whole documents, never a change of results."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest
import yaml
from small_tasks import TASKS, write_tasks

import evalcore
from evalcore import EvalError
from evalcore.logs import RunResult
from evalcore.shell.output.terminal.progress import Estimator, Unseen


class Onlooker(Unseen):
    """Asks for the numbers after every reply."""

    def __init__(self, seconds: float = 60.0) -> None:
        self.seconds, self.seen, self.estimate = seconds, list[tuple[str, ...]](), None  # type: Estimator | None

    def stage(self, name: str, total: int, *, known: int = 0, estimate: Estimator | None = None) -> None:
        self.estimate = estimate

    def advance(self, n: int = 1, *, failed: Sequence[str] = ()) -> None:
        if self.estimate is not None:
            self.seen.append(tuple(self.estimate(self.seconds)))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_tasks(tmp_path / "tasks", count=100)
    return tmp_path


def run(shown: Unseen, **keys: object) -> RunResult:
    return evalcore.run(model="dummy", include_path="tasks", shown=shown, **keys)


def read_lines(lines: Sequence[str]) -> dict[str, tuple[float, int]]:
    """The value and n by the name of each number."""
    found = [re.fullmatch(r"(.+) (\S+) \(\S+ to \S+\), n ([\d,]+)", line) for line in lines]
    return {one[1]: (float(one[2]), int(one[3].replace(",", ""))) for one in found if one}


def test_the_numbers_so_far_become_the_final_ones(home: Path) -> None:
    onlooker = Onlooker()
    done = run(onlooker, tasks=["sums"], output_path="out")
    counts = [read_lines(lines)["sums exact_match,strict"][1] for lines in onlooker.seen]
    assert counts == [64, 100]
    final = done.report.task("sums")["exact_match,strict"]
    assert read_lines(onlooker.seen[-1])["sums exact_match,strict"] == (round(final.value, 3), 100)
    assert onlooker.seen[0][0] == "provisional, of the documents answered so far:"


def test_the_numbers_so_far_are_those_of_the_documents_answered(home: Path) -> None:
    onlooker = Onlooker()
    run(onlooker, tasks=["sums"], output_path="out")
    rows = [json.loads(line) for line in (home / "out/answers.jsonl").read_text().splitlines()]
    prompts = {
        row["arguments"]["gen_args_0"]["arg_0"]: row
        for row in map(json.loads, (home / "out/samples_sums.jsonl").read_text().splitlines())
        if row["filter"] == "strict"
    }
    # the longest questions are asked first, and dummy gives 64 replies at a time
    asked = sorted(prompts, key=lambda prompt: (-len(prompt), prompt))[:64]
    by_hand = sum(prompts[prompt]["exact_match"] for prompt in asked) / 64
    assert len([row for row in rows if "key" in row]) == 100
    assert read_lines(onlooker.seen[0])["sums exact_match,strict"] == (round(by_hand, 3), 64)


def test_a_document_counts_once_all_its_questions_are_answered(home: Path) -> None:
    onlooker = Onlooker()
    run(onlooker, tasks=["places"], output_path="out")  # three questions a document
    counts = [n for lines in onlooker.seen for _, n in read_lines(lines[:2]).values()]
    assert len(counts) == -(-300 // 64)
    assert counts == sorted(counts)
    assert counts[-1] == 100
    assert all(n <= 64 * at // 3 for at, n in enumerate(counts, 1))


def test_groups_come_before_their_tasks_once_each_task_has_a_number(home: Path) -> None:
    onlooker = Onlooker()
    done = run(onlooker, tasks=["small"], output_path="out")
    last = onlooker.seen[-1]
    assert last[-1].startswith("and ")
    group = done.report.group("small::texts")
    [(key, final), *_] = group.estimates
    assert f"texts {str(key).removesuffix(',none')} {final.value:.3f} " in " ".join(last)
    assert len(last) == 6


def test_watching_changes_no_result(home: Path) -> None:
    run(Onlooker(), tasks=["small"], output_path="seen")
    run(Unseen(), tasks=["small"], output_path="unseen")
    for name in ("results.json", *(f"samples_{task}.jsonl" for task in TASKS)):
        assert (home / "seen" / name).read_bytes() == (home / "unseen" / name).read_bytes()


OWN = """
from pathlib import Path

def own(prediction, gold):
    Path("called").write_text("yes")
    return 1.0

def whole(doc, results):
    Path("called").write_text("yes")
    return {"own": 1.0}
"""


@pytest.mark.parametrize(
    "changed",
    [
        {"metric_list": "[{metric: !function own.own, aggregation: mean, higher_is_better: true}]"},
        {"process_results": "!function own.whole", "metric_list": "[{metric: own}]"},
    ],
)
def test_code_of_the_users_is_not_run_for_numbers_so_far(home: Path, changed: dict[str, str]) -> None:
    (home / "tasks/own.py").write_text(OWN)
    source = yaml.safe_load((home / "tasks/sums.yaml").read_text())
    kept = {key: value for key, value in source.items() if key not in (*changed, "filter_list")} | {"task": "owned"}
    lines = "".join(f"{key}: {value}\n" for key, value in changed.items())
    (home / "tasks/owned.yaml").write_text(yaml.safe_dump(kept) + lines)
    called: list[bool] = []

    class Looking(Onlooker):
        def advance(self, n: int = 1, *, failed: Sequence[str] = ()) -> None:
            super().advance(n, failed=failed)
            called.append((home / "called").exists() and self.estimate is not None)

    onlooker = Looking()
    done = run(onlooker, tasks=["owned", "sums"], output_path="out", trust=["tasks"])
    assert done.report.task("owned")["own,none"].value == 1.0
    assert called[:2] == [False, False]
    named = {line for lines in onlooker.seen for line in read_lines(lines)}
    assert named
    assert not any(name.startswith("owned") for name in named)


def test_what_takes_too_long_or_cannot_be_scored_shows_nothing(home: Path) -> None:
    source = yaml.safe_load((home / "tasks/sums.yaml").read_text())
    slow = {"function": "regex", "regex_pattern": "(\\d|\\w)*(\\w|\\d)*(\\w|\\d)*$x"}
    source |= {"task": "stuck", "doc_to_text": "{{a}}" + "a" * 60 + " =", "filter_list": [{"name": "slow", "filter": [slow]}]}  # fmt: skip
    (home / "tasks/stuck.yaml").write_text(yaml.safe_dump(source))
    onlooker = Onlooker(seconds=0.05)
    run(onlooker, tasks=["stuck"], output_path="out", doc_timeout=0.05)
    assert onlooker.seen
    assert set(onlooker.seen) == {()}


def test_a_thread_which_hears_no_timer_shows_nothing(home: Path) -> None:
    onlooker = Onlooker()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            run(onlooker, tasks=["sums"], output_path="out")
        except EvalError as wrong:
            failed.append(wrong)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert not failed
    assert set(onlooker.seen) == {()}
