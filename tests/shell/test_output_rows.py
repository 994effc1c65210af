"""Rows, losses and notes of real reports; the reports the other output tests use."""

from __future__ import annotations

from msgspec.structs import replace

from evalcore import (
    GENERATE_UNTIL,
    LOGLIKELIHOOD_ROLLING,
    MULTIPLE_CHOICE,
    Answer,
    Failure,
    Generate,
    Instance,
    LogLikelihood,
    MetricSpec,
    Pipeline,
    Report,
    Rolling,
    Sample,
    Scored,
    Step,
    Task,
    build_report,
    report_task,
    score_task,
)
from evalcore.core.answers.table import AnswerTable
from evalcore.core.pipeline import tabulate_answers
from evalcore.groups import Group, GroupMetric, Leaf
from evalcore.shell.output.terminal.losses import find_losses, tell_losses
from evalcore.shell.output.terminal.notes import collect_notes, group_texts
from evalcore.shell.output.terminal.number_rows import drop_repeats, list_rows
from evalcore.shell.output.terminal.number_table import render_table
from evalcore.shell.prompts.ready_task import Built
from evalcore.shell.safety.safe_text import shorten

NUMBER = Pipeline("number", (Step.of("regex", regex_pattern=r"(\d+)"),))
RAW = Pipeline("raw", (Step.of("take_first"),))


def choice_task(name: str = "choices", alias: str | None = None) -> Task:
    return Task(name, MULTIPLE_CHOICE, (MetricSpec("acc"), MetricSpec("acc_norm")), alias=alias, version=2)


def text_task(name: str = "texts") -> Task:
    return Task(name, GENERATE_UNTIL, (MetricSpec("exact_match"),), (NUMBER, RAW), num_fewshot=3)


def choice_answers(task: str, n: int = 8) -> list[Answer]:
    return [
        Answer(Instance(task, doc, i, LogLikelihood("?", " ab"[i : i + 2])), ((-1.0 - (doc + i) % 3, i == 0),))
        for doc in range(n)
        for i in range(2)
    ]


def text_answers(task: str, n: int = 10, failing: tuple[int, ...] = (), text: str = "it is {doc}") -> list[Answer]:
    def reply(doc: int) -> str | Failure:
        return Failure(f"timed out after {30 + doc % 2} s") if doc in failing else text.replace("{doc}", str(doc * 2))

    return [Answer(Instance(task, doc, 0, Generate(f"q{doc}")), (reply(doc),)) for doc in range(n)]


def choice_scored(name: str = "choices", alias: str | None = None) -> Scored:
    samples = [Sample(i, gold=i % 2, choices=("a", "bb"), doc={"q": i}) for i in range(8)]
    return score_task(choice_task(name, alias), samples, choice_answers(name), keep_replies=True)


def text_samples(n: int = 10) -> list[Sample]:
    return [Sample(i, gold=str(i), doc={"q": i}) for i in range(n)]


def text_scored(name: str = "texts", failing: tuple[int, ...] = (1, 2, 5)) -> Scored:
    return score_task(text_task(name), text_samples(), text_answers(name, failing=failing), keep_replies=True)


def text_built(
    name: str = "texts", failing: tuple[int, ...] = (1, 2, 5), text: str = "it is {doc}"
) -> tuple[Built, AnswerTable, Scored]:
    answers = text_answers(name, failing=failing, text=text)
    table = tabulate_answers(answers)
    requests = [answer.instance.request for answer in answers]
    built = Built(text_task(name), table.asked, requests, tuple(text_samples()), {"task": name})
    return built, table, score_task(built.task, built.samples, table, keep_replies=True)


def tree(*, name: str = "all") -> Group[object]:
    low: Group[object] = Group("low", (Leaf("choices", None),), (GroupMetric("acc"),), alias="the low ones")
    return Group(name, (low, Leaf("texts", None), Leaf("choices", None), Leaf("absent", None)))


def small_report(failing: tuple[int, ...] = (1, 2, 5), alias: str | None = None) -> Report:
    done = [report_task(choice_scored(alias=alias)), report_task(text_scored(failing=failing))]
    return build_report([*done, report_task(choice_scored("alone"))], [tree()])


def test_rows_follow_the_tree_and_then_the_rest() -> None:
    rows = list_rows(small_report())
    names = [(row.depth, row.name) for row in rows if row.metric in ("", "acc") or row.filter == "raw"]
    assert names == [(0, "all"), (1, "low"), (2, "choices"), (1, "texts"), (1, "choices"), (1, "absent"), (0, "alone")]
    assert [row.alias for row in rows if row.name == "low"] == ["the low ones"]
    assert [row.reason for row in rows if row.name == "absent"] == ["not run"]


def test_rows_carry_every_number_of_the_report() -> None:
    report = small_report()
    rows = {(row.name, row.metric, row.filter): row for row in list_rows(report)}
    for one in (*report.tasks, *report.groups):
        for key, estimate in one.estimates:
            row = rows[one.name, key.metric, key.filter]
            assert (row.value, row.stderr, row.n) == (estimate.value, estimate.stderr, estimate.n)
            assert (row.low, row.high) == (estimate.ci or (None, None))
            assert (row.failed, row.unscorable) == (estimate.counts.failed, estimate.counts.unscorable)
            assert row.higher is estimate.scale.higher_is_better
    assert rows["texts", "exact_match", "raw"].shots == 3
    assert rows["choices", "acc", "none"].version == "2"


def test_once_keeps_the_first_place_of_each_number() -> None:
    rows = drop_repeats(list_rows(small_report()))
    assert len(rows) == len({(row.name, row.metric, row.filter) for row in rows})
    assert [row.depth for row in rows if row.name == "choices"] == [2, 2]


def test_lost_documents_are_counted_once_whatever_the_number_of_metrics() -> None:
    (lost,) = find_losses(small_report())
    assert (lost.task, lost.kind, lost.documents, lost.of) == ("texts", "failed", 3, 10)
    assert dict(lost.reasons) == {"timed out after 31 s": 2, "timed out after 30 s": 1}
    assert tell_losses([lost], most=1)[0].endswith("(2 timed out after 31 s, and 1 more reasons)")
    assert find_losses(small_report(failing=())) == ()


def test_a_reason_stands_once_and_whole_however_often_it_was_tried() -> None:
    reasons = ("HTTP 500 (2 tries)", "HTTP 500", "HTTP 500 (13 tries)", "reset " + "x" * 900, "late")
    asked = [Instance("texts", doc, 0, Generate(f"q{doc}")) for doc in range(len(reasons))]
    answers = [Answer(one, (Failure(why),)) for one, why in zip(asked, reasons, strict=True)]
    (lost,) = find_losses(build_report([report_task(score_task(text_task(), text_samples(5), answers))], []))
    assert lost.reasons[0] == ("HTTP 500", 3)
    (line,) = tell_losses([lost])
    assert "(3 HTTP 500, 1 late, 1 reset xxx" in line
    assert shorten(line) == line


def test_notes_say_each_thing_once() -> None:
    report = small_report()
    notes = collect_notes(report, ["texts: slow", "choices: slow", "slow"])
    assert "slow (texts, choices)" in notes
    assert len(set(notes)) == len(notes)
    many = group_texts([(f"t{i}", f"t{i}: odd") for i in range(57)])
    assert many == ("odd (t0, t1, t2 and 54 more)",)


def test_a_warning_that_numbers_of_a_task_share_stands_once() -> None:
    task = Task("prose", LOGLIKELIHOOD_ROLLING, tuple(map(MetricSpec, ("word_perplexity", "byte_perplexity"))))
    texts = [f"a text of {doc} words" for doc in range(9)]
    samples = [Sample(doc, gold=text) for doc, text in enumerate(texts)]
    answers = [Answer(Instance("prose", doc, 0, Rolling(texts[doc])), (-9.0 - doc % 4,)) for doc in range(9)]
    (note,) = collect_notes(build_report([report_task(score_task(task, samples, answers))]))
    assert note.startswith("word_perplexity,none, byte_perplexity,none: the interval rests on 9 documents")


def test_answers_that_are_only_recorded_are_counted_and_no_matter_of_warning() -> None:
    task = replace(text_task(), metrics=(MetricSpec("bypass"),), filters=())
    scored = score_task(task, text_samples(), text_answers("texts", failing=(1, 2)))
    tree = Group("g", (Leaf("texts", None),), (GroupMetric("exact_match"),))
    report = build_report([report_task(scored)], [tree])
    (row,) = (row for row in list_rows(report) if row.metric)
    assert (row.metric, row.value, row.n, row.failed, row.reason) == ("bypass", None, 8, 2, "recorded")
    assert collect_notes(report) == (
        "nothing was measured, as asked: n counts the documents whose answers were recorded",
    )
    assert ["bypass", "recorded", "8", "2"] in [
        line.split()[-4:] for line in render_table(list_rows(report)).split("\n")
    ]
    assert collect_notes(report, ["texts: slow"])[1:] == ("slow (texts)",)
