"""Descriptions of fields and options: the sentences of docstrings in the format of numpydoc."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any


def summary(make: Any) -> str:
    """First sentence of a docstring."""
    return " ".join((inspect.getdoc(make) or "").split("\n\n")[0].split())


def meanings(source: Any) -> dict[str, str]:
    """Meaning of each parameter, from the docstring in the format of numpydoc.

    Parameters
    ----------
    source : type or callable
        Of a class also the docstrings of the classes that it is derived from count.

    Returns
    -------
    dict
        Sentences by name, with the unit and without the shape, which the type of a field gives.
    """
    found: dict[str, str] = {}
    for owner in reversed(source.__mro__) if inspect.isclass(source) else [source]:
        for names, text in _entries(inspect.cleandoc(owner.__doc__ or "")):
            words = re.sub(r",? shapes? \([^)]*\)(?=[,.;:])", "", " ".join(text.split()))
            found |= dict.fromkeys(names.split(", "), words.replace("``", "`"))
    return found


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Names and text of each entry of the section `Parameters`."""
    section = re.search(r"(?ms)^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n--|\Z)", text)
    found = section[1] if section else ""
    for entry in re.finditer(r"(?m)^(\S.*?) : .*\n((?: .*\n?|\n)+)", found):
        yield entry[1].lstrip("*"), entry[2]
