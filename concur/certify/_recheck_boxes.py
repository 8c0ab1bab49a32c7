"""Verification of the decay of one channel over the boxes of its stored proof."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from concur.certify import _recheck_outward as outward
from concur.certify._recheck_document import UNITS, StoredChannel
from concur.certify._recheck_finding import Rejection, require
from concur.certify._recheck_outward import Interval
from concur.certify._recheck_rational import (
    Matrix,
    combine,
    definite,
    diagonal,
    invert,
    multiply,
    transpose,
)
from concur.certify._recheck_work import spend
from concur.certify._status import Status

# Corners of the polygon around a disc of rho: the second one when the first is too wide.
_CORNERS = (8, 64)
_CHUNK = 1024
_NARROWEST = 1e-9


def _blockwise(channel: StoredChannel, multiples: bool) -> bool:
    """Whether all matrices are diagonal in each block of three, or multiples of the identity.

    Multiples of the identity must also not couple positions with rotations. A direction has a block
    of two.
    """
    width = min(channel.size, 3)
    kinds = channel.size // width
    gains = [channel.kp, channel.kd, channel.metric]
    for matrix in (*gains, channel.p, channel.left, channel.right):
        for i, row in enumerate(matrix):
            for j, entry in enumerate(row):
                apart = (i // width - j // width) % kinds != 0
                off = i % width != j % width or (multiples and apart)
                first = matrix[i - i % width][j - j % width]
                if (off and entry != 0) or (multiples and not off and entry != first):
                    return False
    return True


def check_decay(channel: StoredChannel, budget: int) -> None:
    """Verify that P decays at the rate in the domain of a channel."""
    where = f"{channel.where}.reduction"
    if channel.reduction == "linear":
        form = _constant_form(channel)
        holds = definite(form, semi=True)
        require(holds, Status.REFUTED, f"{channel.where}: P does not decay at the rate")
        return
    if channel.reduction in ("scalar", "one axis, one plane"):
        holds = _blockwise(channel, multiples=True)
        require(holds, Status.UNDECIDED, f"{where}: a matrix is not isotropic")
    if channel.reduction == "two octants":
        holds = _blockwise(channel, multiples=False)
        require(holds, Status.UNDECIDED, f"{where}: a block of a matrix is not diagonal")
    if channel.reduction == "scalar":
        _scalar_decay(channel)
        return
    gap = _gap(channel)
    if gap is not None:
        place = ", ".join(f"[{a:.9g}, {b:.9g}]" for a, b in gap.T)
        raise Rejection(Status.UNDECIDED, f"{channel.where}.boxes leave a gap: {place}")
    _sweep(channel, budget)


def _constant_form(channel: StoredChannel) -> Matrix:
    """A of an abelian group, where B is the identity."""
    n = channel.size
    inverse = invert(channel.metric)
    zero = [[Fraction(0)] * n for _ in range(n)]
    top = [z + [-x for x in one] for z, one in zip(zero, diagonal([Fraction(1)] * n), strict=True)]
    spring, damper = multiply(inverse, channel.kp), multiply(inverse, channel.kd)
    low = [s + [-x for x in d] for s, d in zip(spring, damper, strict=True)]
    rate = multiply(channel.p, top + low)
    half = combine(rate, Fraction(1), transpose(rate))
    return combine([[-x / 2 for x in row] for row in half], -channel.rate, channel.p)


def _scalar_decay(channel: StoredChannel) -> None:
    """Decay of an isotropic channel on SO3 or S2, from two numbers per block.

    With B^T x = x and s an eigenvalue of sym(B), at most 1, the form splits into
    [[c k, (a - b k - c d) / 2], [., b d - c s]] - rate [[a, -c], [-c, b]].
    """
    p, n = channel.p, channel.size
    a, c, b = p[0][0], -p[0][n], p[n][n]
    k, d = channel.kp[0][0] / channel.metric[0][0], channel.kd[0][0] / channel.metric[0][0]
    cross = (a - b * k - c * d) / 2 + channel.rate * c
    form = [[c * k - channel.rate * a, cross], [cross, b * d - c - channel.rate * b]]
    # s = 1 is the eigenvalue along x, which every x has: the claim fails where this does.
    holds = definite(form, semi=True)
    require(holds, Status.REFUTED, f"{channel.where}: P does not decay at the rate")
    # For smaller s the form is larger, as c k >= rate a > 0.


def _gap(channel: StoredChannel) -> np.ndarray | None:
    """A cell of rotation vectors that no box covers, or None; compared exactly."""
    assert channel.angle is not None
    boxes, radius = channel.boxes, float(channel.angle)
    width = boxes.shape[1]
    lo, hi = np.full(width, -radius), np.full(width, radius)
    lo[: {"one axis, one plane": 1, "two octants": 2}.get(channel.reduction, 0)] = 0.0
    balls, start = [], 0
    for block in channel.turning if channel.reduction != "one axis, one plane" else []:
        balls.append(slice(start, start + len(block)))
        start += len(block)
    cells = [(lo, hi, np.arange(len(boxes)))]
    while cells:
        lo, hi, near = cells.pop()
        spend(200.0 + 0.2 * width * len(near))
        if any(_outside(lo[ball], hi[ball], radius) for ball in balls):
            continue
        low, high = boxes[near, :, 0], boxes[near, :, 1]
        near = near[((low < hi) & (high > lo)).all(1)]
        if near.size == 0:
            return np.array([lo, hi])
        low, high = boxes[near, :, 0], boxes[near, :, 1]
        if ((low <= lo) & (high >= hi)).all(1).any():
            continue
        # A box that intersects the cell without containing it has a face inside: divide there.
        faces = np.concatenate([low, high])
        offset = np.abs(faces - (lo + hi) / 2) / (hi - lo)
        offset[(faces <= lo) | (faces >= hi)] = np.inf
        k, axis = np.unravel_index(np.argmin(offset), offset.shape)
        left, right = hi.copy(), lo.copy()
        left[axis] = right[axis] = faces[k, axis]
        cells += [(lo, left, near), (right, hi, near)]
    return None


def _outside(lo: np.ndarray, hi: np.ndarray, radius: float) -> bool:
    """Whether a cell lies outside of a ball, in rational numbers."""
    near = [max(low, -high, 0.0) for low, high in zip(lo.tolist(), hi.tolist(), strict=True)]
    if math.fsum(x * x for x in near) < 0.99 * radius * radius:
        return False
    return bool(sum(Fraction(x) ** 2 for x in near) > Fraction(radius) ** 2)


class _Form:
    """A(x) of a channel over boxes of rotation vectors."""

    def __init__(self, channel: StoredChannel) -> None:
        n = channel.size
        self.channel = channel
        inverse = invert(channel.metric)
        damper = multiply(inverse, channel.kd)
        first, second = [r[:n] for r in channel.p], [r[n:] for r in channel.p]
        self.first = Interval.exact(first)
        self.spring = Interval.exact(multiply(second, inverse))
        self.kp = Interval.exact(channel.kp)
        self.left, self.right = Interval.exact(channel.left), Interval.exact(channel.right)
        rotating = np.zeros((n, n))
        for block in channel.turning:
            if len(block) == 3:
                rotating[np.ix_(block, block)] = 1.0
        self.rotating = rotating
        # Terms independent of B: L + M on rotations, and the damping.
        turned = [[m if rotating[j, j] else Fraction(0) for j, m in enumerate(row)]
                  for row in channel.right]  # fmt: skip
        still = combine(channel.left, Fraction(1), turned)
        damping = multiply(second, damper)
        rows = [a + b for a, b in zip(still, damping, strict=True)]
        both = combine(rows, Fraction(1), transpose(rows))
        half = [[x / 2 for x in row] for row in both]
        self.constant = Interval.exact(combine(half, -channel.rate, channel.p))

    def points(self, middles: np.ndarray, corner: np.ndarray) -> list[Interval]:
        """Errors x at the middles of boxes and at a corner of rho."""
        x = np.repeat(corner[None, :], len(middles), axis=0)
        x[:, self.channel.varied] = middles
        return [Interval(column) for column in x.T]

    def ranges(self, boxes: np.ndarray, corner: np.ndarray) -> list[Interval]:
        """Errors x over boxes and at a corner of rho."""
        low = np.repeat(corner[None, :], len(boxes), axis=0)
        high = low.copy()
        low[:, self.channel.varied] = boxes[:, :, 0]
        high[:, self.channel.varied] = boxes[:, :, 1]
        return [Interval(a, b) for a, b in zip(low.T, high.T, strict=True)]

    def value(self, x: list[Interval]) -> Interval:
        """A at x, shape (k, 2n, 2n)."""
        return self.constant + self._linear(_error_map(self.channel, x))

    def slope(self, x: list[Interval], place: int) -> Interval:
        """Derivative of A by a component of a rotation vector."""
        return self._linear(_error_slope(self.channel, x, place))

    def positive(self, boxes: np.ndarray, corner: np.ndarray) -> np.ndarray:
        """Whether A > 0 for all x of each box, at a corner of rho; shape (k,)."""
        size, width = 2 * self.channel.size, boxes.shape[1]
        each = (2.0**width + 2 * width) * size**2 * (0.6 + 0.04 * size)
        spend(1500.0 * (2.0**width + width) + each * len(boxes))
        low, high = boxes[:, :, 0], boxes[:, :, 1]
        middles = low + (high - low) / 2
        reach = np.nextafter(np.maximum(high - middles, middles - low), np.inf)
        value = self.value(self.points(middles, corner))
        over = self.ranges(boxes, corner)
        # A(x) = value + sum_j slope_j step_j with |step_j| <= reach_j. With the centres of the
        # slopes this is affine in the steps, so their extremes suffice; the deviation of a slope
        # from its centre is a radius.
        centres, loose = [], np.zeros(value.shape)
        for j, place in enumerate(self.channel.varied):
            slope, size = self.slope(over, place), reach[:, j, None, None]
            centre = slope.lo + (slope.hi - slope.lo) / 2
            centres.append(Interval(centre) * size)
            off = slope - centre
            loose = (Interval(loose) + Interval(off.size()) * size).hi
        slack = Interval(-loose, loose)
        good = np.ones(len(boxes), dtype=bool)
        for signs in product((-1.0, 1.0), repeat=len(centres)):
            extreme = value
            for sign, centre in zip(signs, centres, strict=True):
                extreme = extreme + centre * sign
            good &= _positive(extreme + slack)
        return good

    def _linear(self, b: Interval) -> Interval:
        """Part of A that is linear in B."""
        pull = self.spring @ (b.T @ self.kp) + self.left @ b + self.right @ (b.T * self.rotating)
        rows = outward.join(-pull, self.first @ b)
        return (rows + rows.T) * 0.5


def _error_map(channel: StoredChannel, x: list[Interval]) -> Interval:
    """B(x), shape (k, n, n)."""
    parts = []
    for group, k in channel.spans:
        if group == "SO3":
            parts.append((k, k, outward.rotation_map(x[k : k + 3])))
        elif group == "SE2":
            parts.append((k, k, outward.planar_map(x[k : k + 2], x[k + 2])))
        elif group == "SE3":
            rho, phi = x[k : k + 3], x[k + 3 : k + 6]
            turn = outward.rotation_map(phi)
            parts += [(k, k, turn), (k + 3, k + 3, turn)]
            parts.append((k, k + 3, outward.coupling_map(phi, rho)))
    return _assembled(x, np.eye(channel.size), parts)


def _error_slope(channel: StoredChannel, x: list[Interval], place: int) -> Interval:
    """Derivative of B(x) by one component of a rotation vector, shape (k, n, n)."""
    parts = []
    for group, k in channel.spans:
        if not k <= place < k + len(UNITS[group]):
            continue
        if group == "SE2":
            parts.append((k, k, outward.planar_slope(x[k : k + 2], x[k + 2])))
            continue
        first = k if group == "SO3" else k + 3
        phi = x[first : first + 3]
        along = [Interval(np.full(x[0].shape, float(i == place - first))) for i in range(3)]
        turn = outward.coupling_map(phi, along)
        parts.append((first, first, turn))
        if group == "SE3":
            parts += [
                (k, k, turn),
                (k, first, outward.coupling_slope(phi, x[k : k + 3], along)),
            ]
    return _assembled(x, np.zeros((channel.size, channel.size)), parts)


def _assembled(
    x: list[Interval], rest: np.ndarray, parts: list[tuple[int, int, Interval]]
) -> Interval:
    """Matrices with given blocks at given rows and columns, else as `rest`."""
    low = np.repeat(rest[None], x[0].shape[0], axis=0)
    high = low.copy()
    for row, column, part in parts:
        height, width = part.shape[1:]
        place = (slice(None), slice(row, row + height), slice(column, column + width))
        low[place], high[place] = part.lo, part.hi
    return Interval(low, high)


def _polygon(corners: int, radius: float) -> np.ndarray:
    """Polygon around a disc; `corners` is a multiple of 4, exactly symmetric, first quarter first.

    Enlarged by 1e-9, far more than rounding.
    """
    angles = (2 * np.arange(corners // 4) + 1) * np.pi / corners
    reach = radius * (1.0 + 1e-9) / np.cos(np.pi / corners)
    quarter = reach * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    signs = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    return np.asarray((signs[:, None, :] * quarter).reshape(-1, 2))


def _corners(channel: StoredChannel, corners: int) -> np.ndarray:
    """Points with components rho of x whose convex hull contains all rho; shape (k, n)."""
    points = np.zeros((1, channel.size))
    for block in channel.positions:
        assert channel.distance is not None
        radius = float(channel.distance)
        if channel.reduction == "one axis, one plane":
            # Rotation about the axis and reflection reduce rho to a quarter of the plane.
            own = np.zeros((corners // 4, 3))
            own[:, [0, 2]] = _polygon(corners, radius)[: corners // 4]
        elif len(block) == 2:
            own = _polygon(corners, radius)
        else:
            own = radius * np.array(list(product((-1.0, 1.0), repeat=3)))
        count = len(points)
        spend(count * len(own) * channel.size)
        points = np.repeat(points, len(own), axis=0)
        points[:, block] = np.tile(own, (count, 1))
    return points


def _positive(a: Interval) -> np.ndarray:
    """Whether every symmetric matrix in each interval matrix is positive definite; shape (k,)."""
    middle = a.lo + (a.hi - a.lo) / 2
    middle = (middle + middle.swapaxes(-1, -2)) / 2
    known = np.isfinite(middle).all((-1, -2))
    values, vectors = np.linalg.eigh(np.where(known[:, None, None], middle, 0.0))
    hope = known & (values[:, 0] > 0.0)
    # Any congruence is valid; this one makes the middle the identity.
    scale = 1.0 / np.sqrt(np.where(hope[:, None], values, 1.0))
    turn = (vectors * scale[:, None, :]).swapaxes(-1, -2)
    near = turn @ (a @ turn.swapaxes(-1, -2))
    rest = near.lo[:, range(near.shape[-1]), range(near.shape[-1])]
    sizes = near.size()
    for j in range(near.shape[-1]):
        column = sizes[:, :, j].copy()
        column[:, j] = 0.0
        rest = np.nextafter(rest - column, -np.inf)
    return np.asarray(hope & (rest > 0.0).all(-1))


def _inside(channel: StoredChannel, x: list[Fraction]) -> bool:
    """Whether an error is in the domain of the claim, in rational numbers."""
    limits = ((channel.angle, channel.rotations), (channel.distance, channel.positions))
    for radius, blocks in limits:
        for block in blocks:
            if radius is None or sum(x[i] ** 2 for i in block) > radius**2:
                return False
    return True


def _negative(form: _Form, x: np.ndarray, z: np.ndarray) -> bool:
    """Whether z^T A(x) z < 0, by intervals."""
    value = form.value([Interval(np.array([v])) for v in x])[0]
    direction = Interval(z[:, None])
    return bool((direction.T @ (value @ direction)).hi[0, 0] < 0.0)


def contradicts(channel: StoredChannel, x: list[Fraction], z: list[Fraction]) -> bool:
    """Whether a stored counterexample shows that P is not positive, or does not decay.

    Either z^T P z <= 0 with z other than zero; or x is in the domain and the first half of z, and
    z^T A(x) z < 0.
    """
    column = [[v] for v in z]
    if any(z) and multiply(transpose(column), multiply(channel.p, column))[0][0] <= 0:
        return True
    if z[: channel.size] != x or not _inside(channel, x):
        return False
    return _negative(_Form(channel), *[np.array([float(v) for v in vector]) for vector in (x, z)])


def _refute(form: _Form, boxes: np.ndarray, corners: np.ndarray) -> None:
    """Reject the proof if the decay, or the inequality, fails at the middle of a box."""
    channel = form.channel
    middles = boxes[:, :, 0] + (boxes[:, :, 1] - boxes[:, :, 0]) / 2
    size = 2 * channel.size
    spend(len(corners) * (5000.0 + len(boxes) * size**2 * (0.6 + 0.04 * size)))
    for corner in corners:
        witness = corner.copy()
        for block in channel.positions:
            assert channel.distance is not None
            length = np.linalg.norm(corner[block])
            witness[block] *= float(channel.distance) * (1.0 - 1e-12) / length
        value = form.value(form.points(middles, witness))
        middle = value.lo + (value.hi - value.lo) / 2
        known = np.isfinite(middle).all((-1, -2))
        values, vectors = np.linalg.eigh(middle[known])
        for k in np.flatnonzero(values[:, 0] < 0.0)[:8]:
            x = witness.copy()
            x[channel.varied] = middles[known][k]
            if not _inside(channel, [Fraction(v) for v in x.tolist()]):
                continue
            place = f"{channel.where}, x = ({', '.join(f'{v:.9g}' for v in x)})"
            if _negative(form, x, _worst_state(middle[known][k], x)):
                raise Rejection(Status.REFUTED, f"{place}: P does not decay at the rate")
            # Another P, or other multipliers, might still prove the claim.
            if _negative(form, x, vectors[k, :, 0]):
                raise Rejection(Status.UNDECIDED, f"{place}: the matrix inequality fails")


def _worst_state(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """State (x, ve) that minimises z^T A z, or a distant one where it has no minimum."""
    n = len(x)
    values, vectors = np.linalg.eigh(a[n:, n:])
    slope = vectors.T @ (a[n:, :n] @ x)
    # Where A is negative along ve, go far: the square term dominates there.
    far = 1e6 * (1.0 + np.abs(slope).max()) * np.where(slope > 0.0, -1.0, 1.0)
    steps = np.where(values > 0.0, -slope / np.where(values > 0.0, values, 1.0), far)
    return np.concatenate([x, vectors @ steps])


def _sweep(channel: StoredChannel, budget: int) -> None:
    """Prove A > 0 on every box; boxes that are too wide are halved."""
    form, where = _Form(channel), channel.where
    polygons = [_corners(channel, m) for m in _CORNERS]
    if polygons[0].shape == polygons[1].shape:
        polygons = polygons[:1]
    looked, queue = 0, [channel.boxes]
    while queue:
        batch = queue.pop()
        if len(batch) > _CHUNK:
            queue += [batch[_CHUNK:], batch[:_CHUNK]]
            continue
        looked += len(batch)
        require(looked <= budget, Status.UNDECIDED, f"{where}: more than {budget} boxes needed")
        for corners in polygons:
            good = np.ones(len(batch), dtype=bool)
            for corner in corners:
                if good.any():
                    good[good] = form.positive(batch[good], corner)
            batch = batch[~good]
        if len(batch) == 0:
            continue
        _refute(form, batch, polygons[0])
        width = batch[:, :, 1] - batch[:, :, 0]
        rows, widest = np.arange(len(batch)), width.argmax(-1)
        narrow = width[rows, widest].min() < _NARROWEST
        require(not narrow, Status.UNDECIDED, f"{where}: A is too close to singular to decide")
        middle = batch[rows, widest, 0] + width[rows, widest] / 2
        left, right = batch.copy(), batch.copy()
        left[rows, widest, 1] = right[rows, widest, 0] = middle
        halves = np.concatenate([left, right])
        spend(20.0 * len(halves))
        queue.append(halves[[not _beyond(channel, box) for box in halves]])


def _beyond(channel: StoredChannel, box: np.ndarray) -> bool:
    """Whether a box lies outside the claimed domain."""
    assert channel.angle is not None
    if channel.reduction == "one axis, one plane":
        return False
    start = 0
    for block in channel.turning:
        end = start + len(block)
        if _outside(box[start:end, 0], box[start:end, 1], float(channel.angle)):
            return True
        start = end
    return False
