"""The operator's channel: what refreshes the deadman, and what stops."""

import math
import socket

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.clock import SteppedClock
from hil.errors import RigError
from hil.latch import Reason
from hil.operator import PER_POLL, OperatorChannel, OperatorSender
from hil.rig import OperatorSettings

SETTINGS = OperatorSettings(port=0, timeout=0.3)
PERIOD = 0.004


class Desk:
    """A channel, and a socket that can send it anything."""

    def __init__(self, settings=SETTINGS, period=None):
        self.clock = SteppedClock()
        self.channel = OperatorChannel(settings, self.clock, period)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def sender(self, token=None, name="pendant"):
        token = self.channel.token if token is None else token
        return OperatorSender("127.0.0.1", self.channel.port, token, name)

    def bytes(self, data):
        self.socket.sendto(data, ("127.0.0.1", self.channel.port))

    def message(self, **entries):
        standard = {"kind": "heartbeat", "seq": 1, "token": self.channel.token}
        self.bytes(msgpack.packb(standard | entries))

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


def test_a_heartbeat_keeps_the_deadman_quiet_for_the_timeout(desk):
    assert desk.after(0.0) is Reason.DEADMAN
    assert math.isnan(desk.channel.heartbeat)
    with desk.sender() as sender:
        assert sender.heartbeat()
        assert desk.after(0.1) is Reason.NONE
        assert desk.channel.heartbeat == desk.clock.now()
        assert desk.after(0.29) is Reason.NONE
        assert desk.after(0.02) is Reason.DEADMAN
        assert sender.heartbeat()
        assert desk.after(0.0) is Reason.NONE
    assert (desk.channel.received, sender.sent, sender.failed) == (2, 2, 0)


def test_the_channel_asks_its_own_clock_if_it_is_told_no_time(desk):
    with desk.sender() as sender:
        sender.heartbeat()
    assert desk.channel.poll() is Reason.NONE
    desk.clock.sleep_until(desk.clock.now() + 1.0)
    assert desk.channel.poll() is Reason.DEADMAN


@pytest.mark.parametrize("seq", [5, 4, 0, -1])
def test_copies_and_replayed_heartbeats_refresh_nothing(desk, seq):
    desk.message(seq=5)
    assert desk.after(0.0) is Reason.NONE
    for _ in range(4):
        desk.message(seq=seq)
        verdict = desk.after(0.1)
    assert verdict is Reason.DEADMAN
    assert desk.channel.repeated == 4
    desk.message(seq=6)
    assert desk.after(0.0) is Reason.NONE


@pytest.mark.parametrize(
    "entries",
    [
        {"token": "0" * 32},
        {"token": ""},
        {"token": None},
        {"token": b"bytes"},
        {"seq": None},
        {"seq": True},
        {"seq": 2.0},
        {"seq": math.nan},
        {"seq": "2"},
        {"kind": "beat"},
        {"kind": None},
        {"kind": ["heartbeat"]},
        {"sender": 3},
        {"sender": "x" * 33},
        {"more": "x" * 600},
    ],
)
def test_invalid_heartbeats_refresh_nothing(desk, entries):
    """Accident 5 for the operator: only what is valid proves that somebody watches."""
    desk.message(seq=1)
    assert desk.after(0.0) is Reason.NONE
    for i in range(4):
        desk.message(**({"seq": 2 + i} | entries))
        verdict = desk.after(0.1)
    assert verdict is Reason.DEADMAN
    assert desk.channel.invalid + desk.channel.refused == 4
    assert desk.channel.received == 1


def test_a_message_without_token_is_no_heartbeat(desk):
    desk.bytes(msgpack.packb({"kind": "heartbeat", "seq": 1}))
    assert desk.after(0.0) is Reason.DEADMAN


@given(
    st.lists(st.one_of(st.binary(max_size=700), st.builds(msgpack.packb, st.none())), max_size=9)
)
def test_no_datagram_raises_or_refreshes(datagrams):
    with Desk() as desk:
        for data in datagrams:
            desk.bytes(data)
        assert desk.after(0.0) is Reason.DEADMAN
        assert desk.channel.received == 0


WORDS = st.sampled_from(["kind", "seq", "token", "heartbeat", "reset", "sender", ""])
THINGS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), WORDS),
    lambda x: st.one_of(st.lists(x, max_size=3), st.dictionaries(WORDS, x, max_size=4)),
    max_leaves=6,
)


@given(THINGS)
def test_no_message_raises_or_refreshes(thing):
    with Desk() as desk:
        desk.bytes(msgpack.packb(thing))
        assert desk.after(0.0) is Reason.DEADMAN
        assert not desk.channel.take_reset()


def test_a_stop_needs_no_token_and_stays(desk):
    with desk.sender() as sender, desk.sender(token="", name="stranger") as stranger:
        sender.heartbeat()
        assert desk.after(0.0) is Reason.NONE
        assert stranger.stop()
        for _ in range(20):
            sender.heartbeat()
            assert desk.after(0.1) is Reason.OPERATOR
        assert desk.channel.stopped


@pytest.mark.parametrize("data", [{"kind": "stop"}, {"kind": "stop", "seq": None, "token": 3}])
def test_a_stop_needs_nothing_but_its_word(desk, data):
    desk.message(seq=1)
    desk.bytes(msgpack.packb(data))
    assert desk.after(0.0) is Reason.OPERATOR


def test_a_reset_needs_the_token_and_comes_once(desk):
    with desk.sender() as sender, desk.sender(token="guess") as stranger:
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
        sender.heartbeat()
        sender.reset()
        sender.stop()
        assert desk.after(0.0) is Reason.OPERATOR
        assert not desk.channel.take_reset()


def test_a_replayed_reset_resets_nothing(desk):
    desk.message(kind="reset", seq=7)
    desk.after(0.0)
    assert desk.channel.take_reset()
    desk.message(kind="stop", seq=8)
    desk.message(kind="reset", seq=7)
    assert desk.after(0.0) is Reason.OPERATOR
    assert not desk.channel.take_reset()


def test_a_clock_that_stands_still_does_not_keep_the_deadman_alive():
    """Accident 7: polls are counted beside the clock."""
    with Desk(period=PERIOD) as desk, desk.sender() as sender:
        sender.heartbeat()
        verdicts = [desk.after(0.0) for _ in range(400)]
    alive = sum(verdict is Reason.NONE for verdict in verdicts)
    assert 75 <= alive <= 151  # one timeout is 75 cycles
    assert verdicts[-1] is Reason.DEADMAN


def test_polls_do_not_shorten_the_timeout():
    with Desk(period=PERIOD) as desk, desk.sender() as sender:
        sender.heartbeat()
        verdicts = [desk.after(PERIOD) for _ in range(100)]
    assert sum(verdict is Reason.NONE for verdict in verdicts) in (75, 76)


def test_a_heartbeat_that_goes_on_keeps_the_deadman_quiet_for_any_number_of_polls():
    with Desk(period=PERIOD) as desk, desk.sender() as sender:
        for cycle in range(600):
            if cycle % 25 == 0:
                sender.heartbeat()
            assert desk.after(PERIOD) is Reason.NONE


@pytest.mark.parametrize("now", [math.nan, math.inf, -math.inf, 0.0])
def test_a_clock_that_goes_wrong_is_no_heartbeat(desk, now):
    desk.message(seq=1)
    assert desk.after(0.0) is Reason.NONE
    assert desk.channel.poll(now) is Reason.DEADMAN


def test_where_none_is_required_a_heartbeat_that_began_must_go_on():
    with Desk(OperatorSettings(port=0, required=False)) as desk, desk.sender() as sender:
        assert desk.after(10.0) is Reason.NONE
        sender.heartbeat()
        assert desk.after(0.0) is Reason.NONE
        assert desk.after(0.4) is Reason.DEADMAN


def test_a_flood_is_read_in_portions_and_does_not_refresh(desk):
    with desk.sender() as sender:
        sender.heartbeat()
    desk.after(0.0)
    for _ in range(PER_POLL + 10):
        desk.bytes(b"\xc1")
    desk.after(0.0)
    assert desk.channel.invalid == PER_POLL
    assert desk.after(0.4) is Reason.DEADMAN
    assert desk.channel.invalid == PER_POLL + 10


def test_senders_are_told_apart_and_only_so_many_are_known(desk):
    desk.message(seq=1000, sender="a")
    desk.after(0.0)
    desk.message(seq=1, sender="b")
    desk.after(0.0)
    assert desk.channel.received == 2
    for i in range(20):
        desk.message(seq=1, sender=f"more {i}")
    desk.after(0.0)
    assert desk.channel.received == 8
    assert desk.channel.refused == 14
    desk.after(1.0)
    desk.message(seq=2, sender="b")
    assert desk.after(0.1) is Reason.NONE


def test_a_sender_that_starts_anew_under_its_name_is_heard(desk):
    for _ in range(3):
        with desk.sender() as sender:
            sender.heartbeat()
        assert desk.after(0.1) is Reason.NONE
        assert desk.after(1.0) is Reason.DEADMAN
    assert desk.channel.repeated == 0


def test_tokens_are_secret_and_never_twice_the_same():
    with Desk() as one, Desk() as other:
        assert len(one.channel.token) == 32
        assert one.channel.token != other.channel.token
        with other.sender(token=one.channel.token) as stray:
            stray.heartbeat()
        assert other.after(0.0) is Reason.DEADMAN


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
    with pytest.raises(RigError, match="at most 32"):
        OperatorSender("127.0.0.1", 9, name="x" * 33)


def test_a_channel_that_is_closed_ends_the_heartbeat(desk):
    desk.message(seq=1)
    assert desk.after(0.0) is Reason.NONE
    desk.channel.close()
    assert desk.after(0.4) is Reason.DEADMAN
