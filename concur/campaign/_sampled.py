"""Curves of sampled runs over time, with required and proved bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.errors import ShapeError


@dataclass(frozen=True, eq=False)
class CurveBound:
    """Bound of sampled curves: a requirement, or a bound that holds under assumptions.

    Parameters
    ----------
    name : str
        Name of the bound in the legend.
    values : float or array_like
        Bound, a number or shape (k,); NaN at times without one.
    assumption : str
        Assumptions under which the bound is proved; empty for a requirement.
    kept : array_like, optional
        Whether each run keeps the assumptions, shape (r,); None for a requirement.
    """

    name: str
    values: ArrayLike
    assumption: str = ""
    kept: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class SampledCurves:
    """Curves of sampled runs over time, such as tracking errors, with bounds if there are some.

    Parameters
    ----------
    name, unit : str
        Quantity and its unit.
    t : array_like
        Times, shape (k,), s.
    values : array_like
        A row for each run, shape (r, k); NaN after the end of a run that stopped early.
    passed : array_like, optional
        Whether each run passed, shape (r,).
    bounds : sequence of CurveBound
        Limits, and bounds that `concur.certify` has proved.
    note : str
        Second line of the title, such as why there is no bound.
    log : bool
        Whether the vertical axis is logarithmic.

    Raises
    ------
    ShapeError
        If the arrays do not fit together.

    Examples
    --------
    >>> from concur.campaign import SampledCurves
    >>> curves = SampledCurves("error of hand", "m", [0.0, 1.0], [[0.2, 0.01], [0.2, 0.05]])
    >>> curves.values.shape
    (2, 2)
    """

    name: str
    unit: str
    t: ArrayLike
    values: ArrayLike
    passed: ArrayLike | None = None
    bounds: Sequence[CurveBound] = ()
    note: str = ""
    log: bool = True

    def __post_init__(self) -> None:
        t, values = np.asarray(self.t, dtype=float), np.asarray(self.values, dtype=float)
        runs = len(values) if values.ndim == 2 else 0
        passed = np.ones(runs, bool) if self.passed is None else np.asarray(self.passed, bool)
        shapes = [t.shape, values.shape, passed.shape]
        fits = t.ndim == 1 and shapes[1:] == [(runs, len(t)), (runs,)]
        for bound in self.bounds:
            kept = passed if bound.kept is None else bound.kept
            shapes += [np.shape(bound.values), np.shape(kept)]
            fits &= shapes[-2] in ((), t.shape) and shapes[-1] == (runs,)
        if not fits:
            raise ShapeError(
                f"sampled curves of {self.name}",
                expected="times (k,), values (r, k), passed (r,), bounds () or (k,), kept (r,)",
                came=f"shapes {', '.join(map(str, shapes))}",
                cure="Pass a row for each run and a column for each time.",
            )
        for name, array in (("t", t), ("values", values), ("passed", passed)):
            object.__setattr__(self, name, array)

    def counts(self, bound: CurveBound) -> tuple[int, int, int]:
        """Count the runs that exceed a bound, and those that leave its assumptions.

        Parameters
        ----------
        bound : CurveBound
            One of `bounds`.

        Returns
        -------
        above, beyond, contrary : int
            Runs above the bound at some time; runs that leave its assumptions; runs above it that
            keep its assumptions, which contradict a proof.
        """
        higher = np.asarray(self.values) > np.asarray(bound.values, dtype=float)
        above: np.ndarray = np.any(higher, axis=1)
        kept = np.ones_like(above) if bound.kept is None else np.asarray(bound.kept, bool)
        contrary = np.sum(above & kept) if bound.assumption else 0
        return int(above.sum()), int(np.sum(~kept)), int(contrary)

    def as_dict(self) -> dict[str, Any]:
        """Numbers for JSON, in SI units.

        Returns
        -------
        dict
            Name, unit, runs, the largest value, and each bound with its counts.
        """
        bounds = []
        for bound in self.bounds:
            above, beyond, contrary = self.counts(bound)
            shown: dict[str, Any] = {"assumption": None, "runs_beyond_assumption": None}
            if bound.assumption:
                shown = {"assumption": bound.assumption, "runs_beyond_assumption": beyond}
            shown |= {"runs_above": above, "runs_above_within_assumption": contrary}
            ends = {
                "largest": _largest(bound.values),
                "last": _largest(np.ravel(bound.values)[-1:]),
            }
            bounds.append({"name": bound.name} | ends | shown)
        return {
            "name": self.name,
            "unit": self.unit,
            "runs": len(np.asarray(self.values)),
            "largest": _largest(self.values),
            "note": self.note,
            "bounds": bounds,
        }


def _largest(values: ArrayLike) -> float | None:
    """Largest finite value; None without one."""
    found = np.asarray(values, dtype=float)
    found = found[np.isfinite(found)]
    return float(found.max()) if found.size else None
