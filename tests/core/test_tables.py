"""Every entry of every table has a doctest, an oracle in these tests and a row in docs/catalogue.md."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import pytest

from evalcore import EVALCORE
from evalcore.core.metrics.dispatch import METRICS
from evalcore.core.metrics.metric import Metric
from evalcore.core.repeats.repeat import ReducerAt
from evalcore.extensions import from_callable

ROOT = Path(__file__).parents[2]

METRIC_TABLES = {str(kind): dict(table) for kind, table in sorted(METRICS.items())}

WITH_K = {name for name, entry in EVALCORE.reducers.items() if isinstance(entry, ReducerAt)}
AGGREGATIONS = {name: (entry.summarise, entry.error) for name, entry in EVALCORE.aggregations.items()}
CALLABLE = from_callable(max)

TABLES: dict[str, dict[str, tuple[Callable[..., object], ...]]] = {
    **{kind: {name: (entry.score,) for name, entry in table.items()} for kind, table in METRIC_TABLES.items()},
    "filters": {name: (entry.make,) for name, entry in EVALCORE.filters.items()},
    "reducers": {
        name: (entry.make if name in WITH_K else entry.reduce or entry.rows,)
        for name, entry in EVALCORE.reducers.items()
    },
    "aggregations": {**AGGREGATIONS, "callable": (CALLABLE.summarise, CALLABLE.error)},
    "averages": {name: (entry,) for name, entry in EVALCORE.averages.items()},
    "group_rules": {
        name: (entry.fold,) for name, entry in EVALCORE.group_rules.set("callable", EVALCORE.group_callable).items()
    },
    "scorers": {name: (entry.score,) for name, entry in EVALCORE.scorers.items()},
}
"""Every table: entry -> the functions behind it."""

LM_TASKS = "tests/agreement/test_lm_eval_tasks.py"
LM_FILTERS = "tests/agreement/test_lm_eval_filters.py"
LM_AGGREGATIONS = "tests/agreement/test_lm_eval_aggregations.py"
PEERS = "tests/agreement/test_oracles.py"
TEXT = "tests/core/test_text_metrics.py"
CORPUS = "tests/core/test_corpus_metrics.py"
HERE = "tests/core/test_entry_oracles.py"

ORACLES = {
    "multiple_choice:acc": f"{LM_TASKS}::test_multiple_choice",
    "multiple_choice:acc_norm": f"{LM_TASKS}::test_multiple_choice",
    "multiple_choice:acc_bytes": f"{LM_TASKS}::test_multiple_choice",
    "multiple_choice:acc_token": f"{HERE}::test_acc_token_by_definition",
    "multiple_choice:acc_mutual_info": f"{LM_TASKS}::test_mutual_information",
    "multiple_choice:exact_match": f"{LM_TASKS}::test_multiple_choice",
    "multiple_choice:f1": f"{LM_TASKS}::test_binary_f1",
    "multiple_choice:mcc": f"{LM_TASKS}::test_multiple_choice",
    "multiple_choice:brier_score": f"{LM_TASKS}::test_brier_score",
    "multiple_choice:likelihood": f"{HERE}::test_choice_prob_and_likelihood_by_definition",
    "multiple_choice:choice_prob": f"{HERE}::test_choice_prob_and_likelihood_by_definition",
    "multiple_choice:ece": f"{HERE}::test_ece_by_its_bins",
    "multiple_choice:acc_all": f"{HERE}::test_acc_all_is_lm_evals",
    "multiple_choice:bypass": f"{HERE}::test_bypass_measures_nothing_as_in_lm_eval",
    "generate_until:acc": "tests/shell/test_letters.py::test_acc_by_letter_counted_by_hand",
    "generate_until:exact_match": f"{TEXT}::test_exact_match_is_lm_evals",
    "generate_until:quasi_exact_match": f"{TEXT}::test_quasi_exact_match_is_equality_of_squad_forms",
    "generate_until:includes": f"{TEXT}::test_includes_is_inspects",
    "generate_until:f1": f"{TEXT}::test_f1_is_squads",
    "generate_until:anls": f"{TEXT}::test_anls_by_definition",
    "generate_until:rouge1": f"{TEXT}::test_rouge_is_rouge_scores",
    "generate_until:rouge2": f"{TEXT}::test_rouge_is_rouge_scores",
    "generate_until:rougeL": f"{TEXT}::test_rouge_is_rouge_scores",
    "generate_until:rougeLsum": f"{TEXT}::test_rouge_is_rouge_scores",
    "generate_until:extraction_rate": f"{HERE}::test_extraction_rate_counts_what_the_pattern_finds",
    "generate_until:bleu": f"{CORPUS}::test_default_scores_are_sacrebleus",
    "generate_until:chrf": f"{CORPUS}::test_default_scores_are_sacrebleus",
    "generate_until:chrf++": f"{CORPUS}::test_default_scores_are_sacrebleus",
    "generate_until:ter": f"{CORPUS}::test_default_scores_are_sacrebleus",
    "generate_until:bypass": f"{HERE}::test_bypass_measures_nothing_as_in_lm_eval",
    "loglikelihood:acc": f"{LM_TASKS}::test_loglikelihood",
    "loglikelihood:perplexity": f"{LM_TASKS}::test_loglikelihood",
    "loglikelihood:acc_all": f"{HERE}::test_acc_all_is_lm_evals",
    "loglikelihood:bypass": f"{HERE}::test_bypass_measures_nothing_as_in_lm_eval",
    "loglikelihood_rolling:word_perplexity": f"{LM_TASKS}::test_rolling",
    "loglikelihood_rolling:byte_perplexity": f"{LM_TASKS}::test_rolling",
    "loglikelihood_rolling:bits_per_byte": f"{LM_TASKS}::test_rolling",
    "loglikelihood_rolling:bypass": f"{HERE}::test_bypass_measures_nothing_as_in_lm_eval",
    "filters:take_first": f"{LM_FILTERS}::test_filters_without_options",
    "filters:take_first_k": f"{LM_FILTERS}::test_take_first_k",
    "filters:majority_vote": f"{LM_FILTERS}::test_majority_vote",
    "filters:regex": f"{LM_FILTERS}::test_regex",
    "filters:letter": "tests/shell/test_letters.py::test_letters_beside_those_a_reader_finds",
    "filters:multi_choice_regex": f"{LM_FILTERS}::test_multi_choice_regex",
    "filters:regex_pos": f"{LM_FILTERS}::test_regex_pos",
    "filters:strip_thinking": f"{HERE}::test_strip_thinking_by_a_regex",
    "filters:remove_whitespace": f"{LM_FILTERS}::test_filters_without_options",
    "filters:lowercase": f"{LM_FILTERS}::test_filters_without_options",
    "filters:uppercase": f"{LM_FILTERS}::test_filters_without_options",
    "filters:strip_punctuation": f"{HERE}::test_strip_punctuation_letter_by_letter",
    "filters:map": f"{LM_FILTERS}::test_map",
    "filters:format_span": f"{LM_FILTERS}::test_format_span_on_entities",
    "filters:custom": f"{LM_FILTERS}::test_custom",
    "reducers:first": f"{HERE}::test_plain_reducers_are_numpys",
    "reducers:last": f"{HERE}::test_plain_reducers_are_numpys",
    "reducers:mean": f"{PEERS}::test_reducers",
    "reducers:median": f"{PEERS}::test_reducers",
    "reducers:min": f"{HERE}::test_plain_reducers_are_numpys",
    "reducers:max": f"{PEERS}::test_reducers",
    "reducers:mode": f"{PEERS}::test_reducers",
    "reducers:variance": f"{HERE}::test_the_variance_of_hits_is_binomial",
    "reducers:consensus": f"{HERE}::test_consensus_and_consistency_by_counting",
    "reducers:consistency": f"{HERE}::test_consensus_and_consistency_by_counting",
    "reducers:pass@": f"{PEERS}::test_pass_k_by_counting",
    "reducers:pass^": f"{PEERS}::test_pass_k_by_counting",
    "reducers:at_least": f"{PEERS}::test_reducers",
    "reducers:maj@": f"{HERE}::test_majority_by_counting",
    "reducers:collect": f"{HERE}::test_collect_keeps_every_score",
    "aggregations:mean": f"{LM_AGGREGATIONS}::test_values",
    "aggregations:nanmean": f"{LM_AGGREGATIONS}::test_nanmean_with_gaps",
    "aggregations:median": f"{PEERS}::test_median_error_is_the_bootstraps",
    "aggregations:perplexity": f"{PEERS}::test_geometric_mean",
    "aggregations:weighted_perplexity": f"{LM_AGGREGATIONS}::test_values",
    "aggregations:bits_per_byte": f"{LM_AGGREGATIONS}::test_values",
    "aggregations:f1": f"{PEERS}::test_f1_of_many_classes",
    "aggregations:matthews_corrcoef": f"{PEERS}::test_matthews_correlation",
    "aggregations:bleu": f"{PEERS}::test_corpus_scores",
    "aggregations:chrf": f"{PEERS}::test_corpus_scores",
    "aggregations:chrf++": f"{PEERS}::test_corpus_scores",
    "aggregations:ter": f"{PEERS}::test_corpus_scores",
    "aggregations:brier_score": f"{PEERS}::test_brier_score",
    "aggregations:acc_all": f"{LM_AGGREGATIONS}::test_acc_all",
    "aggregations:ece": f"{HERE}::test_ece_is_scikit_learns_calibration_curve",
    "aggregations:bypass": f"{LM_AGGREGATIONS}::test_bypass",
    "aggregations:callable": f"{HERE}::test_a_callable_aggregation_is_called_and_bootstrapped",
    "averages:leaves": f"{HERE}::test_averages_of_a_nested_tree_by_hand",
    "averages:children": f"{HERE}::test_averages_of_a_nested_tree_by_hand",
    "group_rules:mean": f"{HERE}::test_the_mean_rule_is_all_documents_or_all_tasks",
    "group_rules:macro": f"{HERE}::test_macro_is_the_average_of_scikit_learns_scores",
    "group_rules:pool": f"{HERE}::test_pool_is_scikit_learns_score_of_all_documents",
    "group_rules:callable": f"{HERE}::test_a_callable_rule_is_called_with_values_and_sizes",
    "scorers:multiple_choice": f"{LM_TASKS}::test_multiple_choice",
    "scorers:generate_until": f"{LM_TASKS}::test_exact_match",
    "scorers:loglikelihood": f"{LM_TASKS}::test_loglikelihood",
    "scorers:loglikelihood_rolling": f"{LM_TASKS}::test_rolling",
}

SECTIONS = {
    **dict.fromkeys(METRIC_TABLES, "Metrics"),
    "scorers": "Metrics",
    "filters": "Filters",
    "reducers": "Repeats",
    "aggregations": "Aggregations",
    "averages": "Groups",
    "group_rules": "Groups",
}

ENTRIES = [(table, name) for table, entries in TABLES.items() for name in sorted(entries)]
EVERY = pytest.mark.parametrize(("table", "name"), ENTRIES, ids=[f"{table}:{name}" for table, name in ENTRIES])
METRIC_ENTRIES = [(table, name) for table, name in ENTRIES if table in METRIC_TABLES]


# --- a doctest ------------------------------------------------------------------------------------------------


def written(function: Callable[..., object]) -> Iterator[Callable[..., object]]:
    """The functions someone wrote for an entry: of a partial or closure, the factory and our functions it holds."""
    while isinstance(function, partial):
        yield from (part for part in function.args if ours(part))
        function = function.func
    factory = function.__qualname__.partition(".<locals>")[0]
    module = sys.modules[function.__module__]
    yield maker(module, factory) if factory.startswith("_") else getattr(module, factory, function)
    for cell in function.__closure__ or ():
        if ours(cell.cell_contents) and "<locals>" not in cell.cell_contents.__qualname__:
            yield cell.cell_contents


def maker(module: ModuleType, name: str) -> Callable[..., object]:
    """The public function that makes partials of a private one."""
    public = [one for key, one in vars(module).items() if inspect.isfunction(one) and not key.startswith("_")]
    return next((one for one in public if f"partial({name}," in inspect.getsource(one)), getattr(module, name))


def ours(part: object) -> bool:
    return hasattr(part, "__qualname__") and str(getattr(part, "__module__", "")).startswith("evalcore.")


@EVERY
def test_doctest(table: str, name: str) -> None:
    for function in (one for given in TABLES[table][name] for one in written(given)):
        where = f"{function.__module__}.{function.__qualname__}"
        text = function.__doc__ or ""
        assert text.strip().partition("\n")[0], f"{where} makes no claim"
        assert doctest.DocTestParser().get_examples(text), f"{where} has no doctest"


# --- an oracle ------------------------------------------------------------------------------------------------


@cache
def definitions(path: str) -> dict[str, ast.stmt]:
    """The functions and constants of a test file by name."""
    tree, out = ast.parse((ROOT / path).read_text(encoding="utf-8")), {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        out |= {str(getattr(target, "id", getattr(target, "name", ""))): node for target in targets}
    return out


def texts_in(path: str, test: str) -> set[str]:
    """Every string in a test, its decorators, and what it uses of its own file."""
    known, seen, todo, found = definitions(path), set(), [test], set()
    while todo:
        name = todo.pop()
        if name in seen or name not in known:
            continue
        seen.add(name)
        for node in ast.walk(known[name]):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            todo += [node.id] if isinstance(node, ast.Name) else []
    return found


@EVERY
def test_oracle(table: str, name: str) -> None:
    assert f"{table}:{name}" in ORACLES, (
        f"{table}:{name} has no oracle: name a test that compares it with something else"
    )
    path, _, test = ORACLES[f"{table}:{name}"].partition("::")
    assert (ROOT / path).is_file(), f"{path} is not there"
    assert isinstance(definitions(path).get(test), ast.FunctionDef), f"{path} defines no {test}"
    assert test.startswith("test_")
    said = texts_in(path, test)
    assert name in said or (name in WITH_K and any(text.startswith(name) for text in said)), f"{test} names no {name!r}"


def test_no_oracle_without_an_entry() -> None:
    assert set(ORACLES) == {f"{table}:{name}" for table, name in ENTRIES}


# --- a row in the catalogue -----------------------------------------------------------------------------------


@cache
def catalogue_rows(section: str) -> list[list[str]]:
    """The cells of every table row of a section."""
    text = (ROOT / "docs" / "catalogue.md").read_text(encoding="utf-8")
    found = re.search(rf"(?ms)^## {section}$(.*?)(?=^## |\Z)", text)
    assert found is not None, f"docs/catalogue.md has no section {section}"
    lines = [line for line in found[1].splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def quoted(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]*)`", cell))


def rows_for(table: str, name: str) -> list[list[str]]:
    rows = [row for row in catalogue_rows(SECTIONS[table]) if shown(name) in quoted(row[0])]
    return [row for row in rows if table in quoted(row[1])] if table in METRIC_TABLES else rows


def shown(name: str) -> str:
    """A reducer with a number is written with its k."""
    return {"at_least": "at_least(k)"}.get(name, f"{name}k") if name in WITH_K else name


@EVERY
def test_catalogue_row(table: str, name: str) -> None:
    assert len(rows_for(table, name)) == 1, (
        f"docs/catalogue.md, section {SECTIONS[table]}: a row for `{shown(name)}` ({table})"
    )


@pytest.mark.parametrize(("table", "name"), METRIC_ENTRIES)
def test_catalogue_rows_of_metrics_are_true(table: str, name: str) -> None:
    entry = METRICS[table][name]
    assert isinstance(entry, Metric)
    (row,) = rows_for(table, name)
    _, _, _, aggregation, better, taken = row
    assert quoted(aggregation) == {entry.aggregation}
    assert better == {True: "higher", False: "lower", None: "-"}[entry.higher_is_better]
    if entry.options is not None:
        assert quoted(taken) == set(entry.options)


@pytest.mark.parametrize("name", sorted(EVALCORE.aggregations))
def test_catalogue_rows_of_aggregations_are_true(name: str) -> None:
    entry = EVALCORE.aggregations[name]
    (row,) = rows_for("aggregations", name)
    expected = {"log": "yes, on the log scale"}.get(entry.link.name, "yes") if entry.average else "no"
    assert row[-1].removesuffix(" |") == expected


def test_every_output_type_has_a_scorer_and_metrics_that_say_which_batch_they_take() -> None:
    assert set(METRICS) == set(EVALCORE.scorers)
    for table in METRICS.values():
        assert len({entry.build for entry in table.values()} - {None}) == 1
        assert all(entry.build is not None for entry in table.values())
