"""How forces make the bodies move: mass matrix, Newton-Euler, momentum, Coriolis factor."""

from concur.dynamics._coriolis import coriolis
from concur.dynamics._mass_matrix import kinetic_energy, mass_matrix, potential_energy
from concur.dynamics._newton_euler import bias, inverse_dynamics, momentum
from concur.dynamics._solve import solve_positive_definite

__all__ = [
    "bias",
    "coriolis",
    "inverse_dynamics",
    "kinetic_energy",
    "mass_matrix",
    "momentum",
    "potential_energy",
    "solve_positive_definite",
]
