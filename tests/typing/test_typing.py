"""A host's code against the public names is typed without a cast, and does what it says."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def host():
    spec = importlib.util.spec_from_file_location("host", HERE / "host.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_hosts_code_passes_mypy_strict():
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", str(HERE / "host.py")]
    root = HERE.parents[1]
    env = os.environ | {"MYPYPATH": os.pathsep.join((str(root / "src"), str(root / "typings")))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE, env=env)
    assert done.returncode == 0, done.stdout


def test_a_hosts_code_runs():
    module = host()
    assert module.evaluate(["it is 4", "so 9"], ["4", "8"]) == pytest.approx(0.5)
    assert module.mean([1.0, 0.0]) == 0.5
    assert module.depth(module.Group("g", (module.Leaf("a", 1),))) == 2
