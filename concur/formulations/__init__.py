"""Systems from their energies, and whether constraints can be integrated."""

from concur.formulations._factor import Factor
from concur.formulations._integrability import Integrability, integrability
from concur.formulations._lagrangian import LagrangianSystem

__all__ = [
    "Factor",
    "Integrability",
    "LagrangianSystem",
    "integrability",
]
