"""The scores of the documents that a log, or a part of it, yields."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from evalcore.core.records.score import Scored
from evalcore.core.tally import tally_parts
from evalcore.shell.run.close import inference_of
from evalcore.shell.score.groups import group_by_field
from evalcore.shell.score.pieces import write_pieces
from evalcore.shell.score.stream import LogPass, Piece, merge_pieces, rename_recipe, score_rows, score_split
from evalcore.shell.score.units.log_plan import ScorePlan


def score_tasks(going: LogPass, asked: ScorePlan) -> tuple[dict[str, Scored], dict[str, str]]:
    """The scores of each task of a log and, where samples are written, their hashes."""
    log, recipe, folder, tables = going.log, going.recipe, asked.written, asked.tables
    name_of = group_by_field(log.name, asked.group_by) if asked.group_by else None
    shrink = partial(tally_parts, inference=inference_of(asked.plan, tables), tables=tables) if asked.tally else None
    if folder is None:
        rows = going.rows()
        split = partial(score_split, name_of=name_of) if name_of else score_rows
        pieces = split(rows, recipe, tables=tables, guard=going.guard)
        return merge_pieces((piece.scored for piece in pieces), shrink), {}

    def pieces_of(name: str) -> Iterator[Piece]:
        rows = going.rows() if name_of is None else (row for row in going.rows() if name_of(row) == name)
        return score_rows(rows, rename_recipe(recipe, name), tables, keep=True, guard=going.guard)

    names = dict.fromkeys(map(name_of, going.rows())) if name_of else [log.name]
    each = {name: write_pieces(folder, name, pieces_of(name), log.written) for name in names}
    done = merge_pieces((one for task in each.values() for one in task.scored), shrink)
    return done, {name: task.hash for name, task in each.items() if task.scored}
