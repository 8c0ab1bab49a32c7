"""Exports of a law: as C, or as a co-simulation unit (FMU)."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import symbols_of, zero_unless_finite
from concur.control import SPEED_LIMIT, CFolder, TickStatus, TrackingLaw
from concur.errors import ConcurError, UnknownNameError
from concur.export._c import export_c
from concur.export._fmu import FmuModel, sentence, write_fmu
from concur.export._signals import exported_tick, law_signals, status_meaning
from concur.export._templates import plain_text
from concur.files import folder_named
from concur.outputs import Reference, ReferenceSample, reference_for

TARGETS = ("c", "fmu")
"""Targets of an export."""


def export_law(
    law: TrackingLaw,
    directory: str | PathLike[str],
    target: str = "c",
    name: str | None = None,
    precision: str = "double",
    speed_limit: ArrayLike = SPEED_LIMIT,
    fmi: str = "3.0",
    reference: Reference | Callable[[float], ReferenceSample] | None = None,
) -> CFolder | Path:
    """Write a law for a controller or another tool.

    Parameters
    ----------
    law : TrackingLaw
        The law.
    directory : path
        Folder of the files.
    target : str
        "c" or "fmu".
    name : str, optional
        Prefix of all names in the code, or name of a unit.
    precision : str
        "double" or "single", of C.
    speed_limit : float or array_like
        Velocity above which C refuses a state, m/s or rad/s.
    fmi : str
        Version of FMI of a unit.
    reference : Reference, optional
        Reference inside the law, with a graph.

    Returns
    -------
    CFolder or pathlib.Path
        The folder, or the archive of a unit.

    Raises
    ------
    UnknownNameError
        If there is no such target.
    ConcurError
        If an option is out of range, the law cannot be exported, or the files cannot be written.
    """
    where = f"export of `{law.name}`"
    if target not in TARGETS:
        raise UnknownNameError(
            f"{where}, `target`",
            expected=" or ".join(f'"{known}"' for known in TARGETS),
            came=repr(target),
            cure='Write for example servo.export("out", target="c").',
            name=target,
        )
    given = {"fmi": fmi, "precision": precision, "speed_limit": speed_limit}
    # FMUs compute in double precision and accept all speeds.
    unused: dict[str, Any] = {"precision": "double", "speed_limit": SPEED_LIMIT}
    if target == "c":
        unused = {"fmi": "3.0"}
    folder = folder_named(directory, where)
    demand = None if reference is None else reference_for(reference, law.outputs, where)
    for option, only in unused.items():
        if not np.array_equal(given[option], only):
            other = "fmu" if target == "c" else "c"
            raise ConcurError(
                f"{where}, `{option}`",
                expected=f'{only!r} for the target "{target}"',
                came=repr(given[option]),
                cure=f'Leave it out, or export to the target "{other}".',
            )
    if target == "fmu":
        return write_fmu(law_fmu(law, name, demand), folder, fmi)
    return export_c(law, folder, name, precision, speed_limit, demand)


def law_fmu(
    law: TrackingLaw, name: str | None = None, reference: Reference | None = None
) -> FmuModel:
    """Describe a law as an FMU for co-simulation.

    It has no state but that of its law, such as an integral, z among its outputs, which each
    communication step advances by its length: the outputs follow from inputs and z at once, but for
    the status, which also compares a step with the one before. Inputs are q, s, pose, twist,
    acceleration and, where the model rests on one, momentum; with a reference inside, the time t in
    place of pose, twist and acceleration. Outputs are u, pivot, missed, scale, status, a
    `TickStatus`, and z.
    """
    tick, known = exported_tick(law, reference), law_signals(law)
    *taken, before = tick.name_in()
    names = [own for own in taken if own != "period"] + tick.name_out()[:-1]
    followed = ", ".join(f"{output.name} ({output.group})" for output in law.outputs)
    return FmuModel(
        name=name or f"{law.name}_servo",
        description=plain_text(
            f"Law of {law.name}: controls that let {followed or 'the robot'} follow a reference."
        ),
        signals=[known[own] for own in (*names, "z") if own in known],
        outputs=_finite(tick),
        memory=tick.size1_in(before),
        remembered="z" if law.nz else "",
        longest_step=law.state_bounds.period if law.nz else 0.0,
        messages=tuple(sentence(status_meaning(law, code)) for code in TickStatus),
    )


def _finite(tick: ca.Function) -> ca.Function:
    """The tick, with zeros in place of non-finite values, which make other tools stop."""
    names_in, names_out, inputs = tick.name_in(), tick.name_out(), symbols_of(tick)
    results = dict(zip(names_out, tick.call(inputs), strict=True))
    for name in [name for name in names_out if name in ("pivot", "missed", "scale")]:
        x = ca.SX.sym("x", tick.size1_out(name))
        results[name] = ca.Function("finite", [x], [zero_unless_finite(x)])(results[name])
    return ca.Function("outputs", inputs, list(results.values()), names_in, names_out)
