"""What differs between runs besides their scores: models, prompts, rules, and the fields of unpaired documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evalcore.core.compare.lines import Shared
from evalcore.shell.compare.alike import Alike
from evalcore.shell.compare.prompt_changes import tell_arguments, tell_prompts
from evalcore.shell.logs.runs.run_record import Recorded, find_rule
from evalcore.shell.output.terminal.notes import group_texts

Plain = Mapping[str, object]

COUNTED = {"zero": "count as 0", "exclude": "are left out"}
MOST = 0.9
"""Less than this share of either run's documents in both is a warning that leads all else."""
NAMED = 5
FEW = 3
"""The most ids that are named."""


def find_model(results: Plain) -> str:
    """The model of a run as its results name it, empty if they do not.

    >>> find_model({"model_name": "org/m", "model_source": "hf"}), find_model({"config": {"model": "hf"}})
    ('org/m (hf)', 'hf')
    """
    config = results.get("config")
    old = config if isinstance(config, Mapping) else {}
    name, source = results.get("model_name"), results.get("model_source") or old.get("model")
    names = [one for one in (name or old.get("model_args"), source) if isinstance(one, str) and one]
    return f"{names[0]} ({names[1]})" if len(names) == 2 and names[0] != names[1] else "".join(names[:1])


def describe_runs(runs: Sequence[Recorded]) -> tuple[str, ...]:
    """The model of each run and the number of examples in its prompts, if the runs differ in these."""
    tasks = _list_common_tasks(runs)
    models = [find_model(run.results) for run in runs]
    shots = [{_find_shots(run, task) for task in tasks} for run in runs]
    counts = [next(iter(some)) if len(some) == 1 else None for some in shots]
    unlike = len(set(counts)) > 1 and None not in counts
    parts = (
        models if len(set(models)) > 1 else [""] * len(runs),
        [f"{count}-shot" if unlike else "" for count in counts],
    )
    return tuple(", ".join(filter(None, both)) for both in zip(*parts, strict=True))


def tell_twins(labels: Sequence[str], paths: Sequence[object]) -> tuple[str, ...]:
    """Runs that were named twice, of which nothing can be learned.

    >>> tell_twins("ABC", ["runs/a", "runs/b", "runs/a"])
    ('A and C are the same run: runs/a',)
    """
    first = {path: label for label, path in zip(reversed(labels), reversed(paths), strict=True)}
    pairs = ((first[path], label, path) for label, path in zip(labels, paths, strict=True))
    return tuple(f"{one} and {other} are the same run: {path}" for one, other, path in pairs if one != other)


def tell_settings(labels: Sequence[str], runs: Sequence[Recorded]) -> tuple[str, ...]:
    """Other numbers of examples, other prompts and generation arguments, other rules for documents without a score."""
    rules = [find_rule(run.results) for run in runs]
    spelled = (f"{COUNTED[rule]} in {label} (on_unscorable: {rule})" for label, rule in zip(labels, rules, strict=True))
    tasks = _list_common_tasks(runs)
    shots = {task: [_find_shots(run, task) for run in runs] for task in tasks}
    other = {task for task, counts in shots.items() if len(set(counts)) > 1 and None not in counts}
    examples = (
        (task, "n-shot differs: " + ", ".join(f"{n} in {label}" for n, label in zip(shots[task], labels, strict=True)))
        for task in tasks
        if task in other
    )
    prompts = ((task, told) for task in tasks if task not in other and (told := _tell_prompts(runs, task)))
    arguments = ((task, told) for task in tasks if (told := tell_arguments(labels, runs, task)))
    unlike = [f"documents without a score {', '.join(spelled)}"] if len(set(rules)) > 1 else []
    return (*unlike, *group_texts(examples), *group_texts(prompts), *group_texts(arguments))


def _tell_prompts(runs: Sequence[Recorded], task: str) -> str | None:
    """Say that prompts differ: by the rows of logs, else by the hashes of results."""
    hashed = len(_collect_hashes(runs, task)) > 1 and _has_same_rows(runs, task)
    by_hash = "prompts differ: the task hashes do, while documents and n-shot are the same" if hashed else None
    return tell_prompts(runs, task) or by_hash


def explain_pairing(
    labels: tuple[str, str],
    runs: tuple[Recorded, Recorded],
    shared: Iterable[Shared],
    alike: Mapping[str, Alike],
    *,
    most: int | None = None,
) -> tuple[str, ...]:
    """What a reader must know first: tasks of which few documents are paired, or paired by little.

    Ids of documents that are not paired are named, but no more than ``most``.
    """
    ids = FEW if most is None else min(most, FEW)
    known = [one for one in shared if one.both or one.only_a or one.only_b]
    few = [_tell_few(labels, one, runs, ids) for one in known if min(one.shares) < MOST]
    some = [_tell_few(labels, one, runs, ids) for one in known if min(one.shares) >= MOST and one.unclear]
    return (
        *_cut_first(few),
        *group_texts((one.task, _tell_alike(alike[one.task])) for one in known if one.task in alike),
        *group_texts((one.task, UNLIKE.format(one.unlike)) for one in known if one.unlike > (1 - MOST) * one.both),
        *group_texts((one.task, BY_ORDER) for one in known if one.by_order > (1 - MOST) * one.both),
        *_cut_first(some),
    )


def _cut_first(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - NAMED
    return (*lines[:NAMED], *([f"and {more:,} more tasks whose documents are not all paired"] if more > 0 else []))


UNLIKE = (
    "{:,} documents share an id but differ in their target, or in both prompt and content; do both runs use the same"
    " ids?"
)
BY_ORDER = (
    "documents are paired by their order alone, for nothing else tells them apart; declare the id or the prompt (--id, "
    "--prompt) where the answers are scored, or --match other fields"
)


def tell_pairs(shared: Iterable[Shared]) -> tuple[str, ...]:
    """Documents paired by their prompt alone, or by an id alone where these are few."""
    known = list(shared)
    alone = "are paired by their prompt alone: their content, or the target, differs"
    return (
        *group_texts((one.task, f"{one.by_prompt:,} documents {alone}") for one in known if one.by_prompt),
        *group_texts((one.task, UNLIKE.format(one.unlike)) for one in known if 0 < one.unlike <= (1 - MOST) * one.both),
    )


def count_documents(count: int) -> str:
    """A number of documents, with its verb.

    >>> count_documents(1), count_documents(1200)
    ('1 document is', '1,200 documents are')
    """
    return f"{count:,} document{' is' if count == 1 else 's are'}"


def _tell_alike(alike: Alike) -> str:
    more = f" and {len(alike.other) - NAMED} more" if len(alike.other) > NAMED else ""
    return (
        f"{count_documents(alike.count)} paired by {', '.join(alike.same)} although the runs differ in "
        f"{', '.join(alike.other[:NAMED])}{more}, which a model or a scorer may have written; --match FIELD, or --id "
        "and --prompt where answers are scored, say who is who"
    )


def _tell_few(labels: tuple[str, str], shared: Shared, runs: tuple[Recorded, Recorded], most: int) -> str:
    counts = (shared.both + len(shared.only_a), shared.both + len(shared.only_b))
    of = " and ".join(f"{count:,} of {label}" for count, label in zip(counts, labels, strict=True))
    about = "; all numbers are about these alone" if shared.both else ""
    head = f"{shared.task}: only {count_documents(shared.both)} paired, of {of}{about}"
    if not (shared.only_a and shared.only_b):
        return head
    if shared.by_id:
        return f"{head}. {_tell_ids(labels, shared, runs, most)}"
    fields = [run.fields.get(shared.task, frozenset()) for run in runs]
    return f"{head}. {_tell_unlike(labels, fields, runs[0].match)}"


def _tell_ids(labels: tuple[str, str], shared: Shared, runs: tuple[Recorded, Recorded], most: int) -> str:
    lone = []
    for label, run, keys in zip(labels, runs, (shared.only_a, shared.only_b), strict=True):
        known = {row.key: row.id for row in run.side.documents.get(shared.task, ())}
        named = ", ".join(repr(known[key]) for key in keys[:most]) or f"{len(keys):,} other{'s' * (len(keys) != 1)}"
        lone.append(f"only {label} has {named}")
    return f"Documents are the same if their id is; {'; '.join(lone)}; --match FIELD tells them apart by other fields"


def _tell_unlike(labels: tuple[str, str], fields: Sequence[frozenset[str]], match: Sequence[str]) -> str:
    lone = [
        f"only {label} has the fields {', '.join(sorted(own - other))}"
        for label, own, other in ((labels[0], fields[0], fields[1]), (labels[1], fields[1], fields[0]))
        if own - other
    ]
    both = ", ".join(sorted(fields[0] & fields[1]))
    usual = "their prompt is, or all of their content and target"
    same = usual if not match else f"their {', '.join(match)} {'is' if len(match) == 1 else 'are'}"
    why = "; ".join(lone) or "both runs' documents have the same fields"
    hint = f"; --match FIELD tells documents apart by these alone, both have {both}" if both else ""
    return f"Documents are the same if {same}; {why}{hint}"


def _list_common_tasks(runs: Sequence[Recorded]) -> list[str]:
    names = [[one.task.name for one in run.side.scored] for run in runs]
    return [name for name in names[0] if all(name in other for other in names[1:])]


def _find_shots(run: Recorded, task: str) -> object:
    given = run.results.get("n-shot")
    shots = given.get(run.renamed or task) if isinstance(given, Mapping) else None
    return shots if isinstance(shots, int | str) else None  # a damaged file may have anything here


def _collect_hashes(runs: Sequence[Recorded], task: str) -> set[object]:
    given = [(run.renamed or task, run.results.get("task_hashes")) for run in runs]
    hashes = [some.get(name) for name, some in given if isinstance(some, Mapping)]
    return {one for one in hashes if isinstance(one, str) and one}


def _has_same_rows(runs: Sequence[Recorded], task: str) -> bool:
    """Whether all runs logged the same documents whole, in the same order, under the same filters."""
    documents = {tuple(row.content for row in run.side.documents.get(task, ())) for run in runs}
    filters = {
        frozenset(
            column.key.filter for scored in run.side.scored if scored.task.name == task for column in scored.columns
        )
        for run in runs
    }
    return len(documents) == len(filters) == 1 and not any(run.match for run in runs)
