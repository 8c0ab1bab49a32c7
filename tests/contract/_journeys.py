"""Journeys of a number through the package: which functions receive it, how often, in which form.

A function of the package receives a number if one of its arguments is that number, or holds it: a
list, table, array or expression, or an object with it in a field. Each journey starts with a number
that occurs nowhere else, and follows it until the first torque.
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import concur as cc
from tests.contract._robots import EXAMPLES

PACKAGE = str(Path(cc.__file__).parent)
DEEPEST = 3
"""Containers in containers that are looked into; an object counts as one."""
LARGEST = 100
"""Entries of an array or an expression beyond which it is not looked into."""


def held(value: object, wanted: float, depth: int = DEEPEST) -> bool:
    """Whether a value is a number, or holds it."""
    if isinstance(value, bool | str | bytes) or value is None:
        return isinstance(value, str) and repr(wanted) in value
    if isinstance(value, int | float | np.number):
        return abs(float(value) - wanted) < 1e-12
    if isinstance(value, np.ndarray):
        small = value.dtype.kind == "f" and value.size <= LARGEST
        return bool(small and (np.abs(value - wanted) < 1e-12).any())
    if isinstance(value, ca.DM | ca.SX):
        if value.numel() > LARGEST:
            return False
        entries = value.nonzeros() if isinstance(value, ca.DM) else value.elements()
        return any(
            abs(float(x) - wanted) < 1e-12
            for x in entries
            if not isinstance(x, ca.SX) or x.is_constant()
        )
    if depth == 0:
        return False
    return any(held(part, wanted, depth - 1) for part in _parts(value))


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        yield from list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from list(value)
    elif type(value).__module__.startswith("concur") and not isinstance(value, type):
        names = (
            [f.name for f in dataclasses.fields(value)]
            if dataclasses.is_dataclass(value)
            else list(getattr(value, "__dict__", {}))
        )
        fields = getattr(value, "__dict__", {})
        yield from [fields[name] for name in names if name in fields]


def trace(wanted: float, act: Callable[[], object]) -> dict[str, int]:
    """Run something and count what receives a number.

    Parameters
    ----------
    wanted : float
        The number.
    act : callable
        What is run.

    Returns
    -------
    dict
        `functions` and `files` of the package that received it, `calls` in which they did, and
        `forms`: kinds of arguments in which it came.
    """
    functions: set[tuple[str, str]] = set()
    forms: set[str] = set()
    calls = 0
    busy = False

    def note(frame: Any, event: str, _: object) -> None:
        nonlocal calls, busy
        code = frame.f_code
        if event != "call" or busy or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_name.startswith("<"):
            return
        busy = True  # what is looked at may run code of the package
        try:
            count = code.co_argcount + code.co_kwonlyargcount
            names = code.co_varnames[: count + bool(code.co_flags & 4) + bool(code.co_flags & 8)]
            found = [frame.f_locals[n] for n in names if n in frame.f_locals]
            hits = [value for value in found if held(value, wanted)]
            if hits:
                calls += 1
                functions.add((code.co_filename, code.co_qualname))
                forms.update(type(value).__name__ for value in hits)
        finally:
            busy = False

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    files = {name for name, _ in functions}
    return {
        "functions": len(functions),
        "files": len(files),
        "calls": calls,
        "forms": len(forms),
    }


def _altered(name: str, *changes: tuple[str, str]) -> Path:
    text = Path(name).read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text, f"`{old}` is not in {name}"
        text = text.replace(old, new)
    folder = Path(tempfile.mkdtemp())
    path = folder / Path(name).name
    path.write_text(text, encoding="utf-8")
    return path


STIFFNESS, RADIUS, MOMENTUM = 4.0371893, 0.10371893, 0.50371893


def _first_torque(servo: Any, robot: Any, reference: Any, q: Any) -> None:
    tick = servo.compile(interpreted=True)
    tick(q, np.zeros(servo.nw), reference(0.0))


def wheel_radius() -> dict[str, int]:
    """From a robot file to a robot."""
    path = _altered(
        str(Path(cc.__file__).parent / "robots" / "rover_arm.toml"),
        ("radius = 0.1", f"radius = {RADIUS}"),
    )
    return trace(RADIUS, lambda: cc.load(path))


def stiffness() -> dict[str, int]:
    """From a task file to the first torque."""
    path = _altered(
        str(EXAMPLES / "rover_arm.toml"), ("stiffness = 4.0", f"stiffness = {STIFFNESS}")
    )

    def act() -> None:
        task = cc.load_task(path)
        _first_torque(task.servo, task.robot, task.reference, task.q0)

    return trace(STIFFNESS, act)


def momentum() -> dict[str, int]:
    """From `reduce` to the first torque."""
    robot = cc.robots.free_flyer()
    q = np.array([-0.5, -0.15, -0.2, 0, 0, 0, 1, 0.5, -1.5, 2.1, 0.2, -0.4, 0.8])

    def act() -> None:
        model = cc.reduce(robot, momentum=[0, 0, 0, MOMENTUM, 0.2, 0.1])
        servo = cc.Servo(model, [cc.Output("hand", "tool", "SE3")], stiffness=4, damping=4)
        _first_torque(servo, robot, cc.references.hold(robot.pose(q, "tool"), "SE3"), q)

    return trace(MOMENTUM, act)


JOURNEYS = {"wheel radius": wheel_radius, "stiffness": stiffness, "momentum": momentum}
