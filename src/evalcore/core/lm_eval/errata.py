"""What lm-eval 0.4.13 gets wrong, and which errata apply to an estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct
from pyrsistent import PMap, pmap

from evalcore.core.groups.averages import Term
from evalcore.core.groups.tree import GroupMetric
from evalcore.core.metrics.corpus import CORPUS_KINDS
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.row import Floats, Objects, Powers, Rows
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline

ERRATA: PMap[str, str] = pmap(
    {
        "E01": "lm-eval takes the upper middle as the median of an even number of scores",
        "E02": "lm-eval aggregates bypass to 999 and prints it as a score",
        "E03": "lm-eval's stderr of acc_all groups by question only, its value by (paragraph, question)",
        "E04": "lm-eval accepts a callable group aggregation and ignores it",
        "E05": "lm-eval counts a task twice that is in a group and in its subgroup",
        "E07": "lm-eval averages a missing task away",
        "E08": "lm-eval averages perplexities arithmetically",
        "E09": "lm-eval weights every metric of a task by one task-level count",
        "E10": "with several golds, lm-eval turns any score that is not 0 into 1",
        "E11": "after exact_match on several golds, lm-eval hands later metrics the prediction as a list",
        "E13": "lm-eval compares fixed-width strings, and what normalisation empties",
        "E17": "lm-eval draws whole thousands of resamples only",
        "E18": "lm-eval's bootstrap error is low by sqrt((n - 1) / n)",
        "E19": "in lm-eval's majority vote a fallback answer can win",
        "E21": "lm-eval counts empty strings at the ends of a text as words",
        "E22": "lm-eval reports an error of 0.0 at 0 % and 100 %, without an interval",
        "E23": "lm-eval's pooled group error assumes equal variances in all tasks",
        "E24": "lm-eval has no standard error for this aggregation",
        "E46": "lm-eval ignores the options of this metric",
        "E47": "lm-eval cuts the references of a corpus to the fewest of any document",
        "E48": "lm-eval cuts texts that grow in lower case",
        "E49": "lm-eval gives all tasks of a group that is listed with changes the name of the group, and loses most",
        "E50": "lm-eval sends no stop strings to an OpenAI chat model that has a 5 in its name",
        "E51": "fewshot_indices has no effect in lm-eval",
        "E52": "lm-eval logs chosen documents in their order, under numbers in the order in which they were chosen",
        "E53": "once its first target is a list, lm-eval splits targets that are texts into characters",
        "E54": "lm-eval's evaluate draws few-shot examples from an unseeded generator",
    }
)

ONLY_ERRORS = frozenset({"E03", "E17", "E18", "E22", "E23", "E24"})
"""Errata about standard errors and intervals alone; the others change the number itself."""

BOOTSTRAPPED = frozenset(
    {"median", "perplexity", "f1", "matthews_corrcoef", "bleu", "chrf", "chrf++", "ter", "nanmean"}
)
WITHOUT_ERROR = frozenset({"weighted_perplexity", "bits_per_byte", "brier_score", "ece"})

LOSE_OPTIONS = frozenset({"f1", "matthews_corrcoef", *CORPUS_KINDS})
"""Aggregations of pairs, which lm-eval hands on without the options of their metric."""
AS_BINARY = {"average": "binary", "pos_label": 1}

NORMALISING = ("ignore_punctuation", "ignore_numbers", "regexes_to_ignore")


class Facts(Struct, frozen=True):
    """The facts that decide the errata of a task's number."""

    key: MetricKey
    estimate: Estimate
    pipeline: Pipeline = Pipeline("none")
    traits: tuple[str, ...] = ()
    specs: tuple[MetricSpec, ...] = ()
    rows: Rows | None = None
    draws: int | None = None


Applies = Callable[[Facts], bool]


def _is_after_exact_match(facts: Facts) -> bool:
    names = [spec.name for spec in facts.specs]
    later = facts.specs[names.index("exact_match") + 1 :] if "exact_match" in names else ()
    return "several golds" in facts.traits and any(s.name == facts.key.metric and s.function for s in later)


def _is_emptied(facts: Facts) -> bool:
    options = facts.estimate.scale.options
    return (
        facts.key.metric == "exact_match" and "bare gold" in facts.traits and any(options.get(o) for o in NORMALISING)
    )


def _has_partial_credit(facts: Facts) -> bool:
    """Whether any score lies strictly between 0 and 1."""
    if isinstance(facts.rows, Powers):
        return facts.rows.kind is Floats and facts.rows.low[0] < 1 and facts.rows.high[0] > 0
    if not isinstance(facts.rows, Floats):
        return False
    values = facts.rows.values.floats
    return bool(np.any((values > 0) & (values < 1)))


def _ignores_options(facts: Facts) -> bool:
    scale = facts.estimate.scale
    return scale.aggregation in LOSE_OPTIONS and any(AS_BINARY.get(k) != value for k, value in scale.options.items())


def count_references(rows: Rows | None) -> list[int]:
    """Count the references of each document, where a task gives them as lists.

    >>> count_references(Objects(((("a", "b"), "a"), (["c"], "a")))), count_references(Objects((("a", "b"),)))
    ([2, 1], [])
    """
    pairs = [row for row in rows.values if isinstance(row, list | tuple)] if isinstance(rows, Objects) else []
    counts = [len(row[0]) for row in pairs if len(row) == 2 and isinstance(row[0], list | tuple)]
    return counts if len(counts) == len(pairs) else []


TASK_RULES: Sequence[tuple[str, Applies]] = (
    ("E01", lambda facts: facts.estimate.scale.aggregation == "median" and facts.estimate.count % 2 == 0),
    ("E02", lambda facts: facts.estimate.scale.aggregation == "bypass"),
    ("E03", lambda facts: facts.estimate.scale.aggregation == "acc_all"),
    ("E10", lambda facts: "several golds" in facts.traits and _has_partial_credit(facts)),
    ("E11", _is_after_exact_match),
    ("E13", _is_emptied),
    ("E17", lambda facts: bool((facts.draws or 0) % 1000) and facts.estimate.scale.aggregation in BOOTSTRAPPED),
    ("E18", lambda facts: facts.estimate.scale.aggregation in BOOTSTRAPPED),
    ("E19", lambda facts: any(step.name == "majority_vote" for step in facts.pipeline.steps)),
    ("E21", lambda facts: facts.key.metric == "word_perplexity"),
    ("E22", lambda facts: facts.estimate.stderr == 0.0 and facts.estimate.value in facts.estimate.scale.bounds),
    ("E24", lambda facts: facts.estimate.scale.aggregation in WITHOUT_ERROR),
    ("E46", _ignores_options),
    (
        "E47",
        lambda facts: facts.estimate.scale.aggregation in CORPUS_KINDS and len(set(count_references(facts.rows))) > 1,
    ),
    ("E48", lambda facts: facts.key.metric == "exact_match" and "growing text" in facts.traits),
)


def task_errata(facts: Facts) -> tuple[str, ...]:
    """List the errata that make lm-eval's number, or its error, differ.

    >>> from evalcore.core.records.estimate import Scale
    >>> task_errata(Facts(MetricKey("m"), Estimate(value=2.5, n=4, scale=Scale(aggregation="median"))))
    ('E01', 'E18')
    """
    return tuple(name for name, applies in TASK_RULES if applies(facts))


def tell_errata(names: Iterable[str]) -> str:
    """Say why lm-eval's number may be another than ours, by its errata that change numbers; empty if there are none.

    >>> tell_errata(["E01", "E18"])
    'lm-eval takes the upper middle as the median of an even number of scores (E01)'
    """
    return "; ".join(f"{ERRATA[name]} ({name})" for name in names if name not in ONLY_ERRORS)


def group_errata(
    spec: GroupMetric, terms: Sequence[Term], missing: Sequence[str], paths: int, sample_lens: Sequence[int]
) -> tuple[str, ...]:
    """List the errata that make lm-eval's group number differ; ``paths`` counts the ways tasks are reached."""
    sizes = {term.size for term in terms}
    applying = (
        ("E04", callable(spec.aggregation)),
        ("E05", paths > len({term.name for term in terms}) + len(missing)),
        ("E07", bool(missing)),
        ("E08", any(term.estimate.scale.average and not term.estimate.scale.link.plain for term in terms)),
        ("E09", [term.estimate.counts.scored for term in terms] != list(sample_lens)),
        ("E23", spec.weight_by_size and len(sizes) > 1),
    )
    return tuple(name for name, applies in applying if applies)
