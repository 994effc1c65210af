"""Scores made where the answers are, and put together: batches of Arrow, ranks, partial files, engines."""

from evalcore.shell.engines.engines import ENGINES
from evalcore.shell.score.hosts.batch_merge import merge_partials
from evalcore.shell.score.hosts.batch_score import ScorePartial
from evalcore.shell.score.hosts.rank_scores import gather_partials, write_partial
from evalcore.shell.score.units.merge import merge
from evalcore.shell.score.units.partial_scores import score_partials

__all__ = ["ENGINES", "ScorePartial", "gather_partials", "merge", "merge_partials", "score_partials", "write_partial"]
