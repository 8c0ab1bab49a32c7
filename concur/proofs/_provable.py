"""A task as proofs see it."""

from __future__ import annotations

from typing import Any, Protocol

from concur.control import Servo
from concur.control.references import Reference
from concur.multibody import Mechanism
from concur.proofs._models import Floats
from concur.proofs._statement import Statement


class Provable(Protocol):
    """Attributes of a task that proofs and their samples read; see `concur.formats.Task`."""

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
