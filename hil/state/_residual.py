"""Residual of every axis: the torque that its motion needs beyond the one that was sent.

Observers of the third order follow the position y of each motor, its speed and the acceleration d
that the model lacks, with three poles at one rate (a critically damped g-h-k filter). With the
model's acceleration a, the time dt between two samples and ``theta = exp(-rate dt)``:

    x- = x + (w + (a + d) dt/2) dt      w- = w + (a + d) dt       r = y - x-
    x  = x- + (1 - theta^3) r           w  = w- + 3/2 (1 - theta)^2 (1 + theta) r / dt
    d  = d + (1 - theta)^3 r / dt^2

The residual torque is ``A d`` with the inertia A of the motors in the reduced model, wheels and
momentum included: the disturbance of a momentum observer. Since d is that of ``3 / rate`` ago, A is
the mean inertia of this time: else friction of one axis would be seen at another as the robot
changes its posture. The residual is allowed to be as large as the
numbers of the motor explain: friction, losses of the gear, steps of the encoder, and a share of the
torques of the model. Observers at several rates judge each axis: fast ones detect large faults
early, slow ones small faults that the steps of the encoder hide from the fast ones.

All functions take and give plain numbers in a fixed order: C gives the same to the last bit.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil._limits import SPEED_MARGIN
from hil.drives import answer_commands
from hil.reasons import Reason
from hil.state._differentiation import SLACK, encoder_step
from hil.state._explanation import Cause, Sample, Tracked, explain

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil.settings import Axis, Rig

RATES = 100.0, 40.0, 12.0
"""Poles of the observers, 1/s."""

FLOOR = 0.01
"""Allowed residual, as a fraction of the torque limit."""

PEAK = 0.265
"""Largest change of d, relative to rate^2, by a step of the position of one: 0.231 for poles that
are slow against the period, and at most 0.262."""

TIMING = 1e-4
"""Uncertainty of the instant of a sample, s."""

GAP = 1.5
"""Time without a report after which an observer restarts at the next position, periods."""

MEMORY = 0.8
"""Time for which samples are kept to explain a residual, s."""

PATIENCE = 0.014, 0.06
"""Largest impulse of the torque, as a fraction of its limit times 1 s, and longest time, s, after
which a residual beyond its bound stops the rig even if its cause is not clear."""

LOOKS = frozenset({4, 8, 16, 32, 64})
"""Numbers of cycles after which the cause of a residual is computed."""

STEPS, FEW, REPEATS = 5.0, 2.5, 3
"""Least way of an axis, in steps of its encoder, and number of reports, for which its position may
stay the same although it should move; few steps where no residual is beyond half of its bound, as
forces that stop an axis have one. An encoder that works stays the same for one step."""

HALF = 0.5
"""Share of its bound from which a residual may explain why an axis is too fast or too far."""

SLIP, JITTER = 0.85, 0.82
"""Largest errors of the speed of an observer, by a change of the acceleration by one, relative to
1 / rate, and by a step of the position of one, relative to rate: 0.840 and 0.804 for poles that are
slow against the period."""

JOLT = 0.27
"""Largest d by a step of the speed of one, relative to rate: 0.271 for poles that are slow against
the period."""

CHANGE = 0.5
"""Fraction of the floor that is allowed for a sudden change of a residual."""


CAUSES = frozenset(
    {
        Reason.STUCK,
        Reason.WRONG_SIGN,
        Reason.TORQUE_SCALE,
        Reason.COUNT_SCALE,
        Reason.IGNORED,
        Reason.CONTACT,
        Reason.DELAYED,
    }
)
"""Reasons of stops by a residual."""


def coast(state: Tracked, a: float, dt: float) -> Tracked:
    """Advance an observer without a sample."""
    x, w, d = state
    a += d
    return Tracked(x + (w + 0.5 * a * dt) * dt, w + a * dt, d)


def correct(state: Tracked, y: float, dt: float, rate: float) -> tuple[Tracked, float]:
    """Correct an observer by a sample, dt after the one before; return also the innovation."""
    x, w, d = state
    rest = y - x
    theta = math.exp(-rate * dt)
    left = 1.0 - theta
    x += (1.0 - theta * theta * theta) * rest
    w += 1.5 * left * left * (1.0 + theta) * rest / dt
    d += left * left * left * rest / (dt * dt)
    return Tracked(x, w, d), rest


class Still(NamedTuple):
    """Expected motion of an axis since its position changed last."""

    repeats: int  # number of equal reports
    w: float
    d: float  # acceleration that the model lacked then
    way: float  # least way


def wait(still: Still, a: float, drag: float, dt: float) -> Still:
    """Continue the least motion for one more equal report; `drag` may brake it.

    Accelerations of the model that would drive it on do not count: another axis may be faulty.
    """
    repeats, w, d, way = still
    ahead = 1.0 if w > 0.0 else -1.0
    speed = max(abs(w) + (min(ahead * (a + d), 0.0) - drag) * dt, 0.0)
    return Still(repeats + 1, ahead * speed, d, way + speed * dt)


@dataclass(frozen=True, slots=True)
class Allowance:
    """Residuals that the numbers of a motor explain, N m (N), rad (m)."""

    limit: float
    viscous: float
    dry: float  # Coulomb friction and its excess at breakaway
    losses: float  # one minus the efficiency of the gear
    share: float  # of the model's torques
    step: float  # of the encoder
    timing: float  # uncertainty of the instant of a sample, s

    def torque(self, applied: float, held: float, speed: float) -> float:
        """Allowed residual torque without encoder noise.

        `applied`: largest torque of the last instants, `held`: torque that holds the state.
        """
        friction = self.viscous * abs(speed) + self.dry + self.losses * applied
        return FLOOR * self.limit + friction + self.share * max(applied, abs(held))

    def change(self, torque: float) -> float:
        """Allowed sudden change of the residual torque for one of the applied torque."""
        return CHANGE * FLOOR * self.limit + 2.0 * self.dry + self.share * abs(torque)

    def blur(self, speed: float) -> float:
        """Uncertainty of a position."""
        return self.step + self.timing * abs(speed)


def allowance_of(axis: Axis, rig: Rig) -> Allowance:
    """Allowance of an axis of a rig."""
    motor = next((m for m in rig.task.robot.motors if m.name == axis.name), None)
    viscous, coulomb, excess = (0.0, 0.0, 0.0) if motor is None else motor.friction
    emulated = rig.emulator
    return Allowance(
        axis.torque_limit,
        viscous + emulated.viscous.get(axis.name, 0.0),
        coulomb + excess + emulated.friction.get(axis.name, 0.0),
        0.0 if motor is None else 1.0 - motor.efficiency,
        rig.estimator.model_error,
        encoder_step(axis),
        TIMING + emulated.jitter,
    )


def samples_of(period: float) -> int:
    """Number of samples of an axis that are kept to explain a residual."""
    return max(8, round(MEMORY / period))


@dataclass(frozen=True)
class Finding:
    """Reason of a stop by the motion of an axis, with its numbers."""

    reason: Reason
    axis: int
    detail: str

    @classmethod
    def of_cause(
        cls, axis: int, name: str, cause: Cause | None, residual: float, allowed: float, u: float
    ) -> Finding:
        """Residual beyond its bound at torques up to `u`, without or with its cause."""
        detail = (
            f"axis `{name}`: residual {residual:.3g} N m (N), allowed {allowed:.3g}, at a torque "
            f"of {u:.3g}"
        )
        if cause is None:
            return cls(Reason.CONTACT, axis, detail)
        return cls(cause.reason, axis, f"{detail}; {cause}")

    @classmethod
    def of_still(cls, axis: int, name: str, repeats: int, way: float) -> Finding:
        """Position that stays the same."""
        detail = f"axis `{name}`: {repeats} equal positions, on a way of at least {way:.3g} rad (m)"
        return cls(Reason.STUCK, axis, detail)


class Residual:
    """Residuals of all axes; `follow` processes a cycle.

    A residual beyond its bound stops the rig as soon as its cause is clear, or when `PATIENCE` is
    over. A sudden change of a residual stops it only if an encoder clearly causes it: no bounded
    force changes a speed within a sample.

    Attributes
    ----------
    torque, allowed : numpy.ndarray
        Residual of each axis and its bound, of the observer whose residual is the larger part of
        its bound, N m (N), shape (n,).
    """

    def __init__(self, rig: Rig, servo: TrackingLaw) -> None:
        model = servo.model
        measured = servo.use_measured_velocity
        velocities = model.system.freedom_names if measured else model.shape_names
        self.allowances = [allowance_of(axis, rig) for axis in rig.axes]
        self._fastest = [axis.speed_limit * (1.0 + SPEED_MARGIN) for axis in rig.axes]  # overspeed
        self._period, self._latency = rig.loop.period, rig.estimator.latency
        n = self.size = len(rig.axes)
        self.torque, self.allowed = np.zeros(n), np.zeros(n)
        self.fade = math.exp(-RATES[-1] * self._period)
        self.shares = [1.0 - math.exp(-rate * self._period / 3.0) for rate in RATES]
        self._inertia = np.zeros((len(RATES), n, n))  # mean, for each observer
        kept = samples_of(self._period)
        self._samples: list[deque[Sample]] = [deque(maxlen=kept) for _ in rig.axes]
        self._names = [axis.name for axis in rig.axes]
        found = rig.transmission
        known = {*found.joints} <= {*velocities}
        # Places of the measured joints in the velocities of the law; empty if it has others.
        self.joints = [velocities.index(name) for name in found.joints] if known else []
        self._motors_of = found.of_joints
        self.answers = answer_commands(rig)
        self.shared = model.nu > model.ns  # more motors than velocities
        self.start([0] * n, np.zeros(len(velocities)))

    def start(self, counts: Sequence[int], s: NDArray[np.float64]) -> None:
        """Restart at the next reports, after numbers of reports, with the velocities of the law."""
        n = self.size
        self._counts, self._speeds = list(counts), [0.0] * n
        if self.joints:
            self._speeds = self._motors_of(s[self.joints]).tolist()
        self._times = [-math.inf] * n  # of the observers
        self._seen = [(-math.inf, math.nan)] * n  # instant and position of the last report
        self._states = [[Tracked(math.nan, 0.0, 0.0)] * n for _ in RATES]
        self._applied, self._mean = [0.0] * n, [0.0] * n
        self._paces = [0.0] * n  # mean speeds over the delay of the slowest observer
        self._axis, self._firm, self._since, self._impulse = -1, False, 0, 0.0
        self._still = [Still(0, 0.0, 0.0, 0.0)] * n
        self._ease: Sequence[Sequence[float]] = [[0.0] * n] * n
        self._inertia.fill(math.nan)
        self.torque.fill(0.0)
        self.allowed.fill(0.0)
        for samples in self._samples:
            samples.clear()

    def follow(
        self,
        positions: Sequence[float],
        times: Sequence[float],
        counts: Sequence[int],
        torques: Sequence[float],
        accelerations: Sequence[float],
        inertia: Sequence[Sequence[float]],
        held: Sequence[float],
        ease: Sequence[Sequence[float]],
    ) -> Finding | None:
        """Process the reports of a cycle; return the reason to stop, if there is one.

        `torques` acted since the last sample, with the model's `accelerations` of the motors, their
        `inertia`, the torques that hold the state, and the accelerations by a unit of each torque,
        at the state of the last cycle. Times are NaN where an earlier report of an axis may be
        outstanding: it is then unknown which request the last one answers, and so it is if several
        came at once.
        """
        self._ease = ease
        changes = [
            own.change(torque - mean)
            for own, torque, mean in zip(self.allowances, torques, self._mean, strict=True)
        ]
        drags, grips = [], []
        for row in ease:
            drag = grip = 0.0  # friction of one axis also brakes others
            for part, change, own in zip(row, changes, self.allowances, strict=True):
                drag += abs(part) * change
                grip += abs(part) * (2.0 * own.dry)
            sure = drag - drag == 0.0
            drags.append(drag if sure else math.inf)
            grips.append(grip if sure else math.inf)
        for i, (count, torque) in enumerate(zip(counts, torques, strict=True)):
            self._applied[i] = max(abs(torque), self._applied[i] * self.fade)
            self._mean[i] += (1.0 - self.fade) * (torque - self._mean[i])
            first = self._times[i] == -math.inf and math.isfinite(accelerations[i])
            if first and not self.answers[i]:  # else it is sampled before any torque acts
                self._speeds[i] += accelerations[i] * self._period
            if count == self._counts[i] + 1 and times[i] == times[i]:
                sampled = times[i] - self._latency
                self._take(i, positions[i], sampled, accelerations[i], torque, drags[i], grips[i])
            elif self._times[i] > -math.inf:
                sampled = self._times[i] + self._period
                self._miss(i, sampled, accelerations[i], torque)
        self._counts = list(counts)
        for i, state in enumerate(self._states[-1]):
            self._paces[i] += self.shares[-1] * (state.w - self._paces[i])
        self._average(inertia)
        suspect, sudden = self._compare(inertia, held, torques)
        shares = np.abs(self.torque) > HALF * self.allowed
        steps = STEPS if shares.any() else FEW
        for i, still in enumerate(self._still):
            stands = still.repeats >= REPEATS and still.way > steps * self.allowances[i].step
            if stands and not (shares.any() and not shares[i]):  # by the fault of another axis
                return Finding.of_still(i, self._names[i], still.repeats, still.way)
        passed = self._firm and abs(self.torque[self._axis]) <= self.allowed[self._axis]
        if self._axis < 0 or passed or (suspect >= 0 and not self._firm):
            self._firm = suspect >= 0
            self._axis = suspect if self._firm else sudden
            self._since, self._impulse = 0, 0.0
        if self._axis < 0:
            return None
        return self._judge(torques)

    def between_samples(
        self,
        acted: Sequence[float],
        before: Sequence[float],
        accelerations: Sequence[float],
        ease: Sequence[Sequence[float]],
    ) -> tuple[list[float], list[float]]:
        """Torques and accelerations between the last two samples of each axis, for `follow`.

        `acted` and `accelerations` are those since the last cycle. A drive that answers commands
        samples first: between its samples acted the torques that were sent `before` the last ones.
        """
        torques, found = list(acted), list(accelerations)
        for i, answers in enumerate(self.answers):
            if answers:
                torques[i] = before[i]
                for part, old, new in zip(ease[i], before, acted, strict=True):
                    found[i] += part * (old - new)
        return torques, found

    def _take(
        self, i: int, y: float, t: float, a: float, u: float, drag: float, grip: float
    ) -> None:
        """Pass a report to the observers of an axis.

        `drag`: possible sudden change of its acceleration; `grip`: the part of dry friction.
        """
        dt = t - self._times[i]
        if not (y - y == 0.0 and a - a == 0.0):
            return
        if not 0.0 < dt <= GAP * self._period:  # also at the start: its instant may be wrong
            for states in self._states:
                _, w, d = states[i]
                if dt == math.inf:
                    w = self._speeds[i]
                elif dt > 0.0:
                    w = coast(states[i], a, dt).w
                states[i] = Tracked(y, w, d)
            self._samples[i].clear()
            self._still[i] = Still(0, 0.0, 0.0, 0.0)
            self._keep(i, y, t, a, u, 0.0)
            return
        passed = t - self._seen[i][0]
        reach = self._fastest[i] * passed + SLACK * self.allowances[i].step
        if abs(y - self._seen[i][1]) > reach:
            return  # a wrong frame; an encoder that jumps is lost
        if y == self._seen[i][1]:
            self._still[i] = wait(self._still[i], a, drag, dt)
            speed = abs(self._states[-1][i].w) - SLIP * grip / RATES[-1]
            moves = speed * dt > self.allowances[i].step
            if moves and self._still[i].repeats < REPEATS:
                return self._miss(i, t, a, u)  # the report may have come twice
        rest = 0.0
        for states, rate in zip(self._states, RATES, strict=True):
            states[i], rest = correct(coast(states[i], a, dt), y, passed, rate)
        if y != self._seen[i][1]:
            w = self._least_speed(i, drag)
            self._still[i] = Still(0, w, self._states[-1][i].d, 0.0)
        self._keep(i, y, t, a, u, rest)

    def _least_speed(self, i: int, drag: float) -> float:
        """Least speed of an axis, whatever friction and the steps of its encoder are."""
        least, blur = 0.0, self.allowances[i].blur(self._states[-1][i].w)
        for states, rate in zip(self._states, RATES, strict=True):
            w = states[i].w
            certain = abs(w) - SLIP * drag / rate - JITTER * rate * blur
            if certain > abs(least):
                least = math.copysign(certain, w)
        return least

    def _miss(self, i: int, t: float, a: float, u: float) -> None:
        """Continue the observers of an axis without a report."""
        dt = t - self._times[i]
        for states in self._states:
            states[i] = coast(states[i], a, dt)
        self._times[i] = t
        self._samples[i].append(Sample(t, math.nan, a, u, self._states[-1][i], 0.0))

    def _keep(self, i: int, y: float, t: float, a: float, u: float, rest: float) -> None:
        """Keep a report, after which the observers are as they are now."""
        self._times[i], self._seen[i] = t, (t, y)
        self._samples[i].append(Sample(t, y, a, u, self._states[-1][i], rest))

    def _average(self, inertia: Sequence[Sequence[float]]) -> None:
        """Average the inertia over the delay of each observer."""
        now = np.array(inertia)
        if not np.isfinite(now).all():
            return
        for mean, share in zip(self._inertia, self.shares, strict=True):
            if mean[0, 0] == mean[0, 0]:
                mean += share * (now - mean)
            else:
                mean[:] = now

    def _compare(
        self, inertia: Sequence[Sequence[float]], held: Sequence[float], torques: Sequence[float]
    ) -> tuple[int, int]:
        """Compare residuals with their bounds; return the axis furthest beyond, or -1, of both."""
        suspect = sudden = -1
        most = rise = 1.0
        slow = self._states[-1]
        blurs = [own.blur(state.w) for own, state in zip(self.allowances, slow, strict=True)]
        means = self._inertia.tolist()
        residuals, bounds = [], []
        rests, changes = self._bounds(inertia, held, torques)
        for i, row in enumerate(inertia):
            blur = 0.0
            for part, each in zip(row, blurs, strict=True):
                blur += abs(part) * each
            found = []
            for mean, states in zip(means, self._states, strict=True):
                torque = 0.0
                for part, state in zip(mean[i], states, strict=True):
                    torque += part * state.d
                found.append(torque)
            allowed = rests[i]
            share, kept = -1.0, (0.0, allowed)
            for torque, rate in zip(found, RATES, strict=True):
                bound = allowed + PEAK * rate * rate * blur
                if abs(torque) > share * bound:
                    share, kept = abs(torque) / bound, (torque, bound)
            residuals.append(kept[0])
            bounds.append(kept[1])
            if share > most:
                most, suspect = share, i
            for torque, rate in zip(found[:-1], RATES, strict=False):
                share = abs(torque - found[-1]) / (changes[i] + PEAK * rate * rate * blur)
                if share > rise:
                    rise, sudden = share, i
        self.torque[:], self.allowed[:] = residuals, bounds
        return suspect, sudden

    def _bounds(
        self, inertia: Sequence[Sequence[float]], held: Sequence[float], torques: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        """Allowed residual of each axis without encoder noise, and its allowed sudden change.

        Where more motors than velocities share their torques, so do residuals: of those that give
        the same motion, the smallest are found. All of them show the friction of one.
        """
        rests, changes = [], []
        for i, own in enumerate(self.allowances):
            rests.append(own.torque(self._applied[i], held[i], self._states[-1][i].w))
            w = self._states[-1][i].w
            change = own.change(torques[i] - self._mean[i])
            changes.append(change + own.viscous * abs(w - self._paces[i]))
        if not self.shared:
            return rests, changes
        seen: tuple[list[float], list[float]] = ([], [])
        for row in inertia:
            rest = change = 0.0
            for k, (own_rest, own_change) in enumerate(zip(rests, changes, strict=True)):
                part = 0.0  # of the torque of motor k in the residual of this axis
                for mass, eased in zip(row, self._ease, strict=True):
                    part += mass * eased[k]
                rest += abs(part) * own_rest
                change += abs(part) * own_change
            seen[0].append(rest)
            seen[1].append(change)
        return seen

    def seen_speeds(
        self, inertia: NDArray[np.float64], held: Sequence[float], ease: NDArray[np.float64]
    ) -> list[float]:
        """Speed of each axis from which a step of the same size stops a run, rad/s (m/s).

        An encoder whose counts double doubles the speed. Arguments as in `follow`.
        """
        blurs = np.abs(inertia) @ [own.step for own in self.allowances]
        speeds = []
        both = zip(self.allowances, held, strict=True)
        rests = np.array([own.torque(abs(u), u, 0.0) for own, u in both])
        if self.shared:
            rests = np.abs(inertia @ ease) @ rests
        for i, allowed in enumerate(rests.tolist()):
            mass = abs(float(inertia[i, i]))
            bounds = [(allowed + PEAK * rate**2 * blurs[i]) / rate for rate in RATES]
            speeds.append(min(bounds) / (JOLT * mass) if mass > 0.0 else math.inf)
        return speeds

    def _judge(self, torques: Sequence[float]) -> Finding | None:
        """Judge the axis under suspicion."""
        i, self._since = self._axis, self._since + 1
        largest = max(abs(torques[i]), abs(torques[i] + float(self.torque[i])))
        self._impulse += self._period * min(largest / self.allowances[i].limit, 1.0)
        impulse, longest = PATIENCE
        over = self._impulse > impulse or self._since * self._period > longest
        if not (over or self._since in LOOKS):
            return None
        cause = self.cause(i)
        if cause is not None and cause.clear and (self._firm or cause.encoder):
            return self.finding(i, cause)
        if not over:
            return None
        if self._firm:
            return self.finding(i, cause)
        self._axis = -1
        return None

    def suspected(self, axis: int) -> Finding | None:
        """Clear cause of a residual near its bound, when an axis moves as it must not.

        `axis`: the axis, or -1 for the one with the largest residual.
        """
        shares = np.abs(self.torque) / np.maximum(self.allowed, np.finfo(float).tiny)
        i = int(shares.argmax()) if axis < 0 else axis
        if not shares[i] > HALF:
            return None
        cause = self.cause(i)
        if cause is None or not cause.clear or cause.reason is Reason.CONTACT:
            return None
        return self.finding(i, cause)

    def cause(self, axis: int) -> Cause | None:
        """Cause of the residual of an axis."""
        own = self.allowances[axis]
        return explain(self._samples[axis], self._ease[axis][axis], own.limit, own.step)

    def finding(self, axis: int, cause: Cause | None) -> Finding:
        """Reason to stop for a cause, with the numbers of the axis."""
        numbers = float(self.torque[axis]), float(self.allowed[axis]), self._applied[axis]
        return Finding.of_cause(axis, self._names[axis], cause, *numbers)


def acting(
    sent: NDArray[np.float64],
    before: NDArray[np.float64],
    start: float,
    commanded: float,
    now: float,
) -> NDArray[np.float64]:
    """Mean torque between two samples: up to the commands of a cycle the earlier torque acts.

    The drives sample at the start of a cycle and at `now`, the start of the next one; commands were
    sent at `commanded`, NaN if drives sample at their commands.
    """
    share = (commanded - start) / (now - start) if now > start else 0.0
    share = min(max(share, 0.0), 1.0) if share == share else 0.0
    return sent + share * (before - sent)
