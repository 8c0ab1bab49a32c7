"""The momentum a law assumes against the one a robot has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import as_floats, nonfinite_error, shape_error
from concur.control._core import LawCore
from concur.errors import ReductionError

ROUNDING = 1e-12
"""Share of the momenta of single freedoms up to which a momentum is rounding."""

_PARTS = (slice(0, 3), slice(3, 6))


@dataclass(frozen=True, eq=False)
class MomentumMismatch:
    """Difference between the assumed and the measured momentum, and what it does.

    Parameters
    ----------
    assumed, measured : numpy.ndarray
        Spatial momenta about the inertial origin, [linear; angular], shape (6,), kg m/s and
        kg m^2/s: of the velocity that the law reconstructs, and of the measured one, both with
        the inertias of the model. Components without effect on the base's group are in both.
    sizes : numpy.ndarray
        Sizes of the linear and of the angular momentum that single freedoms have, added without
        their directions, shape (2,): what rounding is held against where momenta cancel.
    base_velocity : numpy.ndarray
        Error of the base's velocity that the law reconstructs, in the basis of the base's joint,
        shape (nb,).
    output_velocity : numpy.ndarray
        Error of the output velocity that the law sees, shape (size,).
    disturbance : numpy.ndarray
        Output acceleration by which the closed loop differs from the ideal one while the
        reference rests, shape (size,); NaN for a law without gains.
    offset : numpy.ndarray
        Pose error x at which this disturbance, if it stayed, would balance the stiffness: a
        first estimate of the tracking error, shape (size,), m and rad.
    coordinate_names : tuple of str
        Names of the outputs' coordinates.
    coordinate_units : tuple of str
        Their units.
    used : bool
        Whether the law uses the assumed momentum; one that measures its velocities does not.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.free_flyer()
    >>> model = cc.reduce(robot, momentum=[0, 0, 0, 0.5, 0.2, 0.1])
    >>> servo = cc.Servo(model, [cc.Output("hand", "tool", "SE3")], 4, 4)
    >>> q = [0, 0, 0, 0, 0, 0, 1, 0.5, -1.5, 2.1, 0.2, -0.4, 0.8]
    >>> mismatch = servo.mismatch(q, [0] * 12)
    >>> mismatch.measured.shape
    (6,)
    """

    assumed: np.ndarray
    measured: np.ndarray
    sizes: np.ndarray
    base_velocity: np.ndarray
    output_velocity: np.ndarray
    disturbance: np.ndarray
    offset: np.ndarray
    coordinate_names: tuple[str, ...]
    coordinate_units: tuple[str, ...]
    used: bool

    @property
    def difference(self) -> np.ndarray:
        """Measured minus assumed momentum, shape (6,)."""
        return np.asarray(self.measured - self.assumed)

    @property
    def relative(self) -> float:
        """Largest of the linear and the angular difference, each relative to its size.

        Zero for a difference that is rounding beside `sizes`.
        """
        worst = 0.0
        for part, scale in zip(_PARTS, self.sizes, strict=True):
            size = max(float(np.linalg.norm(x[part])) for x in (self.assumed, self.measured))
            wrong = float(np.linalg.norm(self.difference[part]))
            if wrong > ROUNDING * scale:
                worst = max(worst, wrong / size)
        return worst

    def __str__(self) -> str:
        linear, angular = self.sizes
        lines = [
            f"{name:<9} linear {_numbers(mu[:3], linear)} kg m/s, "
            f"angular {_numbers(mu[3:], angular)} kg m^2/s"
            for name, mu in (
                ("assumed", self.assumed),
                ("measured", self.measured),
                ("wrong by", self.difference),
            )
        ]
        lines.append(f"base velocity wrong by {_numbers(self.base_velocity)}")
        rows = zip(
            self.coordinate_names,
            self.coordinate_units,
            self.output_velocity,
            self.disturbance,
            self.offset,
            strict=True,
        )
        lines += [
            f"{name}: velocity wrong by {rate:.3g} {unit}/s, disturbance {push:.3g} {unit}/s^2, "
            f"offset about {off:.3g} {unit}"
            for name, unit, rate, push, off in rows
        ]
        if not self.used:
            lines.append("the law measures its velocities: none of this enters it")
        return "\n".join(lines)


def mismatch(self: LawCore, q: ArrayLike, v: ArrayLike) -> MomentumMismatch:
    """Compare the momentum that the law assumes with that of a measured state.

    Parameters
    ----------
    q, v : array_like
        Measured configuration and velocity, the base's included, shapes (nq,) and (nv,).

    Returns
    -------
    MomentumMismatch
        Both momenta, and what their difference does to the law.

    Raises
    ------
    ReductionError
        If the robot's reduction does not rest on a momentum.
    """
    model, robot = self.model, self.model.robot
    if not model.takes_momentum:
        raise ReductionError(
            f"self of `{self.name}`, `mismatch`",
            expected="a floating robot, reduced by its momentum",
            came=f"{model.kind} reduction",
            cure="Wheels and a fixed base leave no momentum to be wrong about.",
        )
    where = f"self of `{self.name}`, `mismatch`"
    q = robot.check_configuration(q, f"{where}, `q`")
    v = as_floats(v, f"{where}, `v`")
    if v.shape != (robot.nv,):
        raise shape_error(f"{where}, `v`", (robot.nv,), v.shape)
    if not np.isfinite(v).all():
        raise nonfinite_error(f"{where}, `v`", v)
    lifted = model.velocity(q, v[list(model.shape)])
    # The law uses the lifted velocity; the robot moves with the measured one.
    wrong = lifted - v
    pairs = zip(self.motion(q, lifted), self.motion(q, v), strict=True)
    rate, drift = (np.asarray(seen - true) for seen, true in pairs)
    # Torques for the bias at the lifted velocity move the shape when the bias is another.
    still = np.zeros(model.ns)
    force = model.shape_forces(q, lifted, still) - model.shape_forces(q, v, still)
    moved = self.decoupling(q) @ np.linalg.solve(model.mass_matrix(q), force)
    push, offset = np.full((2, self.size), np.nan)  # without gains there is no error dynamics
    if self.stiffness.any():
        push = moved - drift - np.linalg.solve(self.inertia, self.damping @ rate)
        # Where it balances the stiffness, I^-1 KP x + push = 0.
        offset = -np.linalg.solve(self.stiffness, self.inertia @ push)
    return MomentumMismatch(
        assumed=robot.momentum(q, lifted),
        measured=robot.momentum(q, v),
        sizes=np.sum(
            [_sizes(robot.momentum(q, part)) for x in (v, lifted) for part in np.diag(x)], axis=0
        ),
        base_velocity=wrong[list(model.first.dependent)],
        output_velocity=rate,
        disturbance=push,
        offset=offset,
        coordinate_names=tuple(
            f"{output.name}.{name}" for output in self.outputs for name in output.coordinate_names
        ),
        coordinate_units=tuple(unit for output in self.outputs for unit in output.coordinate_units),
        used=not self.use_measured_velocity,
    )


def _sizes(momentum: np.ndarray) -> np.ndarray:
    """Sizes of the linear and of the angular part of a momentum."""
    return np.array([np.linalg.norm(momentum[part]) for part in _PARTS])


def _numbers(values: np.ndarray, size: float = 0.0) -> str:
    """Numbers in brackets; what is rounding beside a size is shown as zero."""
    shown = np.where(np.abs(values) > ROUNDING * size, values, 0.0)
    return "(" + ", ".join(f"{x:.4g}" for x in shown) + ")"
