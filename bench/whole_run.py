"""A whole run on recorded answers, samples written: lm-eval's, evalcore's, and the floor of what any harness must do.

The floor reads documents and answers, draws and writes prompts, hashes what lm-eval's rows have hashes of, and encodes
a row for each filter; it neither filters nor scores. Times are of the processor, on one core.

    python bench/whole_run.py [DOCUMENTS] [--lm-eval DOCUMENTS]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from hashlib import sha256
from itertools import islice
from pathlib import Path

import jinja2
import msgspec
from pyrsistent import pmap

TEXT = "Question: {{question}}\nAnswer:"
TASK = """
task: bench_gsm8k
dataset_path: json
dataset_kwargs: {{data_files: {{train: {train}, test: {test}}}}}
training_split: train
fewshot_split: train
test_split: test
output_type: generate_until
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_target: "{{{{answer}}}}"
num_fewshot: {shots}
generation_kwargs: {{until: ["Question:", "</s>"], do_sample: false, temperature: 0.0}}
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    ignore_case: true
    ignore_punctuation: false
    regexes_to_ignore: [",", "\\\\$", "(?s).*#### ", "\\\\.$"]
filter_list:
  - name: strict-match
    filter:
      - {{function: regex, regex_pattern: "#### (\\\\-?[0-9\\\\.\\\\,]+)"}}
      - {{function: take_first}}
  - name: flexible-extract
    filter:
      - {{function: regex, group_select: -1, regex_pattern: "(-?[$0-9.,]{{2,}})|(-?[0-9]+)"}}
      - {{function: take_first}}
metadata: {{version: 1.0}}
"""
STORY = "the a farmer sells apples boxes for each day and then buys more of them with his money in town"
WORDS = STORY.split()


def document(rng: random.Random) -> dict[str, str]:
    question = " ".join(rng.choices(WORDS, k=45)) + "?"
    steps = "\n".join(f"{' '.join(rng.choices(WORDS, k=12))} <<{i}*2={2 * i}>>." for i in range(4))
    return {"question": question, "answer": f"{steps}\n#### {rng.randint(1, 5000)}"}


def write_task(folder: Path, n: int, shots: int) -> list[dict[str, str]]:
    rng = random.Random(0)
    for name, count in (("train", 20), ("test", n)):
        with open(folder / f"{name}.jsonl", "w") as file:
            for _ in range(count):
                file.write(json.dumps(document(rng)) + "\n")
    (folder / "bench_gsm8k.yaml").write_text(
        TASK.format(train=folder / "train.jsonl", test=folder / "test.jsonl", shots=shots)
    )
    return [json.loads(line) for line in open(folder / "test.jsonl")]


def reply(doc: dict[str, str], at: int) -> str:
    gold = doc["answer"].rsplit(" ", 1)[1]
    return " " + doc["answer"].split("####")[0] + f"#### {gold if at % 3 else int(gold) + 1}"


def record_answers(folder: Path, docs: list[dict[str, str]]) -> None:
    """Run once with a model that knows the answers, so that they are in an answer log."""
    import evalcore
    from evalcore.extensions import Backend, Heard, Model

    by_question = {doc["question"]: reply(doc, at) for at, doc in enumerate(docs)}

    def ask(questions):
        for at, question in enumerate(questions):
            prompt = question.request.prompt
            yield Heard(at, by_question[prompt[prompt.rindex("Question: ") + 10 : -8]], more=True)

    told = Backend(lambda arguments: Model("told", "told", ask, lambda messages: ""), "", ())
    evalcore.run(
        tasks=[str(folder / "bench_gsm8k.yaml")],
        model="told",
        models=pmap({"told": told}),
        output_path=str(folder / "recorded"),
    )


def evalcore_seconds(folder: Path) -> float:
    import evalcore

    start = time.process_time()
    evalcore.run(
        tasks=[str(folder / "bench_gsm8k.yaml")],
        log_samples=True,
        model="replay",
        model_args={"path": str(folder / "recorded" / "answers.jsonl")},
        output_path=str(folder / "out"),
        overwrite=True,
    )
    return time.process_time() - start


def lm_eval_seconds(folder: Path, docs: list[dict[str, str]]) -> float:
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    by_question = {doc["question"]: reply(doc, at) for at, doc in enumerate(docs)}

    class Told(LM):
        def generate_until(self, requests, disable_tqdm=False):
            return [by_question[one.args[0][one.args[0].rindex("Question: ") + 10 : -8]] for one in requests]

        loglikelihood = loglikelihood_rolling = None

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    start = time.process_time()
    tracker = EvaluationTracker(output_path=str(folder / "lm"))
    results = lm_eval.simple_evaluate(Told(), tasks=["bench_gsm8k"], task_manager=manager, log_samples=True)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    return time.process_time() - start


UNTIL = {"do_sample": False, "temperature": 0.0, "until": ["Question:", "</s>"]}
NAMES = ("strict-match", "flexible-extract")


def floor_seconds(folder: Path, shots: int) -> float:
    """Once a document: decode, draw, render, hash, look up; and encode a row for each of two filters."""
    text = jinja2.Environment().from_string(TEXT)
    train = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    examples = [text.render(one) + " " + one["answer"] + "\n\n" for one in train]
    options = json.dumps(UNTIL).encode()
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    rnd = random.Random(1234)
    start = time.process_time()
    with open(folder / "recorded" / "answers.jsonl", "rb") as lines:
        answers = {one["request"]: one["text"] for one in map(decode, lines) if "request" in one}
    with open(folder / "test.jsonl", "rb") as lines, open(folder / "floor.jsonl", "wb", buffering=1 << 20) as out:
        for at, line in enumerate(lines):
            doc = decode(line)
            drawn = rnd.sample(range(len(examples)), shots)
            prompt = "".join([examples[i] for i in drawn]) + text.render(doc)
            raw, target = prompt.encode(), doc["answer"]
            asked = b"8:Generate%d:%b%d:%b" % (len(raw), raw, len(options), options)
            said = answers[sha256(asked).hexdigest()[:32]]
            arguments = {"gen_args_0": {"arg_0": prompt, "arg_1": UNTIL}}
            doc_hash = sha256(msgspec.json.format(line, indent=2)).hexdigest()
            prompt_hash = sha256(raw).hexdigest()
            target_hash = sha256(target.encode()).hexdigest()
            for name in NAMES:
                row = {
                    "doc_id": at,
                    "doc": doc,
                    "target": target,
                    "arguments": arguments,
                    "resps": [[said]],
                    "filtered_resps": [said[-5:]],
                    "filter": name,
                    "metrics": ["exact_match"],
                    "doc_hash": doc_hash,
                    "prompt_hash": prompt_hash,
                    "target_hash": target_hash,
                    "exact_match": 1.0,
                }
                out.write(encode(row) + b"\n")
    return time.process_time() - start


def check_floor(folder: Path) -> None:
    """The floor made the prompts and hashes that the run made."""
    keys = ("doc_id", "doc", "target", "arguments", "resps", "doc_hash", "prompt_hash", "target_hash")
    with open(folder / "floor.jsonl") as floor, open(folder / "out" / "samples_bench_gsm8k.jsonl") as ours:
        for a, b in zip(islice(floor, 0, 2000, 2), islice(ours, 1000), strict=False):
            one, other = json.loads(a), json.loads(b)
            assert all(one[key] == other[key] for key in keys), (one, other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", type=int, nargs="?", default=20_000)
    parser.add_argument("--lm-eval", type=int, default=2_000, dest="theirs")
    parser.add_argument("--shots", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=1, help="take the best of so many")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record_answers(folder, write_task(folder, given.documents, given.shots))
        pairs = [(evalcore_seconds(folder), floor_seconds(folder, given.shots)) for _ in range(given.repeats)]
        check_floor(folder)
    ours, floor = (min(times) / given.documents for times in zip(*pairs, strict=True))
    print("floor: read documents and answers, draw, render, hash (request, prompt, document, target), encode two rows")
    print(f"evalcore {ours * 1e6:8.1f} µs a document; floor {floor * 1e6:8.1f} µs; {ours / floor:.2f} times the floor")
    if given.theirs:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            docs = write_task(folder, given.theirs, given.shots)
            theirs = lm_eval_seconds(folder, docs) / given.theirs
        print(f"lm-eval  {theirs * 1e6:8.1f} µs a document: {theirs / ours:.1f} times evalcore's")


if __name__ == "__main__":
    main()
