"""Records of simulations as files: tables, logs for viewers, and pickles of one version."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur._version import __version__
from concur.errors import ConcurError, DescriptionError
from concur.files import replace_files, writing
from concur.mcap import Quantity, write_mcap
from concur.simulation._hdf5 import Columns

TOPICS = {
    "state": ("q", "v", "s"),
    "reference": ("pose", "reference", "error", "velocity_error"),
    "torque": ("u", "scale"),
}
"""Arrays of each topic of an MCAP file; all others belong to the topic `health`."""


HDF5 = (".h5", ".hdf5")
"""Suffixes of HDF5 files."""


class Stored:
    """A record with named columns, one row per time step."""

    t: np.ndarray

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
        return _written(path, text.getvalue().encode())

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

    def _by_suffix(self, path: str | PathLike[str]) -> Path | None:
        """Write the table or the log that the suffix of a file asks for; None for HDF5."""
        suffix = Path(path).suffix
        if suffix in HDF5:
            return None
        if suffix == ".csv":
            return self.to_csv(path)
        if suffix == ".mcap":
            return self.to_mcap(path)
        raise DescriptionError(
            str(path),
            expected=f"a name that ends with {', '.join(HDF5)}, .csv or .mcap",
            came=f"the suffix `{suffix}`" if suffix else "no suffix",
            cure="Write for example run.h5, the format that `load` reads.",
        )

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


def check_names(
    path: str | PathLike[str], facts: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    """Reject a file of another robot or law: compare attributes with those that they have."""
    for name, value in expected.items():
        if name not in facts or not np.array_equal(facts[name], value):
            found = facts[name].tolist() if hasattr(facts.get(name), "tolist") else facts.get(name)
            raise DescriptionError(
                f"{path}, attribute `{name}`",
                expected=f"{value}, as of the argument",
                came="no value" if name not in facts else f"{found}",
                cure="Pass the robot and the law with which the file was made.",
            )


def _written(path: str | PathLike[str], data: bytes) -> Path:
    target = Path(path)
    with writing(target.parent):
        replace_files({target: data})
    return target
