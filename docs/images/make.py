"""Draw the pictures of README and docs from the examples.

python docs/images/make.py
python docs/images/make.py gallery

The second command draws the small pictures of the gallery only, one of each example. Those of URDF
files need the packages example-robot-data and pybullet.
The picture of the dashboard needs Chromium; CHROMIUM may contain its path.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import concur as cc
import hil
from concur.show import (
    animate,
    new_figure,
    path_figure,
    robot_figure,
    styled,
)
from concur.show._course import Course, leaves_plane
from concur.show._space import TRIAD, fit_view
from concur.show.style import save_picture
from concur.simulation import Run
from hil.record.ring import Ring
from hil.views.dashboard import Dashboard

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.robot._library import assemble  # noqa: E402

EXAMPLES = HERE.parents[1] / "examples"
WIDTH = 360
"""Width of the pictures of the gallery, pixels."""

SCRIPTS = {
    "chain_pendulum": "chain_pendulum.png",
    "crane_car": "crane_car.png",
    "free_floater": "free_floater.png",
    "orbital_crawler": "orbital_crawler.png",
    "own_laws": "own_laws.png",
    "parked_rover": "parked_rover.png",
    "phases": "phases.png",
    "pointing_chain": "pointing_chain.png",
    "rover_arm": "rover_arm.png",
    "turning_satellite": "turning_satellite.png",
    "wrong_payload": "wrong_payload.png",
}
"""Figure that each script of the examples writes."""


def main() -> None:
    """Simulate the examples; write their pictures beside this file."""
    rover(simulated("rover_arm.toml"))
    floater(simulated("free_floater.toml"))
    planned()
    script("crane_car", "crane_load.png")
    script("chain_pendulum", "chain_pendulum.png")
    script("wrong_payload", "wrong_payload.png")
    dashboard()
    gallery()


def gallery() -> None:
    """Write a small picture of each example: paths of a task, a robot, or a figure of a script."""
    folder = HERE / "gallery"
    folder.mkdir(exist_ok=True)
    for path in sorted([*EXAMPLES.glob("*.toml"), *EXAMPLES.glob("drives/*.toml")]):
        if "[[outputs]]" in path.read_text(encoding="utf-8"):
            paths(path, folder / f"{path.stem}.png")
        else:
            robot = cc.load(path)
            small(robot_figure(robot, robot.neutral()), folder / f"{path.stem}.png")
    for path in (*EXAMPLES.glob("*_rig/task.toml"), *EXAMPLES.glob("*_rig/task.py")):
        paths(path, folder / f"{path.parent.name}_task.png")
    with tempfile.TemporaryDirectory() as scratch:
        for path in assemble(Path(scratch)).glob("*_task.toml"):
            paths(path, folder / f"{path.stem}.png")
    for name, picture in SCRIPTS.items():
        with tempfile.TemporaryDirectory() as scratch:
            subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], cwd=scratch, check=True)
            with Image.open(Path(scratch) / picture) as image:
                shrunk(image).save(folder / f"{name}_py.png", optimize=True)


def paths(task: Path, picture: Path) -> None:
    """Simulate a task, and draw the paths of its run, or its laws in worlds.

    Parameters
    ----------
    task : Path
        The task file.
    picture : Path
        The file of the picture.
    """
    read = cc.load_task(task)
    if read.laws:
        small(cc.compare_laws(read).figures["laws"](), picture)
        return
    run = read.simulate(read.servo)
    bodies = isinstance(read.robot, cc.Mechanism)
    small(flight(run) if not bodies or leaves_plane(run) else path_figure(run), picture)


def flight(run: Run) -> Figure:
    """Draw a run in space once, at half of its time: many views are too small in the gallery.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Figure
        The figure.
    """
    with styled():
        figure = new_figure(4.5, 4.0)
        middle = int(np.searchsorted(run.t, 0.5 * run.t[-1]))
        fit_view(Course(figure, run, np.array([middle])).axes, (0.0, 0.0, 1.0, 0.92))
        figure.text(0.5, 0.94, f"{run.robot.name}, t = {run.t[middle]:.3g} s", ha="center")
        return figure


def small(figure: Figure, picture: Path) -> None:
    """Write a figure as a picture of the gallery.

    Parameters
    ----------
    figure : Figure
        The figure.
    picture : Path
        The file.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=100)
    with Image.open(buffer) as image:
        shrunk(image).save(picture, optimize=True)


def shrunk(image: Image.Image) -> Image.Image:
    """Make a picture narrow and its file small.

    Parameters
    ----------
    image : Image
        A picture.

    Returns
    -------
    Image
        The same, at most `WIDTH` wide, with 64 colours.
    """
    image = image.convert("RGB")
    image.thumbnail((WIDTH, WIDTH))
    return image.quantize(64)


def simulated(name: str) -> Run:
    """Run a task.

    Parameters
    ----------
    name : str
        File name of the task.

    Returns
    -------
    Run
        The run.
    """
    task = cc.load_task(EXAMPLES / name)
    return task.simulate(task.servo)


def script(name: str, picture: str) -> None:
    """Run a script of the examples, and keep its figure.

    Parameters
    ----------
    name : str
        Name of the script and of the figure that it writes.
    picture : str
        File name of the picture here.
    """
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], cwd=folder, check=True)
        Image.open(Path(folder) / f"{name}.png").quantize(256).save(HERE / picture, optimize=True)


def rover(run: Run) -> None:
    """Write an animation, and the errors.

    Parameters
    ----------
    run : Run
        The run of the rover.
    """
    # Double speed: 20 s of motion in 10 s.
    animate(run, HERE / "rover_arm.gif", fps=12, speed=2)
    save_picture(run.figures["errors"](), HERE / "rover_arm_errors.png")


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
        for cell, index in zip(cells, chosen, strict=True):
            course = Course(figure, run, np.array([index]))
            fit_view(course.axes, cell)
            figure.text(cell[0] + 1 / 6, 0.93, f"t = {run.t[index]:.3g} s", ha="center")
        handles = course.handles
        figure.legend(handles=handles, loc="lower center", ncols=len(handles), handler_map=TRIAD)
        figure.savefig(HERE / "free_floater.png", dpi=80)


def planned() -> None:
    """Write the animations of the tutorial on plans, which its own blocks make."""
    page = (HERE.parent / "tutorials" / "plan.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("examples").symlink_to(EXAMPLES, target_is_directory=True)
        exec("\n".join(blocks), {"__name__": "session"})
        for name in ("rover", "satellite"):
            Path(f"{name}.gif").replace(HERE / f"planned_{name}.gif")


def dashboard() -> None:
    """Write the dashboard of the rover's rig, fourteen seconds into a run with mock drives."""
    from playwright.sync_api import sync_playwright

    rig = hil.load_rig(EXAMPLES / "rover_rig" / "rig.toml")
    servo = rig.task.servo
    with tempfile.TemporaryDirectory() as parent:
        wishes = hil.SessionOptions(hil.Mode.MOCK, duration=15.0, folder=Path(parent) / "record")
        record = hil.Record.load(hil.run_session(rig, wishes, servo).folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (
        Ring.create(record.layout, 2000) as ring,
        hil.OperatorSender("127.0.0.1", 9) as sender,  # without a receiver
        sync_playwright() as browsers,
    ):
        page_of = Dashboard(rig, ring, sender, port=port)
        page_of.draw()
        browser = browsers.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--enable-unsafe-swiftshader"],
        )
        page = browser.new_page(viewport={"width": 1280, "height": 850})
        page.goto(f"http://127.0.0.1:{port}")
        page.wait_for_timeout(3000)
        batch = round(0.1 * rig.loop.rate)
        for number, row in enumerate(record.rows[: round(14.0 * rig.loop.rate)]):
            ring.row[:] = row
            ring.publish()
            if number % batch == batch - 1:
                page_of.update()
                page.wait_for_timeout(100)  # the page reports a longer silence
        for frame in page.frames:  # remove the note on the missing graphics processor
            frame.evaluate("document.querySelectorAll('[role=alert]').forEach(e => e.remove())")
        # Without a graphics processor drawing takes seconds; the loop continues slowly meanwhile.
        shown = threading.Event()

        def continue_run() -> None:
            for row in record.rows[round(14.0 * rig.loop.rate) :]:
                ring.row[:] = row
                ring.publish()
                page_of.update()
                if shown.wait(0.1):
                    return

        loop = threading.Thread(target=continue_run)
        loop.start()
        try:
            page.wait_for_timeout(500)
            picture = Image.open(io.BytesIO(page.screenshot()))
        finally:
            shown.set()
            loop.join()
        picture.quantize(256).save(HERE / "rig_dashboard.png", optimize=True)
        browser.close()
        page_of.close()


if __name__ == "__main__":
    gallery() if sys.argv[1:] == ["gallery"] else main()
