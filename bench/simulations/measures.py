"""What is seen when a cell is drawn again and again: coverage and width of its intervals, and findings of its tests."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

import numpy as np
from msgspec import Struct
from scipy import stats

from bench.simulations.cells import Cell, Drawn
from bench.simulations.pair_cells import PairCell, Runs
from evalcore import AGGREGATIONS, EvalError, aggregate_metric, freeze_options
from evalcore.lm_eval import LM_EVAL_0_4_13
from evalcore.stats import Inference, Resampling, build_column

Ends = tuple[float, float]
LEAST, ALPHA = 0.90, 0.05


def holds(ends: Ends | None, truth: float) -> bool:
    return ends is not None and ends[0] <= truth <= ends[1]


class Measured(Struct, frozen=True):
    """What was seen in a cell: the share of intervals that hold the truth, of all and of those without a warning.

    ``given`` is the share of evaluations that had an interval, ``warned`` that of intervals with a warning. ``width``
    is the median, relative to the oracle's. ``peer`` is what value ± 1.96 of lm-eval's standard errors holds,
    ``inspect`` that of Inspect's errors of clusters.
    """

    cell: Cell
    held: float
    unwarned: float
    given: float
    warned: float
    width: float
    peer: float | None = None
    inspect: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the cell keeps its promise: 90 % of the intervals that come without a warning."""
        return self.held >= LEAST or (self.warned > 0 and self.unwarned >= LEAST)


def measure(cell: Cell, repetitions: int, seed: int = 0, *, peers: bool = False) -> Measured:
    """Draw a cell's evaluation again and again."""
    rng = cell.generator(seed)
    drawn = [cell.draw(rng) for _ in range(repetitions)]
    made = [cell.close(one) for one in drawn]
    held = np.array([holds(one.ci, cell.truth) for one in made])
    given = np.array([one.ci is not None for one in made])
    warned = np.array([bool(one.warnings) for one in made])
    widths = [one.ci[1] - one.ci[0] for one in made if one.ci is not None]
    spread = float(np.std([one.value for one in made if one.value is not None], ddof=1))
    return Measured(
        cell,
        _share(held, given),
        _share(held, given & ~warned),
        float(given.mean()),
        float((given & warned).mean()),
        float(np.median(widths)) / (3.92 * spread) if widths and spread else float("nan"),
        lm_eval_holds(cell, drawn[: max(repetitions // 5, 50)]) if peers else None,
        inspect_holds(cell, drawn) if peers else None,
    )


def _share(held: np.ndarray, among: np.ndarray) -> float:
    return float(held[among].mean()) if among.any() else 1.0


def inspect_holds(cell: Cell, drawn: Iterable[Drawn]) -> float | None:
    """How often value ± 1.96 of Inspect's clustered stderr holds the truth; the form cr1 agrees with it to 1e-9."""
    found = []
    for rows, codes in drawn:
        if codes is None:
            return None
        made = aggregate_metric(
            AGGREGATIONS[cell.aggregation],
            build_column(range(cell.n), rows),
            clusters=codes,
            inference=Inference(stderr="cr1"),
        )
        found.append(abs((made.value or 0.0) - cell.truth) <= 1.96 * (made.stderr or 0.0))
    return float(np.mean(found))


def lm_eval_holds(cell: Cell, drawn: Iterable[Drawn]) -> float | None:
    """How often lm-eval's value ± 1.96 stderr holds the truth; its draws are replayed, which agrees to 1e-12."""
    how = LM_EVAL_0_4_13.aggregations[cell.aggregation]
    inference = Inference(resampling=Resampling(1000))
    found = []
    for rows, _ in drawn:
        options = freeze_options(dict(cell.options))
        try:
            made = aggregate_metric(how, build_column(range(cell.n), rows), options=options, inference=inference)
        except EvalError:  # F1 of three classes (E16, E46)
            return None
        if made.value is None or made.stderr is None:
            return None
        found.append(abs(made.value - cell.truth) <= 1.96 * made.stderr)
    return float(np.mean(found))


# --- pairs of runs ---


class PairMeasured(Struct, frozen=True):
    """What was seen in a cell: the share of findings by each test, of intervals that hold the truth, their width."""

    cell: PairCell
    found: float
    held: float
    width: float
    paired_t: float | None
    unpaired_z: float | None


def measure_pairs(cell: PairCell, repetitions: int, seed: int = 0) -> PairMeasured:
    rng = cell.generator(seed)
    drawn = [cell.draw(rng) for _ in range(repetitions)]
    lines = [cell.compare(runs) for runs in drawn]
    spread = float(np.std([line.difference for line in lines], ddof=1))
    widths = [line.ci[1] - line.ci[0] for line in lines if line.ci is not None]
    plain = drawn[0][0].ndim == 1 and cell.metric != "perplexity"
    return PairMeasured(
        cell,
        float(np.mean([line.p_value is not None and line.p_value <= ALPHA for line in lines])),
        float(np.mean([holds(line.ci, cell.truth) for line in lines if line.ci is not None])),
        float(np.median(widths)) / (3.92 * spread),
        float(np.mean([paired_t(runs) <= ALPHA for runs in drawn])) if plain else None,
        float(np.mean([unpaired_z(runs) <= ALPHA for runs in drawn])) if plain else None,
    )


def paired_t(runs: Runs) -> float:
    """lmms-eval's test; without spread it says p = 0 unless the runs are equal."""
    apart = runs[0] - runs[1]
    error = apart.std(ddof=1) / sqrt(len(apart))
    if error < 1e-15:
        return 1.0 if abs(apart.mean()) < 1e-15 else 0.0
    return float(2 * stats.t.sf(abs(apart.mean()) / error, len(apart) - 1))


def unpaired_z(runs: Runs) -> float:
    """The test of lm-eval's comparison script."""
    error = sqrt(sum(scores.var(ddof=1) / len(scores) for scores in runs))
    return float(2 * stats.norm.sf(abs(runs[0].mean() - runs[1].mean()) / error)) if error else 1.0
