"""Rows of constraints against other ways to the same numbers, and what they keep in runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import null_space

import concur as cc
from concur.control import Servo
from concur.control._barriers import LimitRow
from concur.control._constraint_rows import (
    limit_rows,
    margin_at_least,
    margin_limits,
    margin_zone,
)
from concur.control._core import approach
from concur.control._law import all_velocities, law_parts
from concur.control._limited import FREE, _free, _margin_met
from concur.errors import ConcurError
from concur.outputs import Output, ReferenceSample
from concur.robot import Capsule, Mechanism, Obstacle, robot_size, wheel_rows
from tests.benchmarks._limited import passage
from tests.benchmarks._limited_constrained import Constrained
from tests.benchmarks._limited_scenarios import PERIOD, scenarios
from tests.benchmarks._limited_twin import Twin
from tests.export._export import COMPILERS, NAME, compile_replay
from tests.export._export import run as call
from tests.oracles import Pinocchio, assert_close, difference_quotient

ALONE = {"joints": False, "speeds": False}
CASTER = {"caster": (0.75, 0.0, -0.1)}
CASTERS = {"front": (0.75, 0.1, -0.1), "rear": (-0.4, -0.05, -0.1)}


def standing(robot: Mechanism, supports: Any) -> Mechanism:
    return replace(robot, supports=supports)


def rover(supports: Any = CASTER, **rules: Any) -> Servo:
    outputs = [
        Output("base", "chassis", "R2", point=(0.25, 0, 0)),
        Output("hand", "forearm", "R3", point=(0, 0.2, 0)),
    ]
    model = cc.reduce(standing(cc.robots.rover_arm(), supports))
    limits = cc.Constraints(**ALONE | rules)
    return Servo(model, outputs, [4, 9], [4, 6], torque_limits=200.0, constraints=limits)


def mecanum(**rules: Any) -> Servo:
    hand = Output("hand", "hand", "R3xSO3")
    model = cc.reduce(cc.robots.mecanum_arm())
    limits = cc.Constraints(**ALONE | rules)
    return Servo(model, [hand], 4.0, 4.0, torque_limits=200.0, constraints=limits)


def car(**rules: Any) -> Servo:
    robot = standing(cc.robots.car_arm(), {"nose": (0.9, 0.1, 0.0)})
    model = cc.reduce(robot)
    limits = cc.Constraints(**ALONE | rules)
    hand = Output("hand", "hand", "R3", point=(0.2, 0.0, 0.0))
    return Servo(model, [hand], 4.0, 4.0, torque_limits=200.0, constraints=limits)


GROUNDS: dict[str, Callable[..., Servo]] = {
    "rover": rover,
    "rover on four": lambda **rules: rover(CASTERS, compliance=1.0, **rules),
    "mecanum": lambda **rules: mecanum(compliance=1.0, **rules),
    "car": lambda **rules: car(compliance=1.0, **rules),
}


def function(servo: Servo, of_force: bool) -> tuple[list[LimitRow], ca.Function]:
    """Rows of forces or others, with controls that make no force: slopes, drifts, lower ends."""
    q, v = ca.SX.sym("q", servo.nq), ca.SX.sym("v", servo.nv)
    rows = [row for row in limit_rows(servo, q, v) if row.of_force == of_force]
    others = [ca.SX(1, servo.nu - servo.ns) if r.unfelt is None else r.unfelt for r in rows]
    wide = ca.vertcat(*[ca.horzcat(r.row, other) for r, other in zip(rows, others, strict=True)])
    ends = [ca.vertcat(*[r.drift for r in rows]), ca.vertcat(*[r.bounds[0] for r in rows])]
    return rows, ca.Function("rows", [q, v], [ca.densify(x) for x in (wide, *ends)])


def state(servo: Servo, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Configuration, all velocities, shape acceleration, and that of all velocities."""
    robot = servo.model.robot
    q = robot.integrate(robot.random(rng), np.zeros(servo.nv))
    s, sdot = rng.normal(size=(2, servo.ns))
    v = np.asarray(servo.model.velocity(q, s))
    lift, drift = servo.model.lift(q)[0], servo.model.velocity_drift(q, v)
    return q, v, sdot, np.asarray(lift) @ sdot + np.asarray(drift)


def ground_wrench(robot: Mechanism, q: np.ndarray, v: np.ndarray, vdot: np.ndarray) -> np.ndarray:
    """Force and moment of the ground about the inertial origin, by the rate of the momentum."""

    def momentum(time: float) -> np.ndarray:
        there = robot.integrate(q, time * v + time**2 / 2 * vdot)
        return np.asarray(robot.momentum(there, v + time * vdot))

    weight = np.zeros(6)
    for body in robot.bodies:
        pose = np.asarray(robot.pose(q, body.name))
        pull = body.inertia.mass * np.array(robot.gravity)
        place = pose[:3, :3] @ np.array(body.inertia.com) + pose[:3, 3]
        weight += np.r_[pull, np.cross(place, pull)]
    return np.asarray(difference_quotient(momentum)) - weight


@pytest.mark.parametrize("name", GROUNDS)
def test_ground_rows_are_loads_and_forces_of_the_equations_of_motion(name: str) -> None:
    """Loads by the rate of the momentum, forces along wheels by least squares."""
    grip, least = 0.4, 3.0
    servo, rng = GROUNDS[name](least_load=least, grip=grip), np.random.default_rng(0)
    robot, plant, (rows, at) = (
        servo.model.robot,
        Pinocchio(servo.model.robot),
        function(servo, True),
    )
    names, contacts = [row.names[0] for row in rows], contact_names(robot)
    symbol = ca.SX.sym("q", servo.nq)
    wheels = [wheel_rows(robot, symbol, wheel) for wheel in robot.wheels]
    stacked = [
        ca.densify(ca.vertcat(*[w.rows for w in wheels])),
        ca.horzcat(*[w.point for w in wheels]),
    ]
    geometry = ca.Function("wheels", [symbol], stacked)
    ends = np.cumsum([0, *(w.rows.shape[0] for w in wheels)])
    for _ in range(4):
        q, v, sdot, vdot = state(servo, rng)
        wide, drift, low = (np.array(part) for part in at(q, v))
        slips, points = (np.array(part) for part in geometry(q))
        pose = np.asarray(robot.pose(q, robot.base.name))
        points = np.column_stack([points, *map(np.array, robot.supports.values())])
        there = pose[:3, :3] @ points + pose[:3, 3:]
        wrench = ground_wrench(robot, q, v, vdot)
        moment = wrench[3:] - np.cross([0.0, 0.0, robot.ground_height], wrench[:3])
        arms = np.vstack([np.ones(len(contacts)), there[1], -there[0]])
        loads = np.linalg.pinv(arms) @ [wrench[2], *moment[:2]]  # equal springs

        lift, inputs = np.asarray(servo.model.lift(q)[0]), np.asarray(robot.actuation(q))
        due, felt = plant.mass_matrix(q) @ vdot + plant.bias(q, v), lift.T @ inputs
        others = rng.normal(size=servo.nu - servo.ns)
        value = (wide @ np.append(sdot, others) + drift[:, 0])[:, None]
        gaps = []
        for way in (1.0, -1.0):  # of the one control that makes no force on the shape
            u = np.linalg.pinv(felt) @ (lift.T @ due) + way * null_space(felt) @ others
            forces = np.linalg.pinv(slips.T) @ (due - inputs @ u)
            expected = {
                f"load of {own}": load - least for own, load in zip(contacts, loads, strict=True)
            }
            for k in range(len(wheels)):
                part = forces[ends[k] : ends[k + 1]]
                expected[f"grip of {contacts[k]}"] = room(part, grip * loads[k])
            found = {
                own: value[[k for k, other in enumerate(names) if other == own]].min()
                for own in expected
            }
            gaps.append(max(abs(found[own] - expected[own]) for own in expected))
        assert min(gaps) < 1e-6 * np.abs(loads).max()
        assert (low == 0.0).all()


def contact_names(robot: Mechanism) -> list[str]:
    return [*(wheel.body for wheel in robot.wheels), *robot.supports]


def room(force: np.ndarray, most: float) -> float:
    """Least distance of a force from the faces of the polygon with corners along the axes."""
    if force.size == 1:
        return most - abs(float(force[0]))
    turns = np.arange(9) * np.pi / 4
    corners = most * np.column_stack([np.cos(turns), np.sin(turns)])
    rooms = []
    for a, b in pairwise(corners):
        normal = (a + b) / np.linalg.norm(a + b) * np.sign(most)
        rooms.append((normal @ a - normal @ force) / np.cos(np.pi / 8))
    return min(rooms)


FLYER = cc.robots.free_flyer()
FLYING = np.array([0.0] * 6 + [1.0, 0.5, -1.5, 2.1, 0.2, -0.6, 0.6])
MOMENTUM = np.array([0.2, -0.1, 0.1, 0.3, -0.2, 0.2])
ROVING = np.array([0, 0, 0, 0, 0, -0.1, 1.0, -1.6])


def flyer(**rules: Any) -> Servo:
    model, hand = cc.reduce(FLYER, MOMENTUM), Output("hand", "tool", "R3")
    limits = cc.Constraints(**ALONE | rules)
    return Servo(model, [hand], 4.0, 4.0, torque_limits=60.0, constraints=limits)


def least_singular_value(servo: Servo, q: np.ndarray) -> float:
    scaled = servo.margins.scales[0][:, None] * np.asarray(servo.decoupling(q))
    root = np.linalg.cholesky(np.asarray(servo.model.mass_matrix(q)))
    return float(np.linalg.svd(np.linalg.solve(root, scaled.T), compute_uv=False)[-1])


@pytest.mark.parametrize("name", ["rover", "flyer"])
def test_barriers_are_second_differences_of_what_they_keep(name: str) -> None:
    least = 1.9 if name == "flyer" else 0.65
    robot = FLYER if name == "flyer" else cc.robots.rover_arm()
    bodies = ("upper_arm", "hand") if name == "flyer" else ("chassis", "forearm")
    own = (
        Capsule.of(robot, bodies[0])
        if name == "flyer"
        else Capsule.of(robot, "chassis", start=(0.5, 0.3, 0.1), end=(0.1, 0.3, 0.1), radius=0.05)
    )
    own = own, Capsule.of(robot, bodies[1])
    ball = Obstacle("ball", (2.0, 0.3, 0.2), (2.0, 0.5, 0.2), 0.1, distance=0.05)
    more = {"capsule": own, "obstacle": (ball,), "self_collision": [bodies], "margin": least}
    load = {} if name == "flyer" else {"least_load": {"caster": 3.0}}
    servo = flyer(**more) if name == "flyer" else rover(**more, **load)
    alpha = np.full(4 + len(load), approach(servo))
    if load:
        alpha[0] = np.sqrt(9.81 / robot_size(servo.model.robot))
        assert alpha[0] < approach(servo)
    rows, at = function(servo, False)
    assert [row.names[0] for row in rows] == [
        *["load of caster"] * len(load),
        "least margin",
        *(f"distance of {body} from ball" for body in bodies),
        f"distance of {bodies[0]} from {bodies[1]}",
    ]
    symbol = ca.SX.sym("q", servo.nq)
    clearance = servo.constraints.clearance(servo.model.robot)
    seen = ca.Function("d", [symbol], [clearance.seen(servo.model.robot, symbol)])
    rng, width, places = np.random.default_rng(2), margin_zone(servo) - least, list[float]()
    for _ in range(12):
        start = servo.model.robot.integrate(
            FLYING if name == "flyer" else ROVING, 0.3 * rng.normal(size=servo.nv)
        )
        _, _, sdot, _ = state(servo, rng)
        v = np.asarray(servo.model.velocity(start, 0.5 * rng.normal(size=servo.ns)))
        lift, rate = servo.model.lift(start)[0], servo.model.velocity_drift(start, v)
        vdot = np.asarray(lift) @ sdot + np.asarray(rate)

        def kept(time: float, start: Any = start, v: Any = v, vdot: Any = vdot) -> np.ndarray:
            q = servo.model.robot.integrate(start, time * v + time**2 / 2 * vdot)
            scaled = servo.margins.scales[0][:, None] * np.asarray(servo.decoupling(q))
            mass = np.asarray(servo.model.mass_matrix(q))
            inverse = np.linalg.inv(scaled @ np.linalg.solve(mass, scaled.T))
            bound = np.linalg.norm(inverse) ** -0.5
            assert bound <= least_singular_value(servo, q) * (1 + 1e-9)
            distances = np.array(seen(q))[:, 0] - [0.05, 0.05, 0.0]
            own = []
            if load:
                still = np.zeros(servo.nv)
                wrench = ground_wrench(servo.model.robot, q, still, still)
                pose = np.asarray(servo.model.robot.pose(q, "chassis"))
                turn, origin = pose[:3, :3], pose[:3, 3]
                moment = turn.T @ (wrench[3:] - np.cross(origin, wrench[:3]))
                own = [-moment[1] / 0.75 - 3.0]  # the axle is at the origin of the base
            place = (bound - least) / width
            # The slope of what is kept falls from 1 to 0 in the upper half of the zone.
            slope = np.polynomial.Polynomial([1.0, 0.0, -3.0, 2.0]).integ()
            share = min(place, 0.5) + slope(np.clip(2.0 * place - 1.0, 0.0, 1.0)) / 2.0
            places.append(float(place))
            return np.array([*own, width * share, *distances])

        h = 1e-4
        before, now, after = kept(-h), kept(0.0), kept(h)
        wide, drift, low = (np.array(part) for part in at(start, v))
        second = (after - 2 * now + before) / h**2
        assert_close((wide @ sdot + drift[:, 0]), second, 1e-5)
        first = (after - before) / (2 * h)
        assert_close(low[:, 0], -(alpha**2) * now - 2 * alpha * first, 1e-6)
    met = np.histogram(places, [-np.inf, 0.0, 0.5, 1.0, np.inf])[0]
    assert (met > 0).all() if name == "flyer" else met[1]


@pytest.mark.parametrize("name", ["rover", "car", "flyer", "arm"])
def test_the_zone_of_a_least_margin_begins_far_from_usual_margins(name: str) -> None:
    """Medians and bounds by NumPy; the cheap bound is below, and not far below."""
    servo, rng = zoned(name, 0.01), np.random.default_rng(5)
    symbols = {key: ca.SX.sym(key, size) for key, size in servo.inputs.items()}
    parts = law_parts(servo, symbols, None)
    cheap = ca.Function("low", [*symbols.values()], [margin_at_least(servo, symbols["q"], parts)])
    found, shares = [], []
    for k in range(200):
        q = servo.model.robot.random(rng)
        scaled = servo.margins.scales[0][:, None] * np.asarray(servo.decoupling(q))
        own = scaled @ np.linalg.solve(np.asarray(servo.model.mass_matrix(q)), scaled.T)
        found.append(np.linalg.norm(np.linalg.inv(own)) ** -0.5)
        if k < 40:
            given = {key: np.zeros(size) for key, size in servo.inputs.items()}
            given |= {"q": q, "pose": servo.output(q)}
            shares.append(float(cheap(*given.values())) / found[-1])
            assert shares[-1] <= 1.0 + 1e-9
    assert np.median(shares) > (1.0 - 1e-6 if servo.redundancy is not None else 0.7)
    assert margin_zone(servo) - 0.01 == pytest.approx(0.25 * np.median(found), rel=0.3)


def zoned(name: str, least: float, **more: Any) -> Servo:
    """A servo with a least margin, of as many outputs as shape velocities or with joints left."""
    if name == "arm":
        rules = cc.Constraints(**ALONE, holding=False, margin=least)
        return scenarios()["arm-far"].servo(constraints=rules, **more)
    made = {"rover": rover, "flyer": flyer, "car": lambda **r: GROUNDS["car"](**r)}[name]
    return made(margin=least, holding=False)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("name", "least"), [("rover", 0.02), ("flyer", 0.1), ("arm", 0.3)])
def test_no_least_margin_is_active_where_cheap_conditions_exclude_it(
    name: str, least: float
) -> None:
    """A search among fast states with large demands, in the zone and beyond it."""
    servo, rng = zoned(name, least), np.random.default_rng(6)
    symbols = {key: ca.SX.sym(key, size) for key, size in servo.inputs.items()}
    free, sdot = _free(servo, symbols), ca.SX.sym("sdot", servo.ns)
    [kept] = margin_limits(servo, symbols["q"], all_velocities(servo, symbols), sdot)
    exact = ca.Function("met", [*symbols.values(), sdot], [ca.mmin(ca.vertcat(*kept.kept))])
    met, robot = _margin_met(servo), servo.model.robot
    found = dict.fromkeys([(False, False), (True, False), (True, True)], 0)
    for _ in range(600):
        q, s = robot.random(rng), 10.0 ** rng.uniform(-1.0, 1.5) * rng.normal(size=servo.ns)
        goal = np.asarray(servo.output(robot.integrate(q, rng.normal(size=robot.nv))))
        sample = ReferenceSample(goal, *(10.0 * rng.normal(size=(2, servo.size))))
        demand = dict(zip(("pose", "twist", "acceleration"), servo.flat(sample), strict=True))
        demand |= {"q": q, "s": s, "momentum": MOMENTUM}
        values = [demand[key] for key in servo.inputs]
        *results, low = free(*values)
        active = not exact(*values, results[len(FREE)])
        assert bool(met(low, *values, results[len(FREE)])) == active
        found[bool(low), active] += 1
    assert min(found.values()) >= 5, found


def test_a_barrier_that_no_acceleration_serves_asks_for_nothing() -> None:
    """A capsule on the axis of the turret, overlapped by the base; the arm that is stretched."""
    robot = cc.robots.rover_arm()
    post = Capsule.of(robot, "turret", name="post", start=(0, 0, 0), radius=0.1)
    part = Capsule.of(robot, "chassis", name="part", start=(0.2, 0, 0), radius=0.3)
    pair = {"capsule": (post, part), "self_collision": [("post", "part")], "margin": 0.1}
    free, kept = rover(), rover(**pair)
    for angle in (-1.6, 0.0):
        q = ROVING.copy()
        q[-1] = angle
        sample = ReferenceSample(np.asarray(kept.output(q)), np.zeros(5), np.zeros(5))
        u = kept.torque(q, np.zeros(5), sample)
        assert_close(u, free.torque(q, np.zeros(5), sample), 1e-3)


def test_wheels_do_not_slip_lift_or_tip() -> None:
    """Friction and loads by Pinocchio; without these limits they are exceeded."""
    grip, least, moment = 0.25, 71.0, 33.0
    twin, rng = Twin(scenarios()["rover-slip"]), np.random.default_rng(1)
    places, free = np.array([(0.0, 0.25), (0.0, -0.25), (0.75, 0.0)]), rover()
    laws = {
        "grip": (-grip, rover(grip=grip)),
        "load": (least, rover(least_load=least)),
        "tipping": (moment, rover(tipping=moment)),
    }

    def seen(law: Servo, q: np.ndarray, s: np.ndarray, sample: ReferenceSample) -> dict[str, float]:
        u, v = np.asarray(law.torque(q, s, sample)), np.asarray(law.model.velocity(q, s))
        matrix, offset = twin.contact(q, v)
        loads = twin.loads @ (matrix @ twin.acceleration(q, v, u) + offset)
        about = []
        for k in range(3):  # the load of the third contact about the line through the others
            a, b, c = (places[(k + step) % 3] for step in range(3))
            away, way = c - a, (b - a) / np.linalg.norm(b - a)
            about.append(loads[(k + 2) % 3] * abs(way[0] * away[1] - way[1] * away[0]))
        return {"grip": -twin.grip(q, v, u), "load": loads.min(), "tipping": min(about)}

    met = dict.fromkeys(laws, 0)
    for _ in range(40):
        q, s = ROVING.copy(), 0.3 * rng.normal(size=5)
        q[3:] += 0.2 * rng.normal(size=5)
        goal = np.asarray(free.output(q)) + 0.3 * rng.normal(size=5)
        sample = ReferenceSample(goal, np.zeros(5), np.zeros(5))
        wanted = seen(free, q, s, sample)
        for kind, (limit, law) in laws.items():
            assert seen(law, q, s, sample)[kind] >= limit - 1e-8 * abs(limit), kind
            met[kind] += wanted[kind] < limit
    assert min(met.values()) >= 5


def test_ground_refusals() -> None:
    for make, rules, text in (
        (lambda **r: rover({}, **r), {"grip": 0.3}, "three supports or more"),
        (lambda **r: rover(CASTERS, **r), {"least_load": 0.0}, "`compliance`|compliance of each"),
        (rover, {"grip": {"caster": 0.3}}, "unknown|left_wheel"),
        (rover, {"least_load": {"wheel": 0.3}}, "left_wheel"),
        (rover, {"grip": 0.0}, "above zero"),
        (rover, {"tipping": -1.0}, "zero"),
        (rover, {"margin": 0.0}, "above zero"),
        (car, {"tipping": 0.0}, "fixed places"),
        (flyer, {"least_load": 0.0}, "wheels|plane|Planar"),
    ):
        with pytest.raises(ConcurError, match=text):
            make(**rules)
    assert not any("tipping" in name for name in rover(CASTERS).limit_names)
    names = rover(CASTERS, tipping=0.0).limit_names
    assert "tipping over rear to right_wheel" in names  # four contacts, without compliance
    named = rover(least_load={"caster": 1.0}, grip={"left_wheel": 0.3}).limit_names
    assert named[5:7] == ("load of caster", "grip of left_wheel")


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "least", "back"), [("rover-far", 0.1, 0.01), ("arm-far", 0.2, 1e-4)]
)
def test_out_of_reach_the_arm_stops_at_its_margin(name: str, least: float, back: float) -> None:
    """Singular values by NumPy, on a plant in Pinocchio; torques do not chatter at rest."""
    scenario = scenarios()[name]
    law = Constrained(scenario)
    law.servo = scenario.servo(constraints=cc.Constraints(margin=least))
    law.tick = law.servo.compile()
    found = passage(scenario, "constrained", law)
    assert not found.ended
    margins = [least_singular_value(law.servo, q) for q in found.q[::20]]
    assert least - 3e-4 < min(margins) < 2 * least
    assert law.said["least margin"].mean() > 0.1
    first, last = (round(t / PERIOD) for t in scenario.limited_rest)
    change = np.diff(found.u[first:last], axis=0)
    assert (change[1:] * change[:-1] < 0.0).mean() < 0.05
    assert np.abs(change).max() < 1e-6 * scenario.torques.max()
    assert np.abs(found.v[first:last]).max() < 0.01  # internal motion comes to rest too
    assert found.errors[-1].max() < back


@pytest.mark.extended
@pytest.mark.parametrize("name", [*GROUNDS, "flyer"])
def test_exported_c_keeps_the_same_limits(name: str, tmp_path: Path) -> None:
    rules: dict[str, Any] = {"margin": 0.1}
    if name != "flyer":
        rules |= {"least_load": 20.0, "grip": 0.3}
    servo = flyer(**rules) if name == "flyer" else GROUNDS[name](**rules)
    servo.export(tmp_path / "law", name=NAME)
    compile_replay(tmp_path / "law", COMPILERS[0])
    done = call("./replay", cwd=tmp_path / "law")
    assert done.returncode == 0, done.stdout
