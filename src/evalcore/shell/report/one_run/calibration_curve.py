"""Confidence against accuracy, with the bars within which a calibrated model would stay."""

from __future__ import annotations

from msgspec import Struct

from evalcore.core.aggregate.inference import Inference
from evalcore.core.aggregate.ratios import CalibrationBin, bin_confidences
from evalcore.core.aggregate.signature import sign
from evalcore.core.pipeline import close_column
from evalcore.core.records.array import Floats64, frozen
from evalcore.core.records.column import build_column
from evalcore.core.records.errors import RAISED
from evalcore.core.records.row import Stats
from evalcore.core.tables import EVALCORE
from evalcore.shell.report.one_run.reply_facts import CONFIDENCE_METRIC

BINS = 10


class CalibrationCurve(Struct, frozen=True):
    """The bins that hold documents; the calibration error, its interval and recipe, and a calibrated model's error."""

    n: int
    bins: tuple[CalibrationBin, ...]
    value: float | None = None
    ci: tuple[float, float] | None = None
    reference: float | None = None
    recipe: str = ""


def draw_curve(chances: Floats64, confidence: float) -> CalibrationCurve | None:
    """Make the curve of rows of (confidence, correct); None where they are no such rows.

    >>> import numpy as np
    >>> draw_curve(np.array([[0.95, 1.0], [0.91, 0.0]]), 0.95).bins[0].accuracy
    0.5
    """
    column = build_column(range(len(chances)), Stats(frozen(chances)))
    closing = Inference(confidence=confidence)
    try:
        bins = bin_confidences(chances, BINS, confidence)
        closed = close_column(column, CONFIDENCE_METRIC.name, inference=closing)
    except RAISED:
        return None
    signed = sign(closed, {"metric": CONFIDENCE_METRIC.name}, tables=EVALCORE.name, interval=closing.method)
    known = None if closed.reference is None else closed.reference[1]
    return CalibrationCurve(len(chances), bins, closed.value, closed.ci, known, signed.signature)
