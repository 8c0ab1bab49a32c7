"""What errors of the measured state add to the acceleration of outputs, over cells.

The law acts on z + e, where z are the arm's angles phi, the shape velocities s and the pose (p,
theta) of the base. Its torques differ by the integral of du/dz e along the way, and with
K = J H Mhat^-1, J H a = nu - b(phi, s) and u = f(phi, s, a)

    K du/ds = -kd J H - db/ds + K df/ds,
    K du/dphi = -kp dr/dphi - kd d(J H s)/dphi - d(J H a + b)/dphi + K df/dphi,
    K du/dp = -kp,   K du/dtheta = -z x (nu + kd ydot + kp r),

r the places of the outputs from the base, all in its axes. K belongs to the true state, and du to
those on the way: their difference is that of both states in K.

**What holds.** Each returned bound is one for every point of the cell. The ways of `moved` are
bounds if the cells contain the states that they reach: a way that starts inside and is shorter
than the room about its start stays inside (first exit).
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur._polynomials import Floats, Model, norm_bound
from concur.proofs._reading import Reading
from concur.proofs._wheeled import OUTPUTS, Robot


@dataclass(frozen=True, eq=False)
class State:
    """Models over cells: of angles, speeds, rates, demands nu and velocities ydot."""

    phi: list[Model]
    s: list[Model]
    a: list[Model]
    nu: list[Model]
    ydot: list[Model]


class Readings:
    """Graphs of what errors of the measured state do.

    Parameters
    ----------
    robot : Robot
        Graphs of the robot.
    reading : Reading
        The errors.
    """

    def __init__(self, robot: Robot, reading: Reading) -> None:
        self.reading, graph, model = reading, robot.graph, robot.servo.model
        joints = [model.shape_names[k] for k in robot.arm_speeds]
        self.angles, self.speeds = reading.of(joints, model.shape_names)
        phi, s, a = graph.phi, graph.s, graph.a
        forces, decoupling, bias = graph.parts[0], graph.decoupling, graph.bias
        place = robot.place(phi)
        self._slopes = robot.walker(
            [phi, s, a],
            [
                place,
                ca.jacobian(place, phi),
                decoupling,
                ca.jacobian(decoupling @ s, phi),
                ca.jacobian(bias, s),
                ca.jacobian(decoupling @ a + bias, phi),
                ca.jacobian(forces, s),
                ca.jacobian(forces, phi),
            ],
        )
        self._gains = [(c.stiffness, c.damping) for c in robot.channels]
        self._lead = np.asarray(robot.servo.outputs[0].point[:2], dtype=float)

    def bounds(
        self, state: State, response: np.ndarray, slopes: Floats, inertia: Floats
    ) -> dict[str, Floats]:
        """Bounds over cells; the last axis counts them.

        `read` (2, b) of what is added to the acceleration of each output, `read_torque` (ns, b) of
        the change of torques, and `moved` (4, b) of the way of x of both outputs, and of ve.
        `slopes` are those of K by angles, `inertia` (ns, 2, b) bounds K^-1.
        """
        place, arm, speed, turned, drift, demand, by_speed, by_angle = self._slopes(
            state.phi, state.s, state.a
        )
        by_speed, by_angle = response @ by_speed, response @ by_angle
        far, turn = self.reading.place, self.reading.heading
        total, way, rate = (np.zeros((2, inertia.shape[-1])) for _ in range(3))
        for o, rows in enumerate(OUTPUTS):
            kp, kd = self._gains[o]
            flat = slice(rows.start, rows.start + 2)
            ydot = np.array(state.ydot[flat], object)
            # A turn about the origin of the base.
            lever = self._lead if o == 0 else place[:2, 0] + self._lead
            turning = np.array(state.nu[flat], object) + ydot * kd + lever * kp
            total[o] += kp * far + turn * norm_bound(turning)
            way[o] += far + turn * (np.hypot(*self._lead) if o == 0 else norm_bound(lever))
            rate[o] += turn * norm_bound(ydot)
            for i, error in enumerate(self.speeds):
                if error:
                    own = by_speed[rows, i] - drift[rows, i] - speed[rows, i] * kd
                    total[o] += error * norm_bound(own)
                    rate[o] += error * norm_bound(speed[rows, i])
            for j, error in enumerate(self.angles):
                if error:
                    own = by_angle[rows, j] - demand[rows, j] - turned[rows, j] * kd
                    if o == 1:
                        own = own - arm[:, j] * kp
                        way[o] += error * norm_bound(arm[:, j])
                    total[o] += error * norm_bound(own)
                    rate[o] += error * norm_bound(turned[rows, j])
        torque = np.einsum("iob,ob->ib", inertia, total)
        total = total + np.einsum("jcib,j,ib->cb", slopes, np.array(self.angles), torque)
        found = {"read": total, "read_torque": torque, "moved": np.vstack([way, rate])}
        return {name: values * (1 + 1e-12) for name, values in found.items()}
