"""Which motions of a displacement subgroup keep a momentum (Table 3.1 of the thesis).

Two translations commute, so the coadjoint form ``<mu, [S_i, S_j]>`` falls into a block A that
pairs translations with rotations, which is linear in the linear momentum, and a block B that
pairs rotations. Its singular values determine the rank badly: for a free body whose two momenta
are parallel with the ratio ``e``, the smallest is ``e**2``. So the blocks are judged by size.
The remaining rows are scaled to one size by a unit of length, and then
the kernel is as well conditioned as the data allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from concur.codegen import Array, Matrix, Vector, as_floats, nonfinite_error
from concur.errors import DescriptionError, ShapeError
from concur.groups import se3
from concur.groups._classify import _TABLE, ROUNDING, Subgroup, _positive, classify, read_twists


@dataclass(frozen=True, eq=False)
class Isotropy:
    """The isotropy group of a momentum: the motions of a displacement subgroup that keep it.

    Parameters
    ----------
    group : Subgroup
        The displacement subgroup G that acts.
    subgroup : Subgroup
        Identity component of the isotropy group ``G_mu``, with its place in space.
    momentum : numpy.ndarray
        Momentum on the algebra of G, shape (d,): its values on the twists of the basis.
    algebra : numpy.ndarray
        Coordinates in the basis of twists that span the algebra of ``G_mu``, shape (d, k).
    twists : numpy.ndarray
        The same as twists ``[linear; angular]``, shape (6, k), m and rad: the basis that was
        given if all of G keeps the momentum, otherwise ``subgroup.basis``.
    complement : numpy.ndarray
        Coordinates of twists that complete them to the algebra of G, shape (d, d - k).
        They are orthogonal to the algebra of ``G_mu`` when a metre is measured by `length` and
        place and axes are those of ``group.frame``.
    complement_twists : numpy.ndarray
        The same as twists, shape (6, d - k).
    form : numpy.ndarray
        Coadjoint form ``<mu, [S_i, S_j]>`` in the basis, shape (d, d), antisymmetric; its kernel
        is the algebra of ``G_mu``.
    gap : float
        Weakest part of the momentum that restricts the group, over the strongest part that was
        taken for zero, or over rounding. Infinite if no small change of the momentum changes
        the answer, or if the momentum is zero up to rounding.
    doubt : str
        Sentence on how little decides; empty if the answer is clear.
    """

    group: Subgroup
    subgroup: Subgroup
    momentum: np.ndarray
    algebra: np.ndarray
    twists: np.ndarray
    complement: np.ndarray
    complement_twists: np.ndarray
    form: np.ndarray
    gap: float
    doubt: str = ""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def dim(self) -> int:
        """Dimension k of the isotropy group."""
        return int(self.algebra.shape[1])

    @property
    def orbit_dimension(self) -> int:
        """Dimension of the coadjoint orbit of the momentum, which is even."""
        return int(self.complement.shape[1])

    @property
    def connected(self) -> bool:
        """Whether the isotropy group is its identity component, `subgroup`, alone.

        Only in "H_p x| R^2" it is not, if the momentum has a part in the plane: a full turn
        of the screw is a translation along the normal and keeps every momentum. Table 3.1
        lists the identity component.
        """
        return self.group.name != "H_p x| R^2" or self.orbit_dimension == 0

    def __str__(self) -> str:
        more = "" if self.connected else " and full turns of the screw"
        return (
            f"{self.subgroup.name}{more} in {self.group.name}, dimension {self.dim} of "
            f"{self.group.dim}; coadjoint orbit of dimension {self.orbit_dimension}; "
            f"gap {self.gap:.1e}"
        ) + (f". {self.doubt}" if self.doubt else "")


def isotropy(
    basis: Matrix, momentum: Vector, length: float = 1.0, tolerance: float = 1e-10
) -> Isotropy:
    """Find the motions of a displacement subgroup that keep a momentum (Table 3.1).

    Parameters
    ----------
    basis : array_like, shape (6, d) or (6,)
        Independent twists ``[linear; angular]`` as columns that span the algebra of the
        subgroup, m and rad, in the frame of the momentum.
    momentum : array_like, shape (6,) or (d,)
        Six numbers are a spatial momentum ``[linear; angular]``, N s and N m s about the origin;
        only its values on the twists of the basis count. Otherwise, its values on the twists
        of the basis.
    length : float
        Size of the mechanism, m: with it linear and angular momenta are compared.
    tolerance : float
        Parts of the momentum smaller than this share of it are taken for zero, and so are
        parts that are no larger than the rounding of the data. Between 0 and 0.1.

    Returns
    -------
    Isotropy
        Algebra of the isotropy group, a complement, the group's name and place, and how clear
        the answer is.

    Raises
    ------
    ShapeError
        If the basis is not columns of six numbers, or the momentum fits neither shape.
    NonFiniteError
        If a number is NaN or infinite.
    DescriptionError
        If the twists depend on each other or do not span a subalgebra, or if `tolerance` or
        `length` is out of range.

    Notes
    -----
    The isotropy group of ``mu`` is ``{g : Ad*_g mu = mu}``; its algebra is the kernel of the
    coadjoint form. The size of the momentum does not matter, only its direction.

    Examples
    --------
    A free body with linear momentum keeps it under turns about an axis along it and under
    translations along that axis:

    >>> import numpy as np
    >>> from concur.groups import isotropy
    >>> found = isotropy(np.eye(6), [0, 20, 0, 0, 5, 0])
    >>> found.subgroup.name, found.orbit_dimension
    ('SO(2)xR', 4)
    """
    twists = read_twists(basis, "isotropy, `basis`")
    length = _positive(length, "isotropy, `length`")
    tolerance = _positive(tolerance, "isotropy, `tolerance`", below=0.1)
    group = _group(twists, length)
    d = group.dim
    mu, spread = _on_algebra(twists, momentum)

    # All that decides is done in the canonical frame and basis, with metres measured by length.
    places = list(_TABLE[group.name][0])
    turning = np.array(places, dtype=int) >= 3
    unit = np.where(turning, 1.0, length)
    to_group = se3.adjoint(se3.inverse(group.frame))
    change = (to_group @ twists)[places] / unit[:, None]
    size = float(spread.max(initial=0.0)) or 1.0
    inside = np.linalg.solve(change.T, mu / size)
    rounding = ROUNDING * np.linalg.norm(np.abs(np.linalg.inv(change)).T @ (spread / size))
    structure = _structure(group, unit)
    form = np.einsum("k,ijk->ij", inside, structure)

    part, stretch, gap, doubt = _decided(form, turning, inside, tolerance, float(rounding))
    if not structure.any():
        gap = np.inf
    balance = np.where(turning, 1.0, stretch)
    _, values, directions = np.linalg.svd(balance[:, None] * part * balance)
    # Balanced, the values that are not zero lie within a factor of three of each other.
    rank = int(np.sum(values > 0.1 * values.max(initial=0.0)))

    if rank == 0:
        subgroup, kept_twists = group, twists.copy()
        algebra, rest = np.eye(d), np.zeros((d, 0))
    else:
        kernel = _adapted(directions[rank:].T, turning)
        span = group.basis @ ((unit * balance)[:, None] * kernel)
        # The axis may be far away: then it is looked for at its own scale.
        subgroup = classify(span, length=length * stretch)
        kept_twists = subgroup.basis
        kept = (to_group @ kept_twists)[places] / unit[:, None]
        algebra = np.linalg.solve(change, kept)
        rest = np.linalg.solve(change, _complement(kept))
    full = size * change.T @ form @ change
    return Isotropy(
        group=group,
        subgroup=subgroup,
        momentum=mu.copy(),
        algebra=algebra,
        twists=kept_twists,
        complement=rest,
        complement_twists=twists @ rest,
        form=(full - full.T) / 2,
        gap=gap,
        doubt=doubt,
    )


def _group(twists: np.ndarray, length: float) -> Subgroup:
    """Subgroup that independent twists span, or an error."""
    where = "isotropy, `basis`"
    group = classify(twists, length=length)
    if group.dim != twists.shape[1]:
        came = f"{twists.shape[1]} twists that span {group.dim} dimensions"
        cure, expected = "Leave out dependent and zero twists.", "twists independent of each other"
        raise DescriptionError(where, expected=expected, came=came, cure=cure)
    if not group.closed:
        raise DescriptionError(
            where,
            expected="twists that span the algebra of a subgroup",
            came=f"a span that is not closed. {group.reason}",
            cure="Complete the twists to those of the smallest subgroup.",
        )
    return group


def _on_algebra(twists: np.ndarray, momentum: Array) -> tuple[np.ndarray, np.ndarray]:
    """Values of a momentum on the twists, and the sums of sizes that bound their rounding."""
    where = "isotropy, `momentum`"
    array = as_floats(momentum, where)
    d = twists.shape[1]
    if array.shape not in {(6,), (d,)}:
        raise ShapeError(
            where,
            expected="shape (6,)" + (f" or ({d},)" if d != 6 else ""),
            came=f"shape {array.shape}",
            cure="Pass a spatial momentum [linear; angular], or its values on the basis.",
        )
    if not np.isfinite(array).all():
        raise nonfinite_error(where, array)
    if array.shape == (6,):
        return twists.T @ array, np.abs(twists).T @ np.abs(array)
    return array, np.abs(array)


def _structure(group: Subgroup, unit: np.ndarray) -> np.ndarray:
    """Structure constants: [S_i, S_j] = sum_k S_k structure[i, j, k] in the canonical basis.

    Translations of the basis are one unit long, and so the constants have no dimension.
    """
    places = list(_TABLE[group.name][0])
    basis = np.eye(6)[:, places]
    if group.pitch is not None:
        basis[2, -1] = group.pitch
    basis = basis * unit
    brackets = [(se3.ad(a) @ basis)[places].T / unit for a in basis.T]
    return np.array(brackets).reshape((group.dim,) * 3)


def _decided(
    form: np.ndarray, turning: np.ndarray, momentum: np.ndarray, tolerance: float, rounding: float
) -> tuple[np.ndarray, float, float, str]:
    """Form without the blocks taken for zero, stretch of the unit of length, gap and doubt."""
    part = form.copy()
    moved = _largest(form[np.ix_(~turning, turning)])  # by A: the linear momentum that turns
    turned = _largest(form[np.ix_(turning, turning)])  # by B: the angular momentum that turns
    whole = float(np.linalg.norm(momentum))
    rounding = max(rounding, ROUNDING * whole)
    threshold = max(tolerance * whole, rounding)

    stretch = 1.0
    if moved > threshold:
        # Next to the linear momentum, B decides nothing, however small it is.
        kept, dropped, stretch = moved, 0.0, max(1.0, turned / moved)
    elif turned > threshold:
        kept, dropped = turned, moved
        part[~turning], part[:, ~turning] = 0.0, 0.0
    else:
        kept, dropped = whole, max(moved, turned)
        part[:] = 0.0
    if whole <= rounding:
        return part, stretch, np.inf, ""

    doubt = []
    if kept < np.sqrt(tolerance) * whole:
        doubt.append(
            f"What decides is a share {kept / whole:.1e} of the momentum, near the "
            f"tolerance {tolerance:g}."
        )
    if dropped > rounding:
        doubt.append(
            f"A share {dropped / whole:.1e} of the momentum would restrict the group further "
            "but is taken for zero."
        )
    return part, stretch, kept / max(dropped, rounding), " ".join(doubt)


def _adapted(kernel: np.ndarray, turning: np.ndarray) -> np.ndarray:
    """Basis of the same kernel: twists that turn, then translations that do not turn at all.

    Balanced, a kernel turns by at least 0.7 of its size or not at all. Rounding would put the
    axis of a translation somewhere far away instead of nowhere.
    """
    _, shares, mix = np.linalg.svd(kernel[turning])
    adapted: np.ndarray = kernel @ mix.T
    adapted[np.ix_(turning, np.arange(kernel.shape[1]) >= np.sum(shares > 0.1))] = 0.0
    return adapted


def _complement(kept: np.ndarray) -> np.ndarray:
    """Orthonormal complement (d, d - k) of columns, along the axes where that is possible."""
    columns, _ = np.linalg.qr(kept / np.linalg.norm(kept, axis=0))
    outside = np.eye(len(kept)) - columns @ columns.T
    axes, sizes, _ = qr(outside, pivoting=True)
    count = len(kept) - kept.shape[1]
    found: np.ndarray = axes[:, :count] * np.sign(np.diag(sizes)[:count])
    return found + 0.0


def _largest(matrix: np.ndarray) -> float:
    """Largest singular value, 0 of an empty matrix."""
    return float(np.linalg.svd(matrix, compute_uv=False).max(initial=0.0))
