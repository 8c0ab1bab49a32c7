"""References: desired motions of the outputs, as functions of time.

A `Reference` gives pose, twist and acceleration at any time. The constructors here make the
usual ones; `stack` puts the references of several outputs into one, in output order. For robots
that float, `drifting` and `moving` carry a reference along, and `composed` multiplies motions.
"""

from concur.outputs.references._arguments import LARGEST as LARGEST
from concur.outputs.references._combined import composed, drifting, moving, planar, relative, stack
from concur.outputs.references._file import Smoothing, from_file
from concur.outputs.references._loop import Loop
from concur.outputs.references._paths import circle, hold, polynomial, rest_to_rest, screw
from concur.outputs.references._reference import Reference, from_function
from concur.outputs.references._reference import reference_for as reference_for
from concur.outputs.references._tables import table, waypoints

__all__ = [
    "Loop",
    "Reference",
    "Smoothing",
    "circle",
    "composed",
    "drifting",
    "from_file",
    "from_function",
    "hold",
    "moving",
    "planar",
    "polynomial",
    "relative",
    "rest_to_rest",
    "screw",
    "stack",
    "table",
    "waypoints",
]
