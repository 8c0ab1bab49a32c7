"""Units: both directions, signs, wrapping, and numbers out of the drive's range."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.drives._units import AxisScale, MitScale, Turns, limit_per_mille, signed
from hil.drives.mit_models import MIT_MODELS
from hil.emulator import EmulatedMit
from hil.errors import RigFileError, UnitError
from hil.rig import Axis

LIMITS = {"torque_limit": 8.0, "torque_rate_limit": 400.0, "speed_limit": 10.0}


def cia402(**fields: object) -> Axis:
    given = {"rated_torque": 4.0, "counts": 4096} | LIMITS | fields
    return Axis(name="wrist", drive="cia402", node=3, **given)  # type: ignore[arg-type]


def mit(**fields: object) -> Axis:
    given = {"model": "AK80-9"} | LIMITS | fields
    return Axis(name="wrist", drive="mit", node=3, **given)  # type: ignore[arg-type]


shafts = st.fixed_dictionaries(
    {
        "gear": st.floats(0.05, 200.0),
        "direction": st.sampled_from([1, -1]),
        "offset": st.floats(-10.0, 10.0),
    }
)
cia402_axes = st.builds(
    lambda shaft, rated, counts: cia402(rated_torque=rated, counts=counts, **shaft),
    shafts,
    st.floats(0.01, 100.0),
    st.integers(16, 1 << 20),
)
mit_axes = st.builds(
    lambda shaft, model: mit(model=model, **shaft), shafts, st.sampled_from([*MIT_MODELS])
)


# --- CiA 402 ------------------------------------------------------------------------------------


def test_per_mille_by_hand() -> None:
    scale = AxisScale(cia402(gear=10.0, direction=-1))
    assert scale.per_mille(40.0) == -1000  # 10 x 4 N m, backwards
    assert scale.per_mille(-1.0) == 25
    assert scale.torque(-1000) == 40.0
    assert scale.step == pytest.approx(0.04)
    assert scale.largest_torque == pytest.approx(1310.68)


def test_counts_by_hand() -> None:
    scale = AxisScale(cia402(gear=2.0, direction=-1, offset=0.5))
    assert scale.position(0) == 0.5
    assert scale.position(2048) == pytest.approx(0.5 - math.pi / 2)  # half a turn, a quarter here
    assert scale.counts(0.5 + math.pi) == -4096


def test_a_linear_axis_has_radians_per_metre() -> None:
    # 5 mm of travel per turn of the motor.
    scale = AxisScale(cia402(gear=math.tau / 0.005))
    assert scale.position(4096) == pytest.approx(0.005)
    assert scale.per_mille(4.0 * math.tau / 0.005) == 1000  # power: N m rad = N m


@given(cia402_axes, st.integers(-32767, 32767))
def test_per_mille_come_back(axis: Axis, per_mille: int) -> None:
    scale = AxisScale(axis)
    assert scale.per_mille(scale.torque(per_mille)) == per_mille


@given(cia402_axes, st.floats(-1.0, 1.0))
def test_torque_comes_back_to_half_a_step(axis: Axis, share: float) -> None:
    scale = AxisScale(axis)
    torque = share * scale.largest_torque
    back = scale.torque(scale.per_mille(torque))
    assert abs(back - torque) <= 0.5 * scale.step * (1.0 + 1e-9)


@given(cia402_axes, st.integers(-(2**31), 2**31 - 1))
def test_counts_come_back(axis: Axis, counts: int) -> None:
    scale = AxisScale(axis)
    position = scale.position(counts)
    # The offset may be larger than the position without it: a few counts are then beyond double.
    assert abs(scale.counts(position) - counts) <= 1e-15 * 1e2 * axis.gear * axis.counts


@given(cia402_axes, st.floats(-3.0, 3.0))
def test_position_comes_back_to_half_a_count(axis: Axis, position: float) -> None:
    scale = AxisScale(axis)
    turn = math.tau / (axis.gear * axis.counts)
    assert abs(scale.position(scale.counts(position)) - position) <= 0.5 * turn + 1e-12


@given(cia402_axes, st.integers(-30000, 30000), st.integers(-1000, 1000))
def test_power_of_motor_and_joint_are_the_same(axis: Axis, per_mille: int, counts: int) -> None:
    scale = AxisScale(axis)
    moved = scale.position(counts) - scale.position(0)
    motor = per_mille * 1e-3 * axis.rated_torque * counts * math.tau / axis.counts
    assert scale.torque(per_mille) * moved == pytest.approx(motor, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("torque", [math.nan, math.inf, -math.inf, 131.1, -131.1, 1e300])
def test_a_torque_that_no_16_bits_hold_is_refused(torque: float) -> None:
    scale = AxisScale(cia402())
    assert abs(scale.per_mille(131.068)) == 32767
    with pytest.raises(UnitError, match=r"axis `wrist`: expected a number within 131.068"):
        scale.per_mille(torque)


@pytest.mark.parametrize("position", [math.nan, math.inf, -math.inf])
def test_an_invalid_position_is_rejected(position: float) -> None:
    with pytest.raises(UnitError):
        AxisScale(cia402()).counts(position)


def test_per_mille_of_maximum_torque() -> None:
    # Accident 16: the same number means 0.25 of the torque on a drive that counts otherwise.
    rated = AxisScale(cia402(torque_unit="rated"))
    maximum = AxisScale(cia402(torque_unit="maximum"), rated_torque=4.0, maximum_torque=16.0)
    assert rated.per_mille(4.0) == 1000
    assert maximum.per_mille(4.0) == 250
    # Before the drive was asked: of the limit that will be set, 8 N m = 2000 per mille.
    assert limit_per_mille(cia402()) == 2000
    assert AxisScale(cia402(torque_unit="maximum")).per_mille(8.0) == 1000


def test_what_the_drive_reports_counts_before_the_file() -> None:
    axis = cia402(gear=2.0)
    assert AxisScale(axis, rated_torque=3.999).torque(1000) == pytest.approx(7.998)
    for reported in (0.0, math.nan, -1.0):
        with pytest.raises(UnitError, match="a torque above zero"):
            AxisScale(axis, rated_torque=reported)


@given(cia402_axes)
def test_the_limit_of_a_drive_is_not_below_that_of_the_axis(axis: Axis) -> None:
    limit = limit_per_mille(axis) * 1e-3 * axis.rated_torque * axis.gear
    step = 1e-3 * axis.rated_torque * axis.gear
    assert axis.torque_limit * (1 - 1e-9) <= limit < axis.torque_limit + step * (1 + 1e-9)


# --- MIT ----------------------------------------------------------------------------------------


def test_codes_by_hand() -> None:
    scale = MitScale(mit())
    assert [scale.torque_code(tau) for tau in (-18.0, 18.0)] == [0, 4095]
    assert [scale.position_code(q) for q in (-12.5, 12.5)] == [0, 65535]
    assert [scale.velocity_code(v) for v in (-50.0, 50.0)] == [0, 4095]
    assert (scale.torque(0), scale.torque(4095)) == (-18.0, pytest.approx(18.0))
    # No code means zero; the nearest is half a step off, some mN m.
    assert scale.torque_code(0.0) in (2047, 2048)
    assert abs(scale.torque(scale.torque_code(0.0))) == pytest.approx(18.0 / 4095)


def test_gear_direction_and_offset_of_an_mit_axis() -> None:
    scale = MitScale(mit(gear=3.0, direction=-1, offset=0.5))
    assert scale.largest_torque == 54.0
    assert scale.fastest == pytest.approx(50.0 / 3.0)
    assert scale.span == pytest.approx((0.5 - 12.5 / 3.0, 0.5 + 12.5 / 3.0))
    assert scale.torque_code(54.0) == 0
    assert scale.position(0) == pytest.approx(scale.span[1])
    assert scale.velocity(4095) == pytest.approx(-50.0 / 3.0)


@given(mit_axes, st.integers(0, 4095), st.integers(0, 65535))
def test_codes_come_back(axis: Axis, code: int, long_code: int) -> None:
    scale = MitScale(axis)
    assert scale.torque_code(scale.torque(code)) == code
    assert scale.velocity_code(scale.velocity(code)) == code
    assert scale.position_code(scale.position(long_code)) == long_code


@given(mit_axes, st.floats(-1.0, 1.0))
def test_values_come_back_to_half_a_step(axis: Axis, share: float) -> None:
    scale = MitScale(axis)
    torque = share * scale.largest_torque
    assert abs(scale.torque(scale.torque_code(torque)) - torque) <= 0.5001 * scale.step
    velocity = share * scale.fastest
    back = scale.velocity(scale.velocity_code(velocity))
    assert abs(back - velocity) <= 0.5001 * 2 * scale.fastest / 4095
    low, high = scale.span
    position = low + 0.5 * (1.0 + share) * (high - low)
    back = scale.position(scale.position_code(position))
    assert abs(back - position) <= 0.5001 * (high - low) / 65535


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e9, -1e9])
def test_what_is_beyond_the_range_is_refused_and_not_clipped(value: float) -> None:
    scale = MitScale(mit())
    for encode in (scale.torque_code, scale.position_code, scale.velocity_code):
        with pytest.raises(UnitError, match="the range of the drive"):
            encode(value)
    with pytest.raises(UnitError):
        scale.torque_code(18.01)


@given(
    mit_axes,
    st.floats(-0.99, 0.99),
    st.floats(-0.99, 0.99),
    st.floats(-0.99, 0.99),
)
def test_an_emulated_drive_understands_and_is_understood(
    axis: Axis, torque: float, position: float, velocity: float
) -> None:
    # The emulator was written independently, from the manufacturers' documents.
    import can

    scale, drive = MitScale(axis), EmulatedMit(axis)
    low, high = scale.span
    q = 0.5 * (low + high) + 0.5 * position * (high - low)
    drive.sense(q, velocity * scale.fastest)

    def sent(data: bytes) -> bytes:
        frame = can.Message(arbitration_id=axis.node, data=data, is_extended_id=False)
        ((_, answer),) = drive.receive(frame, 0.0)
        return bytes(answer.data)

    sent(b"\xff" * 7 + b"\xfc")
    code = scale.torque_code(torque * scale.largest_torque)
    answer = sent(bytes([0x7F, 0xFF, 0x7F, 0xF0, 0, 0, code >> 8, code & 0xFF]))
    assert drive.torque(0.0) == pytest.approx(torque * scale.largest_torque, abs=0.51 * scale.step)
    assert scale.torque((answer[4] & 15) << 8 | answer[5]) == pytest.approx(
        drive.torque(0.0), abs=1e-9 + 0.01 * scale.step
    )
    assert scale.position(answer[1] << 8 | answer[2]) == pytest.approx(q, abs=(high - low) / 65535)
    assert scale.velocity(answer[3] << 4 | answer[4] >> 4) == pytest.approx(
        velocity * scale.fastest, abs=2 * scale.fastest / 4095
    )


def test_an_axis_without_a_model_is_refused() -> None:
    with pytest.raises(RigFileError, match=r"axis `wrist`, `model`.*or `ranges`"):
        MitScale(mit(model="AK1000"))


# --- turns --------------------------------------------------------------------------------------


@given(
    st.sampled_from([(16, False), (32, True)]),
    st.lists(st.integers(-(2**15) + 1, 2**15 - 1), min_size=1, max_size=50),
    st.integers(0, 2**15 - 1),
)
def test_turns_add_up(kind: tuple[int, bool], steps: list[int], start: int) -> None:
    bits, has_sign = kind
    turns, true = Turns(bits, has_sign), start
    assert turns.take(start) == start
    for step in steps:
        true += step * (1 if bits == 16 else 2**16)
        assert turns.take(true & ((1 << bits) - 1)) == true


def test_a_counter_begins_as_it_is_read() -> None:
    assert Turns(32).take(0xFFFFFFFF) == -1
    assert Turns(32).take(-1) == -1
    assert Turns(16, has_sign=False).take(0xFFFF) == 0xFFFF
    turns = Turns(16, has_sign=False)
    assert [turns.take(code) for code in (65000, 200)] == [65000, 65736]
    turns.forget()
    assert turns.take(200) == 200


@given(st.integers(-(2**70), 2**70), st.integers(1, 64))
def test_signed_is_what_struct_reads(number: int, bits: int) -> None:
    value = signed(number, bits)
    assert -(1 << (bits - 1)) <= value < 1 << (bits - 1)
    assert (value - number) % (1 << bits) == 0
    if bits in (16, 32):
        code = {16: ("<H", "<h"), 32: ("<I", "<i")}[bits]
        raw = struct.pack(code[0], number & ((1 << bits) - 1))
        assert struct.unpack(code[1], raw)[0] == value
