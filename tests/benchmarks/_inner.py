"""Functions timed from within: a loop in C around ours, and around the same over Pinocchio in C++.

Both loops are alike. Ours are called in the library that the tick itself calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np
import pinocchio as pin

import concur as cc
from concur.codegen._cache import library
from concur.codegen._compiler import find_compiler
from concur.codegen._sources import sources
from tests.benchmarks._pinocchio_model import configuration, flat

SOURCE = Path(__file__).with_name("_pinocchio_inner.cpp")
ROBOT = Path(__file__).with_name("_pinocchio_robot.hpp")
LOOP = Path(__file__).with_name("_loop.c")

COMMON = (
    "-std=c++17",
    "-DNDEBUG",
    # As the library's own build configuration defines them.
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
    # Nothing is shared with the library that Python has loaded, whose alignment may be another.
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-w",
)
"""How whatever is over Pinocchio's headers is compiled."""

FLAGS = (COMMON[0], "-O3", "-march=native", *COMMON[1:])
"""How the functions that are timed are."""

EIGEN = (
    Path("/usr/include/eigen3"),
    Path("/usr/local/include/eigen3"),
    Path("/opt/homebrew/include/eigen3"),
)
"""Where Eigen is looked for after the directory of Pinocchio's wheel."""

_Pointer = ctypes.POINTER(ctypes.c_double)


class MissingError(RuntimeError):
    """What the functions in C++ need is not there; says what to install."""


def numbers_of(value: np.ndarray) -> np.ndarray:
    """Copy to contiguous floats, which a pointer may be taken of."""
    return np.ascontiguousarray(value, dtype=float)


@cache
def loop_library() -> ctypes.CDLL:
    """Compile the loops, once per machine, and load them.

    Raises
    ------
    MissingError
        If there is no compiler.
    """
    compiler = find_compiler()
    if compiler is None:
        raise MissingError("no C compiler: install gcc or clang")
    loaded = compiled([*compiler.command, "-std=c99", "-O2", "-fPIC", "-shared"], LOOP)
    for name in ("time_ours", "time_theirs"):
        getattr(loaded, name).restype = ctypes.c_double
    return loaded


@cache
def headers_library() -> ctypes.CDLL:
    """Compile the functions over Pinocchio's headers, once per machine, and load them.

    Raises
    ------
    MissingError
        If there is no compiler or no Eigen.
    """
    loaded = compiled([*cpp_compiler(), *FLAGS, *(f"-I{p}" for p in headers())], SOURCE, ROBOT)
    loaded.robot_new.restype = ctypes.c_void_p
    return loaded


def cpp_compiler() -> list[str]:
    """Find the C++ compiler.

    Raises
    ------
    MissingError
        If there is none.
    """
    command = shlex.split(os.environ.get("CXX", "g++"))
    if shutil.which(command[0]) is None:
        raise MissingError("no C++ compiler: install g++, or let CXX name one")
    return command


def compiled(
    command: list[str], source: Path, *included: Path, linked: Sequence[str] = ()
) -> ctypes.CDLL:
    """Compile a file, or take what was compiled from it before; what it includes counts too."""
    version = subprocess.run([command[0], "--version"], capture_output=True, check=True).stdout
    facts = "\0".join([*command, pin.__version__, ca.__version__, _processor()]).encode()
    texts = b"".join(path.read_bytes() for path in (source, *included))
    digest = hashlib.sha256(facts + version + texts)
    kept = Path(tempfile.gettempdir()) / f"concur-benchmarks-{os.getuid()}"
    kept.mkdir(mode=0o700, exist_ok=True)
    made = kept / f"{digest.hexdigest()}.so"
    if not made.exists():
        if ROBOT in included:
            print(
                f"compiling {source.name} over Pinocchio's headers: minutes, once per machine",
                file=sys.stderr,
                flush=True,
            )
        built = made.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            [*command, str(source), *linked, "-o", str(built)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            faults = [line for line in done.stderr.splitlines() if "error:" in line]
            raise MissingError(f"`{command[0]}` did not compile {source.name}: {faults[:1]}")
        os.replace(built, made)
    return ctypes.CDLL(str(made))


def headers() -> list[Path]:
    """Find the headers of Pinocchio and of Eigen.

    Raises
    ------
    MissingError
        If some are not there.
    """
    spec = importlib.util.find_spec("pinocchio")
    places = [Path(spec.origin).parents] if spec and spec.origin else []
    prefixes = [place for parents in places for place in parents]
    found = next((p for p in prefixes if (p / "include/pinocchio/multibody.hpp").exists()), None)
    if found is None:
        raise MissingError("Pinocchio's headers, which the wheel `pin` brings, are not there")
    for place in (found / "include/eigen3", *EIGEN):
        if (place / "Eigen").is_dir():
            return [found / "include", place]
    raise MissingError(
        "Eigen's headers are not there: install libeigen3-dev or the wheel cmeel-eigen"
    )


def _processor() -> str:
    """What `-march=native` depends on."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        return "\n".join(line for line in lines if line.startswith(("model name", "flags")))
    return ""


class Rows:
    """Arguments of many calls, as a table of pointers for the loop in C.

    Parameters
    ----------
    calls : sequence of tuple of numpy.ndarray
        The arguments of each call.
    """

    def __init__(self, calls: Sequence[tuple[np.ndarray, ...]]) -> None:
        self.count, self.arguments = len(calls), len(calls[0])
        self._kept = [numbers_of(value) for call in calls for value in call]
        table = [value.ctypes.data_as(_Pointer) for value in self._kept]
        self.table = (_Pointer * len(table))(*table)


class OurInner:
    """One of our functions in the loop in C.

    Parameters
    ----------
    function : casadi.Function
        The function, of dense arguments and results.
    calls : sequence of tuple of numpy.ndarray
        Arguments to go through.
    """

    def __init__(self, function: ca.Function, calls: Sequence[tuple[np.ndarray, ...]]) -> None:
        compiler = find_compiler()
        if compiler is None:
            raise MissingError("no C compiler: install gcc or clang")
        code = sources([function])
        found = library(code, compiler)
        if found is None:
            raise MissingError("the C compiler does not compile")
        self.library = ctypes.CDLL(str(found[0]))
        self.function = getattr(self.library, code.names[0])
        self.rows = Rows(calls)
        sizes = [ctypes.c_longlong() for _ in range(4)]
        getattr(self.library, f"{code.names[0]}_work")(*(ctypes.byref(size) for size in sizes))
        arg, res, iw, w = (max(1, size.value) for size in sizes)
        self._arg, self._iw = (_Pointer * arg)(), (ctypes.c_longlong * iw)()
        self._w = np.zeros(w)
        self.results = [np.zeros(function.size_out(i), order="F") for i in range(function.n_out())]
        pointers = [value.ctypes.data_as(_Pointer) for value in self.results]
        self._res = (_Pointer * res)(*pointers)

    def seconds(self, rounds: int = 1) -> float:
        """Time of all calls, so many times, s."""
        rows = self.rows
        return float(
            loop_library().time_ours(
                self.function,
                rounds,
                rows.count,
                rows.arguments,
                rows.table,
                self._arg,
                self._res,
                self._iw,
                self._w.ctypes.data_as(_Pointer),
            )
        )


class TheirInner:
    """A function over Pinocchio's headers in the loop in C++.

    Parameters
    ----------
    name : str
        Name of the function in C++.
    model : pinocchio.Model
        The robot.
    hand : str
        Frame of the hand.
    calls : sequence of tuple of numpy.ndarray
        Arguments to go through, in the library's coordinates.
    sizes : sequence of tuple of int
        Shapes of the results.
    law : numpy.ndarray, optional
        Momentum, and diagonals of stiffness and damping, shape (18,).
    """

    def __init__(
        self,
        name: str,
        model: pin.Model,
        hand: str,
        calls: Sequence[tuple[np.ndarray, ...]],
        sizes: Sequence[tuple[int, ...]],
        law: np.ndarray | None = None,
    ) -> None:
        built, made = headers_library(), flat(model, hand)
        numbers = [
            numbers_of(value)
            for value in (
                made.placements,
                made.inertias,
                made.gravity,
                made.hand,
                np.zeros(18) if law is None else law,
            )
        ]
        placements, inertias, gravity, there, gains = (n.ctypes.data_as(_Pointer) for n in numbers)
        self._robot = ctypes.c_void_p(
            built.robot_new(
                len(made.kinds),
                made.kinds,
                made.parents.ctypes.data_as(ctypes.POINTER(ctypes.c_int)),
                placements,
                inertias,
                gravity,
                made.joint,
                there,
                gains,
            )
        )
        self.function = getattr(built, name)
        self.rows = Rows(calls)
        self.results = [np.zeros(size, order="F") for size in sizes]
        self._res = (_Pointer * len(sizes))(*(r.ctypes.data_as(_Pointer) for r in self.results))

    def __del__(self) -> None:
        if getattr(self, "_robot", None):
            headers_library().robot_delete(self._robot)

    def seconds(self, rounds: int = 1) -> float:
        """Time of all calls, so many times, s."""
        rows = self.rows
        return float(
            loop_library().time_theirs(
                self.function,
                self._robot,
                rounds,
                rows.count,
                rows.arguments,
                rows.table,
                self._res,
            )
        )


Inner = OurInner | TheirInner


def run_of(inner: Inner) -> Callable[[], np.ndarray]:
    """Make a run of a loop: all calls once; the results of the last one, in one column."""

    def run() -> np.ndarray:
        inner.seconds()
        return np.concatenate([result.ravel(order="F") for result in inner.results])

    return run


def theirs_calls(
    robot: cc.Mechanism, calls: Sequence[tuple[np.ndarray, ...]]
) -> list[tuple[np.ndarray, ...]]:
    """Turn arguments into the library's coordinates."""
    return [(configuration(robot, q), *rest) for q, *rest in calls]
