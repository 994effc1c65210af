"""The results that a folder held before: kept beside the new ones unless these are of the same thing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.json import decode

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.wire import decode_line
from evalcore.shell.logs.paths import EARLIER
from evalcore.shell.output.files.results import UNFINISHED
from evalcore.shell.output.files.run_files import name_samples
from evalcore.shell.safety.replacement import replace_with
from evalcore.shell.safety.strict_json import dump_json

Plain = Mapping[str, object]
ELSEWHERE = frozenset({"model_args", "batch_size", "batch_sizes", "device", "use_cache"})
"""What results say of who answered and how fast: another model is refused before, and nothing else depends on it."""
RULES = ("policy", "confidence", "ci", "stderr", "on_unscorable", "trusted", "groups")
HASHES = {"doc_hash": "content", "prompt_hash": "prompt", "target_hash": "target"}


class Earlier(Struct, frozen=True):
    """What a folder held before a run: its results, what they were made from by task, and where they are kept now."""

    place: Path
    results: Plain
    inputs: Mapping[str, str]


@contextmanager
def hold_earlier(folder: Path, *, overwrite: bool) -> Iterator[Earlier | None]:
    """Keep what a folder holds in a folder of its own while a run replaces it, in whatever order and however it ends.

    Links are as good as copies, for files are replaced and never changed. If nothing was replaced, they go again.
    """
    earlier = None if overwrite else _keep_files(folder)
    try:
        yield earlier
    finally:
        if earlier is not None and _is_same(folder / "results.json", earlier.place / "results.json"):
            _drop_place(earlier.place)


def settle_earlier(
    folder: Path, earlier: Earlier | None, results: Plain, inputs: Mapping[str, str], keys: Collection[str] = ()
) -> tuple[str, ...]:
    """Say what changed since the earlier results, and where these are; those of the same thing are dropped.

    ``keys`` are those of the config that changed.
    """
    if earlier is None:
        return ()
    changes = (*list_changes(earlier, results), *_list_documents(folder, earlier, inputs))
    named = [key for key in keys if not any(change.startswith(f"{key} ") for change in changes)]
    if not (changes or named) or _is_same(folder / "results.json", earlier.place / "results.json"):
        _drop_place(earlier.place)
        return ()
    each = [*named, *changes[:MOST], *([f"{len(changes) - MOST} more"] if len(changes) > MOST else [])]
    kept = f"{folder} held results of something else, which are in {earlier.place} now"
    return kept, *(f"changed since {earlier.place.name}: {change}" for change in each)


MOST = 5


def list_changes(earlier: Earlier, results: Plain) -> list[str]:
    """What the results say of how they were made, where it differs: run, rules, tasks."""
    old, out = earlier.results, list[str]()
    before, after = _part(old, "config"), _part(results, "config")
    keys = [key for key in after if key not in ELSEWHERE and _differ(before.get(key), after[key])]
    out += [f"{key} (was {_show(before.get(key))}, is {_show(after[key])})" for key in keys]
    out += [key for key in ("system_instruction", "chat_template") if _differ(old.get(key), results.get(key))]
    rules, now = _part(old, "evalcore"), _part(results, "evalcore")
    unfinished = UNFINISHED in rules
    out += [key for key in RULES if _differ(rules.get(key), now.get(key)) and not (unfinished and key == "groups")]
    configs, tasks = _part(old, "configs"), _part(results, "configs")
    for task in tasks:
        if task not in configs:
            out += [] if unfinished else [f"{task} is new"]
            continue
        was, now_is = _settings(configs[task]), _settings(tasks[task])
        keys = [key for key in sorted({*was, *now_is}) if _differ(was.get(key), now_is.get(key))]
        if keys:
            out.append(f"the config of {task} at {', '.join(keys)}")
    return [*out, *(f"{task} is gone" for task in configs if task not in tasks)]


def _settings(config: object) -> Plain:
    """A task's config without what it says twice: of its examples what is their own, of its metadata the version."""
    given = config if isinstance(config, Mapping) else {}
    shots = {key: value for key, value in _part(given, "fewshot_config").items() if _differ(value, given.get(key))}
    return {**given, "fewshot_config": shots, "metadata": _part(given, "metadata").get("version")}


def _list_documents(folder: Path, earlier: Earlier, inputs: Mapping[str, str]) -> Iterator[str]:
    """Tasks whose documents, prompts or targets differ, with the first that does, where samples tell."""
    for task, digest in inputs.items():
        if earlier.inputs.get(task, digest) != digest:
            old, new = (_read_hashes(name_samples(one, task)) for one in (earlier.place, folder))
            yield f"the documents of {task}{_compare_hashes(old, new) if old and new else ''}"


def _compare_hashes(old: Mapping[object, Sequence[object]], new: Mapping[object, Sequence[object]]) -> str:
    """
    >>> _compare_hashes({0: "abc", 1: "def"}, {0: "abc", 1: "dxf", 2: "ghi"})
    ' (1 changed, the first is doc 1, in its prompt; 1 came)'
    """
    changed = [doc for doc in new if doc in old and old[doc] != new[doc]]
    came, went = sum(doc not in old for doc in new), sum(doc not in new for doc in old)
    parts = []
    if changed:
        pairs = zip(HASHES.values(), old[changed[0]], new[changed[0]], strict=True)
        what = " and ".join(word for word, one, other in pairs if one != other)
        parts.append(f"{len(changed)} changed, the first is doc {changed[0]}, in its {what}")
    parts += [f"{count} {word}" for count, word in ((came, "came"), (went, "went")) if count]
    return f" ({'; '.join(parts)})" if parts else " (in another order)"


def _read_hashes(path: Path) -> dict[object, Sequence[object]]:
    """The hashes of each document in a sample log; none if it cannot be read."""
    out: dict[object, Sequence[object]] = {}
    with suppress(OSError, ValueError), path.open("rb") as file:
        for line in file:
            row = decode_line(line, str(path))
            if isinstance(row, dict):
                out.setdefault(row.get("doc_id"), [row.get(key) for key in HASHES])
    return out


# --- files ------------------------------------------------------------------------------------------------------------


def _keep_files(folder: Path) -> Earlier | None:
    results, facts = (_read(folder / name) for name in ("results.json", "run.json"))
    if not results:
        return None
    place, known = _find_place(folder, results)
    samples = facts.get("samples")
    names = [name for name in samples if isinstance(name, str) and "/" not in name] if isinstance(samples, list) else []
    for name in () if known else (*names, "run.json", "results.json"):
        if (folder / name).is_file():
            _keep_file(folder / name, place / name)
    results, facts = (_read(place / name) for name in ("results.json", "run.json"))
    inputs = _part(facts, "inputs") or _part(results, "task_hashes")
    return Earlier(place, results, {task: str(digest) for task, digest in inputs.items()})


def _find_place(folder: Path, results: Plain) -> tuple[Path, bool]:
    """The next folder for earlier results; that of a run that was killed before it was settled, which has them."""
    last = 0
    while (folder / f"{EARLIER}{last + 1}" / "results.json").is_file():
        last += 1
    newest = folder / f"{EARLIER}{last}"
    unfinished = UNFINISHED in _part(results, "evalcore")
    if last and (unfinished or _is_same(folder / "results.json", newest / "results.json")):
        return newest, True
    return folder / f"{EARLIER}{last + 1}", False


def _keep_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(Exception):  # a file system without links, or a store
        target.unlink(missing_ok=True)
        os.link(source, target)
        return

    def copy(draft: Path) -> None:
        with source.open("rb") as given, draft.open("wb") as made:
            shutil.copyfileobj(given, made)

    replace_with(target, copy)


def _drop_place(place: Path) -> None:
    with suppress(OSError, EvalError):  # a store has no folders to remove
        for path in list(place.iterdir()):
            path.unlink(missing_ok=True)
        place.rmdir()


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.read_bytes() == other.read_bytes()
    except OSError:
        return False


def _read(path: Path) -> Plain:
    try:
        return decode(path.read_bytes(), type=dict[str, object])
    except (OSError, ValueError, RecursionError):
        return {}


def _part(data: Plain, key: str) -> Plain:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def _differ(one: object, other: object) -> bool:
    """Whether two values differ once they are written down."""
    return one != other and dump_json(one) != dump_json(other)


def _show(value: object) -> str:
    text = dump_json(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
