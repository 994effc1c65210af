"""Documents as a task sees them, and what there is to know of their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyrsistent import PMap, pmap

from evalcore.shell.starter.table import Doc

NUMBER = r"-?[$]?[0-9][0-9,]*(?:\.[0-9]+)?"
PLAIN_NUMBER = re.compile(rf"\s*{NUMBER}\s*%?\s*")
QA = "Question: {{%s}}\nAnswer:"
ASKED = "{{%s}}\nAnswer:"
MEAN: PMap[str, object] = pmap({"aggregation": "mean", "higher_is_better": True})
Config = dict[str, object]


class View(NamedTuple):
    """Documents under safe names, and what their columns hold; ``lists`` are the choices of each.

    ``rows`` are their numbers in the file (a header is row 1), ``called`` is what the file calls the choices' columns.
    """

    docs: Sequence[Doc]
    question: str
    answer: str | None
    choices: tuple[str, ...]
    lists: Sequence[tuple[str, ...]]
    rows: Sequence[int] = ()
    called: Mapping[str, str] = pmap()

    @property
    def golds(self) -> list[object]:
        """The answers that are there."""
        found = (doc.get(self.answer) for doc in self.docs) if self.answer else ()
        return [one for one in found if one is not None]

    @property
    def texts(self) -> list[str]:
        return [str(one).strip() for one in self.golds]

    @property
    def width(self) -> int:
        """How many choices each document has; 0 if not all have the same number."""
        widths = set(map(len, self.lists))
        return widths.pop() if len(widths) == 1 else 0

    @property
    def listed(self) -> str:
        """The choices as a template's value."""
        if len(self.choices) > 1:
            return f"[{', '.join(self.choices)}]" + ("" if self.width == len(self.choices) else "|select|list")
        labelled = isinstance(self.docs[0].get(self.choices[0]), Mapping)
        return f"{self.choices[0]}.text" if labelled else self.choices[0]

    @property
    def number(self) -> bool:
        """Whether answers are numbers, not texts of digits."""
        return all(isinstance(one, int) for one in self.golds)
