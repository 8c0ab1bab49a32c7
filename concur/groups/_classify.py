"""Which displacement subgroup a set of twists spans (Table 2.1, Prop. 2.1.3 of the thesis).

The rotations of a subalgebra span 0, 1 or 3 directions, and its translations are a subspace
that those rotations keep. This leaves few cases, so the smallest subalgebra that contains
the twists is read off without forming brackets; the span is closed if it has that dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from concur.codegen import Array, Matrix, as_floats, nonfinite_error, shape_error
from concur.errors import DescriptionError, ShapeError
from concur.groups import se3, so3

ROUNDING = 16 * np.finfo(float).eps
"""Relative error that twists of size one carry after a few operations."""

NOT_CLOSED = "not a subgroup"

# Columns of the identity that span the algebra in the canonical frame, and the joint.
_TABLE: dict[str, tuple[tuple[int, ...], str | None]] = {
    "identity": ((), "Fixed"),
    "R": ((2,), "Prismatic"),
    "SO(2)": ((5,), "Revolute"),
    "H_p": ((5,), "Helical"),
    "R^2": ((0, 1), "Sliding"),
    "SO(2)xR": ((2, 5), "Cylindrical"),
    "R^3": ((0, 1, 2), "Cartesian"),
    "SO(3)": ((3, 4, 5), "Spherical"),
    "SE(2)": ((0, 1, 5), "Planar"),
    "H_p x| R^2": ((0, 1, 5), "Sliding then Helical"),
    "SE(2)xR": ((0, 1, 2, 5), "PlanarPrismatic"),
    "SE(3)": ((0, 1, 2, 3, 4, 5), "Free"),
}


@dataclass(frozen=True, eq=False)
class Subgroup:
    """A displacement subgroup of SE(3) and where it sits, or a span that is not a subgroup.

    Parameters
    ----------
    name : str
        "identity", "R", "SO(2)", "H_p", "R^2", "SO(2)xR", "R^3", "SO(3)", "SE(2)",
        "H_p x| R^2", "SE(2)xR" or "SE(3)"; "not a subgroup" for a span that is not closed
        under the bracket.
    basis : numpy.ndarray
        Twists that span the algebra, shape (6, dim), ``[linear; angular]``: those of Table 2.1
        carried from the canonical frame by Ad. Of a span that is not closed, some basis.
    frame : numpy.ndarray
        Pose of the canonical frame in the frame of the twists, shape (4, 4), m: z along the axis
        or normal, origin at the centre, on the axis next to the origin, or at the origin where
        the subgroup has no place. The identity for a span that is not closed.
    pitch : float, optional
        Travel per angle of "H_p" and "H_p x| R^2", m/rad, with its sign; None for the others.
    closure : Subgroup, optional
        Smallest subgroup with all motions of a span that is not closed; None for a subgroup.
    reason : str
        Which bracket leaves the span; empty for a subgroup.
    """

    name: str
    basis: np.ndarray
    frame: np.ndarray
    pitch: float | None = None
    closure: Subgroup | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        self.basis.setflags(write=False)
        self.frame.setflags(write=False)

    @property
    def dim(self) -> int:
        """Number of independent twists."""
        return int(self.basis.shape[1])

    @property
    def closed(self) -> bool:
        """Whether the twists span a subalgebra, so that their motions are a subgroup."""
        return self.closure is None

    @property
    def exponential(self) -> bool:
        """Whether every motion of the subgroup is the exponential of one twist of its algebra.

        Of all subgroups only "H_p x| R^2" lacks this: a full turn that ends beside its start
        has no logarithm in it.
        """
        return self.closed and self.name != "H_p x| R^2"

    @property
    def joint(self) -> str | None:
        """Class in `concur.joints` that makes these motions, None for a span that is not closed."""
        return _TABLE[self.name][1] if self.closed else None


def classify(twists: Matrix, tolerance: float = 1e-9, length: float = 1.0) -> Subgroup:
    """Find the displacement subgroup whose algebra a set of twists spans.

    The answer depends on the span alone: not on the choice, scale or number of twists. A rigid
    motion of the twists moves the frame and leaves name and pitch; a mirror image turns the
    sign of the pitch.

    Parameters
    ----------
    twists : array_like, shape (6, k) or (6,)
        Twists ``[linear; angular]`` as columns, m and rad. They may depend on each other. A
        column shorter than 4e-15 times the longest is taken for rounding.
    tolerance : float
        Directions closer than this angle (rad) are one direction; axes closer, or pitches
        smaller, than `tolerance` times `length` are one axis, or none. An axis farther away
        than `length` over `tolerance`, from the origin or from the other axes, is at infinity:
        its rotation is a translation. Between 0 and 0.1; less than 1.4e-14 counts as that,
        because smaller angles are rounding.
    length : float
        Size of the mechanism, m.

    Returns
    -------
    Subgroup
        The subgroup with its frame and pitch. If the span is not closed under the bracket,
        the span with the bracket that leaves it and the subgroup it generates.

    Raises
    ------
    ShapeError
        If the twists are not columns of six numbers.
    NonFiniteError
        If a number is NaN or infinite.
    DescriptionError
        If `tolerance` or `length` is out of range.

    Notes
    -----
    Names and canonical bases are those of Table 2.1 of the thesis, conjugate subgroups being one
    class (Prop. 2.1.3).

    References
    ----------
    Thesis, Table 2.1, Proposition 2.1.1, Proposition 2.1.3.

    Examples
    --------
    Two parallel revolute axes generate the motions of the plane across them:

    >>> from concur.groups import classify
    >>> hinges = classify([[0, 0], [0, -1], [0, 0], [0, 0], [0, 0], [1, 1]])
    >>> hinges.closed, hinges.closure.name
    (False, 'SE(2)')
    >>> classify([0, 0, 0.02, 0, 0, 1]).pitch
    0.02
    """
    given = read_twists(twists, "classify, `twists`")
    tolerance = max(_positive(tolerance, "classify, `tolerance`", below=0.1), 4 * ROUNDING)
    length = _positive(length, "classify, `length`")

    columns = given / np.repeat([length, 1.0], 3)[:, None]
    size = np.abs(columns).max(axis=0, initial=0.0)
    kept = np.flatnonzero(size > ROUNDING * size.max(initial=0.0))
    if not kept.size:
        return _subgroup("identity")
    columns = columns[:, kept] / size[kept]

    # Far from the origin all axes look alike, so moments are taken about a point among them: on
    # one axis, then where the linear parts, each twist at its size, are smallest.
    point = _point_on_axis(columns, tolerance)
    columns = _normalised(_about(columns, point))
    step = _step_among_axes(columns, tolerance)
    if tolerance * np.linalg.norm(point + step) < 1.0:
        point = point + step
        columns = _normalised(_about(columns, step))
    directions, values, _ = np.linalg.svd(columns, full_matrices=False)
    error = ROUNDING * (1.0 + np.linalg.norm(point))
    rank = int(np.sum(values > max(tolerance, error) * values[0]))
    span = directions[:, :rank]
    # Nearly dependent twists fix the rest of their span only to the rounding they magnify.
    error *= values[0] / values[rank - 1]

    closure = _smallest(span, point, tolerance, error, length)
    if rank == closure.dim:
        return closure
    basis = _about(span, -point) * np.repeat([length, 1.0], 3)[:, None]
    return Subgroup(
        NOT_CLOSED,
        basis,
        np.eye(4),
        closure=closure,
        reason=_reason(given, kept, columns, span, closure),
    )


def _smallest(
    span: np.ndarray, point: np.ndarray, tolerance: float, error: float, length: float
) -> Subgroup:
    """Smallest subgroup whose algebra contains a span, given about a point in units of length."""
    _, shares, mix = np.linalg.svd(span[3:])
    turns = int(np.sum(shares > max(tolerance, error)))
    adapted = span @ mix.T  # the twists that turn, then pure translations
    shifts = adapted[:3, turns:]
    if turns == 0:
        return _translations(shifts)

    slack = max(tolerance, error / shares[turns - 1])
    if turns > 1:
        # Two axes of rotation generate all rotations, about one centre if there is one.
        moments, spins = adapted[:3, :turns], adapted[3:, :turns]
        centre, *_ = np.linalg.lstsq(_arms(spins), moments.T.ravel(), rcond=None)
        missed = np.linalg.norm(np.cross(centre, spins.T) - moments.T, axis=1)
        if shifts.size or missed.max() > slack:
            return _subgroup("SE(3)")
        return _subgroup("SO(3)", origin=(point + centre) * length)

    # The spaces of translations that a rotation keeps: none, its axis, the plane across, all.
    screw = adapted[:, 0] / shares[0]
    moment, axis = screw[:3], screw[3:]
    along = bool(np.abs(axis @ shifts).max(initial=0.0) > slack)
    across = bool(np.linalg.norm(np.cross(axis, shifts.T), axis=1).max(initial=0.0) > slack)
    if along and across:
        return _subgroup("SE(2)xR", axis)
    pitch = None if abs(axis @ moment) <= slack else float(axis @ moment) * length
    if across:
        return _subgroup("SE(2)" if pitch is None else "H_p x| R^2", axis, pitch=pitch)
    origin = (point + np.cross(axis, moment)) * length
    if along:
        return _subgroup("SO(2)xR", axis, origin)
    return _subgroup("SO(2)" if pitch is None else "H_p", axis, origin, pitch)


def _translations(shifts: np.ndarray) -> Subgroup:
    """Subgroup of one to three independent translations."""
    count = shifts.shape[1]
    if count == 1:
        return _subgroup("R", shifts[:, 0])
    if count == 2:
        return _subgroup("R^2", np.cross(*shifts.T))
    return _subgroup("R^3")


def _subgroup(
    name: str,
    axis: np.ndarray | None = None,
    origin: np.ndarray | None = None,
    pitch: float | None = None,
) -> Subgroup:
    """Subgroup of Table 2.1 with its axis or normal and its place."""
    frame = np.eye(4)
    if axis is not None:
        frame[:3, :3] = _axes(axis)
    if origin is not None:
        frame[:3, 3] = origin
    canonical = np.eye(6)[:, list(_TABLE[name][0])]
    if pitch is not None:
        canonical[2, -1] = pitch
    return Subgroup(name, se3.adjoint(frame) @ canonical, frame, pitch)


def _axes(axis: np.ndarray) -> np.ndarray:
    """Shortest rotation (3, 3) of z to an axis, whose sign is free: its longest entry is > 0.

    A margin decides between equal entries, so that rounding does not turn the frame. The
    entry along z is never near -1, where the shortest rotation is not unique.
    """
    size = np.abs(axis)
    longest = int(np.argmax(size > size.max() - 1e-6))
    x, y, z = axis / np.linalg.norm(axis) * np.sign(axis[longest])
    k = 1.0 / (1.0 + z)
    return np.array(
        [[1.0 - k * x * x, -k * x * y, x], [-k * x * y, 1.0 - k * y * y, y], [-x, -y, z]]
    )


def _point_on_axis(columns: np.ndarray, tolerance: float) -> np.ndarray:
    """Point next to the origin on the axis of the twist that turns most for its size.

    The origin if no twist turns by more than the tolerance: all are translations.
    """
    speed, spin = np.linalg.norm(columns[:3], axis=0), np.linalg.norm(columns[3:], axis=0)
    share = spin / np.hypot(speed, spin)
    most = int(np.argmax(share))
    if share[most] <= tolerance:
        return np.zeros(3)
    point: np.ndarray = np.cross(columns[3:, most], columns[:3, most]) / spin[most] ** 2
    return point


def _step_among_axes(columns: np.ndarray, tolerance: float) -> np.ndarray:
    """Step to where the linear parts of the twists that turn are smallest.

    A twist that turns by no more than the tolerance is a translation, and its rotation may be
    pure rounding. As the cut of least squares is relative, among such twists alone it would
    cut nothing and take the step to an axis at no matter what distance.
    """
    turning = np.linalg.norm(columns[3:], axis=0) > tolerance
    if not turning.any():
        return np.zeros(3)
    arms, moments = _arms(columns[3:, turning]), columns[:3, turning].T.ravel()
    step: np.ndarray = np.linalg.lstsq(arms, moments, rcond=tolerance)[0]
    return step


def _about(columns: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Twists with their linear part taken at a point instead of the origin."""
    return np.vstack([columns[:3] + np.cross(columns[3:].T, point).T, columns[3:]])


def _normalised(columns: np.ndarray) -> np.ndarray:
    scaled: np.ndarray = columns / np.linalg.norm(columns, axis=0)
    return scaled


def _arms(spins: np.ndarray) -> np.ndarray:
    """Matrix (3 k, 3) that takes a centre to the linear parts of k rotations about it."""
    return np.vstack([so3.skew(-spin) for spin in spins.T])


def _reason(
    given: np.ndarray, kept: np.ndarray, columns: np.ndarray, span: np.ndarray, closure: Subgroup
) -> str:
    """Sentence on the pair of given twists whose bracket leaves the span most."""
    pairs = list(combinations(range(len(kept)), 2))
    brackets = np.array([se3.ad(columns[:, a]) @ columns[:, b] for a, b in pairs]).T
    leaving = np.linalg.norm(brackets - span @ (span.T @ brackets), axis=0)
    a, b = kept[list(pairs[int(np.argmax(leaving))])]
    bracket = se3.ad(given[:, a]) @ given[:, b]
    numbers = ", ".join(f"{x:.4g}" for x in bracket + 0.0)
    return (
        f"The bracket of columns {a} and {b}, ({numbers}), leaves the span of the twists; "
        f"the smallest subgroup with these motions is {closure.name} of dimension {closure.dim}."
    )


def read_twists(twists: Array, where: str) -> np.ndarray:
    array = as_floats(twists, where)
    if array.shape == (6,):
        array = array[:, None]
    if array.ndim != 2 or array.shape[0] != 6:
        raise ShapeError(
            where,
            expected="shape (6, k), a twist [linear; angular] per column",
            came=f"shape {array.shape}",
            cure="Transpose twists that are rows; a joint's `basis` has the right shape.",
        )
    if not np.isfinite(array).all():
        raise nonfinite_error(where, array)
    return array


def _positive(value: float, where: str, below: float = np.inf) -> float:
    number = as_floats(value, where)
    if number.shape != ():
        raise shape_error(where, (), number.shape)
    if not 0.0 < number < below:
        raise DescriptionError(
            where,
            expected="a number above 0" + (f" and below {below:g}" if below < np.inf else ""),
            came=f"{number:g}",
            cure="Leave it out for the default.",
        )
    return float(number)
