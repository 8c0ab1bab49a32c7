"""Laws in six cases on a rover and a floating robot: the tables of docs/laws.md.

python docs/compare_laws.py

simulates all of them in about three minutes, prints the tables, and writes them into the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import concur as cc
from concur.codegen import Evaluator
from concur.control import ReferenceTick, tracking_law
from concur.simulation import Friction, Integrator, RunRecord

PAGE = Path(__file__).resolve().with_name("laws.md")
PERIOD = 0.002  # s: control period of all laws, and the delay in the case of this name
CASES = ("nominal", "mass +20 %", "payload +50 %", "friction", "delay 2 ms", "torque limits")
COMMON = ("servo", "servo, integral", "passive", "PD", "computed torque", "own law")
LAWS = {"rover": (*COMMON[:3], "passive, adaptive", *COMMON[3:]), "floater": COMMON}


@dataclass
class TransposedJacobian:
    """The own law: springs and dampers between outputs and reference, with the weight held."""

    servo: cc.Servo  # model and outputs
    stiffness: np.ndarray  # of each output coordinate, N/m and N m/rad
    damping: np.ndarray
    torque_limits: np.ndarray | None = None

    @property
    def model(self) -> cc.reduction.ReducedModel:
        """The reduced robot."""
        return self.servo.model

    @property
    def outputs(self) -> Any:
        """Outputs that follow the reference."""
        return self.servo.outputs

    def graph(self) -> ca.Function:
        """The law from state and reference to controls."""
        sizes = {name: self.servo.inputs[name] for name in ("q", "s", "pose", "twist")}
        q, s, pose, twist = (ca.SX.sym(name, size) for name, size in sizes.items())
        x, ve = self.servo.errors(q, s, pose, twist)
        force = self.stiffness * x - self.damping * ve
        u = self.servo.decoupling(q).T @ force + self.model.bias(q, ca.SX(self.model.ns, 1))
        if self.torque_limits is not None:
            low, high = self.torque_limits.T
            u = ca.fmin(ca.fmax(u, low), high)
        return ca.Function("own", [q, s, pose, twist], [u], list(sizes), ["u"])


@dataclass(frozen=True)
class Scene:
    """A robot with a task: what is the same for all laws and cases."""

    servo: cc.Servo
    integral: list[float]
    reference: Any
    duration: float
    q0: np.ndarray
    s0: np.ndarray
    joint_gains: tuple[float, float]  # of PD
    own_gains: tuple[Any, Any]
    passive: tuple[Any, Any, Any]  # stiffness, damping and rate by output
    load: str  # body with the load
    friction: tuple[float, float]  # viscous in N m s/rad, Coulomb in N m
    limits: tuple[float, ...]  # N m, one for each control

    def law(self, name: str, limits: tuple[float, ...] | None) -> Any:
        """One of the laws, with or without torque limits."""
        model = self.servo.model
        servo = replace(self.servo, torque_limits=limits)
        if name.startswith("servo"):
            return servo if name == "servo" else replace(servo, integral=self.integral)
        if name.startswith("passive"):
            outputs, (stiffness, damping, rate) = self.servo.outputs, self.passive
            load = None if name == "passive" else self.load
            return cc.PassiveServo(
                model, outputs, stiffness, damping, rate=rate, torque_limits=limits, payload=load
            )
        if name == "own law":
            return TransposedJacobian(
                self.servo,
                *map(np.array, self.own_gains),
                None if limits is None else np.array([(-most, most) for most in limits]),
            )
        joints = _joints(self)
        if name == "PD":
            return cc.laws.PD(model, joints, *self.joint_gains, torque_limits=limits)
        return cc.laws.ComputedTorque(model, joints, 9.0, 6.0, torque_limits=limits)


_paths: dict[int, Any] = {}


def _joints(scene: Scene) -> Any:
    if id(scene) not in _paths:
        _paths[id(scene)] = cc.laws.joint_reference(
            scene.servo, scene.reference, scene.duration, scene.q0
        )
    return _paths[id(scene)]


@cache
def rover() -> Scene:
    """A rover with an arm: its base drives 0.8 m ahead, its hand moves with it and down."""
    model = cc.reduce(cc.robots.rover_arm())
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0.0, 0.0))
    hand = cc.Output("hand", "forearm", "R3", point=(0.0, 0.2, 0.0))
    servo = cc.Servo(model, [base, hand], stiffness=[4, 9], damping=[4, 6])
    near = [0.0, 0.0, 0.0, 0.0, 0.0, -0.1, 1.0, -1.6]
    here = np.asarray(servo.output(near))
    path = cc.references.rest_to_rest(here, np.add(here, [0.8, 0.1, 0.8, 0.1, -0.05]), 5.0)
    start = servo.start(path, near, offset=[0.04, 0.02, 0.05, 0.02, -0.03])
    gains = ([60.0] * 2 + [90.0] * 3, [60.0] * 2 + [60.0] * 3)
    return Scene(
        servo,
        [2.0, 6.0],
        path,
        10.0,
        start.q,
        start.s,
        (60.0, 15.0),
        gains,
        ([60.0, 90.0], [80.0, 60.0], [2.0, 3.0]),
        "forearm",
        (0.3, 0.3),
        (1.0, 1.0, 1.0, 7.0, 3.0),
    )


@cache
def floater() -> Scene:
    """A tumbling satellite: its hand moves 0.2 m and turns by 30 degrees."""
    model = cc.reduce(cc.robots.free_flyer(), momentum=[0.0, 0.0, 0.0, 0.6, 0.3, 0.3])
    servo = cc.Servo(model, [cc.Output("hand", "tool", "SE3")], 4.0, 4.0)
    near = [0.0] * 6 + [1.0, 0.5, -1.5, 2.1, 0.2, -0.4, 0.8]
    here = np.asarray(servo.output(near))
    turned = np.array([*np.add(here[:3], [0.1, 0.15, -0.1]), *_turned(here[3:], np.radians(30.0))])
    path = cc.references.rest_to_rest(here, turned, 5.0, group="SE3")
    start = servo.start(path, near, offset=[0.03, -0.02, 0.03, 0.05, 0.05, -0.05])
    gains = ([30.0] * 3 + [3.0] * 3, [30.0] * 3 + [3.0] * 3)
    return Scene(
        servo,
        [2.0],
        path,
        10.0,
        start.q,
        start.s,
        (8.0, 6.0),
        gains,
        ([gains[0]], [gains[1]], 2.0),
        "hand",
        (0.05, 0.05),
        (0.5,) * 6,
    )


SCENES: dict[str, Callable[[], Scene]] = {"rover": rover, "floater": floater}


def _turned(quaternion: np.ndarray, angle: float) -> np.ndarray:
    """Quaternion x, y, z, w after a rotation about the inertial z axis."""
    x, y, z, w = quaternion
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    return np.array([c * x - s * y, c * y + s * x, c * z + s * w, c * w - s * z])


def cell(scene_name: str, law_name: str, case: str) -> RunRecord:
    """Simulate one law in one case.

    Parameters
    ----------
    scene_name, law_name, case : str
        Names out of `SCENES`, `LAWS` of the scene and `CASES`.

    Returns
    -------
    RunRecord
        The run; without outputs for laws in joint space.
    """
    scene = SCENES[scene_name]()
    law = scene.law(law_name, scene.limits if case == "torque limits" else None)
    robot = scene.servo.model.robot
    reference = scene.reference if getattr(law, "outputs", ()) else None
    plant = cc.Plant(robot)
    if case == "mass +20 %":
        heavy = [
            replace(body, inertia=replace(body.inertia, mass=1.2 * body.inertia.mass))
            for body in robot.bodies
        ]
        plant = cc.Plant(replace(robot, bodies=heavy))
    if case == "payload +50 %":
        plant = cc.Plant(replace(robot, bodies=[_loaded(b, scene.load) for b in robot.bodies]))
    if case == "friction":
        plant = cc.Plant(robot, friction=Friction.of(robot, *scene.friction))
    if case == "delay 2 ms":
        return _delayed(scene, law, reference, plant)
    dt = PERIOD
    integrator = Integrator("rkmk4", dt, control_period=PERIOD)
    run = cc.simulate(
        robot, law, reference, scene.duration, scene.q0, scene.s0, plant=plant,
        dt=integrator,
    )  # fmt: skip
    return RunRecord.of(run)


def _loaded(body: cc.Body, name: str) -> cc.Body:
    """The body; that of the load with half as much mass and moments more."""
    if body.name != name:
        return body
    own = body.inertia
    return replace(body, inertia=cc.Inertia(1.5 * own.mass, own.com, 1.5 * own.tensor))


def _delayed(scene: Scene, law: Any, reference: Any, plant: cc.Plant, late: int = 1) -> RunRecord:
    """The same loop with the torque of the state `late` periods ago."""
    robot, model = scene.servo.model.robot, scene.servo.model
    made = tracking_law(law, "delayed loop")
    tick = ReferenceTick(made, reference)
    if made.nz:
        tick.buffers.period[:] = PERIOD
    sizes = [(robot.nq,), (robot.nv,)]
    step = Evaluator(plant.step_function("rkmk4"), sizes, "delayed loop")
    count = round(scene.duration / PERIOD)
    t = np.arange(count + 1) * PERIOD
    q, v = np.empty((count + 1, robot.nq)), np.empty((count + 1, robot.nv))
    u = np.empty((count + 1, model.nu))
    q[0], v[0] = scene.q0, model.velocity(scene.q0, scene.s0)
    waiting = [tick(0.0, q[0], scene.s0).copy() for _ in range(late)]
    for k in range(count + 1):
        waiting.append(tick(t[k], q[k], v[k][list(model.shape)]).copy())
        u[k] = waiting.pop(0)
        if k < count:
            step.inputs[0][:, 0], step.inputs[1][:, 0] = q[k], v[k]
            step.inputs[2][:, 0], step.inputs[3][0, 0] = u[k], PERIOD
            step.trigger()
            q[k + 1], v[k + 1] = step.outputs[0][:, 0], step.outputs[1][:, 0]
    extremes = {"q_range": q, "v_range": v, "u_range": u}
    ranges = {name: np.array([x.min(0), x.max(0)]) for name, x in extremes.items()}
    return RunRecord(
        robot=robot, outputs=(), t=t, q=q, v=v, u=u, error=np.empty((count + 1, 0)),
        margin=np.ones(count + 1), joint_limits=cc.control.JointLimits.of(robot), **ranges,
    )  # fmt: skip


def numbers(scene_name: str, cells: dict[tuple[str, str], RunRecord]) -> dict[Any, Any]:
    """Rms error and error at the end of the hand in mm, and peak torque in N m, by cell."""
    scene = SCENES[scene_name]()
    records = [replace(record, outputs=()) for record in cells.values()]
    # The errors of all runs are those of the servo's outputs.
    still = cc.simulate(
        scene.servo.model.robot, scene.servo, scene.reference, PERIOD, scene.q0, scene.s0,
        dt=Integrator("rkmk4", PERIOD),
    )  # fmt: skip
    table = cc.compare([still, *records], reference=scene.reference)
    labels = [row.label for row in table.table]
    name = next(label for label in labels if label.startswith("error of hand") and "rms" in label)
    rows = [table[name], table[name.replace("rms", "at the end")]]
    return {
        key: (*(1e3 * row.values[k + 1] for row in rows), np.abs(record.u_range).max())
        for k, (key, record) in enumerate(zip(cells, records, strict=True))
    }


def text(scene_name: str, found: dict[Any, Any]) -> str:
    """Tables of a robot, with the best of each column in bold."""
    lines = []
    for index, title in enumerate(
        ("rms error of the hand, mm", "error of the hand at the end, mm", "peak torque, N m")
    ):
        lines += [f"| {scene_name}: {title} | " + " | ".join(CASES) + " |"]
        lines += ["| --- |" + " ---: |" * len(CASES)]
        shown = {key: _shown(values[index]) for key, values in found.items()}
        for law in LAWS[scene_name]:
            cells = []
            for case in CASES:
                best = min(LAWS[scene_name], key=lambda other: found[other, case][index])
                own = shown[law, case]
                cells.append(f"**{own}**" if own == shown[best, case] else own)
            lines.append(f"| {law} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _shown(value: float) -> str:
    """Three digits; errors near round-off, which depend on the machine, as a bound."""
    return f"{value:.3g}" if value >= 1e-3 else "< 0.001"


def main() -> None:
    """Simulate all cells, print the tables, and write them into the page."""
    parts = []
    for scene_name in SCENES:
        cells = {
            (law, case): cell(scene_name, law, case) for law in LAWS[scene_name] for case in CASES
        }
        parts.append(text(scene_name, numbers(scene_name, cells)))
    block = "\n".join(parts).rstrip()
    print(block)
    begin, end = "<!-- laws: written by `python docs/compare_laws.py` -->", "<!-- end -->"
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(begin) + r".*?" + re.escape(end)
    changed = re.sub(pattern, lambda _: f"{begin}\n{block}\n{end}", page, flags=re.DOTALL)
    PAGE.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
