"""Every test that the table of faults names exists."""

from __future__ import annotations

import re
from pathlib import Path

from tests.hostile.faults import FAULTS

TESTS = Path(__file__).parents[1]


def test_every_named_test_is_there() -> None:
    for fault in FAULTS:
        for name in fault.tests:
            file, _, test = name.partition("::")
            text = (TESTS / file).read_text()
            assert not test or re.search(rf"^def {test}\(", text, re.M), f"{fault.code}: no {name}"


def test_codes_are_unique() -> None:
    codes = [fault.code for fault in FAULTS]
    assert len(set(codes)) == len(codes)
