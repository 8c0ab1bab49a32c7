"""Records of simulations as files: HDF5, tables, logs for viewers, and pickles of one version."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from concur._version import __version__
from concur.errors import ConcurError, DescriptionError, shown
from concur.files import replace_files, writing
from concur.hdf5 import hdf5_file
from concur.mcap import Quantity, write_mcap
from concur.robot import Mechanism, control_velocities, coordinates
from concur.system import System

TOPICS = {
    "state": ("q", "v", "s"),
    "reference": ("pose", "reference", "error", "velocity_error"),
    "torque": ("u", "scale"),
}
"""Arrays of each topic of an MCAP file; all others belong to the topic `health`."""


STORED = {"acceleration_residual": "missed"}
"""Data sets with another name than their array."""

HDF5 = (".h5", ".hdf5")
"""Suffixes of HDF5 files."""


class Stored:
    """A record with arrays by name and named columns, one row per time step."""

    arrays: Mapping[str, np.ndarray]

    def __getattr__(self, name: str) -> np.ndarray:
        arrays = vars(self).get("arrays", {})
        if name in arrays:
            return np.asarray(arrays[name])
        raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`")

    def __repr__(self) -> str:
        return f"<{shown(str(self), 180)}>"

    @property
    def dt(self) -> float:
        """Step of the record, s; zero for one that holds its start only."""
        return float(self.t[1] - self.t[0]) if self.t.size > 1 else 0.0

    @property
    def energy_balance(self) -> np.ndarray:
        """Energy gained minus work done since the start, shape (k,), J; zero up to round-off."""
        return np.asarray(self.energy - self.energy[0] - self.work)

    def _arrays(self) -> Mapping[str, tuple[np.ndarray, Columns]]:
        """Arrays by name, with the name and unit of each column."""
        raise NotImplementedError

    def to_csv(self, path: str | PathLike[str]) -> Path:
        """Write the record as a table, one row per time step.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The file: comma-separated, numbers with all digits. The headings are array, column and
            unit, such as ``q.chassis.x [m]``.

        Raises
        ------
        ConcurError
            If the file cannot be written.
        """
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        arrays = self._rows()
        table.writerow(
            f"{name}{f'.{column}' * (len(columns) > 1 or column != name)} [{unit}]"
            for name, (_, columns) in arrays.items()
            for column, unit in columns
        )
        values = [values.reshape(len(self.t), -1) for values, _ in arrays.values()]
        table.writerows(np.hstack(values).tolist())
        target = Path(path)
        with writing(target.parent):
            replace_files({target: text.getvalue().encode()})
        return target

    def to_mcap(self, path: str | PathLike[str]) -> Path:
        """Write the record as an MCAP file for viewers of robot logs, with JSON messages.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The file: topics `/state`, `/reference`, `/torque` and `/health`, with one message per
            time step and the time of the simulation as time stamp. Numbers that are not finite are
            null.

        Raises
        ------
        ConcurError
            If the package `mcap` of the extra `rig` is missing, or the file cannot be written.
        """
        arrays = {name: entry for name, entry in self._rows().items() if name != "t"}
        known = {name for names in TOPICS.values() for name in names}
        groups = {**TOPICS, "health": tuple(name for name in arrays if name not in known)}
        topics = {
            topic: {name: Quantity(*arrays[name]) for name in names if name in arrays}
            for topic, names in groups.items()
        }
        stamps = [round(t * 1e9) for t in self.t.tolist()]
        return write_mcap(path, topics, stamps, range(len(stamps)))

    def save(
        self, path: str | PathLike[str], facts: Mapping[str, str | float] | None = None
    ) -> Path:
        """Write the record to an HDF5 file, or as `to_csv` and `to_mcap` do.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced. Its suffix is the format: ".h5" or ".hdf5",
            which `load` reads, ".csv" or ".mcap", which have no `facts`.
        facts : mapping of str to str or float, optional
            Further attributes of the file, such as the name of the task.

        Returns
        -------
        pathlib.Path
            The file. Each array is a dataset named as here, `acceleration_residual` as `missed`.
            One with several columns has their names and units in the attributes `columns` and
            `units`; `unit` lists the units that occur. Names of bodies, outputs (with groups and
            reference bodies) and controls, gains, reduction and momentum, method, step and package
            version are attributes of the file; of a system without bodies some of its numbers, by
            which `load` recognizes it. The texts `robot` of a run, a robot file in TOML, and
            `outputs`, in JSON, are read by `concur view`.

        Raises
        ------
        DescriptionError
            If the file cannot be written, or its suffix is another one.
        """
        suffix = Path(path).suffix
        if suffix == ".csv":
            return self.to_csv(path)
        if suffix == ".mcap":
            return self.to_mcap(path)
        if suffix not in HDF5:
            raise DescriptionError(
                str(path),
                expected=f"a name that ends with {', '.join(HDF5)}, .csv or .mcap",
                came=f"the suffix `{suffix}`" if suffix else "no suffix",
                cure="Write for example run.h5, the format that `load` reads.",
            )
        arrays = {STORED.get(name, name): entry for name, entry in self._arrays().items()}
        return write_arrays(path, arrays, {**self._facts(), **(facts or {})}, self._texts())

    def _facts(self) -> dict[str, Any]:
        """Attributes of the file."""
        raise NotImplementedError

    def _texts(self) -> dict[str, str]:
        """Data sets that are texts."""
        return {}

    def _rows(self) -> dict[str, tuple[np.ndarray, Columns]]:
        """Arrays with one row per time step."""
        every = self._arrays()
        return {name: entry for name, entry in every.items() if not name.endswith("_range")}

    def __getstate__(self) -> dict[str, Any]:
        """Fields and the version of the package."""
        return {**vars(self), "concur_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields; reject those of another version."""
        version = state.pop("concur_version", "none")
        if version != __version__:
            raise ConcurError(
                f"pickle of a {type(self).__name__}",
                expected=f"one of version {__version__} of concur",
                came=f"one of version {version}",
                cure="Save runs with `save`, whose files later versions read, or use the version "
                "that wrote it.",
            )
        vars(self).update(state)


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
        (f"{body.joint_label}.{name}", unit)
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
    with writing(path, error=DescriptionError, kind="file"):
        path.write_bytes(whole.getbuffer())
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


SAME = 1e-6
"""Largest relative difference of the numbers of equal systems: two builds of CasADi round apart."""


def identity(system: System, q: np.ndarray) -> dict[str, Any]:
    """Attributes that name a system in a file whose first configuration is q (nq,)."""
    if isinstance(system, Mechanism):
        return {"bodies": [body.name for body in system.bodies]}
    return {"velocities": list(system.freedom_names), "system": _numbers(system, q)}


def check_identity(
    path: str | PathLike[str],
    facts: Mapping[str, Any],
    system: System,
    q: np.ndarray,
    expected: Mapping[str, Any],
) -> None:
    """Reject a file of another system, or with other attributes than those expected."""
    own = identity(system, q)
    numbers = own.pop("system", None)
    wrong = {
        name: (f"{value}, as of the argument", shown(facts.get(name, "no value"), 1000))
        for name, value in {**own, **expected}.items()
        if name not in facts or not np.array_equal(facts[name], value)
    }
    if numbers is not None and not wrong:
        found = np.asarray(facts.get("system", ()), dtype=float)
        slack = SAME * (np.abs(numbers) + 1e-3 * np.abs(numbers).max())
        if found.shape != numbers.shape or not (np.abs(found - numbers) <= slack).all():
            due = f"energies, forces, constraints and inputs of `{system.name}`"
            wrong["system"] = due, "those of another system"
    for name, (due, came) in wrong.items():
        cure = "Pass the robot or system and the law with which the file was made."
        raise DescriptionError(f"{path}, attribute `{name}`", expected=due, came=came, cure=cure)


def _numbers(system: System, q: np.ndarray) -> np.ndarray:
    """Energies and forces of a motion near q, its velocities along constraints and inputs."""
    n = system.nv
    v, vdot = np.cos(np.arange(n)), np.sin(1.0 + np.arange(n))
    # Terms may vanish where a motion starts: at rest, or with all joints at zero.
    q = np.asarray(system.normalize(system.integrate(q, 0.3 * v)))
    parts = [
        system.kinetic_energy(q, v),
        system.potential_energy(q),
        system.inverse_dynamics(q, v, vdot),
        np.asarray(system.constraints(q)) @ v,
        np.asarray(control_velocities(system, q, np.eye(n))) @ v,
    ]
    return np.concatenate([np.ravel(part) for part in parts])
