"""Recorded answers of real models with published scores. They stay outside the repository, beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import DataSet, open_data_set

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def recorded():
    """``recorded("gsm8k_openai")``: a data set by name; the test is skipped where it is not at hand."""
    opened: dict[str, DataSet] = {}

    def find(name: str) -> DataSet:
        if not (FOLDER / name / "meta.json").exists():
            pytest.skip(f"no recorded data set {name!r}: expected it in {FOLDER / name}")
        if name not in opened:
            opened[name] = open_data_set(FOLDER / name)
        return opened[name]

    return find
