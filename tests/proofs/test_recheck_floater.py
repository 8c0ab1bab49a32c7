"""The checker of floaters: its own arithmetic, kinematics and dynamics, and files that lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

import concur as cc
from concur.outputs import references
from concur.proofs._expression import Expression
from concur.proofs._floater import Prover, proof_of
from concur.proofs._ground import Ground
from concur.proofs._reading import Reading
from concur.proofs._recheck_balls import (
    ROUND,
    Blocks,
    Dual,
    Solver,
    cosine,
    norm,
    reciprocal,
    root,
    sine,
    stacked,
    times,
)
from concur.proofs._recheck_claims import Stored
from concur.proofs._recheck_flier import arm_of, flier_of, newton_euler
from concur.proofs._recheck_flight import BALLS, course, state
from concur.proofs._recheck_floater import Case, _rate, case_of_floater, verify_floater
from concur.proofs._recheck_pieces import Formula
from concur.proofs._recheck_poses import carried, exponential, pulled, pushed
from concur.proofs._recheck_smooth import Rejection
from concur.proofs._recheck_tube import Flow, curve
from concur.proofs._recheck_wrenches import needs
from concur.proofs._statement import Statement
from tests.proofs._flier import (
    NEAR,
    ball,
    base_deviation,
    deviated,
    encloses,
    flier,
    knee,
    polynomial,
    prover,
)
from tests.proofs._stored import claim, stated, stored_of

T = 0.025
HELD = replace(NEAR, push=(1e-3,), period=1e-3, torque_error=(1e-4,) * 6)
WRONG = replace(HELD, masses=2e-3, momentum_error=(2e-3, 2e-3))


def test_models_contain_their_functions() -> None:
    blocks, rng, cells = Blocks((1, 6, 6, 1, 1, 6), 3), np.random.default_rng(0), 5
    radii = [0.05, 0.02, 0.02, 1e-3, 1e-3, 0.02]
    matrix = rng.normal(size=(3, 6))

    def function(parts: list[Any]) -> list[Any]:
        t, x, y, z, w = parts
        u = times("ij,j->i", matrix, x) + np.array([[1.0], [2.0], [0.5]])
        v = times("ij,j->i", matrix[:, ::-1].copy(), y)
        square = stacked([sine(u + v), cosine(v), u * 0.3]) + 3 * np.eye(3)[:, :, None]
        square = times("ij,kj->ik", square, square)
        right = stacked([z[0] + w[0], z[1] * 2.0 + w[1], t[0] + w[2]])
        return [square, right, times("ij,j->i", square, right)]

    balls = [blocks.ball(k, np.full(cells, radii[k])) for k in (0, 1, 2)]
    singles = blocks.own(3, np.full((2, cells), 1e-3))
    found = function([*balls, singles, blocks.ball(5, np.full(cells, 0.02))])
    corner = found[0][0, 0]
    models = [*found, Solver(found[0])(found[2]), reciprocal(corner), root(corner)]
    worst = 0.0
    for _ in range(60):
        parts = []
        for size in blocks.sizes:
            way = rng.normal(size=(size, cells))
            parts.append(way / np.linalg.norm(way, axis=0) * rng.choice([1.0, rng.uniform()]))
        own = [r * p for r, p in zip(radii, parts, strict=True)]
        square, right, whole = function([*own[:3], np.vstack(own[3:5]), own[5]])
        values = [square, right, whole, right, 1 / square[0, 0], np.sqrt(square[0, 0])]
        for m, value in zip(models, values, strict=True):
            off = np.abs(polynomial(m, np.vstack(parts)) - value)
            assert (off <= m.r + ROUND * m.size).all()
            assert (np.abs(value) <= m.bound).all()
            worst = max(worst, float((off / (m.r + 1e-300)).max()))
        assert (np.linalg.norm(whole, axis=0) <= norm(found[2])).all()
    assert worst > 0.1


def test_squares_and_products_of_unit_forms_are_bounded_by_one_and_no_more() -> None:
    """Their matrices have rank one: the Frobenius norm is the largest value on the balls."""
    blocks, one = Blocks((6, 3), 2), np.ones(1)
    x, y = (blocks.ball(k, one) for k in (0, 1))
    for a, b in ((x, x), (x, y), (y, y)):
        forms = [times("j,j->", np.ones(len(m.c)) / np.sqrt(len(m.c)), m) for m in (a, b)]
        product = times(",->", *forms)
        assert product.bend == pytest.approx(1.0, rel=1e-12)
        assert norm(stacked([product, 0.0 * product])) == pytest.approx(1.0, rel=1e-9)
        assert norm(stacked([product, product])) == pytest.approx(np.sqrt(2.0), rel=1e-9)
        # Forms of other balls add up: all reach their largest values at once.
        for other in (times(",->", forms[0], forms[0]), times(",->", forms[1], forms[1])):
            both = product + other
            assert both.bend == pytest.approx(2.0, rel=1e-12)
            assert norm(stacked([both, 0.0 * both])) == pytest.approx(2.0, rel=1e-9)


def _hat(x: np.ndarray) -> np.ndarray:
    w = np.cross(np.eye(3), x[3:])
    return np.block([[w, x[:3, None]], [np.zeros((1, 4))]])


def _vee(m: np.ndarray) -> np.ndarray:
    return np.array([*m[:3, 3], m[2, 1], m[0, 2], m[1, 0]])


def test_formulas_of_poses_are_those_of_matrices() -> None:
    rng, h = np.random.default_rng(1), 1e-6
    for size in (1e-4, 0.4, 1.0):
        x, u = size * rng.normal(size=6), rng.normal(size=6)
        turn, place = exponential(x[:, None])
        whole = np.block([[turn[..., 0], place], [0, 0, 0, 1]])
        assert np.abs(whole - expm(_hat(x))).max() < 1e-12
        moved = whole @ _hat(u) @ np.linalg.inv(whole)
        assert np.abs(carried((turn, place), u[:, None])[:, 0] - _vee(moved)).max() < 1e-11
        # log(exp(-h u) exp(x)) moves by -B(x) u.
        ends = [_vee(logm(expm(_hat(-s * u)) @ whole).real) for s in (h, -h)]
        slope = (ends[0] - ends[1]) / (2 * h)
        assert np.abs(pulled(x[:, None], u[:, None])[:, 0] + slope).max() < 1e-6
        v = rng.normal(size=6)
        both = v @ pulled(x[:, None], u[:, None])[:, 0], u @ pushed(x[:, None], v[:, None])[:, 0]
        assert both[0] == pytest.approx(both[1], abs=1e-10)
    # Rates of duals are differences.
    x, u, change = rng.normal(size=(3, 6, 1))
    dual = pushed(Dual(x, change), Dual(u, 0.0 * u)).rate
    ends = [pushed(x + s * change, u) for s in (h, -h)]
    assert np.abs(dual - (ends[0] - ends[1]) / (2 * h)).max() < 1e-6


def test_dynamics_are_those_of_pinocchio() -> None:
    robot, rng = flier().servo.model.robot, np.random.default_rng(2)
    model, ids = pin.Model(), {}
    for body in robot.bodies:
        place = pin.SE3(np.eye(3), np.array(body.placement.translation))
        own = body.inertia
        inertia = pin.Inertia(own.mass, np.array(own.com), own.tensor)
        if type(body.joint).__name__ == "Fixed":
            model.appendBodyToJoint(ids[body.parent], inertia, place)
            ids[body.name] = ids[body.parent]
            end = (ids[body.parent], place)
            continue
        axis = getattr(body.joint, "axis", None)
        kind = (
            pin.JointModelFreeFlyer()
            if axis is None
            else pin.JointModelRevoluteUnaligned(np.array(axis))
        )
        ids[body.name] = model.addJoint(ids.get(body.parent, 0), kind, place, body.name)
        model.appendBodyToJoint(ids[body.name], inertia, pin.SE3.Identity())
    model.gravity.linear[:] = 0.0
    data = model.createData()
    numbers = flier_of(robot, flier().servo.outputs[0])
    for _ in range(4):
        phi, v, a = rng.normal(size=6), rng.normal(size=12), rng.normal(size=12)
        q = np.concatenate([[0, 0, 0, 0, 0, 0, 1], phi])
        tau = pin.rnea(model, data, q, v, a)
        # Pinocchio's acceleration of a free joint is that of its components, as here.
        arm = arm_of(numbers, phi[:, None])
        given = (a[:6, None], a[6:, None], v[:6, None], v[6:, None])
        u, wrench = newton_euler(arm, *given)
        np.testing.assert_allclose(u[:, 0], tau[6:], rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(wrench[:, 0], tau[:6], rtol=1e-11, atol=1e-11)
        pin.forwardKinematics(model, data, q, v)
        hand = data.oMi[end[0]] * end[1]
        assert np.abs(arm.hand[0][..., 0] - hand.rotation).max() < 1e-12
        assert np.abs(arm.hand[1][:, 0] - hand.translation).max() < 1e-12
        mass = pin.crba(model, data, q)
        mass = np.triu(mass) + np.triu(mass, 1).T
        assert np.abs(arm.whole[..., 0] - mass[:6, :6]).max() < 1e-11
        lower = mass[:6, 6:] - arm.whole[..., 0] @ arm.screws[..., 0]
        assert np.abs(arm.lower[..., 0] - lower).max() < 1e-11


def test_references_that_jump_are_rejected_and_smooth_pieces_are_not() -> None:
    middle, half = np.array([0.5, 1.5, 2.5]), np.full(3, 0.5)
    Formula(knee(3), BALLS).continuous(middle, half)
    for power in (1, 0):
        with pytest.raises(Rejection, match=r"jump at 1\.2345"), np.errstate(all="ignore"):
            Formula(knee(power), BALLS).continuous(middle, half)
    found = Formula(knee(3), BALLS).over(middle, half)
    for d in np.linspace(-1, 1, 41):
        t = middle + half * d
        late = np.maximum(t - 1.2345, 0.0)
        values = {(1, "value"): late**3, (2, "value"): 3 * late**2, (2, "rate"): 6 * late}
        for (row, name), value in values.items():
            m = getattr(found[row][0], name)
            point = np.full((max(len(m.g), 1), 3), d)
            assert (np.abs(polynomial(m, point) - value) <= m.r + 1e-12).all()


def test_the_flow_bounds_motions_and_halved_matrices_do_not() -> None:
    rng, n, h = np.random.default_rng(3), 40, 0.05
    base = np.zeros((18, 18))
    base[:6, 12:], base[12:, :6], base[12:, 12:] = -np.eye(6), 4 * np.eye(6), -4 * np.eye(6)
    base[6:12, :6], base[6:12, 6:12] = 0.5 * np.eye(6), 0.4 * np.eye(6)
    matrices = base + 0.05 * rng.normal(size=(n, 18, 18)) * (base != 0)
    start, force = np.array([0.1, 0.1, 0.1]), np.full((3, n), 0.01)
    bound = Flow(matrices, h).reached(start, force, np.arange(n))
    halved = matrices.copy()
    halved[:, 6:12] *= 0.5
    low = Flow(halved, h).reached(start, force, np.arange(n))
    worst = np.zeros((3, n))
    for case in range(30):
        ways = [rng.normal(size=6) for _ in range(6)]
        ways = [way / np.linalg.norm(way) for way in ways]
        if case == 0:
            ways = [np.eye(6)[0]] * 6
        y, f = (
            np.concatenate([s * w for w in ways[3 * k : 3 * k + 3]])
            for k, s in ((0, 0.1), (1, 0.01))
        )
        for k in range(n):
            ahead = expm(np.block([[matrices[k], f[:, None]], [np.zeros((1, 19))]]) * h / 10)
            for _ in range(10):
                y = (ahead @ np.append(y, 1.0))[:18]
                sizes = np.array([np.linalg.norm(y[i : i + 6]) for i in (0, 6, 12)])
                assert (sizes <= bound[:, k]).all()
                worst[:, k] = np.maximum(worst[:, k], sizes)
    assert (worst[1] > low[1]).any()
    assert bound[1, -1] < 1.4 * worst[1, -1]


@cache
def flight() -> tuple[Any, Case, Any, np.ndarray, np.ndarray]:
    """A short case: prover, checker's case, course and radii of its segments."""
    task, own = flier(), prover(0.05)
    case = case_of_floater(task.servo, task.reference, 0.05, task.q0, task.s0)
    _, cubics = curve(lambda t, y: _rate(case, t, y), case.start, own.count, own.length)
    values = own.declared.path
    guess = (values[19:, :-1] + values[19:, 1:]) / 2
    numbers = np.arange(own.count)
    way = course(case.formula, case.momentum, cubics, guess, numbers, own.length)
    return own, case, way, np.full((3, own.count), 4e-4), np.zeros((2, own.count))


def test_the_declared_start_is_that_of_the_servo() -> None:
    own, case, *_ = flight()
    assert np.abs(case.start[:12] - own.declared.start.ravel()).max() < 1e-11
    assert np.abs(case.start[12:16] - flier().q0[3:7]).max() == 0.0


@pytest.mark.extended
def test_states_and_torques_in_the_tube_are_those_of_the_law() -> None:
    own, case, way, radii, none = flight()
    servo, task, rng = flier().servo, flier(), np.random.default_rng(4)
    here = state(case.flier, case.gains, way, radii, none)
    assert here.sound.all()
    push = np.full(own.count, 0.02)
    found = needs(case.flier, case.gains, case.scales, way, here, push)
    robot, model, tight = servo.model.robot, servo.model, np.zeros(3)
    for _ in range(20):
        t = rng.uniform(0, own.count * own.length)
        k = min(int(t / own.length), own.count - 1)
        parts = [ball(rng, radius) for radius in radii[:, k]]
        xi = np.concatenate([[2 * (t / own.length - k) - 1], *(p / 4e-4 for p in parts)])
        q, s = np.split(deviated(own, t, *parts), [13])
        v = servo.velocity(q, s)
        assert encloses(here.phi, k, xi, q[7:], 1e-9)
        assert encloses(here.s, k, xi, s, 1e-8)
        assert encloses(here.base, k, xi, v[:6], 1e-8)
        assert not encloses(here.s, k, xi, s * 1.01, 1e-8)
        h = 1e-5
        if k * own.length + h < t < (k + 1) * own.length - h:
            ends = [base_deviation(own, t + e, q + e * robot.rate(q, v)) for e in (h, -h)]
            assert encloses(here.rates[1], k, xi, (ends[0] - ends[1]) / (2 * h), 1e-6)
        d = 0.02 * ball(rng, 1.0)
        # The true motion, accelerated by d.
        sample = task.reference(t)
        u = servo.torque(q, s, sample)
        assert (np.abs(u) <= found.torque[:, k]).all()
        gain = servo.decoupling(q) @ np.linalg.inv(model.mass_matrix(q))
        force = u + np.linalg.solve(gain, d)
        sdot = model.acceleration(q, s, force)

        def torque(
            e: float, q: Any = q, v: Any = v, s: Any = s, sdot: Any = sdot, t: Any = t
        ) -> Any:
            there = robot.integrate(q, e * v)
            return servo.torque(there, s + e * sdot, task.reference(t + e))

        change = (torque(h) - torque(-h)) / (2 * h)
        held = np.linalg.norm(gain @ change)
        assert held <= found.held[k]
        assert (np.abs(change) <= found.torque_rate[:, k]).all()
        assert (np.linalg.norm(gain, axis=0) <= found.response[:, k]).all()
        assert (np.abs(s) <= found.speed[:, k]).all()
        assert (-found.low[:, k] <= q[7:]).all()
        assert (q[7:] <= found.high[:, k]).all()
        assert servo.margin(q) >= -found.margin[k]
        place = np.linalg.norm(servo.output(q)[:3] - sample.flat_pose[:3])
        assert place <= found.corridor[k]
        shares = held / found.held[k], (np.abs(u) / found.torque[:, k]).max()
        tight = np.maximum(tight, [*shares, -found.margin[k] / servo.margin(q)])
    assert (tight > [0.6, 0.9, 0.97]).all()


@cache
def proved(wrong: bool = False, measured: bool = False) -> tuple[Case, Stored]:
    task, statement = flier(), WRONG if wrong else HELD
    servo = replace(task.servo, use_measured_velocity=True) if measured else task.servo
    given = (servo, task.reference, T, task.q0, task.s0)
    found = proof_of(Prover(*given, statement))
    return case_of_floater(*given), stored_of(found)


QUICK: list[tuple[str, Callable[[Stored], Stored]]] = [
    ("without a gap", lambda s: replace(s, first=s.first[::-1])),
    ("without a gap", lambda s: replace(s, first=s.first + 1)),
    ("without a gap", lambda s: replace(s, leaves=[np.zeros((1, 4), dtype=int)])),
    ("no segments, or more", lambda s: replace(s, count=10**6)),
    ("no segments, or more", lambda s: replace(s, count=0)),
    ("another shape", lambda s: replace(s, disturbance=s.disturbance[:, :1])),
    ("another shape", lambda s: replace(s, count=3, first=np.arange(3))),
    ("no bounds", lambda s: replace(s, disturbance=s.disturbance * np.nan)),
    ("no bounds", lambda s: replace(s, disturbance=-s.disturbance)),
    ("other robots", lambda s: stated(s, reading=Reading(place=0.1))),
    (
        "other robots",
        lambda s: stated(
            s, ground=Ground.of(cc.robots.rover_arm(), supports={"caster": (-0.5, 0.0, 0.0)})
        ),
    ),
    ("other robots", lambda s: stated(s, expressions=(Expression("bent", "angle(tool)", 9.0),))),
    ("other entries", lambda s: stated(s, torque_error=(1e-4,) * 5)),
    ("other quantities", lambda s: replace(s, bounds={})),
    ("is not that of the statement", lambda s: claim(s, "corridor", unit="mm")),
    ("is not that of the statement", lambda s: claim(s, "torque", limit=1e9)),
    ("exceeds the limit", lambda s: claim(stated(s, margin=9.0), "margin", limit=9.0)),
    ("but no bound", lambda s: stated(s, angles={"tool": (-1.0, 1.0)})),
]

SLOW: list[tuple[str, Callable[[Stored], Stored]]] = [
    ("is not below D", lambda s: replace(s, disturbance=s.disturbance * 0.7)),
    ("is not below D", lambda s: stated(s, period=0.002)),
    ("is not below D", lambda s: stated(s, delay=0.001)),
    # Torques from before the start count once, not for each segment of such a time.
    ("is not below D", lambda s: stated(s, period=1e14)),
    ("is not below D", lambda s: stated(s, torque_error=(1e-2,) * 6)),
    ("is not below D", lambda s: stated(s, push=(0.02,))),
    ("is not below D|exceeds", lambda s: stated(s, place=(3e-3,))),
    ("is not below D|exceeds", lambda s: stated(s, speed=(3e-3,))),
    ("exceeds the bound", lambda s: stated(s, heading=3e-3)),
    ("in the tube|not close|no bound", lambda s: stated(s, place=(0.05,))),
    ("in the tube|not close|no bound", lambda s: replace(s, disturbance=s.disturbance * 1e5)),
    ("exceeds the bound", lambda s: claim(s, "torque", -0.3)),
    ("exceeds the bound", lambda s: claim(s, "speed", -0.05)),
    ("exceeds the bound", lambda s: claim(s, "angle below", -0.1)),
    ("exceeds the bound", lambda s: claim(s, "angle above", 0.1)),
    ("exceeds the bound", lambda s: claim(s, "margin", 0.1)),
    ("exceeds the bound", lambda s: claim(s, "pivot", 0.1)),
    ("exceeds the bound", lambda s: claim(s, "corridor", -0.02)),
    ("exceeds the bound", lambda s: claim(s, "torque", float("nan"))),
]


@pytest.mark.slow
def test_a_short_proof_is_confirmed_and_not_one_of_another_motion() -> None:
    case, stored = proved()
    shares = list[float]()
    verify_floater(case, stored, shares.append)
    assert shares[-1] == 1.0
    task = flier()
    wrong = case_of_floater(task.servo, task.reference, T, task.q0 + 0.01 * np.eye(13)[9], task.s0)
    with pytest.raises(Rejection, match="exceeds"):
        verify_floater(wrong, stored)
    heavy = replace(case.flier.parts[3][0], mass=1.2 * case.flier.parts[3][0].mass)
    parts = [*case.flier.parts[:3], [heavy], *case.flier.parts[4:]]
    with pytest.raises(Rejection, match=r"exceeds|is not below D"):
        verify_floater(replace(case, flier=replace(case.flier, parts=parts)), stored)
    with pytest.raises(Rejection, match="exceeds"):
        verify_floater(replace(case, gains=(5.0, 4.0)), stored)
    with pytest.raises(Rejection, match="exceeds"):
        verify_floater(replace(case, momentum=1.5 * case.momentum), stored)


@pytest.mark.slow
@pytest.mark.parametrize("k", range(len(QUICK)))
def test_files_of_another_shape_are_not_confirmed(k: int) -> None:
    case, stored = proved()
    reason, change = QUICK[k]
    with pytest.raises(Rejection, match=reason), np.errstate(all="ignore"):
        verify_floater(case, change(stored))


@pytest.mark.slow
@pytest.mark.parametrize("k", range(len(SLOW)))
def test_lies_are_not_confirmed(k: int) -> None:
    case, stored = proved()
    reason, change = SLOW[k]
    with pytest.raises(Rejection, match=reason), np.errstate(all="ignore"):
        verify_floater(case, change(stored))


@pytest.mark.slow
@pytest.mark.parametrize(("pitch", "sole"), [(-0.02, True), (-0.002, False)])
def test_postures_near_a_singular_one_have_narrow_boxes_of_their_only_root(pitch, sole) -> None:
    """A wrist that is nearly straight: angles within 1 mrad are not the only ones there."""
    task = flier()
    q = np.array(task.q0)
    q[11] = pitch
    model = cc.reduce(task.robot, momentum=np.zeros(6))
    servo = cc.Servo(model, task.servo.outputs, stiffness=4.0, damping=4.0)
    hand, start = servo.output(q), np.eye(4)
    start[:3, :3], start[:3, 3] = Rotation.from_quat(hand[3:]).as_matrix(), hand[:3]
    still = references.screw(start, np.zeros(6), group="SE3")
    given = servo, still, 0.05, q, np.zeros(6)
    statement = Statement((1e-7,), (1e-7,), 1e-7)
    found = proof_of(Prover(*given, statement))
    if not sole:
        assert found.status is cc.Status.UNDECIDED
        return
    assert found.status is cc.Status.UNVERIFIED, found.sentence
    verify_floater(case_of_floater(*given), stored_of(found))
