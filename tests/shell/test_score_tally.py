"""``score --tally``: the same numbers from counts of equal scores."""

from __future__ import annotations

import json

import pytest

from evalcore import EvalError, score
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.shell.cli import main
from evalcore.shell.score.units.merge import merge
from evalcore.shell.score.units.partial_scores import score_partials


@pytest.fixture
def table(tmp_path):
    """Answers, some of them missing, with a loss that is different almost everywhere, and two subjects."""
    lines = [
        {
            "id": i,
            "reply": None if i % 50 == 7 else str(i % 3),
            "gold": str(i % 2),
            "loss": (i * 7919 % 100_003) / 100_003,
            "subject": ("art", "law")[i % 5 == 0],
        }
        for i in range(70_000)
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def numbers(result):
    """What results say of tasks and groups, errors to twelve digits."""
    rows = {**result.results["results"], **result.results.get("groups", {})}
    return {
        name: {key: float(f"{value:.12g}") if isinstance(value, float) else value for key, value in row.items()}
        for name, row in rows.items()
    }


@pytest.mark.parametrize("engine", ["serial", pytest.param("processes", marks=pytest.mark.slow)])
def test_the_same_numbers(table, engine):
    """Tasks and their group, right and wrong, documents without an answer, and what was lost."""
    keys = {"answer": "reply", "gold": "gold", "id": "id", "group_by": "subject", "metric": "exact_match"}
    kept, tallied = score(table, **keys), score(table, **keys, tally=True, engine=engine)
    assert numbers(kept) == numbers(tallied)
    assert kept.bounds == tallied.bounds
    assert kept.complete == tallied.complete
    assert kept.warnings == tallied.warnings
    assert all(len(column) < 5 for task in tallied.report.tasks for _, column in task.columns)
    assert [task.n_docs for task in tallied.report.tasks] == [task.n_docs for task in kept.report.tasks]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_sums_of_many_different_scores(table, engine):
    """The mean, its error and its interval, where hardly two scores are the same."""
    keys = {"score": "loss", "id": "id", "lower_is_better": "loss", "bounds": "loss=0,1"}
    kept, tallied = score(table, **keys), score(table, **keys, tally=True, engine=engine)
    assert numbers(kept) == numbers(tallied)
    assert [len(column) for _, column in tallied.report.tasks[0].columns] == [1]


LOSSES = {"score": "loss", "lower_is_better": "loss"}


@pytest.mark.slow
@pytest.mark.parametrize("keys", [{"answer": "reply", "gold": "gold"}, LOSSES])
def test_any_split_gives_the_same_bytes(table, tmp_path, keys):
    """Engines and partial scores, of units that are tallied and of others that are too small for it."""
    made = [score(table, id="id", tally=True, **keys), score(table, id="id", tally=True, engine="processes", **keys)]
    for unit in (1 << 19, 3 << 20):
        score_partials(table, id="id", tally=True, unit=unit, partials=tmp_path / f"{unit}", **keys)
        made.append(merge(tmp_path / f"{unit}"))
    assert len({json.dumps(thaw_dict(one.results)) for one in made}) == 1


def test_what_needs_documents_ends_with_an_error(table, capsys):
    """Resampled intervals and clusters say what to do."""
    given = [str(table), "--answer", "reply", "--gold", "gold", "--id", "id", "--quiet", "--tally"]
    for more, told in ((["--ci", "bca"], "the interval bca"), (["--cluster", "subject"], "clusters")):
        assert main(["score", *given, *more]) == 2
        assert f"but {told} must know which documents have it; score without tally" in capsys.readouterr().err
    with pytest.raises(EvalError, match="the aggregation mean must know which documents have it"):
        score(table, score="loss", id="id", policy="lm-eval-0.4.13", tally=True)
