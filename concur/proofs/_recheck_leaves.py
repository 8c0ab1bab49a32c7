"""Bounds over the leaves of a proof: disturbances, torques, speeds, angles, margins.

With K = A1^-1 (`_recheck_arm`) the output's acceleration for forces F is K F, so that, all bodies
together, K F = nu + K A2[y, y] + K A0. For a body's relative error 1 it is E1 (nu + d) + E2[y, y]
+ E0 with E = K A_b, and the command's rate obeys, as K A1 = 1,

    K udot = nudot + 2 Q2[y, ydot] + sum_i rho'_i (G1_i nu + G2_i[y, y] + G0_i),

with Q2 = sum E2 and G_i = K dA / drho_i. In axes of the base ydot = nu + d - omega x y.

**What holds.** Each bound is one for every point of the leaf and all y, nu, d in their sets: exact
linear forms over balls, and the rest by a majorant, a polynomial with positive coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from concur.proofs._recheck_arm import Angles, Forces, Rover, dynamics, slope_of
from concur.proofs._recheck_smooth import UP, Floats, Smooth, inverse, product, symbols

ROWS = (slice(0, 2), slice(2, 5))
"""Coordinates of base and hand."""

Entry = tuple[str, str, str, float, "float | None"]
"""Kind, name, unit, sign and limit of a quantity."""

Z = np.zeros((5, 5))
for _i in (0, 2):
    Z[_i, _i + 1], Z[_i + 1, _i] = -1.0, 1.0


@dataclass(frozen=True, eq=False)
class Tensor:
    """Values in the middle, slopes and the rest over cells; the last axis counts cells."""

    c: Floats
    g: Floats
    rest: Floats

    def take(self, index: Floats) -> Tensor:
        """Some of the cells."""
        return Tensor(self.c[..., index], self.g[..., index], self.rest[..., index])

    @property
    def size(self) -> Floats:
        """Bound of the absolute values."""
        return np.asarray(np.abs(self.c) + np.abs(self.g).sum(axis=0) + self.rest)


def tensor(m: Smooth) -> Tensor:
    return Tensor(m.c, m.g, (np.abs(m.h).sum(axis=0) + m.r[0]) * UP)


@dataclass(frozen=True, eq=False)
class Table:
    """What depends on the cell only: tensors and bounds, the last axis counts cells."""

    parts: dict[str, Tensor]
    plain: dict[str, Floats]

    def take(self, index: Floats) -> Table:
        """Some of the cells."""
        parts = {name: part.take(index) for name, part in self.parts.items()}
        return Table(parts, {name: part[..., index] for name, part in self.plain.items()})


class Extra(Protocol):
    """Further values over leaves that a statement asks for."""

    spatial: bool
    """Whether wrenches are needed."""

    def tensors(
        self, f: Forces, place: Smooth, phi: Smooth, made: dict[str, Smooth]
    ) -> tuple[dict[str, Tensor], dict[str, Floats]]:
        """Parts of a table over cells, of forces, places, angles and the table's own tensors."""

    def bounds(self, t: Table, sets: Sets) -> dict[str, Floats]:
        """Values over leaves."""


class Inertia:
    """Bounds of the torques for accelerations of base and hand."""

    spatial = False

    def tensors(
        self, f: Forces, place: Smooth, phi: Smooth, made: dict[str, Smooth]
    ) -> tuple[dict[str, Tensor], dict[str, Floats]]:
        """As of `Extra`."""
        size = made["U1"].bound
        rows = np.array([np.sqrt((size[:, r] ** 2).sum(axis=1)) for r in ROWS])
        return {}, {"inertia": rows.swapaxes(0, 1)}

    def bounds(self, t: Table, sets: Sets) -> dict[str, Floats]:
        """As of `Extra`."""
        return {}


def table(
    rover: Rover,
    middle: Floats,
    half: Floats,
    angles: Angles,
    scales: tuple[Floats, Floats],
    extras: Sequence[Extra] = (),
) -> Table:
    """Tensors over cells; `scales` are those of the rows and columns of the decoupling matrix."""
    place = symbols(middle, half)
    f: Forces = dynamics(rover, place, angles.phi, any(extra.spatial for extra in extras))
    one, two, zero = (total(part) for part in (f.linear, f.quadratic, f.fixed))
    back = inverse(one)
    two = even(two)
    p = rover.controls
    made = {
        "U1": product("ij,jkb->ikb", p, one),
        "U2": product("ij,jklb->iklb", p, two),
        "U0": product("ij,jb->ib", p, zero),
        "S": product("ij,jkb->ikb", rover.speeds, f.rates),
        "L": f.moved,
        "Q2": product("ijb,jklb->iklb", back, two),
    }
    for k in range(len(f.linear)):
        made[f"E1{k}"] = product("ijb,jkb->ikb", back, f.linear[k])
        made[f"E2{k}"] = product("ijb,jklb->iklb", back, even(f.quadratic[k]))
        made[f"E0{k}"] = product("ijb,jb->ib", back, f.fixed[k])
    slopes = []
    for i in range(len(half)):
        along = [_along(m, i) * (1 / half[i]) for m in (one, two, zero)]
        made[f"G1{i}"] = product("ijb,jkb->ikb", back, along[0])
        made[f"G2{i}"] = product("ijb,jklb->iklb", back, along[1])
        made[f"G0{i}"] = product("ijb,jb->ib", back, along[2])
        slopes.append(back.slope[i] / half[i])
    parts = {name: tensor(m) for name, m in made.items()}
    # From controls to outputs: forces on (v, omega, joints) are P^-1 u.
    own = np.abs(np.linalg.inv(p)) * (1 + 1e-9)
    response = product("ijb,jk->ikb", back, np.linalg.inv(p))
    rows, columns = scales
    metric = product("jib,jkb->ikb", f.rates, product("ijb,jkb->ikb", f.mass, f.rates))
    metric = metric * (1 / np.outer(rows, rows))[:, :, None]
    sound = np.isfinite(metric.c).all(axis=(0, 1)) & np.isfinite(metric.reach).all(axis=(0, 1))
    inner = np.moveaxis(np.where(sound, metric.c, 0.0), -1, 0)
    top = np.linalg.eigvalsh((inner + inner.transpose(0, 2, 1)) / 2)[:, -1] * (1 + 1e-10)
    top = np.where(sound, top + np.sqrt((metric.reach**2).sum(axis=(0, 1))), np.inf)
    whole = parts["S"].size * columns[:, None, None] / rows[None, :, None]
    phi = angles.phi
    plain = {
        "low": phi.c - phi.reach,
        "high": phi.c + phi.reach,
        "margin": (1 - 1e-10) / np.sqrt(top),
        "pivot": (1 - 1e-10) / np.sqrt((whole**2).sum(axis=(0, 1))),
        "response": np.array([np.sqrt((response.bound[r] ** 2).sum(axis=0)) for r in ROWS]),
        "response_rate": np.einsum("nijb,jk->nikb", np.array(slopes), own),
    }
    for extra in extras:
        more, further = extra.tensors(f, place, phi, made)
        parts |= more
        plain |= further
    return Table(parts, plain)


def total(parts: list[Smooth]) -> Smooth:
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found


def even(m: Smooth) -> Smooth:
    """Symmetric part of bilinear forms."""
    c, g, h, r = (np.swapaxes(part, -3, -2) for part in m.parts)
    return (m + Smooth(c, g, h, r)) * 0.5


def _along(m: Smooth, i: int) -> Smooth:
    """Slope along a symbol, with its remainder; its own slopes are unknown."""
    found = slope_of(m, i)
    found.r[0] = m.r[1 + i]
    found.r[1:] = np.inf
    return found


@dataclass(frozen=True, eq=False)
class Vector:
    """A vector over leaves: middle, lines, the coefficients of balls, and the rest.

    c (5, b), lines (n, 5, b) of symbols in [-1, 1], bound of the rest (5, b).
    """

    c: Floats
    lines: Floats
    rest: Floats


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of y, nu and w = nu's own rate without turning, and radii (2, b) of x, ve, d.

    `places` are points in the world from the axle in axes of the base, each a vector (3, b).
    """

    y: Vector
    nu: Vector
    w: Vector
    x: Floats
    ve: Floats
    d: Floats
    gains: Floats
    """kp and kd of base and hand, (2, 2)."""
    places: Sequence[Vector] = ()


def _expand(radii: Floats) -> Floats:
    return np.repeat(radii, (2, 3), axis=0)


def spread(sets: Sets) -> dict[str, Floats]:
    """Largest deviations by component."""
    kp, kd = (_expand(g[:, None]) for g in sets.gains)
    x, ve, d = (_expand(part) for part in (sets.x, sets.ve, sets.d))

    def own(v: Vector) -> Floats:
        return np.asarray(np.abs(v.lines).sum(axis=0) + v.rest)

    return {
        "y": own(sets.y) + ve,
        "nu": own(sets.nu) + kp * x + kd * ve,
        "w": own(sets.w) + np.abs(kd * kp) * x + np.abs(kd**2 - kp) * ve + kd * d,
        "d": d,
    }


def norms(
    c: Floats, lines: list[Floats], balls: list[tuple[Floats, Floats]], rest: Floats
) -> Floats:
    """Bound of |V| (b) for V = c + sum lines + sum M e + rest, |e| <= radius; axis 0 is that of V.

    The smaller of the sum of all lengths, and of the length of the parts along c and across it.
    """
    length = np.sqrt((c**2).sum(axis=0))
    unit = c / np.where(length > 0.0, length, 1.0)
    along, across, total = length, 0.0 * length, length
    for line in lines:
        part = (unit * line).sum(axis=0)
        along = along + np.abs(part)
        across = across + np.sqrt(((line - unit * part) ** 2).sum(axis=0))
        total = total + np.sqrt((line**2).sum(axis=0))
    for matrix, radius in balls:
        row = np.einsum("ib,ijb->jb", unit, matrix)
        along = along + np.sqrt((row**2).sum(axis=0)) * radius
        across = across + _spectral(matrix - unit[:, None] * row[None]) * radius
        total = total + _spectral(matrix) * radius
    found = np.minimum(np.hypot(along, across), total) + np.sqrt((rest**2).sum(axis=0))
    return np.asarray(found * (1 + 1e-10))


def _spectral(matrix: Floats) -> Floats:
    """Bound of the spectral norm, by row sums of M M^T and by the trace of its fourth power."""
    square = np.einsum("ikb,jkb->ijb", matrix, matrix)
    rows = np.abs(square).sum(axis=1).max(axis=0)
    fourth = np.einsum("ikb,kjb->ijb", square, square)
    trace = np.sqrt(np.sqrt((fourth**2).sum(axis=(0, 1))))
    return np.asarray(np.sqrt(np.minimum(rows, trace)))


class Linear:
    """First-order form of a vector function of (y, nu, w, d) at its middle."""

    def __init__(self, value: Floats, slopes: dict[str, Floats]) -> None:
        self.value, self.slopes = value, slopes

    def parts(
        self, sets: Sets, rows: slice | list[int]
    ) -> tuple[list[Floats], list[tuple[Floats, Floats]]]:
        """Lines of time and heading, and matrices of the balls, in some rows."""
        j = {name: own[rows] for name, own in self.slopes.items()}
        lines = [
            sum(
                np.einsum("ijb,jb->ib", j[name], getattr(sets, name).lines[k])
                for name in ("y", "nu", "w")
                if name in j
            )
            for k in range(len(sets.y.lines))
        ]
        balls = []
        for o, own in enumerate(ROWS):
            kp, kd = sets.gains[:, o]
            zero = np.zeros_like(j["nu"][:, own])
            turn = j["w"][:, own] if "w" in j else zero
            push = j["d"][:, own] if "d" in j else zero
            nu, y = j["nu"][:, own], j["y"][:, own]
            balls.append((kp * nu - kd * kp * turn, sets.x[o]))
            balls.append((y - kd * nu + (kd**2 - kp) * turn, sets.ve[o]))
            balls.append((push - kd * turn, sets.d[o]))
        return lines, balls


def quadratic(t: Floats, a: Floats, b: Floats) -> Floats:
    return np.asarray(
        np.einsum("ijkb,jb,kb->ib", t, a, b, optimize=["einsum_path", (0, 1), (0, 1)])
    )


def times(t: Floats, a: Floats) -> Floats:
    return np.asarray(np.einsum("ijb,jb->ib", t, a))


def force(
    t: Table,
    names: tuple[str, str, str],
    sets: Sets,
    pushed: bool,
    linear: str = "",
) -> tuple[Linear, list[Floats], Floats]:
    """T1 (nu + d) + T2[y, y] + T0 + L y: first-order form, slopes along the cell, and the rest.

    Without names of T1, T2 or L these are zero; d counts if `pushed` is true.
    """
    zero = t.parts[names[2]]
    y, nu, away = sets.y.c, sets.nu.c, spread(sets)
    value, rest, lines = 1.0 * zero.c, 1.0 * zero.rest, list(zero.g)
    slopes = {name: np.zeros((len(value), 5, y.shape[-1])) for name in ("nu", "y")}
    if names[0]:
        one = t.parts[names[0]]
        dn = away["nu"] + away["d"] * pushed
        value = value + times(one.c, nu)
        lines = [line + times(g, nu) for line, g in zip(lines, one.g, strict=True)]
        rest = rest + times(one.rest, np.abs(nu)) + times(one.size - np.abs(one.c), dn)
        rest = rest + times(np.abs(one.c), np.abs(sets.nu.rest))
        slopes["nu"] = one.c
        if pushed:
            slopes["d"] = one.c
    if names[1]:
        two = t.parts[names[1]]
        reach = two.size - np.abs(two.c)
        value = value + quadratic(two.c, y, y)
        lines = [line + quadratic(g, y, y) for line, g in zip(lines, two.g, strict=True)]
        slopes["y"] = 2 * np.einsum("ijkb,jb->ikb", two.c, y)
        rest = rest + quadratic(two.rest, np.abs(y), np.abs(y))
        rest = rest + quadratic(np.abs(two.c), away["y"], away["y"])
        rest = rest + quadratic(reach, away["y"], 2 * np.abs(y) + away["y"])
    if linear:
        part = t.parts[linear]
        value = value + times(part.c, y)
        lines = [line + times(g, y) for line, g in zip(lines, part.g, strict=True)]
        rest = rest + times(part.rest, np.abs(y)) + times(part.size - np.abs(part.c), away["y"])
        slopes["y"] = slopes["y"] + part.c
    rest = rest + times(np.abs(slopes["y"]), np.abs(sets.y.rest))
    return Linear(value, slopes), lines, rest


def _rate(t: Table, sets: Sets, lead: float) -> tuple[Linear, list[Floats], Floats]:
    """K udot: first-order form, slopes along the cell, and the rest."""
    y, nu, w = sets.y.c, sets.nu.c, sets.w.c
    away = spread(sets)
    eye = np.eye(5)[:, :, None]
    z = Z[:, :, None]
    cells = y.shape[-1]
    first = np.zeros((1, 5, cells))
    first[0, 1] = 1 / lead

    def turn(a: Floats) -> Floats:
        return np.asarray(Z @ a)

    c = {name: part.c for name, part in t.parts.items()}
    g = {name: part.g for name, part in t.parts.items()}
    s = {name: part.size for name, part in t.parts.items()}
    omega = y[1] / lead
    ydot, nudot = nu - omega * turn(y), w - omega * turn(nu)
    moved = times(c["L"], y)
    inner = [times(c[f"G1{i}"], nu) + quadratic(c[f"G2{i}"], y, y) + c[f"G0{i}"] for i in range(3)]
    value = nudot + 2 * quadratic(c["Q2"], y, ydot)
    value = value + sum(moved[i] * inner[i] for i in range(3))
    lines = []
    for k in range(3):
        along = 2 * quadratic(g["Q2"][k], y, ydot)
        go = times(g["L"][k], y)
        for i in range(3):
            bent = times(g[f"G1{i}"][k], nu) + quadratic(g[f"G2{i}"][k], y, y) + g[f"G0{i}"][k]
            along = along + go[i] * inner[i] + moved[i] * bent
        lines.append(along)
    left = 2 * np.einsum("ijkb,jb->ikb", c["Q2"], y)
    right = 2 * np.einsum("ijkb,kb->ijb", c["Q2"], ydot)
    ydot_y = -omega * z - turn(y)[:, None] * first[0][None]
    jy = -turn(nu)[:, None] * first[0][None] + right + np.einsum("ijb,jkb->ikb", left, ydot_y)
    jn = -omega * z + left
    for i in range(3):
        jy = jy + inner[i][:, None] * c["L"][i][None]
        jy = jy + moved[i] * 2 * np.einsum("ijkb,jb->ikb", c[f"G2{i}"], y)
        jn = jn + moved[i] * c[f"G1{i}"]
    form = Linear(value, {"y": jy, "nu": jn, "w": eye + 0 * jn, "d": left})
    # Majorant at the largest values, less what its first-order form has.
    za = np.abs(Z)

    def majorant(m: dict[str, Floats], a: Floats, b: Floats, e: Floats, d: Floats) -> Floats:
        o = a[1] / abs(lead)
        total = e + o * (za @ b) + 2 * quadratic(m["Q2"], a, b + d + o * (za @ a))
        go = times(m["L"], a)
        for i in range(3):
            total = total + go[i] * (
                times(m[f"G1{i}"], b) + quadratic(m[f"G2{i}"], a, a) + m[f"G0{i}"]
            )
        return np.asarray(total)

    low = {name: np.abs(own) for name, own in c.items()}
    a0, b0, e0 = np.abs(y), np.abs(nu), np.abs(w)
    size = [a0 + away["y"], b0 + away["nu"], e0 + away["w"], away["d"]]
    full = majorant(s, *size)
    base = majorant(low, a0, b0, e0, 0 * e0)
    # Its derivatives are exact by central differences: along the cell it is of degree 2, and along
    # the deviations of degree 4 in the scale k, p(k) = p0 + p1 k + ..., by five values.
    ends = [
        majorant({n: low[n] + k * np.abs(g[n]).sum(axis=0) for n in low}, a0, b0, e0, 0 * e0)
        for k in (1.0, -1.0)
    ]
    ks = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    weights = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12
    line = 0.0 * base
    for k, weight in zip(ks, weights, strict=True):
        if weight:
            line = line + weight * majorant(
                low, a0 + k * away["y"], b0 + k * away["nu"], e0 + k * away["w"], k * away["d"]
            )
    rest = np.maximum(full - base - line - (ends[0] - ends[1]) / 2, 0.0) + 1e-9 * full
    # The rests of y, nu, w are no part of the lines.
    rest = rest + times(np.abs(jy), sets.y.rest) + times(np.abs(jn), sets.nu.rest) + sets.w.rest
    return form, lines, rest


def _sizes(rest: Floats) -> Floats:
    """Norms of the rests of both outputs."""
    return np.array([np.sqrt((rest[r] ** 2).sum(axis=0)) for r in ROWS])


def bounds(t: Table, sets: Sets, rover: Rover) -> dict[str, Floats]:
    """Bounds over leaves; the last axis counts them. Halves reduce the parts named `..._rest`."""
    found: dict[str, Floats] = dict(t.plain)
    form, lines, rest = force(t, ("U1", "U2", "U0"), sets, False)
    torque = []
    for i in range(5):
        row = slice(i, i + 1)
        more, balls = form.parts(sets, row)
        torque.append(norms(form.value[row], [*more, *(v[row] for v in lines)], balls, rest[row]))
    found["torque"], found["torque_rest"] = np.array(torque), rest
    away = spread(sets)
    s = t.parts["S"]
    found["speed_rest"] = times(s.rest, np.abs(sets.y.c) + away["y"])
    speed = found["speed_rest"] + times(s.size, sets.y.rest)
    for matrix in (s.c, *s.g):
        speed = speed + np.abs(times(matrix, sets.y.c))
        speed = speed + sum(np.abs(times(matrix, line)) for line in sets.y.lines)
        for o, r in enumerate(ROWS):
            speed = speed + np.sqrt((matrix[:, r] ** 2).sum(axis=1)) * sets.ve[o]
    found["speed"] = speed * (1 + 1e-10)
    weights, loose = [], []
    for k in range(len(rover.names)):
        form, lines, rest = force(t, (f"E1{k}", f"E2{k}", f"E0{k}"), sets, True)
        own = []
        for r in ROWS:
            more, balls = form.parts(sets, r)
            own.append(norms(form.value[r], [*more, *(v[r] for v in lines)], balls, rest[r]))
        weights.append(own)
        loose.append(_sizes(rest))
    found["weights"] = np.array(weights).sum(axis=0) * (1 + 1e-12)
    found["weights_rest"] = np.array(loose).sum(axis=0)
    form, lines, rest = _rate(t, sets, rover.lead)
    held, parts = [], []
    for r in ROWS:
        more, balls = form.parts(sets, r)
        held.append(norms(form.value[r], [*more, *(v[r] for v in lines)], balls, rest[r]))
    for i in range(5):
        row = slice(i, i + 1)
        more, balls = form.parts(sets, row)
        own = [*more, *(v[row] for v in lines)]
        parts.append(norms(form.value[row], own, balls, rest[row]))
    found["held"], found["held_rest"] = np.array(held), _sizes(rest)
    # udot = U1 (K udot), as K is the inverse of U1.
    found["torque_rate"] = times(t.parts["U1"].size, np.array(parts))
    go = times(t.parts["L"].size, np.abs(sets.y.c) + away["y"])
    turn = np.einsum("nb,nikb->ikb", go, t.plain["response_rate"])
    found["response_rate"] = np.array([np.sqrt((turn[r] ** 2).sum(axis=0)) for r in ROWS])
    return found
