"""How to make a run again: its command, its config, the versions it was made with; and what its answers took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from shlex import join

import msgspec

from evalcore.core.lm_eval.sample_log import thaw
from evalcore.core.records.errors import EvalError
from evalcore.core.records.request import GENERATE_UNTIL
from evalcore.shell.config.config_file import read_file
from evalcore.shell.logs.json_records import find_part
from evalcore.shell.models import MODELS
from evalcore.shell.report.gathered_run import GatheredRun
from evalcore.shell.run.questions.usage import Usage, tell_usage
from evalcore.shell.safety.secrets import find_secrets, redact
from evalcore.shell.score.units.typed_command import spell_command

Plain = dict[str, object]
VERSIONS = ("evalcore_version", "lm_eval_version", "transformers_version", "python", "platform", "git_hash")
FROM_RESULTS = ("model", "model_args", "num_fewshot", "limit", "gen_kwargs", "system_instruction", "bootstrap_iters")
"""Keys that mean the same in the results' config and in a config to run."""

REDACTED = "Command, config and the model's identity are left out of this page, as it was redacted."
AGAIN = (
    "Save the config as config.yaml. It gives the same questions in the same order; a model that draws its answers may "
    "give others."
)
SAME = "The same recorded answers give the same numbers; paths are as they were typed."
UNASKED = "Nothing here tells how these answers were asked for; `evalcore score` scores them again, without the model."
RUN = "evalcore run config.yaml"
MADE_UP = "This run left no config of its own: this one is made from what its results say, and may lack something."


def describe_reproduction(run: GatheredRun, *, redact: bool) -> Plain:
    """Say how to make a run again, as far as its folder and its results tell."""
    noted = run.noted
    made: Plain = {"versions": _list_versions(noted, run.results), "inputs": dict(find_part(noted, "inputs"))}
    if redact:
        return {"note": REDACTED, **made}
    made |= {key: noted[key] for key in ("model_identity",) if isinstance(noted.get(key), str)}
    return {**_tell_command(run), **made}


def describe_usage(run: GatheredRun) -> Plain | None:
    """What the answers of a run took, in a sentence and by rows; None where that was not recorded."""
    found = find_part(run.noted, "usage")
    try:
        usage = msgspec.convert(dict(found), Usage) if found else None
    except msgspec.ValidationError:
        return None
    return None if usage is None else {"told": tell_usage(usage), "rows": list(_list_rows(usage))}


def _list_rows(usage: Usage) -> Iterator[tuple[str, str]]:
    counts = {
        "requests": usage.requests,
        "failed": usage.failed,
        "retries": usage.retries,
        "tokens in": usage.prompt_tokens,
        "of them cached": usage.cached_prompt_tokens,
        "tokens out": usage.completion_tokens,
    }
    yield from ((name, "–" if count is None else f"{count:,}") for name, count in counts.items())
    latency = usage.latency_seconds
    spread = (latency.p50, latency.p90, latency.p99) if latency else ()
    yield "seconds a reply: half, 90 %, 99 % within", ", ".join(f"{one:.2g}" for one in spread) or "–"
    least = "at least " if usage.uncounted_replies else ""
    yield "cost", "– (no prices were given)" if usage.cost is None else f"{least}${usage.cost:.4f}"


def count_cut_off(run: GatheredRun) -> dict[str, Plain]:
    """By task of generated replies, how many there are and how many did not end by themselves, as the run noted."""
    noted = find_part(run.noted, "endings")
    texts = [log.name for log in run.source.logs if log.output_type == GENERATE_UNTIL and log.name in noted]
    return {name: {key: one for key, one in find_part(noted, name).items() if isinstance(one, int)} for name in texts}


def _list_versions(noted: Mapping[str, object], results: Mapping[str, object]) -> str:
    """The versions that a run was made with, each on a line."""
    known = {key.removesuffix("_version"): noted.get(key, results.get(key)) for key in VERSIONS}
    named = {**known, **find_part(noted, "packages")}
    return "\n".join(f"{name} {one}" for name, one in named.items() if isinstance(one, str))


def _tell_command(run: GatheredRun) -> Plain:
    """The command that makes a run again and its config, if it has one, and what there is to know of them.

    Credentials, which others may have left in a config, are left out.
    """
    typed = run.noted.get("command")
    if isinstance(typed, list) and typed:
        return {"note": SAME, "command": join(map(str, typed))}
    if run.folder is not None:
        with suppress(EvalError):
            value, text = read_file(run.folder / "config.yaml")
            return {"note": AGAIN, "command": RUN, "config": str(redact(text, find_secrets(value)))}
    if find_part(run.results, "config").get("model") in MODELS:
        return {"note": MADE_UP, "command": RUN, "config": _make_config(run)}
    words = spell_command("score", [str(run.source.path)], run.read)
    return {"note": UNASKED, **({"command": join(words)} if words else {})}


def _make_config(run: GatheredRun) -> str:
    """A config in YAML, of which JSON is a part: a key a line."""
    told = find_part(run.results, "config")
    names = [one.name for one in run.report.tasks] or list(find_part(run.results, "results"))
    keys = {key: redact(thaw(told[key])) for key in FROM_RESULTS if told.get(key) not in (None, "", {})}
    lines = ({"tasks": names} | keys).items()
    return "".join(f"{key}: {msgspec.json.encode(one).decode()}\n" for key, one in lines)
