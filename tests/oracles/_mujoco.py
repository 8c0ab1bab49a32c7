"""The same robot in MuJoCo: the model that the package writes, in the package's coordinates."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from concur import interop
from concur.robot import Mechanism
from concur.writers import to_mjcf

Law = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


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
        self.order = interop.mujoco(robot)
        self.model = mujoco.MjModel.from_xml_string(to_mjcf(robot, dt))
        # Joints of the package have no stops.
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        self.data = mujoco.MjData(self.model)

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
            q = self.order.from_q(now.qpos)
            tau[rows] = law(now.time, q, self.order.from_v(q, now.qvel))
            now.qfrc_applied[:] = self.order.to_force(q, tau)

        mujoco.mj_resetData(model, data)
        data.qpos[:], data.qvel[:] = self.order.to_q(q0), self.order.to_v(q0, v0)
        t, q, v = [0.0], [np.asarray(q0, dtype=float)], [np.asarray(v0, dtype=float)]
        mujoco.set_mjcb_control(push)
        try:
            for k in range(1, round(duration / dt) + 1):
                mujoco.mj_step(model, data)
                if k % every == 0:
                    q.append(self.order.from_q(data.qpos))
                    v.append(self.order.from_v(q[-1], data.qvel))
                    t.append(k * dt)
        finally:
            mujoco.set_mjcb_control(None)
        return np.array(t), np.array(q), np.array(v)

    def acceleration(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Acceleration in our coordinates, by the library's forward dynamics."""
        order, data = self.order, self.data
        data.qpos[:], data.qvel[:] = order.to_q(q), order.to_v(q, v)
        data.qfrc_applied[:] = order.to_force(q, tau)
        mujoco.mj_forward(self.model, data)
        return order.from_acceleration(q, v, data.qacc)
