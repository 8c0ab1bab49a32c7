"""Systems without bodies, and a robot with springs, by stages of the chain.

Each runs, or is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.stats import uniform

import concur as cc
from concur.errors import ConcurError
from concur.formulations import Factor
from concur.io import Task
from concur.outputs import FunctionOutput
from concur.proofs import Statement, prove, prove_task
from concur.show.viewer import Film
from concur.simulation import Plant
from concur.worlds import Quantity, Requirement, Uncertainty
from hil.controller import Mode
from hil.reasons import Reason, State
from hil.record import Record
from hil.replay import replay
from hil.rig import load_rig
from hil.session import SessionOptions, run_session


@dataclass(frozen=True, eq=False)
class Chain:
    """A system with an output that it can follow from a start."""

    system: Any
    index: slice
    group: str
    goal: tuple[float, ...]
    start: tuple[float, ...]
    reduced: dict[str, Any] = field(default_factory=dict)
    measured: Chain | None = None  # the same in the coordinates that motors measure

    @cached_property
    def model(self) -> Any:
        """The reduced model."""
        return cc.reduce(self.system, **self.reduced)

    @cached_property
    def law(self) -> cc.Servo:
        """A servo of the output."""
        q = ca.SX.sym("q", self.system.nq)
        output = FunctionOutput("y", ca.Function("y", [q], [q[self.index]]), self.group)
        return cc.Servo(self.model, [output], 9.0, 6.0)

    @cached_property
    def reference(self) -> Any:
        """The output at rest in its goal."""
        return cc.references.hold(self.goal, group=self.group)

    @cached_property
    def run(self) -> cc.Run:
        """A short run."""
        still = np.zeros(self.model.ns)
        return cc.simulate(self.system, self.law, self.reference, 0.1, self.start, still, dt=5e-3)

    def task(self) -> Task:
        """The same as a task."""
        options: dict[str, Any] = {"momentum": self.reduced.get("momentum")}
        if "stages" in self.reduced:
            options["stages"] = self.reduced["stages"]
        return Task(
            robot=self.system,
            outputs=self.law.outputs,
            stiffness=9.0,
            damping=6.0,
            reference=self.reference,
            q0=np.array(self.start),
            duration=0.1,
            dt=5e-3,
            control_period=5e-3,
            **options,
        )


def _motors(*names: str) -> list[cc.Motor]:
    """A motor with a gear for each of some velocities."""
    return [
        cc.Motor(f"{name} drive", name, 50.0, torque=1.0, speed=300.0, encoder=2**14)
        for name in names
    ]


def _links() -> Chain:
    links = [Factor("upper", "SO2"), Factor("lower", "SO2")]
    angle = links[0].q + links[1].q
    q, v = (ca.vertcat(*[getattr(link, x) for link in links]) for x in "qv")
    elbow = ca.vertcat(ca.cos(links[0].q), ca.sin(links[0].q))
    tip = elbow + ca.vertcat(ca.cos(angle), ca.sin(angle))
    kinetic = ca.sumsqr(ca.jacobian(tip, q) @ v) / 2 + 0.1 * ca.sumsqr(v)
    places = {"elbow": ca.vertcat(elbow, 0), "tip": ca.vertcat(tip, 0)}
    system = cc.LagrangianSystem(
        kinetic, 9.81 * tip[1], links, inputs=_motors("upper", "lower"), name="links", drawn=places
    )
    return Chain(system, slice(0, 2), "R2", (0.3, 0.9), (0.2, 1.0))


def _pendulum() -> Chain:
    rod = Factor("rod", "S2", neutral=(0.0, 0.0, -1.0))
    system = cc.LagrangianSystem(
        0.3 * ca.sumsqr(rod.qdot),
        9.81 * rod.q[2],
        [rod],
        inputs=[f"rod[w{x}]" for x in "xyz"],
        name="pendulum",
        drawn={"bob": rod.q},
    )
    roll, pitch = Factor("roll", "SO2"), Factor("pitch", "SO2")
    a, b = roll.q, pitch.q
    place = ca.vertcat(-ca.sin(b), ca.sin(a) * ca.cos(b), -ca.cos(a) * ca.cos(b))
    gimbal = system.in_coordinates([roll, pitch], place, _motors("roll", "pitch"))
    start = 0.0, -float(np.arcsin(0.6))
    measured = Chain(gimbal, slice(0, 2), "R2", (0.3, 0.2), start)
    return Chain(system, slice(0, 3), "S2", (0.0, 0.6, -0.8), (0.6, 0.0, -0.8), measured=measured)


def _floater() -> tuple[cc.LagrangianSystem, tuple[float, ...]]:
    hull, arm, rotor = Factor("hull", "SE2"), Factor("arm", "SO2"), Factor("rotor", "SO2")
    vx, vy, turn = ca.vertsplit(hull.v)
    tip = ca.vertcat(0.3 + ca.cos(arm.q), ca.sin(arm.q))
    moved = ca.vertcat(vx - turn * tip[1], vy + turn * tip[0]) + ca.jacobian(tip, arm.q) @ arm.v
    kinetic = 3.0 * ca.sumsqr(hull.v[:2]) + turn**2 + ca.sumsqr(moved)
    kinetic += 0.2 * (turn + rotor.v) ** 2
    system = cc.LagrangianSystem(
        kinetic / 2,
        0.0,
        [hull, arm, rotor],
        inputs=_motors("arm"),
        name="floater",
        symmetry="hull",
        drawn={"hull": ca.vertcat(hull.q[:2], 0)},
    )
    return system, (0.1, 0.2, 0.3, 0.4, 0.0)


def _staged() -> Chain:
    system, start = _floater()
    given = {"momentum": [0.1, 0.0, 0.2], "stages": {"rotor": 0.05}}
    return Chain(system, slice(3, 4), "SO2", (0.6,), start, given)


def _passive() -> Chain:
    system, start = _floater()
    return Chain(system, slice(3, 4), "SO2", (0.6,), start, {"momentum": [0.1, 0.0, 0.2]})


def _skate() -> Chain:
    pose = Factor("pose", "SE2")
    system = cc.LagrangianSystem(
        ca.sumsqr(pose.v) / 2,
        0.0,
        [pose],
        constraints={"side": pose.v[1]},
        inputs=["pose[vx]", "pose[omega]"],
        name="skate",
        drawn={"skate": ca.vertcat(pose.q[:2], 0)},
    )
    return Chain(system, slice(2, 3), "SO2", (0.4,), (0.1, 0.2, 0.3))


def _springs() -> Chain:
    """An arm with a spring on a joint and one between its ends, under gravity."""
    arm = cc.Inertia(0.5, (0.25, 0, 0), moments=(0.01, 0.03, 0.03))
    y = (0.0, 1.0, 0.0)
    bodies = [
        cc.Body("base", cc.joints.Fixed()),
        cc.Body("upper", cc.joints.Revolute(y), "base", inertia=arm),
        cc.Body("lower", cc.joints.Revolute(y), "upper", cc.Pose((0.5, 0, 0)), arm),
    ]
    springs = [
        cc.robot.Spring("upper", 5.0, 0.1, 0.3),
        cc.robot.Spring(None, 10.0, 0.4, 0.4, "lower", (0.3, 0, 0), "base", (0, 0, 0.5)),
    ]
    robot = cc.Mechanism(
        "elbow",
        bodies,
        gravity=(0, 0, -9.81),
        actuated=(),
        motors=_motors("upper", "lower"),
        springs=springs,
    )
    return Chain(robot, slice(0, 2), "R2", (0.4, -0.9), (0.2, -1.2))


SYSTEMS: dict[str, Callable[[], Chain]] = {
    "links": _links,
    "pendulum on a two-sphere": _pendulum,
    "floater with a stage": _staged,
    "skate": _skate,
    "floater with a passive rotor": _passive,
    "arm with springs": _springs,
}


@cache
def chain(name: str) -> Chain:
    return SYSTEMS[name]()


def _servo(s: Chain, folder: Path) -> bool:
    torque = s.law.torque(s.start, np.zeros(s.model.ns), s.reference(0.0))
    return bool(np.isfinite(torque).all() and np.any(torque))


def _simulation(s: Chain, folder: Path) -> bool:
    first, last = (np.linalg.norm(e) for e in s.run.error[[0, -1]])
    return bool(last < first * 1.4 * np.exp(-0.3) * 1.01)


def _exported(target: str) -> Callable[[Chain, Path], bool]:
    def act(s: Chain, folder: Path) -> bool:
        s.law.export(folder / target, target=target)
        return any((folder / target).iterdir())

    return act


def _file(s: Chain, folder: Path) -> bool:
    path = s.run.save(folder / "run.h5")
    return bool(np.array_equal(cc.Run.load(path, s.law).q, s.run.q))


def _campaign(s: Chain, folder: Path) -> bool:
    """Worlds by an uncertain friction; each is the run of a loop with this friction."""
    control = s.law.model.control_names[0]
    friction = Quantity("viscous", control, uniform(0.0, 0.01), unit="N m s/rad")
    bound = Requirement("error", "error y", (("error:y", -np.inf, 9.0),), 9.0, "rad")
    found = cc.verify(s.task(), 3, uncertainty=Uncertainty((friction,)), requirements=[bound])
    return found.values.shape[0] == 3 and bool(np.isfinite(found.values).all())


RIG = """
name = "{name}"
task = "task.py"
bus = {{ interface = "virtual", channel = "{name}" }}
loop = {{ rate = 200.0, receive_window = 2.5e-3 }}
policies = {{ start_error = 3.0 }}
"""
AXIS = """
[[axes]]
name = "{name}"
drive = "cia402"
node = {node}
rated_torque = 0.5
torque_rate_limit = 100.0
offset = {offset}
"""


def _rig(s: Chain, folder: Path) -> bool:
    """A run on emulated drives, recorded and replayed."""
    name = next(name for name in SYSTEMS if chain(name) is s)
    own = s.measured or s
    part = ".measured" if s.measured else ""
    text = f"from tests.grid.test_stages import chain\n\ntask = chain({name!r}){part}.task()\n"
    (folder / "task.py").write_text(text, encoding="utf-8")
    lines, places = RIG.format(name=name.replace(" ", "-")), own.system.freedom_names
    for node, control in enumerate(own.system.control_names, 1):
        label = control.removesuffix(" drive")
        offset = 50.0 * own.start[places.index(label)] if label in places else 0.0
        lines += AXIS.format(name=control, node=node, offset=offset)
    (folder / "rig.toml").write_text(lines, encoding="utf-8")
    rig = load_rig(folder / "rig.toml")
    options = SessionOptions(Mode.MOCK, folder=folder / "record", heartbeat="auto")
    result = run_session(rig, options)
    record = Record.load(folder / "record")
    moved = np.ptp(record["q"][record["state"] == State.RUN], axis=0)
    return result.outcome.reason is Reason.END and moved.any() and replay(record, rig).passed


def _proof(s: Chain, folder: Path) -> bool:
    size = s.law.size
    statement = Statement((0.1,) * size, (0.1,) * size, 0.1)
    return bool(prove(s.law, s.reference, 0.1, s.start, np.zeros(s.model.ns), statement))


STAGES: dict[str, Callable[[Chain, Path], bool]] = {
    "model": lambda s, folder: s.model.ns > 0,
    "servo": _servo,
    "certificate": lambda s, folder: cc.certify(s.law, angle=1.0).status is cc.Status.PROVED,
    "simulation": _simulation,
    "python-control": lambda s, folder: s.law.to_iosystem().ninputs > 0,
    "C": _exported("c"),
    "unit of the law": _exported("fmu"),
    "unit of the plant": lambda s, folder: Plant(s.system).export(folder / "p", s.model).exists(),
    "run file": _file,
    "viewer": lambda s, folder: Film.of(s.run) is not None,
    "campaign": _campaign,
    "rig": _rig,
    "proof of a task": _proof,
}

REFUSED = {
    "floater with a passive rotor": "expected at least 2 controls",
}
"""What physics forbids: one motor cannot determine two velocities of the shape."""

BODIES = "a tree of bodies"
REFUSED_BY_PROOFS = {
    "links": BODIES,
    "pendulum on a two-sphere": BODIES,
    "floater with a stage": BODIES,
    "skate": BODIES,
    "floater with a passive rotor": "expected at least 2 controls",
    "arm with springs": "outputs R2 of the base and R3",
}
"""Proofs of tasks are for rovers and floaters with an arm; springs of these are refused by name."""

REFUSED_BY_RIGS = {
    "floater with a passive rotor": "expected at least 2 controls",
    "skate": "coordinates that the motors measure",
}
"""The second: a skate is pushed along its own axes, where no encoder measures a coordinate."""


@pytest.mark.extended
@pytest.mark.filterwarnings("ignore::concur.codegen.CompilerWarning")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", SYSTEMS)
def test_each_system_goes_through_the_chain(name: str, stage: str, tmp_path: Path) -> None:
    system = chain(name)
    own = {
        "model": {},
        "unit of the plant": {},
        "rig": REFUSED_BY_RIGS,
        "proof of a task": REFUSED_BY_PROOFS,
    }
    reason = own.get(stage, REFUSED).get(name)
    if reason is not None:
        with pytest.raises(ConcurError) as caught:
            STAGES[stage](system, tmp_path)
        assert reason in str(caught.value)
        return
    assert STAGES[stage](system, tmp_path)


@pytest.mark.extended
@pytest.mark.parametrize("file", ["rover_arm", "free_floater_proved"])
def test_proofs_of_tasks_refuse_springs_by_name(file: str) -> None:
    task = cc.load_task(f"examples/{file}.toml")
    joint = task.servo.model.shape_names[-1]
    robot = replace(task.robot, springs=[cc.robot.Spring(joint, 1.0)])
    sprung = replace(task, robot=robot)
    size = sprung.servo.size
    statement = Statement((1e-3,) * size, (1e-3,) * size, 0.1)
    motion = task.reference, task.duration, task.q0, task.s0

    def proved() -> Any:
        return prove_task(sprung) if task.proof else prove(sprung.servo, *motion, statement)

    with pytest.raises(ConcurError, match=f"a robot without springs, got {joint}"):
        proved()
