"""What is injected and what came of it.

python -m tests.hostile         every fault of the table, through its tests
python -m tests.hostile fuzz    changed inputs for every reader
python -m tests.hostile peers   the same faults for lm-eval and for evalcore
"""

from __future__ import annotations

import sys

from tests.hostile import fuzz, peers
from tests.hostile.faults import FAULTS
from tests.hostile.table import run_table

COMMANDS = {"fuzz": fuzz.main, "peers": peers.main}

if __name__ == "__main__":
    command = COMMANDS.get(next(iter(sys.argv[1:]), ""))
    sys.exit(run_table(FAULTS, sys.argv[1:]) if command is None else command(sys.argv[2:]))
