"""BENCHES: what there is to measure. A module's keyword parameters are its options on the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from shutil import which

from msgspec import Struct

from bench.measure import ROOT, run_process
from bench.rows import Row, Section

LM_EVAL = "lm_eval"


class Bench(Struct, frozen=True):
    """A module with ``measure_rows``: what it says, what it needs, and whether it is left out unless asked for.

    ``peers`` are modules, ``programs`` commands; ``extra`` is the extra of evalcore that brings the peers. A ``script``
    has no rows: what it prints is its section.
    """

    module: str
    says: str
    peers: tuple[str, ...] = ()
    extra: str = "dev"
    programs: tuple[str, ...] = ()
    long: bool = False
    script: bool = False

    def load(self) -> Callable[..., Iterator[Row | Section]]:
        if self.script:
            return partial(run_script, ROOT.joinpath("bench", *self.module.split(".")).with_suffix(".py"))
        found: Callable[..., Iterator[Row | Section]] = import_module(f"bench.{self.module}").measure_rows
        return found

    def list_options(self) -> dict[str, object]:
        """Its options and their defaults."""
        return {name: one.default for name, one in signature(self.load()).parameters.items()}

    def find_missing(self) -> str:
        """What has to be installed before it can run, and how."""
        peers = [name for name in self.peers if find_spec(name) is None]
        programs = [name for name in self.programs if which(name) is None]
        told = [f'needs {", ".join(peers)}: pip install "evalcore[{self.extra}]"'] if peers else []
        return "; ".join(told + [f"needs the program {name}" for name in programs])


def run_script(path: Path, *, given: str = "") -> Iterator[Section]:
    """Run a script with the arguments given."""
    done = run_process([sys.executable, str(path), *given.split()])
    yield Section("", "", f"```\n{done.output.rstrip()}\n```")


BENCHES: dict[str, Bench] = {
    "startup": Bench("before.startup", "Imports beside numpy's, and commands that only print, in fresh processes."),
    "index": Bench(
        "before.index",
        "The index of lm-eval's task library, cold and from the cache, in fresh processes; wholes have their imports.",
        (LM_EVAL,),
    ),
    "prompts": Bench(
        "before.prompts",
        "Requests made from documents and templates. lm-eval compiles a template whenever it renders one; "
        "both make the same prompts.",
        (LM_EVAL, "datasets"),
    ),
    "hf": Bench(
        "during.hf",
        "A model of transformers: the same requests, weights, threads, dtype and batch size as lm-eval's HFLM, "
        "its `logits_cache` on, by the clock. Tokens are counted on the model's forward, padding among them.",
        ("torch", "transformers", LM_EVAL),
        "transformers",
        long=True,
    ),
    "scoring": Bench(
        "after.scoring",
        "From the last reply to the numbers, as lm-eval's `evaluate()` does it by default, and without its sample log.",
        (LM_EVAL, "datasets"),
    ),
    "instructions": Bench(
        "after.instructions",
        "Instructions a document (`valgrind --tool=callgrind`, differences of sizes): scoring, and closing columns.",
        programs=("valgrind",),
        long=True,
    ),
    "aggregation": Bench(
        "after.aggregation",
        "A column closed to value, error and interval, by kind; the time a document at the largest size, "
        "and how costs grow.",
    ),
    "errors": Bench(
        "after.errors",
        "Standard errors: the closed form, and lm-eval's own resamples drawn again with the same bits, "
        "beside lm-eval's 100,000 draws (100 of a corpus, counting included).",
        (LM_EVAL, "sacrebleu", "sklearn"),
    ),
    "compare": Bench(
        "after.compare",
        "Tests of paired differences without draws, beside 10,000 draws; times of a million pairs by draws are "
        "multiplied from fewer.",
        ("scipy",),
    ),
    "text": Bench(
        "after.text",
        "TER and ROUGE of texts of 20, 200 and 1,000 words, beside sacrebleu and rouge-score, to the same bits.",
        ("sacrebleu", "rouge_score"),
        "text",
    ),
    "reward": Bench("after.reward", "One reward, alone, in a batch, and as a task of its own."),
    "verifiers": Bench(
        "after.verifiers",
        "A call of a verifier through its pool, by the clock; the floor is the direct call, the peer a pool of the "
        "standard library, which has no deadlines.",
    ),
    "whole_run": Bench(
        "scale.whole_run",
        "A whole run on recorded answers, samples written, on one core. The floor reads documents and answers, draws, "
        "renders and hashes prompts, and encodes sample rows.",
        (LM_EVAL, "datasets"),
    ),
    "durable": Bench(
        "scale.durable",
        "Replies written so that they survive a crash, by the clock: those in flight together share a sync.",
    ),
    "rescoring": Bench(
        "scale.rescoring",
        "A sample log scored again by `evalcore score`, in a process of its own; the floor is decoding its lines "
        "with msgspec.",
    ),
    "page": Bench(
        "scale.large_page",
        "The page of 100,000 samples in Chromium, by the clock, from a keystroke to the rows that it leaves: the "
        "middle and the longest of a phrase typed three times, once every sample can be searched. Others use the "
        "machine, too, so this is the quietest of several runs.",
        ("playwright",),
        programs=("chromium",),
        long=True,
    ),
    "log_commands": Bench(
        "scale.log_commands",
        "Commands that read a log of short answers; the floor is `evalcore score` on it.",
    ),
    "engines": Bench(
        "scale.engines",
        "A log scored by each engine, by the clock, beside one process; a cluster of Ray is there before.",
        long=True,
    ),
    "growth": Bench(
        "scale.growth",
        "Documents scored as they stream by, then closed, from a thousand to ten million, each size in a process of "
        "its own; exponents are fitted from 10,000 on.",
        long=True,
    ),
    "huge": Bench(
        "scale.huge",
        "Documents scored and tallied as they stream by, to a hundred million, each size in a process of its own.",
        long=True,
    ),
    "cluster": Bench(
        "scale.cluster",
        "A simulation: 10^10 documents on 1,000 cores, by the size of a unit of work. Speeds are log-normal (spread "
        ".5), a core is lost once a day and noticed after 30 s, each reads 100 MB a second, and a coordinator gives "
        "out 1,000 units a second. The floor is all cores busy until the end.",
    ),
    "coverage": Bench(
        "simulations.coverage", "How often intervals hold the truth, by kind of number.", (LM_EVAL, "scipy"), long=True
    ),
    "significance": Bench(
        "simulations.significance",
        "How often equal runs are called different, and a better one is found.",
        ("scipy",),
        long=True,
    ),
    "promises": Bench("simulations.promises", "What gates and plans promise, and keep.", ("scipy",), long=True),
}
