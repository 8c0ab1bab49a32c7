"""Tests of watchdogs at a torque, against drives written apart: the bad ones are not armed."""

from __future__ import annotations

import contextlib
import dataclasses
import math

import pytest

from hil.drives import Finding, Wanted
from hil.drives._trial import LARGEST_SPEED, SHOWN, SILENCE, STEPS, Course, load_of
from hil.errors import ArmError, DriveError
from tests.hil.drives._stations import (
    AnsweringBus,
    make_axis,
    make_mit_axis,
    make_rig,
)
from tests.hil.drives.test_mit import LEAVE, Firmware, Loop, make_drive
from tests.hil.drives.test_standards import Setting
from tests.hil.standards_drive import DISABLED, StandardsDrive

NODE = 5
RATED, GEAR = 2.0, 10.0  # of `make_axis`
LOAD = 0.05 * 30.0


class Joint:
    """One degree of freedom: inertia, viscous friction, and a weight that is supported or not."""

    def __init__(self, inertia=math.inf, viscous=0.0, weight=0.0, position=0.0):
        self.inertia, self.viscous, self.weight = inertia, viscous, weight
        self.position, self.speed, self.fastest = position, 0.0, 0.0
        self.now = None

    def move(self, now, torque):
        before, self.now = self.now, now
        steps = 0 if before is None else math.ceil((now - before) / 2e-4 - 1e-9)
        for _ in range(steps):
            h = (now - before) / steps
            self.speed += h * (torque + self.weight - self.viscous * self.speed) / self.inertia
            self.position += h * self.speed
            self.fastest = max(self.fastest, abs(self.speed))


class Jointed(Setting):
    """Drives by the standards on joints."""

    def __init__(self, *drives, joints=None, **changes):
        self.joints = joints or [Joint() for _ in drives]
        super().__init__(*drives, **changes)
        self.far.before = self.move

    def move(self, now):
        for axis, drive, joint in zip(self.rig.axes, self.drives, self.joints, strict=True):
            factor = axis.direction * axis.gear
            joint.move(now, factor * RATED * 1e-3 * drive.acting())
            angle = (joint.position - axis.offset) * factor
            drive.counts = round(angle / math.tau * axis.counts)

    @property
    def free(self):
        return not any(drive.acting() for drive in self.drives)


# -- CiA 402: drives that must not be armed ------------------------------------------------------

REFUSED = {
    "never, though it stores it": ({"ignores_watchdog": True}, 1, "operation enabled"),
    "works once": ({"works": 1}, 2, "operation enabled"),
    "at zero torque only": ({"later": math.inf}, 1, "operation enabled"),
    "1.5 s late under load": ({"later": 1.5}, 1, "operation enabled"),
    "late": ({"late": 1.6}, 1, "operation enabled"),
    "late the second time": ({"late_again": 1.6}, 2, "operation enabled"),
    "off, it says, with its torque": ({"keeps": 1.0}, 1, "with a torque of"),
    "stops and holds": (
        {"quick_stop_holds": True, "values": {(0x6007, 0): 3}, "fixed": [0x6007]},
        1,
        "quick stop active",
    ),
}


@pytest.mark.by_default(9)
@pytest.mark.parametrize(("quirks", "number", "came"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("confirmed", [False, True])
def test_a_drive_that_keeps_its_torque_is_refused_and_free(quirks, number, came, confirmed):
    """By name, with the numbers of the test; no drive of the rig keeps a torque."""
    bad = StandardsDrive(7, **quirks)
    with Jointed(StandardsDrive(3), bad, watchdog_confirmed=confirmed) as setting:
        with pytest.raises(ArmError, match="axis 7") as caught:
            setting.arm()
        error = caught.value
        assert (error.axis, error.test) == ("axis 7", number)
        assert error.torque == pytest.approx(LOAD)
        assert error.silence == pytest.approx(1.5 * 0.05)
        assert came in error.came
        assert setting.free
        setting.clock.sleep_until(setting.clock.now() + 3.0)
        assert setting.free
        assert {drive.state for drive in setting.drives} == {DISABLED}
        assert not any(drive.value(0x6071) for drive in setting.drives)


@pytest.mark.by_default(4)
@pytest.mark.parametrize("watchdog", [0.02, 0.2, 0.05, 0.1, 0.5])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gear": 1.0, "direction": 1, "torque_limit": 4.0},
        {"gear": 100.0, "torque_limit": 200.0},
        {"watchdog_torque": 7.5},
        {"position_limits": (-0.3, 0.3)},
    ],
    ids=["usual", "direct", "geared", "quarter", "limited"],
)
@pytest.mark.parametrize("inertia", [3.0, math.inf])
def test_honest_drives_are_armed(watchdog, changes, inertia):
    """On a joint that is held, and on one that is free; and they follow afterwards."""
    joint = Joint(inertia)
    with Jointed(StandardsDrive(NODE), joints=[joint], watchdog=watchdog, **changes) as setting:
        begin = setting.clock.now()
        checks = setting.arm()
        assert all(check.finding is Finding.FOUND for check in checks)
        # twice: enabled, loaded (some times), silent, observed
        reduced = 2.0 * (inertia < math.inf)
        once = 0.35 + (2.0 + reduced) * (0.1 + 2.0 * watchdog)
        assert setting.clock.now() - begin < 2.0 * once
        (axis,) = setting.rig.axes
        low, high = axis.position_limits
        assert low <= joint.position <= high
        assert joint.fastest <= LARGEST_SPEED * axis.speed_limit
        assert abs(joint.speed) <= 0.1 * max(joint.fastest, 0.02)
        setting.cycle(Wanted.READY, times=15)
        assert setting.feedback.enabled[0]
        assert len(setting.drives[0].left) == 2


def test_the_loads_have_both_directions_and_the_declared_size():
    drives = [StandardsDrive(2), StandardsDrive(3)]
    with Jointed(*drives, watchdog_torque=3.0) as setting:
        targets = [[], []]
        inner = setting.far.before

        def note(now):
            inner(now)
            for k, drive in enumerate(drives):
                targets[k].append(drive.torque())

        setting.far.before = note
        setting.arm()
        whole = GEAR * RATED
        for seen in targets:
            assert {abs(per_mille) for per_mille in seen} == {0, round(1e3 * 3.0 / whole)}
            assert max(seen) == -min(seen)


@pytest.mark.parametrize(("late", "armed"), [(1.45, True), (1.6, False)])
@pytest.mark.parametrize(("quirk", "number"), [("late", 1), ("late_again", 2)])
def test_both_reactions_must_be_in_time(quirk, number, late, armed):
    drive = StandardsDrive(NODE, **{quirk: late})
    with Jointed(drive, watchdog=0.1) as setting:
        if armed:
            assert setting.arm()
            return
        with pytest.raises(ArmError) as caught:
            setting.arm()
        assert caught.value.test == number


@pytest.mark.parametrize("late", [None, 0.05, 0.15])
def test_axes_with_different_watchdogs_are_checked_in_their_time(late):
    watchdogs = {2: 0.15, 3: 0.05, 4: 0.15}
    drives = [
        StandardsDrive(node, late=1.7 if node > 2 and watchdog == late else 1.0)
        for node, watchdog in watchdogs.items()
    ]
    with Setting(*drives) as setting:
        for host in setting.hosts:
            host.axis = dataclasses.replace(host.axis, watchdog=watchdogs[host.axis.node])
        if late is None:
            setting.arm()
            return
        with pytest.raises(ArmError) as caught:
            setting.arm()
        assert caught.value.axis == {0.05: "axis 3", 0.15: "axis 4"}[late]
        assert caught.value.silence == pytest.approx(1.5 * late)


@pytest.mark.parametrize(("share", "armed"), [(0.9, True), (1.1, False)])
def test_half_of_the_load_in_the_report_is_the_load(share, armed):
    drive = StandardsDrive(NODE, keeps=share * SHOWN)
    with Jointed(drive) as setting:
        if armed:
            assert setting.arm()
            return
        with pytest.raises(ArmError, match="with a torque of") as caught:
            setting.arm()
        assert abs(caught.value.measured) == pytest.approx(share * SHOWN * LOAD, rel=0.02)


def test_a_torque_that_a_silent_node_keeps_is_found_when_it_is_woken():
    drive = StandardsDrive(NODE, keeps=1.0, values={(0x1029, 1): 2}, fixed=[(0x1029, 1)])
    with Jointed(drive, watchdog_confirmed=True) as setting:
        with pytest.raises(ArmError, match="with a torque of"):
            setting.arm()
        assert setting.free


@pytest.mark.by_default(9)
@pytest.mark.parametrize("watchdog", [0.1, 0.02, 0.2])
@pytest.mark.parametrize(("keeps", "armed"), [(0.0, True), (0.3, True), (1.0, False)])
@pytest.mark.parametrize("viscous", [0.0, 0.5])
def test_a_hidden_torque_is_found_by_the_motion_of_the_joint(watchdog, viscous, keeps, armed):
    """Statusword and 0x6077 say that the drive is off; its joint says that it is not."""
    quirks = {"keeps": keeps, "admits_torque": False}
    joints = [Joint(0.8, viscous), Joint(0.8, viscous)]
    drives = StandardsDrive(2), StandardsDrive(3, **quirks)
    with Jointed(*drives, joints=joints, watchdog=watchdog) as setting:
        if armed:
            setting.arm()
        else:
            with pytest.raises(ArmError, match="axis 3") as caught:
                setting.arm()
            assert "accelerates" in caught.value.came
        assert setting.free


def test_a_torque_that_nothing_shows_is_a_row_without_a_verdict():
    """The object 0x6077 is never filled in, and the joint is held: the state alone is known."""
    for inertia, unknown in ((math.inf, True), (0.8, False)):
        drive = StandardsDrive(NODE)
        drive.shows = False
        with Jointed(drive, joints=[Joint(inertia)]) as setting:
            rows = [check for check in setting.arm() if check.finding is Finding.UNKNOWN]
            assert [row.what for row in rows] == unknown * ["torque in the watchdog test, N m (N)"]


# -- bounds of the test --------------------------------------------------------------------------


@pytest.mark.parametrize("inertia", [0.05, 0.03, 0.01])
def test_the_load_is_reduced_where_a_joint_is_light(inertia):
    joint = Joint(inertia)
    with Jointed(StandardsDrive(NODE), joints=[joint], watchdog=0.1) as setting:
        (check,) = [c for c in setting.arm() if c.what.startswith("watchdog test")]
        (axis,) = setting.rig.axes
        used = float(check.came.split("from ")[1].split()[0])
        assert used < LOAD
        assert joint.fastest <= axis.speed_limit
        assert joint.fastest >= 0.05 * axis.speed_limit
        assert abs(joint.speed) <= 0.05 * axis.speed_limit  # the second load took it back


def test_a_joint_that_is_too_light_for_any_load_is_refused():
    with Jointed(StandardsDrive(NODE), joints=[Joint(2e-4)], watchdog=0.1) as setting:
        with pytest.raises(ArmError, match=r"steps of the drive|mean speed") as caught:
            setting.arm()
        assert caught.value.axis == "axis 5"
        assert setting.free


@pytest.mark.parametrize("kind", ["cia402", "mit"])
@pytest.mark.parametrize(("share", "armed"), [(0.99, False), (1.01, True)])
def test_the_smallest_load_is_two_steps_of_the_drive(kind, share, armed):
    if kind == "cia402":
        axis = make_axis(watchdog_torque=share * STEPS * GEAR * RATED * 1e-3)
        step = GEAR * RATED * 1e-3
    else:
        step = 36.0 / 4095.0
        axis = make_mit_axis(watchdog_torque=share * STEPS * step)
    if armed:
        assert load_of(axis, step).torque == axis.watchdog_torque
    else:
        with pytest.raises(ArmError, match="watchdog test") as caught:
            load_of(axis, step)
        assert caught.value.torque == axis.watchdog_torque


def test_a_weight_that_falls_in_the_test_is_refused():
    joint = Joint(0.5, weight=-8.0)

    class Braked(Joint):
        """Its brake opens when the drive is enabled."""

        def move(self, now, torque):
            self.inertia = 0.5 if setting.drives[0].enabled_at else math.inf
            super().move(now, torque)

    joint = Braked(math.inf, weight=-8.0)
    with Jointed(StandardsDrive(NODE), joints=[joint], watchdog=0.1) as setting:
        with pytest.raises(ArmError, match="axis 5") as caught:
            setting.arm()
        assert "weight" in caught.value.cure or "fix" in caught.value.cure
        assert setting.free


@pytest.mark.parametrize("start", [-0.29, 0.29])
def test_the_first_load_points_away_from_the_nearer_end(start):
    joint = Joint(0.8, position=start)
    positions = []
    with Jointed(
        StandardsDrive(NODE), joints=[joint], position_limits=(-0.3, 0.3), watchdog=0.1
    ) as setting:
        inner = setting.far.before

        def note(now):
            inner(now)
            positions.append(joint.position)

        setting.far.before = note
        setting.arm()
    assert min(positions) >= -0.3
    assert max(positions) <= 0.3


def test_bounds_of_a_motion_on_both_sides():
    """Free motion under a constant torque, by its closed form."""
    axis = make_axis(speed_limit=2.0, watchdog=0.1)
    rate, passed, step = 3.0, 0.05, 1e-6
    end = rate * (passed + SILENCE * axis.watchdog)
    course = Course(axis, 0.0, 0.0, 0.0, step, 1.0)
    factor = course.permitted(passed, 0.5 * rate * passed**2)
    assert factor == pytest.approx(LARGEST_SPEED * 2.0 / end, rel=2e-3)
    for share, fits in ((0.999, True), (1.001, False)):
        place = share * 2.0 * 0.2
        if fits:
            course.keep(0.2, place, 1.0)
        else:
            with pytest.raises(ArmError, match="mean speed"):
                course.keep(0.2, place, 1.0)
    # the torque acts from 0 to `until`; positions at 0.2 and 0.4
    for until, acts in ((0.2, False), (0.25, False), (0.35, True), (0.4, True)):
        then = 0.5 * rate * until**2 + rate * until * (0.4 - until)
        now = 0.5 * rate * 0.2**2
        assert course.accelerates(0.2, now, 0.4, then) == acts


# -- every way out -------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0.06, 0.12, 0.2, 0.3])
def test_an_interrupted_test_leaves_no_torque(after):
    """Ctrl-C while drives are enabled, loaded, silent, or restarted."""
    drives = [StandardsDrive(2), StandardsDrive(3)]
    with Jointed(*drives, watchdog=0.1) as setting:
        for host in setting.hosts:
            host.prepare(setting.bus)
        begin, inner = setting.clock.now(), setting.far.before
        pending = [True]

        def interrupt(now):
            inner(now)
            if pending and now >= begin + after:
                pending.clear()
                raise KeyboardInterrupt

        setting.far.before = interrupt
        with pytest.raises(KeyboardInterrupt):
            type(setting.hosts[0]).prove(setting.hosts, setting.bus)
        assert setting.free
        assert not any(drive.state != DISABLED for drive in drives)


def test_a_drive_that_trips_under_the_load_is_named():
    drive = StandardsDrive(NODE)
    with Jointed(drive) as setting:
        inner = setting.far.before

        def trip(now):
            inner(now)
            if drive.torque():
                drive._enter(0x08, now)

        setting.far.before = trip
        with pytest.raises(DriveError, match="axis 5") as caught:
            setting.arm()
        assert "fault" in caught.value.came
        assert "1.5 N m" in caught.value.where


# -- MIT -----------------------------------------------------------------------------------------


class Motor(Firmware):
    """The firmware on a joint; `later`, `works`, `late_again`, `keeps` as in `StandardsDrive`.

    hidden : bool
        Whether its reports of torque are zero once it says that it is off.
    """

    def __init__(self, kind="reports", inertia=math.inf, hidden=False, **quirks):
        self.later = quirks.pop("later", 0.0)
        self.works = quirks.pop("works", math.inf)
        self.late_again = quirks.pop("late_again", 1.0)
        self.keeps = quirks.pop("keeps", 0.0)
        super().__init__(kind, **quirks)
        self.joint, self.hidden, self.kept = Joint(inertia), hidden, 0.0

    def expire(self, now):
        if self.joint.now is not None:
            start = self.joint.now
            steps = max(1, round((now - start) / 1e-3))
            for k in range(1, steps + 1):
                instant = start + (now - start) * k / steps
                self._expire(instant)
                self.joint.move(instant, self.torque + self.kept)
        self.joint.move(now, 0.0)
        self.position = self.joint.position

    def _expire(self, now):
        late = self.timeout + self.later * bool(abs(self.torque) > 0.01)
        if self.kind == "no watchdog" or not self.motor_mode or not now - self.heard > late:
            return
        if self.works <= 0:
            return
        self.works -= 1
        self.timeout *= self.late_again
        self.late_again = 1.0
        self.kept, self.torque = self.keeps * self.torque, 0.0
        if self.kind != "mini-cheetah":
            self.motor_mode, self.error = False, 0x0D

    def answer(self, message, now):
        replies = super().answer(message, now)
        if bytes(message.data) == LEAVE:
            self.kept = 0.0
        return replies

    def report(self):
        self.reported_torque = None if self.hidden else self.torque + self.kept
        return super().report()


def armed(motor, **changes):
    """Prepare a drive with this motor; returns its checks and the instants before and after."""
    bus = AnsweringBus(motor.answer)
    try:
        drive = make_drive(**changes)
        begin = bus.clock.now()
        checks = drive.prepare(bus)
        loop = Loop(bus, drive)
        loop.cycle(Wanted.READY, times=12)
        assert loop.feedback.enabled[0]
        return checks, bus.clock.now() - begin
    finally:
        bus.close()


MIT_REFUSED = {
    "never": ({"kind": "no watchdog"}, 1),
    "works once": ({"works": 1}, 2),
    "at zero torque only": ({"later": math.inf}, 1),
    "1.5 s late under load": ({"later": 1.5}, 1),
    "late": ({"timeout": 0.08}, 1),
    "late the second time": ({"late_again": 1.6}, 2),
    "off, it says, with its torque": ({"keeps": 1.0}, 1),
    "off, it says, and moves": ({"keeps": 1.0, "hidden": True, "inertia": 0.15}, 1),
}


@pytest.mark.by_default(8)
@pytest.mark.parametrize(("quirks", "number"), MIT_REFUSED.values(), ids=MIT_REFUSED)
@pytest.mark.parametrize("kind", ["reports", "damiao"])
def test_an_mit_drive_that_keeps_its_torque_is_refused_and_free(quirks, number, kind):
    motor = Motor(**{"kind": kind} | quirks)
    with pytest.raises(ArmError, match="axis `knee`") as caught:
        armed(motor)
    error = caught.value
    assert (error.axis, error.test) == ("knee", number)
    assert error.torque == pytest.approx(0.05 * 12.0)
    assert not motor.motor_mode
    assert motor.torque == motor.kept == 0.0


@pytest.mark.by_default(6)
@pytest.mark.parametrize("kind", ["reports", "damiao"])
@pytest.mark.parametrize("watchdog", [0.05, 0.02, 0.2, 0.1, 0.5])
@pytest.mark.parametrize("inertia", [0.15, 0.5, math.inf])
def test_honest_mit_drives_are_armed(kind, watchdog, inertia):
    motor = Motor(kind, inertia=inertia, timeout=watchdog)
    checks, passed = armed(motor, watchdog=watchdog, gear=2.0, direction=-1)
    (check,) = [check for check in checks if check.what.startswith("watchdog in")]
    assert check.finding is Finding.FOUND
    assert passed < 2.0 * (0.2 + 2.0 * (0.1 + 2.0 * watchdog))
    assert motor.joint.fastest <= 8.0 * 2.0  # its speed limit, behind the gear


@pytest.mark.parametrize(("late", "fits"), [(1.45, True), (1.6, False)])
@pytest.mark.parametrize("again", [False, True])
def test_an_mit_drive_must_react_in_time_both_times(late, fits, again):
    watchdog = 0.1
    motor = Motor(timeout=watchdog, late_again=late) if again else Motor(timeout=late * watchdog)
    if fits:
        assert armed(motor, watchdog=watchdog)
        return
    with pytest.raises(ArmError) as caught:
        armed(motor, watchdog=watchdog)
    assert caught.value.test == 1 + again


@pytest.mark.parametrize(("share", "fits"), [(0.9, True), (1.1, False)])
def test_half_of_the_load_in_an_mit_report_is_the_load(share, fits):
    motor = Motor(keeps=share * SHOWN)
    if fits:
        assert armed(motor)
        return
    with pytest.raises(ArmError, match="report of a torque") as caught:
        armed(motor)
    assert abs(caught.value.measured) == pytest.approx(share * SHOWN * 0.6, abs=0.02)


def test_a_confirmed_drive_whose_report_shows_its_torque_is_refused():
    """It zeroes no torque, stays in motor mode, and reports what acted before the command."""

    class Earlier(Motor):
        def answer(self, message, now):
            self.expire(now)
            before = self.torque
            replies = super().answer(message, now)
            if replies and before and bytes(message.data)[:2] == b"\x7f\xff":
                self.torque, later = before, self.torque
                replies, self.torque = [self.report()], later
            return replies

    with pytest.raises(ArmError, match="report of a torque"):
        armed(Earlier("mini-cheetah", works=0), watchdog_confirmed=True)
    checks, _ = armed(Earlier("mini-cheetah"), watchdog_confirmed=True)
    assert [c.finding for c in checks if c.what.startswith("watchdog in")] == [Finding.UNKNOWN]


@pytest.mark.parametrize(("lost", "fits"), [(2, True), (3, False), (1000, False)])
def test_a_drive_that_falls_mute_under_the_load_gets_no_more_of_it(lost, fits):
    motor, left, loads = Motor(), [lost], list[float]()

    def answer(message, now):
        replies = motor.answer(message, now)
        if abs(motor.torque) > 0.01 and left[0]:
            left[0] -= 1
            loads.append(motor.torque)
            return []
        return replies

    bus = AnsweringBus(answer)
    try:
        with contextlib.nullcontext() if fits else pytest.raises(DriveError, match="no answer"):
            make_drive(watchdog=0.05).prepare(bus)
    finally:
        bus.close()
    assert len(loads) <= 3
    assert fits or motor.torque == 0.0


@pytest.mark.parametrize("after", [0.03, 0.08, 0.15, 0.25])
def test_an_interrupted_mit_test_leaves_no_torque(after):
    motor, pending = Motor(), [True]
    begin = []

    def answer(message, now):
        begin.append(now)
        if pending and now >= begin[0] + after:
            pending.clear()
            raise KeyboardInterrupt
        return motor.answer(message, now)

    bus = AnsweringBus(answer)
    with pytest.raises(KeyboardInterrupt):
        make_drive(watchdog=0.05).prepare(bus)
    bus.close()
    assert not motor.motor_mode
    assert motor.torque == 0.0


def test_wheels_in_the_air_are_armed_with_less_torque():
    motor = Motor(inertia=0.003, timeout=0.1)
    checks, _ = armed(motor, watchdog=0.1)
    (check,) = [check for check in checks if check.what.startswith("watchdog in")]
    assert float(check.came.split("from ")[1].split()[0]) < 0.6
    assert motor.joint.fastest <= 8.0
    assert abs(motor.joint.speed) <= 0.4


def test_axes_of_the_test_rig_are_as_these_tests_take_them():
    (axis,) = make_rig(make_axis()).axes
    assert (axis.rated_torque, axis.gear, axis.test_torque) == (RATED, GEAR, LOAD)
