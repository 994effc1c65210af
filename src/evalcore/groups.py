"""Group trees: build, edit, walk, check and report them."""

from evalcore.core.groups.build import build_trees
from evalcore.core.groups.config import group_from_config, group_to_dict
from evalcore.core.groups.edit import (
    GroupStatistics,
    add_child,
    get_child,
    has_aggregation,
    missing_children,
    pop_child,
    remove_child,
    statistics_of,
)
from evalcore.core.groups.lint import lint_configs
from evalcore.core.groups.tree import (
    Group,
    GroupMetric,
    Leaf,
    Tree,
    alias_of,
    all_groups,
    all_tasks,
    child_names,
    map_leaves,
    parents_of,
    qualified_names,
    version_of,
)
from evalcore.core.lm_eval.result_row import leaf_from_flat
from evalcore.core.pipeline import report_groups

__all__ = [
    "Group",
    "GroupMetric",
    "GroupStatistics",
    "Leaf",
    "Tree",
    "add_child",
    "alias_of",
    "all_groups",
    "all_tasks",
    "build_trees",
    "child_names",
    "get_child",
    "group_from_config",
    "group_to_dict",
    "has_aggregation",
    "leaf_from_flat",
    "lint_configs",
    "map_leaves",
    "missing_children",
    "parents_of",
    "pop_child",
    "qualified_names",
    "remove_child",
    "report_groups",
    "statistics_of",
    "version_of",
]
