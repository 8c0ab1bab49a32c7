"""Ratios between motors and joints: what the motors measure, and where their torques act.

The position of a motor is the sum of those of its joints times their ratios, ``theta = R q``, its
speed ``R v``; by the same power its torque u acts on the joints as ``R^T u``. Joints follow from
motors by least squares, ``q = R^+ theta``. A joint that follows another counts as the other one
times its multiplier, without its offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil._concur import Mechanism, Refusal, VectorJoint, joint_places

if TYPE_CHECKING:
    from hil._machine import Machine

WEAKEST = 1e-9
"""Smallest singular value of the ratios, of rows and columns of unit length."""


@dataclass(frozen=True, eq=False)
class Transmission:
    """Motors in the order of the robot's controls, and the joints that they move.

    Parameters
    ----------
    motors, joints : tuple of str
        Names of the n motors, and of the k joints.
    ratios : numpy.ndarray
        Turns of each motor per turn of each joint, shape (n, k), full column rank.
    inverse : numpy.ndarray
        Positions of joints by those of motors, shape (k, n).
    q, v : tuple of int
        Index of each joint in configurations and velocities of the robot.
    limits : numpy.ndarray
        Range of each joint, shape (k, 2), rad or m; infinite without one.
    """

    motors: tuple[str, ...]
    joints: tuple[str, ...]
    ratios: NDArray[np.float64]
    inverse: NDArray[np.float64]
    q: tuple[int, ...]
    v: tuple[int, ...]
    limits: NDArray[np.float64]

    @cached_property
    def terms(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Joint and ratio of each term in the sums of the motors, shapes (terms, n)."""
        rows = [np.flatnonzero(row) for row in self.ratios]
        count = max(map(len, rows))
        index = np.array([np.resize(row, count) for row in rows]).T
        factors = np.take_along_axis(self.ratios, index.T, axis=1).T.copy()
        for k, row in enumerate(rows):
            factors[len(row) :, k] = 0.0
        return index, factors

    def of_joints(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions or velocities of the motors, shape (..., n), by those of the joints.

        Products are rounded and added in the order of the joints: the same numbers in C.
        """
        index, factors = self.terms
        total = values[..., index[0]] * factors[0]
        for at, factor in zip(index[1:], factors[1:], strict=True):
            total = total + values[..., at] * factor
        return np.asarray(total)

    def of_configuration(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions of the motors, shape (..., n), at configurations (..., nq)."""
        return self.of_joints(q[..., list(self.q)])

    def spans(self) -> NDArray[np.float64]:
        """Range of each motor within those of its joints, shape (n, 2)."""
        ratios = self.ratios[:, :, None]
        with np.errstate(invalid="ignore"):  # zero times infinity
            ends = np.where(ratios == 0.0, 0.0, ratios * self.limits)
        return np.asarray(np.sort(ends, axis=2).sum(axis=1))


def transmission_of(robot: Machine, path: str) -> Transmission:
    """Find the joints that the motors of a robot move; reject motors that no drive can carry."""
    refuse = Refusal(path, "")
    names, columns = robot.freedom_names, _columns(robot, refuse)
    joints_of = {place.name: place for place in joint_places(robot)}
    mimics = getattr(robot, "mimics", ())
    leaders = {joints_of[mimic.body].label: mimic for mimic in mimics}
    limits = dict(zip(names, np.full((robot.nv, 2), (-np.inf, np.inf)), strict=True))
    places: dict[str, tuple[int, int]] = {}
    for place in joints_of.values():
        if isinstance(place.joint, VectorJoint):
            for k in range(place.joint.nv):
                at = place.rows.start + k
                places[names[at]] = place.entries.start + k, at

    def leader(name: str) -> tuple[str, float, float]:
        """Joint that a joint follows, multiplier and offset."""
        factor, offset = 1.0, 0.0
        while name in leaders:
            mimic = leaders[name]
            factor, offset = factor * mimic.multiplier, offset + factor * mimic.offset
            name = joints_of[mimic.of].label
        return name, factor, offset

    rows: list[dict[str, float]] = []
    for motor, column in zip(robot.control_names, columns, strict=True):
        row: dict[str, float] = {}
        for name, ratio in column.items():
            if name not in places:
                label = name.split("[")[0]
                kinds = [type(p.joint).__name__ for p in joints_of.values() if p.label == label]
                refuse(
                    "task",
                    "motors of joints whose positions are sums of angles or lengths",
                    f"`{motor}` on `{name}`, of a joint of type {(*kinds, 'S2')[0]}",
                    f"Model `{label}` as a chain of joints with one freedom each, "
                    "with bodies without mass in between."
                    if isinstance(robot, Mechanism)
                    else "Write the system in the coordinates that the motors measure: see "
                    "`in_coordinates` of a LagrangianSystem.",
                )
            first, factor, _ = leader(name)
            row[first] = row.get(first, 0.0) + factor * ratio
        rows.append(row)
    for name, (q, _) in places.items():
        first, factor, offset = leader(name)
        ends = (robot.limits[q] - offset) / factor if factor else limits[first]
        low, high = limits[first]
        limits[first] = np.array([max(low, ends.min()), min(high, ends.max())])
    joints = tuple(name for name in names if any(name in row for row in rows))
    ratios = np.array([[row.get(name, 0.0) for name in joints] for row in rows])
    ratios = ratios.reshape(len(rows), len(joints))
    _refuse_unmeasured(ratios, joints, refuse)
    square = len(rows) == len(joints)
    inverse = np.linalg.inv(ratios) if square else np.linalg.pinv(ratios)
    return Transmission(
        tuple(robot.control_names),
        joints,
        ratios,
        inverse,
        tuple(places[name][0] for name in joints),
        tuple(places[name][1] for name in joints),
        np.array([limits[name] for name in joints]).reshape(-1, 2),
    )


def _columns(robot: Machine, refuse: Refusal) -> list[dict[str, float]]:
    """Ratios of each control by velocity; reject controls that turn no shaft."""
    motors = {motor.name: motor for motor in robot.motors}
    thrusters = [motor.name for motor in robot.motors if motor.body is not None]
    if thrusters:
        refuse(
            "task",
            "a robot whose motors move joints",
            f"the thruster `{thrusters[0]}`",
            "A drive of a rig measures and turns a shaft, and thrust changes the momentum from "
            "which the base follows. Simulate this robot, or export its tick.",
        )
    found = [motors[n].ratios if n in motors else {n: 1.0} for n in robot.control_names]
    if isinstance(robot, Mechanism):
        return found
    # An input of a system may be any expression; its name does not show it.
    acting = np.asarray(robot.actuation(robot.random(np.random.default_rng(0))))
    for name, row, column in zip(robot.control_names, found, acting.T, strict=True):
        if not np.allclose(column, [row.get(n, 0.0) for n in robot.freedom_names], atol=1e-12):
            refuse(
                "task",
                "inputs along velocities: names of these, or motors with ratios",
                f"the input `{name}`, an expression",
                "Write the system in the coordinates that the motors measure: see "
                "`in_coordinates` of a LagrangianSystem.",
            )
    return found


def _refuse_unmeasured(
    ratios: NDArray[np.float64], joints: tuple[str, ...], refuse: Refusal
) -> None:
    """Reject joints whose motions some motors do not see."""
    scaled = ratios / np.maximum(np.abs(ratios).max(axis=1, keepdims=True, initial=0.0), 1e-300)
    scaled /= np.maximum(np.linalg.norm(scaled, axis=0), 1e-300)
    _, sizes, turned = np.linalg.svd(scaled)
    blind = turned[int((sizes > WEAKEST).sum()) :]
    unseen = [
        name
        for name, part in zip(joints, blind.T, strict=True)
        if np.abs(part).max(initial=0.0) > WEAKEST
    ]
    if unseen:
        refuse(
            "task",
            "motors whose positions determine those of their joints",
            f"{len(ratios)} motors for {len(joints)} joints; "
            f"{', '.join(f'`{name}`' for name in unseen)} can move while all motors stand still",
            "Add a motor, couple the joints by `mimics`, or correct the ratios.",
        )
