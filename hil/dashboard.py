"""The dashboard: the robot in a browser, what the loop measures, and a stop button.

Runs in a process of its own, reads the ring, and talks to the loop by the operator's datagrams
only: a dashboard that hangs, or dies, cannot hold the loop up.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil.errors import RigError
from hil.latch import Reason, State
from hil.operator import OperatorSender
from hil.ring import Ring
from hil.rows import Layout
from hil.scene import Scene

if TYPE_CHECKING:
    import viser

    from concur.control import Servo
    from hil.rig import Rig

PORT = 8080
"""Default port of the page."""

RATE = 15.0
"""Updates of the page in a second."""

SHOWN = 10.0
"""Length of the plots, s."""

POINTS = 300
"""Points of a curve."""


class Dashboard:
    """A page that shows a running loop; `run` serves it.

    Parameters
    ----------
    rig : Rig
        The rig.
    servo : Servo
        Its servo.
    ring : Ring
        Ring that the loop writes, attached.
    sender : OperatorSender
        Takes the stop button's word to the loop.
    host, port : str, int
        Where the page is served; by default for this machine only.

    Raises
    ------
    RigError
        If the port is taken.
    """

    def __init__(
        self,
        rig: Rig,
        servo: Servo,
        ring: Ring,
        sender: OperatorSender,
        host: str = "127.0.0.1",
        port: int = PORT,
    ) -> None:
        import viser

        _check_port(host, port)
        self.rig, self.servo, self.ring, self.sender = rig, servo, ring, sender
        self.layout: Layout = ring.layout
        self.server = viser.ViserServer(host=host, port=port, label=rig.name, verbose=False)
        self.server.gui.configure_theme(control_width="large", show_logo=False)
        self._since = 0
        self._history = np.empty((0, self.layout.width))
        self._scene = Scene(self.server, servo, np.asarray(rig.task.q0, dtype=float))
        self._build()

    def _build(self) -> None:
        gui = self.server.gui
        self._state = gui.add_markdown(f"## {self.rig.name}\nno cycle yet")
        self._stop = gui.add_button("STOP", color="red", hint="Brakes, then removes power.")
        self._stop.on_click(lambda _: self.stop())
        gui.add_markdown(
            "_Category 1 or 2 by software. The emergency stop, which removes power at once, "
            "must be wired._"
        )
        names = [f"{o.name} {c}" for o in self.servo.outputs for c in coordinates(o.group)]
        with gui.add_folder("Tracking error (m, rad)"):
            self._errors = self._plot(names)
        with gui.add_folder("Torque sent (N m)"):
            self._torques = self._plot(list(self.layout.axes))
        with gui.add_folder("Cycle (us)"):
            self._cycles = self._plot(["lateness", "compute"])
        with gui.add_folder("Axes"):
            self._axes = gui.add_markdown("")
        self._quality = gui.add_markdown("")

    def _plot(self, names: list[str]) -> viser.GuiUplotHandle:
        from viser import uplot

        paints = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
        series = [uplot.Series(label="t (s)")] + [
            uplot.Series(label=name, stroke=paints[k % len(paints)], width=2)
            for k, name in enumerate(names)
        ]
        empty = tuple(np.array([0.0, 1.0]) for _ in series)
        return self.server.gui.add_uplot(
            data=empty,
            series=tuple(series),
            scales={"x": uplot.Scale(time=False)},
            legend=uplot.Legend(show=True),
            aspect=2.0,
        )

    def stop(self) -> None:
        """Ask the loop to stop."""
        self.sender.stop()

    def update(self) -> bool:
        """Show what the loop has written since the last time.

        Returns
        -------
        bool
            Whether there was anything new.
        """
        rows, self._since, _ = self.ring.take(self._since)
        if not len(rows):
            return False
        keep = round(SHOWN * self.rig.loop.rate)
        self._history = np.concatenate([self._history, rows])[-keep:]
        shown = self.layout.views(self._history)
        last = {name: part[-1] for name, part in shown.items()}
        if np.isfinite(last["q"]).all():
            self._scene.update(last["q"], last["pose"])
        self._show_words(last)
        step = max(len(self._history) // POINTS, 1)
        times = shown["time"][::step, 0] - last["time"][0]
        for plot, parts, factor in (
            (self._errors, shown["error"], 1.0),
            (self._torques, shown["torque"], 1.0),
            (
                self._cycles,
                np.hstack([shown["time"] - shown["deadline"], shown["compute"]]),
                1e6,
            ),
        ):
            columns = np.nan_to_num(parts[::step] * factor, posinf=0.0, neginf=0.0).T
            plot.data = (times, *(np.ascontiguousarray(column) for column in columns))
        return True

    def _show_words(self, last: dict[str, NDArray[np.float64]]) -> None:
        state, reason = tuple(State)[int(last["state"][0])], tuple(Reason)[int(last["reason"][0])]
        lines = [f"## {self.rig.name}: {state.name}", state.sentence]
        if reason:
            lines.append(f"**{reason.name}**: {reason.sentence}")
        elapsed = last["elapsed"][0]
        if np.isfinite(elapsed):
            lines.append(f"{elapsed:.1f} s of {self.rig.task.duration:.0f} s")
        self._state.content = "\n\n".join(lines)
        table = ["| axis | position | torque | limit | power |", "| --- | --- | --- | --- | --- |"]
        for k, axis in enumerate(self.rig.axes):
            on = "on" if last["enabled"][k] else "off"
            fault = int(last["fault"][k])
            table.append(
                f"| {axis.name} | {last['position'][k]:.3f} | {last['torque'][k]:.3f} | "
                f"{axis.torque_limit:g} | {f'fault 0x{fault:X}' if fault else on} |"
            )
        self._axes.content = "\n".join(table)
        self._quality.content = ", ".join(
            f"{name} {int(last[name][0])}" for name in ("cycle", "late", "lost", "stale", "clipped")
        )

    def run(self, ended: threading.Event) -> None:
        """Serve the page until told to end, or until the loop is gone for a while.

        Parameters
        ----------
        ended : threading.Event
            Set by whoever wants the end.
        """
        while not ended.is_set():
            self.update()
            ended.wait(1.0 / RATE)

    def close(self) -> None:
        """Close the page."""
        self.server.stop()


def coordinates(group: str) -> tuple[str, ...]:
    """Names of the error coordinates of an output's group.

    Parameters
    ----------
    group : str
        Name of the group.

    Returns
    -------
    tuple of str
        One for each coordinate.
    """
    linear, angular = ("x", "y", "z"), ("rx", "ry", "rz")
    return {
        "R": ("x",),
        "R2": linear[:2],
        "R3": linear,
        "SO2": ("angle",),
        "SO3": angular,
        "SE2": (*linear[:2], "angle"),
    }.get(group, linear + angular)


def start_dashboard(
    rig_path: Path, ring: str, token: str, operator: int, host: str = "127.0.0.1", port: int = PORT
) -> BaseProcess:
    """Serve the page from a process of its own.

    Parameters
    ----------
    rig_path : Path
        The rig file.
    ring : str
        Name of the loop's ring.
    token : str
        The operator's token.
    operator : int
        Port at which the loop listens to the operator.
    host, port : str, int
        Where the page is served.

    Returns
    -------
    multiprocessing.Process
        The process; terminate it to close the page.
    """
    process = multiprocessing.get_context("spawn").Process(
        target=_serve,
        args=(rig_path, ring, token, operator, host, port),
        name="dashboard",
        daemon=True,
    )
    process.start()
    return process


def _serve(rig_path: Path, ring: str, token: str, operator: int, host: str, port: int) -> None:
    from hil.rig import load_rig

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loop decides what an interrupt means
    if hasattr(os, "nice"):
        os.nice(10)
    rig = load_rig(rig_path)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    attached = Ring.attach(ring)
    sender = OperatorSender(rig.operator.host, operator, token, "dashboard")
    dashboard = Dashboard(rig, rig.task.servo(), attached, sender, host, port)
    try:
        parent = os.getppid()
        watch = threading.Thread(target=_end_with, args=(parent, ended), daemon=True)
        watch.start()
        dashboard.run(ended)
    finally:
        dashboard.close()
        attached.close()


def _end_with(parent: int, ended: threading.Event) -> None:
    while os.getppid() == parent and not ended.is_set():
        time.sleep(0.5)
    ended.set()


def _check_port(host: str, port: int) -> None:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise RigError(
                f"dashboard at {host}:{port}",
                expected="a free port of this machine",
                came=f"{error.strerror}",
                cure="Give another with `--port`, or close what uses it.",
            ) from error
