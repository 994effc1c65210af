"""The pages of the site in the order of its navigation, and the same as llms.txt (https://llmstxt.org)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
PROJECT = "project/"
"""Where the site has what lies outside docs/."""


class Place(NamedTuple):
    """A page: its tab, its title in the navigation, and its path in the site."""

    tab: str
    title: str
    path: str


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml without the functions it names."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def read_nav() -> list[Place]:
    """Every page, in order."""
    settings = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader)
    return list(list_places(settings["nav"]))


def list_places(entries: object, tab: str = "") -> Iterator[Place]:
    """List the pages below a part of the navigation.

    >>> [place.path for place in list_places(["index.md", {"How-to": [{"Ask": [{"Run": "run.md"}]}]}])]
    ['index.md', 'run.md']
    """
    for entry in entries if isinstance(entries, list) else []:
        for title, below in entry.items() if isinstance(entry, dict) else [("", entry)]:
            if isinstance(below, str):
                yield Place(tab, title, below)
            else:
                yield from list_places(below, tab or title)


def find_source(path: str) -> Path:
    """The file of a page in this repository."""
    return ROOT / path.removeprefix(PROJECT) if path.startswith(PROJECT) else ROOT / "docs" / path


def find_claim(text: str) -> str:
    """The first sentence of a page, without its markup.

    >>> find_claim("# Run\\n\\n<!-- made -->\\n\\nA run config is [lm-eval's](a.md) **own**. Flags win.\\n")
    "A run config is lm-eval's own."
    """
    prose = re.sub(r"(?ms)^ *```.*?^ *```$", "", text)
    parts = [part for part in prose.split("\n\n") if part.strip() and not re.match(r"\s*([#|!]|<!|[-*] )", part)]
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(parts[0].split())) if parts else ""
    return re.split(r"(?<=[.?]) ", plain.replace("**", ""), maxsplit=1)[0].removesuffix(":")


def list_cells(text: str) -> list[str]:
    """The cells of a page's tables as a reader sees them: links by their text, code without its marks.

    >>> list_cells("# Run\\n\\n| key | `a \\\\| b` |\\n| --- | --- |\\n| [model](a.md) | **which** |\\n\\n```\\n| no table |\\n```\\n")
    ['key', 'a \\\\| b', '---', '---', 'model', 'which']
    """
    prose = re.sub(r"(?ms)^ *(`{3,}).*?^ *\1$", "", text)
    rows = [line.strip()[1:] for line in prose.splitlines() if line.lstrip().startswith("|")]
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", row.removesuffix("|"))]
    return [re.sub(r"`|\*\*", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)).strip() for cell in cells]


def find_title(text: str) -> str:
    found = re.search(r"(?m)^# (.+)$", text)
    return found[1].replace("`", "") if found else ""


def write_llms() -> str:
    """The site for language models: what it is, and a line for every page."""
    summary = find_claim((ROOT / "README.md").read_text("utf-8"))
    parts, tab = [f"# evalcore\n\n> {summary}\n"], None
    for place in read_nav():
        text = find_source(place.path).read_text("utf-8")
        if place.tab != tab:
            parts.append(f"\n## {place.tab or 'Start'}\n\n")
            tab = place.tab
        claim = find_claim(text)
        address = re.sub(r"README\.md$", "index.md", place.path).removesuffix(".md") + ".html"
        parts.append(f"- [{place.title or find_title(text)}]({address}){f': {claim}' if claim else ''}\n")
    return "".join(parts)
