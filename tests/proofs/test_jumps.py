"""References whose acceleration jumps: held torques are wrong by the jump for a while."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from concur.certify import Status
from concur.errors import OutputError
from concur.outputs import references
from concur.outputs.references._reference import Pieces
from concur.proofs import sample_statement
from concur.proofs._errors import Channel
from concur.proofs._prove import Prover, prove
from concur.proofs._statement import Statement
from tests.proofs._rover import rover

T, KNOT = 0.06, 0.03
HAND = np.array([0.15, 0.75, 0.15])
EXACT = Statement((0.0, 0.0), (0.0, 0.0), 0.0, period=0.004)  # the knot is between two ticks


def reference(rise: float = 0.02, end: float = KNOT) -> object:
    """Straight on at 0.3 m/s; the hand also rises at constant acceleration, which ends at once."""
    points = [HAND, HAND + np.array([0.3 * end, 0.0, rise * end / 2.0])]
    hand = references.waypoints([0.0, end], points, [[0.3, 0, 0], [0.3, 0, rise]])
    return references.stack(references.polynomial([[0.0, 0.0], [0.3, 0.0]]), hand)


def task(statement: Statement, **changes: object) -> SimpleNamespace:
    own = rover()
    demand = reference(**changes)
    start = own.servo.start(demand, near=[0.0, 0.0, 0.0, *np.asarray(own.q0)[3:]])
    q0 = np.array(start.q)
    q0[:3] = [-0.25, 0.0, 0.0]
    return SimpleNamespace(
        path=own.path, servo=own.servo, robot=own.robot, reference=demand, duration=T,
        q0=q0, s0=start.s, statement=statement,
    )  # fmt: skip


def proof_of(given: SimpleNamespace):
    start = given.q0, given.s0
    return prove(given.servo, given.reference, T, *start, given.statement, edge=0.01)


def test_tubes_contain_short_disturbances_of_any_sign() -> None:
    channel, step, n = Channel(9.0, 6.0, slice(0, 3)), 0.005, 60
    areas = np.zeros(n)
    areas[[10, 11, 30]] = [0.004, 0.001, 0.003]
    x, ve = channel.tube(0.0, 0.0, np.zeros(n), step, areas)
    plain = channel.tube(0.0, 0.0, np.zeros(n), step)
    assert (plain[0] == 0.0).all()
    worst = np.zeros((2, n))
    for begin in (0.0, 0.3, 0.9):
        for sign in (1.0, -1.0):
            # Impulses anywhere inside their steps.
            z = np.zeros((2, n * 20))
            times = (np.arange(n * 20) + 0.5) * step / 20
            for k, area, s in ((10, 0.004, 1.0), (11, 0.001, 1.0), (30, 0.003, sign)):
                since = times - step * (k + begin)
                kernel = channel.flow(np.maximum(since, 0.0))[:, 1]
                z += s * area * kernel * (since >= 0.0)
            found = np.abs(z).reshape(2, n, 20).max(axis=2)
            assert (found <= np.array([x, ve]) * (1 + 1e-12)).all()
            worst = np.maximum(worst, found)
    assert x[-1] < 1.1 * worst[0, -1]
    assert ve.max() < 1.2 * worst[1].max()


def test_the_jump_is_that_of_the_formula() -> None:
    given = task(EXACT)
    case = Prover(given.servo, given.reference, T, given.q0, given.s0)
    jump = 0.02 / KNOT
    assert case.jumps == pytest.approx(np.array([[0.0], [jump]]))
    short = np.flatnonzero(case.first == case.knots[0])
    assert case.last[short] - case.first[short] == 1
    areas = case._areas(EXACT)
    assert areas.sum(axis=1) == pytest.approx([0.0, jump * 0.004])
    assert np.flatnonzero(areas[1]).tolist() == case.knots.tolist()
    late = case._areas(replace(EXACT, delay=0.004))
    assert late.sum(axis=1) == pytest.approx([0.0, jump * 0.008])
    assert np.count_nonzero(late[1]) == 2
    k = int(short[0])
    assert case._jump(EXACT, k - 1).tolist() == [0.0, 0.0]
    assert case._jump(EXACT, k)[1] == pytest.approx(jump)
    assert case._jump(EXACT, k + 1).tolist() == [0.0, 0.0]
    assert case._jump(replace(EXACT, delay=0.004), k + 1)[1] == pytest.approx(jump)
    assert case._jump(replace(EXACT, period=0.0), k).tolist() == [0.0, 0.0]


@pytest.mark.extended
def test_worlds_stay_inside_and_would_not_without_the_jump(monkeypatch) -> None:
    given = task(EXACT)
    found = proof_of(given)
    assert found.status is Status.UNVERIFIED
    assert found.sources["jumps of the reference"].max() > 0.6
    sampled = sample_statement(given, 2, proof=found)
    assert sampled.outside(found) == ()
    assert 0.3 < sampled.excess < 1.0
    monkeypatch.setattr(Prover, "_areas", lambda case, _: np.zeros((2, case.count)))
    monkeypatch.setattr(Prover, "_jump", lambda *_: np.zeros(2))
    blind = proof_of(given)
    assert blind.status is Status.UNVERIFIED
    assert sample_statement(given, 2, proof=blind).excess > 1.5


class _Jumping:
    """A reference whose velocity jumps where rows of its table change."""

    def __init__(self, whole) -> None:
        self.whole = whole

    def __call__(self, t: float):
        return self.whole(t)

    def pieces(self) -> Pieces:
        found = self.whole.pieces()
        t, rows = ca.SX.sym("t"), [ca.SX.sym("r", table.width) for table in found.tables]
        pose, twist, acceleration = found.function(t, *rows)
        changed = [pose, twist + 0.01 * sum(ca.sumsqr(row) for row in rows), acceleration]
        return Pieces(ca.Function("f", [t, *rows], changed), found.tables)


def test_velocities_that_jump_are_rejected() -> None:
    given = task(EXACT)
    with pytest.raises(OutputError, match=r"continuous velocity.*jump by .* at 0\.03 s"):
        Prover(given.servo, _Jumping(given.reference), T, given.q0, given.s0)
