"""Equations whose function is compared with numbers that do not come from the package."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

import concur as cc
from concur.errors import ReductionError
from concur.formulations import Factor
from concur.groups import se3
from concur.reduction import conservation
from tests.oracles import Pinocchio, difference_quotient

BALL = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))


def hat(twist: np.ndarray) -> np.ndarray:
    """Matrix (4, 4) of a twist, [linear; angular]."""
    x, y, z = twist[3:]
    turn = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0.0]])
    return np.block([[turn, twist[:3, None]], [np.zeros((1, 4))]])


def test_forces_of_a_pendulum_in_polar_angles() -> None:
    """000: (2.3), (2.4). 003: (13), (14).

    Lagrange's equations of a spherical pendulum, and the same in velocities that are no rates.
    """
    m, l, g = 0.7, 1.3, 9.81
    theta, phi = Factor("theta", "SO2"), Factor("phi", "SO2")
    kinetic = m * l**2 * (theta.v**2 + (ca.sin(theta.q) * phi.v) ** 2) / 2
    potential = -m * g * l * ca.cos(theta.q)
    plain = cc.LagrangianSystem(kinetic, potential, [theta, phi])
    # Physical velocities along the meridian and the parallel: not integrable.
    frame = ca.vertcat(l * theta.v, l * ca.sin(theta.q) * phi.v)
    quasi = cc.LagrangianSystem(kinetic, potential, [theta, phi], frame)
    a, b, da, db, dda, ddb = 0.8, 0.4, 0.6, -1.1, 0.3, 0.9
    force = np.array([
        m * l**2 * (dda - np.sin(a) * np.cos(a) * db**2) + m * g * l * np.sin(a),
        m * l**2 * (np.sin(a) ** 2 * ddb + 2 * np.sin(a) * np.cos(a) * da * db),
    ])  # fmt: skip
    found = plain.inverse_dynamics([a, b], [da, db], [dda, ddb])
    assert found == pytest.approx(force, rel=1e-12)
    u = [l * da, l * np.sin(a) * db]
    rate = [l * dda, l * (np.cos(a) * da * db + np.sin(a) * ddb)]
    along = force / [l, l * np.sin(a)]
    assert quasi.inverse_dynamics([a, b], u, rate) == pytest.approx(along, rel=1e-12)


def test_forces_of_two_links_on_two_spheres() -> None:
    """002: (19).

    Newton's law of the masses, in inertial axes; a torque turns a link by its moment.
    """
    masses, lengths = np.array([1.0, 0.7]), np.array([0.8, 0.6])
    links = [Factor(name, "S2") for name in ("one", "two")]
    speeds = [lengths[0] * links[0].qdot]
    speeds.append(speeds[0] + lengths[1] * links[1].qdot)
    kinetic = sum(m * ca.sumsqr(speed) / 2 for m, speed in zip(masses, speeds, strict=True))
    system = cc.LagrangianSystem(kinetic, 0, links)
    rng = np.random.default_rng(3)
    bars = rng.normal(size=(2, 3))
    bars /= np.linalg.norm(bars, axis=1, keepdims=True)
    turns, rates = (
        part - np.sum(part * bars, axis=1, keepdims=True) * bars
        for part in rng.normal(size=(2, 2, 3))
    )
    # qddot = w' x q + w x (w x q), with w' normal to q as w stays normal to q.
    bends = np.cross(rates, bars) + np.cross(turns, np.cross(turns, bars))
    acceleration = np.cumsum(lengths[:, None] * bends, axis=0)
    pulls = masses[:, None] * acceleration
    loads = np.array([pulls[0] + pulls[1], pulls[1]])
    moments = lengths[:, None] * np.cross(bars, loads)
    found = system.inverse_dynamics(bars.ravel(), turns.ravel(), rates.ravel())
    assert found == pytest.approx(moments.ravel(), abs=1e-12)


def test_poses_are_products_of_matrix_exponentials() -> None:
    """Thesis: (2.1.2). By SciPy, of an arm whose joints do not go through the origin."""
    x, y, z = np.eye(3)
    bodies = [
        cc.Body("a", cc.joints.Revolute(z), None, cc.Pose((0.2, 0.0, 0.1)), BALL),
        cc.Body("b", cc.joints.Prismatic(y), "a", cc.Pose((0.5, 0.0, 0.0)), BALL),
        cc.Body("c", cc.joints.Helical(x, 0.3), "b", cc.Pose((0.0, 0.4, 0.0)), BALL),
    ]
    arm = cc.Mechanism("arm", bodies)
    s = np.array([0.7, 0.2, -1.1])
    places = np.cumsum([(0.2, 0.0, 0.1), (0.5, 0.0, 0.0), (0.0, 0.4, 0.0)], axis=0)
    screws = [[*np.cross(places[0], z), *z], [*y, 0, 0, 0]]
    screws.append([*(np.cross(places[2], x) + 0.3 * x), *x])
    pose = np.eye(4)
    for k, (name, screw, number) in enumerate(zip("abc", screws, s, strict=True)):
        pose = pose @ expm(hat(np.array(screw, dtype=float)) * number)
        home = np.eye(4)
        home[:3, 3] = places[k]
        np.testing.assert_allclose(arm.forward(s, name), pose @ home, atol=1e-13)


def test_ad_and_adjoint_are_those_of_matrices() -> None:
    """004: (132), (140). By commutators and conjugations of matrices (4, 4)."""
    rng = np.random.default_rng(2)
    u, w = rng.normal(size=(2, 6))
    pose = expm(hat(rng.normal(size=6)))
    commutator = hat(u) @ hat(w) - hat(w) @ hat(u)
    np.testing.assert_allclose(hat(np.array(se3.ad(u)) @ w), commutator, atol=1e-13)
    turned = pose @ hat(w) @ np.linalg.inv(pose)
    np.testing.assert_allclose(hat(np.array(se3.adjoint(pose)) @ w), turned, atol=1e-13)


def test_hamiltonian_is_the_energy_of_the_velocity() -> None:
    """Thesis: (3.1.7), (4.4.28). Kinetic and potential energy are Pinocchio's."""
    arm = cc.Inertia(1.2, (0.2, 0.1, 0.0), moments=(0.02, 0.03, 0.04))
    x, y, z = np.eye(3)
    robot = cc.Mechanism(
        "arm",
        [
            cc.Body("base", cc.joints.Fixed()),
            cc.Body("a", cc.joints.Revolute(z), "base", inertia=arm),
            cc.Body("b", cc.joints.Revolute(y), "a", cc.Pose((0.5, 0, 0)), arm),
            cc.Body("c", cc.joints.Prismatic(x), "b", cc.Pose((0.3, 0, 0)), arm),
        ],
        gravity=(0.0, 1.0, -9.81),
    )
    model, oracle, rng = cc.reduce(robot), Pinocchio(robot), np.random.default_rng(4)
    for _ in range(3):
        q, v = robot.random(rng), rng.normal(size=3)
        kinetic = v @ oracle.mass_matrix(q) @ v / 2
        assert robot.kinetic_energy(q, v) == pytest.approx(kinetic, rel=1e-12)
        momentum = oracle.mass_matrix(q) @ v
        slope = difference_quotient(
            lambda h, q=q, p=momentum: np.array(
                [model.hamiltonian(q + h * e, p) for e in np.eye(3)]
            )
        )
        # -dH/dq at constant momentum is pdot without forces.
        _, rate = model.vector_field(q, momentum, np.zeros(3))
        np.testing.assert_allclose(-slope, rate, atol=1e-6)
        assert model.hamiltonian(q, momentum) - robot.potential_energy(q) == pytest.approx(
            kinetic, rel=1e-12
        )


def test_rates_of_the_reduced_momentum_are_those_of_a_rolling_disk() -> None:
    """Thesis: (5.3.24)-(5.3.26). A disk with a motor on a line: (I + m r^2) w' = u."""
    roll, way = Factor("roll", "SO2"), Factor("way", "R")
    mass, inertia, radius = 2.0, 0.3, 0.4
    disk = cc.LagrangianSystem(
        inertia * roll.v**2 / 2 + mass * way.v**2 / 2,
        0.0,
        [roll, way],
        constraints={"rolling": way.v - radius * roll.v},
        inputs=["roll"],
    )
    model = cc.reduce(disk)
    total = inertia + mass * radius**2
    (shape,) = model.shape
    scale = 1.0 if disk.freedom_names[shape] == "roll" else radius
    p, u = 0.7, 1.3
    v, rate = model.vector_field([0.1, 0.2], [p], [u])
    speed = p * scale / total  # of the disk, for the momentum along the shape velocity
    assert v == pytest.approx([speed, radius * speed], rel=1e-12)
    assert rate == pytest.approx([u / scale], rel=1e-12)


@pytest.mark.parametrize("tilted", [False, True])
def test_the_first_joint_is_a_symmetry_where_gravity_is_not(tilted: bool) -> None:
    """Theorem 3.3.3; Proposition 4.2.12, Corollary 4.2.13.

    A planar base under gravity across its plane, or along it. The momentum of a wheel on it without
    a motor is constant only if its mass is balanced.
    """
    disk = cc.Inertia(1.0, moments=(0.1, 0.1, 0.2))
    for offset in (0.0, 0.3):
        wheel = cc.Inertia(1.0, (offset, 0.0, 0.0), (0.1, 0.1, 0.2))
        z = (0.0, 0.0, 1.0)
        robot = cc.Mechanism(
            "hull",
            [
                cc.Body("hull", cc.joints.Planar(), inertia=disk),
                cc.Body("wheel", cc.joints.Revolute(z), "hull", inertia=wheel),
                cc.Body("arm", cc.joints.Revolute(z), "hull", cc.Pose((0.4, 0, 0)), wheel),
            ],
            gravity=(3.0, 0.0, 0.0) if tilted else (0.0, 0.0, -3.0),
            actuated=["arm"],
        )
        if tilted:
            with pytest.raises(ReductionError, match="gravity along"):
                cc.reduce(robot, momentum=np.zeros(6))
            continue
        model = cc.reduce(robot, momentum=np.zeros(6))
        assert model.audit()["CON1"].status.value == "holds"
        rng, oracle = np.random.default_rng(1), Pinocchio(robot)
        q, other = robot.random(rng), robot.random(rng)
        other[3:] = q[3:]  # elsewhere, with the same shape
        np.testing.assert_allclose(oracle.mass_matrix(q), oracle.mass_matrix(other), atol=1e-12)
        assert conservation(model, "wheel").conserved is (offset == 0.0)


def test_a_start_that_is_consistent() -> None:
    """CON7. The velocity of the base at the start is that of the momentum: from M, by hand."""
    robot = cc.robots.planar_floater()
    model = cc.reduce(robot, momentum=[0.2, -0.1, 0.0, 0.0, 0.0, 0.3])
    q = cc.Output("hand", "forearm", "R2", point=(0.3, 0.0, 0.0))
    servo = cc.Servo(model, [q], 4.0, 4.0)
    at, s = np.array([0.1, 0.2, 0.4, 0.5, 0.7]), np.array([0.3, -0.2])
    v = model.velocity(at, s)
    mass = np.asarray(robot.mass_matrix(at))
    c, d = np.cos(0.4), np.sin(0.4)
    turn = 0.3 - (0.1 * -0.1 - 0.2 * 0.2)  # about the base
    own = np.array([c * 0.2 + d * -0.1, -d * 0.2 + c * -0.1, turn])
    expected = np.linalg.solve(mass[:3, :3], own - mass[:3, 3:] @ s)
    np.testing.assert_allclose(v[:3], expected, atol=1e-12)
    goal = cc.references.hold(servo.output(at))
    assert servo.audit(goal, 0.1, at)["CON7"].status.value == "holds"
