"""Faults of drives and links in RUN, drawn by a seed: each field scaled, late, frozen, swapped.

For a wheel, a slow and a fast joint, on drives of CiA 402 and of the MIT protocol. CONCUR_SEED in
the environment draws other factors, delays and instants. Each is stopped by a name of its own, with
the axis, before its drive has given 5 % of a second of its largest torque.
"""

import os
from collections import deque
from typing import NamedTuple

import numpy as np
import pytest

from hil.reasons import Reason
from tests.hil.bench import ROVER, ROVER_MIT
from tests.hil.test_fault_table import (
    AXES,
    ENCODER,
    FORCE,
    LATE,
    MOST,
    SILENT,
    link,
    motion,
    position,
    swapped,
    torque,
    trial,
)

SEED = int(os.environ.get("CONCUR_SEED", "0"))
CLASSES = {"wheel": "left_wheel", "slow joint": "upper_arm", "fast joint": "turret"}
FILES = {"CiA 402": ROVER, "MIT": ROVER_MIT}


def wrapped_torque(share):
    """Torques above a share of the limit of the axis overflow, as numbers of too few bits."""

    def inject(bench, k):
        drive = bench.world.drives[k]
        inner, most = drive.torque, share * drive.axis.torque_limit
        drive.torque = lambda now: (inner(now) + most) % (2.0 * most) - most

    return inject


def swapped_motors(bench, k):
    """The motors of two axes have changed their plugs."""
    one, other = bench.world.drives[k], bench.world.drives[(k + 1) % len(AXES)]
    one.torque, other.torque = other.torque, one.torque


def late_motion(delay):
    """The encoder reports where it was, with the stamp of now."""

    def inject(bench, k):
        drive, seen = bench.world.drives[k], deque()
        inner, clock = drive.sense, bench.clock

        def sense(position, velocity):
            now = clock.now()
            seen.append((now, position, velocity))
            while len(seen) > 1 and seen[1][0] <= now - delay + 1e-9:
                seen.popleft()
            inner(*seen[0][1:])

        drive.sense = sense

    return inject


def guessed(bench, k):
    """The encoder goes on at the speed of now, whatever its axis does."""
    drive, clock, start = bench.world.drives[k], bench.clock, []
    inner = drive.sense

    def sense(position, velocity):
        start[:] = start or [clock.now(), position, velocity]
        inner(start[1] + start[2] * (clock.now() - start[0]), start[2])

    drive.sense = sense


def true_torque(factor):
    """The drive gives a multiple of the torque, and reports it."""

    def inject(bench, k):
        drive = bench.world.drives[k]
        if hasattr(drive, "_applied"):
            applied = drive._applied
            drive._applied = lambda: round(factor * applied())
        else:
            torque(factor)(bench, k)

    return inject


class Kind(NamedTuple):
    """A fault, with the range of its number, and the names by which it may be stopped."""

    make: object
    low: float
    high: float
    reasons: tuple


def _fixed(inject):
    return lambda _: inject


SCALE = (Reason.TORQUE_SCALE,)
TORQUE = (*FORCE, Reason.OVERSPEED)
COUNTS = (Reason.COUNT_SCALE,)
KINDS = {
    "torque reversed": Kind(torque, -1.1, -0.9, (Reason.WRONG_SIGN,)),
    "torque scaled down": Kind(torque, 0.45, 0.6, SCALE),
    "torque scaled up": Kind(torque, 1.8, 4.0, (*SCALE, Reason.CONTACT)),
    # Drives of the MIT protocol report the torque that they give.
    "torque ignored": Kind(torque, 0.0, 0.1, (Reason.IGNORED, Reason.DRIVE_FAULT)),
    "torque scaled, and said so": Kind(true_torque, 2.0, 4.0, (*SCALE, Reason.DRIVE_FAULT)),
    "torque wrapped": Kind(wrapped_torque, 0.02, 0.05, TORQUE),
    "torques swapped": Kind(_fixed(swapped_motors), 0.0, 1.0, TORQUE),
    "pushed": Kind(lambda x: torque(1.0, x), 0.2, 0.35, FORCE),
    "pulled": Kind(lambda x: torque(1.0, x), -0.35, -0.2, FORCE),
    "motion reversed": Kind(motion, -1.1, -0.9, (Reason.WRONG_SIGN,)),
    "motion scaled down": Kind(motion, 0.3, 0.6, COUNTS),
    "motion scaled up": Kind(motion, 1.8, 4.0, (*COUNTS, Reason.OVERSPEED)),
    "motion frozen": Kind(motion, 0.0, 1e-9, (Reason.STUCK,)),
    "motion late": Kind(late_motion, 0.03, 0.08, (*ENCODER, *LATE)),
    "motion guessed": Kind(_fixed(guessed), 0.0, 1.0, (*FORCE, Reason.COUNT_SCALE)),
    "position shifted": Kind(lambda x: position(lambda y: y + x), 0.2, 7.0, (Reason.JUMP,)),
    "positions swapped": Kind(_fixed(swapped), 0.0, 1.0, ENCODER),
    "reports frozen": Kind(_fixed(link("freeze", way="to_host")), 0.0, 1.0, (Reason.STUCK,)),
    "reports old": Kind(_fixed(link("stale", way="to_host")), 0.0, 1.0, (Reason.STUCK, *LATE)),
    "reports dropped": Kind(_fixed(link("drop", way="to_host")), 0.0, 1.0, (Reason.LOST,)),
    "reports late": Kind(lambda x: link("delay", value=x, way="to_host"), 0.008, 0.06, LATE),
    "reports of ones": Kind(
        _fixed(link("nan", way="to_host")), 0.0, 1.0, (*SILENT, Reason.JUMP, Reason.OVERSPEED)
    ),
    "commands dropped": Kind(
        _fixed(link("drop", way="to_drive")), 0.0, 1.0, (*SILENT, Reason.IGNORED)
    ),
    "commands late": Kind(lambda x: link("delay", value=x, way="to_drive"), 0.016, 0.06, LATE),
    "drive fault": Kind(_fixed(link("drive_fault")), 0.0, 1.0, (Reason.DRIVE_FAULT,)),
    "power cycled": Kind(_fixed(link("power_cycle")), 0.0, 1.0, SILENT),
}
CREEPING = {"motion reversed", "motion scaled down", "motion scaled up", "motion guessed"}
"""Faults of encoders that turn the slow joint too little to be seen in time."""

CASES = [
    (name, kind, file)
    for name in KINDS
    for kind in CLASSES
    for file in FILES
    if not (name in CREEPING and kind == "slow joint")
]


@pytest.mark.by_default(2)
@pytest.mark.parametrize(("name", "kind", "file"), CASES)
def test_a_drawn_fault_is_stopped_by_its_name_before_it_does_much(name, kind, file):
    rng = np.random.default_rng([SEED, CASES.index((name, kind, file))])
    fault, axis = KINDS[name], CLASSES[kind]
    number, at = float(rng.uniform(fault.low, fault.high)), int(rng.integers(40, 90))
    outcome, given = trial(FILES[file], axis, fault.make(number), at)
    said = f"{name} {number:.3g} in cycle {at}: {outcome.reason.name}, {outcome.detail}"
    assert outcome.reason in fault.reasons, said
    assert given < MOST, said
    if "swapped" not in name:
        assert f"axis `{axis}`" in outcome.detail, said
