"""The answer log: one append-only file from which the state of a run is folded."""

from evalcore.core.records.document import request_digest as request_hash
from evalcore.shell.answerlog.fold import LogState, fold_lines, read_log
from evalcore.shell.answerlog.line import Logged
from evalcore.shell.answerlog.writer import LogWriter, open_log

__all__ = ["LogState", "LogWriter", "Logged", "fold_lines", "open_log", "read_log", "request_hash"]
