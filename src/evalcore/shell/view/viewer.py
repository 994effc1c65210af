"""A folder of runs served to a browser of this machine."""

from __future__ import annotations

import errno
import os
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from threading import Thread

from evalcore.core.records.errors import EvalError
from evalcore.shell.config.values import RunPath
from evalcore.shell.files.given import parse_path
from evalcore.shell.files.remote_path import RemotePath
from evalcore.shell.view.server import Listener
from evalcore.shell.view.site import Site

HOST = "127.0.0.1"
USUAL = Path("runs")
"""Where runs are if nobody says otherwise."""


class Viewer:
    """A server that listens. ``address`` has its token; ``serve`` makes pages until ``close`` or Ctrl-C."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.address = f"{listener.origin}/{listener.door.token}/"

    def serve(self) -> None:
        """Make what is asked for; call it in the main thread, where filters that are stuck come to an end."""
        self._listener.site.desk.work()

    def close(self) -> None:
        self._listener.site.desk.close()

    def open_browser(self) -> bool:
        """Open a browser on an address that is good for one use, and return whether there is one with a screen."""
        screen = os.name == "nt" or sys.platform == "darwin" or {"DISPLAY", "WAYLAND_DISPLAY"} & {*os.environ}
        return bool(screen) and webbrowser.open(f"{self._listener.origin}/open/{self._listener.door.make_code()}")


def view(
    folder: RunPath | None = None,
    *,
    host: str = HOST,
    port: int = 0,
    browser: bool = True,
    tell: Callable[[str], object] = lambda address: None,
) -> None:
    """Serve the pages of all runs below a folder (``runs``, else this one) to this machine, until Ctrl-C.

    ``tell`` hears the address, which is new each time. Port 0 is any that is free.

    >>> view("no/such/folder")
    Traceback (most recent call last):
    evalcore.EvalError: no/such/folder: no such folder; expected one with runs in it
    """
    with open_view(folder, host=host, port=port) as viewer:
        tell(viewer.address)
        if browser:
            viewer.open_browser()
        viewer.serve()


@contextmanager
def open_view(folder: RunPath | None = None, *, host: str = HOST, port: int = 0) -> Iterator[Viewer]:
    """Listen while the block runs; pages are made where it calls ``serve``."""
    path = find_folder(folder)
    listener = _listen(check_host(host), port, Site(path))
    viewer = Viewer(listener)
    thread = Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield viewer
    finally:
        viewer.close()
        listener.shutdown()
        listener.server_close()


def find_folder(given: RunPath | None) -> Path:
    """Find the folder to view.

    >>> find_folder("s3://bucket/runs")
    Traceback (most recent call last):
    evalcore.EvalError: s3://bucket/runs: view shows folders of this machine; `evalcore report s3://bucket/runs/...` ...
    """
    path = parse_path(given).expanduser() if given is not None else USUAL if USUAL.is_dir() else Path()
    if isinstance(path, RemotePath):
        raise EvalError(f"{path}: view shows folders of this machine; `evalcore report {path}/...` writes a page")
    if given is not None and not str(given).strip():
        raise EvalError("expected a folder, got an empty path (a shell variable that is not set?)")
    if path.is_file():
        raise EvalError(f"{path}: a file; view shows folders, and `evalcore report {path}` writes a page about one run")
    if not path.is_dir():
        raise EvalError(f"{path}: no such folder; expected one with runs in it")
    return path


def check_host(host: str) -> str:
    """Refuse every address but those of loopback.

    >>> check_host("localhost"), check_host("::1")
    ('127.0.0.1', '::1')
    >>> check_host("0.0.0.0")
    Traceback (most recent call last):
    evalcore.EvalError: --host 0.0.0.0: view serves this machine only (127.0.0.1, ::1); from another, ...
    """
    try:
        local = ip_address(HOST if host == "localhost" else host)
    except ValueError:
        local = ip_address("0.0.0.0")
    if not local.is_loopback:
        raise EvalError(
            f"--host {host}: view serves this machine only ({HOST}, ::1); from another, forward a port to it: "
            "`evalcore view --port 8642 --no_browser` here, `ssh -L 8642:127.0.0.1:8642 HERE` there"
        )
    return str(local)


def _listen(host: str, port: int, site: Site) -> Listener:
    if not 0 <= port < 1 << 16:
        raise EvalError(f"expected --port from 0 to 65535, got {port}")
    try:
        return Listener(host, port, site)
    except OSError as wrong:
        why = "is in use" if wrong.errno == errno.EADDRINUSE else f"cannot be used ({wrong.strerror})"
        advice = "give another --port, or none for any that is free"
        raise EvalError(f"port {port} of {host} {why}; {advice}") from wrong
