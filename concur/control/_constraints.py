"""Limits that a law keeps: of torques, joints and distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Len

from concur.control._reading import positive, read_each
from concur.errors import OutputError
from concur.robot import Capsule, Clearance, Mechanism, Obstacle
from concur.tables import (
    NUMBER,
    ByName,
    Expected,
    InFiles,
    NotNegative,
    Positive,
    Text,
    is_number,
    table_of,
)

_BY_NAME = Expected(
    "a table of numbers above zero by name",
    lambda value: isinstance(value, dict) and all(is_number(x) and x > 0 for x in value.values()),
    table_of(NUMBER),
)

_PAIR = Annotated[Sequence[Text], Len(2, 2), Expected("a pair of names of capsules")]

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
    holding : bool
        Whether the robot keeps away from configurations whose weight the limits of its torques
        cannot hold, with a reserve of 1 %: it rests before it sinks. Motors that share a weight are
        not examined.
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
        Spheres, capsules and boxes in the world or on the base from which these capsules keep away,
        as far as torques allow; they come near no faster than their distance times `approach`.
        Default: none.
    least_load : float or mapping of str to float, optional
        Least load of wheels and supports of the robot, N: of all, or by name. Default: none.
    grip : float or mapping of str to float, optional
        Largest friction coefficient that wheels may use, so that they do not slip: of all, or by
        name. Default: none.
    tipping : float, optional
        Least moment that holds the robot down about each edge of the polygon of its wheels and
        supports, N m. Default: none.
    compliance : float or mapping of str to float, optional
        Vertical compliance of wheels and supports, m/N, if there are more than three; only ratios
        matter. Default: none.
    margin : float, optional
        Decoupling margin from which outputs keep away, without unit, as `Servo.margin` has it;
        reached no faster than what is left of it times `approach`. It bounds no motion where the
        margin is above it by more than a quarter of that of a usual configuration. Default: none.
    self_collision : sequence of tuple of str, optional
        Pairs of names of capsules on different bodies that keep away from each other likewise.
        Default: none.
    self_distance : float
        Least distance of these, m.

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
    holding: bool = True
    accelerations: Annotated[Any, _BY_NAME] = None
    approach: Positive | None = None
    weights: Annotated[Any, _BY_NAME] = None
    capsule: Annotated[Sequence[Annotated[Any, InFiles(Capsule.of)]], *_TABLES] = ()
    obstacle: Annotated[Sequence[Obstacle], *_TABLES] = ()
    least_load: ByName = None
    grip: ByName = None
    tipping: NotNegative | None = None
    compliance: ByName = None
    margin: Positive | None = None
    self_collision: Annotated[
        Sequence[_PAIR], Len(0, 100), Expected("pairs of names, at most 100")
    ] = ()
    self_distance: NotNegative = 0.0

    def __post_init__(self) -> None:
        for name in ("joints", "speeds", "holding"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise OutputError(
                    f"constraints, `{name}`",
                    expected="True or False",
                    came=f"{getattr(self, name)!r:.40}",
                    cure="The limits themselves are fields of the robot's joints.",
                )
        for name, meaning in (("approach", "a rate, 1/s"), ("margin", "a margin")):
            if (value := getattr(self, name)) is not None:
                number = positive(f"constraints, `{name}`", value, f"{meaning}, above zero")
                object.__setattr__(self, name, number)
        if self.tipping is not None:
            least = read_each("constraints, `tipping`", self.tipping, ("all",), "edge", zero=True)
            object.__setattr__(self, "tipping", float(least[0]))
        pairs = self.self_collision
        if isinstance(pairs, str) or not all(isinstance(one, (list, tuple)) for one in pairs):
            raise OutputError(
                "constraints, `self_collision`",
                expected="pairs of names of capsules",
                came=f"{pairs!r:.40}",
                cure='Write for example [("hand", "turret")].',
            )
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
        if not (self.capsule or self.obstacle or self.self_collision):
            return None
        if not isinstance(robot, Mechanism):
            raise OutputError(
                "constraints, `capsule`",
                expected="a robot of bodies",
                came=type(robot).__name__,
                cure="Omit capsules and obstacles: nothing carries them.",
            )
        own = (made(robot) if callable(made) else made for made in self.capsule)
        pairs: Any = tuple(map(tuple, self.self_collision))
        found = Clearance(tuple(own), tuple(self.obstacle), pairs, self.self_distance)
        for made in found.capsules:
            robot.index(made.body)
        return found
