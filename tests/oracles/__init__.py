"""Independent references for the code under test: nothing here calls its algorithms.

The oracles read descriptions (bodies, joints, placements, inertias) and do all computing with
Pinocchio, NumPy, SciPy and formulas written by hand.
"""

from tests.oracles._chart import MomentumChart
from tests.oracles._close import assert_close, difference_quotient
from tests.oracles._each import each
from tests.oracles._floating import BASES, Excitation, excitation, full_order, random_floater
from tests.oracles._hamel import Forms, Split, boltzmann_hamel, coefficients, slopes, structure
from tests.oracles._kkt import Constrained, crane_rows, rover_rows
from tests.oracles._mujoco import Mujoco
from tests.oracles._pinocchio import Pinocchio
from tests.oracles._random import (
    EVERY_JOINT,
    RandomRover,
    random_robot,
    random_rover,
    random_tree,
    random_tree_parts,
    random_velocity,
)
from tests.oracles._robots import (
    CASE_STUDY,
    CraneNumbers,
    RoverNumbers,
    crane,
    rover,
    rover_without_arm,
)
from tests.oracles._trivialized import Trivialized, solve
from tests.oracles._units import Units

__all__ = [
    "BASES",
    "CASE_STUDY",
    "EVERY_JOINT",
    "Constrained",
    "CraneNumbers",
    "Excitation",
    "Forms",
    "MomentumChart",
    "Mujoco",
    "Pinocchio",
    "RandomRover",
    "RoverNumbers",
    "Split",
    "Trivialized",
    "Units",
    "assert_close",
    "boltzmann_hamel",
    "coefficients",
    "crane",
    "crane_rows",
    "difference_quotient",
    "each",
    "excitation",
    "full_order",
    "random_floater",
    "random_robot",
    "random_rover",
    "random_tree",
    "random_tree_parts",
    "random_velocity",
    "rover",
    "rover_rows",
    "rover_without_arm",
    "slopes",
    "solve",
    "structure",
]
