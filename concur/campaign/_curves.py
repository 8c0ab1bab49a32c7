"""Curves of replayed worlds of a campaign, for its report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from concur.campaign._campaign import Campaign
from concur.campaign._proved import torque_bounds, tube_bounds
from concur.campaign._result import CampaignResult
from concur.campaign._sampled import CurveBound, SampledCurves
from concur.errors import SimulationError
from concur.simulation import Run

if TYPE_CHECKING:
    from concur.certify import Certificate, OperatingCertificate

_POINTS = 600


def sampled_curves(
    campaign: Campaign,
    result: CampaignResult,
    count: int = 12,
    certificate: Certificate | None = None,
    disturbance: float | None = None,
    operating: OperatingCertificate | None = None,
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
        Certificate of the task's law. If it is proved, its norm is drawn with its bound, and the
        errors with their tubes.
    disturbance : float, optional
        Bound of the disturbance of the tubes, m/s^2, with rotations scaled by the channel's length.
        Default: the largest disturbance of the replayed runs, which makes the tubes estimates.
    operating : OperatingCertificate, optional
        Bounds of the torques in an operating box, which are drawn over the commands.

    Returns
    -------
    tuple of SampledCurves
        Errors of each output by unit, the norm of the certificate over its value at the start, and
        the size of each control ("torque:...") that has a limit or a bound.

    Raises
    ------
    OutputError
        If the disturbance is negative.

    Notes
    -----
    Each bound that is proved has its assumptions, and whether each run keeps them
    (`CurveBound`). The bound exp(-rate t) of a certificate is proved for the continuous law and the
    exact model: no run of a campaign keeps that. A tube holds for each disturbance, an unmodelled
    output acceleration, within its bound. The disturbance of a run follows from differences of its
    recorded velocity error. The bound of a torque holds for states, references and errors in the
    operating box, with exact measurements and without a measured base velocity.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from scipy.stats import uniform
    >>> import concur as cc
    >>> from concur.campaign import Campaign, sampled_curves
    >>> from concur.worlds import Quantity, Requirement, Uncertainty
    >>> mass = Uncertainty((Quantity("mass", "forearm", uniform(-0.05, 0.1), unit="kg"),))
    >>> slow = Requirement("speed", "speed forearm", (("speed:forearm", -3.0, 3.0),), 3.0, "rad/s")
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.01)
    >>> campaign = Campaign(task, uncertainty=mass, requirements=[slow])
    >>> curves = sampled_curves(campaign, cc.verify(campaign, 2), count=2)
    >>> [curve.name for curve in curves]
    ['error of base', 'error of hand']
    """
    from concur.certify import Status

    replayed = {row: _replayed(campaign, result, row) for row in _rows(result, count)}
    # A world that stops at its first tick has no run.
    runs = [run for run in replayed.values() if run is not None]
    if not runs:
        return ()
    passed = result.passed[[row for row, run in replayed.items() if run is not None]]
    longest = max(runs, key=lambda run: len(run.t))
    stride = max(1, len(longest.t) // _POINTS)
    t = longest.t[::stride]

    def aligned(values_of: Callable[[Run], Any]) -> np.ndarray:
        values = np.full((len(runs), len(t)), np.nan)
        for row, run in enumerate(runs):
            own = np.asarray(values_of(run), dtype=float)
            values[row, : len(own)] = own
        return values

    proved = certificate is not None and certificate.status is Status.PROVED
    tubes: list[CurveBound | str] = []
    if certificate is not None and proved:
        tubes = tube_bounds(certificate, runs, t, disturbance)
    curves = []
    for part, (name, unit, _) in enumerate(longest.error_parts):
        values = aligned(lambda run, part=part: run.error_parts[part][2][::stride])  # type: ignore[misc]
        bounds = _required(campaign, "error:" + name.replace(", ", ":"), t)
        bounds += [one for one in tubes[part : part + 1] if isinstance(one, CurveBound)]
        note = "".join(one for one in tubes[part : part + 1] if isinstance(one, str))
        curves.append(SampledCurves(f"error of {name}", unit, t, values, passed, bounds, note))
    if certificate is not None and proved:
        norms = aligned(lambda run: _norms(certificate, run, stride))
        decay, none = np.exp(-certificate.rate * (t - t[0])), np.zeros(len(runs), bool)
        text = "the model is exact and the law continuous"
        bound = CurveBound("proved certificate", decay, text, none)
        title = "norm of the certificate over its start"
        curves.append(SampledCurves(title, "1", t, norms, passed, [bound]))
    torques = {} if operating is None else torque_bounds(operating, campaign, runs)
    model = longest.servo.model
    for k, (name, unit) in enumerate(zip(model.control_names, model.control_units, strict=True)):
        bounds = _required(campaign, f"torque:{name}", t)
        bounds += [torques[name]] if name in torques else []
        if bounds:
            values = aligned(lambda run, k=k: np.abs(run.u[::stride, k]))  # type: ignore[misc]
            curves.append(
                SampledCurves(f"torque:{name}", unit, t, values, passed, bounds, log=False)
            )
    return tuple(curves)


def _rows(result: CampaignResult, count: int) -> list[int]:
    """Rows of the worlds to replay, without those that crashed."""
    sound = np.flatnonzero(~result.crashed)
    worst = sound[np.argmin(result.robustness[sound], axis=0)] if len(sound) else sound
    chosen = list(dict.fromkeys(worst.tolist()))
    others = [row for row in sound.tolist() if row not in chosen]
    return chosen + others[: max(0, count - len(chosen))]


def _required(campaign: Campaign, signal: str, t: np.ndarray) -> list[CurveBound]:
    """Narrowest required bound of a signal over time, NaN before it; empty without one."""
    bound = np.full(len(t), np.inf)
    for requirement in campaign.requirements:
        for other, _, high in requirement.bounds:
            if other == signal:
                bound[t >= requirement.after] = np.minimum(bound[t >= requirement.after], high)
    bound[np.isinf(bound)] = np.nan
    return [] if np.isnan(bound).all() else [CurveBound("required", bound)]


def _replayed(campaign: Campaign, result: CampaignResult, row: int) -> Run | None:
    try:
        return campaign.replay(result.worlds[row], int(result.numbers[row]))
    except SimulationError as stopped:
        part: Run | None = stopped.data.get("run")
        return part


def _norms(certificate: Certificate, run: Run, stride: int) -> list[float]:
    errors = zip(run.error[::stride], run.velocity_error[::stride], strict=True)
    norms = [certificate.norm(x, ve) for x, ve in errors]
    return [norm / norms[0] for norm in norms] if norms[0] > 0.0 else norms
