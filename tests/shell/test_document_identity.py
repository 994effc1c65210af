"""A document is who it is by its declared id, else its prompt, else its content: never by what a model answered."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sample_runs import STAMP, rows_of, write_log

from evalcore.shell.cli import main
from evalcore.shell.compare.conditions import count_documents

COUNT = 60
COLUMNS = ("--answer", "reply", "--gold", "target")


def table(path: Path, wrong: int, *, columns: Sequence[str], seed: int = 0) -> Path:
    """A model's answers as CSV, in an order of its own; the first ``wrong`` of them are wrong, and each is worded anew."""
    dice = random.Random(seed)
    rows = [
        {
            "qid": f"q{at}",
            "question": f"What is {at} + {at}?",
            "target": str(2 * at),
            "reply": f"{path.stem} thinks of {dice.random()}: {2 * at + (at < wrong)}",
            "latency": dice.random(),
        }
        for at in range(COUNT)
    ]
    dice.shuffle(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.getvalue())
    return path


def score(path: Path, *flags: str) -> Path:
    folder = path.parent / f"{path.stem}_scored"
    number = '{"regex_pattern": "([0-9]+)$"}'
    told = ["score", str(path), *COLUMNS, *flags, "--filter", f"regex={number}", "--metric", "exact_match"]
    assert main([*told, "-o", str(folder), "--quiet"]) == 0
    return folder


def two_runs(folder: Path, columns: Sequence[str], *flags: str) -> tuple[Path, Path]:
    return (
        score(table(folder / "new/answers.csv", 25, columns=columns, seed=1), *flags),
        score(table(folder / "old/answers.csv", 5, columns=columns, seed=2), *flags),
    )


def compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    capsys.readouterr()
    assert main(["compare", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def only_line(found: dict[str, object]) -> dict[str, object]:
    (line,) = found["pairs"][0]["lines"]
    return line


@pytest.mark.parametrize(
    ("columns", "flags", "warned"),
    [
        (("qid", "target", "reply", "latency"), ("--id", "qid"), []),
        (("qid", "question", "target", "reply"), ("--id", "qid", "--prompt", "question"), []),
        (
            ("question", "target", "reply", "latency"),
            ("--prompt", "question"),
            ["60 documents are paired by their prompt alone: their content, or the target, differs (answers)"],
        ),
        (("question", "target", "reply"), ("--prompt", "question"), []),
        (("question", "target", "reply"), (), []),
    ],
)
def test_tables_are_paired_whatever_was_answered(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    columns: Sequence[str],
    flags: Sequence[str],
    warned: Sequence[str],
) -> None:
    new, old = two_runs(tmp_path, columns, *flags)
    found = compared(capsys, new, old)
    line = only_line(found)
    assert (line["n"], line["a"], line["b"]) == (COUNT, 35 / COUNT, 55 / COUNT)
    assert (line["verdict"], len(line["better"]), len(line["worse"])) == ("B better", 0, 20)
    assert found["warnings"] == warned
    assert main(["check", str(new), "--baseline", str(old)]) == 1
    assert "worse" in capsys.readouterr().out
    assert main(["check", str(old), "--baseline", str(new)]) == 0


def test_columns_of_repeats_and_scores_are_no_part_of_a_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = []
    for name, first in (("new", 0), ("old", 1)):
        rows = [
            {"q": f"question {at}", "try": first + run, "ok": (at + run) % 2, "style": at % 3 + first}
            for at in range(20)
            for run in range(2)
        ]
        path = write_log(tmp_path / name / "marks.jsonl", rows)
        folder = tmp_path / name / "scored"
        flags = ["--id", "q", "--repeat", "try", "--score", "ok", "--reducer", "mean"]
        assert main(["score", str(path), *flags, "-o", str(folder), "--quiet"]) == 0
        single = write_log(tmp_path / name / "single.jsonl", [row for row in rows if row["try"] == first])
        more = ["--score", "ok", "--score", "style"]
        assert main(["score", str(single), *more, "-o", str(tmp_path / name / "both"), "--quiet"]) == 0
        (document,) = {tuple(json.loads(one)["doc"]) for one in (folder / "samples_marks.jsonl").open()}
        assert document == ("q", "style")
        runs.append(folder)
    assert only_line(compared(capsys, *runs))["n"] == 20
    # without an id, what tells the runs' documents apart is the column that counts tries
    (told,) = compared(capsys, *(tmp_path / name / "both" for name in ("new", "old")))["warnings"]
    assert told.startswith(
        "20 documents are paired by q although the runs differ in try, which a model or a scorer may"
    )


def test_an_id_survives_being_scored_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new, old = two_runs(tmp_path, ("qid", "target", "reply", "latency"), "--id", "qid")
    again = []
    for folder in (new, old):
        assert main(["score", str(folder), "-o", str(folder.parent / "again"), "--quiet"]) == 0
        again.append(folder.parent / "again")
        texts = [(one / "samples_answers.jsonl").read_bytes() for one in (folder, again[-1])]
        assert texts[0] == texts[1]
    assert only_line(compared(capsys, *again))["worse"] == [f"q{at}" for at in sorted(range(5, 25), key=_place(new))]
    assert main(["explain", str(again[0]), "--doc", "q7"]) == 0


def _place(folder: Path):
    rows = [json.loads(line) for line in (folder / "samples_answers.jsonl").open()]
    places = {row["evalcore"]["id"]: row["doc_id"] for row in rows}
    return lambda at: places[f"q{at}"]


ALIKE = "60 documents are paired by question although the runs differ in latency, which a model or a scorer may have"


def test_columns_that_nobody_declared_are_found_by_what_they_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Documents that differ in one field, and are the same otherwise, are the same: the answer may be in that field."""
    new, old = two_runs(tmp_path, ("question", "target", "reply", "latency"))
    found = compared(capsys, new, old)
    line = only_line(found)
    assert (line["n"], line["a"], line["b"], len(line["worse"])) == (COUNT, 35 / COUNT, 55 / COUNT, 20)
    assert found["warnings"][0].startswith(ALIKE)
    assert main(["compare", str(new), str(old)]) == 0
    assert capsys.readouterr().out.startswith(f"Warning: {ALIKE}")
    assert main(["check", str(new), "--baseline", str(old)]) == 1
    assert capsys.readouterr().out.startswith(f"Warning: {ALIKE}")
    assert main(["power", str(new), str(old), "--difference", "0.1"]) == 0
    assert ALIKE in capsys.readouterr().out
    assert compared(capsys, new, old, "--match", "question")["warnings"] == []


@pytest.mark.parametrize(("lost", "won", "own"), [(80, 0, 0), (400, 0, 0), (90, 40, 30), (1, 0, 0), (200, 200, 1)])
def test_a_verdict_among_the_columns_does_not_choose_the_documents(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lost: int, won: int, own: int
) -> None:
    """Where both models are right or both wrong, rows are the same: to pair these alone would hide every difference."""
    runs = []
    for name in ("new", "old"):
        wrong = set(range(500, 500 + lost)) if name == "new" else set(range(900, 900 + won))
        rows = [
            {
                "idx": at,
                "q": f"{at}?",
                "gold": str(at),
                "reply": str(at + (at in wrong)),
                "a_verdict": "pf"[at in wrong],
            }
            for at in range(1300)
        ]
        rows += [
            {"idx": 1300 + at, "q": f"{name} {at}?", "gold": name, "reply": name, "a_verdict": "p"} for at in range(own)
        ]
        path = write_log(tmp_path / name / "t.jsonl", rows)
        told = ["score", str(path), "--answer", "reply", "--gold", "gold", "--metric", "exact_match", "--quiet"]
        assert main([*told, "-o", str(path.parent / "out")]) == 0
        runs.append(path.parent / "out")
    found = compared(capsys, *runs)
    line = only_line(found)
    assert (line["n"], len(line["better"]), len(line["worse"])) == (1300, won, lost)
    assert f"{count_documents(lost + won)} paired by q although the runs differ in a_verdict" in found["warnings"][0]
    assert len(found["pairs"][0]["documents"][0]["only_a"]) == own
    assert main(["check", str(runs[0]), "--baseline", str(runs[1])]) == (lost - won > 10)


def shaped(shape: str, at: int, right: bool, name: str) -> dict[str, object]:
    """A row of a table in one of the forms that people have them in, with columns of the model's that nobody declares."""
    gold, pred = at * 37 % 23, at * 37 % 23 + (not right)
    said = f"I think that after all is said and done it must be {pred}, for question number {at}"
    row: dict[str, object] = {"gold": gold, "pred": pred}
    match shape:
        case "number and verdict":
            return {"idx": at, **row, "correct": right}
        case "number and reply":
            return {"idx": at, **row, "raw": said}
        case "question and longer reply":
            return {"question": f"{at}?", **row, "raw": said}
        case "question and reply of its own":
            return {
                "question": f"{at}?",
                **row,
                "raw": f"{name}: {said}",
                "correct": right,
                "seconds": hash((name, at)),
            }
        case "few questions, verdict":
            return {"question": f"Is item {at % 60} heavy?", **row, "correct": right}
        case "some questions twice, verdict, time":
            return {"question": f"{at % 350}?", **row, "correct": right, "seconds": hash((name, at))}
        case "golds of its own, reply":
            return {"gold": 1000 + 7 * at, "pred": 1000 + 7 * at + (not right), "raw": f"The answer is {at, right}"}
        case "passages with several fields, reply":
            kind = ["author", "title", "place", "date"][at % 4]
            asked = {"passage": f"A long document, number {at // 4}.", "kind": kind}
            return {
                **asked,
                "gold": f"{kind} {at // 4}",
                "pred": f"{kind} {at // 4 if right else 'x'}",
                "raw": f"{at, right}",
            }
        case "number, one gold, reply":
            return {"idx": at, "gold": "yes", "pred": "yes" if right else "no", "raw": f"Item {at} is {right}."}
        case "extracted, right in all of one run":
            right = right or name == "old"
            return {"idx": at, "gold": gold, "pred": gold + (not right), "extracted": gold + (not right)}
        case "a row without its question":
            return {**({"question": f"{at}?"} if at != 7 else {}), **row, "raw": said}
        case _:  # golds and a verdict alone
            return {**row, "correct": right}


@pytest.mark.parametrize("shuffled", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
    "shape",
    [
        "number and verdict",
        "number and reply",
        "question and longer reply",
        "question and reply of its own",
        "few questions, verdict",
        "some questions twice, verdict, time",
        "golds and verdict",
        "golds of its own, reply",
        "passages with several fields, reply",
        "number, one gold, reply",
        "extracted, right in all of one run",
        "a row without its question",
    ],
)
def test_no_column_of_the_models_hides_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shape: str, shuffled: bool
) -> None:
    """Nine in ten verdicts are the same; the others are all of the difference."""
    runs, right = [], []
    for name in ("new", "old"):
        rows = [shaped(shape, at, at % 10 > 2 and (name == "old" or at % 7 > 0), name) for at in range(400)]
        right.append(sum(row["pred"] == row["gold"] for row in rows))
        if shuffled:
            random.Random(name).shuffle(rows)
        path = write_log(tmp_path / name / "t.jsonl", rows)
        told = ["score", str(path), "--answer", "pred", "--gold", "gold", "--metric", "exact_match", "--quiet"]
        assert main([*told, "-o", str(path.parent / "out")]) == 0
        runs.append(path.parent / "out")
    line = only_line(found := compared(capsys, *runs))
    assert line["n"] >= 399
    assert abs(line["difference"] * 400 - (right[0] - right[1])) <= 400 - line["n"] + 0.01
    by = "target" if (shape, shuffled) == ("golds and verdict", True) else ""
    assert f"paired by {by}" in found["warnings"][0]
    assert main(["check", str(runs[0]), "--baseline", str(runs[1])]) == 1


def test_pairs_that_a_reply_chose_hide_no_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four labels in another order, and a reply that is the same where both models say the same: nobody can tell who is who."""
    runs = []
    for name in ("new", "old"):
        rows = []
        for at in range(400):
            gold, right = "ABCD"[at * 37 % 4], at % 10 > 2 and (name == "old" or at % 4 > 0)
            pred = gold if right else "ABCD"[(at * 37 + 1) % 4]
            rows.append({"gold": gold, "pred": pred, "raw": f"Considering option {at * 31 % 977}, it is {pred}"})
        random.Random(name).shuffle(rows)
        path = write_log(tmp_path / name / "t.jsonl", rows)
        told = ["score", str(path), "--answer", "pred", "--gold", "gold", "--metric", "exact_match", "--quiet"]
        assert main([*told, "-o", str(path.parent / "out")]) == 0
        runs.append(path.parent / "out")
    found = compared(capsys, *runs)
    assert only_line(found)["difference"] == 0.0
    assert found["warnings"][0].startswith("t: only ")
    assert main(["check", str(runs[0]), "--baseline", str(runs[1])]) == 1
    assert "over all documents exact_match,none is worse: 0.5" in " ".join(capsys.readouterr().out.split())
    assert main(["check", str(runs[0]), "--baseline", str(runs[1]), "--margin", "0.3"]) == 0
    assert main(["check", str(runs[1]), "--baseline", str(runs[0])]) == 0


def test_a_prompt_that_documents_share_hides_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for name in ("new", "old"):
        rows = [
            shaped("few questions, verdict", at, at % 10 > 2 and (name == "old" or at % 7 > 0), name)
            for at in range(400)
        ]
        path = write_log(tmp_path / name / "t.jsonl", rows)
        told = ["score", str(path), "--answer", "pred", "--gold", "gold", "--prompt", "question", "--quiet"]
        assert main([*told, "-o", str(path.parent / "out")]) == 0
        runs.append(path.parent / "out")
    assert only_line(compared(capsys, *runs))["n"] == 400


def test_the_same_passage_with_other_questions_and_golds_is_another_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = []
    for name, asked in (("a", "who?"), ("b", "when?")):
        rows = [
            {"passage": f"long passage {at}", "question": asked, "reply": "x", "target": f"{name} {at}"}
            for at in range(50)
        ]
        runs.append(score(write_log(tmp_path / name / "t.jsonl", rows)))
    assert main(["compare", *map(str, runs)]) == 2
    assert "no document is in two runs" in capsys.readouterr().err


def test_golds_that_two_data_sets_share_make_no_documents_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = []
    for name, first in (("a", 0), ("b", 50)):
        rows = [
            {"question": f"{name} {at}", "reply": "x", "target": f"Somebody called {first + at}"} for at in range(100)
        ]
        runs.append(score(write_log(tmp_path / name / "t.jsonl", rows)))
    assert main(["compare", *map(str, runs)]) == 2
    assert "no document is in two runs" in capsys.readouterr().err


def test_declared_ids_are_never_overruled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The questions are the same under other ids: whoever declares ids means them."""
    runs = []
    for name, first in (("a", 0), ("b", 30)):
        rows = [{"row": first + at, "question": f"{at}?", "reply": "x", "target": str(at)} for at in range(60)]
        runs.append(score(write_log(tmp_path / name / "t.jsonl", rows), "--id", "row"))
    found = compared(capsys, *runs)
    assert only_line(found)["n"] == 30
    assert not [told for told in found["warnings"] if "although" in told]


def test_settings_of_a_run_under_another_name_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shots in (("one", 0), ("two", 5)):
        results = {"results": {name: {"acc,none": 0.5}}, "n-shot": {name: shots}, "configs": {name: {"task": name}}}
        write_log(tmp_path / name / f"samples_{name}_{STAMP}.jsonl", rows_of("t", "acc", [1.0, 0.0] * 20))
        (tmp_path / name / f"results_{STAMP}.json").write_text(json.dumps(results))
    assert "n-shot differs: 0 in A, 5 in B (one)" in compared(capsys, tmp_path / "one", tmp_path / "two")["warnings"]


def test_other_questions_under_the_same_numbers_are_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row number that two data sets have in common makes none of their documents the same."""
    for name, prompt in (("cola", True), ("sst2", True), ("rte", False), ("wnli", False)):
        labels = random.Random(name).choices([0, 1], k=100)
        rows = [
            {**row, "doc": {"idx": at, "sentence": f"{name} {at}", "label": labels[at]}, "target": labels[at]}
            for at, row in enumerate(rows_of(name, "acc", [1.0, 0.0] * 50))
        ]
        rows = rows if prompt else [{**row, "arguments": [["", {}]]} for row in rows]
        write_log(tmp_path / f"samples_{name}.jsonl", rows)
    for a, b in (("cola", "sst2"), ("rte", "wnli")):
        paths = [str(tmp_path / f"samples_{one}.jsonl") for one in (a, b)]
        assert main(["compare", *paths]) == 2
        assert f"{b} is compared as {a}: it is the only task of its run" in capsys.readouterr().err
        assert main(["check", paths[0], "--baseline", paths[1]]) == 2


def test_documents_of_ones_own_change_no_other_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = [1.0, 0.0, 0.0, 1.0] * 25
    for name in ("a", "b"):
        rows = rows_of("t", "acc", scores)
        for at, row in enumerate(rows):
            row["doc"] = {"question": f"question number {at}", "answer": f"answer {at // 2}", "aa": at}
            row["target"] = f"answer {at // 2}"
        rows[0]["doc"] = {
            "question": f"{name}'s own question",
            "answer": "answer 1000",
        }  # without a field of the others
        rows[0]["arguments"] = [[f"{name}'s own", {}]]
        write_log(tmp_path / name / "samples_t.jsonl", rows)
    write_log(tmp_path / "c" / "samples_t.jsonl", rows_of("t", "acc", scores))  # with no field of the others
    found = compared(capsys, tmp_path / "a", tmp_path / "b", tmp_path / "c")
    (line,) = found["pairs"][0]["lines"]
    assert (line["n"], line["better"], line["worse"]) == (99, [], [])
    assert len(found["pairs"][0]["documents"][0]["only_a"]) == 1


def test_a_chat_is_a_prompt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        rows = rows_of("t", "acc", [1.0, 0.0] * 20)
        for at, row in enumerate(rows):  # as lm-eval writes what a chat model was asked
            row["doc"] = {name: at}
            row["arguments"] = {"gen_args_0": {"arg_0": [f'[{{"role": "user", "content": "{at}?"}}]'], "arg_1": {}}}
        write_log(tmp_path / name / "samples_t.jsonl", rows)
    assert only_line(compared(capsys, tmp_path / "a", tmp_path / "b"))["n"] == 40


def test_other_documents_are_not_made_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several questions about each passage: what two of them have in common identifies neither."""
    runs = []
    for name, asked in (("a", (0, 1)), ("b", (1, 2))):
        rows = [
            {"passage": f"p{at}", "question": f"p{at} q{one}", "reply": "x", "gold": "x"}
            for at in range(50)
            for one in asked
        ]
        path = write_log(tmp_path / name / "t.jsonl", rows)
        for flags in ((), ("--prompt", "passage")):
            out = path.parent / f"out{len(flags)}"
            told = ["score", str(path), "--answer", "reply", "--gold", "gold", *flags, "--quiet", "-o", str(out)]
            assert main(told) == 0
            runs.append(out)
    for a, b in (runs[::2], runs[1::2]):
        found = compared(capsys, a, b)
        assert only_line(found)["n"] == 50
        assert "only 50 documents are paired, of 100 of A and 100 of B" in found["warnings"][0]


def test_ids_of_unlike_documents_are_a_leading_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for name, shift in (("a", 0), ("b", 7)):
        rows = [{"row": at, "reply": "x", "target": str((at + shift) % 50)} for at in range(50)]
        runs.append(score(write_log(tmp_path / name / "t.jsonl", rows), "--id", "row"))
    told = compared(capsys, *runs)["warnings"][0]
    assert told.startswith("50 documents share an id but differ in their target")


def test_ids_that_do_not_pair_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = []
    for name, form in (("a", "{}"), ("b", "{:03}")):
        rows = [{"row": form.format(at), "reply": "x", "target": str(at)} for at in range(50)]
        runs.append(score(write_log(tmp_path / name / "t.jsonl", rows), "--id", "row"))
    assert main(["compare", *map(str, runs)]) == 2
    said = capsys.readouterr().err
    assert "only A has '0', '1', '2'; only B has '000', '001', '002'" in said
    assert main(["power", *map(str, runs), "--difference", "0.1"]) == 2


def test_tables_of_other_names_are_one_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = ("qid", "target", "reply")
    new = score(table(tmp_path / "new_model.csv", 25, columns=columns, seed=1), "--id", "qid")
    old = score(table(tmp_path / "old_model.csv", 5, columns=columns, seed=2), "--id", "qid")
    found = compared(capsys, new, old)
    assert (only_line(found)["task"], only_line(found)["n"], len(only_line(found)["worse"])) == ("new_model", COUNT, 20)
    assert found["runs"][1]["warnings"] == ["old_model is compared as new_model: it is the only task of its run"]
    assert main(["check", str(new), "--baseline", str(old)]) == 1
    assert only_line(compared(capsys, new, old, "--match", "qid"))["n"] == COUNT
    capsys.readouterr()
    assert main(["power", str(new), str(old), "--difference", "0.1"]) == 0
    assert "old_model is compared as new_model: it is the only task of its run" in capsys.readouterr().out


def test_user_code_sees_what_the_model_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what is written down lacks it."""
    path = write_log(tmp_path / "t.jsonl", [{"q": f"{at}?", "reply": "yes", "ok": at % 2} for at in range(10)])
    (tmp_path / "own.py").write_text(
        "def process_results(doc, results):\n    return {'same': doc['reply'] == results[0]}\n"
    )
    (tmp_path / "task.yaml").write_text(
        "task: t\noutput_type: generate_until\ndoc_to_text: q\ndoc_to_target: q\n"
        "process_results: !function own.process_results\n"
        "metric_list: [{metric: same, aggregation: mean, higher_is_better: true}]\n"
    )
    told = ["score", str(path), "--answer", "reply", "--task", str(tmp_path / "task.yaml")]
    told += ["--trust", str(tmp_path / "own.py"), "-o", str(tmp_path / "out"), "--json"]
    assert main(told) == 0
    assert json.loads(capsys.readouterr().out)["results"]["t"]["same,none"] == 1.0
    assert set(json.loads((tmp_path / "out/samples_t.jsonl").read_text().splitlines()[0])["doc"]) == {"q", "ok"}


def test_every_column_of_scores_must_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_log(tmp_path / "t.jsonl", [{"q": 0, "a": 1, "b": 1}, {"q": 1, "a": 1}])
    assert main(["score", str(path), "--score", "a", "--score", "b"]) == 2
    assert "t.jsonl:2: expected a column 'b'" in capsys.readouterr().err


def test_groups_by_a_declared_column_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_log(tmp_path / "t.jsonl", [{"q": at, "ok": at % 2} for at in range(10)])
    assert main(["score", str(path), "--score", "ok", "--group_by", "ok", "--json"]) == 0
    assert {"t_0", "t_1"} <= set(json.loads(capsys.readouterr().out)["results"])


def test_documents_that_only_their_order_tells_apart_are_a_leading_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = []
    for name in ("new", "old"):
        path = write_log(tmp_path / name / "x.jsonl", [{"reply": f"{name} {at}", "target": "yes"} for at in range(9)])
        runs.append(score(path))
    capsys.readouterr()
    assert main(["compare", *map(str, runs)]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Warning: documents are paired by their order alone")
    assert "--id, --prompt" in told.splitlines()[0]


# --- prompts of logs ----------------------------------------------------------------------------------------------------


def test_the_prompt_identifies_documents_whose_content_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = [1.0, 0.0] * 20
    a = write_log(tmp_path / "a/samples_t.jsonl", rows_of("t", "acc", scores, source="x"))
    b = write_log(tmp_path / "b/samples_t.jsonl", rows_of("t", "acc", scores[::-1], year=2020)[::-1])
    found = compared(capsys, a, b)
    assert only_line(found)["n"] == 40
    assert found["warnings"] == [
        "40 documents are paired by their prompt alone: their content, or the target, differs (t)"
    ]


def test_other_examples_before_the_same_documents_pair_by_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of("t", "acc", [1.0, 0.0] * 20)
    shots = [{**row, "arguments": [[f"Q: 1+1? A: 2\n\n{row['doc']['question']}", {}]]} for row in rows]
    a, b = write_log(tmp_path / "a/samples_t.jsonl", rows), write_log(tmp_path / "b/samples_t.jsonl", shots[::-1])
    found = compared(capsys, a, b)
    assert only_line(found)["n"] == 40
    assert found["warnings"] == ["prompts differ for all 40 documents that are the same (t)"]


def test_a_prompt_that_several_documents_share_identifies_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of("t", "acc", [1.0, 0.0] * 20)
    same = [{**row, "arguments": [["Answer.", {}]]} for row in rows]
    other = [{**row, "doc": {"question": f"other {at}", "passage": at // 5}} for at, row in enumerate(same)]
    a, b = (write_log(tmp_path / f"{name}/samples_t.jsonl", some) for name, some in (("a", same), ("b", other)))
    assert main(["compare", str(a), str(b)]) == 2
    assert only_line(compared(capsys, a, write_log(tmp_path / "c/samples_t.jsonl", same[::-1])))["difference"] == 0.0


# --- how many pair ------------------------------------------------------------------------------------------------------


def partly(folder: Path, both: int, only_a: int, only_b: int) -> tuple[Path, Path]:
    """Two logs that agree in every score, with so many documents in common and of their own."""
    rows = rows_of("t", "acc", [1.0, 0.0] * ((both + only_a + only_b) // 2 + 1))[: both + only_a + only_b]
    a, b = rows[: both + only_a], rows[:both] + rows[both + only_a :]
    return write_log(folder / "a/samples_t.jsonl", a), write_log(folder / "b/samples_t.jsonl", b)


def test_fewer_than_nine_in_ten_of_either_run_lead_every_form_of_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = partly(tmp_path, 80, 20, 0)
    head = "t: only 80 documents are paired, of 100 of A and 80 of B; all numbers are about these alone"
    assert compared(capsys, a, b)["warnings"][0].startswith(head)
    for form, start in (
        ("--csv", f"warning: {head}"),
        (None, f"Warning: {head}"),
        ("--markdown", "> **Warning:** t: "),
    ):
        assert main(["compare", str(a), str(b), *([form] if form else [])]) == 0
        said = capsys.readouterr()
        assert (said.err if form == "--csv" else said.out).startswith(start)
    assert main(["check", str(b), "--baseline", str(a)]) == 0
    assert capsys.readouterr().out.startswith("Warning: t: only 80 documents are paired, of 80 of the run and 100 of")
    assert main(["compare", *map(str, partly(tmp_path / "most", 90, 10, 0))]) == 0
    assert "Warning" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("counts", "flags", "code"),
    [
        ((50, 50, 50), (), 0),
        ((49, 51, 0), (), 1),
        ((49, 0, 51), (), 1),
        ((49, 0, 51), ("--allow_missing",), 0),
        ((49, 51, 0), ("--allow_missing",), 1),
    ],
)
def test_a_check_of_less_than_half_fails(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    counts: tuple[int, int, int],
    flags: Sequence[str],
    code: int,
) -> None:
    run, baseline = partly(tmp_path, *counts)
    report = tmp_path / "junit.xml"
    told = ["check", str(run), "--baseline", str(baseline), *flags]
    assert main([*told, "--json", "--junit", str(report)]) == code
    found = json.loads(capsys.readouterr().out)
    failed = [gate for gate in found["gates"] if gate["passed"] is False]
    assert [(gate["gate"], gate["task"], gate["n"]) for gate in failed] == [("paired", "t", counts[0])] * code
    assert found["notes"][0].startswith(f"t: only {counts[0]} documents are paired")
    assert len(ElementTree.parse(report).findall(".//failure")) == code
    assert main(told) == code
    assert ("FAILED" in capsys.readouterr().out) is bool(code)


def test_only_the_tasks_that_are_asked_about_can_fail(tmp_path: Path) -> None:
    for name, both in (("a", 0), ("b", 60)):
        write_log(tmp_path / name / "samples_t.jsonl", rows_of("t", "acc", [1.0] * 40)[both and 30 :])
        write_log(tmp_path / name / "samples_u.jsonl", rows_of("u", "acc", [1.0] * 40))
    told = ["check", str(tmp_path / "a"), "--baseline", str(tmp_path / "b")]
    assert main(told) == 1
    assert main([*told, "--task", "u"]) == 0


def test_a_group_rests_on_the_documents_of_its_tasks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {name: {"acc,none": 1.0} for name in ("g", "t", "u")}
    configs = {
        name: {"task": name, "output_type": "generate_until", "metric_list": [{"metric": "acc"}]} for name in "tu"
    }
    results = {"results": rows, "groups": {"g": rows["g"]}, "group_subtasks": {"g": ["t", "u"]}, "configs": configs}
    for name, first in (("a", 0), ("b", 40)):
        for task in ("t", "u"):
            some = rows_of(task, "acc", [1.0] * 100)[first : first + 60]
            write_log(tmp_path / name / f"samples_{task}_{STAMP}.jsonl", some)
        (tmp_path / name / f"results_{STAMP}.json").write_text(json.dumps(results))
    told = ["check", str(tmp_path / "a"), "--baseline", str(tmp_path / "b")]
    assert main(told) == 1
    capsys.readouterr()
    assert main([*told, "--task", "g"]) == 1
    assert "only 20 documents are paired" in capsys.readouterr().out
