"""Documents about one or two sentences and a label."""

from __future__ import annotations

from lm_eval_docs.pen import Doc, Pen


def entailment(pen: Pen, i: int, split: str) -> Doc:
    hypothesis = "" if i == 6 else pen.phrase() + ("." if i % 2 else " ")
    return {"premise": pen.sentence(), "hypothesis": hypothesis, "label": pen.randrange(3)}


def binary_entailment(pen: Pen, i: int, split: str) -> Doc:
    return {**entailment(pen, i, split), "label": pen.randrange(2)}


def two_sentences(pen: Pen, i: int, split: str) -> Doc:
    return {"sentence1": pen.sentence(), "sentence2": pen.sentence(), "label": pen.randrange(2), "idx": i}


def paws(pen: Pen, i: int, split: str) -> Doc:
    second = "" if i == 4 else f'{pen.name()} is n\'t " here " , ( really ) .'
    return {"id": i, "sentence1": f"{pen.sentence()} ;", "sentence2": second, "label": pen.randrange(2)}


def two_questions(pen: Pen, i: int, split: str) -> Doc:
    return {"question1": pen.question(), "question2": pen.question(), "label": pen.randrange(2), "idx": i}


def question_and_sentence(pen: Pen, i: int, split: str) -> Doc:
    return {"question": pen.question(), "sentence": pen.sentence(), "label": pen.randrange(2), "idx": i}


def one_sentence(pen: Pen, i: int, split: str) -> Doc:
    return {"sentence": pen.sentence(), "label": pen.randrange(2), "idx": i}


def boolq(pen: Pen, i: int, split: str) -> Doc:
    return {"question": pen.phrase(), "passage": pen.paragraph(), "label": pen.randrange(2), "idx": i}


def copa(pen: Pen, i: int, split: str) -> Doc:
    first, second = (text.capitalize() for text in pen.texts(2))
    return {
        "premise": f"{pen.sentence()} ",
        "choice1": first,
        "choice2": second,
        "question": "cause" if i % 2 else "effect",
        "label": pen.randrange(2),
        "idx": i,
    }


def wsc(pen: Pen, i: int, split: str) -> Doc:
    words = pen.paragraph().split()
    at = pen.randrange(2, len(words))
    return {
        "text": " ".join(words),
        "span1_text": pen.name(),
        "span2_text": words[at],
        "span2_index": at,
        "label": pen.randrange(2),
    }


def wic(pen: Pen, i: int, split: str) -> Doc:
    word = pen.noun()
    first, second = f"Here {word} means {pen.noun()}.", f"A {word} {pen.sentence()}"
    at, other = first.index(word), second.index(word)
    return {
        "word": word,
        "sentence1": first,
        "sentence2": second,
        "start1": at,
        "end1": at + len(word),
        "start2": other,
        "end2": other + len(word),
        "label": pen.randrange(2),
    }


def multirc(pen: Pen, i: int, split: str) -> Doc:
    return {
        "paragraph": pen.paragraph(),
        "question": pen.question(),
        "answer": f'{pen.phrase()} "so" {i}',
        "label": pen.randrange(2),
    }


def record(pen: Pen, i: int, split: str) -> Doc:
    entities = [f"{pen.name()} {k}" for k in range(3)] + ["Bram 9", "Bram 9"]
    highlights = "\n@highlight\n".join([pen.paragraph(), pen.phrase(), pen.phrase()])
    return {
        "passage": f"{highlights}\n",
        "query": f"Then @placeholder {pen.phrase()}",
        "entities": entities,
        "answers": pen.sample(entities, 2),
    }


def storycloze(pen: Pen, i: int, split: str) -> Doc:
    story = {f"input_sentence_{k}": pen.sentence() for k in range(1, 5)}
    first, second = pen.texts(2)
    return {**story, "sentence_quiz1": first, "sentence_quiz2": second, "answer_right_ending": pen.randint(1, 2)}


def minimal_pair(pen: Pen, i: int, split: str) -> Doc:
    return {"sentence_good": pen.sentence(), "sentence_bad": pen.sentence(), "UID": "x", "field": "syntax"}


def multiblimp(pen: Pen, i: int, split: str) -> Doc:
    return {"sen": pen.sentence(), "wrong_sen": pen.sentence()}


def crows(pen: Pen, i: int, split: str) -> Doc:
    kind = "age" if i % 2 else "religion"
    return {"sent_more": pen.sentence(), "sent_less": pen.sentence(), "bias_type": kind}


def toxigen(pen: Pen, i: int, split: str) -> Doc:
    return {
        "text": pen.sentence(),
        "toxicity_ai": pen.choice([1.0, 2.5, 4.0]),
        "toxicity_human": pen.choice([1.0, 3.0]),
    }


def mc_taco(pen: Pen, i: int, split: str) -> Doc:
    return {**question_and_sentence(pen, i, split), "answer": pen.phrase()}


def ethics(pen: Pen, i: int, split: str) -> Doc:
    """The columns of every part of the suite at once."""
    return {
        "input": pen.paragraph(),
        "scenario": pen.sentence(),
        "excuse": f"No, because {pen.phrase()} ",
        "trait": pen.choice(["patient", "brave"]),
        "activity": pen.sentence(),
        "baseline": pen.sentence(),
        "label": pen.randrange(2),
    }
