"""Goals of a plan: poses of outputs, or parts of them, as equations at the end of the motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from concur.codegen import as_floats
from concur.errors import ConcurError, ShapeError, UnknownNameError
from concur.outputs import Output
from concur.outputs.references import LARGEST
from concur.robot import Pose as Placement
from concur.tables import is_number

FIELDS = ("position", "direction", "axis", "within")
"""Fields of a goal for a part of a pose."""

MOST_VIAS = 8
"""Largest number of goals on the way."""

UNIT = 1e-6
"""Largest deviation of the length of a direction from one that is rounding."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """A goal of one output.

    `wanted` are the numbers that may change: pose, position or direction, as `kind` states,
    `axis` is the direction in the output's frame, `rows` the coordinates that count, and `within`
    the largest distance of each from its value.
    """

    output: int
    kind: str
    wanted: Floats
    rows: tuple[int, ...]
    within: float = 0.0
    axis: tuple[float, ...] = ()

    @property
    def kept(self) -> tuple[object, ...]:
        """All that `again` keeps: everything but the numbers wanted."""
        return self.output, self.kind, self.rows, self.within, self.axis

    @property
    def whole(self) -> bool:
        """Whether the pose of the output is given, with nothing left free."""
        return self.kind == "pose"


def targets_of(outputs: Sequence[Output], goals: Mapping[str, Any], where: str) -> list[Target]:
    """Read the goals of a plan."""
    names = [output.name for output in outputs]
    if not isinstance(goals, Mapping) or not goals:
        raise ConcurError(
            f"{where}, `goals`",
            expected=f"goals by outputs, among {', '.join(names)}",
            came=f"{goals!r:.40}",
            cure='Write for example {"hand": [1.0, 0.5, 0.4]}.',
        )
    found: list[Target] = []
    for name, goal in goals.items():
        if name not in names:
            raise UnknownNameError(
                f"{where}, `goals`",
                expected=f"outputs among {', '.join(names)}",
                came=f"`{name}`",
                cure="Correct the name, or add the output.",
            )
        place = f"{where}, goal of `{name}`"
        index = names.index(name)
        found += _of_output(index, outputs[index], goal, place)
    return found


def vias_of(outputs: Sequence[Output], via: Any, where: str) -> tuple[tuple[Target, ...], ...]:
    """Read goals on the way."""
    listed = isinstance(via, Sequence) and not isinstance(via, str | bytes)
    if not listed or len(via) > MOST_VIAS:
        raise ConcurError(
            f"{where}, `via`",
            expected=f"a list of up to {MOST_VIAS} goals by outputs",
            came=f"{len(via)} of them" if listed else f"{via!r:.40}",
            cure='Write for example [{"hand": {"position": [1.0, 0.5, 0.4], "within": 0.05}}].',
        )
    return tuple(
        tuple(targets_of(outputs, goals, f"{where}, `via` {k + 1}")) for k, goals in enumerate(via)
    )


def _of_output(index: int, output: Output, goal: Any, place: str) -> list[Target]:
    if not isinstance(goal, Mapping):
        return [_whole(index, output, goal, place)]
    unknown = set(goal) - set(FIELDS)
    if unknown or not {"position", "direction"} & set(goal):
        raise UnknownNameError(
            place,
            expected=f"`position` or `direction`, with fields among {', '.join(FIELDS)}",
            came=", ".join(f"`{name}`" for name in goal) or "nothing",
            cure="Give a position, a direction with an axis of the body, or a whole pose.",
        )
    found = []
    if "position" in goal:
        value = _vector(goal["position"], None, f"{place}, `position`")
        within = goal.get("within", 0.0)
        if len(value) != _places(output):
            raise ShapeError(
                f"{place}, `position`",
                expected=f"{_places(output)} coordinates, m",
                came=f"{len(value)} numbers",
                cure="Write nan for a coordinate that is free.",
            )
        if not is_number(within) or not 0.0 <= within < np.inf:
            raise ConcurError(
                f"{place}, `within`",
                expected="a length of zero or more, m",
                came=f"{within!r:.40}",
                cure="Leave it out for the position itself.",
            )
        rows = tuple(np.flatnonzero(~np.isnan(value)).tolist())
        found.append(Target(index, "position", np.nan_to_num(value), rows, float(within)))
    if "direction" in goal:
        way, axis = (
            _vector(goal.get(field, (0.0, 0.0, 1.0)), 3, f"{place}, `{field}`")
            for field in ("direction", "axis")
        )
        for field, value in (("direction", way), ("axis", axis)):
            if not np.linalg.norm(value) > UNIT:
                raise ConcurError(
                    f"{place}, `{field}`",
                    expected="a vector with a length",
                    came=str(value.tolist()),
                    cure="Correct it.",
                )
        unit = axis / np.linalg.norm(axis)
        way = way / np.linalg.norm(way)
        found.append(Target(index, "direction", way, (0, 1, 2), 0.0, tuple(unit.tolist())))
    return found


def _places(output: Output) -> int:
    """Number of coordinates of an output's position."""
    return {"SE2": 2, "SO2": 0, "SO3": 0}.get(output.group, min(3, output.lie.dim))


def _whole(index: int, output: Output, goal: Any, place: str) -> Target:
    """Goal of a whole pose; coordinates of R^n that are NaN are free."""
    if isinstance(goal, Placement):
        goal = goal.matrix
    value = _numbers(goal, place)
    if value.shape == (4, 4) and output.group in ("R3xSO3", "SE3", "R3", "SO3"):
        turn = value[:3, :3]
        if not np.allclose(turn @ turn.T, np.eye(3), atol=1e-6) or np.linalg.det(turn) < 0.0:
            raise ConcurError(
                place, expected="a pose matrix", came="a matrix without a rotation",
                cure="Give rotation and translation, with the last row 0, 0, 0, 1.",
            )  # fmt: skip
        placed = ca.DM(turn), ca.DM(value[:3, 3])
        value = np.array(ca.DM(output.lie.coordinates(placed)))[:, 0]
    size = output.pose_size
    value = np.atleast_1d(value)
    if value.shape != (size,):
        raise ShapeError(
            place,
            expected=f"{size} coordinates of {output.group}, or a pose matrix",
            came=f"shape {value.shape}",
            cure='Give the pose, or a part: {"position": [x, y, z]}.',
        )
    flat = output.lie.dim == size and output.group.startswith("R")
    if np.isnan(value).any() and flat:
        rows = tuple(np.flatnonzero(~np.isnan(value)).tolist())
        return Target(index, "position", np.nan_to_num(value), rows)
    if not np.isfinite(value).all():
        raise ConcurError(
            place,
            expected="finite numbers",
            came=str(value.tolist()),
            cure='For a part of a pose write {"position": [x, y, z]}.',
        )
    if size > output.lie.dim:
        start = 0 if output.group == "S2" else size - 4
        length = float(np.linalg.norm(value[start:]))
        if abs(length - 1.0) > 1e-3:
            raise ConcurError(
                place,
                expected="a unit vector"
                if output.group == "S2"
                else "a unit quaternion x, y, z, w",
                came=f"{value[start:].tolist()}, of length {length:.6g}",
                cure="Correct it.",
            )
        value = np.concatenate([value[:start], value[start:] / length])
    return Target(index, "pose", value, tuple(range(output.lie.dim)))


def _numbers(value: Any, place: str) -> Floats:
    """Numbers up to a billion, or nan."""
    found = as_floats(value, place)
    if np.abs(np.nan_to_num(found)).max(initial=0.0) > LARGEST:
        raise ConcurError(
            place,
            expected=f"numbers up to {LARGEST:.0e} (SI units)",
            came=f"{np.abs(np.nan_to_num(found)).max():.3g}",
            cure="Check the unit.",
        )
    return found


def _vector(value: Any, size: int | None, place: str) -> Floats:
    found = np.atleast_1d(_numbers(value, place))
    if found.ndim != 1 or (size is not None and found.shape != (size,)):
        raise ShapeError(
            place,
            expected="a list of numbers" if size is None else f"{size} numbers",
            came=f"shape {found.shape}",
            cure="Correct it.",
        )
    return found


def target_rows(
    outputs: Sequence[Output], targets: Sequence[Target], motion: Any, wanted: Any
) -> tuple[Any, Floats]:
    """Rows over SX that are within `within` of zero at the goal, and these, from `wanted`."""
    rows, within, start = [ca.SX(0, 1)], [], 0
    for target, here in zip(targets, target_places(outputs, targets, motion), strict=True):
        own = wanted[start : start + target.wanted.size]
        start += target.wanted.size
        if target.kind == "pose":
            row = outputs[target.output].lie.error(here, own)
        else:
            row = (here - own)[list(target.rows)]
        rows.append(row)
        within += [target.within] * row.shape[0]
    return ca.vertcat(*rows), np.array(within)


def target_places(outputs: Sequence[Output], targets: Sequence[Target], motion: Any) -> list[Any]:
    """Numbers over SX that each goal has where its output is."""
    found = []
    for target in targets:
        output, (rotation, position) = outputs[target.output], motion.poses[target.output]
        here = output.lie.coordinates((rotation, position))
        if target.kind == "position":
            flat = output.group.startswith("R") and output.lie.dim == here.shape[0]
            here = here if flat or output.group == "SE2" else position
            here = here[: target.wanted.size]
        elif target.kind == "direction":
            here = rotation @ ca.DM(target.axis)
        found.append(here)
    return found


def rest_rows(model: Any, outputs: Sequence[Output], targets: Sequence[Target], motion: Any) -> Any:
    """Velocities over SX of outputs that rest at the goal, where the base drifts on."""
    rows, start = [ca.SX(0, 1)], 0
    root = model.robot.base.name
    whole = {target.output for target in targets if target.whole}
    for k, output in enumerate(outputs):
        size = output.lie.dim
        if k in whole and output.body != root:
            rows.append(motion.velocity[start : start + size])
        start += size
    found = ca.vertcat(*rows)
    return found if found.shape[0] <= model.ns else found[:0]
