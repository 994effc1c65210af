"""The files of a task in a folder: the task, its documents and a run config, never over files that are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import quote

from evalcore.core.records.errors import EvalError, require_known
from evalcore.core.records.frozen_dict import FrozenRecord, thaw_dict
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.shell.data.wire import encode_line
from evalcore.shell.files.given import parse_path
from evalcore.shell.safety.replacement import replace_with
from evalcore.shell.starter.guess import DOCUMENTS, Guess, name_task, view_documents
from evalcore.shell.starter.shapes import SHAPES
from evalcore.shell.starter.table import read_table
from evalcore.shell.starter.task_text import word_command, write_run_config, write_task
from evalcore.shell.starter.templates import TEMPLATES


class TaskFolder(FrozenRecord, frozen=True):
    """Files that were written: the task, its documents, its config; and the command that asks a model of yours."""

    task: Path
    documents: Path
    config: Path
    command: str

    @property
    def files(self) -> tuple[Path, ...]:
        return self.task, self.documents, self.config


def write_guess(guess: Guess, folder: str | Path | None = None, *, overwrite: bool = False) -> TaskFolder:
    """Write the task that was guessed, with the documents as it reads them, into a folder (of its name)."""
    shape = SHAPES[guess.shape]
    held = [f"{role}: {', '.join(getattr(guess.columns, role).columns)}" for role in guess.columns.__struct_fields__]
    head = (
        f"A task that evalcore init made from {guess.path} ({guess.rows:,} rows).",
        f"Columns: {'; '.join(one for one in held if not one.endswith(': '))}.",
        f"Why this kind: {guess.why}; {shape.remark}.",
        f"{DOCUMENTS} is a copy of the rows: after changes, run evalcore init again with --overwrite.",
    )
    docs = view_documents(read_table(parse_path(guess.path)), guess.columns, guess.names).docs
    return _write_folder(folder or guess.name, guess.name, thaw_dict(guess.config), head, docs, overwrite=overwrite)


def write_template(
    name: str, output_type: str, folder: str | Path | None = None, *, overwrite: bool = False
) -> TaskFolder:
    """Write a small task of an output type, with two documents, into a folder (of its name)."""
    require_known("output type", [output_type], TEMPLATES)
    template, made = TEMPLATES[output_type], name_task(Path(), name)
    config = {
        "task": made,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": DOCUMENTS}},
        "test_split": "test",
        "output_type": output_type,
        **template.config,
        "metadata": {"version": 1.0},
    }
    head = (
        f"A task of the output type {output_type}, to begin with: put your documents into {DOCUMENTS}",
        "and their fields into the templates below.",
        f"What is measured: {SHAPES[template.shape].remark}.",
    )
    return _write_folder(folder or made, made, config, head, template.documents, overwrite=overwrite)


def _write_folder(
    folder: str | Path,
    name: str,
    config: Mapping[str, object],
    head: Iterable[str],
    docs: Iterable[Mapping[str, object]],
    *,
    overwrite: bool,
) -> TaskFolder:
    place, texts = parse_path(folder), config["output_type"] == GENERATE_UNTIL
    shown = place / "config.yaml"
    out = TaskFolder(place / f"{name}.yaml", place / DOCUMENTS, shown, word_command(name, str(shown), texts=texts))
    there = [path.name for path in out.files if path.exists()]
    if there and not overwrite:
        raise EvalError(
            f"{place} holds {', '.join(there)} already; name another folder with -o, or replace them with --overwrite"
        )
    told = (f"evalcore run {quote(str(shown))}", "", f"Runs the task in {name}.yaml.")
    _put(out.documents, map(encode_line, docs))
    _put(out.task, [write_task(config, head).encode("utf-8", "backslashreplace")])
    _put(out.config, [write_run_config(name, told, texts=texts).encode("utf-8", "backslashreplace")])
    return out


def _put(path: Path, parts: Iterable[bytes]) -> None:
    def write(part: Path) -> None:
        with part.open("xb") as file:
            file.writelines(parts)

    replace_with(path, write)
