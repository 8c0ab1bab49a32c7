"""Ways through a closed loop: step by step, by SciPy's integrators, and as machine code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from concur.codegen import Evaluator
from concur.control import Tick, TrackingLaw
from concur.outputs.references import Reference
from concur.simulation._integrator import ADAPTIVE
from concur.simulation._plant import Plant
from concur.simulation._record import Recorder
from concur.simulation._runge_kutta import graph_of
from concur.simulation._start import FASTEST
from concur.simulation._states import States
from concur.simulation._step import closed_loop, step_function
from concur.system import System

CHECK_EVERY = 200
"""Steps between two checks of the decoupling margin."""

Samples = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Setting:
    """Law, plant, reference and times of a loop."""

    servo: TrackingLaw
    plant: Plant
    reference: Reference
    method: str
    dt: float  # s
    steps: int
    per_hold: int | None  # steps in a control period of a sampled law
    robot: System  # the robot of the plant, or that of its world
    numbers: np.ndarray | None = None  # values of the uncertain numbers of the plant

    @property
    def stride(self) -> int:
        """Steps between two looks: whole periods."""
        period = self.per_hold or 1
        return period * max(1, CHECK_EVERY // period)

    @property
    def periods(self) -> int:
        """Periods of a sampled law, or steps, in a stride."""
        return self.stride // (self.per_hold or 1)

    def sample(self, times: np.ndarray) -> Samples:
        """Inputs `sampled` of the law at some times, one row each."""
        return (*self.reference.sample(times), times[:, None])[: len(self.servo.sampled)]

    def fill(self, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Fill in what is the same in all calls; return the inputs behind it."""
        if not self.plant.n_numbers:
            return inputs
        inputs[0][:, 0] = self.numbers
        return inputs[1:]

    def half_steps(self) -> Samples:
        """The same at each half step, from the first to the last."""
        return self.sample(np.arange(2 * self.steps + 1) * (self.dt / 2))

    def ticks(self) -> Samples:
        """The same at each tick of a sampled law."""
        return self.sample(np.arange(0, self.steps, self.per_hold or 1) * self.dt)


class Loop(ABC):
    """A way through the steps of a run."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def _own(self, states: States, rows: slice | np.ndarray) -> np.ndarray:
        """States z of the law."""
        return states.work[rows, 1 : 1 + self.setting.servo.nz]

    @abstractmethod
    def advance(self, first: int, last: int, states: States) -> tuple[int, bool]:
        """Fill in the states from `first` to `last`; return the last one and if it is valid."""

    def demanded(self, count: int) -> Samples:
        """Flat poses, twists and accelerations of the reference at the first states."""
        return self.setting.sample(np.arange(count) * self.setting.dt)

    def law(
        self, states: States, count: int, done: int, recorder: Recorder, demanded: Samples
    ) -> dict[str, np.ndarray]:
        """Rows of u, missed and scale at the first states, when `done` steps were tried."""
        if self.setting.per_hold is None:
            now = slice(0, count)
            return recorder.law(states.q[now], states.v[now], self._own(states, now), demanded)
        # The residual stays that of the instant at which the torque was computed.
        kept = np.minimum(np.arange(count), done - 1)
        ticks, own = np.unique(
            kept // self.setting.per_hold * self.setting.per_hold, return_inverse=True
        )
        state = self._own(states, ticks)
        at = recorder.law(states.q[ticks], states.v[ticks], state, _picked(demanded, ticks))
        return {
            "u": states.u[kept],
            "acceleration_residual": at["acceleration_residual"][own],
            "scale": at["scale"][own],
        }


class FixedStep(Loop):
    """A buffered Runge-Kutta step."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        servo, held = setting.servo, setting.per_hold is not None
        self._step = step_function(servo, setting.plant, setting.method, held, stages=True)
        self._step.inputs[3][0, 0] = setting.dt
        self._command = setting.fill(self._step.inputs[4:])
        self._held = _Held(setting) if held else None
        self._samples = None if held else setting.half_steps()

    def advance(self, first: int, last: int, states: States) -> tuple[int, bool]:
        for k in range(first, last):
            if not self._one(k, states):
                return k + 1, False
        return last, True

    def demanded(self, count: int) -> Samples:
        if self._samples is None:
            return super().demanded(count)
        return _picked(self._samples, slice(0, 2 * count - 1, 2))

    def _one(self, k: int, states: States) -> bool:
        inputs, outputs = self._step.inputs, self._step.outputs
        inputs[0][:, 0], inputs[1][:, 0] = states.q[k], states.v[k]
        inputs[2][:, 0] = states.work[k]
        if self._held is not None:
            if not self._held(k, states):
                return False
            inputs[2][1 : 1 + self.setting.servo.nz, 0] = self._held.state
            self._command[0][:, 0] = states.u[k]
        elif self._samples is not None:
            for view, part in zip(self._command, self._samples, strict=True):
                view[:] = part[2 * k : 2 * k + 3].T
        self._step.trigger()
        states.q[k + 1], states.v[k + 1] = outputs[0][:, 0], outputs[1][:, 0]
        states.work[k + 1] = outputs[2][:, 0]
        states.low[k + 1], states.high[k + 1] = outputs[4][:, 0], outputs[5][:, 0]
        kept = outputs[3][0, 0] >= self.setting.servo.singular_margin
        return bool(self._step.succeeded and kept and _sound(outputs[1]))


class Adaptive(Loop):
    """SciPy's integrators over one step of the record."""

    def __init__(self, setting: Setting, rates: ca.Function | None = None) -> None:
        super().__init__(setting)
        servo, plant, held = setting.servo, setting.plant, setting.per_hold is not None
        function = rates or closed_loop(servo, plant, held)
        shapes = [function.size_out(i) for i in range(function.n_out())]
        self._rates = Evaluator(function, shapes, f"simulation of `{plant.name}`")
        self._command = setting.fill(self._rates.inputs[2:])
        self._loads = self._command[: int(plant.nl > 0)]
        self._command = self._command[len(self._loads) :]
        self._share: np.ndarray | None = None
        if plant.friction is not None and plant.friction.dry:
            self._share, *self._command = self._command
            self._stick, self._stop = plant.sticking_functions()
        # Quaternions leave the unit sphere within a step, which the robot's own method refuses.
        turn = graph_of(plant.robot.rate, "rate", plant.robot.nq, plant.robot.nv)
        self._turn = Evaluator(turn, [(plant.robot.nq,)], f"simulation of `{plant.name}`")
        self._held = _Held(setting) if held else None

    def advance(self, first: int, last: int, states: States) -> tuple[int, bool]:
        for k in range(first, last):
            if not self._one(k, states):
                return k + 1, False
        return last, True

    def _one(self, k: int, states: States) -> bool:
        if self._held is not None and not self._held(k, states):
            return False
        nq, nv, nz = states.q.shape[1], states.v.shape[1], self.setting.servo.nz
        robot, sample = self.setting.robot, self.setting.sample
        rates, command = self._rates, self._command

        def slope(t: float, z: np.ndarray) -> np.ndarray:
            rates.inputs[0][:, 0], rates.inputs[1][:, 0] = z[:nq], z[nq : nq + nv]
            for view in self._loads:
                view[:, 0] = z[nq + nv + 1 + nz :]
            if self._held is not None:
                command[0][:, 0] = states.u[k]
            else:
                given = sample(np.array([t]))
                given += (z[None, nq + nv + 1 : nq + nv + 1 + nz],) if nz else ()
                for view, part in zip(command, given, strict=True):
                    view[:, 0] = part[0]
            rates.trigger()
            if not rates.succeeded:
                raise FloatingPointError
            v = z[nq : nq + nv]
            return np.concatenate(
                [self._turn(z[:nq], v), rates.outputs[0][:, 0], rates.outputs[1][:, 0]]
            )

        start = np.concatenate([states.q[k], states.v[k], states.work[k]])
        if self._held is not None:
            start[nq + nv + 1 : nq + nv + 1 + nz] = self._held.state
        span = k * self.setting.dt, (k + 1) * self.setting.dt
        method = ADAPTIVE[self.setting.method]
        try:
            if self._share is not None:
                response = self._shares(slope, span[0], start)
            end = solve_ivp(slope, span, start, method=method, rtol=1e-10, atol=1e-12)
        except (ValueError, FloatingPointError):
            return False
        if not end.success or not _sound(end.y[:, -1]):
            return False
        self._keep_reach(k, end.t, end.y, slope, states)
        z = end.y[:, -1]
        states.q[k + 1] = robot.check_configuration(z[:nq])
        states.v[k + 1], states.work[k + 1] = z[nq : nq + nv], z[nq + nv :]
        if self._share is not None:
            self._correct(k + 1, states, response)
        return True

    @property
    def _numbers(self) -> np.ndarray:
        numbers = self.setting.numbers
        return np.zeros(0) if numbers is None else numbers

    def _shares(
        self, slope: Callable[[float, np.ndarray], np.ndarray], t: float, z: np.ndarray
    ) -> list[ca.DM]:
        """Set the shares of dry friction for a step, and return what controls move."""
        plant, rates = self.setting.plant, self._rates
        q, v = z[: plant.nq], z[plant.nq : plant.nq + plant.nv]
        share_in = rates.inputs[2 + int(plant.n_numbers > 0) + int(plant.nl > 0)]
        share_in[:] = 0.0
        slope(t, z)
        loads, u = z[z.size - plant.nl :], rates.outputs[3][:, 0]
        given = q, v, loads, u, rates.outputs[0][:, 0], self._numbers, self.setting.dt
        share_in[:], _, *response = self._stick(*given)
        return list(response)

    def _correct(self, k: int, states: States, response: list[ca.DM]) -> None:
        """Correct the end of a step by dry friction, as `stepped` does."""
        q, v, h = states.q[k], states.v[k], self.setting.dt
        found = self._stop(q, v, self._numbers, ca.DM(self._share), h, *response)
        jump, faster = (np.array(part).ravel() for part in found)
        states.q[k] = self.setting.robot.integrate(q, h / 2 * jump)
        states.v[k] = v + jump
        states.work[k, 0] += h / 2 * (self._rates.outputs[3][:, 0] @ faster)

    def _keep_reach(
        self,
        k: int,
        times: np.ndarray,
        found: np.ndarray,
        slope: Callable[[float, np.ndarray], np.ndarray],
        states: States,
    ) -> None:
        """Keep the extremes over the integrator's own steps, the ends of which count as stages."""
        met = []
        for t, z in zip(times, found.T, strict=True):
            slope(t, z)
            u = self._rates.outputs[3][:, 0] if self._held is None else states.u[k]
            met.append(np.concatenate([z[: states.q.shape[1] + states.v.shape[1]], u]))
        states.low[k + 1], states.high[k + 1] = np.min(met, axis=0), np.max(met, axis=0)


class Machine(Loop):
    """Machine code that runs through many steps at once."""

    def __init__(self, setting: Setting, chunk: ca.Function) -> None:
        super().__init__(setting)
        shapes = [chunk.size_out(i) for i in range(chunk.n_out())]
        self._chunk = Evaluator(chunk, shapes, f"simulation of `{setting.plant.name}`")
        self._chunk.inputs[3][0, 0] = setting.dt
        self._command = setting.fill(self._chunk.inputs[4:])
        if setting.per_hold is None:
            self._samples, self._apart = setting.half_steps(), 2
        else:
            self._samples, self._apart = setting.ticks(), 1

    def advance(self, first: int, last: int, states: States) -> tuple[int, bool]:
        sound = self._run(first, states)
        q, v, work, verdict, u, missed, scale, low, high = (view.T for view in self._chunk.outputs)
        per, count = self.setting.per_hold or 1, last - first
        if not sound:
            return first + 1, False
        good = np.abs(v[:count]).max(axis=1) < FASTEST
        if self.setting.per_hold is None:
            good &= verdict[:count, 0] >= self.setting.servo.singular_margin
            ticked = good
        else:
            ticked = np.repeat(verdict[:, 0] == 0.0, per)[:count]
        all_good = good & ticked
        done = count if all_good.all() else int(np.argmin(all_good)) + 1
        rows = slice(first, first + done)
        states.u[rows] = np.repeat(u, per, axis=0)[:done]
        states.missed[rows] = np.repeat(missed, per, axis=0)[:done]
        states.scale[rows] = np.repeat(scale[:, 0], per)[:done]
        # Without a torque the robot has not moved.
        moved = done if self.setting.per_hold is None or ticked[done - 1] else done - 1
        after = slice(first + 1, first + 1 + moved)
        states.q[after], states.v[after] = q[:moved], v[:moved]
        states.work[after] = work[:moved]
        states.low[after], states.high[after] = low[:moved], high[:moved]
        return first + done, bool(all_good.all())

    def demanded(self, count: int) -> Samples:
        if self.setting.per_hold is not None:
            return super().demanded(count)
        return _picked(self._samples, slice(0, 2 * count - 1, 2))

    def law(
        self, states: States, count: int, done: int, recorder: Recorder, demanded: Samples
    ) -> dict[str, np.ndarray]:
        kept = np.arange(count)
        if self.setting.per_hold is not None:
            kept = np.minimum(kept, done - 1)
        elif count > done:
            # The law at the end is the start of a step that leads out of the run.
            self._run(done, states)
            for known, view in zip(
                (states.u, states.missed, states.scale), self._chunk.outputs[4:7], strict=True
            ):
                known[done] = view[:, 0] if known.ndim > 1 else view[0, 0]
        return {
            "u": states.u[kept],
            "acceleration_residual": states.missed[kept],
            "scale": states.scale[kept],
        }

    def _run(self, first: int, states: States) -> bool:
        """Let a chunk run from a state; beyond the end of the run the demand stands still."""
        inputs = self._chunk.inputs
        inputs[0][:, 0], inputs[1][:, 0] = states.q[first], states.v[first]
        inputs[2][:, 0] = states.work[first]
        start = first // (self.setting.per_hold or 1) * self._apart
        for view, part in zip(self._command, self._samples, strict=True):
            columns = part[start : start + view.shape[1]].T
            view[:, : columns.shape[1]] = columns
            view[:, columns.shape[1] :] = part[-1:].T
        self._chunk.trigger()
        return self._chunk.succeeded


class _Held:
    """A sampled servo: its torque changes at its own period only."""

    def __init__(self, setting: Setting) -> None:
        # A loop in Python has too few ticks for a compiler to pay off.
        self._tick = Tick(setting.servo, interpreted=True)
        self._setting, self._samples = setting, setting.ticks()
        self._tick.buffers.period[:] = setting.dt * (setting.per_hold or 1)
        self.state = self._tick.buffers.state  # after the last tick

    def __call__(self, k: int, states: States) -> bool:
        setting = self._setting
        if k % (setting.per_hold or 1):
            states.u[k] = states.u[k - 1]
            return True
        buffers = self._tick.buffers
        buffers.q[:], buffers.s[:] = states.q[k], setting.servo.law_velocities(states.v[k])
        row = k // (setting.per_hold or 1)
        for name, part in zip(setting.servo.sampled, self._samples, strict=True):
            getattr(buffers, name)[:] = part[row]
        sound = self._tick.update()
        states.u[k] = buffers.u
        return sound


def _sound(values: np.ndarray) -> bool:
    """Whether a state is one a robot can have; a NaN is not."""
    return bool(np.abs(values).max() < FASTEST)


def _picked(samples: Samples, rows: slice | np.ndarray) -> Samples:
    return tuple(part[rows] for part in samples)
