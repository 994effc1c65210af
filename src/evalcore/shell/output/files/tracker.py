"""A run in the files that lm-eval's tracker writes: a folder of the model's name, and a time in every file's name."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.wire import decode_line
from evalcore.shell.files.given import parse_output, parse_path
from evalcore.shell.logs.lm_eval.names import STAMP
from evalcore.shell.logs.lm_eval.rows import decode_fields, read_sample_rows, restore_nonfinite
from evalcore.shell.logs.runs.run_record import Recorded
from evalcore.shell.logs.runs.shards import pool_beside, tell_parts
from evalcore.shell.logs.runs.source import find_results
from evalcore.shell.output.files.results import VARYING
from evalcore.shell.safety.replacement import replace_file
from evalcore.shell.safety.safe_text import slug

Plain = Mapping[str, object]


def write_lm_eval(
    run: str | os.PathLike[str] | Recorded, out: str | os.PathLike[str], *, time: datetime | str
) -> tuple[Path, ...]:
    """Write ``<model>/results_<time>.json`` and ``<model>/samples_<task>_<time>.jsonl`` of a run below ``out``.

    ``run`` is a run folder of evalcore or an output of lm-eval; of shards that have results each, the newest: samples
    are those that its results count. Whatever it says is kept, evalcore's own under the key
    ``evalcore``; what differs between runs comes from ``run.json``; numbers that JSON has no words for are ``NaN`` and
    ``Infinity``, as lm-eval writes them.
    """
    given = run.path if isinstance(run, Recorded) else parse_path(run)
    path, results, chosen = find_results(given)
    logs = pool_beside(path, given)
    warn_caller((*chosen, *tell_parts(logs, given)))
    stamp = _write_stamp(time)
    named = results.get("model_name_sanitized")
    folder = parse_output(out) / _name_file(named if isinstance(named, str) else "model")
    whole = {**results, **_read_varying(path.with_name("run.json"), results)}
    text = json.dumps(whole, indent=2)
    written = [replace_file(folder / f"results_{stamp}.json", [text])]
    for log in logs:
        target = folder / f"samples_{_name_file(log.task)}_{stamp}.jsonl"
        files = log.files if log.whole else (log.path,)
        written.append(replace_file(target, (json.dumps(row) + "\n" for row in _read_rows(*files))))
    return tuple(written)


def warn_caller(texts: Iterable[str]) -> None:
    """Warn the caller of a function, who has no report to read it in."""
    for text in texts:
        warnings.warn(text, UserWarning, stacklevel=2)


def _write_stamp(time: datetime | str) -> str:
    """A time as lm-eval has it in file names."""
    text = (time.isoformat() if isinstance(time, datetime) else time).replace(":", "-")
    if STAMP.fullmatch(text) is None:
        raise EvalError(f"expected a time such as 2026-11-16T12:30:00.000000, got {text!r}")
    return text


def _name_file(name: str) -> str:
    """A name as lm-eval puts it in a path; one that would lead elsewhere is made harmless."""
    plain = "/" not in name and "\\" not in name and name.isprintable() and name.strip(".")
    return name if plain and len(name.encode()) < 150 else slug(name)


def _read_varying(path: Path, results: Plain) -> dict[str, object]:
    """The values of keys that evalcore keeps in a file of their own."""
    missing = [key for key in VARYING if key in results and results[key] is None]
    if not missing or not path.is_file():
        return {}
    facts = decode_line(path.read_bytes(), str(path))
    return {key: facts.get(key) for key in missing} if isinstance(facts, dict) else {}


def _read_rows(*paths: Path) -> Iterator[Plain]:
    """The rows of logs with the numbers that evalcore writes as null put back (see ``files.write_samples``)."""
    for row in (decode_fields(one.fields) for one in read_sample_rows(*paths)):
        own = row.get("evalcore")
        if not isinstance(own, Mapping) or "nonfinite" not in own:
            yield row
            continue
        rest = {key: value for key, value in row.items() if key != "evalcore"}
        left = {key: value for key, value in own.items() if key != "nonfinite"}
        yield {**restore_nonfinite(rest, own), **({"evalcore": left} if left else {})}
