"""Exports of a servo: its tick with names, units and frames, and states to test it with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from os import PathLike
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur._version import __version__
from concur.codegen import (
    DRIFT,
    CFolder,
    Code,
    Exported,
    ReferenceVector,
    Signal,
    as_floats,
    instructions,
    placed,
    plain_text,
    real_type,
    write_c,
)
from concur.control._fmu import export_fmu
from concur.control._reference_tick import ReferenceTick, exported_tick
from concur.control._signals import input_signals, meaning, output_signals, state_signal
from concur.control._tick import KEPT, SAMPLE, BufferedLaw, Tick, TickStatus
from concur.control._tracking_law import TrackingLaw
from concur.errors import ConcurError, UnknownNameError
from concur.files import folder_named
from concur.outputs._fitting import reference_for
from concur.outputs._sample import ReferenceSample
from concur.outputs.references import LARGEST as LATEST
from concur.outputs.references import Reference

TARGETS = ("c", "fmu")
"""Targets of an export."""

SPEED_LIMIT = 1000.0
"""Velocity above which exported code refuses a state, m/s or rad/s, by default."""

_GOOD = 100  # states of a replay that are not bad on purpose
_SINGULAR = 8  # those in singular configurations, if there are so many
_TOLERANCE = 1e-9  # rounding of another processor's mathematics, near singular states too
_TOLERANCE_LIMITED = 1e-5  # two solvers of programs, compared to the accuracy of the lesser one
_LONGEST = 40  # C99 distinguishes names by their first 63 characters
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{_LONGEST - 1}}}")


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


def export_servo(
    servo: TrackingLaw,
    directory: str | PathLike[str],
    target: str = "c",
    name: str | None = None,
    precision: str = "double",
    speed_limit: ArrayLike = SPEED_LIMIT,
    fmi: str = "3.0",
    reference: Reference | Callable[[float], ReferenceSample] | None = None,
) -> CFolder | Path:
    """Write a law for a controller or another tool, as described in `Servo.export`."""
    if target not in TARGETS:
        raise UnknownNameError(
            f"export of `{servo.name}`, `target`",
            expected=" or ".join(f'"{known}"' for known in TARGETS),
            came=repr(target),
            cure='Write for example servo.export("out", target="c").',
            name=target,
        )
    where = f"export of `{servo.name}`"
    folder = folder_named(directory, where)
    demand = None if reference is None else reference_for(reference, servo.outputs, where)
    if target == "fmu":
        # FMUs compute in double precision and accept all speeds.
        _check_unused(where, "precision", precision, "double", target)
        _check_unused(where, "speed_limit", speed_limit, SPEED_LIMIT, target)
        return export_fmu(servo, folder, name, fmi, demand)
    _check_unused(where, "fmi", fmi, "3.0", target)
    return write_c(exported(servo, name, precision, speed_limit, demand), folder, precision)


def _check_unused(where: str, name: str, given: ArrayLike, only: ArrayLike, target: str) -> None:
    """Reject an option of the other target."""
    if not np.array_equal(given, only):
        other = "fmu" if target == "c" else "c"
        raise ConcurError(
            f"{where}, `{name}`",
            expected=f'{only!r} for the target "{target}"',
            came=repr(given),
            cure=f'Leave it out, or export to the target "{other}".',
        )


def exported(
    servo: TrackingLaw,
    name: str | None = None,
    precision: str = "double",
    speed_limit: ArrayLike = SPEED_LIMIT,
    reference: Reference | None = None,
) -> Exported:
    """Describe a law's tick: signals, codes, and states to try it with."""
    where = f"export of `{servo.name}`"
    real_type(precision)
    timed = reference is not None
    inputs = placed(input_signals(servo, _speeds(servo, speed_limit, where), timed))
    outputs = placed(output_signals(servo))
    function = exported_tick(servo, reference)
    limited = servo.torque_limits is not None
    return Exported(
        name=_identifier(servo, name, where),
        title=plain_text(f"Law of {servo.name}: {', '.join(o.name for o in servo.outputs)}"),
        function=function,
        inputs=inputs,
        outputs=outputs,
        codes=tuple(Code(c.name, int(c), meaning(servo, c)) for c in ExportStatus),
        vectors=tuple(_vectors(servo, reference, inputs, precision == "single")),
        tolerance=_TOLERANCE_LIMITED if limited else _TOLERANCE,
        kept=KEPT + servo.nz,
        state=state_signal(servo),
        facts=_facts(servo, function),
    )


def _facts(servo: TrackingLaw, function: ca.Function) -> dict[str, Any]:
    limits = servo.torque_limits
    return {
        "concur": __version__,
        "casadi": ca.__version__,
        "robot": servo.name,
        "reduction": servo.model.kind,
        "outputs_followed": [
            {"name": o.name, "body": o.body, "group": o.group, "point": list(o.point)}
            | ({"relative_to": o.relative_to} if o.relative_to else {})
            for o in servo.outputs
        ],
        "stiffness": servo.stiffness.tolist(),
        "damping": servo.damping.tolist(),
        "inertia": servo.inertia.tolist(),
        **({} if servo.integral is None else {"integral": servo.integral.tolist()}),
        "singular_margin": servo.singular_margin,
        "damped_below": servo.damping_threshold,
        "torque_limits": None
        if limits is None
        else [[x if np.isfinite(x) else None for x in pair] for pair in limits.tolist()],
        "redundancy": None if servo.redundancy is None else str(servo.redundancy),
        "measured": bool(servo.use_measured_velocity),
        "instructions": instructions(function),
    }


def _vectors(
    servo: TrackingLaw, reference: Reference | None, inputs: Sequence[Signal], single: bool
) -> Iterator[ReferenceVector]:
    """Valid and invalid states of all kinds, with the outputs of the law."""
    tick: BufferedLaw = Tick(servo, interpreted=True)
    if reference is not None:
        tick = ReferenceTick(servo, reference, interpreted=True)
    rng = np.random.default_rng(0)
    robot, neutral = servo.model.system, servo.model.system.neutral()
    names, sizes = [signal.name for signal in inputs], [signal.size for signal in inputs]
    ends = np.cumsum(sizes)[:-1]
    preset = [np.array(signal.preset) for signal in inputs]
    longest = servo.state_bounds.period if servo.nz else 0.0

    def judged(what: str, parts: Sequence[np.ndarray]) -> ReferenceVector:
        given = np.concatenate(parts)
        if single:
            given = given.astype(np.float32).astype(float)
        code, outputs = _judge(tick, inputs, np.split(given, ends))
        return ReferenceVector(what, given, outputs, int(code))

    def drawn(spread: float) -> list[np.ndarray]:
        # Gentle motions too, in which torque limits are not active.
        speed = 10.0 ** rng.uniform(-2.0, 0.3)
        q = robot.integrate(neutral, spread * rng.normal(size=robot.nv))
        near = robot.integrate(q, 0.1 * speed * rng.normal(size=robot.nv))
        state = {"q": q, "s": speed * rng.normal(size=servo.nw)}
        if reference is None:
            state["pose"] = np.atleast_1d(servo.output(near))
            state |= {part: speed * rng.normal(size=servo.size) for part in SAMPLE[1:]}
        else:
            state["t"] = rng.uniform(-1.0, 20.0, size=1)
        if servo.takes_momentum:
            momentum = preset[names.index("momentum")]
            state["momentum"] = momentum + speed * rng.normal(size=6)
        if servo.nz:
            state["period"] = longest * rng.uniform(0.0, 1.0, size=1)
        return [state[name] for name in names]

    good, tried, answered = 0, 0, False
    while good < _GOOD and tried < 20 * _GOOD:
        tried += 1
        state = drawn((0.3, 0.8, 1.5)[tried % 3])
        vector = judged("drawn", state)
        # A state on the edge of singular may fall on the other side on another processor; and
        # where limits leave no room, many torques of a redundant robot are as good.
        clear = tick.buffers.margin_bound[0] > 10 * servo.singular_margin
        clear &= servo.size == servo.nu or tick.buffers.scale[0] > 0.0
        answered |= vector.code == ExportStatus.OK
        if vector.code == ExportStatus.OK and clear:
            good += 1
            yield vector
    still = judged("neutral, at rest", preset)
    if not answered and still.code != ExportStatus.OK:
        raise ConcurError(
            f"export of `{servo.name}`",
            expected="a law that gives a torque in some state",
            came=f"none in {tried + 1} states; the last one is {ExportStatus(still.code).name}",
            cure="Lower `singular_margin`, or change outputs, controls or limits.",
        )
    yield still
    for late in (-2.0 * LATEST, 2.0 * LATEST) if reference is not None else ():
        state = drawn(0.5)
        state[names.index("t")][:] = late
        yield judged("time out of range", state)
    for index, signal in enumerate(inputs):
        for bad in (np.nan, np.inf, -np.inf):
            state = drawn(0.5)
            state[index][rng.integers(signal.size)] = bad
            yield judged(f"{bad} in {signal.name}", state)
        for start in signal.quaternions:
            for factor in (0.0, 1.0 - 2 * DRIFT, 1.0 + 2 * DRIFT, 2.0):
                state = drawn(0.5)
                state[index][start : start + 4] *= factor
                yield judged(f"lost attitude in {signal.name}", state)
        for place, largest in enumerate(signal.largest):
            state = drawn(0.5)
            state[index][place] = -2.0 * largest
            if np.isfinite(largest):
                yield judged(f"too large in {signal.name}", state)
    for period in (0.0, 0.999 * longest, 1.001 * longest, 4295.0 + longest) if servo.nz else ():
        state = drawn(0.5)
        state[names.index("period")][:] = period
        yield judged("edge of the period", state)
    found = 0
    for q in _singular(servo, rng):
        state = drawn(0.5)
        state[names.index("q")] = q
        vector = judged("singular", state)
        clear = tick.buffers.margin_bound[0] < 0.1 * servo.singular_margin
        if vector.code == ExportStatus.SINGULAR and clear and found < _SINGULAR:
            found += 1
            yield vector


def _judge(
    tick: BufferedLaw, inputs: Sequence[Signal], parts: Sequence[np.ndarray]
) -> tuple[ExportStatus, np.ndarray]:
    """Code and outputs for a state, as exported code has them."""
    buffers = tick.buffers
    bound, residual = buffers.margin_bound, buffers.acceleration_residual
    shape = (buffers.u, bound, residual, buffers.scale)
    nothing = np.zeros(sum(part.size for part in shape))
    if not all(np.isfinite(part).all() for part in parts):
        return ExportStatus.BAD_INPUT, nothing
    for signal, part in zip(inputs, parts, strict=True):
        if signal.guard and (np.abs(part) > signal.largest).any():
            return ExportStatus.TOO_FAST, nothing
    for signal, part in zip(inputs, parts, strict=True):
        getattr(buffers, signal.name)[:] = part
    tick.reset()
    status = ExportStatus(tick.run())
    if status != ExportStatus.OK:
        return status, nothing
    return status, np.concatenate([np.atleast_1d(part) for part in shape])


def _singular(servo: TrackingLaw, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Configurations in which laws are often singular: stretched, folded, at right angles."""
    robot = servo.model.system
    for _ in range(40):
        tangent = rng.choice([0.0, 0.5 * np.pi, np.pi], size=robot.nv)
        tangent[list(set(range(robot.nv)) - set(servo.model.shape))] = 0.0
        yield robot.integrate(robot.neutral(), tangent)


def _speeds(servo: TrackingLaw, value: ArrayLike, where: str) -> tuple[float, ...]:
    array = as_floats(value, f"{where}, `speed_limit`")
    if array.shape not in ((), (servo.nw,)) or not (array > 0.0).all():
        raise ConcurError(
            f"{where}, `speed_limit`",
            expected=f"a number above zero, or {servo.nw} of them",
            came=f"{value!r:.60}",
            cure="Give the largest speed that can be meant, m/s or rad/s.",
        )
    return tuple(float(x) for x in np.broadcast_to(array, (servo.nw,)))


def _identifier(servo: TrackingLaw, name: str | None, where: str) -> str:
    if name is None:
        name = re.sub(r"[^a-z0-9]+", "_", plain_text(servo.name).lower())
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
