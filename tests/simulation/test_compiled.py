"""Runs as machine code: the same numbers, the same errors, the same partial runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import concur as cc
from concur.codegen import CompilerWarning, _compiler
from concur.control import Servo
from concur.errors import SimulationError
from concur.simulation import Integrator, Program, Run, _driver, simulate
from concur.simulation._integrator import LONG, is_compiled
from tests.control._cases import (
    Q0,
    S0,
    case_study,
    case_study_reference,
    refused,
)

SERVO = case_study()
ROBOT = SERVO.model.robot
SLOW = pytest.mark.slow

PROGRAMME = 1e-7
"""Relative difference of two solutions of the quadratic program of torque limits."""


def assert_same_run(run: Run, other: Run, tolerance: float = 1e-10) -> None:
    for name, values in run.arrays.items():
        wanted = other.arrays[name]
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        assert values.shape == wanted.shape, name
        assert_allclose(values, wanted, rtol=0, atol=tolerance * scale, err_msg=name)


def both(
    servo: Servo = SERVO,
    duration: float = 0.45,
    plant: Any = None,
    progress: Any = False,
    **options: Any,
) -> tuple[Run, Run]:
    """Run the rover compiled and interpreted."""

    def run(compiled: bool) -> Run:
        reference, robot = case_study_reference(), servo.model.robot
        integrator = Integrator(compiled=compiled, **options)
        return simulate(
            *(robot, servo, reference, duration, Q0, S0),
            plant=plant,
            dt=replace(integrator, progress=progress),
        )

    return run(True), run(False)


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="continuous"),
        pytest.param({"duration": 0.4}, id="whole chunks"),
        pytest.param({"duration": 0.003}, id="a few steps"),
        pytest.param({"control_period": 0.007}, id="no divisor of a chunk, last period cut"),
        pytest.param(
            {"control_period": 0.3, "duration": 0.9}, id="longer than a chunk", marks=SLOW
        ),
        pytest.param({"method": "rkmk4"}, id="on the groups", marks=SLOW),
        pytest.param(
            {"control_period": 0.002, "method": "rkmk4"}, id="on the groups, held", marks=SLOW
        ),
    ],
)
def test_compiled_run_is_the_interpreted_one(options: dict[str, Any]) -> None:
    compiled, interpreted = both(**options)
    assert np.abs(compiled.error[0]).max() > 0.05
    assert np.ptp(compiled.u[:, 0]) > 0.01
    assert_same_run(compiled, interpreted)


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("hold", [None, 0.01])
def test_adaptive_methods_are_compiled_too(hold: float | None) -> None:
    assert_same_run(
        *both(method="dop853", dt=1e-2, duration=0.1, control_period=hold), tolerance=1e-9
    )


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("hold", [None, 0.005])
def test_torque_limits_are_compiled_with_their_quadratic_program(hold: float | None) -> None:
    free, _ = both()
    limit = 0.6 * np.abs(free.u).max(axis=0).max()
    compiled, interpreted = both(replace(SERVO, torque_limits=limit), control_period=hold)
    assert compiled.scale.min() < 0.9
    assert np.abs(compiled.u).max() == pytest.approx(limit)
    # The quadratic program is solved to its tolerance.
    assert_same_run(compiled, interpreted, PROGRAMME)


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
def test_second_run_builds_no_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ROBOT, SERVO, case_study_reference(), 0.45, Q0, S0
    first = simulate(*given, dt=Integrator(compiled=True))
    monkeypatch.setattr(Program, "tick", None)
    monkeypatch.delattr(_driver, "recorded_together")
    assert_same_run(simulate(*given, dt=Integrator(compiled=True)), first, 0.0)


@pytest.mark.usefixtures("compiler")
def test_length_alone_decides() -> None:
    assert is_compiled("run", None, LONG)
    assert not is_compiled("run", None, LONG - 1)
    assert is_compiled("run", True, 1)
    assert not is_compiled("run", False, 10 * LONG)


def test_without_a_compiler() -> None:
    assert not is_compiled("run", None, 10 * LONG)
    refused(
        SimulationError,
        lambda: both(),
        where="`compiled`",
        expected="compiler",
        came="CONCUR_CC=none, which asks for the interpreter",
        cure="CONCUR_CC",
    )


@pytest.mark.usefixtures("compiler")
def test_compiler_that_does_not_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text('#!/bin/sh\ncase "$1" in -*v*|-dump*) echo 1;; *) exit 1;; esac\n')
    broken.chmod(0o755)
    monkeypatch.setenv("CONCUR_CC", str(broken))
    monkeypatch.setattr(_compiler, "_SAID", set())
    came = f"`{broken}`, which does not compile it"
    with pytest.warns(CompilerWarning, match="did not compile"):
        refused(SimulationError, lambda: both(), where="`compiled`", came=came, cure="CONCUR_CC")


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("method", ["dop853", pytest.param("rkmk4", marks=SLOW)])
def test_motions_under_torques(method: str) -> None:
    model = cc.reduce(cc.robots.orbital_crawler(), momentum=[0.1, 0.0, 0.0, 0.0, 0.0, 0.5])
    q0, s0 = model.robot.neutral(), np.linspace(0.1, 0.2, model.ns)

    def motion(compiled: bool) -> cc.simulation.Motion:
        torque = 0.1 * np.ones(model.nu)
        return cc.simulation.forced_motion(
            model, torque, 1.0, q0, s0, Integrator(method, 0.05, compiled=compiled)
        )

    for name in ("q", "s", "work", "momentum"):
        assert_allclose(
            getattr(motion(True), name), getattr(motion(False), name), rtol=0, atol=1e-10
        )
