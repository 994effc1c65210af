"""JSON files: one document a line, one array, or an object that contains the array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from evalcore.core.records.errors import EvalError, unknown
from evalcore.shell.data.align import Doc, align_documents
from evalcore.shell.data.doubled_keys import decode_once
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.data.wire import decode_line, number_lines

USUAL = ("data", "rows", "examples", "documents", "instances")


def read_json_lines(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read a file with one document a line; a file that holds one array is read as such."""
    with open_bytes(path) as file:
        lines = number_lines(file)
        first = next(lines, None)
        if first is not None and not first[1].startswith(b"["):
            return align_documents([_decode_doc(first, path), *(_decode_doc(line, path) for line in lines)], str(path))
    return read_json(path, options)


def read_json(path: Path, options: Mapping[str, object]) -> list[Doc]:
    """Read a JSON file: an array, an object that contains one, or lines of JSON."""
    with open_bytes(path) as file:
        data = file.read().removeprefix(b"\xef\xbb\xbf").rstrip()
    where, field = str(path), options.get("field")
    if not data:
        return []
    first, more, _ = data.lstrip().partition(b"\n")
    if more and field is None and first.startswith(b"{") and _is_json(first):
        return align_documents([_decode_doc(line, path) for line in number_lines(data.split(b"\n"))], where)
    return align_documents(unwrap_documents(decode_once(data, where), where, field), where)


def _decode_doc(line: tuple[int, bytes], path: Path) -> Doc:
    where = f"{path}:{line[0]}"
    value = decode_once(line[1], where)
    if not isinstance(value, dict):
        raise EvalError(f"{where}: expected a JSON object, got {str(value)[:60]!r}")
    return value


def _is_json(line: bytes) -> bool:
    try:
        decode_line(line, "")
    except EvalError:
        return False
    return True


def unwrap_documents(value: object, where: str, field: object = None) -> list[Doc]:
    """Unwrap the list of documents that a JSON value is, or contains under ``field`` or a usual name.

    >>> unwrap_documents({"version": 1, "data": [{"q": "?"}]}, "a.json")
    [{'q': '?'}]
    >>> unwrap_documents(["one", "two"], "a.json")
    [{'text': 'one'}, {'text': 'two'}]
    """
    if field is not None:
        if not isinstance(field, str) or not isinstance(value, dict) or field not in value:
            raise unknown("field", str(field), value if isinstance(value, dict) else (), f" - at {where}")
        return unwrap_documents(value[field], where)
    if isinstance(value, dict):
        held = [one for name in USUAL if isinstance(one := value.get(name), list) and one and type(one[0]) is dict]
        return unwrap_documents(held[0], where) if len(held) == 1 else [value]
    if isinstance(value, list):
        return list(_check_documents(value, where))
    raise EvalError(f"{where}: expected an array of documents, got {str(value)[:60]!r}")


def _check_documents(rows: list[object], where: str) -> Iterable[Doc]:
    for at, row in enumerate(rows):
        if isinstance(row, dict):
            yield row
        elif isinstance(row, str):
            yield {"text": row}
        else:
            raise EvalError(f"{where}: expected objects, got {str(row)[:60]!r} in place {at}")
