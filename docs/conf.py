"""Settings of the manual: `sphinx-build docs docs/_build`."""

from __future__ import annotations

from concur._version import __version__

project = "concur"
author = "The concur developers"
copyright = "2026, The concur developers"
release = __version__
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False  # autodoc lists them
autodoc_typehints = "none"  # numpydoc sections name types with shapes and units
exclude_patterns = ["_build"]
