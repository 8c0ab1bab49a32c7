"""Data of a run for a viewer, from a `Run` or from the file of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from concur.robot import Mechanism
from concur.show._drawing import on_bodies
from concur.show._outputs import few
from concur.show.style import Floats
from concur.simulation import Run
from concur.stored import Recorded

POINTS = 400
"""Number of points of a curve and of a path."""

FILMED = ("pose", "reference", "error", "u", "margin")
"""Arrays of a run that a viewer shows."""

Columns = tuple[Floats, Sequence[tuple[str, str]]]
"""Values, shape (k, n), with name and unit of each column."""


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
        return cls(run.robot, on_bodies(outputs), arrays["t"], arrays["q"], values)

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

    @cached_property
    def instants(self) -> Any:
        """Indices of at most `POINTS` rows, evenly spaced."""
        return few(self, POINTS)

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

    def panels(self) -> dict[str, tuple[list[str], Floats, list[bool]]]:
        """Curves by title: names, values (k, n), and whether each is a reference."""
        error, columns = self.values["error"]
        found: dict[str, tuple[list[str], Floats, list[bool]]] = {}
        found["Tracking error (mm, mrad)"] = [n for n, _ in columns], 1e3 * error, []
        for name, title in (("pose", "Outputs"), ("u", "Torques and forces"), ("margin", "Margin")):
            array, columns = self.values[name]
            for unit in dict.fromkeys(unit for _, unit in columns):
                part = [k for k, (_, own) in enumerate(columns) if own == unit]
                names, values = [columns[k][0] for k in part], array[:, part]
                dashed = [False] * len(part)
                if name == "pose":
                    names, dashed = [*names, *names], [*dashed, *[True] * len(part)]
                    values = np.hstack([values, self.values["reference"][0][:, part]])
                found[_title(title, unit)] = (names, values, dashed)
        return found

    def _placed(self, name: str) -> Floats:
        """Columns of the outputs on bodies; an output that is a function has no place."""
        array, columns = self.values[name]
        names = {output.name for output in self.outputs}
        return array[:, [k for k, (n, _) in enumerate(columns) if n.rpartition(".")[0] in names]]


def _title(title: str, unit: str) -> str:
    words = {
        ("Outputs", "1"): "Outputs, quaternions (1)",
        ("Torques and forces", "N m"): "Torques (N m)",
        ("Torques and forces", "N"): "Forces (N)",
        ("Margin", "1"): "Decoupling margin (1)",
    }
    return words.get((title, unit), f"{title} ({unit})")
