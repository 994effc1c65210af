"""Clusters through whole runs: where they are declared, what is refused, and what results.json says of them."""

from __future__ import annotations

import json
from contextlib import redirect_stderr
from io import StringIO
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_tasks import environment, evalcore, evalcore_here

from evalcore.core.records.task import MetricKey
from evalcore.shell.cli import main
from evalcore.shell.logs.runs.totals import list_total_estimates

TASK = {
    "output_type": "multiple_choice",
    "doc_to_text": "{{q}}",
    "doc_to_choice": ["yes", "no"],
    "doc_to_target": 0,
    "metric_list": [{"metric": "acc"}],
    "dataset_path": "json",
    "test_split": "test",
}
GROUP = {"group": "both", "task": ["q_en", "q_de"], "aggregate_metric_list": [{"metric": "acc"}]}


def rows(language: str) -> list[dict[str, object]]:
    """Twelve questions on four passages; the same ids in both languages, as numbers here and as texts there."""
    return [
        {
            "q": f"{language} question {i}",
            "passage": i // 3,
            "name": str(i // 3) if language == "de" else i // 3,
            "own": f"{language} {i}",
            "key": i,
            "gap": None if i == 4 else f"g{i}",
            "nan": float("nan") if i == 5 else i / 2,
            "blank": "  " if i == 2 else "x",
            "list": [i],
            **({"only": i // 6} if language == "en" else {}),
            **({"some": i // 6} if i != 7 else {}),
        }
        for i in range(12)
    ]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", environment(tmp_path)["XDG_CACHE_HOME"])
    folder = tmp_path / "tasks"
    folder.mkdir()
    for language in ("en", "de"):
        lines = "".join(json.dumps(row) + "\n" for row in rows(language))
        (folder / f"{language}.jsonl").write_text(lines)
        write_task(tmp_path, language)
    (folder / "both.yaml").write_text(yaml.safe_dump(GROUP))
    return tmp_path


def write_task(home: Path, language: str, **more: object) -> None:
    files = {"dataset_kwargs": {"data_files": {"test": f"{language}.jsonl"}}}
    (home / f"tasks/q_{language}.yaml").write_text(yaml.safe_dump({"task": f"q_{language}", **TASK, **files, **more}))


def run(home: Path, cluster: object = None, **more: object) -> tuple[int, str]:
    config = {"model": "dummy", "tasks": ["both"], "include_path": "tasks", **more}
    (home / "run.yaml").write_text(yaml.safe_dump({**config, **({"cluster": cluster} if cluster else {})}))
    said = StringIO()
    with redirect_stderr(said):
        code = main(["run", str(home / "run.yaml"), "--quiet", "--output_path", str(home / "out")])
    return code, said.getvalue()


def estimates(home: Path) -> dict[str, dict[str, object]]:
    found = json.loads((home / "out/results.json").read_text())["evalcore"]["estimates"]
    return {name: row["acc,none"] for name, row in found.items()}


def scores(home: Path, language: str) -> list[float]:
    lines = (home / f"out/samples_q_{language}.jsonl").read_text().splitlines()
    return [float(row["acc"]) for row in sorted(map(json.loads, lines), key=lambda row: int(row["doc_id"]))]


def by_hand(parts: list[tuple[list[float], list[object]]]) -> float:
    """sqrt(C/(C−1) Σ (sum of deviations in a cluster)²)/n over tasks of one size on the same clusters."""
    totals: dict[object, float] = {}
    for values, ids in parts:
        for value, one in zip(values, ids, strict=True):
            totals[one] = totals.get(one, 0.0) + (value - float(np.mean(values))) / (len(values) * len(parts))
    return sqrt(len(totals) / (len(totals) - 1) * sum(t * t for t in totals.values()))


@pytest.mark.parametrize(
    "cluster",
    [
        "passage",
        "name",
        "{{passage}}",
        "p{{name}}",
        {"q_*": "passage"},
        {"both": "name"},
        {"*": "own", "both": "passage"},
    ],
)
def test_errors_by_cluster_in_tasks_and_across_the_tasks_of_a_group(home: Path, cluster: object) -> None:
    assert run(home, cluster)[0] == 0
    found, ids = estimates(home), [i // 3 for i in range(12)]
    en, de = scores(home, "en"), scores(home, "de")
    assert found["q_en"]["stderr"] == pytest.approx(by_hand([(en, ids)]), rel=1e-12)
    assert found["q_de"]["stderr"] == pytest.approx(by_hand([(de, ids)]), rel=1e-12)
    assert found["both"]["stderr"] == pytest.approx(by_hand([(en, ids), (de, ids)]), rel=1e-12)
    assert all("|se:clustered(cr2)|" in str(row["signature"]) for row in found.values())
    assert {name: row["clusters"] for name, row in found.items()} == {"q_en": 4, "q_de": 4, "both": 4}
    assert found["both"]["tasks_as_sample"]["tasks"] == 2
    configs = json.loads((home / "out/results.json").read_text())["configs"]
    assert configs["q_en"]["cluster"] in ("passage", "name", "{{passage}}", "p{{name}}")


HALF = "{{ 'first' if key < 6 else key }}"


def test_clusters_of_unequal_size_are_corrected_unless_asked_otherwise(home: Path) -> None:
    """``stderr: cr1`` is C/(C - 1) for all; the default divides each cluster's square by 1 - its share."""
    ids = [0 if i < 6 else i for i in range(12)]
    found, wide = {}, {}
    for form in ("cr1", "cr2"):
        code, said = run(home, HALF, stderr=form)
        assert code == 0, said
        found[form] = estimates(home)["q_en"]
        extras = json.loads((home / "out/results.json").read_text())["evalcore"]
        assert extras["stderr"] == form
        assert f"|se:clustered({form})|clusters:7|" in found[form]["signature"]
        told = [one for one in extras["warnings"] if "q_en" in one]
        assert len(told) == 1
        assert "q_en: acc,none: the cluster of document 0 holds 6 of 12 documents: " in told[0]
        low, high = found[form]["ci"]
        wide[form] = high - low
        level = list_total_estimates(json.loads((home / "out/results.json").read_text()))["q_en", MetricKey("acc")]
        assert level.spread.df == found[form]["df"]
        scored = evalcore_here(home, "score", "out", "--cluster", HALF, "--stderr", form, "--json")
        assert scored.returncode == 0, scored.stderr
        assert json.loads(scored.stdout)["evalcore"]["estimates"]["q_en"]["acc,none"]["stderr"] == found[form]["stderr"]
    values = scores(home, "en")
    assert found["cr1"]["stderr"] == pytest.approx(by_hand([(values, ids)]), rel=1e-12)
    apart = np.array(values) - np.mean(values)
    squares = [(apart[np.array(ids) == one].sum() ** 2, ids.count(one) / 12) for one in set(ids)]
    assert found["cr2"]["stderr"] == pytest.approx(sqrt(sum(s / (1 - h) for s, h in squares)) / 12, rel=1e-12)
    assert wide["cr2"] > wide["cr1"]
    shares = [h for _, h in squares]
    a = [h**2 / (1 - h) for h in shares]
    expected = 1 / (sum(h**2 for h in shares) + sum(a) ** 2 - sum(one**2 for one in a))
    assert (found["cr1"]["df"], found["cr2"]["df"]) == (6.0, pytest.approx(expected, rel=1e-12))


def test_a_cluster_changes_no_value_and_clusters_of_one_no_error(home: Path) -> None:
    assert run(home)[0] == 0
    plain = estimates(home)
    assert run(home, "own")[0] == 0
    for name, row in estimates(home).items():
        assert [row[key] for key in ("value", "stderr", "ci")] == [
            plain[name][key] for key in ("value", "stderr", "ci")
        ]
    assert run(home, "passage")[0] == 0
    assert all(row["value"] == plain[name]["value"] for name, row in estimates(home).items())


def test_the_command_line_takes_a_field(home: Path) -> None:
    assert run(home, "passage")[0] == 0
    found = estimates(home)
    done = evalcore(
        home,
        "run",
        "--model",
        "dummy",
        "--tasks",
        "both",
        "--include_path",
        "tasks",
        "--cluster",
        "passage",
        "-o",
        "out",
    )
    assert done.returncode == 0, done.stderr
    assert estimates(home) == found


def test_a_run_goes_over_a_task(home: Path) -> None:
    write_task(home, "en", cluster="passage")
    assert run(home)[0] == 0
    own = estimates(home)
    assert "se:clustered" in str(own["q_en"]["signature"])
    assert "se:delta" in str(own["q_de"]["signature"])
    assert "se:clustered" in str(own["both"]["signature"])
    assert run(home, {"q_en": "own"})[0] == 0
    assert estimates(home)["q_en"]["stderr"] != own["q_en"]["stderr"]
    assert estimates(home)["q_de"] == own["q_de"]
    assert run(home, {"q_de": "own"})[0] == 0
    assert estimates(home)["q_en"] == own["q_en"]


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("gap", "expected an id in 'gap', got nothing (null); fill it in, or write a template"),
        ("{{gap}}", "got nothing (null)"),
        ("{{ 'p' ~ gap }}", "got nothing (null)"),
        ("some", "got nothing (null)"),
        ("nan", "got nothing (NaN)"),
        ("{{nan}}", "got nothing (NaN)"),
        ("blank", "got nothing (an empty text)"),
        ("{% if key != 2 %}{{key}}{% endif %}", "got nothing (an empty text)"),
        ("list", "expected a number or a text in 'list', got [0]"),
        ("{{nowhere}}", "'nowhere' is undefined; the document has the fields q, passage"),
    ],
)
def test_a_missing_id_names_the_document(home: Path, cluster: str, said: str) -> None:
    where = {"gap": 4, "nan": 5, "blank": 2, "key": 2, "some": 7}
    doc = next((at for field, at in where.items() if field in cluster), 0)
    code, stderr = run(home, cluster)
    assert code == 2
    assert said in stderr
    assert f"- at q_en doc {doc}" in stderr
    assert "Traceback" not in stderr
    assert not (home / "out/results.json").exists()


def test_documents_that_stand_alone_get_an_id_by_a_template(home: Path) -> None:
    assert run(home, "{{gap or own}}")[0] == 0
    assert run(home, "{% if gap is none %}{{own}}{% else %}{{gap}}{% endif %}")[0] == 0


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("only", "expected a field or a template, got 'only'; fields: q, passage, name"),
        ("pasage", "to choose by task, write cluster: {task: field}"),
        ({"q_fr": "passage"}, "unknown task in cluster 'q_fr'. Known: both, q_de, q_en"),
        ({"q_en": 3}, "cluster"),
        ("{% if", "expected a jinja2 template"),
    ],
)
def test_a_field_that_is_not_there_names_the_task_and_its_fields(home: Path, cluster: object, said: str) -> None:
    code, stderr = run(home, cluster)
    assert code == 2
    assert said in stderr
    assert "Traceback" not in stderr
    if cluster == "only":
        assert "- at q_de" in stderr
        assert run(home, {"q_en": "only"})[0] == 0


def test_one_cluster_has_no_error_and_says_why(home: Path) -> None:
    assert run(home, "{{'all'}}")[0] == 0
    found = estimates(home)["q_en"]
    assert (found["stderr"], found["ci"]) == (None, None)
    assert found["reason"] == "needs two clusters, got 1"


def test_the_linter_reads_templates_of_clusters(home: Path) -> None:
    write_task(home, "en", cluster="{{passage")
    done = evalcore(home, "tasks", "check", "q_en", "--include_path", "tasks")
    assert done.returncode != 0
    assert "cluster: expected a jinja2 template" in done.stdout + done.stderr
