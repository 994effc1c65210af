"""Weights are named by what they are: training in place gives another name, moving a folder does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.shell.models.checkpoint import MOST_PIECES, PIECE, name_all, name_weights

SIZE = 2 * PIECE * MOST_PIECES


def write_weights(folder: Path, *, at: int | None = None) -> Path:
    """A folder of sparse weights, of which a share was trained."""
    folder.mkdir(parents=True)
    with (folder / "model.safetensors").open("wb") as file:
        file.truncate(SIZE)
        if at is not None:
            file.seek(at)
            file.write(b"x" * 4 * PIECE)
    return folder


@pytest.mark.parametrize("at", [0, SIZE // 3, SIZE - 4 * PIECE])
def test_weights_that_were_trained_anywhere_have_another_name(tmp_path: Path, at: int) -> None:
    plain, moved = write_weights(tmp_path / "m"), write_weights(tmp_path / "there" / "m")
    assert name_weights(str(plain), None) == name_weights(str(moved), None)
    assert name_weights(str(write_weights(tmp_path / "trained" / "m", at=at)), None) != name_weights(str(plain), None)


@pytest.mark.parametrize("argument", ["tokenizer", "peft", "delta"])
def test_what_goes_with_weights_is_named_by_its_content_too(tmp_path: Path, argument: str) -> None:
    file = tmp_path / "beside" / "adapter.bin"
    file.parent.mkdir()
    file.write_bytes(b"before")
    given = {"pretrained": "org/m", argument: str(file.parent)}
    before = name_all(given, "main")
    file.write_bytes(b"after!")
    after = name_all(given, "main")
    assert before[argument] != after[argument]
    assert str(tmp_path) not in str(after)


def test_a_subfolder_is_what_counts(tmp_path: Path) -> None:
    (tmp_path / "step-1").mkdir()
    file = tmp_path / "step-1" / "model.bin"
    file.write_bytes(b"before")
    given = {"pretrained": str(tmp_path), "subfolder": "step-1"}
    before = name_all(given, "main")
    file.write_bytes(b"after!")
    assert name_all(given, "main") != before
