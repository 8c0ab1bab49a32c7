"""The accidents on whole rigs: a naive loop and the rig's loop on the same emulated drives.

In each test the naive loop (`naive.NaiveController`, with the fault that led to the accident) puts
torque on the emulated robot that should not be there, or takes away what should; ours, met by the
same event, does not. The numbers are those of the list that the rig was designed with. Beside
them, guard and latch are tested with any numbers (test_guard, test_latch), the operator with any
datagram (test_operator), and drives with any frame (drives/).
"""

import dataclasses
import math

import can
import numpy as np
import pytest

from concur.errors import NonFiniteError
from concur.outputs import ReferenceSample
from hil._plan import sample_plan
from hil.controller import Mode
from hil.emulator import DriveSettings, Fault
from hil.errors import UnitError
from hil.guard import Flag, Reason, State
from tests.hil import naive
from tests.hil.bench import ROVER, ROVER_MIT, Bench, law_of, rig_of

PERIOD = 0.004
CYCLE = 20
"""Cycle in which something happens."""
TURRET, FOREARM = 2, 4


def spoil(bench, axis=TURRET, value=math.nan, once=False):
    """From `CYCLE` on the law gives no number for an axis."""

    def change(u):
        if bench.cycle == CYCLE or (bench.cycle > CYCLE and not once):
            u[axis] = value

    bench.law.change = change


def loads_after(bench, instant):
    return np.array([torque for time, torque in bench.loads if time > instant])


def stops(bench, outcome, *reasons):
    assert outcome.reason in reasons
    assert not outcome.done
    bench.check()
    bench.torque_ended_in_time()


# -- invalid numbers ---------------------------------------------------------------------------


class Clipping(naive.NaiveController):
    def bound(self, torques):
        return naive.clip_guard(torques, self.limit)


@pytest.mark.parametrize(
    "loop", [Clipping, naive.NaiveController], ids=["1: clip", "2: min and max"]
)
def test_1_and_2_a_law_without_a_number(loop):
    """The joint runs into its end with all that its drive can give."""
    with Bench() as bench:
        spoil(bench)
        assert loop(bench).start().run(200) == "success"
        axis = bench.rig.axes[TURRET]
        assert abs(bench.world.torque[TURRET]) > 7.9
        low, high = axis.position_limits
        assert not low <= bench.world.plant.positions()[TURRET] <= high

    with Bench() as bench:
        spoil(bench)
        outcome = bench.run()
        stops(bench, outcome, Reason.NOT_FINITE)
        after = loads_after(bench, bench["time"][bench.stopped] + 1.25 * PERIOD)
        braking = bench.rig.axes[TURRET].damping * np.abs(bench["s"][:, TURRET]).max()
        assert np.abs(after[:, TURRET]).max() <= 1.1 * braking < 4.0
        low, high = bench.rig.axes[TURRET].position_limits
        assert low <= bench.world.plant.positions()[TURRET] <= high


class CheckedWhileSending(naive.NaiveController):
    def bound(self, torques):
        return torques

    def send(self, torques):
        for drive, torque in zip(self.drives, torques, strict=True):
            if not math.isfinite(torque):
                raise ValueError(f"axis {drive.axis.name}: torque {torque}")
            self.send_one(drive, max(-self.limit, min(self.limit, torque)))


def test_3_found_while_the_frames_are_being_sent():
    """Some joints get new commands, the others keep their last ones forever."""
    with Bench() as bench:
        spoil(bench)
        loop = CheckedWhileSending(bench).start()
        sent = len(bench.sent)
        with pytest.raises(ValueError, match="turret"):
            loop.run(100)
        nodes = [i - 0x200 for _, i, _ in bench.sent[sent:] if 0x200 < i < 0x280]
        assert nodes[-3:] == [5, 1, 2]  # of the last cycle, wheels only
        bench.wait(1.0)
        assert np.abs(bench.world.torque).min() > 0.0

    with Bench() as bench:
        spoil(bench)
        outcome = bench.run()
        stops(bench, outcome, Reason.NOT_FINITE)
        # In the cycle of the detection, all five brake.
        stopped = bench["time"][bench.stopped]
        last = [i for t, i, _ in bench.sent if stopped <= t < stopped + PERIOD]
        assert [i for i in last if 0x200 < i < 0x280] == [0x201, 0x202, 0x203, 0x204, 0x205]


def test_4_set_points_without_numbers_are_no_success():
    """A hole in a file of set-points, and a run that is reported as well done."""

    def holed(bench):
        def change(u):
            if 30 <= bench.cycle < 40:
                u[FOREARM] = math.nan

        bench.law.change = change

    with Bench() as bench:
        holed(bench)
        assert naive.NaiveController(bench).start().run() == "success"
        assert np.abs([u for _, u in bench.loads])[:, FOREARM].max() > 5.9

    with Bench() as bench:
        holed(bench)
        outcome = bench.run()
        stops(bench, outcome, Reason.NOT_FINITE)
        limits = bench.limits.torque
        assert (np.abs([u for _, u in bench.loads]) <= 1.001 * limits).all()

    # A hole in the reference of a task is found when it is sampled, before anything is armed.
    class Holed:
        name, duration = "holed", 0.4

        def reference(self, t):
            sample = rig.task.reference(t)
            if t < 0.1:
                return sample
            return ReferenceSample(
                sample.pose, np.nan * np.asarray(sample.twist), sample.acceleration
            )

    rig = rig_of()
    with pytest.raises(NonFiniteError, match="twist"):
        sample_plan(Holed(), law_of(ROVER)[0], PERIOD)


# -- signs of life -----------------------------------------------------------------------------


class AnyPacketCounts(naive.NaiveController):
    """Keeps commanding while packets of the drive arrive, for any content."""

    def __init__(self, bench):
        super().__init__(bench)
        self.watchdog = naive.PacketWatchdog(0.05, bench.clock.now)

    def hear(self, frame):
        if frame.arbitration_id == 0x180 + self.axes[TURRET].node:
            self.watchdog.feed(frame.data)

    def decide(self, torques):
        return [0.0] * len(torques) if self.watchdog.expired else torques


def stammer(bench):
    """From `CYCLE` on the reports of an axis are too short; they come as often as before."""
    node = bench.rig.axes[TURRET].node
    bus = can.Bus(interface="virtual", channel=bench.rig.bus.channel)
    bench._closing.callback(bus.shutdown)
    short = can.Message(arbitration_id=0x180 + node, data=b"\x37\x12\x00", is_extended_id=False)
    bench.at(CYCLE, bench.world.fault, Fault("drop", "turret", way="to_host"))
    for cycle in range(CYCLE, 2000):
        bench.at(cycle, bus.send, short)


def test_5_invalid_packets_are_no_sign_of_life():
    with Bench() as bench:
        stammer(bench)
        AnyPacketCounts(bench).start().run(95)
        assert np.abs(bench.world.torque).min() > 0.0  # a turret without reports for 0.3 s

    with Bench() as bench:
        stammer(bench)
        outcome = bench.run()
        stops(bench, outcome, Reason.LOST)
        assert bench.stopped == bench.row(CYCLE) + bench.rig.policies.max_consecutive_faults
        assert bench["invalid"][bench.stopped, TURRET] >= bench.rig.policies.max_consecutive_faults


class Unlatched(naive.NaiveController):
    """Without torque for as long as a report is missing, and not longer."""

    def __init__(self, bench):
        super().__init__(bench)
        self.stop = naive.UnlatchedStop()

    def decide(self, torques):
        fault = not all(self.fresh)
        return [self.stop.torque(torque, fault) for torque in torques]


def test_6_a_stop_stays():
    gone = Fault("drop", "forearm", lasting=0.06, way="to_host")
    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, gone)
        loop = Unlatched(bench).start()
        loop.run(CYCLE + 10)
        assert not bench.world.torque.any()
        loop.run(40)
        assert np.abs(bench.world.torque).min() > 0.0  # without a request

    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, gone)
        outcome = bench.run()
        stops(bench, outcome, Reason.LOST)
        assert bench.world.time > 0.0
        assert len(bench) - bench.stopped > 0.06 / PERIOD  # it has long gone


class WatchedByAStoppedClock(naive.NaiveController):
    def __init__(self, bench):
        super().__init__(bench)
        self.watchdog = naive.PacketWatchdog(0.05, lambda: 1000.0)

    def decide(self, torques):
        if all(self.fresh):
            self.watchdog.feed(b"")
        return [0.0] * len(torques) if self.watchdog.expired else torques


def test_7_a_watchdog_does_not_hang_on_one_clock():
    """Without reports: the loop counts cycles, and checks whether time passes."""
    blind = Fault("drop", "*", way="to_host")
    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, blind)
        WatchedByAStoppedClock(bench).start().run(95)
        assert np.abs(bench.world.torque).min() > 0.0

    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, blind)
        feedback = bench.controller.feedback

        def stop_clock():
            """The age of the reports is always 1 ms."""
            take = bench.controller._exchange.count
            bench.controller._exchange.count = lambda now: take(
                float(feedback.time.max()) + 1e-3 if bench.cycle >= CYCLE else now
            )

        bench.at(CYCLE, stop_clock)
        outcome = bench.run()
        stops(bench, outcome, Reason.LOST)
        assert bench.stopped == bench.row(CYCLE) + bench.rig.policies.max_consecutive_faults


class OnChange(naive.NaiveController):
    """Sends only changed commands; here its drives have a watchdog."""

    def __init__(self, bench):
        super().__init__(bench)
        self.last = {}

    def start(self):
        for drive in self.drives:
            drive.prepare(self.bus)
        for _ in range(20):
            self.cycle()
        return self

    def put(self, identifier, data=b""):
        if identifier == 0x080:
            super().put(0x77F, b"\x05")
        if identifier == 0x080 or self.last.get(identifier) != data:
            self.last[identifier] = data
            super().put(identifier, data)


def constant(bench):
    def change(u):
        if bench.cycle >= 62:
            u[:] = 0.1

    bench.law.change = change


def test_8_silence_is_not_sent():
    with Bench() as bench:
        constant(bench)
        OnChange(bench).start().run(100)
        assert not any(drive.enabled for drive in bench.world.drives)
        assert not bench.world.torque.any()  # in the middle of a run, without an error

    with Bench() as bench:
        constant(bench)
        outcome = bench.run()
        assert outcome.reason is Reason.END, outcome.reason
        for axis in range(5):
            first, last = bench["time"][[0, -1]]
            times = [t for t, _, _ in bench.commands(axis) if first <= t <= last + PERIOD]
            assert np.diff(times).max() < 2 * PERIOD
        bench.check()


# -- stops -------------------------------------------------------------------------------------


class StopsByMode(naive.NaiveController):
    stopped_at = CYCLE

    def decide(self, torques):
        if self.bench.cycle < self.stopped_at:
            self.last = torques
            return torques
        speeds = self.estimator.velocity
        return [
            naive.stop_torque(self.mode, last, v) for last, v in zip(self.last, speeds, strict=True)
        ]


def test_9_a_stop_is_the_same_in_every_mode():
    loads = []
    for mode in ("drive", "mock", "shadow"):
        with Bench() as bench:
            StopsByMode(bench, mode).start().run(CYCLE + 20)
            loads.append(bench.world.torque.copy())
    assert not loads[0].any()
    assert np.abs(loads[1] - loads[0]).max() > 0.01
    assert np.abs(loads[2] - loads[1]).max() > 0.5

    runs = []
    for mode in (Mode.MOCK, Mode.DRIVE):
        with Bench(mode=mode) as bench:
            spoil(bench)
            outcome = bench.run()
            stops(bench, outcome, Reason.NOT_FINITE)
            runs.append(np.hstack([bench["torque"], bench["state"][:, None]])[bench.begun :])
    np.testing.assert_array_equal(*runs)


class Reconnecting(naive.NaiveController):
    """Sets a drive up again as soon as it is back, and continues."""

    def hear(self, frame):
        node = self.axes[TURRET].node
        if frame.arbitration_id == 0x700 + node and bytes(frame.data) == b"\x00":
            self.set_up(self.drives[TURRET])


def test_10_after_a_power_cycle_nothing_resumes():
    cycled = Fault("power_cycle", "turret")
    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, cycled)
        Reconnecting(bench).start().run(90)
        since = bench.loads[-1][0] - 0.04
        assert np.abs(loads_after(bench, since)[:, TURRET]).max() > 0.1

    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, cycled)
        outcome = bench.run()
        stops(bench, outcome, Reason.DRIVE_FAULT, Reason.DRIVE_OFF, Reason.LOST)
        struck = bench["time"][bench.row(CYCLE)]
        assert not loads_after(bench, struck + 1e-3)[:, TURRET].any()


def test_11_a_rebooted_drive_is_asked_again():
    """It has come back with the motor data of another motor: twice the torque."""
    rebooted = {"turret": DriveSettings(after_power_cycle={0x6076: 12000})}

    def reboot(bench):
        bench.world.drive("turret").power_cycle(bench.clock.now())
        bench.world.drive("turret")._rated = 12.0  # true value in the power stage
        bench.wait(0.2)

    def turn(u):
        u[:] = 0.0
        u[TURRET] = 1.0

    with Bench(settings=rebooted) as bench:
        bench.law.change = turn
        naive.NaiveController(bench).start().run(10)
        assert bench.world.torque[TURRET] == pytest.approx(1.0, abs=0.01)
        reboot(bench)
        naive.NaiveController(bench).start().run(10)
        assert bench.world.torque[TURRET] == pytest.approx(2.0, abs=0.02)

    with Bench(settings=rebooted) as bench:
        bench.controller.drives[TURRET].prepare(bench.bus)
        reboot(bench)
        with pytest.raises(UnitError, match=r"turret.*0x6076"):
            bench.run()
        assert not np.array([torque for _, torque in bench.loads]).any()
        bench.dead()


def test_11_no_gains_of_a_drive_are_relied_on():
    """Commands of MIT drives have neither stiffness nor damping, in no state of a run."""
    with Bench(ROVER_MIT) as bench:
        spoil(bench)
        stops(bench, bench.run(), Reason.NOT_FINITE)
        special = [bytes([0xFF] * 7 + [x]) for x in (0xFB, 0xFC, 0xFD)]
        commands = [data for _, _, data in bench.sent if data not in special]
        assert len(commands) > 300
        for data in commands:
            stiffness = (data[3] & 0x0F) << 8 | data[4]
            damping = data[5] << 4 | data[6] >> 4
            assert (stiffness, damping) == (0, 0)


# -- bounds ------------------------------------------------------------------------------------


class GuardedUnlessMock(naive.NaiveController):
    def bound(self, torques):
        return [
            naive.guard_unless_mock(torque, axis.torque_limit, self.mode)
            for torque, axis in zip(torques, self.axes, strict=True)
        ]


class Misreading(naive.NaiveController):
    def bound(self, torques):
        return [
            naive.MisreadLimit(dataclasses.asdict(axis)).torque(torque)
            for torque, axis in zip(torques, self.axes, strict=True)
        ]


def rave(bench):
    """A law out of its mind."""

    def change(u):
        if bench.cycle >= CYCLE:
            u[:] = 1e4 * (-1.0) ** (bench.cycle // 3)

    bench.law.change = change


@pytest.mark.parametrize(
    ("loop", "mode"),
    [(GuardedUnlessMock, "mock"), (Misreading, "drive")],
    ids=["12: mock", "15: misread"],
)
def test_12_and_15_limits_hold_in_every_mode(loop, mode):
    with Bench() as bench:
        rave(bench)
        loop(bench, mode).start().run(CYCLE + 12)
        worst = np.abs([torque for _, torque in bench.loads]).max(axis=0)
        assert (worst > 1.2 * bench.limits.torque).all()

    with Bench(mode=Mode.MOCK if mode == "mock" else Mode.DRIVE) as bench:
        rave(bench)
        bench.run()
        bench.check()
        worst = np.abs([torque for _, torque in bench.loads]).max(axis=0)
        step = np.array([1e-3 * axis.rated_torque for axis in bench.rig.axes])
        assert (worst <= bench.limits.torque + step).all()
        flags = int(np.bitwise_or.reduce(bench["flags"].astype(int)))
        assert flags & Flag.CLIPPED_TORQUE
        assert flags & Flag.CLIPPED_RATE


class Blocking(naive.NaiveController):
    def decide(self, torques):
        return [
            naive.blocking_limiter(torque, v, axis.speed_limit)
            for torque, v, axis in zip(
                torques, self.estimator.velocity.tolist(), self.axes, strict=True
            )
        ]


def test_13_what_brakes_is_not_blocked():
    """Wheels a tenth above their speed limit, and a law that wants to slow them down."""
    late = 60
    with Bench() as bench:
        bench.run()
        speeds = np.array(bench.speeds)[bench.row(late), :2]
        hurried = bench["s"][bench.row(late), :2]
    rig = rig_of()
    wheels = tuple(
        dataclasses.replace(axis, speed_limit=float(v) / 1.08, power_limit=math.inf)
        for axis, v in zip(rig.axes, np.maximum(speeds, hurried), strict=False)
    )
    rig = dataclasses.replace(rig, axes=wheels + rig.axes[2:])
    assert (speeds > 2.0).all()

    def slow_down(bench):
        def change(u):
            if bench.cycle >= late - 1:
                u[:2] = -3.0

        bench.law.change = change

    with Bench(rig=rig) as bench:
        # Below the limit it is not limited: the accident is its behaviour above the limit.
        slow_down(bench)
        loop = naive.NaiveController(bench).start()
        loop.run(late)
        loop.decide = Blocking.decide.__get__(loop)
        before = bench.world.plant.velocities()[:2]
        for k in range(late, late + 10):
            loop.cycle(k, running=True)
        assert not bench.world.torque[:2].any()
        assert (np.array(bench.world.plant.velocities()[:2]) > 0.95 * np.array(before)).all()

    with Bench(rig=rig) as bench:
        slow_down(bench)
        bench.run()
        braked = slice(bench.row(late + 12), bench.row(late + 14))
        assert (bench["state"][braked] == State.RUN).all()
        assert (bench["torque"][braked, :2] == -3.0).all()
        at = bench["time"][bench.row(late + 12)] + 0.003
        felt = np.array([torque for time, torque in bench.loads if at < time < at + 0.004])
        assert felt[:, :2] == pytest.approx(-3.0, abs=0.01)
        bench.check()


# -- behaviour without reports or commands -----------------------------------------------------


class HoldingLast(naive.NaiveController):
    def __init__(self, bench):
        super().__init__(bench)
        self.hold = [naive.HoldLast() for _ in self.axes]

    def decide(self, torques):
        return [
            hold.cycle(torque if fresh else None)
            for hold, torque, fresh in zip(self.hold, torques, self.fresh, strict=True)
        ]


def test_14_the_last_torque_is_not_held():
    blind = Fault("drop", "*", way="to_host")
    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, blind)
        loop = HoldingLast(bench).start()
        loop.run(CYCLE + 1)
        held = bench.world.torque.copy()
        loop.run(75)
        assert np.abs(held).min() > 0.0
        np.testing.assert_array_equal(bench.world.torque, held)  # 0.3 s later

    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, blind)
        outcome = bench.run()
        stops(bench, outcome, Reason.LOST)
        gone = bench["time"][bench.row(CYCLE)]
        patience = bench.rig.policies.max_consecutive_faults
        after = loads_after(bench, gone + (patience + 3) * PERIOD + bench.rig.policies.stop_time)
        assert not after.any()


def test_14_a_host_that_dies_leaves_its_torque_where_no_watchdog_was_set():
    with Bench() as bench:
        naive.NaiveController(bench).start().run(50)
        bench.wait(2.0)
        assert np.abs(bench.world.torque).min() > 0.0


@pytest.mark.by_default(1)
@pytest.mark.parametrize("file", [ROVER, ROVER_MIT])
def test_14_a_host_that_dies_leaves_no_torque(file):
    with Bench(file) as bench:
        bench.controller._leave = lambda: None  # as `kill -9` leaves it

        def die():
            raise KeyboardInterrupt

        bench.at(50, die)
        with pytest.raises(KeyboardInterrupt):
            bench.run()
        assert bench.world.torque.any()
        bench.wait(max(axis.watchdog for axis in bench.rig.axes))
        assert not bench.world.torque.any()
        bench.dead()
        bench.torque_ended_in_time(margin=1e-6)


# -- units -------------------------------------------------------------------------------------


def test_16_units_are_those_of_the_vendor():
    """Per mille of the maximum torque, where the loop believes in the rated one."""
    rig = rig_of()
    axes = list(rig.axes)
    axes[TURRET] = dataclasses.replace(axes[TURRET], torque_unit="maximum")
    rig = dataclasses.replace(rig, axes=tuple(axes))

    def turn(u):
        u[:] = 0.0
        u[TURRET] = 1.5

    with Bench(rig=rig) as bench:
        bench.law.change = turn
        naive.NaiveController(bench).start().run(10)
        assert bench.world.torque[TURRET] == pytest.approx(4.5, abs=0.05)  # its peak is three times

    with Bench(rig=rig) as bench:
        bench.law.change = turn
        bench.run()
        at = bench["time"][bench.row(12)] + 0.003
        felt = np.array([torque for time, torque in bench.loads if at < time < at + 0.004])
        assert felt[:, TURRET] == pytest.approx(1.5, abs=0.013)
        bench.check()
