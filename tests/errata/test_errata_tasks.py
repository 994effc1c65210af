"""E49-E54: what lm-eval does to tasks, prompts and targets, live; the same under its policy; and what is right."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

pytest.importorskip("lm_eval")
sys.path.append(str(Path(__file__).parents[1] / "agreement"))

import datasets
from both_sides import quiet
from lm_eval.api.model import LM
from lm_eval.api.samplers import ContextSampler
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator import evaluate as lm_evaluate
from lm_eval.models.openai_completions import OpenAIChatCompletion
from lm_eval.tasks import TaskManager

from evalcore import Generate, MetricKey, run
from evalcore.adapters.lm_eval import evaluate
from evalcore.extensions import MODELS, Backend, Heard, Model, Question
from evalcore.lm_eval import ERRATA
from evalcore.shell.models.openai.arguments import ServerKind, ServerSettings
from evalcore.shell.models.openai.body import write_generation
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.ready_task import Asking
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.tasks.library.cache import build_index
from evalcore.shell.tasks.library.index import find_library
from evalcore.shell.tasks.resolution import resolve_specs

Row = dict[str, object]
POLICY = "lm-eval-0.4.13"
METRICS = [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}]


class Reciter(LM):
    """A model that replies by the last word of its prompt."""

    def __init__(self, replies: Mapping[str, str]) -> None:
        super().__init__()
        self.replies = replies

    def generate_until(self, requests: Sequence[object]) -> list[str]:
        return [self.replies.get(one.args[0].split()[-1], "") for one in requests]

    loglikelihood = loglikelihood_rolling = generate_until


def lm_task(rows: Sequence[Row], train: Sequence[Row] = (), **more: object) -> ConfigurableTask:
    splits = {"test": datasets.Dataset.from_list(list(rows))}
    splits |= {"train": datasets.Dataset.from_list(list(train))} if train else {}
    config = {
        "task": "t",
        "custom_dataset": lambda **_: splits,
        "test_split": "test",
        **({"training_split": "train"} if train else {}),
        "doc_to_text": "q",
        "doc_to_target": "a",
        "metric_list": METRICS,
        **more,
    }
    return quiet(ConfigurableTask, config=config)


def in_lm_eval(
    task: ConfigurableTask, replies: Mapping[str, str], how: Callable[..., Row] = lm_evaluate, **more: object
) -> Row:
    return quiet(how, Reciter(replies), {"tasks": {"t": task}, "groups": {}}, bootstrap_iters=0, **more)


def our_run(folder: Path, rows: Sequence[Row], replies: Mapping[str, str], policy: str, **keys: object) -> RunResult:
    """A run over these documents with the same model."""

    def answer(questions: Sequence[Question]) -> Iterator[Heard]:
        for at, one in enumerate(questions):
            assert isinstance(one.request, Generate)
            yield Heard(at, replies.get(one.request.prompt.split()[-1], ""))

    models = MODELS.set("reciter", Backend(lambda args: Model("reciter", "reciter", answer), "by heart"))
    folder.mkdir(exist_ok=True)
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = {key: keys.pop(key) for key in ("samples", "trust") if key in keys}
    config = {
        "task": "t",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(folder / "docs.jsonl")}},
        "test_split": "test",
        "doc_to_text": "q",
        "doc_to_target": "a",
        "metric_list": METRICS,
        **keys,
    }
    return run(
        model="reciter", tasks=[config], models=models, policy=policy, output_path=str(folder / policy), **chosen
    )


def test_every_row_has_a_text() -> None:
    assert [name for name in ("E49", "E50", "E51", "E52", "E53", "E54") if name not in ERRATA] == []


# --- E49: tasks of a group that is listed with changes -----------------------------------------------------------------


@pytest.mark.slow
def test_E49_all_tasks_of_a_group_are_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"question": "?", "subject": "s", "choices": list("abcd"), "answer": 0}
    splits = {name: datasets.Dataset.from_list([row] * 6) for name in ("test", "dev", "validation")}
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.DatasetDict(splits))
    (tmp_path / "g.yaml").write_text("group: five\ntask:\n  - task: mmlu\n    num_fewshot: 5\n")
    (tmp_path / "h.yaml").write_text("group: right\ntask:\n  - group: mmlu\n    num_fewshot: 5\n")
    theirs = quiet(TaskManager(include_path=str(tmp_path)).load, ["five"])
    assert len(theirs["groups"]["five"].get_all_tasks()) == 4
    assert list(theirs["tasks"]) == ["mmlu"]  # and one is run
    meant = quiet(TaskManager(include_path=str(tmp_path)).load, ["right"])["tasks"]

    index = build_index([find_library(), tmp_path])
    for spec in ("five", "right", {"task": "mmlu", "num_fewshot": 5}, {"group": "mmlu", "num_fewshot": 5}):
        ours = resolve_specs(index, [spec]).tasks
        assert sorted(ours) == sorted(meant)
        assert len(ours) == 57
        assert {config["num_fewshot"] for config in ours.values()} == {5}


def test_E49_a_tag_with_changes_changes_each_of_its_tasks(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text(f"task: {name}\ntag: both\ndataset_path: json\n")
    ours = resolve_specs(build_index([tmp_path]), [{"task": "both", "num_fewshot": 2}]).tasks
    assert {name: config["num_fewshot"] for name, config in ours.items()} == {"a": 2, "b": 2}


# --- E50: stop strings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["gpt-3.5-turbo", "qwen2.5-72b", "gpt-4-0125-preview", "llama-3.1-405b"])
def test_E50_a_5_in_a_name_costs_no_stop_strings(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    options = {"until": ["\n\n", "Question:"], "temperature": 0.0, "max_gen_toks": 9}
    messages = [{"role": "user", "content": "2+2="}]
    of = quiet(OpenAIChatCompletion, model=model)
    theirs = of._create_payload(messages, generate=True, gen_kwargs=copy.deepcopy(options), seed=1234)
    assert ("stop" in theirs, theirs["temperature"]) == (False, 1)
    kind = ServerKind("openai-chat-completions", chat=True, hosted=True)
    frozen = Generate("2+2=", options).options  # type: ignore[arg-type]
    ours = write_generation(kind, ServerSettings(model), "2+2=", frozen)
    assert (ours["stop"], ours["temperature"]) == (["\n\n", "Question:"], 0.0)
    assert {key: ours[key] for key in theirs if key != "temperature"} == {
        key: value for key, value in theirs.items() if key != "temperature"
    }
    assert write_generation(kind, ServerSettings(model, reasoning=True), "2+2=", frozen) == theirs


# --- E51: fewshot_indices ----------------------------------------------------------------------------------------------

SHOTS: list[Row] = [{"q": f"shot{n}", "a": f"s{n}"} for n in range(20)]
ASKED: list[Row] = [{"q": f"q{n}", "a": f"a{n}"} for n in range(5)]


def test_E51_fewshot_indices_choose_the_examples() -> None:
    chosen = [3, 11, 5, 8]
    config: Row = {"num_fewshot": 2, "fewshot_config": {"sampler": "default", "fewshot_indices": chosen}}

    def theirs(**more: object) -> list[str]:
        task = lm_task(ASKED, SHOTS, **{**config, **more})
        task.set_fewshot_seed(7)
        return [row["arguments"][0][0] for row in in_lm_eval(task, {})["samples"]["t"]]

    def ours(as_host: bool) -> list[str]:
        own = {"task": "t", "test_split": "test", "training_split": "train", "doc_to_text": "q", "doc_to_target": "a"}
        built = build_task({**own, **config}, {"test": ASKED, "train": SHOTS}, Asking(seed=7, as_host=as_host))
        assert any("E51" in one for one in built.warnings)
        return [one.prompt for one in built.requests if isinstance(one, Generate)]

    assert theirs() == theirs(fewshot_config={"sampler": "default"}) == ours(as_host=True)
    sampler = ContextSampler(SHOTS, rnd=7, fewshot_indices=chosen)  # lm-eval's own, told what the config says
    drawn = [sampler.sample(2) for _ in ASKED]
    right = [
        "".join(f"{one['q']} {one['a']}\n\n" for one in two) + row["q"] for two, row in zip(drawn, ASKED, strict=True)
    ]
    assert ours(as_host=False) == right
    assert ours(as_host=False) != theirs()


# --- E52: chosen documents ---------------------------------------------------------------------------------------------


def test_E52_chosen_documents_are_logged_under_their_own_numbers(tmp_path: Path) -> None:
    rows: list[Row] = [{"q": f"q{n}", "a": f"a{n}"} for n in range(9)]
    chosen = {"samples": {"t": [7, 1, 4]}}

    def logged(results: Row) -> list[tuple[object, object]]:
        return [(row["doc_id"], row["doc"]["q"]) for row in results["samples"]["t"]]

    wrong, right = [(7, "q1"), (1, "q4"), (4, "q7")], [(1, "q1"), (4, "q4"), (7, "q7")]
    assert logged(in_lm_eval(lm_task(rows), {}, **chosen)) == wrong
    assert sorted(logged(in_lm_eval(lm_task(rows), {}, evaluate, policy=POLICY, **chosen))) == sorted(wrong)
    assert logged(in_lm_eval(lm_task(rows), {}, evaluate, **chosen)) == right
    our_run(tmp_path, rows, {}, "evalcore", **chosen)
    lines = (tmp_path / "evalcore/samples_t.jsonl").read_text().splitlines()
    assert [(row["doc_id"], row["doc"]["q"]) for row in map(json.loads, lines)] == right


# --- E53: lists and texts as targets -----------------------------------------------------------------------------------

MIXED = "{{ ['a', 'b'] if q == LISTED else 'abc' }}"
REPLIES = {"q0": "a", "q1": "b"}


@pytest.mark.parametrize(
    ("listed", "wrong", "right"),
    [
        ("q0", 1.0, 0.5),  # "b" is one of the characters of "abc"
        ("q1", 0.0, 0.5),  # the list is the text "['a', 'b']"
    ],
)
def test_E53_a_list_is_several_targets_and_a_text_is_one(
    tmp_path: Path, listed: str, wrong: float, right: float
) -> None:
    rows: list[Row] = [{"q": "q0", "a": ""}, {"q": "q1", "a": ""}]
    target = MIXED.replace("LISTED", repr(listed))

    def read(doc: Row) -> object:
        return ["a", "b"] if doc["q"] == listed else "abc"

    for given in (target, read):
        theirs = in_lm_eval(lm_task(rows, doc_to_target=given), REPLIES)["results"]["t"]["exact_match,none"]
        policy = in_lm_eval(lm_task(rows, doc_to_target=given), REPLIES, evaluate, policy=POLICY)["results"]["t"]
        assert theirs == policy["exact_match,none"] == wrong
    typed = in_lm_eval(lm_task(rows, doc_to_target=read), REPLIES, evaluate)["results"]["t"]
    assert typed["exact_match,none"] == right
    for name, value in ((POLICY, wrong), ("evalcore", right)):
        done = our_run(tmp_path, rows, REPLIES, name, doc_to_target=target)
        assert done.report.task("t").get(MetricKey("exact_match")).value == value
        assert any("E53" in one for one in done.warnings)


def test_E53_a_text_that_looks_like_a_list_is_read_as_all_rows_say(tmp_path: Path) -> None:
    """lm-eval asks the first row alone: whether "[1, 2]" is two targets depends on where it stands."""

    def value(targets: Sequence[str], policy: str) -> object:
        rows: list[Row] = [{"q": f"q{n}", "a": target} for n, target in enumerate(targets)]
        said = {f"q{n}": "[1, 2]" if "[" in target else target for n, target in enumerate(targets)}
        own = tmp_path / str(len(list(tmp_path.iterdir())))  # equal prompts would get the replies of the last run
        done = our_run(own, rows, said, policy, doc_to_target="{{a}}")
        theirs = in_lm_eval(lm_task(rows, doc_to_target="{{a}}"), said)["results"]["t"]["exact_match,none"]
        assert policy == "evalcore" or done.report.task("t").get(MetricKey("exact_match")).value == theirs
        return done.report.task("t").get(MetricKey("exact_match")).value

    mixed = ["[1, 2]", "x", "[1, 2]", "y"]
    assert value(mixed, "evalcore") == value(mixed[::-1], "evalcore") == 1.0
    assert value(mixed, POLICY) == 0.5
    assert value(mixed[::-1], POLICY) == 1.0
    lists = ["['a', 'b']", "['c']"]
    assert value(lists, "evalcore") == value(lists, POLICY) == 0.0  # all are lists, and the reply is none of them


# --- E54: few-shot draws of evaluate -----------------------------------------------------------------------------------


def test_E54_few_shot_draws_are_seeded_and_recorded() -> None:
    """More, against ``simple_evaluate``, in ``tests/agreement/test_adapter_lm_eval.py``."""

    def prompts(how: Callable[..., Row]) -> tuple[str, ...]:
        results = in_lm_eval(lm_task(ASKED, SHOTS, num_fewshot=5), {}, how)
        assert how is lm_evaluate or results["evalcore"]["fewshot_seed"] == 1234
        return tuple(row["arguments"][0][0] for row in results["samples"]["t"])

    assert len({prompts(lm_evaluate) for _ in range(4)}) == 4
    assert len({prompts(evaluate) for _ in range(4)}) == 1
