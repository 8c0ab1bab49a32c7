"""What the file of a proof contains, without a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from concur.proofs import TaskProof, _file
from concur.proofs._recheck_claims import Stored, StoredBound


def stored_of(found: TaskProof) -> Stored:
    """Content of the file of a proof that bounds its quantities."""
    assert found.bounds, found.sentence
    claims = {
        b.quantity.key: StoredBound(b.kind, b.name, b.unit, b.sign, _file.claim(b), b.limit)
        for b in found.bounds
    }
    parts = len(found.wall), found.edge, np.asarray(found.first), found.disturbance
    return Stored(*parts, list(found.leaves), claims, found.statement, found.room)


def claim(s: Stored, kind: str, by: float = 0.0, **other: Any) -> Stored:
    """The same with other claims of a kind."""
    changed = {
        key: replace(b, value=b.value + by, **other) if key[0] == kind else b
        for key, b in s.bounds.items()
    }
    return replace(s, bounds=changed)


def stated(s: Stored, **changes: Any) -> Stored:
    """The same of another statement."""
    return replace(s, statement=replace(s.statement, **changes))
