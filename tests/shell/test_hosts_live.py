"""Ray Data, Spark and torch.distributed themselves: the bytes of ``score`` on the same rows, or of one process."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest

import evalcore
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.scale import ScorePartial, gather_partials, merge_partials
from evalcore.shell.run.run_result import RunResult

INSTALL = "pip install 'ray[data]==2.60.0' pyspark==4.3.0 torch==2.13.0"

pytestmark = pytest.mark.hosts

ERROR = "__inference_error__"
KEYS = {
    "answer": "generated_text",
    "gold": "gold",
    "id": "n",
    "metric": "exact_match",
    "filter": 'regex={"regex_pattern": "is ([0-9]+)"}',
    "cluster": "page",
}
ROWS = [
    {"n": f"q{at}", "generated_text": f"it is {at % 7}", "gold": str(at % 3), "page": at // 5, ERROR: ""}
    for at in range(1000)
]
for one in ROWS[::40]:
    one |= {"generated_text": None, ERROR: "out of memory"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "sums.jsonl"
    made.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return made


@pytest.fixture
def want(path: Path) -> str:
    return text(evalcore.score(path, error=ERROR, **KEYS))


def text(result: RunResult) -> str:
    return json.dumps(thaw_dict(result.results))


@pytest.fixture(scope="module")
def data() -> Iterator[object]:
    """Ray Data on a cluster of its own."""
    ray = pytest.importorskip("ray", reason=f"Ray is not installed: {INSTALL}")
    pytest.importorskip("ray.data", reason=f"Ray Data is not installed: {INSTALL}")
    ray.init(address="local", num_cpus=2, include_dashboard=False, logging_level="error")
    yield ray.data
    ray.shutdown()


def test_ray_data(data, want):
    """As a function and as a class; blocks of any size, some rows in two of them."""
    table = pyarrow.Table.from_pylist(ROWS)
    blocks = [table.slice(at, 130) for at in range(0, 1000, 100)]
    dataset = data.from_arrow(blocks)
    scored = dataset.map_batches(ScorePartial(name="sums", **KEYS), batch_format="pyarrow", batch_size=None)
    assert text(merge_partials(scored)) == want
    assert scored.count() == len(blocks)
    given = {"name": "sums", **KEYS}
    scored = dataset.map_batches(
        ScorePartial, fn_constructor_kwargs=given, compute=data.ActorPoolStrategy(size=2), batch_format="pyarrow"
    )
    assert text(merge_partials(scored)) == want
    assert sum(row["failed"] for row in scored.iter_rows()) >= 25


def test_ray_data_names_a_bad_row(data):
    rows = [{"n": at, "reply": {"text": "4"} if at == 7 else None, "gold": "4"} for at in range(10)]
    score = ScorePartial(name="sums", metric="exact_match", answer="reply", gold="gold", id="n")
    scored = data.from_arrow(pyarrow.Table.from_pylist(rows)).map_batches(score, batch_format="pyarrow")
    with pytest.raises(Exception, match="under 'reply' - at sums n 7"):
        merge_partials(scored)


def test_spark(path, want, monkeypatch):
    """Spark's mapInArrow, in partitions and batches of its own."""
    sql = pytest.importorskip("pyspark.sql", reason=f"Spark is not installed: {INSTALL}")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    small = ("spark.sql.execution.arrow.maxRecordsPerBatch", "70")
    build = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(*small)
    session = build.getOrCreate()
    try:
        frame = session.read.json(str(path)).repartition(3)
        score = ScorePartial(name="sums", **KEYS)
        scored = frame.mapInArrow(score.each, "partial binary, documents long, failed long")
        assert text(merge_partials(scored)) == want
    finally:
        session.stop()


def test_two_ranks(tmp_path):
    """Two processes over gloo; the first has all numbers, the second an empty mapping."""
    pytest.importorskip("torch", reason=f"torch is not installed: {INSTALL}")
    import rank_process

    script = [sys.executable, rank_process.__file__]
    ranks = [subprocess.Popen([*script, str(rank), "2", str(tmp_path)]) for rank in range(2)]
    assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    whole = gather_partials(rank_process.score_some(list(range(rank_process.COUNT))))
    assert isinstance(whole, RunResult)
    assert (tmp_path / "rank-0.json").read_text() == text(whole)
    assert json.loads((tmp_path / "rank-1.json").read_text()) == {}
