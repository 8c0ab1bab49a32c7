"""A momentum that is not the one the servo assumes: what it does, and what to do about it."""

from __future__ import annotations

from typing import Any

from concur.control import MomentumMismatch
from concur.simulation import Run

NOTICED = 1e-9
"""Relative difference of the momenta from which on it is told."""


def felt_mismatch(run: Run) -> MomentumMismatch | None:
    """Difference between the momentum that the servo assumes and the one at the start.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    MomentumMismatch or None
        None where there is no difference or the law does not use its momentum.
    """
    found = run.mismatch
    return found if found is not None and found.used and found.relative > NOTICED else None


def mismatch_text(run: Run, found: MomentumMismatch) -> str:
    """Say what the difference does to the law, and the cure.

    Parameters
    ----------
    run : Run
        The run.
    found : MomentumMismatch
        The difference.

    Returns
    -------
    str
        Several lines.
    """
    return f"{found}\n{_cure(run)}"


def mismatch_dict(run: Run, found: MomentumMismatch | None) -> dict[str, Any] | None:
    """Give the difference for JSON.

    Parameters
    ----------
    run : Run
        The run.
    found : MomentumMismatch or None
        The difference, if there is one.

    Returns
    -------
    dict or None
        Momenta, what their difference does to the velocity, acceleration and place of each output
        coordinate, and the cure.
    """
    if found is None:
        return None
    return {
        "assumed": found.assumed.tolist(),
        "measured": found.measured.tolist(),
        "relative": found.relative,
        "base_velocity": found.base_velocity.tolist(),
        "coordinates": list(found.coordinate_names),
        "units": list(found.coordinate_units),
        "output_velocity": found.output_velocity.tolist(),
        "disturbance": found.disturbance.tolist(),
        "offset": found.offset.tolist(),
        "cure": _cure(run),
    }


def _cure(run: Run) -> str:
    # With other inertias the momentum is the stated one, only not to the servo.
    wrong = "the robot's masses and places" if run.plant_differences else "the task's `momentum`"
    return (
        "Write `measured = true` in [servo], so that the law takes the measured velocity of the "
        f"base, or correct {wrong}."
    )
