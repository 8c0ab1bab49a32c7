"""The operator's channel: heartbeat, stop and reset as datagrams.

The operator's heartbeat shows that a person holds the enabling device. It is independent of the
bus. Each datagram to the loop is a msgpack map with the entries

======= ==========================================================================================
entry   meaning
======= ==========================================================================================
kind    "heartbeat", "stop" or "reset"
echo    the last challenge that the loop sent to this sender, unchanged; empty before the first
mac     HMAC-SHA256 of kind and echo with the token of this run: `signature`
======= ==========================================================================================

A challenge is a datagram of the loop: the instant on the loop's clock with a seal that only this
run of the loop can make. The loop sends challenges to each known sender, several in each time-out.
A heartbeat with the echo of a challenge was made after the challenge. So the loop's clock bounds
the age of a heartbeat, even if a relay delays or repeats datagrams, an earlier run had the same
token, or the sender's clock jumps. The token is never transmitted, nor data that could replace it.
A stop needs neither echo nor mac: it is accepted from every sender.

Send the heartbeat from the program with which the person interacts, at least four times within the
time-out, and from one place only: any sender with the token keeps the rig running. Do not send it
from a separate thread, which would continue while the program of the stop button hangs. Challenges
are sent to the source address of the heartbeats: a firewall between must let them pass.
"""

from __future__ import annotations

import contextlib
import hmac
import math
import secrets
import socket
import struct
from typing import Any

import msgpack

from hil._datagrams import unpack_map
from hil.clock import Clock
from hil.errors import RigError
from hil.reasons import Reason
from hil.settings import OperatorSettings

KINDS = ("heartbeat", "stop", "reset")
"""Kinds of datagrams of an operator."""

LARGEST_DATAGRAM = 512
"""Largest accepted datagram, bytes."""

PER_POLL = 64
"""Largest number of datagrams in one poll: a flood must not delay the loop."""

LARGEST_SENDERS = 8
"""Largest number of senders that receive challenges; heartbeats of others are rejected."""

CHALLENGES = 16
"""Number of challenges per time-out; their interval bounds the error of a heartbeat's age."""

FORGOTTEN = 2.0
"""Time without a heartbeat after which a sender gets no more challenges, in time-outs."""

STOP_COPIES = 3
"""Number of datagrams of a stop request, as datagrams may be lost."""


_INSTANT = struct.Struct(">d")
_SEAL = 16
_CHALLENGE = _INSTANT.size + _SEAL


def signature(token: str, kind: str, echo: bytes) -> bytes:
    """Authentication code that proves knowledge of the token.

    Parameters
    ----------
    token : str
        The secret of the run.
    kind : str
        "heartbeat" or "reset".
    echo : bytes
        The last challenge.

    Returns
    -------
    bytes
        HMAC-SHA256 with the token (UTF-8) over the kind, a zero byte, and the echo; 32 bytes.
    """
    key = token.encode("utf-8", "surrogatepass")
    return hmac.digest(key, kind.encode() + b"\0" + echo, "sha256")


class OperatorChannel:
    """Receiver in the loop; never waits, and never raises for received datagrams.

    Parameters
    ----------
    settings : OperatorSettings
        Address, time-out, and whether a heartbeat is required. The default host is this machine;
        port 0 selects a free port.
    clock : Clock
        The loop's clock, which measures the ages of heartbeats.
    period : float, optional
        Duration of a cycle, s. With it, polls are counted too: a stopped clock keeps the heartbeat
        alive for at most twice the time-out. Then poll once in each cycle.
    token : str, optional
        The secret; default: random.

    Attributes
    ----------
    token : str
        The secret, for senders that may keep the rig running.
    port : int
        Port of the channel.
    heartbeat : float
        Instant of the newest challenge that a heartbeat has echoed, s of the loop's clock; NaN
        before the first heartbeat.
    stopped : bool
        Whether a stop was requested; stays true until a valid reset.
    stops : int
        Number of stop requests.
    received : int
        Number of valid datagrams.
    refused : int
        Number of datagrams with a wrong signature, or of too many senders.
    repeated : int
        Number of signed datagrams whose echo is not newer than an earlier one.
    stale : int
        Number of signed datagrams whose echo is missing, older than the time-out, or of another
        run.
    invalid : int
        Number of unreadable datagrams.

    Raises
    ------
    RigError
        If the address cannot be opened, or the token is empty.
    """

    def __init__(
        self,
        settings: OperatorSettings,
        clock: Clock,
        period: float | None = None,
        token: str | None = None,
    ) -> None:
        if token == "":
            raise RigError(
                "operator channel",
                expected="a token that cannot be guessed",
                came="an empty token",
                cure="Omit the token to generate a random one.",
            )
        self.settings = settings
        self.clock = clock
        self.token = secrets.token_hex(16) if token is None else token
        self.heartbeat = math.nan
        self.stopped = False
        self.stops = 0
        self.received = 0
        self.refused = 0
        self.repeated = 0
        self.stale = 0
        self.invalid = 0
        self._reset = False
        self._reset_after = -math.inf  # instant of the challenge of the last reset
        self._key = secrets.token_bytes(32)  # key of the seals of this run
        self._senders: dict[Any, float] = {}  # instant of the last datagram of each address
        self._challenged = -math.inf
        self._polls = 0  # number of polls since the last heartbeat
        self._largest_polls = (
            None if period is None else max(2, math.ceil(2.0 * settings.timeout / period))
        )
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.bind((settings.host, settings.port))
        except (OSError, OverflowError) as error:
            self._socket.close()
            raise RigError(
                f"operator channel {settings.host}:{settings.port}",
                expected="an unused address of this machine",
                came=f"{error}",
                cure="Stop the other controller that uses the address, or change `[operator]` of "
                "the rig file.",
            ) from error
        self.port: int = self._socket.getsockname()[1]

    def poll(self, now: float | None = None) -> Reason:
        """Read received datagrams, and return the operator's reason to stop.

        Parameters
        ----------
        now : float, optional
            Instant of the loop's clock, s; default: the present.

        Returns
        -------
        Reason
            OPERATOR from a stop request to its reset, else DEADMAN while the heartbeat is missing,
            else NONE. If no heartbeat is required, a heartbeat that has begun must continue.
        """
        if now is None:
            now = self.clock.now()
        self._polls += 1
        for _ in range(PER_POLL):
            try:
                data, address = self._socket.recvfrom(LARGEST_DATAGRAM + 1)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                self.invalid += 1
                break
            self._take(data, address, now)
        self._challenge(now)
        if self.stopped:
            return Reason.OPERATOR
        return Reason.NONE if self.alive(now) else Reason.DEADMAN

    def alive(self, now: float) -> bool:
        """Whether the heartbeat is fresh, or has not begun and is not required.

        Parameters
        ----------
        now : float
            Instant of the loop's clock, s.

        Returns
        -------
        bool
            Also False if the clock went back, is NaN, or stood still for too many polls.
        """
        if math.isnan(self.heartbeat):
            return not self.settings.required
        if self._largest_polls is not None and self._polls > self._largest_polls:
            return False
        return 0.0 <= now - self.heartbeat <= self.settings.timeout

    def take_reset(self) -> bool:
        """Whether a reset was requested since the last call.

        Returns
        -------
        bool
            True once for each valid reset without a later stop.
        """
        asked, self._reset = self._reset, False
        return asked

    def _take(self, data: bytes, address: Any, now: float) -> None:
        message = _decoded(data)
        if message is None:
            self.invalid += 1
            return
        kind = message["kind"]
        if kind == "stop":  # accepted from every sender
            self.received += 1
            self.stops += 1
            self.stopped = True
            self._reset = False
            return
        echo, mac = message.get("echo"), message.get("mac")
        if not (isinstance(echo, bytes) and isinstance(mac, bytes)):
            self.invalid += 1
            return
        if not hmac.compare_digest(mac, signature(self.token, kind, echo)):
            self.refused += 1
            return
        if address not in self._senders:
            if len(self._senders) >= LARGEST_SENDERS:
                self.refused += 1
                return
            self._challenged = -math.inf  # a new sender gets its first challenge at once
        self._senders[address] = now
        instant = self._sealed(echo)
        if not 0.0 <= now - instant <= self.settings.timeout:  # also NaN
            self.stale += 1
        elif instant <= (self._reset_after if kind == "reset" else self.heartbeat):
            self.repeated += 1
        else:
            self.received += 1
            if kind == "heartbeat":
                self.heartbeat = instant
                self._polls = 0
            else:
                self._reset_after = instant
                self.stopped = False
                self._reset = True

    def _challenge(self, now: float) -> None:
        """Send a challenge to all senders if one is due, and remove silent senders."""
        if not self._senders or not math.isfinite(now):
            return
        if 0.0 <= now - self._challenged < self.settings.timeout / CHALLENGES:
            return
        self._challenged = now
        instant = _INSTANT.pack(now)
        challenge = instant + self._seal(instant)
        for address, last in list(self._senders.items()):
            if not 0.0 <= now - last <= FORGOTTEN * self.settings.timeout:
                del self._senders[address]
                continue
            with contextlib.suppress(OSError):
                self._socket.sendto(challenge, address)

    def _seal(self, instant: bytes) -> bytes:
        return hmac.digest(self._key, instant, "sha256")[:_SEAL]

    def _sealed(self, echo: bytes) -> float:
        """The instant of a challenge of this run; NaN for anything else."""
        instant, seal = echo[: _INSTANT.size], echo[_INSTANT.size :]
        if len(echo) != _CHALLENGE or not hmac.compare_digest(seal, self._seal(instant)):
            return math.nan
        return float(_INSTANT.unpack(instant)[0])

    def close(self) -> None:
        """Close the port."""
        self._socket.close()

    def __enter__(self) -> OperatorChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _decoded(data: bytes) -> dict[str, Any] | None:
    """The message in a datagram; None if it is invalid."""
    if len(data) > LARGEST_DATAGRAM:
        return None
    message = unpack_map(data)
    if message is None:
        return None
    kind = message.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        return None
    return message


class OperatorSender:
    """Sender for a terminal, a dashboard or a pendant; sending never waits and never raises.

    Parameters
    ----------
    host : str
        Host of the loop.
    port : int
        Port of the loop.
    token : str
        The secret of the run; "" for a sender that may only stop.

    Attributes
    ----------
    sent, failed : int
        Number of datagrams that the system accepted, and that it rejected.

    Examples
    --------
    >>> import hil
    >>> with hil.OperatorSender("127.0.0.1", 47110) as sender:
    ...     sender.stop()
    ...     sender.sent, sender.failed
    True
    (3, 0)
    """

    def __init__(self, host: str, port: int, token: str = "") -> None:
        self.address = (host, port)
        self.token = token
        self.sent = 0
        self.failed = 0
        self._echo = b""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def heartbeat(self) -> bool:
        """Send a heartbeat; call it only while the person holds the enabling device.

        The first heartbeat, and the first after a pause, only requests a challenge; the next one
        counts.

        Returns
        -------
        bool
            Whether the system accepted the datagram.
        """
        return self._send("heartbeat")

    def stop(self) -> bool:
        """Request a stop, in several copies.

        Returns
        -------
        bool
            Whether the system accepted at least one datagram.
        """
        accepted = [self._send("stop") for _ in range(STOP_COPIES)]
        return any(accepted)

    def reset(self) -> bool:
        """Request a reset of a stop; valid only together with heartbeats of this sender.

        Returns
        -------
        bool
            Whether the system accepted the datagram.
        """
        return self._send("reset")

    def _send(self, kind: str) -> bool:
        message: dict[str, Any] = {"kind": kind}
        if kind != "stop":
            self._take_challenges()
            mac = signature(self.token, kind, self._echo)
            message |= {"echo": self._echo, "mac": mac}
        try:
            self._socket.sendto(msgpack.packb(message), self.address)
        except (OSError, OverflowError):
            self.failed += 1
            return False
        self.sent += 1
        return True

    def _take_challenges(self) -> None:
        """Store the last received challenge; only the loop can verify it."""
        for _ in range(PER_POLL):
            try:
                data = self._socket.recv(LARGEST_DATAGRAM)
            except OSError:
                return
            if len(data) == _CHALLENGE:
                self._echo = data

    def close(self) -> None:
        """Close the socket: the heartbeat ends."""
        self._socket.close()

    def __enter__(self) -> OperatorSender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
