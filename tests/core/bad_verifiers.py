"""Verifiers for tests of the pool: good, slow, hanging and crashing ones, chosen by what the completion says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time


def loop() -> float:
    while True:
        pass


def match_forever() -> float:
    """A pattern that backtracks for years and holds the interpreter's lock while it does."""
    return float(bool(re.search(r"(a+)+$", "a" * 60 + "b")))


def sleep_forever() -> float:
    time.sleep(1e6)
    return 0.0


def run_forever() -> float:
    """A process of the verifier's own, that holds on to whatever it inherits."""
    subprocess.run(["sleep", "1000"], check=False)
    return 0.0


def raise_error() -> float:
    raise ValueError("no such judge")


def kill_itself() -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return sleep_forever()


def crash() -> float:
    os.kill(os.getpid(), signal.SIGSEGV)
    return sleep_forever()


BAD = {
    "loop": (loop, "no verdict within 2 s"),
    "regex": (match_forever, "no verdict within 2 s"),
    "sleep": (sleep_forever, "no verdict within 2 s"),
    "run": (run_forever, "no verdict within 2 s"),
    "raise": (raise_error, "ValueError: no such judge"),
    "exit": (lambda: os._exit(3), "the verifier's process ended with exit code 3"),
    "sys.exit": (lambda: sys.exit(4), "SystemExit: 4"),
    "kill": (kill_itself, "the verifier's process ended with exit code -9 (out of memory?)"),
    "segfault": (crash, "the verifier's process ended with exit code -11 (Segmentation fault)"),
}
"""What a verifier does when the completion is this word, and the reason for which it then fails."""


def judge(completion: str, gold: object) -> float:
    """A third of the gold, or what a bad completion makes it do."""
    if completion == "slow":
        time.sleep(0.3)
    if completion in BAD:
        return BAD[completion][0]()
    return float(str(gold)) / 3


def tell_pid(*given: object) -> int:
    return os.getpid()


def fork_and_return() -> int:
    """A fork that forgets to end."""
    return os.fork() and 7


def leave_thread() -> int:
    """A thread that ends the process after the verdict."""
    threading.Timer(0.2, os._exit, (5,)).start()
    return os.getpid()


def allocate(size: int) -> int:
    return len(bytearray(size))
