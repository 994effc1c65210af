"""Which files are logs: those that a reader recognises, and tables with the declared columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.unpack import PACKED, open_bytes, read_lines, strip_packing
from evalcore.shell.data.wire import decode_line, number_lines
from evalcore.shell.logs.head import LogFile, is_torn, tell_file
from evalcore.shell.logs.lm_eval.log import SAMPLES
from evalcore.shell.logs.lm_eval.names import STAMP, find_stamp, is_sample_name
from evalcore.shell.logs.log import Reader
from evalcore.shell.logs.paths import Named
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.tables.column_map import ColumnMap

if TYPE_CHECKING:
    from evalcore.core.tables import Tables

EXPECTED = (
    "expected a sample log (lm-eval, lmms-eval, evalcore), an Inspect log (.eval, .json), or a table (JSONL, CSV, "
    "Parquet) with its columns declared (--answer, --gold, ...)"
)
REFUSALS = {
    "answers": "an answer log has no documents or golds; name the folder of its run",
    "binary": "found bytes that are no text",
    "empty": "it is empty",
    "json": "found JSON of another kind, and no columns are declared",
    "text": "found text, and no columns are declared",
    "parquet": "found Parquet, and no columns are declared",
    "arrow": "found Arrow, and no columns are declared",
}
UNKNOWN = "no reader takes what is in it"
DATA = frozenset({".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".arrow", ".eval"})
"""Suffixes of files that are reported if a folder or glob includes them and they are not logs."""
NO_SAMPLES = (
    "holds totals only, and scores by document are needed: run with log_samples: true (--log_samples), and keep the "
    "samples_* beside it"
)

FLAGS = "--answer COLUMN --gold COLUMN -o DIR"


class Searched(Struct, frozen=True):
    """The logs to search for: those that these readers recognise, and tables with these columns.

    A host's own ``tables`` score and close what they hold; None leaves that to what a run says of itself. ``reducers``
    are for logs with several scores a document.
    """

    readers: PMap[str, Reader] = READERS
    columns: ColumnMap | None = None
    tables: Tables | None = None
    reducers: tuple[str, ...] = ()

    def tell(self, path: Path) -> LogFile:
        """Detect the format of a file."""
        return tell_file(path, self.readers)

    def is_log(self, file: LogFile, *, directly: bool = False) -> bool:
        """Whether a file is a log; a table is one if its columns are declared and, unless named directly, present."""
        if file.reader is None or not file.reader.tabular:
            return file.reader is not None
        return self.columns is not None and (directly or file.reader.has_columns(file, self.columns))


ALL = Searched()


def find_logs(named: Named, searched: Searched) -> tuple[list[LogFile], bool]:
    """Find the log in a file, or those beside results; also return whether a file was left out that users may miss.

    A file that is no log is refused only if it was named directly or has the name of a log.
    """
    file = searched.tell(named.path)
    if file.is_results:
        return (_find_beside(file, searched) if named.directly else []), False
    if not named.directly and _is_copy(file, searched):
        return [], False
    if searched.is_log(file, directly=named.directly):
        return [file], False
    if file.form in ("text", "binary") and is_sample_name(named.path):
        return [replace(file, reader=SAMPLES)], False
    if named.directly or _is_damaged(file, searched.columns is not None):
        raise EvalError(f"{named.path}: {EXPECTED}; {REFUSALS.get(file.form, UNKNOWN)}")
    return [], file.form != "answers" and (bool(list_suffixes(named.path) & DATA) or is_torn(file))


def _is_copy(file: LogFile, searched: Searched) -> bool:
    """Whether a file is the copy that ``run --parquet`` writes beside results or a sample log."""
    path = file.path
    if file.form != "parquet" or path.suffix != ".parquet":
        return False
    if is_sample_name(path.with_suffix(".jsonl")):
        names = (f"{ending}{packed}" for ending in (".jsonl", ".json") for packed in ("", *PACKED))
        return any(path.with_suffix(name).is_file() for name in names)
    results = path.with_suffix(".json")
    return results.is_file() and searched.tell(results).is_results


def _is_damaged(file: LogFile, declared: bool) -> bool:
    """Whether a file has the name of a log, or of a table if columns are declared, but is neither."""
    path = file.path
    if file.form == "binary" and declared and list_suffixes(path) & DATA:
        return True
    if file.form == "empty":
        return is_sample_name(path) or path.suffix == ".eval"
    return path.suffix == ".eval" or (path.suffix == ".json" and STAMP.search(path.name) is not None and is_torn(file))


def list_suffixes(path: Path) -> set[str]:
    """List the last suffixes of a file's name, without that of its compression.

    >>> list_suffixes(Path("a.CSV.gz"))
    {'.csv'}
    """
    return {one.lower() for one in path.suffixes[-2:]} - set(PACKED)


def _find_beside(results: LogFile, searched: Searched) -> list[LogFile]:
    """Find the sample logs of the run that wrote some results."""
    stamp = find_stamp(results.path.name)
    near = (one for one in sorted(results.path.parent.iterdir()) if one.is_file() and find_stamp(one.name) == stamp)
    logs = [file for file in map(searched.tell, near) if file.has_rows]
    if not logs:
        raise EvalError(f"{results.path}: {NO_SAMPLES}")
    return logs


def refuse_other_rows(path: Path) -> None:
    """Refuse JSON rows that are no sample log; the error says what is missing."""
    with open_bytes(path) as file:
        lines = [line for _, (_, line) in zip(range(2), number_lines(read_lines(file, str(path))), strict=False)]
    rows = len(lines) == 2 or (lines and strip_packing(path.name).endswith(".jsonl"))
    if not rows:
        return
    try:
        row = decode_line(lines[0], "")
    except EvalError:
        return
    if isinstance(row, dict) and ("doc_id" not in row or {"doc", "arguments"}.isdisjoint(row)):
        raise EvalError(
            f"{path}: rows of JSON, but no sample log: its rows need doc_id, doc, target, arguments, resps, and a score"
            f" under the name of each metric; these have {', '.join(map(str, row)) or 'nothing'}. "
            f"Of a table of answers, `evalcore score {path} {FLAGS}` makes one"
        )
