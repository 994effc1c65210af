"""Nothing tests a name: an entry under another name behaves as the original, in every command."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyrsistent import PMap

from evalcore import EVALCORE, GENERATE_UNTIL, EvalError, Tables, compare, run, score
from evalcore.comparisons import check_run, plan_power
from evalcore.extensions import (
    DATA_READERS,
    MODELS,
    RENDERERS,
    Backend,
    Heard,
    Model,
    Renderer,
    read_files,
    render_form,
)
from evalcore.logs import READERS
from evalcore.shell.explain.diff import diff_runs
from evalcore.shell.explain.explain import explain_document
from evalcore.shell.output.check.renderers import RENDERERS as CHECK
from evalcore.shell.output.compare.renderers import RENDERERS as COMPARE
from evalcore.shell.output.explain.renderers import DIFF_RENDERERS as DIFF
from evalcore.shell.output.explain.renderers import RENDERERS as EXPLAIN
from evalcore.shell.output.power.renderers import RENDERERS as POWER
from evalcore.shell.output.terminal.screen import print_form

COPY = "another_name"
TASK = {
    "task": "t",
    "output_type": "generate_until",
    "test_split": "test",
    "doc_to_text": "{{q}}",
    "doc_to_target": "{{a}}",
    "repeats": 3,
}
DOCS = [
    {"q": f"question {at}", "a": answer, "choices": ["4", "5"]}
    for at, answer in enumerate(["4", "9", "7", "5", "4", "9"])
]
SAID = [("It is 4", "4", "5"), ("9", "nine", "9"), ("seven", "7", "(B)"), ("The answer is 5.", "5", "5")]


def reciter(shift: int) -> Backend:
    """A model with a few replies; ``shift`` says with which it begins."""

    def recite(questions):  # type: ignore[no-untyped-def]
        for at, question in enumerate(questions):
            doc = int(question.request.prompt.split()[-1])
            yield Heard(at, SAID[(doc + shift) % len(SAID)][question.repeat])

    return Backend(lambda arguments: Model("reciter", f"reciter:{shift}", recite), "recites")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of the same task by different models."""
    home = tmp_path_factory.mktemp("logs")
    for shift in (0, 1):
        models = MODELS.set("reciter", reciter(shift))
        run(model="reciter", tasks=[TASK], data={"t": DOCS}, output_path=str(home / f"run{shift}"), models=models)
    return home / "run0", home / "run1"


def tell(home: Path, logs: tuple[Path, Path], **keys: object) -> dict[str, str]:
    """What every command says of two runs that are scored by these keys, without where they are."""
    a, b = home / "a", home / "b"
    scored = [score(log, output_path=out, **keys) for log, out in zip(logs, (a, b), strict=True)]  # type: ignore[arg-type]
    reading = {key: value for key, value in keys.items() if key in ("tables", "readers")}
    commands: dict[str, Callable[[], str]] = {
        "score": lambda: render_form(RENDERERS, "csv", scored[0].shown()),
        "compare": lambda: render_form(COMPARE, "json", compare(a, b, **reading)),  # type: ignore[arg-type]
        "check": lambda: render_form(CHECK, "json", check_run(a, baseline=b, **reading)),  # type: ignore[arg-type]
        "power": lambda: render_form(POWER, "json", plan_power(a, difference=0.5, **reading)),  # type: ignore[arg-type]
        "explain": lambda: render_form(EXPLAIN, "json", explain_document(a, "#2", full=True, **reading)),  # type: ignore[arg-type]
        "diff": lambda: render_form(DIFF, "json", diff_runs(a, b, **reading)),  # type: ignore[arg-type]
    }
    return {name: _say(command).replace(str(home), "HOME") for name, command in commands.items()}


def _say(command: Callable[[], str]) -> str:
    try:
        return command()
    except EvalError as wrong:
        return f"error: {wrong}"


def rename(told: Mapping[str, str], name: str) -> dict[str, str]:
    return {command: text.replace(COPY, name) for command, text in told.items()}


def assert_same(
    tmp_path: Path, logs: tuple[Path, Path], name: str, tables: Tables, key: str, form: str, **more: object
) -> None:
    """The law: whatever is said of the copy is said of the original, in the original's name."""
    told = [tell(tmp_path / one, logs, tables=tables, **{key: form.format(one)}, **more) for one in (name, COPY)]
    assert rename(told[1], name) == rename(told[0], name)
    refused = [command for command, text in told[0].items() if text.startswith("error")]
    assert refused == [] or name in ("collect", "regex_pos")  # of lists there is no number, of all zeros no gate


@pytest.mark.parametrize("name", sorted(EVALCORE.metrics[GENERATE_UNTIL]))
def test_a_metric(tmp_path: Path, logs: tuple[Path, Path], name: str) -> None:
    entries = EVALCORE.metrics[GENERATE_UNTIL]
    tables = Tables(name="ours", metrics=EVALCORE.metrics.set(GENERATE_UNTIL, entries.set(COPY, entries[name])))
    assert_same(tmp_path, logs, name, tables, "metric", "{}", reducer="first")


OPTIONS = {"take_first_k": {"k": 2}, "map": {"mapping_dict": {"4": "four"}}, "regex": {"regex_pattern": "([0-9]+)"}}


@pytest.mark.parametrize("name", sorted(set(EVALCORE.filters) - {"custom"}))
def test_a_filter(tmp_path: Path, logs: tuple[Path, Path], name: str) -> None:
    tables = Tables(name="ours", filters=EVALCORE.filters.set(COPY, EVALCORE.filters[name]))
    options = "=" + json.dumps(OPTIONS[name]) if name in OPTIONS else ""
    step = "{}" + options.replace("{", "{{").replace("}", "}}")
    assert_same(tmp_path, logs, name, tables, "filter", step, metric="exact_match", reducer="mean")


@pytest.mark.parametrize("name", sorted(EVALCORE.reducers))
def test_a_reducer(tmp_path: Path, logs: tuple[Path, Path], name: str) -> None:
    tables = Tables(name="ours", reducers=EVALCORE.reducers.set(COPY, EVALCORE.reducers[name]))
    k = {"pass@": "2", "pass^": "2", "maj@": "2", "at_least": "(2)"}.get(name, "")
    assert_same(tmp_path, logs, name, tables, "reducer", "{}" + k, metric="exact_match")


@pytest.mark.parametrize("name", ["mean", "nanmean", "median", "bypass", "bleu", "ter"])
def test_an_aggregation(tmp_path: Path, logs: tuple[Path, Path], name: str) -> None:
    tables = Tables(name="ours", aggregations=EVALCORE.aggregations.set(COPY, EVALCORE.aggregations[name]))
    metric = name if name in ("bleu", "ter") else "exact_match"
    assert_same(tmp_path, logs, name, tables, "metric", metric + '={{"aggregation": "{}"}}', reducer="first")


@pytest.mark.parametrize("name", sorted(EVALCORE.intervals))
def test_an_interval(tmp_path: Path, logs: tuple[Path, Path], name: str) -> None:
    tables = Tables(name="ours", intervals=EVALCORE.intervals.set(COPY, EVALCORE.intervals[name]))
    assert_same(tmp_path, logs, name, tables, "ci", "{}", metric="exact_match", reducer="mean")


def name_group(home: Path, key: str, name: str) -> Path:
    """A file with a group whose number is made as this key says."""
    home.mkdir(exist_ok=True)
    path = home / f"{name}.yaml"
    metric = {"metric": "exact_match", "filter_list": ["none"], key: name}
    path.write_text(json.dumps({"group": "g", "task": ["t"], "aggregate_metric_list": [metric]}))
    return path


@pytest.mark.parametrize(
    ("key", "name"),
    [
        *(("aggregation", one) for one in sorted(EVALCORE.group_rules)),
        *(("average", one) for one in sorted(EVALCORE.averages)),
    ],
)
def test_what_groups_name(tmp_path: Path, logs: tuple[Path, Path], key: str, name: str) -> None:
    rules, averages = EVALCORE.group_rules, EVALCORE.averages
    tables = Tables(
        name="ours",
        group_rules=rules.set(COPY, rules[name]) if key == "aggregation" else rules,
        averages=averages.set(COPY, averages[name]) if key == "average" else averages,
    )
    told = []
    for one in (name, COPY):
        groups = name_group(tmp_path / "groups", key, one)
        told.append(tell(tmp_path / one, logs, tables=tables, metric="exact_match", reducer="mean", groups=groups))
    assert rename(told[1], name) == rename(told[0], name)
    assert '"g"' in told[1]["compare"]
    spec = {"group": "g", "task": [TASK], "aggregate_metric_list": [{"metric": "exact_match", key: COPY}]}
    done = run(model="dummy", tasks=[spec], data={"g": DOCS}, output_path=str(tmp_path / "run"), tables=tables)
    assert done.report.group("g").get("exact_match,none") is not None


# --- tables of the shell --------------------------------------------------------------------------------------------


def test_a_model(tmp_path: Path) -> None:
    told = []
    for name in ("dummy", COPY):
        models = MODELS.set(COPY, MODELS["dummy"])
        done = run(model=name, tasks=[TASK], data={"t": DOCS}, output_path=str(tmp_path / name), models=models)
        files = [(tmp_path / name / file).read_bytes() for file in ("samples_t.jsonl", "answers.jsonl")]
        told.append((done.report, done.title.replace(COPY, "dummy"), files[0], len(files[1])))
    assert told[0] == told[1]


ROW = {"doc_id": 0, "input": "Q", "target": "A", "filtered_resps": ["A"], "doc_hash": "x", "match": 1.0}


def write_lmms(home: Path, right: float) -> Path:
    home.mkdir()
    rows = [{**ROW, "doc_id": at, "input": f"Q{at}", "match": right if at % 2 else 1.0} for at in range(4)]
    (home / "samples_t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return home


@pytest.mark.parametrize("name", ["samples", "lmms"])
def test_a_reader_of_sample_logs(tmp_path: Path, logs: tuple[Path, Path], name: str) -> None:
    """Those of Inspect's logs and of tables are in tests/shell/test_every_log.py."""
    if name == "lmms":
        logs = write_lmms(tmp_path / "a", 0.0), write_lmms(tmp_path / "b", 1.0)
    other = READERS.remove(name).set(COPY, READERS[name])
    told = [
        tell(tmp_path / str(at), logs, readers=readers, metric="exact_match", reducer="mean")
        for at, readers in enumerate((READERS, other))
    ]
    assert told[0] == told[1]
    assert [command for command, text in told[0].items() if text.startswith("error")] == []


@pytest.mark.parametrize("name", [".jsonl", ".json", ".csv", ".tsv", ".txt"])
def test_a_reader_of_data(tmp_path: Path, name: str) -> None:
    texts = {".json": json.dumps([{"q": "a\tb", "a": "c"}]), ".jsonl": json.dumps({"q": "d", "a": "e"})}
    text = texts.get(name, "q\ta\n1\t2\n" if name == ".tsv" else "q,a\n1,2\n")
    readers = DATA_READERS.set(".copy", DATA_READERS[name])
    paths = [tmp_path / f"x{suffix}" for suffix in (name, ".copy")]
    for path in paths:
        path.write_text(text)
    assert read_files(paths[:1], {}) == read_files(paths[1:], {}, readers=readers)
    task = {**TASK, "doc_to_text": "?", "doc_to_target": "{{text}}" if name == ".txt" else "{{a}}"}
    reports = [
        run(
            model="dummy", tasks=[task], data={"t": str(path)}, output_path=str(path) + "-run", data_readers=readers
        ).report
        for path in paths
    ]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("command", ["run", "compare", "check", "power", "explain", "diff"])
def test_a_form_of_output(logs: tuple[Path, Path], command: str) -> None:
    a, b = logs
    records: dict[str, tuple[PMap[str, Renderer[Any]], Callable[[], object]]] = {
        "run": (RENDERERS, lambda: score(a, metric="exact_match").shown()),
        "compare": (COMPARE, lambda: compare(a, b)),
        "check": (CHECK, lambda: check_run(a, baseline=b)),
        "power": (POWER, lambda: plan_power(a, difference=0.5)),
        "explain": (EXPLAIN, lambda: explain_document(a, "#2")),
        "diff": (DIFF, lambda: diff_runs(a, b)),
    }
    table, make = records[command]
    record, told = make(), {}
    for form in sorted(table):
        for name in (form, COPY):
            out, aside = StringIO(), StringIO()
            print_form(table.set(COPY, table[form]), name, record, to=out, aside=aside)
            told[name] = out.getvalue(), aside.getvalue()
        assert told[form] == told[COPY]
