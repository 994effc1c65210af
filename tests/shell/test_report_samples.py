"""The samples of a page: what is in its chunks, what pairs, and what ``--no_samples`` and ``--redact`` keep out."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from evalcore.core.records.request import LogLikelihood
from evalcore.shell.cli import main
from evalcore.shell.compare.compare import Compared, compare
from evalcore.shell.logs.log import Logged
from evalcore.shell.output.compare.renderers import build_page
from evalcore.shell.output.report import page as pages
from evalcore.shell.output.terminal.grid import draw_page
from evalcore.shell.report.redaction import redact_compared
from evalcore.shell.report.report import report
from evalcore.shell.report.samples.document_pairs import unite_pairs
from evalcore.shell.report.samples.sample_texts import write_answer

CANARY = "cAnArY-of-texts"
CONFIG = {
    "task": "sums", "output_type": "generate_until", "metric_list": [{"metric": "exact_match"}],
    "filter_list": [
        {"name": "last", "filter": [
            {"function": "regex", "regex_pattern": "([0-9]+)", "group_select": -1, "fallback": "[none]"},
            {"function": "take_first"},
        ]},
    ],
}  # fmt: skip


def write_run(folder: Path, replies: list[str], first: int = 0) -> Path:
    folder.mkdir()
    results = {"results": {"sums": {"alias": "sums"}}, "configs": {"sums": CONFIG}, "n-shot": {"sums": 0}}
    (folder / "results_2025-01-01T00-00-00.json").write_text(json.dumps(results), "utf-8")
    rows = []
    for at, reply in enumerate(replies):
        found = re.findall("[0-9]+", reply)
        kept = found[-1] if found else "[none]"
        rows.append(
            {
                "doc_id": first + at, "doc": {"q": f"{CANARY} {at}"}, "target": f"{at}",
                "arguments": {"gen_args_0": {"arg_0": f"{CANARY} prompt {at}", "arg_1": {"until": ["\n"]}}},
                "resps": [[reply]], "filtered_resps": [kept], "filter": "last", "metrics": ["exact_match"],
                "exact_match": float(kept == str(at)),
            }
        )  # fmt: skip
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "samples_sums_2025-01-01T00-00-00.jsonl").write_text(lines, "utf-8")
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    one = write_run(tmp_path / "a", [f"\U0001f40d 1 or 0 {CANARY}", f"so 1 {CANARY}", f"nothing {CANARY}"])
    return one, write_run(tmp_path / "b", [f"5 {CANARY}", f"1 {CANARY}", f"2 {CANARY}"], first=10)


def unpack_page(path: Path, *beside: Path) -> tuple[dict, dict[str, dict]]:
    """The head of a page, and its chunks, of which each has the hash that it is named by."""
    html = path.read_text("utf-8")
    found = re.search(r'id="head">(.*?)</script>', html)
    assert found is not None
    packed = dict(re.findall(r'<script type="text/plain" id="chunk-(\w+)">(.*?)</script>', html))
    packed |= dict(re.findall(r'evalcoreChunk\("(\w+)","(.*?)"\)', "".join(one.read_text("utf-8") for one in beside)))
    for name, text in packed.items():
        assert sha256(b64decode(text)).hexdigest().startswith(name)
    return json.loads(found[1]), {key: json.loads(gzip.decompress(b64decode(one))) for key, one in packed.items()}


def test_documents_are_paired_as_they_are_compared(runs, tmp_path) -> None:
    head, chunks = unpack_page(report(*runs, output=tmp_path / "page.html").path)
    [task] = head["samples"]["tasks"]
    index = chunks[task["index"]]
    assert index["keys"] == [[0, 1, 2], [10, 11, 12]]
    assert [run["scores"] for run in index["runs"]] == [[[1.0, 1.0, 0.0]], [[0.0, 1.0, 1.0]]]
    assert [run["rules"] for run in index["runs"]] == [["aa-"], ["aaa"]]
    assert task["columns"] == [{"metric": "exact_match", "filter": "last", "way": "up"}]
    assert task["filters"] == [{"name": "last", "steps": ["regex", "take_first"]}]


def test_each_step_and_the_span_of_what_it_found_are_there(runs, tmp_path) -> None:
    head, chunks = unpack_page(report(runs[0], output=tmp_path / "page.html").path)
    [[_, name]] = head["samples"]["tasks"][0]["texts"]
    own = chunks[name]["runs"][0]
    kept, steps, spans = own["filters"][0][0]
    assert kept == ["0"]
    assert steps == [[["0"], ["match 2 of 2 of '([0-9]+)'"]], [None, ["reply 1 of 1"]]]
    [[reply, start, end]] = spans
    told = own["replies"][0][reply].encode("utf-16-le")  # JavaScript counts the snake as two
    assert told[2 * start : 2 * end].decode("utf-16-le") == "0"
    assert own["filters"][0][2][2] == []  # a fallback stands nowhere
    assert chunks[name]["golds"] == ["0", "1", "2"]
    assert chunks[name]["prompts"][0] == f"{CANARY} prompt 0"


def list_texts(path: Path, *beside: Path) -> str:
    """All that a page says, packed or not."""
    _, chunks = unpack_page(path, *beside)
    return path.read_text("utf-8") + json.dumps(chunks)


@pytest.mark.parametrize("most", [20_000_000, 100])
def test_texts_are_in_the_page_unless_they_are_kept_out(most, runs, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pages, "ONE_FILE", most)
    whole = report(*runs, output=tmp_path / "whole.html")
    assert bool(whole.files) == (most == 100)
    assert CANARY in list_texts(whole.path, *whole.files)
    redacted = report(*runs, output=tmp_path / "redacted.html", redact=True)
    assert CANARY not in list_texts(redacted.path, *redacted.files)
    head, chunks = unpack_page(redacted.path, *redacted.files)
    [task] = head["samples"]["tasks"]
    assert task["texts"] == []
    assert chunks[task["index"]]["runs"][0]["scores"] == [[1.0, 1.0, 0.0]]
    assert str(tmp_path) not in list_texts(redacted.path, *redacted.files)


def test_a_redacted_page_leaves_no_data_of_an_earlier_one_of_its_name(runs, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pages, "ONE_FILE", 100)
    others = [report(*runs, output=tmp_path / name) for name in ("other.html", "page.htm")]
    whole = report(*runs, output=tmp_path / "page.html")
    data, names = tmp_path / "page_data", ("mine.js", f"{'a' * 24}.js", f"{'b' * 24}.js")
    mine = [data / name for name in names]
    mine[0].write_text("")
    mine[1].write_text("export const mine = 1;")  # a bundler names files so, too
    mine[2].mkdir()
    made = report(*runs, output=tmp_path / "page.html", redact=True)
    assert {*data.iterdir()} - {*mine} == set(made.files) != set(whole.files)
    assert all(path.is_file() for other in others for path in other.files)
    monkeypatch.undo()
    report(*runs, output=tmp_path / "page.html", redact=True)
    assert {*data.iterdir()} == {*mine}


def test_without_samples_there_are_no_documents_at_all(runs, tmp_path) -> None:
    path = tmp_path / "page.html"
    assert main(["report", str(runs[0]), "-o", str(path), "--no_samples"]) == 0
    head, _ = unpack_page(path)
    assert "samples" not in head
    assert CANARY not in list_texts(path)
    assert head["runs"][0]["tree"][0]["numbers"][0]["value"] == pytest.approx(2 / 3)


def test_reasons_that_quote_an_answer_are_kept_out_too(tmp_path) -> None:
    log = tmp_path / "answers.csv"
    log.write_text(f"id,reply,gold\n1,{CANARY},{CANARY} gold\n2,4,4\n", "utf-8")
    keys = {"answer": "reply", "gold": "gold", "id": "id"}
    for extra in ({"redact": True}, {"samples": False}):
        made = report(log, output=tmp_path / "page.html", **keys, **extra)
        assert CANARY not in list_texts(made.path, *made.files)


def write_scores(path: Path, *ids: str) -> Path:
    path.write_text("id,said\n" + "".join(f"{name},{at % 2}\n" for at, name in enumerate(ids)), "utf-8")
    return path


def test_redacted_comparisons_name_no_document(tmp_path) -> None:
    both = [f"{CANARY} {at}" for at in range(4)]
    logs = [
        write_scores(tmp_path / "a.csv", *both, f"{CANARY} of a"),
        write_scores(tmp_path / "b.csv", *both[::-1], f"{CANARY} of b"),
    ]
    keys = {"id": "id", "score": "said"}
    whole = report(*logs, output=tmp_path / "whole.html", **keys)
    assert list_texts(whole.path, *whole.files).count(CANARY) > 8
    made = report(*logs, output=tmp_path / "page.html", redact=True, **keys)
    head, chunks = unpack_page(made.path, *made.files)
    [pair] = head["comparison"]["pairs"]
    assert chunks[pair["flips"]]["flips"] == [[[1, 3], [0, 2]]]
    assert "only A has 1 other;" in str(head["comparison"]["lead"])
    assert CANARY not in list_texts(made.path, *made.files)


def draw_text(compared: Compared) -> str:
    """All that the terminal shows, on one line."""
    return " ".join(draw_page(build_page(compared)).split())


def test_reasons_and_warnings_are_kept_out_of_comparisons(runs) -> None:
    compared = compare(*runs)
    [comparison] = compared.comparisons
    lost = replace(comparison.lines[0], difference=None, ci=None, reason=f"{CANARY} is no number")
    told = replace(compared, comparisons=(replace(comparison, lines=(lost,), warnings=(f"/home/{CANARY}: odd",)),))
    assert f"{CANARY} is no number" in draw_text(told)
    shown = draw_text(redact_compared(told, warnings=False))
    assert f"/home/{CANARY}: odd" in shown
    assert f"{CANARY} is no number" not in shown
    redacted = draw_text(redact_compared(told, warnings=True))
    assert CANARY not in redacted
    assert "1 warning left out of this page" in redacted


def test_the_terminal_says_what_the_page_says(runs, tmp_path) -> None:
    head, _ = unpack_page(report(*runs, output=tmp_path / "page.html").path)
    [line] = head["comparison"]["pairs"][0]["lines"]
    assert f"In short: - sums exact_match (last): {line['sentence']}" in draw_text(compare(*runs))


def test_of_equal_likelihoods_the_first_is_the_answer() -> None:
    asked = (LogLikelihood("?", " blue"), LogLikelihood("?", " red"))
    row = Logged(doc_id=0, doc=b"{}", gold=0, requests=asked, replies=(((-1.0, False),), ((-1.0, False),)))
    assert write_answer(row, None) == "blue"


def test_documents_unite_with_the_earliest_run_that_has_them() -> None:
    partners = {(0, 1): {5: 0}, (0, 2): {8: 0}, (1, 2): {9: 6}}
    assert unite_pairs([[0], [5, 6], [8, 9]], partners) == ((0, 5, 8), (None, 6, 9))
