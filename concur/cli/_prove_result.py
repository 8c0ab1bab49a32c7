"""Result of `concur prove`: verdict, tables and JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.certify import Status
from concur.cli._answer import answer
from concur.io import Task
from concur.proofs import Bound, Sampled, TaskProof

PROOF = "proof.json"
"""Name of the file of a proof."""


@dataclass(frozen=True, eq=False)
class ProveResult:
    """The proof of a task, with its files."""

    task: Task
    proof: TaskProof
    seconds: float
    notes: tuple[str, ...]
    files: tuple[Path, ...] = ()
    sampled: Sampled | None = None
    verification_seconds: float | None = None  # None unless the checker was asked

    @property
    def proved(self) -> bool:
        """Whether the final status is PROVED."""
        return self.status is Status.PROVED

    @property
    def status(self) -> Status:
        """Status of the proof, unless sampled worlds refute the statement or contradict it."""
        if self.refuted:
            return Status.REFUTED
        return Status.UNDECIDED if self.outside and self.proof.found else self.proof.status

    @property
    def verification(self) -> str:
        """Answer of the independent checker in one sentence; empty without a proof."""
        status, seconds = self.proof.status, self.verification_seconds
        if status is Status.PROVED:
            return f"{PROOF} is confirmed by the independent checker, in {seconds:.1f} s"
        if status is Status.UNVERIFIED:
            why = self.proof.reason or "run `concur recheck`, which shows the time left"
            return f"{PROOF} is not verified: {why}"
        return "" if seconds is None else f"{PROOF} is not confirmed by the independent checker"

    @property
    def outside(self) -> tuple[str, ...]:
        """Sentences about sampled worlds beyond a bound."""
        return () if self.sampled is None else self.sampled.outside(self.proof)

    @property
    def refuted(self) -> tuple[str, ...]:
        """Sentences about sampled worlds beyond a limit."""
        return () if self.sampled is None else self.sampled.refuted(self.proof)

    @property
    def sentence(self) -> str:
        """Verdict in one sentence; a sampled world beyond a limit refutes the statement."""
        if self.status is self.proof.status and not self.refuted:
            return self.proof.sentence
        return f"{self.status.name}: {'; '.join(self.refuted or self.outside)}"

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON, in SI units; values that are not finite are null."""
        found = self.proof
        return answer(
            "prove",
            self.proved,
            self.status.name,
            name=self.task.name,
            robot=self.task.robot.name,
            problems=(
                *(() if self.proved else (self.sentence,)),
                *self.outside,
            ),
            warnings=self.notes,
            files=self.files,
            sentence=self.sentence,
            reason=found.reason,
            cure=found.cure,
            factor=found.factor,
            verification_seconds=self.verification_seconds,
            statement=_plain(asdict(found.statement)),
            bounds=[_bound_dict(bound) for bound in found.bounds],
            segments=found.times.tolist(),
            tightest=[
                {"time": time, "kind": b.kind, "name": b.name, "value": value, "slack": slack}
                for time, b, value, slack in found.in_segments()
            ],
            sources={name: _plain(values) for name, values in found.sources.items()},
            tube={
                "step": self.task.duration / len(found.wall),
                "outputs": [output.name for output in self.task.outputs],
                "x": _plain(found.x),
                "ve": _plain(found.ve),
                found.base.replace(" ", "_"): _plain(found.wall),
            },
            cells=found.cells,
            growth=_plain(found.growth),
            seconds=self.seconds,
            samples=None if self.sampled is None else _sampled_dict(self.sampled, found),
        )

    def show(self, console: Console) -> None:
        """Print the verdict, the tightest bounds and the notes."""
        console.print(f"[bold]{escape(self.task.name)}[/]: {escape(self.task.robot.name)}")
        console.print(escape(self.sentence), highlight=False)
        if self.proof.bounds:
            table = Table(title="Tightest bounds", title_justify="left")
            table.add_column("quantity")
            for name in ("bound", "limit", "slack", r"time \[s]"):
                table.add_column(name, justify="right")
            for bound in self.proof.tightest:
                table.add_row(*map(escape, bound_cells(bound)))
            console.print(table)
        if self.sampled is not None:
            self._show_sampled(console, self.sampled)
        work = f"cells: {self.proof.cells}, segments: {len(self.proof.times)}"
        console.print(f"{work}, {self.seconds:.1f} s", highlight=False)
        if self.verification:
            color = "green" if self.proof.status is Status.PROVED else "yellow"
            console.print(f"[{color}]{escape(self.verification)}[/]", highlight=False)
        for note in self.notes:
            console.print(escape(f"note: {note}"), highlight=False)
        for path in self.files:
            console.print(escape(str(path)), highlight=False, soft_wrap=True)

    def _show_sampled(self, console: Console, sampled: Sampled) -> None:
        table = Table(title=f"Worst of {sampled.worlds} worlds", title_justify="left")
        for name in ("quantity", "worst", "bound", "ratio"):
            table.add_column(name, justify="left" if name == "quantity" else "right")
        for row in sampled.against(self.proof):
            made = row.quantity
            ratio = "" if math.isnan(row.ratio) else f"{row.ratio:.2f}"
            name = escape(f"{made.kind} {made.name}")
            worst, bound = (
                f"{value:.4g} {made.unit}".rstrip() for value in (row.found, row.proved)
            )
            table.add_row(name, worst, bound, ratio)
        console.print(table)
        for sentence in self.outside:
            console.print(f"[bold red]{escape(sentence)}[/]")


def bound_cells(bound: Bound) -> list[str]:
    """Quantity, bound, limit, slack and time for a table."""
    limited = bound.limit is not None and math.isfinite(bound.slack)
    limit = shown(bound.limit, bound.unit) if limited and bound.limit is not None else "none"
    slack = shown(bound.slack, bound.unit) if limited else ""
    name = f"{bound.kind} {bound.name}"
    return [name, shown(bound.value, bound.unit), limit, slack, f"{bound.time:.2f}"]


def shown(value: float, unit: str) -> str:
    """Value with its unit."""
    return f"{value:.4g} {unit}".rstrip()


def _sampled_dict(sampled: Sampled, proof: TaskProof) -> dict[str, Any]:
    return {
        "worlds": sampled.worlds,
        "stopped": sampled.stopped,
        "excess": _plain(sampled.excess),
        "quantities": [
            {
                "kind": row.quantity.kind,
                "name": row.quantity.name,
                "unit": row.quantity.unit,
                "sampled": _plain(row.sampled),
                "ascended": _plain(row.ascended),
                "bound": _plain(row.proved),
                "ratio": _plain(row.ratio),
            }
            for row in sampled.against(proof)
        ],
    }


def _bound_dict(bound: Bound) -> dict[str, Any]:
    names = ("kind", "name", "unit", "value", "limit", "time", "slack", "profile")
    own = {name: _plain(getattr(bound, name)) for name in names}
    return {**own, "side": "upper" if bound.sign > 0 else "lower", "kept": bound.kept}


def _plain(value: Any) -> Any:
    """Value for JSON."""
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value
