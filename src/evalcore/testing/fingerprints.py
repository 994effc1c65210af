"""Values as hashable trees of bits, so that any two can be compared exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from evalcore.core.records.array import Array


def fingerprint(value: object) -> object:
    """Make a hashable image that two values share only if they agree in every type and bit.

    >>> fingerprint([1, {"a": np.zeros(2)}]) == fingerprint([1, {"a": np.zeros(2)}])
    True
    >>> fingerprint(0.0) == fingerprint(-0.0), fingerprint(1) == fingerprint(True)
    (False, False)
    >>> fingerprint(float("nan")) == fingerprint(float("nan"))
    True
    """
    name = type(value).__name__
    if isinstance(value, Array):
        return name, fingerprint(value.data)
    if isinstance(value, np.ndarray):
        return name, value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Struct):
        return name, tuple((key, fingerprint(part)) for key, part in asdict(value).items())
    if isinstance(value, Mapping):
        return name, frozenset((fingerprint(key), fingerprint(part)) for key, part in value.items())
    if isinstance(value, Set):
        return name, frozenset(map(fingerprint, value))
    if isinstance(value, str | bytes):
        return name, value
    if isinstance(value, Sequence):
        return name, tuple(map(fingerprint, value))
    if isinstance(value, float | np.floating):
        return name, float(value).hex()
    return name, value if callable(value) else repr(value)
