"""Injected faults of the frames and the drive of an axis."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from hil.emulator._drive import EmulatedDrive, Outgoing, changed
from hil.errors import RigError

if TYPE_CHECKING:
    import can

EVERY = "*"
"""Name that stands for all axes."""


class FaultKind(Enum):
    """Kinds of injected faults; values are sentences.

    Examples
    --------
    >>> import hil
    >>> hil.FaultKind.FREEZE.value
    'the reading of the encoder is constant'
    """

    DROP = "frames are lost"
    DELAY = "frames are delayed"
    DUPLICATE = "frames arrive twice"
    REORDER = "a frame arrives after its successor"
    CORRUPT = "one bit of a frame is flipped, or its length is changed"
    NAN = "all bits of a frame are set: NaN as a float"
    STALE = "the drive repeats an old report"
    FREEZE = "the reading of the encoder is constant"
    DRIVE_FAULT = "the drive reports a fault"
    POWER_CYCLE = "the power of the drive is cycled"
    BUS_OFF = "all frames are lost"


LONG_LENGTHS = 12, 16, 20, 24, 32, 48, 64
"""Lengths of the data of CAN FD frames above 8 bytes."""

_ONCE = (FaultKind.DRIVE_FAULT, FaultKind.POWER_CYCLE)


@dataclass(frozen=True)
class Fault:
    """An injected fault with its start and duration.

    Parameters
    ----------
    kind : FaultKind
        Kind of the fault; a name such as "drop" is accepted too.
    axis : str
        Affected axis; "*": all axes.
    at : float
        Start of the fault, s after the start of the emulator.
    lasting : float
        Duration, s; drive faults and power cycles happen once.
    probability : float
        Fraction of the frames that are affected.
    value : float
        Delay in s (delay) or fault code (drive_fault); 0: a default.
    way : {"both", "to_drive", "to_host"}
        Direction of the affected frames.

    Raises
    ------
    RigError
        If a number is out of range, or the kind does not exist.

    Examples
    --------
    >>> import hil
    >>> hil.Fault("freeze", axis="left_wheel", at=2.0).at
    2.0
    """

    kind: FaultKind
    axis: str = EVERY
    at: float = 0.0
    lasting: float = math.inf
    probability: float = 1.0
    value: float = 0.0
    way: Literal["both", "to_drive", "to_host"] = "both"

    def __post_init__(self) -> None:
        if isinstance(self.kind, str):
            object.__setattr__(self, "kind", _kind(self.kind))
        if not isinstance(self.kind, FaultKind):
            raise _wrong("kind", "one of " + ", ".join(_names()), self.kind)
        if not isinstance(self.axis, str):
            raise _wrong("axis", f'the name of an axis, or "{EVERY}"', self.axis)
        for name, low, high in (
            ("at", 0.0, math.inf),
            ("lasting", 0.0, math.inf),
            ("probability", 0.0, 1.0),
            ("value", 0.0, 1e9),
        ):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                raise _wrong(name, "a number", number)
            if not low <= number <= high:
                raise _wrong(name, f"a number from {low:g} to {high:g}", number)
        if self.way not in ("both", "to_drive", "to_host"):
            raise _wrong("way", "both, to_drive or to_host", self.way)

    @classmethod
    def read(cls, text: str) -> Fault:
        """Read a fault from a word of the command line.

        Parameters
        ----------
        text : str
            ``KIND,AXIS,AT,FOR`` with times in s; missing words at the end have defaults.

        Returns
        -------
        Fault
            The fault.

        Raises
        ------
        RigError
            If it cannot be read.

        Examples
        --------
        >>> Fault.read("drop,turret,5,0.1").kind.name
        'DROP'
        """
        parts = [part.strip() for part in text.split(",")]
        if not 1 <= len(parts) <= 5:
            raise _wrong("text", "KIND,AXIS,AT,FOR", text)
        given: dict[str, Any] = {"kind": parts[0]}
        if len(parts) > 1:
            given["axis"] = parts[1] or EVERY
        for name, part in zip(("at", "lasting", "probability"), parts[2:], strict=False):
            try:
                given[name] = float(part)
            except ValueError as error:
                raise _wrong(name, "a number", part) from error
        return cls(**given)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Fault:
        """Make a fault from a table of a file or a datagram.

        Parameters
        ----------
        table : mapping
            Fields of a fault by name.

        Returns
        -------
        Fault
            The fault.

        Raises
        ------
        RigError
            If a field is unknown or invalid.
        """
        known = [field.name for field in fields(cls)]
        for name in table:
            if name not in known:
                raise _wrong(str(name), "one of the fields " + ", ".join(known), table[name])
        if "kind" not in table:
            raise _wrong("kind", "one of " + ", ".join(_names()), None)
        return cls(**table)

    def to_table(self) -> dict[str, Any]:
        """Fields by name, as built-in types."""
        return asdict(self) | {"kind": self.kind.name.lower()}


def _names() -> list[str]:
    return [kind.name.lower() for kind in FaultKind]


def _kind(name: str) -> FaultKind:
    try:
        return FaultKind[name.strip().replace("-", "_").upper()]
    except KeyError:
        raise _wrong("kind", "one of " + ", ".join(_names()), name) from None


def _wrong(field: str, expected: str, came: object) -> RigError:
    return RigError(
        f"fault, `{field}`", expected=expected, came=f"{came!r:.60}", cure="Correct the fault."
    )


class Faults:
    """Applies the injected faults of one axis to its frames and its drive."""

    def __init__(
        self, axis: str, faults: Iterable[Fault] = (), seed: int = 0, loss: float = 0.0
    ) -> None:
        self.axis = axis
        self._random = random.Random(f"{seed} {axis}")
        self._loss = loss
        self._faults: list[Fault] = []
        self._pending: list[Fault] = []
        self._overtaken: dict[str, can.Message] = {}
        self._old: dict[int, can.Message] = {}
        self.next_event = math.inf  # time of the next action of `strike`, s after the start
        for fault in faults:
            self.add(fault)

    def add(self, fault: Fault) -> None:
        """Add a fault."""
        if fault.axis not in (EVERY, self.axis):
            return
        if fault.kind in _ONCE:
            self._pending.append(fault)
            self.next_event = min(self.next_event, fault.at)
        else:
            self._faults.append(fault)

    def strike(self, drive: EmulatedDrive, time: float, now: float) -> Outgoing:
        """Apply drive faults and power cycles that are due."""
        if time < self.next_event:
            return []
        out: Outgoing = []
        due = [fault for fault in self._pending if fault.at <= time]
        self._pending = [fault for fault in self._pending if fault.at > time]
        self.next_event = min((fault.at for fault in self._pending), default=math.inf)
        for fault in due:
            if fault.kind is FaultKind.POWER_CYCLE:
                drive.power_cycle(now)
            else:
                out += drive.fail(now, int(fault.value))
        return out

    def is_frozen(self, time: float) -> bool:
        """Whether the encoder is frozen."""
        return bool(self._faults) and self._active(FaultKind.FREEZE, time) is not None

    def to_drive(self, frame: can.Message, due: float, time: float) -> Outgoing:
        """Frames that reach the drive in place of a frame of the host."""
        return self._passed("to_drive", frame, due, time)

    def to_host(self, frame: can.Message, due: float, time: float) -> Outgoing:
        """Frames that reach the host in place of a frame of the drive."""
        return self._passed("to_host", frame, due, time)

    def _active(self, kind: FaultKind, time: float, way: str | None = None) -> Fault | None:
        for fault in self._faults:
            if (
                fault.kind is kind
                and fault.at <= time < fault.at + fault.lasting
                and (way is None or fault.way in ("both", way))
                and (fault.probability >= 1.0 or self._random.random() < fault.probability)
            ):
                return fault
        return None

    def _passed(self, way: str, frame: can.Message, due: float, time: float) -> Outgoing:
        if self._loss and self._random.random() < self._loss:
            return []
        if not self._faults:
            return [(due, frame)]
        if self._active(FaultKind.BUS_OFF, time) or self._active(FaultKind.DROP, time, way):
            return []
        if way == "to_host":
            if self._active(FaultKind.STALE, time, way):
                frame = self._old.setdefault(frame.arbitration_id, frame)
            else:
                self._old[frame.arbitration_id] = frame
        if self._active(FaultKind.CORRUPT, time, way):
            frame = self._corrupted(frame)
        if self._active(FaultKind.NAN, time, way):
            frame = _garbage(frame)
        delay = self._active(FaultKind.DELAY, time, way)
        if delay is not None:
            due += delay.value or 0.02
        held = self._overtaken.pop(way, None)
        if held is not None:
            return [(due, frame), (due, held)]
        if self._active(FaultKind.REORDER, time, way):
            self._overtaken[way] = frame
            return []
        if self._active(FaultKind.DUPLICATE, time, way):
            return [(due, frame), (due, frame)]
        return [(due, frame)]

    def _corrupted(self, frame: can.Message) -> can.Message:
        data = bytearray(frame.data)
        if data and self._random.random() < 0.5:
            bit = self._random.randrange(8 * len(data))
            data[bit // 8] ^= 1 << bit % 8
        else:
            known = [*range(9), *LONG_LENGTHS] if frame.is_fd else range(9)
            lengths = [length for length in known if length != len(data)]
            data = (data + bytes(64))[: self._random.choice(lengths)]
        return changed(frame, data)


def _garbage(frame: can.Message) -> can.Message:
    """Set all bits of a frame: NaN as a float, -1 or the largest number as an integer."""
    return changed(frame, b"\xff" * len(frame.data))
