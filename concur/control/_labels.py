"""Names of signals for python-control."""

from __future__ import annotations

from collections.abc import Sequence


def labels(kind: str, names: Sequence[str]) -> list[str]:
    """Name signals for python-control, which keeps the point for a system and its signal."""
    return [f"{kind}[{name}]".replace(".", "_") for name in names]
