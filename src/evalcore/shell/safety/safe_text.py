"""Text from outside made safe to print, and names from outside made safe to write to."""

from __future__ import annotations

import re
from hashlib import sha256

from evalcore.core.plain_text import shorten as shorten
from evalcore.core.plain_text import visible as visible

SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@=-]*")
HASHED = re.compile(r"-[0-9a-f]{10}")
# Names that Windows keeps for devices, with any extension.
DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
LONGEST = 100


def slug(name: str) -> str:
    """A file name for any name: itself where it is harmless, else what is harmless of it and a short hash.

    Two names never share a file: whatever looks like a hashed name is hashed too. So is a name with an underscore at an
    end, which a reader of files does not take for a part of the name.

    >>> slug("mmlu_pro"), slug("../../etc/passwd"), slug("CON"), slug("art_")
    ('mmlu_pro', 'etc_passwd-3754d6cb3a', 'CON-a3dbc4b644', 'art-bb6cdb12d2')
    """
    harmless = SAFE_NAME.fullmatch(name) and not DEVICES.fullmatch(name) and not HASHED.search(name, len(name) - 11)
    if harmless and len(name) <= LONGEST and not name.endswith((".", "_")) and not name.startswith("_"):
        return name
    kept = re.sub(r"[^A-Za-z0-9_.+@=-]+", "_", name[:LONGEST]).strip("._-") or "name"
    return f"{kept}-{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"
