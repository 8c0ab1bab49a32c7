"""Robots, laws, proofs and runs as HTML for notebooks: tables and figures without other files.

All HTML of these objects is here; their methods `_repr_html_` call these functions. Colours are
those of the notebook, with grey lines, so that the tables are readable on white and on black.
"""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concur.errors import printable
from concur.show.comparison import comparison_figure
from concur.show.files import writing
from concur.show.motion import motion_figure
from concur.show.overview import plot_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 70
_LINE = "1px solid rgba(128,128,128,0.5)"
_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top;background:transparent"

Rows = Iterable[Sequence[Any]]


def robot_html(robot: Any) -> str:
    """Show a robot: its bodies with joints, masses and limits, and its wheels.

    Parameters
    ----------
    robot : Mechanism
        The robot.

    Returns
    -------
    str
        HTML.
    """
    actuated = set(robot.driven_bodies)
    bodies = [
        (
            body.name,
            body.parent or "world",
            type(body.joint).__name__,
            "yes" if body.name in actuated else "",
            float(body.inertia.mass),
            _vector(body.inertia.com) if body.inertia.mass else "",
        )
        for body in robot.bodies
    ]
    wheels = [(wheel.body, wheel.kind, float(wheel.radius or 0.0)) for wheel in robot.wheels]
    facts = [
        ("coordinates and velocities", f"{robot.nq} and {robot.nv}"),
        ("controls", _listed(robot.control_names)),
        ("mass", f"{_number(robot.total_mass)} kg"),
        ("gravity", f"{_vector(robot.gravity)} m/s²"),
    ]
    head = ("body", "on", "joint", "actuated", "mass [kg]", "centre of mass [m]")
    parts = [_facts(facts), _table(head, bodies)]
    if wheels:
        parts.append(_table(("wheel", "kind", "radius [m]"), wheels))
    return _page(f"Robot {robot.name}", *parts)


def model_html(model: Any) -> str:
    """Show a reduced model: its kind with the reason, shape velocities and controls.

    Parameters
    ----------
    model : ReducedModel
        The model.

    Returns
    -------
    str
        HTML.
    """
    facts = [
        ("reduction", f"{model.kind}: {model.reason}"),
        ("shape velocities", f"{model.ns} of {model.nv}: {_listed(model.shape_names)}"),
        ("controls", f"{model.nu}: {_listed(model.control_names)}"),
    ]
    if model.takes_momentum:
        facts.append(("momentum [linear; angular]", _vector(model.momentum)))
    if model.stages:
        facts.append(("further stages", _listed(model.stages)))
    return _page(f"Reduced model of {model.name}", _facts(facts))


def law_html(law: Any) -> str:
    """Show a servo or another law: its outputs with gains, and its options.

    Parameters
    ----------
    law : TrackingLaw
        The law.

    Returns
    -------
    str
        HTML.
    """
    names = {"stiffness": "1/s²", "damping": "1/s", "integral": "1/s³"}
    names = {name: unit for name, unit in names.items() if getattr(law, name) is not None}
    matrices = [getattr(law, name) for name in names]
    rows, start = [], 0
    for output in law.outputs:
        part = slice(start, start + output.dim)
        start = part.stop
        gains = [
            ", ".join(_number(x) for x in dict.fromkeys(np.diag(matrix)[part].tolist()))
            for matrix in matrices
        ]
        group = str(getattr(output.group, "name", output.group))
        place = (output.body, output.relative_to or "world")
        rows.append((output.name, group, *(("", "") if output.is_function else place), *gains))
    head = ("output", "group", "body", "relative to", *(f"{n} [{u}]" for n, u in names.items()))
    # Lines of the text after those of the outputs: options.
    options = str(law).splitlines()[1 + len(rows) :] if law.linearizes else []
    facts = [
        ("controls", f"{law.nu}: {_listed(law.model.control_names)}"),
        *(("option", text) for text in options),
    ]
    return _page(
        f"{'Servo' if law.linearizes else 'Law'} of {law.name}", _table(head, rows), _facts(facts)
    )


def audit_html(audit: Any) -> str:
    """Show an audit: each assumption with its status and evidence.

    Parameters
    ----------
    audit : Audit
        The audit.

    Returns
    -------
    str
        HTML.
    """
    rows = [(row.id, row.status.value, row.statement, row.why) for row in audit]
    title = (
        "All assumptions hold"
        if audit.holds
        else "Assumptions that fail: " + ", ".join(row.id for row in audit.failures)
    )
    return _page(title, _table(("", "status", "assumption", "evidence"), rows))


def certificate_html(certificate: Any) -> str:
    """Show a certificate: status, rates and transient bound, and its channels.

    Parameters
    ----------
    certificate : Certificate
        The certificate.

    Returns
    -------
    str
        HTML.
    """
    facts = [
        ("meaning", certificate.status.value),
        ("certified rate", f"{_number(certificate.rate)} 1/s"),
        ("linearized rate", f"{_number(certificate.true_rate)} 1/s"),
        ("transient bound", _number(certificate.transient_bound)),
        ("rotation errors up to", f"{_number(math.degrees(certificate.angle))} deg"),
        ("method", certificate.method),
        *(("if", condition) for condition in certificate.conditions),
    ]
    rows = [
        (part.channel.name, part.status.name, part.rate, part.true_rate, part.reason)
        for part in certificate.parts
    ]
    head = ("channel", "status", "rate [1/s]", "linearized [1/s]", "reason")
    return _page(f"Certificate: {certificate.status.name}", _facts(facts), _table(head, rows))


def run_html(run: Any, comparison: Any) -> str:
    """Show a run: its numbers, and the overview.

    Parameters
    ----------
    run : Run
        The run.
    comparison : Comparison
        Its numbers, as a comparison of one run.

    Returns
    -------
    str
        HTML, with the figure inside.
    """
    title = f"Run of {run.robot.name}, {_number(float(run.t[-1]))} s"
    rows = [(row.label, row.shown[0], row.unit) for row in comparison.table]
    return _page(
        title,
        _table(("", "value", "unit"), rows),
        _list(comparison.notes),
        _figure(plot_run(run), title),
    )


def motion_html(motion: Any) -> str:
    """Show a motion: its numbers, and the overview.

    Parameters
    ----------
    motion : Motion
        The motion.

    Returns
    -------
    str
        HTML, with the figure inside.
    """
    title = f"Motion of {motion.model.name}, {_number(float(motion.t[-1]))} s"
    facts = [
        ("integration", f"{motion.method}, steps of {_number(motion.dt)} s"),
        ("work of the controls", f"{_number(float(motion.work[-1]))} J"),
        ("energy gained", f"{_number(float(motion.energy[-1] - motion.energy[0]))} J"),
    ]
    if motion.keeps_momentum:
        facts.append(("drift of the momentum", _number(float(motion.momentum_drift.max()))))
    return _page(title, _facts(facts), _figure(motion_figure(motion), title))


def comparison_html(comparison: Any) -> str:
    """Show a comparison: its table, notes and figure.

    Parameters
    ----------
    comparison : Comparison
        The comparison.

    Returns
    -------
    str
        HTML, with the figure inside.
    """
    rows = [(row.label, *row.shown, row.unit) for row in comparison.table]
    head = ("", *comparison.names, "unit")
    title = f"Comparison of {len(comparison.runs)} runs"
    return _page(
        title,
        _table(head, rows),
        _list(comparison.notes),
        _figure(comparison_figure(comparison), title),
    )


@dataclass(frozen=True)
class Animation:
    """Animation of a run for a notebook; made by `Run.animate`.

    Parameters
    ----------
    data : bytes
        GIF file.
    title : str
        What it shows.
    """

    data: bytes
    title: str

    def save(self, path: str | Path) -> Path:
        """Write the animation to a file.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        ConcurError
            If the file cannot be written.
        """
        target = Path(path)
        with writing(target):
            target.write_bytes(self.data)
        return target

    def __repr__(self) -> str:
        return f"<{printable(self.title)[:120]}, GIF of {len(self.data) / 1e6:.2g} MB>"

    def _repr_html_(self) -> str:
        return _image(self.data, "gif", self.title)


def _page(title: str, *parts: str) -> str:
    shown = "".join(part for part in parts if part)
    return f'<div style="color:inherit;overflow-x:auto"><p><b>{_text(title)}</b></p>{shown}</div>'


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    return _table((), rows)


def _table(head: Sequence[str], rows: Rows) -> str:
    """Table of values, which are escaped here; nothing without rows."""
    lines = [list(map(_text, row)) for row in rows]
    if not lines:
        return ""
    cell = f'style="{_CELL};border-bottom:{_LINE}"'
    top = "".join(f"<th {cell}>{_text(name)}</th>" for name in head)
    top = f"<thead><tr>{top}</tr></thead>" if head else ""
    body = "".join(
        "<tr>" + "".join(f"<td {cell}>{text}</td>" for text in line) + "</tr>" for line in lines
    )
    style = "border-collapse:collapse;color:inherit;background:transparent;margin:0 0 8px 0"
    return f'<table style="{style}">{top}<tbody>{body}</tbody></table>'


def _list(texts: Sequence[str]) -> str:
    return "".join(f"<p>{_text(text)}</p>" for text in texts)


def _figure(figure: Figure, title: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return _image(buffer.getvalue(), "png", title)


def _image(data: bytes, kind: str, title: str) -> str:
    code = base64.b64encode(data).decode("ascii")
    source = f"data:image/{kind};base64,{code}"
    return f'<img style="max-width:100%;background:white" alt="{_text(title)}" src="{source}" />'


def _text(value: Any) -> str:
    shown = _number(value) if isinstance(value, float) else str(value)
    return html.escape(printable(shown))


def _number(value: float) -> str:
    if math.isfinite(value):
        return f"{value + 0.0:.4g}"
    return "-" if math.isnan(value) else "unlimited" if value > 0 else "-unlimited"


def _vector(values: Iterable[float]) -> str:
    return f"({', '.join(_number(float(x)) for x in values)})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
