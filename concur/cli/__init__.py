"""The command line: `concur track`, `concur check`."""

from concur.cli._app import main

__all__ = ["main"]
