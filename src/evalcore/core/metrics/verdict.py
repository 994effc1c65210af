"""How each metric explains a score, in words, as far as it can be told: what was compared with what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from math import exp, isfinite, nan

from evalcore.core.answers.result import GenResult, LLResult, MCResult, RollingResult
from evalcore.core.answers.text import GenBatch, make_texts
from evalcore.core.filters.reasons import quote
from evalcore.core.metrics.normalise import NO_GOLD, normalise_distinct, normaliser
from evalcore.core.records.request import Options
from evalcore.core.records.row import Floats

TextMetric = Callable[[GenBatch, Options], object]

# --- texts ----------------------------------------------------------------------------------------------------------


def tell_equality(metric: TextMetric, result: GenResult, options: Options) -> str:
    """Which gold the metric found equal, as it is or once normalised.

    >>> from evalcore.core.metrics.text import exact_match
    >>> print(tell_equality(exact_match, GenResult(("Yes",), ("yes",)), {"ignore_case": True}))
    'Yes' and the gold 'yes' are equal once normalised: 'yes'
    """
    said, golds = str(result.generations[0]), result.golds
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


def tell_part(metric: TextMetric, result: GenResult, options: Options) -> str:
    """Which gold the metric found in the prediction."""
    hit = _find_first_hit(metric, str(result.generations[0]), result.golds, options)
    return "no gold is contained in it" if hit is None else f"the gold {quote(hit)} is contained in it"


def tell_extraction(result: GenResult, options: Options) -> str:
    """Whether the filter found an answer."""
    return "the filter found no answer" if result.fell_back[0] else "the filter found an answer"


# --- likelihoods ----------------------------------------------------------------------------------------------------


def tell_likeliest(result: MCResult, options: Options) -> str:
    """Which choice is the likeliest, and which is right."""
    return _likeliest("", result.lls, result)


def tell_likeliest_by_character(result: MCResult, options: Options) -> str:
    """``tell_likeliest`` per character."""
    return _likeliest(" by character", _divide(result.lls, result.chars), result)


def tell_likeliest_by_byte(result: MCResult, options: Options) -> str:
    """``tell_likeliest`` per byte."""
    return _likeliest(" by byte", _divide(result.lls, result.bytes), result)


def _divide(lls: Sequence[float], lengths: Sequence[int]) -> Sequence[float]:
    """Log-likelihoods by length; NaN if a choice has no text."""
    return [ll / length if length else nan for ll, length in zip_longest(lls, lengths, fillvalue=0)]


def _likeliest(unit: str, scores: Sequence[float], result: MCResult) -> str:
    if not all(map(isfinite, scores)):
        return ""
    best = max(range(len(scores)), key=scores.__getitem__)
    golds = " or ".join(_format_choice(result, at) + f" ({scores[at]:.4g})" for at in result.gold[:5])
    hit = "which is right" if best in result.gold else f"and right is {golds}"
    return f"likeliest{unit} is {_format_choice(result, best)} ({scores[best]:.4g}), {hit}"


def _format_choice(result: MCResult, at: int) -> str:
    """Format a choice by its index and, if known, its text."""
    return f"choice {at} {quote(result.choices[at])}" if at < len(result.choices) else f"choice {at}"


def tell_greedy(result: LLResult, options: Options) -> str:
    """Whether greedy decoding gives the target."""
    return "greedy decoding gives the target" if result.greedy else "greedy decoding gives another text"


def tell_likelihood(result: LLResult, options: Options) -> str:
    """The log-likelihood itself."""
    return f"log-likelihood of the target {result.value:.4g}"


def tell_length(length: Callable[[str], int], unit: str, result: RollingResult) -> str:
    """The log-likelihood of a text, its length, and the perplexity that it would have alone."""
    count, value = length(result.text), result.value
    alone = f"; alone, a perplexity of {exp(min(-value / count, 700.0)):.4g}" if count else ""
    return f"log-likelihood {value:.6g} over {count} {unit}{alone}"
