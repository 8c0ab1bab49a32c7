"""Systems from energies: numbers of independent computations, rebuilt robots, frames, errors.

Numbers of chains are those of a Cartesian model with multipliers, numbers of rigid bodies and
balls those of Newton-Euler's equations with contact forces; none comes from this package.
"""

from __future__ import annotations

import pickle

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.errors import (
    ConcurError,
    DescriptionError,
    NonFiniteError,
    ShapeError,
    UnknownNameError,
)
from concur.formulations import Factor
from concur.groups import quaternion
from concur.robot import Motor
from tests.formulations.textbook import (
    DIRECTIONS,
    FORCE,
    LENGTHS,
    MASSES,
    TORQUE,
    TURNS,
    G,
    chain,
    rebuilt,
    rigid_body,
    rolling_ball,
    rolling_disk,
    sleigh,
)

FREE = {
    1: "0 7.3575 0",
    2: "2.10404819277108 9.1108734939759 1.57803614457831 "
    "-7.4606265060241 -6.21718875502008 -5.59546987951807",
    3: "2.86437995519626 9.74448329599688 2.14828496639719 "
    "-10.42617298139671 -2.28221226583552 -4.61649712671666 "
    "3.03108989967858 -6.73575533261907 -2.35751436641667",
}
FORCED = {
    1: "-1.325 5.67 -0.99375",
    2: "2.36248192771084 8.45123493975903 1.77186144578313 "
    "-11.62740791738382 -7.84426850258175 -7.79793689041882",
    3: "3.28227021991098 9.21772518325915 2.46170266493324 "
    "-10.64678152217773 -2.91793706786562 -5.00789570799205 "
    "-1.06814438810125 -7.61262838309462 -0.4175063538362",
}
ENERGIES = {
    1: (0.4, -6.2784, -1.6),
    2: (1.18844, -14.20488, -2.95),
    3: (2.5565757142857146, -23.79065142857143, -2.875),
}
FLOWS = {  # q and angular velocity of the last link after a second
    1: "-0.52257172577302 -0.19156422357257 -0.83079596753333 "
    "-0.52485391407608 -1.17038432689179 0.6",
    2: "-0.88746516977257 -0.01510182755899 -0.46062729754643 "
    "-0.66062453439969 -0.1136774986361 1.27651575512505",
    3: "0.24088805067746 0.35015720293669 -0.90518665493497 "
    "-0.45720799980820 4.38848250335274 1.57594326793362",
}
SPECTRUM = (0.13369784635898, 0.16238991341779, 0.252, 1.088, 1.17761008658221, 1.20630215364102)


def numbers(text):
    return np.array([float(word) for word in text.split()])


def acceleration(system, q, v, u=None):
    """Acceleration of a system without constraints."""
    force = -np.asarray(system.bias(q, v))
    if u is not None:
        force += system.actuation(q) @ u
    return np.linalg.solve(system.mass_matrix(q), force)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_chain_pendulum_has_the_reference_numbers(n):
    """002: (38)-(40)."""
    system, q, v = chain(n), np.concatenate(DIRECTIONS[:n]), np.concatenate(TURNS[:n])
    u = np.concatenate([TORQUE, FORCE])
    assert acceleration(system, q, v) == pytest.approx(numbers(FREE[n]), abs=2e-13)
    assert acceleration(system, q, v, u) == pytest.approx(numbers(FORCED[n]), abs=2e-13)
    kinetic, potential, power = ENERGIES[n]
    assert system.kinetic_energy(q, v) == pytest.approx(kinetic, abs=1e-14)
    assert system.potential_energy(q) == pytest.approx(potential, abs=1e-13)
    assert v @ system.actuation(q) @ u == pytest.approx(power, abs=1e-13)
    if n == 2:
        assert np.linalg.eigvalsh(system.mass_matrix(q)) == pytest.approx(SPECTRUM, abs=2e-14)
    motion = cc.simulation.forced_motion(cc.reduce(system), None, 1.0, q, v, dt=0.1)
    last = np.concatenate([motion.q[-1, -3:], motion.s[-1, -3:]])
    assert last == pytest.approx(numbers(FLOWS[n]), abs=1e-8 if n == 3 else 1e-10)
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-10
    on_group = cc.simulation.forced_motion(
        cc.reduce(system), None, 1.0, q, v, dt=cc.simulation.Integrator("rkmk4", 2e-3)
    )
    assert np.abs(on_group.q[-1, -3:] - motion.q[-1, -3:]).max() < 2e-7
    length = np.linalg.norm(on_group.q.reshape(-1, n, 3), axis=2)
    assert np.abs(length - 1.0).max() < 1e-14


def test_spin_of_a_link_has_no_effect_on_the_chain():
    system, n = chain(2), 2
    q, v = np.concatenate(DIRECTIONS[:n]), np.concatenate(TURNS[:n])
    spun = v + np.concatenate([3.0 * q[:3], -2.0 * q[3:]])
    motions = [
        cc.simulation.forced_motion(cc.reduce(system), None, 0.5, q, s, dt=0.1) for s in (v, spun)
    ]
    assert np.abs(motions[1].q - motions[0].q).max() < 1e-9
    own = [np.sum(m.q.reshape(-1, n, 3) * m.s.reshape(-1, n, 3), axis=2) for m in motions]
    assert own[0] == pytest.approx(0.0, abs=1e-9)
    assert own[1] == pytest.approx(np.array([[3.0, -2.0]] * len(own[1])), abs=1e-9)
    assert np.abs(motions[1].energy - motions[1].energy[0]).max() < 1e-9


def test_terms_that_vanish_without_spin_change_nothing():
    """Extensions of the kinetic energy off q . v = 0, for which (17) needs its factor 2.

    002: (18), (19).
    """
    plain, other = chain(2), chain(2, spin=ca.DM([0.3, -0.2, 0.4]))
    q, v = np.concatenate(DIRECTIONS[:2]), np.concatenate(TURNS[:2])
    assert acceleration(other, q, v) == pytest.approx(acceleration(plain, q, v), abs=1e-12)
    assert other.mass_matrix(q) == pytest.approx(plain.mass_matrix(q), abs=1e-12)


def test_small_motions_of_the_chain_have_the_reference_frequencies():
    for n, squares in ((2, (8.48848639238842, 40.15276360761154)), (1, (G / LENGTHS[0],))):
        system, q, step = chain(n), np.tile([0.0, 0.0, -1.0], n), 1e-5
        stiffness = np.zeros((n, n))
        for k in range(n):
            turn = np.zeros(3 * n)
            turn[3 * k] = step
            ends = [np.asarray(system.bias(system.integrate(q, x), 0 * x)) for x in (turn, -turn)]
            stiffness[:, k] = (ends[0] - ends[1])[::3] / (2.0 * step)
        mass = system.mass_matrix(q)[::3, ::3]
        found = np.linalg.eigvals(np.linalg.solve(mass, stiffness)).real
        assert np.sort(found) == pytest.approx(squares, rel=1e-8)


def test_rod_with_elastic_joints_bends_as_its_planar_equations_say():
    """In a plane: sum M_ij l_i l_j (cos(ij) a_j + sin(ij) w_j^2) + M_ii g l_i sin_i + bend = 0."""
    stiffness, t, w = 4.0, np.array([0.3, -0.5, 1.1]), np.array([0.7, -1.2, 0.4])
    system = chain(3, stiffness)
    outboard = [[sum(MASSES[max(i, j) :]) for j in range(3)] for i in range(3)]
    apart = t[:, None] - t[None, :]
    inertia = np.array(outboard) * np.outer(LENGTHS, LENGTHS)
    force = -(inertia * np.sin(apart)) @ w**2 - np.diag(outboard) * G * LENGTHS * np.sin(t)
    bent = stiffness * np.sin(np.diff(t))
    force += np.append(bent, 0.0) - np.append(0.0, bent)
    expected = np.linalg.solve(inertia * np.cos(apart), force)
    q = np.column_stack([np.sin(t), np.zeros(3), -np.cos(t)]).ravel()
    v = np.column_stack([np.zeros(3), -w, np.zeros(3)]).ravel()
    found = acceleration(system, q, v)
    assert -found[1::3] == pytest.approx(expected, abs=1e-12)
    assert np.delete(found, [1, 4, 7]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["rover_arm", "free_flyer"])
def test_rebuilt_robot_has_the_same_lift_torques_and_motion(name):
    robot = getattr(cc.robots, name)()
    system = rebuilt(robot, momentum=not robot.wheels)
    known, model = cc.reduce(robot), cc.reduce(system)
    assert (model.shape, model.control_names) == (known.shape, known.control_names)
    rng, plants = np.random.default_rng(3), (cc.Plant(system), cc.Plant(robot))
    for _ in range(3):
        q, s, u = robot.random(rng), rng.normal(size=known.ns), rng.normal(size=known.nu)
        v = known.velocity(q, s)
        assert model.lift(q)[0] == pytest.approx(known.lift(q)[0], abs=1e-12)
        assert model.bias(q, s) == pytest.approx(known.bias(q, s), abs=1e-11)
        assert system.bias(q, v) == pytest.approx(robot.bias(q, v), abs=1e-11)
        assert model.acceleration(q, s, u) == pytest.approx(known.acceleration(q, s, u), abs=1e-9)
        one, other = (plant.acceleration(q, v, u)[0] for plant in plants)
        assert one == pytest.approx(other, abs=1e-9)

    def torque(t):
        return 0.3 * np.cos(t + np.arange(known.nu))

    start = robot.neutral(), 0.2 * np.ones(known.ns)
    for method, step in (("dop853", 0.1), ("rkmk4", 0.02)):
        motions = [
            cc.simulation.forced_motion(
                m, torque, 1.0, *start, dt=cc.simulation.Integrator(method, step)
            )
            for m in (model, known)
        ]
        assert np.abs(motions[0].q - motions[1].q).max() < 1e-10
        assert np.abs(motions[0].s - motions[1].s).max() < 1e-10


TENSOR = np.array([[1.1, 0.05, -0.04], [0.05, 1.3, 0.06], [-0.04, 0.06, 1.7]])
CENTER = np.array([0.1, -0.2, 0.15])
TURNED = quaternion.multiply(
    quaternion.multiply(quaternion.exp([0, 0, 0.3]), quaternion.exp([0, -0.7, 0])),
    quaternion.exp([1.1, 0, 0]),
)
TWISTS = {  # twist, wrench and acceleration, each [angular; linear]
    "body": (
        "0.5 -1.2 0.8 0.3 0.7 -0.4",
        "0.2 -0.1 0.4 1.5 -0.6 0.9",
        "0.573853863092705 -0.007237503460072 0.221934355724301 "
        "0.716872667417629 -0.610984921325916 -0.183148629901379",
    ),
    "spatial": (
        "1.171748761774607 -0.953596777569817 -0.218307180569343 "
        "1.565337947616512 2.70677557806549 1.204771791493963",
        "0.552793396865075 1.831162178330786 1.276390886131141 "
        "1.491329678747374 -0.663144608479128 0.869583243589892",
        "0.42073921480537 -0.08032300234936 0.44174905128598 "
        "0.68269220476442 0.71124021347553 0.32835101416913",
    ),
    "hybrid": (
        "1.171748761774607 -0.953596777569817 -0.218307180569343 "
        "-0.252253036764585 0.62747981082092 0.531636616924744",
        None,
        "0.420739214805374 -0.080323002349364 0.441749051285975 "
        "0.57373363055483 -0.395192729528697 0.476515930161103",
    ),
}


def linear_first(text):
    return np.roll(numbers(text), 3)


@pytest.mark.parametrize("frame", TWISTS)
def test_rigid_body_in_body_spatial_and_hybrid_twists(frame):
    """003: (86)-(93)."""
    system = rigid_body(2.3, CENTER, TENSOR, frame)
    q = np.concatenate([[0.4, -0.9, 1.7], TURNED])
    twist, wrench, expected = TWISTS[frame]
    v = linear_first(twist)
    if wrench is None:  # moment about the origin of the body, along inertial axes
        rotation = quaternion.to_matrix(TURNED)
        own = linear_first(TWISTS["body"][1])
        force = np.concatenate([rotation @ own[:3], rotation @ own[3:]])
    else:
        force = linear_first(wrench)
    assert system.kinetic_energy(q, v) == pytest.approx(2.34169875, abs=1e-14)
    assert acceleration(system, q, v, force) == pytest.approx(linear_first(expected), abs=5e-14)
    if frame == "spatial":  # the spatial momentum is constant: (113)
        motion = cc.simulation.forced_motion(cc.reduce(system), None, 2.0, q, v, dt=0.5)
        momenta = [system.mass_matrix(q) @ v for q, v in zip(motion.q, motion.v, strict=True)]
        assert np.ptp(momenta, axis=0) == pytest.approx(0.0, abs=1e-9)
        final = motion.q[-1, :3]
        assert final == pytest.approx([-0.081976516992, 0.341703443978, 2.638258891099], abs=1e-10)
        on_group = cc.simulation.forced_motion(
            cc.reduce(system), None, 2.0, q, v, dt=cc.simulation.Integrator("rkmk4", 5e-3)
        )
        assert on_group.q[-1, :3] == pytest.approx(final, abs=1e-8)


def test_any_frame_has_the_forces_of_its_hamel_coefficients():
    """(12) and (14) with an array of three indices, by finite differences, in random velocities.

    003: (10), (13), (14), (19).
    """
    x = Factor("x", "R3")
    rng = np.random.default_rng(5)
    a, m = rng.normal(size=(2, 3, 3)) * 0.4

    def frame_at(q, sin=np.sin):
        return np.eye(3) + a @ np.diag(sin(q)) + np.outer(sin(2.0 * q), [0.3, -0.2, 0.1])

    def mass_at(q, cos=np.cos):
        return np.eye(3) * 2.0 + m @ np.diag(1.5 + cos(q)) @ m.T

    basis = ca.SX(np.eye(3)) + ca.mtimes(a, ca.diag(ca.sin(x.q)))
    basis += ca.sin(2.0 * x.q) @ ca.DM([[0.3, -0.2, 0.1]])
    mass = 2.0 * ca.SX.eye(3) + ca.mtimes([ca.DM(m), ca.diag(1.5 + ca.cos(x.q)), ca.DM(m).T])
    height = ca.sin(x.q[0]) * x.q[1] + x.q[2] ** 2
    system = cc.LagrangianSystem(mass, height, [x], frame=basis @ x.v, inputs=["velocity[1]"])
    plain = cc.LagrangianSystem(mass, height, [x])

    def slopes(function, q, step=1e-5):
        ends = [(function(q + d), function(q - d)) for d in step * np.eye(3)]
        return np.array([(up - down) / (2.0 * step) for up, down in ends])

    for _ in range(3):
        q, u = rng.normal(size=(2, 3))
        known = frame_at(q)
        inverse = np.linalg.inv(known)
        change = slopes(frame_at, q)  # [s, c, r]
        rotor = np.einsum("scr->crs", change) - np.einsum("rcs->crs", change)
        gamma = np.einsum("crs,ra,sb->cab", rotor, inverse, inverse)

        def moving(q):
            inverse = np.linalg.inv(frame_at(q))
            return inverse.T @ mass_at(q) @ inverse

        def energy(q, u=u):
            return u @ moving(q) @ u / 2

        rate = inverse @ u
        momenta = moving(q) @ u
        turned = np.tensordot(rate, slopes(moving, q), 1) @ u
        pull = np.array([np.cos(q[0]) * q[1], np.sin(q[0]), 2.0 * q[2]])
        expected = turned - inverse.T @ (slopes(energy, q) - pull)
        expected += np.einsum("b,bac,c->a", momenta, gamma, u)
        assert system.mass_matrix(q) == pytest.approx(moving(q), abs=1e-12)
        assert system.bias(q, u) == pytest.approx(expected, abs=2e-8)
        udot = known @ acceleration(plain, q, rate) + np.tensordot(rate, change, 1) @ rate
        assert acceleration(system, q, u) == pytest.approx(udot, abs=2e-8)
    assert system.actuation(q) == pytest.approx(np.array([[0.0], [1.0], [0.0]]))


def test_inhomogeneous_ball_rolls_as_its_reference_numbers_say():
    """003: (136)-(142)."""
    system = rolling_ball(1.5, 0.3, [0.04, 0.05, 0.06])
    model = cc.reduce(system)
    assert model.shape_names == ("turn[0]", "turn[1]", "turn[2]")
    q = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.3]
    found = model.acceleration(q, [1.0, 2.0, 3.0], [])
    assert found == pytest.approx([-12 / 35, 12 / 37, -1 / 3], abs=1e-14)
    motion = cc.simulation.forced_motion(model, None, 5.0, q, [1.0, 2.0, 3.0], dt=1.0)
    expected = [0.763622897347, 1.966346378068, 3.298987961549]
    assert motion.s[-1] == pytest.approx(expected, abs=1e-10)
    assert motion.q[-1, 4:] == pytest.approx([2.921529962777, -1.368894486603, 0.3], abs=1e-10)
    other = cc.simulation.forced_motion(
        model, None, 5.0, q, [1.0, 2.0, 3.0], dt=cc.simulation.Integrator("rkmk4", 0.01)
    )
    assert other.q[-1] == pytest.approx(motion.q[-1], abs=1e-7)
    turned = quaternion.multiply(TURNED, [0.0, 0.0, 0.0, 1.0])
    found = model.acceleration([*turned, 0.0, 0.0, 0.3], [0.4, -1.1, 0.7], [])
    assert found == pytest.approx([-0.037836812281, 0.020854466962, 0.19801698315], abs=1e-11)


def test_chaplygin_sleigh_has_its_closed_form():
    """With c^2 = a^2 + J/m and k = a E / c: w = E sech(k t), u = c E tanh(k t)."""
    mass, inertia, ahead, start = 2.0, 0.3, 0.25, 1.7
    model = cc.reduce(sleigh(mass, inertia, ahead))
    length = np.sqrt(ahead**2 + inertia / mass)
    motion = cc.simulation.forced_motion(model, None, 3.0, [0.0, 0.0, 0.0], [0.0, start], dt=0.25)
    assert model.shape_names == ("sleigh[vx]", "sleigh[omega]")
    phase = ahead * start / length * motion.t
    assert motion.s[:, 1] == pytest.approx(start / np.cosh(phase), abs=1e-9)
    assert motion.s[:, 0] == pytest.approx(length * start * np.tanh(phase), abs=1e-9)
    heading = 2.0 * length / ahead * np.arctan(np.tanh(phase / 2.0))
    assert motion.q[:, 2] == pytest.approx(heading, abs=1e-9)


def test_rolling_disk_has_the_same_motion_in_rotations_and_in_angles():
    data = 1.2, 0.3, 0.054, 0.027
    turning, angles = rolling_disk(*data), rolling_disk(*data, point=True)
    heading, lean, spin = 0.3, 0.2, 0.5
    rates = np.array([0.8, -0.1, 4.0])  # heading, lean, spin
    q = quaternion.multiply(
        quaternion.multiply(quaternion.exp([0, 0, heading]), quaternion.exp([lean, 0, 0])),
        quaternion.exp([0, spin, 0]),
    )
    arm = np.array([np.sin(heading) * np.sin(lean), -np.cos(heading) * np.sin(lean), np.cos(lean)])
    rotation = quaternion.to_matrix(q)
    along = np.array([np.cos(heading), np.sin(heading), 0.0])
    omega = rates @ np.array([[0.0, 0.0, 1.0], along, rotation[:, 1]])
    one, other = cc.reduce(turning), cc.reduce(angles)
    assert one.shape_names == ("disk[wx]", "disk[wy]", "disk[wz]")
    assert other.shape_names == ("angles[0]", "angles[1]", "angles[2]")
    start = np.concatenate([q, 0.3 * arm]), rotation.T @ omega
    motions = [
        cc.simulation.forced_motion(one, None, 1.5, *start, dt=0.3),
        cc.simulation.forced_motion(
            other, None, 1.5, [heading, lean, spin, 0.0, 0.0], rates, dt=0.3
        ),
    ]
    for q, seen in zip(motions[0].q, motions[1].q, strict=True):
        heading, lean, _ = seen[:3]
        arm = [np.sin(heading) * np.sin(lean), -np.cos(heading) * np.sin(lean), np.cos(lean)]
        assert q[4:] == pytest.approx([*seen[3:], 0.0] + 0.3 * np.array(arm), abs=1e-9)
    for motion in motions:
        assert np.abs(motion.energy - motion.energy[0]).max() < 1e-10


def test_full_order_plant_of_a_chain_moves_with_the_reduced_model():
    system = chain(2)
    q, v = np.concatenate(DIRECTIONS[:2]), np.concatenate(TURNS[:2])
    plant, u = cc.Plant(system), np.concatenate([TORQUE, FORCE])

    def slope(_, y):
        return np.concatenate([system.rate(y[:6], y[6:]), plant.acceleration(y[:6], y[6:], u)[0]])

    end = solve_ivp(slope, (0.0, 0.5), [*q, *v], "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    motion = cc.simulation.forced_motion(cc.reduce(system), lambda t: u, 0.5, q, v, dt=0.1)
    assert end == pytest.approx(np.concatenate([motion.q[-1], motion.s[-1]]), abs=1e-8)
    assert np.abs(motion.energy_balance).max() < 1e-9


def test_equal_systems_are_equal_and_go_through_pickles():
    system, same, other = chain(2), chain(2), chain(2, stiffness=1.0)
    again = pickle.loads(pickle.dumps(system))
    q, v = np.concatenate(DIRECTIONS[:2]), np.concatenate(TURNS[:2])
    assert system == same == again != other
    assert len({system, same, again, other}) == 2
    assert np.array_equal(again.bias(q, v), system.bias(q, v))
    assert pickle.loads(pickle.dumps(again.factors[0])) == system.factors[0]
    assert repr(system) == (
        "<LagrangianSystem chain of 2 on S2 x S2: 6 velocities, 0 constraints, 6 inputs>"
    )


X, ROD = Factor("x", "R2"), Factor("rod", "S2")
STILL = ca.sumsqr(X.v) / 2
FAULTS = {
    "no CasADi": (DescriptionError, "`kinetic`: expected a CasADi SX expr", {"kinetic": "m v^2"}),
    "MX": (DescriptionError, "`kinetic`: expected a CasADi SX", {"kinetic": ca.MX.sym("T")}),
    "shape": (ShapeError, "scalar energy, or a mass matrix of shape .2, 2.", {"kinetic": X.v}),
    "unknown": (UnknownNameError, "the symbols mass", {"kinetic": STILL * ca.SX.sym("mass")}),
    "linear": (DescriptionError, "quadratic function", {"kinetic": STILL + X.v[0]}),
    "cubic": (DescriptionError, "quadratic function", {"kinetic": STILL + X.v[0] ** 3}),
    "asymmetric": (
        DescriptionError,
        "symmetric mass matrix, got entries 0.5 and 0.2",
        {"kinetic": ca.SX(ca.DM([[1.0, 0.5], [0.2, 1.0]]))},
    ),
    "singular": (
        DescriptionError,
        "positive definite kinetic energy.*mostly along x",
        {"kinetic": (X.v[0] + X.v[1]) ** 2},
    ),
    "without mass": (DescriptionError, r"along x\[1\]", {"kinetic": X.v[0] ** 2}),
    "negative": (DescriptionError, "positive definite", {"kinetic": -STILL}),
    "no value": (NonFiniteError, "finite values", {"kinetic": STILL * ca.sqrt(-1 - X.q[0] ** 2)}),
    "potential": (DescriptionError, "depends on velocities", {"potential": X.v[0] * X.q[0]}),
    "long potential": (ShapeError, "scalar expression", {"potential": X.q}),
    "factors": (DescriptionError, "list of factors", {"factors": "x"}),
    "no factors": (DescriptionError, "list of factors", {"factors": []}),
    "twice": (DescriptionError, "`x` twice", {"factors": [X, Factor("x", "R")]}),
    "frame": (ShapeError, "2 velocities, got 1", {"frame": X.v[0]}),
    "same frame": (DescriptionError, "independent velocities", {"frame": {"u": [X.v[0], X.v[0]]}}),
    "bent frame": (DescriptionError, "linear function", {"frame": X.v**2}),
    "row": (ShapeError, "column of one or more", {"constraints": X.v.T}),
    "drift": (DescriptionError, "linear function.*rest of 1", {"constraints": X.v[0] - 1.0}),
    "many": (DescriptionError, "fewer constraints than the 2", {"constraints": X.v}),
    "no row": (DescriptionError, "independent constraints", {"constraints": {"c": 0.0 * X.v[0]}}),
    "input": (UnknownNameError, r"velocities .x\[0\], x\[1\].", {"inputs": ["x"]}),
    "same input": (UnknownNameError, "different velocities", {"inputs": ["x[0]", "x[0]"]}),
    "curved input": (DescriptionError, "`inputs` `f`", {"inputs": {"f": X.v[0] ** 2}}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_refused_with_their_place(fault):
    kind, text, given = FAULTS[fault]
    with pytest.raises(kind, match=text):
        cc.LagrangianSystem(**{"kinetic": STILL, "potential": 0.0, "factors": [X], **given})


def test_constraints_that_follow_from_others_are_refused_and_near_ones_are_not():
    y = Factor("y", "R3")
    for bend, accepted in ((1e-4, True), (1e-6, False)):
        rows = {"one": y.v[0] + y.v[1], "two": y.v[0] + (1.0 + bend) * y.v[1]}
        made = {"kinetic": ca.sumsqr(y.v), "potential": 0, "factors": [y], "constraints": rows}
        if accepted:
            assert cc.LagrangianSystem(**made).nf == 2
        else:
            with pytest.raises(DescriptionError, match=r"least eigenvalue.*mostly `(one|two)`"):
                cc.LagrangianSystem(**made)


def test_configurations_off_their_sphere_are_refused():
    system = cc.LagrangianSystem(ca.sumsqr(ROD.qdot), ROD.q[2], [ROD])
    assert system.check_configuration([0.0, 0.0, 1.0009]) == pytest.approx([0.0, 0.0, 1.0])
    with pytest.raises(DescriptionError, match=r"`rod`: expected unit norm within 0\.001"):
        system.check_configuration([0.0, 0.0, 1.0011])
    with pytest.raises(ShapeError):
        system.check_configuration([0.0, 1.0])
    with pytest.raises(NonFiniteError):
        system.check_configuration([0.0, 0.0, np.nan])


def test_factors_are_checked():
    for kind, text, given in (
        (UnknownNameError, "`group`", ("x", "S3")),
        (UnknownNameError, "`group`", ("x", "R0")),
        (UnknownNameError, "`group`", ("x", 3)),
        (UnknownNameError, "`unit`", ("x", "R", None, "deg")),
        (DescriptionError, "`name`: expected a name", ("", "R")),
        (DescriptionError, "unit norm", ("x", "S2", (0.0, 0.0, 2.0))),
        (ShapeError, "`neutral`", ("x", "S2", (0.0, 0.0))),
    ):
        with pytest.raises(kind, match=text):
            Factor(*given)
    for group in ("R", "S2"):
        with pytest.raises(DescriptionError, match="expected SO2, SO3, SE2 or SE3"):
            _ = Factor("x", group).pose
    assert Factor("x", "SE3").pose[1].shape == (3, 1)


def _cart(**motor):
    x = Factor("x", "R")
    drive = Motor("drive", joints={"x": 10.0}, torque=5.0, **motor)
    return cc.LagrangianSystem(1.5 * x.v**2, 0.0, [x], inputs=[drive])


def test_motors_in_other_coordinates_are_given_and_their_rotors_count_once():
    """A cart of 3 kg, with a rotor of 0.01 kg m^2 behind a gear of 10: 4 kg in all coordinates."""
    z = Factor("z", "R")
    for rotor, mass in ((0.0, 3.0), (0.01, 4.0)):
        with pytest.raises(ConcurError, match="inputs in the velocities of the factors"):
            _cart(rotor=rotor).in_coordinates([z], 2.0 * z.q)
        drive = Motor("drive", joints={"z": 20.0}, torque=5.0)
        moved = _cart(rotor=rotor).in_coordinates([z], 2.0 * z.q, [drive])
        assert np.allclose(moved.mass_matrix([0.0]), 4.0 * mass, atol=1e-12)
        assert np.array_equal(moved.control_limits, [5.0])
    again = Motor("drive", joints={"z": 20.0}, torque=5.0, rotor=0.01)
    with pytest.raises(ConcurError, match="motors without rotors"):
        _cart(rotor=0.01).in_coordinates([z], 2.0 * z.q, [again])
    moved = _cart().in_coordinates([z], 2.0 * z.q, [again])
    assert np.allclose(moved.mass_matrix([0.0]), 16.0, atol=1e-12)


def test_a_factor_that_a_map_changes_loses_its_symmetry_and_others_keep_it():
    x, y, u = Factor("x", "R"), Factor("y", "R"), Factor("u", "R")
    kinetic, height = x.v**2 + y.v**2 / 2, ca.cos(y.q)
    system = cc.LagrangianSystem(kinetic, height, [x, y], symmetry="x")
    assert system.in_coordinates([x, u], ca.vertcat(x.q, 2.0 * u.q)).symmetry == ("x",)
    other = Factor("x", "R")
    mixed = system.in_coordinates([other, u], ca.vertcat(2.0 * other.q, u.q))
    assert mixed.symmetry == ()
