"""The one-line recipe of a number, in the manner of sacrebleu."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from evalcore.core.records.estimate import Estimate
from evalcore.core.records.request import Options
from evalcore.core.stats.intervals import Interval, interval_name

__all__ = ["INTERVAL", "VERSION", "interval_of", "recipe", "sign"]

INTERVAL = "|ci:"
"""Comes before how an interval was resampled, in what closing leaves of a recipe."""

VERSION = "0.1.0"


def recipe(parts: Mapping[str, object]) -> str:
    """``key:value`` pairs joined by bars, empty ones left out.

    >>> recipe({"metric": "acc", "filter": "none", "reducer": None, "n": 3})
    'metric:acc|filter:none|n:3'
    """
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value not in (None, "", ()))


def sign(estimate: Estimate, parts: Mapping[str, object], *, tables: str, interval: Interval) -> Estimate:
    """The estimate with its recipe; how its error and a bootstrap were made is known only after closing, from it."""
    error, _, resampled = estimate.signature.partition(INTERVAL)
    full = {
        **parts,
        "agg": estimate.scale.aggregation,
        "se": error if estimate.stderr is not None else None,
        "clusters": None if estimate.spread.clusters is None else len(set(estimate.spread.clusters.ints.tolist())),
        "ci": None if estimate.ci is None else resampled or interval_of(estimate, interval),
        "n": estimate.n,
        "tables": tables,
        "ev": VERSION,
    }
    return replace(estimate, signature=recipe(full))


def interval_of(estimate: Estimate, method: Interval | str) -> str | None:
    """How an interval of this kind is really made for an estimate, if it has one.

    >>> from evalcore.core.records.estimate import Scale, Spread
    >>> from evalcore.core.stats.links import LOG
    >>> log = Scale(bounds=(1.0, float("inf")), link=LOG)
    >>> interval_of(Estimate(value=9.0, spread=Spread(variance=1.0), scale=log), "exact")
    't-log'
    """
    if estimate.value is None or estimate.spread.variance is None:
        return None
    spread, scale = estimate.spread.variance, estimate.scale
    return interval_name(method, estimate.value, variance=spread, bounds=scale.bounds, link=scale.link)


def shown_options(options: Options) -> str:
    """Options in a fixed order.

    >>> from evalcore.core.records.request import freeze_options
    >>> shown_options(freeze_options(b=1, a=True))
    'a=True,b=1'
    """
    return ",".join(f"{key}={_shown(options[key])}" for key in sorted(options))


def _shown(value: object) -> str:
    if callable(value):
        return str(getattr(value, "__name__", "callable"))
    return str(value).replace("|", "\\u007c")
