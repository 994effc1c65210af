"""Documents: local files, datasets, and which of them a task is about."""

from evalcore.shell.data.override import find_override
from evalcore.shell.data.readers import read_documents
from evalcore.shell.data.splits import Splits, load_splits

__all__ = ["Splits", "find_override", "load_splits", "read_documents"]
