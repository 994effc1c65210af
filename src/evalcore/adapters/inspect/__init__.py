"""evalcore inside Inspect.

scorer    metrics and filters as a scorer
reducers  reducers over epochs
metrics   estimates as metrics
"""

from evalcore.adapters.inspect.metrics import close_values, evalcore_metrics
from evalcore.adapters.inspect.reducers import evalcore_reducers
from evalcore.adapters.inspect.scorer import evalcore_scorer

__all__ = ["close_values", "evalcore_metrics", "evalcore_reducers", "evalcore_scorer"]
