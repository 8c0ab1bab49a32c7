"""A custom law runs where a servo runs: simulated, compiled, and on the mock rig."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

from concur import robots
from concur.control import Law, ReferenceTick, TickStatus, tracking_law
from concur.errors import (
    ConcurError,
    NonFiniteError,
    OutputError,
    ShapeError,
    SingularConfigurationError,
)
from concur.outputs import Output, ReferenceSample, references
from concur.reduction import ReducedModel, reduce
from concur.simulation import Integrator, RealPlant, simulate
from hil.controller import Mode
from hil.reasons import Reason, State
from hil.record import Record
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
from tests.control._cases import ARM_Q0, ARM_S0, arm, case_study, refused, ticked
from tests.oracles import Pinocchio, difference_quotient

Numbers = np.ndarray

EXACT = Integrator("dop853", dt=0.1)
EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class JointPD:
    """Springs and dampers at the driven joints about a goal that swings; the weight is held."""

    model: ReducedModel
    goal: np.ndarray
    stiffness: float
    damping: float
    swing: float = 0.0
    torque_limits: None = None

    def graph(self) -> ca.Function:
        model = self.model
        t, q, s = ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns)
        away = self.goal + self.swing * ca.sin(t) - q[-model.ns :]
        u = self.stiffness * away - self.damping * s + model.bias(q, ca.SX(model.ns, 1))
        return ca.Function("joint_pd", [t, q, s], [u], ["t", "q", "s"], ["u"])

    def torque(self, plant: Pinocchio, t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        """The same by Pinocchio's weight."""
        away = self.goal + self.swing * np.sin(t) - q[-len(s) :]
        held = plant.bias(q, np.zeros(plant.nv))[-len(s) :]
        return self.stiffness * away - self.damping * s + held


def swinging_arm() -> JointPD:
    return JointPD(reduce(arm()), ARM_Q0 + 0.1, 10.0, 1.0, 0.2)


def test_own_law_moves_the_robot_as_pinocchio_says() -> None:
    law = swinging_arm()
    plant = Pinocchio(law.model.robot)

    def rate(t: float, z: np.ndarray) -> np.ndarray:
        q, v = z[:6], z[6:]
        return np.concatenate([v, plant.forward_dynamics(q, v, law.torque(plant, t, q, v))])

    run = simulate(law.model.robot, law, None, 1.0, ARM_Q0, ARM_S0)
    wanted = solve_ivp(rate, (0.0, 1.0), [*ARM_Q0, *ARM_S0], "DOP853", rtol=1e-11, atol=1e-12)
    assert_allclose([*run.q[-1], *run.v[-1]], wanted.y[:, -1], rtol=0.0, atol=1e-7)
    assert_allclose(run.u[500], law.torque(plant, 0.5, run.q[500], run.v[500]), atol=1e-10)
    assert run.error.shape == (1001, 0)
    assert not run.error_norms
    # Adaptive steps use the time within a step, held torques that of their tick.
    other = simulate(law.model.robot, law, None, 1.0, ARM_Q0, ARM_S0, dt=EXACT)
    assert_allclose(other.q[-1], wanted.y[:6, -1], rtol=0.0, atol=1e-8)
    sampled = Integrator(control_period=0.01)
    held = simulate(law.model.robot, law, None, 0.1, ARM_Q0, ARM_S0, dt=sampled)
    for k in (40, 49):
        assert_allclose(held.u[k], law.torque(plant, 0.04, held.q[40], held.v[40]), atol=1e-10)


@pytest.mark.extended
def test_own_law_as_machine_code(compiler: None) -> None:
    law = swinging_arm()
    plant, rng = Pinocchio(law.model.robot), np.random.default_rng(0)
    ticks = [ticked(law), ticked(law, interpreted=True)]
    assert [tick.compiled for tick in ticks] == [True, False]
    assert "q 6, s 6, pose 0 -> u 6; machine code" in repr(ticks[0])
    for _ in range(5):
        t, q, s = rng.normal(), rng.normal(size=6), rng.normal(size=6)
        for tick in ticks:
            assert_allclose(tick(q, s, t=t), law.torque(plant, t, q, s), atol=1e-10)
    for hold in (None, 0.01):
        runs = [
            simulate(law.model.robot, law, None, 0.4, ARM_Q0, ARM_S0, dt=integrator)
            for integrator in (
                Integrator(control_period=hold, compiled=True),
                Integrator(control_period=hold, compiled=False),
            )
        ]
        assert_allclose(runs[0].q, runs[1].q, rtol=0.0, atol=1e-11)
        assert_allclose(runs[0].u, runs[1].u, rtol=0.0, atol=1e-9)


@dataclass(frozen=True)
class HandPD:
    """A spring and a damper between the hand and its reference; the weight is held."""

    model: ReducedModel
    outputs: tuple[Output, ...] = (Output("hand", "hand", "R3"),)
    torque_limits: None = None

    def graph(self) -> ca.Function:
        model = self.model
        q, s = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns)
        pose, twist = ca.SX.sym("pose", 3), ca.SX.sym("twist", 3)
        place = model.robot.pose(q, "hand")[:3, 3]
        turn = ca.jacobian(place, q)
        force = 90.0 * (pose - place) + 30.0 * (twist - turn @ s)
        u = turn.T @ force - s + model.bias(q, ca.SX(model.ns, 1))
        inputs = {"twist": twist, "q": q, "s": s, "pose": pose}
        return ca.Function("hand_pd", [*inputs.values()], [u], [*inputs], ["u"])

    def torque(self, plant: Pinocchio, sample: ReferenceSample, q: Numbers, s: Numbers) -> Numbers:
        """The same by Pinocchio's kinematics."""
        unit = np.eye(6)
        turn = np.array(
            [difference_quotient(lambda h, e=e: plant.pose(q + h * e, "hand")[:3, 3]) for e in unit]
        ).T
        away = sample.pose - plant.pose(q, "hand")[:3, 3]
        force = 90.0 * away + 30.0 * (sample.twist - turn @ s)
        return turn.T @ force - s + plant.bias(q, np.zeros(6))


def test_own_law_follows_a_reference() -> None:
    law = HandPD(reduce(arm()))
    plant = Pinocchio(law.model.robot)
    start = plant.pose(ARM_Q0, "hand")[:3, 3]
    path = references.rest_to_rest(start, start + np.array([0.05, -0.05, 0.05]), 0.4)
    ways = (Integrator(), EXACT, Integrator(control_period=0.01))
    for integrator in ways:
        run = simulate(law.model.robot, law, path, 0.6, ARM_Q0, np.zeros(6), dt=integrator)
        for k in range(0, len(run.t) - 1, 100 if len(run.t) > 100 else 1):
            sample = path(run.t[k])
            expected = law.torque(plant, sample, run.q[k], run.v[k])
            assert_allclose(run.u[k], expected, rtol=0.0, atol=1e-6)
            away = sample.pose - plant.pose(run.q[k], "hand")[:3, 3]
            assert_allclose(run.error[k], away, atol=1e-12)
        assert np.abs(run.error[-1]).max() < 0.03
        # Neither an ideal error nor a Lyapunov function is known of an own law.
        assert np.isnan(run.ideal).all()
        assert np.isnan(run.lyapunov).all()
    assert run.plot() is not None
    tick, timed = (
        ticked(law, interpreted=True),
        ReferenceTick(tracking_law(law), path, interpreted=True),
    )
    q, s = ARM_Q0 + 0.1, ARM_S0
    expected = law.torque(plant, path(0.2), q, s)
    assert_allclose(tick(q, s, path(0.2)), expected, atol=1e-8)
    assert_allclose(timed(0.2, q, s), expected, atol=1e-8)
    # At a singular configuration such a law is defined, and gives torque.
    assert tick(np.zeros(6), s, path(0.2)).any()
    with pytest.raises(ShapeError):
        simulate(law.model.robot, law, references.hold([1.0]), 0.6, ARM_Q0, np.zeros(6))


def test_own_law_of_time_and_reference_takes_both() -> None:
    model = reduce(arm())
    hand = (Output("hand", "hand", "R3"),)
    t, pose = ca.SX.sym("t"), ca.SX.sym("pose", 3)
    law = Given(model, {"t": t, "pose": pose}, {"u": ca.vertcat(pose, t, t, t)}, outputs=hand)
    path = references.polynomial([[1.0, 2.0, 3.0], [1.0, 0.0, 0.0]])
    assert_allclose(ticked(law, True)(ARM_Q0, ARM_S0, path(2.0), 2.0), [3.0, 2, 3, 2, 2, 2])
    for reference in (path, path.__call__):
        tick = ReferenceTick(tracking_law(law), reference, True)
        assert_allclose(tick(2.0, ARM_Q0, ARM_S0), [3.0, 2, 3, 2, 2, 2])


@pytest.mark.extended
def test_own_law_with_a_reference_drives_the_mock_rig(tmp_path: Path) -> None:
    rig = load_rig(EXAMPLES / "rover_rig/rig.toml")
    servo = rig.task.servo
    sizes = {"q": servo.nq, "s": servo.ns, **servo.sampled}
    symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    torque = servo.law(*symbols.values())[0]
    law = Given(servo.model, symbols, {"u": torque}, outputs=servo.outputs)
    wishes = SessionOptions(Mode.MOCK, 0.2, tmp_path / "run", heartbeat="auto", emulated=True)
    result = run_session(rig, wishes, law)
    assert result.outcome.reason is Reason.END
    record = Record.load(result.folder)
    for k in np.flatnonzero(record["state"] == State.RUN):
        sample = rig.task.reference(record["elapsed"][k])
        assert_allclose(record["pose"][k], sample.pose, rtol=1e-12, atol=1e-12)
        expected = servo.torque(record["q"][k], record["s"][k], sample)
        assert_allclose(record["demand"][k], expected, rtol=1e-9, atol=1e-9)


@dataclass(frozen=True)
class Given:
    """A law whose graph is given."""

    model: ReducedModel
    inputs: dict[str, Any]
    results: dict[str, Any]
    torque_limits: None = None
    outputs: tuple[Output, ...] = ()

    def graph(self) -> ca.Function:
        ins, outs = self.inputs, self.results
        return ca.Function("given", [*ins.values()], [*outs.values()], [*ins], [*outs])


def test_own_law_of_measured_velocities_takes_the_true_ones() -> None:
    model = reduce(robots.free_flyer(), momentum=np.zeros(6))
    v = ca.SX.sym("v", model.nv)
    law = Given(model, {"v": v}, {"u": -0.1 * v[6:] + 0.01 * v[3]})
    q0 = model.robot.neutral()
    q0[7:] = [0.5, -1.5, 2.1, 0.2, -0.4, 0.8]
    mu = [0.5, -0.3, 0.2, 2.5, 0.8, 0.8]
    run = simulate(
        model.robot, law, None, 0.2, q0, np.zeros(6), dt=0.01, plant=RealPlant(momentum=mu)
    )
    assert np.abs(run.v[:, 3]).min() > 0.01
    assert_allclose(run.u, -0.1 * run.v[:, 6:] + 0.01 * run.v[:, [3]], rtol=1e-12)
    assert run.mismatch is not None
    assert not run.mismatch.used
    assert ticked(law).buffers.s.shape == (model.nv,)
    assert ticked(law).buffers.momentum.shape == (0,)


@pytest.mark.parametrize(("part", "usable"), [(0.999, False), (1.001, True)])
def test_own_law_gives_no_torque_near_where_it_is_undefined(part: float, usable: bool) -> None:
    model = reduce(arm())
    q = ca.SX.sym("q", 6)
    tick = ticked(Given(model, {"q": q}, {"u": q, "margin_bound": 1e-3 * q[0]}))
    state = np.array([part, 1, 2, 3, 4, 5])
    if usable:
        assert_array_equal(tick(state, np.zeros(6)), state)
        return
    with pytest.raises(SingularConfigurationError, match="`margin_bound` of 0"):
        tick(state, np.zeros(6))
    assert tick.run() == TickStatus.SINGULAR
    assert not tick.buffers.u.any()


def test_torques_of_an_own_law_may_leap() -> None:
    model = reduce(arm(gravity=(0.0, 0.0, 0.0)))
    t = ca.SX.sym("t")
    tick = ticked(Given(model, {"t": t}, {"u": t * ca.SX.ones(6)}))
    for size in (1e-6, 1e9):
        assert tick(ARM_Q0, ARM_S0, t=size)[0] == size


def test_own_law_without_a_number_gives_no_torque() -> None:
    model = reduce(robots.free_flyer())
    q = ca.SX.sym("q", model.nq)
    tick = ticked(Given(model, {"q": q}, {"u": ca.log(q[0]) * ca.SX.ones(6)}))
    state, still = model.robot.neutral(), np.zeros(6)
    state[0] = 1.0
    assert_array_equal(tick(state, still), still)
    state[0] = -1.0
    with pytest.raises(NonFiniteError, match="torques that are finite"):
        tick(state, still)
    assert tick.run() == TickStatus.NO_RESULT
    state[:7] = [1.0, 0, 0, 0, 0, 0, 1.1]
    with pytest.raises(ShapeError, match="spacecraft"):
        tick(state, still)
    with pytest.raises(NonFiniteError, match="argument `t`"):
        ticked(swinging_arm())(ARM_Q0, ARM_S0, t=np.inf)


def test_servo_is_a_law_as_it_is() -> None:
    servo = case_study()
    assert isinstance(servo, Law)
    assert tracking_law(servo, "here") is servo


def test_what_is_no_law_is_refused() -> None:
    model = reduce(arm())
    q, s, v, t = (ca.SX.sym(name, size) for name, size in (("q", 6), ("s", 6), ("v", 6), ("t", 2)))
    one = ca.SX.ones(6)
    good = Given(model, {"q": q, "s": s}, {"u": one})
    assert isinstance(good, Law)
    for wrong, kind, words in (
        (3, OutputError, {"expected": "another Law"}),
        (Given, OutputError, {"expected": "another Law"}),
        (replace(good, inputs={"q": q, "pose": s}), OutputError, {"came": "q, pose"}),
        (replace(good, inputs={"q": q, "z": s}), OutputError, {"expected": "u and zdot"}),
        (replace(good, results={"u": one, "zdot": one}), OutputError, {"came": "u, zdot"}),
        (
            replace(good, inputs={"z": t}, results={"u": one, "zdot": one}),
            ShapeError,
            {"where": "`zdot` of its graph"},
        ),
        (replace(good, inputs={"s": s, "v": v}), OutputError, {"expected": "either s or v"}),
        (replace(good, results={"torque": one}), OutputError, {"came": "torque"}),
        (replace(good, results={"u": one, "side": ca.SX(1)}), OutputError, {"came": "u, side"}),
        (replace(good, results={"u": one[:5]}), ShapeError, {"came": "(5, 1)"}),
        (replace(good, inputs={"q": q, "t": t}), ShapeError, {"where": "`t` of its graph"}),
    ):
        refused(kind, lambda law=wrong: ticked(law), **words)
    refused(
        OutputError,
        lambda: simulate(model.robot, 3, None, 1.0, ARM_Q0, ARM_S0),  # type: ignore[arg-type]
        where="simulate, `servo`",
    )


def integrating() -> Given:
    """Springs, dampers and an integral about a goal; the weight is not held."""
    model = reduce(arm())
    q, s, z = (ca.SX.sym(name, 6) for name in "qsz")
    away = ARM_Q0 + 0.1 - q
    return Given(
        model, {"z": z, "q": q, "s": s}, {"zdot": away, "u": 10.0 * away - 1.0 * s + 20.0 * z}
    )


def test_state_of_an_own_law_moves_with_the_robot_as_pinocchio_says() -> None:
    law = integrating()
    plant, goal = Pinocchio(law.model.robot), ARM_Q0 + 0.1

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        q, v, z = np.split(y, 3)
        u = 10.0 * (goal - q) - 1.0 * v + 20.0 * z
        return np.concatenate([v, plant.forward_dynamics(q, v, u), goal - q])

    start = [*ARM_Q0, *ARM_S0, *np.zeros(6)]
    wanted = solve_ivp(rate, (0.0, 0.3), start, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    for integrator, room in ((Integrator("rkmk4"), 1e-6), (EXACT, 1e-8)):
        run = simulate(law.model.robot, law, None, 0.3, ARM_Q0, ARM_S0, dt=integrator)
        assert_allclose([*run.q[-1], *run.v[-1]], wanted[:12], rtol=0.0, atol=room)
        u = 10.0 * (goal - wanted[:6]) - 1.0 * wanted[6:12] + 20.0 * wanted[12:]
        assert_allclose(run.u[-1], u, rtol=0.0, atol=100 * room)


def test_state_of_an_own_law_is_advanced_by_each_tick() -> None:
    law = integrating()
    tick, goal, z = ticked(law, interpreted=True), ARM_Q0 + 0.1, np.zeros(6)
    with pytest.raises(NonFiniteError, match=r"`buffers.period`.*got nan s. Fill in the time"):
        tick(ARM_Q0, ARM_S0)
    tick.buffers.period[:] = -1e-3
    refused(ConcurError, lambda: tick(ARM_Q0, ARM_S0), expected="a time of zero or more")
    assert not tick.buffers.state.any()
    tick.buffers.period[:] = 0.02
    for k in range(3):
        q = ARM_Q0 + 0.01 * k
        assert_allclose(tick(q, ARM_S0), 10.0 * (goal - q) - 1.0 * ARM_S0 + 20.0 * z, atol=1e-12)
        z += 0.02 * (goal - q)
        assert_allclose(tick.buffers.state, z, atol=1e-15)
    tick.reset()
    assert not tick.buffers.state.any()


def sampled(law: Given, steps: int) -> np.ndarray:
    """Torques of a loop whose state is advanced at each tick, by Pinocchio."""
    plant, goal = Pinocchio(law.model.robot), ARM_Q0 + 0.1
    q, v, z, found = ARM_Q0.copy(), ARM_S0.copy(), np.zeros(6), []
    for _ in range(steps):
        u = 10.0 * (goal - q) - 1.0 * v + 20.0 * z
        z = z + 0.01 * (goal - q)
        flow = solve_ivp(
            lambda t, y, u=u: np.concatenate([y[6:], plant.forward_dynamics(y[:6], y[6:], u)]),
            (0.0, 0.01),
            [*q, *v],
            "DOP853",
            rtol=1e-11,
            atol=1e-12,
        )
        q, v = flow.y[:6, -1], flow.y[6:, -1]
        found.append(u)
    return np.array(found)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.extended)])
def test_state_of_a_sampled_own_law(compiled: bool, request: pytest.FixtureRequest) -> None:
    if compiled:
        request.getfixturevalue("compiler")
    law = integrating()
    wanted = sampled(law, 10)
    for method in ("rkmk4", *(() if compiled else ("dop853",))):
        options = Integrator(method, dt=5e-3, control_period=0.01, compiled=compiled)
        run = simulate(law.model.robot, law, None, 0.1, ARM_Q0, ARM_S0, dt=options)
        assert_allclose(run.u[:-1:2], wanted, rtol=0.0, atol=1e-4)
        assert_array_equal(run.u[1::2], run.u[:-1:2])
