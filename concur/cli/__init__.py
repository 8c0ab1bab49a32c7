"""The command line: `concur track`, `check`, `certify` and `export`."""

from concur.cli._app import main

__all__ = ["main"]
