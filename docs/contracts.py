"""Import contracts of `pyproject.toml` as pictures: one row per layer, arrows downwards."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def contracts(text: str | None = None) -> dict[str, dict]:
    """Contracts that order layers, by identifier; by default those of this repository."""
    if text is None:
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    return {contract["id"]: contract for contract in found if contract["type"] == "layers"}


def layers(contract: dict) -> list[list[str]]:
    """Modules of each layer, the highest first."""
    return [[name.strip(" ()") for name in row.split("|")] for row in contract["layers"]]


def picture(contract: dict) -> str:
    """Layers as HTML; the style sheet draws the arrows between the rows."""
    rows = ("".join(f"<code>{name}</code>" for name in row) for row in layers(contract))
    return '<div class="layers">\n' + "\n".join(f"<div>{row}</div>" for row in rows) + "\n</div>\n"


def write(folder: Path) -> None:
    """Write one picture per contract."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, contract in contracts().items():
        (folder / f"{name}.html").write_text(picture(contract), encoding="utf-8")
