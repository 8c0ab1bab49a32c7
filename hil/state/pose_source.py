"""Poses of the base from outside: motion capture, or the attitude of an IMU, as datagrams.

Each datagram is a MessagePack map::

    {"seq": 17, "time": 5023.118, "position": [x, y, z], "quaternion": [x, y, z, w],
     "body": "chassis"}

`time` is when the pose was measured, s of the sender's monotonic clock; the pose is that of the
body's frame in the inertial frame of the robot's model, m. A source of positions or attitudes
leaves out the other key; `body` may be left out. It comes over UDP, or over ZeroMQ from a PUB
socket that connects; the receiver binds, so that `host` and `port` mean the same for both.

A bridge from a motion-capture system is a loop like this one::

    from hil.clock import MonotonicClock
    from hil.state.pose_source import PoseSender

    clock = MonotonicClock()
    with PoseSender("udp", "127.0.0.1", 47111, body="chassis") as sender:
        while True:
            marker = capture.wait_for_frame()        # of the system's own library
            time = clock.now() - capture.latency     # when the picture was taken
            sender.send(time, marker.position, marker.quaternion)    # m, (x, y, z, w)

On the machine of the loop the two clocks are one. A sender elsewhere has a clock of its own: the
receiver then takes the smallest difference between arrival and stamp within the last seconds for
the difference of the clocks, which makes such poses seem newer than they are by the shortest time
that a datagram takes.
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack

from concur.codegen import DRIFT
from hil._datagrams import unpack_map
from hil._extras import INSTALL
from hil.errors import RigError
from hil.settings import PoseSettings

LONGEST = 1024
"""Bytes beyond which a datagram is none of ours."""

MOST = 64
"""Datagrams taken in one poll."""

SAME_CLOCK = (-5e-3, 1.0)
"""Differences of arrival and stamp, s, that say that sender and loop have one clock."""

WINDOW = 10.0
"""Time over which the smallest difference of clocks is kept, s; at most twice that."""

SILENCE = 1.0
"""Time without a new pose after which whatever sends is taken for a new sender, s."""

AHEAD = 0.02
"""Time by which a stamp may be ahead of all before it, against its arrival, s."""

AGREEING = 10
"""Refused stamps in a row, each later than the one before, after which the sender's clock is taken
for another one."""

FARTHEST = 1e6
"""Coordinate, m, that no base has."""


@dataclass(frozen=True)
class PoseMeasurement:
    """What an external source says of the base at some instant.

    Parameters
    ----------
    time : float
        Instant of the measurement, s of the loop's clock.
    position : tuple of float or None
        Position of the base's frame, inertial axes, m, shape (3,).
    quaternion : tuple of float or None
        Its attitude, unit quaternion (x, y, z, w), shape (4,).
    """

    time: float
    position: tuple[float, float, float] | None = None
    quaternion: tuple[float, float, float, float] | None = None


class _Channel(Protocol):
    """Where datagrams come from."""

    def take(self) -> bytes | None:
        """The next datagram, or None: never waits."""
        ...

    def close(self) -> None:
        """Give the port back."""
        ...


class _Udp:
    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind((host, port))
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise _no_port("udp", host, port, error) from error
        self.port: int = self._socket.getsockname()[1]

    def take(self) -> bytes | None:
        try:
            return self._socket.recv(LONGEST + 1)
        except OSError:
            return None

    def close(self) -> None:
        self._socket.close()


class _Zmq:
    def __init__(self, host: str, port: int) -> None:
        zmq = _zmq()
        self._error = zmq.ZMQError
        self._flag = zmq.NOBLOCK
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LONGEST)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        try:
            self._socket.bind(f"tcp://{host}:{port or '*'}")
        except zmq.ZMQError as error:
            self._socket.close()
            self._context.term()
            raise _no_port("zmq", host, port, error) from error
        address = self._socket.getsockopt(zmq.LAST_ENDPOINT)
        self.port = int(address.decode().rsplit(":", 1)[1].rstrip("\0"))

    def take(self) -> bytes | None:
        try:
            parts = self._socket.recv_multipart(self._flag)
        except self._error:
            return None
        return bytes(parts[0]) if len(parts) == 1 else b""

    def close(self) -> None:
        self._socket.close()
        self._context.term()


class PoseReceiver:
    """Takes poses that have arrived; never waits, and never fails on what it is sent.

    Datagrams are refused, and counted, if they cannot be read, lack what `settings.gives` asks
    for, hold numbers that are not finite or a quaternion that is not of unit length, speak of
    another body, or are not newer than the one before.

    Parameters
    ----------
    settings : PoseSettings
        Where poses arrive, and what they give.
    body : str
        Name of the base; "" if any name will do.

    Attributes
    ----------
    port : int
        Port that is listened at: that of the settings, or a free one if that is 0.
    taken : int
        Poses handed out.
    invalid : int
        Datagrams that were unreadable, incomplete, of wrong numbers, or of another body.
    disordered : int
        Datagrams that were repeated, or older than one before.
    ahead : int
        Datagrams with a stamp further ahead than the sender's clock, as far as it is known.
    missed : int
        Numbers left out between datagrams that were taken.
    offset : float
        What is added to the sender's time, s; 0 if the clocks are one.

    Raises
    ------
    RigError
        If the port cannot be had, or the library for it is missing.
    """

    def __init__(self, settings: PoseSettings, body: str = "") -> None:
        self.settings = settings
        self.body = body
        self.taken = self.invalid = self.disordered = self.missed = self.ahead = 0
        self.offset = 0.0
        self._channel: _Channel
        kind = _Zmq if settings.kind == "zmq" else _Udp
        channel = kind(settings.host, settings.port)
        self._channel, self.port = channel, channel.port
        self._forget()

    def _forget(self) -> None:
        self._sequence, self._time, self._heard = -1, -math.inf, -math.inf
        self._least = self._before = math.inf
        self._began = math.nan
        self._suspect, self._suspects = -math.inf, 0

    def poll(self, now: float) -> list[PoseMeasurement]:
        """Take what has arrived.

        Parameters
        ----------
        now : float
            The present, s of the loop's clock.

        Returns
        -------
        list of PoseMeasurement
            New poses, oldest first; at most 64, what else waits comes with the next call.
        """
        found: list[PoseMeasurement] = []
        for _ in range(MOST):
            data = self._channel.take()
            if data is None:
                break
            measurement = self._read(data, now)
            if measurement is not None:
                found.append(measurement)
        self.taken += len(found)
        return found

    def _read(self, data: bytes, now: float) -> PoseMeasurement | None:
        facts = _decoded(data)
        sequence, time = facts.get("seq"), _number(facts.get("time"))
        body = facts.get("body", "")
        position = _vector(facts.get("position"), 3)
        attitude = _unit(_vector(facts.get("quaternion"), 4))
        gives = self.settings.gives
        if gives == "position":
            attitude = None
        if gives == "attitude":
            position = None
        complete = (gives == "attitude" or position is not None) and (
            gives == "position" or attitude is not None
        )
        named = isinstance(body, str) and (not self.body or body in ("", self.body))
        if type(sequence) is not int or sequence < 0 or time is None or not (complete and named):
            self.invalid += 1
            return None
        if now - self._heard > SILENCE:
            self._forget()
        if self._doubts(time, now):
            return None
        # A sender that started again counts from zero, with later stamps than before.
        if time <= self._time or sequence == self._sequence:
            self.disordered += 1
            return None
        if 0 <= self._sequence < sequence:
            self.missed += sequence - self._sequence - 1
        self._sequence, self._time, self._heard = sequence, time, now
        self._compare(time, now)
        return PoseMeasurement(
            time + self.offset,
            None if position is None else (position[0], position[1], position[2]),
            None if attitude is None else (attitude[0], attitude[1], attitude[2], attitude[3]),
        )

    def _doubts(self, time: float, now: float) -> bool:
        """Whether a stamp does not fit the sender's clock: one must not shut out those after it.

        Stamps that agree with each other for a while are believed: then it is another clock.
        """
        least = min(self._least, self._before)
        # What waited together arrives together: the last of it is the newest.
        ahead = now > self._heard and least < math.inf and least - (now - time) > AHEAD
        if not ahead and time > self._time:
            self._suspects = 0
            return False
        self._suspects = self._suspects + 1 if time > self._suspect else 1
        self._suspect = time
        if self._suspects >= AGREEING:
            self._forget()
            return False
        self.ahead += ahead
        return ahead

    def _compare(self, time: float, now: float) -> None:
        """Learn the difference of the clocks from a stamp and its arrival."""
        difference = now - time
        if not now - self._began <= WINDOW:
            self._before, self._least, self._began = self._least, math.inf, now
        self._least = min(self._least, difference)
        least = min(self._least, self._before)
        self.offset = 0.0 if SAME_CLOCK[0] <= least <= SAME_CLOCK[1] else least

    def close(self) -> None:
        """Give the port back."""
        self._channel.close()

    def __enter__(self) -> PoseReceiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PoseSender:
    """Sends poses; for bridges of motion capture, for IMUs, and for emulated ones.

    Parameters
    ----------
    kind : {"udp", "zmq"}
        How they travel.
    host, port : str, int
        Where they go.
    body : str
        Name of the base, sent along.

    Raises
    ------
    RigError
        If the library for it is missing, or the address is none.
    """

    def __init__(self, kind: str, host: str, port: int, body: str = "") -> None:
        self.body = body
        self._sequence = 0
        self._address = (host, port)
        self._context: Any = None
        self._socket: Any
        if kind == "zmq":
            zmq = _zmq()
            self._context = zmq.Context()
            self._socket = self._context.socket(zmq.PUB)
            self._socket.setsockopt(zmq.LINGER, 0)
            try:
                self._socket.connect(f"tcp://{host}:{port}")
            except zmq.ZMQError as error:
                self.close()
                raise _no_port(kind, host, port, error) from error
        else:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.setblocking(False)

    def send(
        self,
        time: float,
        position: Sequence[float] | None = None,
        quaternion: Sequence[float] | None = None,
    ) -> None:
        """Send one pose, without waiting; what cannot be sent is lost.

        Parameters
        ----------
        time : float
            When it was measured, s of this machine's monotonic clock.
        position : sequence of float, optional
            Position of the base's frame in inertial axes, m, shape (3,).
        quaternion : sequence of float, optional
            Its attitude, unit quaternion (x, y, z, w), shape (4,).
        """
        facts: dict[str, Any] = {"seq": self._sequence, "time": float(time)}
        if position is not None:
            facts["position"] = [float(x) for x in position]
        if quaternion is not None:
            facts["quaternion"] = [float(x) for x in quaternion]
        if self.body:
            facts["body"] = self.body
        self._sequence += 1
        self.send_bytes(msgpack.packb(facts))

    def send_bytes(self, data: bytes) -> None:
        """Send a datagram as it is.

        Parameters
        ----------
        data : bytes
            The datagram.
        """
        if self._context is None:
            with contextlib.suppress(OSError):
                self._socket.sendto(data, self._address)
        else:
            with contextlib.suppress(_zmq().ZMQError):
                self._socket.send(data, _zmq().NOBLOCK)

    def close(self) -> None:
        """Stop sending."""
        self._socket.close()
        if self._context is not None:
            self._context.term()

    def __enter__(self) -> PoseSender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _decoded(data: bytes) -> dict[Any, Any]:
    """The map in a datagram; an empty one if there is none."""
    if len(data) > LONGEST:
        return {}
    return unpack_map(data) or {}


def _number(value: Any) -> float | None:
    if type(value) in (int, float):
        try:
            number = float(value)
        except OverflowError:
            return None
        if math.isfinite(number):
            return number
    return None


def _vector(values: Any, size: int) -> list[float] | None:
    if type(values) is not list or len(values) != size:
        return None
    numbers = [number for value in values if (number := _number(value)) is not None]
    return numbers if len(numbers) == size and max(map(abs, numbers)) < FARTHEST else None


def _unit(values: list[float] | None) -> list[float] | None:
    """A quaternion of unit length, from one that nearly is."""
    if values is None:
        return None
    norm = math.hypot(*values)
    return [x / norm for x in values] if abs(norm - 1.0) <= DRIFT else None


def _zmq() -> Any:
    try:
        import zmq
    except ImportError as error:
        raise RigError(
            'pose source, kind "zmq"',
            expected="the package `pyzmq`",
            came=str(error),
            cure=f'Install it with `{INSTALL}`, or use kind = "udp".',
        ) from error
    return zmq


def _no_port(kind: str, host: str, port: int, error: Exception) -> RigError:
    return RigError(
        f"pose source, {kind} at {host}:{port}",
        expected="an address of this machine with a free port",
        came=str(error),
        cure="Check `host` and `port` of `[pose]`; end what listens there already.",
    )
