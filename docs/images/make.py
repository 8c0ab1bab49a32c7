"""Draw the pictures of the README again, from the examples that come with the package.

python docs/images/make.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import concur as cc
from concur.plotting import animate, error_figure, new_figure, styled
from concur.plotting.flight import draw_views
from concur.plotting.robot import TRIAD
from concur.simulation import Run

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"


def main() -> None:
    """Simulate the examples; write their pictures beside this file."""
    rover(simulated("rover_arm.toml"))
    floater(simulated("free_floater.toml"))


def simulated(name: str) -> Run:
    """Run a task.

    Parameters
    ----------
    name : str
        Its file.

    Returns
    -------
    Run
        The record.
    """
    task = cc.load_task(EXAMPLES / name)
    return task.simulate(task.servo())


def rover(run: Run) -> None:
    """Write a moving picture, and the errors.

    Parameters
    ----------
    run : Run
        The run of the rover.
    """
    # Twice as fast as the robot: 20 s of motion in a picture of 10 s.
    animate(run, HERE / "rover_arm.gif", fps=12, speed=2)
    error_figure(run).savefig(HERE / "rover_arm_errors.png", dpi=100, bbox_inches="tight")


def floater(run: Run) -> None:
    """Write three views in space.

    Parameters
    ----------
    run : Run
        The run of the free-flyer.
    """
    with styled():
        figure = new_figure(12.0, 3.7)
        chosen = np.searchsorted(run.t, [0.0, 8.0, 16.0])
        cells = [(number / 3, 0.1, 1 / 3, 0.8) for number in range(3)]
        handles = draw_views(figure, run, chosen, cells)
        for (left, *_), index in zip(cells, chosen, strict=True):
            figure.text(left + 1 / 6, 0.93, f"t = {run.t[index]:.3g} s", ha="center")
        figure.legend(handles=handles, loc="lower center", ncols=len(handles), handler_map=TRIAD)
        figure.savefig(HERE / "free_floater.png", dpi=80)


if __name__ == "__main__":
    main()
