"""Public calls from several threads: the numbers of one thread, or an error, but no others."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import concur as cc
from concur.codegen import OneThread
from concur.control import ReferenceTick, Tick, inverse_kinematics
from concur.errors import ConcurError
from tests.control._cases import Q0, case_study, case_study_reference, case_study_sample

THREADS, ROUNDS, STATES = 4, 60, 8


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    """Let threads interrupt each other between any two instructions."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def flat(value: Any) -> np.ndarray:
    """All numbers of a result."""
    if isinstance(value, tuple | list):
        return np.concatenate([np.zeros(0), *map(flat, value)])
    for name in ("q", "pose"):
        value = getattr(value, name, value)
    return np.asarray(value, float).ravel().copy()


def hammered(
    call: Callable[[int], Any], expected: Sequence[np.ndarray], rounds: int = ROUNDS
) -> tuple[list[float], list[Exception]]:
    """Wrong results, as distances, and errors of a call with the number of a state."""
    wrong, errors = list[float](), list[Exception]()
    gate = threading.Barrier(THREADS)

    def work(own: int) -> None:
        gate.wait()
        for k in range(rounds):
            at = (own + k) % STATES
            try:
                away = np.abs(flat(call(at)) - expected[at]).max()
            except Exception as error:
                errors.append(error)
                continue
            if not away <= 1e-9:
                wrong.append(float(away))

    threads = [threading.Thread(target=work, args=(own,)) for own in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong, errors


@cache
def states() -> list[tuple[np.ndarray, np.ndarray, cc.ReferenceSample]]:
    rng = np.random.default_rng(3)
    return [
        (Q0 + 0.1 * rng.normal(size=8), rng.normal(size=5), case_study_sample(0.1 * k))
        for k in range(STATES)
    ]


def safe_calls(servo: cc.Servo) -> dict[str, Callable[[int], Any]]:
    """Calls that return arrays of their own, by name; each takes the number of a state."""
    path, robot, model = case_study_reference(), servo.model.robot, servo.model
    plant, system = cc.Plant(robot), servo.to_iosystem()
    v = np.linspace(-1.0, 1.0, robot.nv)

    def of(call: Callable[..., Any], takes: str) -> Callable[[int], Any]:
        return lambda k: call(*(dict(zip("qsr", states()[k], strict=True))[part] for part in takes))

    return {
        "mass_matrix": of(robot.mass_matrix, "q"),
        "jacobian": of(lambda q: robot.jacobian(q, "fore"), "q"),
        "difference": of(lambda q: robot.difference(Q0, q), "q"),
        "bias": of(lambda q: robot.bias(q, v), "q"),
        "lift": of(model.lift, "q"),
        "acceleration": of(lambda q, s: model.acceleration(q, s, s), "qs"),
        "plant": of(lambda q, s: plant.acceleration(q, model.velocity(q, s), s), "qs"),
        "margin": of(servo.margin, "q"),
        "torque": of(servo.torque, "qsr"),
        "error": of(servo.error, "qsr"),
        "lyapunov": of(servo.lyapunov, "qsr"),
        "law": of(lambda q, s, r: servo.law(q, s, *servo.flat(r)), "qsr"),
        "reference": lambda k: path(0.1 * k),
        "samples": lambda k: path.sample(np.array([0.1 * k, 0.2])),
        "buffered": lambda k: robot.buffered("mass_matrix")(states()[k][0]),
        "inverse kinematics": of(
            lambda q: inverse_kinematics(robot, servo.outputs, servo.output(q), Q0).q, "q"
        ),
        "iosystem": of(
            lambda q, s, r: system.output(0.0, np.zeros(0), np.concatenate([q, s, *servo.flat(r)])),
            "qsr",
        ),
    }


SAFE = (
    *("mass_matrix", "jacobian", "difference", "bias", "lift", "acceleration", "plant", "margin"),
    *("torque", "error", "lyapunov", "law", "reference", "samples", "buffered"),
    *("inverse kinematics", "iosystem"),
)


@pytest.fixture(scope="module")
def right() -> dict[str, Callable[[int], Any]]:
    """Calls of a servo that one thread has for itself."""
    return safe_calls(case_study())


@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.extended)])
def test_calls_from_several_threads_give_their_own_numbers(
    name: str,
    compiled: bool,
    right: dict[str, Callable[[int], Any]],
    request: pytest.FixtureRequest,
) -> None:
    assert set(SAFE) == set(right)
    expected = [flat(right[name](k)) for k in range(STATES)]
    servo = case_study()  # of which all threads make the graphs
    if compiled:
        request.getfixturevalue("compiler")
        servo.compile_functions()
        servo.model.compile_functions()
        servo.model.robot.compile_functions()
    wrong, errors = hammered(safe_calls(servo)[name], expected)
    assert not errors, errors[0]
    assert not wrong, (len(wrong), max(wrong))


def owned_calls() -> dict[str, tuple[OneThread, Callable[[int], Any]]]:
    """Objects with buffers, and calls that return views of them."""
    servo, path = case_study(), case_study_reference()
    tick, integral = (
        Tick(law, interpreted=True) for law in (servo, replace(servo, integral=[3.0, 8.0]))
    )
    integral.buffers.period[:] = 0.0
    graph = ReferenceTick(servo, path, interpreted=True)
    own = ReferenceTick(servo, path.__call__, interpreted=True)
    evaluator = servo.model.robot.buffered("mass_matrix")

    return {
        "tick": (tick, lambda k: tick(*states()[k])),
        "integral": (integral, lambda k: integral(*states()[k])),
        "graph": (graph, lambda k: graph(0.1 * k, *states()[k][:2])),
        "function": (own, lambda k: own(0.1 * k, *states()[k][:2])),
        "view": (evaluator, lambda k: evaluator.view(states()[k][0])),
        "call beside view": (evaluator, lambda k: evaluator(states()[k][0])),
    }


OWNED = ("tick", "integral", "graph", "function", "view", "call beside view")


@pytest.mark.parametrize("name", OWNED)
def test_objects_with_buffers_belong_to_one_thread(name: str) -> None:
    """Of the calls of a second thread each is an error, and none changes what the first holds."""
    calls = owned_calls()
    assert set(OWNED) == set(calls)
    one, call = calls[name]
    reset = one.reset if isinstance(one, Tick | ReferenceTick) else lambda: None
    expected = []
    for k in range(STATES):
        reset()
        expected.append(flat(call(k)))
    if name == "call beside view":
        one.view(states()[0][0])
    held = call(0)
    if name != "integral":
        reset()
    wrong, errors = hammered(call, expected)
    assert not wrong
    assert len(errors) == THREADS * ROUNDS
    assert {type(error) for error in errors} == {ConcurError}
    assert isinstance(held, np.ndarray)
    np.testing.assert_array_equal(held.ravel(), expected[0])


@pytest.mark.parametrize("name", ["tick", "integral", "graph", "function", "view"])
def test_first_thread_of_several_gets_its_own_numbers(name: str) -> None:
    one, call = owned_calls()[name]
    expected = [flat(call(k)) for k in range(STATES)] if name == "view" else []
    if not expected:
        for k in range(STATES):
            one.reset()  # type: ignore[attr-defined]
            expected.append(flat(call(k)))
    one.release()  # type: ignore[attr-defined]

    def fresh(k: int) -> Any:
        if name != "view":
            one.reset()  # type: ignore[attr-defined]
        return call(k)

    wrong, errors = hammered(fresh, expected)
    assert {type(error) for error in errors} <= {ConcurError}
    assert not wrong, (len(wrong), max(wrong))
    assert THREADS * ROUNDS - len(errors) >= ROUNDS  # the first one got all of its numbers


def in_thread(call: Callable[[], Any]) -> Any:
    """Result or error of a call in a thread that ends with it."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(call())
        except ConcurError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def test_ticks_change_hands_by_release_or_the_end_of_a_thread() -> None:
    servo = replace(case_study(), integral=[3.0, 8.0])
    tick, state = Tick(servo, interpreted=True), states()[0]
    tick.buffers.period[:] = 0.01
    first = in_thread(lambda: tick(*state).copy())
    z = tick.buffers.state.copy()
    assert z.any()
    assert isinstance(first, np.ndarray)
    later = tick(*state).copy()  # that thread has ended; the state goes on
    assert np.abs(later - first).max() > 1e-6
    for call in (lambda: tick(*state), tick.run, tick.reset, tick.release):
        error = in_thread(call)
        assert isinstance(error, ConcurError)
        assert error.where == "tick of `rover`"
        assert "servo.compile()" in error.cure
    assert tick.run() == 0
    tick.release()
    assert in_thread(tick.run) == 0
    assert tick.run() == 0  # `run` takes no tick, as its callers have the buffers
