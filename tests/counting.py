"""Work counted in steps instead of seconds: the same number on every machine, however busy it is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest


def count_steps(work: Callable[[], object], most: float = float("inf")) -> int:
    """The lines of Python that work runs and the functions it calls, those written in C too.

    More than ``most`` fail the test at once, so that work without end is found without waiting for it.
    """
    steps = 0

    def step(frame: FrameType, event: str, arg: object) -> object:
        nonlocal steps
        steps += event in ("call", "line", "c_call")
        if steps > most:
            pytest.fail(f"more than {most:,.0f} steps")
        return step

    def call(frame: FrameType, event: str, arg: object) -> None:
        if event == "c_call":
            step(frame, event, arg)

    traced, profiled, collecting = sys.gettrace(), sys.getprofile(), gc.isenabled()
    gc.disable()  # the callbacks of the collector come at any time
    sys.settrace(step)
    sys.setprofile(call)
    try:
        work()
    finally:
        sys.setprofile(profiled)
        sys.settrace(traced)
        if collecting:
            gc.enable()
        if steps > most:  # whatever the work made of it
            pytest.fail(f"more than {most:,.0f} steps")
    return steps


def growth(work: Callable[[int], object], size: int) -> float:
    """How many times the steps of twice the size are those of the size: 2 for linear work, 4 for quadratic.

    What is made once, as modules and caches are, is made before.
    """
    work(size)
    once = count_steps(lambda: work(size))
    return count_steps(lambda: work(2 * size)) / once


class Counted(np.ndarray):
    """An array that counts the elements which numpy's functions read of it, and of all that is made from it."""

    read = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: object, **named: object) -> object:
        return _again(getattr(ufunc, method)(*map(_plain, given), **{name: _plain(one) for name, one in named.items()}))

    def __array_function__(self, function: Callable[..., object], types: object, given: tuple, named: dict) -> object:
        return _again(function(*map(_plain, given), **{name: _plain(one) for name, one in named.items()}))


def count_elements(work: Callable[[Counted], object], array: np.ndarray) -> int:
    """How many elements numpy's functions read while work is done on this array."""
    Counted.read = 0
    work(array.view(Counted))
    return Counted.read


def _plain(value: object) -> object:
    if isinstance(value, Counted):
        Counted.read += value.size
        return value.view(np.ndarray)
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    return value


def _again(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.view(Counted)
    if isinstance(value, list | tuple):
        return type(value)(map(_again, value))
    return value
