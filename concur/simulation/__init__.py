"""Motions in time: closed loops on the full-order plant, and reduced models under torques."""

from concur.simulation._findings import Finding, Tolerances
from concur.simulation._forced import MOTION_METHODS, forced_motion
from concur.simulation._loop import METHODS
from concur.simulation._motion import Motion
from concur.simulation._plant import Plant
from concur.simulation._reconstruct import reconstruct
from concur.simulation._run import Run
from concur.simulation._simulate import simulate
from concur.simulation._step import step_function

__all__ = [
    "METHODS",
    "MOTION_METHODS",
    "Finding",
    "Motion",
    "Plant",
    "Run",
    "Tolerances",
    "forced_motion",
    "reconstruct",
    "simulate",
    "step_function",
]
