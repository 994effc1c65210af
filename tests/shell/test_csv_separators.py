"""Tables of text whose cells are separated by any one character."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.csv_files import read_csv


@pytest.mark.parametrize("sep", [" ", "e", "\U0010fffe", "f"])
def test_any_character_separates_cells(tmp_path: Path, sep: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text(f"a{sep}b\n1{sep}2\n3{sep}4")
    assert read_csv(path, {"sep": sep}) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    path.write_text(f'a{sep}b\n1{sep}2\n3{sep}"4\n')
    with pytest.raises(EvalError, match=r"d\.csv:3: expected a closing quote"):
        read_csv(path, {"sep": sep})
