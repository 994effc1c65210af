"""Answers that were recorded: tables of answers and documents, logs of every harness, the answer log."""

from evalcore.core.answers.table import AnswerTable, Requests, request_table
from evalcore.core.pipeline import tabulate_answers
from evalcore.core.records.document import document_table, request_key, select_docs
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.answerlog.writer import open_log
from evalcore.shell.compare.runs import read_recorded
from evalcore.shell.logs.log import Logged, LogTask, Reader
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.report.report import Reported, report
from evalcore.shell.report.shown_run import ShownRun, show_run
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.view.viewer import view

__all__ = [
    "READERS",
    "AnswerTable",
    "ColumnMap",
    "LogTask",
    "Logged",
    "Reader",
    "Recorded",
    "Reported",
    "Requests",
    "RunResult",
    "ShownRun",
    "document_table",
    "open_log",
    "open_logs",
    "read_log",
    "read_recorded",
    "report",
    "request_key",
    "request_table",
    "select_docs",
    "show_run",
    "tabulate_answers",
    "view",
]
