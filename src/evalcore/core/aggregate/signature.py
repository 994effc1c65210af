"""The one-line recipe of a number, in the manner of sacrebleu."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from evalcore.core.records.estimate import Estimate
from evalcore.core.records.request import Options
from evalcore.core.stats.intervals import Interval, interval_name

INTERVAL = "|ci:"
"""What precedes the name of an interval in a recipe."""

VERSION = "0.1.0"
"""The version of evalcore, whose only source this is: packages are built from it, recipes and results name it."""


def recipe(parts: Mapping[str, object]) -> str:
    """Join ``key:value`` pairs by bars, without empty ones.

    >>> recipe({"metric": "acc", "filter": "none", "reducer": None, "n": 3})
    'metric:acc|filter:none|n:3'
    """
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value not in (None, "", ()))


def sign(estimate: Estimate, parts: Mapping[str, object], *, tables: str, interval: Interval) -> Estimate:
    """Add its recipe to an estimate, which knows how its error and interval were made."""
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
    """Name how an interval of this kind is made for an estimate, if it has one.

    >>> from evalcore.core.records.estimate import Scale, Spread
    >>> from evalcore.core.stats.links import LOG
    >>> log = Scale(bounds=(1.0, float("inf")), link=LOG)
    >>> interval_of(Estimate(value=9.0, spread=Spread(variance=1.0), scale=log), "exact")
    't-log'
    """
    if estimate.value is None or estimate.spread.variance is None:
        return None
    spread, scale = estimate.spread.variance, estimate.scale
    skewness = estimate.spread.skewness
    return interval_name(
        method, estimate.value, variance=spread, bounds=scale.bounds, link=scale.link, skewness=skewness
    )


def write_options(options: Options) -> str:
    """Write options in a fixed order.

    >>> from evalcore.core.records.request import freeze_options
    >>> write_options(freeze_options(b=1, a=True))
    'a=True,b=1'
    """
    return ",".join(f"{key}={_write_value(options[key])}" for key in sorted(options))


def _write_value(value: object) -> str:
    if callable(value):
        return str(getattr(value, "__name__", "callable"))
    return str(value).replace("|", "\\u007c")
