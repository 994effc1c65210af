"""Which documents a task gets: from the run config, its own files, its code or the hub."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from evalcore.core.records.errors import EvalError
from evalcore.shell.data.local import find_override
from evalcore.shell.data.splits import Splits, load_splits

TASK = {"task": "t", "test_split": "test", "fewshot_config": {"split": "dev"}}


def put(path: Path, *docs: Mapping[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    return path


def show(splits: Splits) -> dict[str, list[dict[str, object]]]:
    return {name: list(docs) for name, docs in splits.items()}


def test_a_path_serves_every_split_and_is_read_once(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", {"n": 1})
    splits = load_splits(TASK, "a.jsonl", root=tmp_path)
    assert show(splits) == {"test": [{"n": 1}], "dev": [{"n": 1}]}
    path.unlink()
    assert splits["test"] is splits["anything"]
    assert "anything" in splits


def test_nothing_is_read_until_asked_for(tmp_path: Path) -> None:
    splits = load_splits(TASK, {"test": "none.jsonl", "dev": [{"n": 1}]}, root=tmp_path)
    assert list(splits) == ["test", "dev"]
    assert splits["dev"] == [{"n": 1}]
    with pytest.raises(EvalError, match=r"none.jsonl: no such file; looked in .* - at t"):
        splits["test"]
    with pytest.raises(KeyError):
        splits["train"]
    assert splits.get("train") is None


def test_override_by_split_globs_and_documents(tmp_path: Path) -> None:
    put(tmp_path / "x-1.jsonl", {"n": 1})
    put(tmp_path / "x-2.jsonl", {"n": 2, "m": "y"})
    assert show(load_splits(TASK, {"test": "x-*.jsonl", "dev": ["x-2.jsonl"]}, root=tmp_path)) == {
        "test": [{"n": 1, "m": None}, {"n": 2, "m": "y"}],
        "dev": [{"n": 2, "m": "y"}],
    }
    assert load_splits(TASK, [{"a": 1}, {"b": 2}])["test"] == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_override_with_a_folder_goes_by_names(tmp_path: Path) -> None:
    put(tmp_path / "d" / "test.jsonl", {"n": 1})
    put(tmp_path / "d" / "validation" / "a.jsonl", {"n": 2})
    put(tmp_path / "d" / "latest.jsonl", {"n": 9})
    assert show(load_splits({"task": "t"}, "d", root=tmp_path)) == {"test": [{"n": 1}], "validation": [{"n": 2}]}


@pytest.mark.parametrize("bad", [7, {"test": 7}, {"test": None}, [], "", [7], [{"a": 1}, 7]])
def test_bad_overrides(bad: object) -> None:
    with pytest.raises(EvalError, match=r"expected .* - at t"):
        load_splits(TASK, bad)["test"]


def test_find_override() -> None:
    data = {"mmlu_*": "m/{task}.jsonl", "mmlu_law": {"test": ["l/{task}.csv"]}, "x": [{"q": "{task}"}]}
    assert find_override(data, "mmlu_art") == "m/mmlu_art.jsonl"
    assert find_override(data, "mmlu_law") == {"test": ["l/mmlu_law.csv"]}
    assert find_override(data, "x") == [{"q": "{task}"}]
    assert find_override(data, "y") is None
    assert find_override(None, "y") is None
    with pytest.raises(EvalError, match="data: expected task names"):
        find_override("a.jsonl", "y")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("a.jsonl", {"train": [{"n": 1}]}),
        (["a.jsonl", "b.jsonl"], {"train": [{"n": 1}, {"n": 2}]}),
        ({"test": "a.jsonl", "dev": ["b.jsonl"]}, {"test": [{"n": 1}], "dev": [{"n": 2}]}),
        ({"test": "*.jsonl"}, {"test": [{"n": 1}, {"n": 2}]}),
    ],
)
@pytest.mark.parametrize("in_folder", [True, False])
def test_data_files_of_a_builder(tmp_path: Path, files: object, expected: object, in_folder: bool) -> None:
    folder = tmp_path / "inner" if in_folder else tmp_path
    put(folder / "a.jsonl", {"n": 1})
    put(folder / "b.jsonl", {"n": 2})
    kwargs = {"data_files": files, **({"data_dir": "inner"} if in_folder else {})}
    assert show(load_splits({"dataset_path": "json", "dataset_kwargs": kwargs}, root=tmp_path)) == expected


def test_builder_options(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"items": [{"n": 1}]}')
    (tmp_path / "a.csv").write_text("1;2\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "test.txt").write_text("one\ntwo\n")

    def load(kind: str, **kwargs: object) -> object:
        return show(load_splits({"task": "t", "dataset_path": kind, "dataset_kwargs": kwargs}, root=tmp_path))

    assert load("json", data_files="a.json", field="items") == {"train": [{"n": 1}]}
    assert load("csv", data_files="a.csv", sep=";", column_names=["x", "y"]) == {"train": [{"x": 1, "y": 2}]}
    assert load("text", data_dir="d") == {"test": [{"text": "one"}, {"text": "two"}]}
    with pytest.raises(EvalError, match="unknown field 'itms'; did you mean 'items'"):
        load("json", data_files="a.json", field="itms")
    with pytest.raises(EvalError, match="unknown csv option 'alpha'"):
        load("csv", data_files="a.csv", zeta=1, alpha=1, mu=1)
    with pytest.raises(EvalError, match="unknown csv option 'seperator'"):
        load("csv", data_files="a.csv", seperator=";")
    with pytest.raises(EvalError, match="json needs data_files"):
        load("json")
    with pytest.raises(EvalError, match="json needs data_files"):
        load("json", data_dir="none")


def test_dataset_path_that_is_local(tmp_path: Path) -> None:
    put(tmp_path / "d" / "en" / "train-00000-of-00002.jsonl", {"n": 1})
    put(tmp_path / "d" / "en" / "train-00001-of-00002.jsonl", {"n": 2})
    put(tmp_path / "d" / "fr" / "test.jsonl", {"n": 3})
    assert show(load_splits({"dataset_path": "d", "dataset_name": "en"}, root=tmp_path)) == {
        "train": [{"n": 1}, {"n": 2}]
    }
    assert list(load_splits({"dataset_path": str(tmp_path / "d")})) == ["train", "test"]
    assert load_splits({"dataset_path": "d/fr/test.jsonl"}, root=tmp_path)["validation"] == [{"n": 3}]


def test_custom_dataset_gets_what_lm_eval_gives() -> None:
    def custom(**given: object) -> dict[str, list[dict[str, object]]]:
        return {"test": [dict(given)]}

    config = {"task": "t", "custom_dataset": custom, "metadata": {"version": 1}, "dataset_kwargs": {"k": 2}}
    assert load_splits(config)["test"] == [{"version": 1, "k": 2}]
    with pytest.raises(EvalError, match=r"custom_dataset: TypeError: .*multiple values.* - at t"):
        load_splits({**config, "metadata": {"k": 1}})["test"]
    with pytest.raises(EvalError, match="expected a dataset with splits, got list - at t"):
        load_splits({**config, "custom_dataset": lambda **_: []})["test"]
    with pytest.raises(EvalError, match="expected documents, got '7' in place 0 - at t test"):
        load_splits({**config, "custom_dataset": lambda **_: {"test": [7]}})["test"]


def test_trust_remote_code_is_dropped_with_a_warning() -> None:
    config = {
        "task": "t",
        "custom_dataset": lambda **given: {"test": [given]},
        "dataset_kwargs": {"trust_remote_code": True},
    }
    splits = load_splits(config)
    assert splits["test"] == [{}]
    assert "trust_remote_code is not honoured" in splits.warnings[0]


def test_hub_failures_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"task": "t", "dataset_path": "nobody/nothing", "dataset_name": "en"}
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        EvalError, match=r"no local file or folder.*pip install \"evalcore\[hf\]\".*`data: \{t: file.jsonl\}` - at t"
    ):
        list(load_splits(config))

    class Stub:
        @staticmethod
        def load_dataset(path: str, name: str, **options: object) -> object:
            raise ConnectionError(f"no\nroute to {path}")

    monkeypatch.setitem(sys.modules, "datasets", Stub)  # type: ignore[arg-type]
    with pytest.raises(
        EvalError,
        match=r"'nobody/nothing' \(en\) is no local .* did not give it: no route to nobody/nothing; .*data: \{t",
    ):
        load_splits(config)["test"]


def test_remote_data_files_go_to_the_hub_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stub:
        @staticmethod
        def load_dataset(path: str, name: object, **options: object) -> object:
            return {"test": [{"path": path, **options}]}

    monkeypatch.setitem(sys.modules, "datasets", Stub)  # type: ignore[arg-type]
    kwargs = {"data_files": {"test": "hf://datasets/a/b.jsonl"}, "trust_remote_code": True}
    assert load_splits({"dataset_path": "json", "dataset_kwargs": kwargs})["test"] == [
        {"path": "json", "data_files": {"test": "hf://datasets/a/b.jsonl"}}
    ]


@pytest.mark.parametrize("config", [{}, {"dataset_path": 7}, {"dataset_path": None}])
def test_no_dataset_path(config: dict[str, object]) -> None:
    with pytest.raises(EvalError, match=r"no dataset_path.*- at t"):
        load_splits({"task": "t", **config})["test"]
    with pytest.raises(EvalError, match="dataset_kwargs: expected names with values"):
        load_splits({"task": "t", "dataset_kwargs": [1]})
