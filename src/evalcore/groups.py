"""Group trees: build, walk, check and report them."""

from evalcore.core.groups.build import build_trees
from evalcore.core.groups.config import group_from_config, group_to_dict
from evalcore.core.groups.lint import lint_configs
from evalcore.core.groups.tree import Group, GroupMetric, Leaf, Tree, all_groups, all_tasks, map_leaves, parents_of
from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.pipeline import report_groups

__all__ = [
    "Group",
    "GroupMetric",
    "Leaf",
    "Tree",
    "all_groups",
    "all_tasks",
    "build_trees",
    "group_from_config",
    "group_to_dict",
    "leaf_from_flat",
    "lint_configs",
    "map_leaves",
    "parents_of",
    "report_groups",
]
