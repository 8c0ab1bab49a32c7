"""What files may hold: names that can be printed, numbers within the readers' bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn
from xml.etree import ElementTree

import numpy as np

from concur.errors import DescriptionError, shown
from concur.robot import Tree

LONGEST_NAME = 255
LARGEST = 1e9
"""Largest magnitude of a number, in SI units; beyond, a limit is no limit to the readers."""

NO_LIMIT = 1e10
"""What stands for infinity in XML, where a bound has to be a number."""


def refuse(robot: Tree, place: str, expected: str, came: str, cure: str) -> NoReturn:
    """Raise the error for a part of a robot that a format cannot express."""
    raise DescriptionError(
        f"robot `{shown(robot.name)}`" + (f", {place}" if place else ""),
        expected=expected,
        came=came,
        cure=cure,
    )


def check(robot: Tree) -> None:
    """Refuse names and numbers that no reader accepts."""
    for what, name in [
        ("", robot.name),
        *((f"body `{shown(b.name)}`", b.name) for b in robot.bodies),
    ]:
        text = name if isinstance(name, str) else ""
        if not text.strip() or len(text) > LONGEST_NAME or not text.isprintable():
            refuse(
                robot,
                what or "`name`",
                f"a name of at most {LONGEST_NAME} characters, without control characters",
                f"`{shown(name)}`",
                "Rename it: files hold names that can be printed.",
            )
    for kind, key, parts in (
        ("body", "name", robot.bodies),
        ("wheel", "body", robot.wheels),
        ("motor", "name", robot.motors),
        ("mimic", "body", robot.mimics),
        ("spring", "name", robot.springs),
    ):
        for part in parts:
            _within(robot, f"{kind} `{getattr(part, key)}`", _floats(part))
    _within(robot, "`gravity`", robot.gravity)


def _floats(value: Any) -> Iterator[float]:
    """All finite numbers of a part; no bound is infinite."""
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value)]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple, np.ndarray)):
        for entry in value:
            yield from _floats(entry)
    elif isinstance(value, (int, float)) and math.isfinite(value):
        yield float(value)


def _within(robot: Tree, place: str, numbers: Iterable[float]) -> None:
    worst = max(map(abs, numbers), default=0.0)
    if worst > LARGEST:
        refuse(robot, place, "numbers within 1e9, SI units", f"{worst:g}", "Check the unit.")


def check_gears(robot: Tree) -> None:
    """Refuse motors on one of several freedoms of a joint, which other formats split or turn."""
    simple = {body.name for body in robot.bodies if body.joint.nv == 1}
    for motor in robot.motors:
        other = next((name for name in motor.ratios if name not in simple), None)
        if other is not None:
            came, cure = f"`{other}`", "Model the joint as several bodies, or keep TOML."
            refuse(robot, f"motor `{motor.name}`", "joints with one freedom", came, cure)


def check_unique(robot: Tree, names: Iterable[str], kind: str, reserved: tuple[str, ...]) -> None:
    """Refuse names that a file would hold twice, or that its format reserves."""
    for name, count in Counter([*names, *reserved]).items():
        if count > 1:
            came = f"`{name}`, which the format reserves" if name in reserved else f"`{name}` twice"
            cure = "Rename this body; joints of a chain have the name of their body and a suffix."
            refuse(robot, "", f"each name of a {kind} once", came, cure)


def add(parent: ElementTree.Element, tag: str, **attributes: Any) -> ElementTree.Element:
    """Add an element to XML; numbers become text, and None is no attribute."""
    texts = {
        name: value if isinstance(value, str) else text(value)
        for name, value in attributes.items()
        if value is not None
    }
    return ElementTree.SubElement(parent, tag, texts)


def text(numbers: Any) -> str:
    """Numbers in XML: to the last bit."""
    return " ".join(repr(float(x) + 0.0) for x in np.ravel(np.array(numbers, dtype=float)))


def bounded(value: float) -> float:
    """Replace infinity by a number."""
    return math.copysign(NO_LIMIT, value) if math.isinf(value) else value
