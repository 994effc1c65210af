"""Whole evaluations inside lm-eval 0.4.13, with its own scoring and with evalcore's in its place."""

from __future__ import annotations

import json
import pickle
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("lm_eval")

import datasets
import lm_eval.evaluator
from both_sides import assert_same_results, lm_group, quiet, same_number
from lm_eval.api import registry
from lm_eval.api.filter import Filter
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.api.registry import get_filter, register_aggregation, register_filter, register_metric
from lm_eval.api.task import ConfigurableTask
from lm_eval.evaluator import evaluate as lm_evaluate
from lm_eval.filters import build_filter_ensemble
from lm_eval.tasks._factory import TaskFactory
from lm_eval.tasks._index import Entry, Kind
from lm_eval.utils import make_table
from lm_eval_docs import CASES
from lm_eval_docs.fake import Fake
from lm_eval_docs.stand_ins import install
from msgspec.structs import replace
from requests_side import BITS, FOLDER, documents, in_json, missing, plain

from evalcore import EVALCORE, EvalError, report_task
from evalcore.adapters.lm_eval import evaluate, gather_ranks, pack_scores, score_one, score_tasks
from evalcore.adapters.lm_eval.requests import ask_model
from evalcore.adapters.lm_eval.tasks import is_known
from evalcore.testing import fingerprint

pytestmark = pytest.mark.filterwarnings("ignore")
Plain = dict[str, object]
POLICY = "lm-eval-0.4.13"
DRAWS = 20
WORDS = ["4", "5", "Paris", "paris.", "the cat", "1,000", "é", "no"]


# --- a small model, and tasks of ours ---------------------------------------------------------------------------


class Hashed(LM):
    """A model whose replies are a function of the request and of how often it was asked; one of several ranks."""

    def __init__(self, rank: int = 0, world_size: int = 1, meet: Meeting | None = None) -> None:
        super().__init__()
        self._rank, self._world_size, self.meet, self.asked = rank, world_size, meet, Counter()

    def _answers(self, requests: Sequence[Instance]) -> list[object]:
        return [self._answer(one) for one in requests]

    def _answer(self, one: Instance) -> object:
        place = (one.task_name, one.doc_id, one.idx, one.request_type)
        self.asked[place] += 1
        seed = int.from_bytes(sha256(repr((place, self.asked[place])).encode()).digest()[:8], "big")
        rng = np.random.default_rng(seed)
        if one.request_type == "loglikelihood_rolling":
            return -float(rng.gamma(9, 9))
        if one.request_type == "loglikelihood":
            return -float(np.round(rng.gamma(3, 2), 1)), bool(rng.random() < 0.4)
        golds = one.doc["target"] if isinstance(one.doc["target"], list) else [one.doc["target"]]
        said = str(rng.choice(golds)) if rng.random() < 0.6 else str(rng.choice(WORDS))
        return f"The answer is {said}" if rng.random() < 0.3 else said

    loglikelihood = loglikelihood_rolling = generate_until = _answers

    def gather_object(self, obj: object, dst: int = 0) -> list[object] | None:
        return [obj] if self.meet is None else self.meet.gather(self._rank, obj, dst)


class Meeting:
    """What torch.distributed does, for threads: everything is pickled on its way."""

    def __init__(self, size: int) -> None:
        self.barrier, self.slots = threading.Barrier(size), [b""] * size

    def gather(self, rank: int, obj: object, dst: int) -> list[object] | None:
        self.slots[rank] = pickle.dumps(obj)
        self.barrier.wait(600)
        out = [pickle.loads(one) for one in self.slots] if rank == dst else None
        self.barrier.wait(600)
        return out


def build(
    name: str, kind: str, n: int = 12, make: Callable[..., object] = ConfigurableTask, **config: object
) -> object:
    rng = np.random.default_rng(len(name) * 100 + n)
    golds, numbered = config.pop("golds", 1), kind == "multiple_choice"
    rows = [
        {
            "question": f"q{i}",
            "choices": ["a" * int(rng.integers(1, 9)), "bé", "c c", "dd"],
            "target": int(rng.integers(4))
            if numbered
            else [str(w) for w in rng.choice(WORDS, golds)]
            if golds > 1
            else f"{rng.choice(WORDS)} {i % 3}".removesuffix(" 1"),
            "source": f"s{i // 3}",
        }
        for i in range(n)
    ]
    given = {
        "task": name,
        "dataset_path": "none",
        "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list(rows)},
        "test_split": "test",
        "output_type": kind,
        "doc_to_text": "question",
        "doc_to_target": "target",
        "num_fewshot": 0,
        "metadata": {"version": 1.5},
        **({"doc_to_choice": "choices"} if numbered else {}),
        **config,
    }
    return quiet(make, config=given)


def both(
    tasks: Callable[[], Sequence[object]],
    groups: Callable[[], Sequence[object]] = list,
    *,
    policy: str = POLICY,
    **run: object,
) -> tuple[Plain, Plain]:
    """lm-eval's results and ours, each on tasks of its own."""
    out = []
    for function in (lm_evaluate, partial(evaluate, policy=policy)):
        run = {"bootstrap_iters": DRAWS, **run}
        out.append(quiet(function, Hashed(), task_dict(tasks(), groups()), **run))
    return out[0], out[1]


def task_dict(tasks: Sequence[object], groups: Sequence[object] = ()) -> dict[str, dict[str, object]]:
    by_name = {one.task_name: one for one in tasks}
    for group in groups:
        for name in [name for name in group.child_names if group.get(name) is None]:
            group._children[name] = by_name[name]
    return {"tasks": by_name, "groups": {group.name: group for group in groups}}


def assert_same(theirs: Plain, ours: Plain) -> None:
    """Numbers, tables, configs, and what the sample logs say of every document."""
    assert list(ours) == [*theirs, "evalcore"]
    assert_same_results(theirs, ours, exact=BITS)
    assert plain(ours["configs"]) == plain(theirs["configs"])
    for column in [one for one in ("results", "groups") if one in theirs]:
        assert make_table(ours, column) == make_table(theirs, column)
    for name in theirs.get("samples", {}):
        assert_same_rows(theirs["samples"][name], ours["samples"][name])


def assert_same_rows(theirs: Sequence[Plain], ours: Sequence[Plain]) -> None:
    for one, other in zip(theirs, ours, strict=True):
        assert list(other)[:11] == list(one)[:11]
        assert sorted(other["metrics"]) == sorted(one["metrics"])
        kept = [key for key in one if key not in ("metrics", "brier_score", "bleu", "ter", "chrf", "f1", "mcc")]
        assert as_json({key: other[key] for key in kept}) == as_json({key: one[key] for key in kept})


def as_json(value: object) -> object:
    return json.loads(json.dumps(value, default=float))


# --- lm-eval's own tasks ----------------------------------------------------------------------------------------

SHIPPED = [
    "gsm8k",
    "gsm8k_cot_self_consistency",
    "mgsm_direct_de",
    "hendrycks_math_algebra",
    "bbh_cot_fewshot_boolean_expressions",
    "bbh_zeroshot_navigate",
    "bigbench_anachronisms_multiple_choice",
    "hellaswag",
    "arc_easy",
    "winogrande",
    "truthfulqa_mc2",
    "mmlu_anatomy",
    "mmlu_pro_biology",
    "commonsense_qa",
    "lambada_openai",
    "wikitext",
    "triviaqa",
    "drop",
    "ifeval",
    "humaneval",
    "cb",
    "cola",
    "mrpc",
    "wmt16-de-en",
    "ours_mutual_info",
    "ours_repeats",
]


@pytest.fixture(scope="module")
def _stand_ins() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        yield


def shipped(
    name: str, patch: pytest.MonkeyPatch, function: Callable[..., Plain], **run: object
) -> tuple[Plain, object]:
    tables = {split: datasets.Dataset.from_list(deepcopy(docs)) for split, docs in documents(name).items()}
    patch.setattr(datasets, "load_dataset", lambda *_, **__: datasets.DatasetDict(tables))
    case = CASES[name]
    entry = Entry(name=name, kind=Kind.TASK, yaml_path=FOLDER / case.path)
    task = quiet(TaskFactory().build, entry, registry={})
    task.set_config("num_fewshot", 0)
    task.set_fewshot_seed(7)
    given = {"tasks": {name: task}, "groups": {}}
    run = {"bootstrap_iters": DRAWS, "limit": 6, "confirm_run_unsafe_code": True, **run}
    return quiet(function, Fake(task, case), given, **run), task


@pytest.mark.usefixtures("_stand_ins")
@pytest.mark.parametrize(
    "name", [name if name in SHIPPED[::2] else pytest.param(name, marks=pytest.mark.slow) for name in SHIPPED]
)
def test_a_task_that_lm_eval_ships(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := missing(name):
        pytest.skip(reason)
    theirs, _ = shipped(name, monkeypatch, lm_evaluate)
    ours, task = shipped(name, monkeypatch, partial(evaluate, policy=POLICY))
    assert is_known(task, EVALCORE) == (not callable(task.config.process_results))
    assert_same_results(in_json(theirs), in_json(ours), exact=BITS)
    assert theirs["higher_is_better"] == ours["higher_is_better"]
    assert plain(ours["configs"]) == plain(theirs["configs"])
    assert_same_rows(theirs["samples"][name], ours["samples"][name])
    if not any(value != value for value in theirs["results"][name].values()):
        assert make_table(ours) == make_table(theirs)
    right, _ = shipped(name, monkeypatch, evaluate)
    assert set(right["results"][name]) == set(ours["results"][name])


# --- tasks of ours, all output types -----------------------------------------------------------------------------

CHOICES = [{"metric": one} for one in ("acc", "acc_norm", "acc_bytes", "exact_match", "mcc", "brier_score")]
LOOSE = [
    {"name": "loose", "filter": [{"function": "lowercase"}, {"function": "take_first"}]},
    {"name": "got", "filter": [{"function": "regex", "regex_pattern": "is (.*)"}, {"function": "take_first"}]},
]
VOTE = [{"name": "maj", "filter": [{"function": "majority_vote"}, {"function": "take_first"}]}]


def four_kinds() -> list[object]:
    return [
        build("mc", "multiple_choice", 31, metric_list=CHOICES, task_alias="Choices"),
        build("gen", "generate_until", 20, filter_list=LOOSE),
        build("ll", "loglikelihood", 15),
        build("roll", "loglikelihood_rolling", 9),
    ]


def test_all_output_types() -> None:
    assert_same(*both(four_kinds))


@pytest.mark.parametrize("run", [{"limit": 4}, {"limit": 0.3}, {"samples": {"mc": [7, 1, 4], "gen": [0, 5]}}])
def test_parts_of_the_documents(run: Plain) -> None:
    assert_same(*both(four_kinds, **run))


@pytest.mark.parametrize("draws", [0, None, 1500])
def test_resamples(draws: int | None) -> None:
    tasks = lambda: [build("ll", "loglikelihood", 4)]  # noqa: E731
    asked = 100_000 if draws is None else draws
    theirs = quiet(lm_evaluate, Hashed(), task_dict(tasks()), bootstrap_iters=asked)
    ours = quiet(evaluate, Hashed(), task_dict(tasks()), bootstrap_iters=draws, policy=POLICY)
    assert_same(theirs, ours)


def test_without_sample_logs() -> None:
    theirs, ours = both(four_kinds, log_samples=False)
    assert "samples" not in ours
    assert_same(theirs, ours)


@pytest.mark.parametrize("golds", [1, 3])
def test_repeats_and_several_targets(golds: int) -> None:
    kinds = [{"repeats": 4}, {"repeats": 4, "filter_list": VOTE}, {"repeats": 3, "filter_list": LOOSE}]
    for config in kinds:
        assert_same(*both(lambda config=config: [build("gen", "generate_until", 24, golds=golds, **config)]))


def test_under_the_default_policy_numbers_are_right_and_errata_are_named() -> None:
    tasks = lambda: [build("ll", "loglikelihood", 30), build("mc", "multiple_choice", 31, metric_list=CHOICES)]  # noqa: E731
    theirs, ours = both(tasks, policy="evalcore", bootstrap_iters=None)
    estimates = ours["evalcore"]["estimates"]
    assert same_number(theirs["results"]["ll"]["acc_stderr,none"], "N/A")  # lm-eval without bootstrap_iters
    assert estimates["ll"]["perplexity,none"]["errata"] == ["E18"]
    assert estimates["mc"]["brier_score,none"]["errata"] == ["E24"]
    assert estimates["mc"]["brier_score,none"]["stderr"] > 0
    low, high = estimates["mc"]["acc,none"]["ci"]
    assert low < ours["results"]["mc"]["acc,none"] == theirs["results"]["mc"]["acc,none"] < high
    assert set(ours["evalcore"]["errata"]) >= {"E18", "E24"}


def test_names_of_chosen_documents() -> None:
    """lm-eval takes them in order, but names them as they were given; only under its policy so do we."""
    tasks = lambda: [build("gen", "generate_until", 12)]  # noqa: E731
    theirs, ours = both(tasks, samples={"gen": [7, 1, 4]}, policy="evalcore")
    named = lambda results: [(row["doc_id"], row["doc"]["question"]) for row in results["samples"]["gen"]]  # noqa: E731
    assert named(theirs) == [(7, "q1"), (1, "q4"), (4, "q7")]
    assert named(ours) == [(1, "q1"), (4, "q4"), (7, "q7")]


# --- code of the user's own ----------------------------------------------------------------------------------------


def graded(doc: Plain, results: list[str]) -> Plain:
    out = {"near": 1 / (1 + abs(len(results[0]) - len(str(doc["target"])))), "right": int(results[0] == doc["target"])}
    return {**out, "short": 1} if doc["question"] < "q5" else out


def longest(items: Sequence[float]) -> float:
    return max(items)


GRADED = [
    {"metric": "near", "aggregation": "median", "higher_is_better": True},
    {"metric": "right", "aggregation": "mean", "higher_is_better": True},
    {"metric": "short", "aggregation": longest, "higher_is_better": False},
]


def test_process_results_of_yaml_tasks() -> None:
    assert_same(*both(lambda: [build("own", "generate_until", 21, metric_list=GRADED, process_results=graded)]))


def test_an_undeclared_metric_has_no_direction() -> None:
    theirs, ours = both(
        lambda: [build("own", "generate_until", 21, metric_list=GRADED[:1], process_results=graded, task_alias="O")]
    )
    assert set(ours["higher_is_better"]["own"]) == {"near"}
    assert_same(theirs, ours)


def starts_alike(references: list[str], predictions: list[str], **_: object) -> float:
    return float(references[0][:1] == predictions[0][:1])


def in_both(references: list[str], predictions: list[str], **_: object) -> dict[str, float]:
    said = predictions[0]
    return {"half@1": float(said[:1] == "4"), "half@2": float(len(said)) / 50}


def test_metrics_of_the_users_own() -> None:
    metrics = [
        {"metric": starts_alike, "aggregation": "mean", "higher_is_better": True},
        {"metric": in_both, "aggregation": "mean", "higher_is_better": False},
        {"metric": "exact_match", "ignore_case": True},
    ]
    theirs, ours = both(lambda: [build("own", "generate_until", 21, metric_list=metrics)])
    assert ours["higher_is_better"]["own"]["half@2"] is False
    assert_same(theirs, ours)


def test_metrics_of_the_users_own_get_lists_where_no_filter_takes_a_reply() -> None:
    metrics = [{"metric": in_both, "aggregation": longest, "higher_is_better": False}, {"metric": "exact_match"}]
    filters = [{"name": "all", "filter": [{"function": "lowercase"}]}]
    listed = {"metric_list": metrics, "filter_list": filters}
    assert_same(*both(lambda: [build("own", "generate_until", 21, **listed)]))


@pytest.fixture
def own_registry() -> Iterator[None]:
    """What a test adds to lm-eval's registries is gone after it: other tests count what is in them."""
    tables = [one if isinstance(one, dict) else getattr(one, "_objs", None) for one in vars(registry).values()]
    kept = [(one, dict(one)) for one in tables if isinstance(one, dict)]
    yield
    for table, before in kept:
        for name in table.keys() - before.keys():
            del table[name]


@pytest.mark.usefixtures("own_registry")
def test_what_lm_evals_registry_alone_knows() -> None:
    register_aggregation("evalcore_test_top")(longest)
    register_metric(
        metric="evalcore_test_tail", higher_is_better=True, output_type="generate_until", aggregation="mean"
    )(lambda items: float(items[0][-1:] == items[1][-1:]))

    @register_filter("evalcore_test_cut")
    class Cut(Filter):
        """Looks at the document, and takes the first reply itself."""

        def __init__(self, keep: int) -> None:
            self.keep = keep

        def apply(self, resps: Sequence[Sequence[str]], docs: Sequence[Plain]) -> list[str]:
            return [f"{one[0][: self.keep]}{doc['question'][:0]}" for one, doc in zip(resps, docs, strict=True)]

    filters = [
        {"name": "cut", "filter": [{"function": "evalcore_test_cut", "keep": 5}]},
        {
            "name": "fn",
            "filter": [{"function": "custom", "filter_fn": lambda resps, docs: [[r[0].upper()] for r in resps]}],
        },
    ]
    metrics = [{"metric": "evalcore_test_tail"}, {"metric": "exact_match", "aggregation": "evalcore_test_top"}]
    assert_same(*both(lambda: [build("own", "generate_until", 21, metric_list=metrics, filter_list=filters)]))


def test_a_filter_that_takes_one_likelihood() -> None:
    class First(Filter):
        def apply(self, resps: Sequence[Sequence[object]], docs: Sequence[Plain]) -> list[object]:
            return [one[0] for one in resps]

    def tasks() -> list[object]:
        task = build("mc", "multiple_choice", 14, metric_list=CHOICES[:3], repeats=2)
        task._filters = [
            build_filter_ensemble("mine", [(First, None)]),
            build_filter_ensemble("none", [("take_first", None)]),
        ]
        return [task]

    assert get_filter("take_first")
    assert_same(*both(tasks))


class TwoRequests(ConfigurableTask):
    """A class of its own with requests of two kinds for each document, as SQuAD 2 has them, and scores of its own."""

    def construct_requests(self, doc: Plain, ctx: str, **named: object) -> list[Instance]:
        named = {key: value for key, value in named.items() if key == "metadata"}
        asked = [("generate_until", (ctx, {"until": ["\n"]})), ("loglikelihood", (ctx, " none"))]
        return [Instance(request_type=kind, doc=doc, arguments=args, idx=0, **named) for kind, args in asked]

    def process_results(self, doc: Plain, results: list[object]) -> Plain:
        said, (value, _) = results
        return {"sure": value, "right": float(said == doc["target"]), "pair": (said, doc["target"])}

    def aggregation(self) -> Plain:
        return {"sure": np.mean, "right": mean_of_floats, "pair": lambda items: len(dict(items)) / len(items)}

    def higher_is_better(self) -> dict[str, bool]:
        return {"sure": True, "right": True, "pair": False}


def mean_of_floats(items: Sequence[float]) -> float:
    return sum(items) / len(items)


def test_a_task_that_is_a_python_class() -> None:
    assert_same(*both(lambda: [build("two", "generate_until", 17, TwoRequests)]))


def test_what_fails_is_counted_and_named() -> None:
    """lm-eval stops at the first document whose own code raises, after the model has answered them all."""

    def fragile(doc: Plain, results: list[str]) -> Plain:
        return {"near": 1 / (doc["question"] != "q3")}

    make = lambda: task_dict([build("own", "generate_until", 9, metric_list=GRADED[:1], process_results=fragile)])  # noqa: E731
    with pytest.raises(ZeroDivisionError):
        quiet(lm_evaluate, Hashed(), make(), bootstrap_iters=0)
    found = quiet(evaluate, Hashed(), make())["evalcore"]["estimates"]["own"]["near,none"]
    assert (found["n_scored"], found["n_failed"]) == (8, 1)


# --- groups -----------------------------------------------------------------------------------------------------

ACC = {"metric": "acc"}


def members() -> list[object]:
    return [build(f"t{'x' * i}", "multiple_choice", n, metric_list=CHOICES[:2]) for i, n in enumerate([8, 21, 13, 30])]


def nested() -> list[object]:
    inner = lm_group("inner", ["tx", "txx"], [{**ACC, "weight_by_size": False}], alias="Inner", metadata={"version": 2})
    bare = lm_group("bare", ["txxx"])
    outer = lm_group("outer", ["t", inner, bare], [ACC, {"metric": "acc_norm", "filter_list": "none"}])
    return [outer, inner, bare]


def flat(by_size: bool) -> list[object]:
    return [lm_group("g", ["t", "tx", "txx", "txxx"], [{**ACC, "weight_by_size": by_size}])]


@pytest.mark.parametrize(
    "groups", [partial(flat, True), partial(flat, False), nested], ids=["sizes", "equal", "nested"]
)
def test_groups(groups: Callable[[], list[object]]) -> None:
    assert_same(*both(members, groups))


def test_groups_by_default_are_right() -> None:
    theirs, ours = both(members, nested, policy="evalcore")
    assert same_number(theirs["groups"]["inner"]["acc,none"], ours["groups"]["inner"]["acc,none"])
    assert same_number(
        theirs["groups"]["inner"]["acc_stderr,none"], ours["groups"]["inner"]["acc_stderr,none"], stderr=True
    )
    assert ours["evalcore"]["estimates"]["outer"]["acc,none"]["errata"] == ["E23"]
    # shots and directions reach the outer group, which lm-eval visits before the inner one
    assert (ours["n-shot"]["outer"], ours["higher_is_better"]["outer"]) == (0, {"acc": True, "acc_norm": True})
    assert make_table(ours, "groups").count("\n") == make_table(theirs, "groups").count("\n")


# --- the second half alone ----------------------------------------------------------------------------------------


def test_scoring_filled_instances() -> None:
    """What ``score_tasks`` takes is what lm-eval's own run left in its tasks."""
    given = task_dict(four_kinds())
    theirs = quiet(lm_evaluate, Hashed(), given, bootstrap_iters=DRAWS)
    before = [list(one.resps) for task in given["tasks"].values() for one in task.instances]
    assert_same(theirs, score_tasks(given, policy=POLICY, bootstrap_iters=DRAWS))
    assert [list(one.resps) for task in given["tasks"].values() for one in task.instances] == before


def test_clusters() -> None:
    given = task_dict([build("gen", "generate_until", 30), build("mc", "multiple_choice", 31)])
    quiet(lm_evaluate, Hashed(), given, bootstrap_iters=0)
    found = score_tasks(given, cluster={"gen": "source"})["evalcore"]["estimates"]
    assert found["gen"]["exact_match,none"]["clusters"] == 10
    assert "clusters" not in found["mc"]["acc,none"]
    with pytest.raises(EvalError, match=r"expected a cluster in the field 'sauce'.* - at gen doc 0"):
        score_tasks(given, cluster="sauce")


def test_refusals() -> None:
    given = task_dict([build("gen", "generate_until", 5)])
    with pytest.raises(EvalError, match=r"build and run them first - at gen"):
        score_tasks(given)
    with pytest.raises(EvalError, match="unknown policy 'lm-eval'; did you mean"):
        score_tasks(given, policy="lm-eval")
    with pytest.raises(EvalError, match="a limit or samples, got both"):
        evaluate(Hashed(), given, limit=1, samples={"gen": [0]})
    with pytest.raises(EvalError, match="confirm_run_unsafe_code=True"):
        evaluate(Hashed(), task_dict([build("gen", "generate_until", 5, unsafe_code=True)]))
    with pytest.raises(EvalError, match=r"what TaskManager\(\).load\(...\) returns"):
        score_tasks({"tasks": ["gsm8k"]})


def test_the_older_nested_mapping() -> None:
    given = task_dict(four_kinds())["tasks"]
    theirs = quiet(lm_evaluate, Hashed(), given, bootstrap_iters=DRAWS)
    assert_same(theirs, score_tasks(given, policy=POLICY, bootstrap_iters=DRAWS))


# --- ranks --------------------------------------------------------------------------------------------------------


def on_ranks(size: int, tasks: Callable[[], Sequence[object]], **run: object) -> list[Plain | None]:
    """The same evaluation on several ranks at once, documents split by lm-eval, replies gathered by its model."""
    meet, out, wrong = Meeting(size), [None] * size, []
    given = [task_dict(tasks()) for _ in range(size)]

    def work(rank: int) -> None:
        try:
            out[rank] = evaluate(Hashed(rank, size, meet), given[rank], **run)
        except BaseException as raised:
            wrong.append(raised)
            meet.barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if wrong:
        raise wrong[0]
    return out


def repeated() -> list[object]:
    return [
        *four_kinds(),
        build("vote", "generate_until", 10, repeats=3, filter_list=VOTE),
        build("own", "generate_until", 21, metric_list=GRADED, process_results=graded),
        build("two", "generate_until", 17, TwoRequests),
    ]


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("policy", ["evalcore", POLICY])
def test_several_ranks_give_the_numbers_of_one(size: int, policy: str) -> None:
    """To the last bit, sample log and all, though ranks have different numbers of documents and are padded."""
    alone = quiet(evaluate, Hashed(), task_dict(repeated()), bootstrap_iters=DRAWS, policy=policy)
    first, *others = quiet(on_ranks, size, repeated, bootstrap_iters=DRAWS, policy=policy)
    assert others == [None] * (size - 1)
    for made in (alone, first):
        for config in made["configs"].values():
            config.pop("custom_dataset")  # a function of each run's own
    assert as_json(first) == as_json(alone)


def filled(size: int, tasks: Callable[[], Sequence[object]]) -> list[object]:
    """The tasks of every rank with their replies; the last request of each got replies to padding as well."""
    out = []
    for rank in range(size):
        for task in tasks():
            quiet(task.build_all_requests, rank=rank, world_size=size)
            ask_model(Hashed(), {task.task_name: task})
            task.instances[-1].resps.extend(task.instances[-1].resps * (rank + 1))
            out.append((task.task_name, task))
    return out


def test_gathering_scores_without_torch() -> None:
    metrics = [*CHOICES[:2], {"metric": "acc_bytes", "aggregation": "median", "higher_is_better": False}]
    tasks = lambda: [build("mc", "multiple_choice", 31, metric_list=metrics)]  # noqa: E731
    (whole,) = filled(1, tasks)
    single = report_task(score_one(*whole).scored)
    parts = [score_one(*one).scored for one in filled(4, tasks)]
    carried = [pickle.loads(pickle.dumps(pack_scores(one))) for one in parts]
    for order in (parts, parts[::-1], [parts[2], *carried], [parts[0], *carried[::-1], *carried]):
        assert fingerprint(report_task(gather_ranks(order))) == fingerprint(single)
    bare = replace(parts[0], columns=())  # a rank whose own documents emitted nothing
    assert fingerprint(report_task(gather_ranks([bare, *carried]))) == fingerprint(single)
    with pytest.raises(EvalError, match="at least one rank"):
        gather_ranks([])
    (other,) = filled(1, lambda: [build("ll", "loglikelihood", 5)])
    with pytest.raises(EvalError, match="expected scores of 'mc' from every rank, got some of 'll'"):
        gather_ranks([parts[0], score_one(*other).scored])


def test_padding_does_not_vote() -> None:
    """lm-eval leaves the replies to padding with the last request, where a majority vote counts them."""
    tasks = lambda: [build("vote", "generate_until", 10, repeats=3, filter_list=VOTE)]  # noqa: E731
    (whole,) = filled(1, tasks)
    task = whole[1]
    assert len(task.instances[-1].resps) > 3
    short = list(chain.from_iterable(one.resps[:3] for one in task.instances))
    clean = tasks()[0]
    quiet(clean.build_all_requests)
    for at, one in enumerate(clean.instances):
        one.resps.extend(short[3 * at : 3 * at + 3])
    assert score_one(*whole).scored.columns == score_one("vote", clean).scored.columns


# --- the documentation --------------------------------------------------------------------------------------------


def test_the_examples_in_the_documentation_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text.partition("## Inside Inspect")[0], re.DOTALL)
    assert len(blocks) >= 4
    exec(compile("\n".join(blocks), "adapters.md", "exec", dont_inherit=True), {"__name__": __name__})
    assert "|echo |Yaml   |none  |     0|exact_match|↑  | 0.75|±  |  0.25|" in capsys.readouterr().out


# --- few-shot draws -------------------------------------------------------------------------------------------


def shots_task(name: str, **more: object) -> ConfigurableTask:
    """A task whose four examples are drawn from twenty."""
    splits = {
        "train": datasets.Dataset.from_list([{"q": f"shot {n}", "a": f"{n}"} for n in range(20)]),
        "test": datasets.Dataset.from_list([{"q": f"question {n}", "a": f"{n}"} for n in range(6)]),
    }
    config = {
        "task": name,
        "custom_dataset": lambda **_: splits,
        "training_split": "train",
        "test_split": "test",
        "doc_to_text": "q",
        "doc_to_target": "a",
        "num_fewshot": 4,
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
        **more,
    }
    return quiet(ConfigurableTask, config=config)


class Silent(LM):
    def generate_until(self, requests: Sequence[object]) -> list[str]:
        return [""] * len(requests)

    loglikelihood = loglikelihood_rolling = generate_until


def prompts(results: Plain) -> dict[str, list[str]]:
    return {name: [row["arguments"][0][0] for row in rows] for name, rows in results["samples"].items()}


def simple(tasks: Mapping[str, ConfigurableTask], patch: pytest.MonkeyPatch, **seeds: int) -> Plain:
    for slow in ("add_env_info", "add_tokenizer_info"):
        patch.setattr(lm_eval.evaluator, slow, lambda *_: None)
    patch.setattr(lm_eval.evaluator, "get_git_commit_hash", lambda: None)
    loader = SimpleNamespace(load=lambda _: {"tasks": tasks, "groups": {}}, task_index={})
    run = lm_eval.evaluator.simple_evaluate
    return quiet(run, model=Silent(), tasks=list(tasks), task_manager=loader, bootstrap_iters=0, **seeds)


@pytest.mark.parametrize("seeds", [{}, {"fewshot_random_seed": 7}])
@pytest.mark.parametrize("policy", ["evalcore", POLICY])
def test_few_shot_draws_are_those_of_simple_evaluate(
    seeds: dict[str, int], policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given() -> dict[str, ConfigurableTask]:
        return {"a": shots_task("a"), "b": shots_task("b", fewshot_config={"sampler": "first_n"})}

    theirs = simple(given(), monkeypatch, **seeds)
    tasks = {"tasks": given(), "groups": {}}
    ours = quiet(evaluate, Silent(), tasks, policy=policy, **seeds)
    assert prompts(ours) == prompts(theirs)
    assert len(set(prompts(ours)["a"])) == 6  # each document has its own examples
    assert ours["evalcore"]["fewshot_seed"] == theirs["config"]["fewshot_seed"]
    assert prompts(quiet(evaluate, Silent(), tasks, **seeds)) == prompts(theirs)  # the same tasks once more
    other = quiet(evaluate, Silent(), {"tasks": given(), "groups": {}}, fewshot_random_seed=8)
    assert prompts(other)["a"] != prompts(theirs)["a"]


def test_a_seed_of_none_keeps_the_generators_of_the_tasks() -> None:
    tasks = {name: {"a": shots_task("a")} for name in ("theirs", "ours")}
    for one in tasks.values():
        one["a"].set_fewshot_seed(99)
    theirs = quiet(lm_evaluate, Silent(), {"tasks": tasks["theirs"], "groups": {}}, bootstrap_iters=0)
    ours = quiet(evaluate, Silent(), {"tasks": tasks["ours"], "groups": {}}, fewshot_random_seed=None)
    assert prompts(ours) == prompts(theirs)
    assert ours["evalcore"]["fewshot_seed"] is None


def test_a_metric_that_nobody_could_load_is_refused_before_the_model_is_asked() -> None:
    """lm-eval asks everything and then calls None."""
    entry = {"metric": "no_such_metric_at_all", "aggregation": "mean", "higher_is_better": True, "hf_evaluate": True}

    class Asked(Silent):
        def generate_until(self, requests: Sequence[object]) -> list[str]:
            raise AssertionError("the model was asked")

    task = shots_task("a", metric_list=[entry])
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        quiet(lm_evaluate, Silent(), {"tasks": {"a": task}, "groups": {}})
    with pytest.raises(EvalError, match=r"metric 'no_such_metric_at_all': .*evaluate could not load one.* - at a"):
        evaluate(Asked(), {"tasks": {"a": task}, "groups": {}})
