"""Whole emulated rigs in stepped time, with the host's drive classes on the other side."""

import dataclasses
import math

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.codegen import Batch, Demand, Rollout
from concur.simulation import Latency
from hil.bus import open_bus
from hil.clock import SteppedClock
from hil.drives import FaultCode, Wanted, make_drives
from hil.emulator import DriveSettings, Fault, World
from hil.errors import ArmError, DriveError, RigError, UnitError
from hil.rig import BusSettings
from tests.hil.emulator._rigs import ROVER, ROVER_MIT, Driver, frame, virtual_rig

TORQUES = (0.4, 0.3, 0.5, 6.0, 1.2)


def driven(path=ROVER, cycles=50, faults=(), settings=None, after=0.0, **emulator):
    """A world that was prepared and driven for some cycles; yields its results."""
    rig = virtual_rig(path, **emulator)
    clock = SteppedClock()
    with World(rig, clock, faults, settings) as world, open_bus(rig.buses[0], clock) as bus:
        driver = Driver(rig, world, bus, make_drives(rig)).prepare()
        driver.cycle(Wanted.READY, [0.0] * 5, 30)
        driver.cycle(Wanted.TORQUE, TORQUES, cycles)
        if after:
            clock.sleep_until(clock.now() + after)
        yield driver


@pytest.mark.parametrize("path", [ROVER, ROVER_MIT])
def test_torques_reach_the_robot_and_positions_the_host(path):
    for driver in driven(path):
        assert driver.feedback.enabled.all()
        assert not driver.feedback.fault.any()
        scale = [abs(drive.scale.step) if path == ROVER else 0.08 for drive in driver.drives]
        for k, (wanted, step) in enumerate(zip(TORQUES, scale, strict=True)):
            assert driver.world.torque[k] == pytest.approx(wanted, abs=step)
            assert driver.feedback.torque[k] == pytest.approx(wanted, abs=2.0 * step)
        # reports are a cycle old at most
        apart = driver.feedback.position - driver.world.plant.positions()
        speed = np.abs(driver.world.plant.velocities())
        assert (np.abs(apart) < 0.006 * speed + 2.0 * math.tau / 4096).all()
        if path == ROVER_MIT:
            velocities = driver.world.plant.velocities()
            np.testing.assert_allclose(driver.feedback.velocity, velocities, atol=0.3)
        assert driver.feedback.invalid.sum() == 0
        driver.cycle(Wanted.OFF, [0.0] * 5, 4)
        assert not any(drive.enabled for drive in driver.world.drives)
        assert not driver.world.torque.any()


@pytest.mark.extended
def test_the_same_seed_does_the_same_to_the_bit():
    def end(seed):
        for driver in driven(faults=[Fault("drop", at=0.9, probability=0.1)], seed=seed):
            return driver.world.q, np.array(driver.positions)
        return None

    (q, seen), (q_again, seen_again), (_, seen_other) = end(1), end(1), end(2)
    assert np.array_equal(q, q_again)
    assert np.array_equal(seen, seen_again, equal_nan=True)
    assert not np.array_equal(seen, seen_other, equal_nan=True)


def test_frames_take_their_latency_both_ways():
    rig = virtual_rig(latency=3e-3)
    clock = SteppedClock()
    with World(rig, clock) as world, open_bus(rig.buses[0], clock) as bus:
        clock.sleep_until(clock.now() + 0.1)
        while bus.receive() is not None:
            pass
        sent = clock.now()
        bus.send(frame(0x601, bytes.fromhex("4000100000000000")))
        answer = bus.receive(clock.now() + 0.1)
        assert answer is not None
        assert clock.now() - sent == pytest.approx(6e-3, abs=1.5e-4)
        assert world.delivered == 1
        bus.send(frame(0x123, b""))
        clock.sleep_until(clock.now() + 0.01)
        assert world.ignored == 1


@pytest.mark.parametrize("path", [ROVER, ROVER_MIT])
def test_silence_ends_the_torque_within_the_watchdog_and_nothing_resumes(path):
    for driver in driven(path, after=0.5):
        for axis in driver.rig.axes:
            free = driver.world.torque_free_after(axis.name)
            assert 0.9 * axis.watchdog <= free <= axis.watchdog + 1e-6
        assert not driver.world.torque.any()
        driver.cycle(Wanted.TORQUE, TORQUES, 10)
        assert not driver.world.torque.any()
        assert driver.feedback.fault.all()


@pytest.mark.by_default(1)
@pytest.mark.parametrize("path", [ROVER, ROVER_MIT])
def test_drives_are_armed_again_after_their_release(path):
    for driver in driven(path, cycles=0):
        for _ in range(2):
            for drive in driver.drives:  # without any frame that switches off before
                drive.release(driver.bus)
            driver.clock.sleep_until(driver.clock.now() + 0.05)
            assert not any(drive.enabled for drive in driver.world.drives)
            assert not driver.feedback.fault.any()
            driver.prepare()
            driver.cycle(Wanted.READY, [0.0] * 5, 20)
            assert driver.feedback.enabled.all()


@pytest.mark.parametrize("path", [ROVER, ROVER_MIT])
def test_set_up_survives_lost_frames(path):
    for driver in driven(path, cycles=0, loss=0.03):
        driver.cycle(Wanted.READY, [0.0] * 5, 2)
        assert driver.feedback.enabled.all()


@pytest.mark.parametrize(
    ("path", "settings", "error", "told"),
    [
        (ROVER, {"rated_torque": 5.0}, UnitError, "0x6076"),
        (ROVER, {"counts": 4000}, UnitError, "0x608F"),
        (ROVER, {"limit": "ignored"}, (ArmError, DriveError), "0x6072"),
        (ROVER, {"watchdog": False}, ArmError, "watchdog"),
        (ROVER_MIT, {"watchdog": False}, ArmError, ""),
        (ROVER_MIT, {"timeout": 1.0}, ArmError, ""),
        (ROVER_MIT, {"report_length": 6}, ArmError, ""),
    ],
)
def test_drives_that_are_not_those_of_the_file_are_not_armed(path, settings, error, told):
    rig, clock = virtual_rig(path), SteppedClock()
    own = {"turret": DriveSettings(**settings)}
    with World(rig, clock, settings=own) as world, open_bus(rig.buses[0], clock) as bus:
        with pytest.raises(error, match=rf"turret.*{told}"):
            Driver(rig, world, bus, make_drives(rig)).prepare()
        assert not world.torque.any()
        assert not any(drive.enabled for drive in world.drives)


def test_a_drive_that_is_silent_is_not_armed():
    with pytest.raises(DriveError, match="turret"):
        next(driven(faults=[Fault("bus_off", "turret")]))


@pytest.mark.parametrize("path", [ROVER, ROVER_MIT])
def test_a_drive_that_was_power_cycled_stays_off(path):
    for driver in driven(path, cycles=0):
        driver.cycle(Wanted.TORQUE, [2.5] * 5, 3)
        driver.world.fault(Fault("power_cycle", "turret"))
        driver.cycle(Wanted.TORQUE, [2.5] * 5, 60)
        assert driver.world.torque[2] == 0.0
        assert driver.world.torque[3] != 0.0
        assert driver.feedback.fault[2] in (FaultCode.RESTARTED, FaultCode.FELL)
        assert not driver.feedback.enabled[2]
        assert math.isfinite(driver.world.torque_free_after("turret"))
        assert driver.world.torque_free_after("upper_arm") == math.inf
        driver.cycle(Wanted.READY, [0.0] * 5, 20)
        assert not driver.world.drive("turret").enabled


@pytest.mark.parametrize("path", [ROVER, ROVER_MIT])
def test_a_fault_of_a_drive_in_the_loop(path):
    for driver in driven(path):
        driver.world.fault(Fault("drive_fault", "forearm", at=0.02))
        driver.cycle(Wanted.TORQUE, TORQUES, 2)
        assert driver.feedback.fault[4] == 0
        driver.cycle(Wanted.TORQUE, TORQUES, 20)
        assert driver.feedback.fault[4] != 0
        assert driver.world.torque[4] == 0.0


def test_a_frozen_encoder_in_the_loop():
    for driver in driven():
        driver.world.fault(Fault("freeze", "left_wheel"))
        driver.cycle(Wanted.TORQUE, TORQUES, 3)
        seen, true = driver.feedback.position[0], driver.world.plant.positions()[0]
        reports = driver.feedback.count[0]
        driver.cycle(Wanted.TORQUE, TORQUES, 50)
        assert driver.feedback.position[0] == seen
        assert abs(driver.world.plant.positions()[0] - true) > 0.05
        assert driver.feedback.count[0] == reports + 50


def test_faults_of_the_rig_file_happen_by_themselves():
    wrong = {"kind": "drop", "axis": "turret", "at": 2.0, "way": "to_host"}
    rig, clock = virtual_rig(faults=(wrong,)), SteppedClock()
    with World(rig, clock) as world, open_bus(rig.buses[0], clock) as bus:
        driver = Driver(rig, world, bus, make_drives(rig)).prepare()
        clock.sleep_until(clock.now() + 2.0 - world.time)
        driver.cycle(Wanted.OFF, [0.0] * 5, 20)
        assert driver.feedback.count[2] == 0
        assert driver.feedback.count[3] == 20


def test_faults_of_axes_that_do_not_exist_are_refused():
    rig = virtual_rig()
    with pytest.raises(RigError, match="leg"):
        World(rig, SteppedClock(), [Fault("drop", "leg")])
    with World(rig, SteppedClock()) as world, pytest.raises(RigError, match="leg"):
        world.fault(Fault("drop", "leg"))


def test_other_buses_and_kinds_are_refused():
    rig = virtual_rig()
    far = dataclasses.replace(rig, buses=(BusSettings("udp_multicast", "239.74.163.2"),))
    with pytest.raises(RigError, match="virtual"):
        World(far, SteppedClock())
    axes = (dataclasses.replace(rig.axes[0], drive="steam"), *rig.axes[1:])
    with pytest.raises(RigError, match="cia402, mit"):
        World(dataclasses.replace(rig, axes=axes), SteppedClock())


@pytest.mark.extended
def test_steps_end_where_torques_change():
    """A torque for 7.3 ms moves a wheel by the same angle for every time step."""

    def moved(dt):
        rig = virtual_rig(dt=dt, latency=0.0)
        clock = SteppedClock()
        with World(rig, clock) as world, open_bus(rig.buses[0], clock) as bus:
            driver = Driver(rig, world, bus, make_drives(rig)).prepare()
            driver.cycle(Wanted.READY, [0.0] * 5, 30)
            begin = clock.now()
            for after, torque in ((1.3e-3, 3.0), (8.6e-3, 0.0)):
                clock.sleep_until(begin + after)
                for drive in driver.drives:
                    bus.send(drive.command(Wanted.TORQUE, torque if drive.index < 2 else 0.0))
                clock.sleep_until(begin + after)
            clock.sleep_until(begin + 20e-3)
            return world.v[:3]

    coarse, fine = moved(2.5e-3), moved(1e-4)
    assert abs(fine[0]) > 1e-3
    assert coarse == pytest.approx(fine, rel=1e-6, abs=1e-9)


def in_a_campaign(latency, count, period, seed):
    """Instants at which the commands 1, 2, ... arrive in a campaign's loop, s."""
    x, p, r, n, u = (
        ca.SX.sym(name, size) for name, size in zip("xprnu", (2, 1, 0, 0, 1), strict=True)
    )
    # The command is 0 before the tick p and then 1; its integral tells from when on it acts.
    tick = ca.Function("tick", [x, p, r, n], [ca.vertcat(x[0], x[1] + 1), x[1] >= p, 0 * x[0]])
    step = ca.Function("step", [x, p, u], [ca.vertcat(x[0] + u, x[1]), x[0] + u])
    ticks, ks = count + 20, np.arange(1, count)
    late = latency.delay / period, latency.jitter / period
    batch = Batch(np.zeros((len(ks), 2)), ks[:, None], np.zeros(len(ks), dtype=int), seed, *late)
    rolled = Rollout(tick, step, 1, interpreted=True)(
        batch, np.empty((ticks, 0)), ticks=ticks, demands=[Demand(1, "last", 0, ticks - 1)]
    )
    return period * (ticks - rolled.values[:, 0])


@pytest.mark.parametrize("jitter", [0.0, 0.011])
def test_messages_arrive_as_in_a_campaign_and_in_order(jitter, monkeypatch):
    latency, count, seed = Latency(3e-3, jitter), 60, 5
    rig = virtual_rig(latency=latency.delay, jitter=jitter, seed=seed)
    clock, period = SteppedClock(), rig.loop.period
    with World(rig, clock) as world, open_bus(rig.buses[0], clock) as bus:
        drive, came, answered, heard = world.drives[0], [], [], []
        receive, poll, send = drive.receive, drive.poll, world.buses[0].send

        def received(frame, now):
            came.append(world.time)
            return kept(receive(frame, now))

        def kept(frames):
            answered.extend(due for due, _ in frames)
            return frames

        def sent(frame):
            if frame.arbitration_id & 0x7F == drive.axis.node:
                heard.append(world.time)
            send(frame)

        monkeypatch.setattr(drive, "receive", received)
        monkeypatch.setattr(drive, "poll", lambda now: kept(poll(now)))
        monkeypatch.setattr(world.buses[0], "send", sent)
        begin = clock.now()
        for k in range(count):
            # All frames of an instant are one message.
            for node in (1, 2):
                bus.send(frame(0x600 + node, bytes.fromhex("4000100000000000")))
            clock.sleep_until(begin + (k + 1) * period)
        clock.sleep_until(clock.now() + 0.1)
        assert world.delivered == 2 * count
    assert_allclose(came[1:], in_a_campaign(latency, count, period, seed), rtol=0.0, atol=3e-9)
    own = latency.arrivals(np.arange(count) * period, seed=seed)
    assert_allclose(came, own, rtol=0.0, atol=3e-9)
    back = latency.arrivals(np.array(answered) - begin, world=1, seed=seed)
    assert_allclose(heard, back, rtol=0.0, atol=3e-9)
    assert len(heard) >= count
    # Commands that would overtake wait for the one before them.
    assert (np.diff(own) == 0.0).any() == (jitter > 0.0)
