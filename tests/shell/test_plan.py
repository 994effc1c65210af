"""Run configs: lm-eval's as they are, located errors, named warnings, flags over the file."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from small_tasks import evalcore_here, write_tasks

from evalcore.core.aggregate.inference import Inference
from evalcore.core.records.errors import EvalError
from evalcore.core.stats.influence import ERROR_FORMS
from evalcore.core.stats.intervals import INTERVALS
from evalcore.shell.cli.flags import add_flags, read_flags, spell_keys
from evalcore.shell.config.keys import KEYS
from evalcore.shell.config.plan import Plan, list_choices, make_plan, read_config
from evalcore.shell.config.values import parse_pairs, parse_value
from evalcore.shell.run.close import inference_of

LEAST = {"model": "dummy", "tasks": ["a"]}


def test_every_key_lm_eval_knows_is_known() -> None:
    config = pytest.importorskip("lm_eval.config.evaluate_config")
    theirs = {field.name for field in fields(config.EvaluatorConfig)} - {"config"}
    assert theirs - KEYS.keys() == set()


def test_every_key_that_has_an_effect_is_a_field_of_the_plan() -> None:
    assert {name for name, key in KEYS.items() if not key.ignored} == set(Plan.__struct_fields__)


def test_a_full_lm_eval_config_is_accepted_as_it_is(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        "model: local-completions\nmodel_args:\n  model: m\n  num_concurrent: 2\ntasks:\n  - gsm8k\n  - arc_easy,piqa\n"
        "num_fewshot: 5\nbatch_size: 4\nmax_batch_size: 8\ndevice: cuda:0\nlimit: 0.5\nuse_cache: /tmp/c\n"
        "gen_kwargs: temperature=0.8,stop=['a']\nwandb_args: {project: p}\nseed: [0, 1, 2, 3]\nmetadata: {a: 1}\n"
        "log_samples: true\noutput_path: out\nsystem_instruction: hi\napply_chat_template: true\n"
    )
    plan, warnings = read_config(config, {})
    assert plan.tasks == ("gsm8k", "arc_easy", "piqa")
    assert plan.gen_kwargs == {"temperature": 0.8, "stop": ("a",)}
    assert plan.seed == (0, 1, 2, 3)
    assert [one.split(" ")[0] for one in warnings] == ["wandb_args"]
    assert (plan.batch_size, plan.max_batch_size, plan.device) == (4, 8, "cuda:0")


def test_every_interval_can_be_asked_for() -> None:
    assert set(list_choices()["ci"]) == set(INTERVALS)
    assert make_plan(LEAST).plan.ci == Inference().interval
    for name in INTERVALS:
        assert Inference(interval=make_plan({**LEAST, "ci": name}).plan.ci).interval == name
        parser = argparse.ArgumentParser()
        add_flags(parser)
        assert read_flags(parser.parse_args(["--ci", name])) == {"ci": name}


def test_every_form_of_errors_can_be_asked_for() -> None:
    assert set(list_choices()["stderr"]) == set(ERROR_FORMS)
    assert make_plan(LEAST).plan.stderr == Inference().stderr == "cr2"
    for name in ERROR_FORMS:
        assert inference_of(make_plan({**LEAST, "stderr": name}).plan).form == ERROR_FORMS[name]
        parser = argparse.ArgumentParser()
        add_flags(parser)
        assert read_flags(parser.parse_args(["--stderr", name])) == {"stderr": name}
    with pytest.raises(EvalError, match="cr1"):
        make_plan({**LEAST, "stderr": "cr3"})
    with pytest.raises(EvalError, match="cr2"):
        Inference(stderr="cr3")


def test_flags_go_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(yaml.safe_dump({**LEAST, "limit": 10, "model_args": {"model": "m"}}))
    plan, _ = read_config(config, {"limit": 3, "model_args": {"path": "p"}})
    assert (plan.limit, plan.model_args) == (3, {"path": "p"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "model: m\ntasks: [a]\nnum_fewshots: 3",
            r"unknown key 'num_fewshots'; did you mean 'num_fewshot'.*run.yaml:3",
        ),
        ("model: m\ntasks: [a]\nlimit: many", r"limit: Expected `float \| null`, got `str` - at .*run.yaml:3"),
        ("tasks: [a]", "expected model in .*run.yaml"),
        ("model: m", "expected tasks in .*run.yaml"),
        ("- a", "expected a mapping"),
        ("model: m\ntasks: a\nlimit: 1\nsamples: {a: [1]}", "limit or samples"),
        ("model: m\ntasks: a\nfewshot_as_multiturn: true", "needs apply_chat_template"),
        ("model: m\ntasks: a\npolicy: helm", "unknown policy .helm.*lm-eval-0.4.13 - at .*run.yaml:3"),
        ("model: m\ntasks: a\nci: wilsn", "unknown ci .wilsn.; did you mean .wilson.* - at .*run.yaml:3"),
        ("model: m\ntasks: a\nci: [t]", "unknown ci .*run.yaml:3"),
        ("model: m\ntasks: a\nseed: [1, 2]", "expected seed as one integer or four"),
        ("model: m\ntasks: a\nlimit: -1", "limit to be a number above 0"),
        ("model: m\nmodel: n\ntasks: a", "given twice"),
        ("model: !!python/object:os.system m\ntasks: a", "is not read"),
        ("model: [", "not YAML"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(text)
    with pytest.raises(EvalError, match=message):
        read_config(config, {})


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"ci": "wilsn"}, "unknown ci .wilsn.* - at the flags or keys given$"),
        ({"seed": [1, 2]}, "expected seed .* - at the flags or keys given$"),
        ({"limit": 0}, "expected limit to be a number above 0, got 0 - at the flags or keys given$"),
        ({"confidence": 1}, "expected confidence to be between 0 and 1, got 1 - at the flags or keys given$"),
        ({"ci": "wilsn", "policy": "evalcore"}, "unknown ci .wilsn.* - at the flags or keys given$"),
        ({"ci": "t"}, "unknown policy .helm.* - at .*run.yaml:4$"),
        ({"ci": "wilsn", "limit": 3}, "unknown policy .helm.* - at .*run.yaml:4$"),
    ],
)
def test_what_is_wrong_with_a_flag_is_not_said_of_the_file(
    tmp_path: Path, flags: dict[str, object], message: str
) -> None:
    config = tmp_path / "run.yaml"
    own = "policy: helm" if "yaml" in message or "policy" in flags else "seed: 1"
    config.write_text(f"model: m\ntasks: a\nci: exact\n{own}\n")
    with pytest.raises(EvalError, match=message):
        read_config(config, flags)


def test_a_missing_file_is_an_error_not_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="cannot read the run config"):
        read_config(tmp_path / "no.yaml", {})


@pytest.mark.parametrize(
    ("given", "seeds"), [(7, (7, 7, 7, 7)), ([1, 2, 3], (1, 2, 3, 1234)), (None, (0, 1234, 1234, 1234))]
)
def test_seeds_as_lm_eval_reads_them(given: object, seeds: tuple[int, ...]) -> None:
    assert make_plan({**LEAST, "seed": given}).plan.seed == seeds


def test_samples_from_a_file(tmp_path: Path) -> None:
    chosen = tmp_path / "samples.json"
    chosen.write_text('{"a": [0, 3]}')
    assert make_plan({**LEAST, "samples": str(chosen)}).plan.samples == {"a": (0, 3)}


def parse(line: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", nargs="?")
    add_flags(parser)
    return read_flags(parser.parse_args(spell_keys(line)))


def test_flags_in_lm_evals_spelling_and_ours() -> None:
    theirs = parse(
        [
            "--model_args",
            "a=1,b=x",
            "--num_fewshot",
            "5",
            "--tasks",
            "p,q",
            "r",
            "--gen_kwargs",
            "temperature=0.5",
            "-L",
            "0.1",
        ]
    )
    ours = parse(
        [
            "--model-args",
            "a=1",
            "b=x",
            "--num-fewshot",
            "5",
            "--tasks",
            "p,q",
            "r",
            "--gen-kwargs",
            "temperature=0.5",
            "--limit",
            "0.1",
        ]
    )
    assert theirs == ours
    assert theirs["model_args"] == {"a": 1, "b": "x"}


def test_a_flag_that_needs_no_value_does_not_eat_the_config() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", nargs="?")
    add_flags(parser)
    given = parser.parse_args(["--predict_only", "run.yaml"])
    assert read_flags(given) == {"predict_only": True}
    assert given.config == "run.yaml"


@pytest.mark.parametrize(
    "line",
    [
        ["--limit", "x"],
        ["--num_fewshot", "1.5"],
        ["--model_args", "a"],
        ["--data", "{a"],
        ["--data", '{"a":' + "[" * 100_000],
        ["--samples", '{"a":' + "[" * 100_000],
        ["--prices", '{"a":' + "[" * 100_000],
        ["--max_requests", "9" * 5000],  # which Python reads as no number
    ],
)
def test_a_wrong_flag_is_a_message(line: list[str]) -> None:
    with pytest.raises(EvalError, match="expected"):
        parse(line)


@pytest.mark.parametrize("text", ["1", "0.5", "1e-3", "true", "None", "a", "[1, 2]", "'x'", "gpt-4", "", "-1", "1_0"])
def test_values_read_as_lm_eval_reads_them(text: str) -> None:
    utils = pytest.importorskip("lm_eval._cli.utils")
    if text == "1_0":
        assert parse_value(text) == "1_0"  # lm-eval makes it 10.0, a number nobody wrote
    elif text == "None":
        assert parse_value(text) is None
    else:
        assert parse_value(text) == utils.handle_cli_value_string(text)


def test_pairs_refuse_what_is_no_pair() -> None:
    with pytest.raises(EvalError, match="key=value"):
        parse_pairs("a=1,b", "model_args")


def test_a_run_makes_the_intervals_asked_for_and_says_so(tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks")
    flags = ("--model", "dummy", "--tasks", "small", "--include_path", "tasks", "--output_path", "out")
    recipes = {}
    for name in ("wilson", "bca"):
        done = evalcore_here(tmp_path, "run", *flags, "--ci", name, "--overwrite")
        assert done.returncode == 0, done.stderr
        extras = json.loads((tmp_path / "out/results.json").read_text())["evalcore"]
        assert extras["ci"] == name
        recipes[name] = re.findall(r"\|ci:([^|]*)\|", json.dumps(extras))
    assert set(recipes["wilson"]) == {"wilson-t", "t-hall", "t-hall-log"}
    assert "bca(draws=2000,seed=0)" in recipes["bca"]
    assert not {"t", "t-log", "t-hall", "t-hall-log"} & set(recipes["bca"])
