"""How often an interval that promises 95 % holds the truth: lm-eval's, Inspect's way, and evalcore's, on 0/1 scores.

Exact sums over all outcomes, no simulation.

    python bench/coverage.py
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log

from lm_eval.api.metrics import mean_stderr

from evalcore import AGGREGATIONS, aggregate_metric
from evalcore.core.stats.quantiles import t_quantile
from evalcore.stats import Array, Floats, Inference, build_column

SIZES, CHANCES = (10, 30, 100, 1000), (0.5, 0.9, 0.99)
Ends = tuple[float, float]


def scores(hits: int, n: int) -> list[float]:
    return [1.0] * hits + [0.0] * (n - hits)


def ours(method: str) -> Callable[[int, int], Ends | None]:
    def ends(hits: int, n: int) -> Ends | None:
        made = build_column(range(n), Floats(Array(scores(hits, n))))
        return aggregate_metric(AGGREGATIONS["mean"], made, inference=Inference(interval=method)).ci

    return ends


def around(quantile: Callable[[int], float]) -> Callable[[int, int], Ends]:
    def ends(hits: int, n: int) -> Ends:
        reach = quantile(n) * float(mean_stderr(scores(hits, n)))
        return hits / n - reach, hits / n + reach

    return ends


WAYS: dict[str, Callable[[int, int], Ends | None]] = {
    "lm-eval, value ± 1.96 stderr": around(lambda n: 1.96),
    "value ± t · stderr (Inspect)": around(lambda n: t_quantile(0.975, n - 1)),
    "evalcore (wilson)": ours("wilson"),
    "evalcore ci: exact": ours("exact"),
}


def coverage(ends: Callable[[int, int], Ends | None], n: int, p: float) -> float:
    chances = [chance(k, n, p) for k in range(n + 1)]
    return sum(one for k, one in enumerate(chances) if one > 1e-12 and _holds(ends(k, n), p))


def chance(k: int, n: int, p: float) -> float:
    """The chance of k right answers of n."""
    return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log(1 - p))


def _holds(ends: Ends | None, p: float) -> bool:
    return ends is not None and ends[0] <= p <= ends[1]


def main() -> None:
    cells = [(n, p) for n in SIZES for p in CHANCES]
    print(f"{'95 % promised; held (%)':30s}" + "".join(f"{f'{n}, {p}':>11s}" for n, p in cells))
    for name, ends in WAYS.items():
        print(f"{name:30s}" + "".join(f"{100 * coverage(ends, n, p):11.1f}" for n, p in cells))


if __name__ == "__main__":
    main()
