"""The full-order plant: all velocities, wheel constraints held by multipliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import ClassVar

import casadi as ca

from concur.codegen import EvaluatedMethods, Vector, as_floats, evaluated, write_fmu
from concur.dynamics import forward_dynamics, solve_positive_definite
from concur.errors import SimulationError, UnknownNameError, shown
from concur.multibody import Mechanism, as_tree, control_velocities
from concur.reduction import ReducedModel, along
from concur.simulation._fmu import plant_fmu
from concur.simulation._friction import Friction
from concur.system import System, check_system

STABILISATION = 10.0
"""Default rate at which a residual of the constraints decays, 1/s."""


FASTEST_PULL = 1e6
"""Largest rate, 1/s, at which violated constraints are drawn back."""

MANY = 10
"""Velocities beyond which articulated bodies are shorter than a solution with the mass matrix."""


@dataclass(frozen=True)
class Plant(EvaluatedMethods):
    """The full-order robot: ``M vdot + c = B u + C^T lambda`` with ``C v = 0``.

    The constraints are imposed on the acceleration and stabilised,
    ``C vdot + Cdot v = -stabilisation C v``, so that round-off dies away. Nothing of the
    reduced model is used.

    Parameters
    ----------
    robot : System
        The robot: a `Mechanism`, or any other system.
    stabilisation : float
        Rate at which a constraint residual decays, 1/s.
    friction : Friction, optional
        Friction at the controls; default none.

    Raises
    ------
    SimulationError
        If the robot lacks a member of a system, the rate is negative, or the friction does not
        have one number for each control.
    """

    COMPILED: ClassVar[tuple[str, ...]] = ("acceleration",)

    robot: System
    stabilisation: float = STABILISATION
    friction: Friction | None = None

    def __post_init__(self) -> None:
        check_system(self.robot, "plant, `robot`", SimulationError)
        rate = as_floats(self.stabilisation, f"plant of `{self.robot.name}`, `stabilisation`")
        if rate.shape != () or not 0.0 <= rate <= FASTEST_PULL:
            raise SimulationError(
                f"plant of `{self.robot.name}`, `stabilisation`",
                expected=f"a rate of zero or more, at most {FASTEST_PULL:g} 1/s",
                came=shown(self.stabilisation),
                cure="Take about 10 / s; far below the inverse of the time step.",
            )

        if self.friction is not None and len(self.friction.viscous) != self.nu:
            raise SimulationError(
                f"plant of `{self.robot.name}`, `friction`",
                expected=f"{self.nu} numbers, one for each control",
                came=f"{len(self.friction.viscous)}",
                cure="Make it with Friction.of(robot, viscous, coulomb).",
            )

    @property
    def tree(self) -> Mechanism:
        """The robot as a tree of bodies.

        Raises
        ------
        ReductionError
            If it is another system.
        """
        return as_tree(self.robot, f"plant of `{self.name}`")

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.robot.name

    @property
    def quaternions(self) -> Mapping[int, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        return self.robot.quaternions

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.robot.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self.robot.nv

    @property
    def nu(self) -> int:
        """Number of controls."""
        if isinstance(self.robot, Mechanism):
            return self.robot.nu
        return len(self.robot.actuated_freedoms)

    @property
    def nf(self) -> int:
        """Number of constraints."""
        return self.robot.nf

    @evaluated("(nq),(nv),(nu)->(nv),(nf)")
    def acceleration(self, q: Vector, v: Vector, u: Vector) -> tuple[Vector, Vector]:
        """Acceleration and constraint forces under control forces.

        Parameters
        ----------
        q, v : array_like
            Configuration and velocity, shapes (nq,) and (nv,).
        u : array_like
            Control forces and torques, shape (nu,), N and N m.

        Returns
        -------
        vdot : numpy.ndarray or casadi.SX
            Shape (nv,).
        multipliers : numpy.ndarray or casadi.SX
            Forces along the constraint rows, shape (nf,), as they act on the robot.
        """
        robot = self.robot
        if self.friction is not None:
            u = self.friction.left(u, control_velocities(robot, q, v))
        force = ca.SX(self.nv, 1)
        alone = len(robot.actuated_freedoms)
        for k, row in enumerate(robot.actuated_freedoms):
            force[row] += u[k]
        if self.nu > alone:
            force += control_velocities(robot, q, ca.SX.eye(self.nv))[alone:, :].T @ u[alone:]
        if isinstance(robot, Mechanism) and not self.nf and self.nv > MANY:
            return forward_dynamics(robot, q, v, force), ca.SX(0, 1)
        force -= robot.bias(q, v)
        mass = robot.mass_matrix(q)
        if not self.nf:
            return solve_positive_definite(mass, force), ca.SX(0, 1)
        rows = robot.constraints(q)
        turning = along(robot.constraints, q, robot.rate(q, v)) @ v
        solved = solve_positive_definite(mass, ca.horzcat(rows.T, force))
        reaction, free = solved[:, : self.nf], solved[:, self.nf]
        rest = -self.stabilisation * (rows @ v) - turning - rows @ free
        multipliers = solve_positive_definite(rows @ reaction, rest)
        return free + reaction @ multipliers, multipliers

    def export(
        self,
        directory: str | PathLike[str],
        model: ReducedModel | None = None,
        target: str = "fmu",
        fmi: str = "3.0",
        step: float = 1e-3,
    ) -> Path:
        """Write the plant as an FMU for co-simulation in other simulators.

        Parameters
        ----------
        directory : path
            Where the archive goes; made if it is missing.
        model : ReducedModel, optional
            A reduced model of the robot: then the unit starts from shape velocities, and, where
            the robot floats, from a momentum, instead of from all velocities.
        target : str
            "fmu".
        fmi : str
            Version of FMI, "3.0" or "2.0".
        step : float
            Step of its integration, s, by the Runge-Kutta method of fourth order.

        Returns
        -------
        pathlib.Path
            The archive, with sources and, where a compiler is found, a binary for this machine.

        Raises
        ------
        UnknownNameError
            If there is no such target or version.
        SimulationError
            If the model is one of another robot, or the step is not above zero.
        ConcurError
            If the archive cannot be written.

        Warns
        -----
        CompilerWarning
            If there is no binary in it since none could be compiled.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.rover_arm()
        >>> cc.Plant(robot).export("units", cc.reduce(robot)).name    # doctest: +SKIP
        'rover_arm_plant.fmu'
        """
        if target != "fmu":
            raise UnknownNameError(
                f"plant of `{self.name}`, `target`",
                expected='"fmu"',
                came=repr(target),
                cure="Leave it out.",
            )
        return write_fmu(plant_fmu(self.tree, self.acceleration, model, step), directory, fmi)
