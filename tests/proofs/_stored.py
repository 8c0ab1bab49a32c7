"""What the file of a proof contains, without a file."""

import numpy as np

from concur.proofs import TaskProof
from concur.proofs._file import claim
from concur.proofs._recheck_claims import Stored, StoredBound


def stored_of(found: TaskProof) -> Stored:
    """Content of the file of a proof that bounds its quantities."""
    assert found.bounds, found.sentence
    claims = {
        b.quantity.key: StoredBound(b.kind, b.name, b.unit, b.sign, claim(b), b.limit)
        for b in found.bounds
    }
    parts = len(found.wall), found.edge, np.asarray(found.first), found.disturbance
    return Stored(*parts, list(found.leaves), claims, found.statement, found.room)
