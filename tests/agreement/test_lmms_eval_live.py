"""lmms-eval 0.7.3's own consolidation beside the adapter: key by key equal, but for what docs/adapters.md lists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import isclose, isnan, nan, sqrt
from pathlib import Path

import lmms_side as lmms
import numpy as np
import pytest
from lmms_cases import Drawn, DrawnGroup, Row, draw_groups, draw_task, take_last

from evalcore import EvalError
from evalcore.adapters.lmms_eval import (
    LmmsRules,
    consolidate,
    consolidate_group_results,
    consolidate_ranks,
    consolidate_results,
)
from evalcore.core.stats.influence import measure_error

pytestmark = pytest.mark.lmms

PARTS = ("results", "samples", "configs", "versions", "num_fewshot", "higher_is_better")
ABSENT = "absent"
OWN = "evalcore_stderr"
RULES = LmmsRules(singletons=True)

LISTED = {
    "own key": ("-", "`evalcore_stderr` in each row with numbers: intervals, counts, reasons; no table shows it"),
    "mean": (
        "no error for a task's own function",
        "the mean's error, if the function gives the mean of the scores (E24)",
    ),
    "formula": ("errors of other aggregations by resampling, or none", "by formula (E18, E24)"),
    "median": ("the score in the middle of the list", "the median (E01)"),
    "bypass": ("`bypass` gives 999", '`"N/A"`, and the reason (E02)'),
    "acc_all": ("the error of `acc_all` groups by question only", "by paragraph and question, as its value does (E03)"),
    "clusters": (
        "`_stderr` ignores clusters; `_stderr_clustered` has no correction for few of them",
        'both by cluster, corrected for few and for unequal ones (`LmmsRules(stderr="cr1")`: for few)',
    ),
    "no cluster": ("scores without an id are one cluster", "an error; units of their own with `singletons=True` (E31)"),
    "numpy": (
        "numpy's numbers add up in single precision, and not in `_stderr_clt` and `_stderr_clustered`",
        "any real number counts, in double precision (E34)",
    ),
    "nan": ("NaN is a score", "it is none, and is counted"),
    "undefined": ("NaN where a number is not defined", '`"N/A"`'),
    "vote": ("`_consensus_accuracy` is a vote on scores", '`"N/A"`: a vote is on answers (E32)'),
    "repeats": ("-", "errors of `_expected_accuracy`, `_internal_variance` and `_consistency_rate`"),
    "ragged": ("a question with more replies weighs more in `_expected_accuracy`", "each question counts once (E27)"),
    "undeclared": ("`[]` for a metric without an aggregation", "its mean, if the scores are numbers"),
    "nothing": ("`None` of a function that returns nothing", '`"N/A"`, and the reason'),
    "failure": ("a function that raises ends the run", '`"N/A"`, and the reason'),
    "padding": ("a document in the lists of two ranks counts twice", "once"),
    "order": ("functions see scores rank by rank", "in the order of documents"),
    "samples": (
        "`samples` of the last metric; of a group, for whichever metric comes last",
        "the most documents of any metric; of a group, of all its tasks",
    ),
    "skipped": ("`skip_stderr_metrics` is not known", "`_stderr_clt` and `_stderr_clustered` of these metrics are N/A"),
    "exact": (
        "a group takes every metric that contains the name, under any filter",
        "the metric and filters named (E30)",
    ),
    "pooled": ("a group's error is pooled, whatever its weights", "follows its weights (E23)"),
    "function": ("a group's own function has the pooled error", "the error that its derivative gives"),
    "twice": ("a task in a group and in its subgroup counts twice", "once (E05)"),
    "logs": ("groups average perplexities", "on the log scale (E08)"),
    "sizes": ("one count weighs every metric of a task", "each metric's own, in rows made here (E09)"),
    "no list": ("an empty `aggregate_metric_list` is a list", "is none: the group is marked as without numbers"),
    "not run": ("an empty row for a task that was not run", "no row"),
    "no number": ("a group over a result that is no number, or over repeats, ends the run", "it goes without (E07)"),
}


# --- facts about a difference -----------------------------------------------------------------------------------------


@dataclass
class World:
    """What was drawn, and how it was spread over ranks."""

    tasks: Mapping[str, Drawn]
    size: int = 1
    padded: bool = False
    groups: Mapping[str, DrawnGroup] | None = None
    rows: Mapping[str, Row] | None = None


@dataclass
class Difference:
    """A key under which the two sides differ, and the whole row here."""

    world: World
    part: str
    name: str
    key: str
    there: object
    here: object
    row: Row

    @property
    def kind(self) -> str:
        """What the key is of a metric: value, stderr, clt, clustered, or a figure of repeats and perhaps its error."""
        found = re.search(r"_(stderr_clt|stderr_clustered|stderr)$", self.key.partition(",")[0])
        rest = self.key.partition(",")[0].removesuffix(found.group()) if found else self.key.partition(",")[0]
        repeat = re.search(r"_(expected_accuracy|consensus_accuracy|internal_variance|consistency_rate)$", rest)
        kind = found.group(1) if found else "value"
        return f"{repeat.group(1)} {kind}" if repeat else kind

    @property
    def metric(self) -> str:
        return re.sub(
            r"(_(expected_accuracy|consensus_accuracy|internal_variance|consistency_rate))?"
            r"(_stderr(_clt|_clustered)?)?$",
            "",
            self.key.partition(",")[0],
        )

    @property
    def filter(self) -> str:
        return self.key.partition(",")[2]

    @property
    def drawn(self) -> Drawn:
        return self.world.tasks[self.name]

    @property
    def items(self) -> list[object]:
        return [doc[self.filter][self.metric] for doc in self.drawn.docs if self.metric in doc.get(self.filter, {})]

    @property
    def function(self) -> Callable[..., object] | None:
        return self.drawn.functions.get(self.metric)

    @property
    def scores(self) -> list[tuple[float, object]]:
        """The numbers in the items, each with its cluster."""
        field, key = str(self.drawn.config.get("score_key", "score")), self.drawn.config.get("cluster_key")
        dicts = [item if isinstance(item, dict) else {field: item} for item in self.items]
        read = [(item.get(field), item.get(key) if key else None) for item in dicts]
        return [(float(x), name) for x, name in read if isinstance(x, int | float | np.number) and not isnan(x)]

    @property
    def numbers(self) -> list[float]:
        return [number for number, _ in self.scores]

    @property
    def ids(self) -> list[object]:
        return [name for _, name in self.scores]

    @property
    def is_task(self) -> bool:
        return self.part == "results" and self.name in self.world.tasks

    @property
    def group(self) -> DrawnGroup | None:
        return (self.world.groups or {}).get(self.name)

    @property
    def entries(self) -> list[Row]:
        """The entries of the group's list that name this metric and filter."""
        listed = self.group.entries or [] if self.group is not None else []
        return [one for one in listed if one["metric"] == self.metric and self.filter in one["filter_list"]]


def spread(numbers: Sequence[float]) -> float:
    return float(np.std(numbers, ddof=1) / sqrt(len(numbers)))


def is_mean(one: Difference) -> bool:
    known = one.kind == "stderr" and one.there == "N/A" and one.function is not None
    whole = known and len(one.numbers) == len(one.items)
    if not whole or not isclose(one.function(one.items), np.mean(one.numbers), rel_tol=1e-6):
        return False
    return same(one.here, spread_clusters(one) if any(one.ids) else spread(one.numbers))


def spread_clusters(one: Difference) -> float | None:
    """evalcore's error of a mean by clusters; a score without an id is one of its own."""
    units = [(at,) if name is None else name for at, name in enumerate(one.ids)]
    codes = np.array([units.index(unit) for unit in units])
    return measure_error(np.array(one.numbers) - np.mean(one.numbers), codes).stderr


def is_of_clusters(one: Difference, *, some: bool = False) -> bool:
    known = any(one.ids) and (None in one.ids) is some
    return known and one.kind in ("stderr", "stderr_clustered") and same(one.here, spread_clusters(one))


def has_formula(one: Difference) -> bool:
    return one.kind == "stderr" and one.function in lmms.RESAMPLED and one.there == "N/A"


def is_pooled(one: Difference) -> bool:
    """A group's error that follows its weights: sqrt(Σ (w · stderr)²)."""
    if one.kind != "stderr" or len(one.entries) != 1 or one.entries[0]["aggregation"] != "mean":
        return False
    value_key = f"{one.metric},{one.filter}"
    rows = [one.world.rows[name] for name in dict.fromkeys(one.group.leaves) if value_key in one.world.rows[name]]
    weights = np.array([row["samples"] if one.entries[0]["weight_by_size"] else 1 for row in rows], float)
    errors = [row.get(one.key) for row in rows]
    return "N/A" not in errors and same(one.here, sqrt(np.sum((weights / weights.sum() * errors) ** 2)))


def is_once(one: Difference) -> bool:
    """A group's number or list that has each of its tasks once, where there one has two places in it."""
    names = list(dict.fromkeys(one.group.leaves))
    if len(names) == len(one.group.leaves):
        return False
    if one.part == "task_aggregation_list":
        return one.here == names
    rows = [one.world.rows[name] for name in names]
    if one.key == "samples":
        return one.here == sum(row["samples"] for row in rows)
    if len(one.entries) != 1:
        return False
    own = callable(one.entries[0]["aggregation"])
    return own or is_pooled(one) or (one.kind == "value" and same(one.here, average(one, rows)))


def average(one: Difference, rows: Sequence[Row]) -> float:
    known = [row for row in rows if one.key in row]
    weights = [row["samples"] if one.entries[0]["weight_by_size"] else 1 for row in known]
    return float(np.average([row[one.key] for row in known], weights=weights))


def is_inexact(one: Difference) -> bool:
    """A key of a group that it did not name exactly, or that another entry of its list took as well."""
    listed = one.group.entries or []
    others = [entry for entry in listed if entry not in one.entries and str(entry["metric"]) in one.key]
    return "," in one.key and ((not one.entries and one.here == ABSENT) or bool(others))


def is_uneven(one: Difference) -> bool:
    """Whether a task's metrics, or those of a group's tasks, are on different documents."""
    if one.is_task:
        return len({len(items) for items in list_items(one.drawn).values()}) > 1 or bool(
            {metric for metric, _ in list_items(one.drawn)} - set(one.drawn.functions)
        )
    keys = [{key for key in one.world.rows[name] if "," in key} for name in one.group.leaves]
    return any(one_of != keys[0] for one_of in keys)


def list_items(drawn: Drawn) -> dict[tuple[str, str], list[object]]:
    out: dict[tuple[str, str], list[object]] = {}
    for doc in drawn.docs:
        for name, found in doc.items():
            for metric, item in found.items():
                out.setdefault((metric, name), []).append(item)
    return out


def has_nan(items: Sequence[object]) -> bool:
    return any(isinstance(item, float) and isnan(item) for item in items)


def is_single(one: Difference) -> bool:
    if not any(isinstance(item, np.float32) for item in one.items):
        return False
    if one.kind == "stderr_clt":
        return same(one.here, spread(one.numbers))
    both = one.kind in ("value", "stderr") and all(isinstance(x, float | np.number) for x in (one.here, one.there))
    return one.kind == "stderr_clustered" or (both and isclose(one.here, one.there, rel_tol=1e-5))


def is_broken(one: Difference) -> bool:
    any_nan = has_nan(one.items) if "," in one.key else any(map(has_nan, list_items(one.drawn).values()))
    return any_nan and (one.key == "samples" or "accuracy" not in one.kind)


Explain = Callable[[Difference], bool]
OF_TASKS: dict[str, Explain] = {
    "own key": lambda one: one.key == OWN and one.there == ABSENT,
    "mean": is_mean,
    "formula": has_formula,
    "median": lambda one: one.kind == "value" and one.function is lmms.metrics.median,
    "clusters": is_of_clusters,
    "no cluster": partial(is_of_clusters, some=True),
    "numpy": is_single,
    "nan": is_broken,
    "undefined": lambda one: one.kind == "internal_variance value" and same(one.there, nan) and one.here == "N/A",
    "vote": lambda one: one.kind == "consensus_accuracy value" and one.here == "N/A",
    "repeats": lambda one: bool(re.fullmatch(r"\w+ stderr", one.kind)) and one.there == ABSENT,
    "ragged": lambda one: (
        one.kind == "expected_accuracy value"
        and same(one.here, np.mean([np.mean(scores) for scores in one.drawn.repeats[one.metric, one.filter]]))
    ),
    "undeclared": lambda one: (
        "," in one.key and one.metric not in one.drawn.functions and (one.there == [] or one.there == ABSENT)
    ),
    "nothing": lambda one: one.there is None and one.here == "N/A",
    "padding": lambda one: one.world.padded,
    "order": lambda one: one.kind == "value" and one.function is take_last and one.world.size > 1,
    "samples": lambda one: one.key == "samples" and is_uneven(one),
    "skipped": lambda one: (
        one.metric in one.drawn.config.get("skip_stderr_metrics", ())
        and one.kind in ("stderr_clt", "stderr_clustered")
        and one.here == "N/A"
    ),
}
OF_GROUPS: dict[str, Explain] = {
    "own key": OF_TASKS["own key"],
    "exact": is_inexact,
    "pooled": is_pooled,
    "function": lambda one: one.kind == "stderr" and len(one.entries) == 1 and callable(one.entries[0]["aggregation"]),
    "no list": lambda one: one.group.entries == [] and one.part != "task_aggregation_list",
    "twice": is_once,
    "samples": OF_TASKS["samples"],
}


# --- comparison -------------------------------------------------------------------------------------------------------


def same(here: object, there: object) -> bool:
    if isinstance(here, int | float | np.number) and isinstance(there, int | float | np.number):
        both_nan = isnan(here) and isnan(there)
        return both_nan or isclose(here, there, rel_tol=1e-12, abs_tol=1e-15)
    if isinstance(here, list) and isinstance(there, list):
        return len(here) == len(there) and all(map(same, here, there))
    if isinstance(here, dict) and isinstance(there, dict):
        return here.keys() == there.keys() and all(same(here[key], there[key]) for key in here)
    return type(here) is type(there) and here == there


def compare(world: World, part: str, there: Mapping[str, object], here: Mapping[str, object]) -> Counter[str]:
    """Count equal keys and explained differences; a difference that nothing explains fails."""
    counts: Counter[str] = Counter()
    for name in sorted({*there, *here}):
        a, b = there.get(name, ABSENT), here.get(name, ABSENT)
        rows = a if isinstance(a, dict) and part == "results" else {"": a}, b if part == "results" else {"": b}
        if not isinstance(rows[1], dict):
            rows = rows[0], dict.fromkeys(rows[0], b)
        for key in sorted({*rows[0], *rows[1]}):
            pair = rows[0].get(key, ABSENT), rows[1].get(key, ABSENT)
            counts[find_explanation(Difference(world, part, name, key, *pair, rows[1]))] += 1
    return counts


def find_explanation(one: Difference) -> str:
    if same(one.here, one.there):
        return "equal"
    known = OF_TASKS if one.is_task else OF_GROUPS if one.group is not None else {}
    found = next((name for name, explains in known.items() if explains(one)), None)
    assert found, f"unexplained: {one.part} {one.name} {one.key!r}: {one.there!r} there, {one.here!r} here: {one.world}"
    return found


def compare_tasks(tasks: Sequence[Drawn], size: int, padding: Sequence[int] = ()) -> Counter[str]:
    """Compare the task step on lists gathered by lmms-eval, fresh and after its own calculation, and rank by rank."""
    world = World({one.name: one for one in tasks}, size, any(padding))
    filled = [lmms.fill_outputs(one, size, padding) for one in tasks]
    gathered = [lmms.gather_outputs(ranks) for ranks in filled]
    calculated = [lmms.calculate(one) for one in gathered]
    there = lmms.theirs.consolidate_results(deepcopy(calculated))
    rules = LmmsRules(singletons=True, documents={one.name: len(one.docs) for one in tasks})
    sides = [consolidate_ranks([list(ranks) for ranks in zip(*filled, strict=True)], rules=rules)]
    if world.padded:
        alone = [list(ranks) for ranks in zip(*(lmms.fill_outputs(one, size) for one in tasks), strict=True)]
        assert same(dict(sides[0][0]), dict(consolidate_ranks(alone, rules=rules)[0]))
    else:
        sides += [consolidate_results(gathered, rules=rules), consolidate_results(calculated, rules=rules)]
    parts = [(part, theirs, ours) for six in sides for part, theirs, ours in zip(PARTS, there, six, strict=True)]
    return sum((compare(world, part, theirs, ours) for part, theirs, ours in parts), Counter())


def compare_groups(rng: np.random.Generator, tasks: Sequence[Drawn]) -> Counter[str]:
    """Compare the group step on the rows that lmms-eval made of the tasks."""
    task_dict, groups = draw_groups(rng, tasks)
    outputs = [lmms.calculate(lmms.fill_outputs(one)[0]) for one in tasks]
    rows, _, _, versions, _, _ = lmms.theirs.consolidate_results(outputs)
    there = lmms.theirs.consolidate_group_results(deepcopy(rows), deepcopy(versions), task_dict)
    here = consolidate_group_results(rows, versions, task_dict)
    world = World({one.name: one for one in tasks}, groups=groups, rows=rows)
    printed = [lmms.theirs.prepare_print_tasks(task_dict, side[0]) for side in (there, here)]
    assert [set(part) for part in printed[0]] == [set(part) for part in printed[1]] or any(
        one.entries == [] for one in groups.values()
    )
    return sum(
        (
            compare(world, "results", there[0], here[0]),
            compare(world, "versions", there[1], here[1]),
            compare(world, "show_group_table", {"": there[2]}, {"": here[2]}),
            compare(world, "task_aggregation_list", there[3], here[3]),
        ),
        Counter(),
    )


# --- drawn cases ------------------------------------------------------------------------------------------------------


def draw_ranks(rng: np.random.Generator, tasks: Sequence[Drawn]) -> tuple[int, Sequence[int]]:
    size = int(rng.integers(1, 5))
    whole = all(one.log or {len(items) for items in list_items(one).values()} == {len(one.docs)} for one in tasks)
    padding = [int(rng.integers(3)) for _ in range(size)] if size > 1 and whole and rng.random() < 0.4 else []
    return size, padding


def draw_counts(draws: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        tasks = [draw_task(rng, f"t{at}") for at in range(int(rng.integers(1, 4)))]
        counts += compare_tasks(tasks, *draw_ranks(rng, tasks))
        tame = [draw_task(rng, f"t{at}", tame=True) for at in range(int(rng.integers(1, 6)))]
        counts += compare_groups(rng, tame)
    return counts


def test_drawn_cases(capsys: pytest.CaptureFixture[str]) -> None:
    """Every key is equal, or differs as the documentation says; and whatever it says of them occurs."""
    counts = draw_counts(300)
    with capsys.disabled():
        total, listed = counts.total(), counts.total() - counts["equal"]
        print(f"\nlmms-eval 0.7.3: {total} comparisons, {counts['equal']} equal, {listed} listed differences, 0 others")
        print(", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if name != "equal"))
    assert counts.keys() - {"equal"} == OF_TASKS.keys() | OF_GROUPS.keys()
    assert counts["equal"] > 10_000


# --- what is not drawn ------------------------------------------------------------------------------------------------


def make_task(items: Sequence[object], function: Callable[..., object], **more: object) -> Drawn:
    return Drawn(
        str(more.pop("name", "t")),
        [{"none": {"m": item}} for item in items],
        {"m": function},
        higher={"m": True},
        **more,
    )


def consolidate_both(tasks: Sequence[Drawn], draws: int = 0) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    outputs = [lmms.calculate(lmms.fill_outputs(one)[0], draws) for one in tasks]
    return lmms.theirs.consolidate_results(deepcopy(outputs)), consolidate_results(outputs)


TEXTS = [("the cat sat on a mat", "a cat sat on the mat"), ("a dog ran away", "a dog ran"), ("it rains", "it rained")]
LABELS = [(1, 1), (0, 1), (1, 0), (0, 0), (1, 1)]
PAIRS = [(-3.5, 2), (-7.25, 5), (-1.0, 1)]
CHANCES = [(0, (0.5, 0.5)), (1, (0.25, 0.75)), (0, (0.9, 0.1))]
DOCS = [
    (one, {"idx": {"paragraph": p, "question": q}, "label": one != q})
    for p in (0, 1, 2)
    for q in (0, 1)
    for one in (0, 1)
]
REGISTERED = {
    "f1_score": LABELS,
    "matthews_corrcoef": LABELS,
    "bleu": TEXTS,
    "chrf": TEXTS,
    "ter": TEXTS,
    "perplexity": [-0.5, -1.25, -3.0],
    "weighted_perplexity": PAIRS,
    "bits_per_byte": PAIRS,
    "brier_score": CHANCES,
    "acc_all": DOCS,
    "bypass_agg": [1.0, 0.0],
}


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_aggregations_that_it_registers(name: str) -> None:
    """Rows formula, acc_all and bypass: the value is equal, the error by formula where there is none or a resampled one."""
    task = make_task(REGISTERED[name], getattr(lmms.metrics, name))
    output = lmms.fill_outputs(task)[0]
    there = getattr(lmms.metrics, name)(output.sample_metrics["m", "none"])
    row = consolidate_results([output])[0]["t"]
    if name == "bypass_agg":
        assert (there, row["m,none"], row["m_stderr,none"]) == (999, "N/A", "N/A")
        assert row[OWN]["m,none"]["reason"]
    else:
        assert same(row["m,none"], there)
        assert isinstance(row["m_stderr,none"], float)
    if name == "acc_all":
        right = [all((doc["label"] == 1) == said for said, doc in DOCS[at : at + 2]) for at in range(0, len(DOCS), 2)]
        assert same(row["m_stderr,none"], spread(right))
        assert lmms.metrics.acc_all_stderr(DOCS) != row["m_stderr,none"]


def test_errors_that_it_resamples() -> None:
    """Row formula: no resampling, and about the same number."""
    items = (-np.random.default_rng(8).random(60)).tolist()
    there, here = consolidate_both([make_task(items, lmms.metrics.perplexity)], draws=400)
    assert here[0]["t"]["m_stderr,none"] == pytest.approx(there[0]["t"]["m_stderr,none"], rel=0.2)


def fail(items: Sequence[object]) -> float:
    raise RuntimeError("no judge")


def test_functions_that_raise() -> None:
    """Row failure."""
    task = make_task([0, 1], fail)
    with pytest.raises(RuntimeError):
        lmms.calculate(lmms.fill_outputs(task)[0])
    row = consolidate_results(lmms.fill_outputs(task))[0]["t"]
    assert (row["m,none"], row["m_stderr,none"]) == ("N/A", "N/A")
    assert row[OWN]["m,none"]["reason"] == "aggregation 'fail' raised RuntimeError: no judge"


def test_functions_that_were_called_are_not_called_again() -> None:
    """A function may ask a judge: what lmms-eval has calculated by then is what counts."""
    calls: list[int] = []

    def judge(items: Sequence[object]) -> float:
        calls.append(len(items))
        return 40.0 + len(calls)

    output = lmms.calculate(lmms.fill_outputs(make_task([0, 1, 1], judge))[0])
    assert consolidate_results([output])[0]["t"]["m,none"] == 41.0
    assert calls == [3]


def test_some_scores_without_a_cluster() -> None:
    """Row no cluster."""
    items = [{"score": at % 2, **({"v": at // 2} if at else {})} for at in range(6)]
    outputs = lmms.fill_outputs(make_task(items, lambda given: 1.0, config={"cluster_key": "v"}))
    with pytest.raises(EvalError, match="expected a cluster id for every document, 1 have none, first at t row 0"):
        consolidate_results(outputs)
    assert consolidate_results(outputs, rules=RULES)[0]["t"]["m_stderr_clustered,none"] > 0


def make_group(name: str, *, metric: str = "m", filters: object = "none", **more: object) -> object:
    entry = {"metric": metric, "filter_list": filters, "weight_by_size": True, **more}
    return lmms.ConfigurableGroup(config={"group": name, "aggregate_metric_list": [entry]})


def test_groups_that_end_its_run() -> None:
    """Rows no number, logs, sizes and not run: groups over results that it cannot average, or averages wrongly."""
    tasks = [make_task([0, 1, 1], list, name="odd"), make_task([0, 0, 1, 1], lmms.metrics.mean, name="even")]
    task_dict = {make_group("g"): {one.name: lmms.OwnTask(one) for one in tasks}}
    there, here = consolidate_both(tasks)
    with pytest.raises(TypeError):
        lmms.theirs.consolidate_group_results(deepcopy(there[0]), there[3], task_dict)
    row = consolidate_group_results(here[0], here[3], task_dict)[0]["g"]
    assert row["m,none"] == 0.5
    assert row[OWN]["m,none"]["missing"] == ["odd"]


def test_groups_over_repeats() -> None:
    """Row no number: it has no error of the figures of repeats, and demands one in a group."""
    task = make_task([1, 0], lmms.metrics.mean, config={"repeats": 2}, repeats={("m", "none"): [[1, 0], [0, 0]]})
    task_dict = {make_group("g"): {"t": lmms.OwnTask(task)}}
    there, here = consolidate_both([task])
    with pytest.raises(AssertionError):
        lmms.theirs.consolidate_group_results(deepcopy(there[0]), there[3], task_dict)
    assert consolidate_group_results(here[0], here[3], task_dict)[0]["g"]["m,none"] == 0.5


def test_groups_of_perplexities() -> None:
    """Row logs: 10 and 1000 make 100, not 505."""
    rows = {name: {"perplexity,none": value, "samples": 4} for name, value in (("a", 10.0), ("b", 1000.0))}
    tasks = {name: lmms.OwnTask(make_task([0], lmms.metrics.mean, name=name)) for name in rows}
    task_dict = {make_group("g", metric="perplexity"): tasks}
    stated = {name: {**row, "perplexity_stderr,none": "N/A"} for name, row in rows.items()}
    there = lmms.theirs.consolidate_group_results({**deepcopy(stated), "g": {}}, {}, task_dict)
    here = consolidate_group_results(stated, {}, task_dict)
    assert there[0]["g"]["perplexity,none"] == 505.0
    assert here[0]["g"]["perplexity,none"] == pytest.approx(100.0, rel=1e-12)


def test_groups_weigh_a_metric_by_its_own_documents() -> None:
    """Row sizes: in rows made here; a row of lmms-eval has one count for all its metrics."""
    sparse = [{"none": {"m": 1.0}}, {"none": {"m": 1.0}}, *({"none": {"n": 0.0}} for _ in range(8))]
    tasks = [
        Drawn("a", sparse, {"m": lmms.metrics.mean, "n": lmms.metrics.mean}),
        make_task([0.0, 0.0], lmms.metrics.mean, name="b"),
    ]
    task_dict = {make_group("g"): {one.name: lmms.OwnTask(one) for one in tasks}}
    there, here = consolidate_both(tasks)
    step = consolidate_group_results
    assert lmms.theirs.consolidate_group_results(deepcopy(there[0]), there[3], task_dict)[0]["g"]["m,none"] == 0.8
    assert step(there[0], there[3], task_dict)[0]["g"]["m,none"] == pytest.approx(0.8)
    assert step(here[0], here[3], task_dict)[0]["g"]["m,none"] == 0.5
    assert consolidate(lmms_outputs(tasks), task_dict)[0]["g"]["m,none"] == 0.5


def lmms_outputs(tasks: Sequence[Drawn]) -> list[object]:
    return [lmms.fill_outputs(one)[0] for one in tasks]


def test_tasks_that_were_not_run() -> None:
    """Row not run."""
    done, other = make_task([0, 1, 1], lmms.metrics.mean), make_task([0], lmms.metrics.mean, name="other")
    task_dict = {make_group("g"): {"t": lmms.OwnTask(done), "other": lmms.OwnTask(other)}}
    there, here = consolidate_both([done])
    theirs = lmms.theirs.consolidate_group_results(there[0], there[3], task_dict)
    ours = consolidate_group_results(here[0], here[3], task_dict)
    assert (theirs[0]["other"], "other" in ours[0]) == ({}, False)
    assert same(ours[0]["g"]["m,none"], theirs[0]["g"]["m,none"])
    assert ours[0]["g"][OWN]["m,none"]["missing"] == ["other"]
    assert ours[3] == theirs[3] == {"g": ["t", "other"]}


# --- in its place -----------------------------------------------------------------------------------------------------


Steps = tuple[Callable[..., tuple], Callable[..., tuple]]


def print_tables(steps: Steps, tasks: Sequence[Drawn], task_dict: Row) -> tuple[list[tuple[str, ...]], ...]:
    """Do what lmms-eval's evaluator does after its calculation, with these two functions: the rows of its two tables."""
    outputs = [lmms.calculate(one) for one in lmms_outputs(tasks)]
    results, _, _, versions, shots, higher = steps[0](outputs)
    results, versions, shown, *_ = steps[1](results, versions, task_dict)
    printed = lmms.theirs.prepare_print_tasks(task_dict, results)
    for group in lmms.theirs.get_subtask_list(task_dict):
        assert isinstance(higher[group], dict)  # as its evaluator looks up the directions of subgroups
    made = {"results": printed[0], "groups": printed[1], "n-shot": shots, "higher_is_better": higher}
    tables = [lmms.make_table(made, part) for part in ("results", "groups")[: 1 + shown]]
    return tuple([split_row(line) for line in text.splitlines()[2:] if line.startswith("|")] for text in tables)


def split_row(line: str) -> tuple[str, ...]:
    """A row's task or group, filter and metric."""
    name, filter_name, _, metric, *_ = (cell.strip() for cell in line.strip("|").split("|"))
    return name.removeprefix("- "), filter_name, metric


@pytest.mark.parametrize("seed", range(40))
def test_both_functions_take_the_place_of_its_own(seed: int) -> None:
    """Each, or both: its tables have the same rows, but for what a group takes there without naming it (row exact)."""
    rng = np.random.default_rng(seed)
    tasks = [draw_task(rng, f"t{at}", tame=True) for at in range(4)]
    task_dict, groups = draw_groups(rng, tasks)
    first, second = lmms.theirs.consolidate_results, lmms.theirs.consolidate_group_results
    own = partial(consolidate_results, rules=RULES)
    there = print_tables((first, second), tasks, task_dict)
    named = {alias: group for name, group in groups.items() for alias in (name, f"the {name}")}
    for steps in ((own, consolidate_group_results), (first, consolidate_group_results), (own, second)):
        here = print_tables(steps, tasks, task_dict)
        for ours, theirs in zip(here, there, strict=True):
            more, less = set(ours) - set(theirs), set(theirs) - set(ours)
            assert [row for row in more if row[2] or named[row[0]].entries != []] == []
            assert [row for row in less if is_named(named.get(row[0]), *row[1:])] == []


def is_named(group: DrawnGroup | None, name: str, metric: str) -> bool:
    """Whether a row belongs in a table: a task's, or one that a group names."""
    listed = group.entries or [] if group is not None else []
    return group is None or any(one["metric"] == metric and name in one["filter_list"] for one in listed)


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks_get_empty_mappings(rank: int) -> None:
    outputs = lmms_outputs([make_task([0, 1], lmms.metrics.mean)])
    assert consolidate_results(outputs, rank=rank) == ({}, {}, {}, {}, {}, {})
    assert consolidate_group_results({}, {}, {make_group("g"): {}}, rank=rank) == ({}, {}, False, {})


# --- the documentation ------------------------------------------------------------------------------------------------


def read_table() -> Iterator[tuple[str, tuple[str, str]]]:
    text = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text(encoding="utf-8")
    for line in text.partition("| row | lmms-eval 0.7.3 | here |")[2].partition("\n\n")[0].splitlines()[2:]:
        row, there, here = (cell.strip() for cell in line.strip("|").split("|"))
        yield row, (there, here)


def test_the_documentation_lists_every_difference() -> None:
    assert dict(read_table()) == LISTED
    by_hand = {"bypass", "acc_all", "failure", "logs", "sizes", "not run", "no number"}
    assert OF_TASKS.keys() | OF_GROUPS.keys() | by_hand == LISTED.keys()
