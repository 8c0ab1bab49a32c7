"""HTML report of a run: one self-contained file."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np

from concur.show._course import leaves_plane
from concur.show.errors import Residual, residuals
from concur.show.files import make_directory, reading, writing
from concur.show.style import DPI

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.reduction import AuditRow
    from concur.results import Row
    from concur.robot import Mechanism
    from concur.simulation import Run

_CAPTIONS = {
    "path": (
        "Paths and references, in the plane seen from above, with the robot at six instants.",
        "Each path joins its dashed reference and stays on it.",
    ),
    "flight": (
        "Paths and references in space, from above and from the side; positions, and the rotation "
        "of the base from its attitude at the start.",
        "Each path joins its dashed reference and stays on it.",
    ),
    "errors": (
        "Tracking errors and the solution of the exact error dynamics from the same start. The "
        "norms are over the coordinates of an output with the same unit.",
        "The norms fall along straight lines and cover the ideal decay; the coordinates go to zero "
        "without a jump.",
    ),
    "joints": (
        "Joint coordinates and speeds; dashed lines are limits. The extremes are over all stages "
        "of the integration, which the curves may not show.",
        "All curves stay between the dashed lines of their colour, with some distance.",
    ),
    "torques": (
        "The control inputs; circles mark the peaks, dashed lines the tightest limits.",
        "The peaks stay below the limits with some room, and the curves do not chatter.",
    ),
    "health": (
        "The decoupling margin, which is zero where some output direction cannot be commanded.",
        "The margin stays far above zero, at best at about the same height.",
    ),
    "robot": (
        "The robot at the start, with base and output frames (x red, y green, z blue).",
        "Links, wheels and output frames are where the description means them to be.",
    ),
    "numerics": (
        "Residuals that are not zero within rounding. The table shows the largest single "
        "coordinate of the deviation.",
        "No residual is drawn, if the torque is neither held nor limited and the plant is the "
        "robot of the servo's model.",
    ),
}
"""Content of each figure, and its appearance in a good run."""

NEAR = 0.8
"""Part of a limit from which on a quantity is near it."""

_LAST = ("robot", "numerics")
"""Figures below the tables: they answer no question about the motion."""


def write_report(
    run: Run,
    summary: Iterable[Row],
    audit: Iterable[AuditRow],
    figures: Mapping[str, Figure | str | os.PathLike[str]],
    directory: str | os.PathLike[str],
    title: str | None = None,
    facts: Iterable[tuple[str, str]] = (),
    notes: Iterable[tuple[str, str]] = (),
    stopped: str = "",
) -> Path:
    """Write `report.html`: verdict, errors and quantities near limits, and figures on one page.

    Other numbers, settings, assumptions and bodies are folded.

    Parameters
    ----------
    run : Run
        A finished run.
    summary : iterable of Row
        Numbers of the run with their limits.
    audit : iterable of AuditRow
        The assumptions, each with `id`, `statement`, `status` and `why`.
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
    stopped : str
        Why the run ended early; empty: it ran to its end.

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
    >>> write_report(run, rows, audit, save_figures(run, "out"), "out")    # doctest: +SKIP
    PosixPath('out/report.html')
    """
    target = make_directory(directory) / "report.html"
    differences = tuple(getattr(run, "plant_differences", ()))
    modelled: Any = run.servo.model.system if differences else run.robot
    has_bodies = hasattr(run.robot, "bodies")
    rows = [_summary_row(found) for found in summary]
    checked = [
        {"id": row.id, "statement": row.statement, "status": row.status.value, "why": row.why}
        for row in audit
    ]
    for row in checked:
        row["mark"] = _mark_of_status(row["status"])
    content = {
        "title": f"Run of {run.robot.name}" if title is None else title,
        "verdict": _verdict(rows, checked, stopped),
        "asked": [row for row in rows if row["asked"]],
        "others": [row for row in rows if not row["asked"]],
        "residuals": [_residual_text(row) for row in residuals(run)],
        "notes": list(notes),
        "audit": checked,
        "facts": [*facts, *_facts(run)],
        "outputs": _outputs(run),
        "differences": differences,
        "bodies": _bodies(run, modelled) if has_bodies else [],
        "wheels": has_bodies and bool(run.robot.wheels),
        "total_mass": _total_mass(run.robot) if has_bodies else "",
        "modelled_mass": _total_mass(modelled) if has_bodies else "",
        "figures": [_entry(name, figures[name], run) for name in figures if name not in _LAST],
        "last": {name: _entry(name, figures[name], run) for name in _LAST if name in figures},
    }
    page = render_page("report.html.j2", content)
    with writing(target):
        target.write_text(page, encoding="utf-8")
    return target


def page_style() -> str:
    """Style sheet of the page of a run, which other pages share.

    Returns
    -------
    str
        CSS.
    """
    return _source("report.html.j2").partition("<style>")[2].partition("</style>")[0]


def section(
    title: str,
    text: str = "",
    head: Sequence[str] = (),
    rows: Sequence[Mapping[str, Any]] = (),
    figures: Mapping[str, tuple[Any, str]] | None = None,
) -> dict[str, Any]:
    """Section of a page of `write_sections`.

    Parameters
    ----------
    title, text : str
        Heading, and sentences below it.
    head : sequence of str
        Heads of the columns of a table; empty without one.
    rows : sequence of mapping
        Rows of the table, from `table_row`.
    figures : mapping of str to tuple, optional
        Figure, or its PNG file, and caption by name; a figure that is None is omitted.

    Returns
    -------
    dict
        The section.
    """
    entries = [
        {"name": name, "caption": caption, "data": embedded(figure)}
        for name, (figure, caption) in (figures or {}).items()
        if figure is not None
    ]
    return {"title": title, "text": text, "head": head, "rows": rows, "figures": entries}


def table_row(cells: Sequence[Any], good: bool | None = None) -> dict[str, Any]:
    """Row of a table of `section`.

    Parameters
    ----------
    cells : sequence
        One value for each column.
    good : bool, optional
        Whether the row is marked as good or as bad; neither by default.

    Returns
    -------
    dict
        The row.
    """
    return {"cells": list(cells), "mark": {None: "none", True: "good", False: "bad"}[good]}


def write_sections(
    directory: str | os.PathLike[str],
    title: str,
    good: bool,
    headline: str,
    reasons: Sequence[str],
    sections: Iterable[Mapping[str, Any]],
) -> Path:
    """Write `report.html`: a verdict, and sections with texts, tables and figures.

    Parameters
    ----------
    directory : path
        Folder of the page; created if it does not exist.
    title : str
        Title of the page.
    good : bool
        Whether the verdict is the wanted one.
    headline : str
        Verdict in one sentence.
    reasons : sequence of str
        Sentences below the verdict.
    sections : iterable of mapping
        Sections, from `section`.

    Returns
    -------
    pathlib.Path
        The page. Figures are embedded; it refers to no other file.

    Raises
    ------
    ConcurError
        If a figure cannot be read or the page cannot be written.
    """
    target = make_directory(directory) / "report.html"
    mark = "good" if good else "bad"
    content = {
        "title": title,
        "style": page_style(),
        "verdict": {"mark": mark, "headline": headline, "reasons": list(reasons)},
        "sections": list(sections),
    }
    page = render_page("sections.html.j2", content)
    with writing(target):
        target.write_text(page, encoding="utf-8")
    return target


def render_page(template: str, content: Mapping[str, Any]) -> str:
    """Fill a template of this package.

    Parameters
    ----------
    template : str
        Name of its file.
    content : mapping
        Values of its variables, by name.

    Returns
    -------
    str
        The page in HTML.
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_source(template)).render(content)


def _source(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _mark(ok: bool | None) -> str:
    return {None: "none", True: "good", False: "bad"}[None if ok is None else bool(ok)]


def _mark_of_status(status: str) -> str:
    if status.startswith("hold"):
        return "good"
    return "bad" if status.startswith("fail") else "none"


def _summary_row(found: Row) -> dict[str, Any]:
    """Row of a number; errors, missed limits and quantities near their limits are `asked`."""
    part = _part(found)
    shown = "" if part is None or not part <= 1e3 else f"{100 * part:.2g} %"
    error = found.quantity.startswith("error of") and not found.quantity.endswith("initial")
    return {
        "label": found.quantity,
        "value": found.shown,
        "limit": "; ".join(filter(None, (found.shown_limit, found.place))),
        "part": "< 0.1 %" if shown and part is not None and part < 1e-3 else shown,
        "mark": _mark(found.holds),
        "asked": error or found.holds is False or (part is not None and part >= NEAR),
    }


def _part(found: Row) -> float | None:
    """Part of its limit that a number reaches; None without a limit or with one of zero."""
    if not found.limit or not isinstance(found.value, float):
        return None
    small, large = (found.limit, found.value) if found.at_least else (found.value, found.limit)
    return abs(small / large) if large else float("inf")


def _residual_text(row: Residual) -> str:
    size = f"{row.largest:.2g} {row.unit}".strip()
    note = ", zero within rounding" if row.zero else ""
    return f"{row.title.capitalize()}: at most {size}{note}."


def _verdict(
    rows: list[dict[str, Any]], audit: list[dict[str, Any]], stopped: str
) -> dict[str, Any]:
    missed = [row["label"] for row in rows if row["mark"] == "bad"]
    failed = [row["id"] for row in audit if row["mark"] == "bad"]
    judged = sum(row["mark"] != "none" for row in rows)
    open_rows = [row["id"] for row in audit if row["mark"] == "none"]
    reasons = []
    if stopped:
        reasons.append(f"Stopped early: {stopped}")
    if missed:
        reasons.append("Limits missed: " + ", ".join(missed) + ".")
    if failed:
        reasons.append("Assumptions that fail: " + ", ".join(failed) + ".")
    if not reasons:
        holding = sum(row["mark"] == "good" for row in audit)
        reasons.append(f"{judged} limits kept, {holding} assumptions hold.")
    if open_rows:
        reasons.append("Not checked: " + ", ".join(open_rows) + ".")
    if missed or failed or stopped:
        mark, headline = "bad", "The run does not meet its task"
    elif judged or any(row["mark"] == "good" for row in audit):
        mark, headline = "good", "The run meets its task"
    else:
        mark, headline = "none", "Nothing was judged"
    return {"mark": mark, "headline": headline, "reasons": reasons}


def _facts(run: Run) -> list[tuple[str, str]]:
    duration = float(run.t[-1] - run.t[0])
    model = run.servo.model
    facts = [
        ("Duration", f"{_number(duration)} s, {len(run.t)} samples"),
        ("Configuration", f"{run.q.shape[1]} coordinates, {run.v.shape[1]} freedoms"),
        (
            "Controls",
            f"{run.u.shape[1]}: "
            + ", ".join(
                f"{name} [{unit}]"
                for name, unit in zip(model.control_names, run.control_units, strict=True)
            ),
        ),
    ]
    kind = getattr(model, "kind", None)
    if kind is not None:
        facts.append(("Reduction", str(getattr(kind, "value", kind))))
    return facts


def _outputs(run: Run) -> list[dict[str, str]]:
    rows, start = [], 0
    for output in run.servo.outputs:
        part = slice(start, start + output.dim)
        start += output.dim
        origin = getattr(output, "relative_to", None)
        body = output.body if not output.is_function else "function of q"
        rows.append(
            {
                "name": output.name,
                "body": f"{body} relative to {origin}" if origin else body,
                "group": str(output.group),
                "point": _vector(output.point),
                "first": _sizes(run.error[0, part], output.coordinate_units),
                "last": _sizes(run.error[-1, part], output.coordinate_units),
            }
        )
    return rows


def _sizes(error: Any, units: Iterable[str]) -> str:
    names = np.array(list(units))
    return ", ".join(
        f"{_number(float(np.linalg.norm(error[names == unit])))} {unit}"
        for unit in dict.fromkeys(names.tolist())
    )


def _total_mass(robot: Mechanism) -> str:
    return _number(sum(body.inertia.mass for body in robot.bodies))


def _bodies(run: Run, modelled: Mechanism) -> list[dict[str, str]]:
    """Bodies of the plant, with their values in the servo's model."""
    wheels = {wheel.body: wheel for wheel in run.robot.wheels}
    rows = []
    for body, known in zip(run.robot.bodies, modelled.bodies, strict=True):
        wheel = wheels.get(body.name)
        rows.append(
            {
                "name": body.name,
                "joint": type(body.joint).__name__,
                "parent": body.parent or "world",
                "mass": _number(body.inertia.mass),
                "com": _vector(body.inertia.com),
                "modelled_mass": _number(known.inertia.mass),
                "modelled_com": _vector(known.inertia.com),
                "wheel": f"{wheel.kind}, radius {_number(wheel.radius)} m" if wheel else "",
            }
        )
    return rows


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _vector(values: Any) -> str:
    return "(" + ", ".join(_number(float(value)) for value in values) + ")"


def _entry(name: str, figure: Any, run: Run) -> dict[str, str]:
    key = "flight" if name == "path" and leaves_plane(run) else name
    caption, good = _CAPTIONS.get(key, (name, ""))
    return {"name": name, "caption": caption, "good": good, "data": embedded(figure)}


def embedded(figure: Any) -> str:
    """Encode a figure for a page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure or path
        The figure, or its PNG file.

    Returns
    -------
    str
        PNG in base 64.
    """
    if isinstance(figure, str | os.PathLike):
        with reading(Path(figure)):
            data = Path(figure).read_bytes()
    else:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=DPI)
        data = buffer.getvalue()
    return base64.b64encode(data).decode("ascii")
