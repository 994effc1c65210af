"""Servers and proxies that send replies twice: no question gets the reply to another one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from fault_server import serve
from small_tasks import evalcore

from evalcore.core.records.request import Likelihood, LogLikelihood
from evalcore.shell.answerlog.line import Withdrawn, encode_record, make_record
from evalcore.shell.models.model import Heard, Question
from evalcore.shell.models.openai.arguments import ServerKind
from evalcore.shell.models.openai.backend import open_server

COUNT = 12
UNIQUE: Callable[[int], str] = "cmpl-{:04}".format
CONSTANT: Callable[[int], str] = lambda number: "cmpl-0"  # noqa: E731


def solve(number: int, body: dict[str, object], ids: Callable[[int], str] | None) -> tuple[int, dict[str, str], bytes]:
    """The right answer to a sum."""
    a, b = map(int, re.findall(r"(\d+) \+ (\d+) =$", str(body["prompt"]))[0])
    reply = {"choices": [{"index": 0, "text": f" {a + b}", "finish_reason": "stop"}]}
    return 200, {}, json.dumps({"id": ids(number), **reply} if ids else reply).encode()


def run_sums(home: Path, url: str, **args: object) -> tuple[int, float, str]:
    """Exit code, score and what was said of a run of sums whose right answers are all different."""
    task = {
        "task": "sums",
        "output_type": "generate_until",
        "doc_to_text": "{{a}} + {{b}} =",
        "doc_to_target": "{{a + b}}",
        "metric_list": [{"metric": "exact_match"}],
        "filter_list": [{"name": "n", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}],
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": "docs.jsonl"}},
        "test_split": "test",
    }
    home.mkdir(exist_ok=True)
    (home / "docs.jsonl").write_text("".join(json.dumps({"a": 100 * n, "b": n}) + "\n" for n in range(COUNT)))
    (home / "sums.yaml").write_text(yaml.safe_dump(task))
    model = {"model": "toy", "base_url": url, **args}
    config = {"model": "local-completions", "model_args": model, "tasks": ["sums.yaml"], "output_path": "out"}
    (home / "run.yaml").write_text(yaml.safe_dump(config))
    done = evalcore(home, "run", "run.yaml")
    found = json.loads((home / "out" / "results.json").read_text())["results"]["sums"]["exact_match,n"]
    return done.returncode, found, done.stderr


def log_lines(home: Path) -> list[dict[str, object]]:
    lines = (home / "out" / "answers.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if "key" in row]


@pytest.mark.parametrize(
    ("twice", "ids", "width"),
    [
        ("at once", None, 1), ("late", UNIQUE, 1), ("behind", UNIQUE, 3),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("at once", UNIQUE, 3), ("soon", None, 1), ("soon", UNIQUE, 1), ("soon", CONSTANT, 3), ("late", None, 1),
                ("late", CONSTANT, 3), ("behind", UNIQUE, 1),
            )
        ),
    ],
)  # fmt: skip
def test_replies_sent_twice_change_no_score(
    tmp_path: Path, twice: str, ids: Callable[[int], str] | None, width: int
) -> None:
    with serve(script=lambda number, body: solve(number, body, ids), twice=twice) as server:
        code, score, said = run_sums(tmp_path, server.url, num_concurrent=width)
    assert (code, score) == (0, 1.0), said
    assert "sends replies twice" in said
    assert len(server.bodies) <= 2 * COUNT


def test_answers_that_may_be_those_of_others_are_withdrawn_in_the_log_and_asked_again(tmp_path: Path) -> None:
    """Four replies come one place late, before it shows."""
    twice = lambda sent: "behind" if sent < 5 else "late"  # noqa: E731
    with serve(script=lambda number, body: solve(number, body, None), twice=twice) as server:
        code, score, said = run_sums(tmp_path, server.url)
        assert (code, score) == (0, 1.0), said
        lines = log_lines(tmp_path)
        withdrawn = [line["key"] for line in lines if "withdrawn" in line]
        assert len(withdrawn) == 4
        assert all(sum(line["key"] == key for line in lines) == 3 for key in withdrawn)  # wrong, withdrawn, right
        asked = len(server.bodies)
        assert run_sums(tmp_path, server.url)[:2] == (0, 1.0)
        assert len(server.bodies) == asked, "the log knows the right answers"


def test_new_ids_vouch_for_nothing_once_unasked_bytes_came(tmp_path: Path) -> None:
    """A proxy asks twice and sends both replies, each with an id of its own; the second comes late, before it shows."""
    last: list[bytes] = []

    def ask_twice(number: int, body: dict[str, object]) -> tuple[int, dict[str, str], bytes]:
        reply = solve(number, body, UNIQUE)
        late, last[:] = last[:], [reply[2].replace(b"cmpl-", b"second-")]
        return (200, {}, late[0]) if late and 0 < number < 5 else reply

    with serve(script=ask_twice, twice=lambda sent: "at once" if sent == 7 else "") as server:
        code, score, said = run_sums(tmp_path, server.url)
    assert (code, score) == (0, 1.0), said
    assert "bytes came after a reply" in said


@pytest.mark.slow
def test_a_run_killed_after_a_withdrawal_asks_again(tmp_path: Path) -> None:
    with serve(script=lambda number, body: solve(number, body, None)) as server:
        run_sums(tmp_path, server.url)
        path = tmp_path / "out" / "answers.jsonl"
        first = log_lines(tmp_path)[0]
        record = make_record(str(first["key"]), str(first["request"]), 0, str(first["model"]), Withdrawn("shifted"))
        path.write_bytes(path.read_bytes() + encode_record(record))
        assert run_sums(tmp_path, server.url)[:2] == (0, 1.0)
        assert len(server.bodies) == COUNT + 1


@pytest.mark.parametrize(
    "ids",
    [UNIQUE, *(pytest.param(one, marks=pytest.mark.slow) for one in (None, CONSTANT, lambda n: f"chatcmpl-{n % 3}"))],
)
def test_a_good_server_is_asked_over_one_connection_whatever_its_ids(
    tmp_path: Path, ids: Callable[[int], str] | None
) -> None:
    with serve(script=lambda number, body: solve(number, body, ids)) as server:
        code, score, said = run_sums(tmp_path, server.url)
    assert (code, score, server.opened, len(server.bodies)) == (0, 1.0, 1, COUNT), said
    assert "warning" not in said
    assert not any("withdrawn" in line for line in log_lines(tmp_path))


@pytest.mark.parametrize("ids", [pytest.param(None, marks=pytest.mark.slow), CONSTANT])
def test_the_same_reply_to_all_is_no_duplicate(tmp_path: Path, ids: Callable[[int], str] | None) -> None:
    """A server whose replies are all the same bytes costs one more request at most, and no warning."""
    same = solve(0, {"prompt": "1 + 1 ="}, ids)
    with serve(script=lambda number, body: same) as server:
        code, score, said = run_sums(tmp_path, server.url)
    assert (code, score) == (0, 0.0), said
    assert "twice" not in said
    assert len(server.bodies) <= COUNT + 1


def test_a_connection_for_each_request_needs_no_ids(tmp_path: Path) -> None:
    """What no client can see on a kept connection, without ids: the advice for it works."""
    with serve(script=lambda number, body: solve(number, body, None), twice="behind") as server:
        assert run_sums(tmp_path / "kept", server.url)[1] < 0.5
        bodies, opened = len(server.bodies), server.opened
        code, score, said = run_sums(tmp_path / "own", server.url, keep_alive=False)
    assert (code, score) == (0, 1.0), said
    assert server.opened - opened == len(server.bodies) - bodies == COUNT


def test_likelihoods_echo_their_question(tmp_path: Path) -> None:
    """Without ids too, a reply to another question is seen to be one."""
    asked = [Question(LogLikelihood(f"The {number}th word is", " river stone")) for number in range(COUNT)]
    with serve() as good, serve(twice="behind") as bad:
        right, found = (
            {
                one.at: one.reply
                for one in open_server(ServerKind("local-completions"), {"model": "m", "base_url": url}).ask(asked)
                if isinstance(one, Heard)
            }
            for url in (good.url, bad.url)
        )
    assert found == right
    assert all(isinstance(one, Likelihood) for one in found.values())
