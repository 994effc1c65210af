"""Documents, answers and scores as short as tests of scoring want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalcore import Answer, Generate, Instance, Likelihood, LogLikelihood, Sample, Scored, Task, score_task
from evalcore.stats import list_outcomes


def heard(*texts: str, doc: int = 0, idx: int = 0, task: str = "t") -> Answer:
    """The answer to one generation request: a text for each repeat."""
    return Answer(Instance(task, doc, idx, Generate("Q"), len(texts)), texts)


def likelihoods(*values: float, choices: Sequence[str] = "abcd", doc: int = 0, task: str = "t") -> list[Answer]:
    """The answers about the choices of one document; a second round of choices is asked without context."""
    asked = [("Q" if i < len(choices) else "", choices[i % len(choices)]) for i in range(len(values))]
    instances = [Instance(task, doc, i, LogLikelihood(*one)) for i, one in enumerate(asked)]
    return [
        Answer(one, (Likelihood(value, True, 1 + one.idx % len(choices)),))
        for one, value in zip(instances, values, strict=True)
    ]


def score_texts(task: Task, texts: Sequence[str | Sequence[str]], golds: Sequence[object], **more: object) -> Scored:
    """A generation task scored over documents 0, 1, ..., with a text or several for each."""
    samples = [Sample(i, gold) for i, gold in enumerate(golds)]  # type: ignore[arg-type]
    several = [(one,) if isinstance(one, str) else one for one in texts]
    return score_task(task, samples, [heard(*one, doc=i, task=task.name) for i, one in enumerate(several)], **more)  # type: ignore[arg-type]


def scores_of(scored: Scored) -> Mapping[tuple[str, str], list[object]]:
    """Every document's score by (metric, filter); what has no score is left out."""
    found = {one.key: [outcome for _, outcome in list_outcomes(one.column)] for one in scored.columns}
    return {key: [one.score for one in outcomes if hasattr(one, "score")] for key, outcomes in found.items()}
