"""Floaters: angles, speeds, rates and torques of states in the tube; verdicts of short proofs."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur._polynomials import Model
from concur.errors import OutputError
from concur.outputs import references
from concur.proofs import Expression, Ground, Reading, prove_task
from concur.proofs._decided import Decided
from concur.proofs._floater import Prover, proof_of
from concur.proofs._floating import Floater, averaged
from concur.proofs._recheck_floater import case_of_floater
from concur.proofs._recheck_smooth import Rejection
from concur.proofs._symbols import Symbols
from concur.proofs._variations import kernels
from concur.robot import Pose
from concur.show import proof_figure
from tests.proofs._flier import (
    EXAMPLES,
    NEAR,
    ball,
    base_deviation,
    candidate,
    deviated,
    flier,
    knee,
    prover,
)

SHORT = 0.05


@cache
def closed():
    """A short case with its tube and state; no disturbance but the push."""
    case = prover(SHORT)
    push = np.full(case.count, 1.1 * NEAR.push[0])
    state = case.tube.close(np.arange(case.count), push, np.zeros((2, case.count)))
    assert not isinstance(state, str), state
    return case, state, case.tube.radii


def drawn(case: Prover, rng: np.random.Generator, radii: np.ndarray):
    """A time, its segment, deviations, and the symbols' values there."""
    t = rng.uniform(0, case.count * case.length)
    k = min(int(t / case.length), case.count - 1)
    parts = [ball(rng, radius) for radius in radii[:, k]]
    d = np.array([2 * (t / case.length - k) - 1, *np.concatenate(parts / radii[:, [k]])])
    return t, k, parts, d


def holds(model, k: int, d: np.ndarray, value: float, slack: float) -> bool:
    """Whether a model contains a value; symbols beyond d are promoted remainders."""
    m = model.take(np.array([k]))
    more = np.abs(m.l[len(d) :]).sum()
    whole = np.concatenate([d, np.zeros(max(len(m.l) - len(d), 0))])[: len(m.l), None]
    # Products with promoted symbols: by their coefficients.
    second = m.space.pairs(len(m.l))[1]
    more += np.abs(m.q[second >= len(d)]).sum()
    return abs(m.at(whole)[0] - value) <= m.r[0] + more + slack


@pytest.mark.extended
def test_states_in_the_tube_have_the_angles_speeds_and_rates_of_the_models():
    case, state, radii = closed()
    servo, rng, tight = flier().servo, np.random.default_rng(1), 0
    robot = servo.model.robot
    for _ in range(6):
        t, k, parts, d = drawn(case, rng, radii)
        found = deviated(case, t, *parts)
        q, s = found[:13], found[13:]
        v = servo.velocity(q, s)
        for models, values in ((state.phi.models, q[7:]), (state.s, s), (state.base, v[:6])):
            for m, value in zip(models, values, strict=True):
                assert holds(m, k, d, value, 1e-8)
        # Rate of eta by central differences of the base's motion and of the candidate.
        h = 1e-5
        ends = [base_deviation(case, t + e, q + e * robot.rate(q, v)) for e in (h, -h)]
        if not k * case.length + h < t < (k + 1) * case.length - h:
            continue
        rate = (ends[0] - ends[1]) / (2 * h)
        for m, value in zip(state.rates[6:12], rate, strict=True):
            assert holds(m, k, d, value, 1e-6)
            tight += holds(m, k, d, value + 0.05, 0.0)
        sample = flier().reference(t)
        dynamics = servo.error_dynamics.rate(*servo.errors(q, s, sample.flat_pose, sample.twist))
        change = candidate(case, t)[1]
        for rows, part, own in ((slice(0, 6), dynamics[0], 0), (slice(12, 18), dynamics[1], 6)):
            for m, value in zip(state.rates[rows], part - change[own : own + 6], strict=True):
                assert holds(m, k, d, value, 1e-8)
    assert tight == 0  # an error of the rate by 0.05 is found


@pytest.mark.extended
def test_slopes_of_the_base_are_differences_of_its_rate():
    case, state, radii = closed()
    slopes = case.robot.slopes(case.declared.demand, state)
    servo, t, k, h = flier().servo, 0.5 * case.length, 0, 1e-4
    rows = np.zeros((6, 18))
    for j in range(18):
        ends = []
        for e in (h, -h):
            y = np.zeros(18)
            y[j] = e
            found = deviated(case, t, *np.split(y, 3))
            q, s = found[:13], found[13:]
            rate = servo.model.robot.rate(q, servo.velocity(q, s))
            pair = [base_deviation(case, t + z, q + z * rate) for z in (1e-5, -1e-5)]
            ends.append((pair[0] - pair[1]) / 2e-5)
        rows[:, j] = (ends[0] - ends[1]) / (2 * h)
    for b, slope in enumerate(slopes):
        mid = np.array([[m.c[k] for m in row] for row in slope])
        reach = np.array([[m.reach[k] for m in row] for row in slope])
        own = rows[:, 6 * b : 6 * b + 6]
        assert np.abs(mid - own).max() < 2e-3 + reach.max()
        assert np.abs(own).max() > 0.05
        # Half the slopes are not those of the motion.
        assert np.abs(mid / 2 - own).max() > 10 * np.abs(mid - own).max()
    assert radii.max() < 2e-3


def test_kernels_bound_motions_and_halved_matrices_do_not():
    rng, steps, h = np.random.default_rng(3), 40, 0.1
    base = np.array([[0.0, -1.0, 0.0], [4.0, -4.0, 0.0], [0.5, 0.3, 0.4]])
    matrices = base + 0.1 * rng.normal(size=(steps, 3, 3)) * (base != 0)
    own = kernels(matrices, (1, 1, 1), h, 2)
    force, start = np.full((3, 2 * steps), 0.01), np.array([0.1, 0.1, 0.1])
    bound = own.reached(start, force, np.arange(2 * steps))
    halved = kernels(matrices * [[1], [1], [0.5]], (1, 1, 1), h, 2)
    low = halved.reached(start, force, np.arange(2 * steps))
    worst = np.zeros((3, steps))
    for case in range(12):
        y, signs = start * rng.choice([-1, 1], size=3), rng.choice([-1, 1], size=3)
        if case == 0:
            y, signs = start * [1.0, 1.0, 1.0], np.ones(3)
        for k in range(steps):
            for _ in range(20):
                y = y + h / 20 * (matrices[k] @ y + 0.01 * signs)
                assert (np.abs(y) <= bound[:, 2 * k]).all()
                worst[:, k] = np.maximum(worst[:, k], np.abs(y))
    assert (worst[2] > low[2, ::2]).any()
    assert bound[2, -1] < 1.3 * worst[2, -1]


def test_references_that_jump_within_a_segment_are_rejected():
    middle, half = np.array([0.5, 1.5, 2.5]), np.full(3, 0.5)
    Decided(knee(3), "here").check_continuity(middle, half)
    for power in (1, 0):
        with pytest.raises(OutputError, match=r"a jump at 1\.2345"):
            Decided(knee(power), "here").check_continuity(middle, half)


@pytest.mark.slow
def test_limits_decide_on_both_sides_of_the_bound():
    task = flier()
    given = (task.servo, task.reference, SHORT / 2, task.q0, task.s0)
    first = proof_of(Prover(*given, NEAR))
    assert first.status is cc.Status.UNVERIFIED
    bound = next(b for b in first.bounds if (b.kind, b.name) == ("torque", "forearm"))
    for factor, status in ((1.001, cc.Status.UNVERIFIED), (0.999, cc.Status.UNDECIDED)):
        limits = {"forearm": factor * bound.value}
        found = proof_of(Prover(*given, replace(NEAR, torques=limits)))
        assert found.status is status
        assert (status is cc.Status.UNVERIFIED) == ("forearm" not in found.reason)


@pytest.mark.slow
def test_what_is_not_covered_is_undecided_or_rejected():
    task = flier()
    given = (task.servo, task.reference, SHORT / 2, task.q0, task.s0)
    wide = proof_of(Prover(*given, replace(NEAR, place=(0.05,), heading=0.05)))
    assert wide.status is cc.Status.UNDECIDED
    assert "from 0.00 s" in wide.reason
    # The parts of the deviation are named; those of the starts are nearly all.
    share = re.search(
        r"the base deviates by up to ([\d.]+) \(m, rad\), ([\d.]+) by starts", wide.reason
    )
    whole, starts = map(float, share.groups())
    assert 0.05 < starts <= whole < 1.2 * starts
    assert wide.cure.startswith("Take a nearer start")
    late = proof_of(Prover(*given, replace(NEAR, period=0.05)))
    assert late.status is cc.Status.UNDECIDED
    assert proof_of(Prover(*given, replace(NEAR, period=1e9))).status is cc.Status.UNDECIDED
    share = re.search(r"largest disturbance is period and delay, (\S+) of (\S+) m", late.reason)
    own, total = map(float, share.groups())
    assert 0.9 * total < own <= total
    assert late.cure.startswith("Take a shorter period or delay")
    for option, value in (("damping_threshold", 0.1), ("integral", 1.0), ("torque_limits", 9.0)):
        with pytest.raises(OutputError) as caught:
            proof_of(Prover(replace(task.servo, **{option: value}), *given[1:], NEAR))
        assert caught.value.came == option  # the one that is in the way


@pytest.mark.extended
@pytest.mark.parametrize(
    "others",
    [
        {"reading": Reading(place=1e-4)},
        {"expressions": (Expression("bent", "angle(tool)", 9.0),)},
        {"ground": Ground.of(cc.robots.rover_arm(), supports={"caster": (-0.5, 0.0, 0.0)})},
    ],
    ids=lambda others: next(iter(others)),
)
def test_statements_of_other_robots_are_rejected(others):
    with pytest.raises(OutputError, match="no distances, expressions, loads or errors"):
        prover(SHORT, replace(NEAR, **others))


@pytest.mark.extended
@pytest.mark.parametrize(("reach", "followed"), [(0.2, True), (5.0, False)])
def test_a_declared_motion_beyond_the_reach_is_rejected_with_its_time(reach, followed):
    task, duration = flier(), 0.5
    pose = task.reference(0.0).flat_pose
    start = np.eye(4)
    start[:3, :3], start[:3, 3] = Rotation.from_quat(pose[3:]).as_matrix(), pose[:3]
    line = references.screw(start, [reach / duration, *np.zeros(5)], group="SE3")
    given = (task.servo, line, duration, task.q0, task.s0, NEAR)
    if followed:
        assert np.isfinite(Prover(*given).declared.path).all()
        return
    with pytest.raises(OutputError, match=r"none after 0\.\d+ s, .* singular"):
        Prover(*given)


def test_a_base_with_a_placement_is_rejected():
    """The pose of the base would count from another frame than the reference."""
    task = flier()
    first, *rest = task.robot.bodies
    placed = replace(task.robot, bodies=(replace(first, placement=Pose((0.05, 0, 0))), *rest))
    servo = replace(task.servo, model=cc.reduce(placed, momentum=task.servo.model.momentum))
    with pytest.raises(OutputError, match="without placement"):
        proof_of(Prover(servo, task.reference, SHORT, task.q0, task.s0, NEAR))


@pytest.mark.extended
def test_a_law_whose_inertia_is_no_number_is_rejected():
    """I^-1 B(x)^T KP x is another pull than kp B(x)^T x, although I^-1 KP is a number."""
    task, inertia = flier(), np.diag([1.0, 1.0, 1.0, 0.25, 0.25, 0.25])
    given = task.reference, SHORT, task.q0, task.s0
    for matrix, sound in ((inertia, False), (0.25 * np.eye(6), True)):
        gains = {"stiffness": 4.0 * matrix, "damping": 4.0 * matrix, "inertia": matrix}
        servo = cc.Servo(task.servo.model, task.servo.outputs, **gains)
        if sound:
            robot = Floater(servo, Symbols(wrong=False))
            assert (robot.stiffness, robot.damping) == (4.0, 4.0)
            assert case_of_floater(servo, *given).gains == (4.0, 4.0)
            continue
        with pytest.raises(OutputError, match="one number as the inertia"):
            Floater(servo, Symbols(wrong=False))
        with pytest.raises(Rejection, match="one number as the inertia"):
            case_of_floater(servo, *given)


@pytest.mark.slow
def test_tasks_of_floaters_are_proved_with_one_hand(tmp_path):
    text = (
        (EXAMPLES / "free_floater.toml").read_text().replace("duration = 24.0", "duration = 0.05")
    )
    text = text.replace("evaluate_after = 12.0", "evaluate_after = 0.02")
    path = tmp_path / "task.toml"
    path.write_text(text + "\n[proof]\nplace = 2e-4\nspeed = 2e-4\nheading = 2e-4\n")
    proof = prove_task(cc.load_task(path))
    assert proof.status is cc.Status.UNVERIFIED
    assert proof.x.shape == proof.disturbance.shape == (1, len(proof.wall))
    assert proof.base == "base pose"
    assert "0.0002 (m/s, rad/s) and 0.0002 (m, rad) of base pose of the declared" in proof.sentence
    tube = proof.details["tube"]
    assert tube["base_pose"] == proof.wall.tolist()
    assert "heading" not in tube
    labels = [axes.get_ylabel() for axes in proof_figure(proof, ["hand"], 0.05).axes]
    assert labels[:2] == ["pose [mm, mrad]", "[mm, mrad]"]


def constants(space, values) -> list:
    """Models of numbers."""
    return [space.constant(float(v)) for v in values]


def middles(models) -> np.ndarray:
    """Values of models in the middle."""
    return np.array([float(np.ravel(m.c)[0]) for m in np.ravel(models)])


def test_poses_and_rates_of_a_base_that_is_turned_far_are_those_of_scipy():
    """The terms of second order in the deviation, which thin tubes do not show."""
    robot, rng, h = Floater(flier().servo, Symbols(wrong=False)), np.random.default_rng(5), 1e-6
    space, mu = robot.symbols.space, np.array(flier().servo.model.momentum)
    given, rate = rng.normal(size=7), 0.1 * rng.normal(size=7)
    given[:4] /= np.linalg.norm(given[:4])
    pose = np.concatenate([rng.normal(size=3), Rotation.random(random_state=3).as_quat()])
    eta, twist, none = np.array([0.1, -0.2, 0.3, 0.9, -0.5, 0.4]), rng.normal(size=6), np.zeros(6)

    def own(candidate: np.ndarray, way: np.ndarray) -> tuple[Rotation, np.ndarray]:
        side = np.sqrt(1 - way[3:] @ way[3:] / 4)
        turn = Rotation.from_quat(candidate[:4])
        place = candidate[4:] + turn.apply(way[:3])
        return turn * Rotation.from_quat([*way[3:] / 2, side]), place

    turn, at = own(given, eta)
    parts = [pose, none, np.zeros(5), given, eta]
    relative, carried = robot.geometry(*(constants(space, part) for part in parts))
    hand = (turn.inv() * Rotation.from_quat(pose[3:])).as_matrix()
    expected = np.concatenate([turn.inv().apply(pose[:3] - at), hand.ravel(order="F")])
    assert np.abs(middles(relative) - expected).max() < 1e-12
    expected = [turn.inv().apply(mu[:3]), turn.inv().apply(mu[3:] - np.cross(at, mu[:3]))]
    assert np.abs(middles(carried) - np.concatenate(expected)).max() < 1e-12
    # The base moves with a twist, its candidate at a rate: the deviation by both motions.
    ends = []
    for e in (h, -h):
        there = given + e * rate
        moved = at + e * turn.apply(twist[:3]), turn * Rotation.from_rotvec(e * twist[3:])
        back = Rotation.from_quat(there[:4]).inv()
        apart = (back * moved[1]).as_quat()
        ends.append(np.concatenate([back.apply(moved[0] - there[4:]), 2 * apart[:3]]))
        ends[-1][3:] *= np.sign(apart[3])
    found = robot.base_rate(*(constants(space, part) for part in (given, rate, eta, twist)))[0]
    assert np.abs(middles(found) - (ends[0] - ends[1]) / (2 * h)).max() < 1e-8


def test_means_of_models_on_the_way_to_a_point_are_integrals():
    space, rng = Symbols(wrong=True).space, np.random.default_rng(6)
    end, n = 25, 31
    pairs = len(space.pairs(n)[0])
    linear, quadratic = rng.normal(size=(n, 1)), rng.normal(size=(pairs, 1))
    m = Model(space, rng.normal(size=1), linear, quadratic, np.array([0.3]))
    mean, d = averaged(m, end), rng.uniform(-1, 1, size=(n, 1))
    nodes, weights = np.polynomial.legendre.leggauss(3)
    on_the_way = np.ones((3, n, 1))
    on_the_way[:, 1:end] = (nodes[:, None, None] + 1) / 2
    values = [m.at(d * share)[0] for share in on_the_way]
    assert mean.at(d)[0] == pytest.approx(weights @ values / 2, rel=1e-12)
    assert 0.3 <= mean.r[0] < 0.3 * (1 + 1e-9)


@pytest.mark.extended
def test_models_of_a_spline_enclose_its_cubics_and_no_more():
    case, rng = prover(SHORT), np.random.default_rng(7)
    declared = case.declared
    sound = declared.cubics.copy()
    try:
        declared.cubics = rng.normal(size=sound.shape)
        for parts in (1, 2):
            demand = declared._demand(parts)
            values = [*demand.x, *demand.ve, *demand.base]
            rates = [*demand.x_rate, *demand.ve_rate, *demand.base_rate]
            worst = np.zeros((len(values), parts * case.count))
            for place in np.linspace(-1, 1, 9):
                d = np.full((1, parts * case.count), place)
                for k in range(parts * case.count):
                    whole = (2 * (k % parts) + 1 + place) / parts - 1
                    c = declared.cubics[..., k // parts]
                    exact = sum(c[i] * whole**i for i in range(4))
                    slope = sum(i * c[i] * whole ** (i - 1) for i in range(1, 4))
                    for i, (m, n) in enumerate(zip(values, rates, strict=True)):
                        off = abs(m.at(d)[k] - exact[i])
                        assert off <= m.r[k] * (1 + 1e-9) + 1e-12
                        worst[i, k] = max(worst[i, k], off / m.r[k])
                        off = abs(n.at(d)[k] - slope[i] * 2 / case.length)
                        assert off <= n.r[k] + 1e-9 * abs(slope[i] / case.length)
            assert (worst > 0.99).all()
    finally:
        declared.cubics = sound
