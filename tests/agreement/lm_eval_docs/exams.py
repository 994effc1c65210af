"""Documents for examination questions: letters, columns and lists of options."""

from __future__ import annotations

from lm_eval_docs.pen import Doc, Pen

LETTERS = "ABCDEFGHIJ"


def mmlu(pen: Pen, i: int, split: str) -> Doc:
    question = f"  {pen.question()} " if i % 3 else pen.question()
    return {"question": question, "subject": "anatomy", "choices": pen.texts(4), "answer": pen.randrange(4)}


def mmlu_pro(pen: Pen, i: int, split: str) -> Doc:
    options = pen.texts(3 + i % 8)
    at = pen.randrange(len(options))
    thought = f"A: Let's think step by step. {pen.sentence()} The answer is ({LETTERS[at]})."
    return {
        "question_id": i,
        "question": pen.question(),
        "options": options,
        "answer": LETTERS[at],
        "answer_index": at,
        "cot_content": thought,
        "category": "law" if i in (1, 4) else "biology",
    }


def exam(pen: Pen, i: int, split: str) -> Doc:
    """Columns A to D; the answer as a letter and, for another family of tasks, as a number from one."""
    texts, at = pen.texts(4), pen.randrange(4)
    return {"question": f" {pen.question()}", **dict(zip("ABCD", texts, strict=True)), "answer": LETTERS[at]}


def cmmlu(pen: Pen, i: int, split: str) -> Doc:
    doc = exam(pen, i, split)
    return {"Question": doc["question"], **{k: doc[k] for k in "ABCD"}, "Answer": doc["answer"]}


def kmmlu(pen: Pen, i: int, split: str) -> Doc:
    return {**exam(pen, i, split), "answer": pen.randint(1, 4)}


def m_mmlu(pen: Pen, i: int, split: str) -> Doc:
    options = dict(zip(["option_a", "option_b", "option_c", "option_d"], pen.texts(4), strict=True))
    return {"id": f"q/{i}", "instruction": pen.question(), **options, "answer": pen.choice("ABCD")}


def m_arc(pen: Pen, i: int, split: str) -> Doc:
    doc = m_mmlu(pen, i, split)
    return {**doc, "instruction": f"{doc['instruction']} [title] [x]", "option_e": None if i % 2 else "  kein  Wort "}


def medqa(pen: Pen, i: int, split: str) -> Doc:
    endings = {f"ending{k}": text for k, text in enumerate(pen.texts(4))}
    return {"sent1": pen.question(), **endings, "label": pen.randrange(4)}


def medmcqa(pen: Pen, i: int, split: str) -> Doc:
    options = dict(zip(["opa", "opb", "opc", "opd"], pen.texts(4), strict=True))
    return {"question": pen.question(), **options, "cop": pen.randrange(4)}
