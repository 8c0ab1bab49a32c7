"""Templates of exported files."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def templates(folder: str, escaped: bool = False) -> Environment:
    """Templates in a folder beside this file, which write plain text, or XML if `escaped`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name(folder), encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=escaped,
        keep_trailing_newline=True,
        trim_blocks=escaped,
        lstrip_blocks=escaped,
    )
    environment.filters["plain"] = plain_text
    return environment


def plain_text(text: str) -> str:
    """Text for comments in C and for tables, without characters that would end either."""
    ascii_only = text.encode("ascii", "replace").decode().replace("*/", "* /").replace("/*", "/ *")
    return re.sub(r"[\s|\\`]+", " ", ascii_only)
