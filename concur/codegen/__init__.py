"""Numeric evaluation of expressions: evaluator, C compiler, and export."""

from concur.codegen._attitude import DRIFT, attitude_error, normalised
from concur.codegen._c_export import CFolder, write_c
from concur.codegen._c_qp import qp_hole
from concur.codegen._c_text import real_type
from concur.codegen._compiler import (
    CompilerWarning,
    cache_directory,
    find_compiler,
    interpreted_on_purpose,
)
from concur.codegen._constant import FINITE, constant, part, zero_unless_finite
from concur.codegen._evaluated import (
    Array,
    Build,
    EvaluatedMethods,
    Matrix,
    Scalar,
    Vector,
    evaluated,
)
from concur.codegen._evaluator import (
    LARGEST,
    Evaluator,
    as_floats,
    finite_floats,
    nonfinite_error,
    oversized_error,
    shape_error,
)
from concur.codegen._exported import (
    Code,
    Entry,
    Exported,
    ReferenceVector,
    Signal,
    placed,
    plain_text,
)
from concur.codegen._fingerprint import fingerprint
from concur.codegen._fmu import write_fmu
from concur.codegen._fmu_model import FmuModel, FmuVariable
from concur.codegen._library import Compiled, compiled, instructions, recalled
from concur.codegen._one_thread import OneThread
from concur.codegen._rollout import Rollout
from concur.codegen._rollout_data import LONGEST_DELAY, Demand, Record, Rolled
from concur.codegen._rollout_loop import uniform

__all__ = [
    "DRIFT",
    "FINITE",
    "LARGEST",
    "LONGEST_DELAY",
    "Array",
    "Build",
    "CFolder",
    "Code",
    "Compiled",
    "CompilerWarning",
    "Demand",
    "Entry",
    "EvaluatedMethods",
    "Evaluator",
    "Exported",
    "FmuModel",
    "FmuVariable",
    "Matrix",
    "OneThread",
    "Record",
    "ReferenceVector",
    "Rolled",
    "Rollout",
    "Scalar",
    "Signal",
    "Vector",
    "as_floats",
    "attitude_error",
    "cache_directory",
    "compiled",
    "constant",
    "evaluated",
    "find_compiler",
    "fingerprint",
    "finite_floats",
    "instructions",
    "interpreted_on_purpose",
    "nonfinite_error",
    "normalised",
    "oversized_error",
    "part",
    "placed",
    "plain_text",
    "qp_hole",
    "real_type",
    "recalled",
    "shape_error",
    "uniform",
    "write_c",
    "write_fmu",
    "zero_unless_finite",
]
