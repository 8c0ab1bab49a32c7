"""Tutorials: each page is a notebook, which runs from top to bottom and leads on."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import notebooks  # noqa: E402

PAGES = notebooks.pages()
SLOW = ("campaign", "certificate", "proof", "rig", "urdf")
WAIT = 600  # s, for one cell on a busy machine


def test_every_tutorial_is_in_the_table_of_contents():
    assert {*PAGES} == {*(ROOT / "docs/tutorials").glob("[!i]*.md")}
    assert len(PAGES) >= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_cells_are_the_blocks_of_the_page(page):
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    found = nbformat.reads(nbformat.writes(nbformat.from_dict(notebooks.notebook(page))), 4)
    nbformat.validate(found)
    code = [cell.source for cell in found.cells if cell.cell_type == "code"]
    heads = {"python": "", "bash": notebooks.COMMANDS}
    assert code == [heads[language] + block.strip("\n") for language, block in blocks]
    prose = "\n".join(cell.source for cell in found.cells if cell.cell_type == "markdown")
    assert not re.search(r"\]\((?!http)", prose), "a link that a notebook cannot follow"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tutorial_ends_with_what_comes_next(page):
    _, _, end = page.read_text(encoding="utf-8").rpartition("\n## ")
    assert end.startswith("Next\n")
    assert "](../reference/" in end


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.stem,
            marks=pytest.mark.slow if page.stem in SLOW else pytest.mark.extended,
        )
        for page in PAGES
    ],
)
def test_notebook_runs(page, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    scripts = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", scripts + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    made = nbformat.from_dict(notebooks.notebook(page))
    client = nbclient.NotebookClient(
        made, timeout=WAIT, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
