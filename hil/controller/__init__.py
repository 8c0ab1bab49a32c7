"""The loop: reports in, torques out, one row for the record, in every cycle the same."""

from hil.controller._controller import Controller, Mode, Outcome

__all__ = ["Controller", "Mode", "Outcome"]
