"""Baseline laws in joint space: their errors on full-order robots, and where they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import expm

import concur as cc
from concur.control import Law, ReferenceTick, laws, tracking_law
from concur.errors import (
    ConcurError,
    InfeasibleReferenceError,
    OutputError,
    ReductionError,
    ShapeError,
)
from concur.outputs import references
from concur.reduction import ReducedModel, reduce
from concur.robot import Body, Inertia, Mechanism, joints
from concur.simulation import Integrator, simulate
from hil.controller import Mode
from hil.reasons import Reason
from hil.rig import load_rig
from hil.session import SessionOptions, run_session
from tests.control._cases import ARM_Q0, ARM_S0, arm, case_study, refused, ticked
from tests.export._export import COMPILERS, NAME, STRICT, compile_replay, run
from tests.oracles import Pinocchio

EXAMPLES = Path(__file__).parents[2] / "examples"
EXACT = Integrator("dop853", dt=0.05)


def floater() -> ReducedModel:
    return reduce(cc.robots.free_flyer(), momentum=[0.5, -0.3, 0.2, 2.5, 0.8, 0.8])


def swing(goal: np.ndarray) -> references.Reference:
    """A path of the joints from a goal to beside it."""
    return references.rest_to_rest(goal, goal + 0.3, 1.0)


def test_pd_is_springs_dampers_and_pinocchios_weight() -> None:
    model, path = reduce(arm()), swing(ARM_Q0)
    stiffness, damping = np.arange(1.0, 7.0), 2.0
    tick = ticked(laws.PD(model, path, stiffness, damping), interpreted=True)
    plant, wanted = Pinocchio(model.robot), path(0.3)
    weight = plant.bias(ARM_Q0, np.zeros(6))
    spring = stiffness * (wanted.pose - ARM_Q0) + damping * (wanted.twist - ARM_S0)
    assert_allclose(tick(ARM_Q0, ARM_S0, t=0.3), spring + weight, atol=1e-10)


@pytest.mark.parametrize("model", [reduce(cc.robots.rover_arm()), floater()], ids=lambda m: m.name)
def test_computed_torque_gives_each_joint_its_linear_error_on_the_full_robot(
    model: ReducedModel,
) -> None:
    rng = np.random.default_rng(1)
    q0 = model.robot.neutral()
    q0[-model.ns :] = rng.uniform(-1.0, 1.0, model.ns)
    s0 = rng.normal(size=model.ns)
    path = swing(q0[-model.ns :] + 0.2)
    stiffness, damping = rng.uniform(4.0, 9.0, model.ns), rng.uniform(4.0, 6.0, model.ns)
    law = laws.ComputedTorque(model, path, stiffness, damping)
    run = simulate(model.robot, law, None, 0.8, q0, s0, dt=EXACT)
    poses, twists, _ = path.sample(run.t)
    for k in range(model.ns):
        flow = expm(0.8 * np.array([[0.0, 1.0], [-stiffness[k], -damping[k]]]))
        ended = flow @ [poses[0, k] - q0[-model.ns :][k], twists[0, k] - s0[k]]
        came = poses[-1, k] - run.q[-1, -model.ns :][k], twists[-1, k] - run.s[-1, k]
        assert_allclose(came, ended, atol=1e-7)


def test_pd_brings_a_tumbling_floater_to_its_goal() -> None:
    """At rest on the goal only the forces that hold the joints remain."""
    model = floater()
    goal = np.array([0.5, -1.5, 2.1, 0.2, -0.4, 0.8])
    law = laws.PD(model, references.hold(goal), 40.0, [30.0, 30.0, 15.0, 5.0, 3.0, 1.0])
    q0 = model.robot.neutral()
    q0[7:] = goal - 0.3
    run = simulate(model.robot, law, None, 6.0, q0, np.zeros(6), dt=5e-3)
    first, last = (np.abs(run.q[k, 7:] - goal).max() for k in (0, -1))
    assert last < 0.02 * first


def test_joints_follow_the_path_on_which_the_outputs_are() -> None:
    """Undisturbed, and from the start of the path: the outputs are where the servo has them."""
    task = cc.load_task(EXAMPLES / "rover_arm.toml")
    servo, path = task.servo, task.reference
    start = servo.start(path, task.q0)
    law_path = laws.joint_reference(servo, path, 2.0, start.q)
    assert_allclose(law_path(0.0).pose, start.q[-5:], atol=1e-9)
    assert_allclose(law_path(0.0).twist, start.s, atol=1e-9)
    law = laws.ComputedTorque(servo.model, law_path, 9.0, 6.0)
    run = simulate(task.robot, law, None, 2.0, start.q, start.s)
    for k in range(0, len(run.t), 100):
        error = servo.pose_error(run.q[k], np.asarray(path(float(run.t[k])).pose))
        assert np.abs(error).max() < 2e-5
    with pytest.raises(InfeasibleReferenceError):
        laws.joint_reference(servo, references.hold([0.5, 0.0, 5.0, 0.0, 0.0]), 1.0, task.q0)


def test_limits_cut_torques_off() -> None:
    model = reduce(arm())
    law = laws.PD(model, references.hold(ARM_Q0 + 1.0), 100.0, 1.0)
    free = ticked(law, interpreted=True)(ARM_Q0, ARM_S0).copy()
    limits = {model.control_names[0]: 3.0, model.control_names[1]: (-1.0, 2.0)}
    cut = ticked(replace(law, torque_limits=limits), interpreted=True)(ARM_Q0, ARM_S0)
    assert_allclose(cut, [min(free[0], 3.0), min(free[1], 2.0), *free[2:]], rtol=1e-12)
    assert free[0] > 3.0
    assert free[1] > 2.0


def test_exported_c_of_a_law_in_joint_space_replays_its_ticks(tmp_path: Path) -> None:
    model = reduce(arm())
    path = references.waypoints([0.0, 0.5, 1.0], [ARM_Q0, ARM_Q0 + 0.2, ARM_Q0 - 0.1])
    law = tracking_law(laws.ComputedTorque(model, path, 9.0, 6.0, torque_limits=30.0))
    law.export(tmp_path, name=NAME)
    compile_replay(tmp_path, COMPILERS[0], *STRICT, "-O0")
    assert "0 wrong" in run("./replay", cwd=tmp_path).stdout
    with pytest.raises(ConcurError, match="takes the time"):
        law.torque(ARM_Q0, ARM_S0, None)
    refused(OutputError, lambda: law.start(path), where="start of")


@pytest.mark.extended
def test_laws_run_as_machine_code_with_a_table_inside(compiler: None) -> None:
    """Waypoints are a table: the law is then a graph over MX."""
    model = floater()
    times, points = np.linspace(0.0, 1.0, 5), np.random.default_rng(0).normal(size=(5, 6))
    path = references.waypoints(times, points)
    q, s = model.robot.neutral(), np.full(6, 0.1)
    for kind in (laws.PD, laws.ComputedTorque):
        law = kind(model, path, 1.0, 0.2)
        assert isinstance(law, Law)
        told = [ticked(law), ticked(law, interpreted=True)]
        assert told[0].compiled
        assert_allclose(*(tick(q, s, t=0.4).copy() for tick in told), atol=1e-10)
        assert_allclose(
            ReferenceTick(tracking_law(law), None)(0.4, q, s), told[1](q, s, t=0.4), atol=1e-10
        )
        runs = [
            simulate(
                model.robot,
                law,
                None,
                0.2,
                q,
                s,
                dt=Integrator(control_period=0.002, compiled=compiled),
            )
            for compiled in (True, False)
        ]
        assert_allclose(runs[0].q, runs[1].q, atol=1e-11)


@pytest.mark.extended
def test_a_baseline_drives_the_mock_rig(tmp_path: Path) -> None:
    rig = load_rig(EXAMPLES / "rover_rig/rig.toml")
    task = rig.task
    path = laws.joint_reference(task.servo, task.reference, 0.5, task.q0)
    law = laws.PD(task.servo.model, path, 6.0, 1.0)
    options = SessionOptions(Mode.MOCK, 0.4, tmp_path / "run", heartbeat="auto", emulated=True)
    result = run_session(rig, options, law)
    assert result.outcome.reason is Reason.END


def test_laws_that_do_not_fit_are_refused() -> None:
    model = reduce(arm())
    good = laws.PD(model, references.hold(ARM_Q0), 1.0, 1.0)
    for change, kind, words in (
        ({"stiffness": 0.0}, OutputError, {"came": "0"}),
        ({"damping": [1.0] * 5 + [-1.0]}, OutputError, {"where": "`damping`"}),
        ({"stiffness": [1.0, 2.0]}, ShapeError, {"where": "`stiffness`"}),
        ({"reference": references.hold(ARM_Q0[:5])}, OutputError, {"came": "5 coordinates"}),
        ({"reference": lambda t: t}, OutputError, {"expected": "6 coordinates"}),
        ({"torque_limits": [1.0]}, ShapeError, {"where": "torque_limits"}),
        ({"model": 3}, ReductionError, {"came": "int 3"}),
    ):
        refused(kind, lambda change=change: replace(good, **change), **words)
    still = references.from_function(lambda t: references.hold(ARM_Q0)(0.0), 6, 6)
    refused(OutputError, lambda: replace(good, reference=still), expected="with a graph")


def test_joints_that_turn_in_space_are_refused() -> None:
    inertia = Inertia(1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    link = Body("link", joints.Spherical(), inertia=inertia)
    robot = Mechanism("ball", [link], actuated=["link"])
    refused(
        ReductionError,
        lambda: laws.PD(reduce(robot), references.hold(np.zeros(3)), 1.0, 1.0),
        expected="the rate of one coordinate",
    )
    # The servo's own law is not concerned.
    assert case_study().ns == 5
