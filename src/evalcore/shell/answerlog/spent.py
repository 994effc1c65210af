"""What a reply took: tokens, seconds and tries."""

from __future__ import annotations

from msgspec import Struct


class Spent(Struct, frozen=True, omit_defaults=True, gc=False):
    """What one question took: tokens as the server counted them (None: it did not say), seconds of the reply, tries.

    ``cached`` are those of the ``prompt`` tokens that the server had at hand. ``seconds`` are those of the last try.

    >>> Spent(prompt=12, completion=3, seconds=0.8).known, Spent(seconds=0.8).known
    (True, False)
    """

    prompt: int | None = None
    completion: int | None = None
    cached: int = 0
    seconds: float | None = None
    tries: int = 1

    @property
    def known(self) -> bool:
        """Whether the tokens were counted."""
        return self.prompt is not None and self.completion is not None
