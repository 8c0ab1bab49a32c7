"""Export to C99: a folder that can be added to a controller project without changes.

The folder holds the code, a C program that replays states through it, a CMake file, a README and a
manifest. The same law and versions give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur._version import __version__
from concur.codegen import as_floats, c_text, instructions
from concur.control import CFolder, SingleError, TickStatus, TrackingLaw
from concur.errors import ConcurError
from concur.export._signals import Signal, exported_tick, law_signals, status_meaning
from concur.export._states import ReplayState, ReplayStates
from concur.export._templates import plain_text, templates
from concur.files import writing
from concur.outputs.references import Reference
from concur.results import picked, plain

REAL = {"double": "double", "single": "float"}
"""Type in C of each floating-point precision of exported code."""


class ExportStatus(IntEnum):
    """Codes of exported code: those of `TickStatus`, and one more."""

    OK = TickStatus.OK
    BAD_INPUT = TickStatus.BAD_INPUT
    NO_ATTITUDE = TickStatus.INVALID_QUATERNION
    SINGULAR = TickStatus.SINGULAR
    NO_RESULT = TickStatus.NO_RESULT
    NO_TORQUE_WITHIN_LIMITS = TickStatus.NO_TORQUE_WITHIN_LIMITS
    FAILED = TickStatus.FAILED
    TOO_FAST = 7


_MARGIN = 10.0  # ratio of the tolerance in single precision to the largest estimated error
_ROUNDING, _TRIALS = 2.0**-23, 3  # distance of neighbours in single precision, relative
_TOLERANCE = 1e-9  # rounding of another processor's mathematics, near singular states too
_TOLERANCE_LIMITED = 1e-5  # two solvers of programs, compared to the accuracy of the lesser one
_LONGEST = 40  # C99 distinguishes names by their first 63 characters
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{_LONGEST - 1}}}")


def export_c(
    law: TrackingLaw,
    directory: Path,
    name: str | None,
    precision: str,
    speed_limit: ArrayLike,
    reference: Reference | None,
) -> CFolder:
    """Write a law in C99, as described in `Servo.export`."""
    where = f"export of `{law.name}`"
    if precision not in REAL:
        raise ConcurError(
            "export, `precision`",
            expected=" or ".join(f'"{known}"' for known in REAL),
            came=repr(precision),
            cure='Use "single" for controllers without double precision in hardware.',
        )
    single, limited = precision == "single", law.torque_limits is not None
    known = law_signals(law, _speeds(law, speed_limit, where))
    function = exported_tick(law, reference)
    *taken, before = function.name_in()
    inputs = [known[own] for own in taken]
    outputs = [known[own] for own in function.name_out()[:-2]]  # then status and memory
    name = _identifier(law, name, where)
    states = list(ReplayStates(law, reference, inputs, ExportStatus, single))
    text = c_text(function, single)
    if single and not function.is_a("SXFunction"):
        raise ConcurError(
            f"export of `{name}`, `precision`",
            expected="double precision, which torque limits and references with tables require",
            came='"single"',
            cure='Use precision="double", or limit the torques after the law and leave out the '
            "reference.",
        )
    tolerance, error = _TOLERANCE_LIMITED if limited else _TOLERANCE, None
    if single:
        states, error = _rounded(function, states, f"export of `{name}`, `precision`")
        tolerance = _MARGIN * error.largest
    kept = function.size1_in(before)
    numbers = text.numbers + text.further + sum(o.size for o in outputs) + 1 + 2 * kept
    pointers = text.arguments + text.results + text.integers
    context_bytes = 4 * pointers + (4 if single else 8) * numbers  # without padding
    followed = ", ".join(output.name for output in law.outputs)
    given = {
        "name": name,
        "upper": name.upper(),
        "title": plain_text(": ".join([f"Law of {law.name}", *([followed] if followed else [])])),
        "version": __version__,
        "inputs": inputs,
        "outputs": outputs,
        "codes": [(c.name, int(c), status_meaning(law, c)) for c in ExportStatus],
        "has_solver": text.further > 1,
        "timed": "t" in taken,
        "kept": kept,
        "state": known.get("z"),
        "law": text,
        "real": REAL[precision],
        "f": "f" if single else "",
        "states": states,
        "tolerance": tolerance,
        "error": error,
        "context_bytes": context_bytes,
    }
    files = _rendered(given, {"precision": precision} | _facts(law, function))
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (directory / file).write_bytes(content.encode("ascii"))
    return CFolder(name, tuple(directory / file for file in files), len(states), error)


def _rendered(given: dict[str, Any], facts: dict[str, Any]) -> dict[str, str]:
    """Texts of all files by name, from the data of the templates and further facts."""
    name, error = given["name"], given["error"]
    environment = _environment(given["real"] == "float")
    texts = {
        f"{name}.h": "header.h.j2",
        f"{name}.c": "source.c.j2",
        "replay.c": "replay.c.j2",
        "CMakeLists.txt": "CMakeLists.txt.j2",
        "README.md": "README.md.j2",
    }
    written = {
        file: environment.get_template(template).render(given) for file, template in texts.items()
    }
    manifest = {
        "name": name,
        "title": given["title"],
        "target": "c",
        **facts,
        "source": _digest(given["law"].text),
        "inputs": [_described(signal) for signal in given["inputs"]],
        "outputs": [_described(signal) for signal in given["outputs"]],
        **({} if given["state"] is None else {"state": _described(given["state"])}),
        "codes": {code.name: int(code) for code in ExportStatus},
        "states": len(given["states"]),
        "tolerance": given["tolerance"],
        "error": error and vars(error),
        "context_bytes": given["context_bytes"],
        "files": {file: _digest(content) for file, content in sorted(written.items())},
    }
    written["manifest.json"] = json.dumps(manifest, indent=2) + "\n"
    return written


def _facts(law: TrackingLaw, function: ca.Function) -> dict[str, Any]:
    return {
        "concur": __version__,
        "casadi": ca.__version__,
        "robot": law.name,
        "reduction": law.model.kind,
        "outputs_followed": [
            {"name": o.name, "body": o.body, "group": o.group, "point": list(o.point)}
            | ({"relative_to": o.relative_to} if o.relative_to else {})
            for o in law.outputs
        ],
        **picked(law, "stiffness", "damping", "inertia"),
        **({} if law.integral is None else {"integral": law.integral.tolist()}),
        "singular_margin": law.singular_margin,
        "damped_below": law.damping_threshold,
        "torque_limits": plain(law.torque_limits),
        "redundancy": None if law.redundancy is None else str(law.redundancy),
        "measured": bool(law.use_measured_velocity),
        "instructions": instructions(function),
    }


def _rounded(
    function: ca.Function, states: Sequence[ReplayState], where: str
) -> tuple[list[ReplayState], SingleError]:
    """States whose code does not depend on rounding, and the error of their outputs."""
    rng, kept, errors = np.random.default_rng(0), list[ReplayState](), list[float]()
    ends = np.cumsum([function.numel_in(i) for i in range(function.n_in())])[:-1]
    for state in states:
        size, rows = state.outputs.size, list[np.ndarray]()
        given = np.pad(state.inputs, (0, function.numel_in(function.n_in() - 1)))
        judged_before = state.code in (ExportStatus.BAD_INPUT, ExportStatus.TOO_FAST)
        for _ in range(0 if judged_before else _TRIALS):
            moved = given * (1.0 + _ROUNDING * rng.choice((-1.0, 1.0), given.size))
            found = function.call([ca.DM(part) for part in np.split(moved, ends)])
            rows.append(np.concatenate([np.array(part).ravel() for part in found]))
        if all((row[size] != 0) == (state.code != 0) for row in rows):
            kept.append(state)
            if state.code == 0:
                largest = max(np.abs(row[:size] - state.outputs).max() for row in rows)
                errors.append(largest / max(np.abs(state.outputs).max(), 1.0))
    if not errors:
        raise ConcurError(
            where,
            expected="a law with torques in single precision",
            came='"single", in which no state gives torques',
            cure='Use precision="double".',
        )
    return kept, SingleError(float(max(errors)), float(np.median(errors)), len(errors))


def _described(signal: Signal) -> dict[str, Any]:
    return {
        "name": signal.name,
        "meaning": plain_text(signal.meaning),
        "size": signal.size,
        "entries": [{"name": plain_text(e.name), "unit": e.unit or "1"} for e in signal.entries],
        **({"largest": plain(signal.largest)} if signal.largest else {}),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _environment(single: bool) -> Any:
    """Templates with two ways to write a number: for the law's type, or exact to the last bit."""

    def number(value: float) -> str:
        if math.isinf(value):
            return "FLT_MAX" if single else "DBL_MAX"
        return f"{float(value)!r}{'f' if single else ''}"

    def exact(value: float) -> str:
        if math.isfinite(value):
            return repr(float(value))
        return f"{'-' if value < 0 else ''}(double){'NAN' if math.isnan(value) else 'INFINITY'}"

    environment = templates("c")
    environment.filters |= {"number": number, "exact": exact}
    return environment


def _speeds(law: TrackingLaw, value: ArrayLike, where: str) -> tuple[float, ...]:
    array = as_floats(value, f"{where}, `speed_limit`")
    if array.shape not in ((), (law.nw,)) or not (array > 0.0).all():
        raise ConcurError(
            f"{where}, `speed_limit`",
            expected=f"a number above zero, or {law.nw} of them",
            came=f"{value!r:.60}",
            cure="Give the largest speed that can be meant, m/s or rad/s.",
        )
    return tuple(float(x) for x in np.broadcast_to(array, (law.nw,)))


def _identifier(law: TrackingLaw, name: str | None, where: str) -> str:
    if name is None:
        name = re.sub(r"[^a-z0-9]+", "_", plain_text(law.name).lower())
        name = name[: _LONGEST - 6].strip("_")
        # A file of this name is there already, and names in C begin with a letter.
        return name if _NAME.fullmatch(name) and name != "replay" else f"servo_{name}"
    if not _NAME.fullmatch(name) or name == "replay":
        raise ConcurError(
            f"{where}, `name`",
            expected=f"at most {_LONGEST} letters, digits and underscores, a letter first, other "
            "than replay",
            came=repr(name),
            cure="Leave it out for the robot's name.",
        )
    return name
