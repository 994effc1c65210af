"""The first half of lm-eval's ``evaluate``: requests built by its own code and put to the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalcore.adapters.lm_eval.host import LmInstance, LmModel, LmTask, import_lm_eval
from evalcore.core.lm_eval.result_file import BYPASS
from evalcore.core.records.errors import EvalError


def refuse_unfit(lm: LmModel, tasks: Mapping[str, LmTask], *, log_samples: bool, run_unsafe_code: bool) -> None:
    """Refuse what lm-eval refuses before it asks anything."""
    for name, task in tasks.items():
        if getattr(task, "UNSAFE_CODE", False) and not run_unsafe_code:
            raise EvalError(f"task {name!r} runs code that a model wrote; to allow it: confirm_run_unsafe_code=True")
        if getattr(task, "MULTIMODAL", False) and not getattr(lm, "MULTIMODAL", False):
            raise EvalError(f"task {name!r} asks about images or sounds, which this model does not take")
        if not log_samples and BYPASS in getattr(task, "_metric_fn_list", {}):
            raise EvalError(f"task {name!r} only records replies (metric bypass); pass log_samples=True")


SEED = 1234
"""The seed of few-shot draws in ``simple_evaluate`` (lm_eval/defaults.py)."""


def seed_shots(tasks: Mapping[str, LmTask], seed: int | None) -> None:
    """Seed the few-shot draws of every task, by its own method; None leaves their generators as they are."""
    for task in tasks.values() if seed is not None else ():
        task.set_fewshot_seed(seed)


def build_requests(
    lm: LmModel,
    tasks: Mapping[str, LmTask],
    limit: float | None,
    samples: Mapping[str, Sequence[int]] | None,
    *,
    write_out: bool,
    apply_chat_template: bool | str,
    **named: object,
) -> None:
    """Build every task's requests on this rank. A limit below 1 is a share of each task's own documents."""
    utils = import_lm_eval("evaluator_utils")
    for name, task in tasks.items():
        task.build_all_requests(
            limit=utils.get_sample_size(task, limit),
            samples=None if samples is None else samples.get(name),
            rank=lm.rank,
            world_size=lm.world_size,
            apply_chat_template=bool(apply_chat_template),
            chat_template=getattr(lm, "apply_chat_template", None) if apply_chat_template else None,
            tokenizer_name=getattr(lm, "tokenizer_name", "") if apply_chat_template else "",
            **named,
        )
        if write_out:
            utils.print_writeout(task)


def ask_model(lm: LmModel, tasks: Mapping[str, LmTask]) -> None:
    """Ask each request as often as it repeats, by kind; replies go into the instances, where lm-eval puts them.

    Of several ranks each asks as many requests as the longest (models split over processes wait for each other);
    replies to that padding are dropped here.
    """
    by_kind: dict[str, list[LmInstance]] = {}
    for task in tasks.values():
        for one in task.instances or ():
            by_kind.setdefault(one.request_type, []).append(one)
    counts = {kind: sum(one.repeats or 1 for one in asked) for kind, asked in by_kind.items()}
    padding = _count_padding(lm, counts)
    for kind, asked in by_kind.items():
        cloned = [one for one in asked for _ in range(one.repeats or 1)]
        padded = cloned + [cloned[-1]] * padding.get(kind, 0)
        replies: Sequence[object] = getattr(lm, kind)(padded)
        if len(replies) != len(padded):
            raise EvalError(f"expected {len(padded)} replies to {kind} requests, got {len(replies)}")
        for one, reply in zip(cloned, replies[: len(cloned)], strict=True):
            one.resps.append(reply)
        if lm.world_size > 1:
            lm.barrier()


def _count_padding(lm: LmModel, counts: Mapping[str, int]) -> Mapping[str, int]:
    """Count for each kind how many requests this rank lacks compared to the one with the most."""
    if lm.world_size == 1:
        return {}
    mine: Sequence[object] = ()
    for rank in range(lm.world_size):  # all ranks need the counts, and lm-eval's models gather on one at a time
        mine = lm.gather_object(dict(counts), dst=rank) or mine
    known = [one for one in mine if isinstance(one, dict)]
    return {kind: max(one.get(kind, 0) for one in known) - count for kind, count in counts.items()}
