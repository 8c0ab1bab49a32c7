"""References: desired motions of the outputs, as functions of time.

A `Reference` gives pose, twist and acceleration at any time. The constructors here make the
usual ones; `stack` puts the references of several outputs into one, in output order. For robots
that float, `drifting` and `moving` carry a reference along, and `composed` multiplies motions.
For the functions that take a reference, `as_reference` and `check` see to what came.
"""

from concur.outputs.references._carried import drifting, moving
from concur.outputs.references._circle import circle
from concur.outputs.references._combined import relative, stack
from concur.outputs.references._composed import composed
from concur.outputs.references._function import as_reference as as_reference
from concur.outputs.references._function import from_function
from concur.outputs.references._hold import hold
from concur.outputs.references._hold import nothing as nothing
from concur.outputs.references._inputs import LARGEST as LARGEST
from concur.outputs.references._loop import Loop
from concur.outputs.references._planar import planar
from concur.outputs.references._polynomial import polynomial, rest_to_rest
from concur.outputs.references._reference import Reference
from concur.outputs.references._reference import check as check
from concur.outputs.references._screw import screw
from concur.outputs.references._waypoints import waypoints

__all__ = [
    "Loop",
    "Reference",
    "circle",
    "composed",
    "drifting",
    "from_function",
    "hold",
    "moving",
    "planar",
    "polynomial",
    "relative",
    "rest_to_rest",
    "screw",
    "stack",
    "waypoints",
]
