"""Distances from obstacles: exact in samples, bounded over cells, and false limits refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import coal
import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from concur.certify import Status
from concur.errors import ConcurError, OutputError
from concur.proofs import Capsule, Clearance, Obstacle, prove_task
from concur.proofs._attack import Attack
from concur.proofs._sampled import counterexample
from concur.robot import box_distance, segment_distance
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


def boxes() -> tuple[ca.Function, ca.Function]:
    """Distance of a segment from a box, and its slopes."""
    symbols = [ca.SX.sym(name, size) for name, size in zip("abch", (3, 3, 3, 3), strict=True)]
    turn = ca.SX.sym("turn", 3, 3)
    given, x = [*symbols[:3], turn, symbols[3]], ca.vertcat(*symbols[:2])
    found = box_distance(*given)
    slopes = [ca.gradient(found, x), ca.hessian(found, x)[0]]
    return ca.Function("d", given, [found]), ca.Function("slope", given, slopes)


def drawn(rng: np.random.Generator, case: int) -> tuple[np.ndarray, ...]:
    """A segment and a box: points, along an edge or a face, and axes of the world."""
    (a, b, centre), half = rng.normal(size=(3, 3)), rng.uniform(0.05, 1.0, 3)
    turn = Rotation.random(random_state=rng).as_matrix()
    if case % 6 == 1:
        b = a
    if case % 6 == 2:
        b = a + rng.normal() * turn[:, rng.integers(3)]
    if case % 6 == 3:
        b = a + turn[:, :2] @ rng.normal(size=2)
    if case % 6 == 4:
        turn, centre = np.eye(3), np.zeros(3)
        a, b, half = np.round(a, 1), np.round(b, 1), np.round(half, 1) + 0.1
    return a, b, centre, turn, half


def test_distances_from_boxes_are_those_of_least_squares_and_of_another_library() -> None:
    """Outside the least distance of points on the segment and in the box; inside the way out."""
    function, slope = boxes()
    rng, inside = np.random.default_rng(0), 0
    for case in range(400):
        a, b, centre, turn, half = drawn(rng, case)
        own = float(function(a, b, centre, turn, half))
        assert all(np.isfinite(np.array(part)).all() for part in slope(a, b, centre, turn, half))
        along = [a - b] if (a != b).any() else []
        ends = [*half, *np.ones(len(along))]
        starts = [*-half, *np.zeros(len(along))]
        square = np.column_stack([turn, *along])
        nearest = lsq_linear(square, a - centre, (starts, ends), tol=1e-14, method="bvls")
        if own > 0.0:
            assert own == pytest.approx(np.linalg.norm(nearest.fun), abs=1e-12), case
            continue
        inside += 1
        assert np.linalg.norm(nearest.fun) < 1e-7, case
        box = coal.Box(*(2.0 * half)), coal.Transform3s(turn, centre)
        small = 1e-3
        shapes = *hull(a, b, small), *box
        expected = coal.distance(*shapes, coal.DistanceRequest(), coal.DistanceResult())
        assert own - small == pytest.approx(expected, abs=1e-6), case
    assert inside > 40


def test_slopes_of_distances_from_boxes_are_differences() -> None:
    """First and second ones, where the nearest points do not jump."""
    (value, slope), rng, seen = boxes(), np.random.default_rng(1), 0
    for case in range(0, 240, 6):
        a, b, *box = drawn(rng, case)
        x, way, h = np.array([a, b]), rng.normal(size=(2, 3)), 1e-4
        before, now, after = (float(value(*(x + k * h * way), *box)) for k in (-1, 0, 1))
        first, second = (np.array(part) for part in slope(a, b, *box))
        assert first.ravel() @ way.ravel() == pytest.approx((after - before) / (2 * h), abs=1e-2)
        found = way.ravel() @ second @ way.ravel()
        seen += abs(found - (after - 2 * now + before) / h**2) < 1e-3 * max(1.0, abs(found))
    assert seen >= 36  # of 40


def test_boxes_have_lengths_and_a_centre_and_no_proof() -> None:
    table = {"name": "table", "start": (1.0, 0.0, 0.7)}
    made = Obstacle.from_table(**table, box=(0.6, 1.2, 0.04), rpy_deg=(0.0, 0.0, 90.0))
    assert (made.box, made.radius, made.start == made.end) == ((0.6, 1.2, 0.04), 0.0, True)
    np.testing.assert_allclose(made.turn[:, 0], [0.0, 1.0, 0.0], atol=1e-15)
    assert made.extent(np.array([2.0, 0.0, 0.0])) == pytest.approx(0.6)
    assert BALL.extent(np.array([2.0, 0.0, 0.0])) == BALL.radius
    for more, text in (
        ({}, "a `radius` of a sphere or capsule"),
        ({"radius": 0.1, "rpy_deg": (0.0, 0.0, 90.0)}, "a rotation without `box`"),
        ({"box": (0.6, 0.0, 0.04)}, "three lengths above zero"),
        ({"box": (0.6, 1.2, 0.04), "end": (1.0, 0.0, 0.8)}, "Omit `end`"),
        ({"box": (0.6, 1.2)}, "box"),
    ):
        with pytest.raises(ConcurError, match=text):
            Obstacle.from_table(**table, **more)
    with pytest.raises(OutputError, match=r"obstacle `table`: expected a sphere or capsule"):
        replace(NEAR, clearance=Clearance(ARM, (BALL, made)))


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
