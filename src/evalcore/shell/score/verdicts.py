"""Scores that a log has already, taken as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from evalcore.core.records.errors import EvalError, place, unknown
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import GENERATE_UNTIL, Failure, freeze_options
from evalcore.core.records.task import MetricKey, MetricSpec, Pipeline, Task, config_of, describe_metric
from evalcore.core.tables import EVALCORE, first_or_all
from evalcore.shell.logs.log import RECORDED, Logged, LogTask
from evalcore.shell.score.rules import Rules

Plain = Mapping[str, object]
SHARES = "recorded_shares"
"""The config key that names the recorded scores that were always 0 or 1."""
NO_SCORE = "no score was recorded"
REDUCE = "name a reducer: --reducer mean, median, max, pass@1, first, ..."
OTHERS = "--only NAME scores the tasks of that name alone"


def find_scores(log: LogTask, names: Sequence[str]) -> tuple[MetricKey, ...]:
    """Find recorded scores by name: a metric under every filter that has it, or one ``metric,filter``."""
    known = list_known_scores(log, names)
    if known is None:
        return tuple(map(MetricKey, names))
    for name in names:
        if not known:
            told = f"{log.path} has no recorded scores, and so no {name!r}; --metric NAME scores its answers"
            raise EvalError(f"{told}, {OTHERS}{place(log.name)}")
        if not _named(name, known):
            shown = dict.fromkeys([*map(_metric, known), *known])
            raise unknown("recorded score", name, shown, f"; {OTHERS}{place(log.name)}")
    return tuple(dict.fromkeys(parse_key(key) for name in names for key in _named(name, known)))


def list_known_scores(log: LogTask, names: Sequence[str]) -> tuple[str, ...] | None:
    """List the recorded scores of a log, from its first document or, if these are not all, from every one."""
    first = find_first_scored(log)
    known = dict.fromkeys(first.scores if first is not None else ())
    if all(_named(name, known) for name in names):
        return tuple(known)
    each = (one.scores for one in log.rows() if isinstance(one, Logged))  # one document at a time in memory
    some = next(each, None)
    return None if some is None else tuple(dict.fromkeys(key for scores in chain((some,), each) for key in scores))


def share_scores(logs: Sequence[LogTask], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Share names out to the logs that have them; a log that has none gets all, and each name needs a log."""
    if len(names) < 2 or len(logs) < 2:
        return [tuple(names)] * len(logs)
    known = [None if log.reader.tabular else list_known_scores(log, names) for log in logs]
    lost = [name for name in names if not any(one is None or _named(name, one) for one in known)]
    if lost:
        raise unknown("recorded score", lost[0], {_metric(key) for one in known for key in one or ()})
    own = [tuple(name for name in names if one is None or _named(name, one)) for one in known]
    return [found or tuple(names) for found in own]


def find_first_scored(log: LogTask) -> Logged | None:
    """Find the first document with recorded scores; one that ended in an error has none."""
    return next((one for one in log.rows() if isinstance(one, Logged) and one.scores), None)


def _named(name: str, known: Iterable[str]) -> list[str]:
    """The keys that a name stands for.

    >>> [_named(one, ["acc,none", "em,strict", "em,loose"]) for one in ("em", "em,loose", "acc", "a")]
    [['em,strict', 'em,loose'], ['em,loose'], ['acc,none'], []]
    """
    exact = [key for key in known if key in (name, f"{name},none")]
    return exact if "," in name and exact else [key for key in known if _metric(key) == name]


def make_verdict_task(
    task: Task, rules: Rules, keys: Sequence[MetricKey], pointed: Mapping[str, bool] = FrozenDict()
) -> Task:
    """Make a task that measures by recorded scores: its own metrics of these names, else means, under their filters.

    ``pointed`` are directions that the log declares.

    >>> made = make_verdict_task(Task("t", GENERATE_UNTIL), Rules(reducers=("mean",)), [MetricKey("em", "strict")])
    >>> made.filters[0].name, made.metrics[0].reducers, made.config["repeat_cfg"]["reducer"]
    ('strict', ('mean',), ('mean',))
    """
    known = {spec.name: spec for spec in (*task.metrics, *(one for f in task.filters for one in f.metrics or ()))}
    specs = {
        key.metric: known.get(key.metric) or MetricSpec(key.metric, "mean", (), pointed.get(key.metric)) for key in keys
    }
    metrics = {
        name: replace(one, reducers=rules.reducers or one.reducers, function=None) for name, one in specs.items()
    }
    plain = replace(task, output_type=GENERATE_UNTIL, metrics=tuple(metrics.values()), filters=())
    below: dict[str, tuple[MetricSpec, ...]] = {}
    for key in keys:
        below[key.filter] = (*below.get(key.filter, ()), metrics[key.metric])
    filters = () if list(below) == ["none"] else tuple(_pipeline(plain, name, one) for name, one in below.items())
    config = freeze_options(_said(task, replace(plain, filters=filters)))
    return replace(plain, filters=filters, process_results=give_scores, config=config)


def _pipeline(task: Task, name: str, metrics: tuple[MetricSpec, ...]) -> Pipeline:
    return replace(first_or_all(task, EVALCORE), name=name, metrics=metrics)


def _said(task: Task, made: Task) -> Plain:
    """A config from which results can be read again: it names metrics, filters and reducers, and has no code."""
    named = [(one.name, [describe_metric(spec) for spec in one.metrics or ()]) for one in made.filters]
    reducers = list(dict.fromkeys(name for spec in made.metrics for name in spec.reducer_names))
    repeats = task.config.get("repeat_cfg")
    return {
        **config_of(task),
        **task.config,
        "metric_list": list(map(describe_metric, made.metrics)),
        "filter_list": [{"name": name, "filter": [], "metric_list": found} for name, found in named],
        "process_results": RECORDED,
        **(
            {"repeat_cfg": {**(repeats if isinstance(repeats, Mapping) else {}), "reducer": reducers}}
            if reducers
            else {}
        ),
    }


def give_scores(doc: dict[str, object], results: list[object]) -> Plain:
    """Give the scores that a reply is."""
    found = results[0]
    return dict(found) if isinstance(found, tuple) else {}


def name_scores(one: Logged) -> tuple[str, ...]:
    """Name the metrics for which a document has recorded scores.

    >>> name_scores(Logged(doc_id=0, doc=b"{}", gold=None, scores={"acc,none": 1, "acc,strict": 0, "correct": [1]}))
    ('acc', 'correct')
    """
    return tuple(dict.fromkeys(_metric(key) for key in one.scores))


def list_verdicts(one: Logged, keys: Sequence[MetricKey]) -> dict[str, tuple[object, ...]]:
    """List the recorded scores of a document by filter, (metric, score) for each repeat; a failure if it has none.

    >>> row = Logged(doc_id=0, doc=b"{}", gold=None, replies=(("a", "b"),), scores={"correct,none": [True, False]})
    >>> list_verdicts(row, [MetricKey("correct")])
    {'none': ((('correct', True),), (('correct', False),))}
    >>> list_verdicts(row, [MetricKey("right")])
    {'none': (Failure(reason='no score was recorded'),)}
    """
    out: dict[str, tuple[object, ...]] = {}
    for name in dict.fromkeys(key.filter for key in keys):
        found = {key.metric: list_values(one, key) for key in keys if key.filter == name}
        most = max(map(len, found.values()))
        told = {metric: values or (None,) * most for metric, values in found.items()}
        rows = ([(metric, values[at]) for metric, values in told.items() if at < len(values)] for at in range(most))
        out[name] = tuple(map(tuple, rows)) or (Failure(_why(one)),)
    return out


def refuse_several(task: Task, one: Logged, verdicts: Mapping[str, tuple[object, ...]]) -> None:
    """Refuse several scores of a document where no reducer says what becomes of them."""
    metrics = {spec.name for spec in task.metrics if not spec.reducers}
    for rows in verdicts.values():
        found = {name for row in rows[1:] if isinstance(row, tuple) for name, _ in row} & metrics
        if found:
            told = f"expected one score for each document, or a reducer, got {len(rows)} scores for {min(found)}"
            raise EvalError(f"{told}; {REDUCE}{place(task.name, one.doc_id)}")


def _why(one: Logged) -> str:
    failed = (reply.reason for replies in one.replies for reply in replies if isinstance(reply, Failure))
    return next(failed, NO_SCORE)


def list_values(one: Logged, key: MetricKey) -> Sequence[object]:
    """List a recorded score of a document, one for each repeat; empty if it has none."""
    text = next((text for text in one.scores if parse_key(text) == key), None)
    if text is None:
        return ()
    value, replies = one.scores[text], len(one.replies[0]) if one.replies else 0
    several = isinstance(value, list | tuple) and (len(value) == replies > 1 or not replies)
    return value if several and isinstance(value, list | tuple) else (value,)


def list_beyond_share(one: Logged, keys: Iterable[MetricKey]) -> Iterator[str]:
    """List the metrics of a document with scores other than 0 and 1.

    >>> row = Logged(doc_id=0, doc=b"{}", gold=None, scores={"a": True, "b": 0.5})
    >>> list(list_beyond_share(row, map(MetricKey, "ab")))
    ['b']
    """
    for key in keys:
        if not all(value is None or value in (0, 1) for value in list_values(one, key)):
            yield key.metric


def count_lost_epochs(one: Logged, keys: Iterable[MetricKey], *, unanswered: bool = True) -> int:
    """Count the repeats of a document without an answer and without these scores, if others have them.

    Without ``unanswered``, it does not matter whether they have an answer.

    >>> row = Logged(doc_id=0, doc=b"{}", gold=None, replies=(("a", Failure("e")),), scores={"correct,none": [1, None]})
    >>> count_lost_epochs(row, [MetricKey("correct")])
    1
    >>> row = Logged(doc_id=0, doc=b"{}", gold=None, scores={"correct,none": [1, None]})
    >>> count_lost_epochs(row, [MetricKey("correct")], unanswered=False)
    1
    """
    said = one.replies[0] if one.replies else ()
    failed = [at for at, reply in enumerate(said) if isinstance(reply, Failure)]
    if unanswered and len(failed) == len(said):
        return 0
    given = [list_values(one, key) for key in keys] if failed or not unanswered else []
    places = failed if unanswered else range(max(map(len, given), default=0))
    lost = sum(all(at >= len(values) or values[at] is None for values in given) for at in places)
    return lost if unanswered or lost < len(places) else 0


def _metric(key: str) -> str:
    return parse_key(key).metric


def parse_key(text: str) -> MetricKey:
    """Parse the name of a logged score.

    >>> parse_key("acc,strict"), parse_key("correct")
    (MetricKey(metric='acc', filter='strict'), MetricKey(metric='correct', filter='none'))
    """
    return MetricKey.parse(text) or MetricKey(text)
