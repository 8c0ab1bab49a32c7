"""Data of a run for a viewer, from a `Run` or from the file of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.robot import Mechanism
from concur.show._drawing import on_bodies
from concur.show._scenery import scenery
from concur.show.style import Floats
from concur.simulation import Run
from concur.stored import Recorded, read_recorded

POINTS = 400
"""Number of points of a curve and of a path."""

FILMED = ("pose", "reference", "error", "u", "margin")
"""Arrays of a run that a viewer shows."""

Columns = tuple[Floats, Sequence[tuple[str, str]]]
"""Values, shape (k, n), with name and unit of each column."""

_TITLES = {
    ("pose", "1"): "Outputs, quaternions (1)",
    ("u", "N m"): "Torques (N m)",
    ("u", "N"): "Forces (N)",
    ("margin", "1"): "Decoupling margin (1)",
}


@dataclass(frozen=True, eq=False)
class Film:
    """The motion of a run and the values that are drawn over its time.

    Parameters
    ----------
    robot : Mechanism
        The robot that moved.
    outputs : sequence of Output
        Its outputs on bodies.
    t, q : ndarray
        Times, shape (k,), s, and configurations, shape (k, nq).
    values : mapping of str to (ndarray, sequence of (str, str))
        By each name of `FILMED` the array of a `Run`, shape (k, n), with name and unit of each
        column.
    """

    robot: Mechanism
    outputs: Sequence[Any]
    t: Floats
    q: Floats
    values: Mapping[str, Columns]

    @classmethod
    def of(cls, run: Run | Recorded) -> Film:
        """The film of a run.

        Parameters
        ----------
        run : Run or Recorded
            A run, or what was read of its file.

        Returns
        -------
        Film
            Its film.
        """
        outputs = run.servo.outputs if isinstance(run, Run) else run.outputs
        arrays, columns = run.arrays, run.columns
        values = {
            name: (arrays[name].reshape(len(arrays["t"]), -1), columns[name]) for name in FILMED
        }
        return cls(scenery(run.robot), on_bodies(outputs), arrays["t"], arrays["q"], values)

    @classmethod
    def read(cls, name: str) -> Film:
        """The film of a recorded run.

        Parameters
        ----------
        name : str
            File of the run, or the folder of its results.

        Returns
        -------
        Film
            Its film.

        Raises
        ------
        DescriptionError
            If the file cannot be read, or is that of another result.
        """
        return cls.of(read_recorded(name, ("t", "q", *FILMED)))

    @property
    def pose(self) -> Floats:
        """Flat coordinates of the outputs, shape (k, pose_size)."""
        return self._placed("pose")

    @property
    def reference(self) -> Floats:
        """Flat reference coordinates, shape (k, pose_size)."""
        return self._placed("reference")

    @property
    def servo(self) -> Film:
        """Owner of the outputs, as the figures of a run expect it."""
        return self

    def row(self, time: float) -> int:
        """Index of the row nearest to a time.

        Parameters
        ----------
        time : float
            Time, s; before the start and after the end the first and the last row.

        Returns
        -------
        int
            The index.
        """
        return int(np.searchsorted((self.t[1:] + self.t[:-1]) / 2, time))

    def curves(self) -> Iterator[tuple[str, str, Floats, bool]]:
        """Curves over time: title of the plot, name, values (k,), and whether it is a reference.

        Yields
        ------
        tuple of (str, str, ndarray, bool)
            One curve.
        """
        for name in ("error", "pose", "reference", "u", "margin"):
            array, columns = self.values[name]
            kind = "pose" if name == "reference" else name
            for (label, unit), values in zip(columns, array.T, strict=True):
                words = {"pose": "Outputs", "u": "Controls", "margin": "Margin"}.get(kind, "")
                title = _TITLES.get((kind, unit), f"{words} ({unit})")
                if name == "error":
                    title, values = "Tracking error (mm, mrad)", 1e3 * values
                yield title, label, values, name == "reference"

    def _placed(self, name: str) -> Floats:
        """Columns of the outputs on bodies; an output that is a function has no place."""
        array, columns = self.values[name]
        names = {output.name for output in self.outputs}
        return array[:, [k for k, (n, _) in enumerate(columns) if n.rpartition(".")[0] in names]]
