"""A run as a moving picture: GIF, or MP4 where ffmpeg is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.animation import FFMpegWriter
from PIL import Image

from concur.errors import ConcurError, UnknownNameError
from concur.plotting.files import make_directory, writing
from concur.plotting.outputs import nearest, positions
from concur.plotting.robot import RobotArtists, add_axes3d, fill_view, frame_axes
from concur.plotting.skeleton import Outline
from concur.plotting.style import (
    ARM,
    CHASSIS,
    COM,
    FRAME_COLORS,
    PALETTE,
    REFERENCE,
    new_figure,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.plotting.protocols import Floats, RunLike

_WIDTH, _HEIGHT, _DPI = 6.4, 4.8, 100
_CURVE_POINTS = 400


def animate(
    run: RunLike,
    path: str | os.PathLike[str],
    fps: float = 12.0,
    speed: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write a run as a moving picture of the robot, its references and the traces of its hands.

    Parameters
    ----------
    run : RunLike
        A finished run with `t`, `q`, `pose`, `reference`, `robot` and `servo.outputs`.
    path : path
        File to write; its suffix, .gif or .mp4, chooses the format. MP4 needs ffmpeg.
    fps : float
        Frames per second of the picture.
    speed : float
        Seconds of the run in one second of the picture.
    progress : callable, optional
        Called with (frames drawn, frames in all) after each frame.

    Returns
    -------
    pathlib.Path
        The file written.

    Raises
    ------
    UnknownNameError
        If the suffix is neither .gif nor .mp4.
    ConcurError
        If `fps` or `speed` is not positive, ffmpeg is missing, or the file cannot be written.

    Examples
    --------
    >>> animate(run, "run.gif", fps=12, speed=2)    # doctest: +SKIP
    PosixPath('run.gif')
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".gif", ".mp4"):
        raise UnknownNameError(
            str(target),
            expected="a name that ends in .gif or .mp4",
            came=f"the suffix {target.suffix!r}",
            cure="Change the suffix; .gif needs no further program.",
        )
    for name, value in (("fps", fps), ("speed", speed)):
        if not (np.isfinite(value) and value > 0):
            raise ConcurError(
                f"animate, argument `{name}`",
                expected="a positive number",
                came=repr(value),
                cure="Leave it out for the default.",
            )
    if suffix == ".mp4" and not FFMpegWriter.isAvailable():
        raise ConcurError(
            str(target),
            expected="the program ffmpeg on the search path, to write .mp4",
            came="no ffmpeg",
            cure="Install ffmpeg with the package manager of the system, or name a .gif.",
        )
    make_directory(target.parent)

    moments = np.arange(run.t[0], run.t[-1] + 1e-9, speed / fps)
    with styled(), writing(target):
        picture = _MovingPicture(run, step=speed / fps)
        if suffix == ".gif":
            _write_gif(picture, moments, target, fps, progress)
        else:
            _write_mp4(picture, moments, target, fps, progress)
    return target


class _MovingPicture:
    """A figure whose artists follow the run; nothing is cleared between frames."""

    def __init__(self, run: RunLike, step: float) -> None:
        self.run = run
        # Enough digits that no two frames carry the same time.
        self._digits = max(1, int(np.ceil(-np.log10(step))))
        self.figure: Figure = new_figure(_WIDTH, _HEIGHT)
        axes = add_axes3d(self.figure)
        outline = Outline(run.robot, run.q[0], run.servo.outputs)
        every = np.unique(
            np.linspace(0, len(run.t) - 1, min(_CURVE_POINTS, len(run.t))).astype(int)
        )
        self._curve_index = every
        self._hands = self._hand_curves(outline, every)
        self._traces = []
        floor = run.robot.ground_height
        wanted_points = []
        placed = positions(run)
        for number, output in enumerate(run.servo.outputs):
            color = PALETTE[(2 + number) % len(PALETTE)]
            if output.name in placed:
                # A planar reference lies on the ground; without one, in the plane z = 0.
                wanted = placed[output.name][1][every]
                if wanted.shape[1] == 2:
                    wanted = np.column_stack([wanted, np.full(len(wanted), floor or 0.0)])
                wanted_points.append(wanted)
                axes.plot(
                    *wanted.T,
                    color=REFERENCE,
                    linestyle="--",
                    linewidth=1.1,
                    label=None if len(wanted_points) > 1 else "reference",
                )
            (trace,) = axes.plot([], [], [], color=color, linestyle="-", label=output.name)
            self._traces.append(trace)
        some = np.unique(np.linspace(0, len(run.t) - 1, min(40, len(run.t))).astype(int))
        seen = [outline.at(run.q[index]).points() for index in some]
        in_view = np.concatenate([*seen, *wanted_points])
        frame_axes(axes, in_view, floor)
        part = outline.size / float(np.max(np.ptp(in_view, axis=0)))
        self._robot = RobotArtists(axes, outline, run.q[0], weight=min(1.0, 0.25 + 1.2 * part))
        handles, labels = axes.get_legend_handles_labels()
        handles = [
            handle
            for handle, label in zip(handles, labels, strict=True)
            if label not in ("joints", "output points")
        ]
        self.figure.legend(handles=handles, loc="lower center", ncols=min(4, len(handles)))
        self.figure.suptitle(run.robot.name, x=0.02, ha="left")
        self._stamp = self.figure.text(0.98, 0.985, "", ha="right", va="top", family="monospace")
        # One layout for all frames: solving it again would cost time and make the picture shake.
        fill_view(axes, bottom=0.1, top=0.93)

    def _hand_curves(self, outline: Outline, every: Any) -> Floats:
        return np.array([outline.at(self.run.q[index]).hands for index in every])

    def show(self, moment: float) -> None:
        index = int(nearest(self.run.t, np.array([moment]))[0])
        now = self._robot.update(self.run.q[index])
        past = self._curve_index < index
        for number, trace in enumerate(self._traces):
            curve = np.concatenate([self._hands[past, number], now.hands[number : number + 1]])
            trace.set_data_3d(*curve.T)
        self._stamp.set_text(f"t = {moment:.{self._digits}f} s")

    def image(self, moment: float) -> Image.Image:
        self.show(moment)
        canvas: Any = self.figure.canvas
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _write_gif(
    picture: _MovingPicture,
    moments: Floats,
    target: Path,
    fps: float,
    progress: Callable[[int, int], None] | None,
) -> None:
    picture.figure.set_dpi(_DPI)
    # One palette for the whole film, from its last frame, where every trace is drawn.
    # Swatches keep the colours of small marks, which a count of pixels would drop.
    sample = picture.image(moments[-1])
    for number, color in enumerate((*PALETTE, ARM, CHASSIS, *FRAME_COLORS, COM)):
        sample.paste(color, (30 * number, 0, 30 * number + 30, 30))
    palette = sample.quantize(192, dither=Image.Dither.NONE)

    def frames() -> Iterator[Image.Image]:
        for done, moment in enumerate(moments, start=1):
            yield picture.image(moment).quantize(palette=palette, dither=Image.Dither.NONE)
            if progress is not None:
                progress(done, len(moments))

    # GIF counts hundredths of a second; rounding the sum keeps the whole film at its speed.
    ends = np.round(np.arange(len(moments) + 1) * 100.0 / fps).astype(int)
    durations = [10 * max(2, int(step)) for step in np.diff(ends)]
    film = frames()
    first = next(film)
    first.save(target, format="GIF", save_all=True, append_images=film, duration=durations, loop=0)


def _write_mp4(
    picture: _MovingPicture,
    moments: Floats,
    target: Path,
    fps: float,
    progress: Callable[[int, int], None] | None,
) -> None:
    # Typed for whole numbers, but handed to ffmpeg as it is.
    writer = FFMpegWriter(fps=cast(int, fps))
    with writer.saving(picture.figure, str(target), dpi=_DPI):
        for done, moment in enumerate(moments, start=1):
            picture.show(moment)
            writer.grab_frame()
            if progress is not None:
                progress(done, len(moments))
