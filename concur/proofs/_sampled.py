"""Worst values of sampled worlds inside a statement, beside the bounds of its proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concur._polynomials import Floats
from concur.certify import Status
from concur.proofs._attack import TUBE, Attack, held_ticks
from concur.proofs._proof import TaskProof
from concur.proofs._provable import Provable
from concur.proofs._quantity import Quantity
from concur.results import Table, picked, plain

BLOCK = 64
"""Worlds whose record is kept at once."""

ROWS = 1000
"""Rows of a record at most."""

BEYOND = 1e-6
"""Share of a limit by which a counterexample exceeds it; errors of the integration are smaller."""


@dataclass(frozen=True)
class SampledBound:
    """A proved bound beside the worst values that were found.

    Parameters
    ----------
    quantity : Quantity
        The quantity.
    proved : float
        Its bound; NaN without one.
    limit : float or None
        Limit of the statement.
    sampled, ascended : float
        Worst value of drawn worlds, and of a search; NaN without one.
    """

    quantity: Quantity
    proved: float
    limit: float | None
    sampled: float
    ascended: float

    @property
    def found(self) -> float:
        """Worst value of both."""
        sign = self.quantity.sign
        return sign * float(np.fmax(sign * self.sampled, sign * self.ascended))

    @property
    def ratio(self) -> float:
        """Proved over found, or its inverse for lower bounds: 1 is tight. NaN for angles."""
        if self.quantity.kind.startswith("angle"):
            return np.nan
        return float((self.proved / self.found) ** self.quantity.sign)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Worst values of worlds inside a statement.

    Parameters
    ----------
    quantities : tuple of Quantity
        The quantities, n.
    worst : numpy.ndarray
        Worst value of each over worlds and time, shape (n,): the largest, or the least one where
        `sign` is -1. Tubes count in the second half of the task, where the starts have decayed.
    ascended : numpy.ndarray
        Worst value that a search by CMA-ES found, shape (n,); NaN without a search.
    times : numpy.ndarray
        Times of `envelope` and `runs`, shape (k,), s.
    envelope : numpy.ndarray
        Worst value over the worlds at each time, shape (n, k).
    runs : numpy.ndarray
        Values of some worlds over time, shape (m, n, k).
    excess : float
        Largest ratio of a distance from the declared motion to its proved radius at that time;
        NaN without a proof.
    worlds : int
        Number of worlds, those of searches included.
    stopped : int
        Number of worlds whose law or integration stopped.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.proofs import sample_statement
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.004)
    >>> found = sample_statement(task, 4)
    >>> found.envelope.shape == (len(found.quantities), found.times.size)
    True
    """

    quantities: tuple[Quantity, ...]
    worst: Floats
    ascended: Floats
    times: Floats
    envelope: Floats
    runs: Floats
    excess: float
    worlds: int
    stopped: int

    def against(self, proof: TaskProof) -> tuple[SampledBound, ...]:
        """Each quantity beside its bound in a proof, NaN without one, and its limit.

        Tubes are compared in the second half of the task.

        Parameters
        ----------
        proof : TaskProof
            Proof of the statement from which the worlds are drawn.

        Returns
        -------
        tuple of SampledBound
            One of each quantity.
        """
        bounds = {bound.quantity.key: bound.value for bound in proof.bounds}
        if bounds:
            half = len(proof.wall) // 2
            tubes = np.vstack([proof.x, proof.ve, proof.wall])[:, half:].max(axis=1)
            own = [made for made in self.quantities if made.kind.startswith(TUBE)]
            bounds |= {q.key: r for q, r in zip(own, tubes.tolist(), strict=True)}
        limits = proof.statement.limits
        return tuple(
            SampledBound(
                made,
                bounds.get(made.key, np.nan),
                limits.get(made.key),
                float(worst),
                float(ascended),
            )
            for made, worst, ascended in zip(
                self.quantities, self.worst, self.ascended, strict=True
            )
        )

    def outside(self, proof: TaskProof) -> tuple[str, ...]:
        """Sentences about bounds of a proof that a world breaks: the proof is wrong.

        Empty if all worlds keep them, or if the proof has no bounds.

        Parameters
        ----------
        proof : TaskProof
            Proof of the statement from which the worlds are drawn.

        Returns
        -------
        tuple of str
            One sentence for each broken bound.
        """
        broken = [
            f"{row.quantity.kind} {row.quantity.name} is {row.found:.6g} {row.quantity.unit} in a "
            f"world of the statement, beyond the bound {row.proved:.6g}"
            for row in self.against(proof)
            if row.quantity.sign * (row.found - row.proved) > 0.0
        ]
        if proof.bounds and self.excess > 1.0:
            broken.append(
                f"a world of the statement is {self.excess:.6g} times as far from the declared "
                "motion as its bound"
            )
        if proof.bounds and self.stopped:
            broken.append(f"{self.stopped} worlds of the statement stopped before the end")
        return tuple(broken)

    def refuted(self, proof: TaskProof) -> tuple[str, ...]:
        """Sentences about limits that a world of the statement breaks: the statement is false.

        Parameters
        ----------
        proof : TaskProof
            Proof of the statement from which the worlds are drawn.

        Returns
        -------
        tuple of str
            One sentence for each broken limit.
        """
        return tuple(
            f"{row.quantity.kind} {row.quantity.name} is {row.found:.4g} {row.quantity.unit} in a "
            f"world of the statement, limit {row.limit:.4g}"
            for row in self.against(proof)
            if row.limit is not None and row.quantity.sign * (row.found - row.limit) > 0.0
        )

    def judge(self, proof: TaskProof) -> TaskProof:
        """Give a proof the verdict of these worlds, if they refute its statement or contradict it.

        Parameters
        ----------
        proof : TaskProof
            Proof of the statement from which the worlds are drawn.

        Returns
        -------
        TaskProof
            REFUTED by a world beyond a limit, UNDECIDED if it was found and a world is beyond a
            bound; otherwise as it is.
        """
        refuted, outside = self.refuted(proof), self.outside(proof) if proof.found else ()
        if not refuted and not outside:
            return proof
        status = Status.REFUTED if refuted else Status.UNDECIDED
        return replace(proof, status=status, reason="; ".join(refuted or outside), cure="")

    def table(self, proof: TaskProof) -> Table:
        """Worst value of each quantity beside its bound.

        Parameters
        ----------
        proof : TaskProof
            Proof of the statement from which the worlds are drawn.

        Returns
        -------
        Table
            Quantities, worst values, bounds and ratios.
        """
        rows = []
        for row in self.against(proof):
            made = row.quantity
            values = (f"{x:.4g} {made.unit}".rstrip() for x in (row.found, row.proved))
            ratio = "" if np.isnan(row.ratio) else f"{row.ratio:.2f}"
            rows.append((f"{made.kind} {made.name}", *values, ratio))
        head = ("quantity", "worst", "bound", "ratio")
        return Table(f"Worst of {self.worlds} worlds", head, tuple(rows))

    def details(self, proof: TaskProof) -> dict[str, Any]:
        """Worst values beside the bounds, for JSON.

        Parameters
        ----------
        proof : TaskProof
            Proof of the statement from which the worlds are drawn.

        Returns
        -------
        dict
            Number of worlds, and quantities.
        """
        quantities = [
            picked(row.quantity, "kind", "name", "unit")
            | picked(row, "sampled", "ascended", "ratio")
            | {"bound": plain(row.proved)}
            for row in self.against(proof)
        ]
        return picked(self, "worlds", "stopped", "excess") | {"quantities": quantities}


def counterexample(task: Provable) -> str:
    """Limits that the declared motion itself breaks, with held torques and no other imperfection.

    Parameters
    ----------
    task : concur.io.Task
        A task with a table ``[proof]`` of a robot that the prover covers.

    Returns
    -------
    str
        Each quantity with its first value beyond the limit, and the time; empty if the motion
        keeps all limits, stops before the end, or has no whole number of held torques.
    """
    given = task.statement
    if given is None or not held_ticks(given, task.duration):
        return ""
    attack = Attack(task)
    limits = given.limits
    declared = np.zeros((1, attack.balls.size))

    def beyond(made: Quantity, values: Floats) -> np.ndarray:
        limit = limits.get(made.key, made.sign * np.inf)
        return made.sign * (values - limit) > BEYOND * min(abs(limit), 1e9)

    worst = attack(declared)[0][0]
    if not any(beyond(*pair) for pair in zip(attack.quantities, worst, strict=True)):
        return ""
    runs = attack(declared, 1)[2]
    assert runs is not None
    found = []
    for made, values in zip(attack.quantities, runs[0], strict=True):
        ticks = np.flatnonzero(beyond(made, values))
        if len(ticks):
            limit = limits[made.key]
            value = f"{values[ticks[0]]:.4g} {made.unit}".rstrip()
            time = ticks[0] * given.period
            found.append(f"{made.kind} {made.name} is {value} at {time:.4g} s, limit {limit:.4g}")
    return f"without any imperfection but held torques, {'; '.join(found)}"


def sample_statement(
    task: Provable,
    count: int,
    seed: int = 0,
    proof: TaskProof | None = None,
    search: int = 0,
    keep: int = 30,
    threads: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Sampled:
    """Simulate worlds inside the statement of a task, and search for the worst ones.

    Parameters
    ----------
    task : concur.io.Task
        A task with a table ``[proof]``.
    count : int
        Number of worlds that are drawn.
    seed : int
        Seed of draws and searches.
    proof : TaskProof, optional
        Proof of the task, with whose radii distances from the declared motion are compared.
    search : int
        Number of further worlds for each quantity, in which CMA-ES searches its worst value.
    keep : int
        Number of worlds that are kept over time, for figures.
    threads : int
        Threads that share the worlds.
    progress : callable, optional
        Called with the number of worlds that are done and that of all.

    Returns
    -------
    Sampled
        Worst values. No proof: a worse world may exist.

    Raises
    ------
    OutputError
        If the task has no statement with held torques, or is not covered.
    ConcurError
        If the package cmaes is missing and `search` is above zero.

    Notes
    -----
    Torque errors and pushes are constant up to a time at which they change their sign. Tubes are
    searched in the second half of the task, where the starts have decayed.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.proofs import sample_statement
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.004)
    >>> found = sample_statement(task, 4)
    >>> found.worlds, found.stopped
    (4, 0)
    """
    attack = Attack(task, proof, threads)
    signs = np.array([made.sign for made in attack.quantities])
    points = attack.balls.draw(np.random.default_rng([seed, 1]), count)
    stride = max(1, attack.ticks // ROWS)
    total = count + search * len(signs)
    envelope, parts, kept = np.full((len(signs), 1), -np.inf), [], []
    for at in range(0, count, BLOCK):
        values, excess, runs = attack(points[at : at + BLOCK], stride)
        parts.append((values, excess))
        if runs is not None:
            envelope = np.fmax(envelope, np.fmax.reduce(signs[:, None] * runs, axis=0))
            kept.append(runs[: max(0, keep - at)])
        if progress:
            progress(min(at + BLOCK, count), total)
    table = np.vstack([values for values, _ in parts])
    ascended = np.full(len(signs), np.nan)
    for k in range(len(signs) if search else 0):
        best = points[int(np.nanargmax(signs[k] * table[:, k]))]
        parts.append(attack.ascend(k, best, search, seed))
        ascended[k] = signs[k] * np.nanmax(signs[k] * parts[-1][0][:, k])
        if progress:
            progress(count + search * (k + 1), total)
    excess = np.concatenate([part for _, part in parts])
    return Sampled(
        attack.quantities,
        signs * np.fmax.reduce(signs * table, axis=0),
        ascended,
        np.asarray(np.arange(0, attack.ticks, stride) * attack.statement.period),
        signs[:, None] * envelope,
        np.concatenate(kept),
        float(np.fmax.reduce(excess)) if proof else np.nan,
        len(excess),
        int(np.isnan(excess).sum()),
    )
