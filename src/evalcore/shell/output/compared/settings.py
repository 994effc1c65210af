"""What differs between runs besides their scores: models, prompts, rules, and the fields of unpaired documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evalcore.core.comparison import Shared
from evalcore.shell.output.notes import grouped
from evalcore.shell.recorded import Recorded
from evalcore.shell.recorded.reading import rule_of

__all__ = ["describe_runs", "explain_pairing", "model_of", "tell_settings"]

Plain = Mapping[str, object]

COUNTED = {"zero": "count as 0", "exclude": "are left out"}
FEW = 0.5
"""Less than this share of the smaller run's documents in both needs an explanation."""


def model_of(results: Plain) -> str:
    """The model of a run as its results name it, empty if they do not.

    >>> model_of({"model_name": "org/m", "model_source": "hf"}), model_of({"config": {"model": "hf"}}), model_of({})
    ('org/m (hf)', 'hf', '')
    """
    config = results.get("config")
    old = config if isinstance(config, Mapping) else {}
    name, source = results.get("model_name"), results.get("model_source") or old.get("model")
    told = [one for one in (name or old.get("model_args"), source) if isinstance(one, str) and one]
    return f"{told[0]} ({told[1]})" if len(told) == 2 and told[0] != told[1] else "".join(told[:1])


def describe_runs(runs: Sequence[Recorded]) -> tuple[str, ...]:
    """For each run the model and the number of examples in its prompts, where these are not the same in all."""
    tasks = _common_tasks(runs)
    models = [model_of(run.results) for run in runs]
    shots = [{_shots(run, task) for task in tasks} for run in runs]
    told = [next(iter(one)) if len(one) == 1 else None for one in shots]
    unlike = len(set(told)) > 1 and None not in told
    parts = (
        models if len(set(models)) > 1 else [""] * len(runs),
        [f"{one}-shot" if unlike else "" for one in told],
    )
    return tuple(", ".join(filter(None, both)) for both in zip(*parts, strict=True))


def tell_settings(labels: Sequence[str], runs: Sequence[Recorded]) -> tuple[str, ...]:
    """Other numbers of examples, other prompts, other rules for documents without a score."""
    rules = [rule_of(run.results) for run in runs]
    spelled = (f"{COUNTED[rule]} in {label} (on_unscorable: {rule})" for label, rule in zip(labels, rules, strict=True))
    tasks = _common_tasks(runs)
    shots = {task: [_shots(run, task) for run in runs] for task in tasks}
    other = {task for task, counts in shots.items() if len(set(counts)) > 1 and None not in counts}
    examples = (
        (task, "n-shot differs: " + ", ".join(f"{n} in {label}" for n, label in zip(shots[task], labels, strict=True)))
        for task in tasks
        if task in other
    )
    prompts = (
        (task, "prompts differ: the task hashes do, while documents and n-shot are the same")
        for task in tasks
        if task not in other and len(_hashes(runs, task)) > 1 and _same_rows(runs, task)
    )
    unlike = [f"documents without a score {', '.join(spelled)}"] if len(set(rules)) > 1 else []
    return (*unlike, *grouped(examples), *grouped(prompts))


def explain_pairing(
    labels: tuple[str, str], runs: tuple[Recorded, Recorded], shared: Iterable[Shared]
) -> tuple[str, ...]:
    """For each task of which few documents are in both runs, the fields that only one run's documents have."""
    return grouped(
        (one.task, _unlike(labels, [run.fields.get(one.task, frozenset()) for run in runs], runs[0].match))
        for one in shared
        if one.both < FEW * (one.both + min(len(one.only_a), len(one.only_b)))
    )


def _unlike(labels: tuple[str, str], fields: Sequence[frozenset[str]], match: Sequence[str]) -> str:
    lone = [
        f"only {label} has the fields {', '.join(sorted(own - other))}"
        for label, own, other in ((labels[0], fields[0], fields[1]), (labels[1], fields[1], fields[0]))
        if own - other
    ]
    both = ", ".join(sorted(fields[0] & fields[1]))
    same = "all of their content and their target" if not match else f"their {', '.join(match)}"
    why = "; ".join(lone) or "both runs' documents have the same fields"
    hint = f"; --match FIELD tells documents apart by these alone, both have {both}" if both else ""
    return f"few documents pair: they are the same if {same} is; {why}{hint}"


def _common_tasks(runs: Sequence[Recorded]) -> list[str]:
    names = [[one.task.name for one in run.side.scored] for run in runs]
    return [name for name in names[0] if all(name in other for other in names[1:])]


def _shots(run: Recorded, task: str) -> object:
    given = run.results.get("n-shot")
    found = given.get(task) if isinstance(given, Mapping) else None
    return found if isinstance(found, int | str) else None  # a damaged file may have anything here


def _hashes(runs: Sequence[Recorded], task: str) -> set[object]:
    given = [run.results.get("task_hashes") for run in runs]
    found = [one.get(task) for one in given if isinstance(one, Mapping)]
    return {one for one in found if isinstance(one, str) and one}


def _same_rows(runs: Sequence[Recorded], task: str) -> bool:
    """Whether all runs logged the same documents whole, in the same order, under the same filters."""
    documents = {tuple(row.content for row in run.side.documents.get(task, ())) for run in runs}
    filters = {
        frozenset(
            column.key.filter for scored in run.side.scored if scored.task.name == task for column in scored.columns
        )
        for run in runs
    }
    return len(documents) == len(filters) == 1 and not any(run.match for run in runs)
