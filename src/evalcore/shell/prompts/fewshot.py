"""The few-shot examples of each document: lm-eval's draws, as places in the list of examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from random import Random

from evalcore.core.records.errors import EvalError, place, unknown
from evalcore.shell.prompts.settings import TaskSettings
from evalcore.shell.prompts.templates.compile import Doc

Draw = Callable[[Doc | None], Sequence[Doc]]
"""Gives the examples for a document; a given document must not be among them."""


def choose_examples(settings: TaskSettings, pool: Sequence[Doc]) -> Sequence[Doc]:
    """Choose the examples that ``fewshot_indices`` names, in its order; all if it names none.

    >>> from evalcore.shell.prompts.settings import Shots
    >>> settings = TaskSettings(task="t", fewshot_config=Shots(fewshot_indices=(2, 0)))
    >>> choose_examples(settings, [{"q": 0}, {"q": 1}, {"q": 2}])
    [{'q': 2}, {'q': 0}]
    """
    chosen = settings.fewshot_config.fewshot_indices
    if not chosen:
        return pool
    for i in chosen:
        if type(i) is not int or not 0 <= i < len(pool):
            raise EvalError(f"expected fewshot_indices between 0 and {len(pool) - 1}, got {i!r}{place(settings.task)}")
    return [pool[i] for i in chosen]


def draw_shots(
    settings: TaskSettings, pool: Sequence[Doc], seed: int | None, *, shared: bool = False
) -> Callable[[Doc], Sequence[Doc]]:
    """Draw the examples of one document after another; lm-eval's generator runs on from document to document.

    ``shared``: examples are drawn from the documents that are asked about, so a document may be its own example.

    >>> from evalcore.shell.prompts.settings import Shots
    >>> settings = TaskSettings(task="t", test_split="test", num_fewshot=2, fewshot_config=Shots(sampler="first_n"))
    >>> draw_shots(settings, [{"q": 0}, {"q": 1}, {"q": 2}], 1234)({"q": 0})
    [{'q': 0}, {'q': 1}]
    """
    count = settings.num_fewshot or 0
    sampler = settings.fewshot_config.sampler
    # lm-eval compares them like this, even if neither is given.
    overlap = shared or settings.fewshot_config.split == settings.test_split
    draw = _choose_sampler(settings, sampler, pool, count, seed)

    def drawn(doc: Doc) -> Sequence[Doc]:
        return draw(doc if overlap else None)

    return drawn


def _choose_sampler(settings: TaskSettings, sampler: object, pool: Sequence[Doc], count: int, seed: int | None) -> Draw:
    if sampler == "default":
        rnd = Random(seed)
        return lambda doc: [pool[i] for i in draw_places(rnd, pool, count, doc)]
    if sampler == "first_n":
        return lambda doc: [pool[i] for i in take_places(pool, count, doc)]
    if isinstance(sampler, type):
        return _use_sampler(sampler, pool, count, seed)
    raise unknown("sampler", str(sampler), ("default", "first_n"), place(settings.task))


def draw_places(rnd: Random, pool: Sequence[Doc], count: int, doc: Doc | None = None) -> list[int]:
    """Draw ``count`` places at random, without the document: one more is drawn, and all again if it occurs repeatedly.

    >>> draw_places(Random(7), [{"q": i} for i in range(9)], 3)
    [5, 2, 3]
    """
    wanted = count + 1 if doc else count
    if wanted > len(pool):
        raise _refuse_count(count, len(pool), doc)
    drawn = rnd.sample(range(len(pool)), wanted)
    if not doc:
        return drawn
    kept = [i for i in drawn if pool[i] != doc][:count]
    if len(kept) == count:
        return kept
    others = [i for i, one in enumerate(pool) if one != doc]
    if count > len(others):
        raise _refuse_count(count, len(others), doc)
    return rnd.sample(others, count)


def take_places(pool: Sequence[Doc], count: int, doc: Doc | None = None) -> list[int]:
    """Take the first ``count`` places, without the document.

    >>> take_places([{"q": 0}, {"q": 1}, {"q": 2}], 2, {"q": 0})
    [1, 2]
    """
    taken = list(islice((i for i, one in enumerate(pool) if doc is None or one != doc), count))
    if len(taken) < count:
        raise _refuse_count(count, len(taken), doc)
    return taken


def _use_sampler(sampler: type, pool: Sequence[Doc], count: int, seed: int | None) -> Draw:
    """Use a class in the manner of lm-eval's ``ContextSampler``, made and seeded as lm-eval does."""
    for name in ("set_rnd", "sample"):
        if not hasattr(sampler, name):
            raise EvalError(f"expected a sampler in the manner of lm-eval's ContextSampler, got {sampler!r}")
    made = sampler(list(pool), rnd=None)
    made.set_rnd(seed)
    return lambda doc: list(made.sample(n=count, eval_doc=doc))


def _refuse_count(count: int, there: int, doc: Doc | None) -> EvalError:
    spare = " and one to spare, as the document itself may be among them" if doc else ""
    return EvalError(f"expected at least {count} few-shot examples{spare}, got {there}; lower num_fewshot")
