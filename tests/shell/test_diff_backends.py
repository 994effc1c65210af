"""``evalcore diff`` of one model on two backends: the first stage at which each document parts, and none that follows from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import evalcore
from evalcore.core.records.request import Failure, Generate, Likelihood, LogLikelihood, Reply
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.cli import main
from evalcore.shell.models import MODELS
from evalcore.shell.models.model import Backend, Heard, Model, Question

Told = tuple[Reply, str, int]
"""A reply, why it ended, and the tokens of its prompt."""

TEXTS = """task: texts
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: "{{q}}?"
doc_to_target: "4"
generation_kwargs: {until: ["!"]}
filter_list:
  - name: number
    filter: [{function: regex, regex_pattern: "([0-9]+)"}, {function: take_first}]
metric_list: [{metric: exact_match}]
"""
CHOICES = """task: choices
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{q}}?"
doc_to_choice: ["one", "two"]
doc_to_target: 0
metric_list: [{metric: acc}]
"""


def tell_usual(request: object) -> Told:
    if isinstance(request, LogLikelihood):
        return Likelihood(-1.5 if request.continuation == " one" else -2.5, False, 2), "", 3
    return "it is 4", "stop", 3


def tell_other(request: object) -> Told:
    reply, finish, read = tell_usual(request)
    text = request.context if isinstance(request, LogLikelihood) else request.prompt  # type: ignore[attr-defined]
    second = isinstance(request, LogLikelihood) and request.continuation == " two"
    match text, second:
        case "q1?", False:
            return (
                (Likelihood(-1.5000001, False, 2) if isinstance(reply, Likelihood) else "it is 4 and"),
                "length",
                read,
            )
        case "q1?", True:
            return Likelihood(-2.5, True, 2), finish, read
        case "q2?", _:
            return (reply._replace(tokens=3, value=-9.0) if isinstance(reply, Likelihood) else "it was 4"), finish, read
        case "q3?", _:
            return reply if isinstance(reply, Likelihood) else "5", finish, read + 1
        case "q4?", False:
            return Failure("too long"), "", read
    return reply, finish, read


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Path]:
    """A run by a stand-in of either backend."""
    data = tmp_path / "docs.jsonl"
    data.write_text("".join(json.dumps({"q": f"q{n}"}) + "\n" for n in range(6)))
    for name, text in (("texts", TEXTS), ("choices", CHOICES)):
        (tmp_path / f"{name}.yaml").write_text(text.replace("DATA", str(data)))

    def make(name: str, tell: Callable[[object], Told], **config: object) -> Path:
        def ask(questions: Sequence[Question]) -> Iterator[Heard]:
            for at, one in enumerate(questions):
                reply, finish, read = tell(one.request)
                yield Heard(at, reply, finish, spent=Spent(read, 2))

        models = MODELS.set(name, Backend(lambda given: Model("m", f"{name} m", ask), ""))
        tasks = [str(tmp_path / "texts.yaml"), str(tmp_path / "choices.yaml")]
        folder = tmp_path / name
        evalcore.run(model=name, tasks=tasks, output_path=str(folder), models=models, allow_failures="100%", **config)
        return folder

    return make


def read_diff(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    capsys.readouterr()
    assert main(["diff", *map(str, arguments), "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def list_parted(found: dict[str, object]) -> dict[str, dict[int, str]]:
    return {
        task["task"]: {one["doc"]: one["stage"] for one in task["parted"]}
        for task in found["stages"]["tasks"]  # type: ignore[index]
    }


def test_each_document_is_counted_at_the_first_stage_that_differs(
    run: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = run("usual", tell_usual), run("other", tell_other)
    found = read_diff(capsys, one, two)
    assert list_parted(found) == {
        "texts": {1: "finish reason", 2: "text", 3: "tokens", 4: "failure"},
        "choices": {1: "log-likelihood", 2: "tokens", 4: "failure"},
    }
    stages = found["stages"]
    assert isinstance(stages, dict)
    assert (stages["before"], stages["after"], stages["without_answer_log"]) == ("usual", "other", [])
    counts = {"tokens": 2, "failure": 2, "log-likelihood": 1, "finish reason": 1, "text": 1}
    assert {name: count for name, count in stages["counts"].items() if count} == counts
    assert main(["diff", str(one), str(two)]) == 1
    page = capsys.readouterr().out
    assert "Where the backends part: usual and other" in page
    assert "7 of 12 documents part" in page
    assert "'it was 4'" in page


def test_only_the_prompt_is_blamed_for_what_another_prompt_brings(
    run: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    found = read_diff(capsys, run("usual", tell_usual), run("other", tell_other, system_instruction="Be brief."))
    assert {stage for task in list_parted(found).values() for stage in task.values()} == {"prompt"}
    assert all(len(task) == 6 for task in list_parted(found).values())


def test_texts_of_which_something_else_was_extracted(
    run: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = run("usual", tell_usual), run("other", tell_usual)
    log = two / "samples_texts.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    rows[3]["filtered_resps"] = ["44"]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert list_parted(read_diff(capsys, one, two)) == {"texts": {3: "extraction"}, "choices": {}}


def test_runs_of_one_backend_are_looked_at_when_asked(
    run: Callable[..., Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    one = run("usual", tell_usual)
    assert read_diff(capsys, one, one)["stages"] is None
    again = tmp_path / "again"
    again.mkdir()
    for path in one.iterdir():
        if path.name.startswith(("samples", "results")):
            (again / path.name).write_bytes(path.read_bytes())
    found = read_diff(capsys, one, again, "--stages")["stages"]
    assert isinstance(found, dict)
    assert found["without_answer_log"] == [str(again)]
    assert not any(found["counts"].values())


@pytest.mark.parametrize("damaged", ["[" * 100_000, "{", "\ud83d"])
def test_a_damaged_run_file_is_named(
    run: Callable[..., Path], capsys: pytest.CaptureFixture[str], damaged: str
) -> None:
    one = run("usual", tell_usual)
    (one / "run.json").write_bytes(damaged.encode("utf-8", "surrogatepass"))
    capsys.readouterr()
    assert main(["diff", str(one), str(one), "--stages"]) == 2
    assert f"{one / 'run.json'}: not " in capsys.readouterr().err


def test_a_generation_request_is_compared_with_its_options() -> None:
    from evalcore.core.explain.stages import AnsweredDocument, Exchange, find_first_difference

    one, two = (AnsweredDocument((Exchange(Generate("?", {"temperature": heat}), "4"),)) for heat in (0.0, 1.0))
    found = find_first_difference(one, two)
    assert found is not None
    assert found.stage == "options"
    assert find_first_difference(one, one) is None
    assert find_first_difference(one, AnsweredDocument(())).stage == "prompt"  # type: ignore[union-attr]
