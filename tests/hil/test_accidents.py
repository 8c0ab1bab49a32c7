"""Accidents that happened to others: the naive pieces repeat them, guard and latch do not.

The numbers are those of the list the rig was designed with. Those of the drives themselves (10,
11, 16) are here as far as guard and latch have a part in them.
"""

import dataclasses
import inspect
import itertools
import math
import socket

import msgpack
import numpy as np
import pytest

from hil import guard, latch
from hil.clock import SteppedClock
from hil.errors import ArmError
from hil.guard import (
    Action,
    Flag,
    Latch,
    Limits,
    Phase,
    Reason,
    State,
    Verdict,
    brake,
    judge,
    policy_torque,
)
from hil.operator import OperatorChannel, OperatorSender, signature
from hil.rig import OperatorSettings, Policies, Policy
from tests.hil import naive
from tests.hil._guarded import PERIOD, Loop, axis, limits

MODES = ("mock", "listen", "shadow", "drive")
ONE = np.array([0.001])
NAN = np.array([math.nan])


def drive_joint(loop, joint, demand, cycles=400):
    """Let a loop move a joint."""
    for _ in range(cycles):
        torque = loop.cycle(demand, np.array([joint.q]), np.array([joint.v]), ONE)
        joint.apply(torque[0])


def test_1_clip_of_nan_is_nan():
    joint = naive.Joint()
    for _ in range(400):
        sent = naive.clip_guard(NAN, 10.0)
        joint.apply(sent[0])
    assert math.isnan(sent[0])
    assert joint.hit

    joint, loop = naive.Joint(), Loop(limits(1)).start()
    drive_joint(loop, joint, NAN)
    assert np.isfinite(loop.sent).all()
    assert not joint.hit
    assert joint.q == 0.0
    assert (loop.latch.state, loop.latch.reason) == (State.STOP, Reason.NOT_FINITE)


def test_2_min_and_max_of_nan_is_full_scale():
    assert naive.minmax_guard([math.nan], 10.0) == [10.0]

    out = np.full(3, 10.0)
    demand = np.array([1.0, math.nan, 1.0])
    zero, fresh = np.zeros(3), np.full(3, 0.001)
    verdict = judge(demand, zero, zero, zero, fresh, limits(), PERIOD, out)
    assert verdict == Verdict(Reason.NOT_FINITE, Flag.NONE, 1)
    assert out.tolist() == [0.0] * 3


@pytest.mark.parametrize("bad", range(1, 4))
def test_3_nothing_is_sent_before_the_whole_vector_is_judged(bad):
    demand = np.full(4, 5.0)
    demand[bad] = math.nan
    sent = []
    with pytest.raises(ValueError, match=f"axis {bad}"):
        naive.send_each(demand, 10.0, lambda *command: sent.append(command))
    assert len(sent) == bad  # these joints move, the others do not

    loop = Loop(limits(4)).start()
    loop.cycle(demand)
    assert not np.any(loop.sent)
    assert loop.latch.reason is Reason.NOT_FINITE


def test_4_invalid_numbers_are_not_a_success():
    good = [0.5, 0.5, 0.5]
    frames = [naive.packed(v) for v in (good, [0.5, math.nan, 0.5], good)]
    sent = []
    assert naive.run_setpoints(frames, sent.append) == "success"
    assert any(math.isnan(x) for x in itertools.chain(*sent))

    loop = Loop(limits()).start()
    for vector in (good, [0.5, math.nan, 0.5], good):
        loop.cycle(np.array(vector))
    assert loop.sent[0].tolist() == good
    assert not np.any(loop.sent[1:])
    assert loop.latch.reason is Reason.NOT_FINITE  # and not END: the run has failed


def test_5_an_invalid_packet_is_no_sign_of_life():
    clock = SteppedClock()
    watchdog = naive.PacketWatchdog(0.3, clock.now)
    settings = OperatorSettings(port=0, timeout=0.3)
    with (
        OperatorChannel(settings, clock) as channel,
        OperatorSender("127.0.0.1", channel.port, channel.token) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stray,
    ):
        sender.heartbeat()
        channel.poll()
        sender.heartbeat()
        assert channel.poll() is Reason.NONE
        mac = signature(channel.token, "heartbeat", b"")
        frozen = msgpack.packb({"kind": "heartbeat", "echo": b"", "mac": mac})
        junk = [b"\x00" * 8, frozen[:-1], b"", msgpack.packb({"kind": "heartbeat", "echo": b""})]
        for number in range(100):
            data = junk[number % len(junk)]
            watchdog.feed(data)
            stray.sendto(data, ("127.0.0.1", channel.port))
            clock.sleep_until(clock.now() + 0.05)
            verdict = channel.poll()
        assert not watchdog.expired
        assert verdict is Reason.DEADMAN
        # A frozen sender: its packets are signed, but were made before any challenge.
        for _ in range(10):
            stray.sendto(frozen, ("127.0.0.1", channel.port))
            clock.sleep_until(clock.now() + 0.05)
            verdict = channel.poll()
        assert verdict is Reason.DEADMAN
        assert channel.stale == 11


def test_6_a_fault_that_goes_away_does_not_arm_the_rig():
    faults = [False] * 5 + [True] * 3 + [False] * 50
    unlatched = naive.UnlatchedStop()
    assert unlatched.torque(1.0, faults[-1]) == 1.0

    loop = Loop(limits(1)).start()
    for fault in faults:
        loop.cycle(np.ones(1), reason=Reason.DRIVE_FAULT if fault else Reason.NONE)
    assert [x[0] for x in loop.sent[:5]] == [1.0] * 5
    assert not np.any(loop.sent[5:])
    assert (loop.latch.state, loop.latch.reason) == (State.STOP, Reason.DRIVE_FAULT)
    loop.cycle(np.ones(1), reason=Reason.NONE)
    # A reset leads to DISARMED, and from there it is the whole way again.
    for _ in range(200):
        loop.cycle(np.ones(1))
    loop.latch.reset()
    assert (loop.latch.state, loop.latch.action) == (State.DISARMED, Action.OFF)
    loop.cycle(np.ones(1))
    with pytest.raises(ArmError, match="DISARMED"):
        loop.latch.run()
    assert not np.any(loop.sent[5:])


def test_7_a_clock_that_has_stopped():
    stopped = 1000.0
    watchdog = naive.PacketWatchdog(0.3, lambda: stopped)
    assert not watchdog.expired  # and never will be

    loop = Loop(limits(1)).start()
    loop.cycle(np.ones(1))
    stopped = loop.now
    loop.cycle(np.ones(1), now=stopped)
    assert (loop.latch.reason, loop.latch.phase) == (Reason.CLOCK, Phase.OFF)
    assert loop.torque[0] == 0.0
    with pytest.raises(ArmError, match="CLOCK"):
        loop.latch.reset()

    clock = SteppedClock()
    settings = OperatorSettings(port=0, timeout=0.3)
    with (
        OperatorChannel(settings, clock, PERIOD) as channel,
        OperatorSender("127.0.0.1", channel.port, channel.token) as sender,
    ):
        sender.heartbeat()
        channel.poll(stopped)
        sender.heartbeat()
        verdicts = [channel.poll(stopped) for _ in range(200)]
    assert verdicts[0] is Reason.NONE
    assert verdicts[-1] is Reason.DEADMAN


def test_8_silence_is_loss_so_every_cycle_sends():
    drive = naive.WatchedDrive()
    host = naive.SendOnChange(drive.command)
    for _ in range(100):
        host.cycle(1.0)
        drive.pass_time(PERIOD)
    assert drive.trips == 1
    assert drive.acting == 0.0

    drive, loop = naive.WatchedDrive(), Loop(limits(1)).start()
    for _ in range(100):
        drive.command(loop.cycle(np.ones(1))[0])
        drive.pass_time(PERIOD)
    assert drive.trips == 0
    assert drive.acting == 1.0
    # A stop also sends: every state has an action in every cycle.
    for _ in range(100):
        drive.command(loop.cycle(np.ones(1), reason=Reason.OPERATOR)[0])
        drive.pass_time(PERIOD)
    assert (drive.trips, drive.acting) == (0, 0.0)
    assert len(loop.sent) == 200


def traced(mode, category, reason):
    """Everything a run of one mode does about a stop."""
    loop = Loop(limits(2), Policies(stop_category=category, stop_time=0.02), mode).start()
    for number in range(60):
        given = reason if number in (10, 11) else Reason.NONE
        speeds = np.array([1.0, -0.5]) * max(0.0, 1.0 - number / 30.0)
        loop.cycle(np.array([3.0, -2.0]), v=speeds, reason=given)
    return np.array(loop.sent), loop.latch.state, loop.latch.phase, loop.latch.reason


@pytest.mark.parametrize("category", [1, 2])
@pytest.mark.parametrize("reason", [r for r in Reason if r])
def test_9_a_stop_means_the_same_in_every_mode(category, reason):
    assert len({naive.stop_torque(mode, 3.0, 1.0) for mode in MODES}) > 1

    sent, *ends = traced("drive", category, reason)
    assert ends[0] is State.STOP
    assert not np.any(sent[-1])
    for mode in MODES:
        other, *other_ends = traced(mode, category, reason)
        assert other.tobytes() == sent.tobytes()
        assert other_ends == ends


def test_10_after_a_power_cycle_nothing_resumes():
    enabled = [True] * 50 + [False] * 10 + [True] * 50
    drive, host = naive.WatchedDrive(), naive.Resuming()
    for on in enabled:
        drive.powered = on
        drive.command(host.cycle(5.0, on))
    assert drive.acting == 5.0

    drive, loop = naive.WatchedDrive(), Loop(limits(1)).start()
    for on in enabled:
        drive.powered = on
        reason = Reason.NONE if on else Reason.DRIVE_OFF
        drive.command(loop.cycle(np.array([5.0]), reason=reason)[0])
    assert drive.acting == 0.0
    assert loop.latch.reason is Reason.DRIVE_OFF
    for _ in range(200):
        loop.cycle(np.array([5.0]))
    # Nor does the torque of before: after a reset it starts from zero, at its rate limit.
    loop.latch.reset()
    loop.start()
    first = loop.cycle(np.array([5.0]))
    assert 0.0 < first[0] <= 500.0 * PERIOD


def test_11_gains_of_a_stop_are_those_of_the_host():
    """Stiffness and damping are sent as torque: no drive keeps gains that the host relies on."""
    drive = {}
    host = naive.GainsSetOnce(drive)
    assert host.torque(2.0) == 2.0
    drive["gain"] = 30.0  # as after a reboot
    assert host.torque(2.0) == 60.0

    bounds, out = limits(1, damping=1.0, stiffness=3.0), np.empty(1)
    guard.hold(np.zeros(1), np.ones(1), np.ones(1), ONE, bounds, out)
    assert out[0] == 2.0  # N m, for any unit of the drive


def test_12_there_is_no_guard_for_one_mode_only():
    assert naive.guard_unless_mock(1e9, 10.0, "mock") == 1e9

    for module in (guard, latch):
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                assert "mode" not in inspect.signature(value).parameters, name
    assert "mode" not in inspect.signature(Latch).parameters
    assert "mode" not in {f.name for f in dataclasses.fields(Limits)}
    for mode in MODES:
        loop = Loop(limits(1), mode=mode).start()
        loop.cycle(NAN)
        assert loop.latch.reason is Reason.NOT_FINITE


def test_13_braking_is_not_blocked():
    """Thrown above its speed limit, a joint that the law wants to brake must come to rest."""
    joint = naive.Joint()
    joint.v = 4.2
    for _ in range(400):
        joint.apply(naive.blocking_limiter(-5.0 * np.sign(joint.v), joint.v, 4.0))
    assert joint.hit

    joint = naive.Joint()
    joint.v = 4.2
    loop = Loop(limits(1)).start()
    for _ in range(400):
        demand = -5.0 * np.clip(20.0 * joint.v, -1.0, 1.0)
        torque = loop.cycle(np.array([demand]), np.array([joint.q]), np.array([joint.v]), ONE)
        joint.apply(torque[0])
    assert loop.latch.state is State.RUN
    assert not joint.hit
    assert abs(joint.v) < 0.01
    assert joint.q < 1.5


@pytest.mark.parametrize("policy", Policy)
def test_14_the_last_torque_does_not_outlive_its_set_point(policy):
    joint, host = naive.Joint(), naive.HoldLast()
    host.cycle(0.5)
    for _ in range(1000):
        joint.apply(host.cycle(None))
    assert joint.hit

    joint, bounds, patience = naive.Joint(), limits(1), 5
    latch_, torque = Latch(Policies(stop_time=0.5), PERIOD), np.array([0.5])
    latch_.arm()
    now = 0.0
    for _ in range(10):
        now += PERIOD
        latch_.step(now, Reason.NONE, 0.0)
    latch_.run()
    applied = []
    for failing in range(1, 1001):
        now += PERIOD
        v, verdict = np.array([joint.v]), Verdict(Reason.NONE)
        if latch_.action is Action.LAW:
            verdict = policy_torque(
                policy, Reason.LOST, failing, patience, torque, v, ONE, bounds, PERIOD, torque
            )
        latch_.step(now, verdict.reason, abs(joint.v) / 4.0)
        if latch_.action is Action.BRAKE:
            brake(v, ONE, bounds, torque)
        elif latch_.action is Action.OFF:
            torque[:] = 0.0
        applied.append(torque[0])
        joint.apply(torque[0])
    held = sum(x > 0.0 for x in applied)
    assert held == (patience if policy is Policy.HOLD else 0)
    assert applied[-1] == 0.0
    assert latch_.reason is Reason.LOST
    assert not joint.hit


def test_14_a_torque_made_of_old_reports_does_not_leave():
    loop = Loop(limits(1)).start()
    for cycle in range(20):
        loop.cycle(np.ones(1), ages=np.array([cycle * PERIOD]))
    assert [x[0] for x in loop.sent[:9]] == [1.0] * 9
    assert not np.any(loop.sent[9:])
    assert loop.latch.reason is Reason.STALE


@pytest.mark.parametrize(
    ("field", "loose", "tight", "q", "v"),
    [
        ("torque_limit", 10.0, 1.0, 0.0, 0.0),
        ("torque_rate_limit", 1e6, 10.0, 0.0, 0.0),
        ("speed_limit", 10.0, 0.95, 0.0, 1.0),
        ("position_limits", (-9.0, 9.0), (-1.0, 1.0), 0.99, 0.0),
        ("power_limit", 1e6, 0.5, 0.0, 1.0),
    ],
)
def test_15_every_limit_of_the_rig_file_is_applied(field, loose, tight, q, v):
    settings = {"torque_limit": 1.0}
    assert naive.MisreadLimit(settings).torque(9.0) == 9.0

    wide = {
        "torque_limit": 10.0,
        "torque_rate_limit": 1e6,
        "speed_limit": 10.0,
        "position_limits": (-9.0, 9.0),
        "power_limit": 1e6,
    }
    results = []
    for value in (loose, tight):
        bounds = Limits.from_axes([axis(**(wide | {field: value}))], PERIOD)
        out = np.zeros(1)
        judge(np.full(1, 9.0), out, np.array([q]), np.array([v]), ONE, bounds, PERIOD, out)
        results.append(out[0])
    assert results[0] == 9.0
    assert abs(results[1]) < 5.0


@pytest.mark.parametrize("field", ["speed_limit", "position_limits"])
def test_15_limits_that_are_exceeded_stop(field):
    bounds = Limits.from_axes([axis(speed_limit=1.0, position_limits=(-1.0, 1.0))], PERIOD)
    loop = Loop(bounds).start()
    q, v = (np.zeros(1), np.full(1, 1.3)) if field == "speed_limit" else (np.full(1, 1.2), None)
    loop.cycle(np.ones(1), q, v)
    assert loop.latch.reason is (
        Reason.OVERSPEED if field == "speed_limit" else Reason.OUT_OF_RANGE
    )
