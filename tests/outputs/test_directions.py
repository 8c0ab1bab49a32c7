"""Outputs on S^2: directions of bodies of trees and of systems of two-spheres.

Oracles: finite differences along the flow, the equations of source 002 integrated by SciPy, and the
error equation on the sphere, also by SciPy, in inertial axes without any normals.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import concur as cc
from concur.certify import operating_bounds
from concur.errors import ConcurError, OutputError, ShapeError
from concur.formulations import Factor
from concur.groups import s2
from concur.outputs import FunctionOutput, following_rate, output_motion
from concur.outputs import references as ref
from tests.formulations.textbook import LENGTHS, MASSES, G

KP, KD = 9.0, 6.0


def pendulum(n: int) -> cc.LagrangianSystem:
    """Chain of n links with a motor about each inertial axis on each of them."""
    links = [Factor(f"link{k}", "S2", (0.0, 0.0, -1.0)) for k in range(n)]
    speed, place, kinetic, height = ca.SX(3, 1), ca.SX(3, 1), ca.SX(0), ca.SX(0)
    for link, m, length in zip(links, MASSES, LENGTHS, strict=False):
        speed, place = speed + length * link.qdot, place + length * link.q
        kinetic, height = kinetic + m * ca.sumsqr(speed) / 2, height + m * G * place[2]
    names = [name for link in links for name in link.freedom_names]
    return cc.LagrangianSystem(kinetic, height, links, inputs=names, name=f"chain{n}")


def directions(n: int) -> list[FunctionOutput]:
    q = ca.SX.sym("q", 3 * n)
    spans = [slice(3 * k, 3 * k + 3) for k in range(n)]
    return [
        FunctionOutput(f"d{k}", ca.Function("d", [q], [q[span]]), "S2")
        for k, span in enumerate(spans)
    ]


def cases() -> dict[str, Any]:
    camera = cc.Output("camera", "hand", "S2", axis=(1.0, 0.2, 0.0))
    place = cc.Output("place", "hand", "R3")
    seen = cc.Output("seen", "hand", "S2", axis=(0.0, 2.0, 0.0), relative_to="turret")
    flyer, ball = cc.robots.free_flyer(), cc.robots.rover_arm()
    link = cc.Output("link", "forearm", "S2", axis=(0.0, 1.0, 0.0))
    return {
        "pendulum": (pendulum(1), directions(1)),
        "chain of two": (pendulum(2), directions(2)),
        "camera": (flyer, [place, camera]),
        "relative": (flyer, [seen]),
        "rover": (ball, [link]),
    }


CASES = cases()


def made(name: str, law: Any = cc.Servo, **options: Any) -> Any:
    system, outputs = CASES[name]
    return law(cc.reduce(system), outputs, KP, KD, **options)


def state(law: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    q = law.model.system.random(rng)
    s = rng.normal(size=law.ns)
    if isinstance(law.model.system, cc.LagrangianSystem):  # without spins
        s -= np.concatenate([np.dot(d, w) * d for d, w in zip(split(q), split(s), strict=True)])
    return q, s


def split(values: np.ndarray) -> list[np.ndarray]:
    return np.split(values, len(values) // 3)


def places(law: Any) -> list[tuple[int, int]]:
    """Where each direction starts in the poses, and in the errors."""
    poses = np.cumsum([0, *(o.pose_size for o in law.outputs)])
    errors = np.cumsum([0, *(o.dim for o in law.outputs)])
    return [(p, e) for o, p, e in zip(law.outputs, poses, errors, strict=False) if o.group == "S2"]


@pytest.mark.parametrize("name", CASES)
def test_velocity_and_covariant_acceleration_are_those_of_the_flow(name: str) -> None:
    law = made(name)
    system, rng, h = law.model.system, np.random.default_rng(4), 1e-3
    q, s = state(law, rng)
    v, w = law.model.velocity(q, s), law.model.velocity(q, rng.normal(size=law.ns))

    def flow(time: float) -> np.ndarray:
        x = solve_ivp(
            lambda _, x: system.rate(x, law.model.velocity(x, s)),
            (0, time),
            q,
            rtol=1e-12,
            atol=1e-13,
        )
        return x.y[:, -1]

    before, here, after = (law.output(flow(t)) for t in (-h, 0.0, h))
    velocity, drift = law.motion(q, v)
    # Of a fixed velocity w the rate along v, its normals held.
    symbols = [ca.SX.sym("q", law.nq), ca.SX.sym("v", law.nv), ca.SX.sym("w", law.nv)]
    followed = ca.Function("f", symbols, [following_rate(system, law.outputs, *symbols)])
    jacobian = ca.Function(
        "j", symbols[:1], [output_motion(system, law.outputs, symbols[0]).jacobian]
    )
    for p, e in places(law):
        d, rows = here[p : p + 3], s2.frame(here[p : p + 3]).T
        rate = (after - before)[p : p + 3] / (2 * h)
        second = (after - 2 * here + before)[p : p + 3] / h**2
        np.testing.assert_allclose(velocity[e : e + 2], rows @ np.cross(d, rate), atol=2e-5)
        np.testing.assert_allclose(drift[e : e + 2], rows @ np.cross(d, second), atol=2e-4)

        def turning(x: np.ndarray, e: int = e, p: int = p) -> np.ndarray:
            normals = s2.frame(law.output(x)[p : p + 3])
            return normals @ (np.array(jacobian(x))[e : e + 2] @ w)

        step = (turning(flow(h)) - turning(flow(-h))) / (2 * h)
        found = np.array(followed(q, v, w)).ravel()[e : e + 2]
        np.testing.assert_allclose(found, rows @ step, atol=1e-4)


def goal(law: Any, rng: np.random.Generator, q: np.ndarray, first: float) -> Any:
    """Waypoints of all outputs from a direction that is off by an angle."""
    parts, pose, at, moving = [], law.output(q), 0, [[0.4, -0.3, 0.2], [0.0, 0.0, 0.0]]
    for output in law.outputs:
        own = pose[at : at + output.pose_size]
        at += output.pose_size
        if output.group != "S2":
            parts.append(ref.hold(own))
            continue
        turns = [Rotation.from_rotvec(rng.uniform(-0.5, 0.5, 3)) for _ in range(3)]
        axis = np.cross(own, rng.normal(size=3))
        points = [s2.turned(own, first * axis / np.linalg.norm(axis))]
        for turn in turns:
            points.append(turn.apply(points[-1]))
        parts.append(ref.waypoints([0.0, 0.5, 1.1, 1.6], points, moving, group="S2"))
    return ref.stack(*parts)


def on_the_sphere(d: np.ndarray, turning: np.ndarray, g: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Angles to a goal at rest of a point on the sphere with a spring and a damper, by SciPy.

    Seen from axes that turn with the reference the closed loop is this, however the reference
    moves. In coordinates of R^3: the force of the spring, the damper, and that of the constraint.
    """

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        d, rate = x[:3], x[3:]
        across = g - (g @ d) * d
        pull = np.arccos(np.clip(g @ d, -1, 1)) * across / np.linalg.norm(across)
        return np.concatenate([rate, KP * pull - KD * rate - (rate @ rate) * d])

    start = np.concatenate([d, np.cross(turning, d)])
    found = solve_ivp(slope, t[[0, -1]], start, "DOP853", t, rtol=1e-11, atol=1e-12).y[:3].T
    return np.arctan2(np.linalg.norm(np.cross(found, g), axis=1), found @ g)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("name", "first"), [("pendulum", 3.0), ("camera", 0.8), ("relative", 1.9)])
def test_errors_obey_the_equation_on_the_sphere(name: str, first: float) -> None:
    """Also far beyond a quarter turn; and the loop's own error dynamics have the same angles."""
    law, rng = made(name), np.random.default_rng(2)
    system = law.model.system
    q = system.neutral()
    if name != "pendulum":
        q[7:] = [0.4, -0.7, 1.2, 0.3, 0.8, 0.2]
    aim, s = goal(law, rng, q, first), np.zeros(law.ns)
    run = cc.simulate(system, law, aim, 1.5, q, s, dt=2e-3)
    (p, e), *_ = places(law)
    angles = np.linalg.norm(run.error[:, e : e + 2], axis=1)
    assert angles[0] == pytest.approx(first)
    np.testing.assert_allclose(np.linalg.norm(run.ideal[:, e : e + 2], axis=1), angles, atol=1e-8)

    start = aim(0.0)  # before the direction stand vectors alone
    d, g, w = law.output(q)[p : p + 3], start.pose[p : p + 3], start.twist[p : p + 3]
    expected = on_the_sphere(d, (w @ d) * d - w, g, run.t[::50])
    np.testing.assert_allclose(angles[::50], expected, atol=1e-7)


def test_torques_of_a_pendulum_are_those_of_source_002() -> None:
    """The plant by (40), integrated by SciPy, with the torques of the law."""
    law = made("pendulum")
    aim = goal(law, np.random.default_rng(2), law.model.system.neutral(), 1.2)
    m, length = MASSES[0], LENGTHS[0]

    def slope(t: float, x: np.ndarray) -> np.ndarray:
        q, omega = x[:3] / np.linalg.norm(x[:3]), x[3:]
        torque = law.torque(q, omega, aim(t))
        assert abs(torque @ q) < 1e-9 * max(1.0, np.linalg.norm(torque))  # nothing about the rod
        gravity = m * G * length * np.cross([0.0, 0.0, 1.0], q)
        return np.concatenate([np.cross(omega, q), (gravity + torque) / (m * length**2)])

    q = np.array([0.0, 0.6, -0.8])
    start = np.concatenate([q, np.cross(q, [0.3, 0.0, 0.0])])
    found = solve_ivp(slope, (0.0, 1.4), start, "DOP853", rtol=1e-9, atol=1e-10)
    run = cc.simulate(law.model.system, law, aim, 1.4, q, start[3:], dt=1e-3)
    np.testing.assert_allclose(run.q[-1], found.y[:3, -1], atol=1e-5)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["pendulum", "camera", "chain of two", "relative"])
def test_passive_servo_loses_energy_at_its_rate(name: str) -> None:
    law, rng = made(name, cc.PassiveServo, rate=2.0), np.random.default_rng(3)
    system = law.model.system
    q = system.neutral()
    if name in ("pendulum", "chain of two"):
        q = np.array([0.6, 0.0, -0.8, 0.0, -0.6, -0.8])[: law.nq]
    else:
        q[7:] = [0.4, -0.7, 1.2, 0.3, 0.8, 0.2]
    run = cc.simulate(system, law, goal(law, rng, q, 0.9), 1.0, q, np.zeros(law.ns), dt=2e-3)
    decay = min(law.decay_rate(x) for x in run.q[::50])
    least = np.exp(-2 * 0.99 * decay * run.t)
    assert (np.diff(run.lyapunov) < 0.0).all()
    assert (run.lyapunov <= run.lyapunov[0] * least * (1 + 1e-6)).all()
    if law.nq < 7:  # nothing but spins is left over: the power of springs and dampers, exactly
        off = run.velocity_error - 2.0 * run.error
        power = -KD * np.sum(off**2, axis=1) - KP * 2.0 * np.sum(run.error**2, axis=1)
        found = (run.lyapunov[2:] - run.lyapunov[:-2]) / (run.t[2:] - run.t[:-2])
        smooth = np.all([abs(run.t[1:-1] - t) > 4e-3 for t in (0.5, 1.1)], axis=0)
        np.testing.assert_allclose(found[smooth], power[1:-1][smooth], rtol=2e-3)


@pytest.mark.parametrize("law", [cc.Servo, cc.PassiveServo])
def test_torques_do_not_depend_on_spins(law: Any) -> None:
    made_law = made("chain of two", law, **({} if law is cc.Servo else {"rate": 2.0}))
    rng = np.random.default_rng(6)
    q, s = state(made_law, rng)
    aim = goal(made_law, rng, q, 0.7)(0.3)
    spun = s + np.concatenate([2.0 * split(q)[0], -3.0 * split(q)[1]])
    torque = made_law.torque(q, s, aim)
    np.testing.assert_allclose(made_law.torque(q, spun, aim), torque, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["waypoints", "table", "polynomial", "rest_to_rest", "file"])
def test_references_turn_with_their_twists(kind: str, tmp_path: Any) -> None:
    """Also through the poles, and from directions alone."""
    times = np.linspace(0.0, 2.0, 41)
    points = np.array([s2.turned([0.0, 0.0, 1.0], [2.5 * t, np.sin(t), 0.4 * t]) for t in times])
    path = tmp_path / "way.csv"
    np.savetxt(path, np.column_stack([times, points]), header="t,x,y,z", delimiter=",", comments="")
    made = {
        "waypoints": lambda: ref.waypoints(times[::5], points[::5], group="S2"),
        "table": lambda: ref.table(times, points, group="S2"),
        "polynomial": lambda: ref.polynomial(
            [[0.0] * 3, [2.0, 0.3, 0.1], [0.0, 0.7, 0.0]], start=[0.0, 0.0, 1.0], group="S2"
        ),
        "rest_to_rest": lambda: ref.rest_to_rest(points[0], points[30], 2.0, group="S2"),
        "file": lambda: ref.from_file(path, group="S2"),
    }[kind]()
    h = 1e-5
    for t in (0.33, 1.01, 1.63):
        before, here, after = (made(t + k * h) for k in (-1, 0, 1))
        assert np.linalg.norm(here.pose) == pytest.approx(1.0, abs=1e-12)
        turned = (after.pose - before.pose) / (2 * h)
        np.testing.assert_allclose(turned, np.cross(here.twist, here.pose), atol=1e-7)
        change = (after.twist - before.twist) / (2 * h)
        np.testing.assert_allclose(change, here.acceleration, atol=1e-5)
    if kind in ("table", "file"):
        # The samples of a file are smoothed.
        close = 1e-9 if kind == "table" else 3e-4
        np.testing.assert_allclose(made(times[20]).pose, points[20], atol=close)
    if kind == "rest_to_rest":  # a great circle
        axis = np.cross(points[0], points[30])
        assert all(abs(made(t).pose @ axis) < 1e-12 for t in times)
    graph = made.graph()
    assert graph is not None
    np.testing.assert_allclose(np.array(graph(1.3)[0]).ravel(), made(1.3).pose, atol=1e-14)


@pytest.mark.parametrize(
    ("robot", "output", "what"),
    [
        # Its plane never tilts; and within it a direction has one freedom.
        ("planar_floater", {"axis": (0.0, 0.0, 1.0)}, "singular in every configuration"),
        ("planar_floater", {"axis": (1.0, 0.0, 0.0)}, "singular in every configuration"),
        ("free_flyer", {"axis": (0.0, 0.0, 0.0)}, "zero"),
        ("free_flyer", {"orientation": (1.0, 0.0, 0.0, 0.0)}, "none for group S2"),
    ],
)
def test_what_no_torque_can_do_is_refused(robot: str, output: dict[str, Any], what: str) -> None:
    made = getattr(cc.robots, robot)()
    with pytest.raises(ConcurError, match=what):
        cc.Servo(cc.reduce(made), [cc.Output("d", made.bodies[-1].name, "S2", **output)], KP, KD)


def test_systems_singular_everywhere_are_refused() -> None:
    model, q = cc.reduce(pendulum(1)), ca.SX.sym("q", 3)
    for outputs in (
        [FunctionOutput("tip", ca.Function("f", [q], [q]), "R3")],
        [*directions(1), FunctionOutput("x", ca.Function("f", [q], [q[0]]), "R")],
        [FunctionOutput("fixed", ca.Function("f", [q], [ca.SX([0, 0, 1])]), "S2")],
    ):
        with pytest.raises(OutputError, match="singular in every configuration"):
            cc.Servo(model, outputs, KP, KD)
    rod = Factor("rod", "S2")
    one = cc.LagrangianSystem(ca.sumsqr(rod.qdot), 0.0, [rod], inputs={"u": rod.v[0]})
    with pytest.raises(OutputError, match="at least 2 controls"):
        cc.Servo(cc.reduce(one), directions(1), KP, KD)


def test_questions_that_need_a_group_are_refused() -> None:
    law = made("rover")
    q = law.model.robot.neutral()
    for ask in (
        lambda: operating_bounds(law, {"turret": (-0.1, 0.1)}, budget=5),
        lambda: cc.certified_gains(law.outputs, law.model, 20.0, q, angle=1.0),
    ):
        with pytest.raises(OutputError, match="expected outputs on groups, got link in S2"):
            ask()


def test_gains_of_a_direction_are_single_numbers() -> None:
    system, outputs = CASES["camera"]
    model, coupled = cc.reduce(system), KP * np.eye(5)
    coupled[0, 4] = coupled[4, 0] = 0.5
    for given in ([4.0, [9.0, 8.0]], coupled):
        with pytest.raises(OutputError, match="one number for a direction"):
            cc.Servo(model, outputs, given, KD)
    with pytest.raises(OutputError, match="zero for a direction"):
        cc.Servo(model, outputs, KP, KD, integral=[1.0, 1.0])
    assert cc.Servo(model, outputs, KP, KD, integral=[1.0, 0.0]).nz == 5


def test_references_that_are_no_directions_are_refused() -> None:
    law = made("camera")
    for point in ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0]):
        with pytest.raises(ShapeError, match="unit vector"):
            ref.hold(point, group="S2")
    q, s, tick = law.model.system.neutral(), np.zeros(law.ns), law.compile(interpreted=True)
    q[7:] = [0.4, -0.7, 1.2, 0.3, 0.8, 0.2]
    pose = law.output(q)
    good = ref.stack(ref.hold(pose[:3]), ref.hold(pose[3:], group="S2"))(0.0)
    np.testing.assert_allclose(tick(q, s, good), law.torque(q, s, good), atol=1e-12)
    bad = cc.ReferenceSample([*pose[:3], 0.0, 0.0, 0.0], good.twist, good.acceleration)
    with pytest.raises(ShapeError, match="direction of `camera`"):
        tick(q, s, bad)
    with pytest.raises(ConcurError, match="S2"):
        cc.simulate(law.model.system, law, ref.hold([0.0] * 6 + [1.0], "R3xSO3"), 1.0, q, s)


def test_offsets_are_turns_along_normals_of_the_reference() -> None:
    """Of all lengths, near and at the seam of the normals too, by rotations of SciPy."""
    lie, rng = CASES["camera"][1][1].lie, np.random.default_rng(5)
    g, x, d = ca.SX.sym("g", 3), ca.SX.sym("x", 2), ca.SX.sym("d", 3)
    shifted = ca.Function("shifted", [g, x], [lie.shifted(g, x)])
    back = ca.Function("back", [d, g], [lie.offset(d, g), lie.error(d, g)])
    n = 2000
    goals = rng.normal(size=(n, 3)) * rng.choice([1.0, 1e-6, 0.0], size=(n, 1)) ** [0, 0, 1]
    goals /= np.linalg.norm(goals, axis=1)[:, None]
    angles, polar = rng.uniform(0.01, 3.1, n), rng.uniform(0, 2 * np.pi, n)
    given = angles[:, None] * np.column_stack([np.cos(polar), np.sin(polar)])
    found = np.array(shifted(goals.T, given.T)).T
    normals = np.array([s2.frame(goal) for goal in goals])
    turns = Rotation.from_rotvec(-np.einsum("kij,kj->ki", normals, given))
    np.testing.assert_allclose(found, turns.apply(goals), atol=1e-14)
    apart = np.arctan2(
        np.linalg.norm(np.cross(found, goals), axis=1), np.sum(found * goals, axis=1)
    )
    np.testing.assert_allclose(apart, angles, atol=1e-12)
    offsets, errors = (np.array(part).T for part in back(found.T, goals.T))
    np.testing.assert_allclose(offsets, given, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(errors, axis=1), angles, atol=1e-12)


@pytest.mark.parametrize("offset", [[0.3, -0.2], [-1.6, 2.4], [0.0, 3.2]])
def test_a_law_starts_at_the_offset_of_a_direction(offset: list[float]) -> None:
    """Also beyond a quarter turn from the reference; half a turn and more is refused."""
    law = made("relative")
    aim, length = ref.hold([0.6, 0.0, -0.8], group="S2"), np.linalg.norm(offset)
    if length >= np.pi:
        with pytest.raises(OutputError, match="rotation below pi"):
            law.start(aim, offset={"seen": offset})
        return
    found = law.start(aim, offset={"seen": offset})
    assert found.solved, found.why
    goal = np.array([0.6, 0.0, -0.8])
    turn = Rotation.from_rotvec(-(s2.frame(goal) @ offset))
    np.testing.assert_allclose(law.output(found.q), turn.apply(goal), atol=1e-8)
    assert np.linalg.norm(found.error) == pytest.approx(length, abs=1e-8)


@pytest.mark.parametrize("limit", [8.0, 12.0])
def test_torque_limits_of_a_pendulum_with_three_motors(limit: float) -> None:
    """The programme has no use for the spin either; where torques suffice the goal is reached."""
    law = made("pendulum", torque_limits=limit)
    aim = ref.hold([0.6, 0.0, 0.8], group="S2")
    run = cc.simulate(law.model.system, law, aim, 4.0, [0.0, 0.6, -0.8], [0.1, 0.0, 0.0], dt=4e-3)
    assert abs(run.u).max() <= limit
    assert run.active.any()
    assert np.linalg.norm(run.error[-1]) < 2e-3


def test_configurations_off_the_sphere_are_refused() -> None:
    law = made("pendulum")
    aim, tick = ref.hold([0.6, 0.0, 0.8], group="S2")(0.0), law.compile(interpreted=True)
    near = np.array([0.0, 0.6, -0.8])
    torque = tick(1.0009 * near, np.zeros(3), aim).copy()
    np.testing.assert_allclose(torque, law.torque(near, np.zeros(3), aim), atol=1e-12)
    for length in (0.0, 0.998, 1.5):
        with pytest.raises(ShapeError, match="direction of `link0`"):
            tick(length * near, np.zeros(3), aim)
    with pytest.raises(OutputError, match="no spin takes"):
        made("pendulum", redundancy=cc.control.Redundancy(weight="torque"))


def test_opposite_directions_have_an_answer() -> None:
    """At the antipode an axis of the turn is chosen: the error is pi, and torques turn it away."""
    law = made("pendulum")
    q, aim = np.array([0.0, 0.6, 0.8]), ref.hold([0.0, -0.6, -0.8], group="S2")
    assert np.linalg.norm(law.pose_error(q, aim(0.0).pose)) == pytest.approx(np.pi)
    run = cc.simulate(law.model.system, law, aim, 4.0, q, np.zeros(3), dt=2e-3)
    assert np.linalg.norm(run.error[-1]) < 1e-3
