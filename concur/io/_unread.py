"""Parts of a robot file that the robot lacks: listed, or refused if they change the mechanics."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from concur.errors import DescriptionError, shown
from concur.tables import unknown

MOST_NAMES = 8
"""Names that a sentence lists."""


@dataclass(frozen=True)
class Part:
    """A part of a file: element, owner, line, its meaning, and whether it changes the mechanics."""

    element: str
    owner: str
    meaning: str
    refused: bool = False
    line: int | None = None


@dataclass
class Unread:
    """Parts found so far, of one file, with the elements that the sidecar lets the robot lack."""

    path: Path
    allowed: Sequence[str] = ()
    parts: list[Part] = field(default_factory=list)

    def close(self, side: Path) -> tuple[str, ...]:
        """Refuse the first part that changes the mechanics; list the others, by kind."""
        refused = [part for part in self.parts if part.refused]
        for name in self.allowed:
            if name not in {part.element for part in refused}:
                known = sorted({part.element for part in refused})
                raise unknown(side, "", "ignore", "a refused element of the file", name, known)
        for part in refused:
            if part.element not in self.allowed:
                self._refuse(part)
        kinds: dict[tuple[str, str], list[str]] = {}
        for part in self.parts:
            kinds.setdefault((part.element, part.meaning), []).append(part.owner)
        return tuple(
            f"`{shown(element)}`: {meaning}{_listed(owners)}"
            for (element, meaning), owners in kinds.items()
        )

    def _refuse(self, part: Part) -> None:
        place = f"line {part.line}" if part.line else ""
        raise DescriptionError(
            ", ".join(text for text in (str(self.path), place, part.owner) if text),
            expected=f"a robot without `{shown(part.element)}`, which changes its motion",
            came=part.meaning,
            cure="Remove it from the file, if the robot moves so without it; or write "
            f'ignore = ["{shown(part.element)}"] in the sidecar, if the model may lack it.',
            file=str(self.path),
            line=part.line,
            element=part.element,
        )


def first_names(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _listed(owners: list[str]) -> str:
    text = first_names(list(dict.fromkeys(filter(None, owners))))
    return f" ({text})" if text else ""


def words_of(name: str) -> Iterator[str]:
    """Lower-case words of a name such as `loop_joint`, `springStiffness` or `drake:joint`."""
    word = ""
    for c in name:
        if not c.isalnum() or (c.isupper() and word and not word[-1].isupper()):
            yield word.lower()
            word = ""
        word += c if c.isalnum() else ""
    yield word.lower()


MECHANICAL = (
    *("joint", "loop", "constraint", "equality", "spring", "stiffness", "bushing", "tendon"),
    *("cable", "gear", "mimic", "rotor", "armature", "gravity", "buoyancy", "force", "added"),
    *("mass", "inertia", "inertial", "weld", "connect", "closure", "closed", "hydrodynamics"),
)
"""Words in names of unknown elements that act on the motion."""


def is_mechanical(name: str) -> bool:
    """Whether an element of an unknown name probably acts on the motion."""
    words = tuple(words_of(name))
    return "sensor" not in words and any(
        word in MECHANICAL
        or (len(word) > 4 and difflib.get_close_matches(word, MECHANICAL, 1, 0.85))
        for word in words
    )
