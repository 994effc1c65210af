"""The run folder: whole files, strict JSON, safe names, no secrets, nothing that differs between two runs."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_output_rows import small_report, text_built

from evalcore import EvalError
from evalcore.core.lm_eval.sample_log import DocumentRows, join_rows
from evalcore.shell.output.files import plain_lines
from evalcore.shell.output.files.environment import describe_run, find_commit
from evalcore.shell.output.files.plain_lines import list_lines
from evalcore.shell.output.files.results import VARYING, RunFacts, build_results, find_model_name
from evalcore.shell.output.files.run_files import (
    MAY_HOLD_SECRETS,
    DocumentLines,
    name_samples,
    write_config,
    write_results,
    write_run,
    write_samples,
)
from evalcore.shell.output.files.sample_lines import list_documents
from evalcore.shell.run.write import write_task
from evalcore.shell.safety.replacement import replace_file
from evalcore.shell.safety.safe_text import slug, visible
from evalcore.shell.safety.secrets import HIDDEN, redact
from evalcore.shell.safety.strict_json import dump_json, encode_json

FACTS = RunFacts(model="dummy", model_args={"model": "org/m", "api_key": "CANARY"})
CHARS = st.characters(codec=None, categories=None)
TEXTS = st.text(CHARS, max_size=40)
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def strictly(text: str) -> object:
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


# --- results.json -------------------------------------------------------------------------------------------------


def test_results_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    one = write_results(tmp_path / "a", build_results(small_report(), FACTS, warnings=["w"])).read_bytes()
    two = write_results(tmp_path / "b", build_results(small_report(), FACTS, warnings=["w"])).read_bytes()
    assert one == two


def test_results_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_output_files import *\n"
        "sys.stdout.write(dump_json(build_results(small_report(), FACTS)))"
    )
    here = str(Path(__file__).parent)
    outs = {
        subprocess.run(
            [sys.executable, "-c", code, here],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outs) == 1
    assert len(outs.pop()) > 1000


def test_what_differs_between_runs_is_null_there_and_told_in_run_json(tmp_path: Path) -> None:
    results = strictly(write_results(tmp_path, build_results(small_report(), FACTS)).read_text("ascii"))
    run = strictly(write_run(tmp_path, describe_run(100.0, 103.5, asked=4)).read_text("ascii"))
    assert all(results[key] is None for key in VARYING)
    assert set(VARYING) <= set(run)
    assert (run["total_evaluation_time_seconds"], run["asked"]) == ("3.5", 4)
    assert results["evalcore"]["differs_between_runs"]["keys"] == list(VARYING)


def test_results_tell_what_was_lost_and_why() -> None:
    results = build_results(small_report(), FACTS)
    (lost,) = results["evalcore"]["unscored"]
    assert (lost["task"], lost["documents"]) == ("texts", 3)
    assert results["evalcore"]["estimates"]["texts"]["exact_match,raw"]["n_failed"] == 3


def test_results_hold_no_secret() -> None:
    facts = RunFacts(
        model="local-completions",
        model_args={
            "model": "m",
            "base_url": "https://user:CANARY@host/v1?token=CANARY",
            "header": {"Authorization": "Bearer CANARY", "X-Other": "CANARY"},
            "nested": [{"password": "CANARY"}],
        },
        gen_kwargs="temperature=0,api_key=CANARY",
    )
    configs = {"choices": {"task": "choices", "metadata": {"api_key": "CANARY", "version": 1}}}
    results = build_results(small_report(), facts, configs=configs, warnings=["sent CANARY"], secrets=["CANARY"])
    assert "CANARY" not in dump_json(results)
    assert results["config"]["model_args"]["header"] == {"Authorization": HIDDEN, "X-Other": HIDDEN}
    assert results["configs"]["choices"]["metadata"]["version"] == 1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"pretrained": "a/b", "peft": "c"}, "c"),
        ("pretrained=a/b,dtype=auto", "a/b"),
        ({}, "kind"),
        ("", "kind"),
    ],
)
def test_a_model_goes_by_the_name_in_its_arguments(given: object, named: str) -> None:
    assert find_model_name(RunFacts(model="kind", model_args=given)) == named


# --- secrets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["api_key", "API-KEY", "apikey", "Authorization", "hf_token", "token", "password", "headers", "openai_api_key", "client_secret"])  # fmt: skip
def test_telling_keys_are_redacted(key: str) -> None:
    assert redact({key: "xyz"}) == {key: HIDDEN}
    assert redact({"a": [{key: 12345}]}) == {"a": [{key: HIDDEN}]}
    assert redact({key: None}) == {key: None}
    assert "xyz" not in str(redact(f"model=m,{key}=xyz"))


@pytest.mark.parametrize("key", ["model", "max_tokens", "bos_token", "add_bos_token", "tokenizer", "tokenized_requests", "eos_token", "num_tokens", "monkey", "keyword"])  # fmt: skip
def test_harmless_keys_are_not(key: str) -> None:
    assert redact({key: "xyz"}) == {key: "xyz"}


@pytest.mark.parametrize("secret", ["sk-proj-abcdefghijklmnopqrstuvwx", "hf_abcdefghijklmnopqrstuvwxyz", "Bearer abcdef123456"])  # fmt: skip
def test_issued_keys_are_redacted_wherever_they_are(secret: str) -> None:
    assert secret.split()[-1] not in str(redact({"note": f"used {secret} here"}))


@given(JSONS)
def test_redaction_keeps_the_shape(value: object) -> None:
    once = redact(value)
    assert dump_json(redact(once)) == dump_json(once)


# --- JSON and names -------------------------------------------------------------------------------------------------


@given(JSONS)
def test_any_data_is_strict_ascii_json(value: object) -> None:
    text = dump_json(value)
    assert text.isascii()
    strictly(text)


@given(st.recursive(st.none() | st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_finite_data_survives(value: object) -> None:
    assert json.loads(dump_json(value)) == value


def test_data_that_json_cannot_hold_is_an_error_of_one_line() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EvalError, match="expected data that JSON can hold"):
        dump_json(deep)
    with pytest.raises(EvalError, match="expected data that JSON can hold"):
        dump_json({"a": 10**5000})


HOSTILE = ["../../x", "/etc/passwd", "x" * 300, "a\0b", "CON", "nul.txt", "", ".", "..", "a/b", "a\\b", "C:x", "-rf", "é", "\ud83d", "a.", "task::v"]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_in_the_folder(name: str, tmp_path: Path) -> None:
    path = write_samples(tmp_path / "run", name, [[DocumentRows({"doc_id": 0})]])
    assert path.parent == tmp_path / "run"
    assert [one.name for one in tmp_path.iterdir()] == ["run"]
    assert path.name.isascii()
    assert len(path.name) < 140


@given(st.text(CHARS, max_size=120), st.text(CHARS, max_size=120))
def test_names_never_share_a_file(one: str, two: str) -> None:
    assert (slug(one) == slug(two)) == (one == two)
    assert slug(slug(one)) != slug(one) or slug(one) == one


def test_a_name_that_looks_hashed_is_hashed_too() -> None:
    assert slug(slug("../x")) != slug("../x")
    assert name_samples(Path("r"), "gsm8k_cot").name == "samples_gsm8k_cot.jsonl"


@given(value=JSONS)
@settings(max_examples=300, deadline=None)
def test_quick_json_is_that_of_the_json_module(value: object) -> None:
    try:
        wanted = json.dumps(value, allow_nan=False).encode()
    except ValueError:
        with pytest.raises(ValueError, match="not JSON compliant"):
            encode_json(value)
    else:
        assert encode_json(value) == wanted


@given(head=st.dictionaries(TEXTS, JSONS, max_size=3), rests=st.lists(st.dictionaries(TEXTS, JSONS, max_size=3)))
@settings(max_examples=100, deadline=None)
def test_rows_written_in_two_parts_are_the_rows(
    head: dict[str, object], rests: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    head, rests = {"doc_id": 0, **head}, [{f"_{key}": one for key, one in rest.items()} for rest in rests or [{}]]
    pieces = [[DocumentRows(head, rests), DocumentRows({**head, "doc_id": 1}, rests)]] * 2
    path = write_samples(tmp_path_factory.mktemp("run"), "t", pieces)
    rows = [{**head, "doc_id": at, **rest} for rest in rests for at in range(2)] * 2
    alone = write_samples(tmp_path_factory.mktemp("run"), "t", [map(DocumentRows, rows)])
    assert path.read_bytes() == alone.read_bytes()


# --- samples ------------------------------------------------------------------------------------------------------


def test_documents_that_failed_have_their_row_and_reason() -> None:
    built, answers, scored = text_built()
    rows = join_rows(list_documents(scored, built, answers), ["number", "raw"])
    assert [(row["filter"], row["doc_id"]) for row in rows] == [(f, d) for f in ("number", "raw") for d in range(10)]
    failed = [row for row in rows if row["doc_id"] in (1, 2, 5)]
    for row in failed:
        assert (row["resps"], row["filtered_resps"], row["metrics"]) == ([[None]], [], [])
        assert "timed out" in row["evalcore"]["unscored"]["exact_match"]
    assert all("evalcore" not in row for row in rows if row["doc_id"] not in (1, 2, 5))


def test_every_document_failed() -> None:
    built, answers, scored = text_built(failing=tuple(range(10)))
    assert sum(len(one.rests) for one in list_documents(scored, built, answers)) == 20


@given(text=TEXTS)
@settings(max_examples=40, deadline=None)
def test_any_reply_survives_on_a_line_of_its_own(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    built, answers, scored = text_built(failing=(), text="7" + text)
    path = write_samples(tmp_path_factory.mktemp("run"), "t", [list_documents(scored, built, answers)])
    lines = path.read_text("ascii").split("\n")
    assert lines.pop() == ""
    assert len(lines) == 20
    assert lines == list(map(json.dumps, join_rows(list_documents(scored, built, answers), ["number", "raw"])))
    for doc, line in enumerate(lines[10:]):
        assert strictly(line)["resps"] == [[("7" + text).replace("{doc}", str(doc * 2))]]


@given(text=TEXTS, docs=st.lists(st.dictionaries(TEXTS, JSONS, max_size=3), min_size=10, max_size=10))
@settings(max_examples=60, deadline=None)
def test_lines_without_rows_are_those_of_the_rows(
    text: str, docs: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    built, answers, scored = text_built(failing=(1, 5), text="7" + text)
    samples = [replace(one, doc=json.dumps(doc).encode()) for one, doc in zip(built.samples, docs, strict=True)]
    built = replace(built, samples=tuple(samples))
    made = list(list_lines(scored, built, answers))
    told = {one.head["doc_id"] for one in made if isinstance(one, DocumentRows)}
    assert told >= {1, 5}, "what has no score is told in a row"
    files = [
        write_task(tmp_path_factory.mktemp("run"), "t", [one]) for one in (made, list_documents(scored, built, answers))
    ]
    lines, rows = (tmp_path_factory.mktemp("run") for _ in range(2))
    write_samples(lines, "t", [made])
    write_samples(rows, "t", [list_documents(scored, built, answers)])
    assert files[0] == files[1]
    assert name_samples(lines, "t").read_bytes() == name_samples(rows, "t").read_bytes()


def test_plain_documents_take_no_row_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    built, answers, scored = text_built(failing=())
    (whole,) = list_lines(scored, built, answers)
    assert isinstance(whole, DocumentLines)
    monkeypatch.setattr(plain_lines, "AT_ONCE", 3)
    parts = [one for one in list_lines(scored, built, answers) if isinstance(one, DocumentLines)]
    assert [len(one.begun) for one in parts] == [3, 3, 3, 1]
    assert [line for one in parts for line in one.begun] == whole.begun
    assert [[line for one in parts for line in one.ends[at]] for at in range(2)] == whole.ends
    assert "".join(one.hashes for one in parts) == whole.hashes


def test_names_with_percent_signs_stand_for_themselves(tmp_path: Path) -> None:
    built, answers, scored = text_built(failing=())
    named = [replace(one, filter=f"100 %b {one.filter}") for one in scored.provenance]
    columns = [
        replace(one, key=one.key._replace(filter=f"100 %b {one.key.filter}", metric=f"%d {one.key.metric}"))
        for one in scored.columns
    ]
    scored = replace(scored, provenance=tuple(named), columns=tuple(columns))
    assert {DocumentLines} == set(map(type, list_lines(scored, built, answers)))
    lines = write_samples(tmp_path / "a", "t", [list_lines(scored, built, answers)]).read_bytes()
    assert lines == write_samples(tmp_path / "b", "t", [list_documents(scored, built, answers)]).read_bytes()
    assert b'"filter": "100 %b raw", "metrics": ["%d exact_match"' in lines


def test_numbers_without_a_word_are_null_and_told(tmp_path: Path) -> None:
    row = {"doc": {"x": float("nan")}, "perplexity": float("-inf"), "evalcore": {"unscored": {}}}
    line = strictly(write_samples(tmp_path, "t", [[DocumentRows(row)]]).read_text("ascii"))
    assert (line["doc"], line["perplexity"]) == ({"x": None}, None)
    assert line["evalcore"] == {"unscored": {}, "nonfinite": {"doc.x": "nan", "perplexity": "-inf"}}


# --- config.yaml ----------------------------------------------------------------------------------------------------


KEYS = st.sampled_from(MAY_HOLD_SECRETS) | st.text(CHARS, min_size=1, max_size=8)


@given(config=st.dictionaries(KEYS, JSONS | st.just({"APIKEY": 0}), max_size=4))
@settings(max_examples=60, deadline=None)
def test_configs_read_back_as_they_were(config: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> None:
    text = write_config(tmp_path_factory.mktemp("run"), config).read_text("ascii")
    told = {key: redact(value) if key in MAY_HOLD_SECRETS else value for key, value in config.items()}
    assert repr(yaml.safe_load(text)) == repr(json.loads(json.dumps(told)))


def test_configs_have_no_aliases_and_no_secrets(tmp_path: Path) -> None:
    shared = {"x": [1, 2]}
    config = {"b": shared, "a": shared, "model_args": {"api_key": "CANARY"}, "tasks": ("t",), "path": Path("p")}
    text = write_config(tmp_path, config).read_text("ascii")
    assert "CANARY" not in text
    assert "&" not in text
    assert list(yaml.safe_load(text)) == ["b", "a", "model_args", "tasks", "path"]


# --- whole or not there ---------------------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = write_samples(tmp_path, "t", [[DocumentRows({"a": 1})]])
    before = path.read_bytes()

    def rows() -> object:
        yield [DocumentRows({"a": 2})]
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(EvalError, match=r"samples_t\.jsonl: No space left"):
        write_samples(tmp_path, "t", rows())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        with open("/dev/full", "wb", buffering=0) as file:
            file.write(b"x")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EvalError, match=r"results\.json: No space left on device"):
        write_results(tmp_path, {})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EvalError, match="file/run"):
        write_results(tmp_path / "file" / "run", {})
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.access(closed, os.W_OK):
        pytest.skip("this user may write anywhere")
    with pytest.raises(EvalError, match=r"closed/results\.json: Permission denied"):
        write_results(closed, {})


def test_what_a_killed_run_left_half_written_is_no_obstacle(tmp_path: Path) -> None:
    target = tmp_path / "outside"
    target.write_text("mine")
    (tmp_path / ".results.json.part").symlink_to(target)
    write_results(tmp_path, {"a": 1})
    assert target.read_text() == "mine"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["outside", "results.json"]


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = replace_file(tmp_path / "f", ["old"])

    def parts() -> object:
        yield "new"
        assert path.read_text() == "old"
        yield "er"

    assert replace_file(path, parts()).read_text() == "newer"


# --- run.json -----------------------------------------------------------------------------------------------------


def test_commits_are_read_from_the_repository(tmp_path: Path) -> None:
    commit, packed = "a" * 40, "b" * 40
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{packed} refs/heads/main\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_commit(below) == packed
    (git / "refs" / "heads" / "main").write_text(commit + "\n")
    assert find_commit(below) == commit
    (git / "HEAD").write_text("ref: ../../secret\n")
    (tmp_path.parent / "secret").write_text("c" * 40)
    assert find_commit(below) is None


@given(TEXTS)
def test_what_is_printed_obeys_nobody(text: str) -> None:
    shown = visible(text)
    assert all(char.isprintable() or char in "\u3000\xa0" or char.isspace() for char in shown)
    assert not set(shown) & set("\x1b\x07\r\n\t\x9b\u202e\u2066\u2028\x7f")
    assert visible(shown) == shown
