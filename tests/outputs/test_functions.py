"""Outputs that are functions: as outputs of bodies on robots, and on systems without bodies."""

from __future__ import annotations

import pickle

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.errors import OutputError, ReductionError, ShapeError, UnknownNameError
from concur.formulations import Factor
from concur.outputs import FunctionOutput
from tests.formulations.textbook import chain, rebuilt

ROVER, FLYER = cc.robots.rover_arm(), cc.robots.free_flyer()
BASE = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
HAND = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
GOAL = cc.references.hold([0.5, 0.0, 0.8, 0.1, 0.4])


def of_body(robot, output):
    """The function that an output of a body is."""
    q = ca.SX.sym("q", robot.nq)
    pose = robot.pose(q, output.body)
    pose = pose @ ca.DM(cc.Pose(output.point).matrix)
    heading = ca.atan2(pose[1, 0], pose[0, 0])
    values = {
        "SO2": heading,
        "SE2": ca.vertcat(pose[:2, 3], heading),
        "SO3": pose[:3, :3],
        "SE3": pose,
        "R3xSO3": pose,
    }
    value = values[output.group] if output.group in values else pose[: output.dim, 3]
    return FunctionOutput(output.name, ca.Function("seen", [q], [value]), output.group)


@pytest.fixture(scope="module")
def servos():
    """The same law by bodies, by functions, by both, and on a system without bodies."""
    model, gains = cc.reduce(ROVER), ([4, 9], [4, 6])
    functions = [of_body(ROVER, BASE), of_body(ROVER, HAND)]
    return (
        cc.Servo(model, [BASE, HAND], *gains),
        cc.Servo(model, functions, *gains),
        cc.Servo(model, [BASE, functions[1]], *gains),
        cc.Servo(cc.reduce(rebuilt(ROVER)), functions, *gains),
    )


def test_functions_give_the_torques_of_bodies(servos):
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, s = ROVER.random(rng), rng.normal(size=5)
        known, *others = [servo.torque(q, s, GOAL(0.0)) for servo in servos]
        for torque in others:
            assert torque == pytest.approx(known, rel=1e-10, abs=1e-10)


@pytest.mark.extended
def test_functions_on_all_groups_move_as_outputs_of_bodies():
    rng, model = np.random.default_rng(1), cc.reduce(FLYER)
    still = cc.outputs.ReferenceSample
    for body, group, robot, reduced in (
        ("hand", "R3", FLYER, model),
        ("hand", "SO3", FLYER, model),
        ("hand", "SE3", FLYER, model),
        ("hand", "R3xSO3", FLYER, model),
        ("chassis", "SO2", ROVER, cc.reduce(ROVER)),
    ):
        output = cc.Output("out", body, group, point=(0.2, 0.1, 0.0))
        q, v = robot.random(rng), rng.normal(size=reduced.ns)
        one, other = (cc.Servo(reduced, [x], 4.0, 4.0) for x in (output, of_body(robot, output)))
        for mine, known in zip(
            other.motion(q, other.velocity(q, v)), one.motion(q, one.velocity(q, v)), strict=True
        ):
            assert mine == pytest.approx(known, abs=1e-10), group
        pose = one.output(robot.random(rng))
        sample = still(pose, rng.normal(size=one.size), rng.normal(size=one.size))
        assert other.torque(q, v, sample) == pytest.approx(one.torque(q, v, sample), rel=1e-8)


def test_planar_pose_as_a_function_has_its_twist():
    factor = Factor("body", "SE2")
    system = cc.LagrangianSystem(
        ca.sumsqr(factor.v), 0, [factor], inputs=list(factor.freedom_names)
    )
    pose = FunctionOutput("pose", ca.Function("pose", [factor.q], [factor.q]), "SE2")
    servo = cc.Servo(cc.reduce(system), [pose], 4.0, 4.0)
    v = np.array([0.3, -0.4, 0.9])
    velocity, drift = servo.motion([0.2, 0.1, 2.0], servo.velocity([0.2, 0.1, 2.0], v))
    assert velocity == pytest.approx(v, abs=1e-14)
    assert drift == pytest.approx(0.0, abs=1e-14)


def test_run_certificate_and_code_of_a_system_without_bodies(servos, tmp_path):
    whole, *_, bare = servos
    q0, s0 = whole.start(GOAL).q, 0.1 * np.ones(5)
    runs = [
        cc.simulate(robot, servo, GOAL, 0.4, q0, s0, dt=4e-3)
        for robot, servo in ((ROVER, whole), (bare.model.system, bare))
    ]
    for name in ("q", "v", "u", "error", "energy", "work"):
        one, other = (getattr(run, name) for run in runs)
        assert one == pytest.approx(other, abs=1e-9), name
    assert not any(x.holds is False for x in runs[1].findings(cc.simulation.Tolerances(0.0, 1.0)))
    proofs = [cc.certify(servo, angle=1.0) for servo in (whole, bare)]
    assert proofs[0].status == proofs[1].status == cc.Status.PROVED
    assert proofs[0].rate == proofs[1].rate
    proofs[1].save(tmp_path / "proof.json")
    assert cc.recheck(tmp_path / "proof.json") == cc.Status.PROVED
    folder = bare.export(tmp_path)
    assert any(file.name == "rover_arm.c" for file in folder.files)
    tick = pickle.loads(pickle.dumps(bare)).compile()
    found = tick(q0, s0, GOAL(0.0))
    assert found == pytest.approx(whole.torque(q0, s0, GOAL(0.0)), abs=1e-9)


@pytest.mark.extended
def test_floater_rebuilt_from_its_energies_has_the_torques_and_the_run_of_the_robot():
    """Zero momentum as six constraints gives the lift of the mechanical connection."""
    system, output = rebuilt(FLYER, momentum=True), cc.Output("hand", "hand", "R3xSO3")
    known = cc.Servo(cc.reduce(FLYER), [output], 4.0, 4.0)
    servo = cc.Servo(cc.reduce(system), [of_body(FLYER, output)], 4.0, 4.0)
    rng = np.random.default_rng(2)
    q, s = FLYER.random(rng), rng.normal(size=6)
    pose = known.output(q)
    sample = cc.outputs.ReferenceSample(pose, rng.normal(size=6), rng.normal(size=6))
    assert servo.torque(q, s, sample) == pytest.approx(known.torque(q, s, sample), abs=1e-9)
    goal = cc.references.hold(pose, "R3xSO3")
    runs = [
        cc.simulate(robot, law, goal, 0.2, q, 0.3 * s, dt=5e-3)
        for robot, law in ((FLYER, known), (system, servo))
    ]
    for name in ("q", "v", "s", "u", "error", "lyapunov", "energy", "work"):
        one, other = (getattr(run, name) for run in runs)
        assert one == pytest.approx(other, abs=1e-9), name
    assert np.abs(runs[0].u).max() > 1.0


def test_margin_of_a_system_without_bodies_has_no_unit():
    """A coordinate in other units, and the output with it, leaves the margin as it is."""
    margins = []
    for factor in (1.0, 1e3):
        x = Factor("x", "R2")
        kinetic = (ca.sumsqr(x.v / factor) + x.v[0] * x.v[1] / factor**2) / 2
        system = cc.LagrangianSystem(kinetic, 0, [x], inputs=["x[0]", "x[1]"])
        value = ca.vertcat(x.q[0], x.q[0] + 0.5 * x.q[1])
        output = FunctionOutput("out", ca.Function("out", [x.q], [value]), "R2")
        margins.append(cc.Servo(cc.reduce(system), [output], 4.0, 4.0).margin([0.0, 0.0]))
    assert margins[0] == pytest.approx(margins[1], rel=1e-9)
    assert 0.1 < margins[0] <= 1.0


def test_a_law_without_outputs_drives_a_chain():
    """Damping at the joint and at the tip takes energy; the work of the law is its change."""
    system = chain(2)

    class Damping:
        model, torque_limits = cc.reduce(system), None

        def graph(self):
            q, s = ca.SX.sym("q", 6), ca.SX.sym("s", 6)
            u = -0.2 * self.model.input_matrix(q).T @ s
            return ca.Function("damping", [q, s], [u], ["q", "s"], ["u"])

    q0, s0 = np.array([0.6, 0.0, -0.8, 0.0, 0.6, -0.8]), np.zeros(6)
    run = cc.simulate(system, Damping(), None, 1.0, q0, s0, dt=5e-3)
    assert np.abs(run.energy_balance).max() < 1e-6
    assert run.energy[-1] < run.energy[0] - 0.5
    assert np.abs(np.linalg.norm(run.q.reshape(-1, 2, 3), axis=2) - 1.0).max() < 1e-14


Q = ca.SX.sym("q", ROVER.nq)
FAULTS = (
    (OutputError, "casadi.Function over SX", ("f", lambda q: q, "R")),
    (OutputError, "to one value", ("f", ca.Function("f", [Q], [Q, Q]), "R")),
    (OutputError, "a column", ("f", ca.Function("f", [ca.SX.sym("q", 1, 3)], [1.0]), "R")),
    (
        ShapeError,
        r"shape \(2, 1\) for group R2, got shape \(1, 1\)",
        ("f", ca.Function("f", [Q], [Q[0]]), "R2"),
    ),
    (ShapeError, r"shape \(3, 3\) for group SO3", ("f", ca.Function("f", [Q], [Q[0]]), "SO3")),
    (UnknownNameError, "group", ("f", ca.Function("f", [Q], [Q[0]]), "S3")),
    (UnknownNameError, "unit", ("f", ca.Function("f", [Q], [Q[0]]), "R", "km")),
)


def test_faults_of_functions_are_refused():
    for kind, text, given in FAULTS:
        with pytest.raises(kind, match=text):
            FunctionOutput(*given)
    short = ca.SX.sym("q", 3)
    for text, function, group in (
        (
            "a function of a configuration of `rover_arm`, 8 numbers, got one of 3",
            ca.Function("f", [short], [short[0]]),
            "R",
        ),
        ("off orthonormal by 3", ca.Function("f", [Q], [2.0 * ca.SX.eye(3)]), "SO3"),
        ("values on SO3", ca.Function("f", [Q], [-ca.SX.eye(3)]), "SO3"),
        ("length is off 1 by 1", ca.Function("f", [Q], [ca.SX([0, 2, 0])]), "S2"),
        ("NaN", ca.Function("f", [Q], [ca.log(-1.0 - Q[0] ** 2)]), "R"),
    ):
        with pytest.raises(OutputError, match=text):
            cc.Servo(cc.reduce(ROVER), [FunctionOutput("f", function, group)], 1.0, 1.0)
    same = FunctionOutput("f", ca.Function("f", [Q], [Q[0]]), "R")
    assert same == FunctionOutput("f", ca.Function("f", [Q], [Q[0]]), "R")
    assert same != FunctionOutput("f", ca.Function("f", [Q], [Q[1]]), "R")
    with pytest.raises(OutputError, match="expected an output on a body, got a FunctionOutput"):
        cc.inverse_kinematics(ROVER, [same], GOAL(0.0))


def test_systems_without_inputs_or_bodies_are_refused_with_a_cure():
    system = chain(1)
    tip = FunctionOutput(
        "tip", ca.Function("tip", [system.factors[0].q], [system.factors[0].q]), "R3"
    )
    free = cc.LagrangianSystem(ca.sumsqr(system.factors[0].qdot), 0, system.factors)
    with pytest.raises(OutputError, match=r"controls: expected at least 2 controls.*or inputs"):
        cc.Servo(cc.reduce(free), [tip], 1.0, 1.0)
    with pytest.raises(ReductionError, match="output `hand`: expected a Mechanism"):
        cc.Servo(cc.reduce(rebuilt(ROVER)), [HAND], 1.0, 1.0)
