"""A verifier that hangs, raises or ends its process costs its call a reason, and no other call anything."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import isnan, nan
from pathlib import Path
from threading import Thread

import bad_verifiers
import pytest
from bad_verifiers import BAD, judge, tell_pid
from hypothesis import given, settings
from hypothesis import strategies as st

from evalcore import EvalError, Failed, MetricSpec, Ok, Unscorable
from evalcore.adapters.reward import PooledReward, TrlReward, VerlReward, make_reward, pool_reward
from evalcore.adapters.verifiers import VerifierPool, verifier_worker
from evalcore.extensions import per_document

HERE = Path(__file__).parent
MINUTE = 60.0


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def wait_until_gone(*pids: int) -> list[int]:
    """Wait for processes to end; those that are left after a minute."""
    deadline = time.monotonic() + MINUTE
    while (left := [pid for pid in pids if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def list_group(pid: int) -> list[str]:
    """The processes of a group that are no zombies."""
    rows = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    return [row for row in rows.splitlines() if int(row.split()[0]) == pid and not row.split()[1].startswith("Z")]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of all processes that pools start in a test; at its end none is left, nor a child of one."""
    pids: list[int] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *given: object, **named: object) -> None:
            super().__init__(*given, **named)  # type: ignore[call-overload]
            pids.append(self.pid)

    monkeypatch.setattr(verifier_worker, "Popen", Recorded)
    yield pids
    assert wait_until_gone(*pids) == []
    for pid in pids:
        with pytest.raises(ChildProcessError):  # waited for: no zombie either
            os.waitpid(pid, os.WNOHANG)
        assert list_group(pid) == []


# --- a thousand rewards ----------------------------------------------------------------------------------------------


def test_a_thousand_rewards_from_eight_threads(started: list[int]) -> None:
    """Every good call has exactly its score, every bad one its reason, each in its place; so has the next batch."""
    words = {100 * i + 50: word for i, word in enumerate([*BAD, "slow"])}
    calls = [(words.get(i, "fine"), str(i)) for i in range(1000)]
    wanted = [Failed(BAD[word][1]) if word in BAD else Ok(i / 3) for i, (word, _) in enumerate(calls)]
    with VerifierPool(judge, workers=4, deadline=2) as pool, ThreadPoolExecutor(8) as threads:
        parts = list(threads.map(pool.outcomes, [calls[i : i + 125] for i in range(0, 1000, 125)]))
        assert [one for part in parts for one in part] == wanted
        assert pool.outcomes([("fine", "1"), ("slow", "2")] * 20) == [Ok(1 / 3), Ok(2 / 3)] * 20
    assert len(started) > 4  # those that were killed were replaced


def test_waiting_for_a_worker_does_not_count(started: list[int]) -> None:
    with VerifierPool(judge, workers=1, deadline=2) as pool, ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: pool("slow", "3"), range(8))) == {Ok(1.0)}  # 8 times 0.3 s one after another
    assert len(started) == 1


# --- rewards through the pool ----------------------------------------------------------------------------------------


def distance(prediction: str, gold: str) -> float:
    """A metric of a task's own, which some completions make hang, crash or raise."""
    return judge(prediction, gold)


OWN = MetricSpec("distance", function=per_document(distance))
LAST_NUMBER = {"function": "regex", "regex_pattern": "(-?[0-9]+)", "group_select": -1}
REWARDS = {
    "regex": make_reward("exact_match", [LAST_NUMBER], unscorable=-1.0),
    "f1": make_reward("f1", scale=0.1),
    "chrf": make_reward("chrf", scale=0.01),
    "own": make_reward(OWN, unscorable=0.25),
}
TEXTS = st.one_of(st.text("ab 45.", max_size=8), st.none(), st.just([{"role": "assistant", "content": "so 4"}]))
GOLDS = st.one_of(st.integers(0, 9).map(str), st.lists(st.sampled_from(["4", "a b"]), max_size=2), st.none())


@pytest.fixture(scope="module")
def pooled() -> Iterator[dict[str, PooledReward]]:
    made = {name: pool_reward(one, failed=one.unscorable, deadline=MINUTE, workers=1) for name, one in REWARDS.items()}
    yield made
    for one in made.values():
        one.pool.close()


@pytest.mark.parametrize("name", REWARDS)
@settings(max_examples=15)
@given(rows=st.lists(st.tuples(TEXTS, GOLDS), min_size=1, max_size=6))
def test_without_bad_verifiers_the_rewards_are_the_plain_ones(
    pooled: dict[str, PooledReward], name: str, rows: list[tuple[object, object]]
) -> None:
    plain, ours = REWARDS[name], pooled[name]
    texts, golds = map(list, zip(*rows, strict=True))
    assert ours.outcomes(texts, golds) == plain.outcomes(texts, golds)
    assert [one.hex() for one in ours.rewards(texts, golds)] == [one.hex() for one in plain.rewards(texts, golds)]  # type: ignore[union-attr]
    assert ours(texts[0], golds[0]) == plain(texts[0], golds[0])


def test_what_a_trainer_gets_for_a_failure_is_what_was_declared(started: list[int]) -> None:
    texts, golds = ["9", "regex", "raise", "kill", "9", None], ["3", "3", "3", "3", None, "3"]
    with pool_reward(REWARDS["own"], failed=None, deadline=2) as reward:
        wanted = [1.0, None, None, None, 0.25, None]  # no gold is unscorable, not failed
        assert TrlReward(reward, gold="answer")(prompts=["?"] * 6, completions=texts, answer=golds) == wanted
        assert TrlReward(reward).__name__ == "distance"
        assert VerlReward({"a": reward, "b": make_reward("exact_match")}).batch(
            ["a", "b", "a"], ["9", "3", "exit"], ["3", "3", "3"]
        ) == [1.0, 1.0, None]
    with pool_reward("bad_verifiers:judge", failed=nan, deadline=MINUTE) as reward:
        assert VerlReward(reward)("any", "fine", "3") == 1.0
        assert isnan(VerlReward(reward)("any", "raise", "3"))  # type: ignore[arg-type]
        assert reward.name == "judge"
        with pytest.raises(EvalError, match="1 for 2"):
            reward.rewards(["4", "4"], ["4"])
    with pytest.raises(TypeError, match="failed"):
        pool_reward(REWARDS["own"], deadline=2)  # type: ignore[call-arg]


# --- limits and verdicts ---------------------------------------------------------------------------------------------


def test_a_worker_has_no_more_memory_than_it_is_given(started: list[int]) -> None:
    with VerifierPool(bad_verifiers.allocate, workers=1, deadline=MINUTE, memory=1 << 30) as pool:
        assert pool.outcomes([(1000,), (1 << 31,), (1000,)]) == [
            Ok(1000.0),
            Failed("MemoryError (limit: 1,073,741,824 bytes)"),
            Ok(1000.0),
        ]


def test_a_worker_is_replaced_after_its_calls(started: list[int]) -> None:
    with VerifierPool(tell_pid, workers=1, deadline=MINUTE, max_calls=3) as pool:
        pids = [one.score for one in pool.outcomes([()] * 7)]  # type: ignore[union-attr]
    assert pids == [float(started[i // 3]) for i in range(7)]


def test_a_worker_that_died_between_calls_costs_no_call(started: list[int]) -> None:
    with VerifierPool("bad_verifiers:leave_thread", workers=1, deadline=MINUTE) as pool:
        pids = []
        for _ in range(3):
            pids.append(pool().score)  # type: ignore[union-attr]
            while os.waitid(os.P_PID, started[-1], os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                time.sleep(0.05)
    assert pids == [float(pid) for pid in started]
    assert len(set(pids)) == 3


def test_a_fork_that_returns_gives_no_second_verdict(started: list[int]) -> None:
    with VerifierPool("bad_verifiers:fork_and_return", workers=1, deadline=MINUTE) as pool:
        assert pool.outcomes([()] * 20) == [Ok(7.0)] * 20


@pytest.mark.parametrize(
    ("verify", "given", "wanted"),
    [
        ("builtins:print", ("to the trainer's output, not into a reply",), Unscorable),
        ("builtins:float", ("nan",), Unscorable),
        ("builtins:int", ("1" + "0" * 400,), Failed),
        ("numpy:bool_", (1,), Ok),
        ("numpy:float32", (0.5,), Ok),
        ("numpy:zeros", (3,), Failed),
        ("evalcore:Unscorable", ("no such unit",), Unscorable),
        ("evalcore:Failed", ("\udc80" * 9999,), Failed),
        ("operator:itemgetter", (1, 2), Unscorable),
    ],
)
def test_a_verdict_is_a_finite_number_or_an_outcome(verify: str, given: tuple[object, ...], wanted: type) -> None:
    with VerifierPool(verify, workers=1, deadline=MINUTE) as pool:
        assert type(pool(*given)) is wanted


def test_a_call_that_cannot_be_sent_fails_alone() -> None:
    with VerifierPool(judge, workers=1, deadline=MINUTE) as pool:
        found = pool.outcomes([("fine", "3"), ("fine", lambda: 3)])
    assert found[0] == Ok(1.0)
    assert isinstance(found[1], Failed)
    assert "cannot be sent to a worker" in found[1].reason


def test_large_calls_pass() -> None:
    with VerifierPool("builtins:len", workers=2, deadline=MINUTE) as pool:
        assert pool.outcomes([("a" * 10**7,), (b"b" * 10**6,)]) == [Ok(1e7), Ok(1e6)]


# --- verifiers that cannot be loaded ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verify", "problem"),
    [
        ("judge", "expected a verifier as 'module:name' or 'file.py:name', got 'judge'"),
        (lambda text, gold: 1.0, "expected a verifier that pickles, got .*name it as 'module:name'"),
        ("no_such_module:judge", "cannot be loaded in a worker: ModuleNotFoundError: No module named 'no_such_module'"),
        ("no_such_file.py:judge", "cannot be loaded in a worker: FileNotFoundError: .*no_such_file.py"),
        ("math:no_such_name", "cannot be loaded in a worker: AttributeError"),
    ],
)
def test_a_verifier_that_cannot_be_loaded_is_an_error(verify: str, problem: str, started: list[int]) -> None:
    with pytest.raises(EvalError, match=problem), VerifierPool(verify, deadline=MINUTE) as pool:
        pool.outcomes([("a", "a")] * 5)


@pytest.mark.parametrize("wrong", [{"deadline": 0}, {"workers": 0}, {"memory": 0}, {"max_calls": 0}, {"deadline": nan}])
def test_limits_that_limit_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(EvalError, match=f"expected {next(iter(wrong))}"):
        VerifierPool(judge, **{"deadline": 1.0, **wrong})  # type: ignore[arg-type]


def test_a_start_that_takes_too_long_is_an_error(tmp_path: Path, started: list[int]) -> None:
    path = tmp_path / "slow_module.py"
    path.write_text("import time\ntime.sleep(1e6)\n", "utf-8")
    with (
        pytest.raises(EvalError, match=r"cannot be loaded in a worker: no start within 0\.5 s"),
        VerifierPool(f"{path}:judge", deadline=MINUTE, startup=0.5) as pool,
    ):
        pool()


def test_a_replacement_that_cannot_start_costs_its_call(tmp_path: Path, started: list[int]) -> None:
    """Once the verifier has worked, training goes on whatever happens to its file."""
    path = tmp_path / "moved.py"
    path.write_text("import os\n\ndef judge(last):\n    return last and os._exit(1)\n", "utf-8")
    with VerifierPool(f"{path}:judge", workers=1, deadline=MINUTE) as pool:
        assert pool(0) == Ok(0.0)
        path.rename(tmp_path / "elsewhere.py")
        assert [type(one) for one in pool.outcomes([(1,), (0,)])] == [Failed, Failed]
        (tmp_path / "elsewhere.py").rename(path)
        assert pool(0) == Ok(0.0)


# --- hosts that close, copy, fork, interrupt and die -------------------------------------------------------------------


def test_closing_ends_the_calls_of_other_threads(started: list[int]) -> None:
    pool = VerifierPool(judge, workers=1, deadline=1000)
    assert pool("fine", "3") == Ok(1.0)
    caught: list[BaseException] = []

    def call(word: str) -> None:
        try:
            pool(word, "3")
        except EvalError as wrong:
            caught.append(wrong)

    threads = [Thread(target=call, args=(word,)) for word in ("loop", "sleep", "fine")]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    pool.close()
    for thread in threads:
        thread.join()
    assert len(caught) >= 2  # "fine" may have come first
    with pytest.raises(EvalError, match="closed; make another"):
        pool("fine", "3")
    pool.close()


def test_a_copy_has_workers_of_its_own(started: list[int]) -> None:
    with pool_reward(REWARDS["f1"], failed=nan, deadline=MINUTE, workers=1) as reward:
        assert reward("a b", "a b") == 0.1
        with pickle.loads(pickle.dumps(reward)) as copy:
            assert isinstance(copy, PooledReward)
            assert copy("a b", "a b") == 0.1
    assert len(started) == 2


def run_host(code: str) -> subprocess.Popen[str]:
    """A program of its own that can import the verifiers of this folder."""
    begin = f"import os, signal, sys\nsys.path.insert(0, {str(HERE)!r})\n"
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", f"{begin}from evalcore.adapters.verifiers import VerifierPool\n{code}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_a_fork_has_workers_of_its_own_and_harms_none() -> None:
    """Not even when it ends as a program does, while a thread of the host is in a call."""
    host = run_host(
        "import threading\n"
        "threading.excepthook = lambda _: None  # the call that closing ends\n"
        "pool = VerifierPool('bad_verifiers:judge', workers=2, deadline=1000)\n"
        "pids = VerifierPool('os:getpid', workers=1, deadline=1000)\n"
        "before = pids().score\n"
        "threading.Thread(target=pool, args=('sleep', '3')).start()\n"
        "assert pool('fine', '3').score == 1.0\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    assert pids().score != before and pool('fine', '3').score == 1.0\n"
        "    pool.close()\n"
        "    sys.exit(5)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5\n"
        "assert pids().score == before and pool('fine', '3').score == 1.0\n"
        "pool.close(), pids.close()\n"
        "print('done')\n"
    )
    assert host.communicate(timeout=MINUTE) == ("done\n", "")


@pytest.mark.parametrize("call", ["pool('loop', '1')", "pool.outcomes([('loop', '1')] * 9)"])
def test_an_interrupt_leaves_nothing_behind(call: str) -> None:
    host = run_host(
        f"try:\n    with VerifierPool('bad_verifiers:judge', workers=2, deadline=1000) as pool:\n        {call}\n"
        f"except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    children = wait_for_children(host.pid)
    os.killpg(host.pid, signal.SIGINT)  # as a terminal does
    assert host.communicate(timeout=MINUTE) == ("interrupted\n", "")
    assert wait_until_gone(*children) == []


def list_children(pid: int) -> dict[int, int]:
    """The children of a process and the seconds that each has computed."""
    rows = subprocess.run(["ps", "-eo", "ppid=,pid=,cputimes="], capture_output=True, text=True, check=True).stdout
    numbers = [list(map(int, row.split())) for row in rows.splitlines()]
    return {child: seconds for parent, child, seconds in numbers if parent == pid}


def wait_for_children(pid: int) -> list[int]:
    """Wait until a child of a process computes, and list all of its children."""
    while not any((found := list_children(pid)).values()):
        time.sleep(0.05)
    return list(found)


def test_after_an_interrupt_the_pool_goes_on() -> None:
    host = run_host(
        "import threading\n"
        "pool = VerifierPool('bad_verifiers:judge', workers=1, deadline=1000)\n"
        "assert pool('fine', '3').score == 1.0\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n    pool('regex', '3')\n"
        "except KeyboardInterrupt:\n    print(pool('fine', '3').score)\n"
    )
    assert host.communicate(timeout=MINUTE) == ("1.0\n", "")


@pytest.mark.parametrize("word", ["fine", "regex"])
def test_a_host_that_is_killed_leaves_no_worker(word: str) -> None:
    """An idle worker sees that its host is gone; one that hangs is ended by the system soon after its deadline."""
    host = run_host(
        "from threading import Thread\n"
        "pool = VerifierPool('bad_verifiers:judge', workers=1, deadline=1)\n"
        "pool('fine', '3')\n"
        f"Thread(target=pool, args=({word!r}, '3'), daemon=True).start()\n"
        "print('called', flush=True)\n"
        "signal.pause()\n"
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "called\n"
    children = list_children(host.pid)
    assert len(children) == 1
    host.kill()
    host.wait()
    assert wait_until_gone(*children) == []


def test_a_fork_that_outlives_its_host_keeps_no_worker_of_it() -> None:
    host = run_host(
        "pool = VerifierPool('bad_verifiers:judge', workers=1, deadline=60)\n"
        "pool('fine', '3')\n"
        "if not os.fork():\n"
        "    print(os.getpid(), pool('fine', '3').score, flush=True)\n"
        "    signal.alarm(60)\n"
        "signal.pause()\n"
    )
    assert host.stdout is not None
    fork = int(host.stdout.readline().split()[0])
    children = set(list_children(host.pid)) - {fork}
    assert len(children) == 1
    host.kill()
    host.wait()
    try:
        assert wait_until_gone(*children) == []
        assert is_running(fork)
    finally:
        os.kill(fork, signal.SIGKILL)


def test_a_function_of_the_script_itself_says_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "from evalcore.adapters.verifiers import VerifierPool\n"
        "def judge(text):\n    return 0.5\n"
        "if __name__ == '__main__':\n"
        "    print(VerifierPool(__file__ + ':judge', deadline=60)('a').score)\n"
        "    try:\n        VerifierPool(judge, deadline=60)('a')\n"
        "    except ValueError as wrong:\n        print(wrong)\n",
        "utf-8",
    )
    said = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    assert said.startswith("0.5\nthe verifier cannot be loaded in a worker: AttributeError")
    assert said.endswith("a worker does not run __main__: name a module or file, as in 'judges.py:judge'\n")
