"""Two runs in closed form, for the tests of the figures.

The outputs follow their references with an error that is the exact solution of the critically
damped error dynamics; the configurations follow from the outputs by inverse kinematics (rover) or
are prescribed (free-flyer), so poses, errors and references agree with each other.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace

import numpy as np
from scipy.spatial.transform import Rotation

import concur as cc
from concur.results import Row


def body(name, joint, parent=None, at=(0.0, 0.0, 0.0), mass=1.0, com=(0.0, 0.0, 0.0)):
    inertia = cc.Inertia(mass, com=com, moments=(0.1, 0.1, 0.1))
    return cc.Body(name, joint, parent, cc.Pose(at), inertia)


class Status(Enum):
    HOLDS = "holds"
    FAILS = "fails"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class AuditRow:
    id: str
    statement: str
    status: Status
    why: str


@dataclass
class Run:
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    error: np.ndarray
    velocity_error: np.ndarray
    ideal: np.ndarray
    lyapunov: np.ndarray
    margin: np.ndarray
    constraint_residual: np.ndarray
    energy: np.ndarray
    work: np.ndarray
    pose: np.ndarray
    reference: np.ndarray
    robot: cc.Mechanism
    servo: SimpleNamespace
    control_units: tuple[str, ...]
    floats: bool = False
    momentum_drift: np.ndarray | None = None
    tolerances: object = None
    plant_differences: tuple[str, ...] = ()
    s: np.ndarray = field(init=False)
    deviation: np.ndarray = field(init=False)
    acceleration_residual: np.ndarray = field(init=False)
    scale: np.ndarray = field(init=False)
    q_range: np.ndarray = field(init=False)
    v_range: np.ndarray = field(init=False)
    joint_limits: SimpleNamespace = field(init=False)

    @property
    def error_places(self):
        found, start = [], 0
        for output in self.servo.outputs:
            units = np.array(output.coordinate_units)
            for unit in dict.fromkeys(output.coordinate_units):
                kind = {"m": ", position", "rad": ", rotation"}[unit] * (len(set(units)) > 1)
                found.append((output.name + kind, unit, start + np.flatnonzero(units == unit)))
            start += output.dim
        return found

    def __post_init__(self):
        self.deviation = self.error - self.ideal
        self.s = self.v[:, -self.u.shape[1] :]
        self.acceleration_residual = np.zeros_like(self.error)
        self.scale = np.ones(len(self.t))
        self.q_range, self.v_range = (np.stack([x.min(0), x.max(0)]) for x in (self.q, self.v))
        free = np.full(self.q.shape[1], np.inf)
        self.joint_limits = SimpleNamespace(
            positions=np.column_stack([-free, free]),
            speeds=free[: self.v.shape[1]],
            torques=free[: self.u.shape[1]],
        )


def _copied(make):
    """Compute a run once, and hand out copies that a test may change."""
    kept = functools.cache(make)
    return functools.wraps(make)(lambda *args, **options: copy.deepcopy(kept(*args, **options)))


@_copied
def rover_run(duration=12.0, dt=0.01):
    """A rover with two driven wheels; a point ahead of the axle and the hand follow curves."""
    reach, height, ahead, track, radius = (0.45, 0.4), 0.40, 0.25, 0.5, 0.1
    turn = cc.joints.Revolute
    robot = cc.Mechanism(
        "demo rover",
        (
            body("chassis", cc.joints.Planar(), mass=25.0, com=(0.05, 0.0, 0.15)),
            body("left_wheel", turn((0, 1, 0)), "chassis", (0.0, track / 2, radius), 1.2),
            body("right_wheel", turn((0, 1, 0)), "chassis", (0.0, -track / 2, radius), 1.2),
            body("turret", turn((0, 0, 1)), "chassis", (0.2, 0.0, 0.25), 2.0),
            body("upper_arm", turn((0, 1, 0)), "turret", (0.0, 0.0, 0.15), 2.5, (0.2, 0, 0)),
            body("forearm", turn((0, 1, 0)), "upper_arm", (reach[0], 0, 0), 1.5, (0.2, 0, 0)),
        ),
        [cc.Wheel(f"{side}_wheel", radius) for side in ("left", "right")],
    )
    outputs = (
        cc.Output("base", "chassis", "R2", (ahead, 0.0, 0.0)),
        cc.Output("hand", "forearm", "R3", (reach[1], 0.0, 0.0)),
    )
    t = np.arange(0.0, duration + dt / 2, dt)
    w = 2 * np.pi / 12.0
    base_reference = np.stack([1.5 * np.sin(w * t), 1.5 - 1.5 * np.cos(w * t)], axis=1)
    heading = w * t
    forward = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    hand_reference = np.column_stack(
        [base_reference + 0.45 * forward, 0.55 + 0.12 * np.sin(2 * w * t)]
    )
    reference = np.column_stack([base_reference, hand_reference])
    ideal, velocity = _decay(t, np.array([-0.12, 0.10, 0.08, -0.10, 0.10]), 1.6)
    error = ideal + 1e-9 * np.sin(3 * t)[:, None]
    pose = reference - error

    # The heading follows from the rolling of the axle: the point ahead of it drags it along.
    theta = np.zeros(len(t))
    rate = np.gradient(pose[:, :2], t, axis=0)
    for k in range(len(t) - 1):
        theta[k + 1] = theta[k] + dt / ahead * (
            -np.sin(theta[k]) * rate[k, 0] + np.cos(theta[k]) * rate[k, 1]
        )
    along = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    axle = pose[:, :2] - ahead * along
    speed = np.sum(rate * along, axis=1)
    turn = np.gradient(theta, t)
    wheel = [np.cumsum((speed - side * turn * track / 2) / radius) * dt for side in (1.0, -1.0)]
    mount = axle + 0.2 * along
    hand = pose[:, 2:] - np.column_stack([mount, np.full(len(t), height)])
    turret = np.arctan2(hand[:, 1], hand[:, 0]) - theta
    out, up = np.hypot(hand[:, 0], hand[:, 1]), hand[:, 2]
    a, b = reach
    cosine = (out**2 + up**2 - a**2 - b**2) / (2 * a * b)
    if np.max(np.abs(cosine)) >= 1:
        raise ValueError("the hand is out of reach")
    elbow = np.arccos(cosine)
    shoulder = -np.arctan2(up, out) - np.arctan2(b * np.sin(elbow), a + b * np.cos(elbow))
    q = np.column_stack([axle, theta, *wheel, np.unwrap(turret), shoulder, elbow])
    v = np.gradient(q, t, axis=0)
    u = 3.0 * np.gradient(v[:, 3:], t, axis=0) + np.array([0.2, 0.2, 0.0, -9.0, -3.0])
    energy = 0.5 * 30.0 * speed**2
    return Run(
        t=t, q=q, v=v, u=u, error=error, velocity_error=velocity, ideal=ideal,
        lyapunov=0.5 * np.sum(2.56 * error**2 + velocity**2, axis=1),
        margin=0.3 + 0.2 * np.abs(np.sin(elbow)),
        constraint_residual=np.where(np.arange(len(t)) % 7, 1e-15 * (1 + np.sin(5 * t) ** 2), 0.0),
        energy=energy, work=energy - energy[0] + 1e-7 * np.sin(2 * t),
        pose=pose, reference=reference, robot=robot,
        servo=SimpleNamespace(
            outputs=outputs,
            torque_limits=None,
            damping_threshold=None,
            model=SimpleNamespace(
                kind="Chaplygin",
                control_names=("left_wheel", "right_wheel", "turret", "upper_arm", "forearm"),
            ),
        ),
        control_units=("N m",) * 5,
    )  # fmt: skip


@_copied
def flyer_run(duration=8.0, dt=0.01):
    """A free-flyer with a rail, five turning joints and a hand with a full pose."""
    axes = [(1, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0)]
    steps = [(0.0, 0, 0.3), (0.2, 0, 0.1), (0, 0, 0.1), (0.5, 0, 0), (0.25, 0, 0), (0.25, 0, 0)]
    bodies = [body("bus", cc.joints.Free(), mass=60.0)]
    for i, (axis, step) in enumerate(zip(axes, steps, strict=True), start=1):
        joint = cc.joints.Prismatic(axis) if i == 1 else cc.joints.Revolute(axis)
        bodies.append(body(f"link{i}", joint, bodies[-1].name, step, 3.0))
    robot = cc.Mechanism("demo free-flyer", bodies)
    output = cc.Output("hand", "link6", "R3xSO3", (0.15, 0.0, 0.0))
    t = np.arange(0.0, duration + dt / 2, dt)
    w = 2 * np.pi / duration
    turn = Rotation.from_rotvec(np.outer(0.2 * np.sin(w * t), [0.2, 0.3, 1.0])).as_quat()
    base = np.column_stack([0.1 * np.sin(w * t), 0.05 * t / duration, 0.02 * np.cos(w * t), turn])
    amplitude = np.array([0.15, 0.8, 0.4, 0.5, 0.6, 0.3])
    offset = np.array([0.1, 0.3, -0.7, 1.2, 0.2, 0.4])
    joints = offset + amplitude * np.sin(w * t)[:, None]
    q = np.column_stack([base, joints])
    poses = np.array([robot.pose(this, "link6") for this in q])
    rotation = Rotation.from_matrix(poses[:, :3, :3])
    place = np.einsum("kij,j->ki", poses[:, :3, :3], np.array(output.point)) + poses[:, :3, 3]
    ideal, velocity = _decay(t, np.array([0.10, -0.05, 0.08, 0.3, -0.2, 0.4]), 2.0)
    error = ideal * (1.0 + 1e-8)
    wanted = rotation * Rotation.from_rotvec(error[:, 3:])
    energy = 2.0 * np.cos(w * t) ** 2
    u = 3.0 * np.sin(w * t)[:, None] * np.array([1.5, -0.9, 0.7, -0.3, 0.2, -0.1])
    names = tuple(body.name for body in bodies[1:])
    return Run(
        t=t, q=q, v=np.gradient(q[:, 1:], t, axis=0), u=u, error=error, velocity_error=velocity,
        ideal=ideal, lyapunov=0.5 * np.sum(4.0 * error**2 + velocity**2, axis=1),
        margin=0.5 + 0.3 * np.cos(w * t), constraint_residual=np.zeros(len(t)),
        energy=energy, work=energy - energy[0] + 1e-9 * t,
        pose=np.column_stack([place, rotation.as_quat()]),
        reference=np.column_stack([place + error[:, :3], wanted.as_quat()]),
        robot=robot,
        servo=SimpleNamespace(
            outputs=(output,),
            torque_limits=None,
            damping_threshold=None,
            model=SimpleNamespace(kind="symplectic", control_names=names),
        ),
        control_units=("N",) + ("N m",) * 5,
        floats=True,
        momentum_drift=1e-13 * t**2,
    )  # fmt: skip


def found(label, value, limit=None, at_least=False, unit="m"):
    """A number of a run, as a report reads it."""
    kept = None if limit is None else value >= limit if at_least else value <= limit
    return Row(label, value, limit, unit, "", kept, at_least)


SUMMARY = [
    found("error of hand, final", 1.2e-9, 1e-4),
    found("peak torque of left_wheel", 4.0, 5.0, unit="N m"),
    found("peak torque of right_wheel", 3.9, 5.0, unit="N m"),
    found("margin", 0.25, 0.2, at_least=True, unit="1"),
    found("settling time", 4.1, unit="s"),
]
AUDIT = [
    AuditRow(
        "CON1", "kinetic energy & potential are invariant", Status.HOLDS, "residual 2e-15 < 1e-9"
    ),
    AuditRow("CON5", "as many controls as outputs", Status.HOLDS, "5 controls, 5 outputs"),
    AuditRow("NHR3", "momentum of the subgroup is kept", Status.NOT_CHECKED, "no such subgroup"),
]


def _decay(t, start, rate):
    """Return the critically damped error from rest, and its negative rate."""
    fall = np.exp(-rate * t)[:, None]
    return (1 + rate * t)[:, None] * fall * start, rate**2 * t[:, None] * fall * start


def line(axes, label):
    """The only line of axes whose label begins so."""
    (found,) = (this for this in axes.get_lines() if str(this.get_label()).startswith(label))
    return found
