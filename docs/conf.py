"""Settings of the manual: `sphinx-build -W docs docs/_build`."""

from __future__ import annotations

import re

from concur._version import __version__

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
    "sphinxcontrib.typer",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False  # autodoc lists them
autodoc_typehints = "none"  # numpydoc sections name types with shapes and units
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = "concur"
html_show_sourcelink = False
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}


def _escape_norms(app, what, name, obj, options, lines):
    """Docstrings write norms as |z|, which reStructuredText reads as substitutions."""
    for k, line in enumerate(lines):
        parts = re.split(r"(``?[^`]*``?)", line)
        lines[k] = "".join(p if p.startswith("`") else p.replace("|", r"\|") for p in parts)


def setup(app):
    """Connect what Sphinx calls."""
    app.connect("autodoc-process-docstring", _escape_norms, priority=900)
