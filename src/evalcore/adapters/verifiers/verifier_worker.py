"""This side of one worker: start its process, call the verifier within a deadline, kill it."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from contextlib import suppress
from select import POLLIN, poll
from socket import socket, socketpair
from subprocess import DEVNULL, Popen
from threading import Lock

from msgspec import DecodeError, Struct, msgpack

from evalcore.adapters.verifiers.verifier_loop import Reply, receive, send
from evalcore.core.records.errors import EvalError
from evalcore.core.records.outcome import OK, UNSCORABLE, Failed, Ok, Outcome, Unscorable
from evalcore.core.secret_names import drop_secrets

BOOT = "import sys; sys.path[:] = {path!r}; from evalcore.adapters.verifiers.verifier_loop import main; main({fd})"
"""Not ``multiprocessing``'s spawn, which would run the trainer's script again in every worker."""
DECODER = msgpack.Decoder(Reply)


class VerifierLimits(Struct, frozen=True):
    """How many workers there are, the seconds, bytes and calls that each may take, and the secrets that it is given."""

    deadline: float
    workers: int
    startup: float
    memory: int | None
    max_calls: int | None
    keep: tuple[str, ...] = ()


class VerifierWorker:
    """A process that is started at the first call and again after it was killed. One thread at a time calls it."""

    def __init__(self, source: str | bytes, limits: VerifierLimits) -> None:
        self.source, self.limits = source, limits
        self.process: Popen[bytes] | None = None
        self.line: socket | None = None
        self.watch = poll()
        self.calls = 0
        self.closed = False
        self.lock = Lock()

    def call(self, message: bytes) -> Outcome:
        """Call the verifier; the deadline counts from when the process takes the call."""
        if self.line is not None and self.watch.poll(0):
            self.end()  # it died after its last verdict, for which this call is not to blame
        if self.line is None:
            self._start()
        found = self._ask(message, self.limits.deadline, "verdict")
        self.calls += 1
        if self.calls == self.limits.max_calls:
            self.end()
        return found

    def end(self) -> int:
        """Kill the process and close the line to it, as the thread that calls it; return its exit code."""
        code, line, self.line = self.kill(), self.line, None
        if line is not None:
            line.close()
        return code

    def kill(self) -> int:
        """Kill the process and all that it started, as any thread; return its exit code."""
        with self.lock:
            if self.process is None:
                return 0
            if self.process.returncode is None:  # not waited for, so the number is still its own
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.wait()

    def close(self) -> None:
        """Kill the process and start no other, as any thread."""
        self.closed = True
        self.kill()

    def forget(self) -> None:
        """Let go of a process that belongs to the process from which this one was forked."""
        if self.process is not None:
            self.process.returncode = 0
        if self.line is not None:
            self.line.close()

    def _start(self) -> None:
        """Start a process and wait until it has loaded the verifier."""
        limits, self.calls = self.limits, 0
        try:
            self._launch()
            message = pickle.dumps((self.source, limits.memory, 2 * limits.deadline + 1))
            ready = self._ask(message, limits.startup, "start")
        except OSError as wrong:  # no room for more processes or files
            raise EvalError(f"a worker cannot be started: {wrong}") from wrong
        if not isinstance(ready, Ok):
            self.end()
            in_main = isinstance(self.source, bytes) and b"__main__" in self.source
            hint = "; a worker does not run __main__: name a module or file, as in 'judges.py:judge'" if in_main else ""
            raise EvalError(f"the verifier cannot be loaded in a worker: {getattr(ready, 'reason', '')}{hint}")

    def _launch(self) -> None:
        self.line, there = socketpair()
        self.watch = poll()
        self.watch.register(self.line, POLLIN)
        try:
            with self.lock, there:
                if self.closed:
                    raise EvalError("the pool is closed")
                code = BOOT.format(path=sys.path, fd=there.fileno())
                self.process = Popen(
                    [sys.executable, "-c", code],
                    pass_fds=[there.fileno()],
                    stdin=DEVNULL,
                    start_new_session=True,
                    env=drop_secrets(os.environ, self.limits.keep),
                )
        except BaseException:
            self.end()
            raise

    def _ask(self, message: bytes, seconds: float, what: str) -> Outcome:
        """Send a message and wait for the reply; a process without one is ended."""
        if self.line is None:
            raise EvalError("the worker has no process")
        try:
            self.line.settimeout(seconds)
            send(self.line, message)
            status, score, reason = DECODER.decode(receive(self.line))
        except TimeoutError:
            self.end()
            return Failed(f"no {what} within {seconds:g} s")
        except (EOFError, OSError):
            return Failed(f"the verifier's process ended with exit code {_explain_code(self.end())}")
        except DecodeError as wrong:
            self.end()
            return Failed(f"the verifier's process sent no {what}: {wrong}")
        except BaseException:  # Ctrl-C
            self.end()
            raise
        if status == OK:
            return Ok(score)
        return Unscorable(reason) if status == UNSCORABLE else Failed(reason)


def _explain_code(code: int) -> str:
    """Explain an exit code.

    >>> _explain_code(3), _explain_code(-9), _explain_code(-11)
    ('3', '-9 (out of memory?)', '-11 (Segmentation fault)')
    """
    if code >= 0:
        return str(code)
    return f"{code} ({'out of memory?' if code == -signal.SIGKILL else signal.strsignal(-code)})"
