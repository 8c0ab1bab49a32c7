"""Reader of the initial state of a task: written, or on the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le

from concur.control import Servo, Start
from concur.io._configuration import read_configuration
from concur.outputs import Output
from concur.outputs.references import Reference
from concur.simulation import FASTEST_START
from concur.tables import (
    Expected,
    NumberOrList,
    fault,
    is_number,
    located,
    one_of,
    refused,
    show,
    unknown,
)

ON_REFERENCE = "on reference"

Velocity = Annotated[
    float,
    Ge(-FASTEST_START),
    Le(FASTEST_START),
    Expected(f"a number within {FASTEST_START:g}"),
]


@dataclass(frozen=True)
class InitialTable:
    """The initial state, or where it is sought.

    Parameters
    ----------
    q : float or sequence of float, optional
        Configurations by body, m and rad: a number for a joint with one coordinate, else a list.
        Default: neutral.
    s : mapping, optional
        Shape velocities by name, m/s and rad/s; the base has none. Default: zero.
    start : str, optional
        The outputs start on their references, in pose and velocity; excludes `q` and `s`. Default:
        as written in `q` and `s`.
    near : float or sequence of float, optional
        With `start`: configurations by body, m and rad, near which the robot starts. Default:
        neutral.
    offset : float or sequence of float, optional
        With `start`: pose error at the start by output, m and rad: linear, then angular, as the
        group of the output has them. In R^n it is the reference minus the output. Default: zero.
    """

    q: Annotated[Mapping[str, NumberOrList], Expected("a table of bodies")] | None = None
    s: Annotated[Mapping[str, Velocity], Expected("a table of shape velocities")] | None = None
    start: Annotated[str, one_of((ON_REFERENCE,))] | None = None
    near: Annotated[Mapping[str, NumberOrList], Expected("a table of bodies")] | None = None
    offset: Annotated[Mapping[str, NumberOrList], Expected("a table of outputs")] | None = None

    def __post_init__(self) -> None:
        written, sought = ("q", "s"), ("near", "offset")
        wrong = [name for name in (written if self.start else sought) if getattr(self, name)]
        if not wrong:
            return
        name, start = wrong[0], f'start = "{ON_REFERENCE}"'
        expected = f"`q` and `s`, or {start} with `near` and `offset`"
        if self.start:
            cure = f"Remove `{name}`, or rename `q` to `near`."
            raise refused((name,), expected, f"`{name}` and `start`", cure)
        raise refused((name,), expected, f"`{name}` without `start`", f"Add {start}.")


def start_on_reference(
    table: InitialTable, servo: Servo, reference: Reference, path: str | PathLike[str]
) -> Start:
    """State on the reference at t = 0; an error names the file if there is no such state."""
    near = read_configuration(table.near or {}, servo.model.robot, path, "[initial.near]")
    offset = _offset(table.offset or {}, servo.outputs, path)
    with located(path, "[initial]", "start"):
        found = servo.start(reference, near, offset=offset)
        found.require(f"start of `{servo.name}`")
    return found


def _offset(
    table: Mapping[str, Any], outputs: Sequence[Output], path: str | PathLike[str]
) -> dict[str, np.ndarray]:
    sizes = {output.name: output.dim for output in outputs}
    for name, value in table.items():
        if name not in sizes:
            raise unknown(path, "[initial.offset]", name, "an output", name, sizes)
        if (1 if is_number(value) else len(value)) != sizes[name]:
            raise fault(
                path,
                "[initial.offset]",
                name,
                expected=f"{sizes[name]} numbers, m and rad",
                came=show(value),
                cure="Give as many numbers as the error of this output has coordinates.",
            )
    return {name: np.atleast_1d(np.array(value, dtype=float)) for name, value in table.items()}
