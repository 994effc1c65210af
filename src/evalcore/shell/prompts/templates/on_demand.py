"""Templates compiled on demand: to import them takes time, and a field that is only named needs none."""

from __future__ import annotations

from collections.abc import Callable

Doc = dict[str, object]


def compile_template(given: str) -> Callable[[Doc], str]:
    """Compile a template of a document."""
    from evalcore.shell.prompts.templates import compile as made

    return made.compile_template(given)


def compile_value(given: str) -> Callable[[Doc], object] | None:
    """Compile a template that shows a single value; None for any other."""
    from evalcore.shell.prompts.templates import compile as made

    return made.compile_value(given)
