"""Estimate whether the torques stay within limits while the error is in its tubes.

The law is u = G (nu - b) + (H^T B)^-1 chat with G = (H^T B)^-1 Mhat Jg^-1, and nu is the command
of the reference plus the feedback. Where |z_j|_P <= c_j in each channel j, the
magnitude of control input i is at most

    |u_ff,i| + sum_j |G_ij| kappa_j c_j + sum_k |G_ik| dbar_k + sum_j c_j |L_ij P_j^-1/2|,

with u_ff the law at z = 0, kappa from the certificate, and L the derivative of the law without
feedback by the error that displaces the robot: along the lift by the motion that moves the outputs
by -x, and to the velocity that yields ve. The last sum is of first order in the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.certify._disturbance import Disturbance
from concur.certify._disturbances import check_square, check_unmeasured, rows
from concur.certify._status import ESTIMATE, Status
from concur.certify._tube import Tube
from concur.codegen import as_floats, shape_error
from concur.control import Servo, read_limits
from concur.errors import OutputError


@dataclass(frozen=True, eq=False)
class Saturation:
    """Torques of the control inputs in the tubes, compared with their limits.

    Parameters
    ----------
    needed : numpy.ndarray
        Largest torque of each control input over the given states, shape (nu,), N and N m.
    ahead, feedback, displaced : numpy.ndarray
        Its parts at that state: the law at zero error; feedback and disturbance; the change of
        the law with the state. Shape (nu,).
    room : numpy.ndarray
        Smallest distance to a limit, shape (nu,); negative where a limit may be reached, infinite
        without a limit.
    names, units : tuple of str
        Names and units of the control inputs.
    states : int
        Number of states evaluated.
    """

    needed: np.ndarray
    ahead: np.ndarray
    feedback: np.ndarray
    displaced: np.ndarray
    room: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]
    states: int

    @property
    def free(self) -> bool:
        """Whether no limit is reached, by this estimate."""
        return bool((self.room > 0.0).all())

    @property
    def status(self) -> Status:
        """UNDECIDED: the states are samples, and the change of the law is of first order."""
        return Status.UNDECIDED

    def __str__(self) -> str:
        lines = [
            f"{self.status.name}: limits are {'not ' if self.free else ''}reached in the tubes, "
            f"to first order at {self.states} states: {ESTIMATE}"
        ]
        lines += [
            f"{name}: {need:.4g} {unit} = {ahead:.4g} ahead + {back:.4g} feedback + "
            f"{moved:.4g} displaced, room {room:.4g} {unit}"
            for name, unit, need, ahead, back, moved, room in zip(
                self.names,
                self.units,
                self.needed,
                self.ahead,
                self.feedback,
                self.displaced,
                self.room,
                strict=True,
            )
        ]
        return "\n".join(lines)


def saturation(
    servo: Servo,
    tubes: Sequence[Tube],
    q: ArrayLike,
    s: ArrayLike,
    commands: ArrayLike,
    limits: object = None,
    disturbance: Disturbance | None = None,
) -> Saturation:
    """Bound the torques that a law needs while its errors are in their tubes; deprecated.

    States on the reference are q, s and commands; limits default to those of the servo.
    """
    where = f"torques of `{servo.name}`"
    check_square(servo, where)
    _check(servo, tubes, where)
    given = servo.torque_limits if limits is None else limits
    if given is None:
        raise OutputError(
            f"{where}, `limits`",
            expected="limits of the control inputs",
            came="no value, and a servo without limits",
            cure="Give a number, one per control input, or pairs.",
        )
    bounds = np.asarray(read_limits(f"{where}, `limits`", given, servo.model.control_names))
    size = servo.size
    extra = np.zeros(size) if disturbance is None else disturbance.components
    if extra.shape != (size,):
        raise shape_error(f"{where}, `disturbance`", (size,), extra.shape)
    configurations = rows(servo, q, servo.nq, "q")
    count = len(configurations)
    speeds = rows(servo, s, servo.ns, "s", count)
    ahead = rows(servo, as_floats(commands, f"{where}, `commands`"), size, "commands", count)
    law = _slopes(servo)
    parts = []
    for state in zip(configurations, speeds, ahead, strict=True):
        u, spread, change = (np.asarray(value) for value in law(*state))
        push = np.abs(spread) @ extra
        moved = np.zeros(servo.nu)
        for tube in tubes:
            index = tube.channel.index
            own = spread[:, index] / tube.channel.scales
            push += np.linalg.norm(own, axis=1) * tube.decay.feedback_gain * tube.radius
            root = np.linalg.inv(np.linalg.cholesky(tube.decay.P)).T
            both = np.hstack([change[:, index], change[:, size + index]]) @ root
            moved += np.linalg.norm(both, axis=1) * tube.radius
        parts.append((u.ravel(), push, moved))
    u, push, moved = (np.array(part) for part in zip(*parts, strict=True))
    swing = push + moved
    room = np.minimum(bounds[:, 1] - u - swing, u - swing - bounds[:, 0]).min(axis=0)
    worst, every = (np.abs(u) + swing).argmax(axis=0), np.arange(servo.nu)
    return Saturation(
        needed=(np.abs(u) + swing)[worst, every],
        ahead=np.abs(u)[worst, every],
        feedback=push[worst, every],
        displaced=moved[worst, every],
        room=room,
        names=servo.model.control_names,
        units=servo.model.control_units,
        states=count,
    )


class _Law:
    """The law without feedback, with its derivatives by the command and by the error."""

    def __init__(self, function: ca.Function) -> None:
        self._function = function

    def __call__(self, *state: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(value.full()) for value in self._function(*state)]


def _slopes(servo: Servo) -> _Law:
    model, group = servo.model, servo.error_dynamics.group
    q, s = ca.SX.sym("q", servo.nq), ca.SX.sym("s", servo.ns)
    nu, x, ve = (ca.SX.sym(name, servo.size) for name in ("nu", "x", "ve"))
    jacobian = servo.decoupling(q)
    velocity, drift = servo.output_motion(q, s)
    sdot = ca.solve(jacobian, nu - drift)
    u = ca.solve(model.input_matrix(q), model.inverse_dynamics(q, s, sdot))
    # The error displaces the outputs by -x; transform the reference twist to that frame.
    along = ca.solve(jacobian, -x)
    qdot = model.robot.rate(q, model.lift(q)[0] @ along)
    velocity_change = ve - group.ad(velocity) @ x - ca.jtimes(velocity, q, qdot)
    spread = ca.jacobian(u, nu)
    change = ca.jtimes(u, q, qdot) + ca.jacobian(u, s) @ ca.solve(jacobian, velocity_change)
    # Transform the command of the reference, Ad gammaddot - ad Ad gammadot, as well.
    change += spread @ (group.ad(velocity) @ ve - group.ad(nu) @ x)
    slopes = ca.jacobian(change, ca.vertcat(x, ve))
    outputs = [ca.densify(value) for value in (u, spread, slopes)]
    return _Law(ca.Function("slopes", [q, s, nu], outputs, {"cse": True}))


def _check(servo: Servo, tubes: Sequence[Tube], where: str) -> None:
    check_unmeasured(servo, where)
    index = np.concatenate([np.zeros(0, dtype=int), *(t.channel.index for t in tubes)])
    if not np.array_equal(np.sort(index), np.arange(servo.size)):
        raise shape_error(f"{where}, tubes", (servo.size,), index.shape)
    if not all(np.isfinite(tube.radius) for tube in tubes):
        raise OutputError(
            f"{where}, tubes",
            expected="tubes of finite radius",
            came="an unbounded tube",
            cure="Reduce the disturbance.",
        )
