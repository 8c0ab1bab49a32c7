"""Operating boxes: the format of their files, and their verification.

File format
-----------
JSON as for certificates (`_recheck_document`), SI units. `boxes`, `left` and `tested` describe how
the bounds were found; the checker ignores them.

===============  =================================================================================
format           "concur operating box"
version          1
status           "PROVED", "REFUTED" or "UNDECIDED"
ranges           object: lower and upper end of each coordinate x, by name
least, margin    required margin, and claimed margin (null without)
lower, upper     claimed bounds of the control inputs, null if unbounded
limits           null, or the limits of the control inputs: pairs, null if unbounded
demand           object: largest magnitudes `speeds`, `acceleration`, `pose_error`,
                 `velocity_error`;
                 empty without speeds
counterexample   null or object: `q` with `margin`, or `control`, `s`, `pose`, `twist` and
                 `acceleration`
law              null (then nothing is verified) or object, see below
===============  =================================================================================

`law` has `names` and `places` in q of the coordinates, `neutral` (q elsewhere), `controls` and
`units`, `size` of the outputs, `shape` (number of shape velocities), `w` (bounds of the speeds and
of the body momentum; empty without speeds) with the underlying `distance` of the base, `scales` D
of the outputs, `mixing` (components of a command that the base's heading mixes), `lowest` margin
without damping of the law, and `programs` (`_recheck_program`):

- `matrices` of x: decoupling W = D J H, mass M, actuation E; with speeds `velocity` V and
  `products` [D B; C], a column for each of the products m of w: 1, w_i, w_i^2, w_i w_j (i < j);
- `regularity` of x, where it is not 1;
- `command` of (x error, ve, a), the command at rest, and `carried` of (v, ve), ad(v) ve;
- `state` of (q, s, pose, twist, acceleration): the equations of the law, and the errors.

Verified claims
---------------
For all x in the ranges, with independent arithmetic and independently divided boxes,

- the square root of the least eigenvalue of W M^-1 W^T is at least `margin`, which is above
  `least`, and so is the regularity: W X + X^T W^T - X^T M X <= W M^-1 W^T for any X where M > 0;
- u with M sdot + C m = E u, W sdot = D nu - D B m is within the bounds, and these within the
  limits, for all |w_i| within their bounds and all commands nu that the demand allows. Bounds of
  u are widened by a thousandth of the largest of them, though not beyond the limits.

Matrices over a box are their values in its middle and their slopes over it (mean value theorem).
A counterexample is evaluated at its state; its errors may exceed the stated ones by 1e-9, as a
reference is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.certify._recheck_document import (
    LONGEST,
    float_of,
    floats_of,
    integer_of,
    list_of,
    object_of,
    places_of,
    refuse,
    rows_of,
    status_of,
)
from concur.certify._recheck_finding import Rejection, require
from concur.certify._recheck_outward import Interval, join
from concur.certify._recheck_program import Pair, Program, cases, inverse, program_of, root, run
from concur.certify._recheck_work import spend
from concur.certify._status import Status

_ROOM = 1e-3
"""Widening of the bounds, as a fraction of the largest torque, but not beyond the limits.

Without it boxes would have to be as small as the smallest torque requires.
"""

_NEAR = 1e-9
"""Errors of a state, m, rad and per second, that count as zero: a reference is rounded."""

_BATCH = 64
_ENTRIES = 4_000_000  # of all matrices and slopes of one batch
_DEMAND = ("speeds", "acceleration", "pose_error", "velocity_error")
_SIDES = (("lower", -1), ("upper", 1))


@dataclass(frozen=True, eq=False)
class StoredBox:
    """A stored operating box."""

    status: Status
    law: dict[str, Any] | None
    programs: dict[str, Program]
    ranges: np.ndarray
    least: float
    margin: float | None
    lower: np.ndarray
    upper: np.ndarray
    limits: np.ndarray
    demand: dict[str, np.ndarray]
    weak: dict[str, Any] | None

    @property
    def verified(self) -> tuple[np.ndarray, np.ndarray]:
        """Verified bounds of the control inputs: widened, within the limits."""
        room = float(_ROOM * np.abs([*self.lower, *self.upper]).max(initial=0.0))
        low = np.maximum(self.lower - room, np.minimum(self.limits[:, 0], self.lower))
        return low, np.minimum(self.upper + room, np.maximum(self.limits[:, 1], self.upper))

    @property
    def region(self) -> tuple[str, ...]:
        """Configurations, speeds, accelerations and errors that the claim covers."""
        names = [] if self.law is None else self.law["names"]
        found = [f"{n}: {a:.6g} to {b:.6g}" for n, (a, b) in zip(names, self.ranges, strict=False)]
        texts = {k: ", ".join(f"{v:.6g}" for v in part) for k, part in self.demand.items()}
        return (*found, *(f"{name} at most {text}" for name, text in texts.items()))

    @property
    def claims(self) -> tuple[str, ...]:
        """Claims of the file, with the bounds that are verified."""
        if self.law is None or self.status is Status.UNDECIDED:
            return ()
        if self.status is Status.REFUTED:
            return ("the margin or a limit is refuted by a state",)
        found = [f"the margin is at least {self.margin:.6g}, above {self.least:.6g}"]
        if self.demand:
            ends = zip(self.law["controls"], self.law["units"], *self.verified, strict=True)
            found += [f"{n} needs {a:.6g} to {b:.6g} {u}" for n, u, a, b in ends]
            if np.isfinite(self.limits).any():
                found.append("no control needs more than its limits")
        return tuple(found)


def box_of(document: dict[str, Any]) -> StoredBox:
    """Read an operating box from its document."""
    status, law = status_of(document, ""), document.get("law")
    if law is None:
        nothing = np.zeros(0)
        none = np.zeros((0, 2))
        return StoredBox(status, None, {}, none, 0, None, nothing, nothing, none, {}, None)
    law = object_of(document, "law", "")
    names, controls = (_texts(law, name) for name in ("names", "controls"))
    _texts(law, "units", len(controls))
    size, shape = (integer_of(law.get(n), f"`law.{n}`", LONGEST + 1) for n in ("size", "shape"))
    if not size or not shape:
        refuse("`law`", "outputs and shape velocities", f"{size} and {shape}")
    w, neutral = (floats_of(law, name, "law") for name in ("w", "neutral"))
    floats_of(law, "scales", "law", size)
    mixing = rows_of(law, "mixing", "law", size, size)
    if any(mixed not in (0, 1) for row in mixing for mixed in row):
        refuse("`law.mixing`", "0 or 1", mixing)
    float_of(law.get("lowest"), "`law.lowest`")
    places_of(law, "places", "law", len(names), len(neutral))
    ranges = object_of(document, "ranges", "")
    if list(ranges) != names:
        refuse("`ranges`", ", ".join(names), ", ".join(map(str, ranges)))
    ends = np.array([floats_of(ranges, name, "ranges", 2) for name in names]).reshape(-1, 2)
    if (ends[:, 0] > ends[:, 1]).any():
        refuse("`ranges`", "lower ends below upper ends", ends.tolist())
    demand = object_of(document, "demand", "")
    sizes = dict(zip(_DEMAND, (shape, size, size, size), strict=True)) if len(w) else {}
    if set(demand) != set(sizes):
        refuse("`demand`", ", ".join(sizes) or "no sizes", ", ".join(map(str, demand)))
    stated = {name: floats_of(demand, name, "demand", count) for name, count in sizes.items()}
    if any((part < 0.0).any() for part in (w, *stated.values())) or len(w) < shape * bool(len(w)):
        refuse("`demand`", "nonnegative sizes", demand)
    nu = len(controls) if len(w) else 0
    if len(w) and not size == shape == nu:
        refuse(
            "`law`", "as many controls as outputs and shape velocities", f"{nu}, {size}, {shape}"
        )
    bounds = [_ends(list_of(document, n, "", nu), f"`{n}`", side) for n, side in _SIDES]
    given = document.get("limits") is not None
    pairs = rows_of(document, "limits", "", nu, 2) if given else [[None, None]] * nu
    columns = zip(*pairs, strict=True) if pairs else ((), ())
    limits = [_ends(c, "`limits`", side) for c, (_, side) in zip(columns, _SIDES, strict=True)]
    weak = document.get("counterexample")
    if weak is not None:
        weak = object_of(document, "counterexample", "")
    shapes = {"decoupling": (size, shape), "mass": (shape, shape)}
    shapes |= {"actuation": (shape, len(controls))}
    known = {"matrices": ([len(names)], shapes)}
    known |= {"regularity": ([len(names)], {"regularity": (1, 1)})}
    if len(w):
        count = (len(w) + 1) * (len(w) + 2) // 2
        shapes |= {"velocity": (size, len(w)), "products": (size + shape, count)}
        known["command"] = ([size] * 3, {"command": (size, 1)})
        known["carried"] = ([size] * 2, {"carried": (size, 1)})
        solved = {"decoupling": (size, shape), "residual": (size, 1), "mass": (shape, shape)}
        solved |= {"forces": (shape, 1), "actuation": (shape, nu), "x": (size, 1), "ve": (size, 1)}
        pose = len(weak["pose"]) if weak and isinstance(weak.get("pose"), list) else 0
        known["state"] = ([len(neutral), shape, pose, size, size], solved)
    stored = object_of(law, "programs", "law")
    optional = {"regularity", "state"}
    if not set(known) - optional <= set(stored) <= set(known):
        refuse("`law.programs`", ", ".join(known), ", ".join(map(str, stored)))
    programs = {
        name: program_of(object_of(stored, name, "law"), f"law.programs.{name}", *known[name])
        for name in stored
    }
    margin = document.get("margin")
    if margin is None and status is Status.PROVED:
        refuse("`margin`", "a number", margin)
    return StoredBox(
        status=status,
        law=law,
        programs=programs,
        ranges=ends,
        least=float_of(document.get("least"), "`least`"),
        margin=None if margin is None else float_of(margin, "`margin`"),
        lower=bounds[0],
        upper=bounds[1],
        limits=np.array(limits).T,
        demand=stated,
        weak=weak,
    )


def _texts(table: dict[str, Any], name: str, count: int | None = None) -> list[str]:
    values = list_of(table, name, "law", count)
    if not all(isinstance(value, str) for value in values):
        refuse(f"`law.{name}`", "names", values)
    if len(values) > LONGEST or (count is None and len(set(values)) != len(values)):
        refuse(f"`law.{name}`", f"at most {LONGEST} different names", f"{len(values)}")
    return values


def _ends(values: Sequence[Any], where: str, side: int) -> np.ndarray:
    """Bounds from below (side -1) or above (1), infinite if unbounded."""
    ends = [side * math.inf if value is None else float_of(value, where) for value in values]
    return np.array(ends, dtype=float)


def verify_box(box: StoredBox, budget: int) -> None:
    """Verify an operating box, with at most `budget` boxes."""
    if box.law is None:
        raise Rejection(Status.UNDECIDED, "the file lacks the instructions of the law")
    if box.status is Status.REFUTED:
        _refuted(box)
    require(box.status is Status.PROVED, Status.UNDECIDED, "the file claims no proof")
    margin = box.margin
    if margin is None or not margin > box.least or not box.least >= 0.0:
        raise Rejection(Status.UNDECIDED, "the margin is not above the required margin")
    if box.demand:
        require(box.least >= box.law["lowest"], Status.UNDECIDED, "the law is damped at the margin")
        own = np.array(box.law["w"][: box.law["shape"]])
        require(bool((own >= box.demand["speeds"]).all()), Status.UNDECIDED, "speeds do not agree")
        sound = np.isfinite(box.lower).all() and np.isfinite(box.upper).all()
        sound &= bool((box.lower >= box.limits[:, 0]).all())
        sound &= bool((box.upper <= box.limits[:, 1]).all())
        require(bool(sound), Status.UNDECIDED, "a bound of a control is not within its limits")
    check = _Check(box, margin)
    waiting = [box.ranges]
    looked, most = 0, check.most
    while waiting:
        batch, waiting = np.array(waiting[-most:]), waiting[:-most]
        spend(check.cost * len(batch))
        looked += len(batch)
        require(looked <= budget, Status.UNDECIDED, "more boxes are needed than allowed")
        good, shares = check(batch)
        for one, share in zip(batch[~good], shares[~good], strict=True):
            middle = (one[:, 0] + one[:, 1]) / 2
            apart = (one[:, 0] < middle) & (middle < one[:, 1])
            require(bool(apart.any()), Status.UNDECIDED, "a bound is not confirmed at a point")
            width = np.where(np.isfinite(share).all(), share, one[:, 1] - one[:, 0])
            k = int(np.argmax(np.where(apart, width, -1.0)))
            for side in (0, 1):
                half = one.copy()
                half[k, 1 - side] = middle[k]
                waiting.append(half)


class _Check:
    """Vectorised check of the claims over boxes."""

    def __init__(self, box: StoredBox, margin: float) -> None:
        assert box.law is not None
        self.box, self.margin, self.law = box, margin, box.law
        self.square = float((Interval(np.array(margin))).square().hi)
        entries = sum(len(r) * len(r[0]) for r in box.programs["matrices"].results.values() if r)
        entries *= len(box.ranges) + 2
        self.cost = 0.1 * entries * self.law["size"]
        self.most = int(min(_BATCH, max(1, _ENTRIES // max(entries, 1))))
        require(entries <= _ENTRIES, Status.UNDECIDED, "the law has more entries than are allowed")
        self.D = np.diag(np.array(self.law["scales"], dtype=float))
        self.w = np.array(self.law["w"], dtype=float)
        if not len(self.w):
            return
        n = len(self.w)
        pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        w = Interval(self.w)
        one = Interval(np.ones(1))
        parts = [one, w, w.square(), *(w[[i]] * w[[j]] for i, j in pairs)]
        self.scale = Interval(
            *(np.concatenate([getattr(p, e) for p in parts]) for e in ("lo", "hi"))
        )
        # The constant is 1, squares are in [0, 1] and other products in [-1, 1] of their bounds.
        self.least = np.array([1.0, *[-1.0] * n, *[0.0] * n, *[-1.0] * len(pairs)])
        given = ("pose_error", "velocity_error", "acceleration")
        sides = [[_ball(v) for v in box.demand[name]] for name in given]
        self.command = cases(box.programs["command"], sides)["command"].size()[0, 0, :, 0]
        self.error = [_ball(v) for v in box.demand["velocity_error"]]

    def __call__(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether the claims hold over each box, and the looseness due to each coordinate."""
        count, k = boxes.shape[:2]
        low, high = boxes[..., 0].T, boxes[..., 1].T
        middle = np.clip((low + high) / 2, low, high)
        half = np.maximum(middle - low, high - middle)
        half = np.where(low == high, 0.0, np.nextafter(half, np.inf))
        unit = np.zeros((k, k, 1))
        unit[range(k), range(k)] = 1.0
        point: list[Pair] = [
            (Interval(np.stack([middle[i], low[i]]), np.stack([middle[i], high[i]])),
             Interval(np.repeat(unit[i], count, axis=1)))
            for i in range(k)
        ]  # fmt: skip
        found = run(self.box.programs["matrices"], [point])
        parts = {}
        for name, (value, slope) in found.items():
            ends = (np.broadcast_to(e[0], (count, *e.shape[2:])) for e in (value.lo, value.hi))
            here = Interval(*ends)
            slope = slope or Interval(np.zeros((0, count, *here.shape[1:])))
            parts[name] = here, slope * half[..., None, None]
        try:
            good, shares = self._margin(parts)
            if "regularity" in self.box.programs:
                still: list[Pair] = [(v, None) for v, _ in point]
                known = run(self.box.programs["regularity"], [still])["regularity"][0]
                good &= known.lo[-1, :, 0, 0] >= self.margin
            if len(self.w):
                fine, more = self._torque(parts)
                good, shares = good & fine, shares + more
        except np.linalg.LinAlgError:
            return np.zeros(count, dtype=bool), np.full((count, k), np.nan)
        return good, shares

    def _margin(self, parts: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        own, mass = (_middle(parts[name][0]) for name in ("decoupling", "mass"))
        X = np.linalg.solve(mass, own.swapaxes(1, 2))
        values, vectors = np.linalg.eigh(own @ X)
        lost = values[:, 0] < self.square * (1 - 1e-9)
        require(not lost.any(), Status.UNDECIDED, "the margin is smaller at a point")
        scale = vectors / np.sqrt(np.maximum(values, 1e-300))[:, None, :]
        right, outer = X @ scale, np.linalg.inv(np.linalg.cholesky(mass)).swapaxes(1, 2)
        back = scale.swapaxes(1, 2)

        def quadratic(k: int) -> Interval:
            once = Interval(back) @ parts["decoupling"][k] @ right
            found: Interval = once + once.T - Interval(right).T @ parts["mass"][k] @ right
            return found

        def turned(k: int) -> Interval:
            found: Interval = Interval(outer).T @ parts["mass"][k] @ outer
            return found

        moved = quadratic(1).size()
        whole = quadratic(0) - (Interval(back) @ scale) * self.square
        good = _definite(whole, moved) & _definite(turned(0), turned(1).size())
        return good, moved.sum(axis=-1).max(axis=-1).T

    def _torque(self, parts: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        box, size = self.box, self.law["size"]
        names = ("decoupling", "mass", "actuation", "velocity")
        W, M, E, V = (parts[name] for name in names)
        P = [part * self.scale for part in parts["products"]]
        B, C = [part[..., :size, :] for part in P], [part[..., size:, :] for part in P]
        rows = np.broadcast_to(self.D, (*W[0].shape[:1], size, size))
        blank = np.zeros_like(rows)
        right = np.concatenate([rows, -_middle(B[0])], axis=-1)
        Z = np.linalg.solve(_middle(W[0]), right)
        forces = _middle(M[0]) @ Z + np.concatenate([blank, _middle(C[0])], axis=-1)
        F = np.linalg.solve(_middle(E[0]), forces)
        Wi, Ei = _inverse(_over(W), _middle(W[0])), _inverse(_over(E), _middle(E[0]))
        gain: Interval = Ei @ (_over(M) @ Wi)

        def moved(k: int) -> Interval:
            plain = Interval(blank if k == 0 else np.zeros((*W[1].shape[:2], size, size)))
            first = join(plain if k else Interval(rows), -B[k]) - W[k] @ Z
            second = M[k] @ Z + join(plain, C[k]) - E[k] @ F
            found: Interval = gain @ first + Ei @ second
            return found

        def load(velocity: Interval) -> Interval:
            ends = self._loads(velocity)
            least = np.tile(self.least, (len(ends), 1))
            low, high = (np.concatenate(p, axis=1) for p in ((-ends, least), (ends, least**0.0)))
            return Interval(low, high)[..., None]

        there, loads = Interval(F) + moved(0), load(_over(V))
        needed, (first, last) = there @ load(V[0]), box.verified
        lost = (needed.lo[..., 0] < first) | (needed.hi[..., 0] > last)
        require(not lost.any(), Status.UNDECIDED, "a control input may need more at a point")
        here, changes = there @ loads, Interval(moved(1).size()) @ Interval(loads.size())
        lower, upper = here.lo[..., 0], here.hi[..., 0]
        for change in changes.hi[..., 0]:
            lower = np.nextafter(lower - change, -np.inf)
            upper = np.nextafter(upper + change, np.inf)
        good = (lower >= first) & (upper <= last)
        # Weight each control input by its reserve.
        widths = np.minimum(last - needed.hi[..., 0], needed.lo[..., 0] - first)
        shares = (changes.hi[..., 0] / np.maximum(widths, 1e-300)).max(axis=-1).T
        return np.asarray(good.all(axis=1)), shares

    def _loads(self, velocity: Interval) -> np.ndarray:
        """Largest magnitude of each command, shape (boxes, size)."""
        fastest = (Interval(velocity.size()) @ Interval(self.w)[:, None]).hi[..., 0]
        v: list[Pair] = [(Interval(np.stack([-f, -f]), np.stack([f, f])), None) for f in fastest.T]
        error: list[Pair] = [(one, None) for one in self.error]
        carried = run(self.box.programs["carried"], [v, error])["carried"][0].size()[1, :, :, 0]
        command = (Interval(self.command) + Interval(carried)).hi
        mixing = np.array(self.law["mixing"], dtype=float)
        squares = Interval(command).square()[:, None, :] @ Interval(mixing.T)
        mixed = root(Interval(np.maximum(squares.hi[:, 0, :], 0.0))).hi
        return np.asarray(np.where(mixing.sum(axis=1) == 1, command, mixed))


def _refuted(box: StoredBox) -> None:
    """Confirm or reject the counterexample; always raises `Rejection`."""
    law, weak = box.law, box.weak
    assert law is not None
    if weak is None:
        raise Rejection(Status.UNDECIDED, "no counterexample is given")
    q = floats_of(weak, "q", "counterexample", len(law["neutral"]))
    x, places = q[law["places"]], law["places"]
    inside = ((box.ranges[:, 0] <= x) & (x <= box.ranges[:, 1])).all()
    elsewhere = np.delete(q - np.array(law["neutral"]), places)
    require(bool(inside and not elsewhere.any()), Status.UNDECIDED,
            "the counterexample is not in the box")  # fmt: skip
    small = _small(box, x) if weak.get("margin") is not None else _strong(box, weak, q)
    require(small, Status.UNDECIDED, "the counterexample does not contradict the claim")
    raise Rejection(Status.REFUTED, "the file's counterexample holds")


def _small(box: StoredBox, x: np.ndarray) -> bool:
    """Whether the margin at x is at most `least`, from a direction in which it is small."""
    point = [[_ball(0.0, v) for v in x] or [_ball(0.0)]]
    if "regularity" in box.programs:
        value = cases(box.programs["regularity"], point)["regularity"]
        if value.hi[0, 0, 0, 0] <= box.least:
            return True
    found = cases(box.programs["matrices"], point)
    W, M = (found[name][0] for name in ("decoupling", "mass"))
    middle = _middle(M)
    direction = np.linalg.eigh(_middle(W) @ np.linalg.solve(middle, _middle(W).swapaxes(1, 2)))[1]
    d = direction[..., :1]
    pushed = W.T @ d
    # p M^-1 p = p y + y (p - M y) + r M^-1 r with y near M^-1 p and r the small rest.
    square = pushed.T @ (_inverse(M, middle) @ pushed)
    length = Interval(d).T @ d
    bound = root(Interval(np.zeros(1), (square * inverse(length)).hi[:, 0, 0])).hi
    return bool((bound <= box.least).all())


def _strong(box: StoredBox, weak: dict[str, Any], q: np.ndarray) -> bool:
    """Whether the stated state needs a torque beyond a limit."""
    law = box.law
    assert law is not None
    if "state" not in box.programs or weak.get("control") not in law["controls"]:
        return False
    i, size = law["controls"].index(weak["control"]), law["size"]
    counts = {"s": law["shape"], "pose": None, "twist": size, "acceleration": size}
    s, pose, twist, acceleration = (
        floats_of(weak, name, "counterexample", count) for name, count in counts.items()
    )
    parts = [q, s, pose, twist, acceleration]
    found = cases(box.programs["state"], [[_ball(0.0, v) for v in part] for part in parts])
    names = ("decoupling", "residual", "mass", "forces", "actuation", "x", "ve")
    W, r, M, C, E, x, ve = (found[name][0] for name in names)
    demand = box.demand
    sizes = ((x.size(), "pose_error"), (ve.size(), "velocity_error"))
    stated = all((part[0, :, 0] <= demand[name] + _NEAR).all() for part, name in sizes)
    stated &= bool((np.abs(s) <= demand["speeds"]).all())
    stated &= bool((np.abs(acceleration) <= demand["acceleration"]).all())
    forces = M @ (_inverse(W, _middle(W)) @ r) + C
    u = (_inverse(E, _middle(E)) @ forces)[0, i, 0]
    return bool(stated and (u.lo > box.limits[i, 1] or u.hi < box.limits[i, 0]))


def _ball(radius: float, middle: float | None = None) -> Interval:
    """Pair of intervals, at the middle and over the box, of a radius around a number."""
    low, high = (-radius, radius) if middle is None else (middle, middle)
    return Interval(np.full((2, 1), low), np.full((2, 1), high))


def _middle(a: Interval) -> np.ndarray:
    """Floats at the middle; a nonfinite matrix becomes the identity, which proves nothing."""
    values = a.lo / 2 + a.hi / 2
    bad = ~np.isfinite(values).all(axis=(-1, -2))
    if bad.any():
        values = np.array(values)
        values[bad] = np.eye(*values.shape[-2:])
    return np.asarray(values)


def _over(part: tuple[Interval, Interval]) -> Interval:
    """A matrix over the boxes: its value at the middle and all changes."""
    value = part[0]
    for change in part[1].size():
        value = value + Interval(-change, change)
    return value


def _inverse(a: Interval, middle: np.ndarray) -> Interval:
    """Inverses of all matrices near `middle`; NaN where they may be singular.

    With L W Q near the identity, R = 1 - L W Q, they are Q (1 + R + T) L with all entries of T
    below |R|^2 / (1 - |R|) in the norm of row sums.
    """
    left, values, right = np.linalg.svd(middle)
    size = 1.0 / np.sqrt(np.maximum(values, 1e-300))
    left = (left * size[..., None, :]).swapaxes(-1, -2)
    right = right.swapaxes(-1, -2) * size[..., None, :]
    one = np.eye(middle.shape[-1])
    rest = Interval(one) - Interval(left) @ a @ right
    ones = Interval(np.ones((middle.shape[-1], 1)))
    norm = (Interval(rest.size()) @ ones).hi.max(axis=(-1, -2))
    norm = np.where(norm < 0.9, norm, np.nan)
    tail = (Interval(norm).square() * inverse(1.0 - Interval(norm))).hi[..., None, None]
    found: Interval = Interval(right) @ ((rest + one + Interval(-tail, tail)) @ left)
    return found


def _definite(whole: Interval, moved: np.ndarray) -> np.ndarray:
    """Whether all symmetric matrices are positive definite, by diagonal dominance."""
    spend(float(moved.size) * 0.1)
    n = whole.shape[-1]
    off = whole.size()
    off[..., range(n), range(n)] = 0.0
    total = Interval(off)
    for change in moved:
        total = total + change
    rows = (total @ Interval(np.ones((n, 1)))).hi[..., 0]
    diagonal = whole.lo[..., range(n), range(n)]
    return np.asarray((diagonal > rows).all(axis=-1))
