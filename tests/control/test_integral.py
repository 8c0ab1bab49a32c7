"""Integral action: its error equation, wrong masses, windup, ticks, exported C and certificates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import expm

import concur as cc
from concur.certify import Status, certify, sample_limits
from concur.checker import recheck
from concur.control import Constraints, ErrorDynamics, Servo, linear_loop
from concur.documents import document_hash
from concur.errors import ConcurError, DescriptionError, NonFiniteError, OutputError
from concur.outputs import Output, ReferenceSample, references
from concur.outputs.groups import Rotation, Vector
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, joints
from concur.simulation import Integrator, Plant, simulate
from hil.controller import Mode
from hil.reasons import Reason, State
from hil.replay import replay
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
from tests.control._cases import Q0, S0, case_study, case_study_reference, refused
from tests.oracles import Pinocchio

EXAMPLES = Path(__file__).parents[2] / "examples"


def cart(limits: float | None = None, integral: float | None = 2.0) -> Servo:
    """One mass of 2 kg on a line: torque limits and gains are those of a double integrator."""
    inertia = Inertia(2.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
    body = Body("mass", joints.Prismatic((1, 0, 0)), inertia=inertia)
    robot = Mechanism("cart", [body], actuated=["mass"])
    place = Output("place", "mass", "R", axes="x")
    return Servo(reduce(robot), [place], 4.0, 4.0, torque_limits=limits, integral=integral)


def test_errors_of_the_rover_obey_the_third_order_equation() -> None:
    """On the full-order plant, by a matrix exponential of s^3 + KD s^2 + KP s + KI."""
    servo = replace(case_study(), integral=[3.0, 8.0])
    run = simulate(
        servo.model.robot,
        servo,
        case_study_reference(),
        0.6,
        Q0,
        S0,
        dt=Integrator("dop853", dt=0.1),
    )
    for i in range(5):
        kp, kd, ki = servo.stiffness[i, i], servo.damping[i, i], servo.integral[i, i]
        matrix = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-ki, -kp, -kd]])
        for k, t in enumerate(run.t):
            wanted = expm(matrix * t) @ [0.0, run.error[0, i], -run.velocity_error[0, i]]
            assert_allclose(run.error[k, i], wanted[1], atol=1e-7)
    assert_allclose(run.ideal, run.error, atol=1e-7)


def test_torque_takes_the_integral() -> None:
    servo = replace(case_study(), integral=[3.0, 8.0])
    sample, z = case_study_reference()(0.3), np.array([0.1, -0.2, 0.3, -0.1, 0.05])
    change = servo.torque(Q0, S0, sample, z) - servo.torque(Q0, S0, sample)
    # The shape acceleration that KI z asks for, through the mass matrix.
    sdot = np.linalg.solve(servo.decoupling(Q0), servo.integral @ z)
    assert_allclose(change, servo.model.mass_matrix(Q0) @ sdot, atol=1e-10)
    assert_array_equal(servo.torque(Q0, S0, sample), case_study().torque(Q0, S0, sample))


def test_wrong_mass_leaves_no_error() -> None:
    task = cc.load_task(EXAMPLES / "rover_arm.toml")
    heavy = replace(
        task.robot,
        bodies=tuple(
            replace(b, inertia=replace(b.inertia, mass=1.19 * b.inertia.mass))
            for b in task.robot.bodies
        ),
    )
    goal = references.hold(task.servo.output(task.q0))
    ends = []
    for integral in (None, [2.0, 6.0]):
        servo = replace(task.servo, integral=integral)
        run = simulate(
            task.robot, servo, goal, 12.0, task.q0, np.zeros(5), plant=Plant(heavy), dt=0.01
        )
        ends.append(float(run.error_norms["hand"][-1]))
    assert ends[0] > 0.15
    assert ends[1] < 1e-3


def overshoot(servo: Servo, step: float) -> float:
    law = references.hold([step])
    run = simulate(servo.model.robot, servo, law, 15.0, [0.0], [0.0], dt=5e-3)
    assert np.abs(run.u).max() <= 2.0
    assert abs(run.q[-1, 0] - step) < 0.02 * step
    return float(run.q[:, 0].max() / step - 1.0)


def test_step_beyond_the_limits_does_not_wind_the_integral_up() -> None:
    """Against a loop written by hand, whose integral is not held while the force is limited."""
    step, servo = 6.0, cart(limits=2.0)
    x = v = z = most = 0.0
    for _ in range(15000):
        away = step - x
        u = np.clip(2.0 * (4.0 * away - 4.0 * v + 2.0 * z), -2.0, 2.0)
        x, v, z = x + 1e-3 * v, v + 1e-3 * u / 2.0, z + 1e-3 * away
        most = max(most, x / step - 1.0)
    own, plain = overshoot(servo, step), overshoot(cart(limits=2.0, integral=None), step)
    assert most > 0.5
    assert own < 0.3 * most
    assert own < plain + 0.1


def test_integral_is_held_only_while_it_would_ask_for_more() -> None:
    servo = cart(limits=2.0)
    still = np.zeros(1)
    for x, v, rate in ((1.0, 0.0, 0.0), (0.1, 0.0, 0.1), (1.0, 10.0, 1.0)):
        found = servo.law(still, np.array([v]), np.array([x]), still, still, still)
        assert_allclose(found[4], [rate], atol=1e-12)
        assert_allclose(cart().law(still, still, [x], still, still, still)[4], [x])


def test_joint_limit_in_the_way_does_not_wind_the_integral_up() -> None:
    """6 s against a stop at 1 m: z stays as it was on arrival; the way back does not overshoot."""
    free = cart()
    [body] = free.model.robot.bodies
    robot = Mechanism("cart", [replace(body, limits=(-5.0, 1.0))], actuated=["mass"])
    kept = Servo(
        reduce(robot), free.outputs, 4.0, 4.0, integral=2.0, torque_limits=40.0,
        constraints=Constraints(),
    )  # fmt: skip
    still, least = np.zeros(1), []
    for law in (kept, replace(kept, integral=None)):
        x, v, z, wound = 0.0, 0.0, np.zeros(law.nz), []
        for k in range(14000):
            goal = np.array([2.0 if k < 6000 else 0.0])
            u, *_, rate = law.law([x], [v], goal, still, still, *[z] * bool(law.nz))[:5]
            x, v = x + 1e-3 * v, v + 1e-3 * float(u[0]) / 2.0
            z = z + 1e-3 * rate if law.nz else z
            assert x < 1.0 + 1e-3
            wound.append(float(z.sum()))
        least.append(x)
        if law.nz:
            assert_allclose(wound[5999], wound[2500], atol=1e-3)  # without holding: 3.5 m s more
            assert max(wound) < 2.0
    assert_allclose(least, 0.0, atol=5e-2)


def test_integral_is_held_by_what_the_motion_lacks_output_by_output() -> None:
    """Limits of torques, a joint's speed and its range; motion by Pinocchio, rule by hand."""
    free = replace(case_study(), integral=[3.0, 8.0])
    bodies = [
        replace(b, limits=(-1.7, -1.5), speed_limit=0.3) if b.name == "fore" else b
        for b in free.model.robot.bodies
    ]
    robot = replace(free.model.robot, bodies=tuple(bodies))
    servo = replace(
        free, model=reduce(robot), torque_limits=12.0, damping_threshold=1e-3,
        constraints=Constraints(holding=False),
    )  # fmt: skip
    rng, plant, kinds = np.random.default_rng(3), Pinocchio(robot), set()
    for _ in range(40):
        q, s = Q0 + np.r_[np.zeros(5), 0.1 * rng.normal(size=3)], 0.2 * rng.normal(size=5)
        goal = servo.output(q) + 0.1 * rng.normal(size=5)
        flat, z = (goal, np.zeros(5), np.zeros(5)), 0.05 * rng.normal(size=5)
        u, _, missed, _, rate = servo.law(q, s, *flat, z)[:5]
        wanted = free.law(q, s, *flat, z)[0]
        v, lift = servo.model.velocity(q, s), np.asarray(servo.model.lift(q)[0])
        mass, effect = plant.mass_matrix(q), lift.T @ np.asarray(robot.actuation(q))
        drift = np.asarray(servo.model.velocity_drift(q, v))
        still = lift.T @ (mass @ drift + plant.bias(q, v))
        sdots = [np.linalg.solve(lift.T @ mass @ lift, effect @ x - still) for x in (wanted, u)]
        lacks = servo.decoupling(q) @ (sdots[0] - sdots[1])
        assert_allclose(missed, lacks, atol=1e-6 * (1.0 + np.abs(sdots[0]).max()))
        error = goal - servo.output(q)  # R2 and R3: equal weights within an output
        for part in (slice(0, 2), slice(2, 5)):
            along = lacks[part] @ error[part]
            if abs(along) > 1e-4:
                assert_allclose(rate[part], 0.0 if along > 0.0 else error[part], atol=1e-12)
                kinds.add((part.start, along > 0.0))
    assert len(kinds) == 4


def test_ticks_advance_the_integral() -> None:
    servo = replace(case_study(), integral=[3.0, 8.0])
    path = case_study_reference()
    tick, z = servo.compile(interpreted=True), np.zeros(5)
    with pytest.raises(NonFiniteError, match=r"`buffers.period`.*got nan s. Fill in the time"):
        tick(Q0, S0, path(0.0))
    plain = replace(servo, integral=None)
    with pytest.raises(ConcurError, match="`z`: expected no state"):
        plain.torque(Q0, S0, path(0.0), z)
    tick.buffers.period[:] = 0.05
    for t in (0.0, 0.05, 0.1):
        assert_allclose(tick(Q0, S0, path(t)), servo.torque(Q0, S0, path(t), z), atol=1e-10)
        z = z + 0.05 * servo.error(Q0, S0, path(t))[0]
        assert_allclose(tick.buffers.state, z, atol=1e-13)
    inside = servo.compile(references.hold(servo.output(Q0) + 0.1), interpreted=True)
    inside.buffers.period[:] = 0.05
    first = inside(0.0, Q0, S0).copy()
    assert_allclose(inside.buffers.state, 0.05 * np.full(5, 0.1), atol=1e-13)
    assert np.abs(inside(0.05, Q0, S0) - first).max() > 1e-4


@pytest.mark.extended
def test_rig_and_replay_carry_the_integral(tmp_path: Path) -> None:
    rig = load_rig(EXAMPLES / "rover_rig/rig.toml")
    servo = replace(rig.task.servo, integral=1.0)
    options = SessionOptions(Mode.MOCK, 0.4, tmp_path / "run", heartbeat="auto", emulated=True)
    result = run_session(rig, options, servo)
    assert result.outcome.reason is Reason.END
    report = replay(result.folder, rig, servo=servo)
    assert report.differences == ()
    assert report.evaluated > 50
    # The integral acts: without it the torques of the end are others.
    record = report.record
    last = np.flatnonzero(record["state"] == State.RUN)[-1]
    sample = ReferenceSample(*(record[name][last] for name in ("pose", "twist", "acceleration")))
    bare = servo.torque(record["q"][last], record["s"][last], sample)
    assert np.abs(record["demand"][last] - bare).max() > 1e-6


def dynamics(ki: float, group: object = None) -> ErrorDynamics:
    lie = group or Vector("xyz")
    one = np.eye(3)
    return ErrorDynamics(lie, 4.0 * one, 3.0 * one, one, ki * one)  # type: ignore[arg-type]


@pytest.mark.parametrize("group", [Vector("xyz"), Rotation()], ids=["R3", "SO3"])
def test_certificates_refute_integrals_beyond_routh_and_prove_none(group: object) -> None:
    """The cubic s^3 + 3 s^2 + 4 s + ki is stable below ki = 12."""
    for ki, status in (
        (12.0 + 1e-12, Status.REFUTED),
        (12.0, Status.REFUTED),
        (12.0 - 1e-9, Status.UNDECIDED),
        (1.0, Status.UNDECIDED),
    ):
        assert certify(dynamics(ki, group), angle=1.0).status is status
    found = certify(dynamics(1.0, group), angle=1.0)
    assert "integral action" in found.parts[0].reason
    assert found.rate == 0.0
    roots = np.roots([1.0, 3.0, 4.0, 1.0])
    assert_allclose(found.true_rate, -roots.real.max(), rtol=1e-9)


def test_files_of_laws_without_integral_prove_nothing_of_one_with(tmp_path: Path) -> None:
    plain = cart(integral=None)
    certify(plain).save(tmp_path / "plain.json")
    assert recheck(tmp_path / "plain.json", plain).status is Status.PROVED
    assert recheck(tmp_path / "plain.json", cart()).status is Status.UNDECIDED
    certify(cart()).save(tmp_path / "own.json")
    assert recheck(tmp_path / "own.json") is Status.UNDECIDED
    # A proof of the law without integral, forged into one about the law with it.
    document, own = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("plain", "own"))
    document["law"]["integral"] = own["law"]["integral"]
    document["hash"] = document_hash(document)
    (tmp_path / "forged.json").write_text(json.dumps(document))
    assert recheck(tmp_path / "forged.json") is Status.UNDECIDED
    assert recheck(tmp_path / "forged.json", cart()).status is Status.UNDECIDED
    del document["law"]["integral"]
    document["hash"] = document_hash(document)
    (tmp_path / "forged.json").write_text(json.dumps(document))
    assert recheck(tmp_path / "forged.json") is Status.PROVED
    assert recheck(tmp_path / "forged.json", cart()).status is Status.UNDECIDED
    refused(OutputError, lambda: linear_loop(cart()), came="integral action")
    (channel,) = certify(cart()).parts
    refused(OutputError, lambda: sample_limits(channel.channel), expected="without integral")


def test_integrals_are_read_like_other_gains(tmp_path: Path) -> None:
    servo = replace(case_study(), integral=[0.0, 1.0])
    assert_array_equal(np.diag(servo.integral), [0, 0, 1, 1, 1])
    assert replace(servo, integral=0.0).integral is None
    assert "integral 0" in str(servo)
    refused(OutputError, lambda: replace(servo, integral=-1.0), expected="semidefinite")
    text = (EXAMPLES / "rover_arm.toml").read_text()
    assert cc.load_task(EXAMPLES / "rover_arm.toml").servo.integral is None
    path = tmp_path / "task.toml"
    path.write_text(text.replace('group = "R3"', 'group = "R3"\nintegral = [1, 2, 3.5]'))
    assert_array_equal(np.diag(cc.load_task(path).servo.integral), [0, 0, 1, 2, 3.5])
    path.write_text(text.replace('group = "R3"', 'group = "R3"\nintegral = 0.0'))
    refused(DescriptionError, lambda: cc.load_task(path), expected="above zero")
