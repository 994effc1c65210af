"""The wheel holds the package and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
LEFTOVERS = frozenset({".orig", ".rej", ".bak", ".tmp", ".swp", ".log", ".pyc"})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    """Built from the work tree, as ``pip install .`` builds it."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("wheel")
    told = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    done = subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = out.glob("*.whl")
    return ZipFile(path)


def test_the_wheel_is_the_source_and_its_metadata(wheel: ZipFile) -> None:
    names = {name for name in wheel.namelist() if not name.endswith("/")}
    about = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert names - about == source | {"evalcore/py.typed"}
    assert {PurePosixPath(name).name for name in about} == {
        "METADATA",
        "WHEEL",
        "entry_points.txt",
        "LICENSE",
        "RECORD",
    }


def test_nothing_is_left_over_in_the_repository() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    told = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    names = subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    assert "pyproject.toml" in names
    assert [name for name in names if PurePosixPath(name).suffix in LEFTOVERS or name.endswith("~")] == []
    packaged = [name for name in names if name.startswith("src/")]
    assert [name for name in packaged if not name.endswith((".py", "py.typed"))] == []
