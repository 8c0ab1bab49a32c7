"""Replay: recomputation of every cycle of a record with the code that ran on the rig.

The law is evaluated at the recorded state and reference; the guard checks the recorded torques of
the law with the recorded reports. On the machine that made the record the results must equal the
recorded ones to the last bit; on other machines the law may differ by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hil._bookkeeping import contradictions
from hil._concur import Tick, TickStatus
from hil._recomputed import REFERENCE, TIMES, States, pose_ages, references
from hil._stops import Evidence, stop_of
from hil._torque import CycleTorque, Failing
from hil.errors import RecordError
from hil.guard import Limits, Verdict
from hil.latch import Action
from hil.quality import LATE, PROMPT
from hil.reasons import Reason, State
from hil.record import Record
from hil.record.manifest import fingerprints, machine
from hil.state import Residual, acting
from hil.state.estimator import Estimator

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil._transmission import Transmission
    from hil.settings import Rig

Vectors = NDArray[np.float64]

TOLERANCE = 1e-9
"""Tolerance of the law's results on another machine: N m and N, m, rad; relative above one."""

JUDGED = "rig", "task", "driver", "robot", "law"
"""Fingerprints that must equal those of the record."""


@dataclass(frozen=True)
class Difference:
    """The first cycle in which a quantity differs.

    Parameters
    ----------
    what : str
        The quantity: "law: torque", "law: status", "law: error", "guard: torque", "guard: flags",
        "guard: verdict", "stop: torque", "stop: reason" (`axis`), "residual: residual" (`allowed`),
        "residual: verdict", "reference: pose" (`twist`, `acceleration`),
        "estimator: q" (`s`), or "record: " and the name of a column, such as `cycle`, `reason` or
        `late`, that contradicts the others.
    cycle : int
        Number of the cycle, counted from the start of the run.
    time : float
        Start of the cycle, s since the first cycle.
    column : str
        Name of the axis or coordinate; "" if it has none.
    recorded, replayed : float
        The two numbers.
    cycles : int
        Number of cycles in which the quantity differs.
    """

    what: str
    cycle: int
    time: float
    column: str
    recorded: float
    replayed: float
    cycles: int

    def __str__(self) -> str:
        where = f" of `{self.column}`" if self.column else ""
        return (
            f"{self.what}{where}: {self.replayed!r} instead of {self.recorded!r} in cycle "
            f"{self.cycle}, at {self.time:.6g} s; {self.cycles} cycles differ"
        )


@dataclass(frozen=True, eq=False)
class ReplayReport:
    """Result of a replay.

    Parameters
    ----------
    record : Record
        The record.
    exact : bool
        Whether the law's results must agree to the last bit: on the machine that made the record,
        with the same packages.
    evaluated : int
        Number of cycles in which the law was evaluated.
    estimated : int
        Number of cycles of a run in which the state was estimated.
    judged : int
        Number of cycles in which the guard's verdict and the sent torque were recomputed.
    stopped : int
        Number of cycles of a stop whose torque was recomputed.
    left_out : int
        Number of skipped cycles of a run or a stop: preceding rows are missing, or reports were so
        old that the row does not determine the inputs.
    largest : float
        Largest difference between the law's torques, N m (N).
    differences : tuple of Difference
        The first difference of each kind.
    forced : tuple of str
        Fingerprints that differ, with `force`: the replay has not passed.
    """

    record: Record
    exact: bool
    evaluated: int
    estimated: int
    judged: int
    stopped: int
    left_out: int
    largest: float
    differences: tuple[Difference, ...] = ()
    forced: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the record is complete, and all recomputed quantities equal the recorded ones.

        Also False if rig, task, drivers, robot or law are not those of the record.
        """
        complete = self.evaluated > 0 and self.record.complete
        return complete and not self.differences and not self.forced

    @property
    def first(self) -> Difference | None:
        """The earliest difference; None if there is none."""
        return min(self.differences, key=lambda d: d.cycle, default=None)

    def rows(self) -> list[tuple[str, str]]:
        """The result as text, for a table.

        Returns
        -------
        list of (str, str)
            Name and value.
        """
        measure = "to the last bit" if self.exact else f"within {TOLERANCE:g}"
        rows = [
            ("cycles recorded", str(len(self.record))),
            ("law evaluated", f"{self.evaluated} cycles, compared {measure}"),
            ("state estimated", f"{self.estimated} cycles, compared within {TOLERANCE:g}"),
            ("largest difference", f"{self.largest:.3g}"),
            ("guard evaluated", f"{self.judged} cycles, compared to the last bit"),
            ("torques of stops", f"{self.stopped} cycles"),
            ("skipped", f"{self.left_out} cycles"),
        ]
        if self.forced:
            rows.append(("not those of the record", ", ".join(self.forced)))
        rows += [("note", note) for note in self.record.notes]
        rows += [("differs", str(difference)) for difference in self.differences]
        other = f": another {', another '.join(self.forced)}" if self.forced else ""
        rows.append(("verdict", "as recorded" if self.passed else f"not as recorded{other}"))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON types.

        Returns
        -------
        dict
            The result.
        """
        return {
            "record": str(self.record.folder),
            "passed": self.passed,
            "complete": self.record.complete,
            "faults": list(self.record.faults),
            "exact": self.exact,
            "cycles": len(self.record),
            "evaluated": self.evaluated,
            "estimated": self.estimated,
            "judged": self.judged,
            "stopped": self.stopped,
            "left_out": self.left_out,
            "largest_difference": self.largest,
            "not_those_of_the_record": list(self.forced),
            "notes": list(self.record.notes),
            "differences": [
                {name: _json(value) for name, value in vars(difference).items()}
                for difference in self.differences
            ],
        }


def replay(
    folder: str | PathLike[str] | Record,
    rig: Rig,
    force: bool = False,
    *,
    servo: TrackingLaw | None = None,
    progress: Callable[[float], Any] | None = None,
) -> ReplayReport:
    """Recompute every cycle of a record.

    Parameters
    ----------
    folder : str, os.PathLike or Record
        Folder of one run, or its record.
    rig : Rig
        The rig, read from the file of the run.
    force : bool
        Whether to continue if rig, task, robot or law are not those of the record; such a replay
        does not pass.
    servo : TrackingLaw, optional
        Servo of the rig's task, if it has been built already.
    progress : callable, optional
        Called with the completed fraction.

    Returns
    -------
    ReplayReport
        The result of the comparison.

    Raises
    ------
    RecordError
        If there is no record, its layout is not that of the rig, or its fingerprints differ.
    """
    record = folder if isinstance(folder, Record) else Record.load(folder)
    servo = rig.task.law if servo is None else servo
    _check_layout(record, rig, servo)
    forced = _check_fingerprints(record, rig, servo, force)
    tick = Tick(servo)
    servo.compile_functions("errors")  # as in the session: other code rounds differently
    found = _Comparison(record)
    exact = not forced and _same_machine(record, tick)
    expected = references(record, rig, servo)
    evaluated, largest = _replay_law(
        record, rig, servo, tick, expected, exact, found, progress or (lambda share: None)
    )
    begins = _first_of_stop(record)
    seen = Evidence(begins)
    judged, stopped, left_out = _replay_guard(record, rig, found, seen)
    _replay_reference(record, rig, expected, exact, found)
    estimated = _replay_state(record, rig, servo, found, seen)
    _replay_residual(record, rig, servo, exact, found, seen)
    if begins >= 0:
        recorded = np.array([record["reason"][begins], record["axis"][begins]])
        true = np.array(stop_of(record, rig, seen), dtype=np.float64)
        found.add("stop: reason", begins, recorded[:1], true[:1])
        found.add("stop: axis", begins, recorded[1:], true[1:])
    for name, k, recorded, true in contradictions(record, rig.loop.period):
        found.add(f"record: {name}", k, recorded, true, name=name if len(true) > 1 else "")
    for name, listed, own in _manifest_limits(record, rig) if len(record) else ():
        found.add(f"manifest: {name}", 0, np.array([listed]), np.array([own]))
    return ReplayReport(
        record,
        exact,
        evaluated,
        estimated,
        judged,
        stopped,
        left_out,
        largest,
        found.differences(),
        forced,
    )


def _manifest_limits(record: Record, rig: Rig) -> Iterator[tuple[str, float, float]]:
    """Rate and limits in the manifest, which the report uses, and those of the rig."""
    yield "rate", float(record.manifest.get("rate", np.nan)), rig.loop.rate
    limits = record.manifest.get("limits", {})
    for axis in rig.axes:
        listed = limits.get(axis.name, {})
        for name, true in (("torque", axis.torque_limit), ("speed", axis.speed_limit)):
            yield f"{name} limit of {axis.name}", float(listed.get(name, np.nan)), true


def _first_of_stop(record: Record) -> int:
    """Row in which a run that this loop commands has stopped; -1: no such row."""
    if record.manifest.get("mode") in ("listen", "shadow"):
        return -1  # another controller sent the torques
    stops = np.flatnonzero(record["state"] == State.STOP)
    k = int(stops[0]) if len(stops) else 0
    whole = k > 0 and record.index[k] == k and record["state"][k - 1] == State.RUN
    return k if whole else -1


class _Comparison:
    """Collects differences: the first of each kind, and their number."""

    def __init__(self, record: Record) -> None:
        self._record, self._time = record, record.time
        self._first: dict[str, tuple[int, str, float, float]] = {}
        self._cycles: dict[str, int] = {}

    def add(
        self,
        what: str,
        k: int,
        recorded: NDArray[np.float64],
        replayed: NDArray[np.float64],
        tolerance: float = 0.0,
        name: str = "",
    ) -> None:
        """Compare the numbers of row `k`; `name`: their quantity in the layout, if any."""
        if tolerance == 0.0:
            # Compare bits: zeros have signs, and NaN equals NaN.
            same = recorded.view(np.int64) == replayed.view(np.int64)
        else:
            near = tolerance * np.maximum(1.0, np.abs(recorded))
            with np.errstate(invalid="ignore"):
                same = np.abs(replayed - recorded) <= near
            same |= np.isnan(recorded) & np.isnan(replayed)
        if same.all():
            return
        self._cycles[what] = self._cycles.get(what, 0) + 1
        if what not in self._first:
            i = int(np.argmin(same))
            column = self._record.columns(name)[i][0] if name else ""
            self._first[what] = (k, column, float(recorded[i]), float(replayed[i]))

    def differences(self) -> tuple[Difference, ...]:
        found = [
            Difference(
                what,
                int(self._record.index[k]),
                float(self._time[k]),
                column,
                recorded,
                replayed,
                self._cycles[what],
            )
            for what, (k, column, recorded, replayed) in self._first.items()
        ]
        return tuple(sorted(found, key=lambda difference: difference.cycle))


def _replay_law(
    record: Record,
    rig: Rig,
    servo: TrackingLaw,
    tick: Tick,
    expected: Mapping[str, NDArray[np.float64]],
    exact: bool,
    found: _Comparison,
    progress: Callable[[float], Any],
) -> tuple[int, float]:
    """Evaluate the law in its recorded cycles; return their number and the largest difference."""
    tolerance = 0.0 if exact else TOLERANCE
    names = ("q", "s", "pose", "twist", "acceleration")
    inputs = [np.ascontiguousarray(record[name]) for name in names]
    buffers = tick.buffers
    targets = [getattr(buffers, name) for name in names]
    errors = servo.buffered("errors")
    demand, status, error = record["demand"], record["tick"], record["error"]
    # The law is evaluated, and the error known, only after all axes have reported.
    ran = np.flatnonzero(np.isfinite(error).any(axis=1))
    # A law's state is advanced in cycles that begin in RUN.
    periods = rig.loop.period * (np.roll(record["state"], 1) == State.RUN)
    # A law may take the time of the reference.
    times, pushes = expected["t"], expected.get("push")
    largest, limited = 0.0, "active" in record.names
    for number, k in enumerate(ran.tolist()):
        buffers.period[:] = periods[k]
        buffers.t[:] = times[k]
        for target, values in zip(targets, inputs, strict=True):
            target[:] = values[k]
        outcome = np.array([float(tick.run())])
        found.add("law: status", k, status[k : k + 1], outcome)
        torque = buffers.u
        if pushes is not None:
            torque = demand[k] if np.isnan(pushes[k]).any() else buffers.u + pushes[k]
        if outcome[0] == TickStatus.OK == status[k]:
            largest = max(largest, float(np.abs(torque - demand[k]).max()))
        found.add("law: torque", k, demand[k], torque, tolerance, "demand")
        if exact and limited:
            found.add("law: limits", k, record["active"][k], buffers.active, 0.0, "active")
        x, _ = errors.view(buffers.q, buffers.s, buffers.pose, buffers.twist)
        found.add("law: error", k, error[k], np.array(x), tolerance, "error")
        if number % 256 == 0:
            progress(number / len(ran))
    return len(ran), largest


def _replay_reference(
    record: Record,
    rig: Rig,
    expected: Mapping[str, NDArray[np.float64]],
    exact: bool,
    found: _Comparison,
) -> None:
    """Compare the reference with that of the task, and the ages of external poses."""
    tolerance = 0.0 if exact else TOLERANCE
    for name in REFERENCE:
        for k, (recorded, replayed) in enumerate(zip(record[name], expected[name], strict=True)):
            found.add(f"reference: {name}", k, recorded, replayed, tolerance, name)
    ages, own = np.ascontiguousarray(record["pose_age"]), pose_ages(record, rig)
    for k in range(len(record)):
        found.add("record: pose_age", k, ages[k : k + 1], own[k : k + 1], TIMES)


def _replay_state(
    record: Record, rig: Rig, servo: TrackingLaw, found: _Comparison, seen: Evidence
) -> int:
    """Estimate the state of a run from the reports; return the number of cycles."""
    cycles = set()
    states = States(record, rig, servo)
    for name, k, recorded, replayed, room in states:
        found.add(f"estimator: {name}", k, recorded, replayed, TOLERANCE + room, name)
        cycles.add(k)
    seen.lost, seen.valid = states.lost, states.valid
    return len(cycles)


def _replay_residual(
    record: Record,
    rig: Rig,
    servo: TrackingLaw,
    exact: bool,
    found: _Comparison,
    seen: Evidence,
) -> None:
    """Recompute the residuals of the axes; what they found about the stop is added to `seen`."""
    if record.manifest.get("mode") in ("listen", "shadow"):
        return  # the torques of the other controller are not known
    tolerance = 0.0 if exact else TOLERANCE
    estimator, residual = Estimator(rig, servo), Residual(rig, servo)
    state, torque, reports = (record[name] for name in ("state", "torque", "reports"))
    for k in range(len(record)):
        if record.index[k] != k:
            return  # after missing rows the states of the observers are unknown
        finding = None
        if k > 1 and state[k - 1] == State.RUN:
            estimator.q[:], estimator.s[:] = record["q"][k - 1], record["s"][k - 1]
            times = record["time"][k - 1], record["command_time"][k - 1], record["time"][k]
            acted = acting(torque[k - 1], torque[k - 2], *map(float, times))
            known, ease = estimator.acceleration(acted).tolist(), estimator.ease.tolist()
            finding = residual.follow(
                record["position"][k].tolist(),
                np.where(record["doubtful"][k] != 0.0, np.nan, record["report_time"][k]).tolist(),
                reports[k].tolist(),
                *residual.between_samples(acted.tolist(), torque[k - 2].tolist(), known, ease),
                estimator.inertia.tolist(),
                estimator.held.tolist(),
                ease,
            )
            if k == seen.k:
                seen.finding, seen.residual = finding, residual
            elif state[k] == State.RUN:
                cause = 0.0 if finding is None else float(finding.reason)
                found.add("residual: verdict", k, np.zeros(1), np.array([cause]))
        if state[k] == State.RUN and (k == 0 or state[k - 1] != State.RUN):
            residual.start(reports[k].tolist(), record["s"][k])
        for name, values in (("residual", residual.torque), ("allowed", residual.allowed)):
            recorded = np.ascontiguousarray(record[name][k])
            found.add(f"residual: {name}", k, recorded, values, tolerance, name)


class _Guard:
    """Recomputes the guard and the torque of the stops of a record.

    A row contains the start of its cycle, but not the later instant of the guard's check. In a
    cycle that passed, reports were fresh at the later instant, and therefore also at the start. In
    a stop, cycles in which a report became too old in between are skipped.
    """

    def __init__(self, record: Record, rig: Rig) -> None:
        limits = self._limits = Limits.from_rig(rig)
        self._policies, self._period = rig.policies, rig.loop.period
        listening = record.manifest.get("mode") == "listen"
        self._demand = np.ascontiguousarray(record["measured" if listening else "demand"])
        self._sent = np.ascontiguousarray(record["torque"])
        self._position, self._velocity = _motors(record, rig.transmission)
        # A report that arrived after the start of the cycle has age zero.
        ages = np.maximum(record["time"][:, None] - record["report_time"], 0.0)
        self._ages = np.ascontiguousarray(ages)
        lateness = record["time"] - record["deadline"]
        late, self._prompt = lateness > LATE * self._period, lateness <= PROMPT * self._period
        # The loop counts deadlines without a cycle together with the next cycle.
        passed = np.rint(np.diff(record["deadline"], prepend=np.nan) / self._period)
        self._passed = np.fmax(passed, 1.0)
        self._late = late + np.where(passed > 1.0, passed - 1.0, 0.0)
        self._lost = np.diff(record["lost"], prepend=0.0) > 0.0
        self._reports = record["reports"]
        self.absent = np.zeros(limits.size)  # consecutive cycles without a report, by axis
        self._delayed: int | None = 0  # late or skipped cycles since the last prompt cycle
        self._losing: int | None = 0  # consecutive cycles without a report of any one axis
        fresh = limits.largest_age - rig.loop.receive_window - 2.0 * self._period
        # A delayed cycle may have ended as late as the start of the next one.
        held = np.fmax(np.diff(record["time"], append=np.nan) - self._period, record["compute"])
        held = np.fmax(held, 0.0)[:, None]
        old = (self._ages + held > fresh) & (self._ages <= limits.largest_age)
        self._doubtful = old.any(axis=1) | (record["reason"] == Reason.NOT_FINITE)
        self._state, self._index = record["state"], record.index
        self._failing: dict[Reason, int | None] = {Reason.LOST: 0, Reason.LATE: 0}
        self._action = Action.BRAKE
        self.torque = CycleTorque(limits, rig.policies, self._period)
        ended = (record["state"] == State.STOP) & (record["reason"] == Reason.END)
        self._ends = int(np.argmax(ended)) if ended.any() and rig.policies.end == "hold" else -1

    def follows(self, k: int) -> bool:
        """Whether the preceding row is of the preceding cycle."""
        return k > 0 and bool(self._index[k] == self._index[k - 1] + 1)

    def count(self, k: int) -> bool:
        """Count consecutive faulty cycles as the loop does; False if their number is unknown."""
        follows, torque = self.follows(k), self.torque
        if follows:
            torque.sent[:] = self._sent[k - 1]
            torque.warm(self._passed[k])
        else:
            torque.heat.fill(0.0 if self._index[k] == 0 else np.nan)
        ran = follows and self._state[k - 1] == State.RUN
        begins = k == 0 or (follows and not ran)
        delayed, losing = self._delayed, self._losing
        patience = self._policies.max_consecutive_faults
        failed = int(self._late[k])
        # After a gap the number of consecutive faulty cycles is unknown.
        if begins or (self._prompt[k] and not failed):
            delayed = 0
        else:
            delayed = delayed + failed if follows and delayed is not None else None
        if not self._lost[k] or begins:
            losing = 0
        else:
            losing = losing + 1 if follows and losing is not None else None
        if follows:
            same = self._reports[k] == self._reports[k - 1]
            self.absent = np.where(same, self.absent + 1.0, 0.0)
        else:
            self.absent = np.zeros(self._limits.size)
        absent = int(self.absent.max())
        self._losing = losing
        self._delayed = delayed
        self._failing[Reason.LATE] = delayed if failed and not begins else 0
        if losing == 0:
            self._failing[Reason.LOST] = 0
        elif losing is None:
            self._failing[Reason.LOST] = None
        else:
            self._failing[Reason.LOST] = absent if losing <= patience or absent > patience else 0
        return follows and None not in self._failing.values()

    def judge(self, k: int) -> Verdict:
        """Check the torque of a cycle of a run; the limited torque is `torque.passed`."""
        self._action, torque = Action.BRAKE, self.torque
        torque.sent[:] = self._sent[k - 1]
        lost, late = self._failing[Reason.LOST], self._failing[Reason.LATE]
        failing: Failing | None = None
        if lost:
            failing = self._policies.on_missing, Reason.LOST, lost
        elif late:
            failing = self._policies.on_late, Reason.LATE, late
        return torque.judge(
            self._demand[k], failing, self._position[k], self._velocity[k], self._ages[k]
        )

    def stop(self, k: int) -> bool:
        """Recompute the torque of a cycle of a stop, `torque.sent`; False if it is unknown."""
        torque, powered = self.torque, bool(self._sent[k].any())
        now = self._position[k], self._velocity[k], self._ages[k]
        if k == self._ends:  # the task is done: hold at once, with the last torque as an offset
            self._action = Action.HOLD
            torque.sent[:] = self._sent[k - 1] if self.follows(k) else np.nan
            torque.anchor(self._position[k], carries=True)
        if self._doubtful[k] or (self._action is Action.HOLD and np.isnan(torque.carried).any()):
            return False
        if self._action is Action.BRAKE:
            torque.act(Action.BRAKE, *now)
            if not np.array_equal(torque.sent, self._sent[k]):
                # Braking is over. The first cycle of holding has the torque of braking, so the
                # position to hold is that of the preceding cycle.
                self._action = Action.HOLD if powered else Action.OFF
                torque.anchor(self._position[k - 1], carries=False)
        if self._action is not Action.BRAKE:
            self._action = self._action if powered else Action.OFF
            torque.act(self._action, *now)
        return True


def _replay_guard(
    record: Record, rig: Rig, found: _Comparison, seen: Evidence
) -> tuple[int, int, int]:
    """Check all cycles; return the numbers of cycles of runs, of stops, and of skipped cycles.

    The verdict about the first cycle of a stop is added to `seen`.
    """
    guard = _Guard(record, rig)
    state, flags = record["state"], record["flags"]
    sent = np.ascontiguousarray(record["torque"])
    judged = stopped = left_out = 0
    for k in range(len(record)):
        known = guard.count(k)
        runs = state[k] == State.RUN
        if k == seen.k:
            seen.verdict, seen.absent = guard.judge(k), guard.absent
        if runs:
            if not known:
                left_out += 1
                continue
            judged += 1
            why = guard.judge(k).reason
            found.add("guard: verdict", k, np.zeros(1), np.array([float(why)]))
            if why is Reason.NONE:
                found.add("guard: torque", k, sent[k], guard.torque.passed, 0.0, "torque")
                changed = np.array([float(guard.torque.flags)])
                found.add("guard: flags", k, np.ascontiguousarray(flags[k : k + 1]), changed)
        if state[k] == State.STOP:
            if guard.stop(k):
                stopped += 1
                # Adding 0.0 removes the sign of zeros.
                found.add("stop: torque", k, sent[k] + 0.0, guard.torque.sent + 0.0, 0.0, "torque")
            else:
                left_out += 1
    return judged, stopped, left_out


def _motors(record: Record, found: Transmission) -> tuple[Vectors, Vectors]:
    """Positions and velocities of the motors in the recorded state, shapes (rows, n)."""
    rates = {name: i for i, (name, _) in enumerate(record.columns("s"))}
    missing = [name for name in found.joints if name not in rates]
    if missing:
        raise RecordError(
            f"record {record.folder}",
            expected=f"the velocity of `{missing[0]}` in the state",
            came=f"velocities of {', '.join(rates)}",
            cure="Replay only records of laws whose velocities contain those of all joints.",
        )
    speeds = record["s"][:, [rates[name] for name in found.joints]]
    return found.of_configuration(record["q"]), found.of_joints(speeds)


def _check_layout(record: Record, rig: Rig, servo: TrackingLaw) -> None:
    names = tuple(axis.name for axis in rig.axes)
    layout = record.layout
    own = (layout.axes, layout.nq, layout.ns, layout.pose_size, layout.size, layout.further)
    further = servo.twist_size - servo.size
    expected = (names, servo.nq, servo.nw, servo.pose_size, servo.size, further)
    if own != expected:
        raise RecordError(
            f"record {record.folder}",
            expected=f"axes, nq, ns and sizes of rig `{rig.name}`: {expected}",
            came=str(own),
            cure="Pass the rig file of the run; a copy is in the record.",
        )


def _check_fingerprints(
    record: Record, rig: Rig, servo: TrackingLaw, force: bool
) -> tuple[str, ...]:
    recorded, now = dict(record.manifest.get("fingerprints", {})), fingerprints(rig, servo)
    names = [name for name in JUDGED if recorded.get(name) != now[name]]
    if not names or force:
        return tuple(names)
    code = recorded.get("code") != now["code"]
    why = " (the code of concur or a library differs: robot and law may be the same)" * code
    raise RecordError(
        f"record {record.folder}",
        expected="rig, task, drivers, robot and law of the recorded run",
        came=f"another {', another '.join(names)}{why}",
        cure="Pass the rig file of the run, and use the version of concur in the manifest; or "
        "continue with `--force`.",
        names=tuple(names),
    )


def _same_machine(record: Record, tick: Tick) -> bool:
    """Whether the law's results must agree to the last bit."""
    manifest = record.manifest
    recorded = manifest.get("machine", {})
    here = machine()
    same = all(recorded.get(name) == here[name] for name in ("node", "machine", "processor"))
    compiled = manifest.get("facts", {}).get("compiled", tick.compiled)
    return same and compiled == tick.compiled


def _json(value: Any) -> Any:
    # JSON has no NaN.
    return None if isinstance(value, float) and not np.isfinite(value) else value
