"""Files of proofs with contacts, obstacles, expressions and readings."""

from __future__ import annotations

from typing import Any

import pytest

import concur as cc
from concur.certify import Status
from concur.checker import load_task_proof
from tests.checker._stored import ADDED, HEAD, PROOF, answer, document, sealed, task, write

PROVED = Status.PROVED.name
OWN = ("ground", "clearance", "expressions", "reading")


def at(found: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        found = found[key]
    return found


def places(found: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Places of all entries."""
    keys = (
        found if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else ()
    )
    own = [(*above, key) for key in keys]
    return own + [place for key in own for place in places(found[key[-1]], key)]


@pytest.mark.extended
def test_they_are_confirmed_and_compared(tmp_path):
    file = write(tmp_path / "proof.json", document(tmp_path, ADDED))
    made = task(tmp_path, HEAD + PROOF + ADDED)
    assert load_task_proof(file).statement == made.statement
    found = cc.recheck(file, task=made)
    assert found.status is Status.PROVED, found.reason
    told = " ".join(found.claims)
    for kind in (
        "load caster",
        "grip left_wheel",
        "clearance forearm from post",
        "expression power",
    ):
        assert f"{kind} at " in told
    for old, new in (
        ("grip = 0.8", "grip = 0.7"),
        ("[0.5, 0.0, 0.0]", "[0.5, 0.01, 0.0]"),
        ("distance = 0.1", "distance = 0.2"),
        ("below = 5.0", "below = 6.0"),
        ("place = 1e-4", "place = 1.1e-4"),
    ):
        other = task(tmp_path, HEAD + PROOF + ADDED.replace(old, new))
        assert load_task_proof(file).differences(other) == ("statement",), new


def test_every_entry_is_needed_and_has_its_type(tmp_path):
    sound, numbers = document(tmp_path, ADDED), 0
    for name in OWN:
        for place in places(sound["statement"][name]):
            full = ("statement", name, *place)
            if isinstance(place[-1], str) and place[-2:-1] not in (("angles",), ("speeds",)):
                found = document(tmp_path, ADDED)
                del at(found, full[:-1])[place[-1]]
                assert answer(write(tmp_path / "lost.json", sealed(found))) != PROVED, full
            if isinstance(at(sound, full), (int, float)):
                numbers += 1
                for wrong in ("1", None, [1], True, 1e16):
                    if wrong is None and place[-1] in ("grip", "below"):
                        continue  # a limit less; the bound has it still
                    found = document(tmp_path, ADDED)
                    at(found, full[:-1])[place[-1]] = wrong
                    answered = answer(write(tmp_path / "wrong.json", sealed(found)))
                    assert answered != PROVED, (full, wrong)
    assert numbers > 30


@pytest.mark.parametrize("name", OWN)
def test_entries_cannot_be_left_out_or_emptied(tmp_path, name):
    for change in (lambda found: found.pop(name), lambda found: found.update({name: {}})):
        found = document(tmp_path, ADDED)
        change(found["statement"])
        answered = answer(write(tmp_path / "less.json", sealed(found)))
        if name == "reading" and "reading" not in found["statement"]:
            assert answered == PROVED  # it claims less
        else:
            assert answered != PROVED


def test_rooms_are_needed_with_readings_only(tmp_path):
    found = document(tmp_path, ADDED)
    for room in ([], found["room"][:1], [{}, {}], [{"base": [1.0], "hand": [1.0]}] * 2, "no"):
        other = document(tmp_path, ADDED) | {"room": room}
        assert answer(write(tmp_path / "room.json", sealed(other))) != PROVED
    for part, name in ((0, "base"), (1, "hand")):
        for row in (found["room"][part][name][1:], [*found["room"][part][name], 1.0]):
            other = document(tmp_path, ADDED)
            other["room"][part][name] = row
            assert answer(write(tmp_path / "room.json", sealed(other))) == "UNDECIDED"
    del found["room"]
    assert answer(write(tmp_path / "room.json", sealed(found))) != PROVED


@pytest.mark.parametrize(
    "text",
    ["", "1 +", "__import__('os').system('true')", "exp(1)", "x" * 2000, "(" * 500, "angle(hand)"],
)
def test_formulas_in_files_are_read_and_never_executed(tmp_path, text):
    found = document(tmp_path, ADDED)
    found["statement"]["expressions"][0]["formula"] = text
    assert answer(write(tmp_path / "formula.json", sealed(found))) != PROVED
