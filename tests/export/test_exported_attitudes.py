"""Quaternions near and off unit norm: exported C and FMUs normalise or reject them alike."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.export._c import ExportStatus
from concur.outputs import ReferenceSample
from tests.control._floating_cases import CHECK_A_MOMENTUM, CHECK_A_Q0
from tests.export._fmu_cases import FLYER, drawn, flyer, parts
from tests.export._units import Unit

FACTORS = {
    0.0: ExportStatus.NO_ATTITUDE,
    0.5: ExportStatus.NO_ATTITUDE,
    0.9989: ExportStatus.NO_ATTITUDE,
    0.9991: ExportStatus.OK,
    1.0: ExportStatus.OK,
    -1.0: ExportStatus.OK,  # the same attitude
    1.0009: ExportStatus.OK,
    1.0011: ExportStatus.NO_ATTITUDE,
    2.0: ExportStatus.NO_ATTITUDE,
    np.nan: ExportStatus.BAD_INPUT,
    np.inf: ExportStatus.BAD_INPUT,
}
"""Status by a factor of a quaternion, of the configuration or of the reference pose."""


def demands() -> list[tuple[dict[str, np.ndarray], ExportStatus]]:
    """One state with all demands."""
    ((q, s, sample),) = drawn(flyer(), CHECK_A_Q0, 1)
    good = parts(q, s, sample) | {"momentum": CHECK_A_MOMENTUM}
    found = []
    for name in ("pose", "q"):
        for factor, code in FACTORS.items():
            part = np.array(good[name])
            part[3:7] *= factor
            found.append((good | {name: part}, code))
    return found


def normal() -> np.ndarray:
    """Torques for the state whose quaternions are of unit norm."""
    given, _ = demands()[list(FACTORS).index(1.0)]
    sample = ReferenceSample(given["pose"], given["twist"], given["acceleration"])
    return flyer().torque(given["q"], given["s"], sample)


def check_unit(unit: Unit, nu: int, torques: np.ndarray | None = None) -> None:
    unit.start()
    for given, code in demands():
        unit.set(**given)
        assert unit.get("status") == [code], given
        u = unit.get("u")
        if code == ExportStatus.OK and torques is not None:
            assert_allclose(u, torques, rtol=1e-11)
        elif code == ExportStatus.OK:
            assert np.abs(u).max() > 0.0
        else:
            assert_array_equal(u, np.zeros(nu))


@pytest.mark.parametrize("kind", ["free-flyer", "free-flyer, limited"])
def test_exported_c_normalises_quaternions_or_refuses_them(libraries, kind):
    library = libraries(kind)
    given = np.array([np.concatenate(list(parts.values())) for parts, _ in demands()])
    found, codes = library(given)
    assert list(codes) == [code for _, code in demands()]
    assert_array_equal(found[codes != ExportStatus.OK], 0.0)
    assert (np.abs(found[codes == ExportStatus.OK]).max(axis=1) > 0.0).all()
    if kind == "free-flyer":
        assert_allclose(found[codes == ExportStatus.OK][:, :6] - normal(), 0.0, atol=1e-11)


@pytest.mark.extended
@pytest.mark.parametrize("version", FLYER)
def test_units_normalise_quaternions_or_refuse_them(units, version):
    check_unit(units("servo", "flyer", version), 6, normal())
