"""Closed loops in time on the full-order plant."""

from concur.simulation._findings import Finding, Tolerances
from concur.simulation._plant import Plant
from concur.simulation._run import Run
from concur.simulation._simulate import METHODS, simulate

__all__ = ["METHODS", "Finding", "Plant", "Run", "Tolerances", "simulate"]
