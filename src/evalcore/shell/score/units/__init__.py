"""Logs scored in units, wherever an engine has workers, and their partial scores.

score_keys      the keys of ``score``, and the plan they make
typed_command   what was asked, as it is typed
log_plan        what is done with logs, and the recipe of each
log_scores      the scores of the documents that a log, or a part of it, yields
unit_score      a unit scored: what a worker does
log_head        what is known of a log besides its documents, as data
kept            partials kept in a folder, so that nothing is scored twice
gather          the units of all logs given to an engine, and what comes back put together
partial_scores  score_partials(): units scored and kept, and no more
merge           merge(): partials of any machine closed into a run
"""
