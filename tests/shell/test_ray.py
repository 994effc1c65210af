"""A Ray cluster of two nodes gives the bytes of one process, whatever happens to its workers and to who asked."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import pytest
from bad_workers import Fatal, Repeat, Slow, Tell, Wrong, join
from msgspec.structs import replace
from small_tasks import write_tasks

import evalcore
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.shell.engines.cluster import RETRIES
from evalcore.shell.engines.cluster_tree import FAN, MOST
from evalcore.shell.engines.engines import RAY
from evalcore.shell.engines.interface import Means, WorkerLost
from evalcore.shell.score.units import gather
from evalcore.shell.score.units.unit_score import UnitWork, share

INSTALL = "pip install ray==2.60.0"
NUMBER = '"regex_pattern": "(-?[0-9]+)"'

pytestmark = pytest.mark.ray

Score = Callable[..., str]


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """A cluster of a head and a second node, each with one core, behind a token of its own."""
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    pytest.importorskip("ray", reason=f"Ray is not installed: {INSTALL}")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    made.shutdown()
    for key in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN"):
        os.environ.pop(key, None)


@pytest.fixture
def address(cluster: object) -> str:
    return str(cluster.address)  # type: ignore[attr-defined]


@pytest.fixture
def score() -> Score:
    """The results of scoring in units of so many bytes, as text."""

    def scored(log: Path, *, size: int = 1000, **keys: object) -> str:
        return json.dumps(thaw_dict(evalcore.score(log, unit=size, **keys).results))  # type: ignore[arg-type]

    return scored


# --- logs -------------------------------------------------------------------------------------------------------------


def write_samples(folder: Path, count: int) -> Path:
    """A sample log of two filters, and the results beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {"function": "regex", "regex_pattern": "(-?[0-9]+)"}
    pipes = [{"name": "first", "filter": [numbers, {"function": "take_first"}]}]
    pipes += [{"name": "last", "filter": [{**numbers, "group_select": -1}, {"function": "take_first"}]}]
    config = {"task": "sums", "output_type": "generate_until", "doc_to_target": "{{answer}}", "filter_list": pipes}
    config["metric_list"] = [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}]
    rows = (
        {
            "doc_id": at,
            "doc": {"question": f"{at} + {at}?", "answer": str(2 * at)},
            "target": str(2 * at),
            "arguments": {"gen_args_0": {"arg_0": f"{at} + {at}?", "arg_1": {"until": ["\n"]}}},
            "resps": [[f"{2 * at + (at % 7 == 0)}, or rather {2 * at + (at % 5 == 0)}."]],
            "filtered_resps": [str(2 * at)],
            "filter": pipe["name"],
            "metrics": ["exact_match"],
            "exact_match": 1.0,
        }
        for pipe in pipes
        for at in range(count)
    )
    path = folder / "samples_sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    results = {"results": {"sums": {"alias": "sums"}}, "configs": {"sums": config}, "group_subtasks": {}}
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return folder


def write_table(path: Path, count: int) -> Path:
    rows = ({"name": f"d{at}", "said": f"it is {at % 9}", "right": str(at % 8)} for at in range(count))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_samples(tmp_path_factory.mktemp("samples") / "run", 600)


def count_units(log: Path, size: int = 1000) -> int:
    return -(-(log / "samples_sums.jsonl").stat().st_size // size)


# --- the same bytes ---------------------------------------------------------------------------------------------------


def test_hundreds_of_units_give_the_bytes_of_one_process(score: Score, samples: Path, address: str) -> None:
    assert count_units(samples) > MOST  # so that neighbours are merged in the cluster
    alone = score(samples)
    assert score(samples, engine="processes", workers=2) == alone
    assert score(samples, engine="ray", address=address) == alone
    assert score(samples, engine="ray", address=address, workers=1) == alone


def test_a_run_of_recorded_answers_leaves_the_bytes_of_one_process(tmp_path: Path, address: str) -> None:
    keys: dict[str, object] = {"tasks": ["small"], "include_path": str(write_tasks(tmp_path / "tasks"))}
    evalcore.run(keys, model="dummy", output_path=str(tmp_path / "dummy"))
    keys |= {"model": "replay", "model_args": {"path": str(tmp_path / "dummy/answers.jsonl")}}
    evalcore.run(keys, output_path=str(tmp_path / "one"))
    evalcore.run(keys, output_path=str(tmp_path / "many"), engine="ray", address=address)
    names = ["results.json", *(path.name for path in (tmp_path / "one").glob("samples_*"))]
    assert len(names) == 5
    for name in names:
        assert (tmp_path / "many" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_tables_and_inspect_logs_give_the_bytes_of_one_process(score: Score, tmp_path: Path, address: str) -> None:
    table = write_table(tmp_path / "table.jsonl", 400)
    columns = {
        "answer": "said",
        "gold": "right",
        "id": "name",
        "filter": f"regex={{{NUMBER}}}",
        "metric": "exact_match",
    }
    assert score(table, engine="ray", address=address, **columns) == score(table, **columns)
    inspect = pytest.importorskip("inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import match

    made = [Sample(input=f"{at}?", target=str(at % 3), id=at) for at in range(20)]
    task = inspect.Task(dataset=made, scorer=match())
    inspect.eval(task, model="mockllm/model", log_dir=str(tmp_path / "logs"), display="none")
    (log,) = (tmp_path / "logs").iterdir()
    assert score(log, engine="ray", address=address) == score(log)


def test_paths_are_those_of_the_one_who_asks(
    score: Score, samples: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(samples.parent)
    alone = score(Path(samples.name), size=40_000)
    assert score(Path(samples.name), size=40_000, engine="ray", address=address) == alone


def test_a_cluster_is_started_and_stopped_again(score: Score, samples: Path, cluster: object) -> None:
    """In a process of its own, which knows nothing of the cluster here."""
    code = COORDINATOR.format(
        keys={"engine": "ray", "workers": 2, "address": "local"}, log=str(samples), size=40_000, notes=None
    )
    code += "\nimport ray\nassert not ray.is_initialized()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == score(samples)


def test_a_cluster_that_the_caller_has_joined_is_used_and_left(score: Score, samples: Path, cluster: object) -> None:
    import ray

    ray.init(address=cluster.address, log_to_driver=False)  # type: ignore[attr-defined]
    try:
        assert score(samples, size=40_000, engine="ray") == score(samples)
        assert ray.is_initialized()
    finally:
        ray.shutdown()


def test_results_come_in_the_order_of_units(address: str) -> None:
    units = range(FAN * MOST + 3)
    found = RAY.spread(pack_number, units, join, Means(address=address))
    assert b"".join(found) == b"".join(map(pack_number, units))


def test_units_are_done_here_while_a_broker_joins(address: str, tmp_path: Path) -> None:
    """And once it has joined, by workers as well."""
    units = range(20)
    found = RAY.spread(Tell(tmp_path), units, join, Means(address=address, here=True))
    assert b"".join(found) == b"".join(map(pack_number, units))
    done = [path.stem for path in tmp_path.iterdir()]
    assert len(done) == len(units)
    assert str(os.getpid()) in done
    assert len(set(done)) > 1


def test_what_goes_wrong_beside_a_broker(address: str) -> None:
    with pytest.raises(evalcore.EvalError, match="unexpected ZeroDivisionError"):
        list(RAY.spread(Wrong(), range(9), join, Means(address=address, here=True)))
    with pytest.raises(evalcore.EvalError, match=r"at '127\.0\.0\.1:1' could not be joined"):
        list(RAY.spread(pack_number, range(3), join, Means(address="127.0.0.1:1", here=True)))


def pack_number(unit: object) -> bytes:
    return b"%d " % unit  # type: ignore[operator]


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_range_whose_worker_is_killed_is_scored_again_and_counts_once(
    score: Score,
    samples: Path,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    alone = score(samples)
    monkeypatch.setattr(gather, "UnitWork", lambda *given: Fatal(UnitWork(*given), tmp_path, 150_000, 1))
    assert score(samples, engine="ray", address=address) == alone
    begun = [path.name for path in tmp_path.iterdir()]
    assert len(begun) == count_units(samples) + 1
    assert begun.count("samples_sums.jsonl.150000.1") == 1
    assert capsys.readouterr().out == ""  # where the command line writes results


def test_results_that_are_lost_with_a_node_are_made_again(cluster: object, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=2)  # type: ignore[attr-defined]
    cluster.wait_for_nodes()  # type: ignore[attr-defined]
    units, work = range(MOST + 60), Repeat(tmp_path)
    found = RAY.spread(work, units, join, Means(address=cluster.address))  # type: ignore[attr-defined]
    first = next(found)
    cluster.remove_node(node, allow_graceful=False)  # type: ignore[attr-defined]
    whole = b"".join([first, *found])
    assert whole == b"".join(bytes([unit % 256]) * work.size for unit in units)
    assert len(list(tmp_path.iterdir())) > len(units)


def test_a_unit_that_loses_every_worker_is_an_error_and_partials_stay(
    score: Score, samples: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, notes = tmp_path / "kept", tmp_path / "notes"
    notes.mkdir()
    monkeypatch.setattr(gather, "UnitWork", lambda *given: Fatal(UnitWork(*given), notes, 300_000, 99))
    with pytest.raises(WorkerLost, match=rf"lost over unit of work \d+ of \d+, {RETRIES + 1} times: .*died"):
        score(samples, engine="ray", address=address, partials=kept)
    assert len(list(notes.glob("*.300000.*"))) == RETRIES + 1
    assert len(list(kept.iterdir())) > 100
    monkeypatch.undo()
    assert score(samples, engine="ray", address=address, partials=kept) == score(samples)


def test_a_damaged_range_is_the_same_error_as_elsewhere(score: Score, tmp_path: Path, address: str) -> None:
    log = write_samples(tmp_path / "run", 100) / "samples_sums.jsonl"
    content = log.read_bytes()
    at = content.index(b"\n", 50_000) + 1
    log.write_bytes(content[:at] + b"#" + content[at + 1 :])
    told = []
    for keys in ({"engine": "processes", "workers": 2}, {"engine": "ray", "address": address}):
        with pytest.raises(evalcore.EvalError) as wrong:
            score(tmp_path / "run", **keys)
        told.append(str(wrong.value))
    assert told[0] == told[1]
    assert f"samples_sums.jsonl:{content[:at].count(bytes([10])) + 1}: not JSON" in told[0]


def test_an_error_that_nobody_expects_has_no_traceback(address: str) -> None:
    with pytest.raises(evalcore.EvalError, match=r"unexpected ZeroDivisionError: .* \(in a worker of the cluster"):
        list(RAY.spread(Wrong(), range(5), join, Means(address=address)))


@pytest.mark.parametrize(("named", "told"), [("nowhere", ""), ("127.0.0.1:1", ".*refused")])
def test_an_address_where_no_cluster_is(named: str, told: str) -> None:
    pytest.importorskip("ray", reason=f"Ray is not installed: {INSTALL}")
    with pytest.raises(evalcore.EvalError, match=f"the Ray cluster at '{named}' could not be joined: {told}"):
        list(RAY.spread(pack_number, range(3), join, Means(address=named)))


def test_workers_of_another_version_are_refused(score: Score, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "share", lambda *given: replace(share(*given), made=("numpy 0.1",)))
    with pytest.raises(evalcore.EvalError, match=r"expected workers with numpy 0\.1, got evalcore .*bits may differ"):
        score(samples, map=map)


# --- who asked is killed ----------------------------------------------------------------------------------------------

COORDINATOR = """
import json, sys
from pathlib import Path
import evalcore
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.shell.score.units import gather
if {notes!r}:
    from bad_workers import Slow
    work = gather.UnitWork
    gather.UnitWork = lambda *given: Slow(work(*given), Path({notes!r}), 0.1)
print(json.dumps(thaw_dict(evalcore.score({log!r}, unit={size}, **{keys!r}).results)))
"""


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_who_asks_again_after_a_kill_goes_on(
    stop: signal.Signals, score: Score, samples: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, notes = tmp_path / "kept", tmp_path / "notes"
    for folder in (kept, notes):
        folder.mkdir()
    keys = {"engine": "ray", "address": address, "partials": str(kept)}
    code = COORDINATOR.format(keys=keys, log=str(samples), size=4000, notes=str(notes))
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    asking = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE, text=True
    )
    while len(list(kept.glob("*.partial"))) < 20 and asking.poll() is None:
        sleep(0.05)
    asking.send_signal(stop)
    _, told = asking.communicate()
    assert asking.returncode != 0, told
    settle(notes)
    done, total = len(list(kept.glob("*.partial"))), count_units(samples, 4000)
    assert 20 <= done < total, told
    begun = len(list(notes.iterdir()))
    monkeypatch.setattr(gather, "UnitWork", lambda *given: Slow(UnitWork(*given), notes, 0.0))
    assert score(samples, size=4000, **keys) == score(samples)
    assert len(list(notes.iterdir())) - begun == total - done


def settle(folder: Path) -> None:
    """Wait until workers whose coordinator is gone begin nothing new."""
    known = -1
    while known != (known := len(list(folder.iterdir()))):
        sleep(2)
