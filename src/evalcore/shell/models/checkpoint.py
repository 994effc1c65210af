"""Weights in a folder or on the hub: what names them, and whose code they would run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from evalcore.core.records.errors import EvalError, require

TRUSTED = "trust_remote_code"
WITH_CODE = ("pretrained", "tokenizer", "delta")


NAMED = (*WITH_CODE, "peft")
"""The arguments that name weights or a tokenizer: a folder, or a repository on the hub."""


def require_folders(settings: object, where: str) -> None:
    """Refuse a path where nothing is: a library that takes it for a repository blames its form."""
    for name in NAMED:
        given = str(getattr(settings, name, None) or "")
        if given.startswith(("/", "./", "../", "~")) and not Path(given).expanduser().exists():
            raise EvalError(f"expected a folder as {name}, got {given}, where nothing is{where}")


def list_remote_code(arguments: Mapping[str, object]) -> tuple[str, ...]:
    """The repositories whose code would run, if these arguments ask for it.

    >>> list_remote_code({"pretrained": "org/m", "tokenizer": "org/t", "trust_remote_code": "true"})
    ('org/m', 'org/t')
    >>> list_remote_code({"pretrained": "org/m", "trust_remote_code": False})
    ()
    """
    if str(arguments.get(TRUSTED)).lower() in ("none", "false", "0", ""):
        return ()
    return tuple(dict.fromkeys(str(arguments[name]) for name in WITH_CODE if arguments.get(name)))


def require_commit(pretrained: str, revision: str | None, where: str, name: str = "revision") -> None:
    """Refuse code of a revision that may change."""
    if not COMMIT.fullmatch(revision or ""):
        raise EvalError(
            f"trust_remote_code runs code of {pretrained}: name the commit that you read as {name} "
            f"(40 hexadecimal digits), got {revision!r}{where}"
        )


COMMIT = re.compile(r"[0-9a-f]{40}")


def refuse_foreign_code(sources: Iterable[str | None], where: str, **there: object) -> None:
    """Refuse code that a config takes from yet another repository, whatever its revision: nobody trusted it."""
    read_config = require("transformers", "transformers").PretrainedConfig.get_config_dict
    read_tokenizer = require("transformers.models.auto.tokenization_auto", "transformers").get_tokenizer_config
    for source in filter(None, sources):
        configs = read_config(source, **there)[0], read_tokenizer(source, **there)
        named = [name for config in configs for name in _list_names(config.get("auto_map"))]
        foreign = [name for name in named if "--" in name and name.partition("--")[0] != source]
        if foreign:
            raise EvalError(f"{source} takes code from another repository, which no revision pins: {foreign[0]}{where}")


def _list_names(value: object) -> list[str]:
    """The classes that an ``auto_map`` names: one, a list of them, or lists by what they are for."""
    within = value.values() if isinstance(value, Mapping) else value
    if isinstance(within, str) or not isinstance(within, Iterable):
        return [within] if isinstance(within, str) else []
    return [name for one in within for name in _list_names(one)]


WITH_WEIGHTS = ("tokenizer", "peft", "delta", "lora_local_path")
"""Arguments that are folders or names on the hub, as the weights are."""


def name_all(given: Mapping[str, object], revision: str | None, found: str | None = None) -> dict[str, object]:
    """Name weights and what goes with them by what they are; ``found`` is the commit of the weights, where known.

    >>> name_all({"pretrained": "org/m", "peft": "org/p", "tokenizer": None}, "main")
    {'pretrained': 'org/m', 'weights': 'main', 'peft': {'pretrained': 'org/p', 'weights': 'main'}}
    """
    others = {name: name_weights(str(given[name]), revision) for name in WITH_WEIGHTS if given.get(name)}
    return {**name_weights(str(given["pretrained"]), found or revision, str(given.get("subfolder") or "")), **others}


def name_weights(pretrained: str, revision: str | None, subfolder: str = "") -> dict[str, object]:
    """Name weights by what they are, not by where: a folder by its content, a name on the hub with its revision.

    >>> name_weights("org/m", "main")
    {'pretrained': 'org/m', 'weights': 'main'}
    """
    folder = Path(pretrained).expanduser()
    if (folder / subfolder).is_dir():
        return {"pretrained": folder.name, "weights": digest_folder(folder / subfolder)}
    return {"pretrained": pretrained, "weights": revision}


PIECE, MOST_PIECES = 1 << 16, 1 << 12
"""Files of up to 256 MB are read whole; of larger ones as much, in pieces from everywhere: training moves some."""


def digest_folder(folder: Path) -> str:
    """Tell a folder of weights from others by its files: their names, their sizes and what is in them."""
    digest = sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}\n".encode())
        with path.open("rb") as file:
            for at in range(0, size, max(PIECE, -(-size // MOST_PIECES))):
                file.seek(at)
                digest.update(file.read(PIECE))
    return digest.hexdigest()[:32]
