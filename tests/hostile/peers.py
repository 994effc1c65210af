"""The same faults for lm-eval and for evalcore: 20 questions to a server on this machine, a fault at the fourth.

    python -m tests.hostile peers

prints what came of each: the exit code, the score and the number of documents it is of, the lines of samples.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "shell"))

import small_tasks
from fault_server import serve

DOCUMENTS, BAD = 20, "3 + 2 ="
Raw = tuple[int, dict[str, str], bytes]
OUR_FLAGS = "max_retries=3,timeout=5,num_concurrent=1"


def _reply(content: object, **more: object) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], **more}).encode()


class Injection(NamedTuple):
    """What the server does to the fourth question; ``once``: the first time only."""

    name: str
    fault: str | Raw
    once: bool = False


INJECTIONS = (
    Injection("none", ""),
    Injection("429 once, Retry-After: 2", (429, {"Retry-After": "2"}, b"{}"), once=True),
    Injection("429 always", "429"),
    Injection("400", (400, {}, b'{"error": {"message": "no"}}')),
    Injection("HTML with 200", "garbage"),
    Injection("connection reset", "reset"),
    Injection("body cut short", "half"),
    Injection("no choices", (200, {}, b'{"choices": []}')),
    Injection("an error with 200", (200, {}, b'{"error": {"message": "overloaded"}}')),
    Injection("content null", (200, {}, _reply(None))),
    Injection("lone surrogate", (200, {}, _reply("5").replace(b'"5"', b'"5 \\ud83d"'))),
    Injection("server hangs", "hang"),
)


class Came(NamedTuple):
    """What came of a run."""

    code: int
    score: object
    scored: object
    samples: int

    def __str__(self) -> str:
        if self.score is None:
            return f"exit {self.code}, no results, {self.samples} samples"
        return f"exit {self.code}, {self.score:.3g} of {self.scored}, {self.samples} samples"


def write_task(home: Path) -> None:
    """Twenty sums, all of which the server gets right."""
    small_tasks.write_tasks(home / "tasks", DOCUMENTS)
    for other in ("places", "lines", "guesses", "small"):
        (home / "tasks" / f"{other}.yaml").unlink()


def run_lm_eval(home: Path, url: str) -> Came:
    args = f"model=toy,base_url={url}/chat/completions,{OUR_FLAGS}"
    given = [sys.executable, "-m", "lm_eval", "run", "--model", "local-chat-completions", "--model_args", args]
    given += [
        "--tasks",
        "sums",
        "--include_path",
        ".",
        "--apply_chat_template",
        "--log_samples",
        "--output_path",
        "../theirs",
    ]
    code = subprocess.run(
        given, cwd=home / "tasks", capture_output=True, check=False, env=_environment(home), timeout=600
    ).returncode
    found = list((home / "theirs").rglob("results*.json"))
    lines = sum(len(path.read_bytes().splitlines()) for path in (home / "theirs").rglob("samples*.jsonl"))
    if not found:
        return Came(code, None, 0, lines)
    results = json.loads(found[0].read_text())["results"]["sums"]
    return Came(code, results["exact_match,strict"], DOCUMENTS, lines)


def run_evalcore(home: Path, url: str) -> Came:
    args = f"model=toy,base_url={url},{OUR_FLAGS}"
    given = [
        "run",
        "--model",
        "local-chat-completions",
        "--model_args",
        args,
        "--tasks",
        "sums",
        "--include_path",
        "tasks",
    ]
    code = small_tasks.evalcore(home, *given, "--apply_chat_template", "--output_path", "ours", "--quiet").returncode
    lines = sum(len(path.read_bytes().splitlines()) for path in (home / "ours").glob("samples*.jsonl"))
    if not (home / "ours/results.json").exists():
        return Came(code, None, 0, lines)
    row = json.loads((home / "ours/results.json").read_text())
    return Came(code, row["results"]["sums"]["exact_match,strict"], _count_scored(row), lines)


def _count_scored(results: dict[str, object]) -> object:
    inner = results["evalcore"]
    assert isinstance(inner, dict)
    return inner["estimates"]["sums"]["exact_match,strict"]["n"]


def _environment(home: Path) -> dict[str, str]:
    return {
        **small_tasks.environment(home),
        "HF_HUB_OFFLINE": "1",
        "OPENAI_API_KEY": "none",
        "HF_DATASETS_CACHE": str(home / "cache"),
    }


def inject(injection: Injection, run: Callable[[Path, str], Came]) -> Came:
    """Run once against a server that answers every sum rightly but for the fault."""
    met: list[int] = []

    def script(number: int, body: dict[str, object]) -> str | Raw | None:
        messages = body["messages"]
        assert isinstance(messages, list)
        asked = messages[-1]["content"].rstrip().splitlines()[-1]
        if asked == BAD and injection.fault and not (injection.once and met):
            met.append(number)
            return injection.fault
        a, b = map(int, asked.removesuffix("=").split("+"))
        return 200, {}, _reply(f" {a + b}")

    with tempfile.TemporaryDirectory() as folder, serve(script=script) as server:
        write_task(Path(folder))
        return run(Path(folder), server.url)


def main(arguments: list[str]) -> int:
    print("| fault | lm-eval 0.4.13 | evalcore |\n| --- | --- | --- |")
    for injection in INJECTIONS:
        theirs, ours = inject(injection, run_lm_eval), inject(injection, run_evalcore)
        print(f"| {injection.name} | {theirs} | {ours} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main([]))
