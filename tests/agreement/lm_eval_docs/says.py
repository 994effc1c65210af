"""Answers of a model that is sometimes right, where the target alone does not say what right is."""

from __future__ import annotations

import re

from lm_eval_docs.pen import Doc, Pen


def code(doc: Doc, pen: Pen) -> str:
    return pen.choice(["    return x + 1  # right\n", "    return x\n", "    # right\n```\n", ""])


def follows(doc: Doc, pen: Pen) -> str:
    return pen.choice(
        [
            "the lantern and the heron rest by the quay today\nThat is all.",
            "* one\n* two",
            "Here, a lantern.",
            "preface\n*the heron naps near a lantern all day long*",
            "",
        ]
    )


def emotions(doc: Doc, pen: Pen) -> str:
    words = re.findall(r"'emotion\d': '(\w+)'", str(doc["reference_answer_fullscale"]))
    return "\n".join(f"{word}: {pen.randint(0, 10)}" for word in words[: pen.choice([3, 4, 4, 4])])


def mathematics(doc: Doc, pen: Pen) -> str:
    boxed = re.findall(r"boxed\{(.*)\}\$", str(doc.get("solution", "")))
    return f"Surely ${boxed[0] if boxed and pen.random() < 0.6 else 7}$"


def number(doc: Doc, pen: Pen) -> str:
    right = str(doc.get("answer", doc.get("Answer"))) if pen.random() < 0.6 else "3"
    return pen.choice([rf"\boxed{{{right}}}", f"${right}$", f"x = {right}.", right])


def span(doc: Doc, pen: Pen) -> str:
    """One of the answers of a reading document, wherever it keeps them."""
    answers = doc.get("answers") or doc.get("answer")
    found = answers.get("text", answers.get("input_text")) if isinstance(answers, dict) else answers
    first = found[-1] if isinstance(found, list | tuple) else str(found)
    first = first if isinstance(first, str) else " ".join(first)
    return pen.choice([first, f" The {first}", first.upper(), pen.phrase(), ""])
