"""A loop or a machine that is held up within a cycle, and drives that cannot be released."""

import numpy as np
import pytest

from hil.clock import ASLEEP, SteppedClock
from hil.controller._controller import HOLDING
from hil.errors import DriveError
from hil.guard import Phase, Reason, State
from tests.hil.bench import Bench, rig_of

CYCLE = 30


class Sleeper(SteppedClock):
    """The clock of a machine that may have slept."""

    slept = 0.0

    def asleep(self):
        return self.slept


def held_up(bench, seconds):
    """Time passes while the law of a cycle is computed: after the reports were taken."""
    bench.law.change = None
    bench.clock.sleep_until(bench.clock.now() + seconds)


@pytest.mark.parametrize("over", [-0.5e-3, 0.5e-3])
def test_no_torque_leaves_on_reports_that_became_too_old_meanwhile(over):
    with Bench() as bench:
        ages = []
        count = bench.controller._exchange.count

        def noting(now):
            lost = count(now)
            ages[:] = bench.controller._exchange.ages.tolist()
            return lost

        bench.controller._exchange.count = noting
        bench.at(
            CYCLE,
            lambda: setattr(
                bench.law,
                "change",
                lambda _: held_up(bench, bench.limits.largest_age - max(ages) + over),
            ),
        )
        bench.run()
        row = bench.row(CYCLE)
        assert np.abs(bench["torque"][row - 1]).max() > 0.1
        assert (bench["reason"][row] == Reason.LATE) == (over > 0.0)
        assert (bench["state"][row] == State.STOP) == (over > 0.0)
        assert bench["torque"][row].any() == (over < 0.0)
        bench.check()


@pytest.mark.parametrize("within", [False, True], ids=["between cycles", "within a cycle"])
@pytest.mark.parametrize("slept", [0.9 * ASLEEP, 1.1 * ASLEEP, 3600.0])
def test_a_machine_that_slept_loses_its_power_at_once(slept, within):
    with Bench(clock=Sleeper()) as bench:
        bench.clock.slept = 7200.0  # before: that is no matter

        def sleep(*_):
            bench.law.change = None
            bench.clock.slept = 7200.0 + slept

        if within:
            bench.at(CYCLE, setattr, bench.law, "change", sleep)
        else:
            bench.at(CYCLE, sleep)
        outcome = bench.run()
        noticed = slept > ASLEEP
        assert outcome.reason is (Reason.CLOCK if noticed else Reason.END)
        row = bench.row(CYCLE)
        assert bench["torque"][row].any() != noticed
        assert not bench["torque"][row + 1 :].any() or not noticed
        assert bench.phase is Phase.OFF
        bench.check()


def test_a_release_that_fails_leaves_a_trace_and_the_others_are_released():
    with Bench() as bench:
        released = []

        def fail(_):
            raise DriveError(
                "axis `turret`", expected="an answer", came="silence", cure="Check it."
            )

        for drive in bench.controller.drives:
            drive.release = fail if drive.axis.name == "turret" else released.append
        outcome = bench.run()
        assert len(released) == len(bench.names) - 1
        (sentence,) = outcome.left
        assert "axis `turret` may still be under power: DriveError" in sentence
        assert outcome.done  # of the task


def test_frames_that_the_bus_refuses_at_the_end_leave_a_trace():
    with Bench() as bench:
        drive = bench.controller.drives[1]
        inner = drive.release

        def release(bus):
            bus.refused += 1
            inner(bus)

        drive.release = release
        (sentence,) = bench.run().left
        assert bench.names[1] in sentence
        assert "the bus rejected frames" in sentence


def test_a_failed_release_after_an_error_is_a_note_of_the_error():
    with Bench() as bench:

        def fail(*_):
            raise OSError("no bus")

        bench.controller.drives[0].release = fail
        bench.at(CYCLE, setattr, bench.law, "change", fail)
        with pytest.raises(OSError, match="no bus") as caught:
            bench.run()
        assert any(bench.names[0] in note for note in caught.value.__notes__)


@pytest.mark.parametrize("end", ["hold", "stop"])
def test_the_arm_is_held_when_the_task_is_done(end):
    """The page of a run shows the errors of its last cycles: an arm that falls is 0.1 m away."""
    with Bench(rig=rig_of(policies={"end": end}), duration=1.0) as bench:
        outcome = bench.run()
        assert outcome.reason is Reason.END
        off = bench["state"] == State.STOP
        fallen = np.linalg.norm(bench["q"][off][:, -2:] - bench["q"][bench.stopped][-2:], axis=1)
        held = bench["torque"][off].any(axis=1)
        if end == "hold":
            assert fallen.max() < 0.03  # rad, with the cycles after power is removed
            assert held.sum() >= HOLDING / bench.rig.loop.period - 1
        else:
            assert fallen.max() > 0.03
            assert held.sum() <= bench.rig.policies.stop_time / bench.rig.loop.period + 1
        assert not bench["torque"][-5:].any()
        bench.check()
