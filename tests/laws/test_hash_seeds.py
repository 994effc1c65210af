"""The same bits in every process: hash seed, order of documents and number of shards leave no trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parent.parent / "src"


def scored(hash_seed, *arguments):
    """What score_bytes.py prints in a process of its own."""
    paths = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, str(HERE / "score_bytes.py"), *map(str, arguments)],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": paths},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout


@pytest.fixture(scope="module")
def plain():
    return scored(0)


@pytest.mark.parametrize(
    ("hash_seed", "arguments"),
    [(1, ()), (0, (5,)), (1, (6, 7)), (2, (-1, 7)), (3, (7, 40))],
    ids=["hash seed", "shuffled", "seven shards", "shards in order", "a shard per document or so"],
)
def test_result_files_are_identical(plain, hash_seed, arguments):
    """Every way of computing the result file gives the same bytes."""
    other = scored(hash_seed, *arguments)
    if other != plain:
        assert json.loads(other) == json.loads(plain)
    assert other == plain


def test_the_set_holds_what_it_should(plain):
    """The file has numbers for every task and group, and documents that failed."""
    file = json.loads(plain)
    assert {"mc_a", "gen_b", "ll", "roll_a", "own", "outer", "inner", "texts", "rolls"} <= set(file["results"])
    estimates = file["evalcore"]["estimates"]
    assert estimates["outer"]["acc,none"]["value"] > 0
    assert any(one["n_failed"] for one in estimates["mc_a"].values())
    assert len(file["samples"]["gen_a"]) >= 100
