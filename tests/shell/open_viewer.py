"""``evalcore view`` on a folder, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from evalcore.shell.view.viewer import Viewer, open_view


@contextmanager
def look_at(folder: Path) -> Iterator[Viewer]:
    """A viewer whose pages are made by a thread."""
    with open_view(folder) as viewer:
        thread = Thread(target=viewer.serve, daemon=True)
        thread.start()
        yield viewer
    thread.join(60)
