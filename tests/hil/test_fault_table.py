"""Faults of drives and links in RUN, one field at a time: scaled, frozen, wrapped, delayed.

Each is stopped by a name of its own, with the axis, before its drive has given 5 % of a second of
its largest torque.
"""

import math

import numpy as np
import pytest

from hil.emulator import Fault
from hil.reasons import Reason, State
from tests.hil.bench import ROVER, ROVER_MIT, ROVER_MOTEUS, ROVER_ODRIVE, Bench, rig_of

AXES = "left_wheel", "right_wheel", "turret", "upper_arm", "forearm"
PERIOD = 0.004
MOST = 0.05
"""Largest integral of the torque of the drive, as a fraction of its limit, s."""


def torque(factor, force=0.0):
    """The drive gives a multiple of the torque, and reports the one that was asked."""

    def inject(bench, k):
        drive = bench.world.drives[k]
        inner, limit = drive.torque, drive.axis.torque_limit
        drive.torque = lambda now: min(max(factor * inner(now), -limit), limit) + force * limit

    return inject


def motion(factor):
    """From now on the encoder counts a multiple of the motion."""

    def inject(bench, k):
        drive = bench.world.drives[k]
        inner, start = drive.sense, []

        def sense(position, velocity):
            start[:] = start or [position]
            inner(start[0] + factor * (position - start[0]), factor * velocity)

        drive.sense = sense

    return inject


def position(change):
    """The encoder reports another position."""

    def inject(bench, k):
        drive = bench.world.drives[k]
        inner = drive.sense
        drive.sense = lambda position, velocity: inner(change(position), velocity)

    return inject


def swapped(bench, k):
    """The encoders of two axes have changed their plugs."""
    one, other = bench.world.drives[k], bench.world.drives[(k + 1) % len(AXES)]
    one.sense, other.sense = other.sense, one.sense


def link(kind, **others):
    """A fault of the bus."""

    def inject(bench, k):
        bench.world.fault(Fault(kind, AXES[k], **others))

    return inject


LATE = Reason.STALE, Reason.DELAYED, Reason.LOST
# A constant force and a factor of a constant torque are the same; a strong one also blocks an axis.
FORCE = Reason.CONTACT, Reason.TORQUE_SCALE, Reason.IGNORED, Reason.WRONG_SIGN, Reason.STUCK
ENCODER = Reason.JUMP, Reason.COUNT_SCALE, Reason.WRONG_SIGN, Reason.STUCK, Reason.CONTACT
SILENT = Reason.DRIVE_FAULT, Reason.DRIVE_OFF, Reason.LOST
FAULTS = {
    "reversed torque": (torque(-1.0), (Reason.WRONG_SIGN,)),
    "ignored torque": (torque(0.0), (Reason.IGNORED,)),
    "torque times 3": (torque(3.0), (Reason.TORQUE_SCALE,)),
    "torque times 5": (torque(5.0), (Reason.TORQUE_SCALE, Reason.CONTACT)),
    "push": (torque(1.0, 0.3), FORCE),
    "pull": (torque(1.0, -0.3), FORCE),
    "reversed encoder": (motion(-1.0), (Reason.WRONG_SIGN,)),
    "counts times 2": (motion(2.0), (Reason.COUNT_SCALE,)),
    "counts times 4": (motion(4.0), (Reason.COUNT_SCALE, Reason.OVERSPEED)),
    "half the counts": (motion(0.5), (Reason.COUNT_SCALE,)),
    "frozen encoder": (motion(0.0), (Reason.STUCK,)),
    "scaled position": (position(lambda y: 2.0 * y + 0.3), (Reason.JUMP, Reason.COUNT_SCALE)),
    "wrapped position": (position(lambda y: y + 2.0 * math.pi), (Reason.JUMP, Reason.LOST)),
    "swapped encoders": (swapped, ENCODER),
    "frozen reports": (link("freeze", way="to_host"), (Reason.STUCK,)),
    "dropped reports": (link("drop", way="to_host"), (Reason.LOST,)),
    "dropped commands": (link("drop", way="to_drive"), (*SILENT, Reason.IGNORED)),
    "reports late by 10 ms": (link("delay", value=0.010, way="to_host"), LATE),
    "reports late by 17 ms": (link("delay", value=0.017, way="to_host"), LATE),
    "reports late by 45 ms": (link("delay", value=0.045, way="to_host"), LATE),
    "commands late by 20 ms": (link("delay", value=0.020, way="to_drive"), LATE),
    "commands late by 60 ms": (link("delay", value=0.060, way="to_drive"), LATE),
    "drive fault": (link("drive_fault"), (Reason.DRIVE_FAULT,)),
    "power cycle": (link("power_cycle"), SILENT),
}
OTHERS = ROVER_MIT, ROVER_MOTEUS, ROVER_ODRIVE
"""Rigs with drives of other kinds."""

CREEPING = {"counts times 2", "counts times 4", "half the counts", "reversed encoder"}
"""Faults of encoders that turn the slow joints of the arm too little to be seen in time: arming
states the speeds from which they are."""

CASES = [
    (name, axis) for name in FAULTS for axis in AXES if not (name in CREEPING and "arm" in axis)
]


def trial(file, axis, inject, at, duration=1.6):
    rig = rig_of(file, policies={"max_consecutive_faults": 5, "stop_time": 0.1})
    with Bench(rig=rig, file=file, duration=duration) as bench:
        k = AXES.index(axis)
        limit = rig.axes[k].torque_limit
        given, before = [0.0], [math.inf]
        advance = bench.clock.advance

        def count(instant):
            if bench.controller.latch.state is State.RUN:
                given[0] += abs(bench.world.torque[k]) / limit * max(instant - before[0], 0.0)
            before[0] = max(before[0], instant) if before[0] < math.inf else before[0]
            advance(instant)

        def begin():
            before[0] = bench.clock.now()
            inject(bench, k)

        bench.clock.advance = count
        bench.at(at, begin)
        outcome = bench.run()
        return outcome, given[0]


@pytest.mark.by_default(8)
@pytest.mark.parametrize(
    ("name", "axis"), sorted(CASES, key=lambda case: (list(FAULTS).index(case[0]) * 7) % 24)
)
def test_a_fault_is_stopped_by_its_name_before_it_does_much(name, axis):
    inject, reasons = FAULTS[name]
    outcome, given = trial(ROVER, axis, inject, 60)
    assert outcome.reason in reasons, outcome.detail
    assert given < MOST
    if name != "swapped encoders":
        assert f"axis `{axis}`" in outcome.detail


def test_axes_that_creep_are_those_below_the_speeds_that_arming_states():
    with Bench(rig=rig_of(), file=ROVER, duration=1.6) as bench:
        outcome = bench.run()
        fastest = np.abs(np.array(bench.speeds)[bench.run_rows]).max(axis=0)
    what = "speed from which doubled counts stop a run, rad/s (m/s)"
    stated = {check.axis: float(check.came) for check in outcome.checks if check.what == what}
    assert list(stated) == list(AXES)
    for axis, speed in zip(AXES, fastest, strict=True):
        assert bool(speed < stated[axis]) is ("arm" in axis), (axis, speed, stated[axis])


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    "name", ["torque times 3", "reversed torque", "frozen encoder", "wrapped position"]
)
@pytest.mark.parametrize("file", OTHERS)
def test_other_drives_too(file, name):
    inject, reasons = FAULTS[name]
    outcome, given = trial(file, "left_wheel", inject, 150)
    assert outcome.reason in reasons, outcome.detail
    assert given < MOST


@pytest.mark.extended
@pytest.mark.by_default(2)
@pytest.mark.parametrize(("name", "axis"), CASES)
@pytest.mark.parametrize("file", OTHERS[1:])
def test_each_fault_of_other_drives(file, name, axis):
    inject, reasons = FAULTS[name]
    outcome, given = trial(file, axis, inject, 60)
    assert outcome.reason in reasons, outcome.detail
    assert given < MOST
    if name != "swapped encoders":
        assert f"axis `{axis}`" in outcome.detail


@pytest.mark.by_default(3)
@pytest.mark.parametrize("name", [name for name in FAULTS if name.endswith("ms")])
@pytest.mark.parametrize("at", [130, 3])
@pytest.mark.parametrize(
    ("file", "axis"),
    [
        (ROVER_MIT, "left_wheel"),
        (ROVER, "upper_arm"),
        (ROVER_MOTEUS, "forearm"),
        (ROVER_ODRIVE, "turret"),
    ],
)
def test_late_links_are_stopped_before_any_torque_has_done_much(file, axis, at, name):
    """So soon that no torque of the drive, its largest included, would exceed the bound."""
    inject, reasons = FAULTS[name]
    outcome, given = trial(file, axis, inject, at)
    assert outcome.reason in reasons, outcome.detail
    assert f"axis `{axis}`" in outcome.detail
    assert outcome.elapsed - at * PERIOD < MOST
    assert given < MOST
