"""One rank of a job: scores every other document, one of them on both ranks, and gathers. Run by test_hosts_live.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evalcore import GENERATE_UNTIL, Answer, Failure, Generate, Instance, Sample, Scored, Task, score_task
from evalcore.core.records.frozen_dict import thaw_dict
from evalcore.scale import gather_partials
from evalcore.shell.run.run_result import RunResult

COUNT = 41


def score_some(places: list[int]) -> Scored:
    """Score documents; every seventh has no answer."""
    said = (Failure("lost") if at % 7 == 6 else str(at % 5) for at in places)
    answers = [Answer(Instance("sums", at, 0, Generate("?")), (one,)) for at, one in zip(places, said, strict=True)]
    return score_task(Task("sums", GENERATE_UNTIL), [Sample(at, "3", cluster=at // 4) for at in places], answers)


def main(rank: int, world: int, folder: Path) -> None:
    import torch.distributed

    store = f"file://{folder / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    places = [*range(rank, COUNT, world), *([0] if rank else [])]  # as a sampler pads the last batch
    found = gather_partials(score_some(places))
    told = json.dumps(thaw_dict(found.results)) if isinstance(found, RunResult) else json.dumps(dict(found))
    (folder / f"rank-{rank}.json").write_text(told)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
