"""Ends of steps: at a constant distance, and where the reference of a law is not smooth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CLOSE = 1e-6
"""Part of a step within which a knot is at its end."""


@dataclass(frozen=True)
class Grid:
    """Steps of integration from zero on.

    A formula of Runge has its order only where the right-hand side is smooth. So steps end at the
    knots of the reference, and take its values on their own side of a knot.

    Parameters
    ----------
    ends : numpy.ndarray
        Times of the start and of the ends of all steps, shape (n + 1,), s.
    lengths : numpy.ndarray
        Lengths of the steps, shape (n,), s.
    nodes : tuple of numpy.ndarray
        Times at which the reference is taken at the start, in the middle and at the end of each
        step, shape (n,), s.
    places : numpy.ndarray
        Where the whole steps begin and end among `ends`, shape (steps + 1,).
    """

    ends: np.ndarray
    lengths: np.ndarray
    nodes: tuple[np.ndarray, np.ndarray, np.ndarray]
    places: np.ndarray

    @classmethod
    def of(cls, steps: int, dt: float, knots: np.ndarray) -> Grid:
        """Divide steps of a length at knots.

        Parameters
        ----------
        steps : int
            Number of whole steps.
        dt : float
            Their length, s.
        knots : numpy.ndarray
            Times between which the reference is smooth, s.

        Returns
        -------
        Grid
            The steps.
        """
        halves = np.arange(2 * steps + 1) * (dt / 2)
        whole = halves[::2]
        inside = np.unique(knots[(knots > 0.0) & (knots < whole[-1])])
        off = np.abs(inside / dt - np.round(inside / dt)) > CLOSE
        apart = inside[off]
        apart = apart[np.diff(apart, append=np.inf) > CLOSE * dt]
        ends = np.concatenate([whole, apart])
        order = np.argsort(ends, kind="stable")
        ends, places = ends[order], np.argsort(order)[: steps + 1]
        lengths, middle = np.diff(ends), (ends[:-1] + ends[1:]) / 2
        undivided = np.flatnonzero(np.diff(places) == 1)
        lengths[places[undivided]], middle[places[undivided]] = dt, halves[1::2][undivided]
        begin, end = sides(ends, knots, CLOSE * dt)
        return cls(ends, lengths, (begin[:-1], middle, end[1:]), places)


def sides(times: np.ndarray, knots: np.ndarray, near: float) -> tuple[np.ndarray, np.ndarray]:
    """Times at which a reference has its values behind and before each time.

    Those near a knot move beyond it.
    """
    behind, before = times.copy(), times.copy()
    if len(knots):
        at = np.searchsorted(knots, times - near)
        last = np.searchsorted(knots, times + near, side="right") - 1
        close = at <= last
        after = np.nextafter(knots[np.clip(last, 0, None)], np.inf)
        ahead = np.nextafter(knots[np.minimum(at, len(knots) - 1)], -np.inf)
        behind[close] = np.maximum(times, after)[close]
        before[close] = np.minimum(times, ahead)[close]
    return behind, before
