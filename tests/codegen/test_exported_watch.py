"""Exported C and FMUs detect a singular configuration between two steps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.control import TickStatus
from concur.control._signals import input_signals
from tests.codegen._export import Library, servo
from tests.codegen._units import VERSIONS, WARNING, Unit, with_compiler

ELBOWS = [0.5, 0.1, -0.1, -0.3, 0.1, 0.1]
CODES = [0, 0, TickStatus.SINGULAR, 0, TickStatus.SINGULAR, 0]


def rows() -> np.ndarray:
    """States of the arm at rest where its tip is demanded, on both sides of stretched."""
    arm = servo("two links")
    states = [np.array([0.2, elbow]) for elbow in ELBOWS]
    return np.array([np.concatenate([q, np.zeros(2), arm.output(q), np.zeros(4)]) for q in states])


@pytest.mark.parametrize("kind", ["two links", "two links, limited"])
def test_exported_c_notices_what_a_step_jumped_over(libraries, kind: str) -> None:
    library: Library = libraries(kind)
    found, codes = library(rows())
    assert list(codes) == [0] * len(CODES)  # each number alone
    library(rows()[:1])  # forgets what was before
    found, codes = library(rows(), apart=False)
    assert list(codes) == CODES
    assert_array_equal(found[codes != 0], 0.0)


def test_refused_input_does_not_make_exported_c_forget(libraries) -> None:
    library: Library = libraries("two links")
    states = rows()[[1, 1, 1, 2]]
    states[1, 0] = np.nan
    states[2, 2] = 1e6  # TOO_FAST
    library(states[:1])
    assert list(library(states, apart=False)[1]) == [0, 1, 7, TickStatus.SINGULAR]


def integrated(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """States of the arm beside where its tip is demanded, with periods, and the torques there."""
    arm, z, states, torques = servo(kind), np.zeros(2), list[np.ndarray](), list[np.ndarray]()
    still = np.zeros(2)
    for k, period in enumerate((0.1, 0.2, 0.0, 0.3)):
        q, pose = np.array([0.2, 0.5 + 0.1 * k]), arm.output([0.3, 0.6])
        states.append(np.concatenate([q, still, pose, still, still, [period]]))
        found = arm.law_with_state(q, still, pose, still, still, z)
        torques.append(found[0])
        z = z + period * found[4]
    return np.array(states), np.array(torques)


@pytest.mark.parametrize("kind", ["two links, integral", "two links, limited, integral"])
def test_exported_c_keeps_the_integral(libraries, kind: str) -> None:
    library: Library = libraries(kind)
    states, torques = integrated(kind)
    (signal,) = (signal for signal in input_signals(servo(kind)) if signal.name == "period")
    unfilled = states[:1].copy()
    unfilled[:, -1:] = signal.preset
    assert list(library(unfilled)[1]) == [TickStatus.BAD_INPUT]
    library(states[2:3])  # forgets what was before, and has a period of zero
    found, codes = library(states, apart=False)
    assert not codes.any()
    assert_allclose(found[:, :2], torques, atol=1e-6 if "limited" in kind else 1e-11)
    found, _ = library(states)
    assert np.abs(found[:, :2] - torques)[1:].max() > 1e-3  # each with an integral of zero


@pytest.mark.extended
@pytest.mark.parametrize("version", VERSIONS)
def test_units_keep_the_integral(tmp_path, version: str) -> None:
    kind = "two links, integral"
    with with_compiler():
        unit = Unit(servo(kind).export(tmp_path, "fmu", name="integral", fmi=version))
    states, torques = integrated(kind)
    first = np.split(states[0], [2, 4, 6, 8, 10])
    unit.start(q=first[0], pose=first[2])
    for state, torque in zip(states, torques, strict=True):
        q, _, pose, _, _, period = np.split(state, [2, 4, 6, 8, 10])
        unit.set(q=q, pose=pose, period=period)
        assert_allclose(unit.get("u"), torque, atol=1e-11)
        assert unit.step(1e-3) == 0
    unit.close()


@pytest.mark.extended
@pytest.mark.parametrize("version", VERSIONS)
def test_units_notice_what_a_step_jumped_over(tmp_path, version: str) -> None:
    with with_compiler():
        unit = Unit(servo("two links").export(tmp_path, "fmu", name="watched", fmi=version))
    arm = servo("two links")
    for _ in range(2):
        unit.start(q=[0.2, ELBOWS[0]], pose=arm.output([0.2, ELBOWS[0]]))
        for elbow, code in zip(ELBOWS, CODES, strict=True):
            q = np.array([0.2, elbow])
            unit.set(q=q, pose=arm.output(q))
            assert unit.get("status") == [code]
            # Only steps count, not how often outputs are read.
            assert unit.get("status") == [code]
            assert unit.step(1e-3) == (WARNING if code else 0)
            assert unit.get("status") == [code]
            if code:
                assert_array_equal(unit.get("u"), np.zeros(2))
        unit.fmu.terminate()
        unit.fmu.reset()
    unit.close()
