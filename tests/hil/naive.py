"""Pieces of a loop as it is often written, each with the fault that led to an accident.

None of this is used by the rig. Every accident is a test in which these pieces do harm and those
of the rig do not.
"""

import math
import struct
import time

import can
import numpy as np

from hil.drives import Wanted, make_drives
from hil.drives._cia402_setup import TORQUE_MODE, Cia402Setup
from hil.drives._cia402_state import next_controlword
from hil.drives._network import Nmt, SdoSession
from hil.drives.feedback import Feedback
from hil.state.estimator import Estimator


def clip_guard(demand, limit):
    """Accident 1: NaN passes `np.clip`."""
    return np.clip(demand, -limit, limit)


def minmax_guard(demand, limit):
    """Accident 2: a comparison with NaN is false, so full scale is left."""
    return [max(-limit, min(limit, torque)) for torque in demand]


class PacketWatchdog:
    """Accident 5: any datagram counts as a sign of life. Accident 7: on any clock."""

    def __init__(self, timeout, clock=time.time):
        self.timeout, self.clock, self.fed = timeout, clock, clock()

    def feed(self, data):
        self.fed = self.clock()
        return data

    @property
    def expired(self):
        return self.clock() - self.fed > self.timeout


class UnlatchedStop:
    """Accident 6: stopped for as long as there is a fault, and not longer."""

    def torque(self, demand, fault):
        return 0.0 if fault else demand


def stop_torque(mode, last, velocity):
    """Accident 9: every mode has its own idea of a stop."""
    return {"drive": 0.0, "shadow": last, "listen": last, "mock": -velocity}[mode]


def guard_unless_mock(demand, limit, mode):
    """Accident 12: no hardware, no guard; so the guard is never tested."""
    return demand if mode == "mock" else max(-limit, min(limit, demand))


def blocking_limiter(demand, velocity, speed_limit):
    """Accident 13: too fast, so no torque at all, not even the one that brakes."""
    return 0.0 if abs(velocity) > speed_limit else demand


class HoldLast:
    """Accident 14: no new set-point, so the old one stays."""

    def __init__(self):
        self.last = 0.0

    def cycle(self, setpoint):
        if setpoint is not None:
            self.last = setpoint
        return self.last


class MisreadLimit:
    """Accident 15: the file contains `torque_limit`, the program reads another name."""

    def __init__(self, settings):
        self.limit = settings.get("max_torque", 1e3)

    def torque(self, demand):
        return max(-self.limit, min(self.limit, demand))


def as_integer(number):
    """Cast to an integer as in C on most processors: NaN becomes the smallest integer."""
    return -(2**15) if math.isnan(number) else max(-(2**15), min(2**15 - 1, round(number)))


class NaiveController:
    """A whole loop as it is often written, on the emulated CiA 402 drives of a bench.

    It sets the drives up so that they follow torques, and no further: nothing is asked, no limit
    and no watchdog is written. Then in each cycle: read, compute, send. Estimator and law are
    those of the rig; what led to accidents is overridden in each of them.

    Parameters
    ----------
    bench : Bench
        The emulated rig; its own controller does not run.
    mode : str
        What the loop believes to be used for.
    """

    def __init__(self, bench, mode="drive"):
        self.bench, self.mode = bench, mode
        self.rig, self.bus, self.clock = bench.rig, bench.bus, bench.clock
        self.axes = self.rig.axes
        self.drives = make_drives(self.rig)  # to read reports
        self.feedback = Feedback(len(self.axes))
        self.estimator = Estimator(self.rig, bench.servo)
        self.fresh = [False] * len(self.axes)

    # Methods that the accidents override.

    def decide(self, torques):
        """Torque that is sent instead of the law's."""
        return torques

    def bound(self, torques):
        return minmax_guard(torques, self.limit)

    def number(self, axis, torque):
        """Torque of a joint in the numbers of its drive."""
        return as_integer(1000.0 * torque * axis.direction / axis.gear / axis.rated_torque)

    def hear(self, frame):
        """Any frame of the bus."""

    def send(self, torques):
        for drive, torque in zip(self.drives, torques, strict=True):
            self.send_one(drive, torque)

    # The loop.

    limit = 8.0

    def send_one(self, drive, torque):
        word = next_controlword(drive.state, Wanted.TORQUE)
        data = struct.pack("<Hh", word, self.number(drive.axis, torque))
        self.put(0x200 + drive.axis.node, data)

    def put(self, identifier, data=b""):
        self.bus.send(can.Message(arbitration_id=identifier, data=data, is_extended_id=False))

    def set_up(self, drive):
        node = SdoSession(self.bus, drive.axis.name, drive.axis.node)
        node.command(Nmt.PRE_OPERATIONAL)
        node.put(0x6060, 0, "b", TORQUE_MODE)
        Cia402Setup(drive.axis, node, self.rig.loop.period).set_process_data()
        node.command(Nmt.START)

    def read(self):
        begin = self.clock.now()
        self.fresh = [False] * len(self.axes)
        while (frame := self.bus.receive(begin + self.rig.loop.receive_window)) is not None:
            self.hear(frame)
            for drive in self.drives:
                if frame.arbitration_id in drive.identifiers:
                    taken = drive.receive(frame, self.clock.now(), self.feedback)
                    self.fresh[drive.index] |= taken
            if all(self.fresh):
                return

    def compute(self, k):
        now, plan, buffers = self.clock.now(), self.bench.plan, self.bench.law.buffers
        k = min(k, len(plan) - 1)
        if self.estimator.started:
            self.estimator.update(self.feedback, now)
        else:
            self.estimator.start(self.feedback, now)
        buffers.q[:], buffers.s[:] = self.estimator.q, self.estimator.s
        buffers.pose[:], buffers.twist[:] = plan.pose[k], plan.twist[k]
        buffers.acceleration[:] = plan.acceleration[k]
        self.bench.law.run()
        return buffers.u.tolist()

    def cycle(self, k=0, running=False):
        begin = self.clock.now()
        if running:
            self.bench.begin_cycle()
        self.put(0x080)
        self.read()
        torques = self.compute(k)
        self.send(self.bound(self.decide(torques)) if running else [0.0] * len(torques))
        self.clock.sleep_until(begin + self.rig.loop.period)

    def start(self):
        for drive in self.drives:
            self.set_up(drive)
        for _ in range(20):
            self.cycle()
        return self

    def run(self, cycles=None):
        for k in range(len(self.bench.plan) if cycles is None else cycles):
            self.cycle(k, running=True)
        return "success"
