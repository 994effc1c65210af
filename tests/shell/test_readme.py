"""What the README shows is what the quickstart prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalcore.shell.cli import main

ROOT = Path(__file__).parents[2]


def test_the_quickstart_prints_the_table_of_the_readme(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"(?ms)^<!-- quickstart table -->\n```\n(.*?)^```", page)
    assert shown is not None
    monkeypatch.setenv("COLUMNS", "140")
    config = ROOT / "examples" / "quickstart" / "config.yaml"
    assert main(["run", str(config), "--output_path", str(tmp_path / "out")]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown[1].splitlines() if line not in printed] == []
