"""``compare`` and ``check``: rules, prompts and generation arguments that differ; filters that go by other names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from sample_runs import STAMP, rows_of, write_log, write_run

from evalcore import EvalError, MetricKey, run, score
from evalcore.comparisons import check_run, plan_power
from evalcore.shell.cli import main
from evalcore.shell.compare.compare import compare
from evalcore.shell.compare.run_sides import list_spreads
from evalcore.shell.report.report import report
from tests.shell.test_report_overview import read_head

FINE = [1.0, 0.0, 1.0, 1.0] * 10
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "config.yaml"
Plain = Mapping[str, object]


def config_of(steps: Sequence[Plain] = (), metric: Plain | None = None, name: str = "none", **more: object) -> Plain:
    own = {"metric_list": [{"metric": "exact_match", **(metric or {})}], "output_type": "generate_until", **more}
    return (
        {"task": "t", "filter_list": [{"name": name, "filter": list(steps)}], **own} if steps else {"task": "t", **own}
    )


def run_of(folder: Path, config: Plain | None = None, scores: Sequence[float] = FINE, **results: object) -> Path:
    given = None if config is None else {"configs": {"t": config}, **results}
    return write_run(folder, {"t": scores}, "exact_match", given)


def data(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, object]:
    assert main([*map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


REGEX = {"function": "regex", "regex_pattern": "(a)"}


def parts(a: Path, b: Path, **keys: object) -> list[tuple[str, str, str]]:
    return [(one.part, one.a, one.b) for each in compare(a, b, **keys).comparisons for one in each.rules]


# --- rules ------------------------------------------------------------------------------------------------------------


def test_a_rule_that_differs_leads_all_and_is_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (
        run_of(tmp_path / "a", config_of([REGEX])),
        run_of(tmp_path / "b", config_of([{**REGEX, "regex_pattern": "b"}])),
    )
    found = data(capsys, "compare", a, b)
    told = "exact_match,none: regex_pattern of filter regex differs: '(a)' in A, 'b' in B (t)"
    assert found["warnings"][0] == told
    (pair,) = found["pairs"]
    rule = {
        "task": "t",
        "metrics": ["exact_match,none"],
        "rule": "regex_pattern of filter regex",
        "a": "'(a)'",
        "b": "'b'",
    }
    assert pair["rules"] == [rule]
    may = data(capsys, "compare", a, b, "--rules-may-differ")
    assert (may["warnings"], may["notes"]) == ([], [told])
    assert main(["compare", str(a), str(b)]) == 0
    assert capsys.readouterr().out.startswith(f"Warning: {told}\n")


def test_a_gate_of_its_own_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = run_of(tmp_path / "a", config_of([REGEX])), run_of(tmp_path / "b", config_of())
    found = data(capsys, "check", a, "--baseline", b, "--junit", tmp_path / "j.xml", code=1)
    (gate,) = (one for one in found["gates"] if one["gate"] == "rules")
    told = "exact_match,none: filters differ: 'regex' in the run, none in the baseline"
    assert (gate["task"], gate["passed"], gate["value"]) == ("t", False, None)
    assert gate["verdict"].startswith(told)
    (failure,) = Xml.parse(tmp_path / "j.xml").iter("failure")
    assert told in str(failure.get("message"))
    allowed = data(capsys, "check", a, "--baseline", b, "--rules-may-differ")
    assert not [one for one in allowed["gates"] if one["gate"] == "rules"]
    assert any(told in note for note in allowed["notes"])
    with pytest.raises(EvalError, match="--rules_may_differ is about --baseline RUN"):
        check_run(a, min="exact_match=0", rules_may_differ=True)


def test_rules_of_numbers_that_are_not_asked_for_do_not_matter(tmp_path: Path) -> None:
    for name, pattern in (("a", "a"), ("b", "b")):
        one = config_of([{**REGEX, "regex_pattern": pattern}])
        write_run(tmp_path / name, {"t": FINE, "u": FINE}, "exact_match", {"configs": {"t": one, "u": config_of()}})
    a, b = tmp_path / "a", tmp_path / "b"
    assert check_run(a, baseline=b, task="u").passed
    assert not check_run(a, baseline=b, task="t").passed
    assert compare(a, b, task="u").lead == ()
    assert len(compare(a, b).lead) == 2


@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        (config_of(metric={"ignore_case": True}), config_of(), ("ignore_case of the metric", "True", "none")),
        (
            config_of(repeats=4, repeat_cfg={"reducer": "mean"}),
            config_of(repeats=4, repeat_cfg={"reducer": "pass@2"}),
            ("reducer", "'mean'", "'pass@2'"),
        ),
        (
            config_of([{"function": "take_first"}], repeats=4),
            config_of([{"function": "majority_vote"}], repeats=4),
            ("filters", "'take_first'", "'majority_vote'"),
        ),
        (
            config_of([REGEX, {**REGEX, "group_select": -1}]),
            config_of([REGEX, REGEX]),
            ("group_select of filter regex (2)", "-1", "0"),
        ),
        (
            config_of(process_results="def f(doc, results):\n    return {}"),
            config_of(process_results="def g(doc, results):\n    return {}"),
            ("process_results", "f", "g"),
        ),
    ],
)
def test_every_kind_of_rule_is_compared(tmp_path: Path, one: Plain, two: Plain, expected: tuple[str, str, str]) -> None:
    assert parts(run_of(tmp_path / "a", one), run_of(tmp_path / "b", two)) == [expected]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (config_of([{"function": "take_first"}]), config_of()),
        (config_of([REGEX, {"function": "take_first"}]), config_of([REGEX])),
        (config_of([{**REGEX, "group_select": 0}]), config_of([{**REGEX, "fallback": "[invalid]"}])),
        (config_of([{**REGEX, "group_select": 1}]), config_of([{**REGEX, "group_select": 1.0}])),
        (
            config_of(metric={"ignore_case": False, "aggregation": "mean"}),
            config_of(metric={"regexes_to_ignore": None}),
        ),
        (config_of(metric={"higher_is_better": True}), config_of(metric={"hf_evaluate": False})),
        (config_of(repeat_cfg={"reducer": "mean"}), config_of()),
        (config_of(output_type="greedy_until"), config_of()),
        (config_of(process_results="<function f at 0x7f12>"), config_of(process_results="<function f at 0x55aa>")),
        (config_of(process_results="!function /home/a/utils.f"), config_of(process_results="!function /mnt/b/utils.f")),
        (config_of(process_results="def f(x):\n  return 1"), config_of(process_results="f")),
        (
            config_of([{"function": "custom", "filter_fn": "<function f at 0x7f12>"}]),
            config_of([{"function": "custom", "filter_fn": "def f(replies, docs):\n    return replies"}]),
        ),
    ],
)
def test_rules_that_only_look_different_are_the_same(tmp_path: Path, one: Plain, two: Plain) -> None:
    assert parts(run_of(tmp_path / "a", one), run_of(tmp_path / "b", two)) == []


def test_code_of_ours_is_compared_by_the_hash_of_its_file_wherever_it_lies(tmp_path: Path) -> None:
    def coded(name: str, home: str, digest: str) -> Path:
        config = config_of(process_results="f", metadata={"config_source": f"{home}/t.yaml"})
        own = {"policy": "evalcore", "trusted": {f"{home}/utils.py": digest, "/elsewhere/utils.py": name}}
        return run_of(tmp_path / name, config, evalcore=own)

    a = coded("a", "/home/a", "12ab")
    assert parts(a, coded("b", "/mnt/b", "12ab")) == []
    ((part, one, two),) = parts(a, coded("c", "/home/a", "34cd"))
    assert part == "process_results"
    assert one != two


def test_unknown_rules_are_a_note(tmp_path: Path) -> None:
    a, b = run_of(tmp_path / "a", config_of([REGEX])), run_of(tmp_path / "b")
    found = compare(a, b)
    assert found.notes == ("rules that could not be compared: B has no config of the task beside the log (t)",)
    assert found.lead == ()
    assert check_run(a, baseline=b).passed
    rows = [{**row, "filter": "strict"} for row in rows_of("t", "exact_match", FINE)]
    for name in "cd":
        run_of(tmp_path / name, config_of([REGEX]))
        write_log(tmp_path / name / f"samples_t_{STAMP}.jsonl", rows)
    told = "rules that could not be compared: A and B have only the name of the filter strict (t)"
    assert compare(tmp_path / "c", tmp_path / "d").notes == (told,)


def test_tables_are_scored_by_the_same_rules_and_recorded_scores_by_unknown_ones(tmp_path: Path) -> None:
    for name, right in (("a", "1"), ("b", "0")):
        lines = "".join(f"{at},{at % 2},{at % 3},{right}\n" for at in range(30))
        (tmp_path / f"{name}.csv").write_text(f"id,reply,gold,verdict\n{lines}")
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    scored = compare(a, b, answer="reply", gold="gold", id="id", match="id")
    assert (scored.notes, scored.lead) == ((), ())
    taken = compare(a, b, score="verdict", id="id", match="id", higher_is_better="verdict")
    assert taken.notes == (
        "rules that could not be compared: A and B have scores as another program recorded them (a)",
    )


def test_a_quickstart_run_has_its_own_rules_and_other_filters_do_not(tmp_path: Path) -> None:
    run(QUICKSTART, output_path=str(tmp_path / "a"))
    same = compare(tmp_path / "a", tmp_path / "a")
    assert (same.lead, same.notes) == ((), ())
    score(tmp_path / "a", output_path=tmp_path / "again")
    again = compare(tmp_path / "a", tmp_path / "again")
    assert (again.lead, again.notes, again.warnings) == ((), (), ())
    step = 'regex={"regex_pattern": "(-?[0-9]+)", "group_select": -1}'
    score(tmp_path / "a", only="*one_step", filter=step, filter_name="strict-match", output_path=tmp_path / "other")
    assert [part for part, *_ in parts(tmp_path / "a", tmp_path / "other")] == [
        "regex_pattern of filter regex",
        "group_select of filter regex",
    ]


def test_with_several_runs_every_pair_is_told(tmp_path: Path) -> None:
    steps = [[{**REGEX, "regex_pattern": pattern}] for pattern in "aab"]
    a, b, c = (run_of(tmp_path / name, config_of(step)) for name, step in zip("abc", steps, strict=True))
    told = [f"exact_match,none: regex_pattern of filter regex differs: 'a' in {one}, 'b' in C (t)" for one in "AB"]
    assert list(compare(a, b, c).lead[:2]) == told


# --- prompts and generation arguments -----------------------------------------------------------------------------------


def asked(folder: Path, prompt: str = "{}", hashes: bool = False, **options: object) -> Path:
    rows = rows_of("t", "acc", FINE)
    for row in rows:
        text = prompt.format(row["doc"]["question"])
        row |= {"arguments": [[text, options]], "prompt_hash": text} if not hashes else {"prompt_hash": text}
        if hashes:
            del row["arguments"]
    return write_log(folder / "samples_t.jsonl", rows)


def test_other_prompts_and_arguments_are_told_with_what_differs(tmp_path: Path) -> None:
    a = asked(tmp_path / "a", temperature=0, until=["\n"], do_sample=False)
    assert compare(a, asked(tmp_path / "b", temperature=0.0, until="\n")).warnings == ()
    other = compare(a, asked(tmp_path / "c", "Q: {}", temperature=1, until=["\n"], do_sample=True, top_p=0.5))
    assert other.warnings == (
        "prompts differ for all 40 documents that are the same (t)",
        "generation arguments differ: do_sample not given in A, True in B; temperature not given in A, 1 in B; "
        "top_p not given in A, 0.5 in B (t)",
    )
    hot = compare(
        asked(tmp_path / "d", temperature=0.7, do_sample=True), asked(tmp_path / "e", temperature=1, do_sample=True)
    )
    assert hot.warnings == ("generation arguments differ: temperature 0.7 in A, 1 in B (t)",)
    assert check_run(a, baseline=tmp_path / "c" / "samples_t.jsonl").notes[:2] == tuple(
        one.replace(" in A", " in the run").replace(" in B", " in the baseline") for one in other.warnings
    )


def test_logs_without_arguments_are_compared_by_the_hashes_of_prompts(tmp_path: Path) -> None:
    a, b = asked(tmp_path / "a", hashes=True), asked(tmp_path / "b", hashes=True)
    assert compare(a, b).warnings == ()
    other = compare(a, asked(tmp_path / "c", "Q: {}", hashes=True))
    assert other.warnings == ("prompts differ for all 40 documents that are the same (t)",)
    assert compare(a, asked(tmp_path / "d")).warnings == ()  # a hash and a text cannot be compared


# --- filters of other names ---------------------------------------------------------------------------------------------


def filtered(folder: Path, **scores: Sequence[float]) -> Path:
    pipelines = [{"name": name, "filter": [REGEX]} for name in scores]
    numbers = {f"exact_match,{name}": sum(some) / len(some) for name, some in scores.items()}
    errors = {f"exact_match_stderr,{name}": 0.07 for name in scores}
    rows = {"t": {"alias": "t", "sample_len": 40, **numbers, **errors}}
    run_of(folder, {**config_of(), "filter_list": pipelines}, results=rows)
    logged = [{**row, "filter": name} for name, some in scores.items() for row in rows_of("t", "exact_match", some)]
    write_log(folder / f"samples_t_{STAMP}.jsonl", logged)
    return folder


def test_filters_of_other_names_come_with_the_flag_that_compares_them(tmp_path: Path) -> None:
    a, b = filtered(tmp_path / "a", strict=FINE), filtered(tmp_path / "b", hard=FINE)
    hint = "--match-filter strict=hard compares two runs under filters of other names"
    with pytest.raises(EvalError, match=hint):
        compare(a, b)
    assert hint in check_run(a, baseline=b).notes
    more = filtered(tmp_path / "more", hard=FINE, loose=FINE)
    with pytest.raises(EvalError) as wrong:
        compare(a, more)
    assert "--match-filter" not in str(wrong.value), "which of the two it is nobody knows"


def test_filters_are_matched_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    poor = [0.0] * 30 + [1.0] * 10
    a, b = filtered(tmp_path / "a", strict=FINE, loose=FINE), filtered(tmp_path / "b", hard=poor, strict=FINE)
    found = data(capsys, "compare", a, b, "--match-filter", "strict=hard")
    (line,) = found["pairs"][0]["lines"]
    assert (line["filter"], line["a"], line["b"]) == ("strict", 0.75, 0.25)
    told = ["its filter hard is compared as strict", "its own filter strict is not compared"]
    assert found["runs"][1]["warnings"][-2:] == told
    swapped = compare(b, b, match_filter=["strict=hard", "hard=strict"]).comparisons[0].lines
    assert {one.key.filter: one.difference for one in swapped} == {"strict": 0.5, "hard": -0.5}
    assert not check_run(b, baseline=a, match_filter="hard=strict", allow_missing=True).passed
    assert check_run(a, baseline=b, match_filter="strict=hard").passed
    (plan,) = plan_power(a, b, match_filter="strict=hard").plans
    assert plan.known.key.filter == "strict"


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_known_of_a_filter_is_known_by_its_new_name(tmp_path: Path, whole: bool) -> None:
    b = filtered(tmp_path / "b", hard=FINE, strict=[1.0] * 40)
    path = b if whole else next(b.glob("samples_*"))
    if not whole:
        next(b.glob("results*")).unlink()
    _, renamed = compare(path, path, match_filter="strict=hard").runs
    own, known = list_spreads(compare(path, path).runs[1]), list_spreads(renamed)
    strict, hard = (MetricKey("exact_match", name) for name in ("strict", "hard"))
    assert list(known) == [("t", strict)]
    assert known["t", strict].stderr == own["t", hard].stderr
    assert (whole, own["t", strict].stderr) in ((True, 0.07), (False, 0.0))


def test_a_page_finds_the_number_of_a_filter_under_its_own_name(tmp_path: Path) -> None:
    a, b = filtered(tmp_path / "a", strict=FINE), filtered(tmp_path / "b", hard=FINE, strict=[1.0] * 40)
    page = report(a, b, output=tmp_path / "page.html", match_filter="strict=hard").path
    (number,) = read_head(page)["comparison"]["numbers"]
    assert (number["filter"], number["values"]) == ("strict", [0.75, 0.75])


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("strikt=hard", "unknown filter 'strikt'; did you mean 'strict'? Known: loose, strict - at .*a"),
        ("strict=hrad", "unknown filter 'hrad'; did you mean 'hard'? Known: hard, strict - at .*b"),
        ("strict", "expected --match-filter FIRST=SECOND, each name once"),
    ],
)
def test_a_filter_that_is_not_there_is_an_error(tmp_path: Path, flag: str, expected: str) -> None:
    a, b = filtered(tmp_path / "a", strict=FINE, loose=FINE), filtered(tmp_path / "b", hard=FINE, strict=FINE)
    with pytest.raises(EvalError, match=expected.replace("?", r"\?")):
        compare(a, b, match_filter=flag)
    with pytest.raises(EvalError, match="maps filters of the first run to those of the second; got 3 runs"):
        compare(a, b, a, match_filter="strict=hard")
    with pytest.raises(EvalError, match="--match-filter is about the filters of RUN2"):
        plan_power(a, match_filter="strict=hard")


# --- numbers that contradict the results --------------------------------------------------------------------------------


def test_a_number_of_the_results_is_contradicted_only_beyond_its_digits(tmp_path: Path) -> None:
    def contradicted(name: str, stated: float, **more: object) -> bool:
        rows = {"t": {"alias": "t", "exact_match,none": stated}}
        thirds = run_of(tmp_path / name, config_of(), [1.0, 0.0, 0.0] * 10, results=rows, **more)
        return any("in the results, but 0.333" in one for one in compare(thirds, thirds).runs[0].warnings)

    assert not contradicted("a", 1 / 3)
    assert not contradicted("b", 0.3333)
    assert contradicted("c", 0.3334)
    assert contradicted("d", 0.33)


def test_results_of_other_documents_do_not_contradict(tmp_path: Path) -> None:
    rows = {"t": {"alias": "t", "exact_match,none": 0.4}}
    for count, expected in ((40, 1), (90, 0)):
        counts = {"n-samples": {"t": {"original": 90, "effective": count}}}
        told = score(run_of(tmp_path / str(count), config_of(), results=rows, **counts)).warnings
        assert len([one for one in told if "is 0.4 in the results, but 1.0" in one]) == expected
