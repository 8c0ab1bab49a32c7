"""States with which exported code is tested, valid and invalid ones, with outputs of the law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import casadi as ca
import numpy as np

from concur.codegen import DRIFT, unit_span
from concur.control import TickStatus, TrackingLaw
from concur.errors import ConcurError
from concur.export._signals import Signal
from concur.outputs.references import LARGEST as LATEST
from concur.outputs.references import Reference

_GOOD = 100  # states of a replay that are not bad on purpose
_SINGULAR = 8  # those in singular configurations, if there are so many


@dataclass(frozen=True, eq=False)
class ReplayState:
    """A state: its kind, the numbers of all inputs and outputs in order, and the code."""

    what: str
    inputs: np.ndarray
    outputs: np.ndarray
    code: int


class ReplayStates:
    """The states of an export, reproducible.

    Parameters
    ----------
    law : TrackingLaw
        The law.
    reference : Reference or None
        Reference inside the law.
    inputs : sequence of Signal
        Inputs of exported code, in order.
    codes : type of IntEnum
        Codes of exported code.
    single : bool
        Whether inputs are rounded to single precision.
    """

    def __init__(
        self,
        law: TrackingLaw,
        reference: Reference | None,
        inputs: Sequence[Signal],
        codes: type[IntEnum],
        single: bool,
    ) -> None:
        self._law, self._inputs, self._codes, self._single = law, inputs, codes, single
        self._names = [signal.name for signal in inputs]
        self._tick = law.compile(reference, interpreted=True)
        self._rng = np.random.default_rng(0)
        # Graphs, as compiled methods of the robot would round differently.
        robot = law.model.system
        q, dv = ca.SX.sym("q", robot.nq), ca.SX.sym("dv", robot.nv)
        self._moved = ca.Function("moved", [q, dv], [robot.integrate(q, dv)])
        self._output = ca.Function("output", [q], [law.output(q)])

    def __iter__(self) -> Iterator[ReplayState]:
        yield from self._valid()
        yield from self._invalid()
        yield from self._singular()

    def _drawn(self, spread: float = 0.5) -> dict[str, np.ndarray]:
        """Inputs in a random configuration, by name."""
        rng, robot, state = self._rng, self._law.model.system, dict[str, np.ndarray]()
        # Gentle motions too, in which torque limits are not active.
        speed = 10.0 ** rng.uniform(-2.0, 0.3)
        q = self._moved(robot.neutral(), spread * rng.normal(size=robot.nv))
        near = self._moved(q, 0.1 * speed * rng.normal(size=robot.nv))
        for signal in self._inputs:
            match signal.name:
                case "t":
                    found = rng.uniform(-1.0, 20.0, size=1)
                case "q":
                    found = np.array(q).ravel()
                case "pose":
                    found = np.array(self._output(near)).ravel()
                case "period":
                    found = signal.largest[0] * rng.uniform(0.0, 1.0, size=1)
                case _:
                    found = np.array(signal.start) + speed * rng.normal(size=signal.size)
            state[signal.name] = found
        return state

    def _judged(self, what: str, state: dict[str, np.ndarray]) -> ReplayState:
        """A state with its code and outputs, as exported code has them."""
        given = np.concatenate(list(state.values()))
        if self._single:
            given = given.astype(np.float32).astype(float)
        parts = np.split(given, np.cumsum([part.size for part in state.values()])[:-1])
        codes, buffers = self._codes, self._tick.buffers
        names = ("u", "margin_bound", "acceleration_residual", "scale", "active")
        results = [getattr(buffers, name) for name in names]
        nothing = np.zeros(sum(part.size for part in results))
        if not np.isfinite(given).all():
            return ReplayState(what, given, nothing, codes["BAD_INPUT"])
        for signal, part in zip(self._inputs, parts, strict=True):
            if signal.guard and (np.abs(part) > signal.largest).any():
                return ReplayState(what, given, nothing, codes[signal.guard])
            getattr(buffers, signal.name)[:] = part
        self._tick.reset()
        status = self._tick.run()
        return ReplayState(what, given, nothing if status else np.concatenate(results), status)

    def _valid(self) -> Iterator[ReplayState]:
        law, buffers, good, tried, answered = self._law, self._tick.buffers, 0, 0, False
        while good < _GOOD and tried < 20 * _GOOD:
            tried += 1
            found = self._judged("drawn", self._drawn((0.3, 0.8, 1.5)[tried % 3]))
            # A state on the edge of singular may fall on the other side on another processor; and
            # where limits leave no room, many torques of a redundant robot are as good.
            clear = buffers.margin_bound[0] > 10 * law.singular_margin
            clear &= law.size == law.nu or buffers.scale[0] > 0.0
            answered |= found.code == TickStatus.OK
            if found.code == TickStatus.OK and clear:
                good += 1
                yield found
        preset = {signal.name: np.array(signal.start) for signal in self._inputs}
        still = self._judged("neutral, at rest", preset)
        if not answered and still.code != TickStatus.OK:
            raise ConcurError(
                f"export of `{law.name}`",
                expected="a law that gives a torque in some state",
                came=f"none in {tried + 1} states; the last one is {self._codes(still.code).name}",
                cure="Lower `singular_margin`, or change outputs, controls or limits.",
            )
        yield still

    def _changed(self, what: str, name: str, which: int, value: float) -> ReplayState:
        """A drawn state with some numbers of a signal replaced."""
        state = self._drawn()
        state[name][which] = value
        return self._judged(what, state)

    def _invalid(self) -> Iterator[ReplayState]:
        for signal in self._inputs:
            name = signal.name
            for bad in (np.nan, np.inf, -np.inf):
                place = int(self._rng.integers(signal.size))
                yield self._changed(f"{bad} in {name}", name, place, bad)
            for start in signal.quaternions:
                for factor in (0.0, 1.0 - 2 * DRIFT, 1.0 + 2 * DRIFT, 2.0):
                    state = self._drawn()
                    state[name][unit_span(start)] *= factor
                    yield self._judged(f"lost attitude in {name}", state)
            for place, largest in enumerate(signal.largest):
                if np.isfinite(largest):
                    yield self._changed(f"too large in {name}", name, place, -2.0 * largest)
            if name == "t":
                for late in (-2.0 * LATEST, 2.0 * LATEST):
                    yield self._changed("time out of range", name, 0, late)
            if name == "period":
                longest = signal.largest[0]
                for period in (0.0, 0.999 * longest, 1.001 * longest, 4295.0 + longest):
                    yield self._changed("edge of the period", name, 0, period)

    def _singular(self) -> Iterator[ReplayState]:
        """Configurations in which laws are often singular: stretched, folded, at right angles."""
        rng, model, found = self._rng, self._law.model, 0
        robot = model.system
        for _ in range(40):
            tangent = rng.choice([0.0, 0.5 * np.pi, np.pi], size=robot.nv)
            tangent[list(set(range(robot.nv)) - set(model.shape))] = 0.0
            q = np.array(self._moved(robot.neutral(), tangent)).ravel()
            state = self._drawn() | {"q": q}
            judged = self._judged("singular", state)
            clear = self._tick.buffers.margin_bound[0] < 0.1 * self._law.singular_margin
            if judged.code == TickStatus.SINGULAR and clear and found < _SINGULAR:
                found += 1
                yield judged
