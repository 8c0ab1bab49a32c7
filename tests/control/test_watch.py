"""Memory of a tick: singular configurations between two steps are detected."""

from __future__ import annotations

import copy
import pickle

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from concur import robots
from concur.control import Servo, Tick, TickStatus
from concur.control._law import side
from concur.control._singularity import answer_scale
from concur.control._tick_graph import LEAP, RUNAWAY
from concur.errors import SingularConfigurationError
from concur.outputs import Output, ReferenceSample
from concur.reduction import reduce
from tests.control._cases import case_study, two_links

KINDS = pytest.mark.parametrize("interpreted", [True, False], ids=["interpreted", "compiled"])


def at(servo: Servo, q: object, acceleration: float = 0.0) -> ReferenceSample:
    """Rest where the outputs are, with an acceleration along the first coordinate."""
    push = np.zeros(servo.size)
    push[0] = acceleration
    return ReferenceSample(servo.output(q), np.zeros(servo.size), push)


def statuses(tick: Tick, path: list[np.ndarray]) -> list[int]:
    """Status of each tick along configurations, at rest."""
    found, buffers = [], tick.buffers
    for q in path:
        buffers.q[:] = q
        buffers.s[:] = buffers.twist[:] = buffers.acceleration[:] = 0.0
        buffers.pose[:] = tick.servo.output(q)
        found.append(tick.run())
    return found


@KINDS
def test_a_step_over_a_stretched_arm_is_noticed_once(interpreted: bool) -> None:
    tick = two_links().compile(interpreted=interpreted)
    elbows = [0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.1, 0.1]
    path = [np.array([0.2, elbow]) for elbow in elbows]
    over = TickStatus.SINGULAR
    assert statuses(tick, path) == [0, 0, 0, over, 0, 0, 0, over]
    assert_array_equal(tick.buffers.u, 0.0)
    # Each of them alone is far from singular.
    for q in path:
        tick.reset()
        assert statuses(tick, [q]) == [0]


def test_a_call_says_what_was_jumped_over() -> None:
    servo = two_links()
    tick = servo.compile(interpreted=True)
    before, behind = np.array([0.2, 0.1]), np.array([0.2, -0.1])
    tick(before, np.zeros(2), at(servo, before))
    with pytest.raises(SingularConfigurationError, match=r"jumped over.*`reset\(\)`") as caught:
        tick(behind, np.zeros(2), at(servo, behind))
    assert caught.value.margin == pytest.approx(servo.margin(behind))
    tick(before, np.zeros(2), at(servo, before))
    tick.reset()
    tick(behind, np.zeros(2), at(servo, behind))
    assert servo.torque(behind, np.zeros(2), at(servo, behind)).shape == (2,)


@pytest.mark.parametrize("lost", [np.nan, 1e300])
def test_a_lost_measurement_does_not_make_it_forget(lost: float) -> None:
    tick = two_links().compile(interpreted=True)
    path = [np.array(q) for q in ([0.2, 0.1], [lost, 0.1], [0.2, -0.1])]
    tick.buffers.pose[:] = 0.0
    assert statuses(tick, path[:1]) == [0]
    tick.buffers.q[:] = path[1]
    assert tick.run() == TickStatus.BAD_INPUT
    assert statuses(tick, path[2:]) == [TickStatus.SINGULAR]


def test_what_was_refused_as_singular_is_left_behind() -> None:
    tick = two_links().compile(interpreted=True)
    path = [np.array([0.2, elbow]) for elbow in (0.1, 1e-5, -0.1)]
    assert statuses(tick, path) == [0, TickStatus.SINGULAR, 0]


@KINDS
@pytest.mark.parametrize(
    ("options", "over"),
    [({"torque_limits": 5.0}, TickStatus.SINGULAR), ({"damping_threshold": 0.05}, TickStatus.OK)],
)
def test_limited_laws_watch_and_damped_ones_pass(
    options: dict[str, float], over: TickStatus, interpreted: bool
) -> None:
    tick = two_links(**options).compile(interpreted=interpreted)
    assert statuses(tick, [np.array([0.2, 0.1]), np.array([0.2, -0.1])]) == [0, over]


def grown(servo: Servo, first: float, second: float) -> int:
    """Status of a tick whose answer, in natural sizes times the pivot, grew between two ticks."""
    tick, q = servo.compile(interpreted=True), np.array([0.2, 1.3])
    still = np.zeros(2)
    unit = tick(q, still, at(servo, q, 1.0)) / answer_scale(servo)
    per = float(np.linalg.norm(unit)) * tick.buffers.margin_bound[0]
    tick.reset()
    for size in (first, second):
        tick.buffers.q[:], tick.buffers.s[:] = q, still
        sample = at(servo, q, size / per)
        tick.buffers.pose[:], tick.buffers.acceleration[:] = sample.pose, sample.acceleration
        status = tick.run()
    return status


@pytest.mark.by_default(6)
@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        (0.5 * RUNAWAY, 1.02 * RUNAWAY, 0),  # large, but it did not leap
        (1.01 * RUNAWAY / LEAP, 1.005 * RUNAWAY, 0),
        (0.99 * RUNAWAY / LEAP, 1.005 * RUNAWAY, TickStatus.SINGULAR),
        (1e-6, 0.99 * RUNAWAY, 0),  # it leapt, but is not large
        (1e-6, 1.01 * RUNAWAY, TickStatus.SINGULAR),
        (0.0, 1e3 * RUNAWAY, 0),  # nothing to compare with
    ],
)
@pytest.mark.parametrize(("length", "mass"), [(0.4, 1.0), (400.0, 1e-3)])
def test_an_answer_that_leaps_is_not_believed(
    first: float, second: float, status: int, length: float, mass: float
) -> None:
    # Links of millimetres and tonnes are the same robot in other units.
    assert grown(two_links(length, mass), first, second) == status


def test_copies_of_a_tick_start_anew() -> None:
    tick = two_links().compile(interpreted=True)
    assert statuses(tick, [np.array([0.2, 0.1])]) == [0]
    for other in (copy.deepcopy(tick), pickle.loads(pickle.dumps(tick))):
        assert statuses(other, [np.array([0.2, -0.1])]) == [0]


SERVOS = {
    "rover": case_study,
    "two links": two_links,
    "flyer": lambda: Servo(reduce(robots.free_flyer()), [Output("hand", "tool", "SE3")], 4.0, 2.8),
}


@pytest.mark.parametrize("name", SERVOS)
def test_the_side_is_the_sign_of_the_determinants(name: str) -> None:
    servo = SERVOS[name]()
    q = ca.SX.sym("q", servo.nq)
    graph = ca.Function("side", [q], [side(servo, q)])
    rng, robot = np.random.default_rng(3), servo.model.robot
    products = set()
    for _ in range(60):
        here = robot.random(rng)
        exact = np.sign(np.linalg.det(servo.decoupling(here)))
        exact *= np.sign(np.linalg.det(servo.model.input_matrix(here)))
        products.add(float(graph(here)) * exact)
    assert len(products) == 1  # up to a sign that is the same everywhere
    assert abs(products.pop()) == 1.0
