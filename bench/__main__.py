"""``python -m bench [name ...]``: measure, print as figures come, and with ``--write`` write docs/benchmarks.md."""

from __future__ import annotations

import logging
import os
import sys
import traceback
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

import msgspec

from bench.measure import QUIET
from bench.page import write_bench
from bench.rows import Row, Section, tell_row
from bench.table import BENCHES, Bench


def main(arguments: Sequence[str]) -> int:
    os.environ.update(QUIET)  # before anything loads numpy or a peer
    logging.disable(logging.WARNING)
    named = [one for one in arguments if one in BENCHES]
    chosen = named or [name for name, bench in BENCHES.items() if "--long" in arguments or not bench.long]
    given = build_parser({name: BENCHES[name] for name in named}).parse_args(arguments)
    if strange := [name for name in given.names if name not in BENCHES]:
        print(
            f"expected the name of a bench, got {', '.join(strange)}; python -m bench --list has them", file=sys.stderr
        )
        return 2
    if given.list:
        for name, bench in BENCHES.items():
            print(f"{name:14}{'long ' if bench.long else 'quick'} {bench.says}")
        return 0
    done = [run_bench(name, BENCHES[name], given) for name in chosen]
    return 0 if all(done) else 1


def build_parser(named: Mapping[str, Bench]) -> ArgumentParser:
    """A parser of the command's own flags, and of the options of benches that are named and can run."""
    parser = ArgumentParser(prog="python -m bench", description="Measure evalcore beside its peers.")
    parser.add_argument("names", nargs="*", help="what to measure; all that is quick if nothing is named")
    parser.add_argument("--list", action="store_true", help="say what there is to measure, and stop")
    parser.add_argument("--long", action="store_true", help="if nothing is named: everything, which takes hours")
    parser.add_argument("--write", action="store_true", help="write what was found into docs/")
    parser.add_argument("--json", action="store_true", help="print rows as JSON lines")
    known: dict[str, list[str]] = {}
    defaults: dict[str, object] = {}
    for name, bench in named.items():
        for option, default in () if bench.find_missing() else bench.list_options().items():
            known.setdefault(option, []).append(f"{name}: {default}")
            defaults.setdefault(option, default)
    for option, default in defaults.items():
        flag, told = f"--{option.replace('_', '-')}", "; ".join(known[option])
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true", default=SUPPRESS, help=told)
        else:
            parser.add_argument(flag, type=type(default), default=SUPPRESS, help=told)
    return parser


def run_bench(name: str, bench: Bench, given: Namespace) -> bool:
    """Run a bench, and say whether it came to its end; what is missing or fails is told, and the next may go on."""
    if missing := bench.find_missing():
        print(f"{name}: left out, {missing}", flush=True)
        return True
    if not given.json:
        print(f"{name}: {bench.says}", flush=True)
    found = []
    try:
        measure_rows = bench.load()
        options = {key: value for key, value in vars(given).items() if key in bench.list_options()}
        for one in measure_rows(**options):
            found.append(one)
            show(name, one, as_json=given.json)
    except Exception:
        traceback.print_exc()
        print(f"{name}: failed; the others go on", flush=True)
        return False
    if given.write and found:
        write_bench(name, bench, found, [_spell_option(*pair) for pair in options.items()])
    return True


def _spell_option(name: str, value: object) -> str:
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True else f"{flag} {value}"


def show(name: str, one: Row | Section, *, as_json: bool) -> None:
    if as_json:
        extra = {"ratio": one.ratio, "floors": one.floors} if isinstance(one, Row) else {}
        print(msgspec.json.encode({"bench": name, **msgspec.to_builtins(one), **extra}).decode(), flush=True)
    elif isinstance(one, Row):
        print(tell_row(one), flush=True)
    elif one.name or not one.page:
        print(f"\n{one.page} {one.name}\n{one.text}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
