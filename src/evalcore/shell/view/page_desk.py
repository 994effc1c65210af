"""Pages made one after another by the main thread, the only one in which a timer ends a filter that is stuck."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, Queue

from evalcore.core.records.errors import EvalError
from evalcore.shell.output.report.page import HtmlPage

MOST_KEPT = 4
"""How many pages are kept, of up to 20 MB each."""

ENDED = "evalcore view has ended"

Job = tuple[str, Callable[[], HtmlPage], "Future[HtmlPage]"]


class PageDesk:
    """Where threads ask for pages, each made once for as long as it is among the last ones."""

    def __init__(self) -> None:
        self._jobs: Queue[Job | None] = Queue()
        self._kept: OrderedDict[str, HtmlPage] = OrderedDict()
        self._open = True

    def ask(self, key: str, build: Callable[[], HtmlPage]) -> HtmlPage:
        """Ask for the page of a key, and wait for it. What its making raises comes here."""
        made: Future[HtmlPage] = Future()
        self._jobs.put((key, build, made))
        if not self._open:  # nobody makes it any more
            self.close()
        return made.result()

    def work(self) -> None:
        """Make pages until told to close."""
        while True:
            try:
                job = self._jobs.get(timeout=1.0)  # Windows hears Ctrl-C only in between
            except Empty:
                continue
            if job is None:
                return
            self._make(*job)

    def close(self) -> None:
        """Make no more pages; those who wait get an error."""
        self._open = False
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None:
                job[2].set_exception(EvalError(ENDED))
        self._jobs.put(None)

    def _make(self, key: str, build: Callable[[], HtmlPage], made: Future[HtmlPage]) -> None:
        try:
            page = self._kept.pop(key, None) or build()
        except Exception as wrong:
            made.set_exception(wrong)
            return
        except BaseException:  # Ctrl-C, which is for this thread alone
            made.set_exception(EvalError(ENDED))
            raise
        self._kept[key] = page
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        made.set_result(page)
