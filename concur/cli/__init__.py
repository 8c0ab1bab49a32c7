"""The command line: `concur track`, `check`, `certify`, `export` and `view`."""

from concur.cli._app import main

__all__ = ["main"]
