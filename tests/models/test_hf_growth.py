"""Replies that grow together: as many as fit the memory of whole ones, and each as if it were alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalcore.core.records.request import Generate, Request, freeze_options
from evalcore.shell.models.hf.network import Network, Seen
from evalcore.shell.models.model import Heard, Question
from tests.models.test_hf_kinds import KINDS, SHOTS, ask, open_folder

pytestmark = pytest.mark.models

OPTIONS = freeze_options({"max_gen_toks": 6, "until": ["\n", "ing"]})
ALIKE: list[Request] = [Generate(f"{SHOTS}How many legs have {n} dogs?", OPTIONS) for n in range(11)]
APART: list[Request] = [Generate(f"{n} is the first number. {SHOTS[n : 150 + 3 * n]}", OPTIONS) for n in range(9)]
REQUESTS = [one for pair in zip(ALIKE, [*APART, *APART[:2]], strict=True) for one in pair]


@pytest.fixture(scope="module")
def folder(make_kind: Callable[..., Path]) -> Path:
    return make_kind(*KINDS["llama"][:2])


def test_replies_are_those_of_plain_batches_whatever_grows_together(folder: Path) -> None:
    plain = ask(open_folder(folder, prefix_cache=False), REQUESTS)
    for size in (1, 2, 16):
        assert ask(open_folder(folder, batch_size=size), REQUESTS) == plain


@pytest.mark.parametrize("left", [{0}, {1}, {3, 8}, set(range(0, 22, 5)), {21}], ids=str)
def test_what_is_known_changes_no_reply_and_is_not_computed(folder: Path, left: set[int]) -> None:
    model = open_folder(folder, batch_size=2)
    whole = ask(model, REQUESTS)
    asked = [Question(one, known=at not in left) for at, one in enumerate(REQUESTS)]
    fewer = open_folder(folder, batch_size=2)
    heard = {one.at: one.reply for one in fewer.ask(asked) if isinstance(one, Heard)}
    assert heard == {at: whole[at] for at in left}
    assert fewer.ask.args[0].network.evaluated < model.ask.args[0].network.evaluated  # type: ignore[attr-defined]


def test_no_more_is_kept_than_for_whole_replies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, kept = list[int](), list[int]()
    call = Network.call

    def watch(self: Network, cache: Any, tokens: Any, depths: Any, seen: Seen, keep: Any) -> Any:
        if np.array_equal(seen[:, -len(tokens) :], np.eye(len(tokens), dtype=np.bool_)) and len(tokens) > 1:
            rows.append(len(tokens))
            kept.append(seen.shape[1])
        return call(self, cache, tokens, depths, seen, keep)

    monkeypatch.setattr(Network, "call", watch)
    model = open_folder(folder, batch_size=2)
    longest = max(len(model.ask.args[0].encoder.encode(one.prompt)) for one in REQUESTS if isinstance(one, Generate))  # type: ignore[attr-defined]
    ask(model, REQUESTS)
    assert max(rows) > 2
    assert max(kept) <= 2 * (longest + 6)
