"""Servers that misbehave: every question gets its one reply all the same, or a failure that says why."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import re
import socket
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from fault_server import FAULTS, serve
from hypothesis import given
from hypothesis import strategies as st

from evalcore.core.records.errors import EvalError, ServerGone
from evalcore.core.records.request import Failure, Generate, LogLikelihood
from evalcore.shell.models.model import Heard, Model, Notice, Question
from evalcore.shell.models.openai import http_flow
from evalcore.shell.models.openai.arguments import ServerKind
from evalcore.shell.models.openai.backend import open_server
from evalcore.shell.models.openai.body import read_choice, read_generation
from evalcore.shell.models.openai.http_faults import Patience, Wrong, compute_wait, parse_wait, read_message
from evalcore.shell.models.openai.http_flow import Turnstile, enter_turnstile, leave_turnstile, run_jobs

COMPLETIONS, CHAT = ServerKind("local-completions"), ServerKind("local-chat-completions", chat=True)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def model(url: str, kind: ServerKind = COMPLETIONS, **args: object) -> Model:
    return open_server(kind, {"model": "toy", "base_url": url, **args}, base=0.001)


def questions(count: int = 6) -> list[Question]:
    return [Question(Generate(f"Question {number}:", {"until": ["\n"], "max_gen_toks": 8})) for number in range(count)]


def ask(of: Model, asked: list[Question]) -> dict[int, Heard]:
    heard = [one for one in of.ask(asked) if isinstance(one, Heard)]
    assert sorted(one.at for one in heard) == list(range(len(asked)))
    # which came together, and how soon, depends on the machine
    return {one.at: one._replace(more=False, spent=None) for one in heard}


def reply_to(script: object, count: int = 1, **args: object) -> list[object]:
    with serve(script=script) as server:
        return [one.reply for one in ask(model(server.url, **args), questions(count)).values()]


def raw(content: object, status: int = 200, **headers: str) -> tuple[int, dict[str, str], bytes]:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return status, {name.replace("_", "-"): value for name, value in headers.items()}, body


@pytest.mark.parametrize("kind", [COMPLETIONS, CHAT], ids=lambda kind: kind.name)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_a_third_of_requests_go_wrong_and_nothing_changes(kind: ServerKind, seed: int) -> None:
    asked = questions(150)
    if not kind.chat:
        asked += [Question(LogLikelihood(f"The {number}th word is", " river stone")) for number in range(50)]
    with serve() as good, serve(faults=0.3, seed=seed) as bad:
        expected = ask(model(good.url, kind, num_concurrent=8), asked)
        found = ask(model(bad.url, kind, num_concurrent=8), asked)
    assert found == expected
    assert not any(isinstance(one.reply, Failure) for one in found.values())
    assert len(bad.bodies) > 1.2 * len(good.bodies)


@pytest.mark.parametrize("fault", [*FAULTS, "502", "504", "408", "529"])
def test_a_passing_fault_is_survived(fault: str) -> None:
    with serve(script=lambda number, body: fault if number < 3 else None) as server, serve() as good:
        assert ask(model(server.url), questions(1)) == ask(model(good.url), questions(1))
        assert len(server.bodies) == 4


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_fails_that_question_and_no_other(fault: str) -> None:
    def script(number: int, body: dict[str, object]) -> str | None:
        return fault if "Question 2:" in str(body["prompt"]) else None

    with serve(script=script) as server:
        heard = ask(model(server.url, max_retries=3), questions(5))
    assert [at for at, one in heard.items() if isinstance(one.reply, Failure)] == [2]
    assert sum("Question 2:" in str(body["prompt"]) for body in server.bodies) == 4
    assert "(4 tries)" in heard[2].reply.reason  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [400, 413, 422, 501])
def test_a_refusal_is_not_asked_again(status: int) -> None:
    with serve(script=lambda number, body: raw({"error": {"message": "too long"}}, status)) as server:
        heard = ask(model(server.url), questions(2))
    assert heard[0].reply == Failure(f"http_{status}: too long")
    assert len(server.bodies) == 2


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_server_that_begins_by_refusing_stops_the_run(status: int) -> None:
    with serve(script=lambda number, body: raw({"error": {"message": "no"}}, status)) as server:
        with pytest.raises(EvalError, match=rf"127\.0\.0\.1:\d+/v1/completions: http_{status}: no - is") as caught:
            list(model(server.url, num_concurrent=4).ask(questions(50)))
        assert "\n" not in str(caught.value)
        assert len(server.bodies) <= 4
    later = reply_to(lambda number, body: raw({}, status) if number == 1 else None, 3)
    assert [isinstance(one, Failure) for one in later] == [False, True, False]


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # held, and not listened to: nobody else gets this port meanwhile
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        heard: list[Heard | Notice] = []
        with pytest.raises(ServerGone, match=r"connection refused \(4 tries\); is the server running"):
            heard.extend(model(url).ask(questions(100)))
        told = [re.sub(r".*: (.*); the run stops.*", r"\1", one.text) for one in heard if isinstance(one, Notice)]
        assert told == [f"connection refused, retry {number} of 3" for number in (1, 2, 3)]


def test_no_such_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # how long a resolver takes is the machine's affair
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EvalError, match="connection: ConnectError"):
        list(model("http://no-such-host.invalid/v1").ask(questions(1)))


def test_a_server_without_tls_is_named() -> None:
    with serve() as server, pytest.raises(EvalError, match=r"connection: ConnectError: \[SSL"):
        list(model(server.url.replace("http:", "https:")).ask(questions(1)))


def test_broken_chunks_are_survived() -> None:
    broken = (200, {"Transfer-Encoding": "chunked", "Content-Length": "0"}, b"zz\r\nnot a chunk")
    with serve(script=lambda number, body: broken if number == 0 else None) as server:
        assert isinstance(ask(model(server.url), questions(1))[0].reply, str)


def test_a_server_that_goes_away_stops_the_run_and_fails_no_question() -> None:
    """Eight in flight lose their connections; each retry is told of once."""
    with serve() as server:
        going = model(server.url, max_retries=3, num_concurrent=8).ask(questions(100))
        assert isinstance(next(going), Heard)
    heard: list[Heard | Notice] = []
    with pytest.raises(ServerGone, match=r"is gone: connection refused \([45] tries\); once it is back, the same comm"):
        heard.extend(going)
    assert not [one for one in heard if isinstance(one, Heard) and isinstance(one.reply, Failure)]
    told = [one.text for one in heard if isinstance(one, Notice)]
    assert [number for number in range(1, 5) for text in told if f"retry {number} of 3;" in text] in ([1, 2, 3], [2, 3])


def test_a_server_that_is_away_for_long_is_gone_whatever_the_number_of_retries() -> None:
    with serve() as server:
        going = model(server.url, max_retries=10**6, give_up_after=0.3).ask(questions(9))
        assert isinstance(next(going), Heard)
    with pytest.raises(ServerGone, match="is gone: connection refused"):
        list(going)


def test_a_server_that_comes_back_is_told_of() -> None:
    with serve() as server:
        going = model(server.url, max_retries=10**6).ask(questions(9))
        heard = [next(going)]
    while not isinstance(heard[-1], Notice):
        heard.append(next(going))
    with serve(port=int(server.url.split(":")[2].split("/")[0])):
        heard.extend(going)
    assert sum(isinstance(one, Heard) for one in heard) == 9
    assert any(isinstance(one, Notice) and one.text.endswith("is back") for one in heard)


@pytest.mark.parametrize("fault", ["hang", "dribble"])
def test_a_server_that_hangs_meets_a_deadline(fault: str) -> None:
    """The server goes on for ten minutes, and then breaks the connection: that would be another reason."""
    [reply] = reply_to(lambda number, body: fault, timeout=0.3, read_timeout=300, max_retries=1)
    assert reply == Failure("timeout: no whole reply within 0.3 s (2 tries)")


def test_a_server_that_is_silent_meets_a_deadline_of_its_own() -> None:
    [reply] = reply_to(lambda number, body: "hang", read_timeout=0.2, max_retries=0)
    assert reply == Failure("timeout: not a byte for 0.2 s")


ONE = {"index": 0, "finish_reason": "stop", "text": "x", "message": {"content": "x"}}
BAD = {
    "html": b"<html>",
    "empty": b"",
    "spaces": b"  \n ",
    "error": {"error": {"message": "overloaded"}},
    "error text": {"error": "overloaded"},
    "no choices": {"choices": []},
    "null choices": {"choices": None},
    "choices as text": {"choices": "x"},
    "choice as text": {"choices": ["x"]},
    "a list": [ONE],
    "a number": 5,
    "missing index": {"choices": [{key: value for key, value in ONE.items() if key != "index"}]},
    "wrong index": {"choices": [{**ONE, "index": 1}]},
    "false index": {"choices": [{**ONE, "index": False}]},
    "duplicate index": {"choices": [ONE, ONE]},
    "extra choice": {"choices": [ONE, {**ONE, "index": 1}]},
    "null content": {"choices": [{**ONE, "text": None, "message": {"content": None}}]},
    "number content": {"choices": [{**ONE, "text": 5, "message": {"content": 5}}]},
    "no content": {"choices": [{"index": 0}]},
    "tool calls only": {"choices": [{"index": 0, "message": {"tool_calls": [{"id": 1}]}}]},
    "message as text": {"choices": [{"index": 0, "message": "x"}]},
    "deep": b"[" * 100_000,
    "huge number": b'{"choices": ' + b"9" * 10_000 + b"}",
    "not utf-8": b'{"choices": "\xff\xfe"}',
}


@pytest.mark.parametrize("kind", [COMPLETIONS, CHAT], ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", BAD)
def test_what_is_not_an_answer_is_a_failure_and_never_an_empty_text(name: str, kind: ServerKind) -> None:
    with serve(script=lambda number, body: raw(BAD[name])) as server:
        [heard] = ask(model(server.url, kind, max_retries=2), questions(1)).values()
        assert isinstance(heard.reply, Failure)
        assert heard.reply.reason.startswith("bad_response: ")
        assert len(heard.reply.reason) < 400
        assert len(server.bodies) == 3
    mended = serve(script=lambda number, body: raw(BAD[name]) if number == 0 else None)
    with mended as server:
        [heard] = ask(model(server.url, kind), questions(1)).values()
        assert isinstance(heard.reply, str)


def test_no_text_is_not_asked_for_ever() -> None:
    with serve(script=lambda number, body: raw(BAD["null content"])) as server:
        ask(model(server.url), questions(1))
        assert len(server.bodies) == 3


class BadResponse(Exception):
    """A fault that has its name."""


def read_or_name(kind: ServerKind, content: bytes) -> tuple[str, str]:
    try:
        return read_generation(kind, "</think>", content)
    except Wrong as wrong:
        raise (BadResponse() if wrong.reason.startswith("bad_response: ") else wrong) from None


@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(ONE)), inner, max_size=5),
        max_leaves=9,
    ).map(lambda choice: json.dumps({"choices": [choice]}).encode())
)
def test_any_body_is_a_text_or_a_named_fault(content: bytes) -> None:
    for kind in (COMPLETIONS, CHAT):
        with suppress(BadResponse):
            text, finish = read_or_name(kind, content)
            assert isinstance(text, str)
            assert isinstance(finish, str)
    read_message(content)


def test_how_a_reply_ended_is_kept_and_an_empty_text_is_an_answer() -> None:
    for finish in ("length", "content_filter", "stop"):
        with serve(
            script=lambda number, body, f=finish: raw({"choices": [{**ONE, "text": "", "finish_reason": f}]})
        ) as server:
            assert ask(model(server.url), questions(1))[0][:3] == (0, "", finish)
    with serve(script=lambda number, body: raw({"choices": [{"index": 0, "text": "x"}]})) as server:
        assert ask(model(server.url), questions(1))[0][:3] == (0, "x", "")


def test_a_body_too_large_is_not_read_to_its_end() -> None:
    big = raw({"choices": [{**ONE, "text": "x" * (17 << 20)}]})
    [reply] = reply_to(lambda number, body: big)
    assert reply == Failure("too_large: a reply of more than 16 MB")
    fitting = raw({"choices": [{**ONE, "text": "x" * (10 << 20)}]})
    assert reply_to(lambda number, body: fitting) == ["x" * (10 << 20)]


def test_a_compressed_body_is_not_unfolded() -> None:
    bomb = gzip.compress(json.dumps({"choices": [{**ONE, "text": "x" * (64 << 20)}]}).encode())
    [reply] = reply_to(lambda number, body: raw(bomb, Content_Encoding="gzip"), max_retries=1)
    assert reply == Failure("bad_response: a body in gzip, which was not asked for (2 tries)")
    with serve() as server:
        ask(model(server.url), questions(1))
        assert server.headers[0]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_refused(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-of-this-test")
    with serve() as elsewhere:
        target = f"{elsewhere.url}/completions?key=sk-other"
        with serve(script=lambda number, body: raw(b"", status, Location=target)) as server:
            with pytest.raises(EvalError, match="redirects are not followed") as caught:
                list(model(server.url).ask(questions(3)))
            assert "sk-other" not in str(caught.value)
        assert not elsewhere.bodies
        later = reply_to(lambda number, body: raw(b"", status, Location=target) if number else None, 2)
        assert isinstance(later[1], Failure)
        assert not elsewhere.bodies


# --- how long to wait ------------------------------------------------------------------------------------------------

NOW = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0), ("0", 0.0), ("1.5", 1.5), ("-3", None), ("nan", None), ("inf", None), ("soon", None), ("", None), (None, None),
        ("1e9", 1e9), ("Wed, 01 May 2024 12:00:20 GMT", 20.0), ("Wed, 01 May 2024 11:00:00 GMT", None),
        ("Wed, 99 May 2024 12:00:20 GMT", None),
    ],
)  # fmt: skip
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert parse_wait(header, NOW) == seconds


@given(st.integers(1, 10_000), st.none() | st.floats(0, 1e300), st.floats(0, 1, exclude_max=True))
def test_waits_are_bounded_and_at_least_what_was_told(tried: int, told: float | None, jitter: float) -> None:
    patience = Patience()
    wait = compute_wait(tried, told, jitter, patience)
    assert 0 < wait <= patience.longest_told
    assert wait >= min(told or 0, patience.longest_told)
    assert compute_wait(tried + 1, None, jitter, patience) >= compute_wait(tried, None, jitter, patience)


def test_a_server_that_names_a_time_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, sleep = [], asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    reply_to(lambda number, body: raw(b"", 429, Retry_After="40") if number == 0 else None)
    assert len(waits) == 1
    assert 40 <= waits[0] <= 44  # up to a tenth more, so that not all come back at once


# --- many at once ----------------------------------------------------------------------------------------------------


def test_never_more_in_flight_than_allowed_and_never_fewer_than_possible() -> None:
    with serve(ready=lambda server: server.most_active >= 7) as server:
        ask(model(server.url, num_concurrent=7), questions(60))
        assert server.most_active == 7
        assert len(server.bodies) == 60


def test_replies_are_those_of_their_questions_whatever_the_order() -> None:
    def script(number: int, body: dict[str, object]) -> None:
        time.sleep(0.0005 * (number % 7))

    asked = questions(40)
    with serve(script=script) as server:
        one, many = ask(model(server.url), asked), ask(model(server.url, num_concurrent=16), asked)
        back = ask(model(server.url, num_concurrent=16), asked[::-1])
    assert one == many == {39 - at: heard._replace(at=39 - at) for at, heard in back.items()}


def test_a_reply_not_yet_taken_counts_as_in_flight() -> None:
    with serve() as server:
        going = model(server.url, num_concurrent=4).ask(questions(40))
        for taken in range(1, 20):
            next(going)
            time.sleep(0.01)
            assert len(server.bodies) <= taken - 1 + 4
        going.close()  # type: ignore[attr-defined]


def test_complaints_lower_the_number_in_flight_of_retries_too() -> None:
    """Eight are sent together and turned away together: half of them are in flight after that, retries or not."""

    def script(number: int, body: dict[str, object]) -> str | None:
        seen.append(server.active)
        return "429" if number < 8 else None

    seen: list[int] = []
    with serve(script=script, ready=lambda server: len(server.bodies) >= 8) as server:
        heard = ask(model(server.url, num_concurrent=8), questions(30))
    assert not any(isinstance(one.reply, Failure) for one in heard.values())
    assert max(seen[8:12]) <= 5  # four, and one more after the first success
    assert len(server.bodies) == 38


def test_the_gate_halves_once_for_all_that_were_sent_together() -> None:
    async def pass_turnstile() -> list[int]:
        turnstile, limits = Turnstile(8, 8), list[int]()
        turns = [await enter_turnstile(turnstile) for _ in range(8)]
        for turn in turns:
            leave_turnstile(turnstile, turn, fine=False, throttled=True)
            limits.append(turnstile.limit)
        for _ in range(3):
            leave_turnstile(turnstile, await enter_turnstile(turnstile), fine=True, throttled=False)
            limits.append(turnstile.limit)
        leave_turnstile(turnstile, await enter_turnstile(turnstile), fine=False, throttled=True)
        return [*limits, turnstile.limit]

    assert asyncio.run(pass_turnstile()) == [4] * 8 + [5, 6, 7, 3]


def test_closing_early_leaves_nothing_behind(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    """Of eight requests one is answered; the others hang, and closing does not wait for them."""
    asyncio.set_event_loop(None)  # a loop that another test left to its thread would be dropped only by ours
    gc.collect()  # what other tests left behind is not looked for here
    recwarn.clear()
    script = lambda number, body: "hang" if number else None  # noqa: E731
    with serve(script=script, ready=lambda server: len(server.bodies) >= 8) as server:
        going = model(server.url, num_concurrent=8).ask(questions(40))
        next(going)
        going.close()  # type: ignore[attr-defined]
        assert server.active >= 7
        assert 8 <= len(server.bodies) <= 9  # the place of the one that was answered may have been taken
        del going
    gc.collect()
    assert capfd.readouterr().err == ""
    assert not [str(one.message) for one in recwarn if issubclass(one.category, ResourceWarning | RuntimeWarning)]


def test_an_error_in_one_cancels_the_others_after_the_replies_at_hand() -> None:
    gone: list[int] = []

    async def work(number: int) -> int:
        try:
            await asyncio.sleep(0 if number < 3 else 10**6)
        except asyncio.CancelledError:
            gone.append(number)
            raise
        if number == 1:
            raise EvalError("stop")
        return number

    heard = []
    with asyncio.Runner() as runner, pytest.raises(EvalError, match="stop"):
        heard.extend(run_jobs(runner, work, deque(range(6)), 6, asyncio.Event()))
    assert gone == [3, 4, 5]
    assert {one[0] for one in heard if one} <= {0, 2}


def test_an_interrupt_as_a_wait_ends_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """It leaves the loop a stop that is meant for the wait, and would end the clearing up instead."""
    wait_some = http_flow._wait_some

    def interrupt() -> None:
        raise KeyboardInterrupt

    async def interrupted(tasks: tuple[asyncio.Task[int], ...], alarm: asyncio.Task[bool]) -> set[asyncio.Task[int]]:
        done = await wait_some(tasks, alarm)
        asyncio.get_running_loop().call_soon(interrupt)
        return done

    async def work(number: int) -> int:
        try:
            await asyncio.sleep(0 if number == 0 else 10**6)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            raise
        return number

    monkeypatch.setattr(http_flow, "_wait_some", interrupted)
    with asyncio.Runner() as runner, pytest.raises(KeyboardInterrupt):
        list(run_jobs(runner, work, deque(range(4)), 4, asyncio.Event()))


def test_read_choice_takes_extra_fields() -> None:
    assert read_choice(json.dumps({"choices": [ONE], "usage": {}, "id": 3}).encode())["text"] == "x"
