"""Notebooks of the tutorials, made from their pages: a page is the only source of both.

python docs/notebooks.py FOLDER

A block of Python becomes a cell, a block of commands a cell with ``%%bash``, the text between them
Markdown. Links lose their targets, which a notebook does not have beside it.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).resolve().parent / "tutorials"
BLOCK = re.compile(r"^(```(?:python|bash)\n.*?^```\n)", re.DOTALL | re.MULTILINE)
COMMANDS = "%%bash\nset -e\nunset FORCE_COLOR\n"  # Jupyter sets it; progress bars would be printed
LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^\]`])*)\]\((?!https?://)[^)\s]+\)")


def pages() -> list[Path]:
    """Pages of the tutorials, in the order of their table of contents.

    Returns
    -------
    list of Path
        The pages.
    """
    index = (TUTORIALS / "index.md").read_text(encoding="utf-8")
    names = re.search(r"^```{toctree}\n(?::[^\n]*\n|\n)*(.*?)^```", index, re.DOTALL | re.MULTILINE)
    assert names, "docs/tutorials/index.md has no table of contents"
    return [TUTORIALS / f"{name}.md" for name in names[1].split()]


def cells(text: str) -> list[tuple[str, str]]:
    """Parts of a page.

    Parameters
    ----------
    text : str
        Text of a page.

    Returns
    -------
    list of (str, str)
        Kind, `markdown` or `code`, and text of each cell.
    """
    found = []
    for part in BLOCK.split(text):
        if match := re.fullmatch(r"```(\w+)\n(.*?)```\n", part, re.DOTALL):
            language, code = match.groups()
            found.append(("code", (COMMANDS if language == "bash" else "") + code))
        elif part.strip():
            found.append(("markdown", LINK.sub(lambda m: "" if m[1] else m[2], part)))
    return [(kind, cell.strip("\n")) for kind, cell in found]


def notebook(page: Path) -> dict[str, Any]:
    """Notebook of a page.

    Parameters
    ----------
    page : Path
        Markdown file.

    Returns
    -------
    dict
        Content of the file, in format 4.5.
    """
    made = []
    for number, (kind, text) in enumerate(cells(page.read_text(encoding="utf-8"))):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"{page.stem}-{number}",
            "metadata": {},
            "source": text,
        }
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def write(folder: Path) -> None:
    """Write the notebook of each tutorial.

    Parameters
    ----------
    folder : Path
        Where to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages():
        text = json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"
        (folder / f"{page.stem}.ipynb").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
