"""The house rules that a program can check: few files a room, nouns for names, one name for one thing, true pages."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from evalcore import EVALCORE
from evalcore.extensions import CORRECTIONS, MODELS, RENDERERS
from evalcore.logs import READERS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "evalcore"
FOLDERS = [path.parent.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("__init__.py"))][1:]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if path.name != "__init__.py"]

PLAIN_BY_FOLDER = frozenset(
    [
        "aggregations",
        "backend",
        "build",
        "check",
        "choice",
        "clusters",
        "compare",
        "corpus",
        "diff",
        "documents",
        "explain",
        "groups",
        "host",
        "index",
        "keys",
        "likelihood",
        "log",
        "merge",
        "metrics",
        "numbers",
        "power",
        "readers",
        "reducers",
        "renderers",
        "report",
        "requests",
        "results",
        "rules",
        "run",
        "samples",
        "score",
        "scores",
        "show",
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


def test_a_file_has_at_most_250_lines() -> None:
    lines = {path.relative_to(SOURCE).as_posix(): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {path: count for path, count in lines.items() if count > 250} == {}


def test_files_are_nouns() -> None:
    gerund_or_participle = re.compile(r".*(ing|ed)")
    assert [path for path in FILES if gerund_or_participle.fullmatch(path.stem)] == []


def test_a_name_occurs_once() -> None:
    names = Counter(path.stem for path in FILES)
    assert {name for name, count in names.items() if count > 1} - PLAIN_BY_FOLDER == set()


def test_a_class_name_occurs_once() -> None:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py"))
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1 and not name.startswith("_")} == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_room_lists_its_files(folder: str) -> None:
    """The docstring of ``__init__`` has a line for each file and folder, in the order data takes."""
    room = SOURCE / folder
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    listed = re.findall(r"(?m)^(\w+/?) {2,}\S", text)
    files = [path.stem for path in room.glob("*.py") if path.name != "__init__.py"]
    folders = [f"{path.parent.name}/" for path in room.glob("*/__init__.py")]
    assert sorted(listed) == sorted(files + folders)


def test_imports_follow_the_layers() -> None:
    done = subprocess.run(
        ["lint-imports", "--no-cache"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_layers_are_all_rooms() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    layered = set()
    for contract in contracts:
        prefix = f"{contract['containers'][0]}." if "containers" in contract else ""
        names = [name.strip() for layer in contract["layers"] for name in re.split(r"[|:]", layer)]
        layered |= {f"{prefix}{name}".removeprefix("evalcore.").replace(".", "/") for name in names}
    rooms = [folder for folder in FOLDERS if re.fullmatch(r"(core|shell)/\w+", folder)]
    assert [room for room in rooms if not any(name == room or name.startswith(f"{room}/") for name in layered)] == []


# --- pages ------------------------------------------------------------------------------------------------------


def mapped(page: str) -> list[str]:
    """The paths of a page's map of the source tree, relative to src/evalcore, in its order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    map_lines = re.search(r"(?ms)^```\nsrc/evalcore/\n(.*?)^```", text)
    assert map_lines is not None, f"{page} has no map that starts with src/evalcore/"
    parents: list[str] = []
    paths = []
    for line in map_lines[1].splitlines():
        indent, name = re.match(r"( +)(\S+)", line).groups()  # type: ignore[union-attr]
        parents[len(indent) // 2 - 1 :] = [name]
        paths.append("".join(parents))
    return paths


def test_the_map_of_the_rooms_is_the_tree() -> None:
    folders = {f"{folder}/" for folder in FOLDERS if folder.split("/")[0] in ("core", "shell") or "/" not in folder}
    rooms = {folder for folder in folders if folder.count("/") <= 2}
    paths = mapped("docs/architecture.md")
    assert len(paths) == len(set(paths))
    modules = {path.name for path in SOURCE.glob("*.py") if path.name != "__main__.py"}
    assert set(paths) == rooms | modules


def test_the_diagram_shows_every_room_of_core_and_shell() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    diagram = re.search(r"(?ms)^## The pipe through the rooms\n+```\n(.*?)^```", text)
    assert diagram is not None
    shown = Counter(re.findall(r"\b([a-z_]+)/", diagram[1]))
    rooms = Counter(folder.split("/")[1] for folder in FOLDERS if re.fullmatch(r"(core|shell)/\w+", folder))
    assert set(shown) == set(rooms)
    assert shown >= rooms


def test_where_to_add_what_is_true() -> None:
    """The files that docs/architecture.md sends a contributor to are there, and define the tables it names."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Where do I add")[2]
    cells = [cell for line in text.splitlines() if line.startswith("| a") for cell in line.split("|")]
    files = [name for cell in cells for name in re.findall(r"`([\w/]+(?:\.py|/))`", cell)]
    assert len(files) > 30
    assert [name for name in files if name != "renderers.py" and not (SOURCE / name).exists()] == []
    tables = [pair for cell in cells for pair in re.findall(r"`([A-Z_0-9]+)` in `([\w/]+\.py)`", cell)]
    assert len(tables) > 10
    assert [
        pair for pair in tables if not re.search(rf"(?m)^{pair[0]}\b.* =", (SOURCE / pair[1]).read_text("utf-8"))
    ] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, by GitHub's rule."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_imports_is_there(page: Path) -> None:
    """Blocks that are not run as doctests at least name what exists."""
    for block in re.findall(r"(?ms)^```python\n(.*?)^```", page.read_text(encoding="utf-8")):
        lines = [line for line in block.splitlines() if re.match(r"from evalcore[\w.]* import [\w, ]+$", line)]
        exec("\n".join(lines), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    for link in links:
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}"


# --- names of entries -------------------------------------------------------------------------------------------


ENTRIES = frozenset(
    name
    for table in (
        *EVALCORE.metrics.values(),
        *(EVALCORE.filters, EVALCORE.reducers, EVALCORE.aggregations, EVALCORE.intervals),
        *(EVALCORE.group_rules, EVALCORE.averages, CORRECTIONS, MODELS, READERS, RENDERERS),
    )
    for name in table
)
OTHER_WORDS = {
    "none": "the name of a pipeline that has none, and of nothing at all",
    "first": "a value of Filter.leaves, and a rule for ties",
    "samples": "a key of configs, results and Inspect logs",
    "json": "the form of a file",
    "path": "an argument of models",
    "min": "a kind of limit",
    "max": "a kind of limit",
}
"""Words that are also names of entries, and mean something else where they are compared."""

OWN_NAMES = {
    "core/lm_eval/": "lm-eval's rules about its names",
    "adapters/lm_eval/requests.py": "a name in lm-eval's own record of a task",
    "shell/files/confinement.py": "schemes of addresses, one of which is the hub's",
    "shell/logs/inspect/numbers.py": "Inspect's names of reducers",
    "shell/prompts/mistakes.py": "generation arguments of servers, one of which is called regex",
}
"""Where names of entries are tested, and whose they are."""


def find_texts(node: ast.AST, module: object) -> Iterator[str]:
    """The texts that an expression holds, itself or by the name of a constant."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from (text for part in node.elts for text in find_texts(part, module))
    elif isinstance(node, ast.Name) and node.id.isupper():
        value = getattr(module, node.id, ())
        held = (value,) if isinstance(value, str) else value if isinstance(value, tuple | frozenset | list) else ()
        yield from (text for text in held if isinstance(text, str))


def find_tested(node: ast.AST, module: object) -> list[str]:
    """The texts that an expression compares something with, looks something up in, or looks for at either end."""
    match node:
        case ast.Compare():
            parts: Sequence[ast.AST] = [node.left, *node.comparators]
        case ast.MatchValue():
            parts = [node.value]
        case ast.Call(func=ast.Attribute(attr="startswith" | "endswith")):
            parts = node.args
        case _:
            parts = []
    return [text for part in parts for text in find_texts(part, module)]


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name != "__main__.py"], ids=lambda path: path.relative_to(SOURCE).as_posix()
)
def test_nothing_tests_the_name_of_an_entry(path: Path) -> None:
    """What a step must know of an entry is a field of its record: a copy under another name behaves the same."""
    where = path.relative_to(SOURCE).as_posix()
    if any(where.startswith(one) for one in OWN_NAMES):
        pytest.skip("names that are not ours")
    module = import_module("evalcore." + where.removesuffix(".py").replace("/", "."))
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    tested = [(getattr(node, "lineno", 0), text) for node in tree for text in find_tested(node, module)]
    assert [pair for pair in tested if pair[1] in ENTRIES and pair[1] not in OTHER_WORDS] == []


def test_the_words_that_are_also_names_are_names() -> None:
    assert set(OTHER_WORDS) <= ENTRIES
    assert [one for one in OWN_NAMES if not (SOURCE / one).exists()] == []
    assert find_tested(ast.parse("name in ('acc', 'f1')").body[0].value, None) == ["acc", "f1"]  # type: ignore[attr-defined]
