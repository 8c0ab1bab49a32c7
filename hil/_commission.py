"""Commissioning: what each axis does by a small torque, and the result that `drive` requires.

The loop holds the robot at the start of its task, guarded as in every run. Then each axis gets one
small push after the other: a torque for a time T, its opposite for 2 T, and the torque for T again.
Without other forces the axis ends where it began, at rest, and its friction has no part in the
result. The factor by which an axis follows the model is fitted to its positions,

    y = c0 + c1 t + c2 t^2 / 2 + factor * p(t),

where p is the motion of the model by the torques that were sent. It is 1 where direction and units
of torque and encoder are right, and -1 where one direction is wrong. Constant forces, such as an
error of the weight, are in c2.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hil._concur import fingerprint, is_python, read_json
from hil._pushes import BETWEEN, Push, PushedPlan
from hil.controller import Controller, Outcome
from hil.drives import AxisCheck, Finding
from hil.errors import ArmError, RigFileError
from hil.reasons import State
from hil.settings import Rig
from hil.state import acting, encoder_step

FORMAT, VERSION = "concur rig commission", 1

ROBOTS = ".toml", ".urdf", ".xacro", ".xml", ".mjcf"
"""Suffixes of robot files."""

LEAST, MOST = 0.6, 1.5
"""Factors of the model that pass: a unit that is wrong by less than this is not seen."""

UNSURE = 0.1
"""Standard deviation of a factor above which it proves nothing."""

ZERO = 0.1
"""Largest deviation of a joint from the start of the task, rad (m)."""

TRIP = 1e-3, 0.5
"""Largest change of the round trip of a drive without serial number: s, and a fraction of it."""


@dataclass(frozen=True)
class AxisResult:
    """What commissioning has measured at one axis.

    Parameters
    ----------
    identity : str
        Identity as the drive reports it; "" if it reports none.
    bound_by : str
        "serial number", or "signature": identity and round trip, for drives without a number;
        "nothing" for drives that report neither.
    factor, deviation : float
        Motion relative to that of the model by the same torques, and its standard deviation.
    zero : float
        Deviation of the joint from the start of the task, rad (m).
    round_trip : float
        Time from the request of a report to its arrival, s; None if it is unknown.
    watchdog : str
        Result of the tests of the watchdog.
    """

    identity: str
    bound_by: str
    factor: float
    deviation: float
    zero: float
    round_trip: float | None
    watchdog: str


@dataclass(frozen=True)
class Commission:
    """Result of the commissioning of a rig, in a file with its hash.

    Parameters
    ----------
    rig : str
        Hash of motors, drives, bus and robot of the rig.
    made : str
        Time, ISO 8601.
    emulated : bool
        Whether the drives were emulated; such a result permits no real rig to be driven.
    axes : dict of str to AxisResult
        Result of each axis.
    """

    rig: str
    made: str
    emulated: bool
    axes: dict[str, AxisResult]

    def write(self, path: Path) -> None:
        """Write the file."""
        document = self._document()
        document["sha256"] = _hash(document)
        path.write_text(json.dumps(document, indent=2) + "\n")

    def _document(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION} | asdict(self)

    def require(self, checks: Sequence[AxisCheck]) -> None:
        """Reject other drives than the commissioned ones; ArmError.

        By what they report, and once round trips are among the checks, by these for drives that
        have no serial number.
        """
        found = _values(checks, "identity")
        for name, own in self.axes.items():
            if found.get(name, "") != own.identity:
                raise _another(name, "drive", own.identity or "no identity", found.get(name, ""))

        trips = _values(checks, "round trip")
        for name, own in self.axes.items() if trips else ():
            if own.bound_by != "signature" or own.round_trip is None:
                continue
            trip = 1e-3 * float(trips.get(name) or math.nan)
            if not abs(trip - own.round_trip) <= TRIP[0] + TRIP[1] * own.round_trip:
                expected = f"a round trip near {1e3 * own.round_trip:.3g} ms"
                raise _another(name, "signature of the drive", expected, f"{1e3 * trip:.3g} ms")


def _another(name: str, what: str, expected: str, came: str) -> ArmError:
    return ArmError(
        f"axis `{name}`, {what}",
        expected=f"the commissioned one: {expected}",
        came=came or "a drive that reports none",
        cure="If the drive was replaced, run `concur-rig commission` again.",
        axis=name,
    )


def _values(checks: Sequence[AxisCheck], what: str) -> dict[str, str]:
    return {check.axis: check.came for check in checks if check.what.startswith(what)}


def _hash(document: Mapping[str, Any]) -> str:
    text = json.dumps({k: v for k, v in document.items() if k != "sha256"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def rig_hash(rig: Rig) -> str:
    """Hash of what commissioning is about: motors with their joints, drives, buses and robot."""
    buses = [(bus.interface, bus.channel, bus.bitrate) for bus in rig.buses]
    found, source = rig.transmission, rig.task.source
    ratios = found.motors, found.joints, found.ratios.tolist()
    files = [path.read_bytes() for path in rig.drive_modules]
    if source is not None:
        files += [
            content
            for name, content in source.files.items()
            if Path(name).suffix.lower() in ROBOTS and Path(name) != source.path
        ]
    if is_python(rig.task.path):
        files.append(str(fingerprint("robot", rig.task.robot)).encode())
    parts = sorted(hashlib.sha256(content).hexdigest() for content in files)
    return hashlib.sha256(repr((rig.axes, ratios, buses, parts)).encode()).hexdigest()


def commission_file(rig: Rig) -> Path:
    """Place of the result: beside the rig file."""
    return rig.path.with_name(f"{rig.path.stem}.commission.json")


def load_commission(rig: Rig) -> Commission:
    """Read the result that permits to drive a rig.

    Raises
    ------
    RigFileError
        If it is missing, or was changed, or is about another rig or an emulated one.
    """
    path = commission_file(rig)
    cure = "Run `concur-rig commission` with this rig."

    def refusal(expected: str, came: str) -> RigFileError:
        return RigFileError(f"{path}", expected=expected, came=came, cure=cure)

    document = read_json(path, "the result of a commissioning", cure, RigFileError)
    try:
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise refusal(f"{FORMAT}, version {VERSION}", "another format or version")
        if document["sha256"] != _hash(document):
            raise refusal("the file as it was written", "a file that was changed")
        axes = {name: AxisResult(**entry) for name, entry in document["axes"].items()}
        found = Commission(document["rig"], document["made"], document["emulated"], axes)
    except (KeyError, TypeError, AttributeError) as error:
        raise refusal("the result of a commissioning", f"an invalid file ({error})") from error
    if found.rig != rig_hash(rig):
        raise refusal(
            f"motors, drives, buses and robot of rig `{rig.name}`", "those of another rig or robot"
        )
    for axis in rig.axes:
        own = axes.get(axis.name)
        if own is None or any(
            row.finding is Finding.WRONG
            for row in judged(axis.name, own.factor, own.deviation, own.zero, axis.position_limits)
        ):
            raise refusal(f"a result of axis `{axis.name}` that passes", f"{own}")
    if found.emulated:
        raise refusal("a commissioning of the real drives", "one of emulated drives")
    return found


# -- the pushes ---------------------------------------------------------------------------------


class Commissioner(Controller):
    """The loop of a commissioning: it holds the start of the task, and pushes each axis.

    Attributes
    ----------
    found : dict of str to AxisResult
        Results, after a run that came to its end.
    """

    plan: PushedPlan

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.found: dict[str, AxisResult] = {}

    def run(self) -> Outcome:
        """Arm the rig, push each axis, stop, and judge the motions."""
        outcome = super().run()
        if not outcome.done:
            return replace(outcome, detail=self._during(outcome.detail))
        rows, _, _ = self.ring.take(0)
        columns = {name: np.array(part) for name, part in self.ring.layout.views(rows).items()}
        checks = []
        start = self.rig.transmission.of_configuration(self.rig.task.q0)
        for push, axis in zip(self.plan.pushes, self.rig.axes, strict=True):
            factor, deviation = self._factor(columns, push, encoder_step(axis))
            first = int(np.argmax(columns["state"][:, 0] == State.RUN))
            zero = float(columns["position"][first, push.axis] - start[push.axis])
            checks += judged(axis.name, factor, deviation, zero, axis.position_limits)
            rows_of = [check for check in outcome.checks if check.axis == axis.name]
            self.found[axis.name] = _result(rows_of, factor, deviation, zero)
        return replace(outcome, checks=(*outcome.checks, *checks))

    def _during(self, detail: str) -> str:
        """The detail of a stop, with the axis that was pushed."""
        gap = round(BETWEEN / self.rig.loop.period)
        pushed = [push for push in self.plan.pushes if self._law.index - push.first >= 0]
        if not pushed or self._law.index >= pushed[-1].last + gap:
            return detail
        return f"while axis `{self.rig.axes[pushed[-1].axis].name}` was pushed: {detail}"

    def _factor(
        self, columns: Mapping[str, NDArray[np.float64]], push: Push, step: float
    ) -> tuple[float, float]:
        """Factor of the model's motion in the measured one, and its standard deviation."""
        begun = int(np.argmax(columns["state"][:, 0] == State.RUN))
        first, last = begun + push.first - 1, begun + push.last + 2
        time, commanded = columns["time"][:, 0], columns["command_time"][:, 0]
        sent, estimator = columns["torque"], self.estimator
        n = last - first
        y, t, moved = (
            columns["position"][first:last, push.axis].copy(),
            np.zeros(n),
            np.zeros((n, 2)),
        )
        w = np.zeros(2)  # without torques, and by them
        for k in range(1, n):
            row = first + k - 1
            u = acting(sent[row], sent[row - 1], time[row], commanded[row], time[row + 1])
            if commanded[row] != commanded[row]:
                u = sent[row - 1]
            estimator.q[:], estimator.s[:] = columns["q"][row], columns["s"][row]
            free = float(estimator.acceleration(np.zeros_like(u))[push.axis])
            a = np.array([free, float(estimator.acceleration(u)[push.axis]) - free])
            dt = float(time[row + 1] - time[row])
            moved[k], w, t[k] = moved[k - 1] + (w + 0.5 * a * dt) * dt, w + a * dt, t[k - 1] + dt
        y, p = y - moved[:, 0], moved[:, 1]
        known = np.column_stack([np.ones_like(t), t, 0.5 * t**2, p])
        found, *_ = np.linalg.lstsq(known, y, rcond=None)
        rest = y - known @ found
        noise = max(float(rest @ rest) / max(len(t) - 4, 1), step**2 / 12.0)
        scatter = np.linalg.pinv(known.T @ known)[3, 3]
        return float(found[3]), math.sqrt(noise * scatter)


def _result(
    checks: Sequence[AxisCheck], factor: float, deviation: float, zero: float
) -> AxisResult:
    identity, trip, watchdog = (
        next(iter(_values(checks, what).values()), "")
        for what in ("identity", "round trip", "watchdog")
    )
    by = "signature" if identity or trip else "nothing"
    if "serial number" in identity:
        by = "serial number"
    return AxisResult(
        identity, by, factor, deviation, zero, 1e-3 * float(trip) if trip else None, watchdog
    )


def judged(
    name: str, factor: float, deviation: float, zero: float, limits: tuple[float, float]
) -> list[AxisCheck]:
    """Rows about the push of an axis, and about its zero if it has a range."""
    came = f"{factor:.3g} +- {deviation:.1g}"
    if not deviation <= UNSURE:
        finding, cure = Finding.WRONG, _UNSEEN
    elif LEAST <= factor <= MOST:
        finding, cure = Finding.FOUND, ""
    else:
        finding, cure = Finding.WRONG, _SIGN if factor < -UNSURE else _UNIT
    rows = [
        AxisCheck(name, "motion by a small torque, of that of the model", finding, "1", came, cure)
    ]
    if math.isfinite(limits[0]) and math.isfinite(limits[1]):
        finding = Finding.FOUND if abs(zero) <= ZERO else Finding.WRONG
        what, cure = (
            "position at the start of the task, rad (m)",
            "" if abs(zero) <= ZERO else _ZERO,
        )
        rows.append(AxisCheck(name, what, finding, "0", f"{zero:.3g}", cure))
    return rows


def conclude(rig: Rig, found: dict[str, AxisResult], emulated: bool) -> Commission:
    """The result of a rig."""
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return Commission(rig_hash(rig), made, emulated, found)


_UNSEEN = (
    "The push moves the axis too little to be seen. Free the joint, increase `watchdog_torque`, or "
    "use a finer encoder."
)
_SIGN = "Correct `direction` of the axis, the polarity of the drive, or the phases of the motor."
_UNIT = (
    "Correct the units: `rated_torque`, `torque_unit`, `torque_count`, and `gear`, "
    "`torque_constant` and `encoder` of the motor. If the axis hardly moves, free it."
)
_ZERO = "Move the robot to the start of its task, or correct `offset` of the axis."
