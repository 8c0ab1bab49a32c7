"""Quaternions by one rule at every entry: normalised within 1e-3 of unit norm, else refused."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.codegen import DRIFT, LARGEST, normalised
from concur.control import Tick, TickStatus, tick_function
from concur.errors import NonFiniteError, ShapeError, SingularConfigurationError
from concur.outputs import ReferenceSample
from concur.simulation import Plant
from tests.control._floating_cases import CHECK_A_Q0, CHECK_A_S0, check_a_demand
from tests.export._fmu_cases import flyer

SAMPLE = check_a_demand()(0.3)
POSE, TWIST, ACCELERATION = SAMPLE.flat_pose, SAMPLE.twist, SAMPLE.acceleration
V = np.linspace(-0.4, 0.7, 12)

Entry = Callable[[np.ndarray, np.ndarray], object]


def scaled(values: np.ndarray, factor: float) -> np.ndarray:
    """The same with its quaternion times a factor."""
    values = values.copy()
    values[3:7] *= factor
    return values


def sample(pose: np.ndarray) -> ReferenceSample:
    return ReferenceSample(pose, TWIST, ACCELERATION)


def entries() -> dict[str, tuple[str, Entry]]:
    """Calls of (q, pose) by their names, with the arguments whose quaternions they read."""
    servo, limited = flyer(), flyer(torque_limits=3.0)
    model, robot = servo.model, servo.model.robot
    tick, interpreted = servo.compile(), limited.compile(interpreted=True)
    law = servo.to_iosystem()
    compiled = flyer()
    compiled.compile_functions("law", "errors")

    def iosystem(q: np.ndarray, pose: np.ndarray) -> np.ndarray:
        inputs = np.concatenate([q, CHECK_A_S0, pose, TWIST, ACCELERATION])
        return np.asarray(law.output(0.0, [], inputs))

    return {
        "pose of a body": ("q", lambda q, pose: robot.pose(q, "tool")),
        "mass_matrix": ("q", lambda q, pose: robot.mass_matrix(q)),
        "bias": ("q", lambda q, pose: robot.bias(q, V)),
        "rate": ("q", lambda q, pose: robot.rate(q, V)),
        "integrate": ("q", lambda q, pose: robot.integrate(q, V)),
        "difference from": ("q", lambda q, pose: robot.difference(q, CHECK_A_Q0)),
        "difference to": ("q", lambda q, pose: robot.difference(robot.neutral(), q)),
        "check_configuration": ("q", lambda q, pose: robot.check_configuration(q)),
        "lift": ("q", lambda q, pose: model.lift(q)[0]),
        "plant": ("q", lambda q, pose: Plant(robot).acceleration(q, V, np.ones(6))[0]),
        "margin": ("q", lambda q, pose: servo.margin(q)),
        "output": ("q", lambda q, pose: servo.output(q)),
        "pose_error": ("q pose", lambda q, pose: servo.pose_error(q, pose)),
        "error": ("q pose", lambda q, pose: servo.error(q, CHECK_A_S0, sample(pose))[0]),
        "lyapunov": ("q pose", lambda q, pose: servo.lyapunov(q, CHECK_A_S0, sample(pose))),
        "torque": ("q pose", lambda q, pose: servo.torque(q, CHECK_A_S0, sample(pose))),
        "law": (
            "q pose",
            lambda q, pose: servo.law(q, CHECK_A_S0, pose, TWIST, ACCELERATION)[0],
        ),
        "torque, compiled": (
            "q pose",
            lambda q, pose: compiled.torque(q, CHECK_A_S0, sample(pose)),
        ),
        "error, compiled": (
            "q pose",
            lambda q, pose: compiled.error(q, CHECK_A_S0, sample(pose))[1],
        ),
        "torque, limited": (
            "q pose",
            lambda q, pose: limited.torque(q, CHECK_A_S0, sample(pose)),
        ),
        "tick": ("q pose", lambda q, pose: tick(q, CHECK_A_S0, sample(pose)).copy()),
        "tick, limited": (
            "q pose",
            lambda q, pose: interpreted(q, CHECK_A_S0, sample(pose)).copy(),
        ),
        "iosystem": ("q pose", iosystem),
    }


OF_Q = (
    *("pose of a body", "mass_matrix", "bias", "rate", "integrate", "difference from"),
    *("difference to", "check_configuration", "lift", "plant", "margin", "output"),
)
OF_BOTH = (
    *("pose_error", "error", "lyapunov", "torque", "law", "torque, compiled", "error, compiled"),
    *("torque, limited", "tick", "tick, limited", "iosystem"),
)
READ = [*((n, "q") for n in OF_Q), *((n, part) for n in OF_BOTH for part in ("q", "pose"))]


@pytest.fixture(scope="module")
def every() -> dict[str, Entry]:
    """Calls by their names."""
    found = entries()
    assert [(n, part) for n, (read, _) in found.items() for part in read.split()] == READ
    return {name: call for name, (_, call) in found.items()}


def called(entry: Entry, argument: str, factor: float) -> np.ndarray:
    """Result of an entry if one quaternion is scaled."""
    q = scaled(CHECK_A_Q0, factor if argument == "q" else 1.0)
    pose = scaled(POSE, factor if argument == "pose" else 1.0)
    return np.asarray(entry(q, pose))


@pytest.mark.parametrize(("name", "argument"), READ)
def test_near_unit_norm_is_normalised(every: dict[str, Entry], name: str, argument: str) -> None:
    entry = every[name]
    expected = called(entry, argument, 1.0)
    # A quadratic program within limits is solved with less accuracy than round-off.
    tolerance = 1e-6 if "limited" in name else 1e-12
    for factor in (1.0 - 0.9999 * DRIFT, 1.0 + 0.9999 * DRIFT):
        found = called(entry, argument, factor)
        assert_allclose(found, expected, rtol=0.0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize(("name", "argument"), READ)
@pytest.mark.parametrize("factor", [0.0, 1.0 - 1.0001 * DRIFT, 1.0 + 1.0001 * DRIFT, 2.0])
def test_off_unit_norm_is_refused(
    every: dict[str, Entry], name: str, argument: str, factor: float
) -> None:
    with pytest.raises(ShapeError, match=r"quaternion of `\w+` at \w+\[3:7\].*unit norm.*Normal"):
        called(every[name], argument, factor)


@pytest.fixture(scope="module")
def ticks() -> list[Tick]:
    """Without and with limits."""
    return [one.compile(interpreted=True) for one in (flyer(), flyer(torque_limits=3.0))]


@pytest.mark.parametrize("argument", ["q", "pose"])
def test_the_status_of_a_tick_is_that_of_an_invalid_quaternion(
    ticks: list[Tick], argument: str
) -> None:
    for tick in ticks:
        for factor in (0.0, 1.0 - 1.0001 * DRIFT, 1.0 + 1.0001 * DRIFT):
            buffers = tick.buffers
            buffers.q[:], buffers.s[:], buffers.pose[:] = CHECK_A_Q0, CHECK_A_S0, POSE
            getattr(buffers, argument)[3:7] *= factor
            assert tick.run() == TickStatus.INVALID_QUATERNION
            assert_array_equal(buffers.u, 0.0)


def test_a_singular_tick_does_not_blame_a_quaternion() -> None:
    tick = flyer(singular_margin=10.0).compile(interpreted=True)
    with pytest.raises(SingularConfigurationError):
        tick(CHECK_A_Q0, CHECK_A_S0, sample(POSE))


def test_each_quaternion_is_normalised_at_one_place() -> None:
    servo = flyer()
    symbols = {name: ca.SX.sym(name, size) for name, size in servo.inputs.items()}
    found = [*servo.results(symbols).values()]
    within = bounds(ca.Function("law", [*symbols.values()], found, {"cse": True}))
    # One bound for q and one for the reference pose, whatever lies in between; methods also have
    # one of sizes.
    assert bounds(servo.buffered("law").function) == within + 3
    assert bounds(tick_function(servo)) == within + 2
    assert bounds(servo.model.robot.buffered("mass_matrix").function) == 2


def bounds(function: ca.Function) -> int:
    """Number of magnitudes in a graph: those of norms are held against their bound."""
    count = function.n_instructions()
    return sum(function.instruction_id(i) == ca.OP_FABS for i in range(count))


@pytest.mark.parametrize("share", [-1.0, -0.3, 0.0, 0.5, 1.0])
def test_normalised_to_the_last_bit(share: float) -> None:
    symbols, rng = ca.SX.sym("x", 5), np.random.default_rng(1)
    function = ca.Function("normalised", [symbols], [*normalised(symbols, [1])])
    for _ in range(20):
        values = rng.normal(size=5)
        unit = values[1:] / np.linalg.norm(values[1:])
        values[1:] = unit * (1.0 + 0.999999 * share * DRIFT)
        found, valid = function(values)
        assert valid == 1
        assert_allclose(np.array(found)[:, 0], [values[0], *unit], rtol=0.0, atol=5e-16)


@pytest.mark.parametrize("name", ["torque", "error", "mass_matrix", "tick", "law"])
def test_one_bound_of_size_for_all_entries(every: dict[str, Entry], name: str) -> None:
    entry = every[name]
    q = CHECK_A_Q0.copy()
    for place in (0, 4, len(q) - 1):
        for size in (1.1 * LARGEST, -1e20, 1e300):
            moved = q.copy()
            moved[place] = size
            with pytest.raises(NonFiniteError, match=r"numbers up to 1e\+18, got \[\d+\] = "):
                entry(moved, POSE)


@pytest.mark.parametrize("name", ["error", "mass_matrix"])
def test_numbers_below_the_bound_of_size_are_taken(every: dict[str, Entry], name: str) -> None:
    moved = CHECK_A_Q0.copy()
    moved[0] = 0.9 * LARGEST
    assert np.isfinite(np.asarray(every[name](moved, POSE))).all()
