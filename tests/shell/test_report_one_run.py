"""What a page draws of one run is what numpy, scikit-learn and the logs themselves say."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from evalcore import EvalError
from evalcore.core.aggregate.ratios import bin_confidences
from evalcore.logs import report
from evalcore.shell.cli import main
from evalcore.shell.cli.numbers.run import main as run_command
from evalcore.shell.output.report.bundle import bundle_modules, squeeze
from evalcore.shell.report.gathered_run import GatheredRun, gather_runs
from evalcore.shell.report.one_run.calibration_curve import draw_curve
from evalcore.shell.report.one_run.repeat_stability import measure_stability
from evalcore.shell.report.one_run.reply_facts import gather_reply_facts
from evalcore.shell.report.one_run.run_charts import draw_run
from evalcore.shell.report.one_run.score_shape import shape_scores
from evalcore.shell.report.one_run.what_if import prepare_what_if
from evalcore.shell.run.run import run
from tests.shell.test_report_overview import QUICKSTART, read_head


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "a"
    run(QUICKSTART, output_path=str(out))
    return out


@pytest.fixture(scope="module")
def gathered(folder: Path) -> GatheredRun:
    return gather_runs([folder], ["a"], ["A"], None, {})[0]


def read_samples(folder: Path, task: str) -> list[dict]:
    return [json.loads(line) for line in (folder / f"samples_{task}.jsonl").read_text("utf-8").splitlines()]


def draw_chances(seed: int, n: int = 4000) -> np.ndarray:
    generator = np.random.default_rng(seed)
    sure = generator.beta(4, 2, n)
    return np.column_stack([sure, generator.random(n) < sure**2])


@pytest.mark.parametrize("bins", [5, 10])
def test_bins_are_those_of_scikit_learn(bins: int) -> None:
    chances = draw_chances(1)
    found = bin_confidences(chances, bins, 0.95)
    right, sure = calibration_curve(chances[:, 1], chances[:, 0], n_bins=bins, strategy="uniform")
    np.testing.assert_allclose([one.accuracy for one in found], right, rtol=1e-12)
    np.testing.assert_allclose([one.confidence for one in found], sure, rtol=1e-12)
    assert sum(one.count for one in found) == len(chances)


def test_calibrated_models_stay_within_the_bars_as_often_as_they_say() -> None:
    """Nine in ten bins of calibrated models, and far fewer of one that is not."""
    inside, outside = [], []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        sure = generator.beta(4, 2, 1500)
        for power, into in ((1, inside), (2, outside)):
            chances = np.column_stack([sure, generator.random(len(sure)) < sure**power])
            found = bin_confidences(chances, 10, 0.9)
            into += [one.low <= one.accuracy <= one.high for one in found if one.count > 30]
    assert 0.87 < np.mean(inside) < 0.96
    assert np.mean(outside) < 0.5


def test_a_curve_has_the_error_of_its_bins() -> None:
    chances = draw_chances(2)
    curve = draw_curve(chances, 0.95)
    narrow = draw_curve(chances, 0.5)
    gaps = [one.count * abs(one.accuracy - one.confidence) for one in curve.bins]
    assert curve.value == pytest.approx(sum(gaps) / curve.n, abs=1e-12)
    assert curve.ci[0] <= curve.value <= curve.ci[1]
    assert 0 < curve.reference < curve.value
    assert narrow.ci[1] - narrow.ci[0] < curve.ci[1] - curve.ci[0]
    assert curve.recipe.startswith("metric:ece|agg:ece|se:")


def test_confidences_are_those_of_the_logged_likelihoods(folder: Path, gathered: GatheredRun) -> None:
    found = gather_reply_facts(gathered)["quickstart_nature"].chances
    rows = read_samples(folder, "quickstart_nature")
    logs = np.array([[float(one[0][0]) for one in row["resps"]] for row in rows])
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[:, 0], shares.max(axis=1), rtol=1e-12)
    assert found[:, 1].tolist() == [row["acc"] for row in rows]


def test_repeats_are_those_of_the_log(folder: Path, gathered: GatheredRun) -> None:
    [(key, scores)] = gather_reply_facts(gathered)["quickstart_simple_questions"].repeats.items()
    assert str(key) == "exact_match,first-word"
    rows = read_samples(folder, "quickstart_simple_questions")
    assert scores.mean(axis=1).tolist() == [row["exact_match@mean"] for row in rows]
    stable = measure_stability(scores)
    assert stable.agree == sum(row["exact_match@mean"] in (0, 1) for row in rows)
    assert stable.repeats == (4, 4)


@pytest.mark.parametrize("seed", range(4))
def test_histograms_are_those_of_numpy(seed: int) -> None:
    values = np.random.default_rng(seed).normal(seed, 3, 500)
    found = shape_scores(np.append(values, [np.inf, np.nan]))
    counts, edges = np.histogram(values, 20)
    assert (found.counts, found.edges, found.beyond) == (tuple(counts), pytest.approx(tuple(edges)), 2)


def test_few_values_are_counted_one_by_one() -> None:
    found = shape_scores(np.array([0.5, 0.25, 0.5]))
    assert (found.values, found.counts) == ((0.25, 0.5), (1, 2))
    assert shape_scores(np.array([np.nan])) is None


def test_every_distribution_counts_every_scored_document(gathered: GatheredRun) -> None:
    tasks = {one.name for one in gathered.report.tasks}
    drawn, chunks = draw_run(gathered, tasks, samples=True, redact=False)
    assert len(drawn["shapes"]) == sum(len(one.estimates) for one in gathered.report.tasks)
    for one in drawn["shapes"]:
        estimate = gathered.report.task(one["task"])[f"{one['metric']},{one['filter']}"]
        assert sum(one["counts"]) == one["n"] == estimate.counts.scored
    assert len(chunks) == len(tasks)


@pytest.mark.parametrize(("way", "counts"), [("higher", True), ("lower", False)])
def test_failures_count_as_0_only_where_that_is_no_reward(tmp_path: Path, way: str, counts: bool) -> None:
    log = tmp_path / "a.csv"
    log.write_text("id,error\n1,3.5\n2,\n3,1\n", "utf-8")
    keys = {"id": "id", "score": "error", f"{way}_is_better": "error"}
    [one] = gather_runs([log], ["a"], ["A"], None, keys)
    what_if = prepare_what_if(one, samples=False)
    [task] = what_if.head["tasks"].values()
    [number] = task["numbers"].values()
    assert (number["value"], number["lost"], number["zero"]) == (2.25, 1, counts)


def test_a_run_writes_its_page_if_asked(folder: Path, tmp_path: Path, capsys) -> None:
    by_key = run(QUICKSTART, output_path=str(tmp_path / "key"), report=True)
    assert by_key.files[-1] == "report.html"
    page = tmp_path / "key" / "report.html"
    assert read_head(page)["title"] == "key"
    again = report(tmp_path / "key", output=tmp_path / "again.html")
    assert again.path.read_bytes() == page.read_bytes()
    where = tmp_path / "elsewhere.html"
    done = run_command([str(QUICKSTART), "--output_path", str(tmp_path / "flag"), "--report", str(where), "--quiet"])
    assert (done, where.is_file(), (tmp_path / "flag" / "report.html").exists()) == (0, True, False)
    assert run_command([str(QUICKSTART), "--output_path", str(tmp_path / "flag"), "--report", "--quiet"]) == 0
    assert (tmp_path / "flag" / "report.html").is_file()
    kept = [(tmp_path / name / "results.json").read_bytes() for name in ("key", "flag")]
    assert kept == [(folder / "results.json").read_bytes()] * 2  # a page changes nothing else
    assert "report" not in (tmp_path / "key" / "config.yaml").read_text("utf-8")


def test_a_page_replaces_pages_alone(folder: Path, tmp_path: Path, capsys) -> None:
    mine = tmp_path / "notes.md"
    mine.write_text("# Notes")
    for own in (mine, folder / "results.json", folder / "samples_quickstart_nature.jsonl"):
        before = own.read_bytes()
        assert main(["report", str(folder), "-o", str(own)]) == 2
        assert "a file of your own, no page" in capsys.readouterr().err
        assert own.read_bytes() == before
    for _ in range(2):
        assert main(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    assert "in place of what was there" in capsys.readouterr().out


def test_a_run_asks_nothing_if_its_page_would_replace_a_file(tmp_path: Path, capsys) -> None:
    mine = tmp_path / "questions.csv"
    mine.write_text("a,b")
    assert main(["run", str(QUICKSTART), "-o", str(tmp_path / "run"), "--report", str(mine)]) == 2
    assert "a file of your own, no page" in capsys.readouterr().err
    assert mine.read_text() == "a,b"
    assert not (tmp_path / "run").exists()


def test_a_run_without_its_own_files_says_what_its_results_tell(folder: Path, tmp_path: Path) -> None:
    bare = copytree(folder, tmp_path / "bare")
    (bare / "config.yaml").unlink()
    (bare / "run.json").unlink()
    shown = read_head(report(bare, output=tmp_path / "page.html").path)["runs"][0]
    assert "made from what its results say" in shown["reproduce"]["note"]
    assert shown["model"] == "replay (path=recorded.jsonl)"
    assert 'model: "replay"' in shown["reproduce"]["config"]
    assert shown["usage"] is None
    assert shown["endings"] == {}


def test_a_run_that_was_scored_says_the_command_that_scores_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my answers.csv").write_text("id,reply,gold,topic\n1,a,a,x\n2,b,a,y\n3,c,c,x\n", "utf-8")
    words = ["--answer=reply", "--gold=gold", "--id=id", "--metric=exact_match", "--group-by", "topic", "--limit", "2"]
    assert main(["score", "my answers.csv", *words, "-o", "scored"]) == 0
    made = read_head(report("scored", output="page.html").path)["runs"][0]["reproduce"]
    assert "config" not in made
    assert main([*shlex.split(made["command"])[1:], "-o", "again"]) == 0
    assert Path("again/results.json").read_bytes() == Path("scored/results.json").read_bytes()
    assert main(["score", "my answers.csv", *words, "--partials", "parts", "--partial_only"]) == 0
    assert main(["merge", "parts", "-o", "merged"]) == 0
    merged = read_head(report("merged", output="page.html").path)["runs"][0]["reproduce"]
    assert merged["command"] == "evalcore merge parts"


def test_no_model_is_made_up_for_answers_of_other_programs(folder: Path, tmp_path: Path) -> None:
    bare = copytree(folder, tmp_path / "of another")
    (bare / "config.yaml").unlink()
    (bare / "run.json").unlink()
    results = json.loads((bare / "results.json").read_text("utf-8"))
    results["config"]["model"] = "openai/gpt-5"
    (bare / "results.json").write_text(json.dumps(results))
    made = read_head(report(bare, output=tmp_path / "page.html").path)["runs"][0]["reproduce"]
    assert "config" not in made
    assert main([*shlex.split(made["command"])[1:], "-o", str(tmp_path / "again")]) == 0


def test_a_file_is_not_said_to_be_of_another_run_beside_it(folder: Path, tmp_path: Path) -> None:
    whole = copytree(folder, tmp_path / "whole")
    inside = read_head(report(whole / "samples_quickstart_nature.jsonl", output=tmp_path / "p.html").path)["runs"][0]
    assert "model: replay" in inside["reproduce"]["config"]
    log = tmp_path / "a.csv"
    log.write_text("id,said\n1,0.5\n2,1\n3,0\n", "utf-8")
    for name in ("config.yaml", "run.json"):
        (tmp_path / name).write_bytes((whole / name).read_bytes())
    shown = read_head(report(log, output=tmp_path / "p.html", id="id", score=["said"]).path)["runs"][0]
    assert (shown["usage"], shown["endings"], shown["reproduce"]["versions"]) == (None, {}, "")
    assert not {"config", "model_identity"} & {*shown["reproduce"]}
    words = shlex.split(shown["reproduce"]["command"])
    assert words == ["evalcore", "score", str(log), "--id", "id", "--score", "said"]
    assert main([*words[1:], "-o", str(tmp_path / "again")]) == 0


@pytest.mark.parametrize("config", [None, "model: hf\napi_key: CANARY\n", "model: [CANARY"])
def test_credentials_that_others_left_in_a_run_are_not_shown(config: str | None, folder: Path, tmp_path: Path) -> None:
    bare = copytree(folder, tmp_path / "bare")
    (bare / "config.yaml").unlink()
    if config is not None:
        (bare / "config.yaml").write_text(config)
    results = json.loads((bare / "results.json").read_text("utf-8"))
    results["config"] |= {"model_args": "pretrained=m,token=CANARY", "gen_kwargs": {"api_key": "CANARY"}}
    (bare / "results.json").write_text(json.dumps(results))
    page = report(bare, output=tmp_path / "page.html").path
    assert "[redacted]" in read_head(page)["runs"][0]["reproduce"]["config"]
    assert "CANARY" not in page.read_text("utf-8")


def test_modules_are_joined_in_one_scope(monkeypatch) -> None:
    texts = {
        "a.js": "const own = 1;\nexport const a = own;\n",
        "b.js": 'import { a } from "./a.js";\nconst other = (x) => x + a;\nexport const b = other(2);\n',
        "c.js": "let own = 2;\n",
    }
    monkeypatch.setattr("evalcore.shell.output.report.bundle.read_asset", texts.__getitem__)
    code = "const own=1;const a=own;const other=x=>x+a;const b=other(2);"
    assert bundle_modules(["a.js", "b.js"]) == f'(() => {{"use strict";\n{code}}})();\n'
    with pytest.raises(EvalError, match=r"expected a\.js before b\.js, which imports it"):
        bundle_modules(["b.js", "a.js"])
    with pytest.raises(EvalError, match=r"expected other names in c\.js: a\.js has own"):
        bundle_modules(["a.js", "c.js"])


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("a + +b - -c + b++", "a+ +b- -c+b++"),
        ('x = "a  =  b" + `c = ${ d = 1 } e`', 'x="a  =  b"+`c = ${ d=1} e`'),
        ("return a / b / c", "return a/b/c"),
        ("f(\na,\n[b,],\n);\nlist\n.map(c);\nif (d) {\ne;\n}\n[g] = h", "f(a,[b]);list.map(c);if(d){e}\n[g]=h"),
        ("x.match(/ [/ ] = /g) ? y : { z }", "x.match(/ [/ ] = /g)?y:{z}"),
    ],
)
def test_only_spaces_of_code_are_left_out(code: str, wanted: str) -> None:
    assert squeeze(code) == wanted
