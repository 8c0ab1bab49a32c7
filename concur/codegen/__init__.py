"""From expressions to numbers: evaluator and compiler behind every numeric call."""

from concur.codegen._attitude import DRIFT, attitude_error, normalised
from concur.codegen._batch import Batch
from concur.codegen._compiler import CompilerWarning
from concur.codegen._constant import constant
from concur.codegen._evaluated import Array, Build, EvaluatedMethods, evaluated
from concur.codegen._evaluator import (
    LARGEST,
    Evaluator,
    as_floats,
    finite_floats,
    nonfinite_error,
    oversized_error,
    shape_error,
)
from concur.codegen._fingerprint import fingerprint
from concur.codegen._fmu import write_fmu
from concur.codegen._fmu_model import FmuModel, FmuVariable
from concur.codegen._lanes import Lanes
from concur.codegen._library import Compiled, compiled, instructions, recalled
from concur.codegen._map import BatchMap

__all__ = [
    "DRIFT",
    "LARGEST",
    "Array",
    "Batch",
    "BatchMap",
    "Build",
    "Compiled",
    "CompilerWarning",
    "EvaluatedMethods",
    "Evaluator",
    "FmuModel",
    "FmuVariable",
    "Lanes",
    "as_floats",
    "attitude_error",
    "compiled",
    "constant",
    "evaluated",
    "fingerprint",
    "finite_floats",
    "instructions",
    "nonfinite_error",
    "normalised",
    "oversized_error",
    "recalled",
    "shape_error",
    "write_fmu",
]
