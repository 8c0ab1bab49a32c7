"""Systems with a symmetry as trees have it: stages, phases, loops, audits, momenta.

Oracles: the same bodies as a tree, whose results have oracles of their own; sums of momenta of
point masses, integrated by SciPy; and motions of full order.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import DescriptionError, ReductionError, UnknownNameError
from concur.formulations import Factor
from concur.outputs import FunctionOutput
from concur.planning import geometric_phase, plan_loop
from concur.reduction import AuditStatus, conservation
from concur.simulation import Motion, forced_motion
from tests.formulations.test_symmetric import HULL, LOADS, MOMENTA, MOMENTS, masses, satellite
from tests.grid._systems import LUMP

MU = np.array([0.2, -0.1, 0.4])
SPATIAL = np.array([*MU[:2], 0.0, 0.0, 0.0, MU[2]])

DRIVEN = {"inputs": ["arm", "modes[0]", "modes[1]"]}
"""All of the satellite's shape, so that a loop can be forced."""

LOOP = cc.references.Loop([0.3, 0.02, -0.03], [[0.5, 0.0, 0.02]], [[0.0, 0.1, 0.05]], 2.0)


def bodies(driven: tuple[str, ...] = ("arm", "tip")) -> cc.Mechanism:
    """A planar hull with two joints."""
    turn = cc.joints.Revolute((0.0, 0.0, 1.0))
    base = cc.Body("hull", cc.joints.Planar(), inertia=LUMP)
    arm = cc.Body("arm", turn, "hull", cc.Pose((0.2, 0.0, 0.0)), inertia=LUMP)
    tip = cc.Body("tip", turn, "arm", cc.Pose((0.3, 0.1, 0.2)), inertia=LUMP)
    return cc.Mechanism("chain", [base, arm, tip], actuated=driven)


def energies(
    driven: tuple[str, ...] = ("arm", "tip"), symmetry: Any = "hull", robot: Any = None
) -> cc.LagrangianSystem:
    """The kinetic energy of these bodies as a system."""
    robot = robot or bodies(driven)
    factors = [Factor("hull", "SE2"), Factor("arm", "SO2"), Factor("tip", "SO2")]
    q, v = (ca.vertcat(*[getattr(f, x) for f in factors]) for x in "qv")
    energy = ca.SX(robot.kinetic_energy(q, v))
    return cc.LagrangianSystem(energy, 0.0, factors, inputs=driven, symmetry=symmetry)


@pytest.mark.parametrize("theta", [0.0, 0.35])
def test_stages_are_those_of_the_tree(theta: float) -> None:
    """A passive rotor keeps its momentum beside that of the hull: a stage of section 4.5."""
    driven, stages = ("arm",), {"tip": theta}
    robot = round_tip(driven)
    tree = cc.reduce(robot, SPATIAL, stages=stages)
    model = cc.reduce(energies(driven, robot=robot), MU, stages=stages)
    assert (model.kind, model.stages, model.shape_names) == ("staged", ("tip",), ("arm",))
    rng = np.random.default_rng(7)
    for _ in range(3):
        q, (s, w) = robot.random(rng), rng.normal(size=(2, 1))
        for found, expected in zip(model.lift(q), tree.lift(q), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(model.mass_matrix(q), tree.mass_matrix(q), atol=1e-12)
        for method in ("bias", "coriolis", "hamiltonian"):
            found, expected = (getattr(m, method)(q, s) for m in (model, tree))
            np.testing.assert_allclose(found, expected, atol=1e-10, err_msg=method)
        np.testing.assert_allclose(model.acceleration(q, s, w), tree.acceleration(q, s, w))
        residual, own = model.chain[0].momentum_residual(q, model.velocity(q, s))
        assert abs(residual).max() < 1e-14 + 1e-13 * abs(own).max()
    assert "tip" in model.reason
    first = cc.reduce(energies(driven, robot=robot), MU)
    assert 'unactuated and keeps its momentum: stages="auto"' in first.reason
    assert first.audit()["CON2"].why.endswith("`concur check --stages auto`")
    assert "stages" not in cc.reduce(satellite()).reason  # springs push its modes
    assert cc.reduce(energies(driven, robot=robot), MU, stages="auto").shape_names == ("arm",)


def round_tip(driven: tuple[str, ...]) -> cc.Mechanism:
    """The chain with a rotor at its end: its centre of mass is on its axis."""
    robot = bodies(driven)
    rotor = cc.Inertia(0.7, moments=(0.1, 0.1, 0.2))
    tip = cc.Body("tip", robot.bodies[2].joint, "arm", cc.Pose((0.3, 0.1, 0.2)), inertia=rotor)
    return cc.Mechanism("chain", [*robot.bodies[:2], tip], actuated=driven)


def test_stages_are_a_product_of_groups_and_motions_of_full_order() -> None:
    """One after the other, both at once, and without a reduction: the same motion."""
    driven = ("arm",)
    robot = round_tip(driven)
    staged = cc.reduce(energies(driven, robot=robot), MU, stages={"tip": 0.35})
    whole = energies(driven, ("hull", "tip"), robot)
    product = cc.reduce(whole, [*MU, 0.35])
    free = cc.reduce(energies(driven, (), robot))
    q0 = np.array([0.3, -0.2, 0.5, 0.4, -0.7])
    np.testing.assert_allclose(staged.velocity(q0, [0.3]), product.velocity(q0, [0.3]), atol=1e-13)
    motions = [
        forced_motion(m, [0.2], 2.0, q0, s0, dt=0.1)
        for m, s0 in (
            (staged, [0.3]),
            (product, [0.3]),
            (free, staged.velocity(q0, [0.3])),
        )
    ]
    for other in motions[1:]:
        np.testing.assert_allclose(motions[0].q, other.q, atol=1e-9)
        np.testing.assert_allclose(motions[0].v, other.v, atol=1e-9)
    kept = [whole.momentum(q, v) for q, v in zip(motions[2].q, motions[2].v, strict=True)]
    np.testing.assert_allclose(kept, np.tile([*MU, 0.35], (21, 1)), atol=1e-9)


def test_a_stage_after_constraints() -> None:
    """The sleigh of Chaplygin with a passive rotor, whose momentum edge and drives leave alone."""
    body, rotor = Factor("sleigh", "SE2"), Factor("rotor", "SO2")
    vx, vy, turn = ca.vertsplit(body.v)
    kinetic = (2.0 * (vx**2 + (vy + 0.25 * turn) ** 2) + 0.3 * turn**2) / 2
    kinetic += 0.05 * (turn + rotor.v) ** 2 / 2
    system = cc.LagrangianSystem(
        kinetic, 0.0, [body, rotor], constraints={"edge": vy}, inputs=["sleigh[vx]"]
    )
    model = cc.reduce(system, stages={"rotor": 0.02})
    assert model.stages == ("rotor",)
    q0, s0 = np.array([0.1, -0.2, 0.3, 0.4]), [0.2, 1.7]
    v0 = model.velocity(q0, s0)
    assert v0[3] + v0[2] == pytest.approx(0.02 / 0.05, abs=1e-12)
    motion = forced_motion(model, [0.3], 3.0, q0, s0, dt=0.1)

    # Newton's equations along the edge and about the contact, with a rotor that keeps its spin.
    def slope(t: float, y: np.ndarray) -> list[float]:
        heading, speed, rate = y[2], *y[4:6]
        push = [2.0 * 0.25 * rate**2 + 0.3, -2.0 * 0.25 * speed * rate]
        return [
            speed * np.cos(heading),
            speed * np.sin(heading),
            rate,
            0.4 - rate,
            push[0] / 2.0,
            push[1] / (0.3 + 2.0 * 0.25**2),
        ]

    expected = solve_ivp(slope, (0, 3), [*q0, *s0], "DOP853", motion.t, rtol=1e-12, atol=1e-12).y.T
    np.testing.assert_allclose(motion.q, expected[:, :4], atol=1e-9)
    np.testing.assert_allclose(motion.s, expected[:, 4:], atol=1e-9)
    audit = model.audit()
    assert audit["NHR3"].status is AuditStatus.HOLDS
    assert audit["NHR2"].status is AuditStatus.HOLDS


def test_conservation_is_that_of_the_tree() -> None:
    for driven in (("arm", "tip"), ("arm",), ("tip",)):
        for robot in (bodies(driven), round_tip(driven)):
            tree = cc.reduce(robot, SPATIAL)
            model = cc.reduce(energies(driven, robot=robot), MU)
            for joint in ("arm", "tip"):
                found, expected = conservation(model, joint), conservation(tree, joint)
                assert found.conserved == expected.conserved
                assert found.equation == expected.equation
                np.testing.assert_allclose(found.rate, expected.rate, rtol=0.3, atol=1e-12)
    assert conservation(
        cc.reduce(energies(("arm",), robot=round_tip(("arm",))), MU), "tip"
    ).conserved
    with pytest.raises(UnknownNameError, match="shape joint"):
        conservation(model, "hull")


# --- phases and loops ----------------------------------------------------------------------------


def moved(loop: cc.references.Loop, momentum: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Displacement of the satellite's hull after a loop, from the momenta of its masses."""
    places = _places()

    def velocity(position: np.ndarray, turn: Rotation, t: float) -> np.ndarray:
        sample = loop(t)
        r, rate = sample.flat_pose, sample.twist
        inner = [turn.apply(np.array(x)[:, 0]) for x in places(r)[:3]]
        own = [turn.apply(np.array(x) @ rate) for x in places(r)[3:]]
        rows, rest = np.zeros((6, 6)), np.zeros(6)
        for mass, arm, speed in zip(
            [HULL, *LOADS], [np.zeros(3), *inner], [np.zeros(3), *own], strict=True
        ):
            to_point = np.hstack([np.eye(3), -_skew(arm)])
            moment = np.vstack([np.eye(3), _skew(position + arm)])
            rows += mass * moment @ to_point
            rest += mass * moment @ speed
        axes = turn.as_matrix()
        rows[3:, 3:] += axes @ np.diag(MOMENTS) @ axes.T
        return np.linalg.solve(rows, momentum - rest)

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        turn = Rotation.from_quat(y[3:])
        v = velocity(y[:3], turn, t)
        spin = Rotation.from_quat(y[3:]).inv().apply(v[3:])
        x, y4, z, w = y[3:]
        rate = 0.5 * np.array([[w, -z, y4], [z, w, -x], [-y4, x, w], [-x, -y4, -z]]) @ spin
        return np.concatenate([v[:3], rate])

    end = solve_ivp(slope, (0.0, loop.duration), start, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    first, last = np.eye(4), np.eye(4)
    for pose, y in ((first, start), (last, end)):
        pose[:3, :3], pose[:3, 3] = Rotation.from_quat(y[3:]).as_matrix(), y[:3]
    return np.linalg.solve(first, last)


@cache
def _places() -> ca.Function:
    """Places of the masses in the hull, and their slopes, for the shape."""
    r = ca.SX.sym("r", 3)
    found = masses(r[0], r[1:])
    return ca.Function("places", [r], [*found, *[ca.jacobian(place, r) for place in found]])


def _skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["none", "all"])
def test_the_phase_is_that_of_the_momenta_of_all_masses(name: str) -> None:
    """To 1e-9, at zero momentum and at another, in space."""
    q0 = np.concatenate([[0.3, -0.2, 0.1], Rotation.from_euler("xyz", [0.2, -0.3, 0.4]).as_quat()])
    mu = MOMENTA[name]
    phase = geometric_phase(cc.reduce(satellite(), mu), LOOP, np.concatenate([q0, LOOP.start]))
    assert (phase.body, phase.momentum) == ("hull", tuple(mu))
    np.testing.assert_allclose(phase.total, moved(LOOP, mu, q0), atol=1e-9)
    np.testing.assert_allclose(phase.pose, moved(LOOP, np.zeros(6), q0), atol=1e-9)
    assert abs(phase.pose - np.eye(4)).max() > 1e-3


def test_phases_of_the_tree() -> None:
    """Pose, area rule, integral and parts of a momentum, in the plane."""
    loop = cc.references.Loop([0.4, -0.7], [[0.5, 0.1]], [[0.0, 0.4]], 3.0)
    q0 = [0.3, -0.2, 0.5, 0.0, 0.0]
    found = geometric_phase(cc.reduce(energies(), MU), loop, q0)
    expected = geometric_phase(cc.reduce(bodies(), SPATIAL), loop, q0)
    for part in ("pose", "log", "area_rule", "integral", "exact", "dynamic", "total"):
        np.testing.assert_allclose(
            getattr(found, part), getattr(expected, part), atol=1e-9, err_msg=part
        )
    assert found.momentum == tuple(MU)


def test_the_phase_of_a_factor_of_a_product() -> None:
    """A free rotor beside the hull turns by minus the integral of its own connection."""
    driven = ("arm",)
    robot = round_tip(driven)
    model = cc.reduce(energies(driven, ("hull", "tip"), robot))
    loop = cc.references.Loop([0.4], [[0.8]], [[0.0]], 3.0)
    phase = geometric_phase(model, loop, body="tip")
    assert (phase.body, phase.names, phase.exact.tolist()) == ("tip", ("tip",), [True])
    assert abs(phase.log[0]) < 1e-11  # one coordinate encloses no area
    straight = model.connection([0.0, 0.0, 0.0, 0.4, 0.0])[3, 0]
    assert abs(straight) > 0.1
    with pytest.raises(UnknownNameError, match="body that the shape moves"):
        geometric_phase(model, loop, body="arm")


@pytest.mark.extended
def test_a_planned_loop_turns_the_satellite(tmp_path: Path) -> None:
    """By 0.05 rad about z, as the momenta of all masses have it, and by torques at full order."""
    system = satellite(**DRIVEN)
    model = cc.reduce(system)
    limits = [[-1.5, 1.5], [-0.3, 0.3], [-0.3, 0.3]]
    plan = plan_loop(model, [0.0, 0.0, 0.05], duration=4.0, limits=limits)
    assert plan.reached, plan.why
    start = plan.start()
    pose = moved(plan.loop, np.zeros(6), start[:7])
    np.testing.assert_allclose(
        Rotation.from_matrix(pose[:3, :3]).as_rotvec(), [0, 0, 0.05], atol=2e-6
    )
    path = plan.loop.places(np.linspace(0.0, 1.0, 400))
    assert (np.array(limits)[:, 0] <= path.min(axis=0)).all()
    assert (path.max(axis=0) <= np.array(limits)[:, 1]).all()
    s0 = plan.loop(0.0).twist
    motion = forced_motion(model, plan.torque, 4.0, start, s0, dt=0.02)
    np.testing.assert_allclose(motion.q[-1, 7:], start[7:], atol=1e-6)
    turn = Rotation.from_quat(motion.q[-1, 3:7]) * Rotation.from_quat(start[3:7]).inv()
    np.testing.assert_allclose(turn.as_rotvec(), [0.0, 0.0, 0.05], atol=5e-6)
    plan.plot().savefig(tmp_path / "loop.png")
    with pytest.raises(ReductionError, match=r"at_momentum\(\[0\] \* 6\)"):
        plan_loop(model.at_momentum(MOMENTA["all"]), [0.0, 0.0, 0.05])


# --- momenta of motions, audits ------------------------------------------------------------------


def test_motions_and_runs_report_the_drift_of_the_momentum(tmp_path: Path) -> None:
    model = cc.reduce(satellite(), MOMENTA["all"])
    q0 = np.concatenate([[0.3, -0.2, 0.1, 0.0, 0.0, 0.0, 1.0], [0.5, 0.02, -0.03]])
    motion = forced_motion(model, [0.3], 1.0, q0, [0.4, 0.3, -0.2], dt=0.1)
    assert motion.keeps_momentum
    np.testing.assert_allclose(motion.momentum, np.tile(MOMENTA["all"], (11, 1)), atol=1e-12)
    assert motion.momentum_drift.max() < 1e-12
    other = Motion(model.at_momentum(MOMENTA["a turn"]), motion.arrays, motion.method, 0.0)
    assert other.momentum_drift.max() < 1e-12  # velocities are lifted with its own momentum
    path = motion.save(tmp_path / "motion.h5")
    np.testing.assert_array_equal(Motion.load(path, model).q, motion.q)
    with pytest.raises(DescriptionError, match="momentum"):
        Motion.load(path, model.at_momentum(MOMENTA["a turn"]))
    free = cc.reduce(satellite(symmetry=()))
    other_motion = forced_motion(free, [0.3], 0.1, q0, np.zeros(9), dt=0.1)
    with pytest.raises(cc.errors.SimulationError, match="momentum_drift"):
        _ = other_motion.momentum_drift


def hand(system: cc.LagrangianSystem, robot: cc.Mechanism) -> FunctionOutput:
    q = ca.SX.sym("q", system.nq)
    return FunctionOutput("hand", ca.Function("hand", [q], [robot.pose(q, "tip")[:2, 3]]), "R2")


def test_audits_are_those_of_the_tree() -> None:
    robot, system = bodies(), energies()
    tree, model = cc.reduce(robot, SPATIAL), cc.reduce(system, MU)
    laws = [
        cc.Servo(model, [hand(system, robot)], 4.0, 4.0),
        cc.Servo(tree, [cc.Output("hand", "tip", "R2")], 4.0, 4.0),
    ]
    q0 = [0.3, -0.2, 0.5, 0.4, -0.7]
    audits = [law.audit(q0=q0) for law in laws]
    for row, expected in zip(*audits, strict=True):
        assert (row.id, row.status) == (expected.id, expected.status), row.why
    assert audits[0]["CON7"].values["residual"] < 1e-12
    assert model.audit()["CON1"].values["mass_matrix"] < 1e-12


@pytest.mark.parametrize(
    ("edge", "failing"),
    [
        (lambda q, v: v[1], {"NHR1": "not checked"}),
        (lambda q, v: v[1] + 1e-11 * q[1] * v[3], {}),
        (lambda q, v: v[1] + 1e-6 * q[1] * v[3], {"NHR2": "not needed"}),
        (lambda q, v: v[1] * ca.sin(q[3]) + v[3], {"NHR3": "fails"}),
    ],
)
def test_audits_of_constraints(edge: Any, failing: dict[str, str]) -> None:
    """A row that turns with the factor it determines, and one that lets go of it."""
    body, slide = Factor("body", "R3"), Factor("slide", "R")
    v, q = ca.vertcat(body.v, slide.v), ca.vertcat(body.q, slide.q)
    system = cc.LagrangianSystem(
        ca.sumsqr(v) / 2, 0.0, [body, slide], constraints={"edge": edge(q, v)}, inputs=["slide"]
    )
    model = replace(cc.reduce(system), shape=(0, 2, 3), dependent=(1,))
    found = {row.id: row.status.value for row in model.audit() if row.id.startswith("NHR")}
    assert found == {"NHR1": "not checked", "NHR2": "holds", "NHR3": "holds"} | failing


def test_the_run_of_a_servo_keeps_the_momentum() -> None:
    robot, system = bodies(), energies()
    law = cc.Servo(cc.reduce(system, MU), [hand(system, robot)], 9.0, 6.0)
    q0 = np.array([0.3, -0.2, 0.5, 0.4, -0.7])
    goal = cc.references.hold(law.output(q0) + np.array([0.05, -0.02]))
    run = cc.simulate(system, law, goal, 1.0, q0, np.zeros(2), dt=5e-3)
    assert run.momentum_drift.max() < 1e-8
    staged = cc.reduce(energies(("arm",), robot=round_tip(("arm",))), MU, stages={"tip": 0.35})
    angle = FunctionOutput("arm", _coordinate(5, 3), "SO2")
    law = cc.Servo(staged, [angle], 9.0, 6.0)
    run = cc.simulate(law.model.system, law, cc.references.hold([0.6]), 1.0, q0, [0.0], dt=5e-3)
    assert run.stage_drifts["tip"].max() < 1e-8


def _coordinate(size: int, index: int) -> ca.Function:
    q = ca.SX.sym("q", size)
    return ca.Function("coordinate", [q], [q[index]])


def test_hamilton_poincare_of_the_tree_and_of_accelerations() -> None:
    """Rates of both momenta: those of the tree, and M vdot from the motion of full order."""
    robot = bodies()
    tree, model = cc.reduce(robot, SPATIAL), cc.reduce(energies(), MU)
    rng = np.random.default_rng(8)
    for _ in range(3):
        q, p, u, wrench = robot.random(rng), *rng.normal(size=(2, 2)), rng.normal(size=3)
        pi = model.body_momentum(q)
        for found, expected in zip(
            model.hamilton_poincare(q, pi, p, u, wrench),
            tree.hamilton_poincare(q, pi, p, u, wrench),
            strict=True,
        ):
            np.testing.assert_allclose(found, expected, atol=1e-9)
    # The group stands behind its shape, and beside a second factor.
    system = satellite("SO3")
    model = cc.reduce(system, [0.2, -0.3, 0.5])
    q, p, h = system.random(rng), rng.normal(size=3), 1e-5
    v, rate, pdot = model.hamilton_poincare(q, model.body_momentum(q), p, [0.3], np.zeros(3))
    vdot, _ = cc.Plant(system).acceleration(q, v, [0.3])
    ahead, behind = (system.integrate(q, t * v + t**2 / 2 * vdot) for t in (h, -h))
    momenta = [system.mass_matrix(x) @ (v + t * vdot) for x, t in ((ahead, h), (behind, -h))]
    change = (momenta[0] - momenta[1]) / (2 * h)
    np.testing.assert_allclose(rate, change[:3], atol=1e-6)
    forms = [model.connection(x).T for x in (ahead, behind)]
    reduced = [m[3:] - form @ m[:3] for m, form in zip(momenta, forms, strict=True)]
    np.testing.assert_allclose(pdot, (reduced[0] - reduced[1]) / (2 * h), atol=1e-6)
