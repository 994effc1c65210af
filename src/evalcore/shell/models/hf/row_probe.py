"""Whether a model's attention takes packed rows: one is compared with plain ones when the model is loaded."""

from __future__ import annotations

from evalcore.core.prefixes import Sizes, Tokens, Trunk, Twig, grow_tree, mask_packed, pack_twig
from evalcore.shell.models.hf.network import Network, see_chain

PROBES = (
    "The cat sat on the mat by the old stone wall of the garden and looked at the birds in the tree.",
    "The cat sat on the mat by the old stone wall of the house; nobody knew why it had come so far.",
)
NEAR = 6
"""The window of a model while it is probed: shorter than what the probes share."""


def probe_rows(network: Network, one: Tokens, two: Tokens) -> float:
    """How far a packed row after a kept prefix is from a plain one, in log-probabilities.

    A window is made so short meanwhile that these texts are longer.
    """
    window = getattr(network.config, "sliding_window", None)
    try:
        if window is not None:
            network.config.sliding_window = NEAR
        return _measure(network, one, two)
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError, KeyError, NotImplementedError):
        return float("inf")
    finally:
        network.evaluated = 0
        if window is not None:
            network.config.sliding_window = window


def _measure(network: Network, one: Tokens, two: Tokens) -> float:
    torch, tree = network.torch, grow_tree([one, two], Sizes(tokens=1, sequences=2, trunk=1))
    trunk = tree.roots[0]
    shared = trunk.stop if isinstance(trunk, Trunk) else 0
    packed = pack_twig(tree, Twig(0, 2, shared))
    kept = network.open()
    network.call(kept, one[:shared], range(shared), see_chain(0, shared), [shared - 1])
    logits = network.call(kept, packed.tokens, packed.depths, mask_packed(packed, shared), range(len(packed.tokens)))
    far = 0.0
    for sequence, path in zip(tree.sequences, packed.paths, strict=True):
        with torch.inference_mode():
            plain = network.model(torch.tensor([list(sequence)], device=network.device)).logits[0, shared:]
        apart = torch.log_softmax(logits[list(path)].float(), -1) - torch.log_softmax(plain.float(), -1)
        far = max(far, float(apart.abs().max()))
    return far
