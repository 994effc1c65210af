"""Functions of a trainer that may hang or crash, in processes that can be killed.

verifier_pool    any number of threads to several workers
verifier_worker  this side of one worker: start, call within a deadline, kill
verifier_loop    its other side: load the verifier, then judge call after call
"""

from evalcore.adapters.verifiers.verifier_pool import VerifierPool

__all__ = ["VerifierPool"]
