"""Names by which the parts of a robot refer to each other: unknown ones, and those in errors."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from concur.errors import ConcurError

NAMES = {
    "bodies": "name",
    "wheels": "body",
    "motors": "name",
    "mimics": "body",
    "springs": "name",
    "steering": "wheel",
}
"""Field that names an entry, by table."""

KINDS = {"bodies": "body", "steering": "steering"}
"""Words by which errors name an entry, where they are not the table without its last letter."""


def free_name(name: str, taken: Collection[str]) -> str:
    """A name, or the first of `name_2`, `name_3`, ... that is not taken."""
    tries = (name, *(f"{name}_{k}" for k in range(2, len(taken) + 3)))
    return next(one for one in tries if one not in taken)


def blame(error: ConcurError, given: Mapping[str, Any]) -> tuple[str, str]:
    """Find the table of an error of the whole robot, from the names in its place."""
    for table in ("steering", "wheels", "motors", "mimics", "springs", "bodies"):
        names = [getattr(part, NAMES[table]) for part in given.get(table, ())]
        kind = KINDS.get(table, table[:-1])
        for name in re.findall(rf"{kind} `([^`]*)`", error.where):
            if name in names:
                return f'[[{table}]] "{name}"', ""
    cycle = error.data.get("cycle")
    if cycle:
        return f'[[bodies]] "{cycle[0]}"', "parent"
    state = re.search(r"keyframe `([^`]*)`, `(q|v)`", error.where)
    if state is not None and state[1] in given.get("keyframes", {}):
        return f"[keyframes.{state[1]}]", state[2]
    field = re.search(r"`(actuated|gravity|parent|supports)`$", error.where)
    if field is None:
        return "", ""
    return ("[[bodies]]" if field[1] == "parent" else ""), field[1]
