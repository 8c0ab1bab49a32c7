"""Settings of the manual: `sphinx-build -W docs docs/_build`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from concur._version import __version__

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]

import contracts  # noqa: E402
import equations  # noqa: E402
import misprints  # noqa: E402
import notebooks  # noqa: E402
import search  # noqa: E402
from sphinx.errors import ExtensionError  # noqa: E402


def _page(name):
    """Text of a page at the top of the site."""
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


project = "concur"
author = "The concur developers"
copyright = "2026, The concur developers"
release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False  # autodoc lists them
autodoc_typehints = "none"  # numpydoc sections name types with shapes and units
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "concur"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_search_scorer = str(FOLDER / "_static" / "scorer.js")
if (FOLDER / "_static" / "mathjax" / "tex-mml-chtml.js").is_file():  # for a site without network
    mathjax_path = "mathjax/tex-mml-chtml.js"
# Pages without pages below them have no navigation at their side.
html_sidebars = {
    page: []
    for page in ("index", "search", "genindex", *re.findall(r"^\w+$", _page("index"), re.MULTILINE))
    if page in ("index", "search", "genindex") or "{toctree}" not in _page(page)
}
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    # Wide tables take the place of the list of sections.
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        **{page: [] for page in ("sources", "errata", "comparison", "gallery")},
    },
}


def _write_commands(app):
    """Typer writes the options of the commands as Markdown."""
    folder = FOLDER / "_build" / "commands"
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in (("concur", "concur.cli"), ("concur-rig", "hil.cli")):
        call = [sys.executable, "-m", "typer", module, "utils", "docs", "--name", name]
        text = subprocess.run(call, check=True, capture_output=True, text=True).stdout
        # Typer cuts the sentences in the list of commands.
        for command, sentence in re.findall(rf"^## `{name} (\w+)`\n\n(.*)$", text, re.MULTILINE):
            text = re.sub(rf"^\* `{command}`: .*$", f"* `{command}`: {sentence}", text, flags=re.M)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


def _write_contracts(app):
    """The import contracts become pictures."""
    contracts.write(FOLDER / "_build" / "contracts")


TABLES = {"sources": equations, "errata": misprints}


def _outdated(*_):
    """Pages whose tables follow from docstrings are read in every build."""
    return list(TABLES)


def _write_notebooks(app):
    """The tutorials become notebooks."""
    notebooks.write(FOLDER / "_build" / "notebooks")


def _offer_notebook(app, docname, source):
    """A tutorial links its notebook below the heading."""
    if FOLDER / f"{docname}.md" in notebooks.pages():
        heading, rest = source[0].split("\n", 1)
        link = f"[This page as a notebook](../_build/notebooks/{Path(docname).name}.ipynb)"
        source[0] = f"{heading}\n\n{link}\n{rest}"


def _index_terms(app, docname, source):
    """A search for a term leads to its row in the glossary."""

    def row(match):
        return "| " + ", ".join(f"{{index}}`!{term}`" for term in match[1].split(", ")) + " |"

    if docname == "glossary":
        source[0] = re.sub(r"^\| (?!term \||---)([^|]+) \|", row, source[0], flags=re.MULTILINE)


def _fill_tables(app, docname, source):
    """The tables of equations and misprints get functions and tests."""
    if tables := TABLES.get(docname):
        if missing := tables.fault(source[0]):
            raise ExtensionError(missing)
        source[0] = tables.filled(source[0])


def _escape_norms(app, what, name, obj, options, lines):
    """Docstrings write norms as |z|, which reStructuredText reads as substitutions."""
    for k, line in enumerate(lines):
        parts = re.split(r"(``?[^`]*``?)", line)
        lines[k] = "".join(p if p.startswith("`") else p.replace("|", r"\|") for p in parts)


def _check_search(app, exception):
    """The search of a complete site finds the pages of the words that readers seek first."""
    if exception is None and app.builder.name == "html" and (missing := search.fault(app.outdir)):
        raise ExtensionError(missing)


def setup(app):
    """Connect what Sphinx calls."""
    app.connect("builder-inited", _write_commands)
    app.connect("builder-inited", _write_contracts)
    app.connect("env-get-outdated", _outdated)
    app.connect("builder-inited", _write_notebooks)
    app.connect("build-finished", _check_search)
    app.connect("source-read", _fill_tables)
    app.connect("source-read", _offer_notebook)
    app.connect("source-read", _index_terms)
    app.connect("autodoc-process-docstring", _escape_norms, priority=900)
