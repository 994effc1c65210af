"""No test depends on how fast the machine is, or on luck: hypothesis has all the time it needs and draws the same examples.

With ``EVALCORE_SEARCH`` in the environment it draws others each time. What a process compiles is kept for the next one,
whatever the environment says: tests start hundreds of processes, and each would compile evalcore for longer than it runs.
"""

from __future__ import annotations

import os
import sys

from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
settings.register_profile(
    "evalcore",
    deadline=None,
    derandomize="EVALCORE_SEARCH" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("evalcore")
