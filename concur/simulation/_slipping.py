"""Additions of a plant for wheels that may slip: accelerations, loads, slip speeds and tipping."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import casadi as ca

from concur.codegen import EvaluatedMethods, Vector, evaluated
from concur.reduction import ground_loads, load_arms, tipping_edges, tipping_rows, wheel_names
from concur.robot import Mechanism
from concur.simulation._slip import Slip, load_names, slip_speeds, slipping


class SlippingWheels(EvaluatedMethods):
    """Methods of a `Plant` with `slip`."""

    if TYPE_CHECKING:
        slip: Slip | None
        stabilisation: float
        _uncertain: Any

        @property
        def tree(self) -> Mechanism: ...
        def _needs(self, given: object, name: str, expected: str, came: str, cure: str) -> None: ...
        def _forces(self, *parts: Any) -> Any: ...

    @property
    def wheel_names(self) -> tuple[str, ...]:
        """Name of each wheel that may slip, none without `slip`."""
        return () if self.slip is None else wheel_names(self.tree)

    @property
    def load_names(self) -> tuple[str, ...]:
        """Name of each load that is a state: wheels, then supports; none if loads are constant."""
        slip = self.slip
        return () if slip is None or slip.loads is not None else load_names(self.tree, slip)

    @property
    def nl(self) -> int:
        """Number of loads that are states."""
        return len(self.load_names)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """Edges of the polygon of wheels and supports with loads, as indices of `load_names`.

        None unless loads are states, at places that are fixed to the base.
        """
        slip = self.slip
        if slip is None or slip.loads is not None:
            return ()
        return tuple(tipping_edges(self.tree, slip.supports))

    @property
    def edge_names(self) -> tuple[str, ...]:
        """Name of each edge: "caster to left_wheel"."""
        names = self.load_names
        return tuple(f"{names[i]} to {names[j]}" for i, j in self.edges)

    @evaluated("(nq),(nv),(nl),(nu),(n_numbers)->(nv),(*),(nl)")
    def slip_acceleration(
        self, q: Vector, v: Vector, loads: Vector, u: Vector, p: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Acceleration of a robot whose wheels may slip.

        Parameters
        ----------
        q, v : array_like
            Configuration and velocity, shapes (nq,) and (nv,).
        loads : array_like
            Loads that limit friction, shape (nl,), N, in the order of `load_names`.
        u : array_like
            Control forces and torques, shape (nu,), N and N m.
        p : array_like
            Numbers of the robot, a row of `numbers`, shape (n_numbers,), SI units; empty if no
            quantity is uncertain.

        Returns
        -------
        vdot : numpy.ndarray or casadi.SX
            Shape (nv,).
        forces : numpy.ndarray or casadi.SX
            Forces of the ground on the wheels, N: along each wheel and, for a disk, across it; for
            a mecanum wheel along its roller; for a slider across it; for a ball along both axes.
        rate : numpy.ndarray or casadi.SX
            Rate of the loads, shape (nl,), N/s: they follow the motion within `Slip.time`.

        Raises
        ------
        SimulationError
            If no wheel may slip.
        """
        return self._slipping(q, v, loads, u, p)

    def _slipping(
        self,
        q: Vector,
        v: Vector,
        loads: Vector,
        u: Vector,
        p: Vector,
        disturbance: Vector | None = None,
        pushed: Vector | None = None,
    ) -> tuple[Vector, Vector, Vector]:
        """Rates of wheels that slip, with a generalised force (nv,) and its wrench on the base."""
        robot, slip = self._wheeled(p, "slip_acceleration")
        grips = slip.grip if self._uncertain is None else self._uncertain.grips(p)
        pressed = slip.loads or [ca.fmax(loads[k], 0.0) for k in range(len(grips))]
        limits = [grip * load for grip, load in zip(grips, pressed, strict=True)]
        force = self._forces(robot, q, v, u, disturbance) - robot.bias(q, v)
        vdot, forces = slipping(robot, slip, limits, self.stabilisation, q, v, force)
        if not self.nl:
            return vdot, forces, ca.SX(0, 1)
        carried = self._loads(robot, slip, q, v, vdot, pushed)
        return vdot, forces, (carried - loads) / slip.time

    def _loads(
        self,
        robot: Mechanism,
        slip: Slip,
        *motion: Vector | None,
    ) -> ca.SX:
        """Loads in a motion q, v and vdot, perhaps with a wrench on the base."""
        height = self.tree.ground_height or 0.0
        return ground_loads(robot, slip.supports, slip.compliance, height, *motion)

    @evaluated("(nq),(nv),(nv),(n_numbers)->(nl)")
    def loads(self, q: Vector, v: Vector, vdot: Vector, p: Vector) -> Vector:
        """Loads of wheels and supports in a motion, below zero where one would lift off.

        Parameters
        ----------
        q, v, vdot : array_like
            Configuration, velocity and acceleration, shapes (nq,), (nv,) and (nv,).
        p : array_like
            Numbers of the robot, a row of `numbers`, shape (n_numbers,), SI units; empty if no
            quantity is uncertain.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nl,), N, in the order of `load_names`; empty if `Slip.loads` are constant.

        Raises
        ------
        SimulationError
            If no wheel may slip.
        """
        robot, slip = self._wheeled(p, "loads")
        return self._loads(robot, slip, q, v, vdot) if self.nl else ca.SX(0, 1)

    @evaluated("(nq),(nv),(n_numbers)->(*)")
    def slip_speeds(self, q: Vector, v: Vector, p: Vector) -> Vector:
        """Slip speed of each wheel.

        Parameters
        ----------
        q, v : array_like
            Configuration and velocity, shapes (nq,) and (nv,).
        p : array_like
            Numbers of the robot, a row of `numbers`, shape (n_numbers,), SI units; empty if no
            quantity is uncertain.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (wheels,), m/s, in the order of `wheel_names`: speed of the contact point against
            the ground, in the directions in which the wheel grips.

        Raises
        ------
        SimulationError
            If no wheel may slip.
        """
        return slip_speeds(self._wheeled(p, "slip_speeds")[0], q, v)

    @evaluated("(nq),(nl),(n_numbers)->(*)")
    def tipping(self, q: Vector, loads: Vector, p: Vector) -> Vector:
        """Moment of the loads about each edge of the polygon of wheels and supports.

        Parameters
        ----------
        q, loads : array_like
            Configuration and loads, shapes (nq,) and (nl,), N.
        p : array_like
            Numbers of the robot, a row of `numbers`, shape (n_numbers,), SI units; empty if no
            quantity is uncertain.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (edges,), N m, in the order of `edge_names`: above zero while it holds the base
            down there; below zero where the base would tip over the edge.

        Raises
        ------
        SimulationError
            If no wheel may slip.
        """
        robot, slip = self._wheeled(p, "tipping")
        arms = load_arms(robot, q, slip.supports)
        return tipping_rows(arms, self.edges) @ (arms @ loads) if self.edges else ca.SX(0, 1)

    def _wheeled(self, p: ca.SX, method: str) -> tuple[Mechanism, Slip]:
        """The robot with its uncertain numbers, and the slip of its wheels."""
        cure = "Write Plant(robot, slip=Slip.of(robot, 0.8))."
        self._needs(self.slip, method, "wheels that may slip", "no value of `slip`", cure)
        return self.tree if self._uncertain is None else self._uncertain.robot_with(p), cast(
            Slip, self.slip
        )
