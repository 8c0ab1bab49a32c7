"""Robots and runs in three dimensions, in a browser, with viser."""

from concur.viewing._curves import add_plot, drawable
from concur.viewing._film import FILMED, Film
from concur.viewing._robot_viewer import RobotViewer
from concur.viewing._run_viewer import RunViewer
from concur.viewing._scene import Scene
from concur.viewing._server import LOCAL, REJECTED, admits, silenced, start_server
from concur.viewing._viewer import Viewer

__all__ = [
    "FILMED",
    "LOCAL",
    "REJECTED",
    "Film",
    "RobotViewer",
    "RunViewer",
    "Scene",
    "Viewer",
    "add_plot",
    "admits",
    "drawable",
    "silenced",
    "start_server",
]
