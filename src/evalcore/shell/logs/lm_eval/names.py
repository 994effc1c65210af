"""The names that lm-eval, lmms-eval and evalcore use: of logs and results (task and time), filters, output types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.core.records.task import MetricKey
from evalcore.shell.data.unpack import strip_packing

RENAMED = {"greedy_until": GENERATE_UNTIL}
"""Older names of output types."""

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?")
LAST_STAMP = re.compile(f"({STAMP.pattern})$")
"""lm-eval's time in file names; in their order, names are in the order of time."""

LMMS_STAMP = re.compile(r"^(\d{8}_\d{4,6})_(?=samples_|results)")
"""lmms-eval's time, which comes first."""

SAMPLES = re.compile(r"(\d{8}_\d{4,6}_)?samples_")
ENDINGS = (".jsonl", ".json")
"""Of the names of sample logs; the format is detected from the content."""


def name_task(path: Path) -> str:
    """Read the task from the name of a sample log.

    >>> name_task(Path("samples_gsm8k_2024-08-21T03-44-09.494230.jsonl.gz")), name_task(Path("mathqa.jsonl"))
    ('gsm8k', 'mathqa')
    """
    stem = LMMS_STAMP.sub("", _stem(path.name))
    return LAST_STAMP.sub("", stem.removeprefix("samples_")).strip("_") or stem


def find_stamp(name: str) -> str:
    """Find the time in a file's name, shared by the results and samples of a run: at its end, or lmms-eval's first.

    >>> list(map(find_stamp, ["results_2024-08-21T03-44-09.494230.json", "20250102_0304_results.json", "a.json"]))
    ['2024-08-21T03-44-09.494230', '20250102_0304', '']
    """
    found = LMMS_STAMP.match(name) or LAST_STAMP.search(_stem(name))
    return found[1] if found else ""


def _stem(name: str) -> str:
    return re.sub(r"\.jsonl?$", "", strip_packing(name))


def is_sample_name(path: Path) -> bool:
    """Whether a file has the name of a sample log.

    >>> is_sample_name(Path("samples_gsm8k.jsonl.gz")), is_sample_name(Path("gsm8k.jsonl"))
    (True, False)
    """
    name = strip_packing(path.name)
    return name.endswith(".jsonl") and SAMPLES.match(name) is not None


def list_filters(config: Mapping[str, object] | None, keys: Iterable[str]) -> tuple[str, ...]:
    """List the filters of a task in order: those of its config, else those in the keys of its results, else none.

    >>> list_filters(None, ["alias", "acc,strict", "acc_stderr,strict", "acc,loose"])
    ('strict', 'loose')
    """
    given = (config or {}).get("filter_list")
    listed = [one.get("name") for one in given if isinstance(one, Mapping)] if isinstance(given, list | tuple) else []
    names = [name for name in listed if isinstance(name, str)]
    keyed = [key.filter for text in keys if (key := MetricKey.parse(text)) is not None]
    return tuple(dict.fromkeys(names or keyed)) or ("none",)
