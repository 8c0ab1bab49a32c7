"""Recomputation of reference and state of a record from other columns, with the loop's code.

The reference of a cycle is that of the task at its instant. The state follows from the state and
the torque of the preceding cycle and from the reports. The instant of the estimate, after the
reception of the reports, is not recorded. It is computed from the recorded positions and velocities
and lies between the last report and the start of the next cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil._plan import Plan, sample_plan
from hil._pushes import pushed_plan
from hil.drives.feedback import Feedback
from hil.reasons import State
from hil.record import Record
from hil.state import acting
from hil.state.estimator import AHEAD, Estimator

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil.settings import Rig

TIMES = 1e-9
"""Rounding of differences of the loop's clock, s."""

Numbers = NDArray[np.float64]

REFERENCE = "pose", "twist", "acceleration"
"""Columns of the reference."""

ROUNDING = 1e-13
"""Rounding of positions and velocities, relative above one; it determines the uncertainty of the
computed instant."""


def references(record: Record, rig: Rig, servo: TrackingLaw) -> dict[str, Numbers]:
    """Reference of every cycle by name, and its time "t", s, from other columns.

    In a commissioning also the "push" of each cycle, NaN where it is unknown.

    The arrays have the shape of `record[name]`, with the recorded numbers where the instant is
    unknown, for example after missing rows of a stop; there the time is NaN.
    """
    found = {name: record[name].copy() for name in REFERENCE} | {"t": np.full(len(record), np.nan)}
    pushed = bool(record.manifest.get("facts", {}).get("commission"))
    if pushed:
        found["push"] = np.full((len(record), len(rig.axes)), np.nan)
    if not len(record):
        return found
    period, state = rig.loop.period, record["state"]
    follows = np.diff(record.index, prepend=-1) == 1
    runs = state == State.RUN
    with np.errstate(all="ignore"):  # a record may contain any numbers
        instants = np.rint(record["elapsed"] / period)
        passed = np.rint(np.diff(record["deadline"], prepend=np.nan) / period)
    plan: Plan | None = pushed_plan(rig, servo) if pushed else None
    most = np.rint(rig.task.duration / period) if plan is None else len(plan) - 1
    known = runs & (instants >= 0.0) & (instants <= most)
    if plan is None:
        longest = np.append(instants[known], 1.0).max()
        longest += np.append(passed[passed < most], 1.0).max()
        duration = min((longest + 1.0) * period, rig.task.duration)
        plan = sample_plan(rig.task, servo, period, duration)
    last = len(plan) - 1

    def is_at(k: int, instant: int) -> bool:
        return all(
            np.array_equal(record[name][k], getattr(plan, name)[instant]) for name in REFERENCE
        )

    at: int | None = None  # instant of the reference in the preceding row
    stopped = 0  # number of rows of the stop so far
    for k in range(len(record)):
        if runs[k]:
            at, stopped = int(instants[k]) if known[k] else None, 0
        elif state[k] != State.STOP:
            at, stopped = 0, 0
        else:
            stopped += 1
            if not follows[k] or at is None:
                at = None
            elif stopped == 1 and runs[k - 1]:
                steps = int(passed[k]) if 1.0 <= passed[k] <= most else 1
                # The run may have been shorter than the task.
                sooner = () if pushed else range(at + 1, at + steps)
                at = next((i for i in sooner if is_at(k, i)), at + steps)
            elif stopped == 2:
                # The reference stays at the last instant; a stop may precede the first one.
                at += not is_at(k, min(at, last))
        if at is not None:
            at = min(at, last)
            found["t"][k] = at * period
            if plan.push is not None and stopped < 2:
                found["push"][k] = plan.push[at]
            for name in REFERENCE:
                found[name][k] = getattr(plan, name)[at]
    return found


@np.errstate(all="ignore")  # a record may contain any numbers
def pose_ages(record: Record, rig: Rig) -> Numbers:
    """Expected ages (rows,) of the last external pose, within the bounds given by other columns.

    These are the recorded ages if they are possible. They are NaN without a source; poses are not
    from the future; in a run no pose is followed by an older one.
    """
    age, clock = record["pose_age"], record["time"]
    if rig.pose is None or len(record) < 3:
        return np.full_like(age, np.nan) if rig.pose is None else age
    expected = np.where(age < -AHEAD - TIMES, -AHEAD, age)
    inside = slice(1, -1)
    follows = np.diff(record.index) == 1
    runs = record["state"] == State.RUN
    judged = follows[:-1] & follows[1:] & runs[:-2] & runs[1:-1] & ~np.isnan(age[:-2])
    # The instants of the two ages lie between the starts of the three cycles.
    oldest = age[:-2] + (clock[2:] - clock[:-2]) + TIMES
    expected[inside] = np.where(judged, np.fmin(expected[inside], oldest), expected[inside])
    return expected


class States:
    """Runs the estimator with the reports of a record.

    Parameters
    ----------
    record : Record
        The record.
    rig : Rig
        The rig.
    servo : Servo
        Servo of its task.
    """

    def __init__(self, record: Record, rig: Rig, servo: TrackingLaw) -> None:
        self._record, self._period = record, rig.loop.period
        self._estimator = Estimator(rig, servo)
        self._feedback = Feedback(len(rig.axes))
        self._found = found = rig.transmission
        rates = [name for name, _ in record.columns("s")]
        # For joints outside of the shape, a law with all velocities uses those of the lift.
        shape = servo.model.shape_names
        self._s = [rates.index(n) for n in found.joints] if {*found.joints} <= {*shape} else []
        self._base = slice(None) if rig.pose is None else list(found.q)
        self._before = np.nan  # instant of the preceding row
        # Encoders that jump, and whether the state is valid, where the run stops.
        self.lost, self.valid = np.zeros(len(rig.axes), np.bool_), True

    def __iter__(self) -> Iterator[tuple[str, int, Numbers, Numbers, float]]:
        """Iterate over the cycles of the run, up to the first missing row.

        Yields
        ------
        name : str
            "q" or "s".
        k : int
            The row.
        recorded, computed : numpy.ndarray
            Its numbers; NaN where an external source corrects the base, as poses are not recorded.
        room : float
            Tolerance due to the uncertainty of the instant.
        """
        record, estimator = self._record, self._estimator
        if record.manifest.get("mode") in ("listen", "shadow"):
            return  # the estimator restarts after pauses of the other controller: not recorded
        state = record["state"]
        for k in range(len(record)):
            if record.index[k] != k:
                return
            self._take(k)
            if state[k] == State.STOP:
                if k > 0 and state[k - 1] == State.RUN:
                    self._estimate(k, True)
                    self.lost, self.valid = self._estimator.lost.copy(), self._estimator.valid
                return
            if not estimator.started and not (self._feedback.count > 0).all():
                continue
            room = self._estimate(k, k > 0 and state[k - 1] == State.RUN)
            if state[k] == State.RUN:
                q = np.full(len(estimator.q), np.nan)
                q[self._base] = estimator.q[self._base]
                yield "q", k, np.where(np.isnan(q), np.nan, record["q"][k]), q, room
                yield "s", k, record["s"][k], estimator.s, room

    def _take(self, k: int) -> None:
        feedback, record = self._feedback, self._record
        feedback.position[:] = record["position"][k]
        feedback.velocity[:] = record["velocity"][k]
        feedback.torque[:] = record["measured"][k]
        feedback.time[:] = record["report_time"][k]
        with np.errstate(invalid="ignore"):  # a record may contain any numbers
            feedback.count[:] = record["reports"][k]

    @np.errstate(all="ignore")  # a record may contain any numbers
    def _estimate(self, k: int, moved: bool) -> float:
        """Update the estimator to the instant of a row; return the resulting tolerance."""
        estimator, record, feedback = self._estimator, self._record, self._feedback
        clock = record["time"]
        first = float(np.fmax(clock[k], np.fmax.reduce(feedback.time)))
        last = clock[k + 1] if k + 1 < len(record) else clock[k] + self._period
        last = max(first, float(last))
        begins = not estimator.started
        known = None
        if begins:
            estimator.start(feedback, last)
        else:
            estimator.q[:], estimator.s[:] = record["q"][k - 1], record["s"][k - 1]
            if moved:
                torque = record["torque"]
                times = clock[k - 1], record["command_time"][k - 1], clock[k]
                acted = acting(torque[k - 1], torque[max(k - 2, 0)], *map(float, times))
                known = estimator.acceleration(acted).copy()
            estimator.update(feedback, last, known)
        late = estimator.position.copy(), estimator.velocity.copy()
        estimator.update(feedback, first, known)
        early = estimator.position.copy(), estimator.velocity.copy()
        found = self._found
        position = found.of_configuration(record["q"][k])
        velocity = np.full(len(position), np.nan)
        if self._s:
            velocity = found.of_joints(record["s"][k, self._s])
        now, unsure = instant_of(position, velocity, early, late, first, last)
        if begins:
            estimator.start(feedback, now)
        else:
            estimator.update(feedback, self._before, known)  # the base moves from this instant on
            estimator.q[:] = record["q"][k - 1]
            estimator.update(feedback, now, known)
        self._before = now
        span = max(last - first, np.finfo(float).tiny)
        rates = np.append(np.abs(estimator.v), np.abs(late[1] - early[1]) / span)
        return float(unsure * rates.max())


@np.errstate(all="ignore")  # a record may contain any numbers
def instant_of(
    position: Numbers,
    velocity: Numbers,
    early: tuple[Numbers, Numbers],
    late: tuple[Numbers, Numbers],
    first: float,
    last: float,
) -> tuple[float, float]:
    """Find the instant of given positions and velocities (n,), NaN if unknown, between two others.

    Between the first and the last instant, s, with the positions and velocities `early` and `late`,
    velocities are linear in time, and positions are their integrals. The number with the largest
    change relative to its rounding determines the instant. The result is the instant and its
    uncertainty, s; if no number changes enough, the first instant and the time between the two.
    """
    span, (x, w) = last - first, early
    if not span > 0.0:
        return first, 0.0
    a = (late[1] - w) / span
    numbers = np.concatenate([position, velocity])
    rates = np.abs(np.concatenate([w + 0.5 * span * a, a]))
    # Without reports for long, the estimator sets the velocity of an axis to zero in between.
    rates[np.tile((late[1] == 0.0) & (w != 0.0), 2)] = 0.0
    clear = rates / (ROUNDING * np.maximum(1.0, np.abs(numbers)))
    best = int(np.nanargmax(np.append(clear, 1.0 / span)))
    if best == len(clear):
        return first, span
    i = best % len(x)
    if best < len(x):
        passed = 0.5 * span
        for _ in range(4):  # Newton's method
            rest = position[i] - x[i] - (w[i] + 0.5 * a[i] * passed) * passed
            passed = np.clip(passed + rest / (w[i] + a[i] * passed), 0.0, span)
    else:
        passed = np.clip((velocity[i] - w[i]) / a[i], 0.0, span)
    # The uncertainty is at most the time between the two instants.
    return first + float(passed), min(span, 1.0 / float(clear[best]))
