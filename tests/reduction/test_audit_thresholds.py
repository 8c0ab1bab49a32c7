"""Conditions of the audit on both sides of their thresholds, on models with prescribed numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from concur.reduction import STAGES_HINT, AuditStatus, _audit
from concur.reduction._lift import Lift

HOLDS, FAILS = AuditStatus.HOLDS, AuditStatus.FAILS
SAMPLES = [np.zeros(3), np.array([0.0, 1.0, 0.0])]  # only the second shows what is wrong


class Steps:
    """Stands for a generator: each displacement is a whole unit."""

    def uniform(self, low: float, high: float, size: int) -> np.ndarray:
        assert (low, high) == (-1.0, 1.0)
        return np.full(size, high)


def robot(**numbers: float) -> SimpleNamespace:
    """Three coordinates, the first of them the group's, with violations of given size."""
    given = {"mass": 0.0, "rows": 0.0, "push": 0.0, "total": 4.0, "fall": 1.0} | numbers
    return SimpleNamespace(
        nv=3,
        bodies=(),
        springs=(),
        total_mass=given["total"],
        gravity=(0.0, 0.0, -given["fall"]),
        actuated_freedoms=(1, 2),
        driven_freedoms=(1, 2),
        followers=(),
        wheels=(),
        freedom_names=("x", "left", "right"),
        integrate=lambda q, v: q + v,
        mass_matrix=lambda q: 4.0 * np.eye(3) - np.diag([0, 0, given["mass"] * q[0] * q[1]]),
        constraints=lambda q: np.array([[1.0, -given["rows"] * q[0] * q[1], 0.0]]),
        bias=lambda q, v: np.array([-given["push"] * q[1], 1e3, 1e3]),
    )


def model(body: Any = None, **changes: Any) -> Any:
    parts: dict[str, Any] = {
        "system": body or robot(),
        "dependent": (0,),
        "shape": (1, 2),
        "reason": "",
        "nu": 2,
        "ns": 2,
        "input_matrix": lambda q: np.eye(2),
    }
    made = SimpleNamespace(**(parts | changes))
    made.first = SimpleNamespace(dependent=made.dependent)
    made.wheel_dependents = made.dependent
    rows, columns = made.input_matrix(np.ones(3)).shape
    made.ns, made.shape_names = rows, tuple(map(str, range(rows)))
    made.actuation_scales = np.ones(rows), np.ones(columns)
    made.nd, made.effect = made.ns, made.input_matrix
    made.leverage = lambda q: Lift.leverage(made, q)
    return made


@pytest.mark.parametrize(("size", "status"), [(0.8e-9, HOLDS), (1.25e-9, FAILS)])
@pytest.mark.parametrize(
    ("name", "unit", "value"),
    [("mass", 4.0, "mass_matrix"), ("rows", 1.0, "constraints"), ("push", 4.0, "gravity")],
)
def test_invariance_to_a_billionth(
    name: str, unit: float, value: str, size: float, status: AuditStatus
) -> None:
    # The mass matrix relative to the mass, gravity to the weight; radii of gyration are one.
    row = _audit._invariance(model(robot(**{name: size * unit})), SAMPLES, Steps())  # type: ignore[arg-type]
    assert row.status is status
    assert row.values[value] == pytest.approx(size, rel=1e-5)
    assert max(x for key, x in row.values.items() if key != value) == 0.0


@pytest.mark.parametrize(("fall", "share"), [(9.8, 0.05), (1e-3, 490.0), (0.0, 0.0)])
def test_gravity_along_the_group_is_held_against_the_weight(fall: float, share: float) -> None:
    # Torques count by the radius of gyration.
    radius = np.sqrt(4.0 / 0.1)
    body = robot(push=0.05 * 9.8 * 0.1 * radius, total=0.1, fall=fall)
    row = _audit._invariance(model(body), SAMPLES, Steps())  # type: ignore[arg-type]
    assert row.values["gravity"] == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize(
    ("condition", "status"), [(0.99e8, HOLDS), (1e8, FAILS), (1.01e8, FAILS), (np.inf, FAILS)]
)
def test_controls_reach_the_shape_up_to_a_condition_of_1e8(
    condition: float, status: AuditStatus
) -> None:
    """Thesis: CON3, (5.1.2), (5.1.3)."""

    def inputs(q: np.ndarray) -> np.ndarray:
        return np.diag([condition, 1.0]) if q[1] and np.isfinite(condition) else (
            np.diag([1.0, 0.0]) if q[1] else np.eye(2)
        )  # fmt: skip

    row = _audit._no_actuator_along_group(model(input_matrix=inputs, reason=STAGES_HINT), SAMPLES)
    assert row.status is status
    assert row.values["condition"] == pytest.approx(condition, rel=1e-15)
    assert ("--stages auto" in row.why) is (status is FAILS)


def test_an_actuator_along_the_group_fails_whatever_the_condition() -> None:
    driven = robot()
    driven.actuated_freedoms = (0, 1, 2)
    row = _audit._no_actuator_along_group(model(driven), SAMPLES)
    assert row.status is FAILS
    assert "driven along the group: x;" in row.why
    # With more controls than shape velocities it shares the forces on the shape.
    row = _audit._no_actuator_along_group(model(driven, nu=3), SAMPLES)
    assert row.status is HOLDS
    assert "share the forces" in row.why


@pytest.mark.parametrize(
    ("matrix", "condition"),
    [
        (np.ones((3, 2)), np.inf),
        (np.zeros((0, 2)), 1.0),
        (np.array([[3.0, 0.0, 0.0], [0.0, 0.5, 0.0]]), 6.0),
        (np.zeros((2, 2)), np.inf),
    ],
)
def test_condition_of_a_matrix(matrix: np.ndarray, condition: float) -> None:
    columns = matrix.shape[1]
    made: Any = model(input_matrix=lambda q: matrix, nu=columns)
    found = made.leverage(np.zeros(3))[0]
    assert (1.0 / found if found else np.inf) == condition


@pytest.mark.parametrize(("closure", "status"), [(0.9e-12, HOLDS), (1.1e-12, FAILS)])
def test_outputs_live_on_subgroups_to_1e_12(closure: float, status: AuditStatus) -> None:
    outputs = [
        SimpleNamespace(dim=1, closure_residual=lambda x=x: x)  # type: ignore[misc]
        for x in (0.0, closure)
    ]
    rows = {row.id: row for row in _audit._counts(model(), tuple(outputs))}  # type: ignore[arg-type]
    assert rows["CON6"].status is status
    assert rows["CON6"].values["closure"] == closure


@pytest.mark.parametrize(
    ("wanted", "enough", "exact"), [(1, HOLDS, FAILS), (2, HOLDS, HOLDS), (3, FAILS, FAILS)]
)
def test_as_many_controls_as_output_coordinates(
    wanted: int, enough: AuditStatus, exact: AuditStatus
) -> None:
    output = SimpleNamespace(dim=wanted, closure_residual=lambda: 0.0)
    rows = {row.id: row for row in _audit._counts(model(), (output,))}  # type: ignore[arg-type]
    assert (rows["CON5"].status, rows["CON9"].status) == (enough, exact)


def on_wheels(column: float) -> Any:
    """A platform and an arm: a body of one coordinate that no wheel should feel."""
    body = robot()
    body.wheels, body.mimics, body.nf = (SimpleNamespace(body="wheel"),), (), 1
    body.bodies = [SimpleNamespace(name=name) for name in ("base", "wheel", "arm")]
    body.platforms, body.below_platforms = (0,), ("wheel",)
    body.freedoms = lambda *names: [("base", "wheel", "arm").index(name) for name in names]
    body.constraints = lambda q: np.array([[5.0, 5.0, -column * q[1]]])
    return model(body)


def platform(monkeypatch: pytest.MonkeyPatch, **numbers: Any) -> dict[str, Any]:
    found = {"column": 0.0, "moved": 0.0, "ratios": (1.0, 1.0), "sides": (1, 1)} | numbers
    at = {tuple(q): i for i, q in enumerate(SAMPLES)}
    monkeypatch.setattr(_audit, "rows_change", lambda *_, **__: found["moved"])
    monkeypatch.setattr(_audit, "spread", lambda r, d, q: found["ratios"][at[tuple(q)]])
    monkeypatch.setattr(_audit, "orientation", lambda r, d, q: found["sides"][at[tuple(q)]])
    rows = _audit._platform(on_wheels(found["column"]), SAMPLES, numbers.get("working_set"))
    return {row.id: row for row in rows}


@pytest.mark.parametrize(
    ("id", "numbers", "status"),
    [
        ("NHR1", {"column": 0.9e-12}, HOLDS),
        ("NHR1", {"column": 1.1e-12}, FAILS),
        ("NHR2", {"moved": 0.9e-9}, HOLDS),
        ("NHR2", {"moved": 1.1e-9}, FAILS),
        ("NHR3", {"ratios": (1.0, 1.1e-6)}, HOLDS),
        ("NHR3", {"ratios": (1.0, 0.9e-6)}, FAILS),
        ("NHR3", {"sides": (-1, 1)}, FAILS),
        ("NHR3", {"sides": (-1, -1)}, HOLDS),
        ("NHR3", {"ratios": (1.0, 1e-9), "working_set": SAMPLES[:1]}, HOLDS),
        ("NHR3", {"sides": (-1, 1), "working_set": SAMPLES[1:]}, HOLDS),
    ],
)
def test_what_wheels_determine(
    id: str, numbers: dict[str, Any], status: AuditStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = platform(monkeypatch, **numbers)
    assert rows.pop(id).status is status
    assert {row.status for row in rows.values()} == {HOLDS}


@pytest.mark.parametrize(("sides", "told"), [((1, 1), False), ((-1, 1), True), ((-1, -1), False)])
def test_a_change_of_sign_is_explained(
    sides: tuple[int, int], told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = platform(monkeypatch, sides=sides)["NHR3"]
    assert ("the determinant changes its sign" in row.why) is told


def test_a_coordinate_without_inertia_counts_by_the_largest_radius() -> None:
    body = robot(push=0.05)
    body.mass_matrix = lambda q: np.diag([0.0, 4.0, 16.0])
    row = _audit._invariance(model(body), SAMPLES, Steps())  # type: ignore[arg-type]
    assert row.values["gravity"] == pytest.approx(0.05 / 4.0 / 2.0)  # a radius of 2 m
