"""The person at the stop button: heartbeat, stop and reset as datagrams.

The heartbeat of the operator is apart from that of the data: it says that somebody watches. Each
datagram to the loop is a msgpack map with the entries

======= ==========================================================================================
entry   meaning
======= ==========================================================================================
kind    "heartbeat", "stop" or "reset"
echo    the last challenge that the loop sent to this sender, as it came; empty before the first
mac     HMAC-SHA256 of kind and echo with the token of this run: `signature`
======= ==========================================================================================

A challenge is a datagram of the loop: the instant on its own clock with a seal that only this run
of the loop can make. The loop sends one to each known sender, several in each timeout, and a
heartbeat with its echo was made after that instant. So the age of a heartbeat is bounded by the
loop's own clock, whatever lies between: a relay that delays datagrams, one that repeats them, an
earlier run with the same token, a clock of the sender that jumps. Neither the token nor anything
that could replace it travels. A stop needs neither echo nor mac: whoever asks for one gets it.

Send the heartbeat from where the person acts, at least four times within the timeout, and from
one place only: any sender with the token keeps the rig running. It must not be sent by a thread
of its own, which would go on while the program in which the stop button lives hangs. Challenges
come back to the address that heartbeats come from: a firewall between must let them pass.
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
"""What an operator can say."""

LARGEST_DATAGRAM = 512
"""Bytes above which a datagram is refused."""

PER_POLL = 64
"""Datagrams read in one poll: a flood must not hold up the loop."""

LARGEST_SENDERS = 8
"""Senders that are sent challenges; heartbeats of further ones are refused."""

CHALLENGES = 16
"""Challenges in a timeout: their distance is what the age of a heartbeat is overestimated by."""

FORGOTTEN = 2.0
"""Timeouts without a heartbeat after which a sender is sent no more challenges."""

STOP_COPIES = 3
"""Datagrams in which a stop is sent: one may be lost."""


_INSTANT = struct.Struct(">d")
_SEAL = 16
_CHALLENGE = _INSTANT.size + _SEAL


def signature(token: str, kind: str, echo: bytes) -> bytes:
    """Code that proves that a datagram was made by someone who has the token.

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
    """Receiver in the loop: never waits, never raises on what arrives.

    Parameters
    ----------
    settings : OperatorSettings
        Where to listen, the timeout, and whether a heartbeat is required. The host is that of
        the machine itself unless the rig file says otherwise; port 0 takes a free one.
    clock : Clock
        The loop's clock: ages of heartbeats are by this one, whatever the sender's says.
    period : float, optional
        Length of a cycle, s. With it, polls are counted too: a clock that stands still does not
        keep the deadman alive for more than twice the timeout. Poll once in each cycle then.
    token : str, optional
        The secret; a random one if not given.

    Attributes
    ----------
    token : str
        The secret, for those who may keep the rig running.
    port : int
        Where the channel listens.
    heartbeat : float
        Latest instant after which a heartbeat is known to have been made, s of the loop's clock;
        NaN: none yet.
    stopped : bool
        Whether a stop was asked for; stays until a valid reset.
    stops : int
        Datagrams that asked for one.
    received, refused, repeated, stale, invalid : int
        Valid datagrams; those with a wrong signature or of too many senders; those that prove
        nothing newer than others before; signed ones whose echo is older than the timeout, of
        another run, or missing; those that are not understood.

    Raises
    ------
    RigError
        If the address cannot be listened to, or the token is empty.
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
                expected="a token that nobody guesses",
                came="an empty one",
                cure="Leave it out: a random one is made.",
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
        self._reset_after = -math.inf  # what the last reset proved
        self._key = secrets.token_bytes(32)  # of the seals of this run
        self._senders: dict[Any, float] = {}  # when each address was last heard
        self._challenged = -math.inf
        self._polls = 0  # since the last heartbeat
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
                expected="an address of this machine that is free",
                came=f"{error}",
                cure="End the other controller that listens there, or change `[operator]` of "
                "the rig file.",
            ) from error
        self.port: int = self._socket.getsockname()[1]

    def poll(self, now: float | None = None) -> Reason:
        """Read what has arrived, and say whether the operator wants or forces a stop.

        Parameters
        ----------
        now : float, optional
            Instant of the loop's clock, s; asked of the clock if not given.

        Returns
        -------
        Reason
            OPERATOR while a stop asked for has not been reset, else DEADMAN while the heartbeat
            stays away, else NONE. Where no heartbeat is required, one that began must go on.
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
        """Whether the heartbeat is fresh, or there is none and none is required.

        Parameters
        ----------
        now : float
            Instant of the loop's clock, s.

        Returns
        -------
        bool
            False too if the clock went back, is no number, or stood still for too many polls.
        """
        if math.isnan(self.heartbeat):
            return not self.settings.required
        if self._largest_polls is not None and self._polls > self._largest_polls:
            return False
        return 0.0 <= now - self.heartbeat <= self.settings.timeout

    def take_reset(self) -> bool:
        """Whether a reset was asked for since the last call.

        Returns
        -------
        bool
            True once for each valid reset that no later stop overrules.
        """
        asked, self._reset = self._reset, False
        return asked

    def _take(self, data: bytes, address: Any, now: float) -> None:
        message = _understood(data)
        if message is None:
            self.invalid += 1
            return
        kind = message["kind"]
        if kind == "stop":  # from anybody
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
            self._challenged = -math.inf  # a new one gets its first challenge at once
        self._senders[address] = now
        instant = self._sealed(echo)
        if not 0.0 <= now - instant <= self.settings.timeout:  # NaN too
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
        """Send the present to all senders, if it is time to, and forget those that are silent."""
        if not self._senders or not math.isfinite(now):
            return
        if 0.0 <= now - self._challenged < self.settings.timeout / CHALLENGES:
            return
        self._challenged = now
        instant = _INSTANT.pack(now)
        challenge = instant + self._seal(instant)
        for address, heard in list(self._senders.items()):
            if not 0.0 <= now - heard <= FORGOTTEN * self.settings.timeout:
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
        """Stop listening."""
        self._socket.close()

    def __enter__(self) -> OperatorChannel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _understood(data: bytes) -> dict[str, Any] | None:
    """The message in a datagram; None if it is none."""
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
    """Sender for a terminal, a dashboard or a pendant; never waits, never raises when sending.

    Parameters
    ----------
    host : str
        Where the loop listens.
    port : int
        Its port.
    token : str
        The secret of the run; "" for a sender that may only stop.

    Attributes
    ----------
    sent, failed : int
        Datagrams that the machine took, and those it did not.
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
        """Say that somebody watches; call it from where the person acts.

        The first one, and the first after a pause, only asks for a challenge: the next one counts.

        Returns
        -------
        bool
            Whether the machine took it.
        """
        return self._send("heartbeat")

    def stop(self) -> bool:
        """Ask for a stop, in several copies.

        Returns
        -------
        bool
            Whether the machine took one of them.
        """
        taken = [self._send("stop") for _ in range(STOP_COPIES)]
        return any(taken)

    def reset(self) -> bool:
        """Ask for a reset of a stop; counts only beside heartbeats of this sender.

        Returns
        -------
        bool
            Whether the machine took it.
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
        """Keep the last challenge that has come; only the loop can judge it."""
        for _ in range(PER_POLL):
            try:
                data = self._socket.recv(LARGEST_DATAGRAM)
            except OSError:
                return
            if len(data) == _CHALLENGE:
                self._echo = data

    def close(self) -> None:
        """Send no more: the heartbeat ends."""
        self._socket.close()

    def __enter__(self) -> OperatorSender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
