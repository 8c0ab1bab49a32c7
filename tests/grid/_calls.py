"""Laws, references, imperfections and calls of the grid."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import concur as cc
from concur.certify import operating_bounds
from concur.show.viewer import Film
from concur.simulation import (
    GravityGradient,
    Imperfections,
    Integrator,
    RealPlant,
    Slip,
    Wrench,
)
from tests.grid._systems import Case

r = cc.references


class Brake:
    """A law of a user, with or without a state and outputs."""

    torque_limits = None

    def __init__(self, model: Any, state: int | None = None, outputs: Any = ()) -> None:
        self.model, self.state, self.outputs = model, state, outputs

    def graph(self) -> ca.Function:
        """Damping, and a state that is the travelled distance."""
        q, s = ca.SX.sym("q", self.model.nq), ca.SX.sym("s", self.model.ns)
        u = -2.0 * ca.SX(ca.DM.ones(self.model.nu, 1)) * ca.sumsqr(s)
        inputs, names, results, given = [q, s], ["q", "s"], [u], ["u"]
        if self.state is not None:
            z = ca.SX.sym("z", self.state)
            inputs, names = [*inputs, z], [*names, "z"]
            results, given = [u, -z], ["u", "zdot"]
        if self.outputs:
            sizes = {"pose": sum(o.pose_size for o in self.outputs)}
            size = sum(o.dim for o in self.outputs)
            sizes |= dict.fromkeys(("twist", "acceleration"), size)
            inputs = [*inputs, *(ca.SX.sym(*entry) for entry in sizes.items())]
            names = [*names, *sizes]
        return ca.Function("brake", inputs, results, names, given)


def _servo(**options: Any) -> Callable[[Case], Any]:
    return lambda case: cc.Servo(case.model, case.outputs, 4.0, 4.0, **options)


def _joints(kind: Any, tables: bool = False, **options: Any) -> Callable[[Case], Any]:
    def build(case: Case) -> Any:
        model = case.model
        place = case.q0[list(model.shape_coordinates)] + 0.01
        path = r.waypoints([0.0, 1.0, 2.0], [place] * 3) if tables else r.hold(place)
        return kind(model, path, 4.0, 4.0, **options)

    return build


def _redundant(**options: Any) -> Callable[[Case], Any]:
    def build(case: Case) -> Any:
        posture = {"posture": case.q0} if options.get("objective") == "posture" else {}
        rule = cc.control.Redundancy(**options, **posture)
        return cc.Servo(case.model, case.outputs, 4.0, 4.0, redundancy=rule)

    return build


LAWS: dict[str, Callable[[Case], Any]] = {
    "servo": _servo(),
    "matrix_gains": lambda case: cc.Servo(
        case.model,
        case.outputs,
        *[k * np.eye(sum(o.dim for o in case.outputs)) for k in (4.0, 5.0, 2.0)],
    ),
    "integral": _servo(integral=1.0),
    "limited": _servo(torque_limits=3.0),
    "limited_integral": _servo(torque_limits=3.0, integral=0.5),
    "damped": _servo(damping_threshold=0.05),
    "measured": _servo(use_measured_velocity=True),
    "posture": _redundant(objective="posture"),
    "least_torque": _redundant(weight="torque", objective="posture"),
    "base_rotation": _redundant(objective="base_rotation"),
    "passive": lambda case: cc.PassiveServo(case.model, case.outputs, 8.0, 4.0, rate=1.0),
    "passive_limited": lambda case: cc.PassiveServo(
        case.model, case.outputs, 8.0, 4.0, rate=1.0, torque_limits=1.0
    ),
    "payload": lambda case: cc.PassiveServo(
        case.model, case.outputs, 8.0, 4.0, rate=1.0, payload="arm"
    ),
    "pd": _joints(cc.laws.PD),
    "computed_torque": _joints(cc.laws.ComputedTorque, torque_limits=2.0),
    "pd_tables": _joints(cc.laws.PD, tables=True),
    "brake": lambda case: Brake(case.model),
    "brake_state": lambda case: Brake(case.model, 1),
    "brake_outputs": lambda case: Brake(case.model, None, case.outputs),
}
"""Laws by name. The first is the one of cells that vary something else."""


@dataclass(frozen=True, eq=False)
class Setup:
    """What a call of the grid takes: a case, a law, and a folder."""

    case: Case
    law_name: str
    folder: Path

    @property
    def system(self) -> Any:
        """The robot or system."""
        return self.case.system

    @property
    def model(self) -> Any:
        """The reduced model."""
        return self.case.model

    @cached_property
    def law(self) -> Any:
        """The law."""
        return cc.control.tracking_law(LAWS[self.law_name](self.case))

    @property
    def outputs(self) -> Any:
        """Outputs of the law."""
        return tuple(self.law.outputs)

    @cached_property
    def reference(self) -> Any:
        """A reference near the start; None for a law without outputs."""
        return reference("hold", self) if self.outputs else None

    @property
    def sample(self) -> Any:
        """Its sample at the start."""
        return None if self.reference is None else self.reference(0.0)

    @property
    def s0(self) -> np.ndarray:
        """Shape velocities: rest."""
        return np.zeros(self.model.ns)

    @property
    def w0(self) -> np.ndarray:
        """Velocities that the law takes."""
        return np.zeros(self.law.nw)

    @cached_property
    def run(self) -> Any:
        """Two steps."""
        return simulated(self)


def simulated(setup: Setup, duration: float = 2e-3, **options: Any) -> Any:
    """Simulate some steps, and demand finite states."""
    options.setdefault("dt", 1e-3)
    run = cc.simulate(
        setup.system, setup.law, setup.reference, duration, setup.case.q0, setup.s0, **options
    )
    assert np.isfinite(run.q).all()
    assert np.isfinite(run.u).all()
    assert run.q.shape == (len(run.t), setup.model.nq)
    assert run.u.shape == (
        len(run.t),
        setup.model.nu,
    )
    return run


def _parts(setup: Setup) -> list[tuple[np.ndarray, str]]:
    """Flat pose and group of each output at the start."""
    law = setup.law
    flat, at, parts = np.asarray(law.output(setup.case.q0)), 0, []
    for output in law.outputs:
        parts.append((flat[at : at + output.pose_size], output.group))
        at += output.pose_size
    return parts


REFERENCES: dict[str, Callable[[np.ndarray, str], Any]] = {
    "hold": lambda p, g: r.hold(p, g),
    "polynomial": lambda p, g: r.polynomial(
        [p, np.full(len(p), 0.01)] if g.startswith("R") and g != "R3xSO3" else [np.zeros(_DIM[g])],
        **({} if g.startswith("R") and g != "R3xSO3" else {"start": p, "group": g}),
    ),
    "constant": lambda p, g: r.polynomial([p], group=g),
    "rest_to_rest": lambda p, g: r.rest_to_rest(p, p, 1.0, group=g),
    "waypoints": lambda p, g: r.waypoints([0.0, 1.0, 2.0], [p, p, p], group=g),
    "two_waypoints": lambda p, g: r.waypoints([0.0, 1.0], [p, p], group=g),
    "one_waypoint": lambda p, g: r.waypoints([0.0], [p], group=g),
    "no_waypoints": lambda p, g: r.waypoints([], [], group=g),
    "table": lambda p, g: r.table([0.0, 1.0, 2.0], [p, p, p], group=g),
    "table_of_one": lambda p, g: r.table([0.0], [p], group=g),
    "from_file": lambda p, g: r.from_file(_file_of(p), group=g),
    "screw": lambda p, g: r.screw(p, np.full(_DIM[g], 0.01), group=g),
    "still_screw": lambda p, g: r.screw(p, np.zeros(_DIM[g]), group=g),
    "circle": lambda p, g: r.circle(p[:3], 0.01, 5.0, group=g),
    "loop": lambda p, g: r.Loop(p, [np.full(len(p), 0.01)], [np.zeros(len(p))], 1.0),
    "function": lambda p, g: r.from_function(lambda t: r.hold(p, g)(t), len(p), _DIM[g]),
    "callable": lambda p, g: r.hold(p, g).__call__,
    "drifting": lambda p, g: r.drifting(r.hold(p, g), [0.01, 0.0, 0.0]),
    "moving": lambda p, g: r.moving(r.hold(p, g), np.full(6, 0.01)),
    "relative": lambda p, g: r.relative(r.hold(p, g), r.hold(p, g)),
    "composed": lambda p, g: r.composed(r.hold(p, g), r.hold(p, g)),
    "planar": lambda p, g: r.planar(r.hold(p, g)),
    "bare": lambda p, g: r.hold(p),
}
"""References of one output by name, from its flat pose and group."""


def _file_of(p: np.ndarray) -> Path:
    """A file in which an output stays at a pose."""
    path = Path(tempfile.mkdtemp()) / "pose.csv"
    np.savetxt(path, np.column_stack([np.arange(3.0), np.tile(p, (3, 1))]), fmt="%.17g")
    return path


_DIM = {"R": 1, "R2": 2, "R3": 3, "SO2": 1, "SE2": 3, "SO3": 3, "SE3": 6, "R3xSO3": 6}


def reference(name: str, setup: Setup) -> Any:
    """A reference of all outputs of the law."""
    parts = [REFERENCES[name](p, g) for p, g in _parts(setup)]
    if len(parts) == 1:
        return parts[0]
    if name == "callable":
        whole = r.stack(*[r.hold(p, g) for p, g in _parts(setup)])
        return lambda t: whole(t)
    return r.stack(*parts)


def _of(**numbers: Any) -> Callable[[Any], Any]:
    return lambda robot: Imperfections.of(robot, **numbers)


def _last(robot: Any) -> str:
    return str(robot.bodies[-1].name) if hasattr(robot, "bodies") else "arm"


IMPERFECTIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda robot: None,
    "ideal": lambda robot: Imperfections(),
    "of_nothing": _of(),
    "viscous": _of(viscous=0.1),
    "coulomb": _of(coulomb=0.001),
    "stribeck": _of(coulomb=0.001, stribeck=0.001),
    "ideal_motors": _of(motors=False, viscous=0.1),
    "ripple": _of(ripple=0.01),
    "lag": _of(lag=0.003),
    "flexible": _of(stiffness=500.0, damping=1.0, motor_inertia=0.1),
    "latency": _of(latency=0.0015),
    "jitter": _of(jitter=0.0005),
    "resolution": _of(resolution=1e-4),
    "noise": _of(noise=1e-5),
    "velocity_noise": _of(velocity_noise=1e-4),
    "momentum_error": _of(momentum_error=(0.0, 0.0, 0.0, 0.0, 0.0, 0.01)),
    "no_momentum_error": _of(momentum_error=np.zeros(6)),
    "wrench": lambda robot: Imperfections.of(
        robot, disturbances=[Wrench("push", _last(robot), force=(0.1, 0.0, 0.0))]
    ),
    "no_wrench": lambda robot: Imperfections.of(robot, disturbances=[Wrench("push", _last(robot))]),
    "gravity_gradient": lambda robot: Imperfections.of(
        robot, disturbances=[GravityGradient(rate=0.001)]
    ),
    "zero_everything": _of(
        viscous=0.0, ripple=0.0, lag=0.0, latency=0.0, jitter=0.0, resolution=0.0, noise=0.0
    ),
    "everything": _of(
        viscous=0.1,
        coulomb=0.001,
        ripple=0.01,
        lag=0.003,
        latency=0.0015,
        jitter=0.0005,
        resolution=1e-4,
        noise=1e-5,
        velocity_noise=1e-4,
    ),
}
"""Imperfections by name: each alone, none and all."""


def _ticked(tick: Any, setup: Setup) -> Any:
    return tick(setup.case.q0, setup.w0, *([] if setup.sample is None else [setup.sample]))


def _saved(setup: Setup) -> Any:
    run = setup.run
    path = run.save(setup.folder / "run.h5")
    again = cc.Run.load(path, setup.law)
    assert np.array_equal(again.q, run.q)
    assert np.array_equal(again.u, run.u)
    return again


def _forced(setup: Setup, **options: Any) -> Any:
    return cc.simulation.forced_motion(
        setup.model, options.pop("torque", None), 2e-2, setup.case.q0, setup.s0, **options
    )


def _moved(setup: Setup) -> Any:
    motion = _forced(setup)
    path = motion.save(setup.folder / "motion.h5")
    again = cc.simulation.Motion.load(path, setup.model)
    assert np.array_equal(again.q, motion.q)
    motion.to_csv(setup.folder / "motion.csv")
    motion.plot()
    return motion.energy_balance, motion.momentum_drift


def _place(s: Setup, output: cc.Output) -> np.ndarray:
    """Coordinates of an output at the start."""
    return np.asarray(cc.Servo(s.model, [output], 1.0, 1.0).output(s.case.q0))


def _target(setup: Setup) -> Any:
    return setup.reference(0.0)


Call = Callable[[Setup], Any]

OF_SYSTEMS: dict[str, Call] = {
    "reduce": lambda s: repr(cc.reduce(s.system, **s.case.reduced)),
    "reduce momentum": lambda s: cc.reduce(s.system, momentum=np.zeros(6)),
    "reduce stages": lambda s: cc.reduce(s.system, stages="auto"),
    "model repr": lambda s: (repr(s.model), s.model.shape_names, s.model.reason, s.model.kind),
    "model audit": lambda s: repr(s.model.audit()),
    "model audit outputs": lambda s: str(s.model.audit(s.case.outputs)),
    "model velocity": lambda s: s.model.velocity(s.case.q0, s.s0),
    "model mass_matrix": lambda s: s.model.mass_matrix(s.case.q0),
    "model bias": lambda s: s.model.bias(s.case.q0, s.s0),
    "model acceleration": lambda s: s.model.acceleration(s.case.q0, s.s0, np.zeros(s.model.nu)),
    "model coriolis": lambda s: s.model.coriolis(s.case.q0, s.s0),
    "model hamiltonian": lambda s: s.model.hamiltonian(s.case.q0, s.s0),
    "model two_form": lambda s: s.model.two_form(s.case.q0, s.s0),
    "model vector_field": lambda s: s.model.vector_field(s.case.q0, s.s0, np.zeros(s.model.nu)),
    "model momentum_fields": lambda s: s.model.momentum_fields(s.case.q0),
    "model regularity": lambda s: s.model.regularity(s.case.q0),
    "model shape_coordinates": lambda s: s.model.shape_coordinates,
    "model locked_inertia": lambda s: s.model.locked_inertia(s.case.q0),
    "model leverage": lambda s: s.model.leverage(s.case.q0),
    "symmetry": lambda s: str(cc.symmetry(s.system)),
    "symmetry of model": lambda s: str(cc.symmetry(s.model)),
    "conservation": lambda s: (
        [str(cc.reduction.conservation(s.model, body.name)) for body in s.system.bodies[1:]]
        if hasattr(s.system, "bodies")
        else [str(cc.reduction.conservation(s.model, name)) for name in s.model.shape_names]
    ),
    "constants_of_motion": lambda s: str(cc.reduction.constants_of_motion(s.model)),
    "robot methods": lambda s: [
        s.system.neutral(),
        s.system.mass_matrix(s.case.q0),
        s.system.bias(s.case.q0, np.zeros(s.system.nv)),
        s.system.constraints(s.case.q0),
        s.system.kinetic_energy(s.case.q0, np.zeros(s.system.nv)),
        s.system.potential_energy(s.case.q0),
        s.system.integrate(s.case.q0, np.zeros(s.system.nv)),
        s.system.random(np.random.default_rng(0)),
        s.system.normalize(s.case.q0),
        repr(s.system),
    ],
    "robot bodies": lambda s: (
        [
            (
                s.system.pose(s.case.q0, b.name),
                s.system.jacobian(s.case.q0, b.name),
                s.system.momentum(s.case.q0, np.zeros(s.system.nv)),
            )
            for b in s.system.bodies
        ]
        if hasattr(s.system, "bodies")
        else None
    ),
    "forced_motion": _forced,
    "forced_motion zeros": lambda s: _forced(
        s, torque=np.zeros(s.model.nu), dt=Integrator("rkmk4", 1e-2)
    ),
    "forced_motion callable": lambda s: _forced(
        s, torque=lambda t, q, v: np.zeros(s.model.nu), dt=Integrator("rkmk4", 1e-2)
    ),
    "Motion": _moved,
    "reconstruct": lambda s: cc.simulation.reconstruct(
        s.model, s.case.q0, [0.0, 0.01], lambda t: s.s0
    ),
    "reconstruct one time": lambda s: cc.simulation.reconstruct(
        s.model, s.case.q0, [0.0], lambda t: s.s0
    ),
    "Plant": lambda s: cc.Plant(s.system).acceleration(
        s.case.q0, np.zeros(s.system.nv), np.zeros(s.model.nu)
    ),
    "Plant slip": lambda s: cc.Plant(s.system, slip=Slip.of(s.system, 0.8)),
    "Plant export": lambda s: cc.Plant(s.system).export(s.folder / "plant", s.model),
    "linear_loop model": lambda s: cc.control.linear_loop(s.model, at=s.case.q0),
    "singularities": lambda s: str(cc.singularities(s.system, s.case.outputs, s.case.q0)),
    "singularities model": lambda s: str(
        cc.singularities(s.system, s.case.outputs, s.case.q0, model=s.model)
    ),
    "singularities path": lambda s: str(
        cc.singularities(s.system, s.case.outputs, [s.case.q0, s.case.q0])
    ),
    "plan_loop": lambda s: cc.planning.plan_loop(
        s.model, np.full(s.model.robot.base.joint.nv, 1e-3), cycles=1, harmonics=1
    ),
    "plan_loop rest": lambda s: cc.planning.plan_loop(
        s.model, np.zeros(s.model.robot.base.joint.nv)
    ),
    "plan": lambda s: cc.plan(
        s.model,
        s.case.outputs,
        s.case.q0,
        {o.name: _place(s, o) for o in s.case.outputs},
        cc.planning.PlanLimits(torques=100.0, speeds=1.0),
        guesses=1,
    ),
    "geometric_phase": lambda s: cc.planning.geometric_phase(
        s.model, np.zeros((5, s.model.ns)), s.case.q0
    ),
    "design_gains lqr": lambda s: cc.design_gains(s.case.outputs, method="lqr", error_weight=1.0),
    "design_gains": lambda s: cc.design_gains(s.case.outputs, 1.0),
    "certified_gains": lambda s: cc.certified_gains(
        s.case.outputs, s.model, 50.0, [s.case.q0], angle=0.5, distance=0.1
    ),
    "plot robot": lambda s: cc.show.robot_figure(s.system, s.case.q0),
}
"""Calls that take a system or its model."""

OF_LAWS: dict[str, Call] = {
    "law repr": lambda s: (repr(s.law), getattr(s.law, "_repr_html_", lambda: "")()),
    "torque": lambda s: s.law.torque(s.case.q0, s.w0, s.sample),
    "error": lambda s: s.law.error(s.case.q0, s.w0, s.sample),
    "lyapunov": lambda s: s.law.lyapunov(s.case.q0, s.w0, s.sample),
    "margin": lambda s: s.law.margin(s.case.q0),
    "audit": lambda s: str(s.law.audit()),
    "audit along": lambda s: str(s.law.audit(s.reference, 0.1, s.case.q0)),
    "feasibility": lambda s: s.law.feasibility(s.reference, 0.1, s.case.q0),
    "start": lambda s: s.law.start(s.reference, s.case.q0).require("grid"),
    "reach": lambda s: s.law.reach(s.reference, 0.1, s.case.q0),
    "mismatch": lambda s: s.law.mismatch(s.case.q0, np.zeros(s.system.nv)),
    "inverse_kinematics": lambda s: (
        cc.inverse_kinematics(s.system, s.outputs, _target(s), s.case.q0, starts=2)
        if s.outputs
        else 0
    ),
    "compile": lambda s: _ticked(s.law.compile(interpreted=True), s),
    "compile reference": lambda s: s.law.compile(s.reference, interpreted=True)(
        0.0, s.case.q0, s.w0
    ),
    "ReferenceTick": lambda s: cc.control.ReferenceTick(s.law, s.reference, interpreted=True)(
        0.0, s.case.q0, s.w0
    ),
    "to_iosystem": lambda s: s.law.to_iosystem(),
    "to_iosystem closed": lambda s: s.law.to_iosystem(closed_loop=True),
    "export c": lambda s: s.law.export(s.folder / "c"),
    "export c single": lambda s: s.law.export(s.folder / "c1", precision="single"),
    "export c reference": lambda s: s.law.export(s.folder / "cr", reference=s.reference),
    "export fmu": lambda s: s.law.export(s.folder / "fmu", target="fmu"),
    "export fmu 2": lambda s: s.law.export(s.folder / "fmu2", target="fmu", fmi="2.0"),
    "certify": lambda s: str(cc.certify(s.law, angle=0.5, budget=200)),
    "certify thesis": lambda s: str(cc.certify(s.law, angle=0.5, method="thesis", budget=200)),
    "recheck": lambda s: cc.recheck(
        cc.certify(s.law, angle=0.5, budget=200).save(s.folder / "certificate.json")
    ),
    "operating_bounds": lambda s: str(
        operating_bounds(
            s.law, dict.fromkeys(s.model.shape_names, (-0.01, 0.01)), speeds=0.1, budget=50
        )
    ),
    "linear_loop": lambda s: cc.control.linear_loop(s.law),
    "linear_loop broken": lambda s: cc.control.linear_loop(s.law, broken=True),
    "loop_margins": lambda s: str(cc.control.loop_margins(s.law)),
    "loop_response": lambda s: cc.control.loop_response(s.law),
    "plot_loop": lambda s: s.law.plot_loop() if hasattr(s.law, "plot_loop") else 0,
    "joint_reference": lambda s: cc.laws.joint_reference(s.law, s.reference, 0.1, s.case.q0),
    "simulate": simulated,
    "simulate zero duration": lambda s: simulated(s, 0.0),
    "simulate one step": lambda s: simulated(s, 1e-3),
    **{
        f"simulate {m}": lambda s, m=m: simulated(s, dt=Integrator(m))
        for m in ("rkmk4", "dop853", "rk45", "radau", "lsoda")
    },
    "simulate held": lambda s: simulated(s, dt=Integrator(control_period=1e-3)),
    "simulate held 2": lambda s: simulated(s, dt=Integrator(control_period=2e-3)),
    "simulate held dop853": lambda s: simulated(s, dt=Integrator("dop853", control_period=1e-3)),
    "simulate momentum": lambda s: simulated(s, plant=RealPlant(momentum=np.full(6, 0.01))),
    "simulate plant": lambda s: simulated(s, plant=cc.Plant(s.system)),
    "simulate uncertain": lambda s: (
        simulated(
            s,
            plant=RealPlant(
                cc.Plant(s.system, uncertain=[f"{s.system.bodies[-1].name}.inertia.mass"]),
                world={f"{s.system.bodies[-1].name}.inertia.mass": 0.01},
            ),
        )
        if hasattr(s.system, "bodies")
        else 0
    ),
    "Run repr": lambda s: (s.run._repr_html_(), s.run.plant_differences),
    "Run numbers": lambda s: [
        getattr(s.run, name)
        for name in (
            "deviation",
            "energy_balance",
            "floats",
            "momentum_drift",
            "stage_drifts",
            "mismatch",
            "joint_limits",
            "control_units",
            "error_parts",
            "error_places",
            "error_norms",
        )
    ],
    "Run findings": lambda s: s.run.findings(cc.simulation.Tolerances(0.0)),
    "Run save load": _saved,
    "Run csv": lambda s: s.run.to_csv(s.folder / "run.csv"),
    "Run mcap": lambda s: s.run.to_mcap(s.folder / "run.mcap"),
    "Run plot": lambda s: s.run.plot(),
    "Run animate": lambda s: s.run.animate(fps=1.0),
    "Run film": lambda s: Film.of(s.run),
    "compare": lambda s: str(cc.compare([s.run, s.run], ["a", "b"])),
    "RunRecord": lambda s: cc.simulation.RunRecord.of(s.run),
    "run_signals": lambda s: cc.simulation.run_signals(s.run),
    "save_figures": lambda s: cc.show.save_figures(s.run, s.folder / "figures"),
}
"""Calls that take a law."""
