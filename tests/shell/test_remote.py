"""Logs, data and runs in a store, on a real S3 API: everything is as with local files, to the byte."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow
import pytest
import yaml
from fault_server import digest, serve
from pyarrow import feather
from sample_runs import write_run
from small_tasks import command, write_tasks
from store_server import Bucket, serve_store
from test_every_log import COLUMNS, LOGS, rows_of, write_lines, write_parquet

import evalcore
from evalcore import EvalError
from evalcore.shell.cli import main
from evalcore.shell.files import faults
from evalcore.shell.files.given import find_cache, parse_path
from evalcore.shell.files.remote_path import RemotePath
from evalcore.shell.models.openai.probe import PROBES
from evalcore.shell.score.units import gather
from evalcore.shell.score.units.merge import merge

RIGHT = (1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0)


@pytest.fixture(scope="module")
def server() -> Iterator[dict[str, str]]:
    with serve_store() as environment:
        yield environment


@pytest.fixture
def bucket(server: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bucket:
    for name, value in {**server, "XDG_CACHE_HOME": str(tmp_path / "cache"), "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    return Bucket()


def test_logs_of_every_kind_are_scored_as_local_ones_are(bucket: Bucket, tmp_path: Path) -> None:
    """A folder, a glob, a packed file, a table; results and samples are the same bytes."""
    runs = tmp_path / "runs"
    folder = write_run(runs / "a", {"boolq": RIGHT, "piqa": RIGHT[::-1]}, results={})
    packed = runs / "packed" / "samples_boolq.jsonl.gz"
    packed.parent.mkdir()
    packed.write_bytes(gzip.compress(next(folder.glob("samples_boolq*")).read_bytes()))
    write_parquet(runs / "table.parquet", "a")
    url = bucket.upload(runs, "runs")
    for name, keys in (
        ("a", {}),
        ("a/samples_*.jsonl", {}),
        ("packed/samples_boolq.jsonl.gz", {}),
        ("table.parquet", COLUMNS),
    ):
        out = name.split("/")[0] + str(len(name))
        evalcore.score(runs / name, output_path=tmp_path / out, **keys)
        there = evalcore.score(f"{url}/{name}", output_path=f"{bucket.url}/{out}", **keys)
        assert str(there.folder) == f"{bucket.url}/{out}"
        files = sorted(path.name for path in (tmp_path / out).iterdir() if path.name != "run.json")
        assert [key for key in bucket.list(f"{out}/") if "run.json" not in key] == [f"{out}/{one}" for one in files]
        assert "results.json" in files
        assert len(files) > 1
        for one in files:
            assert bucket.read(f"{out}/{one}") == (tmp_path / out / one).read_bytes()


@pytest.mark.slow
def test_commands_on_recorded_runs_print_what_they_print_of_local_ones(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, scores in (("a", RIGHT), ("b", RIGHT[::-1])):
        write_run(tmp_path / "runs" / name, {"boolq": scores, "piqa": scores}, results={})
    url = bucket.upload(tmp_path / "runs", "runs")
    for name, *flags in (
        ("compare", "--json"),
        ("compare", "--flips", "3"),
        ("diff", "--json"),
        ("check", "--margin", "0.5", "--json"),
    ):
        shown = []
        for base in ("runs", url):
            runs = [f"{base}/a", *(("--baseline",) if name == "check" else ()), f"{base}/b"]
            code = main([name, *runs, *flags])
            out = capsys.readouterr()
            shown.append((code, out.out.replace(url, "runs"), out.err.replace(url, "runs")))
        assert shown[0] == shown[1]
        assert "boolq" in shown[0][1]


@pytest.mark.slow
def test_workers_read_the_ranges_of_a_log_in_a_store(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They sign in as the address says; partials are kept in the store, too, without saying how."""
    monkeypatch.setattr(gather, "UNIT", 600)
    folder = write_run(tmp_path / "run", {"boolq": RIGHT * 3}, results={})
    user = bucket.upload(folder, "run").replace("://", "://canary-1:canary-2@")
    here = evalcore.score(folder)
    for _ in range(2):  # scored, then taken from the partials
        there = evalcore.score(user, engine="processes", workers=2, partials=user.replace("/run", "/partials"))
        assert (there.results, there.report) == (here.results, here.report)
    assert len(bucket.list("partials/")) > 3
    merge(user.replace("/run", "/partials/*.partial"), output_path=user.replace("/run", "/merged"))
    evalcore.score(folder, output_path=tmp_path / "out", log_samples=False)
    assert bucket.read("merged/results.json") == (tmp_path / "out/results.json").read_bytes()
    assert not any(b"canary" in bucket.read(key) for key in bucket.list())


def write_config(home: Path, url: str, **more: object) -> Path:
    config = {
        "model": "local-completions",
        "model_args": {"model": "toy", "base_url": url, "num_concurrent": 2, "max_retries": 1},
        "tasks": ["sums", "places", "guesses"],
        "include_path": str(home / "tasks"),
        **more,
    }
    (home / "run.yaml").write_text(yaml.safe_dump(config))
    return home / "run.yaml"


def list_asked(bodies: list[dict[str, object]]) -> list[str]:
    return [digest(body) for body in bodies if not str(body["prompt"]).startswith(PROBES)]


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_run_in_a_store_goes_on_where_it_stopped(bucket: Bucket, tmp_path: Path, stop: signal.Signals) -> None:
    """Its config, its data and its folder are in the store; what was answered is there, or here if it was killed."""
    write_tasks(tmp_path / "tasks", 12)
    data = {"*": bucket.upload(tmp_path / "tasks" / "docs.jsonl", "in/docs.jsonl")}
    with serve() as server:
        evalcore.run(write_config(tmp_path, server.url), output_path=str(tmp_path / "local"))
        asked = len(list_asked(server.bodies))
        written = write_config(tmp_path, server.url, data=data, output_path=f"{bucket.url}/run")
        config = bucket.upload(written, "in/run.yaml")
        server.bodies.clear()
        server.script = lambda number, body: "hang" if number >= 30 else None
        child = subprocess.Popen(command("run", config), stderr=subprocess.PIPE, text=True)
        while child.poll() is None and len(server.bodies) <= 30:
            time.sleep(0.01)
        child.send_signal(stop)
        told = child.communicate()[1]
        assert child.returncode == (130 if stop == signal.SIGINT else -stop)
        assert (f"the answers so far are in {bucket.url}/run/answers.jsonl" in told) == (stop == signal.SIGINT)
        assert ("run/answers.jsonl" in bucket.list()) == (stop == signal.SIGINT)
        assert "run/results.json" not in bucket.list()
        server.script = None
        result = evalcore.run(config)
        assert len(list_asked(server.bodies)) - asked <= 4  # those in flight
    assert str(result.folder) == f"{bucket.url}/run"
    assert bucket.list("run/") == sorted(f"run/{one.name}" for one in (tmp_path / "local").iterdir())
    for name in ("results.json", "samples_sums.jsonl", "samples_places.jsonl", "samples_guesses.jsonl"):
        assert bucket.read(f"run/{name}") == (tmp_path / "local" / name).read_bytes()
    assert yaml.safe_load(bucket.read("run/config.yaml"))["output_path"] == f"{bucket.url}/run"
    assert not [path for path in find_cache().glob("spool/*/*") if path.is_file()]
    keys = {"model": "replay", "model_args": {"path": f"{bucket.url}/run"}, "output_path": f"{bucket.url}/again"}
    again = evalcore.run(f"{bucket.url}/run/config.yaml", **keys)
    assert again.results["results"] == result.results["results"]


def test_answers_stay_here_when_the_store_fails(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command then puts them there, without asking again."""
    write_tasks(tmp_path / "tasks", 6)
    put = RemotePath.put

    def fail(self: RemotePath, draft: Path) -> None:
        if self.name == "answers.jsonl":
            raise EvalError(f"{self}: the store is full")
        put(self, draft)

    with serve() as server:
        keys = {"output_path": f"{bucket.url}/run"}
        config = write_config(tmp_path, server.url)
        with monkeypatch.context() as failing:
            failing.setattr(RemotePath, "put", fail)
            with pytest.raises(EvalError, match=r"the store is full; the answers of this run are in .*answers\.jsonl"):
                evalcore.run(config, **keys)
        assert "run/results.json" not in bucket.list()
        server.bodies.clear()
        evalcore.run(config, **keys)
        assert list_asked(server.bodies) == []
    assert {"run/answers.jsonl", "run/results.json"} <= set(bucket.list())
    assert not [path for path in find_cache().glob("spool/*/*") if path.is_file()]


def test_a_log_that_another_run_changed_is_left_alone(bucket: Bucket, tmp_path: Path) -> None:
    write_tasks(tmp_path / "tasks", 6)
    other = b'{"another": "run"}\n'

    def interfere(number: int, body: dict[str, object]) -> None:
        if number == 20:
            bucket.client.put_object(Bucket=bucket.name, Key="run/answers.jsonl", Body=other)

    with serve(script=interfere) as server:
        config = write_config(tmp_path, server.url, output_path=f"{bucket.url}/run")
        with pytest.raises(
            EvalError, match="another run writes there; it was left alone; the answers of this run are in"
        ):
            evalcore.run(config)
        assert bucket.read("run/answers.jsonl") == other
        with pytest.raises(EvalError, match="both have answers that the other has not; move one of them away"):
            evalcore.run(config)
    assert bucket.read("run/answers.jsonl") == other
    assert "run/results.json" not in bucket.list()


def test_a_store_that_cannot_be_reached_is_an_error_after_some_attempts(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(faults.time, "sleep", waited.append)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    try:
        assert main(["score", "s3://AKIAUSER:canary-password@there/run"]) == 2
        assert main(["score", "http://127.0.0.1:9/samples_a.jsonl?X-Amz-Signature=canary-signature"]) == 2
    finally:
        fsspec.get_filesystem_class("s3").clear_instance_cache()
    shown = capsys.readouterr().err
    assert "s3://there/run: the store cannot be reached, tried 5 times" in shown
    assert "http://127.0.0.1:9/samples_a.jsonl: the store cannot be reached, tried 5 times" in shown
    assert waited == [*faults.WAITS, *faults.WAITS]
    assert "canary" not in shown
    assert "AKIAUSER" not in shown


@pytest.mark.slow
def test_no_credential_is_in_any_file_or_message(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str], server: dict[str, str]
) -> None:
    """Those of the environment, of an address before its bucket, and of a signed address."""
    write_tasks(tmp_path / "tasks", 6)
    bucket.upload(tmp_path / "tasks" / "docs.jsonl", "in/docs.jsonl")
    bare = f"{server['AWS_ENDPOINT_URL']}/{bucket.name}/in/docs.jsonl"
    signed = f"{bare}?X-Amz-Credential=canary-1&X-Amz-Signature=canary-2&st=canary-3"
    user = bucket.url.replace("://", "://canary-4:canary%2F5@")
    config = {"tasks": "sums", "include_path": str(tmp_path / "tasks"), "data": {"sums": signed}}
    run = ["run", "--output_path", f"{user}/run", "--model", "dummy"]
    flags = [
        part for key, one in config.items() for part in (f"--{key}", one if isinstance(one, str) else json.dumps(one))
    ]
    assert main([*run, *flags]) == 0
    assert main([*run, *flags, "--use_cache", f"{user}/cache"]) == 0
    args = ["--model_args", f"path={user}/run"]
    assert main(["run", "--model", "replay", *args, "--output_path", f"{user}/replayed", *flags]) == 0
    assert main(["score", f"{user}/run", "-o", f"{user}/scored"]) == 0
    assert main(["score", f"{user}/run", "-o", f"{user}/scored"]) == 2
    assert main(["score", f"{user}/none"]) == 2
    assert main(["score", signed]) == 2
    assert main(["compare", f"{user}/run", f"{user}/none"]) == 2
    assert main(["diff", f"{user}/run", f"{user}/scored"]) == 0
    assert main(["score", f"{user}/run", "-o", signed]) == 2
    assert main(["score", f"{user}/run", f"--{user}"]) == 2
    for wrong in (f"{user}/none", f"{user}/none*", signed):
        with pytest.raises(EvalError) as told:
            evalcore.score(wrong)
        assert "canary" not in str(told.value)
    shown = capsys.readouterr()
    assert len(bucket.list("run/")) == 5
    assert "cache.jsonl" in bucket.list()
    assert bucket.url in shown.out + shown.err
    local = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for content in (*map(bucket.read, bucket.list()), *local, shown.out.encode(), shown.err.encode()):
        assert b"canary" not in content
    assert yaml.safe_load(bucket.read("run/config.yaml"))["data"] == {"sums": bare}


@pytest.mark.parametrize("name", [*LOGS, "t.arrow", "t.jsonl.bz2", "t.jsonl.xz", "t.jsonl.zst"])
def test_files_of_every_format_in_memory(tmp_path: Path, name: str) -> None:
    write, keys = LOGS.get(name, (write_lines, COLUMNS))
    write(tmp_path / name, "a")
    if name == "t.arrow":
        feather.write_feather(pyarrow.Table.from_pylist(rows_of("a")), tmp_path / name)
    elif name not in LOGS:
        with fsspec.open(tmp_path / name, "wb", compression="infer") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows_of("a")).encode())
    memory, place = fsspec.filesystem("memory"), f"evalcore-tests/{name}"
    memory.pipe_file(f"/{place}/{name}", (tmp_path / name).read_bytes())
    evalcore.score(tmp_path / name, output_path=tmp_path / "out", **keys)
    evalcore.score(f"memory://{place}/{name}", output_path=f"memory://{place}/out", **keys)
    assert memory.cat(f"/{place}/out/results.json") == (tmp_path / "out/results.json").read_bytes()
    assert [path.name for path in sorted(parse_path(f"memory://{place}/out").iterdir())] == sorted(
        path.name for path in (tmp_path / "out").iterdir()
    )
