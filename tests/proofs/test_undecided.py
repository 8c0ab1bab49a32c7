"""Sentences of undecided rovers: what breaks the proof, when, and numbers; each beside a proof."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from concur.certify import Status
from concur.proofs import _cells
from concur.proofs._prove import prove
from concur.proofs._statement import Statement
from tests.proofs._rover import NEAR, rover

T, EDGE = 0.05, 0.015


def attempt(statement: Statement, duration: float = T, **changes: object):
    task = rover()
    given = {"servo": task.servo, "reference": task.reference, "duration": duration}
    given |= {"q0": task.q0, "s0": task.s0, "statement": statement, "edge": EDGE}
    return prove(**{**given, **changes})


def undecided(pattern: str, *arguments: object, **changes: object):
    """The proof, and the numbers of its sentence, which has no bounds."""
    found = attempt(*arguments, **changes)
    assert found.status is Status.UNDECIDED
    match = re.fullmatch(pattern.replace("#", "([0-9.e+-]+)"), found.reason)
    assert match, found.reason
    return found, [float(number) for number in match.groups()]


def proved(*arguments: object, **changes: object):
    found = attempt(*arguments, **changes)
    assert found.status is Status.UNVERIFIED, found.sentence
    return found


@pytest.fixture(scope="module")
def near():
    return proved(NEAR)


@pytest.mark.extended
def test_a_disturbance_that_grows_with_its_tube_has_its_parts() -> None:
    text = (
        "the disturbance grows with the tube at # s, of `hand` to # m/s\\^2 in a tube of # m: "
        "period and delay # m/s\\^2, masses # m/s\\^2"
    )
    long = replace(NEAR, period=0.05)
    found, (time, whole, tube, period, masses) = undecided(text, long)
    assert time == 0.0
    assert whole == pytest.approx(period + masses, rel=0.01)
    assert NEAR.place[1] < tube < NEAR.place[1] + whole * T**2 / 2 + NEAR.speed[1] * T
    assert found.cure == "Reduce period and delay, or raise the gains."
    proved(replace(NEAR, period=0.02))


def test_too_many_cells_have_their_number_and_the_tubes(near) -> None:
    text = (
        "a segment needs more than # cells, at # s in tubes of # m and # m and with a heading "
        "within # rad"
    )
    assert near.status is Status.UNVERIFIED
    assert np.isfinite([*near.x, *near.ve, near.wall]).all()
    found, numbers = undecided(text, replace(NEAR, place=(0.002, 0.5)))
    assert not np.isfinite([*found.x, *found.ve, found.wall]).any()
    assert found.wall.shape == near.wall.shape
    assert numbers[:2] == [_cells.MOST, 0.0]
    assert numbers[2:] == pytest.approx([0.002, 0.5, 0.002], rel=0.4)
    assert found.cells == 0


@pytest.mark.extended
def test_the_number_of_halves_is_bounded(near, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole cells are fewer than their halves, which the torque limit asks for."""
    statement = replace(NEAR, torques={"turret": 5.28})
    halved = attempt(statement)
    assert halved.cells > 4 * near.cells
    most = 2 * near.cells
    monkeypatch.setattr(_cells, "MOST", most)
    proved(NEAR)
    found = attempt(statement)
    assert found.status is Status.UNDECIDED
    assert "a segment needs more than" in found.reason


@pytest.mark.extended
def test_limits_that_are_not_shown_have_values_tubes_and_the_largest_source(near) -> None:
    torque = next(b for b in near.bounds if b.quantity.key == ("torque", "turret"))
    limit = round(0.96 * torque.value, 3)
    text = (
        r"Not shown: torque turret # N m \(limit #\) at # s\. At # s the tubes are # m and # m, "
        r"and the largest source of disturbances, # m/s\^2, is (?:masses|period and delay)"
    )
    found, numbers = undecided(text, replace(NEAR, torques={"turret": limit}))
    assert numbers[0] > limit == numbers[1]
    assert numbers[2:4] == [torque.time] * 2
    assert numbers[4:6] == pytest.approx(NEAR.place, rel=0.3)
    assert 0.01 < numbers[6] < 0.2
    assert found.bounds
    proved(replace(NEAR, torques={"turret": torque.value}))
