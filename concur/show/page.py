"""Pages in HTML: a verdict, then what was asked, figures and facts; the rest is folded.

Runs, campaigns, certificates, proofs and comparisons are shown as a page in one file, and together
with robots and laws as a part of a notebook. Neither refers to other files.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from concur.errors import printable
from concur.files import make_directory, writing
from concur.results import Row
from concur.show.style import DPI, picture

NEAR = 0.8
"""Part of a limit from which on a quantity is near it."""

HEAD = ("Quantity", "Value", "Limit", "Verdict")
"""Heads of a table of quantities."""

_BROAD = 760
"""Width from which on a figure fills the page, pixels of the browser."""

_LEAST = 0.7
"""Part of its width below which a figure scrolls, so that its text remains readable."""

Cells = Sequence[Any]


@dataclass(frozen=True)
class Section:
    """Part of a page: texts, a table and figures.

    Parameters
    ----------
    title : str
        Heading; empty without one.
    text : str
        Sentences; each line is a paragraph.
    head : sequence of str
        Heads of the columns of the table; empty without.
    rows : sequence
        Rows of the table: cells, or cells and whether the row is good or bad, as a `Marked`.
    figures : mapping of str to tuple
        Figure, its file or its bytes, and caption, by name; a figure that is None is omitted.
    folded : bool
        Whether the section opens on a click.
    lines : str
        Text whose line breaks are kept.
    parts : sequence of Section
        Further sections inside it.
    """

    title: str = ""
    text: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Cells | Marked] = ()
    figures: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    folded: bool = False
    lines: str = ""
    parts: Sequence[Section] = ()

    @property
    def marked(self) -> list[tuple[Cells, bool | None]]:
        """Cells of each row, and whether it is good or bad."""
        rows = [row if isinstance(row, Marked) else Marked(row) for row in self.rows]
        return [([_text(cell) for cell in row.cells], row.good) for row in rows]

    @property
    def pictures(self) -> dict[str, dict[str, Any]]:
        """Content of each figure for the page, by name."""
        return {
            name: {"caption": caption, **_embedded(figure)}
            for name, (figure, caption) in self.figures.items()
            if figure is not None
        }


@dataclass(frozen=True)
class Marked:
    """Row of a table that is good or bad.

    Parameters
    ----------
    cells : sequence
        One value for each column.
    good : bool, optional
        Whether the row is marked as good or as bad; neither by default.
    """

    cells: Cells
    good: bool | None = None


def write_page(
    directory: str | os.PathLike[str],
    title: str,
    good: bool | None,
    headline: str,
    reasons: Iterable[str],
    sections: Iterable[Section],
) -> Path:
    """Write `report.html`: a verdict, and sections with texts, tables and figures.

    Parameters
    ----------
    directory : path
        Folder of the page; created if it does not exist.
    title : str
        Title of the page.
    good : bool or None
        Whether the verdict is the wanted one; None if nothing was judged.
    headline : str
        Verdict in one sentence.
    reasons : iterable of str
        Sentences below the verdict.
    sections : iterable of Section
        What follows, in order.

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
    mark = {None: "none", True: "good", False: "bad"}[None if good is None else bool(good)]
    with writing(target):
        page = _template().render(
            whole=True, title=title, mark=mark, headline=headline, reasons=list(reasons),
            sections=list(sections),
        )  # fmt: skip
        target.write_text(page, encoding="utf-8")
    return target


def fragment(title: str, sections: Iterable[Section]) -> str:
    """Content of a page for a notebook, in its colours.

    Parameters
    ----------
    title : str
        First line.
    sections : iterable of Section
        What follows, in order.

    Returns
    -------
    str
        HTML.
    """
    return _template().render(whole=False, title=title, sections=list(sections))


def quantities(rows: Iterable[Row], asked: Iterable[str] = ()) -> list[Section]:
    """Tables of quantities: what was asked or is near its limit, and the others, folded.

    Parameters
    ----------
    rows : iterable of Row
        Quantities with their limits.
    asked : iterable of str
        Beginnings of the names of quantities that are shown in any case.

    Returns
    -------
    list of Section
        One or two sections.
    """
    first: list[Marked] = []
    others: list[Marked] = []
    for row in rows:
        part = row.share
        named = row.quantity.startswith(tuple(asked)) and not row.quantity.endswith("initial")
        near = row.holds is False or (part is not None and part >= NEAR)
        (first if named or near else others).append(_quantity(row))
    title = "Errors, and quantities near their limits"
    if first and not any("error of" in row.cells[0] for row in first):
        title = "Main quantities, and those near their limits"
    text = "" if first else "No limit is missed or near."
    found = [Section(title, text, HEAD, first)]
    title = f"{len(others)} other number{'s' * (len(others) > 1)}"
    return [*found, *([Section(title, "", HEAD, others, folded=True)] if others else [])]


def _quantity(row: Row) -> Marked:
    part = row.share
    shown = "" if part is None or not part <= 1e3 else f"{100 * part:.2g} %"
    shown = "< 0.1 %" if shown and part is not None and part < 1e-3 else shown
    limit = "; ".join(filter(None, (row.shown_limit, row.place)))
    value = "–" if isinstance(row.value, float) and not np.isfinite(row.value) else row.shown
    word = {None: "–", True: "✓ kept", False: "✗ missed"}[row.holds]
    verdict = ", ".join(filter(None, (word, shown)))
    return Marked((row.quantity, value, limit, verdict), row.holds)


@cache
def _template() -> jinja2.Template:
    source = resources.files(__package__).joinpath("page.html.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["printable"] = printable
    return environment.from_string(source)


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):  # of a `Table`
        return {True: "✓", False: "✗", None: ""}[value]
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return "\n".join(map(printable, text.split("\n")))


def _embedded(figure: Figure | bytes | str | os.PathLike[str]) -> dict[str, Any]:
    """Data of a picture, its kind, and its width and least width in pixels of the browser."""
    if isinstance(figure, Figure):
        data = picture(figure)
    else:
        data = figure if isinstance(figure, bytes) else Path(figure).read_bytes()
    with Image.open(io.BytesIO(data)) as image:
        kind = str(image.format).lower()
        width = round(image.width * 96 / image.info.get("dpi", (DPI,))[0])
    return {
        "data": base64.b64encode(data).decode("ascii"),
        "kind": kind,
        "width": width,
        "least": round(_LEAST * width),
        "wide": width > _BROAD,
    }
