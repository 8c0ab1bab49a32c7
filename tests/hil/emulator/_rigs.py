"""Rigs on separate buses, and a host that only exchanges frames."""

import dataclasses
import secrets
import struct

import can

from hil.rig import Axis, BusSettings, EmulatorSettings, load_rig

ROVER = "examples/rover_rig/rig.toml"
ROVER_MIT = "examples/rover_rig/rig_mit.toml"
FLOATER = "examples/floater_rig/rig.toml"


def virtual_rig(path=ROVER, **emulator):
    """A rig of the examples on a new virtual bus."""
    rig = load_rig(path)
    settings = {"latency": 1e-3, "dt": 1e-3} | emulator
    return dataclasses.replace(
        rig,
        buses=(BusSettings("virtual", f"test-{secrets.token_hex(6)}"),),
        loop=dataclasses.replace(rig.loop, priority=0),
        emulator=EmulatorSettings(**settings),
        pose=None,
    )


def axis(**changes):
    values = {
        "name": "joint",
        "drive": "cia402",
        "node": 5,
        "torque_limit": 8.0,
        "torque_rate_limit": 1000.0,
        "speed_limit": 10.0,
        "gear": 2.0,
        "direction": -1,
        "rated_torque": 4.0,
        "counts": 4096,
        "offset": 0.25,
        "watchdog": 0.1,
    }
    return Axis(**(values | changes))


def frame(identifier, data=b""):
    return can.Message(arbitration_id=identifier, data=data, is_extended_id=False)


class Station:
    """Service and process data of one CiA 402 drive, written out by hand.

    Parameters
    ----------
    drive : EmulatedCia402
        The drive, spoken to directly.
    """

    def __init__(self, drive, now=10.0):
        self.drive, self.now = drive, now
        self.node = drive.axis.node
        self.said = [message for _, message in drive.poll(now)]

    def send(self, identifier, data=b"", after=0.0):
        """Send a frame; return the immediate answers."""
        self.now += after
        came = [message for _, message in self.drive.receive(frame(identifier, data), self.now)]
        self.said += came
        return came

    def wait(self, time):
        """Let time pass as a world does; return the frames that the drive sends."""
        end, came = self.now + time, []
        while self.drive.next_event <= end:
            self.now = max(self.drive.next_event, self.now)
            came += [message for _, message in self.drive.poll(self.now)]
        self.now = end
        self.said += came
        return came

    def read(self, index, sub=0):
        """Value of an object, or the abort code with a minus sign."""
        request = struct.pack("<BHBI", 0x40, index, sub, 0)
        (answer,) = self.send(0x600 + self.node, request)
        if answer.data[0] == 0x80:
            return -struct.unpack_from("<I", answer.data, 4)[0]
        size = 4 - (answer.data[0] >> 2 & 3)
        return int.from_bytes(answer.data[4 : 4 + size], "little")

    def write(self, index, sub, value, size):
        """Zero, or the abort code."""
        head = struct.pack("<BHB", 0x23 | (4 - size) << 2, index, sub)
        number = (value & (1 << 8 * size) - 1).to_bytes(4, "little")
        (answer,) = self.send(0x600 + self.node, head + number)
        return struct.unpack_from("<I", answer.data, 4)[0] if answer.data[0] == 0x80 else 0

    def map_pdo(self, communication, identifier, transmission, entries):
        mapping = communication + 0x200
        writes = [(communication, 1, identifier | 1 << 31, 4), (mapping, 0, 0, 1)]
        writes += [(mapping, k, entry, 4) for k, entry in enumerate(entries, 1)]
        writes += [(mapping, 0, len(entries), 1), (communication, 2, transmission, 1)]
        writes += [(communication, 1, identifier, 4)]
        assert [self.write(*each) for each in writes] == [0] * len(writes)

    def set_up(self, watchdog=100, reaction=1):
        assert self.write(0x6060, 0, 10, 1) == 0
        self.map_pdo(0x1400, 0x200 + self.node, 255, (0x60400010, 0x60710010))
        self.map_pdo(0x1800, 0x180 + self.node, 1, (0x60410010, 0x60640020, 0x60770010))
        if watchdog:
            assert self.write(0x1400, 5, watchdog, 2) == 0
        assert self.write(0x6007, 0, reaction, 2) == 0
        self.send(0x000, bytes((1, self.node)))
        return self

    def command(self, word, per_mille=0, after=0.0):
        return self.send(0x200 + self.node, struct.pack("<Hh", word, per_mille), after)

    def enable(self, per_mille=0):
        for word in (0x06, 0x07, 0x0F):
            self.command(word, per_mille)
        assert self.drive.enabled
        return self

    def report(self):
        """Status word, counts, per mille."""
        (came,) = self.send(0x080)
        assert came.arbitration_id == 0x180 + self.node
        return struct.unpack("<Hih", came.data)

    def emergencies(self):
        return [
            struct.unpack_from("<H", m.data)[0]
            for m in self.said
            if m.arbitration_id == 0x080 + self.node
        ]


class Driver:
    """Runs host drives on a world: prepares them, then sends torques cycle by cycle."""

    def __init__(self, rig, world, bus, drives):
        from hil.drives.feedback import Feedback

        self.rig, self.world, self.bus, self.drives = rig, world, bus, drives
        self.clock = bus.clock
        self.feedback = Feedback(len(drives))
        self.positions = []

    def prepare(self):
        for drive in self.drives:
            drive.prepare(self.bus)
        type(self.drives[0]).prove(self.drives, self.bus)
        return self

    def cycle(self, wanted, torques, count=1):
        period = self.rig.loop.period
        for _ in range(count):
            begin = self.clock.now()
            for opening in type(self.drives[0]).opening_frames(self.rig):
                self.bus.send(opening)
            while (message := self.bus.receive(begin + 3e-3)) is not None:
                for drive in self.drives:
                    if message.arbitration_id in drive.identifiers:
                        drive.receive(message, self.clock.now(), self.feedback)
            self.positions.append(self.feedback.position.copy())
            for drive, torque in zip(self.drives, torques, strict=True):
                self.bus.send(drive.command(wanted, torque))
            self.clock.sleep_until(begin + period)
