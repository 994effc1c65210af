"""How each metric explains a score, in words, as far as it can be told: what was compared with what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp

import numpy as np

from evalcore.core.answers.batch import GenBatch, LLBatch, RollingBatch, count_bytes, make_texts
from evalcore.core.answers.choice import MCBatch, spread_choices
from evalcore.core.filters.reasons import quote
from evalcore.core.metrics.normalise import NO_GOLD, normalise_distinct, normaliser
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats

TextMetric = Callable[[GenBatch, Options], object]

# --- texts ----------------------------------------------------------------------------------------------------------


def tell_equality(metric: TextMetric, batch: GenBatch, options: Options) -> str:
    """Which gold the metric found equal, as it is or once normalised.

    >>> from evalcore.core.metrics.text import exact_match
    >>> print(tell_equality(exact_match, make_texts(["Yes"], ["yes"]), {"ignore_case": True}))
    'Yes' and the gold 'yes' are equal once normalised: 'yes'
    """
    said, golds = batch.predictions[0], batch.golds[0]
    if not golds:
        return NO_GOLD
    normal = _normalise_texts((said, *golds), options)
    same = _find_first_hit(metric, said, golds, options)
    if same == said:
        return f"equal to the gold {quote(same)}"
    if same is not None:
        return f"{quote(said)} and the gold {quote(same)} are equal once normalised: {quote(normal[said])}"
    wanted = " or ".join(quote(normal[gold]) for gold in golds[:5]) + (" or others" if len(golds) > 5 else "")
    changed = any(text != form for text, form in normal.items())
    return f"{quote(normal[said])} is not {wanted}{' (as normalised)' if changed else ''}"


def _find_first_hit(metric: TextMetric, said: str, golds: tuple[str, ...], options: Options) -> str | None:
    """Find the first gold for which the metric itself gives 1."""
    hits = (metric(make_texts([said], [gold]), options) for gold in golds)
    return next(
        (g for g, hit in zip(golds, hits, strict=True) if isinstance(hit, Floats) and hit.values.floats[0]), None
    )


def _normalise_texts(texts: tuple[str, ...], options: Options) -> Mapping[str, str]:
    regexes = options.get("regexes_to_ignore") or ()
    normalise = normaliser(
        tuple(regexes) if isinstance(regexes, tuple | list) else (),
        case=bool(options.get("ignore_case")),
        punctuation=bool(options.get("ignore_punctuation")),
        numbers=bool(options.get("ignore_numbers")),
    )
    return normalise_distinct(normalise, texts)


def tell_part(metric: TextMetric, batch: GenBatch, options: Options) -> str:
    """Which gold the metric found in the prediction."""
    hit = _find_first_hit(metric, batch.predictions[0], batch.golds[0], options)
    return "no gold is contained in it" if hit is None else f"the gold {quote(hit)} is contained in it"


def tell_extraction(batch: GenBatch, options: Options) -> str:
    """Whether the filter found an answer."""
    return "the filter found no answer" if bool(batch.fell_back[0]) else "the filter found an answer"


# --- likelihoods ----------------------------------------------------------------------------------------------------


def tell_likeliest(batch: MCBatch, options: Options) -> str:
    """Which choice is the likeliest, and which is right."""
    return _likeliest(None, "", batch)


def tell_likeliest_by_character(batch: MCBatch, options: Options) -> str:
    """``tell_likeliest`` per character."""
    return _likeliest(len, " by character", batch)


def tell_likeliest_by_byte(batch: MCBatch, options: Options) -> str:
    """``tell_likeliest`` per byte."""
    return _likeliest(count_bytes, " by byte", batch)


def _likeliest(length: Callable[[str], int] | None, unit: str, batch: MCBatch) -> str:
    with np.errstate(divide="ignore", invalid="ignore"):  # choices without a text
        scores = batch.lls[0] if length is None else batch.lls[0] / spread_choices(batch, length)[0]
    if not bool(np.isfinite(scores[batch.valid[0]]).all()):
        return ""
    best = int(np.argmax(np.where(batch.valid[0], scores, -np.inf)))
    right = np.flatnonzero(batch.is_gold[0]).tolist()
    golds = " or ".join(_format_choice(batch, at) + f" ({scores[at]:.4g})" for at in right[:5])
    hit = "which is right" if best in right else f"and right is {golds}"
    return f"likeliest{unit} is {_format_choice(batch, best)} ({scores[best]:.4g}), {hit}"


def _format_choice(batch: MCBatch, at: int) -> str:
    """Format a choice by its index and, if known, its text."""
    known = batch.samples[0].choices
    return f"choice {at} {quote(known[at])}" if at < len(known) else f"choice {at}"


def tell_greedy(batch: LLBatch, options: Options) -> str:
    """Whether greedy decoding gives the target."""
    return "greedy decoding gives the target" if bool(batch.greedy[0]) else "greedy decoding gives another text"


def tell_likelihood(batch: LLBatch, options: Options) -> str:
    """The log-likelihood itself."""
    return f"log-likelihood of the target {batch.lls[0]:.4g}"


def tell_length(length: Callable[[str], int], unit: str, batch: RollingBatch) -> str:
    """The log-likelihood of a text, its length, and the perplexity that it would have alone."""
    count, value = length(batch.texts[0]), float(batch.lls[0])
    alone = f"; alone, a perplexity of {exp(min(-value / count, 700.0)):.4g}" if count else ""
    return f"log-likelihood {value:.6g} over {count} {unit}{alone}"
