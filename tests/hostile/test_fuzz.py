"""Changed inputs give a result or an error for people. ``python -m tests.hostile fuzz`` tries as many as there is time for."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tests.hostile.fuzz import make_inputs, read_corpus, try_input
from tests.hostile.fuzz_targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_changed_inputs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = TARGETS[name]
    (seeding := tmp_path / "seeds").mkdir()
    (folder := tmp_path / "in").mkdir()
    monkeypatch.chdir(folder)
    seeds = target.seeds(seeding)
    for one in seeds:
        target.read(one, folder)  # a seed that is refused would test little
    before = sorted(tmp_path.iterdir())
    for data in (*read_corpus(name), *islice(make_inputs(name, seeds, 0), int(2 + 38 * target.weight))):
        found = try_input(name, target, data, folder)
        assert found is None, found
    assert sorted(tmp_path.iterdir()) == before
