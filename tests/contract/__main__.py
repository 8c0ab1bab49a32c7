"""Writes frozen tables of the contract again: `python -m tests.contract lengths journeys`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("CONCUR_CC", "none")

import casadi as ca

from tests.contract import _journeys, _lengths, _robots
from tests.contract._frozen import freeze


def _count() -> dict[str, Any]:
    counts = {name: _lengths.lengths(name) for name in _robots.LAWS}
    return {"casadi": ca.__version__, **counts}


def _follow() -> dict[str, Any]:
    return {name: follow() for name, follow in _journeys.JOURNEYS.items()}


TABLES: dict[str, Callable[[], dict[str, Any]]] = {"lengths": _count, "journeys": _follow}


def main() -> None:
    """Write the tables that are named."""
    parser = argparse.ArgumentParser(prog="python -m tests.contract", description=__doc__)
    parser.add_argument("tables", nargs="+", choices=sorted(TABLES))
    for name in parser.parse_args().tables:
        table = TABLES[name]()
        freeze(name, table)
        print(f"{name}: {len(table)} rows")


if __name__ == "__main__":
    main()
