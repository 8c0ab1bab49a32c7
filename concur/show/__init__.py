"""Figures of robots and runs, animation, and the HTML report of a run.

All functions read a finished run and compute nothing again. The submodules are imported on
first use, so that importing the package does not import Matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concur.show._portrait import robot_portrait
    from concur.show._summary import summarise
    from concur.show.animation import animate
    from concur.show.campaign import (
        curves_figure,
        extremes_figure,
        influence_figure,
        robustness_figure,
        worst_figure,
    )
    from concur.show.certificate import decay_figure, rate_figure, tube_figure
    from concur.show.comparison import comparison_figure
    from concur.show.curvature import curvature_figure
    from concur.show.disturbed import DisturbedMotions, disturbed_motions
    from concur.show.errors import (
        error_figure,
        health_figure,
        numerics_figure,
        torque_figure,
    )
    from concur.show.joints import joint_figure
    from concur.show.loop import margin_figure, step_figure
    from concur.show.motion import motion_figure
    from concur.show.overview import plot_run, run_figures, save_figures
    from concur.show.path import path_figure
    from concur.show.proof import proof_figure
    from concur.show.proof_bounds import bounds_figure
    from concur.show.report import write_report
    from concur.show.robot import RobotArtists, draw_robot, robot_figure
    from concur.show.style import new_figure, styled

_MODULES = {
    "DisturbedMotions": "disturbed",
    "RobotArtists": "robot",
    "animate": "animation",
    "bounds_figure": "proof_bounds",
    "comparison_figure": "comparison",
    "curves_figure": "campaign",
    "curvature_figure": "curvature",
    "decay_figure": "certificate",
    "disturbed_motions": "disturbed",
    "draw_robot": "robot",
    "error_figure": "errors",
    "extremes_figure": "campaign",
    "health_figure": "errors",
    "influence_figure": "campaign",
    "joint_figure": "joints",
    "margin_figure": "loop",
    "motion_figure": "motion",
    "new_figure": "style",
    "numerics_figure": "errors",
    "path_figure": "path",
    "plot_run": "overview",
    "proof_figure": "proof",
    "rate_figure": "certificate",
    "robot_figure": "robot",
    "robot_portrait": "_portrait",
    "robustness_figure": "campaign",
    "run_figures": "overview",
    "save_figures": "overview",
    "step_figure": "loop",
    "styled": "style",
    "summarise": "_summary",
    "torque_figure": "errors",
    "tube_figure": "certificate",
    "worst_figure": "campaign",
    "write_report": "report",
}

__all__ = [
    "DisturbedMotions",
    "RobotArtists",
    "animate",
    "bounds_figure",
    "comparison_figure",
    "curvature_figure",
    "curves_figure",
    "decay_figure",
    "disturbed_motions",
    "draw_robot",
    "error_figure",
    "extremes_figure",
    "health_figure",
    "influence_figure",
    "joint_figure",
    "margin_figure",
    "motion_figure",
    "new_figure",
    "numerics_figure",
    "path_figure",
    "plot_run",
    "proof_figure",
    "rate_figure",
    "robot_figure",
    "robot_portrait",
    "robustness_figure",
    "run_figures",
    "save_figures",
    "step_figure",
    "styled",
    "summarise",
    "torque_figure",
    "tube_figure",
    "worst_figure",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
