"""Where things are: a run's folder and who may use it, the answer log, the cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from msgspec import to_builtins
from msgspec.json import decode, encode
from msgspec.structs import replace

from evalcore.core.records.errors import EvalError
from evalcore.core.records.frozen_dict import freeze_dict, thaw_dict, thaw_value
from evalcore.core.records.task import name_function
from evalcore.shell.answerlog.lock import hold_lock
from evalcore.shell.config.locations import anchor_paths, is_path
from evalcore.shell.config.plan import HERE, PATH_ARGS, Plan
from evalcore.shell.files.address import show_addresses, show_dataset
from evalcore.shell.files.given import find_cache, name_fully, parse_output, parse_path
from evalcore.shell.files.remote_path import RemotePath
from evalcore.shell.models.model import Model, compare_identities
from evalcore.shell.safety.replacement import refuse_write

PLACE_ARG = "base_url"
"""The model argument that says where a model is; which one answers depends on what follows host and port alone."""

PACE_ARGS = frozenset(
    ("num_concurrent", "max_retries", "timeout", "connect_timeout", "read_timeout", "give_up_after", "keep_alive")
)
"""The model arguments on which no answer depends."""


def run_folder(plan: Plan) -> Path:
    """``output_path`` (of a ``.json`` its folder, as in lm-eval), else a folder that the same plan finds again."""
    if plan.output_path:
        path = parse_output(plan.output_path)
        return path.parent if path.suffix == ".json" else path
    written = encode(forget_place(forget_engine(plan)), enc_hook=_write_value)
    return Path("runs") / f"{plan.model}-{sha256(written).hexdigest()[:8]}"


def forget_engine(plan: Plan) -> Plan:
    """Forget who does the work, what it may cost, how many failures are accepted, and the page that is made of it.

    No answer depends on that.

    >>> forget_engine(Plan(model="replay", tasks=(), engine="ray", workers=4)) == Plan(model="replay", tasks=())
    True
    """
    costs = {"prices": None, "max_cost": None, "max_requests": None}
    return replace(plan, engine=HERE, workers=None, address=None, allow_failures="0", report=False, **costs)


def forget_place(plan: Plan) -> Plan:
    """Forget at which host a model is and how fast it is asked.

    >>> args = {"model": "m", "base_url": "http://localhost:8000/v1", "num_concurrent": 8}
    >>> dict(forget_place(Plan(model="local-completions", tasks=(), model_args=args)).model_args)
    {'model': 'm', 'base_url': '/v1'}
    """
    args = {key: value for key, value in thaw_dict(plan.model_args).items() if key not in PACE_ARGS}
    if isinstance(place := args.get(PLACE_ARG), str):
        args[PLACE_ARG] = _cut_host(place)
    return replace(plan, model_args=freeze_dict(args))


def _cut_host(address: str) -> str:
    """
    >>> _cut_host("https://a.example:99/deployments/b?v=1"), _cut_host("localhost:8000")
    ('/deployments/b?v=1', 'localhost:8000')
    """
    _, scheme, rest = address.partition("://")
    return f"/{rest.partition('/')[2]}" if scheme else address


def log_path(plan: Plan, folder: Path) -> Path:
    """The answer log: in the run's folder, or shared under ``use_cache``."""
    if not plan.use_cache:
        return folder / "answers.jsonl"
    path = parse_output(plan.use_cache)
    return path if path.name.endswith(".jsonl") else path.with_name(path.name + ".jsonl")


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder from its config to its results; of one in a store, those of this machine."""
    path = find_spool(folder) / ".run"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as wrong:
        told = f"cannot use the folder {folder}: {wrong.strerror}; name another with output_path"
        raise refuse_write(told, wrong) from wrong
    try:
        with ExitStack() as held:
            try:
                held.enter_context(hold_lock(fd, path))
            except EvalError as wrong:
                raise EvalError(f"{folder}: {wrong}" if isinstance(folder, RemotePath) else str(wrong)) from wrong
            yield
    finally:
        os.close(fd)
        with suppress(OSError):
            path.unlink()
            if isinstance(folder, RemotePath):
                path.parent.rmdir()


def find_spool(path: Path) -> Path:
    """Find the folder for what a store cannot do, locks and growing files; of a local path the path itself."""
    if not isinstance(path, RemotePath):
        return path
    return find_cache() / "spool" / sha256(str(path).encode()).hexdigest()[:16]


class Claimed(NamedTuple):
    """The keys that a folder's earlier plan had otherwise, and what there is to say."""

    changed: tuple[str, ...]
    notes: tuple[str, ...]


def claim_folder(folder: Path, plan: Plan, home: Path | None, model: Model, *, overwrite: bool = False) -> Claimed:
    """Write the plan into its folder, unless the folder is another run's.

    A folder is for one model and one set of tasks. Anything else may change, and costs no answer that still fits.
    """
    from evalcore.shell.output.files.run_files import redact_config, write_config, write_run

    mine = redact_config(settled(plan, home))
    theirs, earlier = _earlier_config(folder / "config.yaml"), earlier_run(folder)
    changed = [key for key in sorted({*mine, *(theirs or ())}) if (theirs or mine).get(key) != mine.get(key)]
    foreign = [key for key in ("tasks",) if key in changed]
    identity, batches = model.identity, dict(model.batches)
    before = str(earlier.get("model_identity", identity))
    if before != identity:
        foreign.append(f"answers: of another model ({compare_identities(before, identity)})")
    if foreign and not overwrite:
        raise EvalError(
            f"{folder} holds a run with other {' and '.join(foreign)}; name another output_path, or add --overwrite "
            "(its answers stay in the log, its results are replaced)"
        )
    write_config(folder, mine)
    write_run(folder, {**earlier, "model_identity": identity, "batches": batches})
    same = before == identity
    notes = (*_tell_move(theirs or {}, mine), *_tell_batches(earlier.get("batches"), batches)) if same else ()
    return Claimed(tuple(key for key in changed if key not in SEEN_LATER), notes)


SEEN_LATER = frozenset(
    {
        "model_args",
        "batch_size",
        "max_batch_size",
        "device",
        "include_path",
        "data",
        "trust",
        "use_cache",
        "log_samples",
        "output_path",
        "keep_going",
        "write_out",
    }
)
"""Keys that may change without changing results; where they do, the results differ in what they say of tasks."""


def _tell_move(theirs: Mapping[str, object], mine: Mapping[str, object]) -> tuple[str, ...]:
    """Tell that the same model is asked at another address."""
    args = [one for one in (theirs.get("model_args"), mine.get("model_args")) if isinstance(one, dict)]
    before, now = [*(one.get(PLACE_ARG) for one in args), None, None][:2]
    if not before or not now or before == now:
        return ()
    return (f"answers so far are from {before}; now {now} is asked, as the same model",)


def _tell_batches(before: object, now: Mapping[str, object]) -> tuple[str, ...]:
    """Tell that the answers to come are computed in other batches than those that are logged."""
    if not isinstance(before, dict) or before == now:
        return ()
    told = compare_identities(*(f"batches {encode(one).decode()}" for one in (before, now)))
    return (f"answers are computed in other batches than those logged before ({told}): last digits may differ",)


def earlier_run(folder: Path) -> dict[str, object]:
    """What ``run.json`` says of the last run of a folder, if there was one."""
    try:
        return decode((folder / "run.json").read_bytes(), type=dict[str, object])
    except (OSError, ValueError, RecursionError):
        return {}


def _write_value(value: object) -> object:
    """A value as plain data, a function by its module and name."""
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{name_function(value)}"
    return thaw_value(value)


def settled(plan: Plan, home: Path | None) -> dict[str, object]:
    """The plan as plain data that means the same from anywhere and for any engine: with absolute paths."""
    out: dict[str, object] = decode(encode(forget_engine(plan), enc_hook=_write_value))
    given = thaw_dict(plan.model_args)
    args = {key: show_addresses(anchor_paths(one, home)) if key in PATH_ARGS else one for key, one in given.items()}
    tasks = [anchor_paths(one, home) if isinstance(one, str) and is_path(one) else one for one in plan.tasks]
    found: dict[str, object] = {
        "tasks": [
            show_dataset(one) if isinstance(one, dict) else one for one in decode(encode(tasks, enc_hook=_write_value))
        ],
        "include_path": anchor_paths(plan.include_path, home),
        "trust": [
            anchor_paths(one, home)
            if isinstance(one, str)
            else {**to_builtins(one), "path": anchor_paths(one.path, home)}
            for one in plan.trust
        ],
        "data": show_addresses(anchor_paths(thaw_value(plan.data), home)),
        "output_path": name_fully(run_folder(plan)),
        "use_cache": name_fully(parse_path(plan.use_cache).expanduser()) if plan.use_cache else None,
        "model_args": args,
    }
    return {**out, **{key: value for key, value in found.items() if value}}


def _earlier_config(path: Path) -> Mapping[str, object] | None:
    from evalcore.shell.config.yaml_file import read_yaml
    from evalcore.shell.output.files.run_files import OURS

    if not path.exists():
        return None
    text = path.read_text("utf-8", "replace")
    if not text.startswith(OURS):
        raise EvalError(
            f"{path} is a file of your own, which a run would replace; name another folder with output_path"
        )
    value = read_yaml(text, str(path)).value
    return value if isinstance(value, dict) else None
