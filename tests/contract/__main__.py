"""Writes frozen tables of the contract again: `python -m tests.contract lengths journeys`."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("CONCUR_CC", "none")
os.environ.setdefault("MPLBACKEND", "Agg")

import casadi as ca

from tests.contract import _answers, _calls, _files, _journeys, _lengths, _robots
from tests.contract._frozen import freeze, frozen


def _count() -> dict[str, Any]:
    counts = {name: _lengths.lengths(name) for name in _robots.LAWS}
    return {"casadi": ca.__version__, **counts}


def _follow() -> dict[str, Any]:
    return {name: follow() for name, follow in _journeys.JOURNEYS.items()}


def _refuse_files() -> dict[str, Any]:
    table = {"bases": frozen("files")["bases"]}
    for name, row in _files.cases():
        with tempfile.TemporaryDirectory() as folder:
            _again(table, name, row, _files.outcome(row, Path(folder)))
    return table


def _refuse_calls() -> dict[str, Any]:
    table: dict[str, Any] = {}
    for name, row in _calls.cases():
        _again(table, name, row, _calls.outcome(row))
    return table


def _answer() -> dict[str, Any]:
    table: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        _answers.prepare(Path(folder))
        for name in _answers.CASES:
            status, values = _answers.run(name, Path(folder))
            table[name] = {"exit": status, "values": values}
    return table


def _again(
    table: dict[str, Any], name: str, row: dict[str, Any], found: tuple[str, list[str]] | None
) -> None:
    """Keep a case with the outcome of today; of its place what was frozen, if it is still named."""
    if found is None:
        print(f"dropped, it is accepted: {name}")
        return
    kind, place = found
    kept = [word for word in row["place"] if word in place]
    table[name] = row | {"error": kind, "place": kept or list(dict.fromkeys(place))[:4]}
    if table[name] != row:
        print(f"changed: {name}: {row['error']} {row['place']} to {kind} {table[name]['place']}")


TABLES: dict[str, Callable[[], dict[str, Any]]] = {
    "lengths": _count,
    "journeys": _follow,
    "files": _refuse_files,
    "calls": _refuse_calls,
    "answers": _answer,
}


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
