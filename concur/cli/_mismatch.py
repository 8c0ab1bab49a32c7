"""Effect and remedy of a momentum that differs from the one the servo assumes."""

from __future__ import annotations

from typing import Any

from concur.control import MomentumMismatch
from concur.simulation import Run

NOTICED = 1e-9
"""Relative difference of the momenta above which it is reported."""


def felt_mismatch(run: Run) -> MomentumMismatch | None:
    """Difference of the assumed momentum and that at the start; None if it has no effect."""
    found = run.mismatch
    return found if found is not None and found.used and found.relative > NOTICED else None


def mismatch_text(run: Run, found: MomentumMismatch) -> str:
    """Text about the effect of the difference on the law, and the remedy."""
    return f"{found}\n{_cure(run)}"


def mismatch_dict(run: Run, found: MomentumMismatch | None) -> dict[str, Any] | None:
    """The difference, its effect on each output coordinate, and the remedy, for JSON."""
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
    # With other inertias the momentum is as stated; only the servo computes another one.
    wrong = "the robot's masses and lengths" if run.plant_differences else "the task's `momentum`"
    return (
        "Write `use_measured_velocity = true` in [servo], so that the law uses the measured "
        f"velocity of the base, or correct {wrong}."
    )
