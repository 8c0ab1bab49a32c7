"""Numeric evaluation of expressions: evaluator, C sources, compiler, many worlds in time."""

from concur.codegen._arguments import (
    DRIFT,
    FINITE,
    LARGEST,
    Place,
    as_floats,
    attitude_error,
    constant,
    finite_floats,
    nonfinite_error,
    normalised,
    oversized_error,
    part,
    shape_error,
    symbols_of,
    unit_span,
    zero_unless_finite,
)
from concur.codegen._c_text import c_text
from concur.codegen._cache import cache_directory
from concur.codegen._compiler import (
    CompilationError,
    CompilerWarning,
    compiler_flags,
    find_compiler,
    interpreted_on_purpose,
)
from concur.codegen._evaluated import Array, Matrix, Scalar, Vector, evaluated
from concur.codegen._evaluator import Evaluator, OneThread
from concur.codegen._fingerprint import fingerprint
from concur.codegen._library import Compiled, compiled, instructions, recalled
from concur.codegen._methods import EvaluatedMethods
from concur.codegen._qp import quadratic_program
from concur.codegen._random import uniform
from concur.codegen._rollout import Rollout
from concur.codegen._rollout_data import (
    LONGEST_DELAY,
    Batch,
    Demand,
    Job,
    Record,
    Rolled,
    Sizes,
)
from concur.codegen._series import CHUNK, Series, Trace, series_function
from concur.codegen._sources import Sources, sources

__all__ = [
    "CHUNK",
    "DRIFT",
    "FINITE",
    "LARGEST",
    "LONGEST_DELAY",
    "Array",
    "Batch",
    "CompilationError",
    "Compiled",
    "CompilerWarning",
    "Demand",
    "EvaluatedMethods",
    "Evaluator",
    "Job",
    "Matrix",
    "OneThread",
    "Place",
    "Record",
    "Rolled",
    "Rollout",
    "Scalar",
    "Series",
    "Sizes",
    "Sources",
    "Trace",
    "Vector",
    "as_floats",
    "attitude_error",
    "c_text",
    "cache_directory",
    "compiled",
    "compiler_flags",
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
    "quadratic_program",
    "recalled",
    "series_function",
    "shape_error",
    "sources",
    "symbols_of",
    "uniform",
    "unit_span",
    "zero_unless_finite",
]
