"""Draw the pictures of the README again, from the example that comes with the package.

python docs/images/make.py
"""

from __future__ import annotations

from pathlib import Path

import concur as cc
from concur.plotting import animate, error_figure

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples" / "rover_arm.toml"


def main() -> None:
    """Simulate the example; write its moving picture and its errors beside this file."""
    task = cc.load_task(EXAMPLE)
    run = task.simulate(task.servo())
    # Twice as fast as the robot: 20 s of motion in a picture of 10 s.
    animate(run, HERE / "rover_arm.gif", fps=12, speed=2)
    error_figure(run).savefig(HERE / "rover_arm_errors.png", dpi=100, bbox_inches="tight")


if __name__ == "__main__":
    main()
