"""The wheel and the source distribution: what they hold, that they are built the same twice, and that they install."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from importlib import metadata
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

import pytest

from evalcore import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LEFTOVERS = frozenset({".orig", ".rej", ".bak", ".tmp", ".swp", ".log", ".pyc"})
DATA = frozenset({".py", ".js", ".css", ".html", ".json", ".yaml", ".jsonl", ".csv"})
"""What a package is made of; py.typed besides."""
INSTALL = "pip install twine"


def build(source: Path, kind: str, out: Path, epoch: str = "1700000000") -> Path:
    """A distribution, built as ``pip install .`` builds it."""
    pytest.importorskip("hatchling")
    told = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    done = subprocess.run(told, cwd=source, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = (path for path in out.iterdir() if path.suffix in (".whl", ".gz"))
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(out, filter="data")
    (folder,) = out.iterdir()
    return folder


def list_tracked() -> list[str]:
    """The files of the repository."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs a git checkout")
    told = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in names if name and (ROOT / name).exists()]


def test_the_wheel_is_the_source_and_its_metadata(wheel: Path) -> None:
    names = {name for name in ZipFile(wheel).namelist() if not name.endswith("/")}
    about = {name for name in names if PurePosixPath(name).parts[0].endswith(".dist-info")}
    files = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names - about == {path.relative_to(ROOT / "src").as_posix() for path in files}
    assert {"evalcore/py.typed", "evalcore/results.schema.json"} <= names
    assert {name for name in names if name.startswith("evalcore/shell/output/report/assets/")}
    assert {PurePosixPath(name).name for name in about} == {
        "METADATA",
        "WHEEL",
        "entry_points.txt",
        "LICENSE",
        "RECORD",
    }


def test_the_metadata_say_what_the_project_says(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        told = email.message_from_bytes(archive.read(name))
        (entries,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        assert archive.read(entries).decode().split() == [
            "[console_scripts]",
            "evalcore",
            "=",
            "evalcore.shell.cli:main",
        ]
    assert (told["Name"], told["Version"]) == ("evalcore", __version__)
    assert told["Requires-Python"] == PROJECT["requires-python"]
    assert told["License-Expression"] == PROJECT["license"]
    assert told["Description-Content-Type"] == "text/markdown"
    assert set(told.get_all("Provides-Extra") or ()) == set(PROJECT["optional-dependencies"])
    required = [one for one in told.get_all("Requires-Dist") or () if "extra ==" not in one]
    assert {re.split(r"[<>=]", one)[0].lower() for one in required} == {
        re.split(r"[<>=]", one)[0].lower() for one in PROJECT["dependencies"]
    }
    assert str(told.get_payload()).lstrip().startswith("# evalcore")


def test_the_version_has_one_source() -> None:
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    heads = re.findall(r"(?m)^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"))
    assert heads[0] in (f"{__version__} (unreleased)", __version__)


def test_two_builds_are_the_same_bytes(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    for kind, first in (("wheel", wheel), ("sdist", sdist)):
        assert build(ROOT, kind, tmp_path / kind).read_bytes() == first.read_bytes()


def test_the_source_distribution_builds_the_same_wheel(unpacked: Path, wheel: Path, tmp_path: Path) -> None:
    assert build(unpacked, "wheel", tmp_path / "again").read_bytes() == wheel.read_bytes()


def test_the_source_distribution_is_the_repository(unpacked: Path) -> None:
    tracked = set(list_tracked())
    packed = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert packed - tracked <= {"PKG-INFO"}
    assert {name for name in tracked - packed if not name.startswith(".")} == set()


def test_twine_takes_both(wheel: Path, sdist: Path) -> None:
    pytest.importorskip("twine", reason=f"needs twine: {INSTALL}")
    told = [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)]
    done = subprocess.run(told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_left_over_in_the_repository() -> None:
    names = list_tracked()
    assert "pyproject.toml" in names
    assert [name for name in names if PurePosixPath(name).suffix in LEFTOVERS or name.endswith("~")] == []
    packaged = [PurePosixPath(name) for name in names if name.startswith("src/")]
    assert [name for name in packaged if name.suffix not in DATA and name.name != "py.typed"] == []


def test_no_merge_is_half_done() -> None:
    """Both ends of what a merge marks stand at the beginning of a line."""
    marks = tuple(f"{mark * 7} ".encode() for mark in "<>")
    texts = ((name, (ROOT / name).read_bytes()) for name in list_tracked())
    assert [name for name, text in texts if any(line.startswith(marks) for line in text.split(b"\n"))] == []


def find_required(name: str, found: dict[str, metadata.Distribution]) -> None:
    """A distribution and all that it requires, as they are installed here."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    for text in metadata.requires(name) or ():
        one = Requirement(text)
        known = canonicalize_name(one.name)
        if known not in found and (one.marker is None or one.marker.evaluate({"extra": ""})):
            found[known] = metadata.distribution(known)
            find_required(known, found)


@pytest.mark.slow
def test_a_fresh_environment_with_nothing_else_has_all_of_it(wheel: Path, unpacked: Path, tmp_path: Path) -> None:
    """No network: what evalcore requires is linked from this environment, the wheel is installed by pip."""
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh/bin/python"
    where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(where, capture_output=True, text=True, check=True).stdout.strip())
    found: dict[str, metadata.Distribution] = {}
    find_required("evalcore", found)
    for one in found.values():
        for file in one.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                (site / file).symlink_to(Path(str(one.locate_file(file))).resolve())
    told = [str(python), "-m", "pip", "install", "--quiet", "--no-index", str(wheel)]
    done = subprocess.run(told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = [str(python), "-I", str(ROOT / "tests/clean_install.py"), str(unpacked / "examples")]
    done = subprocess.run(told, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "public names" in done.stdout
    assert (tmp_path / "fresh/bin/evalcore").is_file()
