"""CiA 402 drives against a drive that was written from the standards alone."""

from __future__ import annotations

import itertools
import math
import struct

import can
import numpy as np
import pytest

from hil.bus import Bus
from hil.clock import SteppedClock
from hil.controller._exchange import Exchange
from hil.drives import Cia402Drive, FaultCode, Finding, Wanted
from hil.drives._cia402_cycle import UNANSWERED
from hil.drives._cia402_following import LAG, MISFIT, Following
from hil.drives._cia402_state import FOLLOWS, LIMITED
from hil.drives._trial import DIRECTIONS, SILENCE, STEADY
from hil.errors import ArmError, DriveError, UnitError
from hil.links import Links
from tests.hil.drives._stations import make_axis, make_rig
from tests.hil.standards_drive import (
    DISABLED,
    ENABLED,
    FAULT,
    OPERATIONAL,
    MakersTool,
    OnBus,
    StandardsDrive,
)

NODE = 5
_channels = itertools.count()
PERIOD = 0.004


class Setting:
    """Drives on one end of a virtual bus, the host's classes on the other, in stepped time."""

    def __init__(self, *drives, others=(), **changes):
        self.channel = f"standards {next(_channels)}"
        self.drives = drives
        self.far = OnBus(self.channel, *drives, *others)
        self.clock = SteppedClock(self.far.advance)
        self.bus = Bus(can.Bus(interface="virtual", channel=self.channel), self.clock)
        axes = [make_axis(**{"name": f"axis {d.node}", "node": d.node} | changes) for d in drives]
        self.rig = make_rig(*axes)
        self.hosts = [Cia402Drive(axis, k, self.rig) for k, axis in enumerate(axes)]
        self.exchange = Exchange(
            self.rig, self.hosts, Links([self.bus], [0] * len(self.hosts)), talks=True
        )
        self.feedback = self.exchange.feedback
        self.clock.sleep_until(self.clock.now() + 0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bus.close()
        self.far.close()

    def arm(self):
        checks = [check for host in self.hosts for check in host.prepare(self.bus)]
        return checks + Cia402Drive.prove(self.hosts, self.bus)

    def cycle(self, wanted=Wanted.TORQUE, torque=0.0, times=1):
        for _ in range(times):
            start = self.clock.now() + PERIOD
            self.clock.sleep_until(start)
            self.exchange.take(start)
            self.exchange.count(self.clock.now())
            self.exchange.send(wanted, np.full(len(self.hosts), torque))
        self.clock.sleep_until(self.clock.now())

    def run(self, torque=5.0):
        """Armed, enabled, and driven for a while."""
        self.arm()
        self.cycle(Wanted.READY, times=15)
        self.cycle(Wanted.TORQUE, torque, times=15)
        assert not self.feedback.fault.any()
        assert self.feedback.enabled.all()
        return self


def found(checks):
    return {check.what.split(" (")[0].split(",")[0]: check for check in checks}


# -- the trial of the watchdog -------------------------------------------------------------------


def test_a_drive_by_the_standards_is_armed_and_follows():
    with Setting(StandardsDrive(NODE)) as setting:
        checks = setting.arm()
        assert all(check.finding is Finding.FOUND for check in checks)
        setting.cycle(Wanted.READY, times=15)
        setting.cycle(Wanted.TORQUE, 5.0, times=10)
        assert setting.feedback.enabled[0]
        assert setting.feedback.fault[0] == 0
        # -1 x 10 x 2 N m x per mille
        assert setting.drives[0].torque() == -250
        assert setting.feedback.torque[0] == pytest.approx(5.0)


def test_the_trial_is_made_twice_at_a_torque_and_is_silent_for_its_time():
    drive = StandardsDrive(NODE)
    with Setting(drive) as setting:
        setting.arm()
        commands = [
            (t, *struct.unpack("<Hh", m.data))
            for t, m in setting.far.heard
            if m.arbitration_id == 0x200 + NODE
        ]
        # -1 x 10 x 2 N m x per mille: a twentieth of 30 N m
        loads = [target for _, word, target in commands if word == 0x0F and target]
        assert set(loads) == {75, -75}
        watchdog = setting.hosts[0].axis.watchdog
        assert len(drive.left) == len(DIRECTIONS)
        for (left, state), sign in zip(drive.left, (-75, 75), strict=True):
            last = max(t for t, _, target in commands if target == sign)
            after = [t for t, _ in setting.far.heard if t > last]
            assert after[0] - last >= SILENCE * watchdog - PERIOD
            assert state == DISABLED
            assert 0.9 * watchdog <= left - last <= 1.2 * watchdog
        assert drive.network == OPERATIONAL  # restarted
        setting.cycle(Wanted.READY)
        assert drive.value(0x6071) == 0


def test_drives_are_tried_together_and_one_bad_one_is_found():
    good = [StandardsDrive(node) for node in (2, 3, 4)]
    with Setting(*good) as setting:
        begin = setting.clock.now()
        setting.arm()
        assert setting.clock.now() - begin < 0.9
        assert [len(drive.enabled_at) for drive in good] == [2, 2, 2]
        setting.cycle(Wanted.READY, times=15)
        assert setting.feedback.enabled.all()
    good = [StandardsDrive(node) for node in (2, 3)]
    with Setting(*good, StandardsDrive(7, ignores_watchdog=True)) as setting:
        with pytest.raises(ArmError, match="axis 7"):
            setting.arm()
        assert not any(drive.state == ENABLED for drive in setting.drives)


def test_a_drive_that_cannot_be_seen_to_leave_needs_a_person():
    """Its node stops when the host is lost: it answers no SDO then."""
    for confirmed in (False, True):
        drive = StandardsDrive(NODE, values={(0x1029, 1): 2}, fixed=[(0x1029, 1)])
        with Setting(drive, watchdog_confirmed=confirmed) as setting:
            if not confirmed:
                with pytest.raises(ArmError, match="no answer to SDO"):
                    setting.arm()
                continue
            check = found(setting.arm())["watchdog test"]
            assert check.finding is Finding.UNKNOWN
            setting.cycle(Wanted.READY, times=15)
            assert setting.feedback.enabled[0]


def test_a_node_that_stops_and_stays_enabled_is_found_out_when_it_is_woken():
    drive = StandardsDrive(
        NODE,
        values={(0x1029, 1): 2, (0x6007, 0): 0},
        fixed=[(0x1029, 1), 0x6007],
    )
    setting = Setting(drive, watchdog_confirmed=True)
    with setting, pytest.raises(ArmError, match="once its node was pre-operational"):
        setting.arm()


def test_a_drive_whose_answers_belie_its_reports_is_refused():
    """It ignores its watchdog, and reports by SDO that it was switched off."""

    class Liar(StandardsDrive):
        def _serve(self, data, now):
            answer = super()._serve(data, now)
            if data[0] >> 5 == 2 and data[1:3] == b"\x41\x60" and self.state == ENABLED:
                answer = answer[:4] + struct.pack("<I", DISABLED)
            return answer

    liar = Liar(NODE, ignores_watchdog=True)
    with Setting(liar) as setting, pytest.raises(ArmError, match="has left operation enabled"):
        setting.arm()
    assert liar.state == DISABLED


def test_the_error_of_a_drive_that_cannot_be_enabled_lists_missing_bits():
    drive = StandardsDrive(NODE)
    drive.has_supply = False
    with Setting(drive) as setting, pytest.raises(DriveError, match="operation enabled") as caught:
        setting.arm()
    assert "voltage enabled (bit 4)" in str(caught.value)
    assert "STO" in caught.value.cure


@pytest.mark.parametrize("over", [-0.05, 0.05])
def test_a_drive_has_its_time_to_be_enabled_and_no_more(over):
    drive = StandardsDrive(NODE)
    drive.has_supply = False
    with Setting(drive) as setting:
        setting.hosts[0].prepare(setting.bus)
        begin = setting.clock.now()

        def supply(now):
            drive.has_supply = now >= begin + 2.0 + over

        setting.far.before = supply
        if over < 0.0:
            Cia402Drive.prove(setting.hosts, setting.bus)
            assert drive.left
        else:
            with pytest.raises(DriveError, match="operation enabled within"):
                Cia402Drive.prove(setting.hosts, setting.bus)


@pytest.mark.parametrize("falls", [False, True])
def test_the_silence_begins_once_a_drive_has_been_enabled_for_a_while(falls):
    """If a drive switches off meanwhile, without commutation, the wait restarts."""
    drive = StandardsDrive(NODE)
    with Setting(drive) as setting:

        def fall(now):
            first = drive.enabled_at[:1] if drive.state == ENABLED else []
            if len(drive.enabled_at) == 1 and first and now - first[0] >= 0.04:
                drive._enter(DISABLED, now)

        setting.far.before = fall if falls else setting.far.before
        setting.arm()
        assert len(drive.enabled_at) == 2 + falls
        loaded = [
            t
            for t, m in setting.far.heard
            if m.arbitration_id == 0x200 + NODE and struct.unpack("<Hh", m.data)[1]
        ]
        steady = loaded[0] - drive.enabled_at[falls]
        assert STEADY[0] - 2 * PERIOD <= steady <= STEADY[0] + 3 * PERIOD
        steady = min(t for t in loaded if t > drive.enabled_at[-1]) - drive.enabled_at[-1]
        assert STEADY[1] - 2 * PERIOD <= steady <= STEADY[1] + 3 * PERIOD


def test_a_drive_with_a_fault_is_not_tried_and_not_enabled():
    drive = StandardsDrive(NODE)
    with Setting(drive) as setting:
        drive.state = FAULT
        setting.arm()
        setting.cycle(Wanted.READY, times=10)
        assert setting.feedback.fault[0] == FaultCode.UNNAMED
        drive.state = DISABLED  # it disappeared, or another tool cleared it
        setting.cycle(Wanted.READY, times=10)
        assert setting.feedback.fault[0] == FaultCode.UNPROVED
        assert drive.state == DISABLED
        # cleared before it is prepared, it is tried like any other
        drive.state = FAULT
        setting.hosts[0].reset(setting.bus)
        assert drive.state == DISABLED
        setting.arm()
        setting.cycle(Wanted.READY, times=15)
        assert setting.feedback.enabled[0]


# -- reactions that remove torque ----------------------------------------------------------------


def reacts(option, fixed, more=(), **quirks):
    """A drive with one reaction to a lost host: it stands there, or it alone can be written."""
    return StandardsDrive(
        NODE,
        values={(0x6007, 0): option if fixed else 0},
        takes={(0x6007, 0): (option,)},
        fixed=[*([0x6007] if fixed else []), *more],
        **quirks,
    )


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("option", "code"), [(3, 0x605A), (1, 0x605E)])
def test_the_option_code_of_a_reaction_is_set_to_disable(option, code, fixed):
    drive = reacts(option, fixed)
    with Setting(drive) as setting:
        setting.arm()
        assert (drive.value(0x6007), drive.value(code)) == (option, 0)
        assert drive.state == DISABLED


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("option", "code"), [(3, 0x605A), (1, 0x605E)])
@pytest.mark.parametrize("lacks", ["missing", "fixed"])
def test_a_reaction_whose_option_code_may_hold_torque_is_refused(option, code, lacks, fixed):
    lacking = {"without": [code]} if lacks == "missing" else {"more": [code]}
    drive = reacts(option, fixed, **lacking)
    with Setting(drive) as setting, pytest.raises(ArmError, match="removes torque") as caught:
        setting.arm()
    assert "0x6007" in caught.value.where


@pytest.mark.parametrize("fixed", [True, False])
def test_a_quick_stop_that_holds_torque_is_rejected_for_every_option_code(fixed):
    drive = reacts(3, fixed, quick_stop_holds=True)
    with Setting(drive) as setting, pytest.raises(ArmError, match="quick stop active") as caught:
        setting.arm()
    assert "0x605A" in caught.value.cure


def test_without_an_abort_option_a_person_must_have_seen_it():
    for confirmed in (False, True):
        # its reaction is built in: power off
        drive = StandardsDrive(NODE, values={(0x6007, 0): 2}, aborts={(0x6007, 0): 0x06020000})
        with Setting(drive, watchdog_confirmed=confirmed) as setting:
            if confirmed:
                check = found(setting.arm())["watchdog in force"]
                assert check.finding is Finding.UNKNOWN
                assert "confirmed" in check.came
            else:
                with pytest.raises(ArmError, match="0x6007"):
                    setting.arm()


# -- following -----------------------------------------------------------------------------------


def test_a_drive_that_clears_bit_12_is_noticed_in_the_cycle():
    with Setting(StandardsDrive(NODE)).run() as setting:
        setting.drives[0].follows = False
        setting.cycle(Wanted.TORQUE, 5.0)
        assert setting.feedback.fault[0] == FaultCode.NOT_FOLLOWING
        assert not setting.feedback.enabled[0]
        setting.drives[0].follows = True
        setting.cycle(Wanted.TORQUE, 5.0, times=3)
        assert setting.feedback.fault[0] == FaultCode.NOT_FOLLOWING  # until the next `prepare`
        assert setting.drives[0].state == DISABLED


def test_another_mode_is_noticed_within_half_a_watchdog():
    with Setting(StandardsDrive(NODE)).run() as setting:
        drive = setting.drives[0]
        drive.table[0x6060, 0][2] = 9
        cycles = 0
        while not setting.feedback.fault[0]:
            setting.cycle(Wanted.TORQUE, 5.0)
            cycles += 1
            assert cycles < 20
        assert setting.feedback.fault[0] == FaultCode.OTHER_MODE
        assert cycles * PERIOD <= 0.5 * setting.hosts[0].axis.watchdog + 2 * PERIOD


@pytest.mark.parametrize("answer", ["none", "abort"])
@pytest.mark.parametrize("over", [False, True])
def test_a_drive_that_no_longer_reports_its_mode_is_detected(answer, over):
    with Setting(StandardsDrive(NODE)).run() as setting:
        drive, host = setting.drives[0], setting.hosts[0]
        asked, inner = [], drive.receive

        def receive(message, now):
            answers = inner(message, now)
            if message.arbitration_id != 0x600 + NODE:
                return answers
            asked.append(now)
            if not over and len(asked) > UNANSWERED:
                drive.aborts.clear()
                return inner(message, now)
            return answers if answer == "abort" else []

        if answer == "abort":
            drive.aborts[0x6061, 0] = 0x08000022
        drive.receive = receive
        often = round(0.5 * host.axis.watchdog / PERIOD)
        setting.cycle(Wanted.TORQUE, 5.0, times=(UNANSWERED + 3) * often)
        assert len(asked) > UNANSWERED
        assert (setting.feedback.fault[0] == FaultCode.MUTE) == over
        assert setting.feedback.enabled[0] != over


def test_the_mode_is_part_of_the_report_where_there_is_room():
    with Setting(StandardsDrive(NODE, without=[0x6077])).run() as setting:
        drive = setting.drives[0]
        assert drive.value(0x1A00, 3) == 0x60610008
        assert math.isnan(setting.feedback.torque[0])
        asked = [m for _, m in setting.far.heard[-40:] if m.arbitration_id == 0x600 + NODE]
        assert not asked
        drive.table[0x6060, 0][2] = 9
        setting.cycle(Wanted.TORQUE, 5.0)
        assert setting.feedback.fault[0] == FaultCode.OTHER_MODE


def test_a_drive_without_a_mode_display_gets_no_query_for_it():
    with Setting(StandardsDrive(NODE, without=[0x6061])).run() as setting:
        assert not [m for _, m in setting.far.heard[-40:] if m.arbitration_id == 0x600 + NODE]


@pytest.mark.parametrize("wanted", [Wanted.READY, Wanted.TORQUE])
@pytest.mark.parametrize(("share", "noticed"), [(0.9, False), (1.1, True)])
def test_a_drive_that_pushes_without_a_command_is_detected_soon(wanted, share, noticed):
    with Setting(StandardsDrive(NODE)).run(0.0) as setting:
        # 30 N m at the joint are 1500 per mille
        setting.drives[0].pushes = round(share * MISFIT * 1500)
        setting.cycle(wanted, 0.0, times=math.ceil(LAG / PERIOD) + 1)
        assert (setting.feedback.fault[0] == FaultCode.OTHER_TORQUE) == noticed
        assert setting.feedback.enabled[0] != noticed


def test_a_commanded_torque_that_never_acts_is_detected():
    with Setting(StandardsDrive(NODE)).run(20.0) as setting:
        setting.drives[0].follows, setting.drives[0].admits = False, False
        setting.cycle(Wanted.TORQUE, 20.0, times=20)
        assert setting.feedback.fault[0] == FaultCode.OTHER_TORQUE


def test_a_torque_object_that_is_always_zero_is_ignored():
    drive = StandardsDrive(NODE)
    drive.shows = False
    with Setting(drive).run(20.0) as setting:
        setting.cycle(Wanted.TORQUE, 20.0, times=50)
        assert not setting.feedback.fault[0]


def judged(*torques, status=FOLLOWS, commands=(), margin=100):
    following = Following(margin, 0.004, follows=True)
    for command in commands:
        following.command(command)
    return [following.judge(status, torque) for torque in torques]


def test_the_measured_torque_may_be_late_by_the_lag_and_no_later():
    cycles = math.ceil(LAG / 0.004)
    assert not any(judged(*[0, 101] + [100] * 50))
    off = [*[0] * (cycles - 1), FaultCode.OTHER_TORQUE]
    assert judged(*[101] * cycles) == off
    assert judged(*[-101] * cycles) == off
    assert not any(judged(*[101] * (cycles - 1), 100, *[101] * (cycles - 1)))
    # the commands of the last cycles all count
    following = Following(100, 0.004, follows=True)
    for target in (1000, *[0] * cycles):
        following.command(target)
    assert not any(following.judge(FOLLOWS, 1100) for _ in range(20))
    following.command(0)
    assert any(following.judge(FOLLOWS, 1100) for _ in range(cycles))


def test_a_limit_of_the_drive_may_take_torque_away_and_not_add_to_it():
    asked = [1000] * 10
    status = FOLLOWS | LIMITED
    assert any(judged(*[300] * 10, commands=asked))
    assert not any(judged(*[300] * 10, commands=asked, status=status))
    assert not any(judged(*[-100] * 10, commands=asked, status=status))
    assert any(judged(*[-101] * 10, commands=asked, status=status))
    assert any(judged(*[1101] * 10, commands=asked, status=status))


# -- another host ------------------------------------------------------------------------------

INTRUSIONS = {
    "mode": lambda tool: tool.write(NODE, 0x6060, "b", 9),
    "limit": lambda tool: tool.write(NODE, 0x6072, "H", 0),
    "target": lambda tool: tool.write(NODE, 0x6071, "h", 1500),
    "stop": lambda tool: tool.manage(2, NODE),
    "all": lambda tool: tool.manage(128, 0),
    "sync": lambda tool: tool.sync(),
    "command": lambda tool: tool.command(NODE, 0x0F, -250),
    "heartbeat": lambda tool: tool.heartbeat(0x7F),
}
HARMLESS = {
    "read": lambda tool: tool.read(NODE, 0x6064),
    "read mode": lambda tool: tool.read(NODE, 0x6061),
    "write to another": lambda tool: tool.write(NODE + 1, 0x6060, "b", 9),
    "manage another": lambda tool: tool.manage(1, NODE + 1),
    "command another": lambda tool: tool.command(NODE + 1, 0x0F, 0),
}


@pytest.mark.parametrize("act", [*INTRUSIONS, *HARMLESS])
def test_one_frame_of_a_makers_tool_is_foreign_and_questions_are_not(act):
    with Setting(StandardsDrive(NODE)).run() as setting:
        tool = MakersTool(setting.channel)
        (INTRUSIONS | HARMLESS)[act](tool)
        setting.cycle(Wanted.TORQUE, 5.0)
        tool.close()
        assert bool(setting.exchange.foreign) == (act in INTRUSIONS)


def test_somebody_else_during_the_trial_is_refused():
    with Setting(StandardsDrive(NODE)) as setting:
        tool = MakersTool(setting.channel)

        def intrude(now):
            if setting.drives[0].enabled_at:
                tool.write(NODE, 0x6072, "H", 3000)

        setting.far.before = intrude
        with pytest.raises(ArmError, match="no frame of another controller"):
            setting.arm()
        setting.far.before = lambda now: None
        tool.close()


def test_echoes_of_an_adapter_are_detected_and_not_foreign():
    with Setting(StandardsDrive(NODE)) as setting:
        setting.bus.bus.receive_own_messages = True
        setting.run()
        assert setting.bus.echoes
        assert setting.exchange.foreign == 0
        tool = MakersTool(setting.channel)
        tool.command(NODE, 0x0F, 999)
        setting.cycle(Wanted.TORQUE, 5.0)
        tool.close()
        assert setting.exchange.foreign == 1


# -- drives that are as they are -----------------------------------------------------------------

RIGHT = {
    (0x1600, 0): 2,
    (0x1600, 1): 0x60400010,
    (0x1600, 2): 0x60710010,
    (0x1A00, 0): 3,
    (0x1A00, 1): 0x60410010,
    (0x1A00, 2): 0x60640020,
    (0x1A00, 3): 0x60770010,
    (0x1800, 2): 1,
}


def test_a_mapping_that_cannot_be_written_but_is_right_will_do():
    drive = StandardsDrive(NODE, values=RIGHT, fixed=[0x1600, 0x1A00, (0x1800, 2), (0x1400, 2)])
    with Setting(drive).run():
        assert not [entry for entry in drive.written if entry[0] in (0x1600, 0x1A00)]
    wrong = StandardsDrive(NODE, values={**RIGHT, (0x1A00, 2): 0x606C0020}, fixed=[0x1A00])
    with Setting(wrong) as setting, pytest.raises(DriveError, match="0x1A00"):
        setting.arm()


@pytest.mark.parametrize("code", [0x06010000, 0x08000022, 0x06040043])
def test_any_abort_on_an_optional_object_is_no_obstacle(code):
    optional = [(0x1018, 1), (0x6502, 0), (0x608F, 1), (0x607E, 0), (0x6076, 0), (0x1029, 1)]
    drive = StandardsDrive(NODE, aborts=dict.fromkeys(optional, code))
    with Setting(drive).run() as setting:
        checks = found(setting.hosts[0].inspect(setting.bus))
        assert checks["cyclic synchronous torque"].finding is Finding.UNKNOWN
        assert checks["rated torque"].finding is Finding.UNKNOWN


def test_a_target_torque_by_process_data_only_will_do():
    drive = StandardsDrive(NODE, aborts={(0x6071, 0): 0x06010000})
    with Setting(drive).run():
        assert drive.torque() == -250


@pytest.mark.parametrize("bit", [4, 9, 12])
def test_a_bit_that_a_drive_never_sets_is_reported_and_not_required(bit):
    with Setting(StandardsDrive(NODE, never_sets=1 << bit)) as setting:
        checks = setting.arm()
        (said,) = [check for check in checks if f"(bit {bit})" in check.what]
        assert said.finding is Finding.UNKNOWN
        setting.cycle(Wanted.READY, times=15)
        assert setting.feedback.enabled[0]
    # one that it did set stays asked for
    with Setting(StandardsDrive(NODE)).run() as setting:
        setting.drives[0].never_sets = 1 << bit
        setting.cycle(Wanted.TORQUE, 5.0)
        assert not setting.feedback.enabled[0]


@pytest.mark.parametrize("start", [-100, 4000, 20000])
def test_an_encoder_that_starts_again_is_counted_on(start):
    drive = StandardsDrive(NODE, modulus=65536)
    limits = (-3.0, 3.5)
    with Setting(drive, modulo=65536, position_limits=limits, direction=1) as setting:
        drive.counts = start
        setting.arm()
        for step in range(20):
            drive.counts = start + 300 * step
            setting.cycle(Wanted.READY)
            expected = 0.25 + drive.counts / 40960 * math.tau
            assert setting.feedback.position[0] == pytest.approx(expected, abs=1e-9)
        assert setting.feedback.invalid[0] == 0
        drive.counts += 65536 // 4 + 1  # no joint moves so far in a cycle
        setting.cycle(Wanted.READY)
        assert setting.feedback.invalid[0] == 1


def test_a_modulo_encoder_that_the_rig_file_does_not_know_would_leap():
    drive = StandardsDrive(NODE, modulus=65536)
    with Setting(drive, direction=1) as setting:
        drive.counts = -1
        setting.arm()
        setting.cycle(Wanted.READY)
        assert setting.feedback.position[0] == pytest.approx(0.25 + 65535 / 40960 * math.tau)


@pytest.mark.parametrize(
    ("fixed", "inhibit", "armed"),
    [(False, 300, True), (True, 20, True), (True, 21, False), (True, 300, False)],
)
def test_an_inhibit_time_is_cleared_or_refused(fixed, inhibit, armed):
    """Tenths of a millisecond; of 4 ms half may be lost."""
    drive = StandardsDrive(
        NODE, values={(0x1800, 3): inhibit}, fixed=[(0x1800, 3)] if fixed else []
    )
    with Setting(drive) as setting:
        if not armed:
            with pytest.raises(ArmError, match="inhibit time"):
                setting.arm()
            return
        setting.arm()
        assert drive.value(0x1800, 3) == (inhibit if fixed else 0)
        before = int(setting.feedback.count[0])
        setting.cycle(Wanted.READY, times=20)
        assert setting.feedback.count[0] - before == 20


ONLY_GUARDING = [(0x1400, 5), 0x1016]


def test_life_guarding_is_a_watchdog():
    drive = StandardsDrive(NODE, without=ONLY_GUARDING)
    with Setting(drive, watchdog=0.1) as setting:
        checks = setting.arm()
        assert "life guarding" in found(checks)["watchdog in force"].came
        assert drive.value(0x100C) * drive.value(0x100D) == 100
        setting.cycle(Wanted.READY, times=15)
        setting.cycle(Wanted.TORQUE, 5.0, times=100)
        assert setting.feedback.enabled[0]
        drive.left.clear()
        begin = setting.clock.now()
        setting.clock.sleep_until(begin + 0.05)
        assert drive.state == ENABLED
        setting.clock.sleep_until(begin + 0.15)
        assert drive.state == DISABLED
        # the drive's answers to remote frames are no faults
        assert setting.feedback.fault[0] == 0
    deaf = StandardsDrive(NODE, without=ONLY_GUARDING, ignores_watchdog=True)
    with Setting(deaf) as setting, pytest.raises(ArmError, match="has left operation enabled"):
        setting.arm()
    none = StandardsDrive(NODE, without=[*ONLY_GUARDING, 0x100C])
    with Setting(none) as setting, pytest.raises(ArmError, match="life guarding"):
        setting.arm()


def test_torque_in_counts_needs_no_rated_torque():
    drive = StandardsDrive(NODE, without=[0x6072, 0x6076])
    unit = {"torque_unit": "count", "torque_count": 2.5e-3, "rated_torque": 0.0}
    with Setting(drive, **unit) as setting:
        checks = found(setting.arm())
        assert checks["torque limit in the drive"].finding is Finding.UNKNOWN
        assert checks["torque of one count of 0x6071"].came == "not reported"
        setting.cycle(Wanted.READY, times=15)
        setting.cycle(Wanted.TORQUE, 5.0, times=15)
        assert drive.torque() == -200  # 5 N m / 10 / 2.5 mN m
        assert setting.feedback.torque[0] == pytest.approx(5.0)


def test_a_drive_without_a_torque_limit_is_reported():
    with Setting(StandardsDrive(NODE, without=[0x6072])) as setting:
        assert found(setting.arm())["torque limit in the drive"].finding is Finding.UNKNOWN
    setting = Setting(StandardsDrive(NODE, without=[0x6072]), torque_unit="maximum")
    with setting, pytest.raises(ArmError, match="0x6072"):
        setting.arm()


def test_a_field_gives_the_unit_of_the_rated_torque():
    drive = StandardsDrive(NODE, values={(0x6076, 0): 2_000_000})
    with Setting(drive) as setting, pytest.raises(UnitError, match="rated torque") as caught:
        setting.arm()
    assert "rated_torque_unit = 1e-06" in caught.value.cure
    with Setting(drive, rated_torque_unit=1e-6).run():
        assert drive.torque() == -250


def test_a_gear_in_the_position_factor_counts():
    extra = {(0x6093, 1): 4, (0x6093, 2): 1}
    drive = StandardsDrive(NODE, values=extra)
    with Setting(drive) as setting, pytest.raises(UnitError, match="0x6093") as caught:
        setting.arm()
    assert caught.value.came == "1024"
    with Setting(drive, counts=1024) as setting:
        setting.arm()
