"""Requests equal lm-eval's, character by character, in every form a task can take."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import random
from collections.abc import Sequence
from functools import cache

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("lm_eval")

import datasets
from hypothesis import given
from hypothesis import strategies as st
from lm_eval.api.samplers import ContextSampler, get_sampler
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator_utils import get_sample_size

from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.core.records.request import Generate, LogLikelihood, Request, Rolling
from evalcore.shell.prompts.build import build_task
from evalcore.shell.prompts.fewshot import draw_shots
from evalcore.shell.prompts.ready_task import Asking
from evalcore.shell.prompts.settings import Shots, TaskSettings

logging.getLogger("lm_eval").setLevel(logging.CRITICAL)
datasets.disable_progress_bars()

Row = dict[str, object]
WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "joule", "karst", "larch"]


def rows(count: int, seed: int) -> list[Row]:
    """Documents with a column of every kind that templates read."""
    rnd = random.Random(seed)
    return [
        {
            "question": f" {rnd.choice(WORDS)} and {rnd.choice(WORDS)}{rnd.choice(['?', '.', ' ', ''])}",
            "choices": rnd.sample(WORDS, 4),
            "labelled": {"text": rnd.sample(WORDS, 3), "label": ["A", "B", "C"]},
            "answer": rnd.randrange(4),
            "answers": rnd.sample(WORDS, rnd.randint(1, 3)),
            "gold": rnd.choice(WORDS),
            "one": rnd.choice(WORDS) + " it's",
            "two": rnd.choice(WORDS) + ' "q"',
            "label": rnd.choice(["0", "1"]),
            "number": rnd.randrange(100),
            "ratio": rnd.random(),
            "maybe": rnd.choice([None, "x"]),
            "group": f"g{rnd.randrange(3)}",
        }
        for _ in range(count)
    ]


SPLITS = {"train": rows(30, 1), "validation": rows(12, 2), "test": rows(25, 3)}
SPLITS["test"].append(dict(SPLITS["test"][3]))  # a duplicate, which lm-eval draws again for


@cache
def build_datasets() -> dict[str, datasets.Dataset]:
    """The splits as lm-eval has them; nobody changes a data set, and its fingerprint takes long."""
    return {name: datasets.Dataset.from_list(docs) for name, docs in SPLITS.items()}


def chat(messages: Sequence[Row], add_generation_prompt: bool = True) -> str:
    return json.dumps([messages, add_generation_prompt], ensure_ascii=False)


def theirs(config: Row, splits: dict[str, list[Row]], asking: Asking) -> tuple[list[Row], Row]:
    """lm-eval's requests and its config, by its own code for what a run overrides."""
    data = build_datasets() if splits is SPLITS else {name: datasets.Dataset.from_list(splits[name]) for name in splits}
    given = {**config, "dataset_path": "none", "custom_dataset": lambda **_: data}
    for key in ("generation_kwargs", "fewshot_config"):
        if key in given:
            given[key] = dict(given[key])
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        task = ConfigurableTask(config=given)
        if task.get_config("output_type") == "generate_until" and asking.gen_kwargs is not None:
            task.set_config(key="generation_kwargs", value=thaw_dict(asking.gen_kwargs), update=True)
        if asking.predict_only:
            task.override_metric(metric_name="bypass")
        if asking.num_fewshot is not None:
            if task.get_config("num_fewshot") != 0:
                task.set_config(key="num_fewshot", value=asking.num_fewshot)
        elif task.get_config("num_fewshot") is None:
            task.set_config(key="num_fewshot", value=0)
        task.set_fewshot_seed(seed=asking.seed)
        task.build_all_requests(
            limit=get_sample_size(task, asking.limit),
            samples=list(asking.samples) if asking.samples else None,
            system_instruction=asking.system_instruction,
            apply_chat_template=asking.chat is not None,
            fewshot_as_multiturn=asking.multiturn,
            chat_template=chat if asking.chat is not None else None,
        )
    return [
        {"kind": one.request_type, "args": list(one.args), "idx": one.idx, "repeats": one.repeats}
        for one in task.instances
    ], task.dump_config()


def ours(config: Row, splits: dict[str, list[Row]], asking: Asking) -> tuple[list[Row], Row]:
    built = build_task({**config, "dataset_path": "none"}, splits, asking)
    places = zip(built.requests, built.asked.idxs.ints.tolist(), built.asked.repeats.ints.tolist(), strict=True)
    return [{**written(request), "idx": idx, "repeats": repeats} for request, idx, repeats in places], thaw_dict(
        built.config
    )


def written(request: Request) -> Row:
    match request:
        case LogLikelihood(context=context, continuation=continuation):
            return {"kind": "loglikelihood", "args": [context, continuation]}
        case Rolling(text=text):
            return {"kind": "loglikelihood_rolling", "args": [text]}
        case Generate(prompt=prompt, options=given):
            return {"kind": "generate_until", "args": [prompt, thaw(given)]}


def shuffled_text(doc: Row) -> str:
    return f"{doc['question'].strip()} ({', '.join(reversed(doc['choices']))})"


def longest_first(dataset: datasets.Dataset) -> datasets.Dataset:
    made = dataset.map(lambda doc: {"query": doc["question"].strip() + "!"})
    return made.select(sorted(range(len(made)), key=lambda i: -len(made[i]["query"])))


class EveryOther(ContextSampler):
    def sample(self, n: int, eval_doc: Row | None = None, df: object = None, **kwargs: object) -> list[Row]:
        return [self.rnd.choice(self.df[::2]) for _ in range(n)]


CHOICE: Row = {
    "output_type": "multiple_choice",
    "doc_to_text": "Q:{{question}}\nA:",
    "doc_to_choice": "choices",
    "doc_to_target": "answer",
}
TEXT: Row = {
    "output_type": "generate_until",
    "doc_to_text": "Question: {{question|trim}}\nAnswer:",
    "doc_to_target": "gold",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 12},
}
TRAIN: Row = {"training_split": "train", "test_split": "test", "fewshot_split": "train"}
SAME: Row = {"test_split": "test", "fewshot_split": "test"}
ONE: Row = {"validation_split": "validation"}

FORMS: dict[str, Row] = {
    "choices by column": {**CHOICE, **TRAIN},
    "only a validation split": {**CHOICE, **ONE},
    "no few-shot split": {**CHOICE, "training_split": "train", "test_split": "test"},
    "validation and test": {**CHOICE, "validation_split": "validation", "test_split": "test"},
    "examples from the same split": {**CHOICE, **SAME},
    "first n of the same split": {**CHOICE, **SAME, "fewshot_config": {"sampler": "first_n"}},
    "first n": {**CHOICE, **TRAIN, "fewshot_config": {"sampler": "first_n", "split": "validation"}},
    "choice list": {**CHOICE, **TRAIN, "doc_to_choice": ["A", "B", "C", "D"]},
    "choice mapping": {**CHOICE, **TRAIN, "doc_to_choice": {0: "no", 1: "yes"}, "doc_to_target": "{{label}}"},
    "choice template": {**CHOICE, **TRAIN, "doc_to_choice": "{{[one, two]}}", "doc_to_target": "{{label|int}}"},
    "nested choices": {**CHOICE, **TRAIN, "doc_to_choice": "{{labelled.text}}", "doc_to_target": "{{answer % 3}}"},
    "template with logic": {
        **CHOICE,
        **TRAIN,
        "doc_to_text": "{% for c in choices %}{{loop.index}}. {{c}}\n{% endfor %}{{question.strip()}}{% if maybe %}!{% endif %}",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "{{choices[answer]}}",
    },
    "boolean as gold": {
        **CHOICE,
        **TRAIN,
        "doc_to_choice": ["no", "yes"],
        "doc_to_target": lambda doc: doc["number"] > 50,
    },
    "gold as text": {**CHOICE, **TRAIN, "doc_to_target": "{{choices[answer]}}"},
    "several targets of choices": {**CHOICE, **TRAIN, "doc_to_target": "{{[choices[0], choices[2]]}}"},
    "mutual information": {
        **CHOICE,
        **TRAIN,
        "metric_list": [
            {"metric": "acc", "aggregation": "mean", "higher_is_better": True},
            {"metric": "acc_mutual_info", "aggregation": "mean", "higher_is_better": True},
        ],
    },
    "several inputs": {
        "output_type": "multiple_choice",
        "doc_to_text": "{{label}}",
        "doc_to_choice": "{{[one + ' is', two + ' is']}}",
        "doc_to_target": "gold",
        **TRAIN,
    },
    "several inputs by function": {
        "output_type": "multiple_choice",
        "doc_to_text": lambda doc: doc["answer"] % 2,
        "doc_to_choice": lambda doc: [doc["one"], doc["two"]],
        "doc_to_target": lambda doc: doc["gold"],
        "target_delimiter": "",
        **TRAIN,
    },
    "delimiters": {**CHOICE, **TRAIN, "target_delimiter": "", "fewshot_delimiter": "\n###\n"},
    "description": {**CHOICE, **TRAIN, "description": "About {{group}}.\n\n"},
    "description is a column": {**CHOICE, **TRAIN, "description": "group"},
    "generation": {**TEXT, **TRAIN},
    "generation defaults": {**{k: v for k, v in TEXT.items() if k != "generation_kwargs"}, **TRAIN},
    "no until": {**TEXT, **TRAIN, "generation_kwargs": {"temperature": "0.5", "do_sample": True}, "repeats": 3},
    "several targets": {**TEXT, **TRAIN, "doc_to_target": "answers"},
    "several targets by template": {**TEXT, **TRAIN, "doc_to_target": "{{answers}}"},
    "bracketed target": {**TEXT, **TRAIN, "doc_to_target": "[{{gold}}]"},
    "number as target": {**TEXT, **TRAIN, "doc_to_target": "{{number}}"},
    "prefix": {**TEXT, **TRAIN, "gen_prefix": "The answer is"},
    "prefix is a template": {**TEXT, **SAME, "gen_prefix": "{{group}}: "},
    "prefix is a column": {**TEXT, **TRAIN, "gen_prefix": "group"},
    "prefix of choices": {**CHOICE, **TRAIN, "gen_prefix": "It is"},
    "prefix with a space": {**CHOICE, **TRAIN, "gen_prefix": "It is "},
    "function": {**TEXT, **TRAIN, "doc_to_text": shuffled_text, "doc_to_target": lambda doc: doc["gold"]},
    "process_docs": {**TEXT, **TRAIN, "process_docs": longest_first, "doc_to_text": "query"},
    "process_docs of examples": {
        **TEXT,
        **TRAIN,
        "fewshot_config": {"process_docs": lambda ds: ds.select(range(7))},
    },
    "own examples": {
        **TEXT,
        "test_split": "test",
        "fewshot_config": {
            "sampler": "first_n",
            "samples": [{"question": f"q{i}", "gold": f"g{i}"} for i in range(6)],
        },
    },
    "own examples by function": {
        **TEXT,
        "test_split": "test",
        "fewshot_config": {"samples": lambda: [{"question": f"q{i}", "gold": f"g{i}"} for i in range(9)]},
    },
    "own examples of a validation task": {
        **TEXT,
        **ONE,
        "fewshot_config": {"samples": [{"question": f"q{i}", "gold": f"g{i}"} for i in range(9)]},
    },
    "example style": {
        **CHOICE,
        **TRAIN,
        "fewshot_config": {
            "doc_to_text": "Example {{question}}",
            "doc_to_target": "gold",
            "doc_to_choice": None,
            "target_delimiter": " -> ",
            "fewshot_delimiter": "\n",
            "gen_prefix": "well,",
        },
    },
    "indices": {**TEXT, **TRAIN, "fewshot_config": {"fewshot_indices": [3, 1, 4, 1, 5, 9]}},
    "sampler class": {**TEXT, **TRAIN, "fewshot_config": {"sampler": EveryOther}},
    "empty target": {**TEXT, **TRAIN, "doc_to_target": "{{maybe or ''}}"},
    "empty first target": {**TEXT, **TRAIN, "doc_to_target": "{{['', 'nobody']}}"},
    "empty first target behind a prefix": {
        **TEXT,
        **TRAIN,
        "doc_to_target": "{{[maybe or '', 'nobody']}}",
        "gen_prefix": "The answer is",
    },
    # Of the documents that are asked about, the first may have no empty choice: lm-eval looks at its first characters.
    "empty choice": {
        **CHOICE,
        **TRAIN,
        "doc_to_target": "{{label|int}}",
        "fewshot_config": {"doc_to_choice": ["", "yes"]},
    },
    "empty choice behind a prefix": {
        **CHOICE,
        **TRAIN,
        "doc_to_target": "{{label|int}}",
        "fewshot_config": {"doc_to_choice": "{{[maybe or '', '']}}", "gen_prefix": "It is"},
    },
    "empty choice as text": {
        **CHOICE,
        **TRAIN,
        "doc_to_target": "{{maybe or ''}}",
        "fewshot_config": {"doc_to_choice": ["", "x"]},
    },
    "zero in the config": {**TEXT, **TRAIN, "num_fewshot": 0},
    "two in the config": {**TEXT, **TRAIN, "num_fewshot": 2},
    "likelihood": {
        "output_type": "loglikelihood",
        "doc_to_text": "{{question.split(' ')[:-1]|join(' ')}}",
        "doc_to_target": "{{' '+question.split(' ')[-1]}}",
        "test_split": "test",
    },
    "rolling": {
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{question|replace('a', 'aa')|regex_replace('e+', '_')}}",
        "test_split": "test",
        "num_fewshot": 0,
    },
    "line ends": {**TEXT, **TRAIN, "doc_to_text": "a\r\nb{{question}}\rc\n", "description": "x\r\ny\n"},
    "comment": {**TEXT, **TRAIN, "doc_to_text": "{# no #}{{question}}{% raw %}{{x}}{% endraw %}"},
    "floats and nulls": {**TEXT, **TRAIN, "doc_to_text": "{{ratio}} {{maybe}} {{number}} {{choices}} {{labelled}}"},
}


@pytest.mark.parametrize("shots", [None, 5, *(pytest.param(shots, marks=pytest.mark.slow) for shots in (0, 1))])
@pytest.mark.parametrize("form", FORMS)
def test_requests_and_config_are_lm_evals(form: str, shots: int | None) -> None:
    config: Row = {"task": "own", **FORMS[form]}
    asking = Asking(num_fewshot=shots, as_host=True)  # fewshot_indices has no effect there (E51)
    wanted, full = theirs(config, SPLITS, asking)
    got, filled = ours(config, SPLITS, asking)
    assert got == wanted
    assert_same_config(filled, full)


RUNS: dict[str, Asking] = {
    "a limit": Asking(limit=7),
    "a share": Asking(limit=0.3),
    "samples": Asking(samples=(2, 5, 11)),
    "another seed": Asking(seed=99, num_fewshot=3),
    "system": Asking(system_instruction="Be brief.", num_fewshot=2),
    "chat": Asking(chat=chat),
    "chat with examples": Asking(chat=chat, num_fewshot=3),
    "chat in turns": Asking(chat=chat, multiturn=True, num_fewshot=3, system_instruction="Be brief."),
    "generation options": Asking(gen_kwargs={"temperature": 1, "until": ["x"], "top_p": 0.5}),
    "answers only": Asking(predict_only=True, num_fewshot=1),
}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    "form",
    [
        "examples from the same split",
        "several inputs",
        "mutual information",
        pytest.param("generation", marks=pytest.mark.slow),
        pytest.param("description", marks=pytest.mark.slow),
        pytest.param("prefix", marks=pytest.mark.slow),
        "prefix of choices",
        pytest.param("prefix with a space", marks=pytest.mark.slow),
        "example style",
        "likelihood",
        pytest.param("two in the config", marks=pytest.mark.slow),
        pytest.param("empty target", marks=pytest.mark.slow),
        "empty first target",
        "empty choice behind a prefix",
    ],
)
def test_runs_change_requests_as_in_lm_eval(form: str, run: str) -> None:
    config: Row = {"task": "own", **FORMS[form]}
    wanted, full = theirs(config, SPLITS, RUNS[run])
    got, filled = ours(config, SPLITS, RUNS[run])
    assert got == wanted
    assert_same_config(filled, full)


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.lists(st.integers(0, 4), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(0, 9),
    st.sampled_from(["default", "first_n"]),
    st.booleans(),
)
def test_draws_are_lm_evals(pool: list[int], asked: list[int], count: int, seed: int, name: str, overlap: bool) -> None:
    """Also from pools with many equal documents, where lm-eval draws again, or gives up."""
    docs = [{"q": one} for one in pool]
    sampler = get_sampler(name)(docs, rnd=None).set_rnd(seed)
    shots = Shots(sampler=name, split="test" if overlap else "train")
    draw = draw_shots(TaskSettings(task="t", test_split="test", num_fewshot=count, fewshot_config=shots), docs, seed)
    for one in asked:
        doc = {"q": one}
        try:
            wanted = list(sampler.sample(n=count, eval_doc=doc if overlap else None))
        except (ValueError, AssertionError):
            with pytest.raises(EvalError):
                draw(doc)
            return
        assert draw(doc) == wanted


def assert_same_config(filled: Row, full: Row) -> None:
    """Key by key; what lm-eval leaves as a function deep down has no fixed text there, and its source here."""
    full = {key: value for key, value in full.items() if key != "custom_dataset"}
    assert list(filled) == list(full)
    for key, value in full.items():
        if key != "fewshot_config":
            assert filled[key] == value, key
            continue
        assert list(filled[key]) == list(value)
        for name, inner in value.items():
            assert isinstance(filled[key][name], str) if callable(inner) else filled[key][name] == inner, name
