"""How long evalcore takes to start: importing it beside importing numpy, and commands that only print.

    python bench/startup.py [rounds]

Every line is a process of its own, without what an empty one takes; the fastest round of each counts. Bytecode is
written before, as on any machine where the package was used once. Wanted: all of evalcore in at most twice the time of
numpy, which is most of it, and no command above 0.3 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

LINES = {
    "import numpy": ["-c", "import numpy"],
    "import evalcore": ["-c", "import evalcore"],
    "from evalcore import *": ["-c", "from evalcore import *"],
    "evalcore run --help": ["-m", "evalcore", "run", "--help"],
    "evalcore tasks --help": ["-m", "evalcore", "tasks", "--help"],
    "evalcore models": ["-m", "evalcore", "models"],
}


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = folder

        def seconds(command: list[str]) -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, *command], env=env, stdout=subprocess.DEVNULL, check=True)
            return time.perf_counter() - start

        commands = {"": ["-c", ""], **LINES}
        taken = [{name: seconds(command) for name, command in commands.items()} for _ in range(rounds + 1)][1:]
    best = {name: min(one[name] for one in taken) for name in commands}
    for name in LINES:
        found = best[name] - best[""]
        print(f"{name:24}{found:8.3f}s{found / (best['import numpy'] - best['']):8.2f} times numpy")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
