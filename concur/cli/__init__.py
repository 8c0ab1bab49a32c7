"""The command line: `concur track`, `check`, `compare`, `certify`, `export`, `view` and more."""

from importlib import import_module

from concur.cli._answer import errors_in_lines
from concur.cli._app import application, documented, main

__all__ = ["application", "documented", "errors_in_lines", "main"]

# Each file registers its commands, in the order of `concur --help`.
for _name in (
    "new",
    "check",
    "view",
    "plan",
    "track",
    "gains",
    "compare",
    "certify",
    "prove",
    "recheck",
):
    import_module(f"concur.cli._{_name}")
for _name in ("verify", "export"):
    import_module(f"concur.cli._{_name}")
