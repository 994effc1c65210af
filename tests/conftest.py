"""No test depends on how fast the machine is: hypothesis, too, gives an example all the time it needs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("evalcore", deadline=None)
settings.load_profile("evalcore")
