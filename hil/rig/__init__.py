"""Rig files: axes, bus, loop, watchdogs and policies of a rig, read and checked."""

from hil.rig._load import load_rig
from hil.settings import (
    Axis,
    AxisTable,
    BusSettings,
    EmulatorSettings,
    EstimatorSettings,
    LoopSettings,
    OperatorSettings,
    Policies,
    Policy,
    PoseSettings,
    RecorderSettings,
    Rig,
)

__all__ = [
    "Axis",
    "AxisTable",
    "BusSettings",
    "EmulatorSettings",
    "EstimatorSettings",
    "LoopSettings",
    "OperatorSettings",
    "Policies",
    "Policy",
    "PoseSettings",
    "RecorderSettings",
    "Rig",
    "load_rig",
]
