"""The robot of a rig: a tree of bodies, or any other system whose controls are motors.

Beside the members of a `System` these are the motors with their limits, the range of each
coordinate, and, for a source of poses, a base: the first body of a tree, or the first factor of a
system without bodies if that is a group of rotations or poses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hil._concur import Array, Mechanism, System, joint_places

if TYPE_CHECKING:
    from hil._concur import Joint, Motor


class Machine(System, Protocol):
    """A system whose controls are motors with limits."""

    @property
    def control_names(self) -> Sequence[str]:
        """Name of each control, (nu,)."""

    @property
    def control_units(self) -> Sequence[str]:
        """Unit of each control, N or N m, (nu,)."""

    @property
    def control_limits(self) -> NDArray[np.float64]:
        """Largest force or torque of each control, (nu,), N and N m; infinite without one."""

    @property
    def speed_limits(self) -> NDArray[np.float64]:
        """Largest speed of each velocity, (nv,), m/s and rad/s; infinite without one."""

    @property
    def limits(self) -> NDArray[np.float64]:
        """Range of each coordinate, (nq, 2), m and rad; infinite without one."""

    @property
    def motors(self) -> Sequence[Motor]:
        """Numbers of those controls that are motors, each with the name of its control."""

    def actuation(self, q: ArrayLike) -> Array:
        """Actuation matrix B: controls to forces along the velocities, (nv, nu)."""


@dataclass(frozen=True)
class Base:
    """The frame that a source of poses measures.

    Parameters
    ----------
    name : str
        Name of the body or factor.
    joint : Joint
        Its joint, whose coordinates are the first of a configuration.
    motions : numpy.ndarray
        Twists of the frame by the velocities of the joint, shape (6, k).
    pose : callable
        From a configuration to the rotation (3, 3) and the position (3,), m.
    """

    name: str
    joint: Joint
    motions: NDArray[np.float64]
    pose: Callable[[Array], tuple[Array, Array]]


def base_of(system: Any) -> Base | None:
    """Find the base of a system; None if it has none."""
    if isinstance(system, Mechanism):
        base = system.base
        motions = system.jacobian(system.neutral(), base.name)[:, : base.joint.nv]

        def placed(q: Array) -> tuple[Array, Array]:
            pose = system.pose(q, base.name)
            return pose[:3, :3], pose[:3, 3]

        return Base(base.name, base.joint, motions, placed)
    place = next(iter(joint_places(system)), None)
    if place is None or place.entries.start or place.joint.nv < 3:
        return None
    joint, count = place.joint, place.joint.nq
    return Base(place.name, joint, np.asarray(joint.basis), lambda q: joint.pose(q[:count]))


def coupled(system: Any, q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Configuration in which joints that follow others do so."""
    return np.asarray(system.coupled(q) if isinstance(system, Mechanism) else q)
