"""Recorded answers of any harness: documents, golds, requests and replies, one document at a time."""

from evalcore.shell.answers.mapping import ColumnMap
from evalcore.shell.answers.opening import open_logs
from evalcore.shell.answers.record import Logged, LogTask, Problem

__all__ = ["ColumnMap", "LogTask", "Logged", "Problem", "open_logs"]
