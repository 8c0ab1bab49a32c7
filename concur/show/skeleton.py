"""Geometry of a drawn robot: a box, wheels, and lines from joint to joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.errors import ConcurError
from concur.robot import Mechanism
from concur.show._outputs import on_bodies
from concur.show.shapes import surfaces
from concur.show.style import Floats

_RIM = 25


@dataclass(frozen=True)
class Skeleton:
    """Points of a drawn robot, all in the world frame (m).

    Parameters
    ----------
    chassis : ndarray, shape (8, 3)
        Corners of the box around the base; the bits of `i` select low or high along x, y, z.
    wheels : tuple of ndarray, shape (2, 25, 3)
        The two closed rims of each wheel.
    spokes : tuple of ndarray, shape (2, 3)
        Lines from hub to rim, one for each wheel, which show its angle.
    struts : tuple of ndarray, shape (2, 3)
        Lines from joint to joint of branches with wheels only, and from the base to its arms.
    links : tuple of ndarray, shape (2, 3)
        Lines from joint to joint of the arms, and on to the hands.
    joints : ndarray, shape (n, 3)
        Joints of the arms.
    stubs : tuple of ndarray, shape (2, 3)
        Lines from the last joint of each branch without an output to its body's centre of mass.
    hands : ndarray, shape (m, 3)
        The output points.
    frames : tuple of ndarray, shape (4, 4)
        Poses of the base and of the bodies with an output.
    com : ndarray, shape (3,)
        Centre of mass of the whole robot.
    """

    chassis: Floats
    wheels: tuple[Floats, ...]
    spokes: tuple[Floats, ...]
    struts: tuple[Floats, ...]
    links: tuple[Floats, ...]
    joints: Floats
    stubs: tuple[Floats, ...]
    hands: Floats
    frames: tuple[Floats, ...]
    com: Floats

    def points(self) -> Floats:
        """Return every point of the drawing.

        Returns
        -------
        ndarray, shape (n, 3)
            The points in the world frame (m).
        """
        parts = [self.chassis, self.hands, self.com[None, :], *self.struts, *self.links]
        parts += self.stubs
        parts += [rims.reshape(-1, 3) for rims in self.wheels]
        return np.concatenate(parts)


class Outline:
    """Fixed part of a robot's drawing: its lines, and the sizes of box and wheels.

    Parameters
    ----------
    robot : Mechanism
        The robot to draw.
    q : ndarray, shape (nq,)
        A configuration; the box around the base is fitted to it.
    outputs : sequence of Output
        Output points to draw as hands.
    """

    def __init__(self, robot: Mechanism, q: Floats, outputs: Sequence[Any] = ()) -> None:
        if not hasattr(robot, "bodies"):
            raise ConcurError(
                f"figure of `{robot.name}`",
                expected="a robot with bodies",
                came="a system without bodies",
                cure="Plot its configuration over time.",
            )
        self.robot = robot
        self.outputs = on_bodies(outputs)
        self.root = next(body.name for body in robot.bodies if body.parent is None)
        parents = {body.parent for body in robot.bodies}
        # A wheel may be on the base itself, or on a body that carries more than a wheel.
        self._wheel_bodies = {wheel.body for wheel in robot.wheels} - parents
        shown = {self.root, *self._wheel_bodies, *(output.body for output in self.outputs)}
        self._ends = tuple(
            body
            for body in robot.bodies
            if body.name not in parents | shown and np.any(np.asarray(body.inertia.com, float))
        )
        self._carriers = self._bodies_that_carry_wheels_only()
        poses = self._poses(q)
        to_root = np.linalg.inv(poses[self.root])
        origins = {name: (to_root @ pose)[:3, 3] for name, pose in poses.items()}
        hubs = {
            id(wheel): _moved(to_root @ poses[wheel.body], _centre(wheel)) for wheel in robot.wheels
        }
        self._box = self._fit_box(origins, np.array(list(hubs.values())).reshape(-1, 3))
        far = max(float(np.linalg.norm(point)) for point in [*origins.values(), *hubs.values()])
        self._hubs = [self._wheel_shape(wheel, 0.05 * far or 0.05) for wheel in robot.wheels]
        at = self.at(q)
        centre = poses[self.root][:3, 3]
        self.size = float(np.max(np.linalg.norm(at.points() - centre, axis=1)))

    def at(self, q: Floats) -> Skeleton:
        """Compute the drawing of one configuration.

        Parameters
        ----------
        q : ndarray, shape (nq,)
            Configuration.

        Returns
        -------
        Skeleton
            The drawing in the world frame.
        """
        poses = self._poses(q)
        struts: list[Floats] = []
        links: list[Floats] = []
        joints: list[Floats] = []
        for body in self.robot.bodies:
            if body.parent is None:
                continue
            line = np.stack([poses[body.parent][:3, 3], poses[body.name][:3, 3]])
            wheel_only = body.name in self._carriers
            # A line inside the box of the base is a mount, not a part of the arm.
            (struts if wheel_only or body.parent == self.root else links).append(line)
            if not wheel_only:
                joints.append(line[1])
        hands = [_moved(poses[out.body], np.asarray(out.point, float)) for out in self.outputs]
        for output, hand in zip(self.outputs, hands, strict=True):
            if output.body != self.root:
                links.append(np.stack([poses[output.body][:3, 3], hand]))
        mass = np.array([body.inertia.mass for body in self.robot.bodies])
        centres = np.array(
            [
                _moved(poses[body.name], np.asarray(body.inertia.com, float))
                for body in self.robot.bodies
            ]
        )
        total = mass.sum()
        com = mass @ centres / total if total > 0 else centres[0]
        stubs = tuple(
            _moved(poses[body.name], np.stack([np.zeros(3), np.asarray(body.inertia.com, float)]))
            for body in self._ends
        )
        framed = dict.fromkeys([self.root, *(output.body for output in self.outputs)])
        hubs = [
            (poses[wheel.body], hub)
            for wheel, hub in zip(self.robot.wheels, self._hubs, strict=True)
        ]
        return Skeleton(
            chassis=_moved(poses[self.root], self._box),
            wheels=tuple(_moved(pose, rims) for pose, (rims, _) in hubs),
            spokes=tuple(_moved(pose, spoke) for pose, (_, spoke) in hubs),
            struts=tuple(struts),
            links=tuple(links),
            joints=np.array(joints).reshape(-1, 3),
            stubs=stubs,
            hands=np.array(hands).reshape(-1, 3),
            frames=tuple(poses[name] for name in framed),
            com=com,
        )

    def _poses(self, q: Floats) -> dict[str, Floats]:
        return {
            body.name: np.asarray(self.robot.pose(q, body.name), dtype=float)
            for body in self.robot.bodies
        }

    def _bodies_that_carry_wheels_only(self) -> set[str]:
        carriers = set(self._wheel_bodies)
        children: dict[str, list[str]] = {}
        for body in self.robot.bodies:
            if body.parent is not None:
                children.setdefault(body.parent, []).append(body.name)
        for body in reversed(tuple(self.robot.bodies)):
            below = children.get(body.name, [])
            if below and body.parent is not None and all(name in carriers for name in below):
                carriers.add(body.name)
        return (carriers - {output.body for output in self.outputs}) | self._wheel_bodies

    def _fit_box(self, origins: dict[str, Floats], hubs: Floats) -> Floats:
        mounts = [
            origins[body.name]
            for body in self.robot.bodies
            if body.parent == self.root and body.name not in self._carriers
        ]
        base = next(body for body in self.robot.bodies if body.name == self.root)
        if getattr(base, "shape", ()):
            points = surfaces(base.shape)[0]
            low, high = points.min(axis=0), points.max(axis=0)
        elif len(hubs):
            radius = max(wheel.radius for wheel in self.robot.wheels)
            around = np.array([*hubs, *mounts])
            low, high = around.min(axis=0), around.max(axis=0)
            least = max(0.6 * float(np.max((high - low)[:2])), radius) or 0.1
            for axis in (0, 1):
                missing = max(0.0, least - (high[axis] - low[axis]))
                low[axis] -= missing / 2
                high[axis] += missing / 2
            inset = 0.06 * (high - low)[:2]
            low[:2] += inset
            high[:2] -= inset
            low[2] = hubs[:, 2].min()
            high[2] = max([low[2] + max(0.7 * radius, 0.1 * least), *(m[2] for m in mounts)])
        else:
            centre = np.asarray(base.inertia.com, float)
            half = np.max([np.abs(mount - centre) for mount in mounts] or [np.full(3, 0.1)], axis=0)
            half = np.maximum(half, 0.5 * half.max())
            # An arm at the origin of the base gives no information about the size of the base.
            far = max(float(np.linalg.norm(origin)) for origin in origins.values())
            half = np.maximum(half, 0.1 * far if far > 0 else 0.1)
            low, high = centre - half, centre + half
        bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
        return np.asarray(np.where(bits == 0, low, high), dtype=float)

    def _wheel_shape(self, wheel: Any, least: float) -> tuple[Floats, Floats]:
        axis = np.asarray(self.robot.wheel_axis(wheel), dtype=float)
        # A wheel without a radius is drawn with a visible one.
        radius = float(wheel.radius) or least
        centre = _centre(wheel)
        aside = np.eye(3)[np.argmin(np.abs(axis))]
        e1 = np.cross(axis, aside)
        e1 /= np.linalg.norm(e1)
        e2 = np.cross(axis, e1)
        angle = np.linspace(0.0, 2 * np.pi, _RIM)[:, None]
        rim = radius * (np.cos(angle) * e1 + np.sin(angle) * e2)
        half = 0.2 * radius * axis
        rims = centre + np.stack([rim - half, rim + half])
        return rims, centre + np.stack([np.zeros(3), radius * e1])


def _centre(wheel: Any) -> Floats:
    return np.asarray(getattr(wheel, "center", (0.0, 0.0, 0.0)), dtype=float)


def _moved(pose: Floats, points: Floats) -> Floats:
    return points @ pose[:3, :3].T + pose[:3, 3]
