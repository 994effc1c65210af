"""No test depends on how fast the machine is, or on luck: hypothesis has all the time it needs and draws the same examples.

With ``EVALCORE_SEARCH`` in the environment it draws others each time. What a process compiles is kept for the next one,
whatever the environment says: tests start hundreds of processes, and each would compile evalcore for longer than it runs.
Nor does the garbage collector go through ten thousand tests and all they import again and again: none of it is garbage.
"""

from __future__ import annotations

import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

gc.disable()
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
settings.register_profile(
    "evalcore",
    deadline=None,
    derandomize="EVALCORE_SEARCH" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("evalcore")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Collect garbage again, but not among the tests."""
    gc.freeze()
    gc.enable()
