"""How long evalcore takes to start: importing it beside importing numpy, and commands that only print.

Every line is a process of its own, without what an empty one takes; the least of some rounds counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bench.measure import run_process
from bench.rows import Row, at_most

NUMPY = "import numpy"
IMPORTS = ("import evalcore", "from evalcore import *")
COMMANDS = ("--version", "run --help", "tasks --help", "score --help", "compare --help", "explain --help", "models")


def measure_rows(*, rounds: int = 5) -> Iterator[Row]:
    lines = {code: ["-c", code] for code in ("", NUMPY, *IMPORTS)}
    lines |= {f"evalcore {one}": ["-m", "evalcore", *one.split()] for one in COMMANDS}
    taken = [
        {name: run_process([sys.executable, *line]).seconds for name, line in lines.items()} for _ in range(rounds + 1)
    ][1:]  # the first writes bytecode
    best = {name: min(one[name] for one in taken) for name in lines}
    ours = {name: (seconds - best[""]) * 1e3 for name, seconds in best.items()}
    for name in IMPORTS:
        limit = at_most(2, "floors")  # numpy is most of it
        yield Row(
            what=name, ours=ours[name], unit="ms", floor=ours[NUMPY], targets=(limit,), note="floor: import numpy"
        )
    for name in list(lines)[4:]:
        yield Row(what=name, ours=ours[name], unit="ms", targets=(at_most(300),))
