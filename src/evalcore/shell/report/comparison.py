"""Several runs for their page: each pair of them as ``compare`` has it, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.core.compare.lines import Comparison, ComparisonLine
from evalcore.core.records.errors import EvalError
from evalcore.core.records.task import MetricKey
from evalcore.shell.compare.compare import Compared, compare
from evalcore.shell.compare.run_sides import ReadKeys, Spreads, list_spreads
from evalcore.shell.config.values import Names
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.compare.footnotes import list_sections, tell_correction, tell_line
from evalcore.shell.output.compare.line_order import collect_trees, list_ids, place_lines
from evalcore.shell.output.compare.renderers import describe_line
from evalcore.shell.output.report.page_chunk import PageChunk, list_keys, pack_chunk
from evalcore.shell.report.gathered_run import GatheredRun
from evalcore.shell.report.redaction import redact_compared
from evalcore.shell.report.run_numbers import Rows
from evalcore.shell.safety.safe_text import shorten

Plain = dict[str, object]
Number = tuple[str, MetricKey]
EXCERPT = 80


def compare_gathered(
    runs: Sequence[GatheredRun],
    own: Sequence[Rows],
    task: Names,
    metric: Names,
    reading: ReadKeys,
    *,
    texts: bool,
    warnings: bool,
) -> tuple[Plain | None, tuple[PageChunk, ...]]:
    """What a page shows of runs side by side, each with its ``own`` numbers, its flips in chunks; None of a single run.

    Where nothing can be compared, the reason. Without ``texts`` no word of a document is shown, nor its id; without
    ``warnings`` how many there are.
    """
    if len(runs) < 2:
        return None, ()
    paths, names = [run.source.path for run in runs], [run.name for run in runs]
    try:
        compared = compare(
            *paths,
            names=names,
            confidence=runs[0].confidence,
            task=task,
            metric=metric,
            unmatched=3 if texts else 0,
            **reading,
        )
    except EvalError as wrong:
        return {"reason": str(wrong), "pairs": []}, ()
    compared = compared if texts else redact_compared(compared, warnings=not warnings)
    spreads = [list_spreads(one, run.report) for one, run in zip(compared.runs, runs, strict=True)]
    return describe_comparison(compared, spreads, own, texts=texts)


def describe_comparison(
    compared: Compared, spreads: Sequence[Spreads], own: Sequence[Rows], *, texts: bool = True
) -> tuple[Plain, tuple[PageChunk, ...]]:
    """Every pair of runs as the page shows it, and its flipped documents."""
    first = compared.comparisons[0]
    found = {(line.name, line.key): line for one in reversed(compared.comparisons) for line in one.lines}
    placed = place_lines(found.values(), collect_trees(compared))
    numbers = list(dict.fromkeys((line.name, line.key) for _, line in placed))
    chunks = [_pack_flips(compared, at, numbers, texts) for at in range(len(compared.pairs))]
    order = {number: at for at, number in enumerate(numbers)}
    rows = [{"depth": depth, "number": order[line.name, line.key]} for depth, line in placed]
    data: Plain = {
        "confidence": first.confidence,
        "correction": tell_correction(first.correction, first.family, compared.alpha),
        "lead": list(compared.lead),
        "sections": [{"title": one.head, "lines": list(one.lines)} for one in list_sections(compared)],
        "numbers": [_describe_number(found[one], compared.runs, own) for one in numbers],
        "rows": rows,
        "pairs": [
            {**_describe_pair(compared, at, numbers, spreads), "flips": chunk.id} for at, chunk in enumerate(chunks)
        ],
    }
    return data, tuple(chunks)


def _describe_number(line: ComparisonLine, runs: Sequence[Recorded], own: Sequence[Rows]) -> Plain:
    return {
        "task": line.name,
        "metric": line.key.metric,
        "filter": line.key.filter,
        "higher": line.higher_is_better,
        "group": line.group,
        "values": [_find_value(run, rows, line) for run, rows in zip(runs, own, strict=True)],
    }


def _find_value(run: Recorded, rows: Rows, line: ComparisonLine) -> object:
    """A run's own value of a number, under the names that its only task and its filters have in it."""
    names = {new: old for old, new in run.filters.items()}
    key = line.key._replace(filter=names.get(line.key.filter, line.key.filter))
    return rows.get(run.renamed or line.name, {}).get(key, {}).get("value")


def _describe_pair(compared: Compared, at: int, numbers: Sequence[Number], spreads: Sequence[Spreads]) -> Plain:
    (first, second), comparison = compared.pairs[at], compared.comparisons[at]
    labels = compared.labels[first], compared.labels[second]
    own = (spreads[first], spreads[second])
    lines = {(line.name, line.key): _write_line(line, comparison, labels, own) for line in comparison.lines}
    return {"a": labels[0], "b": labels[1], "lines": [lines.get(number) for number in numbers]}


def _write_line(
    line: ComparisonLine, comparison: Comparison, labels: tuple[str, str], spreads: tuple[Spreads, Spreads]
) -> Plain:
    told = tell_line(line, comparison, spreads, labels)
    return {
        **describe_line(line, comparison.alpha, labels),
        "sentence": told.sentence,
        "evidence": told.evidence,
        "points": told.points,
        "needed": told.documents,
        "better": len(line.better),
        "worse": len(line.worse),
        "reason": line.reason,
        "recipe": write_recipe(line, comparison, labels),
    }


def write_recipe(line: ComparisonLine, comparison: Comparison, labels: tuple[str, str] = ("A", "B")) -> str:
    """How a difference was reckoned, as the recipe of a number is written.

    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), n=9, difference=0.5, p_value=0.01, method="t test")
    >>> write_recipe(line, Comparison(names=("a", "b"), lines=(line,)))
    'difference:A-B|task:t|metric:acc|filter:none|value:0.5|n:9|confidence:0.95|method:t test|p:0.01|correction:...'
    """
    facts = {
        "difference": "-".join(labels),
        "group" if line.group else "task": line.name,
        "metric": line.key.metric,
        "filter": line.key.filter,
        "value": line.difference,
        "stderr": line.stderr,
        "ci": None if line.ci is None else f"{line.ci[0]!r}..{line.ci[1]!r}",
        "n": line.n,
        "confidence": comparison.confidence,
        "method": line.method,
        "p": line.p_value,
        "correction": comparison.correction.name,
        "tests": comparison.family,
        "p_adjusted": line.adjusted,
    }
    return "|".join(f"{key}:{fact}" for key, fact in facts.items() if fact is not None)


def _pack_flips(compared: Compared, at: int, numbers: Sequence[Number], texts: bool) -> PageChunk:
    """The documents of a pair that one run does better on, by number; each once with its id and its beginning."""
    lines = {(line.name, line.key): line for line in compared.comparisons[at].lines}
    run = compared.runs[compared.pairs[at][0]]
    flips = [(line.better, line.worse) if (line := lines.get(one)) else None for one in numbers]
    named: dict[str, dict[str, list[str]]] = {}
    for (task, _), flipped in zip(numbers, flips, strict=True):
        ids, told = (list_ids(run, task), run.texts.get(task, {})) if texts else ({}, {})
        for key in (*flipped[0], *flipped[1]) if flipped else ():
            excerpt = shorten(" ".join(told.get(key, "").split()), EXCERPT)
            named.setdefault(task, {})[str(key)] = [str(ids.get(key, key)), excerpt]
    shown = [flipped and [list_keys(keys) for keys in flipped] for flipped in flips]
    return pack_chunk({"flips": shown, "documents": named})
