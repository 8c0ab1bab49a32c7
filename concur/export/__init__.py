"""Laws and plants for other tools: C, co-simulation units (FMUs), and systems of python-control."""

from concur.export._fmu import FmuModel, write_fmu
from concur.export._iosystem import to_iosystem
from concur.export._law import export_law
from concur.export._signals import Entry, Signal, configuration, momentum, velocities

__all__ = [
    "Entry",
    "FmuModel",
    "Signal",
    "configuration",
    "export_law",
    "momentum",
    "to_iosystem",
    "velocities",
    "write_fmu",
]
