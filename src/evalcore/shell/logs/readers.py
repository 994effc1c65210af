"""The formats of logs, as a table: a host adds its own with ``.set(name, Reader(...))`` and passes the table on."""

from __future__ import annotations

from pyrsistent import PMap, pmap

from evalcore.shell.logs.inspect.log import INSPECT
from evalcore.shell.logs.lm_eval.log import LMMS, SAMPLES
from evalcore.shell.logs.log import Reader
from evalcore.shell.logs.tables.table import TABLE

READERS: PMap[str, Reader] = pmap({"samples": SAMPLES, "lmms": LMMS, "inspect": INSPECT, "table": TABLE})
"""Every format that recorded answers may have."""
