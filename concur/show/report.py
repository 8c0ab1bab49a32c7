"""Figures of a run by name, and its report: one self-contained page."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concur.files import make_directory
from concur.results import Result, Row, word
from concur.show._summary import robot_sections
from concur.show.charts import chart
from concur.show.notebook import audit_sections
from concur.show.overview import plot_run
from concur.show.page import Section, quantities, write_page
from concur.show.path import path_figure
from concur.show.robot import robot_figure
from concur.show.runs import (
    control_panels,
    error_panels,
    joint_panels,
    margin_panels,
    output_panels,
    required,
    residual_panels,
)
from concur.show.style import save_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.reduction import AuditRow
    from concur.simulation import Run

_CAPTIONS = {
    "path": "Good: each path joins its dashed reference and stays on it.",
    "errors": (
        "Norms over the coordinates of an output with the same unit. The plant differs from the "
        "law's model, or the law has no exact error dynamics. Good: the errors stay small."
    ),
    "outputs": "Good: the curves join their dashed references; the base turns as intended.",
    "joints": (
        "Extremes are over all stages of the integration, which the curves may not show; dashed "
        "lines are limits. Good: all curves stay between them, with some distance."
    ),
    "torques": (
        "Circles mark the peaks, dashed lines the tightest limits. Good: the peaks stay below the "
        "limits with some room, and the curves do not chatter."
    ),
    "health": "Good: the margin stays far above zero, at best at about the same height.",
    "robot": "The robot at the start, with base and output frames (x red, y green, z blue).",
    "numerics": "Residuals that are not zero within rounding.",
}
"""Content of each figure, and its appearance in a good run."""

_IDEAL = (
    "Norms over the coordinates of an output with the same unit, beside the exact error "
    "dynamics from the same start. Good: the curves coincide and fall along straight lines."
)
"""Content of the figure of errors of a law that linearizes, where the plant is its model."""

GOOD = ("passed", "PROVED")
"""Verdicts that are wanted."""

_LAST = {"robot": "Robot", "numerics": "Numerical checks"}
"""Figures below the tables, with the section: they answer no question about the motion."""


def run_figures(run: Any, task: Any = None) -> dict[str, Callable[[], Figure]]:
    """Figures of a run by name, in the order of the report; a call draws one.

    Parameters
    ----------
    run : Run
        A finished run.
    task : Task, optional
        The task, whose limits are drawn too.

    Returns
    -------
    dict
        Name to a function that draws: "path", "errors", "outputs", "torques", "joints", "health",
        "robot", "numerics". Figures of parts that a run lacks are absent: a system without bodies
        has an "overview" in place of path and robot, and residuals within rounding are not drawn.
    """
    bodies, name = hasattr(run.robot, "bodies"), run.robot.name
    bounds = required(run, task)
    found: dict[str, Callable[[], Figure]] = {"overview": lambda: plot_run(run)}
    if bodies:
        found = {"path": lambda: path_figure(run)}
    charts = {
        "errors": (f"Tracking error of {name}", error_panels(run, bounds)),
        "outputs": (f"Outputs and base of {name}", output_panels(run)),
        "torques": (f"Control inputs of {name}", control_panels(run, bounds)),
        "joints": (f"Joints of {name}", joint_panels(run, bounds)),
        "health": (f"Distance of {name} from singularity", margin_panels(run, bounds)),
        "numerics": (f"Numerical checks of {name}", residual_panels(run)),
    }
    for kind, (title, panels) in charts.items():
        if panels:
            found[kind] = partial(chart, title, run.t, panels)
    if bodies:
        found["robot"] = lambda: robot_figure(run.robot, run.q[0], run.servo.outputs)
    return found


def save_figures(run: Any, directory: str | os.PathLike[str], task: Any = None) -> dict[str, Path]:
    """Write every figure of a run as a PNG.

    Parameters
    ----------
    run : Run
        A finished run.
    directory : path
        Folder of the files; created if it does not exist.
    task : Task, optional
        The task, whose limits are drawn too.

    Returns
    -------
    dict
        Name of the figure to its path, in the order of the report, as of `run_figures`.

    Raises
    ------
    ConcurError
        If the directory or a file cannot be written.

    Examples
    --------
    >>> save_figures(run, "out")["path"]    # doctest: +SKIP
    PosixPath('out/path.png')
    """
    folder = make_directory(directory)
    return {
        name: save_picture(draw(), folder / f"{name}.png")
        for name, draw in run_figures(run, task).items()
    }


def write_report(
    run: Run,
    rows: Iterable[Row],
    audit: Iterable[AuditRow],
    figures: Mapping[str, Any],
    directory: str | os.PathLike[str],
    title: str | None = None,
    facts: Iterable[tuple[str, str]] = (),
    notes: Iterable[tuple[str, str]] = (),
) -> Path:
    """Write `report.html`: verdict, errors and quantities near limits, and figures on one page.

    Other numbers, settings, assumptions and bodies are folded.

    Parameters
    ----------
    run : Run
        A finished run.
    rows : iterable of Row
        Quantities of the run with their limits; a quantity "stopped early" with its reason.
    audit : iterable of AuditRow
        The assumptions.
    figures : mapping
        Maps names to figures, or to PNG files as returned by `save_figures`.
    directory : path
        Folder of the page; created if it does not exist.
    title : str, optional
        Title of the page; default the name of the robot.
    facts : iterable of (str, str), optional
        Further facts about the task: label and value, such as the method.
    notes : iterable of (str, str), optional
        Notes below the summary: heading, and text with its line breaks.

    Returns
    -------
    pathlib.Path
        The page. Figures are embedded; it refers to no other file.

    Raises
    ------
    ConcurError
        If a figure cannot be read or the page cannot be written.

    Examples
    --------
    >>> write_report(run, run.rows, audit, save_figures(run, "out"), "out")    # doctest: +SKIP
    PosixPath('out/report.html')
    """
    rows, audit = list(rows), list(audit)
    captions = _CAPTIONS | ({"errors": _IDEAL} if _is_ideal(run) else {})
    drawn = {name: (figure, captions.get(name, "")) for name, figure in figures.items()}
    last = {name: drawn.pop(name) for name in _LAST if name in drawn}
    asked, *others = quantities(rows, ("error of", "stopped early"))
    sections = [
        asked,
        *(Section(heading, lines=text) for heading, text in notes),
        Section("Figures", figures=drawn),
        *others,
        Section("Task", rows=[*facts, *_facts(run)], folded=True),
        Section("Outputs", "", _OUTPUTS, list(_outputs(run)), folded=True),
        *audit_sections(audit, "assumptions"),
        *(
            Section(_LAST[name], figures={name: picture}, folded=True)
            for name, picture in last.items()
        ),
        *_robots(run),
    ]
    name = f"Run of {run.robot.name}" if title is None else title
    return write_page(directory, name, *_verdict(rows, audit), sections)


def write_result(
    result: Result,
    directory: str | os.PathLike[str],
    title: str,
    facts: Iterable[tuple[str, str]] = (),
    figures: Mapping[str, Any] | None = None,
) -> Path:
    """Write `report.html` of any result: verdict, quantities with their limits, and figures.

    Problems, notes and tables of the result are there too, if it has them.

    Parameters
    ----------
    result : Result
        A run, comparison, campaign, certificate, proof or audit.
    directory : path
        Folder of the page; created if it does not exist.
    title : str
        Title of the page.
    facts : iterable of (str, str), optional
        Further facts: label and value.
    figures : mapping, optional
        Maps names to figures, or to PNG files of them; default: those of the result.

    Returns
    -------
    pathlib.Path
        The page. Figures are embedded; it refers to no other file.

    Raises
    ------
    ConcurError
        If the page cannot be written.

    Examples
    --------
    >>> write_result(comparison, "out", "Two servos")    # doctest: +SKIP
    PosixPath('out/report.html')
    """
    verdict, rows, given = word(result.status), tuple(result.rows), list(facts)
    missed = [f"Missed: {row.quantity}, {row.place}." for row in rows if row.holds is False]
    if figures is None:
        figures = {name: draw() for name, draw in result.figures.items()}
    drawn = {name: (figure, "") for name, figure in figures.items()}
    asked, *others = quantities(rows, ("error of", "stopped early", "decay rate", "tube"))
    tables = [Section(t.title, "", t.head, t.rows) for t in getattr(result, "tables", ())]
    notes = [Section("Notes", "\n".join(text))] if (text := getattr(result, "notes", ())) else []
    folded = [Section("Facts", rows=given, folded=True)] if given else []
    sections = [asked, *tables, *notes, Section("Figures", figures=drawn), *others, *folded]
    reasons = getattr(result, "problems", ()) or missed
    return write_page(directory, title, verdict in GOOD, verdict, reasons, sections)


def _is_ideal(run: Run) -> bool:
    """Whether the law has exact error dynamics, and the plant does not differ from its model."""
    return getattr(run.servo, "linearizes", True) and not run.plant_differences


def _verdict(rows: list[Row], audit: list[AuditRow]) -> tuple[bool | None, str, list[str]]:
    """Whether the run meets its task, in a sentence, with reasons."""
    missed = [row for row in rows if row.holds is False]
    states = {row.id: row.status.value for row in audit}
    failed = [id for id, state in states.items() if state.startswith("fail")]
    unknown = [id for id, state in states.items() if not state.startswith(("fail", "hold"))]
    holding = sum(state.startswith("hold") for state in states.values())
    judged = sum(row.holds is not None for row in rows)
    reasons = [f"Stopped early: {row.value}" for row in missed if row.quantity == "stopped early"]
    names = [row.quantity for row in missed if row.quantity != "stopped early"]
    if names:
        reasons.append(f"Limits missed: {', '.join(names)}.")
    if failed:
        reasons.append(f"Assumptions that fail: {', '.join(failed)}.")
    bad = bool(reasons)
    if not bad:
        reasons.append(f"{judged} limits kept, {holding} assumptions hold.")
    if unknown:
        reasons.append(f"Not checked: {', '.join(unknown)}.")
    if bad:
        return False, "The run does not meet its task", reasons
    if judged or holding:
        return True, "The run meets its task", reasons
    return None, "Nothing was judged", reasons


def _facts(run: Run) -> list[tuple[str, str]]:
    model = run.servo.model
    controls = zip(model.control_names, run.control_units, strict=True)
    listed = ", ".join(f"{name} [{unit}]" for name, unit in controls)
    return [
        ("Duration", f"{run.t[-1] - run.t[0]:.4g} s, {len(run.t)} samples"),
        ("Configuration", f"{run.q.shape[1]} coordinates, {run.v.shape[1]} freedoms"),
        ("Controls", f"{run.u.shape[1]}: {listed}"),
        ("Reduction", str(getattr(model, "kind", "none"))),
    ]


_OUTPUTS = ("Output", "Body", "Group", "Point in the body frame [m]")


def _outputs(run: Run) -> Iterator[tuple[str, ...]]:
    for output in run.servo.outputs:
        body = "function of q" if output.is_function else output.body
        body += f" relative to {output.relative_to}" if output.relative_to else ""
        point = ", ".join(f"{x:.4g}" for x in output.point)
        yield output.name, body, str(output.group), f"({point})"


def _robots(run: Run) -> list[Section]:
    """Tables of the robot, and what of the plant differs from the servo's model."""
    if not hasattr(run.robot, "bodies"):
        return []
    differences = tuple(run.plant_differences)
    parts = robot_sections(run.robot)
    if differences:
        text = f"The plant differs from the servo's model: {', '.join(differences)}. The plant:"
        model: Any = run.servo.model.system
        parts = [
            Section(text=text),
            *parts,
            Section(text="The servo's model:"),
            *robot_sections(model),
        ]
    return [Section("Bodies", folded=True, parts=parts)]
