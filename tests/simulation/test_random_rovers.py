"""The closed loop on rovers drawn at random follows the exact error dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.control import Servo
from concur.outputs import Output, Reference, references
from concur.reduction import reduce
from concur.simulation import Run, simulate
from tests.oracles import Constrained, Pinocchio, RandomRover, assert_close, random_rover

FREQUENCY, DURATION = 6.0, 3.5
"""Of the critically damped error dynamics, rad/s, and of a run, s: e^-21 is left."""
WANTED, DRAWS = 20, 60


@dataclass(frozen=True)
class Draw:
    """A rover, its servo and a reference that it can follow from q0 at rest."""

    rover: RandomRover
    servo: Servo
    reference: Reference
    q0: np.ndarray


class _ClosedLoop(Reference):
    """Where the outputs go if the error obeys its equation from x0, ve0."""

    pose_size = size = 5

    def __init__(self, demanded: Reference, x0: np.ndarray, ve0: np.ndarray) -> None:
        self._demanded, self._x0, self._rate = demanded, x0, FREQUENCY * x0 - ve0

    def _evaluate(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        poses, rates, accelerations = self._demanded.sample(times)
        t, w = times[:, None], FREQUENCY
        fading = np.exp(-w * t)
        x = fading * (self._x0 + self._rate * t)
        xdot = fading * self._rate - w * x
        xddot = -w * fading * self._rate - w * xdot
        return poses - x, rates - xdot, accelerations - xddot


def draw(index: int) -> Draw | None:
    """Draw a rover and a demand; none if the closed loop would lose the outputs on its way."""
    rover = random_rover(index)
    robot, rng = rover.robot, np.random.default_rng(index)
    along = np.array([np.cos(rover.heading), np.sin(rover.heading)])
    point = rover.middle + rng.uniform(0.15, 0.35) * along
    outputs = [
        Output("base", "chassis", "R2", (*point, 0.0)),
        Output("hand", "fore", "R3", rng.uniform(-0.3, 0.3, 3)),
    ]
    servo = Servo(reduce(robot), outputs, FREQUENCY**2, 2 * FREQUENCY)
    q0 = max((robot.random(rng) for _ in range(30)), key=servo.margin)
    cos, sin = np.cos(q0[2]), np.sin(q0[2])
    drive = rng.uniform(0.1, 0.4) * np.array([[cos, -sin], [sin, cos]]) @ along
    first = servo.output(q0) + np.concatenate([_error(2, rng), _error(3, rng)])
    turn = references.circle(first[2:] - [0.04, 0.0, 0.0], 0.04, rng.uniform(3.0, 6.0))
    hand = references.relative(turn, references.polynomial([[0.0, 0.0], drive]))
    demanded = references.stack(references.polynomial([first[:2], drive]), hand)
    x0, ve0 = demanded(0.0).pose - servo.output(q0), -demanded(0.0).twist
    path = servo.feasibility(_ClosedLoop(demanded, x0, ve0), DURATION, q0)
    if not path.feasible or path.margin < 0.05:
        return None
    return Draw(rover, servo, demanded, q0)


def _error(size: int, rng: np.random.Generator) -> np.ndarray:
    direction = rng.normal(size=size)
    return rng.uniform(0.1, 0.3) * direction / np.linalg.norm(direction)


_feasible = ((k + 1, one) for k, one in enumerate(map(draw, range(DRAWS))) if one)
_found: list[tuple[int, Draw]] = []


def accepted(number: int) -> tuple[int, Draw]:
    """A draw that can be followed, and how many draws it took."""
    while len(_found) <= number:
        _found.append(next(_feasible))
    return _found[number]


@cache
def run_of(number: int) -> Run:
    _, one = accepted(number)
    return simulate(one.servo.model.robot, one.servo, one.reference, DURATION, one.q0, np.zeros(5))


@pytest.mark.by_default(3)
@pytest.mark.parametrize("number", range(WANTED))
def test_run_follows_the_exact_error_dynamics(number: int) -> None:
    run = run_of(number)
    assert run.t[1] == pytest.approx(1e-3)
    norms = np.array([run.error_norms[name][0] for name in ("base", "hand")])
    assert ((norms > 0.1 - 1e-12) & (norms < 0.3 + 1e-12)).all()

    x0, ve0 = run.error[0], run.velocity_error[0]
    t = run.t[:, None]
    exact = np.exp(-FREQUENCY * t) * (x0 + (FREQUENCY * x0 - ve0) * t)
    assert_allclose(run.error, exact, rtol=0, atol=1e-6)
    assert_allclose(run.deviation, run.error - exact, rtol=0, atol=1e-12)
    assert np.abs(run.error[-1]).max() < 1e-6
    assert run.constraint_residual.max() < 1e-9
    scale = max(1.0, np.ptp(run.energy), np.abs(run.work).max())
    assert np.abs(run.energy_balance).max() < 1e-6 * scale
    assert np.ptp(run.energy) > 1e-2


@pytest.mark.by_default(3)
@pytest.mark.parametrize("number", range(WANTED))
def test_run_rolls_by_rows_written_by_hand(number: int) -> None:
    run, rover = run_of(number), accepted(number)[1].rover
    states = zip(run.q[::100], run.v[::100], strict=True)
    slips = [np.abs(rover.rows(q) @ v).max() for q, v in states]
    assert max(slips) < 1e-9
    # The record's energy and momentum are Pinocchio's.
    oracle = Pinocchio(rover.robot)
    for k in (0, 500, 3500):
        q, v = run.q[k], run.v[k]
        energy = oracle.kinetic_energy(q, v) + oracle.potential_energy(q)
        assert run.energy[k] == pytest.approx(energy, abs=1e-10)
        assert_close(run.momentum[k], oracle.momentum(q, v), 1e-11)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("number", [0, 7])
def test_states_are_those_of_the_independent_simulator(number: int) -> None:
    run, one = run_of(number), accepted(number)[1]
    tick, shape = one.servo.compile(), list(one.servo.model.shape)
    full = Constrained(Pinocchio(one.rover.robot), one.rover.rows)

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(3), tick(q, v[shape], one.reference(t))])

    times = np.array([0.5, 1.0, 2.0])
    q, v = full.simulate(run.q[0], run.v[0], law, times)
    rows = (times * 1000).round().astype(int)
    assert_close(run.q[rows], q, 1e-7)
    assert_close(run.v[rows], v, 1e-7)
