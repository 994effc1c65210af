"""Small stand-ins for packages that lm-eval's task code imports and this environment may lack.

Both sides then call the same function: what is compared is how it is called, not what it computes.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace

import pytest


def install(patch: pytest.MonkeyPatch) -> None:
    """Put a stand-in wherever a package is missing; and never fetch or run code from elsewhere."""
    if importlib.util.find_spec("transformers") is None:
        metrics = _module(patch, "transformers.data.metrics.squad_metrics", compute_exact=exact, compute_f1=overlap)
        patch.setattr(sys.modules["transformers.data.metrics"], "squad_metrics", metrics, raising=False)
        for name in ("PreTrainedTokenizerBase", "PreTrainedModel"):  # datasets asks whether it pickles one
            patch.setattr(sys.modules["transformers"], name, type(name, (), {}), raising=False)
    if importlib.util.find_spec("langdetect") is None:
        _module(patch, "langdetect", detect=lambda text: "en", LangDetectException=ValueError)
    if importlib.util.find_spec("immutabledict") is None:
        _module(patch, "immutabledict", immutabledict=dict)
    import evaluate
    import nltk

    patch.setattr(nltk, "download", lambda *_, **__: True)
    patch.setattr(evaluate, "load", lambda name, *_, **__: METRICS[name])


def exact(gold: str, said: str) -> int:
    return int(gold.strip().lower() == said.strip().lower())


def overlap(gold: str, said: str) -> float:
    """F1 of the words."""
    golds, words = gold.lower().split(), said.lower().split()
    common = sum((Counter(golds) & Counter(words)).values())
    return 2 * common / (len(golds) + len(words)) if common else float(golds == words)


def passes(references: list[str], predictions: list[list[str]], k: list[int]) -> tuple[dict[str, float], None]:
    """The share of programs that claim to be right; none is run."""
    share = sum("# right" in one for tries in predictions for one in tries) / sum(map(len, predictions))
    return {f"pass@{each}": share for each in k}, None


def shared_words(predictions: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    found = [overlap(gold, said) for gold, said in zip(references, predictions, strict=True)]
    return {"rouge1": sum(found) / len(found)}


METRICS = {"code_eval": SimpleNamespace(compute=passes), "rouge": SimpleNamespace(compute=shared_words)}


def _module(patch: pytest.MonkeyPatch, name: str, **contents: object) -> ModuleType:
    parts = name.split(".")
    for n in range(1, len(parts) + 1):
        path = ".".join(parts[:n])
        if path not in sys.modules:
            module = ModuleType(path)
            module.__path__ = []
            module.__spec__ = importlib.util.spec_from_loader(path, None)
            patch.setitem(sys.modules, path, module)
            if n > 1:
                setattr(sys.modules[".".join(parts[: n - 1])], parts[n - 1], module)
    for key, value in contents.items():
        setattr(sys.modules[name], key, value)
    return sys.modules[name]
