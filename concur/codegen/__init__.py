"""From expressions to numbers: the buffered evaluator behind every numeric call."""

from concur.codegen._evaluated import DRIFT, Array, EvaluatedMethods, evaluated
from concur.codegen._evaluator import Evaluator, as_floats, nonfinite_error, shape_error

__all__ = [
    "DRIFT",
    "Array",
    "EvaluatedMethods",
    "Evaluator",
    "as_floats",
    "evaluated",
    "nonfinite_error",
    "shape_error",
]
