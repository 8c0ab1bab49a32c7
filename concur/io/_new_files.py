"""Templates of folders to start from, and whether their tasks pass."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from concur.io._task import load_task


def template(*place: str) -> str:
    """Text of a template, from its place below the folder of templates."""
    return resources.files(__package__).joinpath("templates", *place).read_text("utf-8")


def rendered(kind: str, file: str, **facts: Any) -> str:
    """A template of a kind, filled with facts."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    return environment.from_string(template(kind, f"{file}.j2")).render(**facts)


def trouble_of(path: Path) -> str:
    """Reason why a task does not pass, or an empty text."""
    task = load_task(path)
    audit = task.servo.audit(task.reference, task.duration, task.q0)
    if not audit.holds:
        return "; ".join(f"{row.id}: {row.why}" for row in audit.failures)
    rows = task.simulate().rows
    missed = [f"{r.quantity} {r.shown}, limit {r.shown_limit}" for r in rows if r.holds is False]
    return "; ".join(missed)


def toml_key(name: str) -> str:
    """Name as a key of TOML, in quotes if it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
