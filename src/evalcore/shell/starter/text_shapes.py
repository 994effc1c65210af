"""Answers that are texts: numbers, short and long ones, continuations, and texts without answers."""

from __future__ import annotations

from statistics import median

from evalcore.shell.starter.answer_view import MEAN, NUMBER, PLAIN_NUMBER, QA, Config, View

MARK = "####"
LONG_WORDS = 12


def fit_marked_numbers(view: View) -> str:
    good = view.golds and all(MARK in one and PLAIN_NUMBER.fullmatch(one.rpartition(MARK)[2]) for one in view.texts)
    return f"answers end in {MARK} and a number, as GSM8K's do" if good else ""


def fit_numbers(view: View) -> str:
    good = view.golds and not view.choices and all(map(PLAIN_NUMBER.fullmatch, view.texts))
    return "answers are numbers" if good else ""


def ask_number(view: View, target: str) -> Config:
    return {
        "doc_to_text": QA % view.question,
        "doc_to_target": target,
        "generation_kwargs": {"until": ["Question:", "\n\n\n"], "max_gen_toks": 512, "do_sample": False},
        "filter_list": [
            {
                "name": "last-number",
                "filter": [
                    {"function": "regex", "regex_pattern": f"({NUMBER})", "group_select": -1},
                    {"function": "take_first"},
                ],
            }
        ],
        "metric_list": [{"metric": "exact_match", **MEAN, "regexes_to_ignore": [",", r"\$", r"\.0+$", "%"]}],
    }


def fit_long(view: View) -> str:
    words = median(len(one.split()) for one in view.texts) if view.golds else 0
    return (
        f"answers are long (half have {words:g} words or more), so equal texts would be luck"
        if words > LONG_WORDS
        else ""
    )


def ask_long(view: View) -> Config:
    return {
        "doc_to_text": f"{{{{{view.question}}}}}\n",
        "doc_to_target": f"{{{{{view.answer}}}}}",
        "target_delimiter": "",
        "generation_kwargs": {"until": ["\n\n\n"], "max_gen_toks": 512, "do_sample": False},
        "metric_list": [{"metric": "chrf", "aggregation": "chrf", "higher_is_better": True}],
    }


def fit_short(view: View) -> str:
    return "answers are short texts" if view.golds else ""


def ask_short(view: View) -> Config:
    return {
        "doc_to_text": QA % view.question,
        "doc_to_target": f"{{{{{view.answer}}}}}",
        "generation_kwargs": {"until": ["\n"], "max_gen_toks": 64, "do_sample": False},
        "filter_list": [{"name": "trimmed", "filter": [{"function": "remove_whitespace"}, {"function": "take_first"}]}],
        "metric_list": [{"metric": "exact_match", **MEAN, "ignore_case": True, "ignore_punctuation": True}],
    }


def fit_continuation(view: View) -> str:
    return "the answer is what should follow" if view.golds else ""


def ask_continuation(view: View) -> Config:
    return {
        "doc_to_text": QA % view.question,
        "doc_to_target": f"{{{{{view.answer}}}}}",
        "metric_list": [
            {"metric": "perplexity", "aggregation": "perplexity", "higher_is_better": False},
            {"metric": "acc", **MEAN},
        ],
    }


def fit_prose(view: View) -> str:
    return "there are texts and no answers" if view.answer is None else ""


def ask_prose(view: View) -> Config:
    corpus = {"word_perplexity": "weighted_perplexity", "byte_perplexity": "weighted_perplexity"}
    corpus["bits_per_byte"] = "bits_per_byte"
    return {
        "doc_to_text": "",
        "doc_to_target": f"{{{{{view.question}}}}}",
        "metric_list": [
            {"metric": name, "aggregation": how, "higher_is_better": False} for name, how in corpus.items()
        ],
    }
