"""The table, CSV, Markdown and JSON: right numbers, any width, nothing obeyed that data says."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from test_output_rows import small_report

import evalcore.shell.output
from evalcore import EvalError
from evalcore.shell.output.files.results import RunFacts, build_results
from evalcore.shell.output.files.run_files import list_files, name_samples
from evalcore.shell.output.terminal.flat import render_csv, render_markdown
from evalcore.shell.output.terminal.number_rows import NumberRow, drop_repeats, list_rows
from evalcore.shell.output.terminal.number_table import render_table
from evalcore.shell.output.terminal.screen import Screen
from evalcore.shell.output.terminal.show import RENDERERS, Shown, prepare_shown, render, show
from evalcore.shell.output.terminal.wrap import fold_name

REPORT = small_report()
ROWS = list_rows(REPORT)
TEXTS = st.text(st.characters(codec=None, categories=None), max_size=30)
HOSTILE = "\x1b[31m\x1b]0;title\x07\r\x9b2J\u202e[red]x[/red]|`<script>\ud83d"


def hostile(text: str) -> NumberRow:
    return NumberRow(
        name=text, alias=text, version=text, filter=text, metric=text, value=0.5, n=3, reason=text, depth=1
    )


# --- the table ------------------------------------------------------------------------------------------------------


def test_the_table_of_a_pipe_is_plain_and_whole() -> None:
    text = render(prepare_shown(REPORT, title="a title"), "table")
    assert "\x1b" not in text
    assert text.startswith("a title\n\nTasks ")
    line = next(line for line in text.splitlines() if " - texts" in line)
    row = next(row for row in ROWS if row.name == "texts")
    assert line.split() == ["-", "texts", "number", "3", "exact_match", "↑", f"{row.value:.4f}", f"{row.low:.4f}", "to", f"{row.high:.4f}", str(row.n), "3"]  # fmt: skip
    assert "texts: 3 of 10 documents failed (2 timed out after 31 s, 1 timed out after 30 s)" in text
    assert "95 % interval: " in text
    assert "↑ higher is better" in text


def test_unscored_is_a_column_only_where_something_is() -> None:
    assert "unscored" not in render(prepare_shown(small_report(failing=())), "table")
    assert "Documents without a score" not in render(prepare_shown(small_report(failing=())), "table")


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
def test_a_terminal_of_any_width_shows_every_value(width: int) -> None:
    text = render(prepare_shown(REPORT), "table", Screen(width))
    assert max(map(cell_len, text.split("\n"))) <= width
    for row in ROWS:
        assert row.value is None or f"{row.value:.3f}" in text or f"{row.value:.4f}" in text
    assert ("Version" in text) == (width >= 100)


def test_a_terminal_too_narrow_for_the_numbers_still_gets_them() -> None:
    text = render_table(ROWS, screen=Screen(20))
    for row in ROWS:
        assert row.value is None or f"{row.value:.3f}" in text


NAMES = ["exact_match@pass@2", "word_perplexity", "acc"]
QUICK = [
    NumberRow(name="g", alias="quickstart", group=True),
    NumberRow(name="s", alias="simple questions", depth=1, filter="flexible-extract", metric=NAMES[0], higher=True, value=0.6,
        low=0.4552, high=0.7292, n=30, version="1.0", shots=4),
    NumberRow(name="p", alias="prose", depth=2, filter="none", metric=NAMES[1], higher=False, value=236.4486, low=176.2626,
        high=317.1854, n=30, version="1.0", shots=0),
    NumberRow(name="a", alias="knowledge", depth=1, filter="none", metric=NAMES[2], higher=True, value=0.7286, low=0.6106,
        high=0.8212, n=30, version="1.0", shots=0),
]  # fmt: skip


def body(text: str) -> list[str]:
    return text.partition("\n\n")[0].split("\n")[2:]


def test_at_80_columns_rows_are_whole() -> None:
    lines = body(render_table(QUICK, screen=Screen(80)))
    assert len(lines) == len(QUICK)
    assert max(map(cell_len, lines)) <= 80
    assert (
        re.sub(" +", " ", lines[1]) == " - simple questions flexible-extract exact_match@pass@2 ↑ 0.600 0.455–0.729 30"
    )
    assert re.sub(" +", " ", lines[2]) == " - prose none word_perplexity ↓ 236.4 176.3–317.2 30"


@pytest.mark.parametrize("width", range(65, 80))
def test_folded_names_keep_their_indent_and_break_at_marks(width: int) -> None:
    lines = body(render_table(QUICK, screen=Screen(width)))
    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith(("quickstart", " - ", "   ")) for line in lines)
    words = {word for line in lines for word in line.split()}
    assert {"questions", "0.600", "236.4", "0.729"} <= words
    assert "exact_match@pass@2" in words or {"exact_match@", "pass@2"} <= words


@given(st.text(st.sampled_from("ab_-@ 日"), max_size=30), st.integers(0, 5), st.integers(6, 20))
def test_folding_loses_nothing_but_spaces(name: str, depth: int, width: int) -> None:
    text = " " * depth + "- " + name
    lines = fold_name(text, width).split("\n")
    assert max(map(cell_len, lines)) <= width
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_filters_that_say_nothing_go_before_names_are_folded() -> None:
    rows = [replace(row, filter="none") for row in QUICK]
    wide, narrow = render_table(rows, screen=Screen(100)), render_table(rows, screen=Screen(62))
    assert "Filter" in wide
    assert "Filter" not in narrow
    assert len(body(narrow)) == len(rows)


def test_confidence_is_in_the_head() -> None:
    assert "99.9 % interval" in render_table(ROWS, confidence=0.999)
    assert "|90 % interval" in render_markdown(ROWS, confidence=0.9)


def test_colour_is_only_ours() -> None:
    text = render_table(
        [hostile(HOSTILE)], screen=Screen(400, colour=True), notes=[HOSTILE], losses=[HOSTILE], title=HOSTILE
    )
    assert set(re.findall(r"\x1b\[[0-9;]*m", text)) <= {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[33m"}
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert not set(plain) & set("\x1b\x07\r\x9b\u202e\ud83d")
    assert "[red]x[/red]" in plain
    assert r"\x1b[31m" in plain


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_whatever_names_say_the_table_has_its_lines(text: str) -> None:
    out = render_table([hostile(text)], notes=[text], losses=[text])
    assert not set(out) & set("\x1b\x07\r\t\x9b\u202e\u2028\x85")
    assert len(out.split("\n")) == 3 + 4 + 3 + 3 + 1  # table, legend, losses, warnings, the end
    out.encode()


def test_long_notes_are_cut() -> None:
    out = render_table(ROWS, notes=["x" * 5000, *map(str, range(50))])
    assert max(map(len, out.split("\n"))) < 400
    assert "and 31 more, in results.json" in out


def test_deep_trees_do_not_run_off_the_page() -> None:
    assert cell_len(render_table([replace(hostile("x"), depth=5000)]).split("\n")[2]) < 200


# --- CSV ------------------------------------------------------------------------------------------------------------


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_every_number_once_and_whole() -> None:
    found = read_csv(render(prepare_shown(REPORT), "csv"))
    assert len(found) == len(drop_repeats(ROWS))
    for line, row in zip(found, drop_repeats(ROWS), strict=True):
        assert (line["task"], line["metric"], line["filter"]) == (row.name, row.metric, row.filter)
        for name, value in (("value", row.value), ("stderr", row.stderr), ("ci_low", row.low), ("ci_high", row.high)):
            assert line[name] == ("" if value is None else repr(value))
    assert {line["kind"] for line in found} == {"task", "group"}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "＝", "|"])
def test_cells_that_a_spreadsheet_would_run_are_text(start: str) -> None:
    (line,) = read_csv(render_csv([hostile(start + "cmd|' /C calc'!A0")]))
    for name in ("task", "alias", "metric", "filter", "version", "reason"):
        assert line[name].startswith("'")


def test_numbers_stay_numbers() -> None:
    (line,) = read_csv(render_csv([replace(hostile("t"), value=-0.5, version="-1.5", low=-1e-9)]))
    assert (line["value"], line["version"], line["ci_low"]) == ("-0.5", "-1.5", "-1e-09")


@given(TEXTS)
def test_csv_is_one_line_per_row_whatever_the_names(text: str) -> None:
    out = render_csv([hostile(text), hostile(text + "2")])
    assert len(out.split("\n")) == 4
    assert not set(out) & set("\x1b\x07\r\t\x9b\u202e\u2028")


# --- Markdown -------------------------------------------------------------------------------------------------------


def test_markdown_has_the_columns_of_lm_eval_and_ours() -> None:
    head, rule, first, *rows = render(prepare_shown(REPORT), "markdown").splitlines()
    assert [cell.strip() for cell in head.strip("|").split("|")] == ["Tasks", "Version", "Filter", "n-shot", "Metric", "", "Value", "", "Stderr", "95 % interval", "n"]  # fmt: skip
    assert set(rule) <= set("|-:")
    assert len({len(line) for line in (head, rule, first, *rows)}) == 1
    assert len(rows) + 1 == len(ROWS)


@given(TEXTS)
def test_markdown_cells_mean_themselves(text: str) -> None:
    lines = render_markdown([hostile(text)]).splitlines()
    assert len(lines) == 3
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", lines[2])) == 12
    assert "<" not in lines[2]
    assert not re.search(r"(?<!\\)(?:\\\\)*[`\[*]", lines[2])


# --- show -----------------------------------------------------------------------------------------------------------


def test_json_is_the_results() -> None:
    results = build_results(REPORT, RunFacts(model="dummy"))
    assert json.loads(render(prepare_shown(REPORT, results), "json")) == json.loads(json.dumps(results))


def test_data_goes_to_stdout_and_the_rest_aside() -> None:
    for form in ("json", "csv", "markdown", "path"):
        out, aside = io.StringIO(), io.StringIO()
        show(prepare_shown(REPORT, warnings=["odd\x1b"], folder="runs/x"), form, to=out, aside=aside)
        assert "timed out" not in out.getvalue()
        assert "warning: odd\\x1b\n" in aside.getvalue()
        assert "timed out" in aside.getvalue()
    out, aside = io.StringIO(), io.StringIO()
    show(prepare_shown(REPORT, warnings=["odd"]), to=out, aside=aside)
    assert "- odd" in out.getvalue()
    assert aside.getvalue() == ""


def test_a_poor_encoding_is_no_crash() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    show(prepare_shown(REPORT), to=stream, aside=io.StringIO())
    assert b"\\u2191" in raw.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colour_unless_it_asks_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    show(prepare_shown(REPORT), to=out)
    assert "\x1b[1m" in out.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    show(prepare_shown(REPORT), to=out)
    assert "\x1b" not in out.getvalue()
    assert max(map(cell_len, out.getvalue().split("\n"))) <= 90


def test_the_table_says_which_files_were_written(tmp_path) -> None:
    for name in ("results.json", "config.yaml"):
        (tmp_path / name).write_text("")
    assert list_files(tmp_path, ["a", "b"]) == ("results.json", "config.yaml")
    name_samples(tmp_path, "a").write_text("")
    assert list_files(tmp_path, ["a", "b"]) == ("results.json", "samples_a.jsonl", "config.yaml")
    name_samples(tmp_path, "b").write_text("")
    files = list_files(tmp_path, ["a", "b"])
    assert files == ("results.json", "samples_<task>.jsonl of 2 tasks", "config.yaml")
    text = render(prepare_shown(REPORT, folder="runs/x", files=files), "table")
    assert text.endswith("\nWritten to runs/x: results.json, samples_<task>.jsonl of 2 tasks, config.yaml\n")
    assert render(prepare_shown(REPORT, folder="runs/x"), "table").endswith("\nWritten to runs/x\n")


def test_unknown_forms_name_the_nearest() -> None:
    with pytest.raises(EvalError, match="did you mean 'markdown'"):
        render(Shown(rows=()), "markdwn")
    assert set(RENDERERS) == {"table", "json", "csv", "markdown", "path"}


def test_rich_is_loaded_only_for_the_table() -> None:
    code = (
        "import sys, evalcore.shell.output.terminal.show, evalcore.shell.output.terminal.progress, evalcore.shell.output.files.run_files\n"
        "import evalcore.shell.output.files.results, evalcore.shell.output.files.sample_lines\n"
        "print([name for name in ('rich', 'yaml') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


LONG = [
    replace(
        row,
        alias="leaderboard_math_counting_and_probability_hard_" + row.alias,
        filter="flexible-extract-of-the-last-number",
        metric="exact_match_normalised@pass@16",
        n=1_234_567,
        failed=12,
    )
    for row in QUICK[1:]
]


@pytest.mark.parametrize("width", [80, 60])
def test_however_long_names_are_value_interval_and_n_stay_on_the_screen(width: int) -> None:
    lines = body(render_table(LONG, screen=Screen(width)))
    assert max(map(cell_len, lines)) <= width
    numbers = [line for line in lines if "1,234,567" in line]
    assert len(numbers) == len(LONG)
    for line, row in zip(numbers, LONG, strict=True):
        value, interval = line.split("1,234,567")[0].split()[-2:]
        assert float(value) == pytest.approx(row.value, rel=1e-3)
        assert [float(end) for end in interval.split("–")] == pytest.approx([row.low, row.high], abs=0.01 * row.high)
    assert len(lines) <= 8 * len(LONG)
    assert all(line.startswith((" - ", "   ")) for line in lines)


def test_columns_are_called_alike_in_every_command() -> None:
    """The names of columns that several commands have stand in one place."""
    rooms = Path(evalcore.shell.output.__path__[0])
    files = [path for path in rooms.rglob("*.py") if path.name != "number_text.py"]
    literal = re.compile(r'"(Tasks?|Metric|Filter|Value|adjusted p)"')
    assert [(path.name, found) for path in files for found in literal.findall(path.read_text("utf-8"))] == []
    heads = re.compile(r'(?:Column(?:\[\w+\])?\(|heads=\(|heads = \()"(number|metric|filter|value|n|p)"')
    assert [(path.name, found) for path in files for found in heads.findall(path.read_text("utf-8"))] == []
