"""Staged reductions from the oracles alone: lifts from linear equations on v."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur.reduction import ReducedModel
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from tests.oracles import Pinocchio, assert_close, difference_quotient, rover

Equations = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Accelerations = Callable[[np.ndarray, np.ndarray], np.ndarray]
Dynamics = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
GENERIC = ((0.5, 0.05, -0.04), (0.05, 0.35, 0.03), (-0.04, 0.03, 0.6))


class Lifted:
    """The motions that linear equations on the velocity leave, and their momentum.

    Parameters
    ----------
    oracle : Pinocchio
        The robot.
    equations : callable
        q (nq,) to A (k, nv) and a (k,) in A v = a.
    shape : sequence of int
        Indices in v of the velocities that stay.
    """

    def __init__(self, oracle: Pinocchio, equations: Equations, shape: Sequence[int]) -> None:
        self.oracle, self.equations, self.shape = oracle, equations, list(shape)

    def lift(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, values = self.equations(q)
        nv = rows.shape[1]
        rest = [i for i in range(nv) if i not in self.shape]
        lift, drift = np.zeros((nv, len(self.shape))), np.zeros(nv)
        lift[self.shape] = np.eye(len(self.shape))
        lift[rest] = -np.linalg.solve(rows[:, rest], rows[:, self.shape])
        drift[rest] = np.linalg.solve(rows[:, rest], values)
        return lift, drift

    def velocity(self, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        lift, drift = self.lift(q)
        return lift @ s + drift

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        lift, _ = self.lift(q)
        return lift.T @ self.oracle.mass_matrix(q) @ lift

    def energy(self, q: np.ndarray, s: np.ndarray) -> float:
        oracle = self.oracle
        return oracle.kinetic_energy(q, self.velocity(q, s)) + oracle.potential_energy(q)

    def momentum_rate(self, q: np.ndarray, s: np.ndarray, vdot: np.ndarray) -> np.ndarray:
        """d/dt (Mhat s) at an acceleration of full order."""
        qdot = self.oracle.rate(q, self.velocity(q, s))
        turning = difference_quotient(lambda h: self.mass_matrix(q + h * qdot))
        return turning @ s + self.mass_matrix(q) @ vdot[self.shape]


def check_against(
    model: ReducedModel,
    lifted: Lifted,
    vdot_of: Dynamics,
    seed: int,
    states: int = 12,
    size: float = 1.0,
    least: float = 0.0,
) -> None:
    """Hold lift, mass, energy, accelerations and momentum rates against Pinocchio's.

    At random states whose regularity is at least as large as told.
    """
    rng = np.random.default_rng(seed)
    drives = list(model.robot.actuated_freedoms)
    assert list(model.shape) == lifted.shape
    while states:
        q, s = model.robot.random(rng), rng.uniform(-2, 2, model.ns)
        if model.regularity(q) < least:
            continue
        states -= 1
        u = size * rng.uniform(-1, 1, model.nu)
        tau = np.zeros(model.nv)
        tau[drives] = u
        for ours, theirs in zip(model.lift(q), lifted.lift(q), strict=True):
            assert_close(ours, theirs, 1e-10)
        v = model.velocity(q, s)
        p = model.mass_matrix(q) @ s
        assert_close(model.mass_matrix(q), lifted.mass_matrix(q), 1e-10)
        assert model.hamiltonian(q, p) == pytest.approx(lifted.energy(q, s), rel=1e-10)
        vdot = vdot_of(q, v, tau)
        sdot = model.acceleration(q, s, u)
        assert_close(sdot, vdot[lifted.shape], 1e-9)
        assert_close(model.lift(q)[0] @ sdot + model.drift_acceleration(q, s), vdot, 1e-9)
        velocity, pdot = model.vector_field(q, p, u)
        assert_close(velocity, v, 1e-10)
        assert_close(pdot, lifted.momentum_rate(q, s, vdot), 1e-8)


def twist_bracket(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Bracket of se(3), [linear; angular]."""
    linear = np.cross(first[3:], second[:3]) - np.cross(second[3:], first[:3])
    return np.concatenate([linear, np.cross(first[3:], second[3:])])


def carried(joint: joints.Joint, q: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Ad*_n theta of a turn about the joint's origin, of a plane's or of a single axis."""
    if isinstance(joint, joints.Spherical):
        return Rotation.from_quat(q).apply(theta, inverse=True)
    if isinstance(joint, joints.Planar):
        cos, sin = np.cos(q[2]), np.sin(q[2])
        turned = np.array([cos * theta[0] + sin * theta[1], -sin * theta[0] + cos * theta[1]])
        moment = theta[2] - (q[0] * theta[1] - q[1] * theta[0])
        return np.array([*turned, moment])
    return np.array(theta)


def satellite(actuated: tuple[str, ...] = ("turret", "elbow")) -> Mechanism:
    """Build a floating body with an arm of two joints and two balanced rotors across each other.

    The rotors sit on the base and on the arm.
    """
    bodies = [
        Body("hull", joints.Free(), None, Pose(), Inertia(20.0, (0.1, -0.05, 0.02), GENERIC)),
        Body(
            "turret",
            joints.Revolute((0.2, 0.1, 1.0)),
            "hull",
            Pose((0.4, 0.1, 0.2)),
            Inertia(3.0, (0.2, 0.1, 0.05), GENERIC),
        ),
        Body(
            "elbow",
            joints.Revolute(Y),
            "turret",
            Pose((0.5, 0.0, 0.1)),
            Inertia(2.0, (0.3, 0.0, 0.1), GENERIC),
        ),
        Body(
            "rotor",
            joints.Revolute(X),
            "hull",
            Pose((-0.2, 0.3, 0.1), (0.1, 0.2, -0.3, np.sqrt(0.86))),
            Inertia(1.5, (0.04, 0.0, 0.0), (0.06, 0.04, 0.04)),
        ),
        Body(
            "second",
            joints.Revolute(Z),
            "elbow",
            Pose((0.2, 0.1, 0.0)),
            Inertia(0.8, (0.0, 0.0, 0.05), (0.02, 0.02, 0.03)),
        ),
    ]
    return Mechanism("satellite", bodies, actuated=actuated)


def carrier(com: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Mechanism:
    """Build a ball joint that slides freely, its body generic, with two driven rotors inside.

    With the centre of mass in the joint the kinetic energy is invariant under all turns from the
    left, and under none from the right.
    """
    bodies = [
        Body("slide", joints.Cartesian(), None, Pose(), Inertia(2.0)),
        Body("carrier", joints.Spherical(), "slide", Pose(), Inertia(5.0, com, GENERIC)),
        Body(
            "first",
            joints.Revolute(X),
            "carrier",
            Pose(),
            Inertia(1.0, moments=(0.2, 0.15, 0.15)),
        ),
        Body(
            "second",
            joints.Revolute((0.0, 1.0, 1.0)),
            "carrier",
            Pose(),
            Inertia(1.0, moments=((0.1, 0, 0), (0, 0.15, 0.03), (0, 0.03, 0.15))),
        ),
    ]
    return Mechanism("carrier", bodies, actuated=("first", "second"))


def ball_rover() -> Mechanism:
    """Build a rover that carries a body of equal moments on a ball joint in its centre."""
    arm = Inertia(2.0, (0.3, 0.1, 0.0), (0.05, 0.06, 0.07))
    ball = Inertia(3.0, moments=(0.04, 0.04, 0.04))
    bodies = [
        *rover().bodies[:3],
        Body("arm", joints.Revolute(Z), "chassis", Pose((0.2, 0, 0)), arm),
        Body("ball", joints.Spherical(), "arm", Pose((0.1, 0.2, 0.3)), ball),
    ]
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1)]
    driven = ("left", "right", "arm")
    return Mechanism("ball_rover", bodies, wheels, gravity=(0, 0, -9.81), actuated=driven)
