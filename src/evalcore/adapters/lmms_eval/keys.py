"""The document of each of lmms-eval's scores: by the sample log, or by its place in the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from evalcore.adapters.lmms_eval.host import Key, LmmsOutput, Row
from evalcore.core.records.errors import EvalError, place


class RankPlace(Struct, frozen=True):
    """The rank of a list. ``documents`` is how many the task has: what is beyond is padding.

    ``gathered``: the lists of all ranks were joined already, as lmms-eval joins them.
    """

    rank: int = 0
    ranks: int = 1
    documents: int | None = None
    gathered: bool = False


def group_rows(output: LmmsOutput, where: RankPlace) -> dict[str, Sequence[Row]]:
    """Group the sample log by filter; lmms-eval writes all documents under one filter, then under the next.

    Joined lists of several ranks have each rank's filters one after another: a document's k-th row is its k-th filter.
    """
    filters = list(dict.fromkeys(name for _, name in output.sample_metrics))
    rows = output.logged_samples
    if not rows or not filters:
        return {}
    wrong = next((row for row in rows if not isinstance(row.get("doc_id"), int)), None)
    if wrong is not None:
        raise EvalError(
            f"expected a doc_id in every logged sample, got {wrong.get('doc_id')!r}{place(output.task_name)}"
        )
    if len(filters) == 1 or not where.gathered:
        size, left = divmod(len(rows), len(filters))
        if left:
            raise EvalError(f"expected as many rows for each of {filters}, got {len(rows)}{place(output.task_name)}")
        return {name: rows[at * size : (at + 1) * size] for at, name in enumerate(filters)}
    return _group_turns(output.task_name, filters, rows)


def _group_turns(task: str, filters: Sequence[str], rows: Sequence[Row]) -> dict[str, Sequence[Row]]:
    counts = Counter(row["doc_id"] for row in rows)
    odd = next((doc_id for doc_id, count in counts.items() if count != len(filters)), None)
    if odd is not None:
        raise EvalError(
            f"expected a row per filter for every document, got {counts[odd]} for {len(filters)} filters; ranks with "
            f"padding are told apart by consolidate_ranks{place(task, odd)}"
        )
    turn: Counter[object] = Counter()
    turns: list[int] = []
    for row in rows:
        turns.append(turn[row["doc_id"]])
        turn[row["doc_id"]] += 1
    return {name: [row for row, k in zip(rows, turns, strict=True) if k == at] for at, name in enumerate(filters)}


def number_scores(
    output: LmmsOutput, key: Key, count: int, rows: Sequence[Row] | None, where: RankPlace
) -> Sequence[int | None]:
    """Find the document of each of ``count`` scores under a key; None for padding without a number of its own."""
    if rows is not None:
        named = [int(str(row["doc_id"])) for row in rows if key[0] in row]
        if len(named) != count:
            what = f"expected {count} logged samples with {key[0]!r}, got {len(named)}"
            raise EvalError(f"{what}{place(output.task_name, key=','.join(key))}")
        return list(named)
    at = range(where.rank, where.rank + count * where.ranks, where.ranks)
    return [None if where.documents is not None and one >= where.documents else one for one in at]
