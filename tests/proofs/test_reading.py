"""Errors of the measured state: what they add, against the law itself, and worlds with them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from concur.certify import Status
from concur.errors import OutputError
from concur.proofs import Reading, sample_statement
from concur.proofs._attack import Attack
from concur.proofs._imperfections import disturbances
from concur.proofs._prove import Prover, prove, stack_of_lattices
from concur.proofs._quantities import DELTA, Nominal, quantities
from concur.simulation import Imperfections, Integrator, Plant, RealPlant, simulate
from tests.proofs._rover import NEAR, prover, rover, states

T = 0.05
ARM = ("turret", "upper_arm", "forearm")
WRONG = Reading(
    dict(zip(ARM, (2e-4, 1e-4, 3e-4), strict=True)),
    {
        "left_wheel": 0.01,
        "right_wheel": 0.02,
        "turret": 0.002,
        "upper_arm": 0.001,
        "forearm": 0.004,
    },
    0.0005,
    0.0004,
)


STILL = {"place": (0.0, 0.0), "speed": (0.0, 0.0), "heading": 0.0, "masses": 0.0}


def task(reading: Reading | None = WRONG, **changes) -> SimpleNamespace:
    names = ("path", "servo", "reference", "q0", "s0", "robot")
    given = {name: getattr(rover(), name) for name in names}
    statement = replace(NEAR, reading=reading, **changes)
    return SimpleNamespace(**given, duration=T, statement=statement)


def proof_of(given: SimpleNamespace):
    start = given.q0, given.s0
    return prove(given.servo, given.reference, T, *start, given.statement, edge=0.0125)


ANGLES = replace(WRONG, speeds=dict.fromkeys(WRONG.speeds, 0.0), place=0.0, heading=0.0)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("wrong", "slack"), [(WRONG, (1.5, 1.4)), (ANGLES, (1.7, 2.2))], ids=["all", "angles"]
)
def test_bounds_contain_what_wrong_readings_do_to_the_law(wrong: Reading, slack: tuple) -> None:
    case, servo = prover(T), rover().servo
    statement = replace(NEAR, reading=wrong)
    held, room = np.array([0.05, 0.3]), np.array([[0.0012, 0.0025], [0.006, 0.015]])
    tube = case.tube(statement, np.repeat(held[:, None], case.count, axis=1))
    lattices = stack_of_lattices(case.robot, 0.0125, statement)
    found = [
        case.segment(statement, k, tube, held, lattices, room)[0] for k in range(len(case.first))
    ]
    for part in found:
        assert (part["moved"].reshape(2, 2) < room).all(), part["moved"]
    rng, worst, ways = np.random.default_rng(5), np.zeros(2), np.zeros(4)
    angles, speeds = wrong.of(ARM, servo.model.shape_names)
    x, ve, wall = tube
    for _ in range(300):
        step = int(rng.integers(case.count))
        t = case.step * (step + rng.uniform())
        q, s = states(case, rng, t, x[:, step], ve[:, step], wall[step])
        k = int(np.searchsorted(case.first, step, side="right")) - 1
        side = rng.normal(size=2)
        sign = rng.choice([-1.0, 1.0], size=9)
        read, moving = q.copy(), s + sign[4:] * speeds
        read[:2] += wrong.place * side / np.linalg.norm(side)
        read[2] += sign[3] * wrong.heading
        read[5:] += sign[:3] * angles
        sample = rover().reference(t)
        demand = sample.flat_pose, sample.twist, sample.acceleration
        u, other = servo.law(q, s, *demand)[0], servo.law(read, moving, *demand)[0]
        response = servo.decoupling(q) @ np.linalg.inv(servo.model.mass_matrix(q))
        d = response @ (other - u)
        own = np.array([np.linalg.norm(d[:2]), np.linalg.norm(d[2:])])
        assert (own <= found[k]["read"]).all()
        assert (np.abs(other - u) <= found[k]["read_torque"] + 1e-12).all()
        # Torques are those of what the law reads.
        assert (np.abs(other) <= found[k]["torque"]).all()
        way = servo.output(read) - servo.output(q)
        rate = servo.decoupling(read) @ moving - servo.decoupling(q) @ s
        far = [np.linalg.norm(v[r]) for v in (way, rate) for r in (slice(0, 2), slice(2, 5))]
        assert (np.array(far) <= found[k]["moved"] * (1 + 1e-9)).all()
        worst, ways = np.maximum(worst, own), np.maximum(ways, far)
    largest = {name: np.max([part[name] for part in found], axis=0) for name in ("read", "moved")}
    # Random signs come near to the sums of absolute values.
    assert (largest["read"] < slack[0] * worst).all()
    assert (largest["moved"] <= slack[1] * ways).all()


@pytest.mark.by_default(1)
@pytest.mark.parametrize("error", [0.0, 0.01])
def test_cells_contain_the_headings_that_the_law_reads(error: float, monkeypatch) -> None:
    """The reference's velocity in axes of a base that is turned by the wall and the error."""
    case, statement = prover(T), replace(NEAR, reading=Reading(heading=error))
    seen: list[Nominal] = []

    def taken(robot, cells, nominal, radii, added):
        seen.append(nominal)
        return quantities(robot, cells, nominal, radii, added)

    monkeypatch.setattr("concur.proofs._prove.quantities", taken)
    tube = case.tube(statement, np.zeros((2, case.count)))
    lattices = stack_of_lattices(case.robot, 0.0125, statement)
    room = np.array([[0.0026, 0.01], [0.004, 0.01]])
    assert not case.segment(statement, 0, tube, np.array([0.05, 0.3]), lattices, room)[2]
    middle = (case.first[0] + case.last[0]) / 2
    t, wall = case.step * middle, tube[2][: case.last[0]].max()
    k = int(middle)
    theta = case.heading.cubics[:, k] @ (2 * (middle - k) - 1) ** np.arange(4)
    flow = [c.flow(np.array([t]))[..., 0] for c in case.robot.channels]
    ve = flow[0][1] @ case.start[:, :2]
    for side in (-1.0, 0.0, 1.0):
        turn = theta + side * (wall + error)
        c, s = np.cos(turn), np.sin(turn)
        expected = np.array([[c, s], [-s, c]]) @ (rover().reference(t).twist[:2] + ve)
        point = np.zeros((DELTA + 1, 1))
        point[DELTA] = side
        for m, value in zip(seen[0].rate[:2], expected, strict=True):
            own = m.take(np.zeros(1, dtype=int))
            assert abs(own.at(point)[0] - value) <= own.r[0] + 1e-9
            assert own.r[0] < 2e-4


def test_readings_count_as_long_as_their_torques_are_held() -> None:
    largest = {
        "weights": np.zeros((2, 3)), "response": np.ones((2, 1, 3)),
        "response_rate": np.full((2, 1, 3), 10.0), "torque_rate": np.zeros((1, 3)),
        "held": np.zeros((2, 3)), "read": np.array([[0.1, 0.3, 0.2], [1.0, 1.0, 2.0]]),
        "read_torque": np.array([[5.0, 1.0, 1.0]]),
    }  # fmt: skip
    found = disturbances(NEAR, largest)["readings"]
    assert found[0] == pytest.approx([0.15, 0.35, 0.35])
    assert found[1] == pytest.approx([1.05, 1.05, 2.05])


@pytest.mark.extended
def test_worlds_stay_inside_and_would_not_without_the_readings() -> None:
    given = task(**STILL)
    found = proof_of(given)
    assert found.status is Status.UNVERIFIED
    assert found.sources["readings"].max() > 0.05
    sampled = sample_statement(given, 60, proof=found)
    assert sampled.outside(found) == ()
    assert 0.5 < sampled.excess <= 1.0
    blind = proof_of(task(None, **STILL))
    assert sample_statement(given, 60, proof=blind).excess > 1.5


def test_the_law_of_a_world_reads_the_errors_and_the_robot_does_not_have_them() -> None:
    given = task(WRONG, masses=0.0)
    attack = Attack(given)
    point = np.zeros((1, attack.balls.size))
    start = attack.balls.size - 1 - attack._reads
    point[0, start : start + 11] = [0.6, 0.8, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0, -1.0]
    point[0, -1] = 0.5  # the signs change in the middle
    rolled = attack._roll(point, [], 1).record
    states_, shape = attack.program.states, list(given.servo.model.shape)
    angles, speeds = WRONG.of(ARM, given.servo.model.shape_names)
    for tick in (0, 10, 24, 26, 49):
        q, v = (rolled.x[0, tick, states_[name]] for name in ("q", "v"))
        sign = 1.0 if tick < 25 else -1.0
        read, s = q.copy(), v[shape] + sign * np.array([1, 1, -1, 1, -1]) * speeds
        read[:3] += sign * np.array([0.6 * 5e-4, 0.8 * 5e-4, -4e-4])
        read[5:] += sign * np.array([1, -1, 1]) * angles
        sample = given.reference(tick * 0.001)
        expected = given.servo.law(read, s, sample.flat_pose, sample.twist, sample.acceleration)[0]
        assert rolled.u[0, tick] == pytest.approx(expected, abs=1e-9)


@pytest.mark.extended
def test_encoders_that_round_and_coulomb_friction_are_covered_by_their_bounds() -> None:
    """Speeds are measured exactly here; friction of the joints is an error of the torques."""
    own, friction, step = rover(), 0.02, 2e-4
    reading = Reading(dict.fromkeys(ARM, step / 2), dict.fromkeys(own.servo.model.shape_names, 0.0))
    given = task(reading, torque_error=(friction,) * 5, **STILL)
    found = proof_of(given)
    assert found.status is Status.UNVERIFIED
    case = Prover(own.servo, own.reference, T, own.q0, own.s0)
    real = Imperfections.of(own.robot, coulomb=friction, resolution=dict.fromkeys(ARM, step))
    integrator = Integrator(dt=0.001, control_period=0.001)
    run = simulate(
        own.robot, own.servo, own.reference, T, own.q0, own.s0,
        plant=RealPlant(Plant(own.robot), imperfections=real), dt=integrator,
    )  # fmt: skip
    limits = {bound.quantity.key: bound.value for bound in found.bounds}
    for k, name in enumerate(own.servo.model.control_names):
        assert np.abs(run.u[:, k]).max() <= limits["torque", name]
    for k, rows in enumerate((slice(0, 2), slice(2, 5))):
        path = case.robot.channels[k].flow(run.t)[0]
        centre = np.einsum("jt,jd->td", path, case.start[:, rows])
        far = np.linalg.norm(run.error[:, rows] - centre, axis=1)
        radii = found.x[k][np.minimum((run.t / found.step).astype(int), case.count - 1)]
        assert (far <= radii + 1e-12).all()
        # Without friction and rounding the motion would stay much nearer.
        assert far.max() > 0.1 * radii.max()
    assert sample_statement(given, 16, proof=found).outside(found) == ()


def test_readings_that_say_too_little_are_rejected() -> None:
    with pytest.raises(OutputError, match=r"largest error of each speed.*2 / h"):
        Reading({"turret": 1e-4})
    Reading({"turret": 1e-4}, {})
    Reading({"turret": 0.0})
    with pytest.raises(OutputError, match="not negative"):
        Reading(place=-1.0)
    with pytest.raises(OutputError, match="arm's joints"):
        Reading({"left_wheel": 1e-4}, {}).of(ARM, ARM)
