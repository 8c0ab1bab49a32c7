"""Distances from obstacles: exact in samples, bounded over cells, and false limits refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import coal
import numpy as np
import pytest

from concur.certify import Status
from concur.errors import ConcurError, OutputError
from concur.proofs import Capsule, Clearance, Obstacle, prove_task
from concur.proofs._attack import Attack
from concur.proofs._sampled import counterexample
from concur.robot import segment_distance
from tests.proofs._rover import NEAR, prover, rover, states, swept

T = 0.05
ARM = tuple(Capsule.of(rover().robot, name) for name in ("upper_arm", "forearm"))
# A ball beside the path of the hand, a post in front of it, and the front of the chassis.
BALL = Obstacle("ball", (0.1, 0.9, 0.4), (0.1, 0.9, 0.4), 0.05, distance=0.02)
POST = Obstacle("post", (0.6, 0.9, 0.0), (0.6, 1.0, 0.8), 0.03, distance=0.0)
FRONT = Obstacle(
    "front", (0.45, -0.2, 0.0), (0.45, 0.2, 0.0), 0.05, "base", 0.0, capsules=("forearm",)
)
SCENE = Clearance(ARM, (BALL, POST, FRONT))


def task(clearance: Clearance, duration: float = T) -> SimpleNamespace:
    names = ("path", "servo", "reference", "q0", "s0", "robot")
    given = {name: getattr(rover(), name) for name in names}
    return SimpleNamespace(**given, duration=duration, statement=replace(NEAR, clearance=clearance))


def hull(start: np.ndarray, end: np.ndarray, radius: float) -> tuple[object, object]:
    """Shape of another library, and its pose."""
    way = end - start
    length = float(np.linalg.norm(way))
    if length == 0.0:
        return coal.Sphere(radius), coal.Transform3s(np.eye(3), start)
    z = way / length
    x = np.cross(z, [1.0, 0.0, 0.0] if abs(z[0]) < 0.9 else [0.0, 1.0, 0.0])
    x /= np.linalg.norm(x)
    turn = np.column_stack([x, np.cross(z, x), z])
    return coal.Capsule(radius, length), coal.Transform3s(turn, (start + end) / 2)


def apart(clearance: Clearance, q: np.ndarray) -> np.ndarray:
    """Distances of all pairs by coal, with poses of the robot."""
    robot, found = rover().robot, []
    for capsule, obstacle in clearance.pairs:
        shapes = []
        for made, pose in (
            (capsule, robot.pose(q, capsule.body)),
            (obstacle, robot.pose(q, "chassis") if obstacle.frame == "base" else np.eye(4)),
        ):
            ends = [pose[:3, :3] @ np.array(at) + pose[:3, 3] for at in (made.start, made.end)]
            shapes += [*hull(*ends, made.radius)]
        found.append(coal.distance(*shapes, coal.DistanceRequest(), coal.DistanceResult()))
    return np.array(found)


def test_distances_are_those_of_another_library() -> None:
    points = [ca.SX.sym(name, 3) for name in "abcd"]
    function = ca.Function("d", points, [segment_distance(*points)])
    rng = np.random.default_rng(0)
    for case in range(300):
        a, b, c, d = rng.normal(size=(4, 3))
        if case % 5 == 1:
            b = a
        if case % 5 == 2:
            a, b, c, d = a, b, c, c
        if case % 5 == 3:
            d = c + rng.normal() * (b - a)  # parallel
        if case % 25 == 4:
            b, d = a, c
        own = float(function(a, b, c, d))
        small = 1e-3
        (one, at), (other, there) = hull(a, b, small), hull(c, d, small)
        expected = coal.distance(
            one, at, other, there, coal.DistanceRequest(), coal.DistanceResult()
        )
        assert own - 2 * small == pytest.approx(expected, abs=1e-6), case
    assert float(function([-1, 0, 0], [1, 0, 0], [0, -1, 0.0], [0, 1, 0])) < 1e-14


def test_derivatives_of_distances_are_finite() -> None:
    """Where segments cross, touch, are parallel or points; elsewhere they are differences."""
    points = [ca.SX.sym(name, 3) for name in "abcd"]
    found, x = segment_distance(*points), ca.vertcat(*points)
    slope = ca.Function("slope", points, [ca.gradient(found, x), ca.hessian(found, x)[0]])
    value = ca.Function("value", points, [found])
    x_axis, cross = ([-1, 0, 0], [1, 0, 0]), ([0, -1, 0], [0, 1, 0])
    for other in (cross, x_axis, ([1, 0, 0], [2, 0, 0]), ([0, 0, 0],) * 2, ([-1, 0, 1], [3, 0, 1])):
        assert all(np.isfinite(np.array(part)).all() for part in slope(*x_axis, *other))
    rng = np.random.default_rng(1)
    for _ in range(20):
        at, way = rng.normal(size=(2, 4, 3))
        rise = float(value(*(at + 1e-6 * way)) - value(*(at - 1e-6 * way))) / 2e-6
        assert np.array(slope(*at)[0]).ravel() @ way.ravel() == pytest.approx(rise, abs=1e-7)


def test_capsules_are_those_of_the_bodies_shapes() -> None:
    upper, fore = ARM
    assert (upper.radius, fore.radius) == (0.03, 0.025)
    assert sorted(upper.ends[:, 1].tolist()) == pytest.approx([0.0, 0.4])
    assert np.abs(upper.ends[:, [0, 2]]).max() < 1e-12
    own = Capsule.of(rover().robot, "chassis", start=(0.1, 0.0, 0.0), radius=0.2)
    assert (own.name, own.start == own.end, len(own.ends)) == ("chassis", True, 1)
    with pytest.raises(OutputError, match="the shapes box"):
        Capsule.of(rover().robot, "chassis")
    with pytest.raises(ConcurError, match="radius of zero or more"):
        Obstacle("ball", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), -0.1)
    with pytest.raises(ConcurError, match="`frame` out of world, base"):
        Obstacle("ball", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.1, "hand")
    with pytest.raises(OutputError, match="with another name"):
        Clearance(ARM, (BALL, BALL))
    for pair, text in (
        (("forearm", "hand"), "names out of upper_arm, forearm"),
        (("forearm", "forearm"), "different bodies"),
    ):
        with pytest.raises(OutputError, match=text):
            Clearance(ARM, (BALL,), (pair,))
    with pytest.raises(OutputError, match="with another name"):
        Clearance(ARM, (replace(BALL, name="forearm"),), (("forearm", "upper_arm"),))
    with pytest.raises(OutputError, match="zero or more"):
        Clearance(ARM, (), (("forearm", "upper_arm"),), -0.1)
    with pytest.raises(OutputError, match="capsules and obstacles"):
        replace(NEAR, clearance=Clearance(ARM, (BALL,), (("forearm", "upper_arm"),)))
    with pytest.raises(OutputError, match="names out of upper_arm, forearm"):
        Clearance(ARM, (replace(BALL, capsules=("turret",)),))


def test_states_in_the_tube_stay_within_the_bounds() -> None:
    held, statement = np.array([0.02, 0.15]), replace(NEAR, clearance=SCENE)
    case = prover(T)
    (x, ve, wall), found, _ = swept(case, held, 0.003, statement=statement)
    rng, count = np.random.default_rng(4), len(SCENE.pairs)
    worst = np.full(count, np.inf)
    for _ in range(200):
        step = int(rng.integers(case.count))
        t = case.step * (step + rng.uniform())
        q, _ = states(case, rng, t, x[:, step], ve[:, step], wall[step])
        k = int(np.searchsorted(case.first, step, side="right")) - 1
        own = apart(SCENE, q)
        assert (own >= -found[k]["added"] - 1e-7).all()
        worst = np.minimum(worst, own)
    bound = np.min([-part["added"] for part in found], axis=0)
    assert (bound > 0.05).all()
    # Cells, tube and heading take 15 mm beside the states that were drawn.
    assert (worst - bound < 0.0155).all()


def test_an_obstacle_in_the_way_is_refuted_and_one_beside_it_is_not() -> None:
    attack = Attack(task(SCENE, 0.1))
    runs = attack(np.zeros((1, attack.balls.size)), 1)[2][0]
    names = [made.key for made in attack.quantities]
    worst = runs[names.index(("clearance", "forearm from ball"))].min()
    for room, told in ((-1e-5, ""), (1e-5, "clearance forearm from ball is")):
        near = Clearance(ARM, (replace(BALL, distance=float(worst + room)),))
        found = counterexample(task(near, 0.1))
        assert told in found
        assert bool(found) == bool(told)
    hand = rover().servo.output(np.asarray(rover().q0))[2:]
    hit = Clearance(ARM, (replace(BALL, start=tuple(hand), end=tuple(hand)),))
    verdict = prove_task(task(hit, 0.1))
    assert verdict.status is Status.REFUTED
    assert "clearance forearm from ball is -0.0" in verdict.sentence
    # Both overlap: at the hand the distance is less both radii.
    assert "limit 0.02" in verdict.sentence
