"""Motions from files: samples of a planner or a tracking system, smoothed to a tolerance.

Samples are rounded or noisy. A curve through all of them has accelerations that are nothing but
this noise: rounding to 1e-5 m at 100 Hz is 0.1 m/s^2, and a law feeds them forward as torque. A
smoothed motion is the quintic spline with the fewest knots, fitted by least squares, that stays
within the tolerance of all samples.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy
from annotated_types import Len

from concur.codegen import DRIFT
from concur.errors import ConcurError, DescriptionError, shown
from concur.files import read_bytes, read_text
from concur.outputs.groups import NAMES, named
from concur.outputs.references._arguments import SHORTEST, Group, check_group, numbers, refused
from concur.outputs.references._motions import logarithm
from concur.outputs.references._reference import Floats, Reference
from concur.outputs.references._tables import continuous, rates_of, samples_of, table
from concur.tables import Expected, FileName, Positive, Text

DEGREE = 5
"""Degree of the splines: accelerations have two continuous derivatives."""

FEWEST = 40
"""Number of samples below which their scatter is not distinguished from the motion."""

ABOVE = 5.0
"""Default tolerance, in standard deviations of the scatter of the samples."""

CONSISTENT = 1.05
"""Scatter of a smoothed motion, in that of a closer spline, up to which it is the samples'."""

MORE = 1.2
"""Factor of the pieces from one trial to the next."""

CLOSE = 0.02
"""Distance of a table from the spline that it stands for, in the tolerance."""

WINDOW = 40
"""Pieces of a spline on which the noise of its acceleration is computed."""

STEP = 1.0
"""Largest turn (rad) between two entries of a table: beyond half a turn its way is not clear."""

EXACT = 1e-12
"""Scatter, in the size of the coordinates, below which samples are exact but for arithmetic."""

GAP = 10.0
"""Time between two samples, in the usual one, above which the motion between them is a guess."""

AUDIBLE = 1e-3
"""Part of the accelerations of a motion below which the noise of samples does no harm."""

LARGEST_PATH = 64 * 2**20
"""Bytes of a file of samples at most."""

TIME = ("t", "time", "times", "stamp", "timestamp")
"""Names of the column of times."""

ALSO = {"theta": "heading", "yaw": "heading", "w": "qw"}
"""Other names of columns, which are those of the coordinates of the groups."""

UNITS = {
    **dict.fromkeys(("s", "sec"), ("s", 1.0)),
    **{"ms": ("s", 1e-3), "us": ("s", 1e-6), "ns": ("s", 1e-9)},
    **{"m": ("m", 1.0), "cm": ("m", 1e-2), "mm": ("m", 1e-3)},
    **{"rad": ("rad", 1.0), "deg": ("rad", np.pi / 180.0)},
    **dict.fromkeys(("1", "-"), ("1", 1.0)),
}
"""Units of columns: SI unit, and factor to it."""

LENGTHS = ("x", "y", "z")
"""Coordinates in m; the heading is in rad, others are those of quaternions."""

TURNED = "Write orientations as quaternions: scipy.spatial.transform.Rotation converts others."
"""Cure for columns of rotation vectors and Euler angles."""

UNIT = re.compile(
    r"(?P<name>.*?)\s*(?:[\[(](?!\d+\])(?P<unit>[^\])]*)[\])]|_(?P<suffix>s|ms|us|ns|m|mm|cm|rad|deg))$"
)
"""Name of a column with its unit."""

CLOCK = 1e8
"""Time of the first sample, s, from which on times are those of a clock, and count from it."""

Columns = Annotated[
    Sequence[Text], Len(2, 100), Expected("names of columns: of the times, then the coordinates")
]


@dataclass(frozen=True)
class Smoothing:
    """What became of the samples of a file, by unit: "m" and "rad".

    Parameters
    ----------
    samples, pieces : int
        Number of samples, and of pieces of the smoothed motion.
    scatter : dict of str to float
        Standard deviation of the samples from the motion, m and rad.
    deviation : dict of str to float
        Largest distance of the smoothed motion from a sample, m and rad.
    noise : dict of str to float
        Standard deviation of the acceleration of the smoothed motion, m/s^2 and rad/s^2: by this
        scatter, and by what a motion with twice the pieces shows beyond its own noise.
    noise_of_samples : dict of str to float
        The same of a cubic spline through all samples.

    Examples
    --------
    >>> kinds = [{"m": x} for x in (3e-6, 9e-6, 1e-5, 0.2)]
    >>> str(Smoothing(400, 7, *kinds)).split(";")[0]
    '400 samples that scatter by 3e-06 m, smoothed to 7 pieces within 9e-06 m of all of them'
    """

    samples: int
    pieces: int
    scatter: dict[str, float]
    deviation: dict[str, float]
    noise: dict[str, float]
    noise_of_samples: dict[str, float]

    def __str__(self) -> str:
        def each(numbers: dict[str, float], per: str = "") -> str:
            return " and ".join(f"{x:.2g} {unit}{per}" for unit, x in numbers.items())

        return (
            f"{self.samples} samples that scatter by {each(self.scatter)}, smoothed to "
            f"{self.pieces} pieces within {each(self.deviation)} of all of them; noise of the "
            f"acceleration {each(self.noise, '/s^2')}, through all samples "
            f"{each(self.noise_of_samples, '/s^2')}"
        )


def from_file(
    file: Annotated[str | PathLike[str], FileName],
    smooth: Positive | None = None,
    columns: Columns | None = None,
    group: Group = None,
) -> Reference:
    """Follow samples in a file, smoothed to a tolerance.

    The file is a table of text (CSV, with commas, semicolons, tabs or blanks, with or without a
    line of names), a NumPy array (.npy), or arrays by name (.npz): a time and the coordinates of
    the output in each row. The `smoothing` of the result has the scatter of the samples and the
    noise of the acceleration; its text is among the `notes` of a task.

    Parameters
    ----------
    file : path
        Name of the file.
    smooth : float, optional
        Largest distance of the motion from a sample, m and rad. Default: five standard deviations
        of the samples' scatter if it would be felt as noise of the acceleration; else the motion
        goes through all samples.
    columns : sequence of str, optional
        Names of the columns: that of the times, then those of the coordinates in their order.
        Default: `t` or `time`, and the names of the coordinates of the group (x, y, z, qx, qy, qz,
        qw; heading); without a line of names the columns in order.
    group : str, optional
        Group of the output, such as "R3xSO3". Default: R^n.

    Returns
    -------
    Reference
        Reference of one output, with a graph.

    Raises
    ------
    DescriptionError
        If the file cannot be read or has no such columns.
    ConcurError
        If the samples are no motion, or no spline stays within the tolerance.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> t = np.arange(0.0, 4.0, 0.01)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "wave.csv"
    >>> np.savetxt(path, np.column_stack([t, np.sin(t)]), fmt="%.5f", delimiter=",")
    >>> wave = from_file(path)
    >>> bool(abs(wave(1.0).acceleration[0] + np.sin(1.0)) < 1e-3)
    True
    """
    path = Path(file)
    if group is not None:
        check_group(group, "from_file", NAMES)
    if smooth is not None:
        smooth = float(numbers(smooth, "from_file, smooth", ndim=0))
        if not smooth > 0.0:
            raise refused("from_file, smooth", "a distance above zero, m", smooth, "Omit it.")
    samples = _read(path, columns, group)
    samples.check(group)
    knots, poses = samples_of("from_file", samples.times, samples.rows, "poses", group)
    reference = _smoothed(samples, knots, poses, smooth, group)
    reference.span = float(knots[0]), float(knots[-1])
    steps = np.diff(knots)
    longest, usual = int(np.argmax(steps)), float(np.median(steps))
    if steps[longest] > GAP * usual:
        reference.warnings = (
            f"no samples for {steps[longest]:.3g} s after t = {knots[longest]:.6g} s "
            f"({samples.place(longest)}), {steps[longest] / usual:.0f} times the usual step: the "
            "motion in between is a guess",
        )
    return reference


def _smoothed(
    samples: _Samples, times: Floats, poses: Floats, smooth: float | None, group: str | None
) -> Reference:
    known = f"R{poses.shape[1]}" if group is None else group
    fit = _Fit(times, poses, known)
    count = len(times)
    scatter = fit.scatter(count // 8) if count >= FEWEST else {}
    if smooth is None:
        least = EXACT * max(1.0, float(np.abs(poses).max()))
        felt = {
            unit: x > least and _gain(times) * x > AUDIBLE * fit.strength(unit, count // 8)
            for unit, x in scatter.items()
        }
        if not any(felt.values()):
            return table(times, poses, group=group)
        # A coordinate that rests scatters by nothing: rounding is no deviation.
        scatter = {unit: max(least, x) for unit, x in scatter.items()}
        within = {unit: ABOVE * x for unit, x in scatter.items()}
    else:
        within = dict.fromkeys(fit.units, smooth)
    pieces = fit.fewest(within, scatter if smooth is None else {}, count // 2)
    if pieces is None:
        left = fit.left(max(1, count // 2))
        unit = max(left, key=lambda unit: left[unit].max() / within[unit])
        worst, closest = int(np.argmax(left[unit])), left[unit].max()
        raise _wrong(
            samples.path,
            f"samples within `smooth` = {within[unit]:.2g} {unit} of a smooth motion",
            f"one {closest:.2g} {unit} off at t = {times[worst]:.6g} s ({samples.place(worst)})",
            "Remove samples that lie apart, or give a larger `smooth`.",
        )
    if smooth is None:
        pieces = fit.balanced(pieces, scatter, count // 4)
    reference = fit.reference(pieces, within, group)
    while reference is None:  # so loose a spline of quaternions turns at any speed
        if pieces >= count // 2:
            expected, cure = "samples that a spline follows", "Give samples closer in time."
            raise refused("from_file", expected, "faster turns", cure, ConcurError)
        pieces = min(2 * pieces, count // 2)
        reference = fit.reference(pieces, within, group)
    scatter = scatter or fit.scatter(pieces)
    noise, raw = fit.noise(pieces), _gain(times)
    bent = fit.bent(pieces, scatter) if pieces <= count // 4 else dict.fromkeys(scatter, 0.0)
    reference.smoothing = Smoothing(
        count,
        pieces,
        scatter,
        fit.deviation(pieces),
        {unit: math.hypot(noise * x, bent[unit]) for unit, x in scatter.items()},
        {unit: raw * x for unit, x in scatter.items()},
    )
    reference.notes = (str(reference.smoothing),)
    return reference


class _Fit:
    """Splines of least squares through samples, by their number of pieces."""

    def __init__(self, times: Floats, poses: Floats, group: str) -> None:
        lie = named(group).paths
        self.times, self.poses, self.group = times, poses, group
        self.unit = slice(lie.pose_size - lie.unit_size, None)
        self.smooth = continuous(poses, group)
        self._of_unit = {
            unit: np.array(lie.error_units) == unit for unit in dict.fromkeys(lie.error_units)
        }
        self.units = tuple(self._of_unit)
        self._found: dict[int, Any] = {}

    def spline(self, pieces: int) -> Any:
        """Spline with about as many samples in each piece, by SciPy."""
        if pieces not in self._found:
            at = np.linspace(0, len(self.times) - 1, pieces + 1)[1:-1]
            inner = np.interp(at, np.arange(len(self.times)), self.times)
            ends = np.repeat(self.times[[0, -1]], DEGREE + 1)
            knots = np.concatenate([ends[: DEGREE + 1], inner, ends[DEGREE + 1 :]])
            self._found[pieces] = scipy.interpolate.make_lsq_spline(
                self.times, self.smooth, knots, k=DEGREE
            )
        return self._found[pieces]

    def reference(
        self, pieces: int, within: dict[str, float], group: str | None
    ) -> Reference | None:
        """Table of the spline, at times so close that it is the spline at all samples; or none."""
        spline = self.spline(pieces)
        knots = np.unique(spline.t)
        places = self._points(spline, self.times)
        for parts in (1, 2, 4, 8, 16, 32):
            starts = knots[:-1, None] + np.diff(knots)[:, None] * np.arange(parts) / parts
            grid = np.append(starts.ravel(), knots[-1])
            points = self._points(spline, grid)
            if self._ways(points[:-1], points[1:]).get("rad", np.zeros(1)).max() > STEP:
                continue
            found = table(grid, points, *rates_of(spline, grid, self.group), group)
            ways = self._ways(found.sample(self.times)[0], places)
            if all(ways[unit].max() <= CLOSE * x for unit, x in within.items()):
                return found
        return None

    def _points(self, spline: Any, times: Floats) -> Floats:
        """Coordinates of the spline, quaternions and directions of unit norm."""
        points: Floats = spline(times)
        points[:, self.unit] /= np.linalg.norm(points[:, self.unit], axis=1)[:, None]
        return points

    def _ways(self, poses: Floats, points: Floats) -> dict[str, Floats]:
        """Distances of poses, m and rad."""
        ways = logarithm(poses, points, self.group)
        return {unit: np.linalg.norm(ways[:, of], axis=1) for unit, of in self._of_unit.items()}

    def left(self, pieces: int) -> dict[str, Floats]:
        """Distance of each sample from the spline, m and rad."""
        return self._ways(self.poses, self._points(self.spline(pieces), self.times))

    def deviation(self, pieces: int) -> dict[str, float]:
        """Largest distance of a sample from the spline, m and rad."""
        return {unit: float(way.max()) for unit, way in self.left(pieces).items()}

    def scatter(self, pieces: int) -> dict[str, float]:
        """Standard deviation of the samples, m and rad, over all directions together."""
        left = max(1, len(self.times) - pieces - DEGREE)
        return {
            unit: float(np.sqrt(np.sum(way**2) / left)) for unit, way in self.left(pieces).items()
        }

    def strength(self, unit: str, pieces: int) -> float:
        """Root of the mean square of the acceleration of a spline."""
        changes = rates_of(self.spline(pieces), self.times, self.group)[1]
        return float(np.sqrt(np.mean(np.sum(changes[:, self._of_unit[unit]] ** 2, axis=1))))

    def fewest(self, within: dict[str, float], scatter: dict[str, float], most: int) -> int | None:
        """Smallest number of pieces whose spline is as close as this; None: no spline is.

        Tolerances hold for all samples, and the samples scatter no more than stated.
        """

        def close(pieces: int) -> bool:
            far = self.deviation(pieces)
            if any(far[unit] > x for unit, x in within.items()):
                return False
            own = self.scatter(pieces) if scatter else {}
            return all(own[unit] <= CONSISTENT * x for unit, x in scatter.items())

        low, high = 0, 1
        while not close(high):
            if high >= most:
                return None
            low, high = high, min(2 * high, most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if close(middle) else (middle, high)
        return high

    def bent(self, pieces: int, scatter: dict[str, float]) -> dict[str, float]:
        """Acceleration that a spline leaves out, by unit: what one of twice the pieces finds.

        Without the noise that the closer one adds to that of samples with this scatter.
        """
        coarse, fine = (
            rates_of(self.spline(n), self.times, self.group)[1] for n in (pieces, 2 * pieces)
        )
        added = self.noise(2 * pieces) ** 2 - self.noise(pieces) ** 2
        squares = {
            u: np.mean(np.sum((fine - coarse)[:, of] ** 2, axis=1))
            for u, of in self._of_unit.items()
        }
        return {u: math.sqrt(max(0.0, x - added * scatter[u] ** 2)) for u, x in squares.items()}

    def balanced(self, pieces: int, scatter: dict[str, float], most: int) -> int:
        """Pieces, as many or more, of which the acceleration lacks no more than its noise."""
        while pieces < most:
            noise, bent = self.noise(pieces), self.bent(pieces, scatter)
            if all(bent[unit] <= noise * x for unit, x in scatter.items()):
                break
            pieces = min(math.ceil(MORE * pieces), most)
        return pieces

    def noise(self, pieces: int) -> float:
        """Standard deviation of the spline's acceleration by samples that scatter by one.

        Of a long spline the pieces in the middle are as a few of them: only ends differ.
        """
        few = min(pieces, WINDOW)
        cut = len(self.times) if few == pieces else len(self.times) * few // pieces
        spline = _Fit(self.times[:cut], self.poses[:cut], self.group).spline(few)
        design = spline.design_matrix(self.times[:cut], spline.t, DEGREE).toarray()
        second = type(spline)(spline.t, np.eye(design.shape[1]), DEGREE)(self.times[:cut], 2)
        gain = np.sum((second @ np.linalg.pinv(np.linalg.qr(design, mode="r"))) ** 2, axis=1)
        middle = gain[cut // 4 : -(cut // 4)].mean()
        more = len(self.times) - cut
        return float(np.sqrt((gain.sum() + more * middle) / len(self.times)))


def _gain(times: Floats) -> float:
    """Standard deviation of the acceleration of a cubic spline through samples of scatter one."""
    short = times[: min(len(times), 65)]
    count = len(short)
    middle = np.interp(np.linspace(count // 4, 3 * count // 4, 2 * count), np.arange(count), short)
    second = scipy.interpolate.CubicSpline(short, np.eye(count))(middle, 2)
    return float(np.sqrt(np.mean(np.sum(second**2, axis=1))))


# --- files ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Samples:
    """Times and rows of coordinates, with the lines of the file in which they stand, if any."""

    path: Path
    times: Floats
    rows: Floats
    lines: Sequence[int] = ()

    def place(self, sample: int) -> str:
        """Where a sample stands in the file."""
        return f"line {self.lines[sample]}" if self.lines else f"row {sample + 1}"

    def check(self, group: str | None) -> None:
        """Refuse what no motion has, with its place in the file."""
        numbers = np.column_stack([self.times, self.rows])
        later = np.append(np.inf, np.diff(self.times)) >= SHORTEST
        norms = np.ones(len(numbers))
        if group is not None and named(group).coordinate_names[-1] == "qw":
            norms = np.linalg.norm(self.rows[:, -4:], axis=1)
        checks: list[tuple[Any, str, Callable[[int], str], str]] = [
            (
                np.isfinite(numbers).all(axis=1),
                "finite numbers",
                lambda k: ", ".join(f"{x:g}" for x in numbers[k]),
                "Remove the row, or check for a lost measurement.",
            ),
            (
                later,
                f"times that increase, by at least {SHORTEST:g} s",
                lambda k: f"{self.times[k]:.9g} s after {self.times[k - 1]:.9g} s",
                "Sort the rows by time, and remove doubles.",
            ),
            (
                np.abs(norms - 1.0) <= DRIFT,
                "a unit quaternion x, y, z, w",
                lambda k: f"the norm {norms[k]:.6g}",
                "Divide it by its norm, and check that the scalar part comes last.",
            ),
        ]
        for holds, expected, came, cure in checks:
            if not holds.all():
                k = int(np.argmin(holds))
                raise _wrong(self.path, f"{expected} in {self.place(k)}", came(k), cure)


def _read(path: Path, columns: Sequence[str] | None, group: str | None) -> _Samples:
    kind = path.suffix.lower()
    cure, lines = "Check the path.", list[int]()
    if kind in (".npy", ".npz"):
        data = read_bytes(path, "a file of samples", cure, DescriptionError, LARGEST_PATH)
        names, rows = _arrays(path, data)
    else:
        text = read_text(path, "a file of samples", cure, largest=LARGEST_PATH)
        names, rows, lines = _text(path, text)
    width = len(columns or rows[0])
    lie = None if group is None else named(group)
    size = width - 1 if lie is None else lie.pose_size
    coordinates = () if lie is None else lie.coordinate_names
    wanted, factors = _wanted(path, names, columns, rows.shape[1], coordinates)
    if len(wanted) != size + 1:
        own = f", of an output in {group}: t, {', '.join(coordinates)}" if group else ""
        came = ", ".join(names) or f"{rows.shape[1]} columns without names"
        cure = "Name the columns that are meant by `columns`."
        if "qw" in coordinates and len(wanted) < size + 1:
            cure = TURNED
        raise _wrong(path, f"{size + 1} columns{own}", came, cure)
    times, second = rows[:, wanted[0]], factors[0]
    if len(times) and times[0] * second > CLOCK:
        times = times - times[0]
    return _Samples(path, times * second, rows[:, wanted[1:]] * factors[1:], lines)


def _wrong(path: Path, expected: str, came: str, cure: str) -> ConcurError:
    return DescriptionError(str(path), expected=expected, came=came, cure=cure, file=str(path))


def _arrays(path: Path, data: bytes) -> tuple[list[str], Floats]:
    """Columns of NumPy's files: without objects, which could be programs."""
    expected = "numbers of NumPy: an array with a time and coordinates in each row"
    try:
        with np.errstate(all="ignore"):
            found = np.load(io.BytesIO(data), allow_pickle=False)
            arrays = dict(found.items()) if hasattr(found, "items") else {"": found}
        parts = [np.asarray(array, dtype=float) for array in arrays.values()]
    except Exception as problem:  # of any kind: the file is a stranger's
        raise _wrong(path, expected, shown(str(problem)), "Save it by numpy.save.") from None
    parts = [part[:, None] if part.ndim == 1 and len(parts) > 1 else part for part in parts]
    shapes = {part.shape[:1] for part in parts}
    whose = list(zip(arrays, parts, strict=True))
    if len(shapes) != 1 or any(part.ndim != 2 for part in parts):
        came = ", ".join(f"{name or 'an array'} {part.shape}" for name, part in whose)
        raise _wrong(path, expected, came, "Give arrays of as many rows.")
    names = [
        name if part.shape[1] == 1 else f"{name}[{k}]"
        for name, part in whose
        for k in range(part.shape[1])
    ]
    order = sorted(range(len(names)), key=lambda k: names[k].lower() not in TIME)
    rows = np.concatenate(parts, axis=1)[:, order]
    return ([names[k] for k in order] if arrays.keys() != {""} else []), rows


def _text(path: Path, text: str) -> tuple[list[str], Floats, list[int]]:
    """Columns of a table of text, and the number of the line of each row."""
    written = [
        (k + 1, line)
        for k, line in enumerate(text.splitlines())
        if line.strip() and line.strip()[0] not in "#%"
    ]
    places, lines = [k for k, _ in written], [line for _, line in written]
    first = lines[0] if lines else ""
    sign = next((sign for sign in ";,\t" if sign in first), None)
    cells = list(csv.reader(lines, delimiter=sign)) if sign else [line.split() for line in lines]
    while cells and len(cells[0]) > 1 and not any(row and row[-1].strip() for row in cells):
        cells = [row[:-1] for row in cells]  # a separator at the end of each line
    names: list[str] = []
    if cells and not all(map(_is_number, cells[0])):
        names, cells, places = [name.strip() for name in cells[0]], cells[1:], places[1:]
    width = len(names) or (len(cells[0]) if cells else 0)
    for k, row in enumerate(cells):
        if len(row) != width or not all(map(_is_number, row)):
            came = f"{len(row)} columns"
            if len(row) == width:
                came = shown(_first_wrong(row)).strip() or "an empty cell"
            raise _wrong(
                path,
                f"{width} numbers in line {places[k]}",
                came,
                "Write a time and the coordinates in each row, with a point as decimal sign.",
            )
    if width < 2 or not cells:
        raise _wrong(
            path,
            "rows of a time and coordinates",
            f"{len(cells)} rows of {width} columns",
            "Write t,x,y,z in the first line, then a row for each time.",
        )
    return names, np.array(cells, dtype=float), places


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _first_wrong(row: Sequence[str]) -> str:
    return next(cell for cell in row if not _is_number(cell))


def _wanted(
    path: Path,
    names: list[str],
    columns: Sequence[str] | None,
    width: int,
    coordinates: Sequence[str],
) -> tuple[list[int], list[float]]:
    """Indices of the columns, of the times and then of the coordinates, and factors to SI units."""
    plain, units = zip(*map(_parts, names), strict=True) if names else ((), ())
    own = [ALSO.get(name, name) for name in plain]
    if columns is not None:
        known = {name: k for k, name in enumerate(own)}
        known |= {name: k for k, name in enumerate(names)}
        for name in columns:
            if name not in known:
                raise _wrong(
                    path,
                    f"a column `{shown(name)}`",
                    f"the columns {', '.join(names)}" if names else "columns without names",
                    "Write the names of the columns in the first line.",
                )
        found = [known[name] for name in columns]
    else:
        time = next((name for name in own if name in TIME), None)
        if time is not None and coordinates and set(coordinates) <= set(own):
            found = [own.index(time), *map(own.index, coordinates)]
        else:
            at = own.index(time) if time is not None else 0
            found = [at, *(k for k in range(width) if k != at)]
            for place, k in zip(coordinates, found[1:], strict=False):
                if names and own[k] in coordinates and own[k] != place:
                    raise _wrong(
                        path,
                        f"the columns {', '.join(coordinates)}, by these names or in this order",
                        f"`{shown(names[k])}` in the place of `{place}`",
                        "Rename the columns, or name those that are meant by `columns`.",
                    )
    factors = [1.0] * len(found)
    places = ["times", *coordinates]
    for at, k in enumerate(found if names else ()):
        if units[k]:
            place = places[at] if at < len(places) else "numbers"
            factors[at] = _factor(path, names[k], units[k], place)
    return found, factors


def _factor(path: Path, name: str, unit: str, place: str) -> float:
    """Factor of a column to SI units; they are those of times, or of a coordinate."""
    of = {"times": "s", "numbers": "", **dict.fromkeys(LENGTHS, "m"), "heading": "rad"}
    taken = [one for one, (si, _) in UNITS.items() if of.get(place, "1") in (si, "")]
    if unit not in taken:
        raise _wrong(
            path,
            f"{place} in {', '.join(taken)}",
            f"the column `{shown(name)}`",
            "Convert the column, or remove the unit from its name if it is not one.",
        )
    return UNITS[unit][1]


def _parts(name: str) -> tuple[str, str]:
    """Name of a column in small letters, and the unit behind it."""
    found = UNIT.match(name.lower())
    return (found["name"], found["unit"] or found["suffix"]) if found else (name.lower(), "")
