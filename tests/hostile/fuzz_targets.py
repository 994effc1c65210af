"""Everything that reads what others wrote, as a table: seeds that are read well, and how their copies are read."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import evalcore
from evalcore.core.lm_eval.task_config import task_from_config
from evalcore.core.partials.partial import decode_partial
from evalcore.core.records.errors import EvalError
from evalcore.shell.answerlog.fold import read_log
from evalcore.shell.answerlog.line import HEADER, ModelLine, encode_record, make_record
from evalcore.shell.config.plan import read_config
from evalcore.shell.config.yaml_file import read_yaml
from evalcore.shell.data.readers import choose_reader
from evalcore.shell.logs.open import open_logs
from evalcore.shell.logs.tables.column_map import ColumnMap
from evalcore.shell.models.openai.arguments import ServerKind
from evalcore.shell.models.openai.body import read_generation
from evalcore.shell.models.openai.http_faults import Wrong
from evalcore.shell.models.openai.logprobs import read_likelihood
from evalcore.shell.prompts.fields import read_choices, read_target, read_text
from evalcore.shell.starter.guess import look_at_file
from evalcore.shell.starter.task_folder import write_guess

sys.path.insert(0, str(Path(__file__).parents[1] / "shell"))

import sample_runs
import small_tasks
import unit_logs

DOC = {"question": "How many?", "choices": ["one", "two"], "n": 3, "deep": {"list": [1, {"x": None}]}, "empty": ""}


class Target(NamedTuple):
    """``seeds(folder)`` are inputs that are read well; ``read(data, folder)`` reads one.

    ``refusals`` are its errors for people; ``weight`` is its share of all inputs, less where each takes long.
    """

    seeds: Callable[[Path], list[bytes]]
    read: Callable[[bytes, Path], object]
    refusals: tuple[type[Exception], ...] = (EvalError,)
    weight: float = 1.0


# --- logs and tables -----------------------------------------------------------------------------------------------


def _seed_samples(folder: Path) -> list[bytes]:
    unit_logs.write_logs(folder / "logs", 6)
    scored = sample_runs.write_log(folder / "s.jsonl", sample_runs.rows_of("t", "acc", [1.0, 0.0, None, 1.0]))
    return [path.read_bytes() for path in sorted((folder / "logs").glob("samples*.jsonl"))] + [scored.read_bytes()]


def _read_log(name: str, data: bytes, folder: Path, columns: ColumnMap | None = None) -> None:
    path = folder / name
    path.write_bytes(data)
    for task in open_logs([path], mapping=columns, keep_going=len(data) % 2 == 0, scores=len(data) % 3 == 0):
        for _ in task.rows():
            pass


def _seed_table(suffix: str, folder: Path) -> list[bytes]:
    if suffix == ".parquet":
        return [unit_logs.write_table(folder / "t.parquet", 8).read_bytes()]
    rows = unit_logs.list_cells(8)
    if suffix == ".csv":
        names = list(rows[0])
        lines = [names, *([json.dumps(row[name]) for name in names] for row in rows)]
        return ["\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines).encode()]
    return ["".join(json.dumps(row) + "\n" for row in rows).encode(), json.dumps(rows).encode()]


COLUMNS = ColumnMap(answer="said", gold="gold", id="name", cluster="place")


def _seed_eval(folder: Path) -> list[bytes]:
    return [unit_logs.write_eval(folder / "q.eval", 3).read_bytes()]


def _seed_eval_json(folder: Path) -> list[bytes]:
    sample = {
        "id": "s",
        "epoch": 1,
        "input": "Q",
        "target": "4",
        "output": {"completion": "4"},
        "scores": {"m": {"value": "C"}},
    }
    eval_log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "quiz", "model": "m"},
        "samples": [sample, {**sample, "id": "r"}],
    }
    return [json.dumps(eval_log).encode()]


def _seed_results(folder: Path) -> list[bytes]:
    sample_runs.write_run(
        folder / "r", {"t": [1.0, 0.0, 1.0], "u": [0.5, 0.5]}, results={"groups": {}, "n-shot": {"t": 0}}
    )
    return [next((folder / "r").glob("results*.json")).read_bytes()]


def _read_results(data: bytes, folder: Path) -> None:
    run = folder / "run"
    if not run.exists():
        sample_runs.write_run(run, {"t": [1.0, 0.0, 1.0], "u": [0.5, 0.5]})
    (run / f"results_{sample_runs.STAMP}.json").write_bytes(data)
    evalcore.score([str(run)], keep_going=len(data) % 2 == 0)


def _score_samples(data: bytes, folder: Path) -> None:
    path = folder / "samples_t.jsonl"
    path.write_bytes(data)
    evalcore.score([str(path)], metric="exact_match", keep_going=len(data) % 2 == 0)


# --- documents, answers, partials -----------------------------------------------------------------------------------


def _seed_data(suffix: str, folder: Path) -> list[bytes]:
    rows = [{**DOC, "n": n} for n in range(3)]
    if suffix == ".csv":
        return [b'a,b\n1,x\n2,"y\nz"\n', b"a;b;c\r\n1;;3\r\n"]
    return (
        [json.dumps(rows).encode()] if suffix == ".json" else ["".join(json.dumps(row) + "\n" for row in rows).encode()]
    )


def _read_data(suffix: str, data: bytes, folder: Path) -> None:
    path = folder / f"docs{suffix}"
    path.write_bytes(data)
    choose_reader(path)(path, {})


def _seed_packed(folder: Path) -> list[bytes]:
    return [gzip.compress(one, mtime=0) for one in _seed_data(".jsonl", folder)]


def _seed_arrow(folder: Path) -> list[bytes]:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist([{"a": n, "b": [str(n)] * n} for n in range(6)]), folder / "d.parquet")
    return [(folder / "d.parquet").read_bytes()]


def _seed_answers(folder: Path) -> list[bytes]:
    replies = ("text", (-1.5, True), float("-inf"))
    lines = [make_record(f"k{n}", f"r{n}", 0, "m", reply) for n, reply in enumerate(replies)]
    return [HEADER + b"".join(map(encode_record, [ModelLine("m", "the model"), *lines]))]


def _read_answers(data: bytes, folder: Path) -> None:
    (folder / "answers.jsonl").write_bytes(data)
    read_log(folder / "answers.jsonl")


def _seed_partials(folder: Path) -> list[bytes]:
    unit_logs.write_logs(folder / "logs", 6)
    evalcore.scale.score_partials([str(folder / "logs")], partials=str(folder / "parts"))
    return [path.read_bytes() for path in sorted((folder / "parts").rglob("*")) if path.is_file()]


def _read_partial(data: bytes, folder: Path) -> None:
    decode_partial(data)


# --- configs, tasks, templates, replies, commands ------------------------------------------------------------------


def _seed_yaml(folder: Path) -> list[bytes]:
    small_tasks.write_tasks(folder / "tasks", 3)
    return [path.read_bytes() for path in sorted((folder / "tasks").glob("*.yaml")) if path.stem != "small"]


def _read_task(data: bytes, folder: Path) -> None:
    value = read_yaml(data, "task.yaml").value
    if isinstance(value, dict):
        task_from_config({"task": "t", "output_type": "generate_until", **value})


def _check_task(data: bytes, folder: Path) -> None:
    (folder / "docs.jsonl").write_text(2 * '{"a": 1, "b": 2, "city": "Oslo"}\n')
    (folder / "task.yaml").write_bytes(data)
    evalcore.run(
        model="dummy", tasks=[str(folder / "task.yaml")], output_path=str(folder / "out"), limit=1, overwrite=True
    )


def _seed_config(folder: Path) -> list[bytes]:
    config = {
        "model": "dummy",
        "model_args": {"a": 1},
        "tasks": ["gsm8k"],
        "limit": 3,
        "seed": [0, 1, 2, 3],
        "gen_kwargs": {"until": ["x"]},
    }
    return [json.dumps(config).encode(), b"model: dummy\ntasks: [a, b]\nlimit: 0.5\nnum_fewshot: 2\nconfidence: 0.9\n"]


def _read_config(data: bytes, folder: Path) -> None:
    (folder / "run.yaml").write_bytes(data)
    read_config(folder / "run.yaml", {})


TEMPLATES = (
    "Q: {{question}}\nA:",
    "{% for c in choices %}{{loop.index}}. {{c|trim}}\n{% endfor %}{{choices|join(', ')}}",
    "{{deep.list[1]['x'] or n + 1}}{{question.split(' ')[0]|upper}}{% if n > 2 %}yes{% else %}no{% endif %}",
    "{{question|regex_replace('m.*y', 'x')}}{{'%05d'|format(n)}}{% set x = n * 2 %}{{ [x, n]|sum }}",
)


def _seed_templates(folder: Path) -> list[bytes]:
    return [one.encode() for one in TEMPLATES]


def _read_template(data: bytes, folder: Path) -> None:
    text = data.decode("utf-8", "replace")
    for read in (
        read_text(text, DOC, choices=False),
        read_target(text, DOC, choices=len(data) % 2 == 0),
        read_choices(text, DOC),
    ):
        with suppress(EvalError):
            read(dict(DOC))


PROMPT = "one two three"
ECHO = {
    "tokens": ["one", " two", " three", " x"],
    "token_logprobs": [None, -1.0, -0.5, -0.1],
    "text_offset": [0, 3, 7, 13],
}
ECHO |= {"top_logprobs": [None, {" two": -1.0}, {" three": -0.5}, {" x": -0.1}]}


def _seed_replies(folder: Path) -> list[bytes]:
    chat = {
        "id": "a",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    }
    text = {"choices": [{"index": 0, "text": PROMPT + " x", "finish_reason": "length", "logprobs": ECHO}]}
    return [json.dumps(chat).encode(), json.dumps(text).encode()]


def _read_reply(data: bytes, folder: Path) -> None:
    for read in (
        partial(read_generation, ServerKind("local-completions"), None),
        partial(read_generation, ServerKind("local-chat-completions", chat=True), "</think>"),
        lambda content: read_likelihood(content, PROMPT, 3, 2048),
    ):
        with suppress(Wrong, EvalError):
            read(data)


COMMANDS = (
    "score LOG --metric exact_match",
    'score LOG --filter regex={"regex_pattern": "(-?[0-9]+)"} --json',
    "explain LOG --doc 1",
    "diff LOG LOG",
    "compare LOG LOG --margin 0.1",
    "power LOG --difference 0.02",
    "check LOG --min acc=0.5",
    "merge LOG",
    "tasks check LOG",
    "models --json",
    "run LOG --model dummy --limit 1",
)


def _seed_commands(folder: Path) -> list[bytes]:
    return [one.replace(" ", "\n").encode() for one in COMMANDS]


def _run_command(data: bytes, folder: Path) -> None:
    """Type a command, a word a line. A code that means an unexpected error is one."""
    from evalcore.shell.cli import main

    log = folder / "samples_t.jsonl"
    if not log.exists():
        sample_runs.write_log(log, sample_runs.rows_of("t", "acc", [1.0, 0.0, 1.0]))
    words = [one.replace("LOG", str(log)) for one in data.decode("utf-8", "replace").split("\n")]
    if {"-o", "--output_path", "--partials", "--junit"} & {one.split("=")[0] for one in words}:
        return
    said = StringIO()
    with suppress(SystemExit), redirect_stdout(StringIO()), redirect_stderr(said):
        main(words)
    if "Traceback" in said.getvalue() or "unexpected" in said.getvalue():
        raise AssertionError(said.getvalue()[-600:])


def _seed_questions(suffix: str, folder: Path) -> list[bytes]:
    rows = [
        {"question": f"{n} + 1?", "A": str(n), "B": str(n + 1), "answer": "AB"[n % 2], "subject": "x"} for n in range(4)
    ]
    listed = [{"my q": f"{{{{ {n} }}}}", "options": ["one", "two"], "gold": n % 2, "id": n} for n in range(4)]
    if suffix == ".csv":
        names = list(rows[0])
        return [
            "\n".join(",".join(line) for line in [names, *([row[name] for name in names] for row in rows)]).encode()
        ]
    return ["".join(json.dumps(row) + "\n" for row in some).encode() for some in (rows, listed)]


def _look_at_questions(suffix: str, data: bytes, folder: Path) -> None:
    (folder / f"q{suffix}").write_bytes(data)
    write_guess(look_at_file(folder / f"q{suffix}"), folder / "made", overwrite=True)


TARGETS: dict[str, Target] = {
    "samples": Target(_seed_samples, partial(_read_log, "samples_t.jsonl")),
    "samples scored": Target(_seed_samples, _score_samples, weight=0.05),
    "results": Target(_seed_results, _read_results, weight=0.05),
    "table .jsonl": Target(
        partial(_seed_table, ".jsonl"), lambda data, folder: _read_log("t.jsonl", data, folder, COLUMNS)
    ),
    "table .csv": Target(partial(_seed_table, ".csv"), lambda data, folder: _read_log("t.csv", data, folder, COLUMNS)),
    "table .parquet": Target(
        partial(_seed_table, ".parquet"), lambda data, folder: _read_log("t.parquet", data, folder, COLUMNS)
    ),
    "inspect .eval": Target(_seed_eval, partial(_read_log, "q.eval")),
    "inspect .json": Target(_seed_eval_json, partial(_read_log, "q.json")),
    "data .json": Target(partial(_seed_data, ".json"), partial(_read_data, ".json")),
    "data .jsonl": Target(partial(_seed_data, ".jsonl"), partial(_read_data, ".jsonl")),
    "data .csv": Target(partial(_seed_data, ".csv"), partial(_read_data, ".csv")),
    "data .txt": Target(partial(_seed_data, ".txt"), partial(_read_data, ".txt")),
    "data .gz": Target(_seed_packed, partial(_read_data, ".jsonl.gz")),
    "data .parquet": Target(_seed_arrow, partial(_read_data, ".parquet")),
    "init .csv": Target(partial(_seed_questions, ".csv"), partial(_look_at_questions, ".csv"), weight=0.1),
    "init .jsonl": Target(partial(_seed_questions, ".jsonl"), partial(_look_at_questions, ".jsonl"), weight=0.1),
    "answer log": Target(_seed_answers, _read_answers),
    "partial": Target(_seed_partials, _read_partial),
    "task file": Target(_seed_yaml, _read_task),
    "task run": Target(_seed_yaml, _check_task, weight=0.002),
    "run config": Target(_seed_config, _read_config),
    "template": Target(_seed_templates, _read_template),
    "reply body": Target(_seed_replies, _read_reply),
    "command": Target(_seed_commands, _run_command, weight=0.01),
}
