"""Whether a model's attention takes packed rows: one is compared with plain ones when the model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from evalcore.core.prefixes import Sizes, Tokens, Trunk, Twig, grow_tree, mask_packed, pack_twig
from evalcore.shell.models.hf.network import Network, see_chain

PROBES = (
    "The cat sat on the mat by the old stone wall of the garden and looked at the birds in the tree.",
    "The cat sat on the mat by the old stone wall of the house; nobody knew why it had come so far.",
)
NEAR = 6
"""The window of a model while it is probed: shorter than what the probes share."""

APART = 1e-4
"""How far a packed row may be from a plain one, whatever the model's own rounding."""

ROUNDINGS = 2.0
"""How many times its rounding a packed row may be away. Right masks were seen at 0.7 to 1.6 times, in float16, bfloat16
and autocast; one that hides a token of a trunk at 3.2 times and more.
"""


class Probe(Struct, frozen=True):
    """How far a packed row is from a plain one, and a padded batch from rows alone, which is rounding and no more:
    log-probabilities at the worst position, as the root of the mean square over the vocabulary.
    """

    far: float
    noise: float = 0.0

    @property
    def fits(self) -> bool:
        return self.far <= max(APART, ROUNDINGS * self.noise)

    @property
    def reason(self) -> str:
        """Why packed rows do not fit."""
        if self.far == float("inf"):
            return "this model takes no packed rows"
        return (
            f"packed rows differ by {self.far:.2g} from plain ones, rounding by {self.noise:.2g}: "
            "this model's attention does not follow their mask"
        )


def probe_rows(network: Network, one: Tokens, two: Tokens) -> Probe:
    """Compare a packed row after a kept prefix with plain rows, and these with a padded batch.

    A window is made so short meanwhile that these texts are longer.
    """
    window = getattr(network.config, "sliding_window", None)
    try:
        if window is not None:
            network.config.sliding_window = NEAR
        return _measure(network, one, two)
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError, NotImplementedError):
        return Probe(float("inf"))
    finally:
        network.evaluated = 0
        if window is not None:
            network.config.sliding_window = window


def _measure(network: Network, one: Tokens, two: Tokens) -> Probe:
    tree = grow_tree([one, two], Sizes(tokens=1, sequences=2, trunk=1))
    trunk = tree.roots[0]
    shared = trunk.stop if isinstance(trunk, Trunk) else 0
    packed = pack_twig(tree, Twig(0, 2, shared))
    kept = network.open()
    network.call(kept, one[:shared], range(shared), see_chain(0, shared), [shared - 1])
    logits = network.call(kept, packed.tokens, packed.depths, mask_packed(packed, shared), range(len(packed.tokens)))
    plain = [_call_plain(network, [row])[0] for row in tree.sequences]
    padded = _call_plain(network, [(row + one + two)[: len(one + two)] for row in tree.sequences])
    return Probe(
        max(_compare(network, row[shared:], logits[list(path)]) for row, path in zip(plain, packed.paths, strict=True)),
        max(_compare(network, row[shared:], long[shared : len(row)]) for row, long in zip(plain, padded, strict=True)),
    )


def _call_plain(network: Network, rows: Sequence[Tokens]) -> Any:
    torch = network.torch
    with torch.inference_mode():
        return network.model(torch.tensor(rows, device=network.device)).logits


def _compare(network: Network, some: Any, others: Any) -> float:
    one, other = (network.torch.log_softmax(logits.float(), -1) for logits in (some, others))
    return float((one - other).square().mean(-1).sqrt().max())
