"""All that can be proved about the loop of a task: decay, tubes, and its operating box."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concur._progress import track
from concur.certify._certificate import Certificate, Method, decay_rows
from concur.certify._certify import certify
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._channels import split
from concur.certify._checks import check
from concur.certify._error_motions import ErrorMotions, error_motions
from concur.certify._integral import certify_integral
from concur.certify._integral_certificate import IntegralCertificate
from concur.certify._narrow import narrow_decays
from concur.certify._operating import operating_bounds
from concur.certify._operating_certificate import OperatingCertificate
from concur.certify._recheck import examine
from concur.certify._robust import tube
from concur.certify._sampling import SampleLimits, sample_limits
from concur.certify._status import ESTIMATE, Status
from concur.certify._tube import Tube
from concur.control import Servo
from concur.errors import OutputError
from concur.results import Figures, Row, picked, plain, show
from concur.rounding import rounded_down, rounded_up
from concur.tables import located

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ANGLES = tuple(map(math.radians, (15.0, 30.0, 60.0, 90.0, 120.0, 150.0, 179.0)))
"""Angles of the figure of rates, rad, in addition to the requested one."""

BUDGET = 1_000
"""Boxes for each of them, few as they are only for a figure."""

WORST = (Status.REFUTED, Status.UNDECIDED, Status.UNVERIFIED)
"""Statuses that are not a proof, the worst first."""


@dataclass(frozen=True, eq=False)
class LoopCertificate:
    """Proofs about the loop of a task; made by `certify_task`.

    Parameters
    ----------
    decay : Certificate or IntegralCertificate
        Decay of the errors.
    start : tuple of numpy.ndarray
        Pose and velocity error at the start of the task, each of shape (size,).
    operating : OperatingCertificate or None
        The operating box of the task, if it has one.
    tubes : tuple of Tube
        Tubes of the channels under the disturbance, if one was given.
    disturbance : float or None
        Its bound, m/s^2, with rotations scaled by the length of the channel.
    held : mapping of str to SampleLimits
        Limits of hold period and delay for small errors, by coordinates with common modes.
    differences : tuple of str
        What of the task's loop differs from the certified one, in sentences.
    coordinates : tuple of str
        Names of all coordinates, such as "base.x".
    rechecked : mapping of str to Status
        Answers of the independent checker about files, by name.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import certify_task
    >>> found = certify_task(cc.load_task("examples/rover_arm.toml"), method="thesis")
    >>> found.status.name, found.covered
    ('PROVED', True)
    """

    decay: Certificate | IntegralCertificate
    start: tuple[np.ndarray, np.ndarray]
    operating: OperatingCertificate | None = None
    tubes: tuple[Tube, ...] = ()
    disturbance: float | None = None
    held: Mapping[str, SampleLimits] = field(default_factory=dict)
    differences: tuple[str, ...] = ()
    coordinates: tuple[str, ...] = ()
    rechecked: Mapping[str, Status] = field(default_factory=dict)

    def names(self, index: np.ndarray) -> str:
        """Names of coordinates.

        Parameters
        ----------
        index : numpy.ndarray
            Their indices.

        Returns
        -------
        str
            The names, with commas.
        """
        return ", ".join(self.coordinates[i] for i in index)

    @property
    def claims(self) -> tuple[tuple[str, Status, str], ...]:
        """Name, status and reason of each claim, and of each file that is not confirmed."""
        parts = self.decay.parts
        named = [(self.names(_index(part)), part.status, part.reason) for part in parts]
        found = [(f"decay of {name}", status, reason) for name, status, reason in named]
        if not found:
            found = [("decay", self.decay.status, str(self.decay.counterexample))]
        for one in self.tubes:
            found.append((f"tube of {self.names(one.channel.index)}", one.status, one.reason))
        if self.operating is not None:
            found.append(("operating box", self.operating.status, self.operating.reason))
        if self.decay.status is Status.PROVED:
            for name, status in self.rechecked.items():
                known = status in (Status.PROVED, Status.REFUTED)
                found.append((f"file {name}", status if known else Status.UNVERIFIED, ""))
        return tuple(found)

    @property
    def status(self) -> Status:
        """PROVED if all claims are, else the worst status of one."""
        found = {status for _, status, _ in self.claims}
        return next((status for status in WORST if status in found), Status.PROVED)

    @property
    def problems(self) -> tuple[str, ...]:
        """Each claim that is not proved, with its reason."""
        return tuple(
            f"{claim}: {status.name}" + f", {reason}" * bool(reason)
            for claim, status, reason in self.claims
            if status is not Status.PROVED
        )

    @property
    def covered(self) -> bool:
        """Whether the certificate covers the task's start."""
        if isinstance(self.decay, IntegralCertificate):
            return self.decay.contains(*self.start, np.zeros_like(self.start[0]))
        return self.decay.contains(*self.start)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rates, transients, tubes, limits of sampled torques, and the operating box."""
        parts = [(self.names(_index(p)), p.status, p.rate) for p in self.decay.parts]
        found = [*decay_rows([*parts, ("whole loop", self.decay.status, self.decay.rate)])]
        if isinstance(self.decay, Certificate):
            calm, label = self.decay.low_transient, "linearized rate, a bound of all rates"
            found.append(Row(label, self.decay.true_rate, unit="1/s"))
            bounds = {"transient bound": (self.decay.transient_bound, "", "")}
            if calm is not None:
                at = f"at the rate {rounded_down(calm.rate, 3)} 1/s"
                bounds["transient bound, calmer"] = (calm.transient_bound, "", at)
            bounds["time to 1 % of the start"] = (self.decay.settling(0.01), "s", "")
            for label, (most, unit, place) in bounds.items():
                if math.isfinite(most):
                    found.append(Row(label, float(rounded_up(most, 3)), None, unit, place))
        for names, limits in self.held.items():
            text = f"{names}; recommended {limits.advised:.3g} s"
            found.append(
                Row("longest hold of a torque, small errors", limits.period, None, "s", text)
            )
            found.append(Row("longest delay, small errors", limits.delay, None, "s", names))
        for one_tube in self.tubes:
            found += one_tube.rows
        return (*found, *(() if self.operating is None else self.operating.rows))

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether the start is covered, sizes of disturbances, and conditions, in sentences."""
        found = []
        if self.decay.status is Status.PROVED:
            outside = "outside the certified region: it does not apply to this start"
            found.append(f"the task's start is {'inside the region' if self.covered else outside}")
        for one in self.tubes:
            text = f"tube of {self.names(one.channel.index)}, at {self.disturbance:g} m/s^2"
            most = largest_disturbance(one)
            found += [f"{text}: it fits up to {most:.4g} m/s^2"] if math.isfinite(most) else []
        if self.operating is not None:
            least = self.operating.margin_found
            found.append(f"smallest margin at samples {least:.4g}: {ESTIMATE}")
        return (*found, *(f"if {condition}" for condition in self.decay.conditions))

    @cached_property
    def motions(self) -> ErrorMotions | None:
        """Motions below the proved decay, of which one has the task's start."""
        proved = self.decay.status is Status.PROVED and isinstance(self.decay, Certificate)
        return error_motions(self.decay, self.start) if proved else None

    @property
    def figures(self) -> Figures:
        """Decay, its rate over the angle, and tubes of finite size with disturbed motions."""
        found = self.decay
        drawn: dict[str, Callable[[], Figure]] = {}
        if isinstance(found, IntegralCertificate):
            return {}
        if self.motions is not None:
            drawn["decay"] = lambda: show("decay_figure", found, self.motions)
        # Without rotations the angle does not matter; without valid gains there is no rate.
        if any(part.angle is not None for part in found.parts):
            drawn["rates"] = lambda: show("rate_figure", rates_over_angles(found), found)
        for k, one in enumerate(self.tubes):
            if math.isfinite(one.radius):
                drawn[_tube_name(self.tubes, k)] = one.figures["tube"]
        return drawn

    @property
    def files(self) -> dict[str, Certificate | IntegralCertificate | Tube]:
        """Claims that `save` writes and the checker verifies, by the name of the file."""
        tubes = {f"{_tube_name(self.tubes, k)}.json": one for k, one in enumerate(self.tubes)}
        return {"proof.json": self.decay, **tubes}

    def save(self, folder: Path) -> LoopCertificate:
        """Write proof.json, a file for each tube, and operating.json; verify proofs from the files.

        Parameters
        ----------
        folder : pathlib.Path
            An existing folder.

        Returns
        -------
        LoopCertificate
            This certificate with the answers of the checker by file.
        """
        for name, one in self.files.items():
            one.save(folder / name)
        if self.operating is not None:
            self.operating.save(folder / "operating.json")
        return replace(self, rechecked={name: examine(folder / name).status for name in self.files})

    @property
    def details(self) -> dict[str, Any]:
        """Further fields of the answer in JSON, in SI units."""
        found, (x, ve) = self.decay, self.start
        proved = found.status is Status.PROVED
        own: dict[str, Any]
        channels = []
        for part in found.parts:
            own = picked(part, "status", "reason", "true_rate", "angle") | {
                "names": self.names(_index(part)).split(", ")
            }
            rate = part.rate if part.rate > 0.0 else None
            sure = part.status is Status.PROVED
            own |= {"rate": rate if sure else None}
            own |= {"estimates_not_proved": {"rate": None if sure else rate}}
            if isinstance(part, ChannelCertificate):
                own |= picked(part, "transient_bound", "distance", "level", "seconds")
                own |= {"kind": part.channel.kind, "boxes": len(part.boxes)}
            channels.append(own)
        own = picked(found, "angle") | {"decay": found.status.name}
        own |= {"rate": found.rate if proved else None, "channels": channels}
        start = {"x": plain(x), "ve": plain(ve), "covered": self.covered}
        if isinstance(found, Certificate):
            calm, motions = found.low_transient, self.motions
            own |= picked(found, "method", "distance", "true_rate", "transient_bound", "boxes")
            own |= {"calmer": calm and picked(calm, "rate", "transient_bound")}
            own |= {"settling": plain(found.settling(0.01))}
            share = None if motions is None else motions.share(found.rate)
            own |= {"estimates_not_proved": {"largest_share_of_bound": share}}
            start["norm"] = plain(found.norm(x, ve))
        against, box = found.counterexample, self.operating
        tubes = [
            picked(one, "status", "reason", "rate", "angle", "distance")
            | {"names": self.names(one.channel.index).split(", "), "bounds": plain(one.components)}
            | {"largest_disturbance": plain(largest_disturbance(one))}
            for one in self.tubes
        ]
        boxed = "status", "reason", "margin", "required_margin", "names", "lower", "upper"
        return own | {
            "against": None if against is None else str(against),
            "start": start,
            "held": {
                names: picked(one, "period", "delay", "advised") for names, one in self.held.items()
            },
            "disturbance": self.disturbance,
            "tubes": tubes,
            "operating": box and picked(box, *boxed, "margin_found"),
            "recheck": plain(self.rechecked),
            "conditions": list(found.conditions),
        }


def certify_task(
    task: Any,
    angle: float = math.pi / 2,
    distance: float | None = None,
    method: Method = "tight",
    disturbance: float | None = None,
    progress: bool | Callable[[float], Any] = False,
) -> LoopCertificate:
    """Certify the loop of a task: decay of its errors, tubes, and its operating box.

    Parameters
    ----------
    task : Task
        The task, from `load_task`.
    angle : float
        Largest rotation error covered, rad.
    distance : float, optional
        Largest position error covered where rotations act on positions, as of `certify`, m.
    method : str
        "tight" or "thesis", as of `certify`.
    disturbance : float, optional
        Bound of an unmodelled output acceleration, m/s^2, with rotations scaled by the length of
        the channel: prove the tubes of the errors, if the law has no torque limits.
    progress : bool or callable
        Show a progress bar, or call with the fraction done.

    Returns
    -------
    LoopCertificate
        The certificate. With torque limits the decay holds where the operating box proves that no
        torque reaches its limit.

    Raises
    ------
    OutputError
        As of `certify`, and if a box or a disturbance is out of range.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import certify_task
    >>> found = certify_task(cc.load_task("examples/rover_arm.toml"), method="thesis")
    >>> [row.quantity for row in found.rows if row.place == "whole loop"]
    ['decay rate']
    """
    check(
        disturbance is None or method == "tight",
        "certificate, `disturbance`",
        "the method tight with this option",
        "the method thesis, which gives no tubes",
        "Omit one of them.",
    )
    servo: Servo = task.servo
    x, ve = servo.error(task.q0, task.shape_velocities(servo), task.reference(0.0))
    start = np.asarray(x, dtype=float), np.asarray(ve, dtype=float)
    with track(progress, "certifying", 1.0) as report:
        box = None
        if task.operating is not None and not servo.nz:
            with located(task.path, "[operating]"):
                law = replace(servo, use_measured_velocity=False)
                box = operating_bounds(
                    law, **task.operating, progress=lambda done: report(0.3 * done)
                )
        decay: Certificate | IntegralCertificate
        if servo.integral is not None:
            decay = certify_integral(servo, angle)
        else:
            covered = servo.torque_limits is not None and servo.constraints is None
            usable = box if covered and covers_errors(box) else None
            decay = certify(
                servo, angle, distance, method, chain=method == "tight", operating=usable,
                progress=lambda done: report(0.3 + 0.4 * done),
            )  # fmt: skip
        tubes: tuple[Tube, ...] = ()
        free = decay.status is Status.PROVED and servo.torque_limits is None
        if disturbance is not None and free and isinstance(decay, Certificate):
            decays = narrow_decays(decay, progress=lambda done: report(0.7 + 0.3 * done))
            tubes = tuple(tube(one, disturbance / one.channel.length) for one in decays)
    found = LoopCertificate(
        decay, start, box, tubes, disturbance,
        differences=tuple(_differences(task, servo)),
        coordinates=tuple(f"{o.name}.{n}" for o in servo.outputs for n in o.coordinate_names),
    )  # fmt: skip
    held = {}
    for channel in split(servo.error_dynamics):
        with suppress(OutputError):  # gains without common modes
            held[found.names(channel.index)] = sample_limits(channel)
    return replace(found, held=held)


def covers_errors(found: OperatingCertificate | None) -> bool:
    """Whether a box is proved, and for errors above zero.

    Parameters
    ----------
    found : OperatingCertificate or None
        The box.

    Returns
    -------
    bool
        Whether `certify` can use it for a law with torque limits.
    """
    if found is None or found.status is not Status.PROVED:
        return False
    names = ("pose_error", "velocity_error")
    return all(min(found.demand.get(name, [0.0])) > 0.0 for name in names)


def largest_disturbance(found: Tube) -> float:
    """Largest disturbance whose tube, without a start, stays in the domain; rounded.

    Parameters
    ----------
    found : Tube
        A tube.

    Returns
    -------
    float
        The disturbance, m/s^2.
    """
    return found.limit * found.decay.rate / found.decay.push * found.channel.length


def rates_over_angles(found: Certificate) -> dict[str, list[Certificate]]:
    """Certificates of the same loop for several angles, by method, the theorem for comparison.

    Parameters
    ----------
    found : Certificate
        The certificate for the requested angle.

    Returns
    -------
    dict of str to list of Certificate
        In the order of the angles; the theorem only where it has a rate.
    """
    angles = [a for a in ANGLES if not math.isclose(a, found.angle)]
    sweeps: dict[str, list[Certificate]] = {found.method: [found], "thesis": []}
    for name, row in sweeps.items():
        method: Method = "thesis" if name == "thesis" else "tight"
        for angle in angles if row else [*angles, found.angle]:
            row.append(certify(found.dynamics, angle, found.distance, method, budget=BUDGET))
        row.sort(key=lambda one: one.angle)
    some = {name for name, row in sweeps.items() if any(one.rate > 0.0 for one in row)}
    return {name: row for name, row in sweeps.items() if name in some | {found.method}}


def _index(part: Any) -> np.ndarray:
    """Indices of the coordinates of a part of either kind of certificate."""
    return np.asarray(part.index if hasattr(part, "places") else part.channel.index)


def _tube_name(tubes: tuple[Tube, ...], k: int) -> str:
    return "tube" if len(tubes) == 1 else f"tube_{k + 1}"


def _differences(task: Any, servo: Servo) -> list[str]:
    """Differences between the loop of the task and the certified error dynamics."""
    boxed = task.operating is not None
    period, plant = task.control_period, "the task's plant differs from the servo's model"
    stated = {
        f"the task holds its torque for {period} s; the certified law does not": period is not None,
        f"{plant}, which is certified": task.plant is not None,
        "the plant's momentum differs from the momentum that the servo assumes": (
            task.plant_momentum is not None and not servo.use_measured_velocity
        ),
        "an output on SE3 couples position and rotation; where no screw motion is needed, an "
        "output on R3xSO3 has a faster proved decay": any(o.group == "SE3" for o in servo.outputs),
        "the operating box is for the law with the momentum stated in the task": (
            boxed and servo.use_measured_velocity
        ),
        "the operating box is not checked: the law has integral action": boxed and bool(servo.nz),
    }
    return [text for text, holds in stated.items() if holds]
