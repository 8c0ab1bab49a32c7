"""Animation of a run: GIF, or MP4 if ffmpeg is installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
from matplotlib.animation import FFMpegWriter
from PIL import Image

from concur.errors import ConcurError, UnknownNameError
from concur.files import make_directory, writing
from concur.show._course import Course
from concur.show._outputs import nearest
from concur.show._space import TRIAD, fit_view
from concur.show.notebook import Animation
from concur.show.style import (
    ARM,
    CHASSIS,
    COM,
    FRAME_COLORS,
    PALETTE,
    Floats,
    new_figure,
    styled,
)
from concur.simulation import Run

# Width and largest height of the animation, and heights of title, legend and each row of the
# legend, in inches.
_WIDTH, _HEIGHT, _HEAD, _FOOT, _ROW, _DPI = 6.4, 4.8, 0.32, 0.28, 0.2, 100


def animate(
    run: Run,
    path: str | os.PathLike[str],
    fps: float = 12.0,
    speed: float = 1.0,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> Path:
    """Write an animation of a run: the robot, its references, and the traces of its hands.

    The view follows the robot if its course is long compared with its size.

    Parameters
    ----------
    run : Run
        A finished run with `t`, `q`, `pose`, `reference`, `robot` and `servo.outputs`.
    path : path
        File to write; its suffix, .gif or .mp4, determines the format. MP4 needs ffmpeg.
    fps : float
        Frames per second of the animation.
    speed : float
        Seconds of the run per second of the animation.
    progress : callable, optional
        Called with (frames drawn, total frames) after each frame.

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
            cure="Change the suffix; .gif needs no other software.",
        )
    for name, value in (("fps", fps), ("speed", speed)):
        if not (np.isfinite(value) and value > 0):
            raise ConcurError(
                f"animate, argument `{name}`",
                expected="a positive number",
                came=repr(value),
                cure="Omit it to use the default.",
            )
    if suffix == ".mp4":
        require_ffmpeg(str(target))
    make_directory(target.parent)

    moments = np.arange(run.t[0], run.t[-1] + 1e-9, speed / fps)
    with styled(), writing(target):
        picture = _MovingPicture(run, moments, fps)
        if suffix == ".gif":
            _write_gif(picture, target, fps, progress)
        else:
            # Matplotlib's type is int, but the value is passed to ffmpeg unchanged.
            writer = FFMpegWriter(fps=cast(int, fps))
            with writer.saving(picture.figure, str(target), dpi=_DPI):
                for frame in range(len(moments)):
                    picture.show(frame)
                    writer.grab_frame()
                    progress(frame + 1, len(moments))
    return target


def animation(run: Run, fps: float = 12.0, speed: float = 1.0) -> Animation:
    """Draw an animation of a run, which a notebook shows.

    Parameters
    ----------
    run : Run
        A finished run.
    fps : float
        Frames per second of the animation.
    speed : float
        Seconds of the run per second of the animation.

    Returns
    -------
    concur.show.notebook.Animation
        GIF; its `save` writes a file.

    Examples
    --------
    >>> animation(run, fps=20, speed=2).save("run.gif")    # doctest: +SKIP
    PosixPath('run.gif')
    """
    with TemporaryDirectory() as folder:
        data = animate(run, Path(folder) / "run.gif", fps, speed).read_bytes()
    return Animation(data, f"animation of {run.robot.name}, {run.t[-1]:.4g} s")


def require_ffmpeg(where: str) -> None:
    """Demand the program that writes .mp4.

    Parameters
    ----------
    where : str
        Place of the error.

    Raises
    ------
    ConcurError
        If it is not installed.
    """
    if not FFMpegWriter.isAvailable():
        raise ConcurError(
            where,
            expected="the program ffmpeg on the search path, to write .mp4",
            came="no ffmpeg",
            cure="Install ffmpeg with the package manager of the system, or write a .gif.",
        )


class _MovingPicture:
    """A figure whose artists are updated from frame to frame and never cleared."""

    def __init__(self, run: Run, moments: Floats, fps: float) -> None:
        self.moments = moments
        step = moments[1] - moments[0] if len(moments) > 1 else 1.0
        # Enough digits to distinguish the times of all frames.
        self._digits = max(1, int(np.ceil(-np.log10(step))))
        self.figure = new_figure(_WIDTH, _HEIGHT)
        self._course = Course(self.figure, run, nearest(run.t, moments), smoothing=0.5 * fps)
        handles = self._course.handles
        columns = min(3, len(handles))
        legend = self.figure.legend(
            handles=handles, loc="lower center", ncols=columns, handler_map=TRIAD
        )
        foot = _FOOT + _ROW * -(-len(handles) // columns)
        self.figure.suptitle(run.robot.name, x=0.02, ha="left", parse_math=False)
        self._stamp = self.figure.text(0.98, 0.985, "", ha="right", va="top", family="monospace")
        # One layout for all frames: solving it again would take time and make the animation shake.
        # A flat box leaves space above and below, which the second pass removes.
        height = _HEIGHT
        for _ in range(2):
            self.figure.set_size_inches(_WIDTH, height)
            cell = (0.0, foot / height, 1.0, 1.0 - (_HEAD + foot) / height)
            filled = fit_view(self._course.axes, cell)
            # Video formats need even integer numbers of pixels.
            height = np.ceil((filled * height + _HEAD + foot) * _DPI / 2) * 2 / _DPI
        # An image of the legend: drawing it takes a fifth of the time of a frame.
        self.figure.set_dpi(_DPI)
        self._course.axes.set_visible(False)
        picture = np.array(self.image()[-round(foot * _DPI) :])
        legend.remove()
        self.figure.figimage(picture, zorder=10, origin="upper")
        self._course.axes.set_visible(True)

    def show(self, frame: int) -> None:
        self._course.show(frame)
        self._stamp.set_text(f"t = {self.moments[frame]:.{self._digits}f} s")

    def image(self) -> Floats:
        """Pixels (rows, columns, 4) of the frame that is shown."""
        canvas: Any = self.figure.canvas
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())


def _write_gif(
    picture: _MovingPicture, target: Path, fps: float, progress: Callable[[int, int], None]
) -> None:
    """Write frames with one palette, and durations whose sum is exact: GIF counts 10 ms."""
    count = len(picture.moments)

    def frame(number: int) -> Image.Image:
        picture.show(number)
        return Image.fromarray(picture.image()).convert("RGB")

    # The last frame contains every path. Swatches keep the colours of small marks, which a count of
    # pixels would drop.
    sample = frame(count - 1)
    for number, color in enumerate((*PALETTE, ARM, CHASSIS, *FRAME_COLORS, COM)):
        sample.paste(color, (30 * number, 0, 30 * number + 30, 30))
    palette = sample.quantize(96, dither=Image.Dither.NONE)

    def film() -> Any:
        for number in range(count):
            yield frame(number).quantize(palette=palette, dither=Image.Dither.NONE)
            progress(number + 1, count)

    ends = np.round(np.arange(count + 1) * 100.0 / fps).astype(int)
    durations = [10 * max(2, int(step)) for step in np.diff(ends)]
    frames = film()
    next(frames).save(
        target, format="GIF", save_all=True, append_images=frames, duration=durations, loop=0
    )
