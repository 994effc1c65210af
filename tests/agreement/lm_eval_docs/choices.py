"""Documents for questions with options."""

from __future__ import annotations

from lm_eval_docs.pen import Doc, Pen


def arc(pen: Pen, i: int, split: str) -> Doc:
    n = 4 if i % 4 else 3
    labels = list("1234"[:n] if i % 3 == 0 else "ABCD"[:n])
    return {
        "id": f"x_{i}",
        "question": pen.question(),
        "choices": {"text": pen.texts(n), "label": labels},
        "answerKey": pen.choice(labels),
    }


def arc_of_four(pen: Pen, i: int, split: str) -> Doc:
    labels = list("1234" if i % 3 == 0 else "ABCD")
    key = pen.choice(labels)
    return {"question": pen.question(), "choices": {"text": pen.texts(4), "label": labels}, "answerKey": key}


def openbookqa(pen: Pen, i: int, split: str) -> Doc:
    key = pen.choice("ABCD")
    choices = {"text": pen.texts(4), "label": list("ABCD")}
    return {"id": str(i), "question_stem": pen.phrase(), "choices": choices, "answerKey": f" {key}" if i % 2 else key}


def commonsense(pen: Pen, i: int, split: str) -> Doc:
    choices = {"label": list("ABCDE"), "text": pen.texts(5)}
    return {"question": f"{pen.question()} ", "choices": choices, "answerKey": pen.choice("ABCDE")}


def sciq(pen: Pen, i: int, split: str) -> Doc:
    texts = pen.texts(4)
    return {
        "question": pen.question(),
        "distractor1": texts[0],
        "distractor2": texts[1],
        "distractor3": texts[2],
        "correct_answer": texts[3],
        "support": "" if i == 3 else f"  {pen.paragraph()}",
    }


def siqa(pen: Pen, i: int, split: str) -> Doc:
    answers = dict(zip(["answerA", "answerB", "answerC"], pen.texts(3), strict=True))
    return {"context": pen.sentence(), "question": pen.question(), **answers, "label": pen.choice("123")}


def piqa(pen: Pen, i: int, split: str) -> Doc:
    first, second = pen.texts(2)
    return {"goal": pen.phrase(), "sol1": first, "sol2": second, "label": pen.randrange(2)}


def hellaswag(pen: Pen, i: int, split: str) -> Doc:
    return {
        "ind": i,
        "activity_label": pen.noun(),
        "ctx_a": f"{pen.sentence()} [header] {pen.phrase()}",
        "ctx_b": "" if i == 4 else f"{pen.noun()} [title] {pen.phrase()}",
        "endings": [f"{text}  [step] {pen.noun()}" for text in pen.texts(4)],
        "label": str(pen.randrange(4)),
    }


def swag(pen: Pen, i: int, split: str) -> Doc:
    endings = {f"ending{k}": text for k, text in enumerate(pen.texts(4))}
    return {"startphrase": pen.sentence(), **endings, "label": pen.randrange(4)}


def winogrande(pen: Pen, i: int, split: str) -> Doc:
    first, second = pen.texts(2)
    sentence = f"{pen.sentence()} Then _ {pen.choice(['fell', 'rose'])} {pen.phrase()}."
    return {"sentence": sentence, "option1": first, "option2": second, "answer": pen.choice("12")}


def wsc273(pen: Pen, i: int, split: str) -> Doc:
    before = f"{pen.sentence()}  {'So then' if i % 2 else pen.noun() + '.'} "
    pronoun = pen.choice(["she", "They", "his"])
    text = f"{before}{pronoun} {pen.phrase()}."
    return {
        "text": text,
        "pronoun": pronoun,
        "pronoun_loc": len(before) - 1,
        "options": [f"The {pen.noun()}", pen.name()],
        "label": pen.randrange(2),
    }


def winogender(pen: Pen, i: int, split: str) -> Doc:
    return {
        "sentence": pen.sentence(),
        "pronoun": pen.choice(["she", "he", "they"]),
        "occupation": f"the {pen.noun()} keeper",
        "participant": pen.name(),
        "label": pen.randrange(2),
    }


def belebele(pen: Pen, i: int, split: str) -> Doc:
    answers = {f"mc_answer{k + 1}": text for k, text in enumerate(pen.texts(4))}
    return {
        "flores_passage": pen.paragraph(),
        "question": f"{pen.question()} ",
        **answers,
        "correct_answer_num": pen.choice("1234"),
    }


def truthfulqa_mc(pen: Pen, i: int, split: str) -> Doc:
    one, two = pen.texts(3 + i % 3), pen.texts(4 + i % 2)
    return {
        "question": pen.question(),
        "mc1_targets": {"choices": one, "labels": [1] + [0] * (len(one) - 1)},
        "mc2_targets": {"choices": two, "labels": [1, 1] + [0] * (len(two) - 2)},
    }


def m_truthfulqa(pen: Pen, i: int, split: str) -> Doc:
    doc = truthfulqa_mc(pen, i, split)
    out: Doc = {"question": doc["question"]}
    for key in ("mc1_targets", "mc2_targets"):
        part = doc[key]
        assert isinstance(part, dict)
        out |= {f"{key}_choices": part["choices"], f"{key}_labels": part["labels"]}
    return out


def mathqa(pen: Pen, i: int, split: str) -> Doc:
    numbers = [str(pen.randint(1, 900)) for _ in range(5)]
    options = " , ".join(f"{letter} ) {n}" for letter, n in zip("abcde", numbers, strict=True))
    return {"Problem": pen.question(), "options": options, "correct": pen.choice("abcde")}


def logiqa(pen: Pen, i: int, split: str) -> Doc:
    label = pen.choice("abcd")
    return {
        "context": pen.paragraph(),
        "question": pen.question(),
        "options": pen.texts(4),
        "label": f"{label} " if i % 2 else label,
    }


def logiqa2(pen: Pen, i: int, split: str) -> Doc:
    return {"text": pen.paragraph(), "question": pen.question(), "options": pen.texts(4), "answer": pen.randrange(4)}


def race(pen: Pen, i: int, split: str) -> Doc:
    problems = [
        {
            "question": f"{pen.phrase()}  _  ." if k == 0 else pen.question(),
            "answer": pen.choice("ABCD"),
            "options": pen.texts(4),
        }
        for k in range(1 + i % 3)
    ]
    return {"article": pen.paragraph(), "problems": repr(problems)}


def pubmedqa(pen: Pen, i: int, split: str) -> Doc:
    decision = pen.choice(["yes", "no", "maybe"])
    contexts = [pen.sentence() for _ in range(1 + i % 3)]
    return {"QUESTION": pen.question(), "CONTEXTS": contexts, "final_decision": decision}


def headqa(pen: Pen, i: int, split: str) -> Doc:
    n = 4 + i % 2
    answers = [{"aid": k + 1, "atext": text} for k, text in enumerate(pen.texts(n))]
    return {"qid": str(i), "qtext": pen.question(), "ra": pen.randint(1, n), "answers": answers}


def prost(pen: Pen, i: int, split: str) -> Doc:
    options = dict(zip("ABCD", pen.texts(4), strict=True))
    return {"context": pen.sentence(), "ex_question": pen.question(), **options, "label": pen.randrange(4)}


def mutual(pen: Pen, i: int, split: str) -> Doc:
    article = f"m : {pen.phrase()} , is n't it ? f : `` {pen.sentence()} ''"
    return {"answers": pen.choice("ABCD"), "options": [f"f : {t} ." for t in pen.texts(4)], "article": article}


def webqs(pen: Pen, i: int, split: str) -> Doc:
    base = pen.noun()
    answers = [f"{base} tower", pen.name(), base, *pen.texts(i % 3)]
    return {"question": pen.question(), "answers": answers[: 1 + i % 5] or [base]}


def qa4mre(pen: Pen, i: int, split: str) -> Doc:
    options = {"answer_id": list("12345"), "answer_str": pen.texts(5)}
    return {
        "document_str": f" {pen.paragraph()}\n",
        "question_str": pen.question(),
        "answer_options": options,
        "correct_answer_id": pen.choice("12345"),
    }


def agieval(pen: Pen, i: int, split: str) -> Doc:
    choices = [f"({letter}){text}" for letter, text in zip("ABCD", pen.texts(4), strict=True)]
    gold = sorted(pen.sample(range(4), 1 + (i == 3)))
    return {"query": f"Q: {pen.question()} {' '.join(choices)}\nA: The answer is", "choices": choices, "gold": gold}


def groundcocoa(pen: Pen, i: int, split: str) -> Doc:
    keys = ["Option A", "Option B", "Option C", "Option D", "Option E"]
    options = dict(zip(keys, pen.texts(5), strict=True))
    return {"id": i, "query": pen.paragraph(), **options, "Answer": pen.choice("ABCDE")}


def bbq(pen: Pen, i: int, split: str) -> Doc:
    first, second = f"{pen.name()}, the {pen.noun()} seller", f"{pen.name()}, the {pen.noun()} buyer"
    answers = {"ans0": first, "ans1": second, "ans2": pen.choice(["Unknown", "Not known"])}
    return {
        "example_id": i,
        "question_index": str(i),
        "question_polarity": "neg" if i % 2 else "nonneg",
        "context_condition": "disambig" if i % 3 else "ambig",
        "category": "Age" if i % 2 else "Religion",
        "answer_info": {
            "ans0": [first, "old"],
            "ans1": [second, "nonOld"],
            "ans2": ["Unknown", "unknown"],
        },
        "additional_metadata": {"stereotyped_groups": ["old"], "subcategory": "None", "version": "a"},
        "context": pen.paragraph(),
        "question": pen.question(),
        **answers,
        "label": pen.randrange(3),
    }


def snarks(pen: Pen, i: int, split: str) -> Doc:
    first, second = pen.texts(2)
    return {"input": f"Which is it?\nOptions:\n(A) {first}\n(B) {second}", "target": pen.choice(["(A)", "(B)"])}


def bigbench(pen: Pen, i: int, split: str) -> Doc:
    options = pen.texts(3)
    return {
        "idx": i,
        "inputs": f"{pen.question()}\nA:",
        "targets": [pen.choice(options)],
        "multiple_choice_targets": [] if i == 5 else options,
    }
