"""Outputs on Lie groups, which a law controls, and the references that they follow."""

from concur.outputs import groups, references
from concur.outputs._functions import FunctionOutput
from concur.outputs._kinematics import SOLVE as SOLVE
from concur.outputs._kinematics import carriers as carriers
from concur.outputs._kinematics import check_planar as check_planar
from concur.outputs._kinematics import checked_outputs as checked_outputs
from concur.outputs._kinematics import free_bodies as free_bodies
from concur.outputs._kinematics import freedoms as freedoms
from concur.outputs._motion import following_rate as following_rate
from concur.outputs._motion import output_motion as output_motion
from concur.outputs._motion import twist_rows as twist_rows
from concur.outputs._output import Output
from concur.outputs._output import pose_quaternions as pose_quaternions
from concur.outputs._sample import ReferenceSample
from concur.outputs._sample import check_parts as check_parts
from concur.outputs._sample import homogeneous as homogeneous
from concur.outputs._sample import pose_numbers as pose_numbers
from concur.outputs.references import Reference, reference_for

__all__ = [
    "FunctionOutput",
    "Output",
    "Reference",
    "ReferenceSample",
    "groups",
    "reference_for",
    "references",
]
