"""Drives: one class for each protocol, all with the interface of `Drive`."""

from __future__ import annotations

from hil.drives._drive import AxisCheck, CycleFrame, Drive, Finding, Wanted

__all__ = ["AxisCheck", "CycleFrame", "Drive", "Finding", "Wanted"]
