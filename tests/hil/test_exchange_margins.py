"""When a report was sampled, in the eyes of the exchange: drives that count, on a bus of frames."""

from types import SimpleNamespace

import can
import pytest

from hil._exchange import Exchange

LATENCY, WINDOW = 0.003, 0.002


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.time = 10.0

    def now(self):
        return self.time


class Frames:
    """A bus on which each frame comes at its instant."""

    echoes = False

    def __init__(self, *instants):
        self.clock, self.instants, self.sent = Clock(), list(instants), []

    def send(self, frame):
        self.sent.append(frame)

    def receive(self, until=None):
        if not self.instants or (until or self.clock.now()) < self.instants[0]:
            self.clock.time = max(self.clock.time, until or 0.0)
            return None
        self.clock.time = max(self.clock.time, self.instants.pop(0))
        return can.Message(arbitration_id=1, data=b"", is_extended_id=False)


class Drive:
    """Takes each frame for its report."""

    index, identifiers, watched_identifiers = 0, (1,), ()
    opening = ()

    @classmethod
    def opening_frames(cls, rig):
        return cls.opening

    def receive(self, frame, instant, feedback):
        feedback.time[0] = instant
        feedback.count[0] += 1
        return True


class Asked(Drive):
    """Reports when a cycle is opened."""

    opening = (can.Message(arbitration_id=0x80, is_extended_id=False),)


def exchange(bus, drive, talks=True):
    rig = SimpleNamespace(
        loop=SimpleNamespace(window=WINDOW),
        estimator=SimpleNamespace(latency=LATENCY),
        policies=SimpleNamespace(patience=3),
    )
    return Exchange(rig, [drive], bus, talks)


@pytest.mark.parametrize(
    ("came", "sampled"),
    [
        (9.9995, 9.9995),  # it cannot have been later than it came
        (10.001, 10.0),  # it answered the command, and waited since
    ],
)
def test_an_answer_to_a_command_is_as_old_as_its_way_there_and_back(came, sampled):
    # The command left at 9.994 s: it took 3 ms to the drive, and the answer 3 ms back.
    bus = Frames(came)
    bus.clock.time = min(came, 10.0)
    made = exchange(bus, Drive())
    made._sent = 9.994
    made.take(10.0)
    assert made.feedback.time[0] == pytest.approx(sampled, abs=1e-12)


def test_a_listener_takes_a_report_for_as_old_as_its_cycle():
    bus = Frames(10.001)
    made = exchange(bus, Drive(), talks=False)
    made._sent = 9.994
    made.take(10.0)
    assert made.feedback.time[0] == 10.0


def test_a_report_that_missed_its_window_was_sampled_when_its_cycle_was_opened():
    bus = Frames()
    made = exchange(bus, Asked())
    made.take(10.0)  # nothing comes in time
    bus.instants = [10.0035]
    bus.clock.time = 10.004
    made.take(10.004)
    assert made.feedback.time[0] == pytest.approx(10.0 + LATENCY, abs=1e-12)
    # Without delay it is the instant at which it came.
    bus.instants = [10.009]
    made.take(10.008)
    assert made.feedback.time[0] == pytest.approx(10.009, abs=1e-12)


@pytest.mark.parametrize(("after", "taken"), [(0.0019, 1), (0.0021, 0)])
def test_reports_are_waited_for_until_the_window_ends(after, taken):
    bus = Frames(10.0 + after)
    made = exchange(bus, Asked())
    made.take(10.0)
    assert made.feedback.count[0] == taken
    assert made.count(10.0 + WINDOW) == 1 - taken
