"""Logs whose rows are compared as bytes say what they say when every row is decoded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from evalcore.shell.cli import main
from evalcore.shell.logs.runs import log_table

CONFIG = {
    "output_type": "generate_until",
    "doc_to_target": "{{answer}}",
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    "filter_list": [
        {"name": name, "filter": [{"function": "regex", "regex_pattern": pattern}, {"function": "take_first"}]}
        for name, pattern in (("strict", "is ([0-9]+)"), ("loose", "([0-9]+)"))
    ],
}
Row = dict[str, object]


def make_row(doc_id: int, name: str) -> Row:
    said = f"It is {doc_id + (doc_id % 3 == 0)}."
    options = {"until": ["\n"], "do_sample": False}
    return {
        "doc_id": doc_id,
        "doc": {"question": f"Which number is {doc_id}?", "answer": str(doc_id)},
        "target": str(doc_id),
        "arguments": {"gen_args_0": {"arg_0": f"Q: {doc_id}\nA:", "arg_1": options}},
        "resps": [[said]],
        "filtered_resps": [said[6:-1]],
        "filter": name,
        "metrics": ["exact_match"],
        "exact_match": float(doc_id % 3 != 0),
    }


def write_run(folder: Path, change: Callable[[Row], Row | None] = lambda row: row) -> Path:
    folder.mkdir()
    rows = [change(make_row(doc_id, name)) for name in ("strict", "loose") for doc_id in range(12)]
    lines = [json.dumps(row) + "\n" for row in rows if row is not None]
    (folder / "samples_t.jsonl").write_text("".join(lines))
    (folder / "results.json").write_text(json.dumps({"results": {"t": {"alias": "t"}}, "configs": {"t": CONFIG}}))
    return folder


def at(*documents: int, **fields: object) -> Callable[[Row], Row]:
    return lambda row: {**row, **fields} if row["doc_id"] in documents else row


CHANGES: Mapping[str, Callable[[Row], Row | None]] = {
    "the same": lambda row: row,
    "verdicts": at(2, 5, exact_match=0.5),
    "answers": at(4, resps=[["It is 7."]], filtered_resps=["7"]),
    "one row's answer": lambda row: {**row, "resps": [["?"]]} if row["filter"] == "loose" else row,
    "texts": at(7, filtered_resps=["8"]),
    "options in another order": lambda row: {
        **row,
        "arguments": {
            "gen_args_0": {"arg_1": {"do_sample": False, "until": ["\n"]}, "arg_0": f"Q: {row['doc_id']}\nA:"}
        },
    },
    "another prompt": at(3, arguments={"gen_args_0": {"arg_0": "Q?", "arg_1": {}}}),
    "other fields first": lambda row: {**row, "doc": {"answer": str(row["doc_id"]), "question": "?"}},
    "fewer documents": lambda row: None if row["doc_id"] == 6 else row,
    "fewer rows": lambda row: None if row["doc_id"] == 6 and row["filter"] == "loose" else row,
    "other numbers": lambda row: {**row, "doc_id": int(str(row["doc_id"])) + 100},
    "ids and clusters": lambda row: {**row, "evalcore": {"id": f"q{row['doc_id']}", "cluster": row["doc_id"] == 1}},
    "a wrong gold": at(1, evalcore={"gold": {"a": 1}}),
    "a reason": at(1, evalcore={"unscored": {"exact_match": "failed: too long", "f1": "unscorable: why"}}),
    "another document under a filter": lambda row: {**row, "doc": {"filter": row["filter"]}},
    "a metric of the same name as a field": lambda row: {**row, "metrics": ["exact_match", "doc"]},
    "no score": at(1, metrics=[]),
    "no replies": at(1, resps=[]),
    "a number that is too large": at(1, doc_id=2**70),
    "rows without filters": lambda row: {key: value for key, value in row.items() if key != "filter"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_bytes_say_what_decoded_rows_say(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = map(str, (write_run(tmp_path / "a"), write_run(tmp_path / "b", CHANGES[name])))
    documents = ("0", "11", "#5", "q7", "106", "hash:", "none")
    commands = [["diff", *pair, "--json"] for pair in ((a, b), (b, a), (b, b))]
    commands += [["explain", b, "--doc", document, "--json"] for document in documents]

    def run_all() -> list[tuple[int, str, str]]:
        return [(main(command), *capsys.readouterr()) for command in commands]

    quick = run_all()
    monkeypatch.setattr(log_table, "read_raw", lambda files, *, answers: None)
    assert quick == run_all()


def test_rows_of_other_documents_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evalcore.shell.logs.lm_eval import samples

    run = write_run(tmp_path / "a")
    read: list[int] = []
    whole = samples.read_asked

    def counted(line: bytes, *given: object, **keys: object) -> object:
        row = whole(line, *given, **keys)  # type: ignore[arg-type]
        read.append(row.key)
        return row

    monkeypatch.setattr(samples, "read_asked", counted)
    assert main(["explain", str(run), "--doc", "11"]) == 0
    assert set(read) == {0, 11}
