"""Page of a task's proof: verdict, statement, bounds, tube and sampled worlds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from concur.certify import Status
from concur.proofs import Sampled, TaskProof
from concur.rounding import percent_down
from concur.show.page import Marked, Section, quantities, write_page


def write_proof_report(
    found: TaskProof,
    task: Any,
    notes: Sequence[str],
    sampled: Sampled | None,
    figures: Mapping[str, Path],
    folder: Path,
) -> Path:
    """Write `report.html` about a proof.

    Parameters
    ----------
    found : TaskProof
        The proof.
    task : Task
        Its task.
    notes : sequence of str
        Sentences below the verdict.
    sampled : Sampled or None
        Worlds inside the statement.
    figures : mapping of str to Path
        Files of the figures "tube" and "bounds".
    folder : Path
        Folder of the page.

    Returns
    -------
    pathlib.Path
        The page.

    Examples
    --------
    >>> write_proof_report(found, task, [], None, {}, Path("out"))    # doctest: +SKIP
    PosixPath('out/report.html')
    """
    change = [f"What to change: {found.cure}"] if found.cure else []
    return write_page(
        folder,
        f"Proof of {task.name}",
        found.status is Status.PROVED,
        found.sentence,
        [*change, *notes],
        _sections(found, task, sampled, figures),
    )


def _sections(
    found: TaskProof, task: Any, sampled: Sampled | None, figures: Mapping[str, Path]
) -> Iterator[Section]:
    text = "Starts and imperfections for which it holds."
    yield Section("Statement", text, rows=list(_statement(found)))
    if found.bounds:
        yield from quantities(found.rows, ("corridor", "margin"))
        caption = "Each quantity over time: its bounds hold for all motions of the statement."
        picture = (figures.get("bounds"), caption)
        text = "Each bound is the worst one of all segments; the time is that of this segment."
        yield Section("Bounds", text, figures={"bounds": picture})
    caption = "Largest distances from the declared motion, and shares of the limits over time."
    yield Section("Tube", figures={"tube": (figures.get("tube"), caption)})
    if found.in_segments():
        text = "The bound that is nearest to its limit, as a share of it; equal ones are joined."
        head = ["From", "To", "Quantity", "Bound", "Slack"]
        yield Section("Tightest bound over time", text, head, list(_tightest(found, task.duration)))
    if found.sources:
        rows = [
            [name, *(f"{float(row.max()):.3g}" for row in values)]
            for name, values in found.sources.items()
        ]
        names = [output.name for output in task.outputs]
        text = "Largest acceleration errors by source, m/s² (for poses also rad/s²)."
        yield Section("Disturbances", text, ["Source", *names], rows)
    if sampled is not None:
        table = sampled.table(found)
        text = f"{sampled.worlds} worlds inside the statement; they prove nothing."
        head = [title.capitalize() for title in table.head]
        yield Section("Sampled worlds", text, head, [*map(list, table.rows)], folded=True)


def _statement(found: TaskProof) -> Iterator[tuple[str, str]]:
    given = found.statement
    pose = found.base == "base pose"
    places = ", ".join(f"{r:g}" for r in given.place)
    speeds = ", ".join(f"{r:g}" for r in given.speed)
    yield "Start, outputs", f"within {places} {'(m, rad)' if pose else 'm'}"
    yield "Start, velocities", f"within {speeds} {'(m/s, rad/s)' if pose else 'm/s'}"
    yield f"Start, {found.base}", f"within {given.heading:g} {'(m, rad)' if pose else 'rad'}"
    yield "Masses and inertias", f"within {percent_down(given.masses)}"
    if any(given.momentum_error):
        linear, angular = given.momentum_error
        yield "Momentum", f"within {linear:g} kg m/s and {angular:g} kg m²/s of the declared one"
    yield "Torques", f"held for {1e3 * given.period:g} ms, delayed by {1e3 * given.delay:g} ms"
    if any(given.torque_error):
        yield "Torque errors", f"up to {', '.join(f'{r:g}' for r in given.torque_error)} N m"
    if any(given.push):
        yield "Pushes", f"up to {', '.join(f'{r:g}' for r in given.push)} m/s²"
    if given.reading is not None:
        yield "Errors of the measured state", f"up to {given.reading.sentence}"
    if given.ground is not None:
        yield "Contacts with the ground", given.ground.sentence


def _tightest(found: TaskProof, duration: float) -> Iterator[Marked]:
    """Rows of successive segments with the same tightest bound; value and slack are the worst."""
    rows = found.in_segments()
    groups = [list(own) for _, own in itertools.groupby(rows, key=lambda row: row[1].quantity)]
    ends = [group[0][0] for group in groups[1:]]
    for group, end in zip(groups, [*ends, duration], strict=True):
        start, bound, value, slack = min(group, key=lambda row: row[3])
        start = group[0][0]
        cells = [f"{start:.2f} s", f"{end:.2f} s", f"{bound.kind} {bound.name}"]
        cells += [_shown(value, bound.unit), _shown(slack, bound.unit)]
        yield Marked(cells, slack >= 0.0)


def _shown(value: float, unit: str) -> str:
    return f"{value:.4g} {unit}".rstrip()
