"""A task and its config as commented YAML, which lm-eval reads as well."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote

import yaml

from evalcore.shell.safety.safe_text import visible

COMMENTS: Mapping[str, str] = {
    "task": "The name of the task: in configs (tasks: [NAME]) and in results.",
    "dataset_path": "The documents: one JSON object a line, in the file named below, beside this one.\n"
    "(lm-eval looks for it in the folder it is started from.)",
    "test_split": "The part of the data that is asked. Examples for few-shot prompts would be another: fewshot_split.",
    "output_type": "generate_until: the model writes a text. multiple_choice: it rates each choice.\n"
    "loglikelihood: it rates a given answer. loglikelihood_rolling: it rates whole texts.",
    "doc_to_text": "The prompt. {{name}} is the document's field of that name; all of Jinja works.",
    "doc_to_choice": "What the model may choose from.",
    "doc_to_target": "The right answer; of several choices, its place counted from 0.",
    "target_delimiter": "What stands between the prompt and the answer (a space, where nothing is said).",
    "generation_kwargs": "Where a reply ends, how long it may be, and whether it is drawn at random.",
    "filter_list": "How the answer is taken from the reply: the steps of each filter, in order.",
    "metric_list": "What is measured. `evalcore tasks check` finds mistakes; docs/catalogue.md lists every metric.",
    "metadata": "Raise the version when you change what is measured.",
}


def write_task(config: Mapping[str, object], head: Iterable[str]) -> str:
    """Write a task as YAML, with a comment on every key; ``head`` is said first.

    >>> print(write_task({"task": "t", "doc_to_text": "Q: {{q}}\\nA:", "test_split": "test"}, ["Mine."]))
    # Mine.
    <BLANKLINE>
    # The name of the task: in configs (tasks: [NAME]) and in results.
    task: t
    <BLANKLINE>
    # The prompt. {{name}} is the document's field of that name; all of Jinja works.
    doc_to_text: |-
      Q: {{q}}
      A:
    <BLANKLINE>
    # The part of the data that is asked. Examples for few-shot prompts would be another: fewshot_split.
    test_split: test
    <BLANKLINE>
    """
    parts = [write_comment("\n".join(head))]
    for key, value in config.items():
        said = f"\n{write_comment(COMMENTS[key])}" if key in COMMENTS else ""
        parts.append(f"{said}{key}:{write_value(value)}\n")
    return "".join(parts)


def write_comment(text: str) -> str:
    """Every line of a text as a comment; nothing in it can end one."""
    return "".join(f"# {visible(line)}".rstrip() + "\n" for line in text.split("\n"))


def write_value(value: object) -> str:
    r"""A value as it stands behind its key.

    >>> write_value("a\nb"), write_value(["A", "B"]), write_value("x\n")
    (' |-\n  a\n  b', ' [A, B]', ' "x\\n"')
    """
    if (
        isinstance(value, str)
        and "\n" in value
        and value == value.strip()
        and all(map(str.isprintable, value.split("\n")))
    ):
        return " |-" + "".join(f"\n  {line}".rstrip() for line in value.split("\n"))
    if isinstance(value, str):
        quoted = '"' if value != value.strip() or "{{" in value else None
        return " " + _dump(value, quoted).removesuffix("...\n").strip()
    flat = _dump(value, flow=True).strip()
    if len(flat) < 80 and not isinstance(value, Mapping) and "{" not in flat:
        return f" {flat}"
    return "\n" + "".join(f"  {line}\n" for line in _dump(value).rstrip("\n").split("\n")).rstrip("\n")


class _Dumper(yaml.SafeDumper):
    """Writes texts with line ends and the like in quotes, as a person would."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _quote_odd(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_Dumper.add_representer(str, _quote_odd)


def _dump(value: object, style: str | None = None, *, flow: bool = False) -> str:
    return yaml.dump(
        value,
        Dumper=_Dumper,
        default_style=style,
        default_flow_style=flow,
        sort_keys=False,
        allow_unicode=True,
        width=10**6,
    )


CONFIG = """{head}
# The model. dummy answers out of thin air: it shows that everything works, and what guessing scores.
model: dummy
{asking}
# Task files, beside this config.
tasks: [{name}.yaml]

# The run folder, seen from where you start evalcore. Each model needs its own.
output_path: runs/{name}-dummy

# Further keys, each also a flag (evalcore run --help):
# limit: 20                             only the first 20 documents
# gen_kwargs: {{temperature: 0.7}}        over the task's generation_kwargs
# prices: {{input: 0.15, output: 0.60}}   dollars per million tokens: the run says what it cost
# max_cost: 5                           stop there; a higher one goes on
"""

SERVERS: Mapping[bool, str] = {
    True: "# model: local-chat-completions       any server with an OpenAI-compatible API\n"
    '# model_args: {model: my-model, base_url: "http://localhost:8000/v1", num_concurrent: 8}\n'
    "# apply_chat_template: true\n",
    False: "# model: local-completions            a server that gives log-probabilities (vLLM, SGLang, ...)\n"
    '# model_args: {model: my-model, base_url: "http://localhost:8000/v1", num_concurrent: 8}\n',
}
"""What to ask by whether the model writes texts."""


def write_run_config(name: str, head: Iterable[str], *, texts: bool) -> str:
    """Write a run config for a task; ``texts``: the model writes texts, so that any chat model can be asked."""
    return CONFIG.format(head=write_comment("\n".join(head)), name=name, asking=SERVERS[texts])


def word_command(name: str, config: str, *, texts: bool) -> str:
    """The command that asks a model behind a server."""
    kind = "local-chat-completions --apply_chat_template" if texts else "local-completions"
    return (
        f"evalcore run {quote(config)} --model {kind} \\\n"
        f"    --model_args model=my-model,base_url=http://localhost:8000/v1 --output_path runs/{name}-my-model"
    )
