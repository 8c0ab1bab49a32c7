"""The proof of a rig's task: whether it is about this rig, and its starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil._concur import Reading, Servo, StoredTaskProof, TrackingLaw, confirmed, load_task_proof
from hil.errors import ArmError
from hil.state import encoder_step

if TYPE_CHECKING:
    from hil.settings import Rig


@dataclass(frozen=True)
class Refusal:
    """Why a rig may not be armed with a proof, and what to do."""

    expected: str
    came: str
    cure: str

    def __str__(self) -> str:
        return f"expected {self.expected}, got {self.came}. {self.cure}"


@dataclass(frozen=True, eq=False)
class StartRegion:
    """Starts of a proof: deviations from the declared start.

    Parameters
    ----------
    x, ve : numpy.ndarray
        Declared errors of the outputs at the start, shape (size,).
    base : numpy.ndarray
        Declared coordinates of the base: x, y and heading, or place and quaternion, shape (3,) or
        (7,), m and rad.
    entries : slice
        Their entries in q.
    parts : tuple of (slice, float, float)
        Components of each output, and its radii of place and speed.
    radius : float
        Radius of the heading (rad), or of the pose of a free base, in which a metre counts as a
        radian.
    """

    x: NDArray[np.float64]
    ve: NDArray[np.float64]
    base: NDArray[np.float64]
    entries: slice
    parts: tuple[tuple[slice, float, float], ...]
    radius: float

    def contains(
        self, x: NDArray[np.float64], ve: NDArray[np.float64], q: NDArray[np.float64]
    ) -> bool:
        """Whether a state is one of the starts; False for NaN."""
        inside = all(
            np.linalg.norm(x[part] - self.x[part]) <= place
            and np.linalg.norm(ve[part] - self.ve[part]) <= speed
            for part, place, speed in self.parts
        )
        return inside and bool(self._from_declared(q[self.entries]) <= self.radius)

    def _from_declared(self, base: NDArray[np.float64]) -> float:
        """Deviation of the heading, or of the pose of a free base as proofs count it."""
        if len(base) == 3:
            turn = base[2] - self.base[2]
            return float(abs(np.arctan2(np.sin(turn), np.cos(turn))))
        (*u, w), (*v, z) = self.base[3:], base[3:]
        # The vector part of the quaternion from the declared attitude to this one, twice.
        turn = 2 * (w * np.array(v) - z * np.array(u) - np.cross(u, v))
        return float(np.linalg.norm([*(base[:3] - self.base[:3]), *turn]))


@dataclass(frozen=True, eq=False)
class RigProof:
    """Proof of the task of a rig file."""

    stored: StoredTaskProof
    confirmed: bool  # by this version of the checker on this computer
    torque: dict[str, float]  # proved bound of each axis, N m (N); infinite without one
    others: tuple[Refusal, ...]  # why it is about another rig
    notes: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The file."""
        return self.stored.path

    @property
    def sentence(self) -> str:
        """Claim in one sentence."""
        return self.stored.sentence

    def refusals(self, task: Path) -> tuple[Refusal, ...]:
        """All reasons why the rig may not be armed with this proof."""
        if self.confirmed:
            return self.others
        why = self.stored.document.uncovered
        return (
            *self.others,
            Refusal(
                "a proof that the checker has confirmed on this computer",
                f"{self.path}, {why or 'not confirmed by this version of concur'}",
                "Remove `proof`, or prove a statement that the checker covers."
                if why
                else f"Run `concur recheck {self.path} --task {task}`.",
            ),
        )

    def require(self, rig: Rig, rehearsal: bool) -> None:
        """Reject a rig that the proof is not about; a rehearsal needs no confirmed file."""
        for refusal in self.others if rehearsal else self.refusals(rig.task.path):
            raise ArmError(
                f"{rig.path}, `proof`",
                expected=refusal.expected,
                came=refusal.came,
                cure=refusal.cure,
            )

    @property
    def start(self) -> StartRegion:
        """Starts of the statement."""
        own, given = self.stored.task, self.stored.statement
        servo = own.servo
        sample = own.reference(0.0)
        x, ve = servo.errors(own.q0, own.s0, sample.flat_pose, sample.twist)
        parts, at = [], 0
        for output, place, speed in zip(servo.outputs, given.place, given.speed, strict=True):
            parts.append((slice(at, at + output.dim), place, speed))
            at += output.dim
        robot = servo.model.robot
        entries = robot.q_slice(robot.base.name)
        return StartRegion(
            np.asarray(x),
            np.asarray(ve),
            np.array(own.q0[entries]),
            entries,
            tuple(parts),
            given.heading,
        )


def load_proof(rig: Rig, law: TrackingLaw | None = None) -> RigProof | None:
    """Read the proof of a rig file and compare it with the rig; None if it has none."""
    if rig.proof is None:
        return None
    stored = load_task_proof(rig.proof)
    given = stored.statement
    bounds = {(bound.kind, bound.name): bound.value for bound in stored.bounds}
    torque = {axis.name: bounds.get(("torque", axis.name), np.inf) for axis in rig.axes}
    return RigProof(
        stored,
        confirmed(stored.document),
        torque,
        tuple(_others(rig, law, stored, torque)),
        (
            *_notes(rig, bounds, given.delay),
            *_first_torques(rig, stored),
            *_reading_notes(rig, given.reading),
        ),
    )


def _others(
    rig: Rig, law: TrackingLaw | None, stored: StoredTaskProof, torque: dict[str, float]
) -> list[Refusal]:
    found = []
    servo = law if isinstance(law, Servo) else None
    other = list(stored.differences(rig.task, servo))
    if law is not None and servo is None and "law" not in other:
        other.append("law")
    if other:
        names = ", ".join(other)
        found.append(
            Refusal(
                "a proof of the rig's task",
                f"{stored.path}, about another {names}",
                f"Prove it by `concur prove {rig.task.path}`, or remove `proof`.",
            )
        )
    period = stored.statement.period
    if rig.loop.period > period * (1 + 1e-9):
        found.append(
            Refusal(
                f"a loop with at most the period of the proof, {1e3 * period:g} ms",
                f"{1e3 * rig.loop.period:g} ms",
                "Increase `rate` of [loop], or prove the task with a longer `period`.",
            )
        )
    weak = [axis.name for axis in rig.axes if not torque[axis.name] <= axis.torque_limit]
    if weak:
        needs = ", ".join(f"{name} {torque[name]:.3g}" for name in weak)
        found.append(
            Refusal(
                "torque limits of the rig that are at least the proved torques, as no torque may "
                "be clipped",
                f"lower ones; proved: {needs}",
                "Increase the limits of these motors, prove a calmer task, or remove `proof`.",
            )
        )
    return found


def _notes(rig: Rig, bounds: dict[tuple[str, str], float], delay: float) -> list[str]:
    """Limits at which the guard may stop although the proof holds, and the assumed delay."""
    found, stop = [], "the guard may stop the run"
    joints, ratios = rig.transmission.joints, np.abs(rig.transmission.ratios)
    speeds = np.array([bounds.get(("speed", name), -np.inf) for name in joints])
    for axis, row in zip(rig.axes, ratios, strict=True):
        if not row[row > 0.0] @ speeds[row > 0.0] <= axis.speed_limit:
            found.append(f"axis {axis.name}: the proved speed exceeds its limit; {stop}")
    for name, (low, high) in zip(joints, rig.transmission.limits.tolist(), strict=True):
        above = bounds.get(("angle above", name), np.inf)
        below = bounds.get(("angle below", name), -np.inf)
        if above < low or below > high:
            found.append(f"joint {name}: proved angles exceed its limits; {stop}")
    if rig.estimator.latency > delay:
        found.append(
            f"the proof assumes a delay of at most {1e3 * delay:g} ms from measurement to torque; "
            f"`latency` of [estimator] is {1e3 * rig.estimator.latency:g} ms"
        )
    return found


def _first_torques(rig: Rig, stored: StoredTaskProof) -> list[str]:
    """Torques at the declared start that the guard reaches in several cycles only."""
    task, found = stored.task, []
    servo, model = task.servo, task.servo.model
    s = model.velocity(task.q0, task.s0) if servo.use_measured_velocity else task.s0
    first = dict(
        zip(model.control_names, servo.torque(task.q0, s, task.reference(0.0)), strict=True)
    )
    for axis in rig.axes:
        torque = abs(float(first.get(axis.name, 0.0)))
        if torque > axis.torque_rate_limit * rig.loop.period:
            found.append(
                f"axis {axis.name}: its first torque, {torque:.3g} N m, takes several cycles at "
                "`torque_rate_limit`; the proof assumes that it is applied at once"
            )
    return found


def _reading_notes(rig: Rig, reading: Reading | None) -> list[str]:
    """Errors of the measured state that the proof leaves out."""
    if reading is None:
        return [
            "the proof assumes a state that is measured without errors; `[proof.reading]` of the "
            "task has those that it covers"
        ]
    found = []
    steps = np.array([encoder_step(axis) for axis in rig.axes])
    for name, row in zip(rig.transmission.joints, rig.transmission.inverse, strict=True):
        step, covered = float(np.abs(row) @ steps), reading.angles.get(name)
        if covered is not None and step / 2 > covered:
            found.append(
                f"joint {name}: half a step of the encoder, {step / 2:.3g} rad, exceeds the "
                f"error of the angle in the proof, {covered:g} rad"
            )
    return found
