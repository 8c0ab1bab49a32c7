"""Outputs on Lie groups, which a law controls, and the references that they follow."""

from concur.outputs import groups, references
from concur.outputs._functions import FunctionOutput
from concur.outputs._output import Output
from concur.outputs._sample import ReferenceSample
from concur.outputs.references import Reference
from concur.outputs.references._reference import reference_for

__all__ = [
    "FunctionOutput",
    "Output",
    "Reference",
    "ReferenceSample",
    "groups",
    "reference_for",
    "references",
]
