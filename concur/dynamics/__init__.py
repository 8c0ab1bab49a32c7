"""How forces make the bodies move: mass matrix, Newton-Euler, momentum, Coriolis factor."""

from concur.dynamics._articulated import Articulated, articulated, forward_dynamics
from concur.dynamics._coriolis import coriolis
from concur.dynamics._distribution import link_numbers
from concur.dynamics._mass_matrix import (
    Columns,
    columns,
    kinetic_energy,
    mass_matrix,
    mass_times,
    potential_energy,
)
from concur.dynamics._newton_euler import (
    base_wrench,
    bias,
    inverse_dynamics,
    moment_of_motion,
    momentum,
    momentum_matrix,
)
from concur.dynamics._solve import (
    least_eigenvalue,
    side_of_factor,
    solve_positive_definite,
    solve_rigid,
)

__all__ = [
    "Articulated",
    "Columns",
    "articulated",
    "base_wrench",
    "bias",
    "columns",
    "coriolis",
    "forward_dynamics",
    "inverse_dynamics",
    "kinetic_energy",
    "least_eigenvalue",
    "link_numbers",
    "mass_matrix",
    "mass_times",
    "moment_of_motion",
    "momentum",
    "momentum_matrix",
    "potential_energy",
    "side_of_factor",
    "solve_positive_definite",
    "solve_rigid",
]
