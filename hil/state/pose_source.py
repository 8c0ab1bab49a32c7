"""External poses of the base as datagrams: motion capture, or the attitude of an IMU.

Each datagram is a MessagePack map::

    {"seq": 17, "time": 5023.118, "position": [x, y, z], "quaternion": [x, y, z, w],
     "body": "chassis"}

`time` is the instant of the measurement, s of the sender's monotonic clock. The pose is that of the
body's frame in the inertial frame of the robot's model, m. A source of positions only, or of
attitudes only, omits the other key; `body` is optional. Datagrams arrive over UDP, or over ZeroMQ
from a PUB socket that connects. The receiver binds, so that `host` and `port` have the same meaning
for both.

A bridge from a motion-capture system is a loop like this one::

    from hil.clock import MonotonicClock
    from hil.state.pose_source import PoseSender

    clock = MonotonicClock()
    with PoseSender("udp", "127.0.0.1", 47111, body="chassis") as sender:
        while True:
            marker = capture.wait_for_frame()        # of the system's own library
            time = clock.now() - capture.latency     # when the picture was taken
            sender.send(time, marker.position, marker.quaternion)    # m, (x, y, z, w)

A sender on the machine of the loop has the same clock. For a sender on another machine, the
receiver uses the smallest difference between arrival and stamp within the last seconds as the
difference of the clocks. Such poses therefore seem newer than they are, by the shortest travel time
of a datagram.
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack

from hil._concur import DRIFT, install_command
from hil._datagrams import unpack_map
from hil.errors import RigError
from hil.settings import PoseSettings

LONGEST = 1024
"""Largest size of a datagram, bytes."""

MOST = 64
"""Largest number of datagrams in one poll."""

SAME_CLOCK = (-5e-3, 1.0)
"""Range of the difference of arrival and stamp in which sender and loop share a clock, s."""

WINDOW = 10.0
"""Time for which the smallest difference of clocks is stored, s; at most twice this time."""

SILENCE = 1.0
"""Time without a new pose after which the next datagram counts as from a new sender, s."""

AHEAD = 0.02
"""Tolerated lead of a stamp over all earlier stamps, relative to their arrivals, s."""

AGREEING = 10
"""Consecutive rejected stamps, each later than the last, after which the sender's clock counts as
changed."""

FARTHEST = 1e6
"""Bound of valid coordinates, m."""


@dataclass(frozen=True)
class PoseMeasurement:
    """Measurement of the base by an external source.

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
    """Source of datagrams."""

    def take(self) -> bytes | None:
        """The next datagram, or None; never waits."""
        ...

    def close(self) -> None:
        """Close the port."""
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
    """Receives poses; never waits, and never raises for invalid datagrams.

    A datagram is rejected and counted if it is unreadable, lacks a part of `settings.gives`,
    contains a non-finite number or a quaternion without unit norm, names another body, or is not
    newer than the last one.

    Parameters
    ----------
    settings : PoseSettings
        Address at which poses arrive, and their content.
    body : str
        Name of the base; "" accepts every name.

    Attributes
    ----------
    port : int
        Port of the receiver: that of the settings, or a free port if that is 0.
    taken : int
        Number of poses returned by `poll`.
    invalid : int
        Number of datagrams that were unreadable, incomplete, invalid, or of another body.
    disordered : int
        Number of datagrams that were repeated, or older than an earlier one.
    ahead : int
        Number of datagrams with a stamp ahead of the sender's estimated clock.
    missed : int
        Number of missing sequence numbers between accepted datagrams.
    offset : float
        Time added to the sender's time, s; 0 if sender and loop share a clock.

    Raises
    ------
    RigError
        If the port cannot be opened, or the library for it is missing.
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
        """Receive the poses that have arrived.

        Parameters
        ----------
        now : float
            The present, s of the loop's clock.

        Returns
        -------
        list of PoseMeasurement
            New poses, oldest first; at most 64. The next call returns the others.
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
        # A restarted sender counts from zero, with later stamps than before.
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
        """Whether a stamp contradicts the sender's clock; a wrong stamp must not block later ones.

        Several consistent stamps are accepted: then the sender's clock has changed.
        """
        least = min(self._least, self._before)
        # Datagrams that waited together arrive together: the last of them is the newest.
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
        """Update the difference of the clocks from a stamp and its arrival."""
        difference = now - time
        if not now - self._began <= WINDOW:
            self._before, self._least, self._began = self._least, math.inf, now
        self._least = min(self._least, difference)
        least = min(self._least, self._before)
        self.offset = 0.0 if SAME_CLOCK[0] <= least <= SAME_CLOCK[1] else least

    def close(self) -> None:
        """Close the port."""
        self._channel.close()

    def __enter__(self) -> PoseReceiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PoseSender:
    """Sends poses; for bridges of motion capture, for IMUs, and for emulated sources.

    Parameters
    ----------
    kind : {"udp", "zmq"}
        Transport.
    host, port : str, int
        Address of the receiver.
    body : str
        Name of the base, included in each datagram.

    Raises
    ------
    RigError
        If the library for it is missing, or the address is invalid.

    Examples
    --------
    >>> import time
    >>> import hil
    >>> with hil.PoseSender("udp", "127.0.0.1", 47111, body="chassis") as sender:
    ...     sender.send(time.monotonic(), [0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    """

    def __init__(self, kind: str, host: str, port: int, body: str = "") -> None:
        try:
            if not 0 <= port < 2**16:  # the system would take another port
                raise ValueError(f"port {port}")
            socket.getaddrinfo(host, port, socket.AF_INET)
        except (OSError, ValueError) as error:
            raise RigError(
                f"sender of poses, {kind} to {host}:{port}",
                expected="a host that is known here, and a port from 0 to 65535",
                came=str(error),
                cure="Check the address of the receiver.",
            ) from error
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
        """Send one pose, without waiting; a pose that cannot be sent is lost.

        Parameters
        ----------
        time : float
            Instant of the measurement, s of this machine's monotonic clock.
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
        """Send a datagram unchanged.

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
    """The map in a datagram; empty if it contains none."""
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
    """Normalize a quaternion; None if its norm differs too much from 1."""
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
            cure=f'Install it with `{install_command("rig")}`, or use kind = "udp".',
        ) from error
    return zmq


def _no_port(kind: str, host: str, port: int, error: Exception) -> RigError:
    return RigError(
        f"pose source, {kind} at {host}:{port}",
        expected="an address of this machine with a free port",
        came=str(error),
        cure="Check `host` and `port` of `[pose]`, and stop other programs that use the port.",
    )
