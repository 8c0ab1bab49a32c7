"""Systems with a declared symmetry: reduced at any momentum, against equations of full order.

Oracles: Lagrange's equations in inertial positions and angles of Cardan, of point masses on a rigid
hull, integrated by SciPy; nothing of the package is used in them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import (
    ConcurError,
    DescriptionError,
    ReductionError,
    ShapeError,
    UnknownNameError,
)
from concur.formulations import Factor
from concur.outputs import FunctionOutput
from concur.simulation import forced_motion
from tests.export._export import Library

HULL, MOMENTS = 12.0, np.array([1.5, 1.1, 1.9])
ARM, LOADS = 0.8, (2.0, 0.6, 0.9)
STIFF, BENT = (25.0, 60.0), 4.0
"""Stiffness of the two modes, N/m; and of the coupling between them, N/m^2."""


def masses(arm: Any, modes: Any) -> list[Any]:
    """Places in the hull of the arm's load and of two masses on a panel that bends."""
    tip = ca.vertcat(0.5 + ARM * ca.cos(arm), ARM * ca.sin(arm), 0.1)
    near = ca.vertcat(-0.9, 0.1, modes[0])
    far = ca.vertcat(-1.7, -0.1, 2.1 * modes[0] + modes[1])
    return [tip, near, far]


def spring(modes: Any) -> Any:
    return (STIFF[0] * modes[0] ** 2 + STIFF[1] * modes[1] ** 2) / 2 + BENT * modes[0] * modes[1]


def satellite(group: str = "SE3", **options: Any) -> cc.LagrangianSystem:
    """A hull with an arm that has a motor, and a panel with two modes."""
    hull, arm, modes = Factor("hull", group), Factor("arm", "SO2"), Factor("modes", "R2")
    twist = {
        "SE3": hull.v,
        "SO3": ca.vertcat(0, 0, 0, hull.v),
        "SE2": ca.vertcat(hull.v[:2], 0, 0, 0, hull.v[2]) if group == "SE2" else None,
    }[group]
    kinetic = HULL * ca.sumsqr(twist[:3]) + ca.dot(MOMENTS, twist[3:] ** 2)
    places, rates = ca.vertcat(arm.q, modes.q), ca.vertcat(arm.v, modes.v)
    for mass, place in zip(LOADS, masses(arm.q, modes.q), strict=True):
        own = ca.jacobian(place, places) @ rates
        kinetic += mass * ca.sumsqr(twist[:3] + ca.cross(twist[3:], place) + own)
    given = {"inputs": ["arm"], "name": "satellite", "symmetry": "hull"} | options
    return cc.LagrangianSystem(kinetic / 2, spring(modes.q), [hull, arm, modes], **given)


@cache
def lagrange() -> ca.Function:
    """Second rates of (x, angles, arm, modes) by Lagrange's equations, spin and rotation."""
    y, z, torque = ca.SX.sym("y", 9), ca.SX.sym("z", 9), ca.SX.sym("u")
    c, s = ca.cos(y[3:6]), ca.sin(y[3:6])
    about = [
        ca.vertcat(ca.horzcat(1, 0, 0), ca.horzcat(0, c[0], -s[0]), ca.horzcat(0, s[0], c[0])),
        ca.vertcat(ca.horzcat(c[1], 0, s[1]), ca.horzcat(0, 1, 0), ca.horzcat(-s[1], 0, c[1])),
        ca.vertcat(ca.horzcat(c[2], -s[2], 0), ca.horzcat(s[2], c[2], 0), ca.horzcat(0, 0, 1)),
    ]
    turn = about[2] @ about[1] @ about[0]
    rate = ca.reshape(ca.jtimes(ca.vec(turn), y, z), 3, 3)
    spin = turn.T @ rate
    omega = ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
    kinetic = HULL * ca.sumsqr(z[:3]) + ca.dot(MOMENTS, omega**2)
    for mass, place in zip(LOADS, masses(y[6], y[7:]), strict=True):
        kinetic += mass * ca.sumsqr(ca.jtimes(y[:3] + turn @ place, y, z))
    value = kinetic / 2 - spring(y[7:])
    momenta = ca.gradient(value, z)
    force = ca.SX(9, 1)
    force[6] = torque
    rest = ca.gradient(value, y) + force - ca.jtimes(momenta, y, z)
    zdot = ca.solve(ca.jacobian(momenta, z), rest)
    return ca.Function("lagrange", [y, z, torque], [zdot, omega, turn])


def turning(t: float) -> float:
    return 0.9 * np.sin(1.3 * t) - 0.2


def full_order(
    start: np.ndarray, v: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, rotations and (arm, modes) from a configuration and velocities of the package."""
    equations = lagrange()
    turn = Rotation.from_quat(start[3:7])
    angles = turn.as_euler("xyz")
    y0 = np.concatenate([start[:3], angles, start[7:]])
    units = [np.array(equations(y0, unit, 0)[1])[:, 0] for unit in np.eye(9)[3:6]]
    rates = np.linalg.solve(np.array(units).T, v[3:6])
    z0 = np.concatenate([turn.apply(v[:3]), rates, v[6:]])

    def slope(t: float, x: np.ndarray) -> np.ndarray:
        zdot = np.array(equations(x[:9], x[9:], turning(t))[0])[:, 0]
        return np.concatenate([x[9:], zdot])

    found = solve_ivp(
        slope, times[[0, -1]], np.concatenate([y0, z0]), "DOP853", times, rtol=1e-13, atol=1e-13
    ).y.T
    return found[:, :3], Rotation.from_euler("xyz", found[:, 3:6]).as_matrix(), found[:, 6:9]


MOMENTA = {
    "all": np.array([0.6, -0.4, 0.2, 0.25, 0.35, -0.3]),
    "none": np.zeros(6),
    "a turn": np.array([0.0, 0.0, 0.0, 0.3, -0.2, 0.5]),
}


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", MOMENTA)
def test_a_flexible_satellite_turns_by_its_arm_at_any_momentum(name: str) -> None:
    """To 1e-9 m and 1e-9 in each entry of the rotation, over three seconds."""
    system, mu = satellite(), MOMENTA[name]
    model = cc.reduce(system, momentum=mu)
    assert model.kind == "symplectic"
    assert model.shape_names == ("arm", "modes[0]", "modes[1]")
    assert model.ns == 3
    quaternion = Rotation.from_euler("xyz", [0.2, -0.3, 0.4]).as_quat()
    q0, s0 = np.concatenate([[0.3, -0.2, 0.1], quaternion, [0.5, 0.02, -0.03]]), [0.4, 0.3, -0.2]
    times = np.linspace(0.0, 3.0, 7)
    motion = forced_motion(model, lambda t: [turning(t)], 3.0, q0, s0, dt=0.5)
    places, turns, shapes = full_order(q0, model.velocity(q0, s0), times)
    np.testing.assert_allclose(motion.q[:, :3], places, atol=1e-9)
    found = Rotation.from_quat(motion.q[:, 3:7]).as_matrix()
    np.testing.assert_allclose(found, turns, atol=1e-9)
    np.testing.assert_allclose(motion.q[:, 7:], shapes, atol=1e-9)
    kept = [system.momentum(q, v) for q, v in zip(motion.q, motion.v, strict=True)]
    np.testing.assert_allclose(kept, np.tile(mu, (7, 1)), atol=1e-12)
    assert abs(motion.energy_balance).max() < 1e-9
    assert np.ptp(motion.q[:, 7]) > 0.5  # it did turn


def test_momentum_is_that_of_the_masses_about_the_origin() -> None:
    """Sums of m v and m x v by differences of inertial positions, with the hull's own."""
    system, rng, h = satellite(), np.random.default_rng(2), 1e-6
    q, v = system.random(rng), rng.normal(size=system.nv)

    def inertial(t: float) -> list[np.ndarray]:
        moved = system.integrate(q, t * v)
        turn = Rotation.from_quat(moved[3:7])
        return [moved[:3] + turn.apply(np.array(m)[:, 0]) for m in numbers(moved)]

    def numbers(q: np.ndarray) -> list[Any]:
        return [ca.DM(ca.evalf(place)) for place in masses(q[7], ca.DM(q[8:]))]

    linear = HULL * Rotation.from_quat(q[3:7]).apply(v[:3])
    angular = np.cross(q[:3], linear) + Rotation.from_quat(q[3:7]).apply(MOMENTS * v[3:6])
    for mass, at, before, after in zip(
        LOADS, inertial(0.0), inertial(-h), inertial(h), strict=True
    ):
        speed = mass * (after - before) / (2 * h)
        linear, angular = linear + speed, angular + np.cross(at, speed)
    np.testing.assert_allclose(system.momentum(q, v), [*linear, *angular], atol=1e-7)


def test_the_lift_is_that_of_a_tree() -> None:
    """A planar floater as energies and as bodies: lift, metric, connection, curvature."""
    robot = cc.robots.planar_floater()
    base = robot.base
    names = [body.joint_label for body in robot.bodies[1:]]
    hull = Factor("hull", "SE2")
    links = [Factor(name, "SO2") for name in names]
    q, v = (ca.vertcat(*[getattr(f, x) for f in (hull, *links)]) for x in "qv")
    system = cc.LagrangianSystem(
        ca.SX(robot.kinetic_energy(q, v)), 0.0, [hull, *links], inputs=names, symmetry="hull"
    )
    mu, rng = [0.2, -0.1, 0.4], np.random.default_rng(4)
    spatial = np.array([mu[0], mu[1], 0.0, 0.0, 0.0, mu[2]])
    tree, model = cc.reduce(robot, momentum=spatial), cc.reduce(system, momentum=mu)
    assert base.joint.nv == model.nb == 3
    for _ in range(3):
        q, (s, w) = robot.random(rng), rng.normal(size=(2, model.ns))
        for method in ("lift", "mass_matrix", "connection", "locked_velocity", "locked_inertia"):
            found, expected = getattr(model, method)(q), getattr(tree, method)(q)
            pairs = zip(found, expected, strict=True) if method == "lift" else [(found, expected)]
            for a, b in pairs:
                np.testing.assert_allclose(a, b, atol=1e-11, err_msg=method)
        for method in ("curvature", "acceleration"):
            np.testing.assert_allclose(
                getattr(model, method)(q, s, w), getattr(tree, method)(q, s, w), atol=1e-9
            )
        np.testing.assert_allclose(model.bias(q, s), tree.bias(q, s), atol=1e-10)
        np.testing.assert_allclose(model.coriolis(q, s), tree.coriolis(q, s), atol=1e-9)
        np.testing.assert_allclose(model.hamiltonian(q, s), tree.hamiltonian(q, s), atol=1e-10)


def test_laws_are_those_of_the_tree_in_ticks_and_in_c(tmp_path: Any) -> None:
    """The hand of a planar floater at a momentum: the same torques as with bodies; exported too."""
    robot, mu = cc.robots.planar_floater(), [0.2, -0.1, 0.4]
    hull, tip = Factor("hull", "SE2"), robot.bodies[-1].name
    links = [Factor(body.joint_label, "SO2") for body in robot.bodies[1:]]
    q, v = (ca.vertcat(*[getattr(f, x) for f in (hull, *links)]) for x in "qv")
    energy, names = ca.SX(robot.kinetic_energy(q, v)), [link.name for link in links]
    system = cc.LagrangianSystem(energy, 0.0, [hull, *links], inputs=names, symmetry="hull")
    place = ca.Function("hand", [q], [robot.pose(q, tip)[:2, 3]])
    law = cc.Servo(cc.reduce(system, mu), [FunctionOutput("hand", place, "R2")], 9.0, 6.0)
    own = cc.reduce(robot, [*mu[:2], 0, 0, 0, mu[2]])
    tree = cc.Servo(own, [cc.Output("hand", tip, "R2")], 9.0, 6.0)
    resting = cc.Servo(cc.reduce(system), law.outputs, 9.0, 6.0)

    rng, rows, torques = np.random.default_rng(6), [], []
    tick = law.compile(interpreted=True)
    for _ in range(8):
        at, s = robot.random(rng), rng.normal(size=2)
        pose = law.output(at) + np.array([0.1, -0.2])
        sample = cc.ReferenceSample(pose, *rng.normal(size=(2, 2)))
        tick.reset()  # each state alone
        torques.append(tree.torque(at, s, sample))
        np.testing.assert_allclose(tick(at, s, sample), torques[-1], atol=1e-9)
        assert abs(resting.torque(at, s, sample) - torques[-1]).max() > 1e-3
        rows.append(np.concatenate([at, s, sample.pose, sample.twist, sample.acceleration]))
    found, codes = Library.of(law, tmp_path)(np.array(rows))
    assert (codes == 0).all()
    np.testing.assert_allclose(found[:, :2], torques, atol=1e-9)


@pytest.mark.parametrize("group", ["SO3", "SE2"])
def test_other_groups_keep_their_momentum(group: str) -> None:
    system = satellite(group)
    mu = [0.2, -0.3, 0.5]
    model = cc.reduce(system, momentum=mu)
    q0 = system.random(np.random.default_rng(3))
    motion = forced_motion(model, [0.3], 2.0, q0, [0.1, 0.2, -0.3], dt=0.1)
    kept = [system.momentum(q, v) for q, v in zip(motion.q, motion.v, strict=True)]
    np.testing.assert_allclose(kept, np.tile(mu, (21, 1)), atol=1e-11)
    # The same motion without the reduction: forces on all velocities, at full order.
    free = satellite(group, symmetry=())
    whole = forced_motion(
        cc.reduce(free), [0.3], 2.0, q0, model.velocity(q0, [0.1, 0.2, -0.3]), dt=0.1
    )
    np.testing.assert_allclose(motion.q, whole.q, atol=1e-9)
    np.testing.assert_allclose(motion.v, whole.v, atol=1e-9)


def pendulous(symmetry: Any = ("cart", "rotor")) -> cc.LagrangianSystem:
    """A cart on a rail with a spherical pendulum and a rotor: R x SO2 is the symmetry."""
    cart, rod, rotor = (
        Factor("cart", "R"),
        Factor("rod", "S2", (0, 0, -1.0)),
        Factor("rotor", "SO2"),
    )
    bob = ca.vertcat(cart.v, 0, 0) + 0.7 * rod.qdot
    turn = rotor.v + 0.3 * rod.qdot[0]
    kinetic = (2.0 * cart.v**2 + 0.4 * ca.sumsqr(bob) + 0.1 * turn**2) / 2
    return cc.LagrangianSystem(
        kinetic,
        0.4 * 9.81 * 0.7 * rod.q[2],
        [cart, rod, rotor],
        inputs=[f"rod[w{x}]" for x in "xyz"],
        symmetry=symmetry,
        name="cart",
    )


def test_products_of_groups_and_two_spheres_in_the_shape() -> None:
    """The shape is a direction, whose spin is no part of it; against the full order."""
    system = pendulous()
    model = cc.reduce(system, momentum=[0.5, -0.2])
    assert model.dependent == (0, 4)
    assert (model.ns, model.nd) == (3, 2)
    q0, s0 = np.array([0.1, 0.6, 0.0, -0.8, 0.3]), np.cross([0.6, 0.0, -0.8], [0.2, 0.9, 0.15])
    np.testing.assert_allclose(np.array(model.spinless(q0)).T @ q0[1:4], 0.0, atol=1e-14)
    torque = [0.1, -0.2, 0.05]
    motion = forced_motion(model, torque, 2.0, q0, s0, dt=0.1)
    whole = forced_motion(cc.reduce(pendulous(())), torque, 2.0, q0, model.velocity(q0, s0), dt=0.1)
    np.testing.assert_allclose(motion.q, whole.q, atol=1e-9)
    np.testing.assert_allclose(motion.v, whole.v, atol=1e-9)


def test_a_servo_tracks_on_the_reduced_model(tmp_path: Any) -> None:
    """The direction of the rod, at a momentum of cart and rotor; errors by their equation."""
    system = pendulous()
    q = ca.SX.sym("q", 5)
    aim = FunctionOutput("rod", ca.Function("rod", [q], [q[1:4]]), "S2")
    servo = cc.Servo(cc.reduce(system, momentum=[0.5, -0.2]), [aim], 9.0, 6.0)
    goal = cc.references.hold([0.0, 0.6, -0.8], group="S2")
    q0 = np.array([0.1, 0.6, 0.0, -0.8, 0.3])
    run = cc.simulate(system, servo, goal, 2.0, q0, np.zeros(3), dt=5e-3)
    first = np.linalg.norm(run.error[0])
    # Critically damped, from rest.
    expected = first * (1 + 3 * run.t) * np.exp(-3 * run.t)
    np.testing.assert_allclose(np.linalg.norm(run.error, axis=1), expected, atol=1e-6)
    assert cc.certify(servo, angle=1.0).status is cc.Status.PROVED
    kept = [system.momentum(q, v) for q, v in zip(run.q[::40], run.v[::40], strict=True)]
    np.testing.assert_allclose(kept, np.tile([0.5, -0.2], (len(kept), 1)), atol=1e-9)
    path = run.save(tmp_path / "run.h5")
    np.testing.assert_array_equal(cc.Run.load(path, servo).q, run.q)


def test_models_at_other_momenta_and_copies() -> None:
    model = cc.reduce(satellite(), momentum=MOMENTA["all"])
    other = model.at_momentum(MOMENTA["a turn"])
    q = satellite().random(np.random.default_rng(0))
    np.testing.assert_array_equal(
        other.velocity(q, [0, 0, 0]), cc.reduce(satellite(), MOMENTA["a turn"]).velocity(q, [0] * 3)
    )
    assert "0.3, -0.2, 0.5" in other.reason
    assert "taken as zero since none was given" in cc.reduce(satellite()).reason
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.velocity(q, [1, 2, 3]), model.velocity(q, [1, 2, 3]))
    np.testing.assert_allclose(cc.reduce(satellite()).locked_velocity(q), 0.0, atol=1e-15)


def tilted() -> Any:
    hull, arm = Factor("hull", "SE2"), Factor("arm", "R")
    return hull, arm, (ca.sumsqr(hull.v) + ca.sumsqr(arm.v)) / 2


def declared(
    change: Callable[[Any, Any, Any], tuple[Any, Any, dict[str, Any]]],
) -> Callable[[], cc.LagrangianSystem]:
    def make() -> cc.LagrangianSystem:
        hull, arm, kinetic = tilted()
        energy, height, options = change(hull, arm, kinetic)
        return cc.LagrangianSystem(energy, height, [hull, arm], **({"symmetry": "hull"} | options))

    return make


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (
            declared(lambda h, a, T: (T, 9.81 * h.q[1], {})),
            DescriptionError,
            "the potential energy that changes by .* Gravity breaks the symmetry",
        ),
        (
            declared(lambda h, a, T: (T * (1 + h.q[0] ** 2), 0.0, {})),
            DescriptionError,
            "the kinetic energy that changes",
        ),
        (
            declared(lambda h, a, T: (T, 0.0, {"inputs": {"u": a.v * ca.cos(h.q[2])}})),
            DescriptionError,
            "an input that changes",
        ),
        (
            declared(lambda h, a, T: (T, 0.0, {"inputs": ["hull[vx]"]})),
            DescriptionError,
            "no input along `hull`",
        ),
        (
            declared(lambda h, a, T: (T, 0.0, {"constraints": h.v[1]})),
            DescriptionError,
            "no `constraints` beside a symmetry",
        ),
        (
            declared(lambda h, a, T: (T, 0.0, {"frame": ca.vertcat(h.v, 2 * a.v)})),
            DescriptionError,
            "no `frame` beside a symmetry",
        ),
        (declared(lambda h, a, T: (T, 0.0, {"symmetry": "hul"})), UnknownNameError, "`?hul`?"),
        (declared(lambda h, a, T: (T, 0.0, {"symmetry": 3})), DescriptionError, "names of factors"),
        (
            declared(lambda h, a, T: (T, 0.0, {"symmetry": ["hull", "arm"]})),
            DescriptionError,
            "some of the factors",
        ),
        (lambda: pendulous("rod"), DescriptionError, "a two-sphere"),
        (lambda: cc.reduce(satellite(), momentum=[0.0] * 3), ShapeError, "`momentum`"),
        (
            lambda: cc.reduce(satellite(symmetry=()), momentum=[0.0] * 6),
            ReductionError,
            "declare `symmetry`",
        ),
        (
            lambda: cc.reduce(satellite(), stages=["modes"]),
            ReductionError,
            "a joint that keeps its momentum",
        ),
        (lambda: cc.reduce(satellite(), stages=["boom"]), UnknownNameError, "boom"),
        (lambda: cc.reduce(pendulous(()), stages=["rod"]), UnknownNameError, "rod"),
        (lambda: cc.reduce(satellite(), MOMENTA["all"]).com_velocity, ReductionError, "a tree"),
    ],
)
def test_what_is_no_symmetry_is_refused(make: Any, kind: type[ConcurError], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


LITTLE: dict[str, Callable[[float], Callable[[Any, Any, Any], Any]]] = {
    "potential energy": lambda size: lambda h, a, T: (T, a.q**2 / 2 + size * h.q[0], {}),
    "one entry of the mass matrix": lambda size: (
        lambda h, a, T: (1e6 * T + size * a.v**2 * h.q[0] ** 2, 0.0, {})
    ),
    "input by its place": lambda size: (
        lambda h, a, T: (T, 0.0, {"inputs": {"u": a.v * (1 + size * h.q[0])}})
    ),
    "input along it": lambda size: lambda h, a, T: (T, 0.0, {"inputs": {"u": a.v + size * h.v[0]}}),
}
"""Declarations that are false by a number, in units of 1 J, kg or N."""


@pytest.mark.parametrize(
    ("what", "rounding", "false"),
    [
        ("potential energy", 1e-14, 1e-10),
        ("one entry of the mass matrix", 1e-5, 1e-2),
        ("input by its place", 1e-11, 1e-7),
        ("input along it", 1e-11, 1e-7),
    ],
)
def test_what_depends_a_little_on_the_group(what: str, rounding: float, false: float) -> None:
    """Rounding is no dependence."""
    assert cc.reduce(declared(LITTLE[what](rounding))()).ns == 1
    with pytest.raises(DescriptionError, match="`symmetry`: expected"):
        declared(LITTLE[what](false))()


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_false_symmetry_is_refused_in_any_unit(unit: float) -> None:
    """Weights, springs and inputs of robots of micrograms and of ships."""
    small = declared(lambda h, a, T: (unit * T, unit * (5.0 + a.q**2), {}))
    assert cc.reduce(small()).ns == 1
    for change in (
        lambda h, a, T: (unit * T, unit * 1e-3 * h.q[1], {}),
        lambda h, a, T: (unit * T, unit * (1e6 + 1e-4 * h.q[1]), {}),
        lambda h, a, T: (unit * T * (2 + ca.cos(h.q[2])), 0.0, {}),
        lambda h, a, T: (T, 0.0, {"inputs": {"u": unit * a.v * (2 + ca.cos(h.q[2]))}}),
        lambda h, a, T: (T, 0.0, {"inputs": {"u": unit * h.v[0]}}),
    ):
        with pytest.raises(DescriptionError, match="`symmetry`: expected"):
            declared(change)()


def test_energies_that_cancel_but_for_rounding_keep_the_symmetry() -> None:
    """Of a quaternion: its norm less one, and velocities turned to inertial axes and squared."""
    hull, arm = Factor("hull", "SE3"), Factor("arm", "R")
    turn, _ = hull.pose
    inertial = turn @ (hull.v[:3] + ca.cross(hull.v[3:], ca.vertcat(0.3, arm.q, 0)))
    kinetic = (ca.sumsqr(hull.v) + ca.sumsqr(inertial) + arm.v**2) / 2
    height = 7.0 * (ca.sumsqr(hull.q[3:]) - 1) + ca.sumsqr(turn[:, 0])
    system = cc.LagrangianSystem(kinetic, height, [hull, arm], symmetry="hull")
    assert cc.reduce(system, [0.1] * 6).ns == 1
