"""What answers take: tokens, seconds and cost in run.json and the table; budgets that stop a run which then goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fault_server import answer as answer_body
from fault_server import count_tokens, serve
from small_tasks import evalcore_here

import evalcore
from evalcore.core.records.errors import EvalError
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.answerlog.line import HEADER, encode_record, make_record
from evalcore.shell.answerlog.spent import Spent
from evalcore.shell.answerlog.writer import open_log
from evalcore.shell.models.openai.token_counts import read_usage
from evalcore.shell.run.run_result import RunResult

DOCS = [{"question": f"How many stones are in river {n}", "answer": "seven"} for n in range(12)]
TASK = {
    "task": "stones",
    "doc_to_text": "{{question}}",
    "doc_to_target": "{{answer}}",
    "output_type": "generate_until",
    "metric_list": [{"metric": "exact_match"}],
    "test_split": "test",
    "dataset_path": "json",
}
PRICES = {"input": 1000.0, "output": 3000.0}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def go(url: str, **keys: object) -> RunResult:
    args = {"model": "toy", "base_url": url, "max_retries": 3, "num_concurrent": 4}
    given = {"model_args": args, "model": "local-completions", "tasks": [TASK], "output_path": "out"}
    return evalcore.run({**given, "data": {"stones": DOCS}, **keys})


def facts(folder: str = "out") -> dict[str, dict[str, object]]:
    return json.loads(Path(folder, "run.json").read_text())


def billed(bodies: list[dict[str, object]]) -> tuple[int, int]:
    """What the server counted itself, over all requests that it answered."""
    counts = [count_tokens(body, answer_body("/v1/completions", body)) for body in bodies]
    return sum(int(str(one["prompt_tokens"])) for one in counts), sum(
        int(str(one["completion_tokens"])) for one in counts
    )


# --- what is counted --------------------------------------------------------------------------------------------------


def test_tokens_latency_and_cost_are_those_that_the_server_counted() -> None:
    with serve(usage=True) as server:
        done = go(server.url, prices=PRICES)
        read, wrote = billed(server.bodies)
    usage = facts()["usage"]
    assert (usage["requests"], usage["failed"], usage["retries"], usage["uncounted_replies"]) == (12, 0, 0, 0)
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (read, wrote)
    assert usage["cost"] == pytest.approx((read * 1000 + wrote * 3000) / 1e6, rel=1e-12)
    assert set(usage["latency_seconds"]) == {"p50", "p90", "p99"}  # type: ignore[call-overload]
    assert usage["now"]["requests"] == 12  # type: ignore[index]
    assert usage["prices"] == PRICES
    assert f"12 requests, {read} tokens in, {wrote} out, median " in str(done)
    assert f"${(read + 3 * wrote) / 1000:.2f}" in str(done)


def test_results_hold_nothing_that_differs_between_runs() -> None:
    with serve(usage=True) as server:
        go(server.url, prices=PRICES)
        go(server.url, output_path="again", prices={"input": 1, "output": 1})
    one, other = (Path(folder, "results.json").read_bytes() for folder in ("out", "again"))
    assert one == other
    assert b"usage" not in one


def test_replies_without_a_count_are_told_of_and_never_guessed() -> None:
    with serve(usage=lambda n: None if n % 3 else {"prompt_tokens": 7, "completion_tokens": 2}) as server:
        done = go(server.url, prices=PRICES, model_args={"model": "toy", "base_url": server.url})
    usage = facts()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["uncounted_replies"]) == (28, 8, 8)
    assert "at least $0.0520 (8 replies came without a count of tokens)" in str(done)


def test_a_server_that_counts_nothing_has_no_tokens_and_no_cost() -> None:
    with serve() as server:
        done = go(server.url, prices=PRICES)
    usage = facts()["usage"]
    assert (usage["prompt_tokens"], usage["cost"], usage["uncounted_replies"]) == (None, None, 12)
    assert "12 replies came without a count of tokens" in str(done)
    assert "$" not in str(done)


def test_a_resumed_run_adds_up_what_earlier_commands_took() -> None:
    with serve(usage=True, script=lambda n, body: "500" if n >= 5 else None) as server:
        go(server.url, allow_failures="100%", model_args={"model": "toy", "base_url": server.url, "max_retries": 0})
    assert facts()["usage"]["failed"] == 7
    with serve(usage=True) as server:
        done = go(server.url)
        assert len(server.bodies) == 7
    usage = facts()["usage"]
    assert (usage["requests"], usage["failed"], usage["now"]["requests"]) == (19, 7, 7)  # type: ignore[index]
    assert "19 requests (7 now)" in str(done)
    assert done.complete


def test_retries_are_counted() -> None:
    with serve(usage=True, script=lambda n, body: "garbage" if n < 2 else None) as server:
        go(server.url, model_args={"model": "toy", "base_url": server.url})
    assert (facts()["usage"]["requests"], facts()["usage"]["retries"]) == (12, 2)


def test_a_run_without_a_model_to_pay_says_nothing() -> None:
    done = go("", model="dummy", model_args={})
    assert facts()["usage"]["prompt_tokens"] is None
    assert "request" not in str(done).rpartition("documents:")[2]
    replayed = go("", model="replay", model_args={"path": "out"}, output_path="replayed")
    assert replayed.usage is None
    assert "usage" not in facts("replayed")


@pytest.mark.parametrize(
    "usage",
    [
        "9",
        None,
        [],
        {},
        {"prompt_tokens": True, "completion_tokens": 1.5},
        {"prompt_tokens": -1, "completion_tokens": 1 << 60},
        {"prompt_tokens": None, "completion_tokens": 3},
    ],
)
def test_counts_that_make_no_sense_are_none(usage: object) -> None:
    spent = read_usage(json.dumps({"choices": [], "usage": usage}).encode(), 0.1)
    assert not spent.known
    assert spent.seconds == 0.1


def test_cached_tokens_are_among_those_of_the_prompt() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 99}}
    assert read_usage(json.dumps({"usage": usage}).encode(), 0.1).cached == 10
    with serve(usage=lambda n: {**usage, "prompt_tokens_details": {"cached_tokens": 4}}) as server:
        go(server.url, prices={**PRICES, "cached_input": 100.0})
    assert facts()["usage"]["cached_prompt_tokens"] == 48
    assert facts()["usage"]["cost"] == pytest.approx(12 * (6 * 1000 + 4 * 100 + 3000) / 1e6)


# --- the log ----------------------------------------------------------------------------------------------------------


def test_the_log_keeps_what_each_answer_took_and_reads_logs_without() -> None:
    old = encode_record(make_record("k0", "r", 0, "m", "four"))
    assert b"spent" not in old
    Path("log.jsonl").write_bytes(HEADER + old)
    with open_log("log.jsonl", "m") as log:
        log.append("k1", "r", 0, "five", "stop", Spent(9, 2, seconds=0.25, tries=3))
        log.append("k1", "r", 0, "six", "stop", Spent(9, 1))
    state = read_log("log.jsonl")
    assert state.answers["k0"].spent is None
    assert state.answers["k1"].spent == Spent(9, 1)
    assert [one.spent for one in state.superseded] == [Spent(9, 2, seconds=0.25, tries=3)]
    assert b'"spent":{"prompt":9,"completion":2,"seconds":0.25,"tries":3}' in Path("log.jsonl").read_bytes()


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_max_requests_stops_and_a_higher_one_goes_on() -> None:
    with serve(usage=True) as server:
        done = go(server.url, max_requests=5)
        assert len(server.bodies) == 5
        assert not done.complete
        assert (done.ledger.scored, done.ledger.failed) == (5, 7)
        assert "budget reached (max_requests 5)" in str(done)
        assert "7 of 12 questions were not asked, as the budget was reached" in str(done)
        rows = map(json.loads, Path("out/samples_stones.jsonl").read_text().splitlines())
        assert [row["doc_id"] for row in rows if row["resps"] != [[None]]] == [0, 1, 2, 3, 4]  # not the longest
        assert go(server.url, max_requests=5).ledger.scored == 5
        assert len(server.bodies) == 5  # the budget is that of the run, not of the command
        again = go(server.url, max_requests=9)
        assert (len(server.bodies), again.ledger.scored) == (9, 9)
        whole = go(server.url)
    assert whole.complete
    assert len(server.bodies) == 12
    assert facts()["usage"]["requests"] == 12


def test_max_cost_lets_what_is_in_flight_finish() -> None:
    """Each reply costs a dollar, four are in flight, and the budget is two dollars: a reply that is alone at hand makes
    room for one more, the second for none; all that were sent are kept.
    """
    dollar = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
    with serve(usage=lambda n: dollar, ready=lambda server: len(server.bodies) >= 4) as server:
        done = go(server.url, prices={"input": 1, "output": 0}, max_cost=2)
        sent = len(server.bodies)
    assert 4 <= sent <= 5
    assert done.ledger.scored == sent
    assert done.usage is not None
    assert done.usage.cost == sent
    assert "budget reached (max_cost 2)" in str(done)
    with serve(usage=True) as server:
        go(server.url, prices={"input": 1, "output": 0}, max_cost=2)
        assert server.bodies == []
        go(server.url, prices={"input": 1, "output": 0}, max_cost=2000)
        assert len(server.bodies) == 12 - sent


def test_max_cost_without_prices_or_counts_is_an_error() -> None:
    with pytest.raises(EvalError, match=r"max_cost needs prices, such as prices: \{input: 0.15, output: 0.60\}"):
        go("http://localhost:1/v1", max_cost=1)
    with (
        serve() as server,
        pytest.raises(EvalError, match=r"max_cost cannot be kept: a reply came without a count.*are in the answer log"),
    ):
        go(server.url, max_cost=1, prices=PRICES)
    assert go("", model="dummy", model_args={}, max_cost=1, prices=PRICES, output_path="free").complete


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"prices": {"input": 1}}, "output"),
        ({"prices": {"input": 1, "output": -1}}, "prices: Expected `float` >= 0"),
        ({"prices": {"input": 1, "output": 1, "outptu": 2}}, "outptu"),
        ({"prices": 3}, "prices"),
        ({"max_requests": -1}, "max_requests to be at least 0"),
        ({"max_requests": "many"}, "max_requests"),
        ({"doc_timeout": 1e18}, "doc_timeout to be below 1e9 seconds"),  # no clock goes so far
        ({"max_requests": 10**400}, "max_requests to be at least 0, below"),
        ({"prices": PRICES, "max_cost": -1.0}, "max_cost to be a number of dollars"),
    ],
)
def test_prices_and_budgets_are_checked(keys: dict[str, object], message: str) -> None:
    with pytest.raises(EvalError, match=message):
        go("", model="dummy", model_args={}, **keys)


def test_budgets_are_flags_and_leave_the_default_folder_as_it_is(tmp_path: Path) -> None:
    Path("docs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in DOCS))
    Path("stones.yaml").write_text(json.dumps(TASK))
    given = ["run", "--model", "dummy", "--tasks", "stones.yaml", "--data", "stones=docs.jsonl"]
    first = evalcore_here(tmp_path, *given, "--max_requests", "5")
    assert first.returncode == 1, first.stderr
    again = evalcore_here(
        tmp_path, *given, "--max-requests", "50", "--prices", "input=0.15,output=0.6", "--max_cost", "1"
    )
    assert again.returncode == 0, again.stderr
    assert len(list(Path("runs").iterdir())) == 1
