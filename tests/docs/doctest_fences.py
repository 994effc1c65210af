"""Doctests of docstrings as blocks of code: in Markdown, ``>>>`` is a quotation. Griffe loads the class (mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any

try:
    from griffe import Extension
except ImportError:  # only the site needs it
    Extension = object

DOCTEST = re.compile(r"(?m)^ *>>> .*(?:\n(?! *$).*)*")


def fence_doctests(text: str) -> str:
    """Put every doctest, with what it prints, between fences.

    >>> print(fence_doctests("A claim.\\n\\n>>> 1 + 1\\n2\\n\\nMore.").replace("`", "'").replace(">>>", "$"))
    A claim.
    <BLANKLINE>
    '''pycon
    $ 1 + 1
    2
    '''
    <BLANKLINE>
    More.
    """
    return DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


class DoctestFences(Extension):  # type: ignore[misc]
    """Every docstring with its doctests fenced."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None and "```" not in obj.docstring.value:
            obj.docstring.value = fence_doctests(obj.docstring.value)
