"""What GitHub shows and a site would not: pages outside docs/, and lists as GitHub reads them.

MkDocs calls these functions by name (``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROJECT = "project"
"""The folder of the site that holds what lies outside docs/."""

OUTSIDE = (
    "README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "examples/README.md",
    "examples/tour.ipynb",
    "examples/harness/harness.py",
)
"""Files outside docs/ to which its pages lead."""


def on_files(files: Any, config: Any) -> Any:
    """Add the files of the project that lie outside docs/."""
    from mkdocs.structure.files import File, InclusionLevel

    for name in OUTSIDE:
        made = File.generated(config, f"{PROJECT}/{name}", content=(ROOT / name).read_text("utf-8"))
        if name == "examples/README.md":
            made.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(made)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Give a page the links and lists of the site."""
    return "\n".join(write_lists(move_links(markdown, page.file.src_uri).split("\n")))


FRAME = re.compile(r'<script src="https://unpkg.com/iframe-worker/shim"></script>')
"""What the offline plugin would have every reader's browser load from another host."""

WORKER = """<script>
// A page that was opened from a folder may start no Worker; there the search runs in a frame.
if (location.protocol === "file:") window.Worker = class extends EventTarget {
  constructor(address) {
    super()
    const frame = document.body.appendChild(document.createElement("iframe"))
    frame.hidden = true
    this.inside = frame.contentWindow
    this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}))
    const script = frame.contentDocument.createElement("script")
    script.src = address
    this.ready = new Promise(done => script.onload = done)
    frame.contentDocument.body.append(script)
  }
  postMessage(data) {
    this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})))
  }
}
</script>"""


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Leave nothing in a page that another host is asked for."""
    return FRAME.sub(lambda _: WORKER, output)


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The same for pages without a source, such as 404.html."""
    return FRAME.sub(lambda _: WORKER, output_content)


def move_links(text: str, name: str) -> str:
    """Lead links out of docs/, or into it, to where the site has the file.

    >>> move_links("[a](../SECURITY.md#b) [c](run.md)", "models.md")
    '[a](project/SECURITY.md#b) [c](run.md)'
    >>> move_links("[a](docs/run.md) [b](SECURITY.md)", "project/README.md")
    '[a](../run.md) [b](SECURITY.md)'
    >>> move_links("[a](../../README.md)", "tutorial/first-run.md")
    '[a](../project/README.md)'
    """
    if name.startswith(f"{PROJECT}/"):
        depth = "../" * name.count("/")
        return re.sub(r"\]\((?:\.\./)*docs/", f"]({depth}", text)
    up = "../" * name.count("/")
    outside = "|".join(map(re.escape, OUTSIDE))
    return re.sub(rf"\]\({re.escape(up)}\.\./({outside})(?=[#)])", rf"]({up}{PROJECT}/\1", text)


def write_lists(lines: list[str]) -> Iterator[str]:
    """Indent what belongs to a list twice as far, and part a list from what is before it: Python-Markdown needs both.

    >>> list(write_lists(["These:", "- a", "  b", "  ```", "  - c", "  ```", "  d", "- e"]))
    ['These:', '', '- a', '    b', '    ```', '    - c', '    ```', '    d', '', '- e']
    """
    before, fence, depth, parted = "", "", 0, False
    for line in lines:
        mark = re.match(r"( *)(`{3,})", line)
        if fence or mark:
            depth = len(mark[1]) if mark and not fence else depth
            yield " " * depth + line if line else line
            closes = bool(fence) and line.strip() == fence
            fence, parted = "" if closes else fence or (mark[2] if mark else ""), True
            before = line
            continue
        starts = re.match(r"([-*]|\d+\.) ", line)
        if starts and before.strip() and (parted or not re.match(r"([-*]|\d+\.) | ", before)):
            yield ""
        parted = not starts and (parted or not line.strip())
        yield " " * (len(line) - len(line.lstrip(" "))) + line
        before = line
