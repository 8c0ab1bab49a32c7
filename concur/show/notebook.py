"""Robots, laws, proofs and runs as HTML for notebooks: tables and small figures.

The methods `_repr_html_` of these objects call the functions by name.
"""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concur.errors import printable
from concur.files import writing
from concur.show._summary import robot_sections
from concur.show.overview import plot_run
from concur.show.page import Marked, Section, fragment, quantities
from concur.show.runs import comparison_figure, motion_figure
from concur.show.style import picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.reduction import Audit
    from concur.robot import Mechanism
    from concur.simulation import Comparison, Motion, Run

_DPI = 80
"""Pixels per inch of figures."""


def robot_html(robot: Mechanism) -> str:
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
    return fragment(f"Robot {robot.name}", robot_sections(robot))


def text_html(title: str, *texts: str) -> str:
    """Show an object by its own text, such as a model, a law or a certificate.

    Parameters
    ----------
    title : str
        First line.
    *texts : str
        Its text, whose line breaks are kept, and further ones.

    Returns
    -------
    str
        HTML.
    """
    return fragment(title, [Section(lines=text) for text in texts])


def audit_html(audit: Audit) -> str:
    """Show an audit: assumptions that fail, and all with their evidence, folded.

    Parameters
    ----------
    audit : Audit
        The audit.

    Returns
    -------
    str
        HTML.
    """
    title = "All assumptions hold"
    if not audit.holds:
        title = "Assumptions that fail: " + ", ".join(row.id for row in audit.failures)
    return fragment(title, audit_sections(audit, "assumptions"))


def audit_sections(audit: Any, title: str) -> list[Section]:
    """Tables of an audit: what fails, and all assumptions, folded.

    Parameters
    ----------
    audit : iterable of AuditRow
        The assumptions.
    title : str
        Title of the folded table.

    Returns
    -------
    list of Section
        One or two sections.
    """
    head = ("", "Status", "Assumption", "Evidence")
    good = {"holds": True, "fails": False}
    rows = [
        Marked((row.id, row.status.value, row.statement, row.why), good.get(row.status.value))
        for row in audit
    ]
    failed = [row for row in rows if row.good is False]
    whole = Section(f"{len(rows)} {title}", "", head, rows, folded=True)
    return [*([Section("Assumptions that fail", "", head, failed)] if failed else []), whole]


def run_html(run: Run) -> str:
    """Show a run: its numbers, and the overview.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    str
        HTML, with the figure inside.
    """
    title = f"Run of {run.robot.name}, {run.t[-1]:.4g} s"
    asked, *others = quantities(run.rows, ("error of", "stopped early"))
    return fragment(title, [asked, *_figure(plot_run(run)), *others])


def motion_html(motion: Motion) -> str:
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
    rows = [
        ("integration", f"{motion.method}, steps of {motion.dt:.4g} s"),
        ("work of the controls", f"{motion.work[-1]:.4g} J"),
        ("energy gained", f"{motion.energy[-1] - motion.energy[0]:.4g} J"),
    ]
    if motion.keeps_momentum:
        rows.append(("drift of the momentum", f"{motion.momentum_drift.max():.4g}"))
    title = f"Motion of {motion.model.name}, {motion.t[-1]:.4g} s"
    return fragment(title, [Section(rows=rows), *_figure(motion_figure(motion))])


def comparison_html(comparison: Comparison) -> str:
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
    table = Section(
        "",
        "\n".join((*comparison.broken, *comparison.notes)),
        ("", *comparison.names, "unit"),
        rows,
    )
    title = f"Comparison of {len(comparison.runs)} runs"
    return fragment(title, [table, *_figure(comparison_figure(comparison))])


def _figure(figure: Figure) -> list[Section]:
    return [Section(figures={"overview": (picture(figure, _DPI), "")})]


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
        code, title = base64.b64encode(self.data).decode("ascii"), html.escape(self.title)
        return f'<img style="max-width:100%" alt="{title}" src="data:image/gif;base64,{code}"/>'
