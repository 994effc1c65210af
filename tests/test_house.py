"""The house rules that a program can check: few files a room, nouns for names, one name for one thing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "evalcore"
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__init__.py"]

PLAIN_BY_FOLDER = frozenset(
    [
        "aggregations",
        "backend",
        "build",
        "choice",
        "corpus",
        "diff",
        "documents",
        "explain",
        "groups",
        "host",
        "index",
        "keys",
        "log",
        "metrics",
        "numbers",
        "power",
        "reducers",
        "report",
        "requests",
        "results",
        "rules",
        "run",
        "samples",
        "score",
        "scores",
        "table",
        "tasks",
        "text",
        "trees",
    ]
)
"""Names that occur twice because their folder says which is meant: ``metrics/`` and ``lm_eval/metrics.py``."""


def test_a_room_has_at_most_twelve_files() -> None:
    rooms = Counter(path.parent.relative_to(SOURCE).as_posix() for path in FILES)
    assert {room: count for room, count in rooms.items() if count > 12} == {}


def test_files_are_nouns() -> None:
    gerund_or_participle = re.compile(r".*(ing|ed)")
    assert [path for path in FILES if gerund_or_participle.fullmatch(path.stem)] == [SOURCE / "core/answers/scoring.py"]


def test_a_name_occurs_once() -> None:
    names = Counter(path.stem for path in FILES)
    assert {name for name, count in names.items() if count > 1} - PLAIN_BY_FOLDER == set()
