"""How a score came about, in words: what was compared with what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import exp
from typing import TypeVar

import numpy as np

from evalcore.core.answers.batch import (
    Batch,
    GenBatch,
    LLBatch,
    RollingBatch,
    count_bytes,
    gen_batch,
    ll_batch,
    make_texts,
    rolling_batch,
)
from evalcore.core.answers.choice import MCBatch, mc_batch, spread_choices
from evalcore.core.filters.reasons import quote
from evalcore.core.metrics.likelihood import words
from evalcore.core.metrics.normalise import NO_GOLD, normalise_distinct, normaliser
from evalcore.core.metrics.text import exact_match, includes
from evalcore.core.records.array import Floats64
from evalcore.core.records.column import Floats
from evalcore.core.records.request import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Options,
    OutputType,
)
from evalcore.core.records.task import MetricSpec, Task

__all__ = ["JUDGES", "explain_score"]

Judge = Callable[[Batch, Options], str]
B = TypeVar("B", GenBatch, MCBatch, LLBatch, RollingBatch)


def explain_score(task: Task, spec: MetricSpec, batch: Batch) -> str:
    """Say what a metric compared in a batch of one document; empty if there are no words for it.

    >>> from evalcore.core.answers.batch import make_batch
    >>> spec = MetricSpec("exact_match", options={"ignore_case": True})
    >>> print(explain_score(Task("t", GENERATE_UNTIL), spec, make_batch([["Yes"]], ["yes"])))
    'Yes' and the gold 'yes' are equal once normalised: 'yes'
    """
    judge = JUDGES.get(task.output_type, {}).get(spec.name)
    own = spec.function is not None or task.process_results is not None
    return judge(batch, spec.options) if judge is not None and not own else ""


def _judge_built(build: Callable[[Batch], B], tell: Callable[[B, Options], str]) -> Judge:
    """Make a judge of what a scorer builds from a batch, or of why it cannot."""

    def judge(batch: Batch, options: Options) -> str:
        built = build(batch)
        return built.problems.get(0) or tell(built, options)

    return judge


# --- texts ----------------------------------------------------------------------------------------------------------


def _exact(batch: GenBatch, options: Options) -> str:
    said, golds = batch.predictions[0], batch.golds[0]
    if not golds:
        return NO_GOLD
    normal = _normalise_texts((said, *golds), options)
    same = _find_first_hit(exact_match, said, golds, options)
    if same == said:
        return f"equal to the gold {quote(same)}"
    if same is not None:
        return f"{quote(said)} and the gold {quote(same)} are equal once normalised: {quote(normal[said])}"
    wanted = " or ".join(quote(normal[gold]) for gold in golds[:5]) + (" or others" if len(golds) > 5 else "")
    changed = any(text != form for text, form in normal.items())
    return f"{quote(normal[said])} is not {wanted}{' (as normalised)' if changed else ''}"


def _find_first_hit(metric: Callable[..., object], said: str, golds: tuple[str, ...], options: Options) -> str | None:
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


def _includes(batch: GenBatch, options: Options) -> str:
    hit = _find_first_hit(includes, batch.predictions[0], batch.golds[0], options)
    return "no gold is contained in it" if hit is None else f"the gold {quote(hit)} is contained in it"


def _extraction(batch: GenBatch, options: Options) -> str:
    return "the filter found no answer" if bool(batch.fell_back[0]) else "the filter found an answer"


# --- likelihoods ----------------------------------------------------------------------------------------------------


def _likeliest(lengths: Callable[[MCBatch], Floats64] | None, unit: str) -> Callable[[MCBatch, Options], str]:
    def tell(batch: MCBatch, options: Options) -> str:
        with np.errstate(divide="ignore", invalid="ignore"):  # choices without a text
            scores = batch.lls[0] if lengths is None else batch.lls[0] / lengths(batch)[0]
        if not bool(np.isfinite(scores[batch.valid[0]]).all()):
            return ""
        best = int(np.argmax(np.where(batch.valid[0], scores, -np.inf)))
        right = np.flatnonzero(batch.is_gold[0]).tolist()
        golds = " or ".join(_format_choice(batch, at) + f" ({scores[at]:.4g})" for at in right[:5])
        hit = "which is right" if best in right else f"and right is {golds}"
        return f"likeliest{unit} is {_format_choice(batch, best)} ({scores[best]:.4g}), {hit}"

    return tell


def _format_choice(batch: MCBatch, at: int) -> str:
    """Format a choice by its index and, if known, its text."""
    known = batch.samples[0].choices
    return f"choice {at} {quote(known[at])}" if at < len(known) else f"choice {at}"


def _greedy(batch: LLBatch, options: Options) -> str:
    return "greedy decoding gives the target" if bool(batch.greedy[0]) else "greedy decoding gives another text"


def _chance(batch: LLBatch, options: Options) -> str:
    return f"log-likelihood of the target {batch.lls[0]:.4g}"


def _rolled(length: Callable[[str], int], unit: str) -> Callable[[RollingBatch, Options], str]:
    def tell(batch: RollingBatch, options: Options) -> str:
        count, value = length(batch.texts[0]), float(batch.lls[0])
        alone = f"; alone, a perplexity of {exp(min(-value / count, 700.0)):.4g}" if count else ""
        return f"log-likelihood {value:.6g} over {count} {unit}{alone}"

    return tell


JUDGES: Mapping[OutputType, Mapping[str, Judge]] = {
    GENERATE_UNTIL: {
        "exact_match": _judge_built(gen_batch, _exact),
        "includes": _judge_built(gen_batch, _includes),
        "extraction_rate": _judge_built(gen_batch, _extraction),
    },
    MULTIPLE_CHOICE: {
        "acc": _judge_built(mc_batch, _likeliest(None, "")),
        "acc_norm": _judge_built(mc_batch, _likeliest(lambda batch: spread_choices(batch, len), " by character")),
        "acc_bytes": _judge_built(mc_batch, _likeliest(lambda batch: spread_choices(batch, count_bytes), " by byte")),
    },
    LOGLIKELIHOOD: {"acc": _judge_built(ll_batch, _greedy), "perplexity": _judge_built(ll_batch, _chance)},
    LOGLIKELIHOOD_ROLLING: {
        "word_perplexity": _judge_built(rolling_batch, _rolled(words, "words")),
        "byte_perplexity": _judge_built(rolling_batch, _rolled(count_bytes, "bytes")),
        "bits_per_byte": _judge_built(rolling_batch, _rolled(count_bytes, "bytes")),
    },
}
