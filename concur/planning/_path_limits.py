"""Limits of a planned motion: those of the robot, and those that a plan adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from concur.control import GroundLimits, read_ground
from concur.errors import ConcurError, UnknownNameError
from concur.reduction import ReducedModel
from concur.tables import NUMBER, ByName, Expected, NotNegative, is_number, table_of

_BY_NAME = Expected(
    "a number above zero, or a table of them by name",
    lambda value: (
        (is_number(value) and value > 0)
        or (isinstance(value, dict) and all(is_number(x) and x > 0 for x in value.values()))
    ),
    {"anyOf": [NUMBER, table_of(NUMBER)]},
)

_ONE = " to below one"
_RANGES = {
    **{"margin": _ONE, "singular": _ONE},
    **{"room": ", rad and m", "apart": ", m", "tipping": ", N m"},
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PlanLimits:
    """Limits of a plan beside those of the robot, which always hold.

    The robot's are the ranges, speeds and torques of its joints, and torque, speed and speed-torque
    line of its motors.

    Parameters
    ----------
    torques : float or mapping, optional
        Largest torque or force, one for all controls or by their names, N m and N. Default:
        no limit.
    speeds : float or mapping, optional
        Largest speed, one for all shape coordinates or by their names, rad/s and m/s.
        Default: no limit.
    accelerations : float or mapping, optional
        Largest acceleration, in the same way, rad/s^2 and m/s^2. Default: no limit.
    jerks : float or mapping, optional
        Largest jerk, in the same way, rad/s^3 and m/s^3. Default: no limit.
    margin : float
        Share of all torques, speeds and friction that the plan leaves to the law, a number without
        unit from 0 to below 1.
    room : float
        Distance that joints keep from both ends of their ranges, rad and m, for a law that follows
        the plan with errors.
    apart : float, optional
        Least distance between the robot's own bodies, m; those that are nearer at the start, such
        as neighbours, are skipped. Default: no limit.
    singular : float
        Least margin of the decoupling matrix, as of `Servo.margin`, without unit; a servo refuses
        less than 1e-3. Zero: no limit. A lower bound is kept, at worst sqrt(n) too small.
        Skipped if no servo tracks the outputs.
    least_load : float or mapping of str to float, optional
        Least load of wheels and supports of the robot, N: of all, or by name. Default: no limit.
    grip : float or mapping of str to float, optional
        Largest friction coefficient that wheels may use, so that they do not slip: of all, or by
        name. Default: no limit.
    tipping : float, optional
        Least moment that holds the robot down about each edge of the polygon of its wheels and
        supports, N m. Default: no limit.
    compliance : float or mapping of str to float, optional
        Vertical compliance of wheels and supports, m/N, if there are more than three; only ratios
        matter. Default: none.

    Raises
    ------
    ConcurError
        If a number is out of range.

    Examples
    --------
    >>> import concur as cc
    >>> cc.planning.PlanLimits(torques=8.0, speeds={"turret": 1.0}, margin=0.1).margin
    0.1
    """

    torques: Annotated[Any, _BY_NAME] = None
    speeds: Annotated[Any, _BY_NAME] = None
    accelerations: Annotated[Any, _BY_NAME] = None
    jerks: Annotated[Any, _BY_NAME] = None
    margin: float = 0.0
    room: NotNegative = 0.0
    apart: NotNegative | None = None
    singular: float = 0.01
    least_load: ByName = None
    grip: ByName = None
    tipping: NotNegative | None = None
    compliance: ByName = None

    def __post_init__(self) -> None:
        for name, words in _RANGES.items():
            value, most = getattr(self, name), 1.0 if words == _ONE else np.inf
            if value is None and name in ("apart", "tipping"):
                continue
            if not is_number(value) or not 0.0 <= value < most:
                raise ConcurError(
                    f"limits of a plan, `{name}`",
                    expected=f"a number from zero{words}",
                    came=f"{value!r:.40}",
                    cure="Correct the number.",
                )


@dataclass(frozen=True)
class Bounds:
    """Limits of a model as numbers; infinite where there is no limit.

    `line` has stall torque and no-load speed of each control, and `turns` its speed by those of the
    robot, shape (nu, nv).
    """

    low: Floats
    high: Floats
    speeds: Floats
    accelerations: Floats
    jerks: Floats
    torques: Floats
    line: Floats
    turns: Floats


def bounds_of(model: ReducedModel, limits: PlanLimits, where: str) -> Bounds:
    """Limits of the robot and of a plan, together."""
    robot, names = model.robot, model.shape_names
    share = 1.0 - limits.margin
    turns = np.zeros((model.nu, robot.nv))
    for row, at in enumerate(robot.actuated_freedoms):
        turns[row, at] = 1.0
    line = np.full((model.nu, 2), np.inf)
    speeds = robot.speed_limits[list(model.shape)]
    freedoms = list(robot.freedom_names)
    for k, motor in enumerate(robot.motors):
        row = len(robot.actuated_freedoms) + k
        for name, ratio in motor.ratios.items():
            turns[row, freedoms.index(name)] = ratio
        if np.isfinite(motor.no_load_speed):
            line[row] = motor.stall, motor.no_load_speed
        if len(motor.ratios) == 1 and np.isfinite(motor.speed):
            ((name, ratio),) = motor.ratios.items()
            if name in names:
                at = names.index(name)
                speeds[at] = min(speeds[at], motor.speed / abs(ratio))
    low, high = robot.limits[list(model.shape_coordinates)].T
    low, high = low + limits.room, high - limits.room
    if not (low < high).all():
        k = int(np.argmin(high - low))
        raise ConcurError(
            f"{where}, `room`",
            expected=f"less than half of the range of `{names[k]}`",
            came=f"{limits.room:.6g}",
            cure="Correct the number.",
        )

    def least(given: Any, field: str, known: Sequence[str], own: Floats) -> Floats:
        return np.minimum(own, _numbers(given, f"{where}, `{field}`", known))

    free = np.full(model.ns, np.inf)
    return Bounds(
        low,
        high,
        share * least(limits.speeds, "speeds", names, speeds),
        least(limits.accelerations, "accelerations", names, free),
        least(limits.jerks, "jerks", names, free),
        share * least(limits.torques, "torques", model.control_names, robot.control_limits),
        share * line,
        turns,
    )


def ground_of(model: ReducedModel, limits: PlanLimits, where: str) -> GroundLimits | None:
    """Limits of wheels and supports, of whose friction the plan leaves its margin."""
    found = read_ground(limits, model.robot, where, "limits")
    if found is None:
        return None
    share = 1.0 - limits.margin
    return found._replace(grips={name: share * grip for name, grip in found.grips.items()})


def _numbers(given: Any, where: str, names: Sequence[str]) -> Floats:
    """Numbers by names, infinite for those that are not given."""
    found = np.full(len(names), np.inf)
    table = dict.fromkeys(names, given) if not isinstance(given, Mapping) else given
    if given is None:
        return found
    for name, value in table.items():
        if name not in names:
            raise UnknownNameError(
                where,
                expected=f"names among {', '.join(names)}",
                came=f"`{name}`",
                cure="Correct the name.",
            )
        if not is_number(value) or not value > 0.0:
            raise ConcurError(
                f"{where}, `{name}`",
                expected="a number above zero",
                came=f"{value!r:.40}",
                cure="Correct the number, or leave it out for no limit beside the robot's.",
            )
        found[list(names).index(name)] = value
    return found
