"""Dynamics in other forms: charts as checks of `concur.reduction`, and systems from energies."""

from concur.formulations._chart import MomentumChart
from concur.formulations._factor import Factor
from concur.formulations._integrability import Integrability, integrability
from concur.formulations._lagrangian import LagrangianSystem

__all__ = [
    "Factor",
    "Integrability",
    "LagrangianSystem",
    "MomentumChart",
    "integrability",
]
