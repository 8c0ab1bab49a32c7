"""Runs and motions of systems without bodies as files, figures and pages; errors with a cure."""

from __future__ import annotations

import csv

import casadi as ca
import h5py
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import concur as cc
from concur.errors import ConcurError, DescriptionError
from concur.formulations import Factor
from concur.outputs import FunctionOutput
from concur.simulation import (
    GravityGradient,
    Imperfections,
    Integrator,
    Motion,
    RealPlant,
    Wrench,
    forced_motion,
    run_signals,
)
from tests.formulations.textbook import chain
from tests.simulation.test_compare import Brake

GOAL = cc.references.hold([1.0, 0.5])


def arm(payload=1.0, unit="m"):
    """A planar arm with two motors, and the position of its tip."""
    joints = [Factor("shoulder", "SO2"), Factor("elbow", "SO2")]
    q, v = (ca.vertcat(*[getattr(joint, x) for joint in joints]) for x in "qv")
    tip = ca.vertcat(ca.cos(q[0]) + ca.cos(q[0] + q[1]), ca.sin(q[0]) + ca.sin(q[0] + q[1]))
    system = cc.LagrangianSystem(
        payload * ca.sumsqr(ca.jacobian(tip, q) @ v) / 2 + 0.1 * ca.sumsqr(v),
        9.81 * payload * tip[1],
        joints,
        inputs=["shoulder", "elbow"],
        name="arm",
    )
    output = FunctionOutput("tip", ca.Function("tip", [q], [tip]), "R2", unit)
    return system, cc.Servo(cc.reduce(system), [output], stiffness=9, damping=6)


@pytest.fixture(scope="module")
def made():
    system, servo = arm()
    return cc.simulate(system, servo, GOAL, 0.1, [0.2, 1.0], [0.1, 0.0], dt=1e-2), servo


@pytest.fixture(scope="module")
def motion():
    system = chain(2)
    return forced_motion(cc.reduce(system), None, 0.2, system.neutral(), [0.1] * 6, dt=0.1)


def test_files_of_runs_belong_to_one_system(made, tmp_path):
    run, servo = made
    path = run.save(tmp_path / "run.h5")
    again = cc.Run.load(path, servo)
    for name in ("t", "q", "v", "u", "error", "pose", "energy", "momentum"):
        assert np.array_equal(getattr(again, name), getattr(run, name), equal_nan=True), name
    # Half and twice the tolerance of 1e-6.
    assert cc.Run.load(path, arm(1.0 + 4e-7)[1]).robot.name == "arm"
    with pytest.raises(DescriptionError, match="attribute `system`: expected energies, forces"):
        cc.Run.load(path, arm(1.0 + 3e-6)[1])
    assert cc.Run.load(path, arm(1.1)[1], plant=servo.model.system).plant_differences
    factors = [Factor("a", "SO2"), Factor("b", "SO2")]
    rest = ca.sumsqr(ca.vertcat(*[f.v for f in factors])) / 2
    other = cc.LagrangianSystem(rest, 0, factors, inputs=["a", "b"])
    other_servo = cc.Servo(cc.reduce(other), servo.outputs, 9, 6)
    with pytest.raises(DescriptionError, match="attribute `velocities`"):
        cc.Run.load(path, other_servo)
    assert np.isinf(run.joint_limits.torques).tolist() == [True, True]
    with h5py.File(path) as file:
        assert file["pose"].attrs["units"].tolist() == ["m", "m"]
        assert "momentum" not in file


def test_tables_have_names_and_units(made, motion, tmp_path):
    run, _ = made
    with open(run.to_csv(tmp_path / "run.csv")) as file:
        head, *rows = csv.reader(file)
    assert head[:5] == ["t [s]", "q.shoulder [rad]", "q.elbow [rad]"] + [
        f"v.{name} [rad/s]" for name in ("shoulder", "elbow")
    ]
    assert len(rows) == 11
    assert float(rows[-1][1]) == run.q[-1, 0]
    assert run.to_mcap(tmp_path / "run.mcap").stat().st_size > 1000
    path = motion.save(tmp_path / "motion.h5")
    assert np.array_equal(Motion.load(path, motion.model).q, motion.q)
    with pytest.raises(DescriptionError, match="attribute `system`"):
        Motion.load(path, cc.reduce(chain(2, stiffness=1.0)))
    x = Factor("x", "R")
    system = cc.LagrangianSystem(x.v**2, 0, [x], frame={"double": (2 * x.v, "lbf")})
    assert cc.simulation.velocity_columns(system) == [("double", "W/(lbf)")]


def test_what_needs_bodies_names_what_to_do_instead(made):
    run, servo = made
    system = servo.model.system
    for text, ask in (
        ("run.plot", run.animate),
        ("run.plot", lambda: run.view(browser=False)),
        ("Solve servo.pose_error", lambda: servo.start(GOAL)),
        ("Solve servo.pose_error", lambda: servo.reach(GOAL, 1.0)),
        ("run.error, run.margin", lambda: servo.feasibility(GOAL, 1.0)),
        ("run.error, run.margin", lambda: servo.audit(GOAL, 1.0)),
        ("path of the joints itself", lambda: cc.laws.joint_reference(servo, GOAL, 1.0)),
        ("run.energy_balance", lambda: run.momentum_drift),
        ("`symmetry`", lambda: cc.reduce(system, momentum=[0.0] * 6)),
        ("`margin` and `pose_error`", lambda: cc.singularities(system, servo.outputs, [0.1, 1])),
    ):
        with pytest.raises(ConcurError, match=text):
            ask()
    pose = [1.0, 0.5]
    q = least_squares(lambda q: np.asarray(servo.pose_error(q, pose)), [0.2, 1.0]).x
    assert servo.output(q) == pytest.approx(pose, abs=1e-6)


def test_odometry_of_a_system_without_bodies():
    """The configuration follows from the shape velocities alone."""
    speeds = np.array([[0.3, -0.2], [0.3, -0.2]])
    found = cc.simulation.reconstruct(arm()[1].model, [0.2, 1.0], [0.0, 0.5], speeds)
    assert found[-1] == pytest.approx([0.35, 0.9], abs=1e-9)


def test_laws_of_systems_run_with_imperfections_and_have_signals():
    system, servo = arm()
    brake = Brake(servo.model)
    run = cc.simulate(system, brake, None, 0.1, [0.2, 1.0], [0.1, 0.0], dt=1e-2)
    signals = run_signals(run)
    assert np.array_equal(signals["torque:elbow"], -signals["speed:elbow"])
    assert np.array_equal(signals["position:shoulder"], run.q[:, 0])
    # By hand: each command acts one period late, through friction and on rounded angles.
    friction, step = np.array([0.3, 0.2]), 0.02
    real = Imperfections.of(
        system, viscous=dict(zip(("shoulder", "elbow"), friction.tolist(), strict=True)),
        resolution=step, latency=1e-2
    )  # fmt: skip
    late = cc.simulate(
        system, servo, GOAL, 0.1, [0.2, 1.0], [0.1, 0.0], dt=Integrator(dt=1e-2),
        plant=RealPlant(imperfections=real),
    )  # fmt: skip
    command, x, sent = [], np.array([0.2, 1.0, 0.1, 0.0]), None
    for k in range(10):
        seen = step * np.round(x[:2] / step)
        command.append(servo.torque(seen, x[2:], GOAL(0.0)))
        sent = command[max(k - 1, 0)]

        def slope(t, x, sent=sent):
            forces = sent - friction * x[2:] - np.asarray(system.bias(x[:2], x[2:]))
            return np.append(x[2:], np.linalg.solve(np.asarray(system.mass_matrix(x[:2])), forces))

        x = solve_ivp(slope, (0.0, 1e-2), x, rtol=1e-11, atol=1e-12).y[:, -1]
    assert late.u[:10] == pytest.approx(np.array(command), abs=2e-4)
    assert np.append(late.q[-1], late.v[-1]) == pytest.approx(x, abs=1e-6)
    assert "error:tip" in run_signals(late)
    with pytest.raises(ConcurError, match="expected a table out of"):
        Imperfections.of(system, ghost=1.0)
    for disturbance in (Wrench("push", "arm", force=(1.0, 0.0, 0.0)), GravityGradient(1e-3)):
        with pytest.raises(ConcurError, match="tree of bodies"):
            cc.simulate(
                system, brake, None, 0.1, [0.2, 1.0], [0.0, 0.0],
                plant=RealPlant(imperfections=Imperfections(disturbances=(disturbance,))),
            )  # fmt: skip
