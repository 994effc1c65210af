"""Paths of stores: what they say of themselves, what is tried again, and web servers of every kind."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from sample_runs import write_run

import evalcore
from evalcore import EvalError
from evalcore.shell.files import faults, remote_file
from evalcore.shell.files.given import expand_glob, parse_path


class Flaky(MemoryFileSystem):
    """A store of which the first attempts at everything fail, and then as many as are named."""

    protocol = "flaky"
    store: dict[str, object] = {}  # noqa: RUF012
    faults: list[Exception] = []  # noqa: RUF012

    def _fail(self) -> None:
        if self.faults:
            raise self.faults.pop()

    def info(self, path: str, **keys: object) -> object:
        self._fail()
        return super().info(path, **keys)

    def put_file(self, *given: object, **keys: object) -> object:
        self._fail()
        return super().put_file(*given, **keys)

    def open(self, *given: object, **keys: object) -> object:
        self._fail()
        return super().open(*given, **keys)


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Flaky]]:
    monkeypatch.setattr(faults.time, "sleep", lambda seconds: None)
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    Flaky.faults.clear()
    Flaky.store.clear()
    yield Flaky
    Flaky.faults.clear()


class ServerError(Exception):
    status = 503


@pytest.mark.parametrize("fault", [ConnectionResetError(), TimeoutError(), ServerError(), BrokenPipeError()])
def test_what_may_pass_is_tried_again(flaky: type[Flaky], tmp_path: Path, fault: Exception) -> None:
    path, draft = parse_path("flaky://a/b.txt"), tmp_path / "b"
    draft.write_bytes(b"text")
    for action in (partial(path.put, draft), path.is_file, path.read_bytes):
        flaky.faults += [fault] * len(faults.WAITS)
        action()
        assert not flaky.faults
    assert path.read_bytes() == b"text"
    assert [str(one) for one in path.parent.iterdir()] == ["flaky://a/b.txt"]  # nothing of the draft
    flaky.faults += [fault] * (len(faults.WAITS) + 1)
    with pytest.raises(EvalError, match=r"^flaky://a/b\.txt: the store cannot be reached, tried 5 times"):
        path.stat()


def test_what_does_not_pass_is_told_at_once(flaky: type[Flaky]) -> None:
    path = parse_path("flaky://a/b.txt")
    flaky.faults.append(PermissionError("no"))
    with pytest.raises(EvalError, match="denies access"):
        path.is_file()
    flaky.faults.append(FileNotFoundError())
    assert not path.is_file()
    with pytest.raises(EvalError, match="Protocol not known: nosuch"):
        parse_path("nosuch://a").exists()


@pytest.mark.usefixtures("flaky")
def test_a_read_that_fails_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, draft = parse_path("flaky://a/b"), tmp_path / "b"
    draft.write_bytes(bytes(range(256)) * 4)
    path.put(draft)
    with path.open("rb", buffering=0) as file:
        first = file.read(100)
        read, left = type(file._file).read, [1, 1]  # type: ignore[attr-defined]

        def stumble(self: object, *given: int) -> bytes:
            if left:
                left.pop()
                raise ConnectionResetError
            content: bytes = read(self, *given)
            return content

        monkeypatch.setattr(type(file._file), "read", stumble)  # type: ignore[attr-defined]
        assert first + file.read(10_000) == bytes(range(256)) * 4
        assert not left


def test_a_path_of_a_store_is_a_path() -> None:
    path = parse_path("s3://key:secret@bucket/run/samples_a.jsonl.gz")
    assert isinstance(path, Path)
    assert str(path) == "s3://bucket/run/samples_a.jsonl.gz"
    assert (path.name, path.suffix, path.stem) == ("samples_a.jsonl.gz", ".gz", "samples_a.jsonl")
    assert str(path.with_name("b")) == str(path.parent / "b") == "s3://bucket/run/b"
    assert path.relative_to(path.parent.parent).parts == ("run", "samples_a.jsonl.gz")
    assert Path("here") / path == path
    assert path / "/there" == Path("/there")
    assert sorted([path, path.parent]) == [path.parent, path]
    assert pickle.loads(pickle.dumps(path)) == path
    assert parse_path("https://h/a?id=1") != parse_path("https://h/a?id=2")
    with pytest.raises(EvalError, match="expected a local file here"), open(path):
        pass


class Ranges(SimpleHTTPRequestHandler):
    """Python's own server, which knows no ranges; with ``ranges`` one that does. A secret is asked for."""

    ranges = False

    def log_message(self, format: str, *given: object) -> None:
        pass

    def do_GET(self) -> None:
        if not self.path.endswith("?token=canary"):
            return self.send_error(403)
        asked = self.headers.get("Range")
        if not (self.ranges and asked):
            return super().do_GET()
        content = Path(self.translate_path(self.path)).read_bytes()
        start, _, end = asked.removeprefix("bytes=").partition("-")
        part = content[int(start) : int(end) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)
        return None


@pytest.mark.parametrize("ranges", [False, True])
def test_files_of_a_web_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranges: bool) -> None:
    """Each by itself, in blocks if the server gives blocks; nothing can be written or listed there."""
    monkeypatch.setattr(remote_file, "BLOCK", 700)
    monkeypatch.setattr(faults.time, "sleep", lambda seconds: None)
    log = next(write_run(tmp_path / "run", {"boolq": (1.0, 0.0) * 20}).iterdir())
    with ZipFile(tmp_path / "run/a.zip", "w") as zipped:
        zipped.writestr("one", b"1" * 3000)
        zipped.writestr("two", b"2" * 3000)
    handler = partial(type("Kind", (Ranges,), {"ranges": ranges}), directory=tmp_path / "run")
    listener = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{listener.server_address[1]}"
    try:
        here, there = evalcore.score(log), evalcore.score(f"{base}/{log.name}?token=canary")
        assert here.report == there.report
        with parse_path(f"{base}/a.zip?token=canary").open("rb") as file, ZipFile(file) as zipped:
            assert zipped.read("two") == b"2" * 3000
        with pytest.raises(EvalError, match=r"/samples_x\.jsonl: the store denies access"):
            evalcore.score(f"{base}/samples_x.jsonl?token=other")
        with pytest.raises(EvalError, match="no such file") as missing:
            evalcore.score(f"{base}/samples_x.jsonl?token=canary")
        assert "canary" not in str(missing.value)
        with pytest.raises(EvalError, match="can only be read"):
            evalcore.score(log, output_path=f"{base}/out")
        with pytest.raises(EvalError, match="no folders to list"):
            expand_glob(parse_path(f"{base}/*.jsonl"))
    finally:
        listener.shutdown()
        listener.server_close()
