"""Write the file of a task's proof; its format is that of `_recheck_document`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from os import PathLike
from typing import Any

import numpy as np

from concur.documents import write_document
from concur.proofs._bound import Bound
from concur.proofs._provable import Provable
from concur.proofs._recheck_document import (
    BY_OUTPUT,
    REQUIRED,
    TASK_PROOF,
    VERSION,
    law_hash,
    text_hash,
)
from concur.proofs._statement import Statement
from concur.results import plain

INFLATION = 0.02
"""Share by which claims are wider than proved bounds: another order of evaluation confirms them."""

LEAST_SIZES = {"rad": 0.05, "rad/s": 0.25}
"""Sizes of which claims of smaller values are wider by that share, by unit."""

LOOSE = 0.05
"""The same of expressions, whose products the checker bounds by their sizes."""


@dataclass(frozen=True, eq=False)
class Source:
    """Robot and task of a proof.

    Parameters
    ----------
    kind : str
        Kind of robot, "rover" or "floater".
    robot, task : str
        Texts of their files.
    steps : int
        Number of steps of the task's duration.
    given : concur.io.Task
        The task that was proved.
    """

    kind: str
    robot: str
    task: str
    steps: int
    given: Provable


def claim(bound: Bound) -> float:
    """Bound of a file: wider than the proved one, but within its limit."""
    size = max(abs(bound.value), LEAST_SIZES.get(bound.unit, 0.0))
    share = LOOSE if bound.kind == "expression" else INFLATION
    value = bound.value + bound.sign * share * size
    if bound.limit is None or not bound.kept:
        return value
    return bound.sign * min(bound.sign * value, bound.sign * bound.limit)


def write_proof(
    path: str | PathLike[str],
    source: Source,
    statement: Statement,
    bounds: Sequence[Bound],
    first: np.ndarray,
    edge: float,
    disturbance: np.ndarray,
    leaves: Sequence[np.ndarray],
    room: np.ndarray | None = None,
) -> None:
    """Write the file of a proof."""
    servo = source.given.servo
    outputs = [output.name for output in servo.outputs]
    every = np.vstack([np.zeros((0, 4), dtype=np.int64), *leaves])
    cells, index = np.unique(every, axis=0, return_inverse=True)
    ends = np.cumsum([len(part) for part in leaves])[:-1]
    parts = np.split(index.ravel(), ends) if leaves else []
    members = {
        "kind": source.kind,
        "robot": source.robot,
        "task": source.task,
        "hashes": {
            "robot": text_hash(source.robot),
            "task": text_hash(source.task),
            "law": law_hash(servo),
        },
        "statement": statement_document(statement, outputs, servo.model.control_names),
        "steps": source.steps,
        "first": np.asarray(first).tolist(),
        "edge": float(edge),
        "disturbance": {name: row.tolist() for name, row in zip(outputs, disturbance, strict=True)},
        "cells": cells.tolist(),
        "leaves": [np.sort(part).tolist() for part in parts],
        "bounds": [
            {
                "kind": bound.kind,
                "name": bound.name,
                "unit": bound.unit,
                "side": "upper" if bound.sign > 0 else "lower",
                "value": claim(bound),
                "limit": plain(bound.limit),
            }
            for bound in bounds
        ],
    }
    if room is not None:
        members["room"] = [
            {name: row.tolist() for name, row in zip(outputs, part, strict=True)} for part in room
        ]
    write_document(path, TASK_PROOF, VERSION, members)


def statement_document(
    statement: Statement, outputs: Sequence[str], controls: Sequence[str]
) -> dict[str, Any]:
    """Fields of a statement for JSON; entries of outputs and controls have their names.

    Fields that are not required are left out if they have their default.
    """
    found = dict[str, Any]()
    for field in fields(Statement):
        value = getattr(statement, field.name)
        made = field.default_factory
        if field.name not in REQUIRED and value == (field.default if made is MISSING else made()):
            continue
        if field.name in (*BY_OUTPUT, "torque_error"):
            names = controls if field.name == "torque_error" else outputs
            value = dict(zip(names, value, strict=True)) if value else {}
        elif field.name == "clearance":  # pairs of capsules and boxes are no part of a statement
            others = [plain(made) for made in value.obstacles]
            for made in others:
                del made["box"], made["rotation"]
            value = {"capsules": value.capsules, "obstacles": others}
        elif field.name == "expressions":  # a function has no form in a file: a text stands for it
            value = [{**vars(one), "formula": str(one.formula)} for one in value]
        found[field.name] = plain(value)
    return found
