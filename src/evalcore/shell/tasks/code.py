"""The code that a task needs, located and hashed, never run here."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal

from msgspec import Struct

from evalcore.core.records.errors import EvalError
from evalcore.shell.config.yaml_file import FunctionTag

DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


class FunctionRef(Struct, frozen=True):
    """``!function utils.name`` with the file it refers to and the hash of that file."""

    path: str
    name: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


class GroupFunction(Struct, frozen=True):
    """A group's own aggregation, until it is trusted and loaded."""

    ref: FunctionRef

    def __call__(self, *args: object) -> object:
        raise EvalError(f"{self.ref} is not trusted: --trust {self.ref.path}")


class Code(Struct, frozen=True):
    """Something that a task would run: a function of a file, a dataset's own script, or what the model wrote."""

    kind: Literal["function", "dataset", "unsafe_code"]
    name: str
    path: str = ""
    sha256: str = ""


def map_values(function: Callable[[object], object], value: object) -> object:
    """Apply a function to every value in nested lists and mappings.

    >>> map_values(lambda one: one * 2, {"a": [1, {"b": 2}]})
    {'a': [2, {'b': 4}]}
    """
    if isinstance(value, str):  # first, because nearly all values are
        return function(value)
    if isinstance(value, list | tuple):
        return [map_values(function, one) for one in value]
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  # the second test is slow
        return {key: map_values(function, one) for key, one in value.items()}
    return function(value)


def find_code(config: Mapping[str, object]) -> dict[str, object]:
    """Locate every ``!function`` of a config: its file, its name, the hash of its file."""
    return {key: map_values(_find_tagged, value) for key, value in config.items()}


def _find_tagged(value: object) -> object:
    return find_function(value) if isinstance(value, FunctionTag) else value


def find_function(tag: FunctionTag) -> FunctionRef:
    """Locate the function of a tag: in a file beside its YAML, else in an importable module."""
    where = f" - at {tag.path}:{tag.line}"
    if not DOTTED.fullmatch(tag.name):
        raise EvalError(f"expected !function module.name, got {tag.name!r}{where}")
    module, _, name = tag.name.rpartition(".")
    try:
        path = _find_source(os.path.dirname(tag.path), module)
    except EvalError as wrong:
        raise EvalError(f"!function {tag.name}: {wrong}{where}") from None
    return FunctionRef(path, name, _hash_file(path, os.stat(path).st_mtime_ns))


@lru_cache(4096)
def _find_source(folder: str, module: str) -> str:
    beside = os.path.join(folder, *module.split(".")) + ".py"
    path = beside if os.path.isfile(beside) else _find_module(module)
    if path is None:
        raise EvalError(f"found neither the file {beside} nor a module {module!r}")
    return os.path.realpath(path)


def _find_module(module: str) -> str | None:
    """Find the source file of a module without importing the packages that contain it."""
    folders: list[str] | None = None
    source: str | None = None
    for name in module.split("."):
        spec = PathFinder.find_spec(name, folders)
        if spec is None:
            return None
        folders, source = list(spec.submodule_search_locations or ()), spec.origin
    return source if source is not None and source.endswith(".py") and os.path.isfile(source) else None


@lru_cache(4096)
def _hash_file(path: str, changed: int) -> str:
    return sha256(Path(path).read_bytes()).hexdigest()


def list_functions(value: object) -> Iterator[FunctionRef]:
    """List every function anywhere in a config.

    >>> [str(one) for one in list_functions({"a": [{"b": FunctionRef("u.py", "f", "")}]})]
    ['u.py:f']
    """
    if isinstance(value, str):  # first, because nearly all values are
        return
    if isinstance(value, FunctionRef):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from list_functions(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from list_functions(one)


def list_code(config: Mapping[str, object], *, local_data: bool = False) -> tuple[Code, ...]:
    """List all that a task would run; with ``local_data`` the dataset's script is not needed.

    >>> list_code({"task": "t", "unsafe_code": True, "process_docs": FunctionRef("u.py", "f", "00")})
    (Code(kind='function', name='f', path='u.py', sha256='00'), Code(kind='unsafe_code', name='unsafe_code', ...))
    """
    code = [Code("function", one.name, one.path, one.sha256) for one in list_functions(config)]
    kwargs = config.get("dataset_kwargs")
    if isinstance(kwargs, Mapping) and kwargs.get("trust_remote_code") and not local_data:
        code.append(Code("dataset", f"dataset:{config.get('dataset_path')}"))
    if config.get("unsafe_code"):
        code.append(Code("unsafe_code", "unsafe_code"))
    return tuple(dict.fromkeys(code))


def hash_code(config: Mapping[str, object]) -> dict[str, str]:
    """Hash every file whose code a task runs.

    >>> hash_code({"process_docs": FunctionRef("u.py", "f", "00")})
    {'u.py': '00'}
    """
    return {one.path: one.sha256 for one in list_functions(config)}
