"""Animation of a run: GIF, or MP4 if ffmpeg is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib.animation import FFMpegWriter
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator
from PIL import Image

from concur.errors import ConcurError, UnknownNameError
from concur.show._outputs import nearest, on_bodies, positions
from concur.show._window import clipped, dashed, windows
from concur.show.files import make_directory, writing
from concur.show.notebook import Animation
from concur.show.robot import (
    TRIAD,
    RobotArtists,
    add_axes3d,
    fill_view,
    line_handles,
    set_window,
)
from concur.show.skeleton import Outline
from concur.show.style import (
    ARM,
    CHASSIS,
    COM,
    FRAME_COLORS,
    PALETTE,
    REFERENCE,
    new_figure,
    output_color,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.show.style import Floats
    from concur.simulation import Run

# Width and largest height of the animation, and heights of title, legend and each row of the
# legend, in inches.
_WIDTH, _HEIGHT, _HEAD, _FOOT, _ROW, _DPI = 6.4, 4.8, 0.32, 0.28, 0.2, 100
# Points of a trace in one window, and length of a dash of a reference in windows.
_CURVE_POINTS = 400
_DASH = 0.03


def animate(
    run: Run,
    path: str | os.PathLike[str],
    fps: float = 12.0,
    speed: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
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
        picture = _MovingPicture(run, moments, fps)
        if suffix == ".gif":
            _write_gif(picture, target, fps, progress)
        else:
            _write_mp4(picture, target, fps, progress)
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


class _MovingPicture:
    """A figure whose artists are updated from frame to frame and never cleared."""

    def __init__(self, run: Run, moments: Floats, fps: float) -> None:
        self.run = run
        self.moments = moments
        step = moments[1] - moments[0] if len(moments) > 1 else 1.0
        # Enough digits to distinguish the times of all frames.
        self._digits = max(1, int(np.ceil(-np.log10(step))))
        self.figure: Figure = new_figure(_WIDTH, _HEIGHT)
        self._axes = axes = add_axes3d(self.figure)
        outline = Outline(run.robot, run.q[0], run.servo.outputs)
        some = np.unique(np.linspace(0, len(run.t) - 1, min(40, len(run.t))).astype(int))
        seen = np.stack([outline.at(run.q[index]).points() for index in some])
        references = self._references()
        self._frames = nearest(run.t, moments)
        bases = [run.robot.pose(run.q[index], outline.root)[:3, 3] for index in self._frames]
        self._low, self._high = windows(
            seen,
            np.concatenate([np.empty((0, 3)), *references]),
            np.array(bases),
            run.robot.ground_height,
            smoothing=0.5 * fps,
        )
        size = self._high[0] - self._low[0]
        # The course may span many windows: sample its curves equally densely in each.
        courses = float(np.max(np.ptp(np.concatenate([seen.reshape(-1, 3), *references]), axis=0)))
        count = int(min(len(run.t), _CURVE_POINTS * max(1.0, courses / np.max(size))))
        self._curve_index = np.unique(np.linspace(0, len(run.t) - 1, count).astype(int))
        self._hands = np.array([self._hands_at(index) for index in self._curve_index])
        self._reference_curves = [
            dashed(curve, _DASH * float(np.max(size))) for curve in references
        ]
        self._reference_lines = [
            axes.plot([], [], [], color=REFERENCE, linestyle="-", linewidth=1.1, label="_")[0]
            for _ in references
        ]
        self._traces = [
            axes.plot([], [], [], color=output_color(number), linestyle="-", label=output.name)[0]
            for number, output in enumerate(outline.outputs)
        ]
        set_window(axes, self._low[0], self._high[0])
        axes.set_box_aspect(tuple(size))
        _space_ticks(axes, size)
        part = outline.size / float(np.max(size))
        self._robot = RobotArtists(axes, outline, run.q[0], weight=min(1.0, 0.25 + 1.2 * part))
        dashes = Line2D([], [], color=REFERENCE, linestyle="--", linewidth=1.1, label="reference")
        handles = [dashes] * bool(references) + self._traces
        # The traces already label the output points.
        handles += [line for line in axes.lines if line.get_label() == "centre of mass"]
        handles += line_handles(run.robot)
        columns = min(3, len(handles))
        legend = self.figure.legend(
            handles=handles, loc="lower center", ncols=columns, handler_map=TRIAD
        )
        foot = _FOOT + _ROW * (-(-len(handles) // columns))
        self.figure.suptitle(run.robot.name, x=0.02, ha="left")
        self._stamp = self.figure.text(0.98, 0.985, "", ha="right", va="top", family="monospace")
        # One layout for all frames: solving it again would take time and make the animation shake.
        # A flat box leaves space above and below, which the second pass removes.
        height = _HEIGHT
        for _ in range(2):
            self.figure.set_size_inches(_WIDTH, height)
            filled = fill_view(axes, bottom=foot / height, top=1.0 - _HEAD / height)
            # Video formats need even integer numbers of pixels.
            height = np.ceil((filled * height + _HEAD + foot) * _DPI / 2) * 2 / _DPI

        self._freeze(legend, foot)

    def _freeze(self, legend: Any, height: float) -> None:
        """Replace the legend by an image: drawing it takes a fifth of the time of a frame."""
        self.figure.set_dpi(_DPI)
        self._axes.set_visible(False)
        canvas: Any = self.figure.canvas
        canvas.draw()
        foot = np.array(canvas.buffer_rgba())[-round(height * _DPI) :]
        legend.remove()
        self.figure.figimage(foot, zorder=10, origin="upper")
        self._axes.set_visible(True)

    def _references(self) -> list[Floats]:
        start = {
            out.name: hand
            for out, hand in zip(on_bodies(self.run.servo.outputs), self._hands_at(0), strict=True)
        }
        found = []
        for name, (_, reference) in positions(self.run).items():
            if reference.shape[1] == 2:
                # A planar reference is drawn at the height of the point that follows it.
                reference = np.column_stack([reference, np.full(len(reference), start[name][2])])
            found.append(reference)
        return found

    def _hands_at(self, index: int) -> Floats:
        q, robot = self.run.q[index], self.run.robot
        outputs = on_bodies(self.run.servo.outputs)
        poses = [np.asarray(robot.pose(q, out.body), float) for out in outputs]
        points = [np.asarray(out.point, float) for out in outputs]
        return np.array([p[:3, :3] @ x + p[:3, 3] for p, x in zip(poses, points, strict=True)])

    def show(self, frame: int) -> None:
        index = self._frames[frame]
        low, high = self._low[frame], self._high[frame]
        set_window(self._axes, low, high)
        now = self._robot.update(self.run.q[index])
        for line, curve in zip(self._reference_lines, self._reference_curves, strict=True):
            line.set_data_3d(*clipped(curve, low, high).T)
        past = self._curve_index < index
        for number, trace in enumerate(self._traces):
            curve = np.concatenate([self._hands[past, number], now.hands[number : number + 1]])
            trace.set_data_3d(*clipped(curve, low, high).T)
        self._stamp.set_text(f"t = {self.moments[frame]:.{self._digits}f} s")

    def image(self, frame: int) -> Image.Image:
        self.show(frame)
        canvas: Any = self.figure.canvas
        canvas.draw()
        return Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _space_ticks(axes: Any, size: Floats) -> None:
    """Set ticks at round numbers, which do not change while the window moves."""
    step = _round_step(float(np.max(size)) / 8)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.yaxis.set_major_locator(MultipleLocator(step))
    # With the ground as floor the box is flat, so its height has space for few labels only.
    axes.zaxis.set_major_locator(MultipleLocator(min(step, _round_step(float(size[2]) / 3))))


def _round_step(length: float) -> float:
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * min(factor for factor in (1, 2, 5, 10) if factor * power >= length))


def _write_gif(
    picture: _MovingPicture,
    target: Path,
    fps: float,
    progress: Callable[[int, int], None] | None,
) -> None:
    count = len(picture.moments)
    # One palette for all frames, from the last one, which contains every trace. Swatches keep the
    # colours of small marks, which a count of pixels would drop.
    sample = picture.image(len(picture.moments) - 1)
    for number, color in enumerate((*PALETTE, ARM, CHASSIS, *FRAME_COLORS, COM)):
        sample.paste(color, (30 * number, 0, 30 * number + 30, 30))
    palette = sample.quantize(96, dither=Image.Dither.NONE)

    def frames() -> Iterator[Image.Image]:
        for frame in range(count):
            yield picture.image(frame).quantize(palette=palette, dither=Image.Dither.NONE)
            if progress is not None:
                progress(frame + 1, count)

    # GIF counts hundredths of a second; rounding the sum keeps the overall speed exact.
    ends = np.round(np.arange(count + 1) * 100.0 / fps).astype(int)
    durations = [10 * max(2, int(step)) for step in np.diff(ends)]
    film = frames()
    first = next(film)
    first.save(target, format="GIF", save_all=True, append_images=film, duration=durations, loop=0)


def _write_mp4(
    picture: _MovingPicture,
    target: Path,
    fps: float,
    progress: Callable[[int, int], None] | None,
) -> None:
    count = len(picture.moments)
    # Matplotlib's type is int, but the value is passed to ffmpeg unchanged.
    writer = FFMpegWriter(fps=cast(int, fps))
    with writer.saving(picture.figure, str(target), dpi=_DPI):
        for frame in range(count):
            picture.show(frame)
            writer.grab_frame()
            if progress is not None:
                progress(frame + 1, count)
