"""What tokens cost."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Price = Annotated[float, Meta(ge=0, lt=1e9)]
MILLION = 1_000_000


class Prices(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Prices of a million tokens, in any currency; without ``cached_input``, cached tokens cost what others do.

    >>> Prices(input=0.15, output=0.6).charge(2_000_000, 500_000, 0)
    0.6
    >>> Prices(input=1.0, output=0, cached_input=0.1).charge(1_000_000, 0, 500_000)
    0.55
    """

    input: Price
    output: Price
    cached_input: Price | None = None

    def charge(self, prompt: int, completion: int, cached: int) -> float:
        """What so many tokens cost; ``cached`` are among those of the prompt."""
        again = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * again + completion * self.output) / MILLION
