"""docs/from-lm-eval.md speaks of every flag and model of lm-eval, and no others."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from evalcore.shell.config.keys import KEYS

pytest.importorskip("lm_eval")
PAGE = (Path(__file__).parents[2] / "docs" / "from-lm-eval.md").read_text("utf-8")


def list_rows(title: str) -> list[tuple[str, str]]:
    """The first two cells of each row of a section's table."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [(row[0], row[1]) for row in rows[2:]]


def list_flags() -> dict[str, set[str]]:
    """The flags of ``lm-eval run``, by their long names."""
    from lm_eval._cli.run import Run

    parser = Run(argparse.ArgumentParser().add_subparsers())._parser
    return {action.dest: set(action.option_strings) for action in parser._actions if action.dest != "help"}


def test_the_table_has_every_flag_under_all_its_names() -> None:
    named = [name for flags, _ in list_rows("Flags and config keys") for name in re.findall(r"(?<![\w-])--?\w+", flags)]
    told = {name for name in named if name.startswith("--")}
    flags = list_flags()
    assert told == {f"--{dest}" for dest in flags}
    assert sorted(named) == sorted(name for names in flags.values() for name in names)


def test_what_has_no_effect_is_said_to_have_none() -> None:
    idle = {
        name
        for flags, here in list_rows("Flags and config keys")
        if here.startswith("no effect")
        for name in re.findall(r"--(\w+)", flags)
    }
    assert idle == {key for key, told in KEYS.items() if told.ignored}


def test_models_named_are_models_of_lm_eval() -> None:
    from lm_eval.models import MODEL_MAPPING

    named = {name for model, _ in list_rows("Models") for name in re.findall(r"`([\w-]+)`", model)}
    assert named - set(MODEL_MAPPING) == set()
