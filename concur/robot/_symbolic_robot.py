"""The same robot with other numbers, or with expressions in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import casadi as ca

from concur.robot import _mass_matrix, _newton_euler
from concur.robot._body import Body
from concur.robot._constraint_rows import constraint_rows
from concur.robot._drive import Drive
from concur.robot._mechanism import Mechanism
from concur.robot._numbers import RobotNumbers
from concur.robot._tree import Tree
from concur.robot._wheel import Wheel


class SymbolicRobot(Tree):
    """A robot with expressions in place of its numbers.

    Its methods take and return CasADi SX that depend on these expressions. Unlike those of a
    `Mechanism` they keep no graphs, which could not contain the expressions.
    Its description, with `bodies`, `wheels` and `total_mass`, is the nominal one: functions that
    take numbers from it reject the robot.

    Parameters
    ----------
    robot : Mechanism
        The robot; its frames, attitudes and kept constraint rows stay.
    numbers : RobotNumbers
        The expressions.
    """

    _numbers: RobotNumbers
    _kept_rows: tuple[int, ...]

    def __init__(self, robot: Mechanism, numbers: RobotNumbers) -> None:
        mine: dict[str, Any] = {entry.name: getattr(robot, entry.name) for entry in fields(robot)}
        given = zip(robot.linkages, numbers.axles, numbers.reaches, strict=True)
        mine["_linkages"] = tuple(linkage.with_numbers(*parts) for linkage, *parts in given)
        self.__dict__.update(mine, _numbers=numbers)

    @property
    def numbers(self) -> RobotNumbers:
        return self._numbers

    def mass_matrix(self, q: ca.SX) -> ca.SX:
        """Mass matrix, as `Mechanism.mass_matrix`.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (nv, nv), kg, kg m, kg m^2.
        """
        return _mass_matrix.mass_matrix(self, q)

    def bias(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Coriolis, centrifugal and gravity forces, as `Mechanism.bias`.

        Parameters
        ----------
        q, v : casadi.SX
            Configuration and velocity, shapes (nq,) and (nv,).

        Returns
        -------
        casadi.SX
            Shape (nv,), N and N m.
        """
        return _newton_euler.bias(self, q, v)

    def constraints(self, q: ca.SX) -> ca.SX:
        """Rolling constraints and couplings: the rows that the nominal robot keeps.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (nf, nv).
        """
        return constraint_rows(self, q, self._kept_rows)

    def normalize(self, coordinates: ca.SX) -> ca.SX:
        unit = self._unit(coordinates)
        return self._followed(unit, True) if self._linkages else unit


def with_numbers(
    robot: Mechanism, bodies: Sequence[Body], wheels: Sequence[Wheel], drives: Sequence[Drive]
) -> Mechanism:
    """The same robot with other inertias, placements, radii and gear ratios.

    It keeps the constraint rows of the robot, and its wheels may be of heights that differ.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    bodies : sequence of Body
        Its bodies, with other numbers.
    wheels : sequence of Wheel
        Its wheels, with other numbers.
    drives : sequence of Drive
        Its drives, with other ratios.

    Returns
    -------
    Mechanism
        The robot with these numbers.

    Raises
    ------
    DescriptionError
        If an axle of `steering` no longer meets its steering axis.
    """
    made = object.__new__(Mechanism)
    mine = {entry.name: getattr(robot, entry.name) for entry in fields(robot)}
    made.__dict__.update(mine, bodies=bodies, wheels=wheels, drives=drives)
    Tree.__post_init__(made)
    return made
