"""`concur-rig drive`, `shadow`, `listen`: a session and its report."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.prompt import Confirm
from rich.table import Table

from hil._certificate import load_bound
from hil._proof import load_proof
from hil._realtime import measure_machine
from hil.cli._check import checks_table, limits_table, show_proof
from hil.controller import Mode
from hil.emulator import EmulatorProcesses, Fault
from hil.errors import ArmError
from hil.reasons import Reason
from hil.record import Record
from hil.rig import load_rig
from hil.session import Result, SessionOptions, run_session
from hil.settings import Rig
from hil.views.report import write_report

_OF_THE_MACHINE = (Reason.LOST, Reason.POWER_LOST, Reason.LATE, Reason.STALE, Reason.STUCK)
"""Reasons that standstills of the machine can cause."""


@dataclass(frozen=True, eq=False)
class RunResult:
    """Result of a run, with its files."""

    rig: Rig
    result: Result
    files: tuple[Path, ...]
    unwritten: str = ""

    @property
    def passed(self) -> bool:
        """Whether the task was completed, and every drive has confirmed its release."""
        return self.result.outcome.done and not self.result.outcome.left

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON."""
        outcome = self.result.outcome
        return {
            "rig": self.rig.name,
            "mode": outcome.mode.name.lower(),
            "passed": self.passed,
            "reason": outcome.reason.name,
            "sentence": outcome.reason.sentence,
            "detail": outcome.detail,
            "elapsed": outcome.elapsed,
            "error": self._errors(),
            "quality": outcome.quality.to_dict(),
            "priority": outcome.granted.priority,
            "notes": list(outcome.granted.notes),
            "machine": outcome.machine,
            "loop": self.result.loop,
            "left": list(outcome.left),
            "record": str(self.result.folder),
            "recorded": self.result.recorded,
            "complete": self.result.complete,
            "record_note": self.result.note,
            "report_note": self.unwritten,
            "files": [str(path) for path in self.files],
        }

    def show(self, console: Console) -> None:
        """Print tables."""
        outcome = self.result.outcome
        for note in outcome.granted.notes:
            console.print(f"[yellow]note:[/] {escape(note)}")
        console.print(f"loop in {self.result.loop}", markup=False, highlight=False)
        table = Table(title="Loop statistics", title_justify="left", show_header=False)
        for name, value in outcome.quality.rows():
            table.add_row(name, value)
        console.print(table)
        table = Table(title="Tracking errors at the end", title_justify="left")
        for title in ("output", "position (m)", "rotation (rad)"):
            table.add_column(title, justify="right" if title != "output" else "left")
        for name, parts in self._errors().items():
            table.add_row(name, *(f"{p:.3g}" if p is not None else "" for p in parts.values()))
        console.print(table)
        whole = "every cycle" if self.result.complete else f"{self.result.recorded} cycles"
        console.print(f"record: {self.result.folder} ({whole})")
        if self.result.note:
            console.print(f"[red]record incomplete:[/] {escape(self.result.note)}")
        if self.unwritten:
            console.print(f"[yellow]no report:[/] {escape(self.unwritten)}")
        for path in self.files:
            console.print(f"written: {path}")
        color = "green" if self.passed else "red"
        console.print(
            f"[bold {color}]{outcome.reason.name}[/]: {outcome.reason.sentence} "
            f"(after {outcome.elapsed:.1f} s)"
        )
        if outcome.detail:
            console.print(outcome.detail, markup=False, highlight=False)
        for sentence in outcome.left:
            console.print(
                f"[bold red]{escape(sentence)}[/]. Remove its power before you approach the rig."
            )
        if outcome.machine:
            console.print(f"[yellow]machine:[/] {escape(outcome.machine)}")
            if not self.passed and outcome.reason in _OF_THE_MACHINE:
                console.print(
                    "This may be the cause. With `--mock` an emulated rig runs in simulated time."
                )

    def _errors(self) -> dict[str, dict[str, float | None]]:
        found, start = {}, 0
        error = self.result.outcome.error
        for output in self.rig.task.outputs:
            part = error[start : start + output.dim]
            start += output.dim
            angular = output.coordinate_units.count("rad")
            linear = output.dim - angular
            found[output.name] = {
                "position": float(np.linalg.norm(part[:linear])) if linear else None,
                "rotation": float(np.linalg.norm(part[linear:])) if angular else None,
            }
        return found


def run_rig(
    path: Path,
    mode: str,
    duration: float | None,
    out: Path | None,
    dashboard: int | None,
    as_json: bool,
    *,
    emulate: bool = False,
    heartbeat: str | None = None,
    token: str = "",
    reset: bool = False,
    yes: bool = False,
    faults: Sequence[str] = (),
) -> RunResult:
    """Run a session and write its report."""
    rig, kind = load_rig(path), Mode[mode.upper()]
    mock = kind is Mode.MOCK
    by = heartbeat or ("auto" if emulate or mock else "keys")
    injected = tuple(Fault.read(text) for text in faults)
    if by not in ("keys", "auto", "port"):
        raise _option("--heartbeat", "keys, port or auto", by)
    if mock and emulate:
        raise _option("--mock", "--mock or --emulate", "both")
    if injected and not (mock or emulate):
        raise _option("--fault", "an emulated rig: --mock or --emulate", "a real rig")
    console = Console(stderr=as_json)
    if kind is Mode.DRIVE:
        ask(rig, console, yes or emulate)
    with contextlib.ExitStack() as stack:
        clock = None
        if emulate:
            _check_machine(rig, console)
            emulator = stack.enter_context(EmulatorProcesses(rig, injected))
            clock = emulator.clock if any(b.interface != "datagram" for b in rig.buses) else None
        report = stack.enter_context(progress(console))
        live = console.is_terminal and not as_json and kind is not Mode.MOCK
        options = SessionOptions(
            kind,
            duration,
            out,
            by,
            token,
            live,
            dashboard,
            reset,
            emulate,
            injected if mock else (),
        )
        result = run_session(rig, options, progress=report, clock=clock)
    try:
        files = (write_report(Record.load(result.folder), result.folder),)
    except Exception as error:  # the result of the run must be shown in any case
        return RunResult(rig, result, (), f"{type(error).__name__}: {error}")
    return RunResult(rig, result, files)


def _check_machine(rig: Rig, console: Console) -> None:
    """Reject emulation on a machine that does not keep up; print a note if it is unsteady."""
    machine = measure_machine(rig.loop.priority)
    if not machine.keeps_up:
        raise ArmError(
            f"rig `{rig.name}`, --emulate",
            expected="a machine that runs a ready process for at least half of the time",
            came=machine.sentence,
            cure="Use `--mock`, which runs the same in simulated time, or stop other programs.",
        )
    if not machine.is_steady:
        console.print(
            f"[yellow]note:[/] this machine: {machine.sentence}. The emulation stops its clock "
            "during standstills and takes longer; `--mock` runs the same in simulated time."
        )


def _option(name: str, expected: str, came: str) -> ArmError:
    return ArmError(
        f"option {name}", expected=expected, came=came, cure="See `concur-rig drive --help`."
    )


def ask(rig: Rig, console: Console, yes: bool) -> None:
    """Show the limits beside the certificate's bound, and ask for confirmation."""
    bound = load_bound(rig)
    console.print(limits_table(rig, bound))
    if bound is not None:
        box = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in bound.ranges.items())
        console.print(f"box: {box}", markup=False)
        over = bound.exceeded(rig)
        if over:
            console.print(
                f"[yellow]The limits of {', '.join(over)} are below the torque that the law may "
                "need: the guard will limit it there, and the proof of tracking does not hold.[/]"
            )
    proof = load_proof(rig)
    if proof is not None:
        show_proof(proof, rig.task.path, console)
        proof.require(rig, rehearsal=False)
    console.print(
        "[bold]Category 0, the emergency stop that removes power at once, must be wired.[/]"
    )
    if yes:
        return
    if not sys.stdin.isatty():
        raise ArmError(
            f"rig `{rig.name}`",
            expected="confirmation of these limits",
            came="no interactive terminal",
            cure="Check the limits, then pass `--yes`.",
        )
    if not Confirm.ask("Drive with these limits?", console=console, default=False):
        raise ArmError(
            f"rig `{rig.name}`",
            expected="confirmation of these limits",
            came="a refusal",
            cure="Correct the rig file. No drive was armed.",
        )


@contextlib.contextmanager
def progress(console: Console) -> Iterator[Any]:
    """Show progress bars of the preparation; hide them when the loop begins."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    known: dict[str, Any] = {}

    def report(what: str, share: float) -> None:
        if what not in known:
            known[what] = bars.add_task(what, total=1.0)
        bars.update(known[what], completed=share)
        if what == "law" and share >= 1.0:
            bars.stop()

    bars.start()
    try:
        yield report
    finally:
        bars.stop()


__all__ = ["RunResult", "checks_table", "run_rig"]
