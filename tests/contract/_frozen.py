"""Tables that the contract froze: each is written by `python -m tests.contract NAME`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


def frozen(name: str) -> Any:
    """Return a frozen table.

    Parameters
    ----------
    name : str
        Of the file, without its ending.
    """
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def freeze(name: str, table: Any) -> None:
    """Write a table, a row for each entry of its first level."""
    rows = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in table.items()]
    text = "{\n" + ",\n".join(rows) + "\n}\n"
    (DATA / f"{name}.json").write_text(text, encoding="utf-8")
