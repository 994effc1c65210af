"""Score recorded answers of a small model and print every number with its interval (--lm-eval: as lm-eval's JSON).

Our own questions are in quickstart/questions.jsonl, the model's answers in quickstart/answers.jsonl (see README.md).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

import evalcore as ec

DATA = Path(__file__).parent / "quickstart"

# --- 1. what is measured: metrics by name, filters that read an answer out of a reply, and a tree of groups ----------

CHOICE = tuple(map(ec.MetricSpec, ("acc", "acc_norm", "brier_score", "choice_prob")))
TEXT = tuple(map(ec.MetricSpec, ("word_perplexity", "byte_perplexity", "bits_per_byte")))
PLAIN = ec.options(regexes_to_ignore=[",", r"\$", r"\.$"])  # "$1,200." is 1200
NUMBER = (ec.MetricSpec("exact_match", options=PLAIN), ec.MetricSpec("extraction_rate"))
REPEATED = (ec.MetricSpec("exact_match", reducers=("mean", "pass@2", "pass^2", "maj@4")),)  # four replies each

STRICT = ec.Step.of("regex", regex_pattern=r"(?:####|[Tt]he answer is) (-?\$?[0-9][0-9.,]*)")
LAST = ec.Step.of("regex", regex_pattern=r"(-?\$?[0-9][0-9.,]*)", group_select=-1)
NUMBERS = (ec.Pipeline("strict", (STRICT,)), ec.Pipeline("last-number", (LAST,)))
WORD = (ec.Pipeline("first-word", (ec.Step.of("regex", regex_pattern=r"(\w+)"), ec.Step.of("lowercase"))),)

TASKS = (
    ec.Task("nature", ec.MULTIPLE_CHOICE, CHOICE),
    ec.Task("world", ec.MULTIPLE_CHOICE, CHOICE),
    ec.Task("one_step", ec.GENERATE_UNTIL, NUMBER, NUMBERS, num_fewshot=2),
    ec.Task("two_step", ec.GENERATE_UNTIL, NUMBER, NUMBERS, num_fewshot=2),
    ec.Task("simple_questions", ec.GENERATE_UNTIL, REPEATED, WORD, num_fewshot=2),
    ec.Task("prose", ec.LOGLIKELIHOOD_ROLLING, TEXT),
)
NATURE, WORLD, ONE, TWO, SIMPLE, PROSE = (ec.Leaf[object](task.name, None) for task in TASKS)
ACC, ACC_NORM, EXACT = map(ec.GroupMetric, ("acc", "acc_norm", "exact_match"))
KNOWLEDGE: ec.Group[object] = ec.Group("knowledge", (NATURE, WORLD), (ACC, ACC_NORM))
ARITHMETIC: ec.Group[object] = ec.Group("arithmetic", (ONE, TWO), (EXACT,))
TREE: ec.Group[object] = ec.Group("quickstart", (KNOWLEDGE, ARITHMETIC, SIMPLE, PROSE))

# --- 2. what was asked and answered ---------------------------------------------------------------------------------


class Recorded(ec.Instance, frozen=True, kw_only=True):
    """A line of answers.jsonl: a request, and the model's reply to each repeat of it."""

    replies: tuple[str | ec.Likelihood, ...]


def read_answers() -> list[ec.Answer]:
    decoder = msgspec.json.Decoder(Recorded, dec_hook=lambda _, given: ec.options(given))
    return [ec.Answer(line, line.replies) for line in decoder.decode_lines((DATA / "answers.jsonl").read_bytes())]


def read_samples(task: str) -> list[ec.Sample]:
    rows = map(json.loads, (DATA / "questions.jsonl").read_text("utf-8").splitlines())
    return [ec.Sample(r["doc_id"], r.get("gold"), tuple(r.get("choices", ()))) for r in rows if r["task"] == task]


# --- 3. from answers to a report to a table ---------------------------------------------------------------------------


def evaluate() -> ec.Report:
    answers = read_answers()
    scored = [ec.score_task(t, read_samples(t.name), [a for a in answers if a.task == t.name]) for t in TASKS]
    return ec.build_report(map(ec.report_task, scored), [TREE])


def rows_of(report: ec.Report) -> list[ec.TaskReport | ec.GroupReport]:
    return [*report.groups, *report.tasks]


def table(report: ec.Report) -> Table:
    out = Table(box=box.SIMPLE_HEAD, title="SmolLM2-135M-Instruct on our own questions", title_justify="left")
    for header in ("task", "metric", "filter", "value", "95 % interval", "n", "better"):
        out.add_column(header, justify="right" if header in ("value", "95 % interval", "n") else "left", no_wrap=True)
    lines: tuple[tuple[str, str], ...] = ec.fold_group(  # every node, parents first: its indentation and its name
        report.trees[0],
        lambda leaf: (("", leaf.name),),
        lambda node, parts: (("", node.name), *(("  " + pad, name) for part in parts for pad, name in part)),
    )
    rows = {row.name: row.estimates for row in rows_of(report)}
    for pad, name in lines:
        if not rows[name]:
            out.add_row(pad + name)
        for i, (key, e) in enumerate(rows[name]):
            value = "-" if e.value is None else f"{e.value:.3f}"
            interval = "-" if e.ci is None else f"{e.ci[0]:.3f} to {e.ci[1]:.3f}"
            better = "higher" if e.higher_is_better else "lower"
            out.add_row(pad + name if i == 0 else "", key.metric, key.filter, value, interval, str(e.n), better)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description="Score the embedded example.")
    parser.add_argument("--lm-eval", action="store_true", help="print lm-eval's result file (JSON) instead of a table")
    as_json, report = parser.parse_args().lm_eval, evaluate()
    if as_json:
        print(json.dumps(ec.lm_eval_results(report), indent=2))
        return
    console = Console(width=100, highlight=False, markup=False)
    console.print(table(report), (DATA / "legend.txt").read_text("utf-8"))
    for row in rows_of(report):
        missing = [f"{row.name} {key}: {estimate.reason}" for key, estimate in row.estimates if estimate.reason]
        for warning in (*row.warnings, *missing):
            console.print(f"warning: {warning}")
    recipe = dict(report.group("knowledge").estimates)[ec.MetricKey("acc")].signature
    console.print(f"Every number carries its recipe; the one of knowledge acc is\n{recipe}", soft_wrap=True)


if __name__ == "__main__":
    main()
