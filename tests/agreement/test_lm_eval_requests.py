"""lm-eval's own task files on documents of ours: the same requests, the same numbers, the same configs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

pytest.importorskip("lm_eval")

from lm_eval_docs import CASES
from lm_eval_docs.fake import chat_template
from lm_eval_docs.stand_ins import install
from requests_side import FOLDER, compare, lm_config, missing

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("_stand_ins"),
]
SLOW = {"truthfulqa_gen": 3, "gsm8k_cot_self_consistency": 4, "humaneval_64": 4}
"""Tasks whose scoring takes long, and how many documents they get."""
SYSTEM = "Be brief, naïve reader."
CHAT = [
    "gsm8k",
    "gsm8k_cot",
    "bbh_cot_fewshot_boolean_expressions",
    "arc_easy",
    "arc_challenge_chat",
    "hellaswag",
    "winogrande",
    "xwinograd_en",
    "mmlu_anatomy",
    "mmlu_pro_biology",
    "humaneval_instruct",
    "mbpp_instruct",
    "lambada_openai",
    "wikitext",
    "drop",
    "triviaqa",
    "copa",
    "ifeval",
    "ours_mutual_info",
    "ours_gen_prefix",
    "ours_prefixed_choice",
    "ours_own_shots",
]
PARTS = [
    "gsm8k",
    "gsm_plus",
    "hellaswag",
    "mmlu_anatomy",
    "lambada_openai",
    "wikitext",
    "paws_de",
    "triviaqa",
    "belebele_deu_Latn",
    "cb",
]
GENERATED = [
    "gsm8k",
    "triviaqa",
    "ifeval",
    "mmlu_anatomy_generative",
    "bigbench_anachronisms_generate_until",
    "ours_own_shots",
]


@pytest.fixture(scope="module")
def _stand_ins() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        yield


@pytest.fixture
def patch(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    return monkeypatch


def skip_if_missing(name: str) -> None:
    if reason := missing(name):
        pytest.skip(reason)


QUICK = [name for name in CASES if name not in SLOW][::6]
"""Every sixth by default, the others among the slow tests."""


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_requests_numbers_and_config(name: str, patch: pytest.MonkeyPatch) -> None:
    skip_if_missing(name)
    runs = [{"num_fewshot": shots, "limit": SLOW.get(name)} for shots in (0, 1, 5)]
    found = [compare(name, patch, theirs=run, ours=run) for run in runs]
    assert found[0] is not None
    assert any(value for each in found if each for key, value in each["results"][name].items() if "," in key)


@pytest.mark.parametrize("multiturn", [False, True], ids=["one turn", "turns"])
@pytest.mark.parametrize("name", CHAT)
def test_chat(name: str, multiturn: bool, patch: pytest.MonkeyPatch) -> None:
    skip_if_missing(name)
    said = {"num_fewshot": 2, "system_instruction": SYSTEM}
    theirs = {**said, "apply_chat_template": True, "fewshot_as_multiturn": multiturn}
    ours = {**said, "chat": chat_template, "multiturn": multiturn}
    assert compare(name, patch, theirs=theirs, ours=ours) is not None


@pytest.mark.parametrize("name", CHAT[:10])
def test_a_system_instruction_without_chat(name: str, patch: pytest.MonkeyPatch) -> None:
    said = {"num_fewshot": 1, "system_instruction": SYSTEM}
    assert compare(name, patch, theirs=said, ours=said) is not None


@pytest.mark.parametrize("limit", [3, 0.25, 100])
@pytest.mark.parametrize("name", PARTS)
def test_limit(name: str, limit: float, patch: pytest.MonkeyPatch) -> None:
    said = {"num_fewshot": 2, "limit": limit}
    assert compare(name, patch, theirs=said, ours=said) is not None


@pytest.mark.parametrize("name", PARTS)
def test_samples(name: str, patch: pytest.MonkeyPatch) -> None:
    chosen = [7, 1, 4]
    theirs, ours = {"samples": {name: chosen}}, {"samples": tuple(chosen)}
    assert compare(name, patch, theirs=theirs, ours=ours) is not None


@pytest.mark.parametrize("seed", [0, 7])
def test_another_seed(seed: int, patch: pytest.MonkeyPatch) -> None:
    theirs, ours = {"num_fewshot": 3, "fewshot_random_seed": seed}, {"num_fewshot": 3, "seed": seed}
    assert compare("gsm8k", patch, theirs=theirs, ours=ours) is not None


@pytest.mark.parametrize("name", GENERATED)
def test_generation_options(name: str, patch: pytest.MonkeyPatch) -> None:
    options = {"temperature": 0.7, "do_sample": True, "max_gen_toks": 9, "until": ["x", "\n\n"]}
    said = {"gen_kwargs": options}
    assert compare(name, patch, theirs=said, ours=said) is not None


@pytest.mark.parametrize("name", GENERATED)
def test_predict_only(name: str, patch: pytest.MonkeyPatch) -> None:
    said = {"predict_only": True}
    assert compare(name, patch, theirs=said, ours=said) is not None


@pytest.mark.parametrize("name", ["arc_easy", "lambada_openai", "wikitext", "truthfulqa_mc2"])
def test_predict_only_asks_the_same_of_likelihoods(name: str, patch: pytest.MonkeyPatch) -> None:
    """lm-eval then reports nothing at all, about no documents."""
    said = {"predict_only": True}
    assert compare(name, patch, theirs=said, ours=said, numbers=False) is not None


def test_at_least_sixty_of_lm_evals_tasks_really_run() -> None:
    """A task is skipped only where lm-eval cannot import its code, so the rest were compared above."""
    shipped = [name for name, case in CASES.items() if "ours_" not in name and not missing(name)]
    kinds = Counter(lm_config(FOLDER / CASES[name].path).get("output_type", "generate_until") for name in shipped)
    assert len(shipped) >= 60
    assert set(kinds) == {"generate_until", "multiple_choice", "loglikelihood", "loglikelihood_rolling"}
    assert min(kinds.values()) >= 3
