"""Floaters with wrong masses and momentum: true states, accelerations and torques are inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import OutputError
from concur.outputs import references
from concur.proofs import Statement, prove_task, sample_statement
from concur.proofs._floater import Prover, proof_of
from concur.proofs._floater_quantities import UNSEEN
from concur.proofs._recheck_flight import BALLS, course, state
from concur.proofs._recheck_floater import _errors, _rate, case_of_floater, verify_floater
from concur.proofs._recheck_tube import curve
from concur.proofs._recheck_wrenches import needs
from concur.robot import Mechanism
from concur.simulation import Plant
from tests.proofs._flier import EXAMPLES, NEAR, base_deviation, deviated, encloses, flier
from tests.proofs._restated import restated
from tests.proofs._stored import stored_of
from tests.proofs.test_floater import drawn, holds

EPS, H = 0.002, 1e-5
WRONG = replace(NEAR, push=(), masses=EPS, momentum_error=(EPS, 2 * EPS))
BOTH = pytest.mark.parametrize("measured", [True, False])


@cache
def law(measured: bool) -> cc.Servo:
    return replace(flier().servo, use_measured_velocity=True) if measured else flier().servo


def closed(measured: bool):
    """A case of 0.05 s, its state, bounds, and the candidates that they confirm."""
    task = flier()
    case = Prover(law(measured), task.reference, 0.05, task.q0, task.s0, WRONG)
    some, candidate = np.arange(case.count), np.full((5, case.count), 1e-6)
    for _ in range(8):
        state = case.tube.close(some, candidate[0], candidate[1:3])
        assert not isinstance(state, str), state
        found = case.quantities(case.declared.demand, state, candidate[0], candidate[3:])
        sources = found.disturbances(WRONG, [], case.length)
        total = np.vstack([sum(sources.values()), *found.wrong(WRONG)])
        if (total < candidate).all():
            return case, state, found, candidate
        candidate = np.where(total < candidate, candidate, 1.1 * total + 1e-6)
    raise AssertionError("the candidates do not close")


def robot_of(rng: np.random.Generator, corner: bool) -> Mechanism:
    """The robot with other masses."""
    robot = flier().servo.model.robot
    n = len(robot.bodies)
    shares = EPS * (rng.choice([-1, 1], size=n) if corner else rng.uniform(-1, 1, size=n))
    bodies = [
        replace(
            body,
            inertia=replace(
                body.inertia,
                mass=body.inertia.mass * (1 + share),
                moments=tuple(np.array(body.inertia.moments) * (1 + share)),
            ),
        )
        for body, share in zip(robot.bodies, shares.tolist(), strict=True)
    ]
    return replace(robot, bodies=bodies)


def in_base(q: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """A spatial momentum in axes of the base, about its origin."""
    back = Rotation.from_quat(q[3:7]).inv()
    return np.concatenate([back.apply(mu[:3]), back.apply(mu[3:] - np.cross(q[:3], mu[:3]))])


def edge(rng: np.random.Generator, radius: float) -> np.ndarray:
    way = rng.normal(size=3)
    return radius * way / np.linalg.norm(way)


@dataclass
class Moment:
    """A true state of a robot with other masses and momentum, and what the law does there."""

    t: float
    k: int
    symbols: np.ndarray
    q: np.ndarray
    v: np.ndarray
    rate: np.ndarray
    modelled: np.ndarray
    error: np.ndarray
    momentum: np.ndarray
    torque: np.ndarray
    wrench: np.ndarray
    push: float
    change: np.ndarray
    gain: np.ndarray


def moments(case: Prover, measured: bool, count: int) -> Iterator[Moment]:
    """True states in a tube, by the robot's own equations and differences."""
    plain, servo, task = flier().servo, law(measured), flier()
    robot, rng = servo.model.robot, np.random.default_rng(0)
    own = np.array(servo.model.momentum)
    for trial in range(count):
        t, k, parts, d = drawn(case, rng, case.tube.radii)
        if not k * case.length + H < t < (k + 1) * case.length - H:
            continue
        true, mu = robot_of(rng, bool(trial % 2)), own.copy()
        mu[:3] += edge(rng, EPS)
        mu[3:] += edge(rng, 2 * EPS)
        found = deviated(case, t, *parts)
        q = found[:13]
        wanted = plain.motion(q, plain.model.velocity(q, found[13:]))[0]
        slopes = np.column_stack([plain.motion(q, one)[0] for one in np.eye(12)])
        rows = np.vstack([true.mass_matrix(q)[:6], slopes])
        v = np.linalg.solve(rows, np.concatenate([in_base(q, mu), wanted]))
        momentum = robot.mass_matrix(q)[:6] @ v

        def base_rate(v: np.ndarray, t=t, q=q) -> np.ndarray:
            ends = [base_deviation(case, t + e, q + e * robot.rate(q, v)) for e in (H, -H)]
            return (ends[0] - ends[1]) / (2 * H)

        rows = np.vstack([robot.mass_matrix(q)[:6], slopes])
        modelled = np.linalg.solve(rows, np.concatenate([in_base(q, own), wanted]))
        u = servo.torque(q, v if measured else v[6:], task.reference(t))
        vdot = Plant(true).acceleration(q, v, u)[0]
        wrench = robot.mass_matrix(q)[:6] @ vdot + robot.bias(q, v)[:6]

        def at(e: float, q=q, v=v, vdot=vdot, t=t):
            """Errors and torque a moment later."""
            there, speed = robot.integrate(q, e * v + e * e / 2 * vdot), v + e * vdot
            sample = task.reference(t + e)
            torque = servo.torque(there, speed if measured else speed[6:], sample)
            return law(True).errors(there, speed, sample.flat_pose, sample.twist), torque

        (after, late), (before, early) = at(H), at(-H)
        pulled = plain.error_dynamics.rate(*at(0.0)[0])[1]
        yield Moment(
            t,
            k,
            d,
            q,
            v,
            base_rate(v),
            base_rate(modelled),
            momentum - in_base(q, own),
            momentum,
            u,
            wrench,
            float(np.linalg.norm((after[1] - before[1]) / (2 * H) - pulled)),
            (late - early) / (2 * H),
            plain.decoupling(q) @ np.linalg.inv(plain.model.mass_matrix(q)),
        )


def sizes_of(vector: np.ndarray) -> np.ndarray:
    return np.array([np.linalg.norm(vector[:3]), np.linalg.norm(vector[3:])])


@pytest.mark.slow
@BOTH
def test_true_states_accelerations_and_torques_are_bounded(measured) -> None:
    case, found, bounds, radii = closed(measured)
    shares, missed = np.zeros(3), 0
    for now in moments(case, measured, 30):
        k, sizes = now.k, sizes_of(now.error)
        assert (sizes <= radii[1:3, k]).all()
        pair = now.error[:3] / radii[1, k], now.error[3:] / radii[2, k]
        symbols = np.concatenate([now.symbols, *pair])

        def inside(models, values, slack, k=k, symbols=symbols):
            return all(
                holds(m, k, symbols, value, slack) for m, value in zip(models, values, strict=True)
            )

        assert inside(found.s, now.v[6:], 1e-7)
        assert inside(found.base, now.v[:6], 1e-7)
        assert inside(found.momentum, now.momentum, 1e-7)
        assert inside(found.rates[6:12], now.rate, 1e-6)
        # With the momentum of the model it would be another rate.
        missed += not inside(found.rates[6:12], now.modelled, 1e-6)
        assert (np.abs(now.torque) <= bounds.torque[:, k]).all()
        assert (sizes_of(now.wrench) <= radii[3:, k]).all()
        assert (np.abs(now.change) <= bounds.torque_rate[:, k]).all()
        own = now.push / (EPS * bounds.weights[k] + bounds.unseen[k])
        held = np.linalg.norm(now.gain @ now.change) / bounds.held[k]
        shares = np.maximum(shares, [own, held, (sizes / radii[1:3, k]).max()])
    assert (shares <= 1.0).all()
    assert (shares > [0.3, 0.7, 0.4]).all()
    assert missed > 5


@pytest.mark.slow
@BOTH
def test_the_checker_bounds_true_states_accelerations_and_torques(measured) -> None:
    case, _, _, radii = closed(measured)
    task, n = flier(), case.count
    own = case_of_floater(law(measured), task.reference, 0.05, task.q0, task.s0)
    values, cubics = curve(lambda t, y: _rate(own, t, y), own.start, n, case.length)
    guess = (values[19:, :-1] + values[19:, 1:]) / 2
    way = course(own.formula, own.momentum, cubics, guess, np.arange(n), case.length)
    # The curves differ by rounding.
    here = state(own.flier, own.gains, way, case.tube.radii + 1e-9, radii[1:3])
    assert here.sound.all()
    found = needs(
        own.flier, own.gains, own.scales, way, here, radii[0], radii[3:] + 1e-12, own.measured
    )
    assert (_errors(WRONG, way, here, case.tube.radii[1]) <= 1.05 * radii[1:3]).all()
    assert (EPS * found.wrenches <= 1.05 * radii[3:]).all()
    shares, missed = np.zeros(4), 0
    for now in moments(case, measured, 30):
        k, sizes = now.k, sizes_of(now.error)
        pair = now.error[:3] / radii[1, k], now.error[3:] / radii[2, k]
        xi = np.concatenate([now.symbols, *pair])
        assert encloses(here.s, k, xi, now.v[6:], 1e-7)
        assert encloses(here.base, k, xi, now.v[:6], 1e-7)
        assert encloses(here.rates[1], k, xi, now.rate, 1e-6)
        missed += not encloses(here.rates[1], k, xi, now.modelled, 1e-6)
        assert (sizes <= _errors(WRONG, way, here, case.tube.radii[1])[:, k]).all()
        assert (np.abs(now.torque) <= found.torque[:, k]).all()
        assert (np.abs(now.change) <= found.torque_rate[:, k]).all()
        shares = np.maximum(
            shares,
            [
                now.push / (EPS * found.weights[k] + found.unseen[k]),
                np.linalg.norm(now.gain @ now.change) / found.held[k],
                (sizes / _errors(WRONG, way, here, case.tube.radii[1])[:, k]).max(),
                (sizes_of(now.wrench) / (EPS * found.wrenches[:, k])).max(),
            ],
        )
    assert (shares <= 1.0).all()
    assert (shares > [0.2, 0.6, 0.4, 0.2]).all()
    assert missed > 5


def task(measured: bool, statement: Statement, duration: float) -> SimpleNamespace:
    own = cc.load_task(EXAMPLES / "free_floater_proved.toml")
    return restated(
        own,
        statement,
        duration,
        replace(own.servo, use_measured_velocity=True) if measured else None,
    )


THIN = Statement((2e-5,), (2e-5,), 2e-5, period=1e-3, masses=1e-3, momentum_error=(1e-3, 1e-3))


@pytest.mark.slow
@BOTH
def test_worlds_of_other_masses_and_momentum_are_inside(measured) -> None:
    own = task(measured, THIN, 0.1)
    proof = prove_task(own)
    assert proof.status is cc.Status.UNVERIFIED, proof.sentence
    assert "masses within 0.1 %" in proof.sentence
    assert "a momentum within 0.001 kg m/s and 0.001 kg m^2/s" in proof.sentence
    assert (UNSEEN in proof.sources) is not measured
    found = sample_statement(own, 300, proof=proof, keep=0)
    assert found.outside(proof) == ()
    assert (found.stopped, found.excess > 0.5) == (0, True)
    # The same worlds leave the tube of the model's own masses and momentum.
    still = prove_task(task(measured, replace(THIN, masses=0.0, momentum_error=()), 0.1))
    assert still.wall.max() < 0.9 * proof.wall.max()
    assert found.outside(still)


@pytest.mark.slow
def test_a_law_that_measures_the_base_is_the_cure_of_errors_that_are_too_large() -> None:
    large = replace(THIN, masses=0.01)
    found = prove_task(task(False, large, 0.1))
    assert found.status is cc.Status.UNDECIDED
    assert "masses" in found.reason or UNSEEN in found.reason
    assert "`use_measured_velocity`" in found.cure
    assert prove_task(task(True, large, 0.1)).status is cc.Status.UNVERIFIED


def test_momentum_errors_have_two_radii() -> None:
    with pytest.raises(OutputError, match="a linear and an angular radius"):
        replace(THIN, momentum_error=(0.1,))
    with pytest.raises(OutputError, match="not negative"):
        replace(THIN, momentum_error=(0.1, -0.1))


@pytest.mark.extended
def test_the_checker_has_the_effects_of_errors_and_wrenches_of_the_law() -> None:
    """At one state, where bounds are norms of linear maps."""
    task, t, size = flier(), 0.8, 1e-7
    plain, measured = law(False), law(True)
    pose, start = task.reference(0.0).flat_pose, np.eye(4)
    start[:3, :3], start[:3, 3] = Rotation.from_quat(pose[3:]).as_matrix(), pose[:3]
    reference = references.screw(start, [0.1, -0.2, 0.15, 0.3, 0.2, -0.25], group="SE3")
    own = case_of_floater(plain, reference, 0.05, task.q0, task.s0)
    step = 1e-8
    k = round(t / step)
    q = np.array(task.q0)
    s0 = np.array([0.11, -0.07, 0.05, 0.13, -0.09, 0.06])
    sample = reference(t)
    robot, model = plain.model.robot, plain.model
    x, ve = plain.errors(q, s0, sample.flat_pose, sample.twist)
    y = np.concatenate([x, ve, q[3:7], q[:3], q[7:]])
    rate = _rate(own, t, y)
    cubic = np.array([y, rate * step / 2, 0 * y, 0 * y])
    cubics = np.broadcast_to(cubic[..., None], (4, 25, k + 1))
    guess = np.broadcast_to(q[7:, None], (6, k + 1))
    way = course(own.formula, own.momentum, cubics, guess, np.array([k]), step)
    slopes = np.column_stack([plain.motion(q, one)[0] for one in np.eye(12)])
    rows = np.vstack([robot.mass_matrix(q)[:6], slopes])
    gain = plain.decoupling(q) @ np.linalg.inv(model.mass_matrix(q))
    wanted = plain.motion(q, model.velocity(q, s0))[0]
    momentum = in_base(q, np.array(model.momentum))

    def unseen(e: np.ndarray) -> np.ndarray:
        v = np.linalg.solve(rows, np.concatenate([momentum + e, wanted]))
        return gain @ (plain.torque(q, v[6:], sample) - measured.torque(q, v, sample))

    def change(servo: cc.Servo, e: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Rate of the law's torques, where the hand's acceleration is the commanded one."""
        v = np.linalg.solve(rows, np.concatenate([momentum + e, wanted]))
        force = np.concatenate([np.zeros(6), measured.torque(q, v, sample)]) - robot.bias(q, v)
        mass = robot.mass_matrix(q)
        lifted = np.linalg.solve(mass, np.concatenate([w, np.zeros(6)]))
        torque = np.linalg.solve(gain, -slopes @ lifted)
        vdot = lifted + np.linalg.solve(mass, force + np.concatenate([np.zeros(6), torque]))
        ends = []
        for h in (H, -H):
            there, speed = robot.integrate(q, h * v + h * h / 2 * vdot), v + h * vdot
            given = speed if servo.use_measured_velocity else speed[6:]
            ends.append(servo.torque(there, given, reference(t + h)))
        return (ends[0] - ends[1]) / (2 * H)

    none, zero = np.zeros((2, 1)), np.zeros(6)

    def bounds(errors: np.ndarray, missing: np.ndarray, by_sensor: bool):
        here = state(own.flier, own.gains, way, np.full((3, 1), 1e-12), errors)
        given = (own.flier, own.gains, own.scales, way, here, np.zeros(1))
        return needs(*given, missing, by_sensor)

    def slope(effect, units: np.ndarray) -> np.ndarray:
        columns = [(effect(1e-3 * e) - effect(-1e-3 * e)) / 2e-3 for e in units]
        return np.column_stack(columns)

    for block in (0, 1):
        radii = none.copy()
        radii[block] = size
        units = np.eye(6)[3 * block : 3 * block + 3]
        found, still = (bounds(errors, none, False) for errors in (radii, none))
        whole = np.linalg.norm(slope(unseen, units), 2) * size
        assert found.unseen[0] == pytest.approx(whole, rel=5e-3)
        grown = (found.torque_rate - still.torque_rate)[:, 0]
        whole = np.linalg.norm(slope(lambda e: change(plain, e, zero), units), axis=1) * size
        assert (grown > 0.998 * whole).all()
        assert (grown < 1.25 * whole + 1e-5 * whole.max()).all()
        found, still = (bounds(none, missing, True) for missing in (radii, none))
        grown = (found.torque_rate - still.torque_rate)[:, 0]
        whole = np.linalg.norm(slope(lambda w: change(measured, zero, w), units), axis=1) * size
        assert (grown > 0.998 * whole).all()
        assert (grown < 1.25 * whole + 1e-5 * whole.max()).all()


def test_errors_of_the_momentum_grow_with_the_distance_from_the_origin() -> None:
    way = SimpleNamespace(far=np.array([2.0]))
    given = replace(NEAR, momentum_error=(1.0, 0.5))
    found = _errors(given, way, None, np.array([0.1]))
    np.testing.assert_allclose(found, [[1.0], [0.5 + 2.1]])


@pytest.mark.slow
def test_forces_that_the_law_does_not_see_are_those_of_its_torques() -> None:
    """A robot at rest with a large error of its momentum: slopes are those half way to it."""
    task, none = flier(), np.zeros(6)
    model = cc.reduce(task.robot, momentum=none)
    plain = cc.Servo(model, task.servo.outputs, stiffness=4.0, damping=1e-3)
    q = np.array(task.q0)
    hand, start = plain.output(q), np.eye(4)
    start[:3, :3], start[:3, 3] = Rotation.from_quat(hand[3:]).as_matrix(), hand[:3]
    still = references.screw(start, none, group="SE3")
    case = Prover(plain, still, 0.05, q, none, WRONG)
    demand, n = case.declared.demand, case.count
    thin, zero = np.full((3, n), 1e-9), np.zeros((2, n))
    here, space = case.robot.state(demand, thin, zero), case.robot.symbols.space
    own = case_of_floater(plain, still, 0.05, q, none)
    values, cubics = curve(lambda t, y: _rate(own, t, y), own.start, n, case.length)
    guess = (values[19:, :-1] + values[19:, 1:]) / 2
    way = course(own.formula, own.momentum, cubics, guess, np.arange(n), case.length)
    there = state(own.flier, own.gains, way, thin, zero)
    slopes = np.column_stack([plain.motion(q, one)[0] for one in np.eye(12)])
    rows = np.vstack([task.robot.mass_matrix(q)[:6], slopes])
    gain = plain.decoupling(q) @ np.linalg.inv(model.mass_matrix(q))
    measured = replace(plain, use_measured_velocity=True)

    def true(error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Velocity at a hand at rest, and what the law does not see there."""
        v = np.linalg.solve(rows, np.concatenate([error, none]))
        both = plain.torque(q, v[6:], still(0.0)), measured.torque(q, v, still(0.0))
        return v, gain @ (both[0] - both[1])

    for error in 2.0 * np.random.default_rng(11).normal(size=(3, 6)):
        v, unseen = true(error)
        size = np.abs(unseen).max()
        # Nearly all of it is of second order.
        assert np.abs(unseen - 4.0 * true(error / 2)[1]).max() < 0.05 * size
        known, s = ([space.constant(float(x)) for x in part] for part in (error, v[6:]))
        momentum = [m + e for m, e in zip(here.modelled, known, strict=True)]
        constants = [space.constant(0.0)] * 6
        moved = replace(here, error=known, momentum=momentum, s=s)
        view = case.quantities._view(demand, moved, constants, constants)
        parts = view.accelerations, view.forces
        found = [np.array([float(m.c[0]) for m in part]) for part in parts]
        np.testing.assert_allclose(found[0] - gain @ found[1], unseen, atol=1e-6 * size)
        fixed = {"error": error, "base": v[:6], "s": v[6:], "zeta": none}
        plains = {
            name: BALLS.plain(np.repeat(part[:, None], n, axis=1)) for name, part in fixed.items()
        }
        given = own.flier, own.gains, own.scales, way, replace(there, **plains), np.zeros(n)
        bound = needs(*given, zero, False).unseen
        np.testing.assert_allclose(bound, np.linalg.norm(unseen), rtol=1e-5)


@pytest.mark.slow
def test_bounds_do_not_depend_on_the_unit_of_mass() -> None:
    task, found = flier(), []
    statement = replace(WRONG, masses=1e-3, push=(1e-4,), period=1e-3)
    for unit in (1.0, 1e-4):
        bodies = []
        for body in task.robot.bodies:
            own = body.inertia
            moments = tuple((unit * np.array(own.moments)).tolist())
            heavy = replace(own, mass=unit * own.mass, moments=moments)
            bodies.append(replace(body, inertia=heavy))
        robot = replace(task.robot, bodies=bodies)
        model = cc.reduce(robot, momentum=unit * np.array(task.servo.model.momentum))
        servo = cc.Servo(model, task.servo.outputs, stiffness=4.0, damping=4.0)
        own = replace(
            statement,
            momentum_error=(unit * 1e-3, unit * 1e-3),
            torque_error=(unit * 1e-4,) * 6,
        )
        given = servo, task.reference, 0.025, task.q0, task.s0
        proof = proof_of(Prover(*given, own))
        assert proof.status is cc.Status.UNVERIFIED, proof.sentence
        verify_floater(case_of_floater(*given), stored_of(proof))
        sizes = [b.value / (unit if b.kind == "torque" else 1.0) for b in proof.bounds]
        found.append([*sizes, *proof.wall, *proof.disturbance.ravel()])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
