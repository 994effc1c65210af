"""From scores to estimates: columns that merge, errors and intervals, corrections, sample sizes."""

from evalcore.core.aggregate.clusters import cluster_codes, clusters_of
from evalcore.core.aggregate.inference import Inference
from evalcore.core.records.array import Array
from evalcore.core.records.column import Column, build_column, list_outcomes, merge_all, merge_columns
from evalcore.core.records.estimate import Makeup, Resampling, Scale, Spread
from evalcore.core.records.outcome import Counts
from evalcore.core.records.row import Floats, Labels, Objects, Stats
from evalcore.core.stats.families import benjamini_hochberg, holm
from evalcore.core.stats.sample_size import Variances, distance_at, questions_for, reach_of_test, repeats_for
from evalcore.core.tally import list_support, tally_parts, tally_scored

__all__ = [
    "Array",
    "Column",
    "Counts",
    "Floats",
    "Inference",
    "Labels",
    "Makeup",
    "Objects",
    "Resampling",
    "Scale",
    "Spread",
    "Stats",
    "Variances",
    "benjamini_hochberg",
    "build_column",
    "cluster_codes",
    "clusters_of",
    "distance_at",
    "holm",
    "list_outcomes",
    "list_support",
    "merge_all",
    "merge_columns",
    "questions_for",
    "reach_of_test",
    "repeats_for",
    "tally_parts",
    "tally_scored",
]
