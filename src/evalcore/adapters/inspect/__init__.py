"""evalcore inside Inspect: its metrics and filters as a scorer, its estimates as metrics, its reducers over epochs."""

from evalcore.adapters.inspect.metrics import close_values, evalcore_metrics
from evalcore.adapters.inspect.reducers import evalcore_reducers
from evalcore.adapters.inspect.scorer import evalcore_scorer

__all__ = ["close_values", "evalcore_metrics", "evalcore_reducers", "evalcore_scorer"]
