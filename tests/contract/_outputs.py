"""Motions of outputs and the accelerations that a law has to command, from poses of the twin.

With g = r^-1 gamma, x = log g and ve = r^-1 rdot - Ad_g xi, the errors obey ``xdot = -B(x) ve``
and ``vedot = B(x)^T KP x - KD ve``. B is the inverse of the derivative of exp; matrices of se(3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag, expm, logm
from scipy.spatial.transform import Rotation

import concur as cc
from tests.contract._robots import Case

Array = np.ndarray
ROWS = {"SE3": [0, 1, 2, 3, 4, 5], "SO3": [3, 4, 5], "SE2": [0, 1, 5], "SO2": [5]}
LETTERS = {"R": "x", "R2": "xy", "R3": "xyz"}
CORNER = 0.9
"""Largest error of a drawn reference, m and rad."""


def hat(x: Array) -> Array:
    """Matrix of a twist, shape (4, 4)."""
    v, w = x[:3], x[3:]
    return np.array(
        [[0, -w[2], w[1], v[0]], [w[2], 0, -w[0], v[1]], [-w[1], w[0], 0, v[2]], [0, 0, 0, 0.0]]
    )


def vee(m: Array) -> Array:
    """Twist of a matrix."""
    return np.array([*m[:3, 3], m[2, 1], m[0, 2], m[1, 0]])


def transport(g: Array) -> Array:
    """Adjoint matrix of a pose."""
    columns = [vee(g @ hat(e) @ np.linalg.inv(g)) for e in np.eye(6)]
    return np.array(columns).T


def bracket(x: Array) -> Array:
    """Matrix of the Lie bracket with a twist."""
    columns = [vee(hat(x) @ hat(e) - hat(e) @ hat(x)) for e in np.eye(6)]
    return np.array(columns).T


def error_rate(x: Array) -> Array:
    """B(x): the inverse of the derivative of exp, by its series."""
    ad, term, total = bracket(x), np.eye(6), np.zeros((6, 6))
    for k in range(1, 30):
        total, term = total + term, term @ ad / (k + 1)
    return np.linalg.inv(total)


@dataclass(frozen=True)
class Motion:
    """A frame with its body twist and the rate of it: of an output on a group, or a point."""

    group: str
    axes: list[int]
    pose: Array
    twist: Array
    rate: Array

    def flat(self, pose: Array) -> Array:
        """Coordinates of a pose as a reference states them."""
        quaternion = Rotation.from_matrix(pose[:3, :3]).as_quat()
        if self.group in LETTERS:
            return np.asarray(pose[self.axes, 3])
        heading = np.arctan2(pose[1, 0], pose[0, 0])
        whole = {
            "SE3": [*pose[:3, 3], *quaternion],
            "R3xSO3": [*pose[:3, 3], *quaternion],
            "SO3": quaternion,
            "SE2": [*pose[:2, 3], heading],
            "SO2": [heading],
        }
        return np.array(whole[self.group])


def motions(case: Case, q: Array, v: Array, vdot: Array) -> list[Motion]:
    """Motion of each output at a state and an acceleration of the robot."""
    return [_motion(case, output, q, v, vdot) for output in case.outputs]


def _motion(case: Case, output: Any, q: Array, v: Array, vdot: Array) -> Motion:
    twin, none = case.twin, np.zeros(5)
    if isinstance(output, cc.outputs.FunctionOutput):  # a coordinate of the cart and its pole
        index = ["x", "angle"].index(output.name)
        pose = np.eye(4)
        pose[0, 3] = q[index]
        return Motion("R", [0], pose, np.append(v[index], none), np.append(vdot[index], none))
    tool = np.eye(4)
    tool[:3, :3] = Rotation.from_quat(output.orientation).as_matrix()
    tool[:3, 3] = output.point
    back = transport(np.linalg.inv(tool))
    pose = twin.pose(q, output.body) @ tool
    twist = back @ twin.jacobian(q, output.body) @ v
    rate = back @ twin.twist_rate(q, v, output.body, vdot)
    if output.relative_to:
        other = output.relative_to
        pose = np.linalg.inv(twin.pose(q, other)) @ pose
        back = transport(np.linalg.inv(pose))
        carried = back @ twin.jacobian(q, other) @ v
        twist = twist - carried
        rate = rate - back @ twin.twist_rate(q, v, other, vdot) + bracket(twist) @ carried
    if output.group in ("SE2", "SO2"):
        pose, twist, rate = _in_plane(np.array(output.normal, dtype=float), pose, twist, rate)
    letters = output.axes or LETTERS.get(output.group, "")
    return Motion(output.group, ["xyz".index(x) for x in letters], pose, twist, rate)


def _in_plane(normal: Array, pose: Array, twist: Array, rate: Array) -> tuple[Array, Array, Array]:
    """The same motion seen in a plane: a frame at the heading, with the axes of the plane."""
    plane = np.eye(4)
    z = np.array([0.0, 0.0, 1.0])
    if not np.allclose(normal, z):
        turn = Rotation.align_vectors([normal], [z])[0]
        plane[:3, :3] = turn.as_matrix()
    seen = plane.T @ pose
    heading = np.arctan2(seen[1, 0], seen[0, 0])
    level = np.eye(4)
    level[:3, :3] = Rotation.from_rotvec(heading * z).as_matrix()
    level[:3, 3] = seen[:3, 3]
    turn = level[:3, :3].T @ seen[:3, :3]  # constant: the body moves in the plane
    both = block_diag(turn, turn)
    return level, both @ twist, both @ rate


def draw(case: Case, now: list[Motion], rng: np.random.Generator, size: float) -> tuple[Any, Array]:
    """Draw a reference near the outputs, and what the law should make of the accelerations.

    Returns
    -------
    sample : ReferenceSample
        Pose, twist and acceleration.
    lack : numpy.ndarray
        Made minus commanded acceleration, on the algebra of the outputs, shape (size,).
    """
    poses, twists, rates, lacks = [], [], [], []
    for motion, kp, kd in zip(now, *case.gains, strict=True):
        x, xi, slope = size * rng.normal(size=(3, 6))
        x = np.clip(x, -CORNER, CORNER)
        turn = motion.pose[:3, :3]
        if motion.group in LETTERS or motion.group == "R3xSO3":
            rows = motion.axes if motion.group in LETTERS else [0, 1, 2]
            velocity, spin = motion.twist[:3], motion.twist[3:]
            moved = (turn @ velocity)[rows]
            made = (turn @ (motion.rate[:3] + np.cross(spin, velocity)))[rows]
            n = len(rows)
            lack = [made - slope[:n] - kp * x[:n] + kd * (moved - xi[:n])]
            gamma = motion.pose.copy()
            gamma[rows, 3] += x[:n]
            twist, rate = [xi[:n]], [slope[:n]]
            if motion.group == "R3xSO3":
                keep = ROWS["SO3"]
                lack.append(_lack(motion, keep, x, xi, slope, kp, kd))
                gamma[:3, :3] = turn @ expm(hat(x)[:3, :3])
                twist.append(xi[keep])
                rate.append(slope[keep])
        else:
            keep = ROWS[motion.group]
            lack = [_lack(motion, keep, x, xi, slope, kp, kd)]
            inside = np.zeros(6)
            inside[keep] = x[keep]
            gamma = motion.pose @ expm(hat(inside))
            twist, rate = [xi[keep]], [slope[keep]]
        poses.append(motion.flat(gamma))
        twists += twist
        rates += rate
        lacks += lack
    sample = cc.ReferenceSample(*(np.concatenate(p) for p in (poses, twists, rates)))
    return sample, np.concatenate(lacks)


def _lack(
    motion: Motion, keep: list[int], x: Array, xi: Array, slope: Array, kp: float, kd: float
) -> Array:
    """Rate of the velocity error minus that of the error dynamics, on a matrix group."""

    def only(twist: Array) -> Array:
        inside = np.zeros(6)
        inside[keep] = twist[keep]
        return inside

    x, xi, slope = only(x), only(xi), only(slope)
    twist, rate = only(motion.twist), only(motion.rate)
    g = expm(hat(x))
    assert np.allclose(vee(np.real(logm(g))), x)  # within the injectivity radius
    moved = transport(g) @ xi
    error = twist - moved
    made = rate - transport(g) @ slope + bracket(error) @ moved
    wanted = kp * error_rate(x).T @ x - kd * error
    return np.asarray((made - wanted)[keep])


def accelerations(now: list[Motion]) -> Array:
    """Accelerations of all outputs on their algebras, shape (size,)."""
    found = []
    for motion in now:
        velocity, spin, turn = motion.twist[:3], motion.twist[3:], motion.pose[:3, :3]
        linear = turn @ (motion.rate[:3] + np.cross(spin, velocity))
        if motion.group in LETTERS:
            found.append(linear[motion.axes])
        elif motion.group == "R3xSO3":
            found += [linear, motion.rate[3:]]
        else:
            found.append(motion.rate[ROWS[motion.group]])
    return np.concatenate(found)
