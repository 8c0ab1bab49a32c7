"""Exported C and FMUs detect a singular configuration between two steps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.control import TickStatus
from concur.control._tick_graph import KEPT
from concur.export._signals import law_signals
from concur.outputs import ReferenceSample
from tests.export._export import NAME, Library, servo
from tests.export._fmu_cases import fill
from tests.export._units import VERSIONS, WARNING, Unit, with_compiler

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
        found = arm.law(q, still, pose, still, still, z)
        torques.append(found[0])
        z = z + period * found[4]
    return np.array(states), np.array(torques)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("kind", ["two links, integral", "two links, limited, integral"])
def test_exported_c_keeps_the_integral(libraries, kind: str) -> None:
    library: Library = libraries(kind)
    states, torques = integrated(kind)
    unfilled = states[:1].copy()
    unfilled[:, -1:] = law_signals(servo(kind))["period"].start
    assert list(library(unfilled)[1]) == [TickStatus.BAD_INPUT]
    library(states[2:3])  # forgets what was before, and has a period of zero
    found, codes = library(states, apart=False)
    assert not codes.any()
    assert_allclose(found[:, :2], torques, atol=1e-6 if "limited" in kind else 1e-11)
    found, _ = library(states)
    assert np.abs(found[:, :2] - torques)[1:].max() > 1e-3  # each with an integral of zero


@pytest.mark.parametrize("kind", ["two links, integral", "two links, limited, integral"])
def test_exported_c_has_the_bounds_of_the_state(libraries, kind: str) -> None:
    library: Library = libraries(kind)
    bounds, (row, *_) = servo(kind).state_bounds, integrated(kind)[0]
    header = (library.path.parent / f"{NAME}.h").read_text()
    assert f"{NAME.upper()}_LARGEST_PERIOD {bounds.period!r} " in header
    assert f"{{{', '.join(map(repr, map(float, bounds.state)))}}}" in header
    manifest = json.loads((library.path.parent / "manifest.json").read_text())
    assert manifest["state"]["largest"] == bounds.state.tolist()

    def tick(period: float) -> tuple[int, list[float], list[float]]:
        found, codes = library(np.r_[row[:-1], period][None], apart=False)
        return int(codes[0]), found[0, :2].tolist(), [library.state(KEPT + k) for k in range(2)]

    library(row[None])  # a tick after a reset
    kept, nothing = tick(0.1)[2], [0.0, 0.0]
    for bad in (np.nextafter(bounds.period, 9.0), 65.536, 4295.0, 1e6, -1e-9):
        assert tick(bad) == (TickStatus.BAD_INPUT, nothing, kept)
    for bad in (np.nan, np.inf, -np.inf):
        assert tick(bad) == (TickStatus.BAD_INPUT, nothing, kept)
    for good in (bounds.period, 0.0):
        assert tick(good)[0] == TickStatus.OK
    for place in range(2):
        most = bounds.state[place]
        for bad in (np.nextafter(most, 1e9), -1e9, 1e30, np.nan, np.inf, -np.inf):
            library(row[None])
            library.forge(KEPT + place, bad)
            code, u, state = tick(0.1)
            assert (code, u) == (TickStatus.BAD_INPUT, nothing)
            assert_array_equal(state[place], bad)
        library(row[None])
        library.forge(KEPT + place, -most)
        assert tick(0.1)[0] == TickStatus.OK
        assert abs(library.state(KEPT + place)) <= most


def test_exported_c_in_single_precision_has_the_bounds_too(tmp_path) -> None:
    library = Library.build("two links, integral", tmp_path, precision="single")
    row = integrated("two links, integral")[0][0]
    longest = servo("two links, integral").state_bounds.period
    for period, code in ((0.999999 * longest, 0), (1.000001 * longest, 1), (4295.0, 1), (-1e-9, 1)):
        found, codes = library(np.r_[row[:-1], period][None])
        assert (codes[0], found[0, 0] != 0.0) == (code, code == 0)


def held(rng: np.random.Generator, arm) -> tuple[np.ndarray, np.ndarray, ReferenceSample]:
    q = np.array([0.2, 0.9]) + 0.1 * rng.normal(size=2)
    return q, rng.normal(size=2), ReferenceSample(arm.output([0.3, 1.0]), *rng.normal(size=(2, 2)))


@pytest.mark.by_default(1)
def test_units_advance_the_integral_by_the_communication_step(unit_of_integral) -> None:
    """Steps of many lengths, against the tick."""
    arm, unit, rng = servo("two links, integral"), unit_of_integral, np.random.default_rng(4)
    tick, longest = arm.compile(interpreted=True), arm.state_bounds.period
    names = {v.name for v in unit.description.modelVariables}
    assert not any(name.startswith("period") for name in names)
    first = held(rng, arm)
    fill(unit, *first)
    unit.start(q=first[0], pose=first[2].pose)
    for step in [*10.0 ** rng.uniform(-5, 0, size=30), longest]:
        state = held(rng, arm)
        fill(unit, *state)
        tick.buffers.period[:] = step
        u = tick(*state).copy()
        for _ in range(2):  # reading advances nothing
            assert_allclose(unit.get("u"), u, rtol=0, atol=1e-12)
        assert unit.step(step) == 0
        z = np.array(tick.buffers.state)
        assert_allclose(unit.get("z"), z, rtol=0, atol=1e-12)
        # At the end of the step the integral has its value there.
        assert_allclose(unit.get("u"), arm.torque(*state, z), rtol=0, atol=1e-12)


def test_units_reject_communication_steps_and_states_beyond_the_bounds(unit_of_integral) -> None:
    arm, unit, rng = servo("two links, integral"), unit_of_integral, np.random.default_rng(4)
    bounds, state = arm.state_bounds, held(rng, arm)
    variables = {v.name: v for v in unit.description.modelVariables}
    (step, *shown) = (v for n, v in variables.items() if n == "longest_step" or n[0] == "z")
    assert [float(x) for x in (step.min, step.max, step.start)] == [0, *[bounds.period] * 2]
    for variable in shown:
        assert [float(variable.min), float(variable.max)] == [-bounds.state[0], bounds.state[0]]

    unit.start(q=state[0], pose=state[2].pose)
    fill(unit, *state)
    assert unit.step(0.1) == 0
    kept = unit.get("z")
    assert np.abs(kept).min() > 0.0
    for bad in (np.nextafter(bounds.period, 9.0), 4295.0, 1e6):
        fill(unit, *state)
        assert unit.step(bad) == WARNING
        assert unit.get("status") == [TickStatus.BAD_INPUT]
        assert_array_equal(unit.get("u"), 0.0)
        assert_array_equal(unit.get("z"), kept)
    fill(unit, *state)
    assert_allclose(unit.get("u"), arm.torque(*state, kept), rtol=0, atol=1e-12)

    # A shorter bound is a parameter; a longer one has no effect.
    for given, code in ((0.05, WARNING), (5.0, 0), (np.nan, WARNING), (-1.0, WARNING)):
        unit.fmu.terminate()
        unit.fmu.reset()
        unit.start(q=state[0], pose=state[2].pose, longest_step=given)
        fill(unit, *state)
        assert unit.step(0.1) == code
        assert np.any(unit.get("z")) == (code == 0)
        assert unit.step(1.0001 * bounds.period) == WARNING


def test_saved_states_of_units_bring_the_integral_back_but_no_forged_one(unit_of_integral) -> None:
    arm, unit, rng = servo("two links, integral"), unit_of_integral, np.random.default_rng(4)
    state = held(rng, arm)
    unit.start(q=state[0], pose=state[2].pose)
    fill(unit, *state)
    assert unit.step(0.1) == 0
    saved, z, u, t = unit.fmu.getFMUState(), unit.get("z"), unit.get("u"), unit.time
    assert unit.step(0.2) == 0
    later = unit.get("z")
    assert np.abs(later - z).min() > 0.0
    unit.fmu.setFMUState(saved)
    unit.time = t
    assert_array_equal([*unit.get("z"), *unit.get("u")], [*z, *u])
    assert unit.step(0.2) == 0
    assert_array_equal(unit.get("z"), later)

    write = unit.fmu.serializeFMUState if unit.third else unit.fmu.serializeFMUstate
    read = unit.fmu.deserializeFMUState if unit.third else unit.fmu.deSerializeFMUstate
    data = bytes(write(saved))
    assert z.tobytes() in data
    for bad in (1.001 * arm.state_bounds.state[0], -1e9, 1e30, np.nan, np.inf):
        forged = read(data.replace(z.tobytes(), np.array([z[0], bad]).tobytes()))
        unit.fmu.setFMUState(forged)
        unit.time = t
        fill(unit, *state)
        assert unit.get("status") == [TickStatus.BAD_INPUT]
        assert unit.step(0.2) == WARNING
        assert_array_equal(unit.get("u"), 0.0)
        unit.fmu.freeFMUState(forged)
    unit.fmu.freeFMUState(saved)


@pytest.fixture(scope="module", params=VERSIONS)
def path_of_integral(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("integral")
    with with_compiler():
        arm = servo("two links, integral")
        return arm.export(folder, "fmu", name="integral", fmi=request.param)


@pytest.fixture
def unit_of_integral(path_of_integral):
    unit = Unit(path_of_integral)
    yield unit
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


def test_motors_have_the_units_of_their_forces() -> None:
    entries = law_signals(servo("mecanum"))["u"].entries
    assert [entry.unit for entry in entries] == ["N m"] * 5
