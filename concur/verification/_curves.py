"""Curves of replayed worlds of a campaign, for its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from concur.errors import SimulationError
from concur.simulation import Run
from concur.verification._campaign import Campaign
from concur.verification._result import CampaignResult

if TYPE_CHECKING:
    from concur.certify import Certificate
    from concur.plotting import SampledCurves

_POINTS = 600


def sampled_curves(
    campaign: Campaign,
    result: CampaignResult,
    count: int = 12,
    certificate: Certificate | None = None,
) -> tuple[SampledCurves, ...]:
    """Replay worlds of a campaign: the worst one of each requirement, then the first ones.

    Parameters
    ----------
    campaign : Campaign
        The campaign.
    result : CampaignResult
        Its samples.
    count : int
        Number of worlds; more if there are more requirements.
    certificate : Certificate, optional
        Proved certificate of the task's law. Its norm is drawn with its bound.

    Returns
    -------
    tuple of SampledCurves
        Errors of each output by unit, and the norm of the certificate over its value at the start.

    Notes
    -----
    The bound exp(-rate t) of a certificate is proved for the loop of the exact model, without
    imperfections and with the continuous law. Sampled worlds may exceed it.
    """
    from concur.plotting import SampledCurves

    rows = _rows(result, count)
    runs = [_replayed(campaign, result, row) for row in rows]
    if not runs:
        return ()
    passed = result.passed[rows]
    longest = max(runs, key=lambda run: len(run.t))
    stride = max(1, len(longest.t) // _POINTS)
    t = longest.t[::stride]

    def aligned(values_of: Callable[[Run], Any]) -> np.ndarray:
        values = np.full((len(runs), len(t)), np.nan)
        for row, run in enumerate(runs):
            own = np.asarray(values_of(run), dtype=float)
            values[row, : len(own)] = own
        return values

    curves = [
        SampledCurves(
            f"error of {name}",
            unit,
            t,
            aligned(lambda run, part=part: run.error_parts[part][2][::stride]),  # type: ignore[misc]
            passed,
            _limit(campaign, name, t),
            "required",
        )
        for part, (name, unit, _) in enumerate(longest.error_parts)
    ]
    if certificate is not None and certificate.rate > 0.0:
        curves.append(
            SampledCurves(
                "norm of the certificate over its start",
                "1",
                t,
                aligned(lambda run: _norms(certificate, run, stride)),
                passed,
                np.exp(-certificate.rate * (t - t[0])),
                "proved for the exact model",
            )
        )
    return tuple(curves)


def _rows(result: CampaignResult, count: int) -> list[int]:
    """Rows of the worlds to replay, without those that crashed."""
    sound = np.flatnonzero(~result.crashed)
    worst = sound[np.argmin(result.robustness[sound], axis=0)] if len(sound) else sound
    chosen = list(dict.fromkeys(worst.tolist()))
    others = [row for row in sound.tolist() if row not in chosen]
    return chosen + others[: max(0, count - len(chosen))]


def _limit(campaign: Campaign, name: str, t: np.ndarray) -> np.ndarray | None:
    """Narrowest required bound of an error over time, NaN where there is no requirement."""
    signal, bound = "error:" + name.replace(", ", ":"), np.full(len(t), np.inf)
    for requirement in campaign.task.requirements:
        for other, _, high in requirement.bounds:
            if other == signal:
                bound[t >= requirement.after] = np.minimum(bound[t >= requirement.after], high)
    bound[np.isinf(bound)] = np.nan
    return None if np.isnan(bound).all() else bound


def _replayed(campaign: Campaign, result: CampaignResult, row: int) -> Run:
    try:
        return campaign.replay(result.worlds[row], int(result.numbers[row]))
    except SimulationError as stopped:
        part: Run | None = stopped.data.get("run")
        if part is None:
            raise
        return part


def _norms(certificate: Certificate, run: Run, stride: int) -> list[float]:
    errors = zip(run.error[::stride], run.velocity_error[::stride], strict=True)
    norms = [certificate.norm(x, ve) for x, ve in errors]
    return [norm / norms[0] for norm in norms] if norms[0] > 0.0 else norms
