"""A demanded pose whose quaternion is none: exported C and units refuse it by the same code."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from concur import robots
from concur.control import Output, Servo
from concur.control._attitudes import demanded_quaternions
from concur.control._export import ExportStatus
from concur.reduction import reduce
from tests.codegen._export import servo as exported
from tests.codegen._fmu_cases import FLYER, drawn, flyer, parts
from tests.codegen._units import Unit, with_compiler
from tests.control._floating_cases import CHECK_A_MOMENTUM, CHECK_A_Q0

FACTORS = {
    0.0: ExportStatus.NO_ATTITUDE,
    0.5: ExportStatus.NO_ATTITUDE,
    0.94: ExportStatus.NO_ATTITUDE,  # 0.94^2 is below 0.9
    0.96: ExportStatus.OK,
    1.0: ExportStatus.OK,
    -1.0: ExportStatus.OK,  # the same attitude
    1.04: ExportStatus.OK,
    1.06: ExportStatus.NO_ATTITUDE,
    2.0: ExportStatus.NO_ATTITUDE,
    np.nan: ExportStatus.BAD_INPUT,
    np.inf: ExportStatus.BAD_INPUT,
}
"""What becomes of a demand, by a factor of its quaternion."""


def demands() -> list[tuple[dict[str, np.ndarray], ExportStatus]]:
    """One state with all demands."""
    ((q, s, sample),) = drawn(flyer(), CHECK_A_Q0, 1)
    good = parts(q, s, sample) | {"momentum": CHECK_A_MOMENTUM}
    found = []
    for factor, code in FACTORS.items():
        pose = np.array(good["pose"])
        pose[3:] *= factor
        found.append((good | {"pose": pose}, code))
    return found


def check_unit(unit: Unit, nu: int) -> None:
    unit.start()
    for given, code in demands():
        unit.set(**given)
        assert unit.get("status") == [code], given["pose"]
        u = unit.get("u")
        if code == ExportStatus.OK:
            assert np.abs(u).max() > 0.0
        else:
            assert_array_equal(u, np.zeros(nu))


@pytest.mark.parametrize("kind", ["free-flyer", "free-flyer, limited"])
def test_exported_c_refuses_a_demanded_attitude_that_is_none(libraries, kind):
    library = libraries(kind)
    given = np.array([np.concatenate(list(parts.values())) for parts, _ in demands()])
    found, codes = library(given)
    assert list(codes) == [code for _, code in demands()]
    assert_array_equal(found[codes != ExportStatus.OK], 0.0)
    assert (np.abs(found[codes == ExportStatus.OK]).max(axis=1) > 0.0).all()


@pytest.mark.parametrize("version", FLYER)
def test_units_refuse_a_demanded_attitude_that_is_none(units, version):
    check_unit(units("servo", "flyer", version), 6)


def test_units_of_limited_servos_do_too(tmp_path):
    servo = exported("free-flyer, limited")
    with with_compiler():
        unit = Unit(servo.export(tmp_path, "fmu", name="limited"))
    check_unit(unit, servo.nu)
    unit.close()


def test_quaternions_are_found_in_poses_of_several_outputs():
    model = reduce(robots.free_flyer(), momentum=CHECK_A_MOMENTUM)
    hand, place = Output("hand", "tool", "SE3"), Output("place", "tool", "R3")
    turn, both = Output("turn", "tool", "SO3"), Output("both", "tool", "R3xSO3")
    for outputs, starts in (
        ([hand], (3,)),
        ([place, turn], (3,)),
        ([turn, place], (0,)),
        ([both], (3,)),
        ([place], ()),
    ):
        assert demanded_quaternions(Servo(model, outputs, 4.0, 2.8)) == starts
