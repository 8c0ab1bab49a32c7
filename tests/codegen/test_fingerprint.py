"""Fingerprints: equal for equal objects in any process, different if the graph differs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from concur.codegen import _cache, _fingerprint, fingerprint, recalled
from concur.control import Redundancy, Servo
from concur.outputs import Output
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, joints
from concur.robots import free_flyer, station_arm
from tests.control._cases import Q0, S0, case_study, case_study_sample

MU = np.array([0.5, -0.3, 0.2, 2.5, 0.8, 0.8])


def floating(robot: Mechanism | None = None, momentum: np.ndarray = MU, **options: object) -> Servo:
    model = reduce(robot or free_flyer(), momentum=momentum)
    given = {"outputs": [Output("hand", "tool", "SE3")], "stiffness": 4.0, "damping": 2.8}
    return Servo(model, **{**given, **options})  # type: ignore[arg-type]


def heavier() -> Servo:
    robot = free_flyer()
    first = robot.bodies[0]
    inertia = replace(first.inertia, mass=np.nextafter(first.inertia.mass, np.inf))
    return floating(replace(robot, bodies=(replace(first, inertia=inertia), *robot.bodies[1:])))


def redundant(rule: Redundancy) -> Servo:
    return Servo(reduce(station_arm()), [Output("tip", "tip", "SE3")], 4.0, 4.0, redundancy=rule)


OTHERS: list[Callable[[], Servo]] = [
    lambda: floating(momentum=np.nextafter(MU, 9.0)),
    lambda: floating(stiffness=4.0 + 1e-15),
    lambda: floating(torque_limits=5.0),
    lambda: floating(damping_threshold=0.1),
    lambda: floating(use_measured_velocity=True),
    lambda: floating(singular_margin=2e-3),
    lambda: floating(outputs=[Output("hand", "tool", "R3xSO3")]),
    lambda: floating(outputs=[Output("hand", "tool", "SE3", (0, 0, 1e-9))]),
    heavier,
]


@pytest.mark.extended
def test_equal_servos_have_the_same_and_others_another() -> None:
    first = floating()
    first.output(first.model.robot.neutral())  # what was called leaves no trace in it
    assert first.margins is not None
    told = fingerprint("tick", first)
    assert told == fingerprint("tick", floating())
    assert told is not None
    assert len(told) == 64
    assert fingerprint("plant", first) != told
    rules = [Redundancy("energy"), Redundancy("torque"), Redundancy("energy", "base_rotation")]
    others = [fingerprint("tick", other()) for other in OTHERS]
    others += [fingerprint("tick", redundant(rule)) for rule in rules]
    assert None not in others
    assert len({told, *others}) == 1 + len(others)


@pytest.mark.extended
def test_other_processes_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # The code may be edited while tests run: it is not what is tried here.
    monkeypatch.setattr(_fingerprint, "_code", lambda: "code")
    text = (
        "from concur.codegen import _fingerprint; _fingerprint._code = lambda: 'code'\n"
        "from concur.codegen import fingerprint; from concur.robots import free_flyer\n"
        "from concur.reduction import reduce; print(fingerprint('x', reduce(free_flyer())))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == fingerprint("x", reduce(free_flyer()))


@dataclass(frozen=True)
class OwnJoint(joints.Revolute):
    """A user-defined class, whose behaviour its fields do not determine."""


def test_classes_of_others_have_none() -> None:
    robot = Mechanism(
        "own",
        [
            Body("floor", joints.Fixed()),
            Body("rod", OwnJoint((0, 0, 1)), "floor", inertia=Inertia(1.0, moments=(1, 1, 1))),
        ],
    )
    assert fingerprint("x", robot) is None
    assert fingerprint("x", (1.0, "a", None, {"b": np.ones(2)})) is not None
    assert fingerprint("x", redundant(Redundancy("energy", lambda q: q[7] ** 2))) is None
    assert recalled(None) is None


@pytest.mark.extended
def test_tick_is_recalled_without_its_graph(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CONCUR_CC")
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path))
    sample = case_study_sample(0.0)
    first = case_study().compile()
    expected = first(Q0, S0, sample).copy()
    second = case_study().compile()
    assert first.build_times["graph"] > 0.0
    assert second.build_times["graph"] == second.build_times["written"] == 0.0
    assert second.compiled
    assert second.instructions == first.instructions
    assert_array_equal(second(Q0, S0, sample), expected)
    # Without the library, or with an empty note, it is built as before.
    (note,) = tmp_path.glob("*.json")
    note.write_text("{}")
    assert_array_equal(case_study().compile()(Q0, S0, sample), expected)
    (kept,) = (path for path in tmp_path.iterdir() if path.suffix == _cache._SUFFIX)
    kept.unlink()
    third = case_study().compile()
    assert third.build_times["built"] > 0.0
    assert third.build_times["graph"] > 0.0
    assert kept.exists()
    assert_array_equal(third(Q0, S0, sample), expected)
