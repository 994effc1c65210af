"""Completion in real shells: the script is sourced, words are typed, and what the shell would offer is read."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_tasks import evalcore_here, write_tasks

from evalcore.extensions import MODELS
from evalcore.shell.cli import COMMANDS
from evalcore.shell.cli.setup.completion import build_parser
from evalcore.shell.cli.shell_scripts import SHELLS
from evalcore.shell.cli.suggestions import list_suggestions

OURS = f'evalcore() {{ if [ "$1" = tasks ]; then printf "%s\\n" "arc_easy  task  x:1" "arc_hard  task  x:2" "gsm8k  task  y:1"; else {shlex.quote(sys.executable)} -m evalcore "$@"; fi; }}'  # fmt: skip
"""evalcore as a function of the shell, with three tasks."""


def needs(shell: str) -> pytest.MarkDecorator:
    """Skip where there is no such shell, saying so; ``EVALCORE_SHELLS=1``, which .ci/run sets, makes that a failure."""
    missing = shutil.which(shell) is None and not os.environ.get("EVALCORE_SHELLS")
    return pytest.mark.skipif(missing, reason=f"there is no {shell}")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion")
    for shell in SHELLS:
        (path / shell).write_text(evalcore_here(path, "completion", shell).stdout)
    return path


def bash(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    typed = " ".join(map(shlex.quote, words))
    code = (
        f"{OURS}\nsource {script / 'bash'}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}\n_evalcore\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stderr == ""
    return done.stdout.split()


@needs("bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("evalcore", ""), list(COMMANDS)),
        (("evalcore", "sc"), ["score"]),
        (("evalcore", "run", "--num_f"), ["--num_fewshot"]),
        (("evalcore", "run", "config.yaml", "--num_f"), ["--num_fewshot"]),
        (("evalcore", "run", "--policy", ""), ["evalcore", "lm-eval-0.4.13"]),
        (("evalcore", "run", "--model", "local-ch"), ["local-chat-completions"]),
        (("evalcore", "run", "--tasks", "arc"), ["arc_easy", "arc_hard"]),
        (("evalcore", "run", "--tasks", "gsm8k", "arc_e"), ["arc_easy"]),
        (("evalcore", "run", "--tasks", "gsm8k,arc_e"), ["gsm8k,arc_easy"]),
        (("evalcore", "run", "--limit", ""), []),
        (("evalcore", "run", "conf"), []),
        (("evalcore", "compare", "--correction", ""), ["bh", "holm", "none"]),
        (("evalcore", "score", "--unparsed", ""), ["wrong", "unscorable"]),
        (("evalcore", "tasks", "s"), ["search", "show"]),
        (("evalcore", "tasks", "show", "gs"), ["gsm8k"]),
        (("evalcore", "completion", ""), ["bash", "fish", "zsh"]),
        (("evalcore", "models", "dum"), ["dummy"]),
    ],
)
def test_bash_completes(script: Path, words: tuple[str, ...], offered: list[str]) -> None:
    assert bash(script, *words) == offered


@needs("bash")
def test_bash_offers_files_where_no_word_is_known(script: Path) -> None:
    code = f"source {script / 'bash'}; complete -p evalcore"
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "complete -o bashdefault -o default -F _evalcore evalcore\n"


@needs("bash")
def test_bash_completes_tasks_of_the_library(tmp_path: Path, script: Path) -> None:
    """The command that scripts ask for names of tasks prints them."""
    write_tasks(tmp_path / "tasks")
    listed = evalcore_here(tmp_path, "tasks", "list", "--include-path", "tasks").stdout
    assert {"sums", "places", "small"} <= {line.split(" ")[0] for line in listed.splitlines()}


@needs("fish")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("evalcore sc", ["score"]),
        ("evalcore run --policy ", ["evalcore", "lm-eval-0.4.13"]),
        ("evalcore run --num_f", ["--num_fewshot"]),
        ("evalcore models dum", ["dummy"]),
    ],
)
def test_fish_completes(script: Path, typed: str, offered: list[str]) -> None:
    code = f"source {script / 'fish'}; complete -C {shlex.quote(typed)}"
    env = {**os.environ, "HOME": str(script), "XDG_CONFIG_HOME": str(script)}
    done = subprocess.run(["fish", "-N", "-c", code], capture_output=True, text=True, check=True, timeout=120, env=env)
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == offered


ZSH = r"""
zmodload zsh/zpty
zpty -b shell zsh -f -i
read_all() { local out=""; while zpty -r -t shell line 2>/dev/null; do out+=$line; done; print -r -- $out }
zpty -w shell "PS1=; autoload -U compinit; compinit -D -u; source SCRIPT; zstyle ':completion:*' list-grouped no"
zpty -w shell "comppostfuncs=(tell); tell() { print -r -- \"<\${compstate[nmatches]}>\" > FOUND; }"
zpty -w -n shell $'TYPED\t'
for _ in {1..600}; do [[ -s FOUND ]] && break; sleep 0.1; done
zpty -d shell
"""


@needs("zsh")
@pytest.mark.parametrize(("typed", "count"), [("evalcore sc", 1), ("evalcore run --num_f", 1), ("evalcore run --policy ", 2)])  # fmt: skip
def test_zsh_completes(script: Path, tmp_path: Path, typed: str, count: int) -> None:
    found = tmp_path / "found"
    code = ZSH.replace("SCRIPT", str(script / "zsh")).replace("FOUND", str(found)).replace("TYPED", typed)
    subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert found.read_text().strip() == f"<{count}>"


def test_every_command_and_flag_is_suggested() -> None:
    suggested = list_suggestions()
    assert [one.name for one in suggested] == list(COMMANDS)
    assert all(any("--help" in flag.spellings for flag in one.flags) for one in suggested)
    models = next(one for one in suggested if one.name == "models")
    assert models.words == tuple(sorted(MODELS))
    assert {action.dest: action.choices for action in build_parser()._actions}["shell"] == tuple(sorted(SHELLS))
