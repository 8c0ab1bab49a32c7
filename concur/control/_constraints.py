"""Limits that a law keeps: of torques, joints and distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Len

from concur.control._reading import positive
from concur.errors import OutputError
from concur.robot import Capsule, Clearance, Mechanism, Obstacle
from concur.tables import NUMBER, Expected, InFiles, Positive, is_number, table_of

_BY_NAME = Expected(
    "a table of numbers above zero by name",
    lambda value: isinstance(value, dict) and all(is_number(x) and x > 0 for x in value.values()),
    table_of(NUMBER),
)

_TABLES = Len(0, 100), Expected("tables, at most 100")


@dataclass(frozen=True, eq=False)
class Constraints:
    """Limits that a servo keeps within its law, beside those of its torques.

    While no limit is active the law is the servo to the last bit. Otherwise torques are kept
    exactly, and the limits of the joints as far as torques allow. Where a joint is at its limit the
    others move as near to the servo as they can; where torques do not suffice all joints slow down
    together.

    Parameters
    ----------
    joints : bool
        Whether the position limits of the robot's joints are kept: a joint comes to its limit no
        faster than its distance times `approach`.
    speeds : bool
        Whether the speed limits of the robot's joints are kept.
    accelerations : mapping of str to float, optional
        Largest acceleration by name of the freedom, rad/s^2 and m/s^2. Default: none.
    approach : float, optional
        Rate of the approach to a limit of position, 1/s, and half of that to a speed. Default: four
        times the fastest rate of the errors.
    weights : mapping of str to float, optional
        Weight of outputs by name. 1 cm of an output with the weight 2 costs as much as 2 cm of one
        with the weight 1, or as the robot as a whole 2 cm off; an angle as much as that angle times
        the robot's size. With large weights other joints make up for a joint at its limit, and
        move faster. Default: 0.1.
    capsule : sequence, optional
        Capsules that move with bodies. Default: none.
    obstacle : sequence, optional
        Spheres and capsules in the world or on the base from which these capsules keep away, as far
        as torques allow; they come near no faster than their distance times `approach`. Default:
        none.

    Raises
    ------
    OutputError
        If a number is out of range.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> limits = cc.Constraints(weights={"hand": 3.0})
    >>> servo = cc.Servo(model, [base, hand], 4.0, 4.0, torque_limits=8.0, constraints=limits)
    >>> servo.limit_names[:2], servo.limit_names[-2]
    (('torque of left_wheel', 'torque of right_wheel'), 'margin')
    """

    joints: bool = True
    speeds: bool = True
    accelerations: Annotated[Any, _BY_NAME] = None
    approach: Positive | None = None
    weights: Annotated[Any, _BY_NAME] = None
    capsule: Annotated[Sequence[Annotated[Any, InFiles(Capsule.of)]], *_TABLES] = ()
    obstacle: Annotated[Sequence[Obstacle], *_TABLES] = ()

    def __post_init__(self) -> None:
        for name in ("joints", "speeds"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise OutputError(
                    f"constraints, `{name}`",
                    expected="True or False",
                    came=f"{getattr(self, name)!r:.40}",
                    cure="The limits themselves are fields of the robot's joints.",
                )
        if self.approach is not None:
            rate = positive("constraints, `approach`", self.approach, "a rate above zero, 1/s")
            object.__setattr__(self, "approach", rate)
        for name in ("accelerations", "weights"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, Mapping):
                raise OutputError(
                    f"constraints, `{name}`",
                    expected="a mapping of names to numbers",
                    came=f"{value!r:.40}",
                    cure='Write for example {"elbow": 5.0}.',
                )

    def clearance(self, robot: Any) -> Clearance | None:
        """Capsules on a robot and obstacles, if there are any.

        Parameters
        ----------
        robot : System
            The robot; it needs bodies.

        Returns
        -------
        Clearance or None
            The pairs.

        Raises
        ------
        UnknownNameError
            If the robot has no such body.
        OutputError
            If names are double or unknown, no pair exists, or the system has no bodies.
        """
        if not self.capsule and not self.obstacle:
            return None
        if not isinstance(robot, Mechanism):
            raise OutputError(
                "constraints, `capsule`",
                expected="a robot of bodies",
                came=type(robot).__name__,
                cure="Omit capsules and obstacles: nothing carries them.",
            )
        own = (made(robot) if callable(made) else made for made in self.capsule)
        found = Clearance(tuple(own), tuple(self.obstacle))
        for made in found.capsules:
            robot.index(made.body)
        return found
