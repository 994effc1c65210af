"""A sample log of sums about geese, as large as wanted."""

from __future__ import annotations

import json
from pathlib import Path

WORDS = "gavle has 96 geese"
"""Some of the documents have these words, as far as accents and case do not matter."""


def write_row(at: int, prompt: str, reply: str, score: float) -> str:
    row = {
        "doc_id": at, "doc": {"q": f"{at} geese"}, "target": "4",
        "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n"]}}},
        "resps": [[reply]], "filtered_resps": [reply], "filter": "none", "metrics": ["exact_match"], "exact_match": score,
    }  # fmt: skip
    return f"{json.dumps(row)}\n"


def write_large_log(path: Path, many: int) -> Path:
    """Write a log of so many documents."""
    with path.open("w", encoding="utf-8") as out:
        for at in range(many):
            told = f"Question {at}: a farmer of Gävle has {at % 97} geese and buys {at % 89} more. " * 6
            reply = f"There are {at % 97} and {at % 89} geese, so the answer is {at % 97 + at % 88}. " * 3
            out.write(write_row(at, f"{told}\nAnswer:", reply, float(at % 89 == at % 88)))
    return path


def count_found(many: int) -> int:
    """How many of them have ``WORDS``."""
    return many // 97 + (many % 97 > 96)
