"""A model of transformers beside lm-eval's HFLM: the same requests, weights, threads, dtype and batch size.

Each side is a process of its own, timed by the clock from its first request to its last reply; the model is loaded
before. Tokens are counted by a hook on the model's forward, padding among them.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace

import msgspec

from bench.measure import run_python
from bench.rows import Row, at_least, at_most
from evalcore.core.records.request import Generate, LogLikelihood, Request, freeze_options
from evalcore.shell.models.hf.hf_loader import open_hf
from evalcore.shell.models.model import Heard, Question

STORY = (
    "the river old garden stone window letter morning quiet market bridge winter paper silver captain music field door "
    "yellow history island teacher kitchen forest machine summer evening castle answer village pocket feather"
)
WORDS = STORY.split()
Shape = Callable[[Random, int], Iterator[Request]]


def write_words(rng: Random, count: int) -> str:
    return " ".join(rng.choices(WORDS, k=count))


def write_question(rng: Random, answer: str) -> str:
    choices = "".join(f"{letter}. {write_words(rng, 4)}\n" for letter in "ABCD")
    return f"Question: {write_words(rng, 14)}?\n{choices}Answer:{answer}\n\n"


def list_letters(rng: Random, documents: int) -> Iterator[Request]:
    """MMLU's shape: five shots, the same for all, and four choices of one token."""
    shots = "".join(write_question(rng, f" {letter}") for letter in "ABCDA")
    for _ in range(documents):
        context = (shots + write_question(rng, "")).rstrip()
        yield from (LogLikelihood(context, f" {letter}") for letter in "ABCD")


def list_endings(rng: Random, documents: int) -> Iterator[Request]:
    """HellaSwag's shape: no shots, four long choices."""
    for _ in range(documents):
        context = f"{write_words(rng, 30)}."
        yield from (LogLikelihood(context, f" {write_words(rng, 18)}.") for _ in range(4))


def list_shot_endings(rng: Random, documents: int) -> Iterator[Request]:
    """Five shots, drawn anew for each document, and four long choices."""
    pool = [f"{write_words(rng, 30)}. {write_words(rng, 18)}.\n\n" for _ in range(40)]
    for _ in range(documents):
        context = "".join(rng.sample(pool, 5)) + f"{write_words(rng, 30)}."
        yield from (LogLikelihood(context, f" {write_words(rng, 18)}.") for _ in range(4))


def list_texts(rng: Random, documents: int) -> Iterator[Request]:
    """GSM8K's shape: eight shots, the same for all, and a text of 64 tokens."""
    shots = "".join(f"Question: {write_words(rng, 40)}?\nAnswer: {write_words(rng, 30)}.\n\n" for _ in range(8))
    for _ in range(documents):
        prompt = f"{shots}Question: {write_words(rng, 40)}?\nAnswer:"
        yield Generate(prompt, freeze_options({"until": ["</never>"], "max_gen_toks": 64, "do_sample": False}))


SHAPES: dict[str, tuple[Shape, str, float]] = {
    "letters": (list_letters, "five fixed shots, four one-token choices", 5.0),
    "endings": (list_endings, "no shots, four long choices", 1.7),
    "shot_endings": (list_shot_endings, "five random shots, four long choices", 3.0),
    "texts": (list_texts, "eight fixed shots, 64 new tokens", 2.0),
}
"""Requests, what they are, and the least ratio that is promised."""


class Side(msgspec.Struct, frozen=True):
    """What a side took, and what came out."""

    seconds: float
    tokens: int
    memory: float
    replies: list[object]


def ask_ours(folder: str, requests: Sequence[Request], batch: int) -> tuple[object, Callable[[], list[object]]]:
    model = open_hf({"pretrained": folder, "dtype": "float32", "device": "cpu", "batch_size": batch})
    engine = model.ask.args[0]  # type: ignore[attr-defined]

    def work() -> list[object]:
        heard = [one for one in model.ask([Question(one) for one in requests]) if isinstance(one, Heard)]
        return [one.reply for one in sorted(heard, key=lambda one: one.at)]

    return engine.network.model, work


def ask_theirs(folder: str, requests: Sequence[Request], batch: int) -> tuple[object, Callable[[], list[object]]]:
    from lm_eval.models.huggingface import HFLM

    model = HFLM(pretrained=folder, dtype="float32", device="cpu", batch_size=batch)
    generated = isinstance(requests[0], Generate)
    asked = [SimpleNamespace(args=_list_arguments(one)) for one in requests]

    def work() -> list[object]:
        ask = model.generate_until if generated else model.loglikelihood
        return list(ask(asked, disable_tqdm=True))

    return model.model, work


def _list_arguments(request: Request) -> tuple[object, ...]:
    if isinstance(request, Generate):
        return request.prompt, {**request.options, "until": ["</never>"]}
    assert isinstance(request, LogLikelihood)
    return request.context, request.continuation


def run_side(side: str, folder: str, shape: str, documents: str, batch: str) -> None:
    """Answer the requests of a shape, and print what that took."""
    requests = list(SHAPES[shape][0](Random(0), int(documents)))
    ask = {"ours": ask_ours, "theirs": ask_theirs}[side]
    model, work = ask(folder, requests, int(batch))
    counted = [0]

    def count(module: object, args: tuple[object, ...], given: dict[str, object]) -> None:
        tokens = given.get("input_ids", args[0] if args else None)
        counted[0] += tokens.numel()  # type: ignore[union-attr]

    model.register_forward_pre_hook(count, with_kwargs=True)  # type: ignore[attr-defined]
    start = perf_counter()
    replies = work()
    seconds = perf_counter() - start
    plain = [one if isinstance(one, str) else [float(one[0]), bool(one[1])] for one in replies]  # type: ignore[index]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(msgspec.json.encode(Side(seconds, counted[0], peak, plain)).decode())


def measure_rows(
    *, documents: int = 64, batch: int = 8, shapes: str = ",".join(SHAPES), model: str = "", rounds: int = 1
) -> Iterator[Row]:
    """Both sides on each shape, in turn; of several rounds, the quickest of each side."""
    with TemporaryDirectory() as folder:
        path = model or os.environ.get("EVALCORE_SMALL_MODEL") or str(_make_model(Path(folder)))
        for shape in shapes.split(","):
            _, says, least = SHAPES[shape]
            tried = [[_run(side, path, shape, documents, batch) for side in ("ours", "theirs")] for _ in range(rounds)]
            ours, theirs = (min(some, key=lambda one: one.seconds) for some in zip(*tried, strict=True))
            bound = theirs.tokens / ours.tokens
            yield Row(
                what=says,
                ours=1e3 * ours.seconds / documents,
                peer=1e3 * theirs.seconds / documents,
                unit="ms a document",
                memory=ours.memory,
                targets=(at_least(least), at_most(1.3 * theirs.memory, "memory")),
                note=f"tokens a document {theirs.tokens / documents:,.0f} to {ours.tokens / documents:,.0f} "
                f"({bound:.1f}x), lm-eval's peak {theirs.memory:,.0f} MB, {_compare(ours.replies, theirs.replies)}",
            )


def _make_model(folder: Path) -> Path:
    from tests.models.small_model import make_model

    return make_model(folder)


def _run(side: str, path: str, shape: str, documents: int, batch: int) -> Side:
    code = f"from bench.during.hf import run_side; run_side({side!r}, {path!r}, {shape!r}, '{documents}', '{batch}')"
    return msgspec.json.decode(run_python(code).output.splitlines()[-1], type=Side)


def _compare(ours: Sequence[object], theirs: Sequence[object]) -> str:
    """How far the replies of both are apart."""
    both = list(zip(ours, theirs, strict=True))
    if isinstance(ours[0], str):
        return f"{sum(one == other for one, other in both)} of {len(both)} texts equal"
    flags = sum(one[1] == other[1] for one, other in both)  # type: ignore[index]
    far = max(abs(one[0] - other[0]) / abs(other[0]) for one, other in both)  # type: ignore[index]
    return f"likelihoods within {far:.0e}, {flags} of {len(both)} greedy flags equal"
