"""The independent checker of quantities that a statement adds, and files that lie about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np
import pytest

from concur.proofs import (
    Capsule,
    Clearance,
    Expression,
    Ground,
    Obstacle,
    Reading,
    _recheck,
)  # fmt: skip
from concur.proofs._prove import prove
from concur.proofs._recheck import verify
from concur.proofs._recheck_arm import dynamics, rover_of, solve
from concur.proofs._recheck_case import Case, case_of
from concur.proofs._recheck_claims import Stored
from concur.proofs._recheck_formula import formulas_of
from concur.proofs._recheck_ground import _edges, stand_of
from concur.proofs._recheck_motion import Channel
from concur.proofs._recheck_smooth import Rejection, symbols
from concur.proofs._statement import Statement
from tests.proofs import test_jumps
from tests.proofs._rover import NEAR, prover, rover, states
from tests.proofs._spatial import friction, loads, wrench
from tests.proofs._stored import stored_of

T = 0.05
PHI = np.array([-0.1, 1.0, -1.6])
CASTER = {"caster": (0.5, 0.0, 0.0)}
CORNERS = {"front_left": (0.5, 0.25, 0.0), "front_right": (0.5, -0.25, 0.0)}


def ground(**changes) -> Ground:
    return Ground.of(rover().robot, **{"supports": CASTER, "grip": 0.8, **changes})


def case_and_file(
    statement: Statement, task: Any = None, duration: float = T
) -> tuple[Case, Stored]:
    task = rover() if task is None else task
    given = (task.servo, task.reference, duration, task.q0, task.s0)
    return case_of(*given), stored_of(prove(*given, statement))


def lie(stored: Stored, kind: str, share: float) -> Stored:
    """The same with claims of a kind that are tighter by a share."""
    claims = {
        key: replace(b, value=b.value - share * b.sign * abs(b.value)) if key[0] == kind else b
        for key, b in stored.bounds.items()
    }
    return replace(stored, bounds=claims)


@pytest.mark.extended
def test_wrenches_are_those_of_pinocchio() -> None:
    """Also of a base with products of inertia, whose wheels spin while it turns."""
    robot = rover().robot
    tensor = np.array([[0.9, 0.05, -0.1], [0.05, 1.1, 0.07], [-0.1, 0.07, 1.6]])
    skewed = replace(robot.bodies[0].inertia, com=(0.25, 0.03, 0.06), moments=tensor)
    bodies = [replace(robot.bodies[0], inertia=skewed), *robot.bodies[1:]]
    other = replace(robot, bodies=bodies)
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


def test_convex_polygons_have_as_many_edges_as_corners_whatever_the_rounding() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        turns = np.linspace(0, 2 * np.pi, 5)[:4] + rng.uniform(0.0, 1.0, 4)
        points = np.column_stack([np.cos(turns), np.sin(turns)]) * rng.uniform(0.3, 0.4)
        assert len(_edges(points + rng.normal(size=2), list("abcd"), 0.0)[1]) == 4


@cache
def on_ground() -> tuple[Case, Stored]:
    return case_and_file(replace(NEAR, ground=ground(), push=(0.01, 0.02)))


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
    case, stored = case_and_file(replace(NEAR, ground=ground(supports=CORNERS, **changes)))
    verify(case, stored)
    with pytest.raises(Rejection, match=f"{kind} .* exceeds the bound"):
        verify(case, lie(stored, kind, 0.1))


ARM = ("turret", "upper_arm", "forearm")
SCENE = Clearance(
    (
        Capsule.of(rover().robot, "upper_arm"),
        Capsule.of(rover().robot, "forearm"),
        Capsule("front", (0.4, -0.1, 0.0), (0.45, 0.1, 0.1), 0.05, "chassis"),
        Capsule("hub", (0.0, -0.05, 0.0), (0.0, 0.05, 0.0), 0.1, "left_wheel"),
    ),
    (
        Obstacle("ball", (0.1, 0.9, 0.4), (0.1, 0.9, 0.4), 0.05, distance=0.02),
        Obstacle("post", (0.6, 0.9, 0.0), (0.6, 1.0, 0.8), 0.03),
        Obstacle("deck", (0.4, -0.2, 0.0), (0.5, 0.2, 0.1), 0.05, "base", capsules=("forearm",)),
    ),
)
MADE = (
    Expression("power", "torque(left_wheel) * speed(left_wheel) + pi * speed('turret')", 40.0, "W"),
    Expression("bent", "sqrt(2 + cos(2 * angle(forearm))) / (1 + speed(turret) ** 2) - 1e-1 *"
               "torque(upper_arm) + sin(-angle(turret))"),
)  # fmt: skip
WRONG = Reading(
    dict(zip(ARM, (2e-4, 1e-4, 3e-4), strict=True)),
    dict(zip(("left_wheel", "right_wheel", *ARM), (0.01, 0.02, 2e-3, 1e-3, 4e-3), strict=True)),
    0.0005,
    0.0004,
)
ALL = replace(NEAR, clearance=SCENE, expressions=MADE, reading=WRONG, ground=ground())


@cache
def everything() -> tuple[Case, Stored]:
    return case_and_file(ALL)


@pytest.mark.extended
def test_all_together_are_confirmed_and_contain_the_values_of_states(monkeypatch) -> None:
    case, stored = everything()
    kept: list[dict[str, np.ndarray]] = []
    confirm = _recheck.confirm
    monkeypatch.setattr(
        _recheck, "confirm", lambda claims, found: (kept.append(found), confirm(claims, found))
    )
    verify(case, stored)
    found, servo, rng = kept[0], rover().servo, np.random.default_rng(11)
    proof, angles = prover(T), WRONG.of(ARM, rover().servo.model.shape_names)
    steps = np.diff([*stored.first, stored.count])
    tube = proof.tube(ALL, np.repeat(stored.disturbance, steps, axis=1))
    worst = np.zeros(2)
    for _ in range(150):
        step = int(rng.integers(proof.count))
        t = proof.step * (step + rng.uniform())
        q, s = states(proof, rng, t, *(part[:, step] for part in tube[:2]), tube[2][step])
        k = int(np.searchsorted(stored.first, step, side="right")) - 1
        sample = rover().reference(t)
        demand = sample.flat_pose, sample.twist, sample.acceleration
        read, moving, side = q.copy(), s + rng.choice([-1, 1], 5) * angles[1], rng.normal(size=2)
        read[:2] += WRONG.place * side / np.linalg.norm(side)
        read[2] += rng.choice([-1, 1]) * WRONG.heading
        read[5:] += rng.choice([-1, 1], 3) * angles[0]
        u, own = servo.law(q, s, *demand)[0], servo.law(read, moving, *demand)[0]
        d = servo.decoupling(q) @ np.linalg.solve(servo.model.mass_matrix(q), own - u)
        sizes = np.array([np.linalg.norm(d[:2]), np.linalg.norm(d[2:])])
        assert (sizes <= found["read"][:, k]).all()
        assert (np.abs(own - u) <= found["read_torque"][:, k]).all()
        worst = np.maximum(worst, sizes)
        way = servo.output(read) - servo.output(q)
        rate = servo.decoupling(read) @ moving - servo.decoupling(q) @ s
        far = [np.linalg.norm(v[r]) for v in (way, rate) for r in (slice(0, 2), slice(2, 5))]
        assert (np.array(far) <= found["moved"][:, k]).all()
        assert (np.abs(own) <= found["torque"][:, k]).all()
        power = own[0] * moving[0] + np.pi * moving[2]
        bent = np.sqrt(2 + np.cos(2 * read[7])) / (1 + moving[2] ** 2) - 0.1 * own[3]
        bent -= np.sin(read[5])
        assert (np.array([power, bent]) <= found["formula"][:, k]).all()
        apart = np.array(ca.DM(SCENE.seen(rover().robot, ca.SX(ca.DM(q))))).ravel()
        assert (apart >= -found["apart"][:, k] - 1e-12).all()
    assert (found["read"].max(axis=1) < 1.5 * worst).all()


def _state(s: Stored, **changes: Any) -> Stored:
    return replace(s, statement=replace(s.statement, **changes))


def _other(s: Stored, **changes: Any) -> Stored:
    """The same with another ball."""
    ball = replace(SCENE.obstacles[0], **changes)
    return _state(s, clearance=replace(SCENE, obstacles=(ball, *SCENE.obstacles[1:])))


MORE: list[tuple[str, Callable[[Stored], Stored]]] = [
    ("clearance .* exceeds the bound", lambda s: lie(s, "clearance", 0.1)),
    ("expression .* exceeds the bound", lambda s: lie(s, "expression", 0.1)),
    ("exceeds the bound", lambda s: _other(s, start=(0.1, 0.85, 0.4), end=(0.1, 0.85, 0.4))),
    ("limit is not that", lambda s: _other(s, distance=0.1)),
    ("other quantities", lambda s: _other(s, capsules=("forearm",))),
    ("other quantities", lambda s: _state(s, clearance=None)),
    ("turns with a wheel", lambda s: _state(s, clearance=replace(
        SCENE, capsules=(replace(SCENE.capsules[0], body="left_wheel"), *SCENE.capsules[1:])))),
    ("a capsule on `hand`", lambda s: _state(s, clearance=replace(
        SCENE, capsules=(replace(SCENE.capsules[0], body="hand"), *SCENE.capsules[1:])))),
    ("other quantities", lambda s: _state(s, expressions=MADE[:1])),
    ("exceeds the bound", lambda s: _state(s, expressions=(
        replace(MADE[0], formula="2 * " + MADE[0].formula), MADE[1]))),
    ("unknown name", lambda s: _state(s, expressions=(
        replace(MADE[0], formula="angle(left_wheel)"), MADE[1]))),
    ("not unique", lambda s: _state(s, expressions=(MADE[0], MADE[0]))),
    ("is not below D", lambda s: _state(s, reading=replace(WRONG, place=0.005))),
    ("exceed the room", lambda s: replace(s, room=0.5 * s.room)),
    ("no room", lambda s: replace(s, room=None)),
    ("no room", lambda s: replace(s, room=s.room * np.nan)),
    ("no room", lambda s: replace(s, room=s.room[..., :0])),
    ("unknown name", lambda s: _state(s, reading=replace(WRONG, speeds={"hand": 1.0}))),
    ("exceeds the bound", lambda s: _other(s, radius=0.1)),
]  # fmt: skip


@pytest.mark.extended
@pytest.mark.parametrize("k", range(len(MORE)))
def test_more_lies_are_not_confirmed(k: int) -> None:
    case, stored = everything()
    reason, change = MORE[k]
    with pytest.raises(Rejection, match=reason), np.errstate(all="ignore"):
        verify(case, change(stored))


def test_formulas_with_other_parts_are_rejected() -> None:
    for text in ("speed(turret", "exp(speed(turret))", "__import__('os')", "speed(turret) ** 9",
                 "True", "'a'", "angle(1)", "(" * 900, "-" * 400 + "1"):  # fmt: skip
        own = SimpleNamespace(name="x", formula=text, below=1.0, unit="")
        with pytest.raises(Rejection):
            formulas_of([own], list(ARM), list(ARM), list(ARM))


@cache
def jumping() -> tuple[Case, Stored]:
    statement = replace(NEAR, period=0.004, delay=0.003, torque_error=(0.05,) * 5)
    return case_and_file(statement, test_jumps.task(statement), test_jumps.T)


@pytest.mark.extended
def test_jumps_of_the_reference_count(monkeypatch) -> None:
    case, stored = jumping()
    # Without them the tube would not hold what the simulation of `test_jumps` does.
    seen = []
    tube = Channel.tube

    def spy(channel, *given):
        seen.append((given, tube(channel, *given)))
        return seen[-1][1]

    monkeypatch.setattr(Channel, "tube", spy)
    verify(case, stored)
    (*given, short), with_jump = seen[1]
    assert short.sum() == pytest.approx(0.02 / test_jumps.KNOT * 0.007, rel=1e-6)
    knot = round(test_jumps.KNOT * stored.count / test_jumps.T)
    assert np.flatnonzero(short).tolist() == [knot, knot + 1]
    without = tube(case.motion.channels[1], *given, np.zeros(stored.count))
    assert (with_jump[1][knot:] > without[1][knot:] + 0.5 * short.sum()).all()
    assert (with_jump[1][:knot] == without[1][:knot]).all()
    ends = np.array([0.0, 0.03, 0.035, 0.04, 0.06])
    found = _recheck._jumps(case, ends[:-1], ends[1:], 0.007, stored.count)[0]
    assert (found[1] > 0.0).tolist() == [False, True, True, False]
    monkeypatch.undo()
    low = np.where(np.arange(len(stored.first)) > 0, 0.8, 1.0) * stored.disturbance
    with pytest.raises(Rejection, match="is not below D"):
        verify(case, replace(stored, disturbance=low))


def test_references_whose_velocity_jumps_are_rejected() -> None:
    stored = jumping()[1]
    given = test_jumps.task(stored.statement)
    jumping_ = test_jumps._Jumping(given.reference)
    other = case_of(given.servo, jumping_, test_jumps.T, given.q0, given.s0)
    with pytest.raises(Rejection, match=r"jumps at 0\.03 s"):
        verify(other, stored)
