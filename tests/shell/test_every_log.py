"""Whatever ``score`` reads, every command reads: Inspect's logs, plain tables, and formats of a host."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from evalcore import compare, score
from evalcore.comparisons import check_run, plan_power
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL, Generate
from evalcore.logs import READERS, Logged, LogTask, Reader, read_recorded
from evalcore.shell.cli import main
from evalcore.shell.logs.head import FileHead, LogFile
from evalcore.shell.logs.log import Opening
from evalcore.shell.models.model import Question
from evalcore.shell.models.replay import BACKEND, replay_backend
from evalcore.traces import diff_runs, explain_document

SIZE = 12
GOLDS = [str(at % 5) for at in range(SIZE)]
REPLIES = {
    "a": [gold if at % 3 else "no" for at, gold in enumerate(GOLDS)],
    "b": [gold if at % 4 else "no" for at, gold in enumerate(GOLDS)],
}
COLUMNS = {"answer": "reply", "gold": "target", "id": "name"}


def rows_of(side: str) -> list[dict[str, object]]:
    """Rows of a table, those of ``b`` in another order."""
    rows = [
        {"name": f"q{at}", "question": f"{at}?", "target": gold, "reply": reply, "right": float(reply == gold)}
        for at, (gold, reply) in enumerate(zip(GOLDS, REPLIES[side], strict=True))
    ]
    return rows if side == "a" else rows[::-1]


def inspect_log(side: str, *, scores: bool = True) -> dict[str, object]:
    samples = [
        {
            "id": row["name"],
            "epoch": 1,
            "input": row["question"],
            "target": row["target"],
            "output": {"completion": row["reply"]},
            **({"scores": {"match": {"value": "C" if row["right"] else "I"}}} if scores else {}),
        }
        for row in rows_of(side)
    ]
    return {"eval": {"task": "sums", "model": f"org/{side}", "dataset": {}}, "status": "success", "samples": samples}


def write_csv(path: Path, side: str) -> None:
    rows = rows_of(side)
    path.write_text("\n".join(",".join(map(str, cells)) for cells in [rows[0], *(row.values() for row in rows)]) + "\n")


def write_lines(path: Path, side: str) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(side)))


def write_parquet(path: Path, side: str) -> None:
    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.Table.from_pylist(rows_of(side)), path)


def write_eval(path: Path, side: str, *, scores: bool = True) -> None:
    log = inspect_log(side, scores=scores)
    with zipfile.ZipFile(path, "w") as zipped:
        for sample in log.pop("samples"):  # type: ignore[attr-defined]
            zipped.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        zipped.writestr("header.json", json.dumps(log))


def write_json(path: Path, side: str) -> None:
    path.write_text(json.dumps(inspect_log(side), indent=2))


LOGS = {
    "log.eval": (write_eval, {}),
    "log.json": (write_json, {}),
    "unscored.eval": (partial(write_eval, scores=False), {}),
    "table.csv": (write_csv, COLUMNS),
    "table.jsonl": (write_lines, COLUMNS),
    "table.parquet": (write_parquet, COLUMNS),
    "scores.csv": (write_csv, {"score": "right", "id": "name"}),
    "prompts.jsonl": (write_lines, {"answer": "reply", "gold": "target", "prompt": "question"}),
    "nameless.jsonl": (write_lines, {"answer": "reply", "gold": "target", "score": "right"}),
}


def flags_of(keys: dict[str, str]) -> list[str]:
    return [part for name, column in keys.items() for part in (f"--{name}", column)]


@pytest.fixture(params=LOGS)
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str], list[str], list[str]]:
    """Two logs of a format, what scoring them writes, and the flags that say what is in them."""
    write, keys = LOGS[request.param]
    paths = []
    for side in "ab":
        (tmp_path / side).mkdir()
        paths.append(tmp_path / side / request.param)
        write(paths[-1], side)
    flags = flags_of(keys)
    for side, path in zip("AB", paths, strict=True):
        assert main(["score", str(path), *flags, "-o", str(tmp_path / side), "--quiet"]) in (0, 1)
    return [str(path) for path in paths], [str(tmp_path / side) for side in "AB"], flags


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, object]:
    """The exit code of a command and its JSON, but for where it was read."""
    capsys.readouterr()
    code = main([*argv, "--json"])
    return code, without_places(json.loads(capsys.readouterr().out))


def without_places(value: object) -> object:
    if isinstance(value, dict):
        places = ("path", "file", "run", "baseline", "read", "before", "after", "line", "files", "results")
        return {key: without_places(cell) for key, cell in value.items() if key not in places}
    return [without_places(cell) for cell in value] if isinstance(value, list) else value


def test_comparing_logs_is_comparing_what_scoring_them_writes(logs, capsys) -> None:
    direct, written, flags = logs
    names = ["--names", "a,b", "--flips", "3"]
    found = told(capsys, "compare", *direct, *flags, *names)
    assert found == told(capsys, "compare", *written, *names)
    (line,) = found[1]["pairs"][0]["lines"]  # type: ignore[index]
    assert line["n"] == SIZE
    mixed = told(capsys, "compare", direct[0], written[1], *flags, *names)
    assert mixed[1]["pairs"][0]["lines"] == [line]  # type: ignore[index]


def test_checking_and_planning_as_well(logs, capsys) -> None:
    direct, written, flags = logs
    pointed = ["--higher_is_better", "right"] if "--score" in flags else []  # which no table says
    for given in (["--min", "*=0.5"], ["--baseline", direct[1], *pointed]):
        other = ["--baseline", written[1], *pointed] if "--baseline" in given else given
        assert told(capsys, "check", direct[0], *given, *flags) == told(capsys, "check", written[0], *other)
    assert told(capsys, "power", direct[0], *flags) == told(capsys, "power", written[0])
    assert told(capsys, "power", *direct, *flags) == told(capsys, "power", *written)


def test_diffing_and_explaining_as_well(logs, capsys) -> None:
    direct, written, flags = logs
    assert main(["diff", *direct, *flags]) == main(["diff", *written]) == 1
    assert main(["diff", direct[0], written[0], *flags]) == 0
    found, other = (
        told(capsys, "explain", path, "--doc", "#3", *more)[1] for path, more in ((direct[0], flags), (written[0], []))
    )
    for key in ("hash", "gold", "contributions"):
        assert found[key] == other[key], key  # type: ignore[index]
    assert found["answers"] == (other["answers"] if "scores.csv" not in direct[0] else [])  # type: ignore[index]
    assert found["contributions"]  # type: ignore[index]


def test_a_folder_of_logs_is_a_run_with_the_newest_log_of_each_task(tmp_path, capsys) -> None:
    for at, side in enumerate("ab"):
        (tmp_path / "run").mkdir(exist_ok=True)
        write_eval(tmp_path / "run" / f"2025-01-0{at + 1}T00-00-00_sums_{side}.eval", side)
    write_eval(tmp_path / "b.eval", "b")
    run = read_recorded(tmp_path / "run")
    assert run.results["model_name"] == "org/b"
    assert run.warnings == (f"{tmp_path / 'run'} has several logs of some tasks; read the newest of each",)
    assert main(["compare", str(tmp_path / "run"), str(tmp_path / "b.eval")]) == 0
    assert "has several logs of some tasks" in capsys.readouterr().out


def test_several_tasks_of_one_table(tmp_path) -> None:
    for side in "ab":
        rows = [{**row, "subject": "odd" if int(str(row["name"])[1:]) % 2 else "even"} for row in rows_of(side)]
        (tmp_path / f"{side}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", **COLUMNS, task_column="subject")
    assert {line.name for line in found.comparisons[0].lines} == {"odd", "even"}


def test_clusters_and_fields_to_match_by(tmp_path) -> None:
    for side in "ab":
        write_lines(tmp_path / f"{side}.jsonl", side)
    paths = [tmp_path / f"{side}.jsonl" for side in "ab"]
    clustered = compare(*paths, **COLUMNS, cluster="target")
    assert clustered.comparisons[0].lines[0].clusters == 5
    matched = compare(*paths, answer="reply", gold="target", match="question")
    assert matched.comparisons[0].documents[0].both == SIZE
    with pytest.raises(EvalError, match="unknown field to match by 'quest'"):
        compare(*paths, answer="reply", gold="target", match="quest")


def test_a_table_is_refused_without_its_columns(tmp_path) -> None:
    write_csv(tmp_path / "a.csv", "a")
    with pytest.raises(EvalError, match="of a table of answers, `evalcore score "):
        compare(tmp_path / "a.csv", tmp_path / "a.csv")


def test_a_damaged_log_says_where(tmp_path) -> None:
    write_lines(tmp_path / "a.jsonl", "a")
    write_lines(tmp_path / "b.jsonl", "b")
    with open(tmp_path / "b.jsonl", "a") as file:
        file.write('{"name": "q99"')
    with pytest.raises(EvalError, match=f"b.jsonl:{SIZE + 1}: not JSON"):
        compare(tmp_path / "a.jsonl", tmp_path / "b.jsonl", **COLUMNS)


# --- formats of a host ------------------------------------------------------------------------------------------------

MAGIC = b"#answers of mine\n"


def read_mine(path: Path) -> Iterator[Logged]:
    lines = path.read_text().splitlines()[1:]
    for at, (question, target, reply) in enumerate(line.split("|") for line in lines):
        scores = {"mine,none": float(reply == target)}
        doc = json.dumps({"question": question}).encode()
        yield Logged(
            doc_id=at,
            doc=doc,
            gold=target,
            id=question,
            requests=(Generate(question),),
            replies=((reply,),),
            scores=scores,
            line=at + 2,
        )


def open_mine(files: Sequence[LogFile], opening: Opening) -> list[LogTask]:
    path = files[0].path
    return [LogTask(name="mine", path=path, output_type=GENERATE_UNTIL, rows=partial(read_mine, path))]


def is_mine(head: FileHead) -> bool:
    return head.start.startswith(MAGIC)


MINE = READERS.set("mine", Reader(recognises=is_mine, opens=open_mine, harness="My harness"))


@pytest.fixture
def mine(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{side}.log" for side in "ab"]
    for path, side in zip(paths, "ab", strict=True):
        rows = [f"{row['question']}|{row['target']}|{row['reply']}\n" for row in rows_of(side)]
        path.write_text(MAGIC.decode() + "".join(rows))
    return paths


def test_the_reader_of_a_host_serves_every_command(mine: list[Path], tmp_path: Path) -> None:
    a, b = mine
    assert score(a, readers=MINE).report.task("mine")["mine,none"].value == 8 / 12
    (line,) = compare(a, b, readers=MINE).comparisons[0].lines
    assert (line.a, line.b) == pytest.approx((8 / 12, 9 / 12))
    assert check_run(a, min="mine=0.5", readers=MINE).passed
    assert plan_power(a, b, readers=MINE).plans[0].known.n == SIZE
    assert len(diff_runs(a, b, readers=MINE).tasks[0].answered) == 5
    explained = explain_document(a, "3?", readers=MINE)
    assert explained.logged.gold == "3"
    assert explained.contributions[0].value == pytest.approx(8 / 12)
    model = replay_backend(MINE).open({"path": str(a)})
    assert [heard.reply for heard in model.ask([Question(Generate("4?"))])] == ["4"]


def test_without_its_reader_the_log_is_refused(mine: list[Path]) -> None:
    for call in (score, check_run, plan_power, read_recorded):
        with pytest.raises(EvalError):
            call(mine[0], **({"min": "mine=0.5"} if call is check_run else {}))
    with pytest.raises(EvalError, match="expected a row of a sample log"):
        BACKEND.open({"path": str(mine[0])})


@pytest.mark.parametrize("name", ["log.eval", "log.json", "table.csv"])
def test_a_reader_under_another_name_is_the_same(name: str, tmp_path: Path) -> None:
    write, keys = LOGS[name]
    paths = []
    for side in "ab":
        (tmp_path / side).mkdir()
        paths.append(tmp_path / side / name)
        write(paths[-1], side)
    old = "table" if keys else "inspect"
    copied = READERS.remove(old).set("copy of a reader", READERS[old])
    assert score(paths[0], **keys).results == score(paths[0], **keys, readers=copied).results
    ours, theirs = compare(*paths, **keys), compare(*paths, **keys, readers=copied)
    assert (ours.comparisons, ours.warnings) == (theirs.comparisons, theirs.warnings)


# --- replay -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["log.eval", "log.json", "prompts.jsonl", "table.csv", "table.parquet"])
def test_answers_of_every_log_are_replayed(name: str, tmp_path: Path) -> None:
    write, keys = LOGS[name]
    write(tmp_path / name, "a")
    columns = {**keys, "prompt": "question"} if keys else {}
    for path in (tmp_path / name, tmp_path) if not keys or name == "prompts.jsonl" else (tmp_path / name,):
        model = BACKEND.open({"path": str(path), **columns})
        heard = [one.reply for one in model.ask([Question(Generate(f"{at}?")) for at in range(SIZE)])]
        assert heard == REPLIES["a"]
    assert columns == {} or model.identity != BACKEND.open({"path": str(path), **columns, "answer": "name"}).identity
