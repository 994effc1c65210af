"""The one-line recipe of a number, in the manner of sacrebleu."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from msgspec.structs import replace

from evalcore.core.estimate import Estimate
from evalcore.core.records import Options

__all__ = ["VERSION", "recipe", "sign"]

VERSION = "0.1.0"


def recipe(parts: Mapping[str, object]) -> str:
    """``key:value`` pairs joined by bars, empty ones left out.

    >>> recipe({"metric": "acc", "filter": "none", "reducer": None, "n": 3})
    'metric:acc|filter:none|n:3'
    """
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value not in (None, "", ()))


def sign(estimate: Estimate, parts: Mapping[str, object], *, tables: str, interval: str) -> Estimate:
    """The estimate with its recipe; its error's method is known only after closing, so it is taken from it."""
    full = {
        **parts,
        "agg": estimate.aggregation,
        "se": estimate.signature if estimate.stderr is not None else None,
        "ci": _interval_name(estimate, interval),
        "n": estimate.n,
        "tables": tables,
        "ev": VERSION,
    }
    return replace(estimate, signature=recipe(full))


def _interval_name(estimate: Estimate, interval: str) -> str | None:
    """How the interval was really made: without finite bounds it is a t interval, on the scale of the link."""
    if estimate.ci is None:
        return None
    quantile = "z" if interval == "z" else "t"
    if not all(map(isfinite, estimate.bounds)):
        return f"{quantile}-{estimate.link}" if estimate.link != "identity" else quantile
    return interval if interval == "exact" else f"wilson-{quantile}"


def shown_options(options: Options) -> str:
    """Options in a fixed order.

    >>> from evalcore.core.records import options
    >>> shown_options(options(b=1, a=True))
    'a=True,b=1'
    """
    return ",".join(f"{key}={_shown(options[key])}" for key in sorted(options))


def _shown(value: object) -> str:
    if callable(value):
        return str(getattr(value, "__name__", "callable"))
    return str(value).replace("|", "\\u007c")
