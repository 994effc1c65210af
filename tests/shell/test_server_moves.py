"""Who answers, and where: the same model at another address goes on with a run; a server that is gone ends it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from fault_server import serve
from small_tasks import command, environment, evalcore, write_tasks

from evalcore.core.records.errors import EvalError
from evalcore.shell.models.openai.arguments import ServerKind, ServerSettings, read_settings
from evalcore.shell.models.openai.backend import identify_server
from evalcore.shell.models.openai.endpoint import find_endpoint
from evalcore.shell.models.openai.http_faults import Patience
from evalcore.shell.models.openai.http_session import open_session

KIND = ServerKind("local-completions")


def write_run(home: Path, url: str, out: str | None = "out", **args: object) -> None:
    write_tasks(home / "tasks")
    model = {"model": "toy", "base_url": url, **args}
    config = {"model": "local-completions", "model_args": model, "tasks": ["sums"], "include_path": "tasks"}
    (home / "run.yaml").write_text(yaml.safe_dump({**config, **({"output_path": out} if out else {})}))


@pytest.mark.parametrize("out", ["out", pytest.param(None, marks=pytest.mark.slow)])
def test_the_same_model_at_another_port_goes_on_in_the_same_folder(tmp_path: Path, out: str | None) -> None:
    with serve() as first, serve() as second:
        write_run(tmp_path, first.url, out)
        assert evalcore(tmp_path, "run", "run.yaml", "--limit", "4").returncode == 0
        assert len(first.bodies) == 4
        write_run(tmp_path, second.url, out, num_concurrent=3, timeout=9)
        done = evalcore(tmp_path, "run", "run.yaml", "--limit", "4" if out is None else "9")
    assert done.returncode == 0, done.stderr
    assert (
        f"answers so far are from {first.url}; now {second.url} is asked, as the same model"
        in done.stderr + done.stdout
    )
    assert len(second.bodies) == (0 if out is None else 5)
    assert out or len(list((tmp_path / "runs").iterdir())) == 1


def test_another_model_is_refused_with_what_differs(tmp_path: Path) -> None:
    with serve() as server:
        write_run(tmp_path, server.url)
        assert evalcore(tmp_path, "run", "run.yaml").returncode == 0
        write_run(tmp_path, server.url, seed=5, model="other")
        done = evalcore(tmp_path, "run", "run.yaml")
    assert done.returncode == 2
    assert "of another model (model toy before, other now; seed 1234 before, 5 now)" in done.stderr


def test_a_server_that_is_gone_is_told_of_at_once_and_all_is_kept(tmp_path: Path) -> None:
    """The server stops while the run is at work; nothing else ends this run within its deadline."""
    with serve(script=lambda number, body: "hang" if number >= 4 else None) as server:
        write_run(tmp_path, server.url, give_up_after=1, max_retries=50)
        going = subprocess.Popen(
            command("run", "run.yaml"), cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
        )
        while len(server.bodies) < 5:
            assert going.poll() is None
    _, said = going.communicate(timeout=120)
    assert going.returncode == 69, said
    assert (
        f"{server.url}/completions: connection refused, retry 1 of 50; the run stops" in said or "retry 2 of 50" in said
    )
    assert "is gone: connection refused" in said
    assert "(4 of 10 answers are in the answer log)" in said
    lines = [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_text().splitlines()]
    assert sum("text" in line for line in lines) == 4
    assert not any("failure" in line for line in lines)
    with serve() as again:
        write_run(tmp_path, again.url)
        done = evalcore(tmp_path, "run", "run.yaml")
    assert done.returncode == 0, done.stderr
    assert len(again.bodies) == 6


@pytest.mark.parametrize("proxy", ["weird://me:canary-07f3a99b@127.0.0.1:1", "socks9://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_bad_input(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = find_endpoint(KIND, ServerSettings("m", base_url="https://h.invalid/v1"), {})
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(EvalError, match=r"the proxy in the environment cannot be used: .*scheme") as caught:
        open_session(endpoint, Patience(), 1)
    assert "canary" not in str(caught.value)


def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated() -> None:
    with pytest.raises(EvalError, match="expected the name of an environment variable in api_key_env") as caught:
        read_settings(KIND, {"model": "m", "api_key_env": "sk-07f3a99b"})
    assert "07f3a99b" not in str(caught.value)
    assert read_settings(KIND, {"model": "m", "api_key_env": ""}).api_key_env is None


def test_a_key_in_the_path_of_an_address_is_no_part_of_the_identity() -> None:
    settings = ServerSettings("m", base_url="http://localhost/gate/canary-07f3a99b/v1")
    found = identify_server(KIND, settings, find_endpoint(KIND, settings, {"OPENAI_API_KEY": "canary-07f3a99b"}))
    assert "gate" in found
    assert "canary" not in found
