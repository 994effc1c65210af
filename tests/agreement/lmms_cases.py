"""Tasks and groups of lmms-eval, drawn at random from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from lmms_side import ConfigurableGroup, Drawn, Key, OwnTask, Row, metrics

Random = np.random.Generator
NAMES = ("acc", "acc_norm", "f")


# --- functions of tasks' own ------------------------------------------------------------------------------------------


def take_mean(items: Sequence[float]) -> float:
    return float(np.mean(items))


def take_largest(items: Sequence[float]) -> float:
    return 7.0 * max(items) + 1.0


def take_last(items: Sequence[float]) -> float:
    return 2.0 + float(items[-1])


def count_words(items: Sequence[object]) -> float:
    return float(len(set(map(str, items)))) + 0.5


def list_parts(items: Sequence[object]) -> Row:
    return {"easy": len(items)}


def write_file(items: Sequence[object]) -> None:
    return None


def mean_of(field_name: str, items: Sequence[Row]) -> float:
    return float(np.mean([item[field_name] for item in items]))


def percent_of(field_name: str, items: Sequence[Row], args: object = None) -> float:
    return 100 * mean_of(field_name, items) + (args == "command line")


class Named(partial):  # type: ignore[type-arg]
    """A partial function with a name, as tasks' functions have."""

    __name__ = "named"


# --- tasks ------------------------------------------------------------------------------------------------------------

Draw = Callable[[Random, str], object]
NUMBERS: dict[str, Draw] = {
    "bits": lambda rng, _: int(rng.integers(2)),
    "flags": lambda rng, _: bool(rng.integers(2)),
    "floats": lambda rng, _: float(np.round(rng.random(), 3)),
    "numpy": lambda rng, _: np.float32(rng.random()) if rng.random() < 0.7 else int(rng.integers(3)),
    "losses": lambda rng, _: -float(rng.random()) - 0.1,
    "broken": lambda rng, _: float("nan") if rng.random() < 0.3 else float(rng.random()),
}
DICTS: dict[str, Draw] = {
    "scores": lambda rng, name: {name: int(rng.integers(2))},
    "shares": lambda rng, name: {name: float(rng.random()), "other": 1},
}
OTHERS: dict[str, Draw] = {
    "words": lambda rng, _: str(rng.integers(5)),
    "answers": lambda rng, _: {"pred": "A", "gold": str(rng.integers(2))},
    "mixed": lambda rng, name: str(rng.integers(3)) if rng.random() < 0.5 else {name: 1.0},
}


def pick(rng: Random, given: Sequence[object]) -> object:
    return given[int(rng.integers(len(given)))]


def draw_function(rng: Random, kind: str, score_key: str, tame: bool) -> Callable[..., object] | None:
    """Draw what a task aggregates scores of a kind by; None for a metric that it does not declare."""
    if not tame and rng.random() < 0.06:
        return None
    if kind == "losses":
        return pick(rng, [metrics.perplexity, metrics.mean])
    if kind in NUMBERS:
        return pick(
            rng,
            [metrics.mean] * 5
            + [take_mean, take_largest]
            + ([] if tame else [metrics.median, take_last, take_last, take_last]),
        )
    odd = [] if tame else [list_parts, write_file]
    if kind in DICTS:
        known = [Named(mean_of, score_key), Named(mean_of, score_key), Named(percent_of, score_key)]
        return pick(rng, [*known, *odd])
    return pick(rng, [count_words, *odd])


def draw_task(rng: Random, name: str, *, tame: bool = False) -> Drawn:
    """Draw a task; a tame one has two documents or more, and a number for each metric."""
    n = int(rng.integers(2 if tame else 1, 16))
    score_key = "points" if rng.random() < 0.3 else "score"
    filters = ["none"] if rng.random() < 0.7 else ["strict", "loose"]
    config: Row = {"score_key": score_key} if score_key != "score" else {}
    config |= {"task_alias": f"the {name}"} if rng.random() < 0.3 else {}
    config |= {"cluster_key": "videoID"} if rng.random() < 0.5 else {}
    config |= {"skip_stderr_metrics": ["acc"]} if rng.random() < 0.05 else {}
    whole = rng.random() < 0.8
    chosen = [one for one in NAMES if rng.random() < 0.6] or ["acc"]
    drawn = Drawn(name, [{one: {} for one in filters} for _ in range(n)], {}, config, log=bool(rng.random() < 0.6))
    drawn.version = pick(rng, [0, "1.0", 2.5, None])
    for metric in chosen:
        usual = ["bits", "bits", "floats", "flags", "scores", "shares"]
        kind = str(pick(rng, usual if tame else [*usual, *NUMBERS, *DICTS, *OTHERS]))
        function = draw_function(rng, kind, score_key, tame)
        drawn.functions |= {} if function is None else {metric: function}
        drawn.higher |= {metric: bool(rng.integers(2))} if rng.random() < 0.8 else {}
        lonely = 0.3 if rng.random() < 0.2 else 0.0
        for at, doc in enumerate(drawn.docs):
            for one in filters:
                if at > 1 and not whole and rng.random() < 0.4:
                    continue
                item = {**NUMBERS, **DICTS, **OTHERS}[kind](rng, score_key)
                if isinstance(item, dict) and rng.random() >= lonely:
                    item["videoID"] = f"v{at // 3}"
                doc[one][metric] = item
    if whole and not tame and rng.random() < 0.3:
        draw_repeats(rng, drawn)
    return drawn


def draw_repeats(rng: Random, drawn: Drawn) -> None:
    """Draw the scores of several replies to each question."""
    times = int(rng.integers(2, 5))
    drawn.config["repeats"] = times
    ragged = rng.random() < 0.3
    for metric in drawn.docs[0][next(iter(drawn.docs[0]))]:
        for name in drawn.docs[0]:
            key: Key = (metric, name)
            drawn.repeats[key] = [
                [int(rng.integers(2)) for _ in range(times if not ragged else int(rng.integers(1, times + 1)))]
                for _ in drawn.docs
            ]


# --- groups -----------------------------------------------------------------------------------------------------------


@dataclass
class DrawnGroup:
    """A group as drawn, with everything that is below it."""

    name: str
    entries: list[Row] | None
    leaves: list[str]
    inner: list[DrawnGroup] = field(default_factory=list)


def take_best(values: Sequence[float], sizes: Sequence[int], by_size: bool) -> float:
    return max(values)


def draw_groups(rng: Random, tasks: Sequence[Drawn]) -> tuple[Row, dict[str, DrawnGroup]]:
    """Draw a nested task dict over these tasks, some of which may be in two groups and some in none."""
    known: dict[str, DrawnGroup] = {}
    objects = {one.name: OwnTask(one) for one in tasks}

    def draw_group(depth: int) -> tuple[object, Row]:
        name = f"g{len(known)}"
        made = known[name] = DrawnGroup(name, None, [])
        members: Row = {}
        for one in objects:
            placed = any(one in group.leaves for group in known.values())
            if rng.random() < (0.04 if placed else 0.4) or (not members and depth == 2):
                members[one] = objects[one]
                made.leaves.append(one)
        if depth < 2:
            for _ in range(int(rng.integers(0 if members else 1, 3))):
                key, below = draw_group(depth + 1)
                members[key] = below
                inner = known[key if isinstance(key, str) else key.group_name]
                made.inner.append(inner)
                made.leaves += inner.leaves
        if rng.random() < 0.15:
            return name, members
        made.entries = draw_entries(rng)
        config = {
            "group": name,
            "group_alias": f"the {name}" if rng.random() < 0.3 else None,
            "aggregate_metric_list": made.entries,
            "metadata": pick(rng, [None, {"version": 3}, {"version": "1.1", "note": 1}, {}]),
        }
        return ConfigurableGroup(config=config), members

    made = dict(draw_group(0) for _ in range(int(rng.integers(1, 3))))
    alone = {tasks[0].name: objects[tasks[0].name]} if rng.random() < 0.3 else {}
    return {**made, **alone}, known


def draw_entries(rng: Random) -> list[Row] | None:
    if rng.random() < 0.2:
        return None
    chosen = [one for one in NAMES if rng.random() < 0.5]
    if not chosen and rng.random() < 0.7:
        chosen = ["acc"]
    every = ["none", "strict", "loose"]
    filters = [["none"], ["strict"], ["strict", "loose"], "none", every, every, every]
    return [
        {
            "metric": one,
            "filter_list": pick(rng, filters),
            "aggregation": take_best if rng.random() < 0.15 else "mean",
            "weight_by_size": bool(rng.integers(2)),
        }
        for one in chosen
    ]
