"""When a report was sampled, in the eyes of the exchange: drives that count, on a bus of frames."""

import math
from types import SimpleNamespace

import can
import numpy as np
import pytest

from hil.controller._exchange import Exchange
from hil.links import Links

LATENCY, WINDOW, NAN = 0.003, 0.002, math.nan


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
        loop=SimpleNamespace(receive_window=WINDOW),
        estimator=SimpleNamespace(latency=LATENCY),
        policies=SimpleNamespace(max_consecutive_faults=3),
    )
    return Exchange(rig, [drive], Links([bus], [0]), talks)


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
    made.sent = 9.994
    made.take(10.0)
    assert made.feedback.time[0] == pytest.approx(sampled, abs=1e-12)


def test_a_listener_takes_a_report_for_as_old_as_its_cycle():
    bus = Frames(10.001)
    made = exchange(bus, Drive(), talks=False)
    made.sent = 9.994
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
    # Later ones by more periods answer earlier cycles: each the oldest that is outstanding.
    bus.instants = [10.0115]
    bus.clock.time = 10.012
    made.take(10.012)
    assert made.feedback.time[0] == pytest.approx(10.004 + LATENCY, abs=1e-12)
    made = exchange(bus, Asked())
    # Without delay it is the instant at which it came.
    bus.instants, bus.clock.time = [10.009], 10.008
    made.take(10.008)
    assert made.feedback.time[0] == pytest.approx(10.009, abs=1e-12)


@pytest.mark.parametrize(("after", "taken"), [(0.0019, 1), (0.0021, 0)])
def test_reports_are_waited_for_until_the_window_ends(after, taken):
    bus = Frames(10.0 + after)
    made = exchange(bus, Asked())
    made.take(10.0)
    assert made.feedback.count[0] == taken
    assert made.count(10.0 + WINDOW) == 1 - taken


class Stalling(Frames):
    """A frame that waits while the loop is delayed, and is read afterwards."""

    def receive(self, until=None):
        found = super().receive(until)
        if found is not None:
            self.clock.time += self.delay
        return found


@pytest.mark.parametrize(("delay", "came"), [(0.0005, 10.0015), (0.009, 10.002)])
def test_a_report_that_is_read_after_its_window_came_within_it(delay, came):
    """The loop was delayed, not the report: another instant would be a wrong speed."""
    bus = Stalling(10.001)
    bus.delay = delay
    made = exchange(bus, Asked())
    made.take(10.0)
    assert made.feedback.time[0] == pytest.approx(came, abs=1e-12)


# -- round trips -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instants", "quiet", "ends"),
    [
        ((), True, 10.07),
        ((10.06, 10.12), True, 10.19),  # a report restarts the silence
        ((10.071,), True, 10.07),
        ((10.06, 10.12, 10.18, 10.24), True, 10.31),
        ((10.06, 10.12, 10.18, 10.24, 10.3), False, 10.3),  # they do not cease
    ],
)
def test_reports_have_to_cease_for_seven_hundredths_of_a_second(instants, quiet, ends):
    bus = Frames(*instants)
    made = exchange(bus, Asked())
    assert made._is_quiet(made.feedback) is quiet
    assert bus.clock.time == pytest.approx(ends, abs=1e-12)


class Answering(Frames):
    """Answers each frame after its delay; NaN: no answer."""

    def __init__(self, *delays):
        super().__init__()
        self.delays = list(delays)

    def send(self, frame):
        super().send(frame)
        if (delay := self.delays.pop(0)) == delay:
            self.instants.append(self.clock.time + delay)


@pytest.mark.parametrize(
    ("delays", "shortest", "trials"),
    [
        ((0.01, 0.004, 0.002, 0.006, 0.003), 0.002, 5),
        ((0.01, 0.01, 0.01, 0.01, 0.003, 0.001), 0.003, 5),
        ((0.249,) * 5, 0.249, 5),
        ((NAN, 0.004, 0.002, 0.004, 0.004), 0.002, 5),  # one may be lost
        ((0.004, NAN, 0.003, NAN, 0.001), 0.003, 4),
        ((NAN, NAN), NAN, 2),
    ],
)
def test_the_shortest_of_five_round_trips_counts(delays, shortest, trials):
    bus = Answering(*delays)
    (found,) = exchange(bus, Asked()).round_trips()
    assert found == pytest.approx(shortest, abs=1e-12, nan_ok=True)
    assert len(bus.sent) == trials


# -- a cycle ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("talks", [True, False])
def test_frames_of_somebody_else_are_counted(talks):
    made = exchange(Frames(10.0005, 10.001, 10.0015), Drive(), talks)
    made._wires[0].receivers = {}
    made._wires[0].intruders = SimpleNamespace(is_foreign=lambda _: True, note=lambda _: None)
    made.take(10.0)
    assert made.foreign == (3 if talks else 0)


def test_all_frames_of_a_window_are_taken():
    made = exchange(Frames(10.0005, 10.0005, 10.0005), Drive())
    made.take(10.0)
    assert made.feedback.count[0] == 3


class Babble(Frames):
    """A frame each half of a millisecond or so, without end."""

    def receive(self, until=None):
        self.clock.time += 2.0**-11
        return can.Message(arbitration_id=1, data=b"", is_extended_id=False)


def test_a_node_that_babbles_is_listened_to_for_two_windows():
    bus = Babble()
    made = exchange(bus, Drive(), talks=False)
    made.rig.loop.receive_window = 2.0**-9
    made.take(10.0)
    assert made.feedback.count[0] == 9  # the first beyond two windows of four frames
    assert bus.clock.time == 10.0 + 9 * 2.0**-11


def test_waiting_frames_are_received_for_one_window():
    bus = Babble()
    made = exchange(bus, Asked())
    assert len(made._take_waiting(10.0 + 2.0**-9)) == 5


def test_time_of_the_bus_and_time_that_was_waited_are_counted_apart(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr("hil.controller._exchange.time.perf_counter", lambda: float(next(ticks)))
    made = exchange(Frames(10.001), Drive())
    made.take(10.0)  # opening, twice without a frame
    assert (made.transfer, made.waited) == (3.0, 1.0)
    made.take(10.004)
    assert (made.transfer, made.waited) == (2.0, 1.0)


def two(bus, drive=Drive, talks=True):
    """An exchange with two drives."""
    rig = SimpleNamespace(
        loop=SimpleNamespace(receive_window=WINDOW),
        estimator=SimpleNamespace(latency=LATENCY),
        policies=SimpleNamespace(max_consecutive_faults=3),
    )
    drives = [drive(), drive()]
    for index, made in enumerate(drives):
        made.index = index
        made.command = lambda wanted, torque, index=index: (index, torque)
        made.asides = lambda cycle: ()
    return Exchange(rig, drives, Links([bus], [0, 0]), talks)


@pytest.mark.parametrize(
    ("sampled", "is_outdated"),
    [((9.5, 10.0), False), ((10.0, 9.25), True), ((9.25, 9.0), True), ((9.75, 10.0), False)],
)
def test_one_report_that_became_too_old_is_enough(sampled, is_outdated):
    made = two(Frames())
    made.feedback.time[:] = sampled
    assert made.outdated(10.0, 0.5) is is_outdated
    ages = [10.0 - time for time in sampled] if is_outdated else [float("inf")] * 2
    assert made.ages.tolist() == ages
    made.count(10.25)
    assert made.ages.tolist() == [10.25 - time for time in sampled]


def test_missing_axes_are_counted_each():
    made = two(Frames())
    counts = []
    for reports in ((1, 0), (1, 0), (2, 0), (3, 1)):
        made.feedback.count[:] = reports
        counts.append((made.count(10.0), list(made.absent)))
    assert counts == [(1, [0, 1]), (2, [1, 2]), (1, [0, 3]), (0, [0, 0])]


class Refusing(Frames):
    """Takes a frame or does not."""

    def __init__(self, *takes):
        super().__init__()
        self.takes = list(takes)

    def send(self, frame):
        super().send(frame)
        return self.takes.pop(0)


def test_cycles_in_which_the_bus_refuses_are_counted_and_who_was_refused_comes_first():
    bus = Refusing(True, False, False, True, True, True, True, True)
    made, refused = two(bus, Asked), []
    for _ in range(4):
        made.send(None, np.array([1.0, 2.0]))
        refused.append(made.refused)
    assert refused == [1, 2, 0, 0]
    order = [frame[0] for frame in bus.sent]
    assert order == [0, 1, 1, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("drive", "pauses", "pausing", "sent", "postponed"),
    [
        (Drive, True, True, 0, 0),
        (Drive, True, False, 2, 1),
        (Drive, False, True, 2, 0),
        (Drive, False, False, 2, 0),
        (Asked, True, True, 2, 0),
        (Asked, True, False, 2, 0),
    ],
)
def test_drives_that_answer_commands_go_without_one_in_a_pause(
    drive, pauses, pausing, sent, postponed
):
    bus = Refusing(True, True)
    made, calls = two(bus, drive), []
    made._punctual = SimpleNamespace(
        pauses=pauses, postpone=lambda: calls.append(True), ask=lambda *_: None
    )
    made.send(None, np.zeros(2), pausing=pausing)
    assert (len(bus.sent), len(calls)) == (sent, postponed)


@pytest.mark.parametrize(("pausing", "sent", "postponed"), [(True, 1, 0), (False, 2, 1)])
def test_one_drive_that_answers_commands_is_enough_for_a_pause(pausing, sent, postponed):
    bus = Refusing(True, True)
    made, calls = two(bus, Drive), []
    made._answers = [True, False]
    made._punctual = SimpleNamespace(
        pauses=True, postpone=lambda: calls.append(True), ask=lambda *_: None
    )
    made.send(None, np.zeros(2), pausing=pausing)
    assert (len(bus.sent), len(calls)) == (sent, postponed)


@pytest.mark.parametrize(("talks", "pauses"), [(True, True), (True, False), (False, True)])
def test_only_who_talks_pauses(talks, pauses):
    bus = Frames()
    made = two(bus, Asked, talks)
    made._punctual.pauses = pauses
    made.take(10.0)
    assert made.paused is (talks and pauses)
    assert len(bus.sent) == (0 if made.paused else 1)
    assert made.count(10.002) == (0 if made.paused else 2)
