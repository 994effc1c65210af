"""``evalcore init`` and ``tasks new``: files of every shape become tasks that check, run, and that lm-eval reads."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from small_tasks import environment

from evalcore.core.records.errors import EvalError
from evalcore.shell.cli import main
from evalcore.shell.starter.guess import look_at_file
from evalcore.shell.starter.shapes import SHAPES
from evalcore.shell.starter.table import read_table
from evalcore.shell.starter.task_folder import write_guess, write_template
from evalcore.shell.starter.templates import TEMPLATES
from evalcore.shell.tasks.library.cache import open_library
from evalcore.shell.tasks.linter import check_tasks


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


Row = Mapping[str, object]


def to_csv(rows: list[Row], separator: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=separator)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def to_lines(rows: list[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


CITIES = ["Paris", "Rome", "Oslo", "Bern"]
LANDS = ["France", "Italy", "Norway", "Switzerland"]
ASKED = [f"What is the capital of {land}?" for land in LANDS]
LETTERED = [
    {"question": asked, "A": "Paris", "B": "Rome", "C": "Oslo", "D": "Bern", "answer": "ABCD"[at], "subject": "x"}
    for at, asked in enumerate(ASKED)
]
LONG = "It rose in the hills and ran for many miles through the fields before it came down to the sea at last."

SHAPED: dict[str, tuple[str, bytes, str, str, object]] = {
    # the name of the file, its content, the shape that is guessed, the target of the first document, its choices
    "letters in columns": ("a.csv", to_csv(LETTERED), "choice letters", "A", ("A", "B", "C", "D")),
    "letters in columns of odd names, the answer not last": (
        "a.csv",
        to_csv(
            [
                {"Nr.": at, "Frage?": asked, "A) ": "Wien", "B) ": "Graz", "Richtig (A/B)": "AB"[at % 2], "Thema": "x"}
                for at, asked in enumerate(ASKED)
            ],
            ";",
        ),
        "choice letters",
        "A",
        ("A", "B"),
    ),
    "fields of objects": (
        "a.jsonl",
        to_lines(
            [
                {"meta": {"id": at, "page": {"number": 3}}, "in": {"question": asked}, "out": {"answer": CITIES[at]}}
                for at, asked in enumerate(ASKED)
            ]
        ),
        "texts",
        "Paris",
        (),
    ),
    "semicolons": ("a.csv", to_csv(LETTERED, ";"), "choice letters", "A", ("A", "B", "C", "D")),
    "tabs": ("a.tsv", to_csv(LETTERED, "\t"), "choice letters", "A", ("A", "B", "C", "D")),
    "byte order mark and carriage returns": (
        "a.csv",
        b"\xef\xbb\xbf" + to_csv(LETTERED).replace(b"\n", b"\r\n"),
        "choice letters",
        "A",
        ("A", "B", "C", "D"),
    ),
    "place in a list, from 0": (
        "a.jsonl",
        to_lines([{"query": one, "choices": CITIES, "gold": at} for at, one in enumerate(ASKED)]),
        "choice numbers",
        "Paris",
        tuple(CITIES),
    ),
    "place in columns, from 1": (
        "a.csv",
        to_csv(
            [{"text": one, "option1": "Paris", "option2": "Rome", "answer": at % 2 + 1} for at, one in enumerate(ASKED)]
        ),
        "choice numbers",
        "Paris",
        ("Paris", "Rome"),
    ),
    "text of a choice": (
        "a.json",
        json.dumps([{"q": one, "options": CITIES, "correct": CITIES[at]} for at, one in enumerate(ASKED)]).encode(),
        "choice texts",
        "Paris",
        tuple(CITIES),
    ),
    "choices in a cell": (
        "a.csv",
        to_csv([{"question": one, "choices": "Paris|Rome", "answer": "Paris"} for one in ASKED]),
        "choice texts",
        "Paris",
        ("Paris", "Rome"),
    ),
    "numbers as choices": (
        "a.jsonl",
        to_lines([{"question": f"{n} + 1?", "choices": [n, n + 1], "answer": n + 1} for n in range(4)]),
        "choice texts",
        "1",
        ("0", "1"),
    ),
    "labelled choices": (
        "a.jsonl",
        to_lines(
            [
                {"question": one, "choices": {"text": CITIES, "label": ["1", "2", "3", "4"]}, "answerKey": str(at + 1)}
                for at, one in enumerate(ASKED)
            ]
        ),
        "choice labels",
        "Paris",
        tuple(CITIES),
    ),
    "some rows with fewer choices": (
        "a.csv",
        to_csv(
            [
                {
                    "question": one,
                    "choice_a": "Paris",
                    "choice_b": CITIES[at],
                    "choice_c": "Rome" if at else "",
                    "answer": "Paris",
                }
                for at, one in enumerate(ASKED)
            ]
        ),
        "choice texts",
        "Paris",
        ("Paris", "Paris"),
    ),
    "letters of choices that some rows lack": (
        "a.csv",
        to_csv([{**row, "D": "Bern" if at == 3 else ""} for at, row in enumerate(LETTERED)]),
        "most letters",
        "A",
        ("A", "B", "C"),
    ),
    "letters of lists of several lengths": (
        "a.jsonl",
        to_lines([{"q": one, "options": CITIES[: at + 2], "answer": "ABC"[at % 3]} for at, one in enumerate(ASKED)]),
        "most letters",
        "A",
        ("A", "B"),
    ),
    "columns of choices in another language": (
        "a.csv",
        to_csv(
            [
                {"Frage": one, "Lösung": "ABC"[at % 3]} | {f"Antwort {letter}": CITIES[at] for letter in "ABC"}
                for at, one in enumerate(ASKED)
            ]
        ),
        "choice letters",
        "A",
        ("A", "B", "C"),
    ),
    "texts of choices, but for one": (
        "a.jsonl",
        to_lines(
            [{"q": one, "options": CITIES, "gold": CITIES[at] if at else "Berne"} for at, one in enumerate(ASKED)][::-1]
        ),
        "most texts",
        "Bern",
        tuple(CITIES),
    ),
    "letters alone": (
        "a.csv",
        to_csv([{"prompt": f"{one} (A) Paris (B) other", "label": "AB"[at > 0]} for at, one in enumerate(ASKED)]),
        "letters",
        "A",
        ("A", "B"),
    ),
    "labels": (
        "a.csv",
        to_csv([{"sentence": f"Film {n} was fine", "label": ["positive", "negative"][n % 2]} for n in range(12)]),
        "labels",
        "positive",
        ("negative", "positive"),
    ),
    "numbers": (
        "a.csv",
        to_csv([{"problem": f"{n} * 1000 + 0.5?", "solution": f"{n},000.50"} for n in range(1, 9)]),
        "numbers",
        "1,000.50",
        (),
    ),
    "numbers behind a mark": (
        "a.jsonl",
        to_lines(
            [{"question": f"{n} + {n}?", "answer": f"{n} and {n} make {2 * n}.\n#### {2 * n}"} for n in range(1, 9)]
        ),
        "marked numbers",
        "2",
        (),
    ),
    "short texts": (
        "a.jsonl",
        to_lines([{"question": q, "answer": a} for q, a in zip(ASKED, CITIES, strict=True)]),
        "texts",
        "Paris",
        (),
    ),
    "long texts": (
        "a.csv",
        to_csv([{"article": f"{n} {LONG}", "summary": f"{LONG} {n}"} for n in range(5)]),
        "long texts",
        f"{LONG} 0",
        (),
    ),
    "texts alone": ("a.jsonl", to_lines([{"text": f"{n} {LONG}"} for n in range(5)]), "prose", f"0 {LONG}", ()),
    "a text file": ("a.txt", f"{LONG}\n{LONG} 2\n".encode(), "prose", LONG, ()),
    "one row": ("a.csv", to_csv([{"question": ASKED[0], "answer": "Paris"}]), "texts", "Paris", ()),
    "odd names": (
        "Ünsere Fragen (v2).csv",
        to_csv([{"Die 'Frage' {{x}}": one, 'Antwort "hier"': CITIES[at]} for at, one in enumerate(ASKED)]),
        "texts",
        "Paris",
        (),
    ),
    "names in other letters": (
        "a.csv",
        to_csv([{"вопрос": one, "ответ": CITIES[at]} for at, one in enumerate(ASKED)]),
        "texts",
        "Paris",
        (),
    ),
    "templates in the data": (
        "a.csv",
        to_csv([{"question": "{{ 7 * 7 }} {% if", "answer": "{{ answer }} {#"}, {"question": "b", "answer": "c"}]),
        "texts",
        "{{ answer }} {#",
        (),
    ),
    "a huge cell": ("a.csv", to_csv([{"question": "x" * 300_000, "answer": "y"}]), "texts", "y", ()),
    "a name twice": ("a.csv", b"question,answer,answer\nWhy?,so,not so\n", "texts", "so", ()),
    "rows without an answer": (
        "a.csv",
        to_csv([{"question": one, "answer": CITIES[at] if at else ""} for at, one in enumerate(ASKED)]),
        "texts",
        "Rome",
        (),
    ),
}


@pytest.mark.parametrize("case", SHAPED)
def test_a_file_becomes_a_task_that_checks_and_runs(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    name, content, shape, gold, choices = SHAPED[case]
    Path(name).write_bytes(content)
    guess = look_at_file(name)
    assert (guess.shape, guess.preview.gold, guess.preview.choices) == (shape, gold, choices)
    assert main(["init", name, "--yes", "--name", "mine"]) == 0
    out = capsys.readouterr().out
    assert "evalcore report runs/mine-my-model" in out
    assert check_tasks(open_library([Path("mine").resolve()]), ["mine"]) == ()
    rows = [json.loads(line) for line in Path("runs/mine-dummy/samples_mine.jsonl").read_text().splitlines()]
    assert {row["doc_id"] for row in rows} == set(range(len(Path("mine/documents.jsonl").read_bytes().splitlines())))
    results = json.loads(Path("runs/mine-dummy/results.json").read_text())
    odd = sum("is none of" in note for note in guess.notes)
    assert results["evalcore"]["documents"]["mine"]["scored"] == len({row["doc_id"] for row in rows}) - odd


def test_every_shape_that_is_guessed_is_tried() -> None:
    assert {name for name, shape in SHAPES.items() if shape.guessed} == {case[2] for case in SHAPED.values()}


@pytest.mark.parametrize("case", [*SHAPED])
def test_lm_eval_reads_what_was_written(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same prompts, targets and choices as evalcore's own."""
    tasks = pytest.importorskip("lm_eval.tasks")
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(Path("cache").resolve()))
    name, content, _, gold, choices = SHAPED[case]
    Path(name).write_bytes(content)
    guess = look_at_file(name, name="mine")
    write_guess(guess)
    monkeypatch.chdir("mine")
    task = tasks.TaskManager(include_path=".", include_defaults=False).load("mine")["tasks"]["mine"]
    doc = next(iter(task.test_docs()))
    target = task.doc_to_target(doc)
    if choices:
        assert tuple(task.doc_to_choice(doc)) == choices
        target = task.doc_to_choice(doc)[target] if isinstance(target, int) else target
    assert str(target) == gold
    if guess.output_type != "loglikelihood_rolling":
        assert task.doc_to_text(doc) == guess.preview.prompt


@pytest.mark.parametrize("output_type", TEMPLATES)
def test_a_new_task_checks_and_runs(output_type: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "new", "quiz", "--output_type", output_type]) == 0
    assert "evalcore run quiz/config.yaml" in capsys.readouterr().out.replace("\\", "/")
    assert check_tasks(open_library([Path("quiz").resolve()]), ["quiz"]) == ()
    assert yaml.safe_load(Path("quiz/quiz.yaml").read_text())["output_type"] == output_type
    assert main(["run", "quiz/config.yaml", "--quiet"]) == 0
    found = json.loads(Path("runs/quiz-dummy/results.json").read_text())
    assert found["evalcore"]["documents"]["quiz"]["scored"] == 2
    before = Path("quiz/quiz.yaml").read_bytes()
    assert main(["tasks", "new", "quiz", "--output_type", output_type]) == 2
    assert "holds quiz.yaml, documents.jsonl, config.yaml already" in capsys.readouterr().err
    assert Path("quiz/quiz.yaml").read_bytes() == before


def test_every_output_type_has_a_template() -> None:
    assert set(TEMPLATES) == {shape.output_type for shape in SHAPES.values()}
    assert {template.shape for template in TEMPLATES.values()} <= set(SHAPES)
    with pytest.raises(EvalError, match="unknown output type 'multiple_choise'; did you mean 'multiple_choice'"):
        write_template("quiz", "multiple_choise")


# --- what is said by flags --------------------------------------------------------------------------------------------


def test_flags_answer_every_question(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"one": "Say Paris", "two": "Paris", "three": "a", "n": at} for at in range(4)]
    Path("a.csv").write_bytes(to_csv(rows))
    typed = [
        "--question",
        "one",
        "--answer",
        "two",
        "--id",
        "n",
        "--group_by",
        "three",
        "--output_type",
        "loglikelihood",
    ]
    assert main(["init", "a.csv", *typed, "--name", "mine", "-o", "deep/er", "--no_run"]) == 0
    out = capsys.readouterr().out
    assert "Not a terminal, so nothing is asked" in out
    assert "--group_by three" in out
    assert not Path("runs").exists()
    made = yaml.safe_load(Path("deep/er/mine.yaml").read_text())
    assert (made["output_type"], made["doc_to_target"]) == ("loglikelihood", "{{two}}")
    assert main(["init", "a.csv", "--yes", "-o", "deep/er", "--name", "mine"]) == 2
    assert "replace them with --overwrite" in capsys.readouterr().err
    assert main(["init", "a.csv", "--yes", "-o", "deep/er", "--name", "mine", "--overwrite", "--no_run"]) == 0


def test_choices_may_be_named() -> None:
    Path("a.csv").write_bytes(
        to_csv([{"q": "?", "left": "x", "right": "y", "k": "y"}, {"q": "!", "left": "x", "right": "y", "k": "x"}])
    )
    guess = look_at_file("a.csv", question="q", choices=["left", "right"], answer="k")
    assert (guess.shape, guess.preview.choices, guess.preview.gold) == ("choice texts", ("x", "y"), "y")


GERMAN = [
    {"Frage": f"Was ist {n}?", **{f"Antwort {one}": f"{one.lower()}{n}" for one in "ABCD"}, "Lösung": "ABCD"[n % 4]}
    for n in range(8)
]
NAMED = ["--question", "Frage", "--answer", "Lösung", "--choices", "Antwort A,Antwort B,Antwort C,Antwort D", "--yes"]


@pytest.mark.parametrize("typed", [[], ["--output_type", "multiple_choice"]])
@pytest.mark.parametrize(
    ("at", "changed", "told", "scored"),
    [
        (6, {"Lösung": "E"}, ["row 8: answer 'E' is none of A to D"], 7),
        (6, {"Lösung": "1"}, ["row 8: answer '1' is none of A to D"], 7),
        (6, {"Lösung": "[0]"}, ["row 8: answer '[0]' is none of A to D"], 7),
        (6, {"Antwort D": ""}, ["row 8: choice 'Antwort D' is empty"], 8),
        (6, {"Antwort B": " "}, ["row 8: choice 'Antwort B' is empty"], 8),
        (
            7,
            {"Antwort D": ""},
            ["row 9: answer 'D' is none of A to C", "row 9: choice 'Antwort D' is empty"],
            7,
        ),
    ],
)
def test_a_row_that_does_not_fit_is_named(
    at: int, changed: Row, told: list[str], scored: int, typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.csv").write_bytes(to_csv([{**row, **(changed if at == n else {})} for n, row in enumerate(GERMAN)]))
    assert main(["init", "a.csv", *NAMED, *typed]) == 0
    out = capsys.readouterr().out
    assert [line[4:] for line in out.split("\n") if line.startswith("  - row ")] == told
    assert "  | A. a0\n  | B. b0\n  | C. c0\n  | D. d0\n  | Answer:\n" in out
    assert json.loads(Path("runs/a-dummy/results.json").read_text())["evalcore"]["documents"]["a"]["scored"] == scored
    rows = [json.loads(line) for line in Path("runs/a-dummy/samples_a.jsonl").read_text().splitlines()]
    asked = next(json.dumps(row["arguments"]) for row in rows if row["doc_id"] == at)
    empty = {key[-1] for key, cell in changed.items() if not str(cell).strip()}
    assert {one for one in "ABCD" if f"\\n{one}. " not in asked} == empty


@pytest.mark.parametrize(
    ("golds", "message"),
    [
        ("xyzuvwrs", "expected answers that are letters, numbers or texts of their choices; 0 of 8 are letters"),
        ("ABCDEFGH", "4 of 8 are letters, but not 'E' in row 6 and 3 more"),
        ("12341239", "7 of 8 are numbers, but not '9' in row 9"),
    ],
)
def test_choices_that_were_named_are_never_dropped(
    golds: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.csv").write_bytes(to_csv([{**row, "Lösung": gold} for row, gold in zip(GERMAN, golds, strict=True)]))
    assert main(["init", "a.csv", *NAMED]) == 2
    assert message in capsys.readouterr().err
    assert not Path("a").exists()
    named = [*NAMED[:4], "--choices", "", "--yes", "--no_run"]
    assert main(["init", "a.csv", *named]) == 0


def test_a_row_without_any_choice_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    empty = {f"Antwort {one}": "" for one in "ABCD"}
    Path("a.csv").write_bytes(to_csv([*GERMAN, {**GERMAN[0], **empty}]))
    assert main(["init", "a.csv", *NAMED]) == 2
    assert "expected choices in every row, found none in row 10" in capsys.readouterr().err


def test_one_column_of_single_choices_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_bytes(to_csv(GERMAN))
    assert main(["init", "a.csv", *NAMED[:5], "Antwort A", "--yes"]) == 2
    assert "expected lists of choices in 'Antwort A', found none; or name a column for each" in capsys.readouterr().err


def test_many_rows_that_do_not_fit_are_counted() -> None:
    Path("a.csv").write_bytes(to_csv([{**row, "Antwort D": ""} for row in GERMAN * 3]))
    notes = look_at_file("a.csv", question="Frage", answer="Lösung", choices=NAMED[5].split(",")).notes
    assert "row 5: answer 'D' is none of A to C" in notes
    assert "row 2: choice 'Antwort D' is empty" in notes
    assert "16 more like these" in notes


@pytest.mark.parametrize(("rows", "told"), [([0, 1, 2], "there are 3"), ([*range(8)], "there are 3 to 4")])
def test_how_many_choices_there_are_is_said(rows: list[int], told: str) -> None:
    """In the first rows no answer is D, and the choice D is empty."""
    Path("a.csv").write_bytes(to_csv([{**GERMAN[at], **({"Antwort D": ""} if at < 3 else {})} for at in rows]))
    guess = look_at_file("a.csv", question="Frage", answer="Lösung", choices=NAMED[5].split(","))
    assert guess.why == f"answers are letters of their choices, of which {told}"


def test_texts_of_choices_may_be_wrong_in_a_row() -> None:
    rows = [{**row, "Lösung": f"a{at}" if at else "c9"} for at, row in enumerate(GERMAN)]
    Path("a.csv").write_bytes(to_csv(rows))
    guess = look_at_file("a.csv", question="Frage", answer="Lösung", choices=NAMED[5].split(","))
    assert (guess.shape, guess.notes[0]) == ("most texts", "row 2: answer 'c9' is none of its choices")


def test_numbers_that_are_choices_are_not_taken_for_places() -> None:
    rows = [{"q": f"{n} + 3?", "options": ["1", "2", "3", str(n + 3)], "gold": n + 3} for n in range(1, 9)]
    Path("a.jsonl").write_bytes(to_lines([*rows, {**rows[0], "gold": 0}]))
    assert main(["init", "a.jsonl", "--choices", "options", "--yes"]) == 0
    rows = [json.loads(line) for line in Path("runs/a-dummy/samples_a.jsonl").read_text().splitlines()]
    assert {row["target"] for row in rows[:8]} == {"3"}
    documents = json.loads(Path("runs/a-dummy/results.json").read_text())["evalcore"]["documents"]["a"]
    assert (documents["scored"], documents["unscorable"]) == (8, 1)


def test_places_are_not_counted_over_a_gap(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**row, "Lösung": at % 4 + 1, "Antwort B": "" if at == 2 else "b"} for at, row in enumerate(GERMAN)]
    Path("a.csv").write_bytes(to_csv(rows))
    assert main(["init", "a.csv", *NAMED]) == 2
    assert "are numbers" in capsys.readouterr().err


def test_fields_of_objects_are_columns() -> None:
    rows: list[Row] = [
        {"meta": {"id": "a", "tags": {}}, "in": {"text": "2 + 2?"}, "out": {"best": "4", "all": ["4", "four"]}},
        {"meta": None, "in": {"text": "3 + 4?"}, "out": {"best": "7", "all": ["7", "seven"], "note": "odd"}},
    ]
    Path("a.jsonl").write_bytes(to_lines(rows))
    guess = look_at_file("a.jsonl", question="in.text", answer="out.all")
    assert (guess.preview.prompt, guess.preview.gold) == ("Question: 2 + 2?\nAnswer:", "4 or four")
    written = write_guess(guess).task.parent / "documents.jsonl"
    assert json.loads(written.read_text().split("\n")[1]) == {
        "meta_id": None,
        "meta_tags": None,
        "in_text": "3 + 4?",
        "out_best": "7",
        "out_all": ["7", "seven"],
        "out_note": "odd",
    }


def test_objects_that_are_data_stay_as_they_are() -> None:
    many = {f"word{at}": at for at in range(60)}
    row: Row = {
        "question": "Why?",
        "answer": "so",
        "counts": many,
        "a": {"b": 1},
        "a.b": 2,
        "deep": {"text": ["x", "y"]},
    }
    Path("a.jsonl").write_bytes(to_lines([row]))
    assert read_table(Path("a.jsonl")) == (row,)


@pytest.mark.parametrize(
    ("name", "content", "typed", "message"),
    [
        ("a.csv", b"", [], "expected rows under a header, or one JSON object a line, found none"),
        ("a.csv", b"question,answer\n", [], "expected rows under a header"),
        ("a.jsonl", b"", [], "expected rows under a header"),
        ("a.jsonl", b"[1, 2]", [], "a.jsonl"),
        ("a.jsonl", b'"text"\n', [], "expected a JSON object"),
        ("a.jsonl", b"{not json\n", [], "not JSON"),
        ("a.pdf", b"%PDF-1.4", [], "unknown kind of data file '.pdf'"),
        ("a.csv", b"\xff\xfe\x00q", [], "not utf-8"),
        ("a.csv", "Frage,Lösung\n".encode("latin-1"), [], "; save the file as UTF-8 (a task may name"),
        ("a.csv", b"question,answer\na,b,c\n", [], "expected 2 cells, got 3"),
        ("a.csv", b'question,answer\n"a,b\n', [], "closing quote"),
        ("a.csv", b"n,m\n1,2\n", [], "expected a column of texts to ask"),
        (
            "a.csv",
            b"question,answer\nwhy,\nwho,\n",
            ["--answer", "answer"],
            "expected answers in the column 'answer', found none",
        ),
        (
            "a.csv",
            b"question,answer\nwhy,so\n",
            ["--answer", "anwser"],
            "unknown column for --answer 'anwser'; did you mean 'answer'?",
        ),
        ("a.csv", b"question,answer\nwhy,so\n", ["--output_type", "multiple_choice"], "multiple_choice needs choices"),
        ("a.csv", b"question,answer\nwhy,so\n", ["--output_type", "mc"], "unknown output type 'mc'"),
        ("a.csv", b"question,answer\nwhy,so\n", ["--name", "../x"], "expected a name of letters"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(
    name: str, content: bytes, typed: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(content)
    assert main(["init", name, "--yes", *typed]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "unexpected" not in err
    assert [path.name for path in Path().iterdir()] == [name]


def test_no_file_and_no_such_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--yes"]) == 2
    assert "expected a file of questions" in capsys.readouterr().err
    assert main(["init", "nowhere.csv", "--yes"]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
    Path("folder").mkdir()
    assert main(["init", "folder", "--yes"]) == 2
    assert "got a folder" in capsys.readouterr().err


def test_nothing_of_a_file_reaches_the_terminal_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.jsonl").write_bytes(to_lines([{"question\x1b[2J": "\x1b]0;owned\x07 why", "answer": "\x1b[31mred"}]))
    assert main(["init", "a.jsonl", "--yes", "--no_run"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out


# --- asked in a terminal ----------------------------------------------------------------------------------------------


@pytest.fixture
def typist(tmp_path: Path) -> Callable[[list[str], list[tuple[str, str]]], tuple[int, str]]:
    """``evalcore init`` in a terminal: what is typed after what has been shown."""

    def play(arguments: list[str], script: list[tuple[str, str]]) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "evalcore", "init", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=tmp_path,
            env=environment(tmp_path),
            close_fds=True,
        )
        os.close(theirs)
        shown, left, at = "", list(script), 0
        while select.select([ours], [], [], 120)[0]:
            try:
                shown += os.read(ours, 65536).decode()
            except OSError:
                break
            while left and left[0][0] in shown[at:]:
                at = shown.index(left[0][0], at) + len(left[0][0])
                os.write(ours, left.pop(0)[1].encode())
        os.close(ours)
        return process.wait(), shown

    return play


def test_enter_takes_the_guess(typist: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    (tmp_path / "capitals.csv").write_bytes(to_csv(LETTERED))
    code, shown = typist(["capitals.csv"], [("Is this right? [Y/n] ", "\n")])
    assert code == 0, shown
    assert "answers are letters, A to D" in shown
    assert (tmp_path / "runs/capitals-dummy/results.json").exists()


def test_each_part_can_be_changed(typist: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(to_csv([{"text": "Why?", "answer": "so", "other": "never"} for _ in range(3)]))
    code, shown = typist(
        ["a.csv", "--no_run"],
        [
            ("Is this right? [Y/n] ", "n\n"),
            ("question [text]: ", "\n"),
            ("answer [answer]: ", "nowhere\n"),
            ("choices [none]: ", "\n"),
            ("[generate_until]: ", "\n"),
            ("task [a]: ", "mine\n"),
            ("That does not work: unknown column for --answer 'nowhere'", ""),
            ("question [text]: ", "\n"),
            ("answer [answer]: ", "other\n"),
            ("choices [none]: ", "\n"),
            ("[generate_until]: ", "\n"),
            ("]: ", "mine\n"),
            ("right answer: never", ""),
            ("Is this right? [Y/n] ", "y\n"),
        ],
    )
    assert code == 0, shown
    assert yaml.safe_load((tmp_path / "mine/mine.yaml").read_text())["doc_to_target"] == "{{other}}"


def test_a_closed_terminal_writes_nothing(typist: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(to_csv([{"question": "Why?", "answer": "so"}]))
    code, shown = typist(["a.csv"], [("Is this right? [Y/n] ", "\x04")])
    assert code == 130, shown
    assert "nothing was written" in shown
    assert not (tmp_path / "a").exists()
