"""A model for lm-eval whose answers are a function of the request, and a chat template for both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import pytest

pytest.importorskip("lm_eval")

from lm_eval.api.model import LM
from lm_eval.api.task import ConfigurableTask

from lm_eval_docs.cases import Case
from lm_eval_docs.pen import Doc, Pen

SOLVED = "The answer is {0}.\nDie Antwort lautet {0}\nso the answer is {0}.\nThe final answer is {0}\n#### {0}"
WAYS = ("{}", "{}", " {}\n", SOLVED, SOLVED, SOLVED, "so the answer is {}.", "It is 4, or {}")


def chat_template(messages: Sequence[Mapping[str, str]], open_turn: bool = True) -> str:
    """Every turn between marks, and the opening of the model's own, or its unfinished one."""
    turns = [f"<{one['role']}>{one['content']}</{one['role']}>" for one in messages]
    if open_turn:
        return "\n".join([*turns, "<assistant>"])
    return "\n".join(turns).removesuffix("</assistant>")


class Fake(LM):
    """Answers out of a hash of the request, often the right one; remembers what it was asked."""

    tokenizer_name = "fake"

    def __init__(self, task: ConfigurableTask, case: Case) -> None:
        super().__init__()
        self.task, self.case, self.asked = task, case, {}

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return chat_template(chat_history, add_generation_prompt)

    def chat_template(self, chat_template: bool | str = False) -> str:
        return "fake"

    def _answers(self, requests: Sequence[object]) -> list[object]:
        out = []
        for one in requests:
            heard = self.asked.setdefault((one.doc_id, one.idx), (one.args, []))[1]
            heard.append(self._answer(one, Pen(f"{one.args!r} {len(heard)}")))
            out.append(heard[-1])
        return out

    def _answer(self, one: object, pen: Pen) -> object:
        doc = deepcopy(one.doc)
        if one.request_type == "loglikelihood_rolling":
            return -pen.uniform(1, 400)
        if one.request_type == "loglikelihood":
            value = -round(pen.uniform(0, 12) * 4) / 4  # rounded, so that there are ties
            return value + (8 if one.idx in self._golds(doc) and pen.random() < 0.6 else 0), pen.random() < 0.4
        if self.case.says is not None:
            return self.case.says(doc, pen)
        target = self.task.doc_to_target(doc)
        right = str(pen.choice(target) if isinstance(target, list) and target else target)
        right = right.rpartition("#### ")[2] if "#### " in right else right
        said = right if pen.random() < 0.7 else pen.choice([pen.phrase(), "17", "", "(B)", "No"])
        return pen.choice(WAYS if one.repeats == 1 else (SOLVED,)).format(said)

    def _golds(self, doc: Doc) -> list[int]:
        task = self.task
        if task.OUTPUT_TYPE != "multiple_choice":
            return []
        gold = task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc)
        if isinstance(gold, str):
            options = task.doc_to_choice(doc)
            return [options.index(gold)] if gold in options else []
        return [int(each) for each in (gold if isinstance(gold, list) else [gold])]

    loglikelihood = loglikelihood_rolling = generate_until = _answers
