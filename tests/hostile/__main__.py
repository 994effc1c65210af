"""``python -m tests.hostile`` prints what is injected and what came of it; ``... fuzz`` changes inputs at random."""

from __future__ import annotations

import sys

from tests.hostile import fuzz
from tests.hostile.faults import FAULTS
from tests.hostile.table import run_table

if __name__ == "__main__":
    sys.exit(fuzz.main(sys.argv[2:]) if sys.argv[1:2] == ["fuzz"] else run_table(FAULTS, sys.argv[1:]))
