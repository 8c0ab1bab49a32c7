"""A task with another statement, duration or law."""

from types import SimpleNamespace

from concur.control import Servo
from concur.io import Task
from concur.proofs import Statement


def restated(
    own: Task, statement: Statement | None, duration: float, servo: Servo | None = None
) -> SimpleNamespace:
    """The motion of a task with another statement; its file is that of the task."""
    names = ("path", "reference", "q0", "s0", "robot", "proof_text")
    given = {name: getattr(own, name) for name in names}
    return SimpleNamespace(
        **given, duration=duration, statement=statement, servo=servo or own.servo
    )
