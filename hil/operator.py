"""The person at the stop button: heartbeat, stop and reset as datagrams.

The heartbeat of the operator is apart from that of the data: it says that somebody watches. Each
datagram is a msgpack map with the entries

======= ==========================================================================================
entry   meaning
======= ==========================================================================================
kind    "heartbeat", "stop" or "reset"
seq     a number that grows from one datagram of a sender to its next
token   the secret of this run: the loop makes it, and hands it to those who may keep it running
sender  name of the sender, at most 32 characters; numbers are compared within one sender
======= ==========================================================================================

Only a heartbeat with the token and a number that has grown refreshes the deadman: not a copy, not
a frozen or replayed one, not a stray process, and nothing that is not understood. A stop needs
neither token nor number: whoever asks for one gets it.

Send the heartbeat from where the person acts, at least three times within the timeout, and from
one place only: any sender with the token keeps the rig running. It must not be sent by a thread
of its own, which would go on while the program in which the stop button lives hangs.
"""

from __future__ import annotations

import hmac
import math
import secrets
import socket
import time
from typing import Any

import msgpack

from hil.clock import Clock
from hil.errors import RigError
from hil.latch import Reason
from hil.rig import OperatorSettings

KINDS = ("heartbeat", "stop", "reset")
"""What an operator can say."""

LARGEST_DATAGRAM = 512
"""Bytes above which a datagram is refused."""

PER_POLL = 64
"""Datagrams read in one poll: a flood must not hold up the loop."""

LARGEST_SENDERS = 8
"""Senders whose numbers are remembered; heartbeats of further ones are refused."""

STOP_COPIES = 3
"""Datagrams in which a stop is sent: one may be lost."""


class OperatorChannel:
    """Receiver in the loop: never waits, never raises on what arrives.

    Parameters
    ----------
    settings : OperatorSettings
        Where to listen, the timeout, and whether a heartbeat is required. The host is that of
        the machine itself unless the rig file says otherwise; port 0 takes a free one.
    clock : Clock
        The loop's clock: instants of arrival are local, whatever the sender says.
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
        Instant of the last valid heartbeat, s of the loop's clock; NaN: none yet.
    stopped : bool
        Whether a stop was asked for; stays until a valid reset.
    stops : int
        Datagrams that asked for one.
    received, refused, repeated, invalid : int
        Valid datagrams; those with a wrong token or of too many senders; those whose number has
        not grown; those that are not understood.

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
        self.invalid = 0
        self._reset = False
        self._seqs: dict[str, int] = {}
        self._polls = 0  # since the last heartbeat
        self._polled = math.nan  # instant of the last poll
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

        Notes
        -----
        After longer than the timeout without a poll, the heartbeats that wait may be as old as
        that: they refresh nothing.
        """
        if now is None:
            now = self.clock.now()
        self._polls += 1
        fresh = not now - self._polled > self.settings.timeout
        self._polled = now
        for _ in range(PER_POLL):
            try:
                data = self._socket.recv(LARGEST_DATAGRAM + 1)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                self.invalid += 1
                break
            self._take(data, now, fresh)
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

    def _take(self, data: bytes, now: float, fresh: bool) -> None:
        message = _understood(data)
        if message is None:
            self.invalid += 1
            return
        kind = message["kind"]
        if kind == "stop":  # from anybody: neither token nor number
            self.received += 1
            self.stops += 1
            self.stopped = True
            self._reset = False
            return
        seq, token, sender = message.get("seq"), message.get("token"), message.get("sender", "")
        if not (
            isinstance(seq, int)
            and not isinstance(seq, bool)
            and isinstance(token, str)
            and isinstance(sender, str)
            and len(sender) <= 32
        ):
            self.invalid += 1
            return
        known = hmac.compare_digest(
            token.encode("utf-8", "replace"), self.token.encode("utf-8", "replace")
        )
        if not known or (sender not in self._seqs and len(self._seqs) >= LARGEST_SENDERS):
            self.refused += 1
            return
        if sender in self._seqs and seq <= self._seqs[sender]:
            self.repeated += 1
            return
        self._seqs[sender] = seq
        self.received += 1
        if kind == "heartbeat":
            if fresh:
                self.heartbeat = now
                self._polls = 0
        else:
            self.stopped = False
            self._reset = True

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
    try:
        message = msgpack.unpackb(data)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    except msgpack.UnpackException:
        return None
    if not isinstance(message, dict):
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
    name : str, optional
        Name of this sender, at most 32 characters; a random one if not given.

    Attributes
    ----------
    sent, failed : int
        Datagrams that the machine took, and those it did not.
    """

    def __init__(self, host: str, port: int, token: str = "", name: str | None = None) -> None:
        if name is None:
            name = secrets.token_hex(8)
        if len(name) > 32:
            raise RigError(
                f"operator `{name}`",
                expected="a name of at most 32 characters",
                came=f"{len(name)} characters",
                cure="Shorten it: the loop refuses longer ones.",
            )
        self.address = (host, port)
        self.token = token
        self.name = name
        self.sent = 0
        self.failed = 0
        self._seq = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def heartbeat(self) -> bool:
        """Say that somebody watches; call it from where the person acts.

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
        """Ask for a reset of a stop.

        Returns
        -------
        bool
            Whether the machine took it.
        """
        return self._send("reset")

    def _send(self, kind: str) -> bool:
        # Grows through restarts of a sender that keeps its name.
        self._seq = max(self._seq + 1, time.monotonic_ns())
        message = {"kind": kind, "seq": self._seq, "token": self.token, "sender": self.name}
        try:
            self._socket.sendto(msgpack.packb(message), self.address)
        except (OSError, OverflowError):
            self.failed += 1
            return False
        self.sent += 1
        return True

    def close(self) -> None:
        """Send no more: the heartbeat ends."""
        self._socket.close()

    def __enter__(self) -> OperatorSender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
