"""The embedded model without a model: tokens, blocks, sampling, chat templates, arguments."""

from __future__ import annotations

import sys
from math import isclose, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.core.records.errors import EvalError
from evalcore.shell.models.chat import compile_chat
from evalcore.shell.models.decode import (
    Decoding,
    choose_token,
    cut_text,
    log_softmax,
    read_decoding,
    score_rows,
    warp_logits,
)
from evalcore.shell.models.llama.backend import find_weights, open_llama, read_settings
from evalcore.shell.models.llama.tokens import count_shared, plan_context, plan_continuation
from evalcore.shell.models.token_pair import encode_pair, fit_pair, roll_windows

TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=40).map(tuple)


# --- tokens -------------------------------------------------------------------------------------------------


@given(TOKENS, st.integers(1, 8))
def test_windows_predict_every_token_once(tokens, longest):
    windows = roll_windows(tokens, 9, longest)
    assert sum((continuation for _, continuation in windows), ()) == tokens
    for context, continuation in windows:
        assert context
        assert len(context) + len(continuation) - 1 <= longest


@given(TOKENS, TOKENS, st.integers(1, 50))
def test_only_the_beginning_of_a_context_is_cut(context, continuation, longest):
    if len(continuation) > longest:
        with pytest.raises(EvalError, match="at most"):
            fit_pair(context, continuation, longest)
        return
    kept, same = fit_pair(context, continuation, longest)
    assert same == continuation
    assert context[-len(kept) :] == kept
    assert len(kept) + len(continuation) - 1 == min(longest, len(context) + len(continuation) - 1)


@given(TOKENS, TOKENS, st.integers(2, 8))
def test_blocks_hold_all_tokens_and_few_single_ones(context, continuation, size):
    blocks = plan_context(context, size)
    assert sum((block.tokens for block in blocks), ()) == context
    assert [block.rows for block in blocks] == [0] * (len(blocks) - 1) + [1]
    assert all(2 <= len(block.tokens) <= size + 1 for block in blocks) or len(context) == 1
    tail = plan_continuation(continuation, size)
    assert sum((block.tokens for block in tail), ())[: len(continuation) - 1] == continuation[:-1]
    assert all(block.rows == len(block.tokens) >= 2 for block in tail)


@given(TOKENS, TOKENS, TOKENS, st.integers(2, 8))
def test_contexts_that_begin_alike_share_blocks_whatever_follows(same, one, two, size):
    a, b = plan_context(same + one, size), plan_context(same + two, size)
    assert count_shared(a, b) >= max(0, len(same) - 1) // size - 1
    assert a[: count_shared(a, b)] == b[: count_shared(a, b)]


def test_white_space_goes_to_the_continuation():
    def letters(text, begin):
        return ((0,) if begin else ()) + tuple(map(ord, text))

    assert encode_pair("a \n", "b", 7, letters) == ((0, 97), (32, 10, 98))
    assert encode_pair("", "b", 7, letters) == ((7,), (98,))
    assert encode_pair("", "ab", 97, letters) == ((97,), (98,))


# --- sampling -----------------------------------------------------------------------------------------------


def test_likelihoods_are_log_softmax_in_float64():
    rows = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, -4.0]], np.float32)
    expected = sum(
        log(np.exp(np.float64(row[t])) / np.exp(row.astype(np.float64)).sum())
        for row, t in zip(rows, (2, 0), strict=True)
    )
    value, greedy, tokens = score_rows(list(rows), (2, 0))
    assert isclose(value, expected, rel_tol=1e-14)
    assert (greedy, tokens) == (True, 2)
    assert score_rows(list(rows), (2, 1)).greedy is False, "a tie is won by the lowest token"


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=12), st.integers(0, 12), st.floats(0.05, 1.0), st.floats(0, 0.9))
def test_warping_keeps_the_likeliest_and_sums_to_one(logits, top_k, top_p, min_p):
    row = np.array(logits)
    made = warp_logits(row, Decoding(temperature=0.7, top_k=top_k, top_p=top_p, min_p=min_p))
    assert isclose(made.sum(), 1.0, rel_tol=1e-12)
    assert made[log_softmax(row / 0.7).argmax()] > 0
    assert not top_k or (made > 0).sum() <= top_k


def test_draws_follow_the_probabilities_and_the_seed():
    row, how = np.log([0.5, 0.3, 0.2]), Decoding(temperature=1.0)
    draws = [choose_token(row, how, np.random.default_rng(seed)) for seed in range(3000)]
    assert np.allclose(np.bincount(draws) / 3000, [0.5, 0.3, 0.2], atol=0.04)
    assert choose_token(row, how, np.random.default_rng(5)) == draws[5]


def test_generation_options_are_lm_evals():
    assert read_decoding({}, 99).max_gen_toks == 99
    assert read_decoding({"max_gen_toks": 5, "max_tokens": 7}, 99).max_gen_toks == 5
    assert read_decoding({"do_sample": True}, 9).temperature == 1.0
    assert read_decoding({"repetition_penalty": 2}, 9, penalizes=True).repetition_penalty == 2.0
    assert read_decoding({"repetition_penalty": 1.0}, 9).repetition_penalty is None
    assert read_decoding({"temperature": 0.5, "num_beams": 1}, 9).temperature == 0.5
    for wrong in ({"num_beams": 4}, {"temperature": -1}, {"top_p": "x"}, {"until": 3}, {"max_gen_toks": 0}):
        with pytest.raises(EvalError):
            read_decoding(wrong, 9)


def test_stop_strings_cut_one_after_the_other():
    assert cut_text("one\ntwo Q: three", ["Q:", "\n"]) == "one"
    assert cut_text("xab", ["b", "ab"]) == "xa", "as lm-eval: the second string is gone with the first cut"


# --- chat templates are code from a file --------------------------------------------------------------------


@pytest.mark.parametrize(
    "template",
    [
        "{{ cycler.__init__.__globals__.os.getpid() }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ 'a' * 10 ** 9 }}",
        "{% include '/etc/passwd' %}",
        "{{ raise_exception('no') }}",
        "{% for %}",
    ],
)
def test_a_hostile_template_is_refused(template):
    with pytest.raises(EvalError):
        compile_chat(template)([{"role": "user", "content": "hi"}], True)


def test_a_template_without_a_system_role_gets_none():
    template = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "[{{ m.content }}]{% endfor %}"
    )
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert compile_chat(template)(messages, True) == "[u]"


def test_a_template_takes_texts_of_any_length():
    messages = [{"role": "user", "content": "x" * 3_000_000}]
    for template in ("{{ messages[0].content }}", "{{ messages | tojson }}"):
        assert len(compile_chat(template)(messages, True)) >= 3_000_000
    with pytest.raises(EvalError, match="at most"):
        compile_chat("{% for a in messages[0].content %}{{ messages[0].content }}{% endfor %}")(messages, True)


def test_a_template_sees_tools_and_documents_if_there_are_any():
    messages = [{"role": "user", "content": "hi"}]
    template = "{{ tools is none }} {{ documents }}"
    assert compile_chat(template)(messages, True) == "True None"
    assert compile_chat(template, {"tools": [], "documents": ["a"]})(messages, True) == "False ['a']"


def test_an_answer_to_be_continued_stays_open():
    chat = compile_chat("{% for m in messages %}<{{ m.content | trim }}>{% endfor %}")
    assert chat([{"role": "assistant", "content": "So: "}], False) == "<So:"


# --- arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [{"n_ctx": -1}, {"n_batch": 1}, {"n_threads": 0}, {"seed": "x"}, {"weights": "w"}])
def test_wrong_arguments_are_located(wrong):
    with pytest.raises(EvalError, match="at model_args of llama"):
        read_settings(wrong)


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"PK\x03\x04")
    with pytest.raises(EvalError, match="expected a GGUF file"):
        find_weights(str(tmp_path / "x.gguf"))
    with pytest.raises(EvalError, match="cannot read the model file"):
        find_weights(str(tmp_path / "absent.gguf"))


def test_a_missing_package_says_what_to_type(monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(EvalError, match=r'pip install "evalcore\[llama\]"'):
        open_llama({})
