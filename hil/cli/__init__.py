"""The command line of the rig: `concur-rig`."""

from hil.cli._app import main

__all__ = ["main"]
