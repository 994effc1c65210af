"""Which function writes which result of a command as HTML."""

from __future__ import annotations

from collections.abc import Callable

from pyrsistent import PMap, pmap

from evalcore.core.notebook.contrasts import write_lines
from evalcore.core.notebook.markup import Html, write_fold, write_line, write_list, write_panel
from evalcore.core.notebook.numbers import list_lines, write_numbers
from evalcore.core.notebook.record_forms import find_form
from evalcore.core.plain_text import show_share
from evalcore.shell.compare.check import Checked
from evalcore.shell.compare.compare import Compared
from evalcore.shell.compare.power import Planned
from evalcore.shell.explain.diff import Diffed
from evalcore.shell.explain.explain import Explained
from evalcore.shell.output.check.gate_tables import build_pages, summarise_gates
from evalcore.shell.output.compare.footnotes import list_runs, list_sections, tell_correction
from evalcore.shell.output.explain.diff_page import build_diff
from evalcore.shell.output.explain.document_page import build_document
from evalcore.shell.output.notebook.pages import write_blocks, write_page
from evalcore.shell.output.power.plan_page import build_page
from evalcore.shell.output.terminal.losses import tell_ledger
from evalcore.shell.run.run_result import RunResult
from evalcore.shell.safety.credentials import hide_credentials


def write_run(result: RunResult) -> Html:
    """A run's numbers, what became of its documents, and where its files are."""
    shown = result.shown()
    where = f"{shown.placed} {shown.folder}: {', '.join(shown.files)}" if shown.folder else ""
    return write_panel(
        shown.title,
        write_numbers(list_lines(result.report), f"{show_share(shown.confidence)} interval"),
        write_line(tell_ledger(shown.ledger)),
        write_line(shown.usage),
        write_list(shown.losses, "Documents without a score:"),
        write_list(shown.notes, "Notes and warnings:"),
        write_line(where, small=True),
        lead=() if result.complete else ("more documents lack a score, or tasks were left out, than allowed",),
    )


def write_compared(compared: Compared) -> Html:
    """Every pair of runs, each number with its interval around no difference."""
    first = compared.comparisons[0]
    labels = compared.labels
    pairs = zip(compared.pairs, compared.comparisons, strict=True)
    aliases = compared.aliases
    tables = (write_lines(one, (labels[a], labels[b]), aliases) for (a, b), one in pairs)
    sections = (write_list(section.lines, section.head) for section in list_sections(compared))
    title, *others = list_runs(compared)
    said = tell_correction(first.correction, first.family, compared.alpha)
    return write_panel(
        title,
        *map(write_line, others),
        *tables,
        write_fold("How verdicts are reached", write_line(said)),
        *sections,
        lead=compared.lead,
    )


def write_checked(checked: Checked) -> Html:
    """The gates of a run, and in a line how it went."""
    return write_panel(summarise_gates(checked).strip(), *map(write_page, build_pages(checked)))


_WRITERS: dict[type, Callable[..., Html]] = {
    RunResult: write_run,
    Compared: write_compared,
    Checked: write_checked,
    Planned: lambda planned: write_page(build_page(planned)),
    Explained: lambda explained: write_blocks(build_document(explained)),
    Diffed: lambda diffed: write_blocks(build_diff(diffed)),
}
FORMS: PMap[type, Callable[..., Html]] = pmap(_WRITERS)


def write_html(result: object) -> str:
    """What a command found, as HTML without any credential in use."""
    return hide_credentials(find_form(FORMS, result)(result))
