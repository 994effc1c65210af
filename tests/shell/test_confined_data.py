"""Data that a task file names: read inside its folders only, wherever a ``..``, a link or an address leads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from evalcore.shell.cli import main

CANARY = "canary-7f3a99"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of somebody's tasks, a user's file beside it, and a folder from which commands are typed."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("tasks/sub", "user", "work"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "user/private.txt").write_text(CANARY)
    (tmp_path / "user/private.jsonl").write_text(json.dumps({"text": CANARY}) + "\n")
    (tmp_path / "tasks/own.txt").write_text("2 + 2 =\n")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def write_task(home: Path, **keys: object) -> Path:
    path = home / "tasks/sub/t.yaml"
    task = {"task": "t", "test_split": "test", "doc_to_text": "{{text}}", "doc_to_target": "x"}
    path.write_text(yaml.safe_dump({**task, "dataset_path": "text", **keys}))
    return path


def run_task(home: Path, *more: str) -> int:
    given = ["--tasks", str(home / "tasks/sub/t.yaml"), "--output_path", str(home / "out"), "--quiet", *more]
    return main(["run", "--model", "dummy", *given])


def was_read(home: Path) -> bool:
    return any(CANARY in path.read_text() for path in (home / "out").rglob("*") if path.is_file())


OUTSIDE = {
    "an absolute path": {"data_files": {"test": "{home}/user/private.txt"}},
    "a way up": {"data_files": {"test": "../../user/private.txt"}},
    "a link": {"data_files": {"test": "link.txt"}},
    "a linked folder": {"data_files": {"test": "linked/private.txt"}},
    "a glob": {"data_files": {"test": "{home}/user/*.txt"}},
    "an address of a file": {"data_files": {"test": "file://{home}/user/private.txt"}},
    "an address among others": {"data_files": {"test": ["https://host.invalid/a.txt", "{home}/user/private.txt"]}},
    "another address of a file": {"data_files": {"test": "local://{home}/user/private.txt"}},
    "a chain": {"data_files": {"test": "simplecache::file://{home}/user/private.txt"}},
    "a bucket of the user's": {"data_files": {"test": "s3://private/a.txt"}},
    "the home folder": {"data_files": {"test": "~/private.txt"}},
    "the working directory": {"data_files": {"test": "here.txt"}},
}


@pytest.mark.parametrize("options", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_a_task_file_does_not_read_files_outside_its_folders(
    home: Path, options: dict[str, object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(home / "user"))
    (home / "tasks/sub/link.txt").symlink_to(home / "user/private.txt")
    (home / "tasks/sub/linked").symlink_to(home / "user")
    (home / "work/here.txt").write_text(CANARY)
    write_task(home, dataset_kwargs=json.loads(json.dumps(options).replace("{home}", str(home))))
    assert run_task(home) == 2
    said = capsys.readouterr().err
    assert "outside its folders" in said or "a chain of addresses" in said
    assert "{path}" not in said
    assert not was_read(home)
    assert CANARY not in said


@pytest.mark.parametrize(
    "keys",
    [
        {"dataset_path": "{home}/user"},
        {"dataset_path": "text", "dataset_kwargs": {"data_dir": "{home}/user"}},
        {"dataset_path": "{home}/user/private.jsonl"},
        {"dataset_path": "imagefolder", "dataset_kwargs": {"data_dir": "{home}/user"}},
        {"dataset_path": "org/name", "dataset_kwargs": {"data_files": "{home}/user/private.jsonl"}},
    ],
)
def test_a_dataset_path_leads_nowhere_else(
    home: Path, keys: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    write_task(home, test_split="train", **json.loads(json.dumps(keys).replace("{home}", str(home))))
    assert run_task(home) == 2
    assert "outside its folders" in capsys.readouterr().err
    assert not was_read(home)


def test_the_error_names_the_file_the_folders_and_what_to_type(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "tasks/sub/link.txt").symlink_to(home / "user/private.txt")
    write_task(home, dataset_kwargs={"data_files": {"test": "link.txt"}})
    assert run_task(home) == 2
    said = capsys.readouterr().err
    secret = home / "user/private.txt"
    assert f"{home}/tasks/sub/link.txt (which leads to {secret})" in said
    assert f"it may name files in {home}/tasks/sub. To allow it: --trust {secret}" in said
    assert """--data '{"t": "FILE"}'""" in said


def test_the_error_says_what_to_type_of_a_bucket_too(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_task(home, dataset_kwargs={"data_files": {"test": "s3://private/a.txt"}}, dataset_path="text")
    assert run_task(home) == 2
    said = capsys.readouterr().err
    assert "To allow it: --trust s3://private/a.txt" in said
    assert """--data '{"t": "FILE"}'""" in said


def test_what_the_user_names_is_read(home: Path) -> None:
    write_task(home, dataset_kwargs={"data_files": {"test": "../../user/private.txt"}})
    assert run_task(home, "--trust", str(home / "user")) == 0
    assert was_read(home)
    assert run_task(home, "--data", json.dumps({"t": str(home / "user/private.txt")}), "--overwrite") == 0
    (home / "user/run.yaml").write_text(yaml.safe_dump({"model": "dummy", "tasks": [str(home / "tasks/sub/t.yaml")]}))
    assert main(["run", str(home / "user/run.yaml"), "--output_path", str(home / "other"), "--quiet"]) == 0


def test_an_indexed_folder_is_one_place(home: Path) -> None:
    """Includes may lead anywhere in it, and so may data."""
    write_task(home, dataset_kwargs={"data_files": {"test": "../own.txt"}})
    given = ["--tasks", "t", "--include_path", str(home / "tasks"), "--output_path", str(home / "out"), "--quiet"]
    assert main(["run", "--model", "dummy", *given]) == 0


def test_inline_tasks_read_beside_their_config(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run_inline(file: str) -> int:
        task = {"task": "i", "test_split": "test", "doc_to_text": "{{text}}", "doc_to_target": "x"}
        task |= {"dataset_path": "text", "dataset_kwargs": {"data_files": {"test": file}}}
        (home / "tasks/run.yaml").write_text(yaml.safe_dump({"model": "dummy", "tasks": [task]}))
        return main(["run", str(home / "tasks/run.yaml"), "--output_path", str(home / "out"), "--quiet", "--overwrite"])

    assert run_inline("own.txt") == 0
    assert run_inline(str(home / "user/private.txt")) == 2
    assert "outside its folders" in capsys.readouterr().err


def test_what_lm_evals_names_need_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every name is looked at; the only local files that any names are on a machine of their authors."""
    pytest.importorskip("lm_eval")
    assert main(["tasks", "trust", "--json"]) == 0
    needs = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in needs if one["kind"] == "data"] == DATA_ON_A_MACHINE_OF_THEIR_AUTHORS
    assert all(one["what"].startswith("/gpfs/") for one in needs if one["kind"] == "data")
    assert len({one["name"] for one in needs if one["kind"] == "function"}) > 5_000
    assert len({one["name"] for one in needs if one["kind"] == "class"}) == 30
    assert main(["tasks", "trust", "gsm8k", "humaneval"]) == 0
    said = capsys.readouterr()
    assert "humaneval  unsafe_code  unsafe_code" in said.out
    assert "1 of 2 names need something" in said.err
    assert main(["tasks", "trust", "gsm8"]) == 2


DATA_ON_A_MACHINE_OF_THEIR_AUTHORS = ["med_text_classification_easy", "med_text_classification_hard"]
