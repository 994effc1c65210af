"""One writer at a time: a lock file that holds on network file systems, too."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.safety.replacement import refuse_write

SILENT_SECONDS = 600
LARGEST = 1 << 16


class Holder(Struct, frozen=True):
    """The process that holds a lock; ``started`` tells it from a later one with the same number."""

    host: str
    pid: int
    started: str = ""


@contextmanager
def hold_lock(fd: int, path: Path) -> Iterator[None]:
    """Hold ``path.lock`` while the log, open as ``fd``, is written.

    The kernel's lock on the log comes first: where it works, a dead holder's file can be taken over safely. Whether a
    holder on another host is dead (a killed container, say) cannot be known here; but a live one touches its lock
    file, so a holder that the kernel does not know and that has long been silent counts as dead.
    """
    lock = name_lock(path)
    in_kernel = _lock_in_kernel(fd)
    if in_kernel is False:
        raise _describe_holder(path, lock)
    me = Holder(socket.gethostname(), os.getpid(), _find_start(os.getpid()))
    if not _create_lock(lock, me):
        holder = _read_holder(lock)
        # An empty file was left by a holder killed before it wrote, unless the kernel knows a live one.
        silent = bool(in_kernel) and _measure_age(lock) > SILENT_SECONDS
        if not (in_kernel if holder is None else is_gone(holder) or silent):
            raise _describe_holder(path, lock)
        lock.unlink(missing_ok=True)
        if not _create_lock(lock, me):
            raise _describe_holder(path, lock)
    try:
        yield
    finally:
        with suppress(OSError):
            if _read_holder(lock) == me:
                lock.unlink()


def name_lock(path: Path) -> Path:
    """Name the lock file of a log.

    >>> name_lock(Path("run/answers.jsonl")).name
    'answers.jsonl.lock'
    """
    return path.with_name(path.name + ".lock")


def is_held(path: Path) -> bool:
    """Whether a log is being written, as its lock file says; of another host, whose processes nobody here knows, so.

    >>> is_held(Path("no/such/log"))
    False
    """
    holder = _read_holder(name_lock(path))
    return holder is not None and not is_gone(holder)


def touch_lock(path: Path) -> None:
    """Show that the holder of a log's lock is alive."""
    with suppress(OSError):
        os.utime(name_lock(path))


def _measure_age(lock: Path) -> float:
    try:
        return time.time() - lock.stat().st_mtime
    except OSError:
        return 0.0


def is_gone(holder: Holder) -> bool:
    """Whether a holder is known to be dead, which can be known only of processes of this host.

    >>> is_gone(Holder("some-other-host", 1)), is_gone(Holder(socket.gethostname(), os.getpid()))
    (False, False)
    """
    if holder.host != socket.gethostname():
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    started = _find_start(holder.pid)
    return started == "dead" or bool(started and holder.started and started != holder.started)


def _find_start(pid: int) -> str:
    """Find when a process started, as the kernel counts; empty if unknown, ``dead`` of a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "dead" if fields[0] in "ZX" else fields[19]


def _lock_in_kernel(fd: int) -> bool | None:
    """Take the kernel's lock: True if it is ours, False if another's, None if there are no such locks."""
    try:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # not Unix, or a file system without locks
        return None
    return True


def _create_lock(lock: Path, holder: Holder) -> bool:
    try:
        fd = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    except OSError as wrong:
        raise refuse_write(f"{lock}: cannot create the lock file: {wrong.strerror}", wrong) from wrong
    try:
        if os.write(fd, data := msgspec.json.encode(holder)) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as wrong:
        lock.unlink(missing_ok=True)
        raise refuse_write(f"{lock}: cannot write the lock file: {wrong.strerror}", wrong) from wrong
    finally:
        os.close(fd)
    return True


def _read_holder(lock: Path) -> Holder | None:
    try:
        with open(lock, "rb") as file:
            return msgspec.json.decode(file.read(LARGEST), type=Holder)
    except (OSError, ValueError, RecursionError):
        return None


def _describe_holder(path: Path, lock: Path) -> EvalError:
    holder = _read_holder(lock)
    who = f"process {holder.pid} on {holder.host}" if holder else "another process"
    return EvalError(
        f"{path}: another run is writing this ({who}); wait for it, give another output folder, "
        f"or, if that run is gone for certain, delete {lock}"
    )
