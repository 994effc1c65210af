"""``python -m evalcore``."""

from __future__ import annotations

import sys

from evalcore.shell.cli import main

sys.exit(main())
