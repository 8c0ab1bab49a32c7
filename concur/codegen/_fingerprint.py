"""What a graph is made from, as a number: who has compiled it once need not build it again.

A graph follows from the values of an object's fields and from the code that makes the graph. So
the digest is over both: all values, as bits, and all modules of this package. An object that
holds anything else, such as a class of a user's own, has no fingerprint: its graph is built.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

_PACKAGE = __name__.partition(".")[0]
_PLAIN = (type(None), bool, int, float, str, bytes, np.generic)


class _NoFingerprintError(Exception):
    """A value whose meaning is not in its fields."""


def fingerprint(purpose: str, value: Any) -> str | None:
    """Digest of an object and of the code of this package.

    Parameters
    ----------
    purpose : str
        What is made of the object.
    value : object
        The object: a frozen data class of this package.

    Returns
    -------
    str or None
        SHA-256, hexadecimal; None for an object that holds what is not this package's.
    """
    digest = hashlib.sha256()
    try:
        for part in (purpose, ca.__version__, np.__version__, _code()):
            digest.update(f"{part}\0".encode())
        for piece in _told(value):
            digest.update(piece)
            digest.update(b"\0")
    except _NoFingerprintError:
        return None
    return digest.hexdigest()


def _told(value: Any) -> Iterator[bytes]:
    kind = type(value)
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if isinstance(value, Enum) and kind.__module__.split(".")[0] == _PACKAGE:
        yield value.name.encode()
    elif isinstance(value, _PLAIN) and kind.__module__ in ("builtins", "numpy"):
        yield repr(value).encode()
    elif kind is np.ndarray and value.dtype.kind in "biufU":
        yield f"{value.dtype.str} {value.shape}".encode()
        yield value.tobytes()
    elif kind in (tuple, list):
        yield str(len(value)).encode()
        for item in value:
            yield from _told(item)
    elif kind.__module__ == "builtins" and isinstance(value, Mapping):
        yield str(len(value)).encode()
        for key, item in value.items():
            yield from _told(key)
            yield from _told(item)
    elif dataclasses.is_dataclass(value) and kind.__module__.split(".")[0] == _PACKAGE:
        # Fields that are no arguments follow from those that are.
        for field in dataclasses.fields(value):
            if field.init:
                yield field.name.encode()
                yield from _told(getattr(value, field.name))
    else:
        raise _NoFingerprintError(kind.__qualname__)


@functools.cache
def _code() -> str:
    """Digest of all modules of this package."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
