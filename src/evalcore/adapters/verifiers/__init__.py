"""Functions of a trainer that may hang or crash, in processes that can be killed.

child   a worker's side: load the verifier, then judge call after call
worker  this side of one worker: start, call within a deadline, kill
pool    VerifierPool: many workers, any number of threads
"""

from evalcore.adapters.verifiers.pool import VerifierPool

__all__ = ["VerifierPool"]
