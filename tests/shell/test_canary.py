"""A credential is used and seen nowhere else: not in a file, a message, a traceback or the environment of a child."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

import pytest
import yaml
from fault_server import Server, serve
from small_tasks import write_tasks

from evalcore.adapters.verifiers import VerifierPool
from evalcore.shell.cli import TYPED, main
from evalcore.shell.engines.interface import Means
from evalcore.shell.engines.processes import spread_over_processes
from evalcore.shell.safety.credentials import forget_credentials

CANARY = 'cAnaRy/0"7+f3 a99'
PLAIN = "canary-07f3a99b"
FORMS = [CANARY, PLAIN, quote(CANARY), quote(CANARY, safe=""), json.dumps(CANARY)[1:-1]]
FORMS += [b64encode(f"{user}{one}".encode()).decode()[4:-4] for one in (CANARY, PLAIN) for user in ("me:", "")]


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    forget_credentials()
    yield
    forget_credentials()


class Case(NamedTuple):
    """Where the canary is: keys of the config, flags, the environment, what the server answers, the exit code."""

    config: Mapping[str, object] = MappingProxyType({})
    flags: tuple[str, ...] = ()
    environ: Mapping[str, str] = MappingProxyType({})
    answer: tuple[int, dict[str, str], str] | None = None
    code: int = 0
    arguments: Mapping[str, object] = MappingProxyType({})
    base: str = "{url}"


def reply(text: str) -> str:
    return json.dumps({"choices": [{"index": 0, "text": text, "finish_reason": text}]})


KEY = {"OPENAI_API_KEY": PLAIN}
TASK = {"task": "own", "test_split": "test", "doc_to_text": "{{a}}", "doc_to_target": "{{b}}", "dataset_path": "json"}
TASK |= {"output_type": "generate_until", "metric_list": [{"metric": "exact_match"}]}
PLACES = {
    "the environment": Case(environ=KEY),
    "another variable": Case(environ={"MY_SERVER": PLAIN}, arguments={"api_key_env": "MY_SERVER"}),
    "a reply that repeats the key": Case(environ=KEY, answer=(200, {}, reply(f"Bearer {PLAIN}!"))),
    "a reply with escapes": Case(environ=KEY, answer=(200, {}, reply(PLAIN).replace("-", "\\u002d"))),
    "the body of an error": Case(environ=KEY, answer=(400, {}, f"no such key: {PLAIN}"), code=1),
    "the body of a refusal": Case(environ=KEY, answer=(401, {}, json.dumps({"error": {"message": PLAIN}})), code=2),
    "a redirect": Case(environ=KEY, answer=(307, {"Location": f"https://h.invalid/{PLAIN}?key={PLAIN}"}, ""), code=2),
    "a header of a reply": Case(environ=KEY, answer=(200, {"Content-Encoding": PLAIN}, reply("x")), code=1),
    "a header": Case(arguments={"header": {"X-Route": CANARY * 2}}, answer=(200, {}, reply(CANARY * 2))),
    "a header that is a key": Case(arguments={"header": {"Authorization": PLAIN}}, code=2),
    "the password of an address": Case(base="http://me:{quoted}@{host}", answer=(200, {}, reply(CANARY))),
    "the user of an address": Case(base="http://{quoted}@{host}", answer=(200, {}, reply(CANARY))),
    "the query of an address": Case(base="{url}/completions?key={quoted}", answer=(400, {}, CANARY), code=1),
    "generation arguments": Case(flags=("--gen_kwargs", f"api_key={PLAIN},temperature=0")),
    "generation arguments that come back": Case(
        flags=("--gen_kwargs", json.dumps({"extra_body": {"auth": {"token": CANARY}}})), answer=(200, {}, reply(CANARY))
    ),
    "generation arguments of the config": Case({"gen_kwargs": {"extra": [{"password": CANARY}]}}),
    "model arguments": Case(flags=("--model_args", f"api_key={PLAIN}"), code=2),
    "model arguments at a depth": Case(arguments={"extra": {"list": [{"secret": CANARY}]}}, code=2),
    "an inline task's generation": Case({"tasks": [{**TASK, "generation_kwargs": {"api_key": CANARY}}]}),
    "an inline task's metadata": Case({"tasks": [{**TASK, "metadata": {"hub": {"token": CANARY}}}]}),
    "an inline task's data": Case(
        {"tasks": [{**TASK, "dataset_kwargs": {"data_files": {"test": "docs.jsonl"}, "token": CANARY}}]}, code=2
    ),
    "the metadata of a run": Case({"metadata": {"access_token": CANARY}}),
    "a flag that is none": Case(flags=("--api_key", f"key={PLAIN}"), code=2),
    "the remote of a repository": Case(),
}


def run_case(case: Case, folder: Path, server: Server, *flags: str) -> int:
    host = server.url.removeprefix("http://")
    words = {"url": server.url, "host": host, "quoted": quote(CANARY, safe="")}
    task = {**TASK, "dataset_kwargs": {"data_files": {"test": "docs.jsonl"}}}
    config = {"model": "local-completions", "tasks": [task], **case.config}
    config["data"] = {} if case.code == 2 and "tasks" in case.config else {"own": "docs.jsonl"}
    config["model_args"] = {"model": "m", "base_url": case.base.format(**words), "max_retries": 1, **case.arguments}
    (folder / "given").mkdir(exist_ok=True)
    (folder / "given/run.yaml").write_text(yaml.safe_dump(config))
    given = [str(folder / "given/run.yaml"), "--output_path", str(folder / "out"), "--limit", "3", *case.flags, *flags]
    return main(["run", *given])


def find_canary(folder: Path, *said: str) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and "given" not in path.relative_to(folder).parts]
    held = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    held |= {f"output {at}": text.encode() for at, text in enumerate(said)}
    return [f"{form!r} in {name}" for name, data in held.items() for form in FORMS if form.encode() in data]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose remote has a password, with the documents of a task."""
    write_tasks(tmp_path / "given", 3)
    git = tmp_path / "given/.git"
    git.mkdir()
    (git / "config").write_text(f'[remote "origin"]\nurl = https://me:{PLAIN}@host/repo.git\n')
    (git / "HEAD").write_text("a" * 40)
    monkeypatch.chdir(tmp_path / "given")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path


@pytest.mark.parametrize("form", ["table", pytest.param("json", marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", PLACES)
def test_a_credential_is_nowhere(
    place: str, form: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = PLACES[place]
    for name, value in case.environ.items():
        monkeypatch.setenv(name, value)
    flags = ("--json", "--parquet") if form == "json" else ("--write_out", "true")
    answer = None if case.answer is None else (case.answer[0], case.answer[1], case.answer[2].encode())
    with serve(script=lambda number, body: answer) as server:
        try:
            code = run_case(case, folder, server, *flags)
        except SystemExit as left:
            code = int(str(left.code))
    said = capsys.readouterr()
    assert code == case.code, said.err
    assert find_canary(folder, said.out, said.err) == []
    assert ("typed on the command line" in said.err) == any(one in " ".join(case.flags) for one in FORMS)
    if code == 0:
        run = str(folder / "out")
        assert main(["check", run, "--min", "exact_match=0", "--junit", str(folder / "junit.xml")]) == 0
        assert main(["score", run, "--partials", str(folder / "parts"), "-o", str(folder / "again")]) == 0
        assert main(["explain", run, "--doc", "0"]) == 0
        assert (folder / "junit.xml").is_file()
        said = capsys.readouterr()
        assert find_canary(folder, said.out, said.err) == []


def test_a_sent_argument_still_reaches_the_server(folder: Path) -> None:
    """What is hidden is hidden where it is written, after requests are made and hashed."""
    with serve() as server:
        assert run_case(PLACES["generation arguments"], folder, server, "--quiet") == 0
        assert {body["api_key"] for body in server.bodies} == {PLAIN}
        asked = len(server.bodies)
        assert run_case(PLACES["generation arguments"], folder, server, "--quiet") == 0
        assert len(server.bodies) == asked  # the same requests, found in the log
    [line, *_] = (folder / "out/samples_own.jsonl").read_text().splitlines()
    assert json.loads(line)["arguments"]["gen_args_0"]["arg_1"]["api_key"] == "[redacted]"


def test_what_a_run_left_out_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve() as server:
        assert run_case(PLACES["an inline task's generation"], folder, server, "--quiet") == 0
    assert main(["run", str(folder / "out/config.yaml")]) == 2
    assert "generation_kwargs api_key: this value was left out of the file it is from" in capsys.readouterr().err


def test_a_document_that_only_looks_like_a_secret_stays(folder: Path) -> None:
    text = "api_key=abcdef12345, Authorization: Bearer sk-abcdefghijklmnopqrstuvwx, https://me:pw@host"
    (folder / "given/docs.jsonl").write_text(json.dumps({"a": text, "b": "x"}) + "\n")
    with serve(script=lambda number, body: (200, {}, reply(text).encode())) as server:
        assert run_case(Case(), folder, server, "--quiet") == 0
    [line] = (folder / "out/samples_own.jsonl").read_text().splitlines()
    assert json.loads(line)["doc"]["a"] == text
    assert json.loads(line)["resps"] == [[text]]


@pytest.mark.parametrize("shown", ["", "1"])
def test_an_unexpected_error_is_shown_without_it(
    shown: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object, **named: object) -> None:
        raise RuntimeError(f"cannot close {PLAIN}")

    monkeypatch.setenv("OPENAI_API_KEY", PLAIN)
    monkeypatch.setenv("EVALCORE_TRACEBACK", shown)
    monkeypatch.setattr("evalcore.shell.run.write.close_groups", fail)
    with serve() as server:
        assert run_case(Case(), folder, server) == 70
    said = capsys.readouterr()
    assert "RuntimeError: cannot close [redacted]" in said.err
    assert ("Traceback" in said.err) == bool(shown)
    assert find_canary(folder, said.out, said.err) == []


def show_environment(unit: object) -> bytes:
    """What a child can see of its own environment and arguments."""
    own = Path("/proc/self")
    return b"".join((own / name).read_bytes() for name in ("environ", "cmdline"))


def judge_environment(*given: object) -> float:
    return float(PLAIN.encode() in show_environment(None))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_children_are_not_given_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "MY_TOKEN", "DB_PASSWORD"):
        monkeypatch.setenv(name, PLAIN)
    seen = b"".join(spread_over_processes(show_environment, [1], b"".join, Means(workers=1)))
    assert b"PATH=" in seen
    assert PLAIN.encode() not in seen
    for keep, found in (((), 0.0), (("MY_TOKEN",), 1.0)):
        with VerifierPool(f"{__file__}:judge_environment", workers=1, deadline=60, keep=keep) as pool:
            [outcome] = pool.outcomes([()])
        assert getattr(outcome, "score", outcome) == found


def test_a_command_leaves_no_core_dump() -> None:
    code = "import resource; from evalcore.shell.cli import main; main(['models', '--json']); print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


def test_the_warning_says_what_to_do() -> None:
    assert "ps" in TYPED
    assert "api_key_env" in TYPED


def test_a_placeholder_is_no_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for value, warned in (("EMPTY", False), ("not-needed", False), (CANARY, True)):
        assert main(["run", "--model", "dummy", "--tasks", "none", "--gen_kwargs", f"api_key={value}"]) == 2
        assert (TYPED in capsys.readouterr().err) == warned
