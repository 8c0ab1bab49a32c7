"""What a rig is: its axes, bus, loop, watchdogs and policies, read from a file and checked."""

from hil.rig._load import load_rig
from hil.settings import (
    Axis,
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
