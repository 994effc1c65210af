"""Documents without a counterpart or a score: gates on how many there are, and on what they may hide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import hypot, inf

from evalcore.core.compare.gates import Gate, Number
from evalcore.core.compare.lines import Comparison, ComparisonSide, Shared
from evalcore.core.compare.pairs import pair_documents
from evalcore.core.records.estimate import Estimate
from evalcore.core.records.task import MetricKey
from evalcore.core.stats.quantiles import normal_quantile


def find_unpaired(documents: Iterable[Shared], *, least: float = 0.5, allow: bool = False) -> tuple[Gate, ...]:
    """Fail a gate for every task where less than this share of either run's documents is in both.

    ``allow`` lets the run lack documents of the baseline.

    >>> [gate.verdict for gate in find_unpaired([Shared("t", 3, (), (7, 8, 9, 10)), Shared("u", 3)])]
    ["3 of the run's 3 documents are paired with 3 of the baseline's 7"]
    """
    few = [one for one in documents if one.shares[0] < least or (one.shares[1] < least and not allow)]
    return tuple(_fail_unpaired(one, least) for one in few)


def _fail_unpaired(shared: Shared, least: float, more: str = "") -> Gate:
    return Gate(
        kind="paired",
        name=shared.task,
        key=MetricKey("paired"),
        passed=False,
        verdict=f"{shared.both:,} of the run's {shared.both + len(shared.only_a):,} documents are paired with "
        f"{shared.both:,} of the baseline's {shared.both + len(shared.only_b):,}{more}",
        value=min(shared.shares),
        limit=least,
        n=shared.both,
    )


Estimates = Mapping[Number, Estimate]


def find_hidden(
    comparison: Comparison,
    documents: Iterable[Shared],
    estimates: tuple[Estimates, Estimates],
    *,
    alpha: float = 0.05,
    margin: float = 0.0,
) -> tuple[Gate, ...]:
    """Fail a gate for every task whose pairs may hide that the run is worse.

    If pairs are unclear (see ``Shared``), the models' texts may have chosen them: documents on which the models agree.
    So the numbers over all documents must not be worse either, beyond luck; alpha is shared among them
    (Bonferroni), and the documents of the two runs count as independent.

    >>> from evalcore.core.aggregate.value import aggregate_metric
    >>> from evalcore.core.aggregate.aggregations import AGGREGATIONS
    >>> from evalcore.core.records.array import Array
    >>> from evalcore.core.records.column import Floats, build_column
    >>> from evalcore.core.compare.lines import ComparisonLine
    >>> line = ComparisonLine(name="t", key=MetricKey("acc"), difference=0.0, higher_is_better=True)
    >>> scores = ([0.0] * 60 + [1.0] * 40, [1.0] * 60 + [0.0] * 40)
    >>> columns = (build_column(range(100), Floats(Array(one))) for one in scores)
    >>> a, b = ({("t", line.key): aggregate_metric(AGGREGATIONS["mean"], one)} for one in columns)
    >>> few = Shared("t", 60, tuple(range(40)), tuple(range(40)), unclear=True)
    >>> [gate] = find_hidden(Comparison(names=("new", "old"), lines=(line,)), [few], (a, b))
    >>> gate.verdict.partition(", and ")[2]
    'over all documents acc,none is worse: 0.4000, not 0.6000'
    """
    unclear = {one.task: one for one in documents if one.unclear}
    lines = [line for line in comparison.lines if line.name in unclear and line.higher_is_better is not None]
    signs = {(line.name, line.key): 1 if line.higher_is_better else -1 for line in lines}
    numbers = [at for at in signs if all(at in known for known in estimates)]
    gates: dict[str, Gate] = {}
    for at in numbers:
        change, error = _subtract_all(estimates[0][at], estimates[1][at])
        if signs[at] * change < normal_quantile(alpha / len(numbers)) * error - margin:
            run, baseline = (known[at].value for known in estimates)
            worse = f", and over all documents {at[1]} is worse: {run:.4f}, not {baseline:.4f}"
            gates.setdefault(at[0], _fail_unpaired(unclear[at[0]], 1.0, worse))
    return tuple(gates.values())


def _subtract_all(run: Estimate, baseline: Estimate) -> tuple[float, float]:
    """Subtract two numbers over all documents of either run; the error is infinite if either has none."""
    if run.value is None or baseline.value is None or run.stderr is None or baseline.stderr is None:
        return 0.0, inf
    return run.value - baseline.value, hypot(run.stderr, baseline.stderr)


def find_unscored(run: ComparisonSide, baseline: ComparisonSide, most: float) -> tuple[Gate, ...]:
    """Judge every task of the baseline: how many of the documents scored there have no score in the run.

    A task is judged by its worst metric; a task that the run lacks has no scores.
    """
    ours = {one.task.name: one for one in run.scored}
    gates = []
    for theirs in baseline.scored:
        name = theirs.task.name
        counts = {one.key: int(one.column.scored.sum()) for one in theirs.columns if one.column.scored.any()}
        shared: dict[MetricKey, int] = {}
        if name in ours:
            documents = run.documents.get(name, ()), baseline.documents.get(name, ())
            pair = pair_documents(ours[name], theirs, documents)
            shared = {one.key: len(one.column) for one in pair.b.columns}
        if counts:
            key = max(counts, key=lambda key: 1 - shared.get(key, 0) / counts[key])
            gates.append(_judge_unscored(name, key, counts[key], counts[key] - shared.get(key, 0), most))
    return tuple(gates)


def _judge_unscored(name: str, key: MetricKey, n: int, lost: int, most: float) -> Gate:
    return Gate(
        kind="unscored",
        name=name,
        key=key,
        passed=lost <= most * n,
        verdict=f"{lost:,} of {n:,} documents without a score",
        value=lost / n,
        limit=most,
        n=n,
        unscored=lost,
    )
