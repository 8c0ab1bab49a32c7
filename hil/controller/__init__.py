"""The control loop: in each cycle it reads reports, sends torques and records one row."""

from hil.controller._controller import Controller, Mode, Outcome
from hil.controller._preparation import rehearse

__all__ = ["Controller", "Mode", "Outcome", "rehearse"]
