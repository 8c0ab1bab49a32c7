"""Viewer of a run, or of two: the robot over time, its paths, and its curves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concur.show._outputs import few
from concur.show.style import PALETTE, Floats
from concur.show.viewer._curves import DASHES, TimedPlot
from concur.show.viewer._film import POINTS, Film
from concur.show.viewer._scene import Scene, demanded_place
from concur.show.viewer._viewer import Viewer
from concur.simulation import Run

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5", "10")
"""Speeds of the playback, in units of real time."""

GHOST = 0.35
"""Opacity of a second run."""

ACROSS = np.array([0.8, -0.6, 0.0])
"""Direction from the first run to the second one beside it: to the right of the first camera."""

CURVES = 0.12
"""Shortest time between two updates of the curves, s."""


class RunViewer(Viewer):
    """Page with a run, and optionally a second one as a ghost or beside it.

    Parameters
    ----------
    films : sequence of Film
        One run or two; the curves have the colours of the first, those of the second are dashed.
    port : int
        Port of this machine; 0: any free port.
    browser : bool
        Whether to open the page in a browser.
    """

    def __init__(self, films: Sequence[Film], port: int = 0, browser: bool = True) -> None:
        self.films = tuple(films)
        title = " and ".join(dict.fromkeys(film.robot.name for film in films))
        super().__init__(title, port, browser)

    def build(self) -> None:
        gui = self.server.gui
        self._begin = min(float(film.t[0]) for film in self.films)
        self._end = max(float(film.t[-1]) for film in self.films)
        span = max(self._end - self._begin, 1e-9)
        self._digits = int(np.ceil(3.0 - np.log10(span)))
        self.now = self._begin
        self.playing = False
        self.slider: Any = gui.add_slider(
            "Time (s)", self._begin, self._begin + span, 10.0**-self._digits, self._begin
        )
        self.play = gui.add_button("Play")
        self.play.on_click(lambda _: self.toggle())
        self.speed = gui.add_dropdown("Speed (×)", SPEEDS, initial_value="1")
        with gui.add_folder("Show"):
            self.follow = gui.add_checkbox("Follow base", False)
            self.paths = gui.add_checkbox("Paths", True)
            self.frames = gui.add_checkbox("Frames", False)
            self.com = gui.add_checkbox("Centre of mass", False)
            self.beside = gui.add_checkbox("Side by side", False, visible=len(self.films) > 1)
        self.scenes = [
            Scene(
                self.server,
                film.robot,
                film.outputs,
                film.q[0],
                name="/world/second" if k else "/world",
                opacity=GHOST if k else None,
            )
            for k, film in enumerate(self.films)
        ]
        for scene in self.scenes:
            scene.grows = False
        self.scenes[0].look_at(self.films[0].q[few(self.films[0], POINTS // 10)])
        for film, scene in zip(self.films, self.scenes, strict=True):
            self._draw_paths(film, scene)
        self.plots: dict[str, TimedPlot] = {}
        times = np.linspace(self._begin, self._end, POINTS)
        for title, curves in self._curves(times).items():
            names, columns, styles = zip(*curves, strict=True)
            with gui.add_folder(title, expand_by_default=len(self.plots) < 2):
                self.plots[title] = TimedPlot(gui, names, times, np.array(columns).T, styles)
        self._shown: tuple[Any, ...] = ()
        self._stale, self._drawn = False, 0.0
        self._clock = time.monotonic()

    def _curves(self, times: Floats) -> dict[str, list[tuple[str, Floats, Any]]]:
        """Name, values and style of the curves of each plot, by title; references once."""
        found: dict[str, list[tuple[str, Floats, Any]]] = {}
        for k, film in enumerate(self.films):
            number: dict[tuple[str, bool], int] = {}
            for title, name, values, reference in film.curves():
                if reference and k:
                    continue
                count = number[title, reference] = number.get((title, reference), -1) + 1
                style = (PALETTE[count % len(PALETTE)], DASHES[2 * reference or k])
                label = name + " ref." * reference + " (2)" * k
                drawn = np.interp(times, film.t, values, np.nan, np.nan)
                found.setdefault(title, []).append((label, drawn, style))
        return found

    def _draw_paths(self, film: Film, scene: Scene) -> None:
        """Draw the whole paths of hands and references."""
        rows = few(film, POINTS)
        hands = np.array([scene.drawing.at(film.q[row]).hands for row in rows])
        start = 0
        for k, output in enumerate(film.outputs):
            demanded = film.reference[rows, start : start + output.pose_size]
            start += output.pose_size
            wanted = _segments(demanded_place(output, demanded, hands[:, k]))[::2]  # dashed
            scene.trails[k].points = _segments(hands[:, k])
            if len(wanted):
                scene.references[k].points = wanted

    def toggle(self) -> None:
        """Start to play, or pause."""
        if not self.playing and self.now >= self._end:
            self.now = self._begin
        self._clock = time.monotonic()
        self.playing = not self.playing
        self.play.label = "Pause" if self.playing else "Play"

    def update(self) -> None:
        now = time.monotonic()
        if self._shown and self.slider.value != self._shown[0]:  # moved by a user
            self.now = float(self.slider.value)
        elif self.playing:
            self.now = min(self.now + float(self.speed.value) * (now - self._clock), self._end)
            if self.now >= self._end:
                self.toggle()
        self._clock = now
        if self.slider.value != (rounded := round(self.now, self._digits)):
            self.slider.value = rounded
        options = tuple(
            bool(box.value) for box in (self.follow, self.paths, self.frames, self.com, self.beside)
        )
        state = (self.slider.value, *options)
        if state != self._shown:
            self._draw(*options)
            self._shown, self._stale = state, True
        if self._stale and now - self._drawn > CURVES:
            self._stale, self._drawn = False, now
            for plot in self.plots.values():
                plot.show(self.now)

    def _draw(self, follow: bool, paths: bool, frames: bool, com: bool, beside: bool) -> None:
        for k, (film, scene) in enumerate(zip(self.films, self.scenes, strict=True)):
            if k:
                scene.offset = 2.0 * beside * scene.size * ACROSS
            scene.follow = follow
            scene.show(com, frames)
            for path in (*scene.trails, *scene.references):
                path.visible = paths
            row = film.row(self.now)
            scene.update(film.q[row], film.reference[row])


def view_runs(runs: Sequence[Run], port: int = 0, browser: bool = True) -> RunViewer:
    """Open the page of one run, or of two."""
    return RunViewer([Film.of(run) for run in runs], port, browser)


def _segments(points: Floats) -> NDArray[np.float32]:
    """Segments (n, 2, 3) between neighbouring points (k, 3); those with NaN are omitted."""
    pairs = np.stack([points[:-1], points[1:]], axis=1)
    return np.asarray(pairs[np.isfinite(pairs).all(axis=(1, 2))], dtype=np.float32)
