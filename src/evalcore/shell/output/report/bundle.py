"""The page's JavaScript modules as one script, so that a page needs no other file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from evalcore.core.records.errors import EvalError

PAGE = (
    *("dom.js", "format.js", "data.js", "route.js", "charts.js", "tree.js", "shapes.js", "reproduce.js", "overview.js"),
    *("comparison.js", "document.js", "samples.js", "reckoning.js", "what_if.js", "main.js"),
)
"""The modules of the page, each after those it imports."""

SERVED = (*PAGE, "news.js", "run_news.js")
"""The modules of the page where ``evalcore view`` serves it."""

WAITING = ("dom.js", "format.js", "data.js", "news.js", "run_news.js")
"""The modules of a page about a run that has nothing to show yet, or that cannot be shown."""

RUN_LIST = ("dom.js", "format.js", "data.js", "news.js", "run_list.js")
"""The modules of the list of runs."""

WORKER = ("worker.js",)
"""The modules of the worker that searches samples."""

IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=async function |function |const |class )", re.MULTILINE)
NAMED = re.compile(r"^(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
NOTE = re.compile(r"^\s*(?://[^\n]*|/\*\*[^\n]*\*/)\n", re.MULTILINE)
MARGIN = re.compile(r"^\s+", re.MULTILINE)
ALONE = re.compile(r"\((\w+)\) =>")
"""One parameter, which needs no parentheses."""


@cache
def read_asset(name: str) -> str:
    """Read a file of the page."""
    return (files(__package__) / "assets" / name).read_text("utf-8")


def bundle_modules(names: Sequence[str]) -> str:
    """Join modules into one strict script with one scope, for which each name must be given once.

    Comments that fill their lines, empty lines and margins are left out.

    >>> bundle_modules(["dom.js"]).startswith('(() => {"use strict";')
    True
    """
    before: dict[str, set[str]] = {}
    for name in names:
        text = EXPORT.sub("", read_asset(name))
        if late := [one for one in IMPORT.findall(text) if one not in before]:
            raise EvalError(f"expected {', '.join(late)} before {name}, which imports it")
        before[name] = set(NAMED.findall(text))
        for other, known in before.items():
            if other != name and (twice := known & before[name]):
                raise EvalError(f"expected other names in {name}: {other} has {', '.join(sorted(twice))}")
    code = "".join(EXPORT.sub("", IMPORT.sub("", read_asset(name))) for name in names)
    plain = ALONE.sub(r"\1 =>", MARGIN.sub("", NOTE.sub("", code)))
    return f'(() => {{"use strict";\n{squeeze(plain)}}})();\n'


OPERATOR = re.compile(r"(?: |\n+(?=[*%=<>&|?:,;})\].]))?([-+*/%=<>!&|?:,;{}()\[\].])(?: |(?<=[*%=<>&|?:,;{(\[])\n+)?")
NEEDLESS = {",)", ",]", ",}", ";}"}
"""Separators before a bracket that say nothing."""
REGULAR = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\\\[\n])+/[a-z]*")
QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"')


def squeeze(code: str) -> str:
    """Leave out spaces and ends of lines around operators, but not in texts, templates and regular expressions.

    >>> squeeze('const a = (b) => b + 1; f("a = b", `${c + `d + ${e}`} + f`, x.replace(/ = /g, c - -d));')
    'const a=(b)=>b+1;f("a = b",`${c+`d + ${e}`} + f`,x.replace(/ = /g,c- -d));'
    """
    out, _ = _squeeze_until(code, 0, "")
    return out


def _squeeze_until(code: str, at: int, end: str) -> tuple[str, int]:
    """Squeeze code up to a closing brace that nothing opened, or to its end."""
    out: list[str] = []
    depth = 0
    while at < len(code):
        letter = code[at]
        before = "".join(out[-1:])[-1:]
        kept = QUOTED.match(code, at) if letter == '"' else None
        if letter == "/" and before in "(,=:[!&|?{;\n":
            kept = REGULAR.match(code, at)
        if kept is not None:
            out.append(kept[0])
            at = kept.end()
        elif letter == "`":
            text, at = _keep_template(code, at + 1)
            out.append(f"`{text}`")
        elif letter == end and not depth:
            return "".join(out), at + 1
        elif (found := OPERATOR.match(code, at)) is not None:
            if found[1] == end and not depth:
                return "".join(out), found.end(1)
            depth += (found[1] == "{") - (found[1] == "}")
            doubled = found[1] in "+-" and before == found[1] and code[at - 1] == " "
            if f"{before}{found[1]}" in NEEDLESS:
                out.pop()
            out.append(f" {found[1]}" if doubled else found[1])
            at = found.end()
        else:
            out.append(letter)
            at += 1
    return "".join(out), at


def _keep_template(code: str, at: int) -> tuple[str, int]:
    """Keep the text of a template; what stands in its braces is code."""
    out: list[str] = []
    while code[at] != "`":
        if code.startswith("${", at):
            inside, at = _squeeze_until(code, at + 2, "}")
            out.append(f"${{{inside}}}")
        else:
            length = 2 if code[at] == "\\" else 1
            out.append(code[at : at + length])
            at += length
    return "".join(out), at + 1
