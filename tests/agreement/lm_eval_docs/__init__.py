"""Small invented documents with the columns that lm-eval's tasks read."""

from lm_eval_docs.cases import CASES, OURS, Case
from lm_eval_docs.pen import Pen, splits_of

__all__ = ["CASES", "OURS", "Case", "Pen", "splits_of"]
