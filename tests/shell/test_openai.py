"""The OpenAI-compatible backends: arguments, addresses, secrets, interruption."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_server import serve

from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Failure, Generate, LogLikelihood
from evalcore.shell.models import find_backend
from evalcore.shell.models.model import Question
from evalcore.shell.models.openai.arguments import ARGUMENTS, ServerKind, ServerSettings, read_settings
from evalcore.shell.models.openai.backend import open_server
from evalcore.shell.models.openai.body import parse_messages, render_messages
from evalcore.shell.models.openai.endpoint import find_endpoint

COMPLETIONS, CHAT = ServerKind("local-completions"), ServerKind("local-chat-completions", chat=True)
HOSTED = ServerKind("openai-chat-completions", chat=True, hosted=True)
CANARY = "sk-canary-0123456789abcdef"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


NAMES = ["local-completions", "local-chat-completions", "openai-completions", "openai-chat-completions"]


@pytest.mark.parametrize("name", NAMES)
def test_each_backend_opens_and_answers(name: str) -> None:
    backend = find_backend(name)
    with serve() as server:
        model = backend.open({"model": "toy", "base_url": server.url})
        [heard] = model.ask([Question(Generate("2 + 2 ="))])
    assert isinstance(heard.reply, str)
    assert heard.reply
    assert model.identity.startswith(f"{name} {{")
    assert (model.chat is not None) == ("chat" in name)
    assert [name for name, _ in backend.arguments] == list(dict(ARGUMENTS))


def test_every_argument_is_explained() -> None:
    assert set(dict(ARGUMENTS)) == set(ServerSettings.__struct_fields__)


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "m", "num_concurent": 3}, "unknown argument 'num_concurent'; did you mean 'num_concurrent'"),
        ({}, "expected the name of a model"),
        ({"model": ""}, "expected the name of a model"),
        ({"model": "m", "num_concurrent": "many"}, "expected `int`, got `str` - at `num_concurrent`"),
        ({"model": "m", "num_concurrent": 0}, "num_concurrent"),
        ({"model": "m", "timeout": -1}, "timeout"),
        ({"model": "m", "max_retries": -1}, "max_retries"),
        ({"model": "m", "header": "x"}, "header"),
        ({"model": "m", "api_key": CANARY}, "OPENAI_API_KEY"),
        ({"model": "m", "auth_token": CANARY}, "OPENAI_API_KEY"),
        ({"model": "m", "Authorization": CANARY}, "OPENAI_API_KEY"),
        ({"model": "m", "base_url": "http://localhost/v1", "header": {"X-Api-Key": CANARY}}, "environment"),
        (
            {"model": "m", "base_url": "http://localhost/v1", "header": {"X-A": "b\r\nX-C: d"}},
            "expected an HTTP header",
        ),
        ({"model": "m"}, "needs the address of a server"),
        ({"model": "m", "base_url": f"localhost:8000/{CANARY}"}, "expected an http or https address"),
        ({"model": "m", "base_url": "http://localhost:99999/v1"}, "expected an http or https address"),
        ({"model": "m", "base_url": "file:///etc/passwd"}, "expected an http or https address"),
        ({"model": "m", "base_url": "http://localhost/v1/chat/completions"}, "an endpoint of local-chat-completions"),
    ],
)
def test_bad_arguments_are_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(EvalError, match=message) as caught:
        open_server(COMPLETIONS, given)
    assert CANARY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lm_evals_arguments_are_accepted_and_those_without_effect_named() -> None:
    given = {
        "pretrained": "m", "base_url": "http://localhost:1/v1", "tokenizer": "gpt2", "tokenizer_backend": None, "batch_size": "8",
        "tokenized_requests": False, "trust_remote_code": True, "num_concurrent": "4", "max_length": 4096, "max_gen_toks": "64",
        "timeout": 60, "seed": "7", "revision": "main", "truncate": False, "verify_certificate": "True", "eos_string": "</s>",
    }  # fmt: skip
    model = open_server(COMPLETIONS, given)
    assert [line.split()[1] for line in model.warnings] == ["tokenizer", "batch_size", "trust_remote_code"]
    settings = read_settings(COMPLETIONS, given)
    assert (settings.num_concurrent, settings.max_gen_toks, settings.timeout, settings.seed) == (4, 64, 60.0, 7)


@pytest.mark.parametrize(
    ("kind", "given", "shown"),
    [
        (COMPLETIONS, "http://localhost:8000/v1", "http://localhost:8000/v1/completions"),
        (COMPLETIONS, "http://localhost:8000/v1/completions", "http://localhost:8000/v1/completions"),
        (COMPLETIONS, "http://localhost:8000", "http://localhost:8000/v1/completions"),
        (CHAT, "https://example.com/api/v1/", "https://example.com/api/v1/chat/completions"),
        (CHAT, "http://[::1]:8000/v1", "http://[::1]:8000/v1/chat/completions"),
        (CHAT, "https://u:pw@example.com/v1?api-version=3#x", "https://example.com/v1/chat/completions"),
    ],
)
def test_addresses(kind: ServerKind, given: str, shown: str) -> None:
    assert find_endpoint(kind, ServerSettings("m", base_url=given), {}).shown == shown


def test_openais_own_address_and_its_key() -> None:
    with pytest.raises(EvalError, match="needs a key: put it into the environment variable OPENAI_API_KEY"):
        find_endpoint(HOSTED, ServerSettings("m"), {})
    found = find_endpoint(HOSTED, ServerSettings("m", api_key_env="MY_KEY"), {"MY_KEY": CANARY})
    assert found.shown == "https://api.openai.com/v1/chat/completions"
    assert found.hidden.reveal().headers["Authorization"] == f"Bearer {CANARY}"


def test_identity_changes_with_what_changes_answers_and_with_nothing_else() -> None:
    def identity(**args: object) -> str:
        return open_server(COMPLETIONS, {"model": "m", "base_url": "http://localhost/v1", **args}).identity

    moved = [{"base_url": "http://localhost:2/v1"}, {"base_url": "https://gpu.example/v1/completions"}]
    same = [
        {},
        *moved,
        {"keep_alive": False},
        {"give_up_after": 9},
        {"num_concurrent": 9},
        {"timeout": 5},
        {"max_retries": 1},
        {"batch_size": 4},
        {"max_length": 99},
    ]
    assert len({identity(**args) for args in same}) == 1
    other = [
        {},
        {"model": "n"},
        {"seed": 1},
        {"max_gen_toks": 1},
        {"eos_string": "x"},
        {"base_url": "http://localhost/deployments/b/completions"},
    ]
    assert len({identity(**args) for args in other}) == len(other)


def test_headers_and_queries_that_lead_elsewhere_are_part_of_the_identity_and_not_shown() -> None:
    def identity(query: str = "", **header: str) -> str:
        given = {"model": "m", "base_url": f"http://localhost/v1{query}", "header": header}
        return open_server(COMPLETIONS, given).identity

    other = [
        identity(),
        identity("?deployment=canary-a"),
        identity("?deployment=canary-b"),
        identity("?deployment=canary-b&v=canary-1"),
        identity(Variant="canary-a"),
        identity(Variant="canary-b"),
    ]
    assert len(set(other)) == len(other)
    assert "canary" not in str(other)
    assert identity("?v=1&deployment=b") == identity("?deployment=b&v=1")
    assert identity(Variant="b") == identity(VARIANT="b")
    assert identity("?sig=canary-1&v=1") == identity("?sig=canary-2&v=1"), "a new key leads to the same model"


def test_a_name_with_a_five_is_not_a_reasoning_model() -> None:
    given = {"model": "gpt-3.5-turbo", "base_url": "http://localhost/v1"}
    assert "as to every name with a 5" in open_server(HOSTED, given).warnings[0]
    assert open_server(HOSTED, {**given, "reasoning": True}).warnings == ()
    assert open_server(HOSTED, {**given, "model": "gpt-5-mini"}).warnings == ()


# --- chat -------------------------------------------------------------------------------------------------------------


def test_a_chat_prompt_arrives_as_its_messages() -> None:
    messages = [{"role": "system", "content": "Sé breve."}, {"role": "user", "content": 'A "[quote]"'}]
    assert parse_messages(render_messages(messages, True)) == messages
    with serve() as server:
        model = open_server(CHAT, {"model": "m", "base_url": server.url})
        assert model.chat is not None
        list(model.ask([Question(Generate(model.chat(messages, True))), Question(Generate("[plain]"))]))
        assert server.bodies[0]["messages"] == messages
        assert server.bodies[1]["messages"] == [{"role": "user", "content": "[plain]"}]


def test_likelihoods_of_a_chat_model_are_refused_before_anything_is_asked() -> None:
    with serve() as server:
        model = open_server(CHAT, {"model": "m", "base_url": server.url})
        with pytest.raises(EvalError, match="cannot answer likelihood requests"):
            list(model.ask([Question(Generate("a")), Question(LogLikelihood("a", "b"))]))
        assert not server.bodies


def test_repeats_differ_where_sampling_does() -> None:
    request = Generate("Tell me", {"temperature": 1.0, "max_gen_toks": 10})
    with serve() as server:
        model = open_server(COMPLETIONS, {"model": "m", "base_url": server.url})
        replies = [heard.reply for heard in model.ask([Question(request, repeat) for repeat in range(4)])]
        assert [body["seed"] for body in server.bodies] == [1234, 1235, 1236, 1237]
    assert len(set(replies)) > 1


def test_odd_texts_survive_the_wire() -> None:
    odd = "\ud83d lone, \x00 nul, \u2028 line, 🌧"
    with serve(
        script=lambda number, body: (200, {}, json.dumps({"choices": [{"index": 0, "text": odd}]}).encode())
    ) as server:
        [heard] = open_server(COMPLETIONS, {"model": "m", "base_url": server.url}).ask([Question(Generate(odd))])
        assert server.bodies[0]["prompt"] == heard.reply == odd


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_the_key_is_sent_and_seen_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    told = [json.dumps({"error": {"message": f"bad key {CANARY}"}}).encode(), f"<h1>{CANARY}".encode()]
    texts = [json.dumps({"choices": [{"index": 0, "text": f"your key is {CANARY}"}]}).encode()]
    for status, content in [(s, c) for s in (200, 302, 400, 401, 404, 429, 500) for c in told] + [(200, texts[0])]:
        headers = {"Location": f"http://other/{CANARY}?k={CANARY}", "Retry-After": CANARY}
        with serve(script=lambda number, body, r=(status, headers, content): r) as server:
            model = open_server(COMPLETIONS, {"model": "m", "base_url": server.url, "max_retries": 1}, base=0.001)
            try:
                seen = str([(heard, repr(heard)) for heard in model.ask([Question(Generate("x"))])])
            except EvalError as stopped:
                seen = f"{stopped} {stopped.__cause__} {stopped.__context__!r}"
            assert server.headers[0]["Authorization"] == f"Bearer {CANARY}"
        assert CANARY not in seen + repr(model) + model.identity + str(model.warnings)
    out = capfd.readouterr()
    assert CANARY not in out.out + out.err + caplog.text


def test_secrets_of_an_address_are_used_and_seen_nowhere_else() -> None:
    with serve(script=lambda number, body: (400, {}, b"who is pass-word-canary? query-canary!")) as server:
        url = server.url.replace("http://", "http://me:pass-word-canary@") + "?sig=query-canary"
        model = open_server(COMPLETIONS, {"model": "m", "base_url": url})
        [heard] = model.ask([Question(Generate("x"))])
        assert server.headers[0]["Authorization"].startswith("Basic ")
    assert isinstance(heard.reply, Failure)
    assert "canary" not in heard.reply.reason + model.identity + repr(model)


@pytest.mark.parametrize("key", ["EMPTY", "lm-studio"])
def test_a_placeholder_for_a_key_does_not_touch_answers(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    content = json.dumps({"choices": [{"index": 0, "text": f"the {key} set of 2024-02-01"}]}).encode()
    with serve(script=lambda number, body: (200, {}, content)) as server:
        model = open_server(COMPLETIONS, {"model": "m", "base_url": f"{server.url}?api-version=2024-02-01"})
        [heard] = model.ask([Question(Generate("x"))])
        assert heard[:3] == (0, f"the {key} set of 2024-02-01", "")


def every_escaped(text: str) -> str:
    return "".join(f"\\u{int.from_bytes(unit):04X}" for char in text for unit in [char.encode("utf-16-be")])


@pytest.mark.parametrize("key", ["short-key-123", "a/key+of/8", "sk-" + "0123456789" * 5])
@pytest.mark.parametrize("spell", [str, lambda key: key.replace("/", "\\/").replace("-", "\\u002d"), every_escaped])
@pytest.mark.parametrize("status", [200, 400])
def test_an_echoed_key_is_hidden_however_it_is_spelled(
    monkeypatch: pytest.MonkeyPatch, key: str, spell: Callable[[str], str], status: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    content = f'{{"choices": [{{"index": 0, "text": "Bearer {spell(key)}!\\n", "finish_reason": "{spell(key)}"}}]}}'
    with serve(script=lambda number, body: (status, {}, content.encode())) as server:
        [heard] = open_server(COMPLETIONS, {"model": "m", "base_url": server.url}).ask([Question(Generate("x"))])
    if status == 200:
        assert heard[:3] == (0, "Bearer [secret]!\n", "[secret]")
    assert key not in str(heard)
    assert spell(key) not in str(heard).replace("\\\\", "\\")


def test_no_part_of_a_key_is_left_where_a_message_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with serve(script=lambda number, body: (400, {}, b"x" * 190 + CANARY.encode())) as server:
        [heard] = open_server(COMPLETIONS, {"model": "m", "base_url": server.url}).ask([Question(Generate("x"))])
    assert "sk-c" not in str(heard)


@pytest.mark.parametrize(
    ("args", "environ", "fine"),
    [
        ({"base_url": "http://10.0.0.7/v1"}, {"OPENAI_API_KEY": CANARY}, False),
        ({"base_url": "http://u:p@10.0.0.7/v1"}, {}, False),
        ({"base_url": "http://localhost.evil.com/v1"}, {"OPENAI_API_KEY": CANARY}, False),
        ({"base_url": "http://10.0.0.7/v1", "allow_insecure": True}, {"OPENAI_API_KEY": CANARY}, True),
        ({"base_url": "http://10.0.0.7/v1", "api_key_env": ""}, {"OPENAI_API_KEY": CANARY}, True),
        ({"base_url": "http://10.0.0.7/v1"}, {}, True),
        ({"base_url": "http://127.0.0.1/v1"}, {"OPENAI_API_KEY": CANARY}, True),
        ({"base_url": "https://10.0.0.7/v1"}, {"OPENAI_API_KEY": CANARY}, True),
        ({"base_url": "https://10.0.0.7/v1", "verify_certificate": False}, {}, False),
        ({"base_url": "https://10.0.0.7/v1", "verify_certificate": False, "allow_insecure": True}, {}, True),
        ({"base_url": "https://10.0.0.7/v1"}, {"OPENAI_API_KEY": "two\nlines"}, False),
    ],
)
def test_what_could_be_overheard_is_refused(args: dict[str, object], environ: dict[str, str], fine: bool) -> None:
    settings = read_settings(COMPLETIONS, {"model": "m", **args})
    if fine:
        find_endpoint(COMPLETIONS, settings, environ)
    else:
        with pytest.raises(EvalError) as caught:
            find_endpoint(COMPLETIONS, settings, environ)
        assert not any(value in str(caught.value) for value in environ.values())


def test_proxies_are_not_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with serve() as server:
        [heard] = open_server(COMPLETIONS, {"model": "m", "base_url": server.url}).ask([Question(Generate("x"))])
    assert isinstance(heard.reply, str)


# --- interruption -----------------------------------------------------------------------------------------------------

SCRIPT = """
import signal, sys
from evalcore.core.records.request import Generate
from evalcore.shell.models.model import Question
from evalcore.shell.models.openai.backend import LOCAL_COMPLETIONS
model = LOCAL_COMPLETIONS.open({"model": "m", "base_url": sys.argv[1], "num_concurrent": 4})
try:
    for heard in model.ask([Question(Generate(f"{n}?")) for n in range(1000)]):
        print(heard.at, flush=True)
        if sys.argv[2] == "taking":
            signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("while_", ["taking", "waiting"])
def test_interruption_is_quiet(while_: str) -> None:
    """Between two replies, and once three are taken and the next four requests hang: then no reply can come first."""
    with serve(script=lambda number, body: "hang" if number >= 3 else None) as server:
        command = [sys.executable, "-W", "always", "-c", SCRIPT, server.url, while_]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if while_ == "waiting":
            while child.poll() is None and len(server.bodies) < 3 + 4:
                time.sleep(0.01)
            child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=600)
    assert out.splitlines()[-1] == "interrupted"
    assert err == ""
    assert child.returncode == 0


def test_importing_is_cheap() -> None:
    code = "import sys; import evalcore.shell.models.openai.backend as m; print(sorted({'httpx', 'asyncio', 'ssl'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "[]"


def test_the_fault_server_runs_by_itself(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    command = [
        sys.executable,
        str(Path(__file__).with_name("fault_server.py")),
        "--faults",
        "0.3",
        "--seed",
        "1",
        "--log",
        str(log),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            model = open_server(COMPLETIONS, {"model": "m", "base_url": child.stdout.readline().strip()}, base=0.001)
            assert len(list(model.ask([Question(Generate(f"{n}?")) for n in range(30)]))) == 30
        finally:
            child.terminate()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len({line["prompt"] for line in lines}) == 30
    assert sum(line["fault"] is None for line in lines) == 30 < len(lines)


def test_a_running_loop_is_named_and_not_a_traceback() -> None:
    async def inside() -> None:
        model = open_server(COMPLETIONS, {"model": "m", "base_url": "http://127.0.0.1:9/v1"})
        with pytest.raises(EvalError, match="use a thread"):
            list(model.ask([Question(Generate("x"))]))

    asyncio.run(inside())


def test_a_generator_left_open_at_exit_is_quiet() -> None:
    script = SCRIPT.split("try:")[0] + 'going = model.ask([Question(Generate("a?"))] * 9)\nprint(next(going).at)\n'
    with serve(latency=0.05) as server:
        done = subprocess.run(
            [sys.executable, "-W", "always", "-c", script, server.url], capture_output=True, text=True
        )
    assert (done.returncode, done.stderr) == (0, "")
