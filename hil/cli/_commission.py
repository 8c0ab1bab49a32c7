"""`concur-rig commission`: a small push of each axis, and the file that permits to drive."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from hil._commission import Commission, Commissioner, commission_file, conclude
from hil.cli._check import BAD, checks_table, cures
from hil.cli._run import ask, progress
from hil.controller import Mode
from hil.emulator import Fault
from hil.rig import load_rig
from hil.session import Result, SessionOptions, run_session
from hil.settings import Rig


@dataclass(frozen=True, eq=False)
class CommissionResult:
    """Result of a commissioning, with its file."""

    rig: Rig
    result: Result
    commission: Commission | None
    file: Path | None

    @property
    def passed(self) -> bool:
        """Whether every axis follows the model, and every drive has confirmed its release."""
        return self.commission is not None and not self.result.outcome.left

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON."""
        outcome, known = self.result.outcome, self.commission
        return {
            "rig": self.rig.name,
            "mode": outcome.mode.name.lower(),
            "passed": self.passed,
            "reason": outcome.reason.name,
            "sentence": outcome.reason.sentence,
            "detail": outcome.detail,
            "checks": [
                asdict(check) | {"finding": check.finding.name.lower()} for check in outcome.checks
            ],
            "axes": None if known is None else asdict(known)["axes"],
            "left": list(outcome.left),
            "record": str(self.result.folder),
            "file": None if self.file is None else str(self.file),
        }

    def show(self, console: Console) -> None:
        """Print tables."""
        outcome = self.result.outcome
        console.print(checks_table(outcome.checks))
        for line in cures(outcome.checks):
            console.print(f"- {line}", markup=False)
        if not outcome.done:
            console.print(f"[bold red]{outcome.reason.name}[/]: {outcome.reason.sentence}")
            console.print(outcome.detail, markup=False, highlight=False)
        for sentence in outcome.left:
            console.print(f"[bold red]{escape(sentence)}[/]. Remove its power.")
        for name, axis in {} if self.commission is None else self.commission.axes.items():
            console.print(f"{name}: bound to its drive by {axis.bound_by}", highlight=False)
        if self.file is not None:
            console.print(f"written: {self.file}")
        verdict = "the rig may be driven" if self.passed else "the rig may not be driven"
        console.print(f"[bold {'green' if self.passed else 'red'}]{verdict}[/]")


def commission_rig(
    path: Path,
    mock: bool,
    out: Path | None,
    as_json: bool,
    *,
    heartbeat: str | None = None,
    token: str = "",
    reset: bool = False,
    yes: bool = False,
    faults: list[str] | None = None,
) -> CommissionResult:
    """Push each axis, judge its motion, and write the file of a rig that may be driven."""
    rig = load_rig(path)
    console = Console(stderr=as_json)
    if not mock:
        ask(rig, console, yes)
    mode = Mode.MOCK if mock else Mode.DRIVE
    injected = tuple(Fault.read(text) for text in faults or ()) if mock else ()
    loops: list[Commissioner] = []

    class Loop(Commissioner):
        """The loop, whose results are needed after the session."""

        def __init__(self, *arguments: Any, **others: Any) -> None:
            super().__init__(*arguments, **others)
            loops.append(self)

    by = heartbeat or ("auto" if mock else "keys")
    live = console.is_terminal and not as_json and not mock
    options = SessionOptions(mode, None, None, by, token, live, resets=reset, faults=injected)
    with progress(console) as report:
        result = run_session(rig, options, progress=report, controller=Loop)
    outcome, found = result.outcome, loops[0].found
    if not outcome.done or any(check.finding in BAD for check in outcome.checks):
        return CommissionResult(rig, result, None, None)
    known = conclude(rig, found, mock)
    file = out or (None if mock else commission_file(rig))
    if file is not None and not outcome.left:
        known.write(file)
    return CommissionResult(rig, result, known, file)
