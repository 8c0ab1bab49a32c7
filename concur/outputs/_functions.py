"""Outputs that are functions of the configuration: coordinates of R^n, or elements of a group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector
from concur.errors import ShapeError, shown
from concur.groups import s2, so3
from concur.outputs._output import Output, refused
from concur.outputs.groups import Coordinates, OutputGroup, named
from concur.robot import Placed, unknown_name
from concur.system import System

SHAPES = {
    "SO2": (1, 1), "SE2": (3, 1), "SO3": (3, 3), "S2": (3, 1), "SE3": (4, 4), "R3xSO3": (4, 4)
}  # fmt: skip
"""Shape of the value on each group: heading; x, y and heading; rotation matrix; unit vector; pose
matrix."""

SAMPLES = 4
"""Random configurations at which the value of a function has to be on its group."""


@dataclass(frozen=True, init=False)
class FunctionOutput(Output):
    """An output that a CasADi function of the configuration gives, for any system.

    The velocity of a group is left-trivialized, r^-1 rdot, that of R^n the rate. Velocities,
    Jacobians and their rates are derivatives of the function.

    Parameters
    ----------
    name : str
        Name of the output, for tables and figures.
    function : casadi.Function
        From the configuration, shape (nq,), to the value: a column (n,) on R^n, a heading on
        "SO2", (x, y, heading) on "SE2", a rotation matrix (3, 3) on "SO3", a unit vector (3,) on
        "S2", a pose (4, 4) on "SE3" and "R3xSO3".
    group : str
        "R" or "R" with a number, "SO2", "SE2", "SO3", "S2", "SE3" or "R3xSO3".
    unit : str
        Unit of the coordinates of an R^n: "m" or "rad".

    Raises
    ------
    OutputError
        If `function` is no CasADi function of one column that SX can represent.
    ShapeError
        If its value has another shape.
    UnknownNameError
        If the group or the unit does not exist.

    Examples
    --------
    >>> import casadi as ca, concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> q = ca.SX.sym("q", robot.nq)
    >>> height = ca.Function("height", [q], [robot.pose(q, "forearm")[2, 3]])
    >>> cc.outputs.FunctionOutput("height", height, "R").dim
    1
    """

    function: Any = field(default=None, compare=False)
    unit: str = "m"
    text: str = field(default="", repr=False)

    def __init__(self, name: str, function: ca.Function, group: str, unit: str = "m") -> None:
        where = f"output `{name}`"
        flat = isinstance(group, str) and re.fullmatch(r"R([1-9]\d?)?", group)
        if not flat and not (isinstance(group, str) and group in SHAPES):
            raise unknown_name(f"{where}, `group`", "group", group, ("R", "R2", *SHAPES))
        if unit not in ("m", "rad"):
            raise unknown_name(f"{where}, `unit`", "unit", unit, ("m", "rad"))
        if not (
            isinstance(function, ca.Function)
            and function.is_a("SXFunction")
            and (function.n_in(), function.n_out()) == (1, 1)
            and function.size2_in(0) == 1
        ):
            expected = "a casadi.Function over SX from the configuration, a column, to one value"
            cure = 'Write casadi.Function("tip", [q], [value]) with q = casadi.SX.sym("q", nq).'
            raise refused(f"{where}, `function`", expected, shown(function), cure)
        wanted = (int(group[1:] or 1), 1) if flat else SHAPES[group]
        if tuple(function.size_out(0)) != wanted:
            expected, came = f"shape {wanted} for group {group}", f"shape {function.size_out(0)}"
            cure = "Correct the function or the group."
            raise refused(f"{where}, value of `function`", expected, came, cure, ShapeError)
        given = {"name": name, "body": function.name(), "group": group, "unit": unit}
        for field_name, value in (given | {"function": function}).items():
            object.__setattr__(self, field_name, value)
        object.__setattr__(self, "text", function.serialize())

    @property
    def is_function(self) -> bool:
        """True: it has no body."""
        return True

    @cached_property
    def lie(self) -> OutputGroup:
        """The group, with its errors and velocities."""
        if self.group in SHAPES:
            return named(self.group)
        return Coordinates(int(self.group[1:] or 1), self.unit)

    def value(self, q: Vector) -> Placed:
        """Value at a configuration, as rotation and position.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        tuple of casadi.SX
            Rotation (3, 3) and position (3,); on R^n the coordinates (n,) as position; on "S2" a
            rotation that takes z to the direction.
        """
        value = ca.sparsify(self.function(q))
        if self.group == "S2":
            direction = value / ca.norm_2(value)
            return ca.horzcat(s2.frame(direction), direction), ca.SX(3, 1)
        if self.group not in SHAPES:
            return ca.SX.eye(3), value
        if value.shape == (4, 4):
            return value[:3, :3], value[:3, 3]
        if value.shape == (3, 3):
            return value, ca.SX(3, 1)
        angle = value[-1]
        c, s = ca.cos(angle), ca.sin(angle)
        turned = ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))
        return turned, ca.vertcat(value[:2], 0) if value.numel() == 3 else ca.SX(3, 1)

    def check(self, system: System, where: str) -> None:
        """Reject a function of other configurations, or with values off its group.

        Parameters
        ----------
        system : System
            The system whose output it is.
        where : str
            Place named in the error.

        Raises
        ------
        OutputError
            If the function does not fit.
        """
        place = f"{where}, output `{self.name}`"
        size, rng = self.function.size1_in(0), np.random.default_rng(9)
        if size != system.nq:
            expected = f"a function of a configuration of `{system.name}`, {system.nq} numbers"
            cure = "Make it of q = casadi.SX.sym('q', system.nq)."
            raise refused(place, expected, f"one of {size}", cure)
        symbol = ca.SX.sym("q", size)
        seen = ca.Function("seen", [symbol], [ca.densify(part) for part in self.value(symbol)])
        for _ in range(SAMPLES):
            q = system.random(rng)
            rotation, position = (np.array(part) for part in seen(q))
            what, off = "a rotation that is off orthonormal", rotation @ rotation.T - np.eye(3)
            if self.group == "S2":
                length = np.linalg.norm(np.array(self.function(q)))
                what, off = "a direction whose length is off 1", length - 1.0
            off = np.abs(off).max()
            if not (off < 1e-9 and np.isfinite(position).all() and np.linalg.det(rotation) > 0.0):
                came = f"{what} by {off:.3g}, or NaN"
                cure = "Check the function, and that rotations are right-handed."
                raise refused(place, f"values on {self.group}, finite", came, cure)


def function_motion(
    system: System, output: FunctionOutput, q: Vector, v: Array, vdot: Array
) -> tuple[Placed, Array, Array, Array, Array]:
    """Pose, coordinates, velocity, acceleration and Jacobian of a function, by derivatives."""
    symbols = [ca.SX.sym("q", system.nq), *(ca.SX.sym(name, system.nv) for name in "va")]
    at, moving, change = symbols
    rotation, position = output.value(at)
    rows, moved = _moved(system, output, (rotation, position), at, moving)
    rates = ca.vertcat(system.rate(at, moving), change)
    results = [
        rotation,
        position,
        output.lie.coordinates((rotation, position)),
        rows @ moved,
        rows @ _along(moved, ca.vertcat(at, moving), rates),
        rows @ ca.jacobian(moved, moving),
    ]
    graph = ca.Function("output", symbols, [ca.SX(part) for part in results], {"cse": True})
    found: Sequence[Any] = [ca.sparsify(part) for part in graph(q, v, vdot)]
    return (found[0], found[1]), found[2], found[3], found[4], found[5]


def function_following(
    system: System, output: FunctionOutput, q: Vector, v: Array, w: Array
) -> Array:
    """Rate along a motion v (nv,) of the output velocity of constant w (nv,), shape (dim,)."""
    symbols = [ca.SX.sym("q", system.nq), *(ca.SX.sym(name, system.nv) for name in "vw")]
    at, moving, other = symbols
    rows, moved = _moved(system, output, output.value(at), at, other)
    graph = ca.Function("following", symbols, [rows @ _along(moved, at, system.rate(at, moving))])
    return graph(q, v, w)


def _moved(
    system: System, output: FunctionOutput, value: Placed, at: Array, moving: Array
) -> tuple[Array, Array]:
    """Rows that do not count as moving, and a vector that they take to the output's velocity.

    Rates of directions are covariant: their normals are no part of the motion.
    """
    linear, turned = (_along(part, at, system.rate(at, moving)) for part in reversed(value))
    if output.group == "S2":
        normals, direction = value[0][:, :2], value[0][:, 2]
        return normals.T, ca.cross(direction, turned[:, 2])
    if output.group in SHAPES:
        linear = value[0].T @ linear
    angular = so3.vee(value[0].T @ turned)
    return ca.SX.eye(output.dim), output.lie.velocity(value, (linear, angular))


def _along(value: Array, symbol: Array, rate: Array) -> Array:
    """Derivative of an expression of any shape along a rate of a symbol."""
    dense = ca.densify(ca.SX(value))
    slope: Array = ca.reshape(ca.jtimes(ca.vec(dense), symbol, ca.densify(rate)), *dense.shape)
    return slope
