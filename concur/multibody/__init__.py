"""The robot as one object: the tree of `mechanism` with `kinematics` and `dynamics` as methods.

It stands above all three so that the recursions use trees only, and so that a robot with
wheels can be checked, when it is built, by the very rows it will be reduced with.
"""

from concur.multibody._masses import without_mass
from concur.multibody._mechanism import Mechanism
from concur.multibody._symbolic_robot import SymbolicRobot, with_numbers
from concur.multibody._systems import as_tree, control_velocities, controls, coordinates

__all__ = [
    "Mechanism",
    "SymbolicRobot",
    "as_tree",
    "control_velocities",
    "controls",
    "coordinates",
    "with_numbers",
    "without_mass",
]
