"""Ray: a cluster that is joined or started; lost units are done again, results are merged there in a tree."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import NamedTuple

from evalcore.core.records.errors import EvalError, require
from evalcore.shell.engines.interface import Means, count_cores

RETRIES = 2
"""How often a task is done again whose worker or node was lost."""

HERE = "local"
"""The address of a new cluster on this machine, as Ray calls it."""

QUIET = {"RAY_task_oom_retries": str(RETRIES), "RAY_USAGE_STATS_ENABLED": "0"}
"""What Ray reads from the environment: it would retry for ever what runs out of memory, and report its use."""


def import_ray() -> ModuleType:
    with _environment(QUIET):
        return require("ray", "ray")


class Joined(NamedTuple):
    """A cluster: how many tasks it is given at once, if that is limited, and whether it ends with its use."""

    limit: int | None
    own: bool = False


@contextmanager
def join_cluster(ray: ModuleType, means: Means) -> Iterator[Joined]:
    """Join the cluster that is named or runs for a while, or start one; one that is joined already stays so."""
    if ray.is_initialized():
        yield Joined(means.workers)
        return
    ray._private.worker._worker_logs_enabled = False  # Ray tells of lost workers on stdout, where results go
    try:
        with _environment(QUIET):
            found = _connect(ray, means)
        yield Joined(means.workers) if found else Joined(None, own=True)
    finally:
        ray.shutdown()
        ray._private.worker._worker_logs_enabled = True


def _connect(ray: ModuleType, means: Means) -> bool:
    """Join the cluster that is named or was started on this machine; else start one here, which ends with its use."""
    named = means.address or os.environ.get("RAY_ADDRESS")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if named not in (None, HERE):
            _reach(str(named))
            ray.init(address=named, **quiet)
            return True
        with suppress(ValueError):  # which says that one runs, and that its cores cannot be chosen
            ray.init(address=named, num_cpus=means.workers or count_cores(), include_dashboard=False, **quiet)
            return False
        ray.init(**quiet)
        return True
    except Exception as wrong:
        told = f"the Ray cluster at {named!r} could not be joined" if named else "no Ray cluster could be started"
        raise EvalError(f"{told}: {first_line(wrong)} (is it of the same Ray, behind RAY_AUTH_MODE=token?)") from wrong


def _reach(address: str) -> None:
    """Refuse an address where nobody answers, at which Ray would try for minutes."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment that are not set, for a while."""
    added = {key: value for key, value in values.items() if key not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for key in added:
            os.environ.pop(key, None)


def first_line(wrong: Exception) -> str:
    return (str(wrong).strip().splitlines() or [""])[0][:300]
