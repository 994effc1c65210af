"""The run folder: each file is whole or not there, and never outside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple

from evalcore.core.lm_eval.sample_log import DocumentRows
from evalcore.shell.safety.credentials import hide_in_bytes, list_credentials
from evalcore.shell.safety.replacement import replace_file, replace_with
from evalcore.shell.safety.safe_text import slug
from evalcore.shell.safety.secrets import redact, redact_task
from evalcore.shell.safety.strict_json import drop_nonfinite, dump_json, dump_page, encode_json, to_plain

Plain = Mapping[str, object]


class DocumentLines(NamedTuple):
    """The lines of some documents: what those of each begin with, how they go on under each filter, and all hashes."""

    begun: Sequence[bytes]
    ends: Sequence[Sequence[bytes]]
    hashes: str


Document = DocumentRows | DocumentLines
FILES = ("results.json", "config.yaml", "run.json", "answers.jsonl")


def write_results(folder: Path, results: Plain) -> Path:
    """``results.json``: the same bytes for the same answers, however often the run was stopped."""
    return replace_file(folder / "results.json", [dump_page(results)])


def write_run(folder: Path, facts: Plain, secrets: Iterable[str] = ()) -> Path:
    """``run.json``: what differs between two runs of the same thing (clock, machine, versions, how much was asked)."""
    return replace_file(folder / "run.json", [dump_page(redact(facts, secrets))])


def write_samples(folder: Path, task: str, pieces: Iterable[Iterable[Document]]) -> Path:
    """``samples_<task>.jsonl``: one line per filter and document of each piece (see ``sample_lines``)."""
    return replace_with(name_samples(folder, task), partial(_write_pieces, pieces))


def _write_pieces(pieces: Iterable[Iterable[Document]], path: Path) -> None:
    """Write documents as they come, filter by filter in each piece.

    Lines of all filters but the first wait for the end of their piece, without what they begin with: that is read back
    from the lines of the first.
    """
    write = _write_hidden if list_credentials() else _write_document
    with open(path, "xb", buffering=BUFFER) as file, open(path, "rb", buffering=BUFFER) as written:
        for piece in pieces:
            written.seek(start := file.tell())
            with ExitStack() as stack:
                sizes, waiting = list[int](), list[IO[bytes]]()
                for document in piece:
                    begun, ends = write(document)
                    sizes.extend(map(len, begun))
                    file.write(b"".join(chain.from_iterable(zip(begun, ends[0], strict=True))))
                    while len(waiting) < len(ends) - 1:
                        waiting.append(stack.enter_context(SpooledTemporaryFile(MOST_HELD, dir=str(path.parent))))
                    for out, lines in zip(waiting, ends[1:], strict=True):
                        out.writelines(lines)
                file.flush()
                for rests in waiting:
                    rests.seek(0)
                    written.seek(start)
                    file.writelines(map(_join_line, written, sizes, rests))


BUFFER, MOST_HELD = 1 << 20, 1 << 24


def name_samples(folder: Path, task: str) -> Path:
    """Where a task's samples are, whatever its name.

    >>> name_samples(Path("run"), "mmlu_pro").as_posix()
    'run/samples_mmlu_pro.jsonl'
    """
    return folder / f"samples_{slug(task)}.jsonl"


def list_files(folder: Path, tasks: Iterable[str]) -> tuple[str, ...]:
    """The files of a run, in the order people read them; several sample logs in one entry.

    >>> list_files(Path("no such folder"), ["gsm8k"])
    ()
    """
    files = [name for name in FILES if (folder / name).is_file()]
    samples = [path.name for path in (name_samples(folder, task) for task in tasks) if path.is_file()]
    logs = samples if len(samples) < 2 else [f"samples_<task>.jsonl of {len(samples)} tasks"]
    return (*files[:1], *logs, *files[1:])


def write_config(folder: Path, config: Plain, secrets: Iterable[str] = ()) -> Path:
    """``config.yaml``: the run as resolved, without secrets; it can be run again as it is.

    Secrets are looked for where they may stand: documents and prompts are written as they are.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True  # evalcore's own reader refuses aliases

    text = yaml.dump(_to_yaml(redact_config(config, secrets)), Dumper=Dumper, sort_keys=False, width=110)
    return replace_file(folder / "config.yaml", [OURS + "\n", text])


OURS = "# This run as resolved by evalcore, which may replace this file."
MAY_HOLD_SECRETS = ("model_args", "metadata", "gen_kwargs")


def redact_config(config: Plain, secrets: Iterable[str] = ()) -> dict[str, object]:
    """A run config without secrets, nor in the tasks that are written into it.

    >>> redact_config({"model": "m", "gen_kwargs": {"api_key": "abc"}})
    {'model': 'm', 'gen_kwargs': {'api_key': '[redacted]'}}
    """
    held = {key: redact(value, secrets) if key in MAY_HOLD_SECRETS else value for key, value in config.items()}
    tasks = held.get("tasks")
    if isinstance(tasks, list):
        held["tasks"] = [redact_task(one, secrets) if isinstance(one, Mapping) else one for one in tasks]
    return held


def _to_yaml(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _to_yaml(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_to_yaml(one) for one in value]
    return value if value is None or type(value) in (str, bool, int, float) else _to_yaml(to_plain(value))


def write_lines(document: DocumentRows) -> DocumentLines:
    """Write the lines of a document from its rows."""
    head, rests, alike = document
    hashes = "".join([str(rests[0].get(name, "")) for name in HASHES]) if rests else ""
    try:
        if not alike and not all(map(head.keys().isdisjoint, rests)):  # a metric is called like a key of all rows
            raise ValueError
        begun = encode_json(head, alike)[:-1]
        ends = [[b", %b\n" % encode_json(rest, alike)[1:] if rest else b"}\n"] for rest in rests]
        return DocumentLines([begun], ends, hashes)
    except (ValueError, TypeError):
        return DocumentLines([b""], [[_write_line({**head, **rest})] for rest in rests], hashes)


HASHES = ("doc_hash", "prompt_hash", "target_hash")


def _write_document(document: Document) -> tuple[Sequence[bytes], Sequence[Sequence[bytes]]]:
    lines = document if isinstance(document, DocumentLines) else write_lines(document)
    return lines.begun, lines.ends


def _write_hidden(document: Document) -> tuple[Sequence[bytes], Sequence[Sequence[bytes]]]:
    """Write lines without the credentials in use, hidden after all hashes are taken."""
    begun, ends = _write_document(document)
    return list(map(hide_in_bytes, begun)), [list(map(hide_in_bytes, lines)) for lines in ends]


def _join_line(line: bytes, size: int, rest: bytes) -> bytes:
    return line[:size] + rest


def _write_line(row: Plain) -> bytes:
    """One line of JSON in which a number that JSON has no word for is null and told under evalcore's key."""
    clean, nonfinite = drop_nonfinite(row)
    if nonfinite and isinstance(clean, dict):
        extra = clean.get("evalcore")
        clean["evalcore"] = {**(extra if isinstance(extra, dict) else {}), "nonfinite": nonfinite}
    return dump_json(clean).encode("ascii") + b"\n"
