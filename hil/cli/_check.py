"""`concur-rig check`: drives on the bus, their units, and the bus load."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hil._certificate import TorqueBound, load_bound
from hil._proof import Refusal, RigProof, load_proof
from hil.clock import MonotonicClock, SteppedClock
from hil.controller import rehearse
from hil.drives import AxisCheck, Drive, Finding, make_drives
from hil.emulator import World
from hil.errors import RigError
from hil.links import Links, open_links
from hil.rig import load_rig
from hil.rig.busload import BusLoad, bus_loads
from hil.session import mocked
from hil.settings import Rig

MARKS = {
    Finding.FOUND: "[green]found[/]",
    Finding.MISSING: "[bold red]missing[/]",
    Finding.WRONG: "[bold red]wrong[/]",
    Finding.UNKNOWN: "[yellow]unknown[/]",
}

BAD = (Finding.MISSING, Finding.WRONG)
"""Findings with which a rig may not be armed."""


@dataclass(frozen=True, eq=False)
class CheckResult:
    """Result of the checks of a rig before arming."""

    rig: Rig
    loads: tuple[BusLoad, ...]
    checks: tuple[AxisCheck, ...]
    bound: TorqueBound | None
    proof: RigProof | None = None

    @property
    def passed(self) -> bool:
        """Whether bus load and proof permit to arm, and every drive matches the rig file."""
        sound = not any(check.finding in BAD for check in self.checks)
        return sound and all(load.fits for load in self.loads) and not self.refusals

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """Why the proof does not permit to arm."""
        return () if self.proof is None else self.proof.refusals(self.rig.task.path)

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON."""
        return {
            "rig": self.rig.name,
            "passed": self.passed,
            "buses": [
                {"name": load.name, "share": load.share, "largest_rate": load.largest_rate}
                for load in self.loads
            ],
            "checks": [
                {
                    "axis": check.axis,
                    "what": check.what,
                    "finding": check.finding.name.lower(),
                    "expected": check.expected,
                    "came": check.came,
                    "cure": check.cure,
                }
                for check in self.checks
            ],
            "torque_bound": None if self.bound is None else self.bound.torque,
            "proof": None
            if self.proof is None
            else {
                "file": str(self.proof.path),
                "sentence": self.proof.sentence,
                "confirmed": self.proof.confirmed,
                "refusals": [str(refusal) for refusal in self.refusals],
                "notes": list(self.proof.notes),
            },
        }

    def show(self, console: Console) -> None:
        """Print tables."""
        for load in self.loads:
            console.print(escape(str(load)))
        console.print(limits_table(self.rig, self.bound))
        if self.proof is not None:
            show_proof(self.proof, self.rig.task.path, console)
        console.print(checks_table(self.checks))
        for line in cures(self.checks):
            console.print(f"- {line}", markup=False)
        verdict = "the rig may be armed" if self.passed else "the rig may not be armed"
        console.print(f"[bold {'green' if self.passed else 'red'}]{verdict}[/]")


def show_proof(proof: RigProof, task: Path, console: Console) -> None:
    """Print the claim of a proof with its tightest bounds, and what speaks against arming."""
    console.print(f"[bold]Proof of the task[/], {escape(proof.path.name)}", highlight=False)
    console.print(escape(proof.sentence), highlight=False)
    for bound in proof.stored.document.tightest:
        limit = "" if bound.limit is None else f", limit {bound.limit:.4g}"
        text = f"- {bound.kind} {bound.name} {bound.value:.4g} {bound.unit}".rstrip()
        console.print(escape(f"{text}{limit}"), highlight=False)
    for note in proof.notes:
        console.print(f"[yellow]note:[/] {escape(note)}", highlight=False)
    for refusal in proof.refusals(task):
        console.print(f"[bold red]not armed:[/] {escape(str(refusal))}", highlight=False)


def checks_table(checks: Sequence[AxisCheck]) -> Table:
    """Table of the properties of the drives."""
    table = Table(title="Drives", title_justify="left")
    for title in ("axis", "property", "", "rig file", "drive"):
        table.add_column(title)
    before = ""
    for check in checks:
        name = "" if check.axis == before else check.axis
        before = check.axis
        table.add_row(
            name,
            escape(check.what),
            MARKS[check.finding],
            escape(check.expected),
            escape(check.came),
        )
    return table


def cures(checks: Sequence[AxisCheck]) -> list[str]:
    """Remedies for properties that differ from the rig file or are unknown."""
    return [
        f"{check.axis}, {check.what}: {check.cure}"
        for check in checks
        if check.finding is not Finding.FOUND and check.cure
    ]


def limits_table(rig: Rig, bound: TorqueBound | None) -> Table:
    """Table of the limits of the axes, and the torque bounds of the certificate."""
    table = Table(title="At the motors", title_justify="left", caption_justify="left")
    for title in (
        *("axis", "limit\n(N m)", "need\n(N m)", "rate\n(N m/s)"),
        *("speed\n(rad/s)", "watchdog\n(ms)"),
    ):
        table.add_column(title, justify="left" if title == "axis" else "right")
    over = [] if bound is None else bound.exceeded(rig)
    for axis in rig.axes:
        need = "" if bound is None else f"{bound.torque[axis.name]:.3g}"
        table.add_row(
            axis.name,
            f"{axis.torque_limit:g}",
            f"[bold red]{need}[/]" if axis.name in over else need,
            f"{axis.torque_rate_limit:g}",
            f"{axis.speed_limit:g}",
            f"{axis.watchdog * 1e3:g}",
        )
    if bound is None:
        table.caption = "need: unknown, as there is no certificate"
    else:
        table.caption = f"need: {bound.status} by {bound.path.name} in its box of configurations"
    return table


def check_rig(path: Path, mock: bool) -> CheckResult:
    """Query every drive of a rig; `mock`: then prepare the emulated drives as for a run."""
    rig = load_rig(path)
    loads = bus_loads(rig, make_drives(rig))
    clock = SteppedClock() if mock else MonotonicClock()
    checks: list[AxisCheck] = []
    with ExitStack() as stack:
        if mock:
            rig = mocked(rig)
            stack.enter_context(World(rig, clock))
        drives = make_drives(rig)
        links = stack.enter_context(open_links(rig, clock))
        for k, drive in enumerate(drives):
            checks += drive.inspect(links.of(k))
        if mock and not any(check.finding in BAD for check in checks):
            checks += _rehearsed(rig, drives, links, checks)
    proof = load_proof(rig)
    return CheckResult(rig, loads, tuple(checks), load_bound(rig), proof)


def _rehearsed(
    rig: Rig, drives: Sequence[Drive], links: Links, known: Sequence[AxisCheck]
) -> list[AxisCheck]:
    """Rows of the preparation of emulated drives that queries do not have, or its error."""
    try:
        found = rehearse(rig, drives, links)
    except RigError as error:
        name = next((axis.name for axis in rig.axes if f"`{axis.name}`" in error.where), "*")
        what = error.where.partition(f"axis `{name}`, ")[2] or error.where
        return [AxisCheck(name, what, Finding.WRONG, error.expected, error.came, error.cure)]
    listed = {(check.axis, check.what) for check in known}
    return [check for check in found if (check.axis, check.what) not in listed]
