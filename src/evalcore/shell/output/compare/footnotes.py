"""What to know besides the numbers of a comparison: what was corrected, what could not be paired, what flipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from evalcore.core.compare.lines import Comparison, ComparisonLine, Correction
from evalcore.core.compare.power import pair_known
from evalcore.core.compare.verdicts.margins import tell_verdict
from evalcore.core.compare.verdicts.sentences import ToldDifference, tell_difference
from evalcore.shell.compare.compare import Compared
from evalcore.shell.compare.conditions import describe_runs
from evalcore.shell.compare.run_sides import Spreads, list_spreads
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.compare.line_order import list_ids
from evalcore.shell.output.terminal.grid import Section
from evalcore.shell.output.terminal.notes import group_texts
from evalcore.shell.output.terminal.number_text import show_share
from evalcore.shell.safety.safe_text import shorten

MOST = 20
EXCERPT = 60


def list_runs(compared: Compared) -> tuple[str, ...]:
    """The letter of each run, its name, and by what besides its scores it differs."""
    named = zip(compared.labels, compared.names, compared.runs, describe_runs(compared.runs), strict=True)
    return tuple(
        f"{label}: {name}" + (f" ({run.path})" if str(run.path) != name else "") + (f", {more}" if more else "")
        for label, name, run, more in named
    )


def tell_correction(correction: Correction, family: int, alpha: float) -> str:
    """How many tests were corrected together, and what that promises.

    >>> from evalcore.core.compare.lines import CORRECTIONS
    >>> tell_correction(CORRECTIONS["holm"], 3, 0.05)
    'corrected together: 3 tests (holm): if nothing differs, the chance of any finding at all is at most 5 %'
    >>> tell_correction(CORRECTIONS["none"], 40, 0.05)
    'not corrected: 40 tests; if nothing differs, about 2 of them are findings by luck'
    """
    tests = f"{family:,} {'test' if family == 1 else 'tests'}"
    promise = correction.promise.format(share=show_share(alpha), count=f"{family * alpha:.2g}")
    if not correction.corrects:
        return f"not corrected: {tests}; {promise}"
    return f"corrected together: {tests} ({correction.name}): {promise}"


def tell_same(comparison: Comparison) -> str:
    """What a verdict of "the same" says, and what that of too few documents.

    >>> tell_same(Comparison(names=("a", "b"), lines=(), margin=0.01))
    'the same within 0.01 if a larger difference is excluded either way (at 5 % each); else there are not enough ...'
    """
    alpha = show_share(comparison.alpha)
    each = f"at {alpha} each" + (f", {comparison.correction.name}" if comparison.correction.corrects else "")
    return (
        f"the same within {comparison.margin:g} if a larger difference is excluded either way ({each}); else there are "
        "not enough documents"
    )


MOST_SENTENCES = 3
"""The most numbers that get a sentence each; of more, verdicts are counted."""


def sum_up(compared: Compared) -> Section:
    """Two runs in a sentence for each number, or in how many numbers have each verdict.

    >>> from evalcore.core.records.task import MetricKey
    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), n=9, difference=0.5, ci=(0.1, 0.9), adjusted=0.01)
    >>> both = Comparison(names=("a", "b"), lines=(line,) * 4)
    >>> sum_up(Compared(runs=(), names=("a", "b"), pairs=((0, 1),), comparisons=(both,))).lines
    ('A higher: 4 of 4 numbers',)
    """
    comparison, lines = compared.comparisons[0], compared.comparisons[0].lines
    if len(lines) <= MOST_SENTENCES:
        spreads = (list_spreads(compared.runs[0]), list_spreads(compared.runs[1]))
        told = (f"{_name_line(line)}: {tell_line(line, comparison, spreads).sentence}" for line in lines)
        return Section("In short:", tuple(told))
    alpha = compared.alpha
    counts = Counter(tell_verdict(line, alpha, margin=comparison.margin) for line in lines).most_common()
    return Section("In short:", tuple(f"{verdict}: {count:,} of {len(lines):,} numbers" for verdict, count in counts))


def tell_line(
    line: ComparisonLine, comparison: Comparison, spreads: tuple[Spreads, Spreads], labels: tuple[str, str] = ("A", "B")
) -> ToldDifference:
    """Tell a difference in a sentence, by what is known of the error of either run's number."""
    a, b = (known.get((line.name, line.key)) for known in spreads)
    return tell_difference(line, pair_known(line, a, b), comparison, labels)


def list_sections(compared: Compared) -> tuple[Section, ...]:
    """Every section under the table that is not empty."""
    pairs = list(zip(compared.pairs, compared.comparisons, strict=True))
    lone = dict.fromkeys(line for pair, comparison in pairs for line in _tell_lone_tasks(compared, pair, comparison))
    sections = (
        Section("Flipped documents:", tuple(_tell_flips(compared))),
        Section(
            "Documents that only one of two runs has, not compared:",
            _cut_lines([line for pair, comparison in pairs for line in _tell_unmatched(compared, pair, comparison)]),
            "red",
        ),
        Section("Tasks that only one of two runs has, not compared:", tuple(lone), "red"),
        Section("Documents that count together:", _cut_lines(_tell_clusters(compared))),
        Section(
            "Documents without a score in one of two runs, left out of both:",
            _cut_lines(_tell_unscored(compared)),
            "red",
        ),
        Section("Warnings:", _cut_lines(_collect_warnings(compared)), "yellow"),
        Section("Notes:", _cut_lines(compared.notes)),
    )
    return tuple(section for section in sections if section.lines)


def tell_documents(
    keys: Sequence[int], ids: Mapping[int, int | str], texts: Mapping[int, str], most: int | None = None
) -> str:
    """The first documents of a list, each with the beginning of its text.

    >>> tell_documents([3, 4], {3: "q3"}, {3: "How many ducks?"}, 1)
    'q3 “How many ducks?” and 1 more'
    """
    shown = keys if most is None else keys[:most]
    named = [
        str(ids.get(key, key)) + (f" “{shorten(' '.join(texts[key].split()), EXCERPT)}”" if texts.get(key) else "")
        for key in shown
    ]
    left = len(keys) - len(shown)
    return ", ".join(named) + (
        f"{' and ' if named else ''}{left:,} {'more' if named else 'not listed'}" if left else ""
    )


def _name_pair(compared: Compared, pair: tuple[int, int]) -> str:
    """Which pair this is about, where there are several."""
    return f"{compared.labels[pair[0]]}, {compared.labels[pair[1]]}: " if len(compared.runs) > 2 else ""


def _tell_flips(compared: Compared) -> Iterable[str]:
    if compared.flips == 0:
        return
    for pair, comparison in zip(compared.pairs, compared.comparisons, strict=True):
        for line in comparison.lines:
            for label, keys in zip((compared.labels[at] for at in pair), (line.better, line.worse), strict=True):
                if keys:
                    first = _tell_keys(compared.runs[pair[0]], line.name, keys, compared.flips)
                    where = f"{_name_pair(compared, pair)}{_name_line(line)}"
                    does = "is higher" if line.higher_is_better is None else "does better"
                    yield f"{where}: {label} {does} on {len(keys):,}: {first}"


def _tell_keys(run: Recorded, task: str, keys: Sequence[int], most: int | None) -> str:
    return tell_documents(keys, list_ids(run, task), run.texts.get(task, {}), most)


def _name_line(line: ComparisonLine) -> str:
    return f"{line.name} {line.key.metric}" + (f" ({line.key.filter})" if line.key.filter != "none" else "")


def _tell_unmatched(compared: Compared, pair: tuple[int, int], comparison: Comparison) -> Iterable[str]:
    for shared in comparison.documents:
        for at, keys in zip(pair, (shared.only_a, shared.only_b), strict=True):
            if keys:
                first = _tell_keys(compared.runs[at], shared.task, keys, compared.unmatched)
                where = f"{_name_pair(compared, pair)}{shared.task}: {len(keys):,} only in {compared.labels[at]}"
                yield f"{where} (both have {shared.both:,}): {first}"


def _tell_lone_tasks(compared: Compared, pair: tuple[int, int], comparison: Comparison) -> Iterable[str]:
    for at, names in zip(pair, (comparison.tasks_only_a, comparison.tasks_only_b), strict=True):
        if names:
            yield f"{_name_pair(compared, pair)}only in {compared.labels[at]}: {', '.join(names)}"


def _tell_unscored(compared: Compared) -> list[str]:
    return [
        f"{_name_pair(compared, pair)}{_name_line(line)}: {line.unscored:,}"
        for pair, comparison in zip(compared.pairs, compared.comparisons, strict=True)
        for line in comparison.lines
        if line.unscored and not line.group
    ]


def _tell_clusters(compared: Compared) -> list[str]:
    lines = [line for one in compared.comparisons for line in one.lines if line.clusters is not None and not line.group]
    return list(group_texts((line.name, f"{line.clusters:,} clusters of {line.n:,} documents") for line in lines))


def _collect_warnings(compared: Compared) -> list[str]:
    why = group_texts(
        (line.name, f"{line.key.metric}: {line.reason}")
        for comparison in compared.comparisons
        for line in comparison.lines
        if line.reason
    )
    own = [
        f"{label}: {told}" for label, run in zip(compared.labels, compared.runs, strict=True) for told in run.warnings
    ]
    pairs = zip(compared.pairs, compared.comparisons, strict=True)
    shared = [f"{_name_pair(compared, pair)}{told}" for pair, one in pairs for told in one.warnings]
    return list(dict.fromkeys([*compared.warnings, *own, *shared, *why]))


def _cut_lines(lines: Sequence[str]) -> tuple[str, ...]:
    left = len(lines) - MOST
    return (*lines[:MOST], f"and {left:,} more such lines; --json has all of them") if left > 0 else tuple(lines)
