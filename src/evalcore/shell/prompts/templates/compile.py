"""Templates, compiled once. The simplest, which are most, become plain Python; jinja2 decides wherever they fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from jinja2 import TemplateError, nodes
from jinja2.environment import Template

from evalcore.core.records.errors import EvalError
from evalcore.shell.prompts.templates.limits import LONGEST, join_bounded
from evalcore.shell.prompts.templates.sandbox import Counted, ManySteps, get_environment
from evalcore.shell.prompts.templates.shortcuts import Value, make_shortcut
from evalcore.shell.safety.timer import TimeUp, get_budget, run_document, tell_budget

Doc = dict[str, object]
Render = Callable[[Doc], str]


@lru_cache(4096)
def compile_template(text: str) -> Render:
    """Compile a template to a function from a document to the text that lm-eval's jinja2 makes of it.

    >>> compile_template("Q: {{question}}\\nA:")({"question": "2 + 2?"})
    'Q: 2 + 2?\\nA:'
    >>> compile_template("{{ '{{x}}' }}{{y}}")({"y": "{{x}}"})      # a document's text is never used as a template
    '{{x}}{{x}}'
    """
    template, tree = _compile_text(text)
    slow = partial(_render, template)
    outputs = _list_outputs(tree)
    if outputs is None:
        return slow
    if all(isinstance(part, nodes.TemplateData) for part in outputs):
        constant = slow({})
        return lambda doc: constant
    values = [make_shortcut(part) for part in outputs]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return slow
    return partial(_make_single, known[0], slow) if len(known) == 1 else partial(_make_quick, known, slow)


@lru_cache(4096)
def compile_value(text: str) -> Callable[[Doc], object] | None:
    """Compile a template that is one expression to its value, so that a list need not be written and parsed.

    None if it is more, or too much for a shortcut; the value counts only if it is a list of texts.

    >>> compile_value("{{choices}}")({"choices": ["a", "b"]})
    ['a', 'b']
    """
    _, tree = _compile_text(text)
    outputs = _list_outputs(tree)
    return make_shortcut(outputs[0]) if outputs is not None and len(outputs) == 1 else None


def _compile_text(text: str) -> tuple[Template, nodes.Template]:
    where = get_environment()
    try:
        tree = where.parse(text)
        _refuse_blocks(tree)
        return where.from_string(text), tree
    except (TemplateError, RecursionError, MemoryError) as wrong:
        line = getattr(wrong, "lineno", None)
        raise _refuse_template(text, f"{wrong} in line {line}" if line else f"{wrong}") from wrong
    except SyntaxError as wrong:  # jinja2 reads what it cannot write as Python: x[1:, 2], loops nested too deeply
        raise _refuse_template(text, f"jinja2 cannot compile it ({wrong.msg})") from wrong


def _refuse_template(text: str, reason: str) -> EvalError:
    shown = text if len(text) <= 200 else text[:197] + "..."
    return EvalError(f"expected a jinja2 template, got {shown!r}: {reason}")


def _list_outputs(tree: nodes.Template) -> list[nodes.Node] | None:
    """List the texts and expressions of a template that has nothing else."""
    if not all(isinstance(node, nodes.Output) for node in tree.body):
        return None
    return [part for node in tree.body if isinstance(node, nodes.Output) for part in node.nodes]


def _refuse_blocks(tree: nodes.Template) -> None:
    """Refuse text set from itself in a loop: it doubles with every turn, and no operation shows its size."""
    for block in tree.find_all(nodes.AssignBlock):
        if isinstance(block.target, nodes.NSRef):
            raise EvalError("expected {% set x.y = ... %}, got a {% set x.y %} block")


FEW = 1000
"""Steps within which no template takes long. Beyond them it is timed; a timer costs as much as most templates."""


def _render(template: Template, doc: Doc) -> str:
    try:
        return _render_bounded(template, doc, FEW)
    except ManySteps:
        pass
    try:
        return run_document(_render_bounded, template, doc, LONGEST)
    except TimeUp:
        raise EvalError(f"the template {tell_budget(get_budget())}") from None


def _render_bounded(template: Template, doc: Doc, most: int) -> str:
    """Render as ``template.render`` does, without its rewriting of tracebacks and with limits."""
    names = {**get_environment().globals, **doc}
    context = Counted(get_environment(), names, template.name, template.blocks)
    context.most = most
    return join_bounded(template.root_render_func(context), doc)


def _make_quick(values: list[Value], slow: Render, doc: Doc) -> str:
    try:
        parts = [str(value(doc)) for value in values]
    except Exception:
        return slow(doc)
    return "".join(parts) if sum(map(len, parts)) <= LONGEST else slow(doc)


def _make_single(value: Value, slow: Render, doc: Doc) -> str:
    try:
        text = str(value(doc))
    except Exception:
        return slow(doc)
    return text if len(text) <= LONGEST else slow(doc)
