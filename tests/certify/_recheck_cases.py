"""True proofs as documents, and changed ones."""

from __future__ import annotations

import copy

from concur.certify import examine
from concur.certify._status import Status
from concur.errors import DescriptionError
from tests.certify._stored import (
    document,
)

# Rates below that of the shifted Lyapunov equation, on domains where its form serves.
GOOD = {
    "R3": document("R3", 1.0, 1.3, 1.35),
    "SO2": document("SO2", 3.0, 1.3, 1.35),
    "SO3": document("SO3", 3.1, 1.3, 1.35),
    "SE2": document("SE2", 0.6, 0.7, 1.0),
    "SE3": document("SE3", 0.6, 0.7, 1.0),
}


def changed(group, *path_and_value):
    """A good document with one entry replaced; the path may be of names and places."""
    *path, last, value = path_and_value
    result = copy.deepcopy(GOOD[group])
    entry = result
    for name in path:
        entry = entry[name]
    entry[last] = value
    return result


def rejected(path):
    """Whether a file is refused, refuted or undecided; with the reason."""
    try:
        finding = examine(path)
    except DescriptionError as error:
        return str(error)
    return None if finding.status is Status.PROVED else finding.reason


def numeric_places(entry, path=()):
    """Paths of all numbers of a document."""
    if isinstance(entry, dict):
        items = entry.items()
    elif isinstance(entry, list):
        items = enumerate(entry)
    else:
        number = isinstance(entry, (int, float)) and not isinstance(entry, bool)
        return [path] if number else []
    return [place for key, value in items for place in numeric_places(value, (*path, key))]
