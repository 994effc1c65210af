"""A run killed at its N-th append or question, for all N, and runs that race for one folder, lose nothing and ask no more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import many_runs
from many_runs import DOCUMENTS, FLIGHT, MOMENTS


def start(kind: str, home: Path) -> tuple[dict[str, object], list[dict[str, object]], str]:
    """What the undisturbed run found, what the others found, and what they said."""
    given = [sys.executable, str(many_runs.__file__), kind, str(home)]
    done = subprocess.run(given, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    whole, *rest = map(json.loads, done.stdout.splitlines())
    return whole, rest, done.stderr


def test_kill_at_every_append(tmp_path: Path, record_property: object) -> None:
    whole, rest, _ = start("appends", tmp_path)
    appends = 2 + -(-DOCUMENTS // FLIGHT)  # the header, the model, the groups of replies
    assert [(one["moment"], one["at"]) for one in rest] == [
        (moment, number) for moment in MOMENTS for number in range(1, appends + 1)
    ]
    for one in rest:
        assert one["results"] == whole["results"]
        assert one["asked"] == DOCUMENTS
        assert one["again"] <= (FLIGHT if one["moment"] != "synced" else 0)  # type: ignore[operator]


def test_kill_at_every_question(tmp_path: Path) -> None:
    whole, rest, _ = start("requests", tmp_path)
    assert len(rest) == DOCUMENTS
    for one in rest:
        assert one["results"] == whole["results"]
        assert one["again"] < FLIGHT  # type: ignore[operator]


def test_runs_that_race_for_a_folder(tmp_path: Path) -> None:
    """One gets in; the others say so and leave; a killed one leaves nothing that keeps the next one out."""
    whole, rest, said = start("races", tmp_path)
    assert len(rest) == 6
    for one in rest:
        assert one["results"] == whole["results"]
        assert one["asked"] == DOCUMENTS
        assert set(one["codes"]) <= {0, 2, -9}  # type: ignore[call-overload]
        killed = one["codes"].count(-9)  # type: ignore[attr-defined]
        assert one["again"] <= FLIGHT * killed  # type: ignore[operator]
    assert "another run is writing this" in said
