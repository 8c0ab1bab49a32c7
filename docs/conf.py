"""Settings of the manual: `sphinx-build docs docs/_build`."""

from __future__ import annotations

from importlib.metadata import version

project = "concur"
author = "The concur developers"
copyright = "2026, The concur developers"
release = version("concur")
extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
