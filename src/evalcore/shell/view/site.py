"""What is at which address: the list of runs, a page about each and about several, and whether there is news."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from evalcore.core.aggregate.signature import VERSION
from evalcore.core.records.errors import EvalError
from evalcore.shell.output.report.bundle import RUN_LIST, WAITING
from evalcore.shell.output.report.page import BESIDE, HtmlPage, build_page
from evalcore.shell.output.report.page_chunk import write_data
from evalcore.shell.report.report import draw_report
from evalcore.shell.safety.safe_text import visible
from evalcore.shell.view.page_desk import PageDesk
from evalcore.shell.view.run_list import RunList
from evalcore.shell.view.run_places import RunPlace

MOST_COMPARED = 20
ADDRESS = re.compile(
    rf"/(?:runs/(?P<ids>[0-9a-f]{{12}}(?:,[0-9a-f]{{12}}){{0,{MOST_COMPARED - 1}}})/)?"
    rf"(?:(?P<news>news)\?at=(?P<at>[0-9a-f]{{0,24}})|{BESIDE}/(?P<chunk>[0-9a-f]{{24}}\.js))?"
)
"""Every address there is, behind the token. No part of one is ever a path of the file system."""


class Response(NamedTuple):
    """What is sent back."""

    status: int = 200
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    place: str = ""


class Site:
    """The pages about a folder's runs."""

    def __init__(self, folder: Path) -> None:
        self.runs, self.desk = RunList(folder), PageDesk()
        self.title = visible(folder.resolve().name or str(folder))

    def answer(self, address: str) -> Response:
        """Answer for an address as it stands behind the token."""
        found = ADDRESS.fullmatch(address)
        ids = found["ids"].split(",") if found and found["ids"] else []
        places = self.runs.find(ids)
        if found is None or places is None or (found["chunk"] and not ids):
            return Response(404, b"there is nothing at this address; the list of runs has every run's\n")
        if found["news"]:
            return self._tell_news(places, found["at"])
        if not ids:
            return _send_page(self._list_runs())
        page = self.desk.ask(f"{ids}{_join_states(places)}", partial(self._draw, places))
        if found["chunk"]:
            text = page.beside.get(found["chunk"])
            missing = Response(404, b"the run has changed since this page was made: reload it\n")
            return missing if text is None else Response(body=text.encode(), kind="text/javascript; charset=utf-8")
        return _send_page(page)

    def _list_runs(self) -> HtmlPage:
        runs, notes = self.runs.list()
        head = {"title": f"Runs in {self.title}", "version": VERSION, "runs": runs, "notes": notes}
        return build_page(head, modules=RUN_LIST, served="list")

    def _draw(self, places: Sequence[RunPlace]) -> HtmlPage:
        """The page of ``evalcore report``; one that says why where runs have nothing to show, or cannot be shown."""
        names, state = [one.name for one in places], _join_states(places)
        waiting = [one.name for one in places if not one.kept]
        flawed = [one for one in places if one.flaw]
        head: dict[str, object] = {"title": " and ".join(names), "version": VERSION}
        if flawed:
            head["problem"] = f"{flawed[0].name}: {flawed[0].flaw}"
        elif not waiting:
            try:
                return draw_report(*(one.path for one in places), names=names, served=state).page
            except Exception as wrong:  # of files that anybody may have made
                head["problem"] = str(wrong) if isinstance(wrong, EvalError) else f"{type(wrong).__name__}: {wrong}"
        else:
            head["waiting"] = waiting
        return build_page({**head, "runs": []}, modules=WAITING, served=state)

    def _tell_news(self, places: Sequence[RunPlace], at: str) -> Response:
        """Rows of these runs, or of all; nothing if they are those that the asker has."""
        runs, notes = (self.runs.describe(places), ()) if places else self.runs.list()
        told = write_data({"runs": runs, "notes": notes, "state": _join_states(places)})
        now = sha256(told.encode()).hexdigest()[:24]
        body = f'{{"at":"{now}",{told[1:]}'.encode()
        return Response(204) if now == at else Response(body=body, kind="application/json")


def _join_states(places: Sequence[RunPlace]) -> str:
    return "-".join(one.state for one in places)


def _send_page(page: HtmlPage) -> Response:
    return Response(body=page.html.encode("utf-8", "replace"), kind="text/html; charset=utf-8")
