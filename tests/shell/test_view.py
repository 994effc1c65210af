"""Runs looked at over real sockets: what is shown, who may look, and what no request does."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from threading import Thread

import httpx
import pytest
import yaml
from fault_server import serve
from open_viewer import look_at
from small_tasks import command, environment, evalcore_here, start_live_run, write_tasks

import evalcore
from evalcore import EvalError
from evalcore.shell.output.report.page import HtmlPage
from evalcore.shell.report.report import draw_report
from evalcore.shell.view.page_desk import PageDesk
from evalcore.shell.view.server import LARGEST, MOST_AT_ONCE, Listener
from evalcore.shell.view.site import Site
from evalcore.shell.view.viewer import Viewer, open_view

SECRET = "what no viewer shows"
CLIENT = httpx.Client(timeout=60, trust_env=False, verify=False)
Json = dict[str, object]


def get(address: str, **headers: str) -> httpx.Response:
    return CLIENT.get(address, headers=headers)


def read_news(viewer: Viewer, below: str = "") -> Json:
    return get(f"{viewer.address}{below}news?at=").json()


def list_runs(viewer: Viewer) -> dict[str, Json]:
    """The rows of the list by name, in its order."""
    return {row["name"]: row for row in read_news(viewer)["runs"]}  # type: ignore[attr-defined]


def read_head(html: str) -> Json:
    found = re.search(r'<script type="application/json" id="head">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def send_raw(viewer: Viewer, text: bytes) -> bytes:
    """The reply to bytes as they are."""
    url = httpx.URL(viewer.address)
    with socket.create_connection((url.host, url.port), timeout=60) as connection:
        connection.sendall(text)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def wait_for(found: Callable[[], object]) -> object:
    """Wait until something is found; the deadline ends a test that hangs."""
    until = time.monotonic() + 120
    while not (one := found()):
        if time.monotonic() > until:
            raise TimeoutError("nothing came")
        time.sleep(0.05)
    return one


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one of them deeper."""
    home = tmp_path_factory.mktemp("view")
    write_tasks(home / "tasks")
    for seed, name in enumerate(("old", "deep/er/new")):
        keys = {"model": "dummy", "model_args": {"seed": seed}, "include_path": str(home / "tasks")}
        evalcore.run(keys, tasks=["sums", "places"], output_path=str(home / "runs" / name))
    os.utime(home / "runs/old/results.json", (1, 1))
    for one in (home / "runs/old").iterdir():
        os.utime(one, (1, 1))
    return home / "runs"


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A copy of them, with a secret beside it."""
    (tmp_path / "secret.txt").write_text(SECRET)
    return Path(copytree(made, tmp_path / "runs"))


@pytest.fixture
def viewer(runs: Path) -> Iterator[Viewer]:
    with look_at(runs) as viewer:
        yield viewer


# --- what is shown ------------------------------------------------------------------------------------------------


def test_the_list_has_every_run_with_its_number_newest_first(viewer: Viewer, runs: Path) -> None:
    rows = list_runs(viewer)
    assert list(rows) == ["deep/er/new", "old"]
    results = json.loads((runs / "old/results.json").read_text())
    row = rows["old"]
    summary = row["summary"]
    assert (row["state"], summary["model"], summary["tasks"]) == ("finished", "dummy (seed=0)", ["sums", "places"])
    number = summary["number"]
    told = results["evalcore"]["estimates"][number["name"]][f"{number['metric']},{number['filter']}"]
    assert [number[key] for key in ("value", "n")] == [told["value"], told["n"]]
    assert [number["low"], number["high"]] == told["ci"]
    page = get(viewer.address)
    assert page.status_code == 200
    assert read_head(page.text)["runs"] == read_news(viewer)["runs"]


def test_a_run_is_shown_on_the_page_of_report(viewer: Viewer, runs: Path) -> None:
    row = list_runs(viewer)["old"]
    page = get(f"{viewer.address}runs/{row['id']}/").text
    drawn = draw_report(runs / "old", names=["old"], served="x").page.html
    served = read_head(page)
    assert {**served, "served": "x"} == read_head(drawn)
    assert page.replace(str(served["served"]), "x") == drawn
    assert "connect-src 'self'" in page


def test_several_runs_are_compared(viewer: Viewer) -> None:
    ids = ",".join(str(row["id"]) for row in list_runs(viewer).values())
    head = read_head(get(f"{viewer.address}runs/{ids}/").text)
    assert [one["name"] for one in head["runs"]] == ["deep/er/new", "old"]  # type: ignore[attr-defined]
    assert head["comparison"]["pairs"]  # type: ignore[index]


def test_news_come_only_if_there_are_some(viewer: Viewer, runs: Path) -> None:
    at = read_news(viewer)["at"]
    assert get(f"{viewer.address}news?at={at}").status_code == 204
    copytree(runs / "old", runs / "another")
    assert "another" in wait_for(lambda: {"another"} & {*list_runs(viewer)})  # type: ignore[operator]
    assert get(f"{viewer.address}news?at={at}").status_code == 200


def test_a_page_is_made_again_once_its_run_has_changed(viewer: Viewer, runs: Path) -> None:
    row = list_runs(viewer)["old"]
    address = f"{viewer.address}runs/{row['id']}/"
    before = read_head(get(address).text)["served"]
    assert read_head(get(address).text)["served"] == before == read_news(viewer, f"runs/{row['id']}/")["state"]
    results = json.loads((runs / "old/results.json").read_text())
    (runs / "old/results.json").write_text(json.dumps(results) + "\n")
    wait_for(lambda: read_news(viewer, f"runs/{row['id']}/")["state"] != before)
    assert read_head(get(address).text)["served"] != before


def test_outputs_of_lm_eval_and_logs_are_runs(viewer: Viewer, runs: Path) -> None:
    """By their own names: several results in a folder, samples without results, what later results set aside."""
    old = runs / "old"
    for at, stamp in enumerate(("2024-08-21T03-44-09.494230", "2025-08-21T03-44-09.494230")):
        (runs / "theirs/m").mkdir(parents=True, exist_ok=True)
        (runs / f"theirs/m/results_{stamp}.json").write_text((old / "results.json").read_text())
        for task in ("sums", "places")[at:]:
            (runs / f"theirs/m/samples_{task}_{stamp}.jsonl").write_text((old / f"samples_{task}.jsonl").read_text())
    (runs / "bare").mkdir()
    (runs / "bare/samples_sums.jsonl").write_text((old / "samples_sums.jsonl").read_text())
    copytree(old, old / "earlier_1")
    copytree(old, runs / "earlier_experiments")
    names = {f"theirs/m/results_{year}-08-21T03-44-09.494230.json" for year in (2024, 2025)}
    wait_for(lambda: "bare" in list_runs(viewer))
    rows = list_runs(viewer)
    assert {*rows} == {*names, "bare", "old", "deep/er/new", "earlier_experiments"}
    assert rows["bare"]["state"] == "recorded"
    for name in (*names, "bare"):
        assert read_head(get(f"{viewer.address}runs/{rows[name]['id']}/").text)["runs"][0]["tree"]  # type: ignore[index]


def test_pages_above_one_files_size_have_their_chunks_beside_them(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalcore.shell.output.report.page.ONE_FILE", 1000)
    address = f"{viewer.address}runs/{list_runs(viewer)['old']['id']}/"
    page = get(address).text
    head = read_head(page)
    assert head["beside"] == "report_data"
    chunk = re.search(r'"([0-9a-f]{24})"', json.dumps(head["samples"]))
    assert chunk is not None
    reply = get(f"{address}report_data/{chunk[1]}.js")
    assert (reply.status_code, reply.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
    assert reply.text.startswith(f'evalcoreChunk("{chunk[1]}"')
    assert get(f"{address}report_data/{'0' * 24}.js").status_code == 404


# --- who may look -------------------------------------------------------------------------------------------------


def test_nothing_is_told_without_the_token(viewer: Viewer) -> None:
    base, token = viewer.address[:-1].rsplit("/", 1)
    assert len(token) >= 43
    wrong = [
        "",
        "x",
        token[:-1],
        token[:-1] + "!",
        token.swapcase(),
        f"%{token}",
        f"?token={token}",
        f"x/{token}",
        "open/",
    ]
    for one in (*wrong, "open/None", f"open/{token}"):
        for tail in ("", "/", "/news?at=", "/runs/"):
            reply = get(f"{base}/{one}{tail}")
            assert (reply.status_code, "old" in reply.text) == (403, False), one
    assert get(f"{base}/{token}").headers["location"] == f"/{token}/"
    assert httpx.URL(viewer.address).host == "127.0.0.1"


def test_two_viewers_have_two_tokens(runs: Path) -> None:
    with look_at(runs) as one, look_at(runs) as other:
        assert one.address.split("/")[3] != other.address.split("/")[3]
        assert get(other.address.replace(other.address.split("/")[3], one.address.split("/")[3])).status_code == 403


def test_another_host_is_refused_as_of_a_rebound_name(viewer: Viewer) -> None:
    port = httpx.URL(viewer.address).port
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"127.0.0.1.evil.example:{port}", ""):
        assert get(viewer.address, host=host).status_code == 403, host
    assert get(viewer.address, host=f"localhost:{port}").status_code == 200
    path = httpx.URL(viewer.address).path
    assert send_raw(viewer, f"GET {path} HTTP/1.0\r\n\r\n".encode()).startswith(b"HTTP/1.0 403")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_pages_of_other_origins_are_refused(viewer: Viewer, headers: dict[str, str]) -> None:
    reply = get(viewer.address, **headers)
    assert reply.status_code == 403
    assert "access-control-allow-origin" not in reply.headers


def test_the_pages_own_requests_are_answered(viewer: Viewer) -> None:
    origin = viewer.address.rsplit("/", 2)[0]
    assert get(viewer.address, **{"origin": origin, "sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_there_is_nothing_but_to_read(viewer: Viewer, method: str) -> None:
    body = b"x" * (3 * LARGEST) if method == "POST" else None
    reply = CLIENT.request(method, viewer.address, content=body)
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, HEAD")


def test_every_reply_says_that_it_is_for_nobody_else(viewer: Viewer) -> None:
    row = list_runs(viewer)["old"]
    asked = ["", "news?at=", f"runs/{row['id']}/", f"runs/{row['id']}/news?at=", "nothing/here"]
    replies = [get(viewer.address + one) for one in asked] + [get(viewer.address, host="evil.example")]
    replies += [CLIENT.post(viewer.address), CLIENT.head(viewer.address)]
    assert {reply.status_code for reply in replies} == {200, 403, 404, 405}
    for reply in replies:
        told = reply.headers
        assert told["cache-control"] == "no-store"
        assert told["x-content-type-options"] == "nosniff"
        assert told["referrer-policy"] == "no-referrer"
        assert told["cross-origin-resource-policy"] == "same-origin"
        assert told["cross-origin-opener-policy"] == "same-origin"
        assert told["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in told["content-security-policy"]
        assert "server" not in told
    assert CLIENT.head(viewer.address).content == b""


def test_a_browser_is_started_with_a_code_for_one_use(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What programs are started with can be seen by every user of a machine."""
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    monkeypatch.setenv("DISPLAY", ":0")
    with look_at(runs) as viewer:
        assert viewer.open_browser()
        [address] = opened
        assert viewer.address.split("/")[3] not in address
        first, second = get(address), get(address)
        assert (first.status_code, first.headers["location"]) == (303, "/" + viewer.address.split("/", 3)[3])
        assert second.status_code == 403
        monkeypatch.delenv("DISPLAY")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        monkeypatch.setattr("sys.platform", "linux")
        assert not viewer.open_browser()
        assert len(opened) == 1


# --- what no request does -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "../../../../../../etc/passwd",
        "%2e%2e/secret.txt",
        "..%2fsecret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "runs/../secret.txt",
        "runs/old/",
        "runs/old/results.json",
        "runs/000000000000/",
        "runs/{id}/../../secret.txt",
        "runs/{id}/results.json",
        "runs/{id}/report_data/../results.json",
        "runs/{id}/report_data/..%2f..%2fsecret.txt",
        "runs/{id},000000000000/",
        "runs/{id}/news?at=../../secret.txt",
        "runs/{id}\x00/",
        "runs/{id}/?x=1",
        "report_data/000000000000000000000000.js",
        "runs/" + ",".join(["{id}"] * 21) + "/",
    ],
)
def test_no_path_of_a_request_reaches_the_file_system(viewer: Viewer, path: str) -> None:
    url = httpx.URL(viewer.address)
    asked = url.path + path.replace("{id}", str(list_runs(viewer)["old"]["id"]))
    reply = send_raw(viewer, f"GET {asked} HTTP/1.1\r\nHost: {url.host}:{url.port}\r\n\r\n".encode())
    assert re.match(rb"HTTP/1\.0 (400|403|404) ", reply)
    assert SECRET.encode() not in reply
    assert b"root:" not in reply


def test_links_lead_nowhere(viewer: Viewer, runs: Path, tmp_path: Path) -> None:
    """A file that is a link out of the folder is not read, and its run says so; folders behind links are not entered."""
    copytree(runs / "old", tmp_path / "elsewhere/run")
    (runs / "linked").symlink_to(tmp_path / "elsewhere/run")
    copytree(runs / "old", runs / "leaking")
    (runs / "leaking/samples_sums.jsonl").unlink()
    (runs / "leaking/samples_sums.jsonl").symlink_to(tmp_path / "secret.txt")
    copytree(runs / "old", runs / "inner")
    (runs / "inner/samples_sums.jsonl").unlink()
    (runs / "inner/samples_sums.jsonl").symlink_to(runs / "old/samples_sums.jsonl")
    (runs / "loop").symlink_to(runs)
    wait_for(lambda: "inner" in list_runs(viewer))
    rows = list_runs(viewer)
    assert {*rows} == {"old", "deep/er/new", "leaking", "inner"}
    assert rows["inner"]["state"] == "finished"
    assert rows["leaking"]["state"] == "unreadable"
    reason = "samples_sums.jsonl is a link that leads out of the folder that is viewed"
    assert rows["leaking"]["summary"]["reason"] == reason  # type: ignore[index]
    page = get(f"{viewer.address}runs/{rows['leaking']['id']}/").text
    assert read_head(page)["problem"] == f"leaking: {reason}"
    assert SECRET not in page


HOSTILE = ['<script>alert("x")</script>', '"><img src=x onerror=alert(1)>', "</script><!--", "a,b", "‮evil", "\x1b[31m"]


def test_hostile_names_are_texts(runs: Path) -> None:
    for name in HOSTILE:
        copytree(runs / "old", runs / name.replace("/", "∕"))
    copytree(runs / "old", os.fsdecode(os.fsencode(runs) + b"/not\xffutf-8"))
    with look_at(runs) as viewer:
        rows = list_runs(viewer)
        assert len(rows) == len(HOSTILE) + 3
        assert "not\\udcffutf-8" in rows
        for address in ("", *(f"runs/{row['id']}/" for row in rows.values())):
            page = get(viewer.address + address)
            assert page.status_code == 200
            assert len(re.findall("<script", page.text)) == len(re.findall("</script>", page.text))
            assert "<script>alert" not in page.text
            assert "<img" not in page.text


def test_a_broken_run_is_a_row_with_its_reason(viewer: Viewer, runs: Path) -> None:
    broken = {
        "cut": b'{"results": {"a": {"acc,',
        "empty": b"",
        "nested": b"[" * 200_000,
        "binary": bytes(range(256)),
        "foreign": b'{"results": 5}',
        "list": b"[1, 2]",
        "nulls": b'{"results": {"a": null}, "configs": [], "evalcore": {"estimates": 3, "groups": 4}}',
    }
    for name, content in broken.items():
        (runs / name).mkdir()
        (runs / name / "results.json").write_bytes(content)
    (runs / "folder/results.json").mkdir(parents=True)
    for name in ("results.json", "run.json", ".run.lock", ".progress.json"):  # whoever opens one of these waits
        copytree(runs / "old", runs / f"pipe of {name}")
        (runs / f"pipe of {name}" / name).unlink(missing_ok=True)
        os.mkfifo(runs / f"pipe of {name}" / name)
        broken[f"pipe of {name}"] = b""
    (runs / "old/nowhere").symlink_to(runs / "nothing")
    wait_for(lambda: "pipe of .progress.json" in list_runs(viewer))
    rows = list_runs(viewer)
    assert {*rows} == {*broken, "old", "deep/er/new"}
    assert {rows[name]["state"] for name in broken if name.startswith("pipe")} == {"unreadable"}
    assert {name for name, row in rows.items() if row["state"] == "unreadable"} >= {"cut", "empty", "nested", "binary"}
    for name in broken:
        page = get(f"{viewer.address}runs/{rows[name]['id']}/")
        assert page.status_code == 200
        assert read_head(page.text).get("problem") or rows[name]["state"] == "finished"
        assert rows[name]["summary"]["reason"] or rows[name]["state"] == "finished"  # type: ignore[index]
    assert get(f"{viewer.address}runs/{rows['old']['id']}/").status_code == 200


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".progress.json", b'{"more": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
        (".progress.json", b'{"stage": "\xff"}'),
        (".run.lock", b'{"more": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
        ("config.yaml", b'model: "\\ud800"\ntasks: ["\\udfff"]\n'),
        ("results.json", b'{"results": {"\\ud800": {"acc,none": 0.5}}, "config": {"model": "\\ud800"}}'),
    ],
)
def test_a_file_that_nobody_expects_hides_no_other_run(name: str, content: bytes, viewer: Viewer, runs: Path) -> None:
    (runs / "odd").mkdir()
    (runs / "odd/answers.jsonl").touch()
    (runs / "odd" / name).write_bytes(content)
    wait_for(lambda: len(list_runs(viewer)) == 3)
    assert get(viewer.address).status_code == 200
    ids = [row["id"] for row in list_runs(viewer).values()]
    for below in (*ids, ",".join(map(str, ids))):
        assert get(f"{viewer.address}runs/{below}/").status_code == 200


def test_slow_clients_hold_up_nobody_and_are_few(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.shell.view.server.PATIENCE", 600.0)
    url = httpx.URL(viewer.address)
    slow = [socket.create_connection((url.host, url.port), timeout=60) for _ in range(MOST_AT_ONCE - 4)]
    for one in slow:
        one.sendall(b"GET / HTTP/1.1\r\nHost:")
    assert get(viewer.address).status_code == 200
    more = [socket.create_connection((url.host, url.port), timeout=60) for _ in range(8)]
    for one in more:
        one.settimeout(60)
    # those that are one too many are closed at once, not queued
    assert b"" in [one.recv(1) for one in more[-1:]]
    for one in (*slow, *more):
        one.close()
    assert wait_for(lambda: _is_open(viewer))


def test_a_request_that_does_not_come_is_not_waited_for(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.shell.view.server.PATIENCE", 0.2)
    url = httpx.URL(viewer.address)
    with socket.create_connection((url.host, url.port), timeout=60) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert slow.recv(1) == b""


def _is_open(viewer: Viewer) -> bool:
    try:
        return get(viewer.address).status_code == 200
    except httpx.TransportError:
        return False


def test_what_follows_a_request_is_not_waited_for(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.shell.view.server.DRAINING", 0.1)
    url = httpx.URL(viewer.address)

    def go_on_sending() -> None:
        for _ in range(50):
            connection.sendall(b"x")
            time.sleep(0.2)

    with socket.create_connection((url.host, url.port), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises(OSError):
            go_on_sending()


def test_a_request_has_a_largest_size(viewer: Viewer) -> None:
    head = b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * LARGEST
    assert send_raw(viewer, head[: LARGEST + 1]).startswith(b"HTTP/1.0 431")
    for odd in (b"\r\n\r\n", b"nonsense\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
        assert not send_raw(viewer, odd).startswith(b"HTTP/1.0 200")
    assert _is_open(viewer)


def test_a_mistake_of_ours_ends_no_server(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Site, "_list_runs", lambda self: 1 / 0)
    assert get(viewer.address).status_code == 500
    monkeypatch.undo()
    assert get(viewer.address).status_code == 200


def test_what_stops_the_maker_of_pages_is_for_it_alone() -> None:
    """Whoever waits for a page is told that the viewer has ended, before and after."""

    def stop() -> HtmlPage:
        raise KeyboardInterrupt

    desk, told = PageDesk(), []
    for build in (stop, HtmlPage):
        asker = Thread(target=lambda build=build: told.append(_ask(desk, build)))
        asker.start()
        if build is stop:
            with pytest.raises(KeyboardInterrupt):
                desk.work()
            desk.close()
        asker.join(60)
    assert told == ["evalcore view has ended"] * 2


def test_who_asks_while_the_desk_closes_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = PageDesk()
    put = desk._jobs.put

    def close_first(job: object) -> None:
        if job is not None:
            desk.close()
        put(job)  # type: ignore[arg-type]

    monkeypatch.setattr(desk._jobs, "put", close_first)
    told: list[str] = []
    asker = Thread(target=lambda: told.append(_ask(desk, lambda: HtmlPage(""))), daemon=True)
    asker.start()
    asker.join(60)
    assert told == ["evalcore view has ended"]


def _ask(desk: PageDesk, build: Callable[[], HtmlPage]) -> str:
    with pytest.raises(EvalError) as wrong:
        desk.ask("page", build)
    return str(wrong.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.com", ""])
def test_no_other_machine_can_be_served(runs: Path, host: str) -> None:
    done = evalcore_here(runs, "view", ".", "--no_browser", "--host", host)
    assert done.returncode == 2
    assert "ssh -L" in done.stderr


def test_the_other_loopback_can_be_asked_for(runs: Path) -> None:
    try:
        listener = Listener("::1", 0, Site(runs))
    except OSError:
        pytest.skip("this machine has no ::1")
    listener.server_close()
    with open_view(runs, host="::1") as viewer:
        assert viewer.address.startswith("http://[::1]:")
        thread = Thread(target=viewer.serve, daemon=True)
        thread.start()
        assert get(viewer.address).status_code == 200


# --- the command --------------------------------------------------------------------------------------------------


@contextmanager
def start_command(home: Path, *typed: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process, and the address that it printed."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    given = command("view", *typed, "--no-browser")
    with subprocess.Popen(given, cwd=home, env=environment(home), **pipes) as child:  # type: ignore[call-overload]
        try:
            yield child, child.stdout.readline().strip()
        finally:
            child.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command(runs: Path, number: int, code: int) -> None:
    """In the folder of ``runs``, which is what it looks at if nothing is named."""
    with start_command(runs.parent) as (child, address):
        assert get(address).status_code == 200
        child.send_signal(number)
        out, told = child.communicate(timeout=60)
        assert (child.returncode, out) == (code, "")
        assert "Traceback" not in told
        with pytest.raises(httpx.ConnectError):
            get(address)


@pytest.mark.slow
def test_a_filter_that_is_stuck_ends_in_the_command(tmp_path: Path) -> None:
    """The command makes pages where timers reach: the page comes, without the steps of that filter."""
    write_tasks(tmp_path / "tasks", 4)
    path = tmp_path / "tasks/sums.yaml"
    task = yaml.safe_load(path.read_text())
    stuck = {"function": "regex", "regex_pattern": "(a|aa)+b"}
    task["filter_list"] = [{"name": "stuck", "filter": [stuck]}]
    path.write_text(yaml.safe_dump(task))
    with serve() as server:
        said = json.dumps({"choices": [{"index": 0, "text": "a" * 60, "finish_reason": "stop"}]}).encode()
        server.script = lambda number, body: (200, {}, said)
        keys = {"model": "local-completions", "model_args": {"model": "toy", "base_url": server.url}}
        run = {"tasks": ["sums"], "include_path": str(tmp_path / "tasks"), "output_path": str(tmp_path / "runs/stuck")}
        evalcore.run({**keys, **run, "doc_timeout": 0.05, "allow_failures": "100%"})
    with start_command(tmp_path) as (_, address):
        [row] = get(f"{address}news?at=").json()["runs"]
        page = read_head(get(f"{address}runs/{row['id']}/").text)
        assert page["runs"][0]["outcomes"]["sums"]["unscorable"] == 4  # type: ignore[index]


def test_a_busy_port_is_a_message(runs: Path, viewer: Viewer) -> None:
    port = httpx.URL(viewer.address).port
    done = evalcore_here(runs, "view", ".", "--no_browser", "--port", port)
    assert done.returncode == 2
    assert done.stderr == (
        f"evalcore: port {port} of 127.0.0.1 is in use; give another --port, or none for any that is free\n"
    )


@pytest.mark.parametrize(
    ("folder", "told"), [("none", "no such folder"), ("runs/old/results.json", "evalcore report"), (" ", "empty path")]
)
def test_what_is_no_folder_is_a_message(runs: Path, folder: str, told: str) -> None:
    done = evalcore_here(runs.parent, "view", folder, "--no_browser")
    assert done.returncode == 2
    assert told in done.stderr


# --- a run that goes on -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [pytest.param("finished", marks=pytest.mark.slow), "stopped"])
def test_a_run_is_followed_while_it_goes_on(tmp_path: Path, end: str) -> None:
    """The server of the model waits at the 16th question; then the run ends, or is killed and goes on later."""
    write_tasks(tmp_path / "tasks", 24)
    (tmp_path / "runs").mkdir()
    with serve(latency=0.25) as server, look_at(tmp_path / "runs") as viewer:
        server.ready = lambda held: len(held.bodies) < 16
        assert list_runs(viewer) == {}
        with start_live_run(tmp_path, server.url) as child:
            try:
                found = wait_for(lambda: _find_live(viewer, 12))
                assert isinstance(found, dict)
                told = found["progress"]
                assert (found["state"], told["stage"], told["total"]) == ("going on", "asking", 24)
                assert found["summary"]["tasks"] == ["sums"]
                assert found["summary"]["model"].startswith("local-completions (base_url=")
                assert 12 <= told["done"] < 16
                assert told["lines"][0] == "provisional, of the documents answered so far:"
                assert re.fullmatch(r"sums exact_match,strict \d\S* \(\S+ to \S+\), n \d+", told["lines"][1])
                page = f"{viewer.address}runs/{found['id']}/"
                assert read_head(get(page).text)["waiting"] == ["live"]
                if end == "stopped":
                    child.kill()
                    child.wait()
                    assert list_runs(viewer)["live"]["state"] == "stopped"
                    assert list_runs(viewer)["live"]["progress"]["done"] == told["done"]  # type: ignore[index]
                    server.ready = lambda held: True
                    with start_live_run(tmp_path, server.url) as again:
                        assert again.wait(120) == 0
                else:
                    server.ready = lambda held: True
                    assert child.wait(120) == 0
                row = wait_for(lambda: _find_finished(viewer))
                assert isinstance(row, dict)
                assert (row["progress"], row["summary"]["number"]["n"]) == (None, 24)
                assert not (tmp_path / "runs/live/.progress.json").exists()
                assert read_head(get(page).text)["runs"][0]["name"] == "live"  # type: ignore[index]
            finally:
                child.kill()


def _find_live(viewer: Viewer, least: int) -> Json | None:
    row = list_runs(viewer).get("live")
    progress = row and row["progress"]
    return row if isinstance(progress, dict) and progress["done"] >= least and progress["lines"] else None


def _find_finished(viewer: Viewer) -> Json | None:
    row = list_runs(viewer).get("live")
    return row if row and row["state"] == "finished" else None
