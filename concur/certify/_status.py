"""The statuses of a claim."""

from __future__ import annotations

from enum import Enum

ESTIMATE = "estimate, not proved"
"""Label of every number from samples, in texts, tables and JSON."""


class Status(Enum):
    """Outcome of a claim about the error dynamics; the values are sentences.

    The claim is about the numbers as stored: every ``float64`` counts as the exact number that
    it is.

    Examples
    --------
    >>> import concur as cc
    >>> [status.name for status in cc.Status]
    ['PROVED', 'UNVERIFIED', 'REFUTED', 'UNDECIDED']
    """

    PROVED = "The claim is a theorem: it was proved with exact or outward rounded arithmetic."
    UNVERIFIED = "The prover found a proof; the independent checker has not verified it yet."
    REFUTED = "The claim is false: a counterexample was found and checked again."
    UNDECIDED = "The claim was neither proved nor refuted; it may be true."
