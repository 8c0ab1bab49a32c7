"""Floaters with wrong masses and momentum: true states, accelerations and torques are inside."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import OutputError
from concur.multibody import Mechanism, with_numbers
from concur.proofs import Statement, prove_task, sample_statement
from concur.proofs._floater import Prover
from concur.proofs._floater_quantities import UNSEEN
from concur.simulation import Plant
from tests.proofs._flier import EXAMPLES, NEAR, base_deviation, deviated, flier
from tests.proofs._restated import restated
from tests.proofs.test_floater import drawn, holds

EPS, H = 0.002, 1e-5
WRONG = replace(NEAR, push=(), masses=EPS, momentum_error=(EPS, 2 * EPS))
BOTH = pytest.mark.parametrize("measured", [True, False])


def law(measured: bool) -> cc.Servo:
    return flier().servo.as_measured if measured else flier().servo


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
    return with_numbers(robot, bodies, robot.wheels, robot.drives)


def in_base(q: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """A spatial momentum in axes of the base, about its origin."""
    back = Rotation.from_quat(q[3:7]).inv()
    return np.concatenate([back.apply(mu[:3]), back.apply(mu[3:] - np.cross(q[:3], mu[:3]))])


def edge(rng: np.random.Generator, radius: float) -> np.ndarray:
    way = rng.normal(size=3)
    return radius * way / np.linalg.norm(way)


@pytest.mark.slow
@BOTH
def test_true_states_accelerations_and_torques_are_bounded(measured) -> None:
    case, state, bounds, radii = closed(measured)
    plain, servo, task = flier().servo, law(measured), flier()
    robot, rng = servo.model.robot, np.random.default_rng(0)
    own = np.array(servo.model.momentum)
    shares, missed = np.zeros(3), 0
    for trial in range(30):
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
        error = momentum - in_base(q, own)
        sizes = np.array([np.linalg.norm(error[:3]), np.linalg.norm(error[3:])])
        assert (sizes <= radii[1:3, k]).all()
        symbols = np.concatenate([d, error[:3] / radii[1, k], error[3:] / radii[2, k]])

        def inside(models, values, slack, k=k, symbols=symbols):
            return all(
                holds(m, k, symbols, value, slack) for m, value in zip(models, values, strict=True)
            )

        assert inside(state.s, v[6:], 1e-7)
        assert inside(state.base, v[:6], 1e-7)
        assert inside(state.momentum, momentum, 1e-7)
        ends = [base_deviation(case, t + e, q + e * robot.rate(q, v)) for e in (H, -H)]
        rate = (ends[0] - ends[1]) / (2 * H)
        assert inside(state.rates[6:12], rate, 1e-6)
        # With the momentum of the model it would be another rate.
        modelled = np.linalg.solve(
            np.vstack([robot.mass_matrix(q)[:6], slopes]),
            np.concatenate([in_base(q, own), wanted]),
        )
        ends = [base_deviation(case, t + e, q + e * robot.rate(q, modelled)) for e in (H, -H)]
        missed += not inside(state.rates[6:12], (ends[0] - ends[1]) / (2 * H), 1e-6)
        u = servo.torque(q, v if measured else v[6:], task.reference(t))
        assert (np.abs(u) <= bounds.torque[:, k]).all()
        vdot = Plant(true).acceleration(q, v, u)[0]
        wrench = robot.mass_matrix(q)[:6] @ vdot + robot.bias(q, v)[:6]
        assert np.linalg.norm(wrench[:3]) <= radii[3, k]
        assert np.linalg.norm(wrench[3:]) <= radii[4, k]

        def at(e: float, q=q, v=v, vdot=vdot, t=t):
            """Errors and torque a moment later."""
            there, speed = robot.integrate(q, e * v + e * e / 2 * vdot), v + e * vdot
            sample = task.reference(t + e)
            torque = servo.torque(there, speed if measured else speed[6:], sample)
            return plain.as_measured.errors(there, speed, sample.flat_pose, sample.twist), torque

        (after, late), (before, early) = at(H), at(-H)
        pulled = plain.error_dynamics.rate(*at(0.0)[0])[1]
        push = (after[1] - before[1]) / (2 * H) - pulled
        own_share = np.linalg.norm(push) / (EPS * bounds.weights[k] + bounds.unseen[k])
        change = (late - early) / (2 * H)
        assert (np.abs(change) <= bounds.torque_rate[:, k]).all()
        gain = plain.decoupling(q) @ np.linalg.inv(plain.model.mass_matrix(q))
        held = np.linalg.norm(gain @ change) / bounds.held[k]
        shares = np.maximum(shares, [own_share, held, (sizes / radii[1:3, k]).max()])
    assert (shares <= 1.0).all()
    assert (shares > [0.3, 0.7, 0.4]).all()
    assert missed > 5


def task(measured: bool, statement: Statement, duration: float) -> SimpleNamespace:
    own = cc.load_task(EXAMPLES / "free_floater_proved.toml")
    return restated(own, statement, duration, own.servo.as_measured if measured else None)


THIN = Statement((2e-5,), (2e-5,), 2e-5, period=1e-3, masses=1e-3, momentum_error=(1e-3, 1e-3))


@pytest.mark.slow
@BOTH
def test_worlds_of_other_masses_and_momentum_are_inside(measured) -> None:
    own = task(measured, THIN, 0.1)
    proof = prove_task(own)
    assert proof.status is cc.Status.PROVED, proof.sentence
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
    assert prove_task(task(True, large, 0.1)).status is cc.Status.PROVED


def test_momentum_errors_have_two_radii() -> None:
    with pytest.raises(OutputError, match="a linear and an angular radius"):
        replace(THIN, momentum_error=(0.1,))
    with pytest.raises(OutputError, match="not negative"):
        replace(THIN, momentum_error=(0.1, -0.1))
