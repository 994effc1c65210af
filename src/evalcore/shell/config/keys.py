"""Every key of a run config: lm-eval's own, then evalcore's; each is also a flag of ``run``."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["text", "int", "number", "flag", "pairs", "names", "seeds", "json"]


class Key(NamedTuple):
    """How a key is written as a flag, what it does and, if it is ignored here, why."""

    kind: Kind
    help: str
    short: str = ""
    ignored: str = ""


NOT_SENT = "nothing is uploaded; the run folder holds everything"

KEYS: dict[str, Key] = {
    "model": Key("text", "name of the model backend (see `evalcore models`)", "-M"),
    "model_args": Key("pairs", "arguments of the backend: key=value,key2=value2 or a JSON object", "-a"),
    "batch_size": Key("text", "as batch_size in model_args, of a backend that has batches", "-b"),
    "max_batch_size": Key("int", "the most that batch_size: auto may be"),
    "device": Key("text", "as device in model_args, of a backend that has devices"),
    "tasks": Key("names", "names, globs, YAML files, folders; separated by spaces or commas", "-t"),
    "num_fewshot": Key("int", "examples before each question (a task that sets 0 keeps 0)", "-f"),
    "limit": Key("number", "documents per task: a count, or below 1 a share", "-L"),
    "samples": Key("json", "documents by index: '{\"task\": [0, 3]}' or the path of such a file", "-E"),
    "gen_kwargs": Key("pairs", "generation options that go over the tasks' own", ""),
    "include_path": Key("names", "folders with task files (an installed lm-eval's are known already)"),
    "output_path": Key("text", "the run folder", "-o"),
    "log_samples": Key("flag", "write samples_<task>.jsonl (default: true)", "-s"),
    "predict_only": Key("flag", "ask and record, measure nothing", "-x"),
    "multiple_choice_by": Key(
        "text", "how multiple_choice tasks are asked: likelihood (default), letter or letter_logprobs (chat models)"
    ),
    "system_instruction": Key("text", "text of the system turn, before a task's description"),
    "apply_chat_template": Key("flag", "prompts through the model's chat template"),
    "fewshot_as_multiturn": Key("flag", "examples as turns of a conversation (default with a chat template)"),
    "seed": Key("seeds", "one number, or four: python, numpy, torch, few-shot"),
    "bootstrap_iters": Key("int", "resamples where an error needs any; 0: no errors"),
    "use_cache": Key("text", "an answer log shared by several runs: PATH.jsonl", "-c"),
    "metadata": Key("pairs", "goes into every task's metadata"),
    "write_out": Key("flag", "print the first prompt of each task", "-w"),
    "confirm_run_unsafe_code": Key("flag", "allow tasks that execute what the model wrote (they need trust as well)"),
    # evalcore's own
    "data": Key("json", 'local files for tasks: \'{"gsm8k": "my.jsonl"}\', names may be globs'),
    "policy": Key("text", "evalcore (default), or lm-eval-0.4.13 for its numbers where they differ"),
    "confidence": Key("number", "level of the intervals (default 0.95)"),
    "ci": Key("text", "how intervals are made: wilson (default), t, exact, percentile, bca, z (wilson without t)"),
    "stderr": Key("text", "errors of clusters and of documents that weigh unequally: cr2 (default), cr1 (as if equal)"),
    "cluster": Key("text", "field or template whose equal values belong together (in a file also {task: field})"),
    "on_unscorable": Key("text", "documents without a score: exclude (default), zero or fail"),
    "allow_failures": Key("text", "documents that may lack a score at exit code 0: a number (3) or a share (0.5%)"),
    "keep_going": Key("flag", "leave out a task that cannot be built and run the others (exit code 1)"),
    "engine": Key("text", "who scores recorded answers, task by task: serial (default), processes or ray"),
    "workers": Key("int", "how many processes of an engine (all cores)"),
    "address": Key("text", "HOST:PORT of a Ray cluster (one that runs here, else a new one)"),
    "doc_timeout": Key("number", "seconds that scoring a document or filling a template may take (60; 0: no limit)"),
    "prices": Key("pairs", "dollars per million tokens: input=0.15,output=0.60 (also cached_input)"),
    "max_cost": Key("number", "stop asking once the run has cost so many dollars (needs prices)"),
    "max_requests": Key("int", "stop asking once the run has made so many requests"),
    "report": Key("flag", "write a page for a browser: report.html in the run folder, or the FILE given"),
    "trust": Key("names", "files or folders whose code may run (PATH@sha256:HEX pins a file); model:NAME, of a model"),
    # accepted but ignored
    "cache_requests": Key("text", "", ignored="building requests takes microseconds"),
    "check_integrity": Key("flag", "", ignored="use `evalcore tasks check`"),
    "show_config": Key("flag", "", ignored="config.yaml in the run folder, and `evalcore tasks show`"),
    "verbosity": Key("text", "", "-v", ignored="use --quiet"),
    "wandb_args": Key("pairs", "", ignored=NOT_SENT),
    "wandb_config_args": Key("pairs", "", ignored=NOT_SENT),
    "trackio_args": Key("pairs", "", ignored=NOT_SENT),
    "hf_hub_log_args": Key("pairs", "", ignored=NOT_SENT),
    "trust_remote_code": Key("flag", "", ignored="code runs only where `trust` names it (that of a model: docs/hf.md)"),
}
