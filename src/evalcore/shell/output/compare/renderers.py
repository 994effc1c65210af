"""How runs side by side are shown: pages, JSON and CSV.

JSON, its keys stable::

    runs        a list of {label, name, path, model, warnings}, in the order they were given
    confidence  of every interval; a verdict asks for p_adjusted of at most 1 - confidence and an interval without 0
    correction  holm, bh or none
    family      how many p-values were corrected together, over all pairs
    margin      the difference that does not matter, null for none
    warnings    about all of it; those of runs and of pairs are there
    notes       what else to know
    pairs       a list, one for each two runs: {a, b (their labels), lines, documents, tasks_only_a, tasks_only_b,
                rules, warnings}
      lines      {task, kind: task | group, metric, filter, higher_is_better, n, clusters, unscored, a, b,
                  difference (a - b), stderr, ci_low, ci_high, p_value, p_adjusted, adjusted_ci_low, adjusted_ci_high,
                  detectable, verdict, p_same, p_same_adjusted, better, worse, method, reason}
                 p_same: of "the same within the margin", two one-sided tests; null without a margin
                 better, worse: ids of the documents where a does better, does worse
      documents  {task, both: how many, only_a: ids, only_b: ids}
      rules      {task, metrics, rule, a, b}: what made the scores and is not the same in both runs

What is not known is null. CSV has a row for each line, with counts of documents in place of ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyrsistent import PMap

from evalcore.core.compare.lines import ComparisonLine
from evalcore.core.compare.verdicts.margins import tell_verdict
from evalcore.core.records.task import MetricKey
from evalcore.shell.compare.compare import Compared
from evalcore.shell.compare.conditions import find_model
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.output.compare.footnotes import list_sections
from evalcore.shell.output.compare.line_order import list_ids
from evalcore.shell.output.compare.matrix import build_matrix_page
from evalcore.shell.output.compare.pair_table import build_pair_page
from evalcore.shell.output.terminal.flat import write_csv_rows
from evalcore.shell.output.terminal.grid import Page, build_renderers
from evalcore.shell.output.terminal.screen import Renderer, plain_form
from evalcore.shell.safety.strict_json import dump_page


def _write_json(compared: Compared) -> str:
    """Every pair and every line of it, as strict JSON."""
    first = compared.comparisons[0]
    named = zip(compared.labels, compared.names, compared.runs, strict=True)
    return dump_page(
        {
            "runs": [
                {
                    "label": label,
                    "name": name,
                    "path": str(run.path),
                    "model": find_model(run.results) or None,
                    "warnings": list(run.warnings),
                }
                for label, name, run in named
            ],
            "confidence": first.confidence,
            "correction": first.correction.name,
            "family": first.family,
            "margin": first.margin,
            "warnings": [*compared.lead, *compared.warnings],
            "notes": list(compared.notes),
            "pairs": [describe_pair(compared, at) for at in range(len(compared.pairs))],
        }
    )


def describe_pair(compared: Compared, at: int) -> dict[str, object]:
    """One pair of runs as plain data."""
    comparison, (first, second) = compared.comparisons[at], compared.pairs[at]
    a, b = compared.runs[first], compared.runs[second]
    return {
        "a": compared.labels[first],
        "b": compared.labels[second],
        "lines": [
            {
                **describe_line(
                    line, compared.alpha, (compared.labels[first], compared.labels[second]), compared.margin
                ),
                "better": _name_documents(a, line.name, line.better),
                "worse": _name_documents(a, line.name, line.worse),
                "method": line.method,
                "reason": line.reason,
            }
            for line in comparison.lines
        ],
        "documents": [
            {
                "task": shared.task,
                "both": shared.both,
                "only_a": _name_documents(a, shared.task, shared.only_a),
                "only_b": _name_documents(b, shared.task, shared.only_b),
            }
            for shared in comparison.documents
        ],
        "tasks_only_a": list(comparison.tasks_only_a),
        "tasks_only_b": list(comparison.tasks_only_b),
        "rules": [
            {"task": one.task, "metrics": list(map(str, one.keys)), "rule": one.part, "a": one.a, "b": one.b}
            for one in comparison.rules
        ],
        "warnings": list(comparison.warnings),
    }


def _name_documents(run: Recorded, task: str, keys: Sequence[int]) -> list[int | str]:
    known = list_ids(run, task) if keys else {}
    return [known.get(key, key) for key in keys]


def describe_line(
    line: ComparisonLine, alpha: float, labels: tuple[str, str] = ("A", "B"), margin: float | None = None
) -> dict[str, object]:
    """The numbers of a line as plain data.

    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), difference=0.5, ci=(0.1, 0.9), adjusted=0.01)
    >>> data = describe_line(line, 0.05)
    >>> data["task"], data["difference"], data["ci_low"], data["p_adjusted"], data["verdict"]
    ('t', 0.5, 0.1, 0.01, 'A higher')
    """
    low, high = line.ci if line.ci is not None else (None, None)
    widest = line.adjusted_ci if line.adjusted_ci is not None else (None, None)
    return {
        "task": line.name,
        "kind": "group" if line.group else "task",
        "metric": line.key.metric,
        "filter": line.key.filter,
        "higher_is_better": line.higher_is_better,
        "n": line.n,
        "clusters": line.clusters,
        "unscored": line.unscored,
        "a": line.a,
        "b": line.b,
        "difference": line.difference,
        "stderr": line.stderr,
        "ci_low": low,
        "ci_high": high,
        "p_value": line.p_value,
        "p_adjusted": line.adjusted,
        "adjusted_ci_low": widest[0],
        "adjusted_ci_high": widest[1],
        "detectable": line.detectable,
        "verdict": tell_verdict(line, alpha, labels, margin),
        "p_same": line.p_same,
        "p_same_adjusted": line.adjusted_same,
    }


def _write_csv(compared: Compared) -> str:
    """A row for each line of each pair."""
    heads = ("run_a", "run_b", *describe_line(EMPTY, 0.05), "n_better", "n_worse", "method", "reason")
    return write_csv_rows(
        heads, (map(_spell_flag, row) for at in range(len(compared.pairs)) for row in _list_rows(compared, at))
    )


EMPTY = ComparisonLine(name="", key=MetricKey(""))


def _list_rows(compared: Compared, at: int) -> Iterable[list[object]]:
    pair = compared.pairs[at]
    names, labels = [compared.names[run] for run in pair], [compared.labels[run] for run in pair]
    for line in compared.comparisons[at].lines:
        numbers = describe_line(line, compared.alpha, (labels[0], labels[1]), compared.margin).values()
        yield [*names, *numbers, len(line.better), len(line.worse), line.method, line.reason]


def _spell_flag(cell: object) -> object:
    return str(cell).lower() if isinstance(cell, bool) else cell


def build_page(compared: Compared) -> Page:
    """A row for every number of two runs, a matrix for every number of more."""
    return build_pair_page(compared) if len(compared.runs) == 2 else build_matrix_page(compared)


def _list_notes(compared: Compared) -> Iterator[str]:
    """What could not be compared."""
    yield from (f"warning: {line}" for line in compared.lead)
    yield from (f"{section.head} {line}" for section in list_sections(compared) for line in section.lines)


RENDERERS: PMap[str, Renderer[Compared]] = (
    build_renderers(build_page).set("json", plain_form(_write_json)).set("csv", plain_form(_write_csv, _list_notes))
)
