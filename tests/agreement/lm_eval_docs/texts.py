"""Documents whose answer is a text, and texts whose likelihood is asked."""

from __future__ import annotations

from lm_eval_docs.pen import Doc, Pen


def gsm8k(pen: Pen, i: int, split: str) -> Doc:
    a, b = pen.randint(2, 9000), pen.randint(2, 90)
    steps = f"{pen.sentence()} So it is {a}+{b}=<<{a}+{b}={a + b}>>{a + b}."
    return {"question": f"{pen.sentence()} How much is {a} and {b}?", "answer": f"{steps}\n#### {a + b:,}"}


def gsm_plus(pen: Pen, i: int, split: str) -> Doc:
    doc = gsm8k(pen, i, split)
    return {"question": doc["question"], "solution": doc["answer"], "answer": str(i)}


def mgsm(pen: Pen, i: int, split: str) -> Doc:
    """Only examples come with the steps, and with the word for question in front."""
    a, b = pen.randint(2, 900), pen.randint(2, 90)
    shown = split == "train"
    return {
        "question": f"{'Frage: ' if shown else ''}{pen.sentence()} {a} + {b}?",
        "answer": f"Schritt-für-Schritt-Antwort: {pen.sentence()} Die Antwort lautet {a + b}." if shown else None,
        "answer_number": a + b,
        "equation_solution": f"{a} + {b} = {a + b}." if shown else None,
    }


def bbh(pen: Pen, i: int, split: str) -> Doc:
    return {"input": pen.question(), "target": pen.choice(["True", "Yes", "(B)", "] >"])}


def truthfulqa_gen(pen: Pen, i: int, split: str) -> Doc:
    return {
        "question": f" {pen.question()} ",
        "correct_answers": [pen.sentence(), pen.phrase(), ""][: 2 + i % 2],
        "incorrect_answers": [pen.sentence(), pen.phrase()],
    }


def lambada(pen: Pen, i: int, split: str) -> Doc:
    return {"text": f"{pen.paragraph()} At last came the {pen.noun()}", "domain": ""}


def wikitext(pen: Pen, i: int, split: str) -> Doc:
    page = f" = {pen.noun()} = \n \n {pen.paragraph()} 1 @,@ 200 @-@ odd ( or so ) ; \" {pen.phrase()} \" ' {pen.noun()} '\n"
    return {"page": "" if i == 7 else page}


def plain_text(pen: Pen, i: int, split: str) -> Doc:
    return {"text": "\n\n".join(pen.paragraph() for _ in range(1 + i % 3)), "meta": {"source": "ours"}}


def drop(pen: Pen, i: int, split: str) -> Doc:
    def one() -> Doc:
        kind, day = pen.randrange(3), {"day": "", "month": "", "year": ""}
        return {
            "number": str(pen.randint(1, 99)) if kind == 0 else "",
            "date": {"day": "4", "month": "May", "year": "1904"} if kind == 2 else day,
            "spans": [pen.phrase(), pen.name()][: 1 + i % 2] if kind == 1 else [],
            "worker_id": "w",
            "hit_id": "h",
        }

    more = [one() for _ in range(i % 3)]
    return {
        "section_id": "s",
        "query_id": f"q{i}",
        "passage": pen.paragraph(),
        "question": pen.question(),
        "answer": one(),
        "validated_answers": {key: [each[key] for each in more] for key in ("number", "date", "spans")},
    }


def triviaqa(pen: Pen, i: int, split: str) -> Doc:
    aliases = [pen.name(), f"{pen.name()} of the {pen.noun()}", "l'Été"][: 1 + i % 3]
    return {"question": pen.question(), "question_id": str(i), "answer": {"aliases": aliases, "value": aliases[0]}}


def nq_open(pen: Pen, i: int, split: str) -> Doc:
    return {"question": pen.phrase(), "answer": [f"The {pen.noun()}", pen.name(), pen.phrase()][: 1 + i % 3]}


def coqa(pen: Pen, i: int, split: str) -> Doc:
    turns = 1 + i % 3
    answers = [pen.phrase() for _ in range(turns)]
    others = {str(k): {"input_text": [pen.phrase() for _ in range(turns)]} for k in range(2)}
    return {
        "story": pen.paragraph(),
        "questions": {"input_text": [pen.question() for _ in range(turns)]},
        "answers": {"input_text": answers},
        "additional_answers": others,
    }


def reading(pen: Pen, i: int, split: str) -> Doc:
    language = "indonesian" if i % 4 else "finnish"
    answers = {"text": [pen.phrase(), pen.name()][: 1 + i % 2], "answer_start": [0, 3][: 1 + i % 2]}
    return {
        "id": f"{language}-{i}",
        "title": pen.noun(),
        "context": pen.paragraph(),
        "question": pen.question(),
        "answers": answers,
    }


def qasper(pen: Pen, i: int, split: str) -> Doc:
    def blob(k: int) -> Doc:
        return {
            "unanswerable": k == 0,
            "yes_no": {1: True, 2: False}.get(k),
            "free_form_answer": pen.phrase() if k in (3, 4) else "",
            "extractive_spans": [],
        }

    asked = 1 + i % 2
    return {
        "title": pen.phrase(),
        "abstract": pen.paragraph(),
        "qas": {
            "question": [pen.question() for _ in range(asked)],
            "answers": [{"answer": [blob(pen.randrange(5)), blob(1 + i % 3)]} for _ in range(asked)],
        },
    }


def translation(pen: Pen, i: int, split: str) -> Doc:
    return {"translation": {key: pen.sentence() for key in ("de", "en", "fr", "ro")}}


def flores(pen: Pen, i: int, split: str) -> Doc:
    return {f"sentence_{key}": pen.sentence() for key in ("por_Latn", "deu_Latn", "eng_Latn")}


def phrases(pen: Pen, i: int, split: str) -> Doc:
    return {"ca": pen.sentence(), "va": pen.sentence()}


def summary(pen: Pen, i: int, split: str) -> Doc:
    return {"text": pen.paragraph(), "summary": pen.sentence()}


def summaries(pen: Pen, i: int, split: str) -> Doc:
    kinds = ("abstractive", "extractive", "extreme")
    each = {kind: {key: f"{pen.phrase()}  {key}" for key in ("a1", "a2", "a3")} for kind in kinds}
    return {"content": pen.paragraph().replace(" ", "  "), "summaries": each}


def planning(pen: Pen, i: int, split: str) -> Doc:
    return {"context": pen.paragraph(), "question": pen.question(), "answer": pen.choice(["yes", "no"])}


def aime(pen: Pen, i: int, split: str) -> Doc:
    return {"Problem": pen.question(), "Answer": pen.randint(1, 999)}


def asdiv(pen: Pen, i: int, split: str) -> Doc:
    answer = f"{pen.randint(1, 500)} ({pen.noun()}s)" if i % 3 else str(pen.randint(1, 50))
    return {"body": pen.sentence(), "question": pen.question(), "answer": answer}


def arithmetic(pen: Pen, i: int, split: str) -> Doc:
    a, b = pen.randint(1, 99), pen.randint(1, 99)
    return {"context": f"Q: What is {a} plus {b}?\n\nA:", "completion": f" {a + b}"}


def unscramble(pen: Pen, i: int, split: str) -> Doc:
    word = pen.noun()
    return {"context": f"Please unscramble: {word[::-1]} =", "completion": word}


def babi(pen: Pen, i: int, split: str) -> Doc:
    return {"passage": f"{pen.paragraph()}\n", "question": pen.question(), "answer": pen.noun(), "task": i}


def eq_bench(pen: Pen, i: int, split: str) -> Doc:
    marks = {f"emotion{k}": word for k, word in enumerate(["calm", "envy", "relief", "dread"], 1)}
    marks |= {f"emotion{k}_score": str(pen.randint(0, 10)) for k in range(1, 5)}
    return {"prompt": pen.paragraph(), "reference_answer_fullscale": repr(marks)}


def hendrycks_math(pen: Pen, i: int, split: str) -> Doc:
    answer = pen.choice([str(pen.randint(1, 99)), r"\frac{1}{2}", r"x^2 + 1"])
    return {"problem": pen.question(), "solution": rf"{pen.sentence()} So it is $\boxed{{{answer}}}$.", "level": "1"}


def agieval_math(pen: Pen, i: int, split: str) -> Doc:
    return {"query": f"Q: {pen.question()}\nA:", "answer": str(pen.randint(1, 99))}


def logieval(pen: Pen, i: int, split: str) -> Doc:
    return {"content": pen.paragraph(), "input": [{"content": pen.question()}], "ideal": pen.choice("ABCD")}


def code_to_text(pen: Pen, i: int, split: str) -> Doc:
    return {
        "code_tokens": ["def", f"f{i}", "(", ")", ":", "\n", "return", str(i)],
        "docstring_tokens": pen.sentence().split(),
    }


def fld(pen: Pen, i: int, split: str) -> Doc:
    return {"prompt_serial": pen.paragraph(), "world_assump_label": pen.choice(["PROVED", "DISPROVED", "UNKNOWN"])}


def humaneval(pen: Pen, i: int, split: str) -> Doc:
    return {
        "task_id": f"ours/{i}",
        "prompt": f'def f{i}(x):\n    """{pen.sentence()}"""\n',
        "canonical_solution": f"    return x + {i}\n",
        "test": f"def check(f):\n    assert f(1) == {1 + i}\n",
        "entry_point": f"f{i}",
    }


def mbpp(pen: Pen, i: int, split: str) -> Doc:
    tests = [f"assert f{i}({k}) == {k + i}" for k in range(3)]
    return {"task_id": i, "text": pen.sentence(), "code": f"def f{i}(x):\n  return x + {i}", "test_list": tests}


INSTRUCTIONS: list[tuple[str, Doc]] = [
    ("punctuation:no_comma", {}),
    ("change_case:english_lowercase", {}),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}),
    ("keywords:existence", {"keywords": ["lantern", "heron"]}),
    ("startend:end_checker", {"end_phrase": "That is all."}),
    ("length_constraints:number_words", {"num_words": 6, "relation": "at least"}),
]


def ifeval(pen: Pen, i: int, split: str) -> Doc:
    blank: Doc = dict.fromkeys(["num_bullets", "keywords", "end_phrase", "num_words", "relation"])
    chosen = pen.sample(INSTRUCTIONS, 1 + i % 3)
    return {
        "key": i,
        "prompt": pen.paragraph(),
        "instruction_id_list": [name for name, _ in chosen],
        "kwargs": [{**blank, **given} for _, given in chosen],
    }
