"""Tables [imperfections] and [plant.slip] of a task: drives, encoders, disturbances, friction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Annotated, Any

from annotated_types import Len

from concur.robot import Mechanism
from concur.simulation import KINDS, GravityGradient, Imperfections, Plant, Slip, Wrench
from concur.tables import ByName, Expected, Time, located, stranger, variant


@dataclass(frozen=True)
class Timing:
    """Delays between measurement and torque.

    Parameters
    ----------
    latency : float, optional
        Time from measurement to torque, s.
    jitter : float, optional
        Largest random addition to it, s.
    """

    latency: Time = 0.0
    jitter: Time = 0.0


@dataclass(frozen=True)
class Disturbed:
    """Properties of the simulated robot that the model of the law lacks.

    Parameters
    ----------
    timing : table, optional
        Delays between measurement and torque. Default: none.
    wrenches : sequence, optional
        Forces and torques on bodies. Default: none.
    gravity_gradient : table, optional
        Torque of the gravity gradient. Default: none.
    """

    timing: Timing = field(default_factory=Timing)
    wrenches: Annotated[
        Sequence[Wrench], Len(0, 100), Expected("tables [[imperfections.wrenches]], at most 100")
    ] = ()
    gravity_gradient: GravityGradient | None = None

    def of(self, robot: Mechanism, **numbers: Any) -> Imperfections:
        """Imperfections of a robot with these and with numbers of `Imperfections.of`."""
        bodies = [body.name for body in robot.bodies]
        for k, wrench in enumerate(self.wrenches):
            if wrench.body not in bodies:
                raise stranger(("wrenches", k, "body"), "a body", wrench.body, bodies)
        gradient = [] if self.gravity_gradient is None else [self.gravity_gradient]
        given = vars(self.timing) | {"disturbances": [*self.wrenches, *gradient]}
        return Imperfections.of(robot, **given, **numbers)


IMPERFECTIONS = variant(
    Imperfections.of,
    "Imperfections",
    Disturbed,
    more={
        name: (
            ByName,
            f"{kind.described}; a number for all, or by name. Default: `{kind.ideal:g}`.",
        )
        for name, kind in KINDS.items()
        if kind.of in ("control", "joint")
    },
)
"""Fields of the table [imperfections], made a function of the robot."""


def _waiting(**given: Any) -> Callable[[Mechanism], Imperfections]:
    own = {name: given.pop(name) for name in Disturbed.__dataclass_fields__ if name in given}
    return partial(Disturbed(**own).of, **given)


IMPERFECTIONS.makers = (_waiting,)


def read_slip(
    slip: Callable[[Mechanism], Slip] | None, robot: Mechanism, path: str | PathLike[str]
) -> Slip | None:
    """Friction of wheels that may slip; an error names table and field."""
    if slip is None:
        return None
    with located(path, "[plant.slip]"):
        made = slip(robot)
        Plant(robot, slip=made)  # checks loads and supports
        return made
