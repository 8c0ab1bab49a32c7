"""Torque that a law needs over a tube of errors, at given configurations.

A robot at configuration q with errors x, ve from a reference of twist xi and acceleration a
moves its outputs with V = ve + Ad xi. The law commands nu = I^-1 (B^T KP x - KD ve) + Ad a -
ad_V Ad xi, with Ad and B at x. Given q, V and nu, the torque is that of the deployed law, evaluated
with the reference at the robot's own state so that its command is nu alone.

The largest torque over the tube is searched by ascent from the worst direction of the linearised
law, and among random errors: an estimate, not a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.control import Servo
from concur.robot import solve_positive_definite

STEPS = 4
"""Steps of an ascent; from zero error the first is exact for a law linear in the error."""

_CLIMBS = 1
"""Random starts of the ascent, for each control input and configuration."""


@dataclass(frozen=True, eq=False)
class Region:
    """Errors |x / reach|^2 + |ve / speed|^2 <= 1 in each channel, with its gains.

    Parameters
    ----------
    stiffness, damping : numpy.ndarray
        Diagonals of I^-1 KP and I^-1 KD, shape (n,), 1/s^2 and 1/s.
    metric : numpy.ndarray
        Diagonal of I, shape (n,).
    reach, speed : numpy.ndarray
        Semi-axes of x and ve, shape (n,).
    channels : tuple of numpy.ndarray
        Indices of the channels' components.
    """

    stiffness: np.ndarray
    damping: np.ndarray
    metric: np.ndarray
    reach: np.ndarray
    speed: np.ndarray
    channels: tuple[np.ndarray, ...]

    def normalised(self, x: np.ndarray, ve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scale errors by their semi-axes, (n, k), not all zero, to the edge of every channel."""
        x, ve = x.copy(), ve.copy()
        for own in self.channels:
            length = np.sqrt((x[own] ** 2).sum(0) + (ve[own] ** 2).sum(0))
            length[length == 0.0] = 1.0
            x[own], ve[own] = x[own] / length, ve[own] / length
        return x * self.reach[:, None], ve * self.speed[:, None]


@dataclass(frozen=True, eq=False)
class Extremes:
    """Extreme torques found by the search.

    Parameters
    ----------
    lower, upper : numpy.ndarray
        Least and largest torque of each control input, shape (nu,), N and N m.
    where : numpy.ndarray
        Configuration at which each control input exceeds its limits most, shape (nu,).
    states : int
        Number of errors evaluated, over all configurations.
    """

    lower: np.ndarray
    upper: np.ndarray
    where: np.ndarray
    states: int

    def within(self, limits: np.ndarray) -> bool:
        """Whether the torques are within limits, shape (nu, 2); False if one is not finite."""
        return bool(((self.lower >= limits[:, 0]) & (self.upper <= limits[:, 1])).all())


class Effort:
    """Torques of a servo over tubes, at fixed configurations and references.

    Parameters
    ----------
    servo : Servo
        Servo with shape velocities and without torque limits; its gains do not matter.
    configurations : numpy.ndarray
        Shape (k, nq).
    twist, acceleration : numpy.ndarray
        Reference at each configuration, in its own frame, shape (k, n).
    limits : numpy.ndarray
        Limits of the control inputs, shape (nu, 2).
    """

    def __init__(
        self,
        servo: Servo,
        configurations: np.ndarray,
        twist: np.ndarray,
        acceleration: np.ndarray,
        limits: np.ndarray,
    ) -> None:
        self.servo, self.limits = servo, limits
        self._given = [a.T for a in (configurations, twist, acceleration)]
        self._law, self._slope = _functions(servo)
        sides = np.isfinite(limits)
        signs = [np.eye(servo.nu)[:, i] * s for s, side in ((-1, 0), (1, 1))
                 for i in np.flatnonzero(sides[:, side])]  # fmt: skip
        self._weights = np.array(signs).T

    @property
    def count(self) -> int:
        """Number of configurations."""
        return int(self._given[0].shape[1])

    def at_rest(self) -> np.ndarray:
        """Torques at zero error, shape (nu, k)."""
        none = np.zeros((self.servo.size, self.count))
        return self._torques(self._given, none, none, np.ones((3, self.servo.size)))

    def extremes(
        self, region: Region, random: int = 32, steps: int = STEPS, seed: int = 0
    ) -> Extremes:
        """Search a tube for the largest torques, from `random` errors, at least 2, for each q."""
        gains = np.array([region.stiffness, region.damping, region.metric])
        shape = (random, self.servo.size, self.count)
        rng = np.random.default_rng(seed)
        x, ve = rng.normal(size=shape), rng.normal(size=shape)
        for k in range(random):
            x[k], ve[k] = region.normalised(x[k], ve[k])
            inside = rng.uniform(size=self.count) ** (k % 2)
            x[k], ve[k] = inside * x[k], inside * ve[k]
        u = np.array(
            [self._torques(self._given, *start, gains) for start in zip(x, ve, strict=True)]
        )
        # Ascents start at zero error, and at the random errors with the largest torque.
        signed = np.einsum("rik,iw->rwk", np.nan_to_num(u), self._weights)
        order = np.argsort(-signed, axis=0)[:_CLIMBS]
        every = np.arange(self.count)
        starts = [
            [np.hstack([part[own, :, every].T for own in first]) for part in (x, ve)]
            for first in order
        ]
        starts.append([np.zeros_like(part) for part in starts[0]])
        met = [self.at_rest(), *u]
        for start in starts:
            met += self._climb(region, gains, steps, *start)
        torques = np.nan_to_num(np.array(met), nan=np.inf)
        lower, upper = torques.min(axis=0), torques.max(axis=0)
        strain = np.fmax(upper - self.limits[:, 1:], self.limits[:, :1] - lower)
        climbs = len(starts) * (steps + 1) * self._weights.shape[1]
        states = self.count * (1 + random + climbs)
        return Extremes(lower.min(axis=1), upper.max(axis=1), strain.argmax(axis=1), states)

    def _climb(
        self, region: Region, gains: np.ndarray, steps: int, x: np.ndarray, ve: np.ndarray
    ) -> list[np.ndarray]:
        """Torques on the way to the worst error of each control input and configuration."""
        directions = self._weights.shape[1]
        given = [np.tile(a, directions) for a in self._given]
        weights = np.repeat(self._weights, self.count, axis=1)
        met = []
        for k in range(steps + 1):
            results = self._slope(*given, x, ve, *gains, weights)
            u, gx, gv = (np.asarray(part) for part in results)
            met += np.split(u, directions, axis=1)
            # Shrinking steps towards the worst error of the linearised law (Frank and Wolfe): the
            # worst error may lie inside. A nonfinite slope ends the ascent; the torque reports it.
            steep = region.normalised(
                np.nan_to_num(gx) * region.reach[:, None],
                np.nan_to_num(gv) * region.speed[:, None],
            )
            step = 2.0 / (k + 2.0)
            x, ve = x + step * (steep[0] - x), ve + step * (steep[1] - ve)
        return met

    def _torques(
        self, given: list[np.ndarray], x: np.ndarray, ve: np.ndarray, gains: np.ndarray
    ) -> np.ndarray:
        return np.asarray(self._law(*given, x, ve, *gains))


def _functions(servo: Servo) -> tuple[ca.Function, ca.Function]:
    """Torque, and its slope by the errors, as functions of the state and the gains."""
    n, model, group = servo.size, servo.model, servo.error_dynamics.group
    q, weight = ca.SX.sym("q", servo.nq), ca.SX.sym("weight", servo.nu)
    names = ("twist", "acceleration", "x", "ve", "kp", "kd", "metric")
    twist, acceleration, x, ve, kp, kd, metric = (ca.SX.sym(name, n) for name in names)
    transport = group.transport(x)
    carried = transport @ twist
    velocity = ve + carried
    pull = group.error_map(x).T @ (kp * metric * x) / metric - kd * ve
    command = pull + transport @ acceleration - group.ad(velocity) @ carried
    jacobian = servo.decoupling(q)
    still = servo.motion(q, servo.velocity(q, ca.SX.zeros(servo.ns)))[0]
    if servo.ns == n:
        s = ca.solve(jacobian, velocity - still)
    else:
        # The motion of least kinetic energy that moves the outputs as given.
        spread = solve_positive_definite(model.mass_matrix(q), jacobian.T)
        s = spread @ solve_positive_definite(jacobian @ spread, velocity - still)
    # The reference has the robot's state, so its acceleration is the whole command.
    u = servo.law(q, s, servo.output(q), servo.motion(q, servo.velocity(q, s))[0], command)[0]
    slope = ca.jacobian(ca.dot(weight, u), ca.vertcat(x, ve)).T
    inputs = [q, twist, acceleration, x, ve, kp, kd, metric]
    options = {"cse": True}
    law = ca.Function("torque", inputs, [ca.densify(u)], options)
    outputs = [ca.densify(part) for part in (u, slope[:n], slope[n:])]
    return law, ca.Function("slope", [*inputs, weight], outputs, options)
