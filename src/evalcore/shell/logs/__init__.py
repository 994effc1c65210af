"""Recorded answers of any harness: documents, golds, requests and replies, one document at a time."""

from evalcore.shell.logs.log import Logged, LogTask, Problem
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.tables.mapping import ColumnMap

__all__ = ["ColumnMap", "LogTask", "Logged", "Problem", "open_logs"]
