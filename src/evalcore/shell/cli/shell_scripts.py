"""Completion as each shell wants it written: a function for the whole of it, in a table by the shell's name."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence

from pyrsistent import PMap, pmap

from evalcore.shell.cli.suggestions import CommandWords, FlagWords

NAMES = "evalcore tasks list 2>/dev/null | cut -d' ' -f1"
"""The names of all tasks; from the cache, in a quarter of a second."""

BASH = """# completion of evalcore for bash: source <(evalcore completion bash)
_evalcore_words() {{
    local cur="$2" head=""
    [[ "$cur" == *,* ]] && head="${{cur%,*}},"
    COMPREPLY=($(compgen -P "$head" -W "$1" -- "${{cur##*,}}"))
}}
_evalcore() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}" at=$((COMP_CWORD - 1))
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _evalcore_words {commands} "$cur"
        return
    fi
    while ((at > 1)) && [[ "${{COMP_WORDS[at]}}" != -* ]]; do ((at--)); done
    if [[ "$cur" == -* ]]; then
        case "$command" in
{flags}
        esac
        return
    fi
    case "$command ${{COMP_WORDS[at]}} $((COMP_CWORD - at))" in
{values}
    esac
}}
complete -o bashdefault -o default -F _evalcore evalcore
"""


def write_bash(commands: Sequence[CommandWords]) -> str:
    """For bash 3.2 and later; what is not listed here is a file."""
    return BASH.format(
        commands=_quote(one.name for one in commands),
        flags="\n".join(
            f'        {one.name}) _evalcore_words {_quote(_list_spellings(one))} "$cur" ;;' for one in commands
        ),
        values="\n".join(f"    {line}" for one in commands for line in _list_bash_values(one)),
    )


def _list_bash_values(command: CommandWords) -> Iterable[str]:
    for flag in command.flags:
        if flag.words or flag.task:
            times = "*" if flag.takes > 1 else "1"
            cases = "|".join(f'"{command.name} {spelling} "{times}' for spelling in flag.spellings)
            yield f'{cases}) _evalcore_words {_say_words(flag.words, task=flag.task)} "$cur" ;;'
        elif flag.takes == 1:
            yield "|".join(f'"{command.name} {spelling} "1' for spelling in flag.spellings) + ") ;;"
    if command.words:
        yield f'"{command.name} {command.name} 1") _evalcore_words {_quote(command.words)} "$cur" ;;'
    if command.task:
        yield f'"{command.name} {command.name} "*) _evalcore_words "$({NAMES})" "$cur" ;;'


def _say_words(words: Sequence[str], *, task: bool) -> str:
    return f'"$({NAMES})"' if task else _quote(words)


ZSH = """#compdef evalcore
# completion of evalcore for zsh: source <(evalcore completion zsh), after compinit
_evalcore_tasks() {{ local -a names; names=(${{(f)"$({names})"}}); compadd -S '' -q -a names }}
_evalcore() {{
    local -a commands
    commands=(
{commands}
    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command=$words[2]
    shift words
    ((CURRENT--))
    case $command in
{cases}
    esac
}}
compdef _evalcore evalcore
"""


def write_zsh(commands: Sequence[CommandWords]) -> str:
    return ZSH.format(
        names=NAMES,
        commands="\n".join(f"        {shlex.quote(f'{one.name}:{one.summary}')}" for one in commands),
        cases="\n".join(f"        {one.name}) _arguments {' '.join(_list_zsh_specs(one))} ;;" for one in commands),
    )


def _list_zsh_specs(command: CommandWords) -> Iterable[str]:
    for flag in command.flags:
        told = "".join(f"\\{char}" if char in "[]:\\" else char for char in flag.help.split("\n")[0])
        value = {0: "", 1: f":value:{_say_zsh_words(flag.words, flag.task)}"}.get(
            flag.takes, f":*-*:value:{_say_zsh_words(flag.words, flag.task)}"
        )
        yield from (shlex.quote(f"*{spelling}[{told}]{value}") for spelling in flag.spellings)
    if command.words:
        yield shlex.quote(f"1:what:({' '.join(command.words)})")
    yield shlex.quote(f"*:what:{'_evalcore_tasks' if command.task else '_files'}")


def _say_zsh_words(words: Sequence[str], task: bool) -> str:
    return "_evalcore_tasks" if task else f"({' '.join(words)})" if words else "_files"


FISH = """# completion of evalcore for fish: evalcore completion fish | source
"""


def write_fish(commands: Sequence[CommandWords]) -> str:
    return FISH + "".join(f"complete -c evalcore {line}\n" for one in commands for line in _list_fish_lines(one))


def _list_fish_lines(command: CommandWords) -> Iterable[str]:
    yield f"-n __fish_use_subcommand -f -a {command.name} -d {shlex.quote(command.summary)}"
    here = f"-n '__fish_seen_subcommand_from {command.name}'"
    for flag in command.flags:
        yield f"{here} {_spell_fish(flag)} -d {shlex.quote(flag.help)}"
    if command.words:
        yield f"{here} -f -a {_quote(command.words)}"
    if command.task:
        yield f'{here} -f -a "({NAMES})"'


def _spell_fish(flag: FlagWords) -> str:
    spelled = " ".join(f"-l {one[2:]}" if one.startswith("--") else f"-s {one[1:]}" for one in flag.spellings)
    if flag.takes == 0:
        return spelled
    words = f'"({NAMES})"' if flag.task else _quote(flag.words)
    return f"{spelled} -x -a {words}" if flag.task or flag.words else f"{spelled} -r"


def _list_spellings(command: CommandWords) -> Iterable[str]:
    return (spelling for flag in command.flags for spelling in flag.spellings)


def _quote(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


SHELLS: PMap[str, Callable[[Sequence[CommandWords]], str]] = pmap(
    {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}
)
