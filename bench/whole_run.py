"""A whole run on recorded answers, samples written: lm-eval's, evalcore's, and the floor of what any harness must do.

The floor decodes each document, renders its prompt, hashes it, finds its answer, and encodes its sample rows.

    python bench/whole_run.py [DOCUMENTS] [--lm-eval DOCUMENTS]
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from hashlib import sha256
from pathlib import Path

import jinja2
import msgspec

TEXT = "Question: {{question}}\nAnswer:"
TARGET = "{{answer}}"
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


def evalcore_seconds(folder: Path, docs: list[dict[str, str]]) -> float:
    import evalcore

    config = {"tasks": [str(folder / "bench_gsm8k.yaml")], "log_samples": True}
    recorded = folder / "recorded"
    from evalcore.extensions import Backend, Heard, Model

    by_question = {doc["question"]: reply(doc, at) for at, doc in enumerate(docs)}

    def ask(questions):
        for at, question in enumerate(questions):
            prompt = question.request.prompt
            yield Heard(at, by_question[prompt[prompt.rindex("Question: ") + 10 : -8]])

    def opened(arguments):
        return Model("told", "told", ask, lambda messages: "")

    if not recorded.exists():
        from pyrsistent import pmap

        evalcore.run(
            config,
            model="told",
            output_path=str(recorded),
            models=pmap({"told": Backend(opened, "", ())}),
            log_samples=False,
        )
    start = time.perf_counter()
    evalcore.run(
        config,
        model="replay",
        model_args={"path": str(recorded / "answers.jsonl")},
        output_path=str(folder / "out"),
        overwrite=True,
    )
    return time.perf_counter() - start


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
    start = time.perf_counter()
    tracker = EvaluationTracker(output_path=str(folder / "lm"))
    results = lm_eval.simple_evaluate(Told(), tasks=["bench_gsm8k"], task_manager=manager, log_samples=True)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    return time.perf_counter() - start


def floor_seconds(folder: Path, docs: list[dict[str, str]]) -> float:
    """Decode, render, hash, look up, encode: once a document, one row for each of two filters."""
    text = jinja2.Environment().from_string(TEXT)
    shots = "".join(
        text.render(**one) + " " + one["answer"] + "\n\n"
        for one in map(json.loads, (folder / "train.jsonl").read_text().splitlines()[:5])
    )
    known = {sha256((shots + text.render(**doc)).encode()).hexdigest(): reply(doc, at) for at, doc in enumerate(docs)}
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    start = time.perf_counter()
    with open(folder / "test.jsonl", "rb") as lines, open(folder / "floor.jsonl", "wb") as out:
        for at, line in enumerate(lines):
            doc = decode(line)
            prompt = shots + text.render(doc)
            key = sha256(prompt.encode()).hexdigest()
            said = known[key]
            for name in ("strict-match", "flexible-extract"):
                row = {
                    "doc_id": at,
                    "doc": doc,
                    "target": doc["answer"],
                    "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["Question:"]}}},
                    "resps": [[said]],
                    "filtered_resps": [said[-5:]],
                    "filter": name,
                    "metrics": ["exact_match"],
                    "doc_hash": sha256(line).hexdigest(),
                    "prompt_hash": key,
                    "target_hash": sha256(doc["answer"].encode()).hexdigest(),
                    "exact_match": 1.0,
                }
                out.write(encode(row) + b"\n")
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("documents", type=int, nargs="?", default=20_000)
    parser.add_argument("--lm-eval", type=int, default=2_000, dest="theirs")
    parser.add_argument("--shots", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        docs = write_task(folder, given.documents, given.shots)
        ours = evalcore_seconds(folder, docs) / given.documents
        floor = floor_seconds(folder, docs) / given.documents
    print(f"evalcore {ours * 1e6:8.1f} µs a document; floor {floor * 1e6:8.1f} µs; {ours / floor:.2f} times the floor")
    if given.theirs:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            docs = write_task(folder, given.theirs, given.shots)
            theirs = lm_eval_seconds(folder, docs) / given.theirs
        print(f"lm-eval  {theirs * 1e6:8.1f} µs a document: {theirs / ours:.1f} times evalcore's")


if __name__ == "__main__":
    main()
