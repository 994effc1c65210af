"""What differs between runs besides their scores: models, prompts, rules, and the fields of unpaired documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evalcore.core.compare.lines import Shared
from evalcore.shell.compare.alike import Alike
from evalcore.shell.logs.runs.run_record import Recorded, rule_of
from evalcore.shell.output.terminal.notes import group_texts

__all__ = ["describe_runs", "explain_pairing", "model_of", "tell_pairs", "tell_settings"]

Plain = Mapping[str, object]

COUNTED = {"zero": "count as 0", "exclude": "are left out"}
MOST = 0.9
"""Less than this share of either run's documents in both is a warning that leads all else."""
NAMED = 5


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
    return (*unlike, *group_texts(examples), *group_texts(prompts))


def explain_pairing(
    labels: tuple[str, str], runs: tuple[Recorded, Recorded], shared: Iterable[Shared], alike: Mapping[str, Alike]
) -> tuple[str, ...]:
    """What leads a comparison: how few documents of a task are paired, or by how little."""
    known = [one for one in shared if one.both or one.only_a or one.only_b]
    few = [_few(labels, one, runs) for one in known if min(one.shares) < MOST]
    some = [_few(labels, one, runs) for one in known if min(one.shares) >= MOST and one.unclear]
    return (
        *_first(few),
        *group_texts((one.task, _alike(alike[one.task])) for one in known if one.task in alike),
        *group_texts((one.task, UNLIKE.format(one.unlike)) for one in known if one.unlike > (1 - MOST) * one.both),
        *group_texts((one.task, BY_ORDER) for one in known if one.by_order > (1 - MOST) * one.both),
        *_first(some),
    )


def _first(told: Sequence[str]) -> tuple[str, ...]:
    more = len(told) - NAMED
    return (*told[:NAMED], *([f"and {more:,} more tasks whose documents are not all paired"] if more > 0 else []))


UNLIKE = (
    "{:,} documents share an id but differ in their target, or in both prompt and content; do both runs use the same"
    " ids?"
)
BY_ORDER = (
    "documents are paired by their order alone, for nothing else tells them apart; declare the id or the prompt (--id, "
    "--prompt) where the answers are scored, or --match other fields"
)


def tell_pairs(shared: Iterable[Shared]) -> tuple[str, ...]:
    """Documents that are the same by nothing but their prompt or id, where these are few."""
    known = list(shared)
    told = "are paired by their prompt alone: their content, or the target, differs"
    return (
        *group_texts((one.task, f"{one.by_prompt:,} documents {told}") for one in known if one.by_prompt),
        *group_texts((one.task, UNLIKE.format(one.unlike)) for one in known if 0 < one.unlike <= (1 - MOST) * one.both),
    )


def counted(count: int) -> str:
    """How many documents there are, and the verb.

    >>> counted(1), counted(1200)
    ('1 document is', '1,200 documents are')
    """
    return f"{count:,} document{' is' if count == 1 else 's are'}"


def _alike(found: Alike) -> str:
    more = f" and {len(found.other) - NAMED} more" if len(found.other) > NAMED else ""
    return (
        f"{counted(found.count)} paired by {', '.join(found.same)} although the runs differ in "
        f"{', '.join(found.other[:NAMED])}{more}, which a model or a scorer may have written; --match FIELD, or --id "
        "and --prompt where answers are scored, say who is who"
    )


def _few(labels: tuple[str, str], one: Shared, runs: tuple[Recorded, Recorded]) -> str:
    counts = (one.both + len(one.only_a), one.both + len(one.only_b))
    of = " and ".join(f"{count:,} of {label}" for count, label in zip(counts, labels, strict=True))
    about = "; all numbers are about these alone" if one.both else ""
    head = f"{one.task}: only {counted(one.both)} paired, of {of}{about}"
    if not (one.only_a and one.only_b):
        return head
    fields = [run.fields.get(one.task, frozenset()) for run in runs]
    return f"{head}. {_ids(labels, one, runs) if one.by_id else _unlike(labels, fields, runs[0].match)}"


def _ids(labels: tuple[str, str], one: Shared, runs: tuple[Recorded, Recorded]) -> str:
    told = []
    for label, run, keys in zip(labels, runs, (one.only_a, one.only_b), strict=True):
        known = {row.key: row.id for row in run.side.documents.get(one.task, ())}
        told.append(f"only {label} has {', '.join(repr(known[key]) for key in keys[:3])}")
    return f"Documents are the same if their id is; {'; '.join(told)}; --match FIELD tells them apart by other fields"


def _unlike(labels: tuple[str, str], fields: Sequence[frozenset[str]], match: Sequence[str]) -> str:
    lone = [
        f"only {label} has the fields {', '.join(sorted(own - other))}"
        for label, own, other in ((labels[0], fields[0], fields[1]), (labels[1], fields[1], fields[0]))
        if own - other
    ]
    both = ", ".join(sorted(fields[0] & fields[1]))
    told = "their prompt is, or all of their content and target"
    same = told if not match else f"their {', '.join(match)} {'is' if len(match) == 1 else 'are'}"
    why = "; ".join(lone) or "both runs' documents have the same fields"
    hint = f"; --match FIELD tells documents apart by these alone, both have {both}" if both else ""
    return f"Documents are the same if {same}; {why}{hint}"


def _common_tasks(runs: Sequence[Recorded]) -> list[str]:
    names = [[one.task.name for one in run.side.scored] for run in runs]
    return [name for name in names[0] if all(name in other for other in names[1:])]


def _shots(run: Recorded, task: str) -> object:
    given = run.results.get("n-shot")
    found = given.get(run.renamed or task) if isinstance(given, Mapping) else None
    return found if isinstance(found, int | str) else None  # a damaged file may have anything here


def _hashes(runs: Sequence[Recorded], task: str) -> set[object]:
    given = [(run.renamed or task, run.results.get("task_hashes")) for run in runs]
    found = [one.get(name) for name, one in given if isinstance(one, Mapping)]
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
