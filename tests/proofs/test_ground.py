"""Loads and friction of wheels: bounds contain those of Pinocchio, and false limits are refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from concur.certify import Status
from concur.errors import ConcurError, OutputError
from concur.proofs import Ground, prove_task
from concur.proofs._attack import Attack
from concur.proofs._prove import prove
from concur.proofs._sampled import counterexample, sample_statement
from concur.proofs._within import scaled_masses
from concur.simulation import mujoco_run
from tests.proofs._rover import NEAR, prover, rover, states, swept
from tests.proofs._spatial import PLACES, friction, loads, wrench

T = 0.05
CASTER = {"caster": (0.5, 0.0, 0.0)}


def ground(**changes) -> Ground:
    return Ground.of(rover().robot, **{"supports": CASTER, **changes})


def task(own: Ground, duration: float = T, **changes) -> SimpleNamespace:
    names = ("path", "servo", "reference", "q0", "s0", "robot")
    given = {name: getattr(rover(), name) for name in names}
    statement = replace(NEAR, ground=own, **changes)
    return SimpleNamespace(**given, duration=duration, statement=statement)


def seen(own: Ground, w: object) -> np.ndarray:
    return np.array(own.seen(np.asarray(w))).ravel()


def statement_rows(attack: Attack, runs: np.ndarray) -> dict:
    return {made.key: run for made, run in zip(attack.quantities, runs, strict=True)}


def test_a_weight_is_balanced_by_levers() -> None:
    own = ground()
    still = np.array([0.0, 0.0, 100.0, 0.0, -25.0, 0.0])  # 100 N at x = 0.25 m
    assert seen(own, still)[:3] == pytest.approx([25.0, 25.0, 50.0])
    # A horizontal force in the ground has no effect on loads, one above it has.
    pulled = still + np.array([10.0, 0.0, 0.0, 0.0, -1.0, 0.0])
    assert seen(own, pulled)[:3] == pytest.approx([25.0, 25.0, 50.0])
    pulled = still + 10.0 * np.eye(6)[0]
    assert seen(own, pulled)[2] == pytest.approx(50.0 - 10.0 * 0.1 / 0.5)
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = rng.normal(size=6) + still
        n, (left, right, across) = loads(w), friction(w)
        expected = [np.hypot(left, across) / n[0], np.hypot(right, across) / n[1]]
        assert seen(own, w) == pytest.approx([*n, *expected])


def test_four_contacts_share_a_weight_by_compliance_or_hold_about_edges() -> None:
    corners = {"front_left": (0.5, 0.25, 0.0), "front_right": (0.5, -0.25, 0.0)}
    shared = ground(supports=corners, compliance=1.0)
    still = np.array([0.0, 0.0, 100.0, 0.0, -25.0, 0.0])
    assert seen(shared, still)[:4] == pytest.approx([25.0] * 4)
    soft = dict.fromkeys(shared.names, 1.0) | {"front_left": 1e9, "front_right": 1.0}
    other = ground(supports=corners, compliance=soft)
    assert seen(other, still)[:4] == pytest.approx([50.0, 0.0, 0.0, 50.0], abs=1e-6)
    loose = ground(supports=corners)
    assert [made.kind for made in loose.quantities] == ["tipping"] * 4
    assert "existence" in loose.sentence
    moments = dict(zip([made.name for made in loose.quantities], seen(loose, still), strict=True))
    assert moments["right_wheel to front_right"] == pytest.approx(25.0)
    assert moments["left_wheel to right_wheel"] == pytest.approx(25.0)
    # A weight in front of all contacts tips the base about the front edge alone.
    ahead = seen(loose, np.array([0.0, 0.0, 100.0, 0.0, -55.0, 0.0]))
    assert sorted(np.sign(ahead).tolist()) == [-1.0, 1.0, 1.0, 1.0]
    assert ahead.min() == pytest.approx(-5.0)
    # A contact inside the polygon changes nothing.
    middle = ground(supports={**corners, "middle": (0.2, 0.0, 0.0)})
    assert {made.name for made in middle.quantities} == set(moments)


def test_grounds_that_are_not_well_posed_are_rejected_with_the_cure() -> None:
    with pytest.raises(OutputError, match=r"three or more .*not well posed.*Declare a support"):
        ground(supports={})
    with pytest.raises(ConcurError, match="in one line"):
        ground(supports={"caster": (0.0, 0.1, 0.0)})
    with pytest.raises(ConcurError, match="unlike those of wheels"):
        ground(supports={"left_wheel": (0.5, 0.1, 0.0)})
    four = {"a": (0.5, 0.25, 0.0), "b": (0.5, -0.25, 0.0)}
    for limit in ({"grip": 0.5}, {"least_load": 1.0}):
        with pytest.raises(OutputError, match=r"compliance.*without it"):
            ground(supports=four, **limit)
        ground(supports=four, compliance=1.0, **limit)
    with pytest.raises(OutputError, match="`least_load`, as the loads are determined"):
        ground(tipping=1.0)
    with pytest.raises(OutputError, match="not negative"):
        ground(grip=-0.1)
    with pytest.raises(OutputError, match="left_wheel, right_wheel, caster"):
        ground(least_load={"wheel": 1.0})


@pytest.mark.extended
def test_states_in_the_tube_stay_within_the_bounds() -> None:
    held, push, e = np.array([0.02, 0.15]), np.array([0.01, 0.08]), 0.005
    statement = replace(NEAR, ground=ground(), push=tuple(push), masses=e)
    case, servo = prover(T), rover().servo
    (x, ve, wall), found, _ = swept(case, held, 0.0125, statement=statement)
    rng, model = np.random.default_rng(2), servo.model
    worst = np.full((len(case.first), 5), -np.inf)

    def inside(radii: np.ndarray) -> np.ndarray:
        d = [rng.normal(size=size) for size in (2, 3)]
        return np.concatenate([r * p / np.linalg.norm(p) for r, p in zip(radii, d, strict=True)])

    for _ in range(200):
        step = int(rng.integers(case.count))
        t = case.step * (step + rng.uniform())
        q, s = states(case, rng, t, x[:, step], ve[:, step], wall[step])
        k = int(np.searchsorted(case.first, step, side="right")) - 1
        sample = rover().reference(t)
        error, rate = servo.errors(q, s, sample.flat_pose, sample.twist)
        stiffness = np.repeat([4.0, 9.0], (2, 3))
        damping = np.repeat([4.0, 6.0], (2, 3))
        nu = sample.acceleration + stiffness * error - damping * rate
        slope = servo.decoupling(q)
        sdot = np.linalg.solve(slope, nu + inside(held) - servo.motion(q, servo.velocity(q, s))[1])
        v = model.velocity(q, s)
        vdot = model.lift(q)[0] @ sdot + model.velocity_drift(q, v)
        w = wrench(q, v, vdot, e * rng.choice([-1.0, 1.0], size=6))
        # Pushes are forces at the points of the outputs.
        f = np.linalg.solve(slope.T, model.mass_matrix(q) @ np.linalg.solve(slope, inside(push)))
        turn = np.array([[np.cos(q[2]), np.sin(q[2])], [-np.sin(q[2]), np.cos(q[2])]])
        place = servo.output(q)
        for at, force in (
            ([*(turn @ (place[:2] - q[:2])), 0.0], [*(turn @ f[:2]), 0.0]),
            ([*(turn @ (place[2:4] - q[:2])), place[4]], [*(turn @ f[2:4]), f[4]]),
        ):
            w -= np.concatenate([force, np.cross(at, force)])
        n, (left, right, across) = loads(w), friction(w)
        own = [*(-n), np.hypot(left, across) / n[0], np.hypot(right, across) / n[1]]
        assert (own <= found[k]["added"]).all()
        worst[k] = np.maximum(worst[k], own)
    bound = np.max([part["added"] for part in found], axis=0)
    # Wheels and caster within 6 N, friction within a third.
    assert (bound[:3] - worst.max(axis=0)[:3] < 6.0).all()
    assert (bound[3:] < 1.33 * worst.max(axis=0)[3:]).all()


@pytest.mark.extended
def test_loads_of_worlds_are_those_of_pinocchio() -> None:
    attack = Attack(task(ground(), duration=0.5))
    point = attack.balls.draw(np.random.default_rng(3), 1)
    rows = statement_rows(attack, attack(point, 1)[2][0])
    rolled, states = attack._roll(point, [], 1).record, attack.program.states
    shares = attack.balls.inside(point)["masses"]
    numbers = attack.program.numbers(scaled_masses(attack.plant, shares))[0]
    for k in (0, 200, 499):
        q, v = (rolled.x[0, k, states[name]] for name in ("q", "v"))
        vdot = attack.plant.world_acceleration(q, v, rolled.u[0, k], numbers)[0]
        w = wrench(q, v, vdot, shares[0])
        n, (left, right, across) = loads(w), friction(w)
        for name, load in zip(PLACES, n, strict=True):
            assert rows["load", name][k] == pytest.approx(load, abs=1e-8)
        for name, load, along in (("left_wheel", n[0], left), ("right_wheel", n[1], right)):
            assert rows["grip", name][k] == pytest.approx(np.hypot(along, across) / load, rel=1e-8)


def on_the_reference(own: Ground, duration: float) -> tuple[Attack, dict]:
    """Values over time of the task from a start without errors, with torques held for 1 ms."""
    case = task(own, duration)
    start = case.servo.start(case.reference, near=[0.0, 0.0, 0.0, *case.q0[3:]])
    case.q0, case.s0 = start.q, start.s
    attack = Attack(case)
    return attack, statement_rows(attack, attack(np.zeros((1, attack.balls.size)), 1)[2][0])


@pytest.mark.extended
def test_loads_are_those_of_contacts_in_mujoco() -> None:
    attack, rows = on_the_reference(ground(), 2.0)
    own = attack.task
    run = mujoco_run(own.servo, own.reference, 2.0, own.q0, own.s0, supports=CASTER)
    # The contacts swing up to their equilibrium at first.
    later = slice(1000, 2000)
    for name, load in zip(run.names, run.load.T, strict=True):
        apart = load[later] - rows["load", name][later]
        assert abs(apart.mean()) < 0.1, name
        assert np.abs(apart).max() < 3.0, name


@pytest.mark.by_default(1)
@pytest.mark.parametrize("kind", ["load", "grip", "tipping"])
def test_limits_of_each_kind_are_refuted_where_the_declared_motion_breaks_them(kind) -> None:
    corners = {"front_left": (0.5, 0.25, 0.0), "front_right": (0.5, -0.25, 0.0)}
    made = {
        "load": lambda limit: ground(least_load={"right_wheel": limit}),
        "grip": lambda limit: ground(grip=limit),
        "tipping": lambda limit: ground(supports=corners, tipping=limit),
    }[kind]
    attack = Attack(task(made(0.1 if kind == "grip" else 1.0), 0.3))
    rows = statement_rows(attack, attack(np.zeros((1, attack.balls.size)), 1)[2][0])
    own = [run for key, run in rows.items() if key[0] == kind]
    if kind == "load":
        own = [rows["load", "right_wheel"]]
    worst = max(run.max() for run in own) if kind == "grip" else min(run.min() for run in own)
    assert counterexample(task(made(worst + (1e-4 if kind == "grip" else -1e-4)), 0.3)) == ""
    told = counterexample(task(made(worst - (1e-4 if kind == "grip" else -1e-4)), 0.3))
    assert f"held torques, {kind} " in told


@pytest.mark.extended
def test_a_caster_behind_the_axle_tips_the_rover() -> None:
    found = prove_task(task(ground(supports={"caster": (-0.5, 0.0, 0.0)}), 0.3))
    assert found.status is Status.REFUTED
    assert "load caster is -17" in found.sentence
    assert "at 0 s, limit 0" in found.sentence
    # Pinocchio agrees: the start accelerates so, and presses the caster from above.
    attack = Attack(task(ground(supports={"caster": (-0.5, 0.0, 0.0)}), 0.3))
    rolled = attack._roll(np.zeros((1, attack.balls.size)), [], 1).record
    q, v = (rolled.x[0, 0, attack.program.states[name]] for name in ("q", "v"))
    vdot = attack.plant.world_acceleration(q, v, rolled.u[0, 0], attack.program.numbers()[0])[0]
    behind = {**PLACES, "caster": (-0.5, 0.0)}
    load = loads(wrench(q, v, vdot), behind)[2]
    assert f"load caster is {load:.4g} N" in found.sentence


@pytest.mark.extended
def test_bounds_are_shown_or_not_on_both_sides_of_their_limits() -> None:
    def attempt(own: Ground):
        given = task(own, masses=0.002, push=(0.002, 0.01))
        start = given.q0, given.s0
        return prove(given.servo, given.reference, T, *start, given.statement, edge=0.015), given

    found, given = attempt(ground())
    assert found.status is Status.UNVERIFIED
    assert "loaded by at least" in found.sentence
    bounds = {bound.quantity.key: bound.value for bound in found.bounds}
    sampled = sample_statement(given, 200, proof=found)
    assert sampled.outside(found) == ()
    rows = {row.quantity.key: row for row in sampled.against(found)}
    for name in PLACES:
        assert rows["load", name].found - bounds["load", name] < 6.0
    for kind, name, room in (("load", "right_wheel", -0.5), ("grip", "right_wheel", 0.01)):
        for sign, status in ((1.0, Status.UNVERIFIED), (-1.0, Status.UNDECIDED)):
            limit = bounds[kind, name] + sign * room
            own = {"load": {"least_load": {name: limit}}, "grip": {"grip": limit}}[kind]
            verdict = attempt(ground(**own))[0]
            # Halved cells may show a bit more than the whole ones.
            assert verdict.status is status or verdict.cells > found.cells, (kind, sign)
            assert (verdict.status is Status.UNVERIFIED) == all(b.kept for b in verdict.bounds)
