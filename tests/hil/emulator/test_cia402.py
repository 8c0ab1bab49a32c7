"""The emulated CiA 402 drive, spoken to with frames written out by hand."""

import math
import struct

import canopen
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.emulator import DriveSettings, EmulatedCia402
from hil.emulator._cia402_machine import PowerState, after
from tests.hil.emulator._rigs import Station, axis, frame


def station(settings=None, **changes):
    return Station(EmulatedCia402(axis(**changes), settings))


def test_it_boots_once_and_is_pre_operational():
    drive = EmulatedCia402(axis())
    assert drive.torque(9.0) == 0.0
    assert drive.network_state == 0
    ((_, boot),) = drive.poll(10.0)
    assert (boot.arbitration_id, bytes(boot.data)) == (0x705, b"\x00")
    assert drive.network_state == 127
    assert drive.state is PowerState.SWITCH_ON_DISABLED
    assert drive.poll(11.0) == []


def test_objects_agree_with_the_rig_file():
    host = station()
    assert host.read(0x1000) & 0xFFFF == 402
    assert host.read(0x1018, 4) == 5
    assert host.read(0x6076) == 4000  # mN m
    assert host.read(0x6072) == 3000
    assert (host.read(0x608F, 1), host.read(0x608F, 2)) == (4096, 1)
    assert host.read(0x6502) == 1 << 9
    assert host.read(0x6041) & 0x4F == 0x40
    assert host.read(0x5555) == -0x06020000  # no such object
    assert host.write(0x6076, 0, 1, 4) == 0x06010002  # read only
    assert host.write(0x6060, 0, 8, 1) == 0x06090030  # no such mode
    assert host.write(0x6060, 0, 10, 4) == 0x06070010  # length


def test_a_mapping_changes_only_while_it_is_out_of_use():
    host = station()
    busy = 0x08000022
    assert host.write(0x1600, 0, 0, 1) == busy
    assert host.write(0x1400, 1, 0x80000205, 4) == 0
    assert host.write(0x1600, 1, 0x60400010, 4) == busy  # entries while their number is not zero
    assert host.write(0x1600, 0, 0, 1) == 0
    assert host.write(0x1600, 1, 0x60400020, 4) == 0x06040041  # 0x6040 has 16 bits
    assert host.write(0x1600, 1, 0x10000020, 4) == 0x06040041  # not for process data
    for k, entry in enumerate((0x60400010, 0x60640020, 0x606C0020), 1):
        assert host.write(0x1600, k, entry, 4) == 0
    assert host.write(0x1600, 0, 3, 1) == 0x06040042  # 80 bits


def test_canopen_itself_can_map_it():
    drive = EmulatedCia402(axis())
    Station(drive)
    now = 20.0

    class Wire(canopen.Network):
        def send_message(self, can_id, data, remote=False):
            for _, answer in drive.receive(frame(can_id, bytes(data)), now):
                self.notify(answer.arbitration_id, bytearray(answer.data), now)

    remote = canopen.RemoteNode(5, drive._objects.server.object_dictionary)
    Wire().add_node(remote)
    remote.rpdo.read()
    remote.rpdo[1].clear()
    remote.rpdo[1].add_variable(0x6040)
    remote.rpdo[1].add_variable(0x6071)
    remote.rpdo[1].trans_type = 255
    remote.rpdo[1].enabled = True
    remote.rpdo[1].save()
    assert remote.sdo["identity"][4].raw == 5
    assert remote.sdo[0x1008].raw == "emulated torque drive"  # segmented
    drive.receive(frame(0x000, b"\x01\x05"), now)
    drive.receive(frame(0x205, struct.pack("<Hh", 6, -77)), now)
    assert drive.state is PowerState.READY
    assert remote.sdo[0x6071].raw == -77


def test_torque_passes_gear_and_direction():
    host = station().set_up().enable(500)  # half of 4 N m, gear 2, turned round
    assert host.drive.torque(host.now) == pytest.approx(-4.0)
    host.command(0x0F, -250)
    assert host.drive.torque(host.now) == pytest.approx(2.0)
    assert host.report()[2] == -250


def test_torque_of_maximum_torque():
    host = station(torque_unit="maximum").set_up().enable(500)
    assert host.drive.torque(host.now) == pytest.approx(-0.5 * 3.0 * 4.0 * 2.0)
    assert host.write(0x6072, 0, 1500, 2) == 0
    assert host.drive.torque(host.now) == pytest.approx(-0.5 * 1.5 * 4.0 * 2.0)


@given(st.integers(-32768, 32767), st.integers(0, 65535))
def test_no_torque_beyond_the_limit_or_the_motor(per_mille, limit):
    host = station().set_up()
    host.write(0x6072, 0, limit, 2)
    host.enable(per_mille)
    size = abs(host.drive.torque(host.now))
    assert size <= min(limit, 3000) * 1e-3 * 8.0 + 1e-9
    assert abs(host.report()[2]) == min(abs(per_mille), limit, 3000)


@pytest.mark.parametrize(
    ("limit", "told", "held"), [("applied", 100, 100), ("ignored", 3000, 3000)]
)
def test_a_limit_that_is_ignored_can_be_read(limit, told, held):
    host = station(DriveSettings(limit=limit)).set_up()
    assert host.write(0x6072, 0, 100, 2) == 0
    host.enable(3000)
    assert (host.read(0x6072), host.report()[2]) == (told, held)


def test_a_limit_that_is_pretended_cannot():
    host = station(DriveSettings(limit="pretended")).set_up()
    host.write(0x6072, 0, 100, 2)
    host.enable(3000)
    assert (host.read(0x6072), host.report()[2]) == (100, 3000)


def test_counts_are_those_of_the_motor():
    host = station().set_up()
    turn = math.tau / 4096.0
    for joint in (0.25, 0.25 + 0.6 * turn / 2.0, -3.7, 40.0):
        host.drive.sense(joint, 0.0)
        counts = host.report()[1]
        assert abs(counts * turn - -2.0 * (joint - 0.25)) <= 0.5 * turn + 1e-12
    host.drive.sense(0.25 - (2**31 + 10) * turn / 2.0, 0.0)
    assert host.report()[1] == -(2**31) + 10  # 32 bits wrap


@pytest.mark.parametrize("reaction", [1, 2, 3])
def test_commands_that_cease_end_the_torque(reaction):
    host = station().set_up(watchdog=80, reaction=reaction).enable(500)
    host.command(0x0F, 500, after=0.03)
    last = host.now
    assert host.drive.torque_until == pytest.approx(last + 0.08)
    assert host.drive.torque(last + 0.0799) != 0.0
    assert host.drive.torque(last + 0.0801) == 0.0  # before the first poll
    host.wait(0.2)
    assert host.drive.torque(host.now) == 0.0
    assert not host.drive.enabled
    assert host.emergencies() == [0x8250]
    assert host.drive.network_state == 127
    wanted = PowerState.FAULT if reaction == 1 else PowerState.SWITCH_ON_DISABLED
    assert host.drive.state is wanted
    host.send(0x000, b"\x01\x05")
    host.command(0x0F, 500)
    assert host.drive.torque(host.now) == 0.0  # commands alone do not bring it back


def test_a_watchdog_without_reaction_ends_nothing():
    host = station().set_up(reaction=0).enable(500)
    host.wait(1.0)
    assert host.drive.torque(host.now) != 0.0


def test_a_heartbeat_that_ceases_ends_the_torque():
    host = station().set_up(watchdog=0).enable(500)
    assert host.write(0x1016, 1, 0x7F << 16 | 60, 4) == 0
    assert 0x77F in host.drive.heard
    host.wait(1.0)
    assert host.drive.enabled  # it is watched from its first frame on
    for _ in range(20):
        host.wait(0.05)
        host.send(0x77F, b"\x05")
    assert host.drive.enabled
    last = host.now
    host.wait(0.3)
    assert host.drive.state is PowerState.FAULT
    assert host.emergencies() == [0x8130]
    assert host.drive.last_command == last


@pytest.mark.parametrize(
    ("identifier", "data"),
    [
        (0x205, b""),
        (0x205, b"\x0f\x00\xf4"),
        (0x205, b"\x0f\x00\xf4\x01\x00"),
        (0x77F, b""),
        (0x77F, b"\x05\x05"),
        (0x77F, b"\x99"),
        (0x206, b"\x0f\x00\xf4\x01"),
    ],
)
def test_invalid_frames_feed_no_watchdog(identifier, data):
    host = station().set_up(watchdog=50).enable(500)
    host.write(0x1016, 1, 0x7F << 16 | 50, 4)
    host.send(0x77F, b"\x05")
    last = host.drive.last_command
    for _ in range(6):
        host.wait(0.01)
        host.send(identifier, data)
    assert host.drive.torque(host.now) == 0.0
    assert host.drive.last_command == last


def test_remote_and_extended_frames_are_not_commands():
    host = station().set_up()
    for changes in ({"is_remote_frame": True}, {"is_extended_id": True}, {"is_fd": True}):
        message = frame(0x205, struct.pack("<Hh", 6, 0))
        for name, value in changes.items():
            setattr(message, name, value)
        host.drive.receive(message, host.now)
    assert host.drive.state is PowerState.SWITCH_ON_DISABLED


def test_without_a_watchdog_there_are_no_objects_for_one():
    host = station(DriveSettings(watchdog=False))
    assert host.read(0x1016, 1) == -0x06020000
    assert host.read(0x1400, 5) == -0x06090011


def test_a_power_cycle_forgets_everything():
    settings = DriveSettings(after_power_cycle={0x6072: 900})
    host = station(settings).set_up().enable(500)
    host.write(0x6072, 0, 700, 2)
    host.drive.power_cycle(host.now)
    assert host.drive.torque(host.now) == 0.0
    assert host.command(0x0F, 500) == []
    (boot,) = host.wait(0.1)
    assert (boot.arbitration_id, bytes(boot.data)) == (0x705, b"\x00")
    assert host.read(0x6072) == 900  # it is another drive than before
    assert host.read(0x1400, 5) == 0
    assert host.read(0x6060) == 0
    assert host.read(0x6071) == 0
    for word in (0x06, 0x07, 0x0F):
        host.command(word, 500)
    assert not host.drive.enabled  # not operational
    host.send(0x000, b"\x01\x05")
    for word in (0x06, 0x07, 0x0F):
        host.command(word, 500)
    assert host.drive.torque(host.now) == 0.0  # nor in the mode, nor is there a torque mapped


def test_a_fault_of_the_drive():
    host = station().set_up(watchdog=0).enable(500)
    (said,) = [m for _, m in host.drive.fail(host.now, 0x4310)]
    assert struct.unpack_from("<HB", said.data) == (0x4310, 1)
    assert host.drive.torque(host.now) == 0.0
    assert host.report()[0] & 0x4F == 0x0F
    host.wait(0.02)
    assert host.report()[0] & 0x4F == 0x08
    assert host.read(0x603F) == 0x4310
    host.command(0x80)
    host.command(0x80)
    assert host.drive.state is PowerState.SWITCH_ON_DISABLED
    assert host.read(0x603F) == 0
    assert host.emergencies() == [0]


def test_a_quick_stop_ends_switched_off_or_stays():
    host = station().set_up(watchdog=0).enable(500)
    host.command(0x02)
    assert host.drive.state is PowerState.QUICK_STOP_ACTIVE
    assert host.drive.torque(host.now) == 0.0
    host.wait(0.05)
    assert host.drive.state is PowerState.SWITCH_ON_DISABLED
    host.write(0x605A, 0, 6, 2)
    host.enable(500)
    host.command(0x02)
    host.wait(1.0)
    assert host.drive.state is PowerState.QUICK_STOP_ACTIVE


def test_its_own_heartbeat():
    host = station().set_up(watchdog=0)
    host.write(0x1017, 0, 100, 2)
    beats = host.wait(1.05)
    assert [(m.arbitration_id, bytes(m.data)) for m in beats] == [(0x705, b"\x05")] * 10


def test_commands_at_sync_wait_for_it():
    host = station().set_up(watchdog=0)
    host.map_pdo(0x1400, 0x205, 1, (0x60400010, 0x60710010))
    host.command(0x06)
    assert host.drive.state is PowerState.SWITCH_ON_DISABLED
    host.send(0x080)
    assert host.drive.state is PowerState.READY


def test_every_third_sync_and_timed_reports():
    host = station().set_up(watchdog=0)
    host.map_pdo(0x1800, 0x185, 3, (0x60410010,))
    assert [len(host.send(0x080)) for _ in range(6)] in (
        [0, 0, 1] * 2,
        [0, 1, 0] * 2,
        [1, 0, 0] * 2,
    )
    host.map_pdo(0x1800, 0x185, 255, (0x60410010,))
    host.write(0x1800, 5, 20, 2)
    host.send(0x000, b"\x80\x05")
    host.send(0x000, b"\x01\x05")
    assert len(host.wait(0.205)) == 11


def test_what_is_set_up_counts_from_its_write_on():
    host = station().set_up(watchdog=80, reaction=1).enable(500)
    drive = host.drive
    assert drive.torque_until < math.inf
    assert host.write(0x6007, 0, 0, 2) == 0
    assert drive.torque_until == math.inf
    assert host.write(0x1016, 1, 0x7E << 16 | 60, 4) == 0
    assert 0x77E in drive.heard
    assert host.write(0x1005, 0, 0x90, 4) == 0
    assert 0x090 in drive.heard
    assert 0x080 not in drive.heard
    for k in range(2):
        host.map_pdo(0x1400 + k, 0x305 + k, 255, (0x60400010,))
        assert 0x305 + k in drive.heard
        assert host.write(0x1400 + k, 1, 0x80000305 + k, 4) == 0
        assert 0x305 + k not in drive.heard
    for k in range(2):
        host.map_pdo(0x1800 + k, 0x385 + k, 1, (0x60410010,))
        assert [report.arbitration_id for report in host.send(0x090)] == [0x385 + k]
        assert host.write(0x1800 + k, 1, 0x80000385 + k, 4) == 0
        assert host.send(0x090) == []


def test_stopped_nodes_do_not_answer():
    host = station().set_up(watchdog=0).enable(500)
    host.send(0x000, b"\x02\x00")
    assert host.drive.torque(host.now) == 0.0
    assert host.send(0x605, struct.pack("<BHBI", 0x40, 0x1000, 0, 0)) == []
    assert host.send(0x080) == []
    host.send(0x000, b"\x80\x06")  # to another node
    assert host.drive.network_state == 4
    host.send(0x000, b"\x80\x05")
    assert host.read(0x1000) & 0xFFFF == 402


@given(
    st.lists(st.tuples(st.sampled_from([0x605, 0x205, 0x000, 0x080, 0x77F]), st.binary(max_size=8)))
)
def test_garbage_neither_raises_nor_moves(frames):
    host = station().set_up(watchdog=0)
    enabled = False
    for identifier, data in frames:
        host.send(identifier, data, after=0.001)
        host.wait(0.001)
        enabled = enabled or host.drive.enabled
        assert math.isfinite(host.drive.torque(host.now))
        if not enabled:
            assert host.drive.torque(host.now) == 0.0


# -- its state machine, against the table of IEC 61800-7-201 -----------------------------------


S = PowerState
SHUTDOWN, SWITCH_ON, ENABLE, VOLTAGE_OFF, QUICK, RESET = 0x06, 0x07, 0x0F, 0x00, 0x02, 0x80

# state: next state for each word; other words do not change the state
TABLE = {
    S.NOT_READY: {},
    S.SWITCH_ON_DISABLED: {SHUTDOWN: S.READY},
    S.READY: {
        SWITCH_ON: S.SWITCHED_ON,
        ENABLE: S.SWITCHED_ON,
        VOLTAGE_OFF: S.SWITCH_ON_DISABLED,
        QUICK: S.SWITCH_ON_DISABLED,
    },
    S.SWITCHED_ON: {
        SHUTDOWN: S.READY,
        ENABLE: S.OPERATION_ENABLED,
        VOLTAGE_OFF: S.SWITCH_ON_DISABLED,
        QUICK: S.SWITCH_ON_DISABLED,
    },
    S.OPERATION_ENABLED: {
        SHUTDOWN: S.READY,
        SWITCH_ON: S.SWITCHED_ON,
        VOLTAGE_OFF: S.SWITCH_ON_DISABLED,
        QUICK: S.QUICK_STOP_ACTIVE,
    },
    S.QUICK_STOP_ACTIVE: {VOLTAGE_OFF: S.SWITCH_ON_DISABLED},
    S.FAULT_REACTION_ACTIVE: {},
    S.FAULT: {RESET: S.SWITCH_ON_DISABLED},
}


@pytest.mark.parametrize("state", list(PowerState))
@pytest.mark.parametrize("word", [SHUTDOWN, SWITCH_ON, ENABLE, VOLTAGE_OFF, QUICK, RESET])
@pytest.mark.parametrize("other_bits", [0x0000, 0xFF70])
def test_every_row_of_the_table(state, word, other_bits):
    assert after(state, word | other_bits, 0) is TABLE[state].get(word, state)


def test_a_fault_is_reset_by_a_rising_edge_only():
    assert after(S.FAULT, RESET, RESET) is S.FAULT
    assert after(S.FAULT, ENABLE, 0) is S.FAULT
    assert after(S.FAULT, RESET, ENABLE) is S.SWITCH_ON_DISABLED


def test_status_bits_tell_all_states_apart():
    assert len({int(state) & 0x6F for state in PowerState}) == len(PowerState)
