"""Robots and runs in three dimensions, in a browser, with viser."""

from concur.show.viewer._curves import add_plot, drawable
from concur.show.viewer._film import Film
from concur.show.viewer._robot_viewer import RobotViewer
from concur.show.viewer._run_viewer import RunViewer, view_runs
from concur.show.viewer._scene import Scene
from concur.show.viewer._server import LOCAL, REJECTED, admits, silenced, start_server
from concur.show.viewer._viewer import Viewer

__all__ = [
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
    "view_runs",
]
