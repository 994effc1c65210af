"""The tour notebook runs from a clean state and shows what it showed when it was committed.

``python -m tests.test_tour`` executes it and writes what its cells show.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
TOUR = ROOT / "examples" / "tour.ipynb"
INSTALL = "pip install ipykernel nbclient nbconvert"
SKIP = f"needs nbclient and ipykernel: {INSTALL}"
Notebook = Any


def execute(home: Path) -> Notebook:
    """The notebook after all of its cells, in an empty folder beside nothing but the quickstart."""
    nbformat, nbclient = pytest.importorskip("nbformat", reason=SKIP), pytest.importorskip("nbclient", reason=SKIP)
    pytest.importorskip("ipykernel", reason=SKIP)
    shutil.copytree(ROOT / "examples" / "quickstart", home / "quickstart")
    notebook = nbformat.read(TOUR, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(home)}}, record_timing=False
    )
    return client.execute(env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "HOME": str(home)})


def list_shown(notebook: Notebook) -> list[list[dict[str, object]]]:
    """What each cell shows."""
    return [
        [{key: one[key] for key in ("output_type", "name", "text", "data") if key in one} for one in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Notebook:
    return execute(tmp_path_factory.mktemp("tour"))


@pytest.mark.slow
def test_the_tour_shows_what_it_showed(done: Notebook) -> None:
    import nbformat

    was = list_shown(nbformat.read(TOUR, as_version=4))
    assert was == list_shown(done)
    assert all(was)


@pytest.mark.slow
def test_the_tour_is_a_page(done: Notebook) -> None:
    nbconvert = pytest.importorskip("nbconvert", reason=f"needs nbconvert: {INSTALL}")
    exporter = nbconvert.HTMLExporter()
    page, _ = exporter.from_notebook_node(done)
    for part in ('aria-label="0.7286, 0.6106 to 0.8212"', "95 % interval", "<strong>quickstart: 7 tasks"):
        assert part in page


def test_the_tour_names_no_machine_and_no_room() -> None:
    text = TOUR.read_text("utf-8")
    notebook = json.loads(text)
    machine = (str(ROOT), "/home/", "/tmp/", "/root/", "C:\\\\", "/usr/")
    assert [path for path in machine if path in text] == []
    assert re.findall(r"evalcore\.(?:core|shell)\b", text) == []
    assert {"kernelspec"} <= set(notebook["metadata"]) <= {"kernelspec", "language_info"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))


def test_the_tour_goes_where_it_says() -> None:
    cells = json.loads(TOUR.read_text("utf-8"))["cells"]
    heads = [line for cell in cells for line in cell["source"] if line.startswith("## ")]
    topics = ("first run", "error bars", "samples", "filter", "two runs", "document", "tree", "metric", "property")
    assert [topic for topic in topics if not any(topic in head.lower() for head in heads)] == []


if __name__ == "__main__":
    import nbformat

    with tempfile.TemporaryDirectory() as folder:
        made = execute(Path(folder))
    for cell in made.cells:
        cell.metadata = {}
    made.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(made, TOUR)
    sys.stdout.write(f"{TOUR.name}: {len(made.cells)} cells\n")
