"""The accidents of other rigs, on whole rigs: the same events do no harm here.

The numbers are those of the list that the rig was designed with. Beside them, guard and latch are
tested with any numbers (test_guard, test_latch), the operator with any datagram (test_operator),
and drives with any frame (drives/).
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
from tests.hil.bench import ROVER, ROVER_MIT, ROVER_MOTEUS, ROVER_ODRIVE, Bench, law_of, rig_of

PERIOD = 0.004
CYCLE = 20
"""Cycle in which something happens."""
TURRET, FOREARM = 2, 4


def spoil(bench):
    """From `CYCLE` on the law gives no number for an axis."""

    def change(u):
        if bench.cycle >= CYCLE:
            u[TURRET] = math.nan

    bench.law.change = change


def loads_after(bench, instant):
    return np.array([torque for time, torque in bench.loads if time > instant])


def stops(bench, outcome, *reasons):
    assert outcome.reason in reasons
    assert not outcome.done
    bench.check()
    bench.torque_ended_in_time()


# -- invalid numbers ---------------------------------------------------------------------------


def test_1_and_2_a_law_without_a_number():
    """A NaN that is clipped is the limit: all that the drive can give, up to the end."""
    with Bench() as bench:
        spoil(bench)
        outcome = bench.run()
        stops(bench, outcome, Reason.NOT_FINITE)
        after = loads_after(bench, bench["time"][bench.stopped] + 1.25 * PERIOD)
        braking = bench.rig.axes[TURRET].damping * np.abs(bench["s"][:, TURRET]).max()
        assert np.abs(after[:, TURRET]).max() <= 1.1 * braking < 4.0
        low, high = bench.rig.axes[TURRET].position_limits
        assert low <= bench.world.plant.positions()[TURRET] <= high


def test_3_found_while_the_frames_are_being_sent():
    """Some joints would get new commands, the others keep their last ones forever."""
    with Bench() as bench:
        spoil(bench)
        outcome = bench.run()
        stops(bench, outcome, Reason.NOT_FINITE)
        # In the cycle of the detection, all five brake.
        stopped = bench["time"][bench.stopped]
        last = [i for t, i, _ in bench.sent if stopped <= t < stopped + PERIOD]
        assert [i for i in last if 0x200 < i < 0x280] == [0x201, 0x202, 0x203, 0x204, 0x205]


def test_4_set_points_without_numbers_are_no_success():
    """A hole in a file of set-points."""

    def holed(bench):
        def change(u):
            if 30 <= bench.cycle < 40:
                u[FOREARM] = math.nan

        bench.law.change = change

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


def stammer(bench):
    """From `CYCLE` on the reports of an axis are too short; they come as often as before."""
    node = bench.rig.axes[TURRET].node
    bus = can.Bus(interface="virtual", channel=bench.rig.buses[0].channel)
    bench._closing.callback(bus.shutdown)
    short = can.Message(arbitration_id=0x180 + node, data=b"\x37\x12\x00", is_extended_id=False)
    bench.at(CYCLE, bench.world.fault, Fault("drop", "turret", way="to_host"))
    for cycle in range(CYCLE, 2000):
        bench.at(cycle, bus.send, short)


def test_5_invalid_packets_are_no_sign_of_life():
    with Bench() as bench:
        stammer(bench)
        outcome = bench.run()
        stops(bench, outcome, Reason.LOST)
        assert bench.stopped == bench.row(CYCLE) + bench.rig.policies.max_consecutive_faults
        assert bench["invalid"][bench.stopped, TURRET] >= bench.rig.policies.max_consecutive_faults


def test_6_a_stop_stays():
    gone = Fault("drop", "forearm", lasting=0.06, way="to_host")

    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, gone)
        outcome = bench.run()
        stops(bench, outcome, Reason.LOST)
        assert bench.world.time > 0.0
        assert len(bench) - bench.stopped > 0.06 / PERIOD  # it has long gone


def test_7_a_watchdog_does_not_hang_on_one_clock():
    """Without reports: the loop counts cycles, and checks whether time passes."""
    blind = Fault("drop", "*", way="to_host")

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
        stops(bench, outcome, Reason.POWER_LOST)
        assert bench.stopped == bench.row(CYCLE) + bench.rig.policies.max_consecutive_faults


def constant(bench):
    def change(u):
        if bench.cycle >= 62:
            u[:] = 0.1

    bench.law.change = change


def test_8_silence_is_not_sent():
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


def test_9_a_stop_is_the_same_in_every_mode():
    runs = []
    for mode in (Mode.MOCK, Mode.DRIVE):
        with Bench(mode=mode) as bench:
            spoil(bench)
            outcome = bench.run()
            stops(bench, outcome, Reason.NOT_FINITE)
            runs.append(np.hstack([bench["torque"], bench["state"][:, None]])[bench.begun :])
    np.testing.assert_array_equal(*runs)


def test_10_after_a_power_cycle_nothing_resumes():
    cycled = Fault("power_cycle", "turret")

    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, cycled)
        outcome = bench.run()
        stops(bench, outcome, Reason.DRIVE_FAULT, Reason.DRIVE_OFF, Reason.LOST, Reason.POWER_LOST)
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


def rave(bench):
    """A law out of its mind."""

    def change(u):
        if bench.cycle >= CYCLE:
            u[:] = 1e4 * (-1.0) ** (bench.cycle // 3)

    bench.law.change = change


@pytest.mark.parametrize("mode", [Mode.MOCK, Mode.DRIVE])
def test_12_and_15_limits_hold_in_every_mode(mode):
    with Bench(mode=mode) as bench:
        rave(bench)
        bench.run()
        bench.check()
        worst = np.abs([torque for _, torque in bench.loads]).max(axis=0)
        step = np.array([1e-3 * axis.rated_torque for axis in bench.rig.axes])
        assert (worst <= bench.limits.torque + step).all()
        flags = int(np.bitwise_or.reduce(bench["flags"].astype(int)))
        assert flags & Flag.CLIPPED_TORQUE
        assert flags & Flag.CLIPPED_RATE


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


def test_14_the_last_torque_is_not_held():
    blind = Fault("drop", "*", way="to_host")

    with Bench() as bench:
        bench.at(CYCLE, bench.world.fault, blind)
        outcome = bench.run()
        stops(bench, outcome, Reason.POWER_LOST)
        gone = bench["time"][bench.row(CYCLE)]
        patience = bench.rig.policies.max_consecutive_faults
        after = loads_after(bench, gone + (patience + 3) * PERIOD + bench.rig.policies.stop_time)
        assert not after.any()


@pytest.mark.by_default(1)
@pytest.mark.parametrize("file", [ROVER, ROVER_MIT, ROVER_MOTEUS, ROVER_ODRIVE])
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
        bench.run()
        at = bench["time"][bench.row(12)] + 0.003
        felt = np.array([torque for time, torque in bench.loads if at < time < at + 0.004])
        assert felt[:, TURRET] == pytest.approx(1.5, abs=0.013)
        bench.check()
