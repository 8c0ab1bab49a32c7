"""Laws by name: the one list of kinds that tasks and commands choose from."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.control._own_law import OwnLaw, tracking_law
from concur.control._passive import PassiveServo
from concur.control._servo import Servo
from concur.control._singularity import singular_error
from concur.control._tracking_law import TrackingLaw
from concur.control.laws import PD, ComputedTorque, joint_reference
from concur.errors import ConcurError, OutputError
from concur.outputs.references import Reference
from concur.robot import unknown_name

KINDS: Mapping[str, Any] = {
    "servo": Servo,
    "passive": PassiveServo,
    "pd": PD,
    "computed torque": ComputedTorque,
}
"""Constructors of laws by kind. A new kind is an entry here; its parameters are its options."""

GAINS = ("stiffness", "damping", "rate")
"""Gains of these laws; without any, a law has those of `gains_of_kind` for its servo."""


def law_of_kind(
    kind: str | Callable[..., Any],
    servo: Servo,
    options: Mapping[str, Any],
    motion: tuple[Reference, float, ArrayLike],
) -> TrackingLaw:
    """Make a law of a kind for the robot, the outputs and the gains of a servo.

    Parameters
    ----------
    kind : str or callable
        One of `KINDS`, or a function that makes a `Law` of a servo and the options.
    servo : Servo
        Model, outputs, and the gains of a law of outputs without gains among its options.
    options : mapping of str to any
        Further arguments of the law. Without gains it has those of `gains_of_kind` at the start.
    motion : tuple
        Reference of the outputs, duration, s, and configuration at the start: laws in joint space
        follow the exact motion of the joints, as of `laws.joint_reference`.

    Returns
    -------
    TrackingLaw
        The law, with the outputs of the servo.

    Raises
    ------
    UnknownNameError
        If there is no such kind.
    ConcurError
        As of the law.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> motion = (task.reference, task.duration, task.q0)
    >>> law = cc.control.law_of_kind("passive", task.servo, {"rate": 2.0}, motion)
    >>> type(law).__name__
    'PassiveServo'
    """
    where = f"law of `{servo.name}`"
    if isinstance(kind, str) and kind not in KINDS:
        raise unknown_name(f"{where}, `kind`", "kind", kind, [*KINDS])
    make: Any = KINDS[kind] if isinstance(kind, str) else kind
    if make in KINDS.values():
        options = _usual_gains(make, servo, options, motion[2])
    if make in (Servo, PassiveServo):
        made: TrackingLaw = make(servo.model, servo.outputs, **options)
        return made
    if make in (PD, ComputedTorque):
        path = joint_reference(servo, *motion)
        joints = tracking_law(make(servo.model, path, **options), where, servo.outputs)
        named = {
            name: dict(zip(servo.model.shape_names, value, strict=True))
            for name, value in options.items()
            if name in GAINS and isinstance(value, list)
        }
        return _with_given(joints, {**options, **named})
    try:
        law = make(servo, **options)
        outputs = None if getattr(law, "outputs", ()) else servo.outputs
        return _with_given(tracking_law(law, where, outputs), options)
    except Exception as error:
        file = str(getattr(sys.modules.get(make.__module__), "__file__", ""))
        if isinstance(error, ConcurError) and not _line(error, file):
            raise
        raise OutputError(
            f"{where}, `kind`",
            expected="a function of the servo and the other fields that returns a Law",
            came=_fault(error, file),
            cure="Correct the function, or the fields of [law].",
        ) from error


def gains_of_kind(
    kind: str | Callable[..., Any],
    servo: Servo,
    q: ArrayLike,
    stiffness: ArrayLike,
    damping: ArrayLike,
) -> dict[str, Any]:
    """Gains of a law of a kind whose errors decay like those of a servo, at one configuration.

    Those of a servo are accelerations per error. A passive servo has springs and dampers: times
    the mass or inertia m that each output coordinate moves, with the rate
    ``L = min(kp / (2 kd), kd / 2)`` they are ``m (kp - L (kd - L))`` and ``m (kd - L)``. All joints
    of a law in joint space have the gains of the output coordinate with the largest stiffness; of
    "pd" times the diagonal of the reduced mass matrix.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    servo : Servo
        Model and outputs.
    q : array_like
        Configuration at which masses are taken, shape (nq,).
    stiffness, damping : array_like
        Gains of a servo, one for each output coordinate, shape (size,), 1/s^2 and 1/s.

    Returns
    -------
    dict of str to any
        Options of the law.

    Raises
    ------
    SingularConfigurationError
        If the configuration is singular, for a passive servo.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> gains = [9.0] * 5, [6.0] * 5
    >>> cc.control.gains_of_kind("computed torque", task.servo, task.q0, *gains)
    {'stiffness': 9.0, 'damping': 6.0}
    >>> cc.control.gains_of_kind("passive", task.servo, task.q0, *gains)["rate"]
    [0.75, 0.75]
    """
    make = KINDS[kind] if isinstance(kind, str) else kind
    kp, kd = np.asarray(stiffness, float), np.asarray(damping, float)
    if make is Servo:
        return {"stiffness": _by_output(servo, kp), "damping": _by_output(servo, kd)}
    stiffest = int(np.argmax(kp))
    if make is ComputedTorque:
        return {"stiffness": float(kp[stiffest]), "damping": float(kd[stiffest])}
    mass = np.asarray(servo.model.mass_matrix(np.asarray(q, float)))
    if make is PD:
        moved = np.diag(mass)
        return {
            "stiffness": (kp[stiffest] * moved).tolist(),
            "damping": (kd[stiffest] * moved).tolist(),
        }
    q = np.asarray(q, float)
    if (margin := servo.margin(q)) < servo.singular_margin:
        raise singular_error(servo, q, margin)
    rows = np.asarray(servo.decoupling(q))
    moved = np.diag(np.linalg.inv(rows @ np.linalg.solve(mass, rows.T)))
    ends = np.cumsum([output.dim for output in servo.outputs])[:-1]
    rates = [part.min() for part in np.split(np.minimum(kp / (2 * kd), kd / 2), ends)]
    rate = np.repeat(rates, [output.dim for output in servo.outputs])
    return {
        "stiffness": _by_output(servo, moved * (kp - rate * (kd - rate))),
        "damping": _by_output(servo, moved * (kd - rate)),
        "rate": [float(one) for one in rates],
    }


def _by_output(servo: Servo, values: np.ndarray) -> list[list[float]]:
    """Numbers of all coordinates as a list for each output."""
    ends = np.cumsum([output.dim for output in servo.outputs])[:-1]
    return [part.tolist() for part in np.split(values, ends)]


def _usual_gains(
    make: Any, servo: Servo, options: Mapping[str, Any], q: ArrayLike
) -> dict[str, Any]:
    """Options with gains: without any, those of the servo."""
    if make is Servo:
        return {"stiffness": servo.stiffness, "damping": servo.damping} | dict(options)
    given = any(name in options for name in GAINS)
    if given and (make is not PassiveServo or {"stiffness", "damping"} <= options.keys()):
        return dict(options)
    gains = gains_of_kind(make, servo, q, np.diag(servo.stiffness), np.diag(servo.damping))
    if given:
        gains.pop("rate")
    return gains | dict(options)


def _with_given(law: TrackingLaw, options: Mapping[str, Any]) -> TrackingLaw:
    """The law, with the options that made it: its graph does not show them."""
    return replace(law, given=dict(options)) if isinstance(law, OwnLaw) else law


def _line(error: Exception, file: str) -> int:
    """Line of a user's file at which an error arose; 0 without one."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    lines = [step.lineno for step in extract_tb(error.__traceback__) if step.filename == file]
    return (lines[-1] if lines else None) or 0


def _fault(error: Exception, file: str) -> str:
    """What went wrong in a user's file, with the line."""
    text = str(error)
    if isinstance(error, RuntimeError):  # the last line of CasADi's has the reason
        text = re.sub(r"^\S+:\d+: ", "", text.rsplit("\n.../", 1)[-1])
    line = _line(error, file)
    place = f"line {line} of {file}: " if line else ""
    return " ".join(f"{place}{type(error).__name__}: {text}".split()).rstrip(".")


def executed(source: str, file: str) -> tuple[Mapping[str, Any], str]:
    """Execute a user's Python file.

    Parameters
    ----------
    source : str
        Text of the file.
    file : str
        Name of the file.

    Returns
    -------
    names : mapping of str to any
        What the file defines, as far as it was executed.
    fault : str
        Error with its line; empty without one.

    Examples
    --------
    >>> from concur.control import executed
    >>> names, fault = executed("mass = 2.0", "own.py")
    >>> names["mass"], fault
    (2.0, '')
    """
    module = ModuleType(f"user_{Path(file).stem}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # data classes look their module up
    try:
        exec(compile(source, file, "exec"), module.__dict__)
    except Exception as error:
        return module.__dict__, _fault(error, file)
    return module.__dict__, ""


def own_kind(source: str, file: str, name: str) -> Callable[..., Any]:
    """Function or class of a Python file that makes a law of a servo.

    The text is executed.

    Parameters
    ----------
    source : str
        Text of the file.
    file : str
        Name of the file, for errors.
    name : str
        Name in it.

    Returns
    -------
    callable
        From a servo and options to a `Law`.

    Raises
    ------
    OutputError
        If the text cannot be executed, or has no such function.

    Examples
    --------
    >>> import concur as cc
    >>> make = cc.control.own_kind("same = lambda servo: servo", "own.py", "same")
    >>> callable(make)
    True
    """
    names, came = executed(source, file)
    found: Any = names.get(name)
    if not callable(found):
        raise OutputError(
            file,
            expected=f"a Python file with a function or class `{name}`",
            came=came or f"no `{name}`",
            cure="It is called with the servo of the task and the other fields, and returns a Law.",
        )
    made: Callable[..., Any] = found
    return made
