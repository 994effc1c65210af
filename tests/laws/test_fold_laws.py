"""Laws of group trees: the docstring of each test is the law."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore import EvalError, fold_group, freeze_options
from evalcore.core.groups.tree import leaves
from evalcore.groups import (
    Group,
    GroupMetric,
    Leaf,
    add_child,
    all_groups,
    all_tasks,
    child_names,
    get_child,
    group_from_config,
    group_to_dict,
    map_leaves,
    missing_children,
    parents_of,
    pop_child,
    qualified_names,
    remove_child,
    statistics_of,
)


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


def nodes_of(tree):
    """Every node on every path, by a plain recursion."""
    return [tree, *(node for child in getattr(tree, "children", ()) for node in nodes_of(child))]


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
    for ask in (all_tasks, all_groups, leaves, qualified_names, lambda node: map_leaves(str, node)):
        ask(tree)
    if isinstance(tree, Group):
        remove_child(add_child(add_child(tree, Leaf("a", 0)), Leaf("new", 0)), "a")
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
    assert {*tasks, *groups} <= {node.name for node in nodes_of(tree)}


@given(trees())
def test_parents_are_the_groups_that_hold_a_name(tree):
    """parents_of(tree, name) are the names of all groups, the tree itself included, with such a child, each once."""
    for name in {node.name for node in nodes_of(tree)}:
        holders = [node.name for node in nodes_of(tree) if isinstance(node, Group) and name in child_names(node)]
        assert parents_of(tree, name) == tuple(dict.fromkeys(holders))


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
    counted = statistics_of(tree, value)
    assert (counted.num_tasks, counted.num_subgroups) == (len(tasks), len(groups))
    assert counted.total_samples == sum(tasks.values())


@given(trees())
def test_one_path_per_node(tree):
    """There are as many qualified names as nodes, and each ends in its node's own name."""
    assert [path.split("::")[-1] for path in qualified_names(tree)] == [node.name for node in nodes_of(tree)]


@given(trees(), st.sampled_from("abcdef"))
def test_adding_then_removing(tree, name):
    """remove(add(group, new)) is the group; adding twice is adding once."""
    group = tree if isinstance(tree, Group) else Group("root", (tree,))
    new = Leaf(f"new_{name}", 0)
    assert remove_child(add_child(group, new), new.name) == group
    assert add_child(add_child(group, new), new) == add_child(group, new)


@given(trees())
def test_a_group_is_a_container_of_its_children(tree):
    """len, in and iteration are those of the children, and every child that is in can be got, popped and removed."""
    group = tree if isinstance(tree, Group) else Group("root", (tree,))
    assert (len(group), tuple(group)) == (len(group.children), group.children)
    for name in {*child_names(group), "absent"}:
        assert (name in group) == (name in child_names(group))
        if name in group:
            child, rest = pop_child(group, name)
            assert child is get_child(group, name)
            assert (rest, name in rest) == (remove_child(group, name), False)
            assert [one for one in group if one.name != name] == list(rest)
        else:
            assert get_child(group, name, None) is None
            for ask in (get_child, pop_child, remove_child):
                with pytest.raises(EvalError, match=f"unknown child 'absent'.* - at group {group.name}"):
                    ask(group, name)


@given(trees())
def test_plain_data_round_trip(tree):
    """from_config after to_dict keeps everything of a group, its children as names (an empty alias is none)."""
    if isinstance(tree, Group):
        plain = group_to_dict(tree)
        shell = group_from_config(plain)
        names = child_names(tree)
        assert shell == Group(tree.name, (), tree.metrics, tree.alias or None, tree.metadata, names)
        assert group_to_dict(shell) == plain
        assert missing_children(shell) == names
        full = tree
        for child in tree:
            full = add_child(full, child)
        assert missing_children(full, names) == ()
