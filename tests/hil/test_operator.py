"""The operator's channel: valid heartbeats, and stops."""

import hmac
import math
import socket
import struct
import time

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil._datagrams import unpack_map
from hil.clock import SteppedClock
from hil.errors import RigError
from hil.latch import Reason
from hil.operator import (
    CHALLENGES,
    FORGOTTEN,
    LARGEST_SENDERS,
    PER_POLL,
    OperatorChannel,
    OperatorSender,
)
from hil.rig import OperatorSettings

TIMEOUT = 0.3
SETTINGS = OperatorSettings(port=0, timeout=TIMEOUT)
PERIOD = 0.004
TICK = 1e-3


class Desk:
    """A channel, and a socket that sends it any datagrams and receives its answers."""

    def __init__(self, settings=SETTINGS, period=None, token=None):
        self.clock = SteppedClock()
        self.channel = OperatorChannel(settings, self.clock, period, token)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(("127.0.0.1", 0))
        self.address = ("127.0.0.1", self.channel.port)

    def sender(self, token=None):
        token = self.channel.token if token is None else token
        return OperatorSender(*self.address, token)

    def bytes(self, data):
        self.socket.sendto(data, self.address)

    def made(self, kind="heartbeat", echo=None, change=()):
        """A datagram as the documentation describes it, written without the code of the sender."""
        echo = self.challenge if echo is None else echo
        key = self.channel.token.encode()
        mac = hmac.new(key, kind.encode() + b"\0" + echo, "sha256").digest()
        return msgpack.packb({"kind": kind, "echo": echo, "mac": mac} | dict(change))

    def message(self, *arguments, **others):
        self.bytes(self.made(*arguments, **others))

    @property
    def challenge(self):
        """The last challenge that has come to the socket."""
        try:
            while True:
                self.last = self.socket.recv(4096)
        except BlockingIOError:
            return getattr(self, "last", b"")

    def begin(self):
        """Ask for a challenge."""
        self.message(echo=b"")
        assert self.after(0.0) is Reason.DEADMAN
        assert len(self.challenge) == 24

    def after(self, seconds):
        """Poll after some time."""
        self.clock.sleep_until(self.clock.now() + seconds)
        return self.channel.poll(self.clock.now())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        self.socket.close()


@pytest.fixture
def desk():
    with Desk() as made:
        yield made


@pytest.fixture
def begun(desk):
    desk.begin()
    return desk


def held(desk, sender):
    """Two heartbeats: the second counts."""
    sender.heartbeat()
    desk.after(0.0)
    sender.heartbeat()
    return desk.after(0.0)


# --- the age of a heartbeat -------------------------------------------------------------------


def test_a_heartbeat_keeps_the_deadman_quiet_for_the_timeout(desk):
    assert desk.after(0.0) is Reason.DEADMAN
    with desk.sender() as sender:
        assert sender.heartbeat()
        assert desk.after(0.0) is Reason.DEADMAN  # whenever it was made
        assert math.isnan(desk.channel.heartbeat)
        assert sender.heartbeat()
        challenged = desk.clock.now()
        assert desk.after(0.1) is Reason.NONE
        assert desk.channel.heartbeat == challenged
        assert desk.after(0.199) is Reason.NONE
        assert desk.after(0.002) is Reason.DEADMAN
        assert sender.heartbeat()
        assert desk.after(0.0) is Reason.NONE
    assert (desk.channel.received, desk.channel.stale) == (2, 1)
    assert (sender.sent, sender.failed) == (3, 0)


class Relay:
    """Something between sender and channel that keeps datagrams for a time, by simulated time.

    `there` and `back` are the delays of the two ways, s.
    """

    def __init__(self, desk, there=0.0, back=0.0):
        self.desk, self.there, self.back = desk, there, back
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.behind = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for side in (self.front, self.behind):
            side.bind(("127.0.0.1", 0))
            side.setblocking(False)
        self.waiting, self.sender = [], None

    def holder(self):
        """A sender that has the address of a relay instead of the loop's."""
        return OperatorSender(*self.front.getsockname(), self.desk.channel.token)

    def move(self):
        now = self.desk.clock.now()
        for side, other, delay in (
            (self.front, "loop", self.there),
            (self.behind, "sender", self.back),
        ):
            while True:
                try:
                    data, address = side.recvfrom(4096)
                except BlockingIOError:
                    break
                if side is self.front:
                    self.sender = address
                self.waiting.append((now + delay, other, data))
        due = [entry for entry in self.waiting if entry[0] <= now]
        self.waiting = [entry for entry in self.waiting if entry[0] > now]
        for _, other, data in due:
            if other == "loop":
                self.behind.sendto(data, self.desk.address)
            else:
                self.front.sendto(data, self.sender)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.front.close()
        self.behind.close()


def life(desk, relay, beats, seconds, sender):
    """Instants at which the deadman is quiet while heartbeats are sent every 50 ms for so long."""
    begin, alive = desk.clock.now(), []
    for step in range(round(seconds / PERIOD)):
        if step * PERIOD < beats and step % 12 == 0:
            sender.heartbeat()
            relay.last = desk.clock.now() - begin
        relay.move()
        if desk.after(PERIOD) is Reason.NONE:
            alive.append(desk.clock.now() - begin)
        relay.move()
    return alive


@pytest.mark.parametrize("back", [0.0, 3.0])
def test_a_relay_that_delays_heartbeats_keeps_nothing_alive_after_release(desk, back):
    with Relay(desk, 3.0, back) as relay, relay.holder() as sender:
        assert life(desk, relay, 6.0, 12.0, sender) == []
    assert desk.channel.stale > 50


def test_a_relay_that_begins_to_delay_ends_the_life_of_the_heartbeat(desk):
    with Relay(desk) as relay, relay.holder() as sender:
        assert len(life(desk, relay, 1.0, 1.0, sender)) > 230
        relay.there = 3.0
        last = relay.last
        alive = life(desk, relay, 1.0, 6.0, sender)
    assert max(alive) <= TIMEOUT - (1.0 - last) + PERIOD


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.06])
def test_a_network_that_is_quick_enough_keeps_the_rig_alive_and_no_longer_than_the_timeout(
    desk, delay
):
    with Relay(desk, delay, delay) as relay, relay.holder() as sender:
        alive = life(desk, relay, 3.0, 6.0, sender)
    steady = [instant for instant in alive if 0.5 < instant < 3.0]
    assert len(steady) == pytest.approx(2.5 / PERIOD, abs=2)  # all of them
    # Round trip and interval of challenges shorten the time-out.
    lost = 2.0 * delay + TIMEOUT / CHALLENGES + 2 * PERIOD
    assert TIMEOUT - lost <= max(alive) - relay.last <= TIMEOUT


@pytest.mark.parametrize("age", [TIMEOUT - TICK, TIMEOUT + TICK])
def test_the_age_of_a_heartbeat_is_that_of_its_challenge(begun, age):
    begun.message()
    verdict = begun.after(age)
    assert (verdict is Reason.NONE) == (age < TIMEOUT)
    assert begun.channel.stale == 1 + (age > TIMEOUT)


def test_heartbeats_in_another_order_keep_the_newest(begun):
    old = begun.made()
    begun.message()
    begun.after(0.1)
    assert begun.after(0.0) is Reason.NONE
    begun.message()
    begun.after(0.0)
    newest = begun.channel.heartbeat
    begun.bytes(old)
    begun.after(0.0)
    assert begun.channel.heartbeat == newest
    assert begun.channel.repeated == 1


def test_copies_and_replayed_heartbeats_refresh_nothing(begun):
    data = begun.made()
    for _ in range(4):
        begun.bytes(data)
        verdict = begun.after(0.09)
    assert verdict is Reason.DEADMAN
    assert begun.channel.repeated == 2
    assert begun.channel.stale == 2  # the first of all, and the last
    begun.message()
    assert begun.after(0.0) is Reason.NONE


def test_heartbeats_of_an_earlier_run_with_the_same_token_refresh_nothing():
    with Desk(token="kept") as one:
        one.begin()
        data = one.made()
    with Desk(token="kept") as other:  # its clock shows the same time
        other.bytes(data)
        assert other.after(0.0) is Reason.DEADMAN
        assert other.channel.stale == 1


def test_no_challenge_can_be_made_up(begun):
    """A seal of another instant, one of zeros, and one that is cut, all of them well signed."""
    challenge = begun.challenge
    later = struct.pack(">d", begun.clock.now() + 0.2)
    for echo in (later + challenge[8:], later + bytes(16), challenge[:23], challenge + b"\0"):
        begun.message(echo=echo)
        assert begun.after(0.05) is Reason.DEADMAN
    assert begun.channel.stale == 5


@pytest.mark.parametrize("instant", [math.nan, math.inf, -math.inf, 1e300])
def test_numbers_that_are_no_instants_refresh_nothing(begun, instant):
    echo = struct.pack(">d", instant)
    begun.message(echo=echo + begun.channel._seal(echo))  # if it ever were made
    assert begun.after(0.0) is Reason.DEADMAN


def test_a_challenge_of_the_future_refreshes_nothing(begun):
    """The loop's clock has gone back."""
    begun.message()
    assert begun.channel.poll(begun.clock.now() - 0.01) is Reason.DEADMAN


def test_the_clock_of_a_sender_is_ignored(desk, monkeypatch):
    monkeypatch.delattr("time.monotonic_ns")
    with desk.sender() as sender:
        assert held(desk, sender) is Reason.NONE


def test_a_restarted_sender_is_accepted_by_the_loop(desk):
    for _ in range(3):
        with desk.sender() as sender:
            assert held(desk, sender) is Reason.NONE
        assert desk.after(1.0) is Reason.DEADMAN
    assert desk.channel.repeated == 0


def test_what_waited_for_long_is_a_stop_and_no_heartbeat(desk):
    """After two seconds without reading, the instants of waiting datagrams are unknown."""
    with desk.sender() as sender:
        assert held(desk, sender) is Reason.NONE
        for _ in range(10):
            sender.heartbeat()
        assert desk.after(2.0) is Reason.DEADMAN
        sender.heartbeat()
        assert desk.after(PERIOD) is Reason.NONE
        sender.stop()
        assert desk.after(2.0) is Reason.OPERATOR


# --- challenges -------------------------------------------------------------------------------


def came(sock):
    count = 0
    while True:
        try:
            sock.recv(4096)
        except BlockingIOError:
            return count
        count += 1


@pytest.mark.parametrize(("step", "more"), [(-TICK, 0), (TICK, 1)])
def test_challenges_come_so_many_times_in_a_timeout(begun, step, more):
    came(begun.socket)
    begun.after(TIMEOUT / CHALLENGES + step)
    assert came(begun.socket) == more


@pytest.mark.parametrize(("silence", "more"), [(-TICK, 1), (TICK, 0)])
def test_who_is_silent_is_sent_no_more_challenges(begun, silence, more):
    came(begun.socket)
    begun.after(FORGOTTEN * TIMEOUT + silence)
    assert came(begun.socket) == more


def test_only_who_has_the_token_is_sent_challenges(desk):
    with desk.sender(token="guess") as stray:
        stray.heartbeat()
        stray.stop()
        desk.after(0.0)
        assert came(stray._socket) == 0
    assert desk.channel.refused == 1


def test_a_socket_that_takes_no_challenge_ends_nothing(begun):
    class Broken:
        def __init__(self, inner):
            self.inner = inner

        def sendto(self, *_):
            raise BlockingIOError

        def __getattr__(self, name):
            return getattr(self.inner, name)

    begun.channel._socket = Broken(begun.channel._socket)
    begun.message()
    assert begun.after(0.1) is Reason.NONE


def test_so_many_senders_are_known_and_one_that_has_left_makes_room(desk):
    sockets = [desk.sender() for _ in range(LARGEST_SENDERS + 1)]
    for sender in sockets:
        sender.heartbeat()
    desk.after(0.0)
    assert desk.channel.refused == 1
    for sender in sockets[1:]:
        sender.heartbeat()
    assert desk.after(0.1) is Reason.NONE
    desk.after(FORGOTTEN * TIMEOUT + TICK)
    assert held(desk, sockets[-1]) is Reason.NONE
    for sender in sockets:
        sender.close()


# --- invalid heartbeats -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "entries",
    [
        {"mac": bytes(32)},
        {"mac": b""},
        {"mac": None},
        {"mac": "x" * 32},
        {"echo": None},
        {"echo": "text"},
        {"echo": 7},
        {"echo": bytes(24)},  # another than the signed one
        {"kind": "reset"},  # signed as a heartbeat
        {"kind": "beat"},
        {"kind": None},
        {"kind": ["heartbeat"]},
        {"more": "x" * 600},
    ],
)
def test_invalid_heartbeats_refresh_nothing(begun, entries):
    """Accident 5 for the operator: only a valid heartbeat proves that a person watches."""
    for _ in range(4):
        begun.message(change=entries)
        verdict = begun.after(0.01)
        assert not begun.channel.take_reset()
    assert verdict is Reason.DEADMAN
    assert begun.channel.invalid + begun.channel.refused == 4
    assert begun.channel.received == 0
    begun.message()
    assert begun.after(0.0) is Reason.NONE


def test_the_token_does_not_travel(desk):
    with OperatorSender(*desk.socket.getsockname(), token="a long secret") as sender:
        sender.heartbeat()
        sender.reset()
        sender.stop()
        seen = [desk.socket.recv(4096) for _ in range(5)]
    assert not any(b"secret" in data for data in seen)


@given(
    st.lists(st.one_of(st.binary(max_size=700), st.builds(msgpack.packb, st.none())), max_size=9)
)
def test_no_datagram_raises_or_refreshes(datagrams):
    with Desk() as desk:
        for data in datagrams:
            desk.bytes(data)
        assert desk.after(0.0) is Reason.DEADMAN
        assert desk.channel.received == 0


WORDS = st.sampled_from(["kind", "echo", "mac", "heartbeat", "reset", ""])
BYTES = st.sampled_from([b"", bytes(24), bytes(32)])
THINGS = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), WORDS, BYTES
    ),
    lambda x: st.one_of(st.lists(x, max_size=3), st.dictionaries(WORDS, x, max_size=4)),
    max_leaves=6,
)


@given(THINGS)
def test_no_message_raises_or_refreshes(thing):
    with Desk() as desk:
        desk.bytes(msgpack.packb(thing))
        assert desk.after(0.0) is Reason.DEADMAN
        assert not desk.channel.take_reset()


# --- stop and reset ---------------------------------------------------------------------------


def test_a_stop_needs_no_token_and_stays(desk):
    with desk.sender() as sender, desk.sender(token="") as stranger:
        assert held(desk, sender) is Reason.NONE
        assert stranger.stop()
        for _ in range(20):
            sender.heartbeat()
            assert desk.after(0.1) is Reason.OPERATOR
        assert desk.channel.stopped
        assert desk.channel.stops == 3


@pytest.mark.parametrize("data", [{"kind": "stop"}, {"kind": "stop", "echo": None, "mac": 3}])
def test_a_stop_needs_nothing_but_its_word(begun, data):
    begun.message()
    begun.bytes(msgpack.packb(data))
    assert begun.after(0.0) is Reason.OPERATOR


def test_a_reset_needs_the_token_and_comes_once(desk):
    with desk.sender() as sender, desk.sender(token="guess") as stranger:
        assert held(desk, sender) is Reason.NONE
        stranger.stop()
        stranger.reset()
        assert desk.after(0.0) is Reason.OPERATOR
        assert not desk.channel.take_reset()
        sender.heartbeat()
        sender.reset()
        assert desk.after(0.0) is Reason.NONE
        assert desk.channel.take_reset()
        assert not desk.channel.take_reset()


def test_a_stop_after_a_reset_wins(desk):
    with desk.sender() as sender:
        held(desk, sender)
        sender.reset()
        sender.stop()
        assert desk.after(0.0) is Reason.OPERATOR
        assert not desk.channel.take_reset()


def test_a_replayed_reset_resets_nothing(begun):
    data = begun.made("reset")
    begun.bytes(data)
    begun.after(0.0)
    assert begun.channel.take_reset()
    begun.bytes(msgpack.packb({"kind": "stop"}))
    begun.bytes(data)
    assert begun.after(0.0) is Reason.OPERATOR
    assert not begun.channel.take_reset()
    assert begun.channel.repeated == 1


@pytest.mark.parametrize("age", [TIMEOUT - TICK, TIMEOUT + TICK])
def test_a_reset_has_an_age_too(begun, age):
    begun.message("reset")
    begun.after(age)
    assert begun.channel.take_reset() == (age < TIMEOUT)


# --- clocks and floods ------------------------------------------------------------------------


def test_the_channel_asks_its_own_clock_if_it_is_given_no_time(desk):
    with desk.sender() as sender:
        held(desk, sender)
    assert desk.channel.poll() is Reason.NONE
    desk.clock.sleep_until(desk.clock.now() + 1.0)
    assert desk.channel.poll() is Reason.DEADMAN


def test_a_clock_that_stands_still_does_not_keep_the_deadman_alive():
    """Accident 7: polls are counted beside the clock."""
    with Desk(period=PERIOD) as desk, desk.sender() as sender:
        held(desk, sender)
        verdicts = []
        for _ in range(400):
            sender.heartbeat()
            verdicts.append(desk.after(0.0))
    alive = sum(verdict is Reason.NONE for verdict in verdicts)
    assert 75 <= alive <= 151  # one timeout is 75 cycles
    assert verdicts[-1] is Reason.DEADMAN


def test_polls_do_not_shorten_the_timeout():
    with Desk(period=PERIOD) as desk, desk.sender() as sender:
        held(desk, sender)
        verdicts = [desk.after(PERIOD) for _ in range(100)]
    assert sum(verdict is Reason.NONE for verdict in verdicts) in (74, 75)


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf, 0.0])
def test_a_clock_that_goes_wrong_is_no_heartbeat(begun, now):
    begun.message()
    assert begun.after(0.0) is Reason.NONE
    begun.message()
    assert begun.channel.poll(now) is Reason.DEADMAN


def test_an_optional_heartbeat_that_began_must_continue():
    with Desk(OperatorSettings(port=0, required=False)) as desk, desk.sender() as sender:
        assert desk.after(10.0) is Reason.NONE
        assert held(desk, sender) is Reason.NONE
        assert desk.after(0.4) is Reason.DEADMAN


def test_a_flood_is_read_in_portions_and_does_not_refresh(begun):
    begun.message()
    begun.after(0.0)
    for _ in range(PER_POLL + 10):
        begun.bytes(b"\xc1")
    begun.after(0.0)
    assert begun.channel.invalid == PER_POLL
    assert begun.after(0.4) is Reason.DEADMAN
    assert begun.channel.invalid == PER_POLL + 10


def test_tokens_are_secret_and_never_twice_the_same():
    with Desk() as one, Desk() as other:
        assert len(one.channel.token) == 32
        assert one.channel.token != other.channel.token
        with other.sender(token=one.channel.token) as stray:
            assert held(other, stray) is Reason.DEADMAN


def test_an_address_in_use_and_one_of_another_machine_are_refused():
    with Desk() as desk:
        for host, port in (
            ("127.0.0.1", desk.channel.port),
            ("192.0.2.1", 0),
            ("127.0.0.1", 70000),
        ):
            with pytest.raises(RigError, match="operator channel"):
                OperatorChannel(OperatorSettings(host=host, port=port), desk.clock)
    with pytest.raises(RigError, match="token"):
        OperatorChannel(SETTINGS, desk.clock, token="")


def test_the_channel_listens_to_this_machine_only():
    assert OperatorSettings().host == "127.0.0.1"
    with Desk() as desk:
        assert desk.channel._socket.getsockname()[0] == "127.0.0.1"
        assert not desk.channel._socket.getblocking()


def test_a_sender_never_raises_when_it_sends():
    sender = OperatorSender("127.0.0.1", 9, "token")
    sender.close()
    assert not sender.stop()
    assert not sender.heartbeat()
    assert not sender.reset()
    assert sender.failed == 5
    with OperatorSender("127.0.0.1", 70000) as nowhere:
        assert not nowhere.stop()


def test_a_channel_that_is_closed_ends_the_heartbeat(begun):
    begun.message()
    assert begun.after(0.0) is Reason.NONE
    begun.channel.close()
    assert begun.after(0.4) is Reason.DEADMAN


# -- datagrams: flat maps are read; anything else costs next to nothing ------------------------


FIFTEEN = {f"n{k}": k for k in range(15)}


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"kind": "heartbeat", "echo": b"x" * 24, "mac": b"y" * 32},
        {"time": 1.5, "position": [1.0, -2.0, 3e300], "orientation": [0, 0, 0, 1], "sequence": -7},
        {"none": None, "truth": True, "": [], "long": "x" * 300, "big": 2**63, "mixed": [1, "a"]},
        {"fifteen": list(range(15))},
        FIFTEEN,
    ],
)
def test_flat_maps_are_read(message):
    assert unpack_map(msgpack.packb(message)) == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x81",
        b"\x81\xa1x",
        b"\xc1",
        b"text",
        msgpack.packb([1, 2]),
        msgpack.packb({"x": 1}) + b"\0",
        msgpack.packb({"x": 1})[:-1],
        msgpack.packb({"x": {}})[:-1] + b"\x81\x00\x00",
        msgpack.packb({"x": [[1]]}),
        msgpack.packb({"x": list(range(16))}),
        msgpack.packb({**FIFTEEN, "x": 1}),
        msgpack.packb({"x": msgpack.Timestamp(1, 1)}),
        b"\x81\xa2\xff\xff\x00",  # no UTF-8
        b"\x81\x92\x01\x02\x00",  # a list as a name
    ],
)
def test_anything_else_is_refused(data):
    assert unpack_map(data) is None


@pytest.mark.parametrize(
    "data", [b"\x91" * 512, b"\x81\x00" * 256, b"\x81" * 512, b"\x81\x00" + b"\x91" * 510]
)
def test_nesting_costs_no_more_than_reading(data):
    plain = msgpack.packb({"kind": "heartbeat", "echo": b"x" * 24, "mac": b"y" * 32})

    def cost(datagram):
        spent = []
        for _ in range(50):
            start = time.process_time_ns()
            for _ in range(20):
                unpack_map(datagram)
            spent.append(time.process_time_ns() - start)
        return min(spent)

    assert unpack_map(data) is None
    assert cost(data) < 5 * cost(plain)
