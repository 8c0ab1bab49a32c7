"""Arrays with the names and units of their columns, in an HDF5 file."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from concur.errors import ConcurError, DescriptionError, shown
from concur.hdf5 import hdf5_file
from concur.robot import Mechanism, coordinates
from concur.system import System

Columns: TypeAlias = Sequence[tuple[str, str]]
"""Name and unit of each column of an array."""

MOMENTUM_COLUMNS: Columns = [(f"p{axis}", "kg m/s") for axis in "xyz"] + [
    (f"l{axis}", "kg m^2/s") for axis in "xyz"
]


def coordinate_columns(robot: System) -> list[tuple[str, str]]:
    """Name and unit of each configuration coordinate.

    Parameters
    ----------
    robot : System
        The robot, or another system.

    Returns
    -------
    list of tuple of str
        One pair for each entry of q.
    """
    if not isinstance(robot, Mechanism):
        return coordinates(robot)
    return [
        (f"{body.name}.{name}", unit)
        for body in robot.bodies
        for name, unit in zip(body.joint.coordinate_names, body.joint.coordinate_units, strict=True)
    ]


def velocity_columns(robot: System) -> list[tuple[str, str]]:
    """Name and unit of each velocity.

    Parameters
    ----------
    robot : System
        The robot, or another system.

    Returns
    -------
    list of tuple of str
        One pair for each entry of v. Velocities of a system without bodies have the units in which
        their forces do work: "rad/s" for "N m", else "m/s" for "N", else such as "W/(N s)".
    """
    rates = [f"W/({unit})" for unit in robot.effort_units]
    if isinstance(robot, Mechanism):
        rates = [f"{unit}/s" for body in robot.bodies for unit in body.joint.freedom_units]
    rates = [{"W/(N)": "m/s", "W/(N m)": "rad/s"}.get(rate, rate) for rate in rates]
    return list(zip(robot.freedom_names, rates, strict=True))


def write_arrays(
    path: str | PathLike[str],
    arrays: Mapping[str, tuple[np.ndarray, Columns]],
    facts: Mapping[str, Any],
    texts: Mapping[str, str] | None = None,
) -> Path:
    """Write arrays to a file.

    Parameters
    ----------
    path : str or path-like
        File to write; an existing one is replaced.
    arrays : mapping of str to (numpy.ndarray, Columns)
        Datasets by name. One with several columns has their names and units in the attributes
        `columns` and `units`; `unit` lists the units that occur.
    facts : mapping of str to any
        Attributes of the file.
    texts : mapping of str to str, optional
        Datasets that are texts, by name.

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    DescriptionError
        If the file cannot be written.
    """
    import h5py

    path = Path(path)
    # In memory first: the library does not report a full disk reliably.
    whole = io.BytesIO()
    with h5py.File(whole, "w") as file:
        for name, (values, columns) in arrays.items():
            data = file.create_dataset(name, data=values, compression="gzip", compression_opts=1)
            data.attrs["unit"] = ", ".join(dict.fromkeys(unit for _, unit in columns))
            if values.ndim > 1:
                data.attrs["columns"] = [name for name, _ in columns]
                data.attrs["units"] = [unit for _, unit in columns]
        for name, text in (texts or {}).items():
            file.create_dataset(name, data=text)
        for name, value in facts.items():
            file.attrs[name] = value
    try:
        path.write_bytes(whole.getbuffer())
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def read_arrays(
    path: str | PathLike[str], names: Mapping[str, int | None], kinds: Mapping[str, type]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read arrays of a file, and its attributes.

    Parameters
    ----------
    path : str or path-like
        The file.
    names : mapping of str to int or None
        Number of columns of each dataset, None for one number per row.
    kinds : mapping of str to type
        Types of the attributes that the file must have: `float` or `str`.

    Returns
    -------
    arrays : dict of str to numpy.ndarray
        The arrays, read-only.
    facts : dict of str to any
        Attributes of the file; those of `kinds` with this type.

    Raises
    ------
    DescriptionError
        If there is no such file, or it lacks a dataset of this shape or an attribute of this type.
    """
    file = Path(path)
    cure = "Name a file that `save` has written, such as run.h5 of `concur track`."
    expected = f"the datasets {', '.join(names)} and the attributes {', '.join(kinds)}"
    with hdf5_file(file, expected, cure) as opened:
        facts = opened.attributes()
        arrays = opened.table(names)
        try:
            facts |= {name: kind(facts[name]) for name, kind in kinds.items()}
        except (KeyError, TypeError, ValueError) as problem:
            opened.refuse(f"another file ({shown(str(problem), 100)})")
    return arrays, facts


def _unwritable(path: Path, error: OSError) -> ConcurError:
    return DescriptionError(
        str(path),
        expected="a file that can be written",
        came=error.strerror or str(error),
        cure="Create the folder, free some space, or name another file.",
    )
