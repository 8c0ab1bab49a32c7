"""The command line: `concur track`, `check`, `compare`, `certify`, `export`, `view` and more."""

from concur.cli._app import main

__all__ = ["main"]
