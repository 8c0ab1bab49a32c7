"""A task as proofs see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from concur._polynomials import Floats
from concur.control import Servo
from concur.outputs.references import Reference
from concur.proofs._statement import Statement
from concur.robot import Mechanism


class Provable(Protocol):
    """Attributes of a task that proofs and their samples read; see `concur.io.Task`."""

    @property
    def path(self) -> Any: ...
    @property
    def servo(self) -> Servo: ...
    @property
    def reference(self) -> Reference: ...
    @property
    def duration(self) -> float: ...
    @property
    def q0(self) -> Floats: ...
    @property
    def s0(self) -> Floats: ...
    @property
    def robot(self) -> Mechanism: ...
    @property
    def statement(self) -> Statement | None: ...
    def proof_text(self) -> str: ...


def plain_law(servo: Servo) -> Servo:
    """The law without torque limits: the same as long as its torques are within them."""
    return servo if servo.torque_limits is None else replace(servo, torque_limits=None)


def torque_room(servo: Servo) -> dict[str, float]:
    """Size of the torque of each control that is within the limits of the law, if it has any."""
    if servo.torque_limits is None:
        return {}
    low, high = np.asarray(servo.torque_limits).T
    sizes = np.minimum(-low, high).tolist()
    return dict(zip(servo.model.control_names, sizes, strict=True))
