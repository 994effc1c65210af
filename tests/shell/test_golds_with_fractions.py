"""One gold of 1.5 among indices: a column of floats, in which only that one is no index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from small_tasks import evalcore

COUNT = 6
TASK = {
    "task": "halves",
    "output_type": "multiple_choice",
    "doc_to_text": "{{q}}",
    "doc_to_choice": ["a", "b"],
    "metric_list": [{"metric": "acc"}],
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "docs.jsonl"}},
    "test_split": "test",
}


@pytest.mark.parametrize("target", ["label", pytest.param("{{label}}", marks=pytest.mark.slow)])
def test_only_its_own_document_has_no_score(tmp_path: Path, target: str) -> None:
    def run(odd: object) -> dict[str, object]:
        rows = [{"q": f"q{n}", "label": odd if n == 3 else n % 2} for n in range(COUNT)]
        (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (tmp_path / "halves.yaml").write_text(yaml.safe_dump({**TASK, "doc_to_target": target}))
        done = evalcore(
            tmp_path, "run", "--model", "dummy", "--tasks", "halves.yaml", "--output_path", "out", "--log_samples"
        )
        assert done.returncode == (1 if odd == 1.5 else 0), done.stderr
        again = evalcore(tmp_path, "score", "out", "--json")
        found = json.loads((tmp_path / "out" / "results.json").read_text())
        assert json.loads(again.stdout)["results"]["halves"]["acc,none"] == found["results"]["halves"]["acc,none"]
        lines = (tmp_path / "out" / "samples_halves.jsonl").read_text().splitlines()
        return {row["doc_id"]: row.get("acc") for row in map(json.loads, lines)}

    whole, broken = run(1), run(1.5)
    assert broken == {**whole, 3: None}
    assert None not in whole.values()
