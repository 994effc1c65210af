"""Recorded answers in place of a model: evalcore's answer logs, and logs of every format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace
from pyrsistent import PMap

from evalcore.core.records.document import digest_request, share_options, write_options, write_request
from evalcore.core.records.errors import EvalError, unknown
from evalcore.core.records.frozen_dict import FrozenDict
from evalcore.core.records.request import Failure, Generate, Reply, Request
from evalcore.shell.answerlog.fold import LogState, fold_lines
from evalcore.shell.answerlog.line import LoggedAnswer
from evalcore.shell.data.unpack import open_bytes
from evalcore.shell.files.given import parse_path
from evalcore.shell.logs.lm_eval.requests import read_sample_log
from evalcore.shell.logs.log import Logged, Reader
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.readers import READERS
from evalcore.shell.logs.recordings import choose_recordings, hash_files
from evalcore.shell.logs.search import ALL, Searched
from evalcore.shell.logs.tables.column_map import ColumnKeys, declare_columns
from evalcore.shell.models.model import NOT_RECORDED, OTHER_OPTIONS, Backend, Heard, Model, Question, fit_reply
from evalcore.shell.models.openai.body import render_messages

ARGUMENTS = (
    ("path", "an answer log, a sample log or another log, a folder of them or a glob; `paths` for a list"),
    ("model", "whose answers, where a log holds several models' (part of the identity is enough)"),
    ("answer", "the column of the answers in a plain table; also `prompt` and the other columns of score"),
)
COLUMNS = tuple(name for name in ColumnKeys.__annotations__ if name != "score")


Asked = str | tuple[str, ...]
"""What was asked: a digest, which is all that an answer log has of it, or the texts of the request."""


class Recording(Struct, frozen=True):
    """Replies by request and repeat; ``prompts`` finds the requests with the same prompt.

    ``texts``: requests are identified by their texts, not by digests.
    """

    replies: FrozenDict[tuple[Asked, int], tuple[Reply, str]]
    prompts: FrozenDict[str, frozenset[Asked]] = FrozenDict()
    problems: tuple[str, ...] = ()
    texts: bool = False


class Source(NamedTuple):
    """Where recorded answers are: the files, how they are read, whose answers count, and what to call them."""

    files: Sequence[Path]
    searched: Searched
    model: str | None
    shown: str


def open_replay(arguments: Mapping[str, object], readers: PMap[str, Reader] = READERS) -> Model:
    """Open a model that gives the answers recorded in files, and a failure where there is none."""
    source, model = _find_source(arguments, readers)
    recording = read_recordings(source.files, source.model, source.searched)
    missing = Failure(f"no recorded answer for this request in {source.shown}"), NOT_RECORDED

    def ask(questions: Sequence[Question]) -> Iterator[Heard]:
        write = share_options()
        for at, question in enumerate(questions):
            yield Heard(at, *(find_answer(recording, question, write) or missing), (at + 1) % AT_ONCE != 0)

    return replace(model, ask=ask, warnings=(*model.warnings, *recording.problems), hint=_give_hint(recording))


def identify_replay(arguments: Mapping[str, object], readers: PMap[str, Reader] = READERS) -> Model:
    """Open the same model without its answers."""
    return _find_source(arguments, readers)[1]


def _find_source(arguments: Mapping[str, object], readers: PMap[str, Reader]) -> tuple[Source, Model]:
    for name in sorted(arguments.keys() - {"path", "paths", "model", *COLUMNS}):
        raise unknown("replay argument", name, ("path", "paths", "model", *COLUMNS))
    given = arguments.get("paths", arguments.get("path"))
    names = [given] if isinstance(given, str | Path) else given
    if not isinstance(names, list | tuple) or not names or not all(isinstance(one, str | Path) for one in names):
        raise EvalError("model replay: expected model_args with a path (or paths) of recorded answers")
    columns = {name: str(arguments[name]) for name in COLUMNS if arguments.get(name) is not None}
    searched = Searched(readers, declare_columns(columns))
    files, skipped = choose_recordings(map(parse_path, names), searched)
    wanted = arguments.get("model")
    shown = ", ".join(parse_path(name).name for name in names)  # results do not depend on where the files are
    declared = "".join(f":{name}={column}" for name, column in columns.items())
    identity = f"replay:{hash_files(files)}" + (f":{wanted}" if wanted else "") + declared
    source = Source(files, searched, None if wanted is None else str(wanted), shown)
    return source, Model("replay", identity, _refuse, render_messages, recorded=True, warnings=tuple(skipped))


def _refuse(questions: Sequence[Question]) -> Iterator[Heard]:
    raise EvalError("recorded answers that were not read cannot be asked for")


def _give_hint(recording: Recording) -> str:
    count = len(recording.replies)
    asked = "none to any question of this run: same num_fewshot, seed, chat template and data as then?"
    return f" (of its {count:,} answers {asked})" if count else " (it holds no answers at all)"


AT_ONCE = 1000


def find_answer(
    recording: Recording, question: Question, write: Callable[[Mapping[str, object]], str] = write_options
) -> tuple[Reply, str] | None:
    """Find the recorded reply to a request, and how it ended; ``write`` writes options.

    If only the options differ, a prompt that was asked in one way only counts as the same question.

    >>> asked = Generate("2 + 2 =")
    >>> recording = Recording(FrozenDict({(digest_request(asked), 0): (" 4", "stop")}))
    >>> find_answer(recording, Question(asked))
    (' 4', 'stop')
    """
    request, repeat, digest, _ = question
    asked = write_request(request, write) if recording.texts else digest or digest_request(request)
    answer = recording.replies.get((asked, repeat))
    if answer is not None:
        return fit_reply(request, answer[0]), answer[1]
    near = recording.prompts.get(request.prompt, frozenset()) if isinstance(request, Generate) else frozenset()
    answer = recording.replies.get((next(iter(near)), repeat)) if len(near) == 1 else None
    return None if answer is None else (answer[0], OTHER_OPTIONS)


def read_recordings(files: Sequence[Path], model: str | None = None, searched: Searched = ALL) -> Recording:
    """Read all recorded replies; of several to one question the last counts, and a warning counts those."""
    replies: dict[tuple[Asked, int], tuple[Reply, str]] = {}
    prompts: dict[str, frozenset[Asked]] = {}
    problems: list[str] = []
    several: set[tuple[Asked, int]] = set()
    texts = all(searched.tell(path).form != ANSWERS for path in files)
    name = write_request if texts else digest_request
    for entry in (entry for path in files for entry in _read_entries(path, model, problems, searched, name)):
        key = entry.asked, entry.repeat
        old = replies.get(key)
        if old is not None and not isinstance(old[0], Failure):
            if isinstance(entry.reply, Failure):
                continue
            if repr(old[0]) != repr(entry.reply):  # repr: NaN is not equal to itself
                several.add(key)
        replies[key] = (entry.reply, entry.finish)
        if entry.prompt is not None:
            prompts[entry.prompt] = prompts.get(entry.prompt, frozenset()) | {entry.asked}
    if several:
        problems.append(f"{len(several)} questions have several recorded answers; the last one counts - at {files[0]}")
    return Recording(FrozenDict(replies), FrozenDict(prompts), tuple(problems), texts)


ANSWERS = "answers"


class _Entry(NamedTuple):
    asked: Asked
    repeat: int
    reply: Reply
    finish: str = ""
    prompt: str | None = None


def _read_entries(
    path: Path, model: str | None, problems: list[str], searched: Searched, name: Callable[[Request], Asked]
) -> Iterator[_Entry]:
    file = searched.tell(path)
    if file.form == ANSWERS:
        with open_bytes(path) as opened:
            state = fold_lines(opened, str(path))
        problems += state.problems
        for one in _select_model(state, model, path):
            yield _Entry(one.request, one.repeat, one.reply, one.finish)
        return
    other = not file.has_rows and searched.is_log(file, directly=True)
    for request, heard in _read_documents(path, searched) if other else read_sample_log(path):
        asked, prompt = name(request), request.prompt if isinstance(request, Generate) else None
        for repeat, reply in enumerate(heard):
            if reply is not None:
                yield _Entry(asked, repeat, reply, prompt=prompt)


def _read_documents(path: Path, searched: Searched) -> Iterator[tuple[Request, Sequence[Reply | None]]]:
    """What a log says was asked, with its replies; None where there is none."""
    for log in open_logs([path], mapping=searched.columns, readers=searched.readers):
        for row in log.rows():
            if isinstance(row, Logged):
                for request, replies in zip(row.requests, row.replies, strict=False):
                    yield request, [None if isinstance(reply, Failure) else reply for reply in replies]


def _select_model(state: LogState, wanted: str | None, path: Path) -> list[LoggedAnswer]:
    """Select the answers of the only model in a log, or of the model that is asked for."""
    names = {one.model: state.models.get(one.model, one.model) for one in state.answers.values()}
    chosen = [name for name, identity in names.items() if wanted is None or wanted == name or wanted in identity]
    if wanted is not None and not chosen:
        raise unknown("model", wanted, names.values(), f" - at {path}")
    if len(chosen) > 1:
        shown = "; ".join(sorted(names[name] for name in chosen))
        raise EvalError(f"{path}: answers of several models; pick one with model_args: {{model: ...}} of: {shown}")
    return [one for one in state.answers.values() if one.model in chosen]


def replay_backend(readers: PMap[str, Reader]) -> Backend:
    """A backend that replays what these readers read; a host adds it to ``MODELS`` under a name of its own."""
    opened, identified = partial(open_replay, readers=readers), partial(identify_replay, readers=readers)
    return Backend(opened, "recorded answers: an answer log, or lm-eval's sample logs", ARGUMENTS, identified)


BACKEND = replay_backend(READERS)
