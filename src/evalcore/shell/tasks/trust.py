"""Code runs only where the user allows it: by file, by folder, or by hash."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from msgspec import Struct
from msgspec.structs import replace

from evalcore.core.groups.tree import Group, Tree, fold_group
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import Options
from evalcore.shell.tasks.code import Code, FunctionRef, GroupFunction, list_code, map_values
from evalcore.shell.tasks.evaluate_scripts import MetricScript, load_script

PIN = "@sha256:"
DATASET, MODEL = "dataset:", "model:"
DIGEST = re.compile(r"[0-9a-f]{64}")


class Trust(Struct, frozen=True):
    """What may run: files and folders, files of a certain hash, datasets with their own script (``dataset:NAME``),
    and models with their own code (``model:NAME``).
    """

    paths: tuple[str, ...] = ()
    pins: tuple[tuple[str, str], ...] = ()
    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


def read_trust(given: Iterable[object]) -> Trust:
    """Read trust as it is written: ``PATH``, ``PATH@sha256:HEX``, ``{path:, sha256:}``, such a record,
    ``dataset:NAME``, ``model:NAME``.

    >>> read_trust(["dataset:squad", {"path": os.__file__, "sha256": "0" * 64}]).datasets
    ('dataset:squad',)
    """
    paths: list[str] = []
    pins: list[tuple[str, str]] = []
    datasets: list[str] = []
    models: list[str] = []
    for one in given:
        path, digest = _split_pin(one)
        if path.startswith((DATASET, MODEL)):
            if digest is not None:
                raise EvalError(f"expected {path} without a hash: its revision pins it - at trust")
            (models if path.startswith(MODEL) else datasets).append(path)
            continue
        real = os.path.realpath(os.path.expanduser(path)) if "\0" not in path else path
        if "\0" in path or not os.path.exists(real):
            raise EvalError(f"expected a file or folder to trust, found nothing: {path!r} - at trust")
        if digest is None:
            paths.append(real)
        elif DIGEST.fullmatch(digest) and not os.path.isdir(real):
            pins.append((real, digest))
        else:
            expected = f"expected sha256: and 64 hex digits, and one file to pin, got {digest!r}"
            raise EvalError(f"{expected} - at trust {path}")
    return Trust(tuple(paths), tuple(pins), tuple(datasets), tuple(models))


def _split_pin(one: object) -> tuple[str, str | None]:
    if isinstance(one, Mapping) and isinstance(one.get("path"), str) and one.keys() <= {"path", "sha256"}:
        digest = one.get("sha256")
        return str(one["path"]), None if digest is None else str(digest).lower()
    if isinstance(one, Struct) and isinstance(getattr(one, "path", None), str):
        return _split_pin({"path": one.path, "sha256": getattr(one, "sha256", None)})  # type: ignore[attr-defined]
    if isinstance(one, str) and one:
        path, at, digest = one.partition(PIN)
        return path, digest.lower() if at else None
    raise EvalError(f"expected a path or {{path: ..., sha256: ...}}, got {one!r} - at trust")


def refuse_untrusted(
    configs: Mapping[str, Mapping[str, object]], trust: Trust, *, local_data: Iterable[str] = ()
) -> None:
    """Refuse code that is not trusted: the error lists all code that would run, and what to type to allow it."""
    local = set(local_data)
    wanted = {
        code: name
        for name, config in configs.items()
        for code in list_code(config, local_data=name in local)
        if code.kind != "unsafe_code"  # code that the model writes: of no file, and confirmed apart
    }
    refused = {code: name for code, name in wanted.items() if not _is_allowed(trust, code)}
    if not refused:
        return
    files: dict[str, list[str]] = {}
    for code in refused:
        files.setdefault(code.path or code.name, []).append(code.name if code.path else "the dataset's own script")
    lines = [f"  {place}: {', '.join(names[:8])}{' ...' if len(names) > 8 else ''}" for place, names in files.items()]
    changed = [path for path, _ in trust.pins if path in files]
    hint = f" (its content changed: {', '.join(changed)})" if changed else ""
    flags = " ".join(f"--trust {shlex.quote(one)}" for one in _list_flags(refused))
    of = ", ".join(list(dict.fromkeys(refused.values()))[:5])
    raise EvalError("\n".join([f"{of}: would run code that is not trusted{hint}:", *lines, f"To run it: {flags}"]))


def refuse_model_code(named: Iterable[str], trust: Trust, where: str = "") -> None:
    """Refuse the own code of models that are not trusted by name; a folder may be trusted as one.

    >>> refuse_model_code(["org/m"], read_trust(["model:org/m"]))
    >>> refuse_model_code(["org/m"], Trust())
    Traceback (most recent call last):
    evalcore.EvalError: trust_remote_code would run code of org/m, which is not trusted. To run it: --trust model:org/m,
    and the commit that you read as revision in model_args
    """
    refused = [one for one in named if MODEL + one not in trust.models and not _is_below(trust, one)]
    if refused:
        flags = " ".join(f"--trust {shlex.quote(MODEL + one)}" for one in refused)
        told = f"trust_remote_code would run code of {' and '.join(refused)}, which is not trusted"
        raise EvalError(f"{told}. To run it: {flags}, and the commit that you read as revision in model_args{where}")


def _is_below(trust: Trust, folder: str) -> bool:
    """Whether a name is that of a folder which is trusted, or inside one."""
    real = os.path.realpath(os.path.expanduser(folder))
    return os.path.isdir(real) and any(real == one or real.startswith(one.rstrip("/") + "/") for one in trust.paths)


def _list_flags(refused: Iterable[Code]) -> list[str]:
    """List files one by one or, if there are many, their common folder."""
    names = list(dict.fromkeys(code.path or code.name for code in refused))
    files = [name for name in names if os.path.isabs(name)]
    if len(files) > 6:
        return [os.path.commonpath(files), *(name for name in names if name not in files)]
    return names


def _is_allowed(trust: Trust, code: Code) -> bool:
    if not code.path:
        return code.name in trust.datasets
    pinned = dict(trust.pins).get(code.path)
    if pinned is not None:
        return pinned == code.sha256
    return any(code.path == one or code.path.startswith(one.rstrip("/") + "/") for one in trust.paths)


# --- running it --------------------------------------------------------------------------------------------


def load_functions(config: Mapping[str, object], trust: Trust, *, local_data: bool = False) -> dict[str, object]:
    """Load the functions that a config names; refused unless every file is trusted."""
    name = str(config.get("task", "a task"))
    if "class" in config:
        reason = (
            "is a python class, which evalcore does not run; write it as YAML with process_docs and process_results"
        )
        raise EvalError(f"task {name!r} {reason} (class: {config['class']}) - at {name}")
    refuse_untrusted({name: config}, trust, local_data=[name] if local_data else [])
    return {key: map_values(_load_value, value) for key, value in config.items()}


def load_groups(trees: Sequence[Tree[Options]], trust: Trust) -> tuple[Tree[Options], ...]:
    """Load the groups' own aggregations; refused unless their files are trusted."""

    def group(node: Group[Options], parts: tuple[Tree[Options], ...]) -> Tree[Options]:
        asked = [one.aggregation for one in node.metrics]
        refuse_untrusted({node.name: {"metrics": [one.ref for one in asked if isinstance(one, GroupFunction)]}}, trust)
        loaded = (_load_function(one.ref) if isinstance(one, GroupFunction) else one for one in asked)
        metrics = tuple(replace(one, aggregation=how) for one, how in zip(node.metrics, loaded, strict=True))
        return replace(node, children=parts, metrics=metrics)

    return tuple(fold_group(tree, lambda leaf: leaf, group) for tree in trees)


def _load_value(value: object) -> object:
    if isinstance(value, MetricScript):
        return load_script(value)
    return _load_function(value) if isinstance(value, FunctionRef) else value


def _load_function(ref: FunctionRef) -> Callable[..., object]:
    function: object = getattr(_load_module(ref.path, ref.sha256), ref.name, None)
    if not callable(function):
        shown = "nothing" if function is None else repr(function)
        raise EvalError(f"expected a function {ref.name!r} in {ref.path}, found {shown}")
    return function


@cache
def _load_module(path: str, digest: str) -> ModuleType:
    """Load the module of a file, run once; what is run is what was hashed."""
    source = Path(path).read_bytes()
    if sha256(source).hexdigest() != digest:
        raise EvalError(f"{path} changed after it was hashed; run again")
    name = _name_module(path, digest)
    spec = spec_from_file_location(name, path)
    if spec is None:
        raise EvalError(f"expected a python file, got {path}")
    module = module_from_spec(spec)
    sys.modules.setdefault(name, module)  # dataclasses and pickles look up their module there
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except Exception as wrong:
        if sys.modules.get(name) is module:
            del sys.modules[name]
        raise EvalError(f"{path} cannot be run: {type(wrong).__name__}: {wrong}") from wrong
    return module


def _name_module(path: str, digest: str) -> str:
    """Name a module as it would be imported if it is in a package (or in a folder of one): its own imports then
    work.
    """
    file = Path(path)
    folders = [folder for folder in list(file.parents)[:8] if (folder / "__init__.py").is_file()]
    if not folders:
        return f"evalcore_task_{file.stem}_{digest[:16]}"
    top = folders[0]
    while (top.parent / "__init__.py").is_file():
        top = top.parent
    return ".".join(file.relative_to(top.parent).with_suffix("").parts)
