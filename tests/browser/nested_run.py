"""A run with all that a what-if may meet: groups in groups, given weights, pooled and averaged tasks, lost documents."""

from __future__ import annotations

import json
from pathlib import Path

import evalcore

CHOICE = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {name}.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_target: gold
doc_to_choice: choices
metric_list:
  - {{metric: acc, aggregation: mean, higher_is_better: true}}
  - {{metric: f1, aggregation: f1, higher_is_better: true}}
"""
FREE = """task: free
dataset_path: json
dataset_kwargs: {data_files: {test: free.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{gold}}"
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
filter_list:
  - name: number
    filter:
      - {function: regex, regex_pattern: "([0-9]+)", fallback: null}
      - {function: take_first}
  - name: any
    filter:
      - {function: regex, regex_pattern: "([0-9]+)"}
      - {function: take_first}
"""
LONG = """task: long
dataset_path: json
dataset_kwargs: {data_files: {test: long.jsonl}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{question}}"
metric_list:
  - {metric: word_perplexity, aggregation: weighted_perplexity, higher_is_better: false}
"""
GROUPS = {
    "inner": "group: inner\ntask: [one, two]\naggregate_metric_list:\n  - {metric: acc, weight_by_size: false}\n"
    "  - {metric: f1, aggregation: macro, weight_by_size: true}\n",
    "outer": "group: outer\ntask: [inner, three]\naggregate_metric_list:\n"
    "  - {metric: acc, average: children, weight_by_size: true}\n",
    "pooled": "group: pooled\ntask: [one, three]\naggregate_metric_list:\n  - {metric: acc, aggregation: pool}\n",
    "weighed": "group: weighed\ntask: [one, two, three]\naggregate_metric_list:\n"
    "  - {metric: acc, weights: {one: 1, two: 3, three: 0.5}}\n",
    "everything": "group: everything\ntask: [outer, pooled, weighed, free, long]\n",
}
SIZES = {"one": 12, "two": 20, "three": 31}


def make_run(folder: Path) -> Path:
    """Make the run in a folder, and return where it is."""
    tasks = folder / "tasks"
    tasks.mkdir(parents=True)
    for name, size in SIZES.items():
        rows = [{"question": f"{name} {i}?", "choices": ["yes", "no"], "gold": i * 7 % 3 % 2} for i in range(size)]
        _write_rows(tasks / f"{name}.jsonl", rows)
        (tasks / f"{name}.yaml").write_text(CHOICE.format(name=name))
    asked = [{"question": f"one two three four of {i}", "gold": str(i)} for i in range(25)]
    for name, text in (("free", FREE), ("long", LONG)):
        _write_rows(tasks / f"{name}.jsonl", asked)
        (tasks / f"{name}.yaml").write_text(text)
    for name, text in GROUPS.items():
        (tasks / f"{name}.yaml").write_text(text)
    where = folder / "run"
    keys = {"model": "dummy", "tasks": "everything", "include_path": str(tasks), "allow_failures": "100%"}
    evalcore.run(keys, output_path=str(where))
    return where


def _write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
