"""The same robot in MuJoCo: a model written as text from our description of the robot.

The library's free joint has its linear velocity in inertial axes and its angular one in body
axes, its quaternions have the scalar first, and a motion in a plane is two slides and a hinge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from xml.etree import ElementTree

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from concur.mechanism import Body, Pose, joints
from concur.multibody import Mechanism

Law = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


def _text(numbers: Sequence[float] | np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(numbers))


def _scalar_first(q: Sequence[float] | np.ndarray) -> np.ndarray:
    return np.roll(np.asarray(q, dtype=float), 1)


def _scalar_last(q: np.ndarray) -> np.ndarray:
    return np.roll(q, -1)


def _plane(joint: joints.Planar) -> np.ndarray:
    """Axes of the plane in the joint frame as columns, turned the shortest way from z."""
    z, normal = np.array([0.0, 0.0, 1.0]), np.array(joint.normal)
    across = np.cross(z, normal)
    sine = np.linalg.norm(across)
    if sine < 1e-12:
        return np.eye(3) if normal[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    return Rotation.from_rotvec(across / sine * np.arctan2(sine, normal[2])).as_matrix()


def _elements(body: Body) -> list[tuple[str, dict[str, str]]]:
    """Joints of the library that make one of ours, outermost first."""
    joint = body.joint
    match joint:
        case joints.Fixed():
            return []
        case joints.Free():
            assert body.parent is None, "MuJoCo has free joints at the world only"
            return [("freejoint", {})]
        case joints.Revolute():
            return [("joint", {"type": "hinge", "axis": _text(joint.axis)})]
        case joints.Prismatic():
            return [("joint", {"type": "slide", "axis": _text(joint.axis)})]
        case joints.Spherical():
            return [("joint", {"type": "ball"})]
        case joints.Cartesian():
            return [("joint", {"type": "slide", "axis": _text(axis)}) for axis in np.eye(3)]
        case joints.Planar():
            kinds = ("slide", "slide", "hinge")
            axes = _plane(joint).T
            return [
                ("joint", {"type": kind, "axis": _text(axis)})
                for kind, axis in zip(kinds, axes, strict=True)
            ]
        case _:
            raise NotImplementedError(f"MuJoCo has no joint like {type(joint).__name__}")


def mjcf(robot: Mechanism, dt: float = 1e-3) -> str:
    """Describe a robot without wheels in the library's XML: no contacts, Runge-Kutta steps.

    Parameters
    ----------
    robot : Mechanism
        Bodies, placements, inertias and gravity are read.
    dt : float
        Time step, s.
    """
    assert not robot.wheels, "wheels that roll without slip are no contacts of MuJoCo"
    root = ElementTree.Element("mujoco", model=robot.name)
    ElementTree.SubElement(root, "compiler", angle="radian")
    option = ElementTree.SubElement(
        root,
        "option",
        integrator="RK4",
        timestep=repr(dt),
        gravity=_text(robot.gravity),
    )
    ElementTree.SubElement(option, "flag", contact="disable", constraint="disable")
    made = {None: ElementTree.SubElement(root, "worldbody")}
    for body in robot.bodies:
        place: Pose = body.placement
        made[body.name] = own = ElementTree.SubElement(
            made[body.parent],
            "body",
            name=body.name,
            pos=_text(place.translation),
            quat=_text(_scalar_first(place.rotation)),
        )
        for number, (tag, attributes) in enumerate(_elements(body)):
            ElementTree.SubElement(own, tag, name=f"{body.name}{number}", **attributes)
        if body.inertia.mass:
            tensor = body.inertia.tensor
            places = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
            ElementTree.SubElement(
                own,
                "inertial",
                mass=repr(float(body.inertia.mass)),
                pos=_text(body.inertia.com),
                fullinertia=_text([tensor[place] for place in places]),
            )
    return ElementTree.tostring(root, encoding="unicode")


class Mujoco:
    """A robot in MuJoCo, spoken to in our coordinates.

    Parameters
    ----------
    robot : Mechanism
        Its description is read; nothing of it is evaluated.
    dt : float
        Time step, s.
    """

    def __init__(self, robot: Mechanism, dt: float = 1e-3) -> None:
        self.robot = robot
        self.model = mujoco.MjModel.from_xml_string(mjcf(robot, dt))
        self.data = mujoco.MjData(self.model)
        # Of the base, the only body that may float: the library counts from the inertial frame.
        base = robot.base.placement
        self._place = Rotation.from_quat(base.rotation), np.array(base.translation)
        self._spans: list[tuple[Body, slice, slice, slice, slice]] = []
        iq = iv = 0
        for body in robot.bodies:
            if not body.joint.nv:
                continue
            first = self.model.joint(f"{body.name}0")
            at_q, at_v = int(first.qposadr[0]), int(first.dofadr[0])
            nq, nv = body.joint.nq, body.joint.nv
            self._spans.append(
                (
                    body,
                    slice(iq, iq + nq),
                    slice(iv, iv + nv),
                    slice(at_q, at_q + nq),
                    slice(at_v, at_v + nv),
                )
            )
            iq, iv = iq + nq, iv + nv

    def position(self, q: np.ndarray) -> np.ndarray:
        """Our configuration in the library's coordinates."""
        theirs = np.zeros(self.model.nq)
        for body, ours_q, _, their_q, _ in self._spans:
            part = np.asarray(q, dtype=float)[ours_q]
            if isinstance(body.joint, joints.Free):
                turn, place = self._place
                attitude = (turn * Rotation.from_quat(part[3:])).as_quat()
                part = np.concatenate([place + turn.apply(part[:3]), _scalar_first(attitude)])
            elif isinstance(body.joint, joints.Spherical):
                part = _scalar_first(part)
            theirs[their_q] = part
        return theirs

    def configuration(self, position: np.ndarray) -> np.ndarray:
        """The library's coordinates as a configuration of ours."""
        ours = np.zeros(self.robot.nq)
        for body, ours_q, _, their_q, _ in self._spans:
            part = np.array(position[their_q])
            if isinstance(body.joint, joints.Free):
                turn, place = self._place
                attitude = (turn.inv() * Rotation.from_quat(_scalar_last(part[3:]))).as_quat()
                part = np.concatenate([turn.inv().apply(part[:3] - place), attitude])
            elif isinstance(body.joint, joints.Spherical):
                part = _scalar_last(part)
            ours[ours_q] = part
        return ours

    def rates(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Our velocity, or our force, in the library's axes."""
        return self._turned(q, v, 1)

    def velocity(self, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """The library's velocity, or force, in our axes."""
        return self._turned(q, rates, -1)

    def _turned(self, q: np.ndarray, given: np.ndarray, sign: int) -> np.ndarray:
        """Turn translations between body and inertial axes; rotations are in body axes in both."""
        result = np.zeros(self.robot.nv)
        for body, ours_q, ours_v, _, their_v in self._spans:
            source, target = (ours_v, their_v) if sign > 0 else (their_v, ours_v)
            part = np.array(given[source], dtype=float)
            if isinstance(body.joint, joints.Free):
                turn = self._place[0] * Rotation.from_quat(q[ours_q][3:])
                part[:3] = turn.apply(part[:3], inverse=sign < 0)
            elif isinstance(body.joint, joints.Planar):
                angle = sign * q[ours_q][2]
                cos, sin = np.cos(angle), np.sin(angle)
                part[:2] = cos * part[0] - sin * part[1], sin * part[0] + cos * part[1]
            result[target] = part
        return result

    def simulate(
        self, q0: np.ndarray, v0: np.ndarray, law: Law, duration: float, every: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Let the library take its steps; it asks for the controls in each stage of each step.

        Parameters
        ----------
        q0, v0 : numpy.ndarray
            State at time 0.
        law : callable
            Controls (nu,) from (t, q, v).
        duration : float
            How long, s.
        every : int
            Steps from one record to the next.

        Returns
        -------
        t, q, v : numpy.ndarray
            Times (k,), configurations (k, nq) and velocities (k, nv).
        """
        model, data, dt = self.model, self.data, self.model.opt.timestep
        rows = list(self.robot.actuated_freedoms)
        tau = np.zeros(self.robot.nv)

        def push(_: mujoco.MjModel, now: mujoco.MjData) -> None:
            q = self.configuration(now.qpos)
            tau[rows] = law(now.time, q, self.velocity(q, now.qvel))
            now.qfrc_applied[:] = self.rates(q, tau)

        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = self.position(q0), self.rates(q0, v0)
        t, q, v = [0.0], [np.asarray(q0, dtype=float)], [np.asarray(v0, dtype=float)]
        mujoco.set_mjcb_control(push)
        try:
            for k in range(1, round(duration / dt) + 1):
                mujoco.mj_step(model, data)
                if k % every == 0:
                    q.append(self.configuration(data.qpos))
                    v.append(self.velocity(q[-1], data.qvel))
                    t.append(k * dt)
        finally:
            mujoco.set_mjcb_control(None)
        return np.array(t), np.array(q), np.array(v)

    def acceleration(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Acceleration in our coordinates, by the library's forward dynamics."""
        self.data.qpos[:], self.data.qvel[:] = self.position(q), self.rates(q, v)
        self.data.qfrc_applied[:] = self.rates(q, tau)
        mujoco.mj_forward(self.model, self.data)
        turned = self.velocity(q, self.data.qacc)
        # A rotating vector has an additional rate: R^T d(R v)/dt = vdot + w x v.
        for body, _, ours_v, _, _ in self._spans:
            own = np.asarray(v, dtype=float)[ours_v]
            if isinstance(body.joint, joints.Free):
                turned[ours_v][:3] -= np.cross(own[3:], own[:3])
            elif isinstance(body.joint, joints.Planar):
                turned[ours_v][:2] -= own[2] * np.array([-own[1], own[0]])
        return turned
