"""Robots and runs in three dimensions, in a browser, with viser (extra `view`)."""

from concur.viewing._curves import add_plot, drawable
from concur.viewing._scene import Scene
from concur.viewing._server import LOCAL, REJECTED, admits, silenced, start_server

__all__ = [
    "LOCAL",
    "REJECTED",
    "Scene",
    "add_plot",
    "admits",
    "drawable",
    "silenced",
    "start_server",
]
