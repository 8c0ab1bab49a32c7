"""The file of a task's proof, read and verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from concur._polynomials import Floats
from concur.control import Servo
from concur.outputs.references import Reference
from concur.proofs._bound import Bound, claimed, conditions, tightest
from concur.proofs._file import statement_document
from concur.proofs._provable import torque_room
from concur.proofs._quantity import Quantity
from concur.proofs._recheck import verify
from concur.proofs._recheck_case import case_of
from concur.proofs._recheck_claims import Stored
from concur.proofs._recheck_document import BY_OUTPUT, law_hash, read
from concur.proofs._recheck_floater import case_of_floater, verify_floater
from concur.proofs._recheck_smooth import Rejection, require
from concur.proofs._recheck_work import WORK, limited
from concur.proofs._statement import Statement
from concur.tables import build, is_number, placed, refused


class TaskDocument:
    """Content of the file of a task's proof; its entries are validated, its claims are not.

    Entries of the statement are validated with the law whose outputs and controls they name.

    Parameters
    ----------
    path : Path
        The file.

    Attributes
    ----------
    kind : str
        Kind of robot: "rover" or "floater".
    robot, task : str
        Texts of a robot file and of a task file.
    bounds : tuple of Bound
        Claimed bound of each quantity.
    hash : str
        SHA-256 of the content, which reading verifies.
    uncovered : str
        Why the checker does not cover the proof; empty if it does.

    Raises
    ------
    DescriptionError
        If the file cannot be read, is incomplete, or was changed after it was written.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._content = path, (found := read(path))
        self.kind, self.robot, self.task = found.kind, found.robot, found.task
        self.hash = found.hash
        self.uncovered = ""
        if found.uncovered:
            names = ", ".join(found.uncovered)[:200]
            self.uncovered = f"the checker does not cover {names} of the statement yet"
        still = np.zeros(1)
        self.bounds = tuple(
            Bound(Quantity(b.kind, b.name, b.unit, b.sign), b.limit, still, np.array([b.value]))
            for b in found.bounds
        )

    @property
    def tightest(self) -> tuple[Bound, ...]:
        """Of each kind the bound with the least slack, or the largest one without limits."""
        return tightest(self.bounds)

    def statement(self, servo: Servo) -> Statement:
        """Statement for the law of the file's task.

        Parameters
        ----------
        servo : Servo
            The law, whose outputs and controls give the order of entries.

        Returns
        -------
        Statement
            Starts, imperfections and limits.

        Raises
        ------
        DescriptionError
            If entries of outputs or controls are missing or unknown.
        """
        covered = {
            name: value
            for name, value in self._content.statement.items()
            if name not in self._content.uncovered
        }
        given, file = dict(covered), {"statement": covered}
        outputs, controls = [output.name for output in servo.outputs], servo.model.control_names
        cure, angles = "Prove the task again.", given.pop("angles")
        with placed(self._path, file, ("statement",)):
            for field in (*BY_OUTPUT, "torque_error"):
                table, own = given[field], controls if field == "torque_error" else outputs
                absent = table == {} and field not in ("place", "speed")
                if not absent and (not isinstance(table, dict) or set(table) != set(own)):
                    expected = f"numbers of {', '.join(own)}"
                    raise refused((field,), expected, f"{table!r:.80}", cure)
                given[field] = [table[name] for name in own] if table else []
            for name, pair in angles.items() if isinstance(angles, dict) else [("", angles)]:
                if not _are_ends(pair):
                    expected = "a lower end below the upper one; null for none"
                    raise refused(("angles", name), expected, f"{pair!r:.80}", cure)
        found: Statement = build(Statement, given, self._path, file, ("statement",))
        found = replace(found, angles={name: _ends(*pair) for name, pair in angles.items()})
        again = statement_document(found, outputs, controls)
        with placed(self._path, file, ("statement",)):
            for field, value in covered.items():
                if again.get(field) != value:
                    expected = "all entries of this format and no others"
                    raise refused((field,), expected, f"{value!r:.80}", cure)
        return found

    def sentences(self, servo: Servo) -> tuple[str, str]:
        """Starts and imperfections, and the whole claim, in words.

        Parameters
        ----------
        servo : Servo
            As of `statement`.

        Returns
        -------
        tuple of str
            Both.
        """
        base, given = "base pose" if self.kind == "floater" else "heading", self.statement(servo)
        return conditions(given, base), claimed(given, self.bounds, base)

    def verify(
        self,
        servo: Servo,
        reference: Reference,
        duration: float,
        q0: Floats,
        s0: Floats,
        work: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> str:
        """Verify all claims by the independent checker.

        Parameters
        ----------
        servo : Servo
            Law of the task in the file.
        reference : Reference
            Its reference.
        duration : float
            Its duration (s).
        q0, s0 : numpy.ndarray
            Its start: configuration and shape velocities.
        work : float, optional
            Largest work, in units of about a microsecond; default 4e9.
        progress : callable, optional
            Called with the share of the work that is done.

        Returns
        -------
        str
            The first thing that is not confirmed; empty if all is.

        Raises
        ------
        DescriptionError
            As of `statement`.
        """
        found, statement = self._content, self.statement(servo)
        names = [output.name for output in servo.outputs]
        try:
            with limited(WORK if work is None else work), np.errstate(all="ignore"):
                require(not self.uncovered, self.uncovered)
                same = law_hash(servo) == found.hashes.law
                require(same, "this version of concur reads another law from the texts")
                for name, most in torque_room(servo).items():
                    inside = statement.torques.get(name, np.inf) <= most
                    require(inside, f"the torque of {name} may exceed the limits of the law")
                tables = [found.disturbance, *found.room]
                rows = all(set(part) == set(names) for part in tables)
                rows = rows and len({len(row) for part in tables for row in part.values()}) == 1
                require(rows, "D or room has another shape than outputs and segments")
                room = [[part[name] for name in names] for part in found.room]
                stored = Stored(
                    found.steps,
                    found.edge,
                    np.array(found.first, dtype=np.int64),
                    np.array([found.disturbance[name] for name in names], dtype=float),
                    found.boxes,
                    {(bound.kind, bound.name): bound for bound in found.bounds},
                    statement,
                    np.array(room) if len(room) == 2 else None,
                )
                given = (servo, reference, duration, q0, s0)
                if self.kind == "floater":
                    verify_floater(case_of_floater(*given), stored, progress)
                else:
                    verify(case_of(*given), stored, progress)
        except Rejection as stop:
            return str(stop)
        except (ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
            return f"numbers out of range of the arithmetic: {error}"
        return ""


def _ends(low: float | None, high: float | None) -> tuple[float, float]:
    return -np.inf if low is None else low, np.inf if high is None else high


def _are_ends(pair: Any) -> bool:
    """Whether an entry is a lower and an upper end, null without one."""
    if not isinstance(pair, list) or len(pair) != 2:
        return False
    low, high = pair
    sound = all(end is None or is_number(end) for end in pair)
    return sound and bool(np.less(*_ends(low, high)))
