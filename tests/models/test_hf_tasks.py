"""Whole tasks, by lm-eval with its own HFLM and by evalcore: the same replies, flags and numbers."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import evalcore

pytestmark = pytest.mark.models

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "tasks"
CHANGES = {"max_gen_toks: 64": "max_gen_toks: 16"}
LETTERS = """
dataset_path: json
dataset_kwargs: {{data_files: {{test: data/{data}.jsonl}}}}
output_type: multiple_choice
test_split: test
fewshot_split: test
fewshot_config: {{sampler: first_n}}
num_fewshot: {shots}
doc_to_text: "{{{{question}}}}\\n{{% for c in choices %}}{{{{ 'ABCDEFGH'[loop.index0] }}}}. {{{{ c }}}}\\n{{% endfor %}}Answer:"
doc_to_choice: [A, B, C, D]
doc_to_target: gold
metric_list: [{{metric: acc}}]
"""
MORE = {
    "letters_fixed_shots": LETTERS.format(data="nature", shots=5),
    "letters_no_shots": LETTERS.format(data="world", shots=0),
    "nature_random_shots": "include: _knowledge_template_yaml\ndataset_kwargs: {data_files: {test: data/nature.jsonl}}\n"
    "fewshot_split: test\nnum_fewshot: 5\n",
    "world_against_chance": "include: _knowledge_template_yaml\ndataset_kwargs: {data_files: {test: data/world.jsonl}}\n"
    "metric_list: [{metric: acc}, {metric: acc_mutual_info}]\n",
    "everyday_endings": "dataset_path: json\ndataset_kwargs: {data_files: {test: data/everyday.jsonl}}\n"
    "output_type: loglikelihood\ntest_split: test\ndoc_to_text: context\ndoc_to_target: '{{endings[gold]}}'\n"
    "metric_list: [{metric: perplexity, aggregation: perplexity, higher_is_better: false}, {metric: acc}]\n",
    "short_answers": "dataset_path: json\ndataset_kwargs: {data_files: {test: data/simple_questions.jsonl, "
    "examples: data/simple_examples.jsonl}}\noutput_type: generate_until\ntest_split: test\nfewshot_split: examples\n"
    'num_fewshot: 3\ndoc_to_text: "Question: {{question}}\\nAnswer:"\ndoc_to_target: answer\n'
    'generation_kwargs: {until: ["\\n", "Question:"], do_sample: false, max_gen_toks: 12}\n'
    "metric_list: [{metric: exact_match, ignore_case: true}]\n",
}
KNOWN = [f"quickstart_{name}" for name in ("nature", "world", "everyday", "one_step", "two_step", "prose")]
TASKS = [*KNOWN, *MORE]
OPTIONS: dict[str, dict[str, Any]] = {
    "hf": {"device": "cpu", "batch_size": 4},
    "vllm": {"max_model_len": 1024, "enforce_eager": True, "gpu_memory_utilization": 0.2},  # of the host's memory here
}
TALK = ["quickstart_one_step", "nature_random_shots"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tasks(tmp_path_factory.mktemp("tasks") / "tasks")


def make_tasks(made: Path) -> Path:
    """The quickstart's tasks, shorter, and others on its data."""
    shutil.copytree(QUICKSTART, made)
    (made / "simple_questions.yaml").unlink()  # its replies are drawn, and it has a key of evalcore's own
    (made / "quickstart.yaml").unlink()
    template = made / "_arithmetic_template_yaml"
    for old, new in CHANGES.items():
        assert old in template.read_text()
        template.write_text(template.read_text().replace(old, new))
    for name, text in MORE.items():
        (made / f"{name}.yaml").write_text(f"task: {name}\n{text}")
    return made


@pytest.fixture(scope="module")
def theirs(small_model: Path) -> Any:
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=str(small_model), dtype="float32", device="cpu", batch_size=4)


def ask_lm_eval(theirs: Any, folder: Path, tasks: list[str], **given: Any) -> dict[str, Any]:
    import datasets
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    manager, start = TaskManager(include_path=str(folder), include_defaults=False), Path.cwd()
    cache, datasets.config.HF_DATASETS_CACHE = datasets.config.HF_DATASETS_CACHE, folder.parent / "datasets"
    try:
        os.chdir(folder)  # lm-eval reads data_files from the working directory
        with contextlib.redirect_stderr(io.StringIO()):
            return simple_evaluate(model=theirs, tasks=tasks, task_manager=manager, bootstrap_iters=0, **given)
    finally:
        os.chdir(start)
        datasets.config.HF_DATASETS_CACHE = cache


def ask_evalcore(
    model: Path, folder: Path, out: Path, tasks: list[str], backend: str = "hf", **given: Any
) -> tuple[Mapping[str, Any], dict[str, list[Any]]]:
    done = evalcore.run(
        model=backend,
        model_args={"pretrained": str(model), "dtype": "float32", **OPTIONS[backend]},
        tasks=tasks,
        include_path=str(folder),
        bootstrap_iters=0,
        policy="lm-eval-0.4.13",
        log_samples=True,
        output_path=str(out),
        **given,
    )
    samples = {
        path.stem.removeprefix("samples_"): [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in out.glob("samples_*.jsonl")
    }
    return done.results, samples


def assert_same_replies(mine: list[Any], theirs: list[Any]) -> int:
    """Texts and flags are equal, log-likelihoods to 1e-4; how many replies there were."""
    ours = {(row["doc_id"], row["filter"]): row["resps"] for row in mine}
    count = 0
    for row in theirs:
        for one, other in zip(ours[row["doc_id"], row["filter"]], row["resps"], strict=True):
            known, found = other[0], one[0]
            if isinstance(known, str):
                assert found == known
            elif isinstance(known, tuple | list):
                assert float(found[0]) == pytest.approx(float(known[0]), rel=1e-4)
                assert str(found[1]) == str(known[1])
            else:
                assert float(found if not isinstance(found, list) else found[0]) == pytest.approx(
                    float(known), rel=1e-4
                )
            count += 1
    return count


def assert_same_numbers(mine: Mapping[str, Any], theirs: Mapping[str, Any], tasks: list[str]) -> None:
    for task in tasks:
        known = {key: value for key, value in theirs["results"][task].items() if isinstance(value, float)}
        assert known
        assert {key: mine["results"][task][key] for key in known} == pytest.approx(known, rel=1e-4), task


def test_twelve_tasks_have_the_numbers_of_lm_eval(small_model: Path, theirs: Any, folder: Path, tmp_path: Path) -> None:
    assert len(TASKS) == 12
    known = ask_lm_eval(theirs, folder, TASKS, limit=10)
    results, samples = ask_evalcore(small_model, folder, tmp_path / "run", TASKS, limit=10)
    assert_same_numbers(results, known, TASKS)
    assert sum(assert_same_replies(samples[task], known["samples"][task]) for task in TASKS) > 300


def test_a_chat_of_several_turns_has_the_numbers_of_lm_eval(
    small_model: Path, theirs: Any, folder: Path, tmp_path: Path
) -> None:
    given = {"apply_chat_template": True, "fewshot_as_multiturn": True, "system_instruction": "Be brief.", "limit": 3}
    known = ask_lm_eval(theirs, folder, TALK, **given)
    results, samples = ask_evalcore(small_model, folder, tmp_path / "run", TALK, **given)
    assert_same_numbers(results, known, TALK)
    assert all(assert_same_replies(samples[task], known["samples"][task]) for task in TALK)
