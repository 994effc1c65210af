"""Recorded answers in place of a model: evalcore's answer logs and lm-eval's sample logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from glob import glob, has_magic
from hashlib import file_digest, sha256
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from evalcore.core.documents import request_digest
from evalcore.core.errors import EvalError, unknown
from evalcore.core.records import Failure, Generate, Reply
from evalcore.shell.answerlog.fold import LogState, fold_lines
from evalcore.shell.answerlog.line import PREFIX, Logged
from evalcore.shell.data.opening import open_bytes
from evalcore.shell.models.model import OTHER_OPTIONS, Backend, Heard, Model, Question
from evalcore.shell.models.replay_samples import read_sample_log

__all__ = ["BACKEND", "Recording", "answer_from", "find_recordings", "open_replay", "read_recordings"]

ARGUMENTS = (
    ("path", "an answer log, a sample log, a folder of them or a glob; `paths` for a list"),
    ("model", "whose answers, where a log holds several models' (part of the identity is enough)"),
)


class Recording(Struct, frozen=True):
    """Replies by request and repeat; ``prompts`` finds the requests that begin with the same prompt."""

    replies: Mapping[tuple[str, int], tuple[Reply, str]]
    prompts: Mapping[str, frozenset[str]]
    problems: tuple[str, ...] = ()


def open_replay(arguments: Mapping[str, object]) -> Model:
    """A model that gives the answers recorded in files, and a failure where there is none."""
    for name in arguments.keys() - {"path", "paths", "model"}:
        raise unknown("replay argument", name, ("path", "paths", "model"))
    given = arguments.get("paths", arguments.get("path"))
    names = [given] if isinstance(given, str | Path) else given
    if not isinstance(names, list | tuple) or not names or not all(isinstance(one, str | Path) for one in names):
        raise EvalError("model replay: expected model_args with a path (or paths) of recorded answers")
    files = [file for name in names for file in find_recordings(str(name))]
    wanted = arguments.get("model")
    recording = read_recordings(files, None if wanted is None else str(wanted))
    shown = ", ".join(map(str, names))

    def ask(questions: Sequence[Question]) -> Iterator[Heard]:
        for at, question in enumerate(questions):
            reply, finish, exact = answer_from(recording, question, shown)
            yield Heard(at, reply, finish if exact else OTHER_OPTIONS)

    identity = f"replay:{_hash_files(files)}" + (f":{wanted}" if wanted else "")
    return Model("replay", identity, ask, recorded=True, warnings=recording.problems)


def answer_from(recording: Recording, question: Question, shown: str = "the log") -> tuple[Reply, str, bool]:
    """The recorded reply, how it ended, and whether the options were the same too.

    Where only the options differ, a prompt that was asked in one way only is taken for the same question.

    >>> answer_from(Recording({}, {}), Question(Generate("?")))
    (Failure(reason='no recorded answer for this request in the log'), '', True)
    """
    request, repeat = question
    found = recording.replies.get((request_digest(request), repeat))
    if found is not None:
        return (*found, True)
    if isinstance(request, Generate):
        near = recording.prompts.get(request.prompt, frozenset())
        found = recording.replies.get((next(iter(near)), repeat)) if len(near) == 1 else None
        if found is not None:
            return (*found, False)
    return Failure(f"no recorded answer for this request in {shown}"), "", True


def find_recordings(name: str) -> list[Path]:
    """The files that a path, folder or glob names; in a folder its answer log, or else its sample logs.

    >>> find_recordings("no/such/run")
    Traceback (most recent call last):
    evalcore.core.errors.EvalError: no/such/run: no recorded answers there
    """
    path = Path(name).expanduser()
    if path.is_dir():
        found = [one for one in sorted(path.glob("answers.jsonl*")) if one.suffix in (".jsonl", ".gz", ".zst")]
        found = found[:1] or sorted(path.rglob("samples_*.jsonl*"))
    else:
        found = [path] if path.is_file() else sorted(map(Path, glob(name, recursive=True))) if has_magic(name) else []
        found = [file for one in found for file in (find_recordings(str(one)) if one.is_dir() else [one])]
    if not found:
        raise EvalError(f"{name}: no recorded answers there")
    return found


def read_recordings(files: Sequence[Path], model: str | None = None) -> Recording:
    """All recorded replies; of several to one question the last counts, and how many had several is said."""
    replies: dict[tuple[str, int], tuple[Reply, str]] = {}
    prompts: dict[str, frozenset[str]] = {}
    problems: list[str] = []
    several: set[tuple[str, int]] = set()
    for entry in (entry for path in files for entry in _read_entries(path, model, problems)):
        key = entry.digest, entry.repeat
        old = replies.get(key)
        if old is not None and not isinstance(old[0], Failure):
            if isinstance(entry.reply, Failure):
                continue
            if repr(old[0]) != repr(entry.reply):  # repr: NaN is not equal to itself
                several.add(key)
        replies[key] = (entry.reply, entry.finish)
        if entry.prompt is not None:
            prompts[entry.prompt] = prompts.get(entry.prompt, frozenset()) | {entry.digest}
    if several:
        problems.append(f"{len(several)} questions have several recorded answers; the last one counts - at {files[0]}")
    return Recording(replies, prompts, tuple(problems))


class _Entry(NamedTuple):
    digest: str
    repeat: int
    reply: Reply
    finish: str = ""
    prompt: str | None = None


def _read_entries(path: Path, model: str | None, problems: list[str]) -> Iterator[_Entry]:
    with open_bytes(path) as file:
        is_log = file.read(len(PREFIX)) == PREFIX
    with open_bytes(path) as file:
        if is_log:
            state = fold_lines(file, str(path))
            problems += state.problems
            for one in _select_model(state, model, path):
                yield _Entry(one.request, one.repeat, one.reply, one.finish)
            return
        for request, heard in read_sample_log(file, str(path)):
            digest, prompt = request_digest(request), request.prompt if isinstance(request, Generate) else None
            for repeat, reply in enumerate(heard):
                if reply is not None:
                    yield _Entry(digest, repeat, reply, prompt=prompt)


def _select_model(state: LogState, wanted: str | None, path: Path) -> list[Logged]:
    """The answers of the only model in a log, or of the one that is wanted."""
    names = {one.model: state.models.get(one.model, one.model) for one in state.answers.values()}
    chosen = [name for name, identity in names.items() if wanted is None or wanted == name or wanted in identity]
    if wanted is not None and not chosen:
        raise unknown("model", wanted, names.values(), f" - at {path}")
    if len(chosen) > 1:
        shown = "; ".join(sorted(names[name] for name in chosen))
        raise EvalError(f"{path}: answers of several models; pick one with model_args: {{model: ...}} of: {shown}")
    return [one for one in state.answers.values() if one.model in chosen]


def _hash_files(files: Sequence[Path]) -> str:
    """A name for what the files say, wherever they are."""
    out = sha256()
    for path in files:
        with open(path, "rb") as file:
            out.update(file_digest(file, "sha256").digest())
    return out.hexdigest()[:16]


BACKEND = Backend(open_replay, "recorded answers: an answer log, or lm-eval's sample logs", ARGUMENTS)
