"""The file of a short proof, and changed ones."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from concur.checker import recheck
from concur.documents import document_hash
from concur.errors import ConcurError
from concur.io import Task, load_task
from concur.proofs import prove_task
from concur.proofs._recheck_document import text_hash

EXAMPLES = Path(__file__).parents[2] / "examples"
WHOLE = (EXAMPLES / "rover_arm.toml").read_text()
HEAD = WHOLE[: WHOLE.index("[proof]")].replace("duration = 20.0", "duration = 0.1")
HEAD = HEAD.replace("evaluate_after = 12.0", "evaluate_after = 0.04")
PROOF = """
[proof]
place = 0.002
speed = { base = 0.004, hand = 0.006 }
heading = 0.002
period = 0.001
masses = 0.005
torque_limits = 20.0
margin = 0.1
corridor = { base = 0.35, hand = 0.35 }
angle_limits = { turret = [-1.0, 1.0], forearm = [-2.0, inf] }
"""

ADDED = """
supports = { caster = [0.5, 0.0, 0.0] }
least_load = { right_wheel = 20.0 }
grip = 0.8

[[proof.capsule]]
body = "forearm"

[[proof.obstacle]]
name = "post"
start = [0.6, 0.9, 0.0]
end = [0.6, 0.9, 0.5]
radius = 0.03
distance = 0.1

[[proof.expression]]
name = "power"
formula = "torque(turret) * speed(turret)"
below = 5.0
unit = "W"

[proof.reading]
angles = 1e-4
speeds = 1e-3
place = 1e-4
heading = 1e-4
"""
"""Entries that a statement may have."""


def task_file(folder: Path, text: str = HEAD + PROOF) -> Path:
    """A short task of the shipped rover."""
    path = folder / "task.toml"
    path.write_text(text, encoding="utf-8")
    return path


_MADE: dict[str, dict[str, Any]] = {}


def document(folder: Path, added: str = "") -> dict[str, Any]:
    """A copy of the file's content, proved once, of a statement with more entries."""
    if added not in _MADE:
        file, text = folder / "sound.json", HEAD + PROOF + added
        prove_task(load_task(task_file(folder, text))).save(file)
        _MADE[added] = json.loads(file.read_text(encoding="utf-8"))
    return copy.deepcopy(_MADE[added])


def task(folder: Path, text: str = HEAD + PROOF) -> Task:
    return load_task(task_file(folder, text))


def sealed(found: dict[str, Any]) -> dict[str, Any]:
    """A document with the hashes of what it contains."""
    hashes = found.get("hashes")
    for name in ("robot", "task"):
        if isinstance(hashes, dict) and isinstance(found.get(name), str):
            hashes[name] = text_hash(found[name])
    return {**found, "hash": document_hash(found)}


def write(path: Path, found: dict[str, Any]) -> Path:
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def changed(folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """A file with a change, and with valid hashes."""
    found = document(folder)
    change(found)
    return write(folder / "changed.json", sealed(found))


def answer(path: Path, work: float = 1e7) -> str:
    """Status of a file, or the sentence of the error."""
    try:
        return recheck(path, work=work).name
    except ConcurError as error:
        return str(error)


def _effective(found: dict[str, Any]) -> tuple[Any, ...]:
    """Robot and task without shapes, and without the turns of the wheels at the start."""
    robot, made = tomllib.loads(found["robot"]), tomllib.loads(found["task"])
    for body in robot["bodies"]:
        body.pop("shape", None)
    for wheel in ("left_wheel", "right_wheel"):
        made["initial"]["q"].pop(wheel, None)
    return found["kind"], robot, made


def claims_no_more(found: dict[str, Any], sound: dict[str, Any]) -> bool:
    """Whether a document claims what the sound one claims, or less; bounds within 2 %."""
    if _effective(found) != _effective(sound):
        return False
    given, own = found["statement"], sound["statement"]
    wide = ("heading", "period", "delay", "masses")
    if any(given[name] > 1.02 * own[name] + 1e-9 for name in wide):
        return False
    for name in ("place", "speed", "push", "torque_error"):
        if any(value > 1.02 * own[name][key] + 1e-9 for key, value in given[name].items()):
            return False
    old = {(b["kind"], b["name"]): b for b in sound["bounds"]}
    for bound in found["bounds"]:
        sign = 1.0 if bound["side"] == "upper" else -1.0
        before = old[bound["kind"], bound["name"]]["value"]
        if sign * bound["value"] < sign * before - 0.05 * abs(before):
            return False
    return True
