"""Proved bounds for the curves of sampled runs: tubes, and torques in an operating box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from concur.campaign._campaign import Campaign
from concur.campaign._sampled import CurveBound
from concur.control import taken_velocities
from concur.simulation import Run

if TYPE_CHECKING:
    from concur.certify import Certificate, Channel, OperatingCertificate, Tube

_MEASURED = ("resolution", "noise", "velocity_noise")


def tube_bounds(
    certificate: Certificate, runs: Sequence[Run], t: np.ndarray, disturbance: float | None
) -> list[CurveBound | str]:
    """Tube of each error of `Run.error_parts`, or the reason for its absence.

    The tubes start at the largest initial error of the runs. Without a given disturbance they are
    for the largest one of the runs.
    """
    from concur.certify import Status, narrow_decays, tube

    motions = [(run.t, run.error, true_velocity_error(run)) for run in runs]
    found: list[tuple[Tube, str, np.ndarray]] = []
    for decay in narrow_decays(certificate):
        channel, own = decay.channel, decay.channel.index
        motion = [(times, x[:, own], ve[:, own]) for times, x, ve in motions]
        sizes = np.array([disturbance_size(channel, *one) for one in motion])
        most = float(sizes.max()) if disturbance is None else disturbance
        norm = tube(decay, 0.0).norm
        start = max(norm(x[0], ve[0]) for _, x, ve in motion)
        unit = "m/s^2" if "m" in channel.units else "rad/s^2"
        largest = f"{sizes.max():.3g}"
        source = "the largest of these runs" if disturbance is None else f"runs: up to {largest}"
        text = f"the disturbance is at most {most:.3g} {unit} ({source})"
        found.append((tube(decay, most / channel.length, start), text, sizes <= most))

    bounds: list[CurveBound | str] = []
    for _, unit, places in runs[0].error_places:
        parts = [
            (one, text, kept)
            for one, text, kept in found
            for _, within, own in one.channel.error_parts
            if own == unit and np.isin(one.channel.index[within], places).all()
        ]
        lost = [one.reason for one, _, _ in parts if not one.fits]
        if lost:
            bounds.append(f"no tube: {lost[0]}")
            continue
        squares = np.zeros(len(t))
        for one, _, _ in parts:
            width = (one.distance if unit == "m" else one.angle) or 0.0
            shares = [one.envelope(time - t[0]) / (one.radius or 1.0) for time in t]
            squares += (width * np.array(shares)) ** 2
        proved = all(one.status is Status.PROVED for one, _, _ in parts)
        name = "proved tube" if proved and disturbance is not None else "tube: estimate, not proved"
        text = "; ".join(dict.fromkeys(text for _, text, _ in parts))
        kept = np.all([kept for _, _, kept in parts], axis=0)
        bounds.append(CurveBound(name, np.sqrt(squares), text, kept))
    return bounds


def torque_bounds(
    operating: OperatingCertificate, campaign: Campaign, runs: Sequence[Run]
) -> dict[str, CurveBound]:
    """Proved bound of the size of each control in the operating box, by name of the control."""
    kept = np.array([_inside(operating, campaign, run) for run in runs])
    name, text = "proved in the operating box", "states, reference and errors are in the box"
    return {
        control: CurveBound(name, float(bound), text, kept)
        for control, bound in zip(operating.names, operating.torque, strict=False)
        if np.isfinite(bound)
    }


def true_velocity_error(run: Run) -> np.ndarray:
    """Velocity error of the motion, shape (k, size); the run has that which the law sees.

    They differ if the law computes velocities from a wrong momentum or wrong wheels.
    """
    law = run.servo
    q, v = ca.SX.sym("q", run.q.shape[1]), ca.SX.sym("v", run.v.shape[1])
    hidden = law.motion(q, v)[0] - law.motion(q, law.velocity(q, taken_velocities(law, v)))[0]
    function = ca.Function("hidden", [q, v], [ca.densify(hidden)])
    return np.asarray(run.velocity_error + np.array(function(run.q.T, run.v.T)).T)


def disturbance_size(channel: Channel, t: np.ndarray, x: np.ndarray, ve: np.ndarray) -> float:
    """Largest disturbance of a channel along a recorded motion, m/s^2 or rad/s^2.

    A difference of velocity errors gives the mean of a period. Within the period the disturbance
    may differ from it by what it changes to the next.
    """
    rates = np.array([channel.dynamics.rate(*pair)[1] for pair in zip(x, ve, strict=True)])
    found = np.diff(ve, axis=0) / np.diff(t)[:, None] - (rates[1:] + rates[:-1]) / 2.0
    scaled = channel.length * channel.scales * found
    sizes = [np.linalg.norm(rows, axis=1) for rows in (scaled, np.diff(scaled, axis=0))]
    return float(sum(size.max(initial=0.0) for size in sizes))


def _inside(operating: OperatingCertificate, campaign: Campaign, run: Run) -> bool:
    """Whether all states that the law sees in a run are in the operating box."""
    task, law, robot = campaign.task, run.servo, run.robot
    kinds = {quantity.kind for quantity in campaign.uncertainty.quantities}
    blurred = kinds.intersection(_MEASURED) or any(
        np.any(getattr(run.imperfections, name, 0.0)) for name in _MEASURED
    )
    if blurred or any(kind.startswith("reference.") for kind in kinds):
        return False  # the record has neither measurements nor the reference of a world
    if getattr(law, "use_measured_velocity", True):
        return False  # the box is for the law that takes shape velocities
    for body in robot.bodies:
        places = range(*robot.q_slice(body.name).indices(robot.nq))
        for k, i in enumerate(places):
            name = body.joint_label if len(places) == 1 else f"{body.joint_label}[{k}]"
            low, high = operating.ranges.get(name, (-np.inf, np.inf))
            if run.q[:, i].min() < low or run.q[:, i].max() > high:
                return False
    distance = (task.operating or {}).get("distance")
    if distance is not None and any(
        np.linalg.norm(np.asarray(robot.pose(q, robot.base.name))[:3, 3]) > distance for q in run.q
    ):
        return False
    seen = {
        "speeds": run.s,
        "acceleration": [task.reference(time).acceleration for time in run.t],
        "pose_error": run.error,
        "velocity_error": run.velocity_error,
    }
    return all(
        bool((np.abs(np.asarray(values, dtype=float)) <= operating.demand[name]).all())
        for name, values in seen.items()
    )
