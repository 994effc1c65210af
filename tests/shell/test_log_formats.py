"""What a log is, its content says: in every command, whatever the file is called and however its rows are laid out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from sample_runs import STAMP, rows_of

from evalcore.shell.cli import main

SCORES = [1.0, 0.0, 1.0, 1.0] * 10
NAMES = [
    f"samples_t_{STAMP}.json",  # lm-eval's own, for some months of 2024
    f"samples_t_{STAMP}.json.gz",
    f"samples_t_{STAMP}.jsonl",
]
LAYOUTS: dict[str, Callable[[object], str]] = {
    "lines": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "array": json.dumps,
    "indented": lambda rows: json.dumps(rows, indent=4),
}


def rows() -> list[dict[str, object]]:
    """Rows of 2024, which name neither their filter nor their metrics."""
    made = rows_of("t", "exact_match", SCORES)
    for at, row in enumerate(made):
        row["resps"] = [["yes" if SCORES[at] else "no"]]
        row["filtered_resps"] = row["resps"][0]
        del row["filter"], row["metrics"]
    return made


def write(folder: Path, name: str, layout: str, *, results: bool = False) -> Path:
    folder.mkdir(parents=True)
    text = LAYOUTS[layout](rows()).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    if results:
        config = {"task": "t", "output_type": "generate_until", "metric_list": [{"metric": "exact_match"}]}
        found = {"results": {"t": {"exact_match,none": 0.75}}, "configs": {"t": config}}
        (folder / f"results_{STAMP}.json").write_text(json.dumps(found))
    return folder


COMMANDS = {
    "score": ("score", "{run}", "--metric", "exact_match", "--json"),
    "compare": ("compare", "{run}", "{run}", "--csv", "--names", "a,b"),
    "check": ("check", "{run}", "--baseline", "{run}", "--min", "exact_match=0.5"),
    "power": ("power", "{run}", "--difference", "0.1"),
    "explain": ("explain", "{run}", "--doc", "7"),
    "diff": ("diff", "{run}", "{run}"),
}


def say(capsys: pytest.CaptureFixture[str], command: str, run: Path, base: Path) -> str:
    """What a command prints, without where things are."""
    capsys.readouterr()
    code = main([one.replace("{run}", str(run)) for one in COMMANDS[command]])
    said = capsys.readouterr()
    assert code == 0, said.err
    told = said.out.replace(str(run), "RUN").replace(str(base), "BASE")
    for name in sorted(NAMES, key=len, reverse=True):
        told = told.replace(name, "LOG")
    return told


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("results", [True, False])
def test_every_command_reads_every_layout_under_every_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, results: bool
) -> None:
    said: dict[tuple[str, str, str], str] = {}
    for name in NAMES:
        for layout in LAYOUTS:
            folder = write(tmp_path / layout / name / "run", name, layout, results=results)
            for kind, run in (("folder", folder), ("file", folder / name)):
                said[kind, name, layout] = say(capsys, command, run, tmp_path / layout / name)
    for kind in ("folder", "file"):
        wanted = said[kind, NAMES[-1], "lines"]
        found = {key: text for key, text in said.items() if key[0] == kind}
        if command == "explain":  # says the line, which an array laid out otherwise has elsewhere
            found = {key: text for key, text in found.items() if key[2] == "lines"}
        assert set(found.values()) == {wanted}


@pytest.mark.parametrize("command", COMMANDS)
def test_packing_is_told_by_content(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    text = LAYOUTS["lines"](rows()).encode()
    said = []
    for name, data in ((NAMES[2], text), (NAMES[1], text), (NAMES[2], gzip.compress(text))):
        folder = tmp_path / str(len(said))
        folder.mkdir()
        (folder / name).write_bytes(data)
        said.append(say(capsys, command, folder / name, folder))
    assert len(set(said)) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_every_layout_under_every_name_is_replayed(tmp_path: Path, name: str, layout: str) -> None:
    task = {
        "task": "t",
        "dataset_path": "json",
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "question",
        "doc_to_target": "yes",
        "generation_kwargs": {"until": []},
    }
    (tmp_path / "documents.json").write_text(LAYOUTS["lines"]([row["doc"] for row in rows()]))
    folder = write(tmp_path / "logs", name, layout)
    for at, path in enumerate((folder, folder / name)):
        config = {"model": "replay", "model_args": {"path": str(path)}, "tasks": [task]}
        config |= {"data": {"t": "documents.json"}, "output_path": str(tmp_path / f"out{at}")}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(config))
        assert main(["run", str(tmp_path / "run.yaml"), "--quiet"]) == 0
        results = json.loads((tmp_path / f"out{at}/results.json").read_text())
        assert results["results"]["t"]["exact_match,none"] == 0.75


@pytest.mark.parametrize("name", NAMES)
def test_frames_and_lm_evals_files_are_made_of_every_name(tmp_path: Path, name: str) -> None:
    from evalcore.frames import samples_of, to_arrow
    from evalcore.shell.output.files.parquet import write_parquet
    from evalcore.shell.output.files.tracker import write_lm_eval

    folder = write(tmp_path / "run", name, "lines", results=True)
    assert len(list(samples_of(folder))) == len(SCORES)
    assert len(to_arrow(folder / name)) == len(SCORES)
    _, samples = write_lm_eval(folder, tmp_path / "out", time=STAMP)
    assert len(samples.read_text().splitlines()) == len(SCORES)
    assert [path.name for path in write_parquet(folder)] == [f"results_{STAMP}.parquet", f"samples_t_{STAMP}.parquet"]


def test_an_empty_log_beside_a_run_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "run", NAMES[0], "lines", results=True)
    (folder / "samples_u_2026-02-01T12-00-00.000000.json").write_text("")
    for command in ("compare", "power"):
        assert main([one.replace("{run}", str(folder)) for one in COMMANDS[command]]) == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_a_log_of_any_name_is_found_in_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    said = []
    for name in ("t.jsonl", "t"):
        folder = write(tmp_path / str(len(said)), name, "lines")
        (folder / "weights.bin").write_bytes(bytes(range(256)))
        said.append(say(capsys, command, folder, tmp_path).replace(f"RUN/{name}", "LOG"))
    assert said[0] == said[1]


def test_other_files_of_a_folder_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "run", NAMES[0], "lines")
    text = (folder / NAMES[0]).read_text()
    for name in (".samples_t.jsonl.swp", "samples_t.jsonl.bak", ".samples_u.jsonl"):
        (folder / name).write_text(text)
    (folder / "weights.bin").write_bytes(b"\x1f\x8b\x08 no gzip")
    (folder / "data.zst").write_bytes(b"\x28\xb5\x2f\xfd no zstd")
    (folder / "samples_config.json").write_text(json.dumps({"tasks": ["t"], "limit": 3}, indent=2))
    wanted = say(capsys, "compare", write(tmp_path / "alone", NAMES[0], "lines"), tmp_path)
    assert say(capsys, "compare", folder, tmp_path) == wanted
    assert main(["run", "--model", "replay", "--model_args", f"path={folder}", "--tasks", "no_such_task"]) == 2
    assert "no_such_task" in capsys.readouterr().err


def test_rows_without_documents_are_a_log_as_file_and_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    bare = [{key: row[key] for key in ("doc_id", "resps", "target", "exact_match")} for row in rows()]
    (tmp_path / "run/samples_t.jsonl").write_text(LAYOUTS["lines"](bare))
    for path in (tmp_path / "run", tmp_path / "run/samples_t.jsonl"):
        assert main(["compare", str(path), str(path)]) == 0


def test_answers_without_scores_say_how_to_score_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow
    import pyarrow.parquet

    good = write(tmp_path / "run", NAMES[0], "lines")
    rows = [{"question": "?", "reply": "yes"}] * 3
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("question,reply\n?,yes\n")
    (tmp_path / "a.jsonl").write_text(LAYOUTS["lines"](rows))
    (tmp_path / "a.json").write_text(json.dumps({"eval": {"task": "t"}, "status": "success", "samples": []}))
    for name in ("a.parquet", "a.csv", "a.jsonl"):
        path = tmp_path / name
        assert main(["compare", str(good), str(path)]) == 2
        assert f"`evalcore score {path} " in capsys.readouterr().err
    assert main(["compare", str(good), str(tmp_path / "a.json")]) == 2
    assert "a.json: no documents" in capsys.readouterr().err


def test_a_torn_log_is_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = NAMES[0]
    folder = write(tmp_path / "run", name, "lines")
    text = (folder / name).read_text()
    (folder / name).write_text(text[: len(text) // 2])
    for command in ("score", "compare", "diff"):
        assert main([one.replace("{run}", str(folder / name)) for one in COMMANDS[command]]) == 2
        said = capsys.readouterr().err
        assert f"{name}:" in said
        assert "not JSON" in said
