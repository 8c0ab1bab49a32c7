"""The independent checker of quantities that a statement adds, and files that lie about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from concur.multibody import with_numbers
from concur.proofs import Ground
from concur.proofs._file import claim
from concur.proofs._prove import prove
from concur.proofs._recheck import verify
from concur.proofs._recheck_arm import dynamics, rover_of, solve
from concur.proofs._recheck_case import Case, Stored, StoredBound, case_of
from concur.proofs._recheck_ground import stand_of
from concur.proofs._recheck_smooth import Rejection, symbols
from concur.proofs._statement import Statement
from tests.proofs._rover import NEAR, rover
from tests.proofs._spatial import friction, loads, wrench

T = 0.05
PHI = np.array([-0.1, 1.0, -1.6])
CASTER = {"caster": (0.5, 0.0, 0.0)}
CORNERS = {"front_left": (0.5, 0.25, 0.0), "front_right": (0.5, -0.25, 0.0)}


def ground(**changes) -> Ground:
    return Ground.of(rover().robot, **{"supports": CASTER, "grip": 0.8, **changes})


def stored_of(statement: Statement) -> tuple[Case, Stored]:
    task = rover()
    found = prove(task.servo, task.reference, T, task.q0, task.s0, statement)
    assert found.bounds, found.sentence
    claims = {
        b.quantity.key: StoredBound(b.kind, b.name, b.unit, b.sign, claim(b), b.limit)
        for b in found.bounds
    }
    parts = len(found.wall), found.edge, np.asarray(found.first), found.disturbance
    stored = Stored(*parts, list(found.leaves), claims, found.statement)
    return case_of(task.servo, task.reference, T, task.q0, task.s0), stored


def lie(stored: Stored, kind: str, share: float) -> Stored:
    """The same with claims of a kind that are tighter by a share."""
    claims = {
        key: replace(b, value=b.value - share * b.sign * abs(b.value)) if key[0] == kind else b
        for key, b in stored.bounds.items()
    }
    return replace(stored, bounds=claims)


def test_wrenches_are_those_of_pinocchio() -> None:
    """Also of a base with products of inertia, whose wheels spin while it turns."""
    robot = rover().robot
    tensor = np.array([[0.9, 0.05, -0.1], [0.05, 1.1, 0.07], [-0.1, 0.07, 1.6]])
    skewed = replace(robot.bodies[0].inertia, com=(0.25, 0.03, 0.06), moments=tensor)
    bodies = [replace(robot.bodies[0], inertia=skewed), *robot.bodies[1:]]
    other = with_numbers(robot, bodies, robot.wheels, robot.drives)
    own, rng = rover_of(other, rover().servo.outputs), np.random.default_rng(3)
    stand = stand_of(other, own, replace(NEAR, ground=ground()))
    lift = np.zeros((8, 5))
    lift[0, 0] = lift[2, 1] = lift[5, 2] = lift[6, 3] = lift[7, 4] = 1.0
    lift[3, :2], lift[4, :2] = (10.0, -2.5), (10.0, 2.5)
    for _ in range(5):
        phi = PHI + rng.normal(size=3) * 0.3
        w, change = rng.normal(size=(2, 5))
        q = np.array([0.0, 0.0, 0.0, *rng.normal(size=2), *phi])
        expected = wrench(q, lift @ w, lift @ change, robot=other)
        hand = np.asarray(rover().servo.output(q))[2:]
        rho, half = hand - [0.25, 0.0, 0.0], np.full((3, 1), 1e-4)
        angles = solve(own, rho[:, None], half, phi[:, None] + 0.01)
        f = dynamics(own, symbols(rho[:, None], half), angles.phi, spatial=True)
        y = np.linalg.solve(f.rates.c[..., 0], w)
        # From rates of (v, omega, joints) to the accelerations of the outputs.
        step = 1e-6

        def velocities(at: np.ndarray, rates: np.ndarray) -> np.ndarray:
            return rover().servo.decoupling(at) @ (lift @ rates)[3:]

        moved = q + step * np.array([w[0], 0.0, w[1], *(lift @ w)[3:]])
        back = q - step * np.array([w[0], 0.0, w[1], *(lift @ w)[3:]])
        nu = velocities(q, change) + (velocities(moved, w) - velocities(back, w)) / (2 * step)
        total = sum(
            one.c[..., 0] @ nu + np.einsum("ijk,j,k", two.c[..., 0], y, y) + zero.c[:, 0]
            for one, two, zero in f.wrenches
        )
        np.testing.assert_allclose(total, expected, rtol=1e-6, atol=1e-5)
        forces = stand.rows @ total
        np.testing.assert_allclose(forces[:3], loads(expected), rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(forces[3:], friction(expected), rtol=1e-6, atol=1e-5)


def test_contacts_of_other_places_or_numbers_are_rejected() -> None:
    robot = rover().robot
    own = rover_of(robot, rover().servo.outputs)
    made = ground()
    for changes in (
        {"height": -0.11},
        {"places": ((0.0, 0.26), *made.places[1:])},
        {"names": ("right_wheel", "left_wheel", "caster")},
        {"axle": 0, "grip": None},
        {"places": (*made.places[:2], (0.0, 0.1))},
        {"names": made.names[:2]},
        {"least_load": (0.0, 0.0)},
    ):
        with pytest.raises(Rejection, match="ground"):
            stand_of(robot, own, replace(NEAR, ground=replace(made, **changes)))
    four = ground(supports=CORNERS, grip=None)
    assert len(stand_of(robot, own, replace(NEAR, ground=four)).entries) == 4
    soft = ground(supports=CORNERS, compliance=1.0)
    with pytest.raises(Rejection, match="compliance"):
        stand_of(robot, own, replace(NEAR, ground=replace(soft, compliance=(1.0, 1.0, 1.0, 0.0))))


@pytest.mark.parametrize(
    "made",
    [
        ground(),
        ground(supports=CORNERS, compliance={**dict.fromkeys(CORNERS, 3.0), "left_wheel": 1.0,
                                             "right_wheel": 2.0}),
        ground(supports={**CORNERS, "middle": (0.2, 0.0, 0.0)}, grip=None),
    ],
    ids=["three", "springs", "edges"],
)  # fmt: skip
def test_rows_of_loads_and_edges_are_those_of_the_statement(made: Ground) -> None:
    own = rover_of(rover().robot, rover().servo.outputs)
    stand = stand_of(rover().robot, own, replace(NEAR, ground=made))
    units = {made.key: made for made in made.quantities}
    assert {entry[:2] for entry in stand.entries} == set(units)
    order = [[entry[:2] for entry in stand.entries].index(q.key) for q in made.quantities]
    for (kind, name, unit, sign, limit), q in zip(
        [stand.entries[k] for k in order], made.quantities, strict=True
    ):
        assert (kind, name, unit, sign) == (*q.key, q.unit, q.sign)
        assert limit == made.limits.get(q.key)
    count = len(made.quantities) - made.axle
    rows = stand.rows[order[:count]] if made.loose else stand.rows
    np.testing.assert_allclose(rows, made.rows, atol=1e-12)


@cache
def on_ground() -> tuple[Case, Stored]:
    return stored_of(replace(NEAR, ground=ground(), push=(0.01, 0.02)))


LIES: list[tuple[str, Callable[[Stored], Stored]]] = [
    ("load .* exceeds the bound", lambda s: lie(s, "load", 0.05)),
    ("grip .* exceeds the bound", lambda s: lie(s, "grip", 0.1)),
    ("other quantities", lambda s: replace(s, statement=replace(s.statement, ground=None))),
    (
        "exceeds the bound",
        lambda s: replace(s, statement=replace(s.statement, ground=ground(
            supports={"caster": (0.4, 0.0, 0.0)}))),
    ),
    (
        "limit is not that",
        lambda s: replace(s, statement=replace(s.statement, ground=ground(grip=0.9))),
    ),
    (
        "limit is not that",
        lambda s: replace(s, statement=replace(s.statement, ground=ground(least_load=60.0))),
    ),
]  # fmt: skip


def test_loads_and_grip_are_confirmed() -> None:
    verify(*on_ground())


@pytest.mark.parametrize("k", range(len(LIES)))
def test_lies_about_loads_and_grip_are_not_confirmed(k: int) -> None:
    case, stored = on_ground()
    reason, change = LIES[k]
    with pytest.raises(Rejection, match=reason), np.errstate(all="ignore"):
        verify(case, change(stored))


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["tipping", "load"])
def test_four_contacts_are_confirmed(kind: str) -> None:
    changes = {"grip": None} if kind == "tipping" else {"compliance": 1.0}
    case, stored = stored_of(replace(NEAR, ground=ground(supports=CORNERS, **changes)))
    verify(case, stored)
    with pytest.raises(Rejection, match=f"{kind} .* exceeds the bound"):
        verify(case, lie(stored, kind, 0.1))
