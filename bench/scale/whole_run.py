"""A whole run on recorded answers, samples written: lm-eval's, evalcore's, and the floor of what any harness must do.

The floor reads documents and answers, draws and writes prompts, hashes what lm-eval's rows have hashes of, and encodes
a row for each filter; it neither filters nor scores. Each side is a process of its own, whose imports are not timed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import jinja2
import msgspec
from pyrsistent import pmap

import evalcore
from bench.measure import run_python
from bench.rows import Row, at_least, at_most
from evalcore.extensions import Backend, Heard, Model, Question

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


def write_task(folder: Path, n: int, shots: int) -> None:
    rng = random.Random(0)
    for name, count in (("train", 20), ("test", n)):
        with open(folder / f"{name}.jsonl", "w") as file:
            for _ in range(count):
                file.write(json.dumps(document(rng)) + "\n")
    (folder / "shots").write_text(str(shots))
    (folder / "bench_gsm8k.yaml").write_text(
        TASK.format(train=folder / "train.jsonl", test=folder / "test.jsonl", shots=shots)
    )


def read_documents(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in open(folder / "test.jsonl")]


def read_replies(folder: Path) -> dict[str, str]:
    return {doc["question"]: reply(doc, at) for at, doc in enumerate(read_documents(folder))}


def find_question(prompt: str) -> str:
    return prompt[prompt.rindex("Question: ") + 10 : -8]


def reply(doc: dict[str, str], at: int) -> str:
    gold = doc["answer"].rsplit(" ", 1)[1]
    return " " + doc["answer"].split("####")[0] + f"#### {gold if at % 3 else int(gold) + 1}"


def record_answers(folder: Path) -> None:
    """Ask a model that knows the replies, so that a replay finds them."""
    replies = read_replies(folder)

    def ask(questions: Iterable[Question]) -> Iterator[Heard]:
        for at, question in enumerate(questions):
            yield Heard(at, replies[find_question(question.request.prompt)], more=True)

    def opened(arguments: object) -> Model:
        return Model("told", "told", ask, lambda messages: "")

    told = pmap({"told": Backend(opened, "", ())})
    task, out = str(folder / "bench_gsm8k.yaml"), str(folder / "recorded")
    evalcore.run({"tasks": [task]}, model="told", output_path=out, models=told, log_samples=False)


def evalcore_seconds(folder: Path) -> float:
    config = {"tasks": [str(folder / "bench_gsm8k.yaml")], "log_samples": True}
    path, out = folder / "recorded" / "answers.jsonl", folder / "out"
    start = process_time()
    evalcore.run(config, model="replay", model_args={"path": str(path)}, output_path=str(out), overwrite=True)
    return process_time() - start


def lm_eval_seconds(folder: Path) -> float:
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    replies = read_replies(folder)

    class Told(LM):
        def generate_until(self, requests, disable_tqdm=False):
            return [replies[find_question(one.args[0])] for one in requests]

        loglikelihood = loglikelihood_rolling = None

    manager = TaskManager(include_path=str(folder), include_defaults=False)
    start = process_time()
    tracker = EvaluationTracker(output_path=str(folder / "lm"))
    results = lm_eval.simple_evaluate(Told(), tasks=["bench_gsm8k"], task_manager=manager, log_samples=True)
    samples = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=samples)
    for name in results["configs"]:
        tracker.save_results_samples(task_name=name, samples=samples[name])
    return process_time() - start


UNTIL = {"do_sample": False, "temperature": 0.0, "until": ["Question:", "</s>"]}
NAMES = ("strict-match", "flexible-extract")


def floor_seconds(folder: Path) -> float:
    """Once a document: decode, draw, render, hash, look up; and encode a row for each of two filters."""
    text, shots = jinja2.Environment().from_string(TEXT), int((folder / "shots").read_text())
    train = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]
    examples = [text.render(one) + " " + one["answer"] + "\n\n" for one in train]
    options = json.dumps(UNTIL).encode()
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    rnd = random.Random(1234)
    start = process_time()
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
    return process_time() - start


def check_floor(folder: Path) -> None:
    """The floor made the prompts and hashes that the run made."""
    keys = ("doc_id", "doc", "target", "arguments", "resps", "doc_hash", "prompt_hash", "target_hash")
    with open(folder / "floor.jsonl") as floor, open(folder / "out" / "samples_bench_gsm8k.jsonl") as ours:
        for a, b in zip(islice(floor, 0, 2000, 2), islice(ours, 1000), strict=False):
            one, other = json.loads(a), json.loads(b)
            assert all(one[key] == other[key] for key in keys), (one, other)


SIDES = {"lm-eval": lm_eval_seconds, "evalcore": evalcore_seconds, "floor": floor_seconds}
CHILD = """
import sys
from pathlib import Path
from bench.scale.whole_run import SIDES
print(SIDES[sys.argv[1]](Path(sys.argv[2])))
"""


def measure_rows(*, docs: int = 100_000, theirs: int = 2_000, shots: int = 5, times: int = 1) -> Iterator[Row]:
    with TemporaryDirectory() as name:
        write_task(Path(name), theirs, shots)
        peer = _measure_side("lm-eval", name)
    with TemporaryDirectory() as name:
        write_task(Path(name), docs, shots)
        record_answers(Path(name))
        ours, floor = (min(_measure_side(side, name) for _ in range(times)) for side in ("evalcore", "floor"))
        check_floor(Path(name))
    yield Row(
        what=f"{docs:,} documents, {shots} shots",
        peer=peer[0] / theirs * 1e6,
        ours=ours[0] / docs * 1e6,
        unit="µs a document",
        floor=floor[0] / docs * 1e6,
        memory=ours[1],
        targets=(at_least(20), at_most(2, "floors")),
        note=f"lm-eval on {theirs:,}",
    )


def _measure_side(side: str, folder: str) -> tuple[float, float]:
    used = run_python(CHILD, side, folder)
    return float(used.output.split()[-1]), used.memory
