"""Robots that float: motions at full order by Pinocchio, and random robots, states and torques."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from concur.robot import Body, Mechanism, joints
from tests.oracles._pinocchio import Pinocchio
from tests.oracles._random import _direction, _inertia, _joint, _placement

Law = Callable[[float, np.ndarray, np.ndarray], np.ndarray]

BASES = ("Free", "Planar", "Spherical", "Cartesian", "Revolute", "Prismatic", "Helical")


def full_order(
    robot: Mechanism,
    q0: Sequence[float],
    v0: Sequence[float],
    law: Law,
    times: Sequence[float],
    rtol: float = 1e-12,
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate all coordinates and velocities of a robot that only its drives push.

    Parameters
    ----------
    robot : Mechanism
        Its description is read.
    q0, v0 : sequence of float
        State at time 0.
    law : callable
        Controls (nu,) from (t, q, v).
    times : sequence of float
        When states are wanted, s, from 0.
    rtol : float
        Relative tolerance; the absolute one is a tenth of it.

    Returns
    -------
    q, v : numpy.ndarray
        States, shapes (k, nq) and (k, nv); quaternions with the norm the integrator left them.
    """
    oracle = Pinocchio(robot)
    nq, rows = robot.nq, list(robot.actuated_freedoms)

    def slope(t: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:nq], x[nq:]
        tau = np.zeros(robot.nv)
        tau[rows] = law(t, q, v)
        return np.concatenate([oracle.rate(q, v), oracle.forward_dynamics(q, v, tau)])

    found = solve_ivp(
        slope,
        (0.0, times[-1]),
        np.concatenate([q0, v0]),
        method="DOP853",
        t_eval=times,
        rtol=rtol,
        atol=0.1 * rtol,
    )
    assert found.success, found.message
    return found.y[:nq].T, found.y[nq:].T


def random_floater(base: str, seed: int) -> Mechanism:
    """Build a robot on an unactuated base joint of a kind, with five actuated joints.

    Ball, plane, slide and two hinges in any order, branched; everything else is random too.
    """
    rng = np.random.default_rng(20_000 + seed)
    kinds = [base, *rng.permutation(["Spherical", "Planar", "Prismatic", "Revolute", "Revolute"])]
    bodies: list[Body] = []
    for i, kind in enumerate(kinds):
        parent = None if i == 0 else bodies[-1 if rng.random() < 0.5 else rng.integers(i)].name
        mass = 8.0 if i == 0 else 1.0
        if kind == "Helical":
            joint = joints.Helical(_direction(rng), 0.15)
        else:
            joint = _joint(str(kind), rng)
        bodies.append(Body(f"body{i}", joint, parent, _placement(rng), _inertia(rng, mass)))
    return Mechanism(f"{base.lower()}_floater{seed}", bodies)


@dataclass(frozen=True)
class Excitation:
    """Where a floating robot starts and what drives it: gentle, so that the motion is regular.

    Parameters
    ----------
    q0, s0 : numpy.ndarray
        Configuration and shape velocities at the start.
    momentum : numpy.ndarray
        Spatial momentum, shape (6,).
    amplitude, frequency, phase : numpy.ndarray
        Of the two sines of each control, shape (2, nu).
    """

    q0: np.ndarray
    s0: np.ndarray
    momentum: np.ndarray
    amplitude: np.ndarray
    frequency: np.ndarray
    phase: np.ndarray

    def __call__(self, t: float) -> np.ndarray:
        """Torques, shape (nu,), N and N m."""
        return np.asarray((self.amplitude * np.sin(self.frequency * t + self.phase)).sum(axis=0))


def excitation(
    robot: Mechanism, seed: int, speed: float = 0.02, strength: float = 1.0
) -> Excitation:
    """Draw a momentum, a start and torques for a robot that floats freely.

    Parameters
    ----------
    robot : Mechanism
        A robot with an unactuated base.
    seed : int
        Of the random numbers.
    speed : float
        Size of the velocities of base and joints, m/s and rad/s.
    strength : float
        Size of the torques; at one they make velocities of the size of the others.
    """
    rng = np.random.default_rng(seed)
    oracle = Pinocchio(robot)
    q0, nb = robot.random(rng), robot.base.joint.nv
    v0 = speed * rng.uniform(-1.0, 1.0, robot.nv)
    # The momentum of a random motion has the right size for the robot whatever its masses are.
    momentum = oracle.momentum(q0, v0)
    # Inertia at one joint while the others are free: a light hand stays slow.
    mobility = np.diag(np.linalg.inv(oracle.mass_matrix(q0)))[list(robot.actuated_freedoms)]
    shape = 2, len(mobility)
    frequency = rng.uniform(0.2, 1.0, shape)
    amplitude = 0.5 * strength * speed / mobility * frequency * rng.uniform(-1.0, 1.0, shape)
    phase = rng.uniform(0.0, 2 * np.pi, shape)
    return Excitation(q0, v0[nb:], momentum, amplitude, frequency, phase)
