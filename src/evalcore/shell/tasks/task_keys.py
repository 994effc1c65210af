"""Every key of a task file and of a group, and what it means: lm-eval's own, then evalcore's."""

from __future__ import annotations

TASK_KEYS: dict[str, str] = {
    "task": "the name of the task",
    "task_alias": "the name in tables",
    "tag": "a name, or several, for all tasks that have it",
    "class": "a Python task of lm-eval: listed and shown, not run",
    "include": "a file, or several, whose keys come first",
    "task_list": "tasks of one file, each a mapping of changes; not inherited by `include`",
    "metadata": "anything; `version` is printed, and goes into the results",
    # documents
    "dataset_path": "a dataset of the Hugging Face hub, or a kind of local file: `json`, `csv`, `parquet`, ...",
    "dataset_name": "the subset of a dataset",
    "dataset_kwargs": "arguments of the dataset: `data_files`, `data_dir`, ...",
    "custom_dataset": "a function that returns the splits",
    "process_docs": "a function from the documents of a split to others",
    "training_split": "the split that examples are drawn from, if `fewshot_split` names none",
    "validation_split": "the split that is asked if there is no `test_split`",
    "test_split": "the split that is asked",
    "fewshot_split": "the split that examples are drawn from",
    # prompts
    "doc_to_text": "the question: a column, a template, or a function",
    "doc_to_target": "what is right: a column, a template, a list, an index of a choice, or a function",
    "doc_to_choice": "the choices: a column, a template, a list, a mapping, or a function",
    "doc_to_image": "images: refused, for evalcore asks with text",
    "doc_to_audio": "sounds: refused, likewise",
    "use_prompt": "a prompt of promptsource: refused",
    "description": "a template before the examples",
    "target_delimiter": "what is between question and answer (a space)",
    "fewshot_delimiter": "what is between examples (an empty line)",
    "fewshot_config": "how examples are chosen and written: `sampler`, `samples`, `fewshot_indices`, ...",
    "num_fewshot": "examples before each question",
    "gen_prefix": "how every answer begins",
    # answers and scores
    "output_type": "`generate_until` (default), `multiple_choice`, `loglikelihood` or `loglikelihood_rolling`",
    "generation_kwargs": "options of generation: `until`, `max_gen_toks`, `temperature`, `do_sample`, ...",
    "repeats": "replies to each question (1)",
    "filter_list": "pipelines, each with a `name` and `filter`, a list of steps with a `function` and its options",
    "metric_list": "metrics, each a mapping of the keys below",
    "process_results": "a function of a document and its replies, to its scores",
    "unsafe_code": "the task runs what the model wrote: confirmed by `confirm_run_unsafe_code`",
    "should_decontaminate": "read and ignored, as lm-eval does",
    "doc_to_decontamination_query": "read and ignored, likewise",
    # evalcore's own
    "repeat_cfg": "how several replies become one score: `{reducer: [mean, pass@2]}`",
    "cluster": "a field or template: documents with an equal value belong together",
    "multiple_choice_by": "how choices are asked: `likelihood` (default), `letter` or `letter_logprobs` (chat models)",
}

METRIC_LIST_KEYS: dict[str, str] = {
    "metric": "the name of a metric, or a function",
    "aggregation": "the name of an aggregation, or a function (the metric's own)",
    "higher_is_better": "true or false (the metric's own)",
    "hf_evaluate": "true: a script of Hugging Face's `evaluate`",
    "bounds": "evalcore's own: between what a document's score lies, `[0, 10]`; null is an open end",
    "reducer": "evalcore's own: how several replies become one score, for this metric alone",
    "reducers": "the same as a list",
}
"""The keys of an entry of ``metric_list``; others are options of the metric."""

GROUP_FILE_KEYS: dict[str, str] = {
    "group": "the name of the group",
    "group_alias": "the name in tables",
    "task": "what is in it: names, globs, tags, changed tasks, groups",
    "aggregate_metric_list": "averages, each a mapping of the keys below",
    "metadata": "anything; `version` is printed",
}
AVERAGE_KEYS: dict[str, str] = {
    "metric": "the metric that is averaged",
    "filter_list": "of which filters (all)",
    "aggregation": "how values are combined: `mean` (default), `macro`, `pool`, or a function",
    "weight_by_size": "true (default): every document counts alike; false: every task",
    "average": "evalcore's own: `leaves` (default) or `children`",
    "weights": "evalcore's own: weights by name",
    "missing": "evalcore's own: a task without the metric: `flag` it (default), or `fail`",
}
"""The keys of an entry of ``aggregate_metric_list``."""
