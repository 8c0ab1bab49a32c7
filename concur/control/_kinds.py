"""Laws by name: the one list of kinds that tasks and commands choose from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from numpy.typing import ArrayLike

from concur.control._own_law import tracking_law
from concur.control._passive import PassiveServo
from concur.control._servo import Servo
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
        Further arguments of the law. Those of "pd" and "computed torque" contain the gains of the
        joints.
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
    if make in (Servo, PassiveServo):
        gains = {"stiffness": servo.stiffness, "damping": servo.damping}
        made: TrackingLaw = make(servo.model, servo.outputs, **gains | dict(options))
        return made
    if make in (PD, ComputedTorque):
        path = joint_reference(servo, *motion)
        return tracking_law(make(servo.model, path, **options), where, servo.outputs)
    try:
        law = make(servo, **options)
    except ConcurError:
        raise
    except Exception as error:
        raise OutputError(
            f"{where}, `kind`",
            expected="a function of the servo and the other fields that returns a Law",
            came=f"{type(error).__name__}: {error}".splitlines()[0],
            cure="Correct the function, or the fields of [law].",
        ) from error
    return tracking_law(law, where, None if getattr(law, "outputs", ()) else servo.outputs)


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
    module = ModuleType(f"law_{Path(file).stem}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # data classes look their module up
    came = f"no `{name}`"
    try:
        exec(compile(source, file, "exec"), module.__dict__)
    except Exception as error:
        came = f"{type(error).__name__}: {error}".splitlines()[0]
    found: Any = module.__dict__.get(name)
    if not callable(found):
        raise OutputError(
            file,
            expected=f"a Python file with a function or class `{name}`",
            came=came,
            cure="It is called with the servo of the task and the other fields, and returns a Law.",
        )
    made: Callable[..., Any] = found
    return made
