"""Wheels that slip: friction, loads and supports of a plant, declared and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import casadi as ca
import numpy as np

from concur.codegen import Vector, constant, finite_floats
from concur.errors import SimulationError, UnknownNameError, shown
from concur.reduction import along, check_loads, check_rolling, refusal, wheel_names
from concur.robot import (
    Mechanism,
    Tree,
    as_tree,
    coupling_rows,
    solve_positive_definite,
    wheel_rows,
)
from concur.tables import INTERNAL, ByName, Positive

DAMPING = 1e6
"""Force per slip speed of a wheel that does not slide, N s/m."""

TIME = 2e-3
"""Time within which friction stops a slip, s: two steps of 1 ms."""

SWEEPS = 4
"""Sweeps over the wheels that redistribute forces after the limit is imposed."""

TINY = 1e-30
"""Square of a force, N^2, by which the direction of a zero force stays finite."""


@dataclass(frozen=True)
class Slip:
    """Friction of wheels that may slip.

    The force F of the ground on a wheel would bring the slip s of its contact point to
    ``-F / damping`` within `time`, but stays in the friction ellipse: its size along the wheel is
    at most grip times load, across the wheel `side` times this. Make it with `Slip.of`.

    Parameters
    ----------
    grip : tuple of float
        Friction coefficient of each wheel, in the order of the robot's wheels.
    side : tuple of float
        Friction across each wheel over that along it, 1 for a friction circle.
    loads : tuple of float, optional
        Constant loads of the wheels, N. Default: computed from the motion.
    supports : mapping of str to sequence of float
        Frictionless supports beside the wheels, such as casters: by name the point of contact in
        the frame of the base, shape (3,), m. Its height does not matter.
    compliance : tuple of float, optional
        Vertical compliance of the wheels and then of the supports, m/N, up to a common factor.
        More than three of them share the load by it.
    damping : float
        Force per slip speed of a wheel that does not slide, N s/m.
    time : float
        Time within which friction stops a slip and loads follow the motion, s. The direction of
        friction leads that of the slip by this time. Steps of integration may take twice as long.

    Raises
    ------
    SimulationError
        If a number is out of range or the lengths differ.

    Examples
    --------
    >>> from concur.simulation import Slip
    >>> Slip(grip=(0.8, 0.8), side=(1.0, 1.0)).grip
    (0.8, 0.8)
    """

    grip: tuple[float, ...]
    side: tuple[float, ...]
    loads: tuple[float, ...] | None = None
    supports: Mapping[str, Sequence[float]] = field(default_factory=dict, hash=False)
    compliance: tuple[float, ...] | None = None
    damping: float = DAMPING
    time: float = TIME

    def __post_init__(self) -> None:
        points = {
            name: tuple(finite_floats(at, f"slip, support `{shown(name)}`", (3,)).tolist())
            for name, at in self.supports.items()
        }
        object.__setattr__(self, "supports", points)
        count = len(self.grip)
        for name, size, least in (
            ("grip", (count,), "zero or more"),
            ("side", (count,), "above zero"),
            ("loads", (count,), "zero or more"),
            ("compliance", (count + len(points),), "above zero"),
            ("damping", (), "above zero"),
            ("time", (), "above zero"),
        ):
            if getattr(self, name) is None:
                continue
            values = np.asarray(finite_floats(getattr(self, name), f"slip, `{name}`"))
            low = values <= 0.0 if least == "above zero" else values < 0.0
            if values.shape != size or low.any():
                raise SimulationError(
                    f"slip, `{name}`",
                    expected=f"{'numbers' if size else 'a number'} {least}"
                    + "".join(f", {own} of them" for own in size),
                    came=shown(getattr(self, name)),
                    cure="Make it with Slip.of(robot, grip).",
                )
            object.__setattr__(self, name, tuple(values.tolist()) if size else float(values))

    @classmethod
    def of(
        cls,
        robot: Annotated[Mechanism, INTERNAL],
        grip: ByName,
        *,
        side: ByName = 1.0,
        loads: ByName = None,
        supports: Annotated[Mapping[str, Sequence[float]] | None, INTERNAL] = None,
        compliance: ByName = None,
        damping: Positive = DAMPING,
        time: Positive = TIME,
    ) -> Slip:
        """Slip of a robot, from a number for all wheels or numbers by name.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        grip : float or mapping of str to float
            Friction coefficient of all wheels, or of each by name.
        side : float or mapping of str to float
            Friction coefficient across the wheel, relative to that along it.
        loads : float or mapping of str to float, optional
            Constant loads of the wheels, N. Default: computed from the motion.
        supports : mapping of str to sequence of float, optional
            Frictionless supports: by name the point of contact in the frame of the base, (3,), m;
            default those of the robot.
        compliance : float or mapping of str to float, optional
            Vertical compliance of wheels and supports, m/N; one number if all yield alike.
            Required for more than three of them. Default: none.
        damping : float
            Force per slip speed of a wheel that does not slide, N s/m.
        time : float
            Time within which friction stops a slip and loads follow the motion, s.

        Returns
        -------
        Slip
            The slip.

        Raises
        ------
        UnknownNameError
            If a mapping does not name each wheel once.
        SimulationError
            If a number is out of range.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.rover_arm()
        >>> front = {"front": (0.5, 0.0, -0.1)}
        >>> slip = cc.simulation.Slip.of(robot, 0.8, supports=front)
        >>> plant = cc.Plant(robot, slip=slip)
        >>> plant.load_names
        ('left_wheel', 'right_wheel', 'front')
        """
        wheels, points = (
            wheel_names(as_tree(robot, f"wheels of `{robot.name}`")),
            robot.supports if supports is None else supports,
        )
        everything = (*wheels, *points)

        def each(
            what: str, given: float | Mapping[str, float] | None, names: tuple[str, ...]
        ) -> tuple[float, ...] | None:
            if not isinstance(given, Mapping):
                return None if given is None else (given,) * len(names)
            if sorted(given) != sorted(names):
                raise UnknownNameError(
                    f"slip of `{robot.name}`, `{what}`",
                    expected=f"a number for each of {', '.join(names)}",
                    came=f"{shown(list(given))}",
                    cure="Check the spelling, or give one number for all.",
                )
            return tuple(given[name] for name in names)

        return cls(
            each("grip", grip, wheels) or (),
            each("side", side, wheels) or (),
            each("loads", loads, wheels),
            dict(points),
            each("compliance", compliance, everything),
            damping,
            time,
        )


def check_slip(robot: Mechanism, slip: Slip) -> None:
    """Refuse wheels whose friction or loads have no sound model here."""
    where = f"plant of `{robot.name}`, `slip`"
    if len(slip.grip) != len(robot.wheels) or not robot.wheels:
        came, cure = f"{len(robot.wheels)} wheels", "Make it with Slip.of(robot, grip)."
        raise refusal(where, f"a robot with {len(slip.grip) or 'some'} wheels", came, cure)
    check_rolling(where, robot)
    if slip.loads is None:
        check_loads(where, robot, slip.supports, slip.compliance)


def check_step(where: str, slip: Slip | None, dt: float) -> None:
    """Refuse steps for which friction is stiff: they lose stability at 2.78 times its time."""
    if slip is not None and dt > 2 * slip.time:
        raise refusal(
            f"{where}, `dt`",
            f"steps up to {2 * slip.time:g} s: friction stops a slip in {slip.time:g} s",
            f"{dt:g} s",
            f"Give the slip the `time` {2 * dt:g}, or take shorter steps.",
        )


def load_names(robot: Tree, slip: Slip) -> tuple[str, ...]:
    """Names of what has a load: wheels, then supports, which have none if loads are constant."""
    return (*wheel_names(robot), *(slip.supports if slip.loads is None else ()))


def contact_rows(robot: Tree, q: Vector) -> list[ca.SX]:
    """Rows that map velocities to the slip of each wheel, m/s: along it, then across it."""
    return [wheel_rows(robot, q, wheel).rows for wheel in robot.wheels]


def slip_speeds(robot: Tree, q: Vector, v: Vector) -> ca.SX:
    """Slip speed of each wheel, shape (wheels,), m/s."""
    return ca.vertcat(*[ca.norm_2(rows @ v) for rows in contact_rows(robot, q)])


def slipping(
    robot: Mechanism,
    slip: Slip,
    limits: Sequence[ca.SX | float],
    stabilisation: float,
    q: Vector,
    v: Vector,
    force: ca.SX,
) -> tuple[ca.SX, ca.SX]:
    """Acceleration (nv,) under joint forces less bias (nv,), and forces on the wheels, N.

    With the slip s = C v, the forces solve F = limit(F + b - A F) for
    A = C M^-1 C^T + 1 / (damping time) and b = -(s / time + Cdot v + C a), a without friction:
    the forces that dissipate most. A start that is exact without limits is clipped and improved by
    projected Gauss-Seidel sweeps. Forces across a wheel are divided by `side`, which makes the
    friction ellipse a circle.
    """
    per_wheel, couplings = contact_rows(robot, q), coupling_rows(robot, q)
    rows, nc = ca.vertcat(*per_wheel), couplings.shape[0]
    mass, rate = robot.mass_matrix(q), robot.rate(q, v)
    solved = solve_positive_definite(mass, ca.horzcat(rows.T, force, couplings.T))
    moved, held = solved[:, : rows.shape[0] + 1], solved[:, rows.shape[0] + 1 :]
    if nc:
        # Couplings act without a limit: forces of the ground move what they leave free.
        turning = along(lambda q: coupling_rows(robot, q), q, rate) @ v
        rest = couplings @ moved
        rest[:, -1] += turning + stabilisation * (couplings @ v)
        moved -= held @ solve_positive_definite(couplings @ held, rest)
    reaction, free = moved[:, :-1], moved[:, -1]
    turning = along(lambda q: ca.vertcat(*contact_rows(robot, q)), q, rate) @ v

    ratios = [1.0] * rows.shape[0]
    spans, start = [], 0
    for wheel, side, own in zip(robot.wheels, slip.side, per_wheel, strict=True):
        spans.append(slice(start, start + own.shape[0]))
        if own.shape[0] == 2:
            ratios[start + 1] = side
        elif wheel.kind == "slider":
            ratios[start] = side
        start += own.shape[0]
    ratio = constant(np.diag(ratios))
    matrix = ratio @ (rows @ reaction) @ ratio
    matrix += constant(np.diag(np.square(ratios) / (slip.damping * slip.time)))
    right = -ratio @ (rows @ v / slip.time + turning + rows @ free)
    found = solve_positive_definite(matrix, right)
    for span, limit in zip(spans, limits, strict=True):
        found[span] = _clipped(found[span], limit)
    for _ in range(SWEEPS):
        for span, limit in zip(spans, limits, strict=True):
            rest = right[span] - matrix[span, :] @ found
            found[span] = _clipped(found[span] + rest / ca.trace(matrix[span, span]), limit)
    forces = ratio @ found
    return free + reaction @ forces, forces


def _clipped(force: ca.SX, limit: ca.SX | float) -> ca.SX:
    """The point of a circle that is nearest to a force."""
    size = ca.sqrt(ca.sumsqr(force) + TINY)
    return force * (limit / ca.fmax(limit, size))
