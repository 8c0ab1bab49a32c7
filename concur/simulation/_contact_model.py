"""A robot that stands on contacts in MuJoCo, read in coordinates of the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import scipy
from scipy.spatial.transform import Rotation

from concur import interop
from concur.errors import SimulationError, needed
from concur.robot import BALLS, Mechanism
from concur.writers import Contacts, to_mjcf

REST = 1e-6
"""Acceleration of the base that counts as none when it stands, in parts of gravity."""

LEVER = 1e-3
"""Distance of a contact from the line through the others, in parts of theirs, from which on three
contacts carry a base."""


def load_mujoco() -> ModuleType:
    """Import MuJoCo, or refuse with the extra that contains it."""
    return needed("mujoco", "mjcf", "run in MuJoCo", SimulationError)


class ContactModel:
    """A robot whose planar base is free in MuJoCo and stands on wheels and supports.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    contacts : Contacts
        Supports and friction.
    time_step : float
        Step of MuJoCo, s.

    Attributes
    ----------
    names : tuple of str
        Wheels, by body, then supports: the order of `loads`.
    """

    def __init__(self, robot: Mechanism, contacts: Contacts, time_step: float) -> None:
        self.mujoco = load_mujoco()
        self.robot, self.order = robot, interop.mujoco(robot, free_base=True)
        text = to_mjcf(robot, time_step, contacts=contacts)
        self.model = self.mujoco.MjModel.from_xml_string(text)
        # Drives are ideal, as in runs without imperfections.
        self.model.tendon_damping[:], self.model.tendon_frictionloss[:] = 0.0, 0.0
        self.model.opt.disableflags |= self.mujoco.mjtDisableBit.mjDSBL_AUTORESET
        self.data = self.mujoco.MjData(self.model)
        self.names = (*(wheel.body for wheel in robot.wheels), *contacts.supports)
        self._geoms = [self.model.geom(name).id for name in self.names]
        self._place = np.full(self.model.ngeom, -1)
        self._place[self._geoms] = np.arange(len(self.names))
        placed = Rotation.from_quat(robot.base.placement.rotation).as_matrix()
        self._origin = np.array(robot.base.placement.translation)
        self._axes = robot.base.joint.frame  # type: ignore[attr-defined]
        self._plane = placed @ self._axes
        self.normal = self._plane[:, 2]

    def place(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set a state with the base at rest on its contacts: height and tilt of statics.

        The joints are held by their weight, so that only the base can accelerate.
        """
        mujoco, model, data = self.mujoco, self.model, self.data
        flat = self.order.to_q(q)
        turn, position = Rotation.from_quat(np.roll(flat[3:7], -1)), flat[:3].copy()
        size = float(np.linalg.norm(self.robot.gravity))
        depth = size * float(model.opt.timestep) ** 2

        def accelerations(given: np.ndarray) -> np.ndarray:
            height, *tilt = given
            leaning = turn * Rotation.from_rotvec(self._axes[:, :2] @ tilt)
            mujoco.mj_resetData(model, data)
            data.qpos[:] = flat
            data.qpos[:3] = position + height * self.normal
            data.qpos[3:7] = np.roll(leaning.as_quat(), 1)
            mujoco.mj_forward(model, data)
            data.qfrc_applied[6:] = data.qfrc_bias[6:]
            mujoco.mj_forward(model, data)
            return np.array([self.normal @ data.qacc[:3], *(self._axes[:, :2].T @ data.qacc[3:6])])

        found = scipy.optimize.root(
            accelerations, [-depth - self._unevenness(), 0.0, 0.0], tol=1e-12
        )
        rest = accelerations(found.x)
        if not np.abs(rest).max() <= REST * size or not self._is_carried():
            raise SimulationError(
                f"contacts of `{self.robot.name}` on {', '.join(self.names)}",
                expected="three or more contacts around the centre of mass, which carry the robot",
                came="a robot that tips over at its start",
                cure="Add supports, such as the casters of the robot.",
            )
        data.qfrc_applied[:] = 0.0
        data.qvel[:] = self.order.to_v(q, v)
        mujoco.mj_step1(model, data)

    def step(self) -> float:
        """Take a step with the present torques; return the work of the motors, J.

        Contacts and speeds are then those of the state after it, forces those of the step.
        """
        data = self.data
        self.mujoco.mj_step2(self.model, data)
        force = data.actuator_force.copy()
        self.mujoco.mj_step1(self.model, data)
        # The position of a step follows from the velocity at its end.
        return float(self.model.opt.timestep * (force @ data.actuator_velocity))

    def press(self, torques: np.ndarray) -> np.ndarray:
        """Apply torques; normal force of each contact before the next step, N."""
        self.data.ctrl[:] = torques
        self.mujoco.mj_forward(self.model, self.data)
        return self.loads()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Keep MuJoCo from writing warnings to a file in the working directory."""
        before = self.mujoco.get_mju_user_warning()
        self.mujoco.set_mju_user_warning(lambda message: None)
        try:
            yield
        finally:
            self.mujoco.set_mju_user_warning(before)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and velocity of the robot, the base projected on its plane."""
        q = self.order.from_q(self.data.qpos)
        return q, self.order.from_v(q, self.data.qvel)

    def lean(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Height over the plane, m, and angle to it, rad, of the base at coordinates (k, nq)."""
        height = (positions[:, :3] - self._origin) @ self.normal
        turns = Rotation.from_quat(np.roll(positions[:, 3:7], -1, axis=1))
        upright = turns.apply(self._axes[:, 2])
        across = np.linalg.norm(np.cross(self.normal, upright), axis=1)
        return height, np.arctan2(across, upright @ self.normal)

    def uprightness(self) -> float:
        """Cosine of the angle between the normals of base and plane."""
        turn = self.data.xmat[self.model.body(self.robot.base.name).id].reshape(3, 3)
        return float(self.normal @ turn @ self._axes[:, 2])

    def loads(self) -> np.ndarray:
        """Normal force of each contact, N."""
        found = np.zeros(len(self.names))
        np.add.at(found, self._place[self.data.contact.geom].max(axis=1), self._normal_forces())
        return found

    def wheel_motions(self) -> np.ndarray:
        """Angular and linear velocity of each wheel's centre, and its axis, shape (wheels, 9)."""
        found = np.zeros((len(self.robot.wheels), 9))
        kind, twist = self.mujoco.mjtObj.mjOBJ_GEOM, np.zeros(6)
        for row, geom in zip(found, self._geoms, strict=False):
            self.mujoco.mj_objectVelocity(self.model, self.data, kind, geom, twist, 0)
            row[:6], row[6:] = twist, self.data.geom_xmat[geom, 2::3]
        return found

    def slips(self, motions: np.ndarray) -> np.ndarray:
        """Speeds (k, wheels) along the ground of the wheels' points next to it, m/s."""
        normal, found = self.normal, np.zeros(motions.shape[:2])
        for k, wheel in enumerate(self.robot.wheels):
            turning, linear, axis = np.split(motions[:, k], 3, axis=1)
            # The point of a disk that is lowest; below the centre of a ball.
            leaning = 0.0 if wheel.kind in BALLS else 1.0
            down = leaning * (axis @ normal)[:, None] * axis - normal
            arm = wheel.radius * down / np.linalg.norm(down, axis=1, keepdims=True)
            speed = linear + np.cross(turning, arm)
            found[:, k] = np.linalg.norm(speed - np.outer(speed @ normal, normal), axis=1)
        return found

    def _normal_forces(self) -> np.ndarray:
        """Normal force of each contact point: the first of the forces of its elliptic cone."""
        rows = self.data.contact.efc_address
        return np.where(rows >= 0, np.append(self.data.efc_force, 0.0)[rows], 0.0)

    def _unevenness(self) -> float:
        """Largest difference of the radii of the wheels, m."""
        radii = [wheel.radius for wheel in self.robot.wheels]
        return max(radii) - min(radii)

    def _is_carried(self) -> bool:
        """Whether the contacts that bear a load span an area."""
        points = self.data.contact.pos[self._normal_forces() > 0.0]
        if len(points) < 3:
            return False
        values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
        return bool(values[1] > LEVER * values[0])
