"""The independent checker: its own arithmetic, kinematics and dynamics, and files that lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.outputs import references
from concur.proofs._prove import prove
from concur.proofs._recheck import verify
from concur.proofs._recheck_arm import dynamics, forward, rover_of, solve
from concur.proofs._recheck_case import Case, case_of
from concur.proofs._recheck_claims import Stored
from concur.proofs._recheck_leaves import _spectral, norms
from concur.proofs._recheck_smooth import (
    Rejection,
    Smooth,
    constant,
    inverse,
    product,
    stack,
    symbols,
)
from concur.proofs._recheck_sweep import Sweep
from concur.proofs._statement import Statement
from concur.robot import Pose
from concur.simulation import Plant
from tests.proofs._rover import NEAR, prover, rover, states
from tests.proofs._stored import claim, stated, stored_of

T = 0.1
PHI = np.array([-0.1, 1.0, -1.6])


def _at(m: Smooth, xi: np.ndarray) -> np.ndarray:
    """Polynomial of a model."""
    n = len(m.g)
    pairs = [(i, j) for i in range(n) for j in range(i, n)]
    square = sum(m.h[k] * xi[i] * xi[j] for k, (i, j) in enumerate(pairs))
    return np.asarray(m.c + np.einsum("i...b,ib->...b", m.g, xi) + square)


def test_models_contain_a_function_and_its_slopes() -> None:
    rng, half, step = np.random.default_rng(0), 0.05, 1e-5
    place = symbols(rng.normal(size=(3, 40)), np.full((3, 40), half))

    def matrix(s: Any, sine: Any, cosine: Any, pile: Any, times: Any) -> Any:
        rows = [
            pile([sine(s[0]), cosine(s[1]), s[2] * s[0]]),
            pile([s[1], s[2] * 3.0, cosine(s[2] * s[1])]),
            pile([sine(s[0] + s[1]) + 2.0, s[1], s[2] * 0.5]),
        ]
        return times("ijb,kjb->ikb", pile(rows), pile(rows)) + np.eye(3)[:, :, None]

    found = inverse(matrix(place, Smooth.sine, Smooth.cosine, stack, product))

    def true(xi: np.ndarray) -> np.ndarray:
        own = matrix(place.c + half * xi, np.sin, np.cos, np.stack, np.einsum)
        return np.asarray(np.moveaxis(np.linalg.inv(np.moveaxis(own, -1, 0)), 0, -1))

    worst = 0.0
    for _ in range(60):
        xi = rng.uniform(-1.0, 1.0, (3, 40))
        xi = np.sign(xi) if rng.random() < 0.5 else xi
        off = np.abs(true(xi) - _at(found, xi))
        assert (off <= found.r[0]).all()
        worst = max(worst, float((off / found.r[0]).max()))
        for i in range(3):
            ends = [xi + sign * step * np.eye(3)[:, [i]] for sign in (1, -1)]
            slope = [true(end) - _at(found, end) for end in ends]
            assert (np.abs(slope[0] - slope[1]) / (2 * step) <= found.r[1 + i] + 1e-7).all()
    assert worst > 0.05


def _pinocchio(robot: Any) -> tuple[Any, int, int]:
    """The shipped rover, built joint by joint; frames of the base's point and of the hand."""
    model = pin.Model()
    ids = {}
    for body in robot.bodies:
        kind = {
            None: pin.JointModelPlanar(),
            (0.0, 1.0, 0.0): pin.JointModelRY(),
            (0.0, -1.0, 0.0): pin.JointModelRevoluteUnaligned(np.array([0.0, -1.0, 0.0])),
            (0.0, 0.0, 1.0): pin.JointModelRZ(),
            (1.0, 0.0, 0.0): pin.JointModelRX(),
        }[getattr(body.joint, "axis", None)]
        place = pin.SE3(np.eye(3), np.array(body.placement.translation))
        ids[body.name] = model.addJoint(ids.get(body.parent, 0), kind, place, body.name)
        own = body.inertia
        inertia = pin.Inertia(own.mass, np.array(own.com), own.tensor)
        model.appendBodyToJoint(ids[body.name], inertia, pin.SE3.Identity())
    frames = [
        model.addFrame(
            pin.Frame(
                o.name,
                ids[o.body],
                0,
                pin.SE3(np.eye(3), np.array(o.point)),
                pin.FrameType.OP_FRAME,
            )
        )
        for o in rover().servo.outputs
    ]
    return model, frames[0], frames[1]


@pytest.mark.by_default(1)
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_forces_are_those_of_pinocchio(side: float) -> None:
    """Also for wheels whose axes point outwards on both sides, so that they turn oppositely."""
    servo = rover().servo
    robot = replace(
        servo.model.robot,
        bodies=tuple(
            replace(body, joint=cc.joints.Revolute((0.0, side, 0.0)))
            if body.name == "right_wheel"
            else body
            for body in servo.model.robot.bodies
        ),
    )
    own = rover_of(robot, servo.outputs)
    model, base, hand = _pinocchio(robot)
    data, rng = model.createData(), np.random.default_rng(3)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    # Rows of v for (v, omega, joint rates): wheels of radius 0.1 m, 0.25 m to each side.
    lift = np.zeros((8, 5))
    lift[0, 0] = lift[2, 1] = lift[5, 2] = lift[6, 3] = lift[7, 4] = 1.0
    lift[3, :2], lift[4, :2] = (10.0, -2.5), (10.0 * side, 2.5 * side)
    np.testing.assert_allclose(own.speeds, lift[3:], atol=1e-13)
    for _ in range(5):
        phi = PHI + rng.normal(size=3) * 0.3
        w, change = rng.normal(size=(2, 5))
        q = np.array([0.0, 0.0, 1.0, 0.0, *rng.normal(size=2), *phi])
        v, a = lift @ w, lift @ change
        # The base's lateral acceleration in its own axes is v omega; Pinocchio's is of v itself.
        tau = pin.rnea(model, data, q, v, a)
        pin.forwardKinematics(model, data, q, v, a)
        pin.updateFramePlacements(model, data)
        ends = [
            (
                data.oMf[f].translation,
                pin.getFrameVelocity(model, data, f, axes).linear,
                pin.getFrameClassicalAcceleration(model, data, f, axes).linear,
            )
            for f in (base, hand)
        ]
        (p0, y0, n0), (p1, y1, n1) = ends
        rho = p1 - [p0[0], p0[1], 0.0]
        y, nu = np.concatenate([y0[:2], y1]), np.concatenate([n0[:2], n1])
        half = np.full((3, 1), 1e-4)
        angles = solve(own, rho[:, None], half, phi[:, None] + 0.01)
        assert angles.solved.all()
        assert np.abs(angles.phi.c[:, 0] - phi).max() < 1e-12
        f = dynamics(own, symbols(rho[:, None], half), angles.phi)
        total = sum(
            f.linear[b].c[..., 0] @ nu
            + np.einsum("ijk,j,k", f.quadratic[b].c[..., 0], y, y)
            + f.fixed[b].c[:, 0]
            for b in range(6)
        )
        np.testing.assert_allclose(total, lift.T @ tau, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(f.rates.c[..., 0] @ y, w, rtol=1e-11, atol=1e-11)
        mass = lift.T @ pin.crba(model, data, q) @ lift
        np.testing.assert_allclose(f.mass.c[..., 0], mass, rtol=1e-11, atol=1e-12)


@pytest.mark.extended
def test_tensors_over_a_cell_contain_those_inside_with_their_slopes() -> None:
    servo = rover().servo
    own = rover_of(servo.model.robot, servo.outputs)
    rho = np.array([[0.13], [0.72], [0.17]])
    half, rng = np.full((3, 1), 0.005), np.random.default_rng(4)

    def tensors(at: np.ndarray, size: np.ndarray, guess: np.ndarray) -> tuple[Any, list[Smooth]]:
        angles = solve(own, at, size, guess)
        assert angles.solved.all()
        f = dynamics(own, symbols(at, size), angles.phi)
        return angles.phi, [angles.phi, f.rates, f.linear[5], f.quadratic[4], f.fixed[3]]

    phi, wide = tensors(rho, half, PHI[:, None])
    for _ in range(6):
        xi = rng.uniform(-1.0, 1.0, (3, 1))
        _, thin = tensors(rho + half * xi, half * 1e-6, _at(phi, xi))
        for big, small in zip(wide, thin, strict=True):
            assert (np.abs(_at(big, xi) - small.c) <= big.r[0] + 1e-10).all()
            n = len(big.g)
            pairs = [(i, j) for i in range(n) for j in range(i, n)]
            for i in range(n):
                bend = sum(
                    big.h[k] * (xi[b] * (a == i) + xi[a] * (b == i))
                    for k, (a, b) in enumerate(pairs)
                )
                slope = big.g[i] + bend
                assert (np.abs(slope - small.g[i] * 1e6) <= big.r[1 + i] + 1e-7).all()


@cache
def proved() -> tuple[Case, Stored]:
    task = rover()
    found = prove(task.servo, task.reference, T, task.q0, task.s0, NEAR)
    return case_of(task.servo, task.reference, T, task.q0, task.s0), stored_of(found)


CHANGES: list[tuple[str, Callable[[Stored], Stored]]] = [
    ("no leaf covers", lambda s: replace(s, leaves=[p[: len(p) // 2] for p in s.leaves])),
    ("no leaf covers", lambda s: replace(s, leaves=[np.add(p, [0, 3, 0, 0]) for p in s.leaves])),
    ("a segment has no leaves", lambda s: replace(s, leaves=[s.leaves[0], s.leaves[1][:0]])),
    ("without a gap", lambda s: replace(s, first=s.first[::-1])),
    ("without a gap", lambda s: replace(s, first=s.first + 1)),
    ("without a gap", lambda s: replace(s, first=s.first * 100)),
    ("differ in number", lambda s: replace(s, leaves=s.leaves[:1])),
    ("no steps, or more than", lambda s: replace(s, count=100_000)),
    ("no steps, or more than", lambda s: replace(s, count=0)),
    ("edge is out of range", lambda s: replace(s, edge=1e-6)),
    ("edge is out of range", lambda s: replace(s, edge=float("nan"))),
    ("is not below D", lambda s: replace(s, disturbance=s.disturbance * 0.85)),
    ("is not below D", lambda s: stated(s, masses=2 * s.statement.masses)),
    ("is not below D", lambda s: stated(s, period=0.01)),
    ("is not below D", lambda s: stated(s, torque_error=(0.5,) * 5)),
    ("is not below D", lambda s: stated(s, push=(0.1, 0.1))),
    ("no leaf covers", lambda s: stated(s, place=(0.02, 0.02))),
    ("no bounds", lambda s: replace(s, disturbance=s.disturbance * np.nan)),
    ("no bounds", lambda s: replace(s, disturbance=-s.disturbance)),
    ("another shape", lambda s: replace(s, disturbance=s.disturbance[:, :1])),
    ("halved", lambda s: replace(s, leaves=[np.add(p, [9, 0, 0, 0]) for p in s.leaves])),
    ("out of range", lambda s: replace(s, leaves=[p * [0, 10**9, 1, 1] for p in s.leaves])),
    ("exceeds the bound", lambda s: claim(s, "torque", -0.5)),
    ("exceeds the bound", lambda s: claim(s, "speed", -0.5)),
    ("exceeds the bound", lambda s: claim(s, "angle below", -0.1)),
    ("exceeds the bound", lambda s: claim(s, "angle above", 0.1)),
    ("exceeds the bound", lambda s: claim(s, "margin", 0.1)),
    ("exceeds the bound", lambda s: claim(s, "pivot", 0.1)),
    ("exceeds the bound", lambda s: claim(s, "corridor", -0.05)),
    ("is not that of the statement", lambda s: claim(s, "corridor", unit="mm")),
    ("is not that of the statement", lambda s: claim(s, "margin", sign=1.0)),
    ("is not that of the statement", lambda s: claim(s, "torque", limit=1e9)),
    ("is not that of the statement", lambda s: claim(s, "pivot", limit=None)),
    ("other quantities", lambda s: replace(s, bounds={})),
    ("exceeds the bound", lambda s: claim(s, "torque", float("nan"))),
    ("exceeds the limit", lambda s: claim(stated(s, margin=9.0), "margin", limit=9.0)),
    ("but no bound", lambda s: stated(s, angles={"left_wheel": (-1.0, 1.0)})),
    ("no wall", lambda s: replace(s, disturbance=s.disturbance * 1e4)),
]


@pytest.mark.parametrize("gains", ["stiffness", "damping"])
def test_gains_that_differ_between_directions_are_not_covered(gains: str) -> None:
    """A file may say anything of the law: the sets are balls only with one gain."""
    task = rover()
    given = task.reference, T, task.q0, task.s0
    for row, column in ((0, 0), (1, 1), (3, 3), (4, 4), (0, 1), (2, 3), (1, 2)):
        other = np.array(getattr(task.servo, gains), dtype=float)
        other[row, column] += 0.1
        other[column, row] = other[row, column]
        with pytest.raises(Rejection, match="one gain for each output"):
            case_of(replace(task.servo, **{gains: other}), *given)


def test_a_short_proof_is_confirmed() -> None:
    verify(*proved())


@pytest.mark.parametrize("k", range(len(CHANGES)))
def test_lies_are_not_confirmed(k: int) -> None:
    case, stored = proved()
    reason, change = CHANGES[k]
    with pytest.raises(Rejection, match=reason), np.errstate(all="ignore"):
        verify(case, change(stored))


def test_held_torques_come_from_all_segments_that_the_hold_reaches_into() -> None:
    values = np.array([[5.0, 1.0, 2.0, 3.0]])
    for reach, late in (
        ([0, 1, 2, 3], [5.0, 1.0, 2.0, 3.0]),
        ([0, 0, 1, 2], [5.0, 5.0, 2.0, 3.0]),
        ([0, 0, 0, 1], [5.0, 5.0, 5.0, 3.0]),
    ):
        sweep = object.__new__(Sweep)
        sweep.count, sweep.reach = 4, np.array(reach)
        assert sweep._late(values).tolist() == [late]


def test_the_shipped_reference_jumps_at_its_last_point_beyond_the_task() -> None:
    motion = proved()[0].motion
    assert motion.knots[-1] == pytest.approx(25.0)
    assert motion.jumps(25.0)[0].tolist() == []
    times, sizes = motion.jumps(25.1)
    assert times.tolist() == pytest.approx([25.0])
    assert (sizes > 1e-3).all()


def test_norms_contain_sums_of_lines_and_balls_and_are_tight_for_one_ball() -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 3):
        c, lines = rng.normal(size=(size, 9)), rng.normal(size=(2, size, 9)) * 0.3
        c[:, 0] = 0.0
        c[:, 1:4] *= 1e-3
        balls = [(rng.normal(size=(size, k, 9)), rng.uniform(0.1, 1.0, 9)) for k in (2, 3)]
        rest = rng.uniform(0.0, 0.1, (size, 9))
        found = norms(c, list(lines), balls, rest)
        worst = np.zeros(9)
        for _ in range(3000):
            v = c + np.einsum("k,kib->ib", rng.choice([-1.0, 1.0], 2), lines)
            for matrix, radius in balls:
                e = rng.normal(size=matrix.shape[1])
                v = v + np.einsum("ijb,j->ib", matrix, e / np.linalg.norm(e)) * radius
            v = v + rest * rng.choice([-1.0, 1.0], size)[:, None]
            worst = np.maximum(worst, np.linalg.norm(v, axis=0))
        assert (worst <= found).all()
        assert (found < 1.6 * worst).all()
    eye, one = np.eye(3)[:, :, None], np.ones(1)
    still = np.zeros((3, 1))
    assert norms(still, [], [(eye, one)], still) == pytest.approx(1.0)
    assert norms(still + 1.0, [], [(eye, one)], still) == pytest.approx(1.0 + np.sqrt(3.0))


def test_spectral_norms_are_bounded_from_both_sides() -> None:
    matrix = np.random.default_rng(6).normal(size=(3, 4, 50))
    true = np.linalg.norm(np.moveaxis(matrix, -1, 0), 2, axis=(1, 2))
    assert (true <= _spectral(matrix) * (1 + 1e-12)).all()
    assert (_spectral(matrix) <= 1.2 * true).all()


def _swept(case: Case, stored: Stored) -> tuple[dict[str, np.ndarray], Any]:
    """Largest values over each segment, and the sweep."""
    kept: list[Any] = []

    class Kept(Sweep):
        def run(self) -> dict[str, np.ndarray]:
            kept.append((super().run(), self))
            return kept[0][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("concur.proofs._recheck.Sweep", Kept)
        verify(case, stored)
    return kept[0]


@pytest.mark.extended
def test_states_in_the_tube_have_the_values_of_the_checker() -> None:
    """Torques, speeds, angles, and the effects of inertias and of held torques, by the servo."""
    case, stored = proved()
    found, _ = _swept(case, stored)
    servo, model, own = rover().servo, rover().servo.model, prover(T)
    robot, rng = model.robot, np.random.default_rng(8)
    last = np.append(stored.first[1:], stored.count)
    spread = np.repeat(stored.disturbance, last - stored.first, axis=1)
    step = case.duration / stored.count
    tubes = [
        channel.tube(NEAR.place[o], NEAR.speed[o], spread[o], step)
        for o, channel in enumerate(case.motion.channels)
    ]
    x, ve = (np.array([tube[i] for tube in tubes]) for i in (0, 1))
    heavy = []
    for body in robot.bodies:
        plant = Plant(
            robot, uncertain=[f"{body.name}.inertia.mass", f"{body.name}.inertia.moments"]
        )
        pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        moments = np.array([body.inertia.tensor[pair] for pair in pairs])
        more = {
            f"{body.name}.inertia.mass": 0.01 * body.inertia.mass,
            f"{body.name}.inertia.moments": 0.01 * moments,
        }
        heavy.append(cc.reduce(plant.rebuilt(more)))

    def law(t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        sample = rover().reference(t)
        given = sample.flat_pose, sample.twist, sample.acceleration
        return np.asarray(servo.law(q, s, *given)[0])

    rows, ratios = (slice(0, 2), slice(2, 5)), np.zeros((2, 2))
    for _ in range(60):
        k = int(rng.integers(len(stored.first)))
        at = int(rng.integers(stored.first[k], last[k]))
        t = step * (at + rng.uniform(0.1, 0.9))
        wall = 0.002
        q, s = states(own, rng, t, x[:, at], ve[:, at], wall)
        u, v = law(t, q, s), servo.velocity(q, s)
        assert (np.abs(u) <= found["torque"][:, k]).all()
        assert (np.abs(s) <= found["speed"][:, k]).all()
        assert (q[5:] <= found["high"][:, k]).all()
        assert (q[5:] >= -found["low"][:, k]).all()
        assert servo.margin(q) >= -found["margin"].ravel()[k]
        d = np.concatenate(
            [_ball(rng, r) * rad for r, rad in zip((2, 3), stored.disturbance[:, k], strict=True)]
        )
        outputs = servo.decoupling(q)
        mass = model.mass_matrix(q)
        true = np.linalg.solve(mass, u - model.shape_forces(q, v, np.zeros(5)))
        true = true + np.linalg.solve(outputs, d)
        # Each body one percent heavier: forces, and what they do to the outputs.
        response = outputs @ np.linalg.inv(mass)
        forces = [
            100 * (one.shape_forces(q, v, true) - model.shape_forces(q, v, true)) for one in heavy
        ]
        # The command's rate along the true motion.
        h = 1e-5
        ends = [law(t + e, q + e * robot.rate(q, v), s + e * true) for e in (h, -h)]
        held = response @ (ends[0] - ends[1]) / (2 * h)
        for o, r in enumerate(rows):
            weights = sum(np.linalg.norm((response @ force)[r]) for force in forces)
            assert weights <= found["weights"][o, k] * (1 + 1e-9)
            assert np.linalg.norm(held[r]) <= found["held"][o, k] + 1e-3
            new = weights / found["weights"][o, k], np.linalg.norm(held[r]) / found["held"][o, k]
            ratios[o] = np.maximum(ratios[o], new)
    assert (ratios[:, 0] > 0.8).all()
    assert (ratios[:, 1] > 0.35).all()


def _ball(rng: np.random.Generator, size: int) -> np.ndarray:
    """A direction, or a point within."""
    v = rng.normal(size=size)
    return v / np.linalg.norm(v) * rng.choice([1.0, rng.uniform()])


def skewed() -> tuple[Any, ...]:
    """A rover whose arm has joints in no plane, and a motion straight ahead."""
    law, robot = rover().servo, rover().servo.model.robot
    turns = {
        "turret": (0.3, -0.7, -0.4),
        "upper_arm": (0.4, 0.5, -0.3),
        "forearm": (0.4, -0.4, 0.5),
    }
    bodies = []
    for body in robot.bodies:
        if body.name in turns:
            turn = Rotation.from_rotvec(turns[body.name]).as_quat()
            body = replace(body, placement=Pose(body.placement.translation, tuple(turn.tolist())))
        bodies.append(body)
    model = cc.reduce(replace(robot, bodies=tuple(bodies)))
    servo = cc.Servo(model, law.outputs, stiffness=[4, 9], damping=[4, 6])
    q0 = np.array(rover().q0)
    ahead = 0.3 * np.array([np.cos(q0[2]), np.sin(q0[2]), 0.0])
    place = servo.output(q0)
    reference = references.stack(
        references.drifting(references.hold(place[:2]), ahead[:2]),
        references.drifting(references.hold(place[2:]), ahead),
    )
    s0 = np.linalg.solve(servo.decoupling(q0), np.concatenate([ahead[:2], ahead]))
    return servo, reference, 0.08, q0, s0


@pytest.mark.extended
def test_a_rover_with_joints_in_no_plane_is_confirmed() -> None:
    """In wide boxes of its angles the equations do not contract."""
    given = skewed()
    found = prove(*given, Statement((0.0, 0.0), (0.0, 0.0), 0.0, period=0.004, push=(0.01, 0.01)))
    assert found.status is cc.Status.UNVERIFIED
    stored, case = stored_of(found), case_of(*given)
    verify(case, stored)
    middle = case.angles[:, None]
    place = forward(case.rover, constant(middle, 0)).hand.c - np.array(
        [[case.rover.lead], [0], [0]]
    )
    assert 0.0 < solve(case.rover, place, np.full((3, 1), 2e-3), middle).unique[0] < 0.02
    faster = replace(found.statement, push=(0.1, 0.1))
    with pytest.raises(Rejection, match="is not below D"):
        verify(case, replace(stored, statement=faster))
