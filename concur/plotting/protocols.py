"""Protocols of robot, servo and run: the attributes that the figures need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class InertiaLike(Protocol):
    """Mass (kg) and centre of mass (3,) (m, body frame) of a body."""

    @property
    def mass(self) -> float: ...
    @property
    def com(self) -> Any: ...


class RobotLike(Protocol):
    """A tree of bodies with their poses."""

    @property
    def name(self) -> str: ...
    @property
    def bodies(self) -> Sequence[Any]: ...
    @property
    def wheels(self) -> Sequence[Any]: ...
    @property
    def ground_height(self) -> float | None: ...
    def pose(self, q: Any, body: str) -> Any:
        """Return the pose (4, 4) of the body in the world."""

    def wheel_axis(self, wheel: Any) -> Any:
        """Return the unit axis (3,) of the wheel in the frame of its body."""


class OutputLike(Protocol):
    """A controlled output: a body, a group and a point (3,) (m, body frame)."""

    @property
    def name(self) -> str: ...
    @property
    def body(self) -> str: ...
    @property
    def group(self) -> Any: ...
    @property
    def point(self) -> Any: ...
    @property
    def dim(self) -> int: ...
    @property
    def coordinate_names(self) -> Sequence[str]: ...
    @property
    def coordinate_units(self) -> Sequence[str]: ...


class RunLike(Protocol):
    """A finished run: arrays over time with the instants along the first axis."""

    @property
    def t(self) -> Floats: ...
    @property
    def q(self) -> Floats: ...
    @property
    def v(self) -> Floats: ...
    @property
    def u(self) -> Floats: ...
    @property
    def s(self) -> Floats: ...
    @property
    def q_range(self) -> Floats: ...
    @property
    def v_range(self) -> Floats: ...
    @property
    def joint_limits(self) -> Any: ...
    @property
    def error(self) -> Floats: ...
    @property
    def velocity_error(self) -> Floats: ...
    @property
    def ideal(self) -> Floats: ...
    @property
    def deviation(self) -> Floats: ...
    @property
    def lyapunov(self) -> Floats: ...
    @property
    def margin(self) -> Floats: ...
    @property
    def acceleration_residual(self) -> Floats: ...
    @property
    def scale(self) -> Floats: ...
    @property
    def constraint_residual(self) -> Floats: ...
    @property
    def floats(self) -> bool: ...
    @property
    def momentum_drift(self) -> Floats: ...
    @property
    def energy(self) -> Floats: ...
    @property
    def work(self) -> Floats: ...
    @property
    def pose(self) -> Floats: ...
    @property
    def reference(self) -> Floats: ...

    @property
    def robot(self) -> RobotLike: ...
    @property
    def servo(self) -> Any: ...
    @property
    def control_units(self) -> Sequence[str]: ...


class AuditRowLike(Protocol):
    """One assumption: name, statement, status, and evidence."""

    @property
    def id(self) -> str: ...
    @property
    def statement(self) -> str: ...
    @property
    def status(self) -> Any: ...
    @property
    def why(self) -> str: ...


AuditLike = Iterable[AuditRowLike]


def on_bodies(outputs: Iterable[Any]) -> tuple[Any, ...]:
    """Select the outputs on bodies; one that is a function has no place on the robot.

    Parameters
    ----------
    outputs : iterable of OutputLike
        Outputs.

    Returns
    -------
    tuple of OutputLike
        Those on bodies.
    """
    return tuple(output for output in outputs if not getattr(output, "is_function", False))
