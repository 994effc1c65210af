"""What a user has who installed evalcore and nothing else: run by the Python of a fresh environment.

``python -I clean_install.py EXAMPLES`` needs the standard library and evalcore only; it prints what it found.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tempfile
from importlib import metadata, resources
from pathlib import Path

NAMESPACES = ["comparisons", "traces", "stats", "groups", "logs", "lm_eval", "extensions", "frames", "scale", "testing"]
EXTRA = re.compile(r'pip install "evalcore\[[a-z-]+\]"')


def run_command(*words: str) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run([sys.executable, "-I", "-m", "evalcore", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.returncode, done.stderr)
    return done.stdout


def find_missing(module: str, name: str) -> str | None:
    """What to install for a public name, if it is not there; whatever else is wrong is raised."""
    try:
        getattr(importlib.import_module(module), name)
    except ImportError as missing:
        return find_extra(missing)
    return None


def find_extra(missing: ImportError) -> str:
    """The command that installs what is missing; the error itself if it names none."""
    if (found := EXTRA.search(str(missing))) is None:
        raise missing
    return found[0]


def list_names(module: str) -> list[str]:
    try:
        return list(importlib.import_module(module).__all__)
    except ImportError as missing:
        print(f"{module}: {find_extra(missing)}")
        return []


def main(examples: Path) -> None:
    import evalcore

    home = Path(evalcore.__file__).parent
    assert "site-packages" in home.parts, home
    version = metadata.version("evalcore")
    assert evalcore.__version__ == version
    assert run_command("--version") == f"evalcore {version}\n"
    usage = run_command("--help")
    assert "evalcore run config.yaml" in usage
    for command in re.findall(r"(?m)^  ([a-z]+) ", usage):
        assert "usage:" in run_command(command, "--help")
    with tempfile.TemporaryDirectory() as folder:
        table = run_command("run", str(examples / "quickstart" / "config.yaml"), "--output_path", f"{folder}/out")
        assert "0.6106 to 0.8212" in table
        results = json.loads((Path(folder) / "out/results.json").read_text())
        again = run_command("score", f"{folder}/out", "--only", "quickstart_one_step", "--metric", "f1")
        assert "f1" in again
    schema = json.loads((resources.files("evalcore") / "results.schema.json").read_text("utf-8"))
    assert schema["$id"].endswith(f":{results['evalcore']['schema']}")
    assert (home / "py.typed").is_file()
    names = [("evalcore", name) for name in dir(evalcore)]
    names += [(f"evalcore.{space}", name) for space in NAMESPACES for name in list_names(f"evalcore.{space}")]
    missing = {f"{module}.{name}": told for module, name in names if (told := find_missing(module, name))}
    print(f"evalcore {version}: {len(names)} public names, {len(missing)} need more: {missing}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
