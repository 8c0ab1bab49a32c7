"""The full-order plant: all velocities, wheel constraints held by multipliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import ClassVar, cast

import casadi as ca
import numpy as np

from concur.codegen import Place, Vector, as_floats, evaluated
from concur.errors import SimulationError, shown
from concur.export import write_fmu
from concur.reduction import ReducedModel, along
from concur.robot import (
    FreeNumbers,
    Mechanism,
    Tree,
    Worlds,
    as_tree,
    control_velocities,
    forward_dynamics,
    solve_positive_definite,
    unknown_name,
)
from concur.simulation._drives import Drives
from concur.simulation._fmu import plant_fmu
from concur.simulation._friction import Friction
from concur.simulation._imperfections import Imperfections
from concur.simulation._integrator import FIXED_STEP
from concur.simulation._slip import Slip, check_slip
from concur.simulation._slipping import SlippingWheels
from concur.simulation._step import plant_step
from concur.system import System, check_system

STABILISATION = 10.0
"""Default rate at which a residual of the constraints decays, 1/s."""


FASTEST_PULL = 1e6
"""Largest rate, 1/s, at which violated constraints are drawn back."""

MANY = 10
"""Velocities beyond which articulated bodies are shorter than a solution with the mass matrix."""


@dataclass(frozen=True)
class Plant(SlippingWheels):
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
    uncertain : sequence of str, optional
        Names of numbers of a `Mechanism` that become inputs of the graph, as of
        `Mechanism.numbers`: of a body "hand.inertia.mass", "hand.inertia.com",
        "hand.inertia.moments", "hand.placement.translation" and "hand.placement.rotation"; of a
        wheel, by its body, "left_wheel.radius" and, with `slip`, "left_wheel.grip"; "caster.center"
        of a slider or of a wheel with a support; "ball.support.center" and "ball.support.radius" of
        a sphere; of a drive "differential.ratio". The track of wheels is their translation along
        the axle. See `numbers`.
    slip : Slip, optional
        Friction of wheels that may slip; default wheels that roll whatever forces this takes.

    Raises
    ------
    SimulationError
        If the robot lacks a member of a system, the rate is negative, the friction does not have
        one number for each control, a number cannot be uncertain, or the friction or
        loads of a wheel that slips have no model.
    UnknownNameError
        If there is no such number.
    ReductionError
        If a number is uncertain and the robot is no `Mechanism`.

    Examples
    --------
    >>> import concur as cc
    >>> plant = cc.Plant(cc.robots.rover_arm(), uncertain=["forearm.inertia.mass"])
    >>> plant.number_names[-1]
    'forearm: second[0]'
    >>> plant.numbers({"forearm.inertia.mass": [0.1, -0.1, 0.0]}).shape
    (3, 9)
    """

    _COMPILED: ClassVar[tuple[str, ...]] = ("acceleration",)

    robot: System
    stabilisation: float = STABILISATION
    friction: Friction | None = None
    uncertain: Sequence[str] | None = None
    slip: Slip | None = None
    _uncertain: FreeNumbers | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        check_system(self.robot, "plant, `robot`", SimulationError)
        if not self.nv:
            raise SimulationError(
                f"plant of `{self.robot.name}`, `robot`",
                expected="a robot that can move",
                came="a robot without velocities",
                cure="Give a joint that is not Fixed to a body, or a base that floats.",
            )
        rate = as_floats(self.stabilisation, f"plant of `{self.robot.name}`, `stabilisation`")
        if rate.shape != () or not 0.0 <= rate <= FASTEST_PULL:
            raise SimulationError(
                f"plant of `{self.robot.name}`, `stabilisation`",
                expected=f"a rate of zero or more, at most {FASTEST_PULL:g} 1/s",
                came=shown(self.stabilisation),
                cure="Take about 10 / s; far below the inverse of the time step.",
            )
        if self.slip is not None:
            check_slip(self.tree, self.slip)
        if self.uncertain is not None:
            grip = None if self.slip is None else self.slip.grip
            where = f"plant of `{self.robot.name}`, `uncertain`"
            free = FreeNumbers(self.tree, self.uncertain, grip, where)
            object.__setattr__(self, "uncertain", free.free)
            object.__setattr__(self, "_uncertain", free)
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
    def quaternions(self) -> Mapping[Place, str]:
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
        return int(getattr(self.robot, "nu", len(self.robot.actuated_freedoms)))

    @property
    def nf(self) -> int:
        """Number of constraints."""
        return self.robot.nf

    @property
    def n_numbers(self) -> int:
        """Number of inputs that are numbers of the robot; zero if none is uncertain."""
        return len(self.number_names)

    @property
    def number_names(self) -> tuple[str, ...]:
        """Name of each input: body or wheel, kind of number and index.

        Masses, "first" moments and "second" moments are those of links, regrouped; "offset" is the
        way to a link from its parent, "turn" its attitude and "start" cosine and sine of the angle
        added to its joint's; "place" and "attitude" are those of a placement, "axles" and "reach"
        belong to wheels that follow guides, and "grip" to wheels that may slip.
        """
        return () if self._uncertain is None else self._uncertain.names

    def numbers(self, worlds: Worlds) -> np.ndarray:
        """Values of the inputs in some worlds, from physical deviations.

        Parameters
        ----------
        worlds : mapping of str to array_like
            Deviations from the nominal values, by name: "inertia.mass" in kg; "inertia.com" (3,)
            in m, in the body frame; "inertia.moments" (6,) in kg m^2, entries xx, yy, zz, xy, xz
            and yz of the tensor about the centre of mass, along the body axes;
            "placement.translation" (3,) in m, along the axes of the parent; "placement.rotation"
            (3,) in rad, a rotation vector along these axes by which the placement turns about its
            origin; "radius" in m; "grip", without unit; "center" (3,) and "support.center" (3,) in
            m, in the frames of the wheel and of the body of its support; "support.radius" in m; of
            a drive "ratio", one for each of its joints. With a leading axis there is one for each
            world, without it one for all. Omitted numbers are nominal.

        Returns
        -------
        numpy.ndarray
            Shape (worlds, n_numbers), in SI units: the argument p of `world_acceleration` and of a
            step.

        Raises
        ------
        InertiaError
            If no rigid body has an inertia, or a motion moves no mass; the number of the world is
            the attribute `world`.
        SimulationError
            If no quantity is uncertain, a radius is not above zero or does not fit into a hollow
            sphere, a grip is below zero, a ratio is zero, an axle does not meet its steering axis,
            or the axis of a joint leans by about a right angle.
        UnknownNameError
            If a quantity is not uncertain.
        ShapeError, NonFiniteError
            If an array does not fit or contains other things than finite numbers.

        Notes
        -----
        A wheel on the plane of a planar base touches it in every world: heights are not compared.
        The constraint rows are those of the nominal robot. If axles that are in one line nominally
        are not so in a world, the wheel whose row "no side slip" was left out slips sideways.
        """
        return self._known().values(worlds)

    def rebuilt(self, world: Worlds) -> Mechanism:
        """The robot of one world, for reports and other simulators.

        Parameters
        ----------
        world : mapping
            Deviations, as for `numbers`, of one world.

        Returns
        -------
        Mechanism
            The robot with the numbers of this world, and the constraint rows of the nominal one.

        Raises
        ------
        ConcurError
            As for `numbers`, or if there are several worlds.
        """
        return self._known().rebuilt(world)

    def of_world(self, world: Worlds) -> Plant:
        """The plant of one world, its numbers constant.

        Parameters
        ----------
        world : mapping
            Deviations, as for `numbers`, of one world.

        Returns
        -------
        Plant
            The plant, without uncertain quantities.

        Raises
        ------
        ConcurError
            As for `numbers`, or if there are several worlds.
        """
        slip, known = self.slip, self._known()
        if slip is not None:
            slip = replace(slip, grip=known.grips_of(world))
        return Plant(known.rebuilt(world), self.stabilisation, self.friction, slip=slip)

    def symbolic(self, p: ca.SX) -> System:
        """The robot with inputs in place of its uncertain numbers.

        Parameters
        ----------
        p : casadi.SX
            The inputs, shape (n_numbers,).

        Returns
        -------
        System
            The robot itself if no quantity is uncertain.
        """
        return self.robot if self._uncertain is None else self._uncertain.robot_with(p)

    def step_function(self, method: str = "rk4") -> ca.Function:
        """One step under constant controls.

        Parameters
        ----------
        method : str
            "rk4" or "rkmk4".

        Returns
        -------
        casadi.Function
            From (q, v, u, h), the length h in s, to (q, v) after the step.

        Raises
        ------
        UnknownNameError
            If there is no such method with fixed steps.
        SimulationError
            If quantities are uncertain, or wheels may slip.
        """
        if method not in FIXED_STEP:
            where = f"plant of `{self.name}`, `method`"
            raise unknown_name(where, "method with fixed steps", method, FIXED_STEP)
        self._check_certain()
        self._check_rolling()
        real = Imperfections(friction=self.friction, motors=False)
        bare = replace(self, friction=None)
        return plant_step(bare, Drives(real, self.robot), method)

    def _needs(self, given: object, name: str, expected: str, came: str, cure: str) -> None:
        """Reject the use of a part of the plant that it lacks."""
        if not given:
            where = f"plant of `{self.name}`, `{name}`"
            raise SimulationError(where, expected=expected, came=came, cure=cure)

    def _check_certain(self) -> None:
        self._needs(
            not self.n_numbers,
            "acceleration",
            "values of the uncertain numbers",
            "no value",
            "Call world_acceleration(q, v, u, p) with a row p of `numbers`.",
        )

    def _check_rolling(self) -> None:
        self._needs(
            self.slip is None,
            "acceleration",
            "wheels that roll",
            "wheels that may slip, whose friction depends on loads",
            "Call slip_acceleration(q, v, loads, u, p).",
        )

    def _known(self) -> FreeNumbers:
        cure = 'Write Plant(robot, uncertain=["hand.inertia.mass"]).'
        self._needs(self._uncertain, "uncertain", "uncertain quantities", "no value", cure)
        return cast(FreeNumbers, self._uncertain)

    @evaluated("(nq),(nv),(nu),(n_numbers)->(nv),(nf)")
    def world_acceleration(
        self, q: Vector, v: Vector, u: Vector, p: Vector
    ) -> tuple[Vector, Vector]:
        """Acceleration and constraint forces of a robot with given numbers.

        Parameters
        ----------
        q, v : array_like
            Configuration and velocity, shapes (nq,) and (nv,).
        u : array_like
            Control forces and torques, shape (nu,), N and N m.
        p : array_like
            Numbers of the robot, a row of `numbers`, shape (n_numbers,), SI units.

        Returns
        -------
        vdot : numpy.ndarray or casadi.SX
            Shape (nv,).
        multipliers : numpy.ndarray or casadi.SX
            Forces along the constraint rows, shape (nf,), as they act on the robot.
        """
        return self._acceleration(self.symbolic(p), q, v, u)

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

        Raises
        ------
        SimulationError
            If quantities are uncertain: use `world_acceleration`. If wheels may slip: use
            `slip_acceleration`.

        References
        ----------
        Thesis, (4.2.9), (4.2.15), (5.1.4), (5.1.6).
        """
        self._check_certain()
        return self._acceleration(self.robot, q, v, u)

    def _forces(
        self,
        robot: System,
        q: Vector,
        v: Vector,
        u: Vector,
        disturbance: Vector | None = None,
    ) -> Vector:
        """Forces along all velocities, shape (nv,): of controls, and others (nv,) in addition."""
        if self.friction is not None:
            u = self.friction.left(u, control_velocities(robot, q, v))
        force = ca.SX(self.nv, 1) if disturbance is None else ca.SX(disturbance)
        alone = len(robot.actuated_freedoms)
        for k, row in enumerate(robot.actuated_freedoms):
            force[row] += u[k]
        if self.nu > alone:
            force += control_velocities(robot, q, ca.SX.eye(self.nv))[alone:, :].T @ u[alone:]
        return force

    def _acceleration(
        self,
        robot: System,
        q: Vector,
        v: Vector,
        u: Vector,
        disturbance: Vector | None = None,
    ) -> tuple[Vector, Vector]:
        """Acceleration and constraint forces, with a generalised force (nv,) in addition."""
        self._check_rolling()
        force = self._forces(robot, q, v, u, disturbance)
        if isinstance(robot, Tree) and not self.nf and self.nv > MANY:
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
            If there is no such version.
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
        return write_fmu(plant_fmu(self.robot, self.step_function(), model, step), directory, fmi)
