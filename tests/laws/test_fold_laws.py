"""Laws of group trees: the docstring of each test is the law."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from evalcore.core.groups.config import group_from_config, group_to_dict
from evalcore.core.groups.edit import add_child, remove_child
from evalcore.core.groups.tree import (
    Group,
    GroupMetric,
    Leaf,
    all_groups,
    all_tasks,
    find,
    fold_group,
    leaves,
    map_leaves,
    qualified_names,
    show,
    statistics,
)
from evalcore.core.records.request import freeze_options


def trees():
    """Trees in which a name always stands for the same leaf, so that leaves may be shared."""
    leaf = st.sampled_from("abcdef").map(lambda name: Leaf(name, ord(name)))
    metrics = st.lists(st.sampled_from(["acc", "f1"]).map(GroupMetric), max_size=2).map(tuple)
    alias = st.none() | st.text(max_size=3)
    metadata = st.sampled_from([freeze_options(), freeze_options(version=1)])

    def groups(children):
        several = st.lists(children, max_size=4).map(tuple)
        return st.builds(Group, st.sampled_from("GHIJKL"), several, metrics, alias, metadata)

    return st.recursive(leaf, groups, max_leaves=20)


def functions():
    return st.sampled_from([lambda x: x + 1, lambda x: x * 3, lambda x: x % 5, str])


def value(leaf):
    return leaf.value


def rebuilt(group, parts):
    return Group(group.name, parts, group.metrics, group.alias, group.metadata)


def tally(group, parts):
    return (group.name, len(parts), *parts)


@given(trees())
def test_identity(tree):
    """fold_group with the constructors is the identity."""
    assert fold_group(tree, lambda leaf: Leaf(leaf.name, leaf.value), rebuilt) == tree
    assert map_leaves(value, tree) == tree


@given(trees(), st.sampled_from([lambda x: x + 1, lambda x: x * 3, lambda x: x % 5]), functions())
def test_maps_fuse(tree, f, g):
    """map g after map f is map of (g after f)."""
    twice = map_leaves(lambda leaf: g(leaf.value), map_leaves(lambda leaf: f(leaf.value), tree))
    assert twice == map_leaves(lambda leaf: g(f(leaf.value)), tree)


@given(trees(), functions())
def test_a_fold_after_a_map_is_one_fold(tree, f):
    """fold(leaf, group) after map f is fold(leaf after f, group)."""
    two = fold_group(map_leaves(lambda leaf: f(leaf.value), tree), value, tally)
    assert two == fold_group(tree, lambda leaf: f(leaf.value), tally)


@given(trees())
def test_two_folds_at_once(tree):
    """A pair of folds is the fold of pairs (banana split)."""
    pairs = fold_group(
        tree,
        lambda leaf: (leaf.value, 1),
        lambda group, parts: (sum(part[0] for part in parts), sum(part[1] for part in parts)),
    )
    total = fold_group(tree, value, lambda group, parts: sum(parts))
    count = fold_group(tree, lambda leaf: 1, lambda group, parts: sum(parts))
    assert pairs == (total, count)


@given(trees())
def test_a_fold_is_the_recursion_it_stands_for(tree):
    """fold_group(tree) = group(tree, folds of its children), on Python's own stack."""

    def recursive(node):
        return value(node) if isinstance(node, Leaf) else tally(node, tuple(map(recursive, node.children)))

    assert fold_group(tree, value, tally) == recursive(tree)


@given(trees())
def test_inputs_never_change(tree):
    """No question and no edit changes the tree it is put to."""
    before = pickle.dumps(tree)
    for ask in (all_tasks, all_groups, leaves, qualified_names, show, lambda node: map_leaves(str, node)):
        ask(tree)
    if isinstance(tree, Group):
        remove_child(add_child(tree, Leaf("new", 0)), "a")
        group_to_dict(tree)
    assert pickle.dumps(tree) == before
    assert pickle.loads(before) == tree


@given(trees())
def test_tasks_and_groups_are_listed_once(tree):
    """all_tasks and all_groups have no duplicates and leave no one out."""
    tasks = [leaf.name for leaf in all_tasks(tree)]
    groups = [group.name for group in all_groups(tree)]
    assert len(set(tasks)) == len(tasks)
    assert len(set(groups)) == len(groups)
    assert set(tasks) == {leaf.name for leaf in leaves(tree)}
    assert all(find(tree, name) is not None for name in tasks + groups)


@given(trees())
def test_statistics_agree_with_brute_force(tree):
    """num_tasks, num_subgroups and total_samples are those of a plain recursion into sets."""
    tasks, groups = {}, set()

    def walk(node, root=False):
        if isinstance(node, Leaf):
            tasks[node.name] = node.value
            return
        if not root:
            groups.add(node.name)
        for child in node.children:
            walk(child)

    walk(tree, root=True)
    counted = statistics(tree, value)
    assert (counted.num_tasks, counted.num_subgroups) == (len(tasks), len(groups))
    assert counted.total_samples == sum(tasks.values())


@given(trees())
def test_one_path_per_node(tree):
    """There are as many qualified names as nodes, and each ends in its node's own name."""
    nodes = fold_group(tree, lambda leaf: 1, lambda group, parts: 1 + sum(parts))
    paths = qualified_names(tree)
    assert len(paths) == nodes
    assert all(find(tree, path.split("::")[-1]) is not None for path in paths)


@given(trees(), st.sampled_from("abcdef"))
def test_adding_then_removing(tree, name):
    """remove(add(group, new)) is the group; adding twice is adding once."""
    group = tree if isinstance(tree, Group) else Group("root", (tree,))
    new = Leaf(f"new_{name}", 0)
    assert remove_child(add_child(group, new), new.name) == group
    assert add_child(add_child(group, new), new) == add_child(group, new)


@given(trees())
def test_plain_data_round_trip(tree):
    """from_config after to_dict keeps everything of a group but its children (an empty alias is none)."""
    if isinstance(tree, Group):
        shell = group_from_config(group_to_dict(tree))
        assert shell == Group(tree.name, (), tree.metrics, tree.alias or None, tree.metadata)
        assert group_to_dict(shell) == {k: v for k, v in group_to_dict(tree).items() if k != "task"}
