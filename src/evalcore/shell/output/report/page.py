"""A report as files: one HTML file that needs nothing else, or one with its chunks in a folder beside it."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import FrozenDict, FrozenRecord
from evalcore.shell.files.remote_path import RemotePath
from evalcore.shell.output.report.bundle import PAGE, WORKER, bundle_modules, read_asset
from evalcore.shell.output.report.page_chunk import PageChunk, write_data
from evalcore.shell.safety.replacement import refuse_folder, replace_with
from evalcore.shell.safety.safe_text import visible

BESIDE = "report_data"
CHUNK_FILE = re.compile(r"[0-9a-f]{24}\.js")
ONE_FILE = 20_000_000
"""The most bytes that a page may have in one file."""

LAYOUT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><nav aria-label="Views"></nav></header>
<main><noscript>This page shows its numbers with JavaScript of its own, which your browser does not run; \
results.json has them, too.</noscript></main>
<footer class="quiet">{footer}</footer>
<script type="application/json" id="head">{head}</script>
<script type="text/plain" id="worker">{worker}</script>
{chunks}<script>{script}</script>
</body>
</html>
"""


CHUNK = '<script type="text/plain" id="chunk-{}">{}</script>\n'
BESIDE_CHUNK = 'evalcoreChunk("{}","{}")\n'


class HtmlPage(FrozenRecord, frozen=True):
    """A page: its file, and the files that belong into a ``folder`` beside it by name."""

    html: str
    beside: Mapping[str, str] = FrozenDict()
    folder: str = BESIDE


def build_page(
    head: Mapping[str, object],
    chunks: Iterable[PageChunk] = (),
    *,
    folder: str = BESIDE,
    modules: Sequence[str] = PAGE,
    served: str = "",
) -> HtmlPage:
    """Build the page of a head and its chunks; these are in a ``folder`` beside it if one file would be too large.

    A page that is ``served`` may ask its own server, and no other, whether what it shows is still of this state.
    """
    packed = tuple({one.id: one for one in chunks}.values())
    apart = sum(one.size for one in packed) + len(write_data(head)) > ONE_FILE
    beside = {f"{one.id}.js": BESIDE_CHUNK.format(one.id, one.text) for one in packed} if apart else {}
    inside = "" if apart else "".join(CHUNK.format(one.id, one.text) for one in packed)
    script, style = bundle_modules(modules), read_asset("page.css")
    html = LAYOUT.format(
        policy=_write_policy(script, style, apart=apart, served=bool(served)),
        title=escape(visible(head["title"])),
        style=style,
        footer=escape(f"Made by evalcore {head['version']}"),
        head=_write_json({**head, "beside": folder if apart else None, "served": served}),
        worker=bundle_modules(WORKER),
        chunks=inside,
        script=script,
    )
    return HtmlPage(html, beside, folder)


def refuse_place(path: Path) -> None:
    """Refuse a place where a page would replace a folder, or a file that is no page."""
    refuse_folder(path)
    if isinstance(path, RemotePath) or not path.is_file():
        return
    begun = LAYOUT.partition("{")[0].encode()
    with path.open("rb") as file:
        known = file.read(len(begun))
    if known not in (begun, b""):
        raise EvalError(f"{path} is a file of your own, no page that evalcore wrote; name another place for the page")


def write_page(page: HtmlPage, path: Path) -> tuple[Path, ...]:
    """Write a page and what belongs beside it; the page then, so that it never lacks its data.

    Data of an earlier page of this name goes: it may hold what this one leaves out. Any other file stays.
    """
    folder = path.parent / page.folder
    beside = tuple(_write_text(folder / name, text) for name, text in page.beside.items())
    written = _write_text(path, page.html)
    for old in folder.glob("*.js") if folder.is_dir() else ():
        if old.name not in page.beside and _is_chunk(old):
            old.unlink(missing_ok=True)
    return (written, *beside)


def _is_chunk(path: Path) -> bool:
    """Whether a page wrote this file, by its name and how it begins."""
    if not (CHUNK_FILE.fullmatch(path.name) and path.is_file()):
        return False
    begun = BESIDE_CHUNK.partition("{}")[0] + path.stem
    with path.open("rb") as file:
        return file.read(len(begun)) == begun.encode()


def _write_text(path: Path, text: str) -> Path:
    return replace_with(path, lambda part: part.write_text(text, "utf-8", newline="\n"))


def _write_policy(script: str, style: str, *, apart: bool, served: bool) -> str:
    """What the page may do: run its own script, and read files beside it if it has any; nothing else, no request."""
    own = " 'self'" * apart
    news = " connect-src 'self';" * served
    return (
        f"default-src 'none'; script-src '{_hash(script)}'{own}; style-src '{_hash(style)}'; worker-src blob:;{news} "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types evalcore"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _write_json(data: object) -> str:
    """JSON without credentials in use, and that no HTML parser takes for markup."""
    return write_data(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
