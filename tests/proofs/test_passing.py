"""The factor on starts and imperfections that is proved: on both sides of the largest one."""

from dataclasses import replace

import pytest

from concur.certify import Status
from concur.errors import OutputError
from concur.proofs import Reading, Statement, largest_factor, prove_task
from tests.proofs._restated import restated
from tests.proofs._rover import NEAR, rover

FIELDS = ("place", "speed", "heading", "period", "delay", "masses", "torque_error", "push")


def test_a_scaled_statement_has_all_starts_and_imperfections_times_the_factor() -> None:
    whole = Statement(
        (0.1, 0.2), (0.3, 0.4), 0.5, 0.01, 0.02, 0.03, (0.6,), (0.7, 0.8),
        {"turret": 9.0}, {"turret": 8.0}, {"turret": (-1.0, 1.0)}, {"hand": 0.4}, 0.1,
        momentum_error=(0.9, 1.0),
        reading=Reading({"turret": 0.2}, {"turret": 0.4}, 0.6, 0.8),
    )  # fmt: skip
    half = whole.scaled(0.5)
    for name in (*FIELDS, "momentum_error"):
        own, other = getattr(half, name), getattr(whole, name)
        assert own == (0.5 * other if isinstance(other, float) else tuple(0.5 * r for r in other))
    assert half.reading == Reading({"turret": 0.1}, {"turret": 0.2}, 0.3, 0.4)
    assert half.limits == whole.limits
    # Whatever is not a limit is scaled: a new field of a statement is one or the other.
    limits = {"torques", "speeds", "angles", "corridor", "margin"}
    limits |= {"ground", "clearance", "expressions"}
    assert set(Statement.__dataclass_fields__) == {*FIELDS, "momentum_error", "reading"} | limits


@pytest.mark.extended
def test_the_largest_factor_of_a_rover_is_proved_and_the_next_one_is_not() -> None:
    wide = replace(NEAR, torques={"upper_arm": 5.4}, masses=0.01)
    own, done = restated(rover(), wide, 0.05), []
    assert prove_task(own).status is Status.UNDECIDED
    factor = largest_factor(own, progress=done.append)
    assert 0.0 < factor < 1.0
    assert (16 * factor).is_integer()
    assert done == sorted(done)
    assert done[-1] == 1.0
    for share, status in ((factor, Status.UNVERIFIED), (factor + 1 / 16, Status.UNDECIDED)):
        assert prove_task(restated(rover(), wide.scaled(share), 0.05)).status is status
    sentence = replace(prove_task(own), factor=factor).sentence
    share = f"With {factor:g} times all starts and imperfections"
    assert sentence.endswith(f"{share} it is proved, not yet verified.")


@pytest.mark.extended
def test_no_factor_is_found_if_the_declared_motion_itself_is_undecided() -> None:
    motion = restated(rover(), replace(NEAR, torques={"upper_arm": 1.0}), 0.05)
    assert largest_factor(motion) == 0.0
    found = replace(prove_task(motion), status=Status.UNDECIDED, factor=0.0)
    assert found.sentence.endswith(
        "It is undecided even with a sixteenth of all starts and imperfections."
    )


def test_a_task_without_a_statement_is_rejected() -> None:
    with pytest.raises(OutputError, match="a table"):
        largest_factor(restated(rover(), None, 0.05))
