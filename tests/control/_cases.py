"""Robots, servos and references that the tests of control and simulation share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from concur.control import Law, Servo, Tick, tracking_law
from concur.errors import ConcurError
from concur.outputs import Output, Reference, ReferenceSample, references
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from tests.groups.oracles import bracket, conjugation, twist_matrix
from tests.oracles import CASE_STUDY, RoverNumbers, rover

Q0 = np.array([-0.3, -0.05, 0.1, 0.0, 0.0, 0.1, 1.2, -1.6])
S0 = np.array([1.0, 1.5, 0.0, 0.0, 0.0])
"""Start of the case study in section 5.5."""

STIFFNESS = np.diag([4.0, 4.0, 9.0, 9.0, 9.0])
DAMPING = np.diag([4.0, 4.0, 6.0, 6.0, 6.0])


def case_study(
    n: RoverNumbers = CASE_STUDY, stiffness: object = (4.0, 9.0), damping: object = (4.0, 6.0)
) -> Servo:
    """Build the servo of section 5.5: a point l0 before the axle, and the hand."""
    outputs = [
        Output("base", "chassis", "R2", point=(n.l0, 0.0, 0.0)),
        Output("hand", "fore", "R3", point=(0.0, n.l4, 0.0)),
    ]
    return Servo(reduce(rover(n)), outputs, stiffness, damping)


def case_study_sample(t: float) -> ReferenceSample:
    """Demand of section 5.5, written out."""
    sin, cos = np.sin(t), np.cos(t)
    base = np.array(
        [
            [0.3 * t, 0.1 * np.sin(0.5 * t), 0.0],
            [0.3, 0.05 * np.cos(0.5 * t), 0.0],
            [0.0, -0.025 * np.sin(0.5 * t), 0.0],
        ]
    )
    offset = [
        [0.15, 0.75 + 0.05 * sin, 0.15 + 0.05 * cos],
        [0.0, 0.05 * cos, -0.05 * sin],
        [0.0, -0.05 * sin, -0.05 * cos],
    ]
    return ReferenceSample(*np.hstack([base[:, :2], base + np.array(offset)]))


def case_study_reference() -> Reference:
    return references.from_function(case_study_sample, 5, 5)


_LINKS = ((0.35, 8.0), (0.5, 6.0), (0.45, 5.0), (0.25, 3.0), (0.2, 2.0), (0.15, 1.5))


def _link(length: float, mass: float) -> Inertia:
    moments = np.array([0.02, 0.06, 0.05]) * mass / 2
    return Inertia(mass, com=(length / 2, 0.01, -0.02), moments=moments)


def arm(
    axes: str = "zyyxyx",
    scale: float = 1.0,
    placement: Pose | None = None,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
) -> Mechanism:
    """Build an arm of six revolute joints on a fixed base; the hand is the last body."""
    along = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
    offsets = [(0.4, 0, 0.3), (0.35, 0, 0), (0.5, 0, 0), (0.45, 0, 0), (0.25, 0, 0), (0.2, 0, 0)]
    bodies = [Body("floor", joints.Fixed(), placement=placement or Pose())]
    for k, (axis, offset, (length, mass)) in enumerate(zip(axes, offsets, _LINKS, strict=True)):
        bodies.append(
            Body(
                "hand" if k == 5 else f"link{k + 1}",
                joints.Revolute(along[axis]),
                parent=bodies[-1].name,
                placement=Pose(tuple(scale * x for x in offset)),
                inertia=_link(scale * length, mass),
            )
        )
    return Mechanism(f"arm {axes}", bodies, gravity=gravity)


ARM_Q0 = np.array([0.1, 1.0, -1.35, 0.1, 1.0, -1.5])
ARM_S0 = np.array([0.05, -0.04, 0.03, 0.02, -0.03, 0.04])


def gantry(gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)) -> Mechanism:
    """Build three slides at right angles that carry a ball joint: never singular in a pose."""
    slides = [
        Body(
            f"slide{k}",
            joints.Prismatic(axis),
            parent,
            Pose((0.1, 0.0, 0.2)),
            Inertia(4.0 - k, (0.1, 0.02, 0.05), (0.1, 0.12, 0.08)),
        )
        for k, (axis, parent) in enumerate(
            zip(((1, 0, 0), (0, 1, 0), (0, 0, 1)), ("floor", "slide0", "slide1"), strict=True)
        )
    ]
    hand = Body(
        "hand",
        joints.Spherical(),
        "slide2",
        Pose((0.0, 0.0, -0.1)),
        Inertia(
            1.3,
            (0.1, -0.05, 0.08),
            ((0.05, 0.004, -0.003), (0.004, 0.04, 0.002), (-0.003, 0.002, 0.03)),
        ),
    )
    return Mechanism("gantry", [Body("floor", joints.Fixed()), *slides, hand], gravity=gravity)


@dataclass(frozen=True)
class CasterNumbers:
    """Differential base with a caster: lengths in m."""

    b: float = 0.1
    c: float = 0.25
    x: float = 0.4
    trail: float = 0.06
    b_caster: float = 0.05


def caster(n: CasterNumbers | None = None) -> Mechanism:
    """Build it; q = (x, y, theta, psi1, psi2, alpha, beta), the two large wheels are driven."""
    n = n or CasterNumbers()
    wheel = Inertia(1.5, moments=(0.004, 0.0075, 0.004))
    turning = joints.Revolute((0, 1, 0))
    bodies = [
        Body("chassis", joints.Planar(), inertia=Inertia(20.0, (0.15, 0.02, 0.1), (0.6, 0.8, 1.1))),
        Body("left", turning, "chassis", Pose((0, n.c, n.b)), wheel),
        Body("right", turning, "chassis", Pose((0, -n.c, n.b)), wheel),
        Body(
            "fork",
            joints.Revolute((0, 0, 1)),
            "chassis",
            Pose((n.x, 0, 0.1)),
            Inertia(0.8, (-0.03, 0.01, 0.0), (0.002, 0.003, 0.004)),
        ),
        Body(
            "castor",
            turning,
            "fork",
            Pose((-n.trail, 0, n.b_caster - 0.1)),
            Inertia(0.4, moments=(0.0004, 0.0007, 0.0004)),
        ),
    ]
    wheels = [Wheel("left", n.b), Wheel("right", n.b), Wheel("castor", n.b_caster)]
    return Mechanism("caster", bodies, wheels, gravity=(0, 0, -9.81), actuated=["left", "right"])


def caster_rows(n: CasterNumbers | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """Return its five independent rows on v, written by hand."""
    n = n or CasterNumbers()

    def rows(q: np.ndarray) -> np.ndarray:
        cos, sin = np.cos(q[5]), np.sin(q[5])
        return np.array(
            [
                [0, 1, 0, 0, 0, 0, 0],
                [1, 0, -n.c, -n.b, 0, 0, 0],
                [1, 0, n.c, 0, -n.b, 0, 0],
                [cos, sin, n.x * sin, 0, 0, 0, -n.b_caster],
                [-sin, cos, n.x * cos - n.trail, 0, 0, -n.trail, 0],
            ],
            dtype=q.dtype,
        )

    return rows


def arm_servo(
    robot: Mechanism, group: str, stiffness: object = 9.0, damping: object = 5.0
) -> Servo:
    """Track the pose of the hand; "SO3+R3" is two outputs instead of one."""
    point = (0.15, 0.0, 0.0)
    outputs = [Output(name, "hand", name, point) for name in group.split("+")]
    return Servo(reduce(robot), outputs, stiffness, damping)


@dataclass(frozen=True)
class PoseCurve:
    """A smooth motion in SE(3): start exp(a t) exp(b (1 - cos t)), with its derivatives."""

    start: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def motion(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Poses (k, 4, 4), body twists (k, 6) and their rates (k, 6)."""
        sin, bend = np.sin(times), 1 - np.cos(times)
        turned = expm(np.multiply.outer(bend, twist_matrix(self.b)))
        poses = self.start @ expm(np.multiply.outer(times, twist_matrix(self.a))) @ turned
        back = expm(np.multiply.outer(-bend, bracket(self.b)))
        carried = back @ self.a
        twists = carried + np.multiply.outer(sin, self.b)
        rates = -sin[:, None] * (carried @ bracket(self.b).T)
        return poses, twists, rates + np.multiply.outer(np.cos(times), self.b)

    def reference(self, group: str) -> Reference:
        """The motion as a demand on "SE3", "R3xSO3" or "SO3+R3"."""
        return _CurveReference(self, group)


class _CurveReference(Reference):
    def __init__(self, curve: PoseCurve, group: str) -> None:
        self._curve, self._group = curve, group
        self.pose_size, self.size = 7, 6

    def _evaluate(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        poses, twists, rates = self._curve.motion(times)
        turn, place = poses[:, :3, :3], poses[:, :3, 3]
        attitude = Rotation.from_matrix(turn).as_quat()
        v, w = twists[:, :3], twists[:, 3:]
        vdot, wdot = rates[:, :3], rates[:, 3:]
        if self._group != "SE3":
            vdot = np.einsum("kij,kj->ki", turn, vdot + np.cross(w, v))
            v = np.einsum("kij,kj->ki", turn, v)
        parts = [(place, attitude), (v, w), (vdot, wdot)]
        if self._group == "SO3+R3":
            parts = [pair[::-1] for pair in parts]
        return tuple(np.hstack(pair) for pair in parts)  # type: ignore[return-value]


B = np.array([0.03, -0.03, 0.02, 0.1, 0.05, -0.08])
"""Accelerated part of the poses demanded."""


def demand(
    group: str, pose: np.ndarray, twist: np.ndarray, x: np.ndarray, ve: np.ndarray
) -> PoseCurve:
    """Motion that starts at an error from a pose and its body twist.

    x and ve are [linear; angular], in SE(3) or, the linear parts in inertial axes, in R3xSO3.
    """
    if group == "SE3":
        carry = conjugation(expm(twist_matrix(x)))
        return PoseCurve(pose @ expm(twist_matrix(x)), np.linalg.solve(carry, twist - ve), B)
    start, turn = pose.copy(), Rotation.from_rotvec(x[3:]).as_matrix()
    start[:3, :3] = pose[:3, :3] @ turn
    start[:3, 3] += x[:3]
    linear = start[:3, :3].T @ (pose[:3, :3] @ twist[:3] - ve[:3])
    return PoseCurve(start, np.array([*linear, *(turn.T @ (twist[3:] - ve[3:]))]), B)


def hand_pose(robot: Mechanism, q: np.ndarray, point: object = (0.15, 0.0, 0.0)) -> np.ndarray:
    moved = np.eye(4)
    moved[:3, 3] = point
    return robot.pose(q, "hand") @ moved


def hand_twist(robot: Mechanism, q: np.ndarray, v: np.ndarray, point=(0.15, 0.0, 0.0)):  # type: ignore[no-untyped-def]
    moved = np.eye(4)
    moved[:3, 3] = point
    return conjugation(np.linalg.inv(moved)) @ robot.twist(q, v, "hand")


def refused(kind: type[ConcurError], call: Callable[[], object], **contains: str) -> ConcurError:
    """Call, expect an error of a kind, and look for words in its four sentences."""
    result = None
    with pytest.raises(kind) as caught:
        result = call()
    assert result is None
    error = caught.value
    for sentence in ("where", "expected", "came", "cure"):
        text = getattr(error, sentence)
        assert text, f"nothing said about `{sentence}`"
        assert text.replace("\0", "\\x00") in str(error)  # messages are printable
    assert contains.get("where", "") in error.where
    return error


def two_links(length: float = 0.4, mass: float = 1.0, **options: object) -> Servo:
    """A planar arm, singular where it is stretched: det J = length^2 sin(elbow)."""
    link = Inertia(mass, (length / 2, 0, 0), tuple(mass * length**2 * x for x in (0.01, 0.1, 0.1)))
    robot = Mechanism(
        "two links",
        [
            Body("floor", joints.Fixed()),
            Body("upper", joints.Revolute((0, 0, 1)), "floor", inertia=link),
            Body("fore", joints.Revolute((0, 0, 1)), "upper", Pose((length, 0, 0)), link),
        ],
    )
    return Servo(reduce(robot), [Output("tip", "fore", "R2", (length, 0, 0))], 4.0, 4.0, **options)


def ticked(law: Law, interpreted: bool = False) -> Tick:
    """Tick of any law."""
    return tracking_law(law).compile(interpreted=interpreted)
