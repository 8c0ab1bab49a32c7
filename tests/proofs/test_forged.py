"""Forged files of a floater's proof, with valid hashes: none that claims more is confirmed."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from concur.certify import Status
from concur.io import load_task
from concur.proofs import prove_task
from tests.checker._stored import answer, sealed, write
from tests.proofs._flier import EXAMPLES

PROVED = Status.PROVED.name

HEAD = (EXAMPLES / "free_floater_proved.toml").read_text().partition("[proof]")[0]
PROOF = """
[proof]
place = 1e-4
speed = 1e-4
heading = 1e-4
period = 0.001
delay = 0.001
push = 1e-3
torque_error = 1e-4
margin = 0.5
torque_limits = 20.0
speed_limits = 1.0
corridor = 2e-3
angle_limits = { forearm = [0.5, 3.0] }
"""


@pytest.fixture(autouse=True)
def receipts(monkeypatch, tmp_path) -> None:
    """Keep receipts of confirmed files in the folder of the test."""
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path / "receipts"))


@pytest.fixture(scope="module")
def proof(tmp_path_factory) -> dict[str, Any]:
    """The file of three periods of the shipped task."""
    folder, text = tmp_path_factory.mktemp("proof"), HEAD + PROOF
    for old, new in (
        ("duration = 2.4", "duration = 0.003"),
        ("dt = 0.005", "dt = 0.001"),
        ("evaluate_after = 1.2", "evaluate_after = 0.001"),
    ):
        assert old in text
        text = text.replace(old, new)
    path = folder / "task.toml"
    path.write_text(text, encoding="utf-8")
    prove_task(load_task(path)).save(folder / "proof.json")
    return json.loads((folder / "proof.json").read_text(encoding="utf-8"))


def forged(sound: dict[str, Any], change: Callable[[dict[str, Any]], Any], folder: Path) -> str:
    """Answer to a changed file with valid hashes."""
    found = copy.deepcopy(sound)
    change(found)
    return answer(write(folder / "forged.json", sealed(found)))


def _stated(name: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    def change(found: dict[str, Any]) -> None:
        own = found["statement"][name]
        found["statement"][name] = dict.fromkeys(own, value) if isinstance(own, dict) else value

    return change


def _claimed(kind: str, by: float) -> Callable[[dict[str, Any]], Any]:
    """One claim of a kind, tighter by a number."""

    def change(found: dict[str, Any]) -> None:
        entry = next(entry for entry in found["bounds"] if entry["kind"] == kind)
        entry["value"] -= by if entry["side"] == "upper" else -by

    return change


def _text(name: str, old: str, new: str) -> Callable[[dict[str, Any]], Any]:
    def change(found: dict[str, Any]) -> None:
        made, count = re.subn(old, new, found[name], count=1)
        assert count, old
        found[name] = made

    return change


LIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"statement {name}": _stated(name, 5e-3) for name in ("place", "speed", "heading")},
    "statement push": _stated("push", 0.1),
    "statement torque error": _stated("torque_error", 0.05),
    "statement masses": _stated("masses", 0.05),
    "statement momentum": lambda f: f["statement"].update(momentum_error=[0.05, 0.05]),
    "statement period": _stated("period", 0.05),
    # Its torques would be those of 1e16 segments.
    "statement endless period": _stated("period", 1e14),
    "statement delay": _stated("delay", 0.05),
    "statement margin": _stated("margin", 9.0),
    "statement corridor": _stated("corridor", 1e-5),
    "statement torques": _stated("torques", 1e-3),
    "steps": lambda f: f.update(steps=8, first=list(range(8))),
    "doubled segment": lambda f: f.update(first=[0, 1, 1, 2]),
    "gap": lambda f: f.update(first=[0, 1, 3, 4]),
    "D": lambda f: f["disturbance"].update(hand=[0.7 * d for d in f["disturbance"]["hand"]]),
    "one D": lambda f: f["disturbance"]["hand"].__setitem__(3, 0.0),
    "D huge": lambda f: f["disturbance"].update(hand=[1e14] * 4),
    "torque": _claimed("torque", 0.05),
    "speed": _claimed("speed", 0.05),
    "angle above": _claimed("angle above", 0.02),
    "angle below": _claimed("angle below", 0.02),
    "margin": _claimed("margin", 0.1),
    "pivot": _claimed("pivot", 0.1),
    "corridor": _claimed("corridor", 5e-5),
    "robot": _text("robot", r"mass = 8\.0", "mass = 16.0"),
    "law": _text("task", r"stiffness = \[4\.0,", "stiffness = [5.0,"),
    "momentum": _text("task", r"momentum = \[0\.5,", "momentum = [5.0,"),
    "reference": _text("task", r"0\.32", "0.9"),
    "start": _text("task", r"upper_arm = \[-1", "upper_arm = [1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIES)
def test_files_that_claim_more_are_never_confirmed(name, proof, tmp_path) -> None:
    began = time.process_time()
    assert forged(proof, LIES[name], tmp_path) != PROVED
    assert time.process_time() - began < 60.0


@pytest.mark.slow
def test_files_that_claim_less_are_confirmed(proof, tmp_path) -> None:
    for change in (
        lambda found: None,
        _stated("place", 5e-5),
        _stated("delay", 0.0),
        _claimed("speed", -0.05),
        lambda f: f["disturbance"].update(hand=[1.05 * d for d in f["disturbance"]["hand"]]),
    ):
        assert forged(proof, change, tmp_path) == PROVED


def _numbers(entry: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places of numbers, one of each list."""
    if isinstance(entry, dict):
        for name, value in entry.items():
            yield from _numbers(value, (*path, name))
    elif isinstance(entry, list):
        for k, value in enumerate(entry[:1]):
            yield from _numbers(value, (*path, k))
    elif isinstance(entry, (int, float)):
        yield path


@pytest.mark.slow
def test_every_number_is_needed_and_has_its_type(proof, tmp_path) -> None:
    own = {name: value for name, value in proof.items() if name not in ("versions", "hash")}
    count = 0
    for place in _numbers(own):
        count += 1

        def parent(found: dict[str, Any], place: tuple[Any, ...] = place) -> Any:
            for key in place[:-1]:
                found = found[key]
            return found

        value = parent(proof)[place[-1]]
        for wrong in (str(value), [value], True, 1e16, {}):

            def change(found: dict[str, Any], wrong: Any = wrong, place: Any = place) -> None:
                parent(found)[place[-1]] = wrong

            assert "expected" in forged(proof, change, tmp_path), (place, wrong)

        def lose(found: dict[str, Any], place: Any = place) -> None:
            del parent(found)[place[-1]]

        # Without its only push the file claims less.
        if place[:-1] not in [("statement", name) for name in ("speeds", "torques", "push")]:
            assert forged(proof, lose, tmp_path) != PROVED, place
    assert count > 30
