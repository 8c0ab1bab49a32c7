"""Result of a command as JSON: fields that all commands share, and its further ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from concur._version import __version__

COMMON = (
    "command",
    "concur",
    "name",
    "robot",
    "passed",
    "status",
    "problems",
    "warnings",
    "files",
)
"""Fields of every answer, in their order; docs/files.md describes them."""


def answer(
    command: str,
    passed: bool,
    status: str,
    *,
    name: str = "",
    robot: str = "",
    problems: Iterable[str] = (),
    warnings: Iterable[str] = (),
    files: Iterable[object] = (),
    **own: Any,
) -> dict[str, Any]:
    """Build the answer of a command: the common fields first, then its further ones."""
    common = (
        *(command, __version__, name, robot, passed, status),
        *(list(problems), list(warnings), [str(path) for path in files]),
    )
    return {**dict(zip(COMMON, common, strict=True)), **own}
