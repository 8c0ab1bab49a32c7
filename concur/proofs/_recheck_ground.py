"""Loads and friction of a rover over leaves, for the checker of proofs.

With the force F and the moment M of the whole robot about the point of the ground below the axle,
which are W1 (nu + d) + W2[y, y] + W0, supports at p_j carry N with sum N_j = F_z, sum y_j N_j = M_x
and sum x_j N_j = -M_y. Of all N with this balance, springs of compliance c_j have the one with the
least sum of c_j N_j^2. Both wheels push along with X, X_1 + X_2 = F_x and y_1 X_1 + y_2 X_2 = -M_z.

A push d on the outputs is that of forces f = R^T M R d at their points, R from y to the rates of
(v, omega, joints) and M the mass matrix for them: the power f.y is that of M R d with R y.

**What holds.** Each bound is one for every point of the leaf and all y, nu, d in their sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_arm import Forces, Rover
from concur.proofs._recheck_leaves import (
    ROWS,
    Entry,
    Sets,
    Table,
    Tensor,
    even,
    force,
    norms,
    tensor,
    total,
)
from concur.proofs._recheck_numbers import LEVI
from concur.proofs._recheck_smooth import Floats, Smooth, constant, product, require, stack


@dataclass(frozen=True, eq=False)
class Stand:
    """Contacts of a rover with the ground.

    Parameters
    ----------
    rover : Rover
        Numbers of the robot.
    entries : list of tuple
        The quantities.
    rows : numpy.ndarray
        From force and moment about the axle, at the height of the base's origin, to loads, X of
        both wheels and F_y; or to the moments about all edges, (k, 6).
    parts : list of list of int
        Rows of each quantity: one, or those along and across a wheel.
    height : float
        Of the ground in the frame of the base (m).
    masses : float
        Relative error of the inertia of each body.
    push : tuple of float
        Largest pushes on base and hand (m/s^2).
    """

    rover: Rover
    entries: list[Entry]
    rows: Floats
    parts: list[list[int]]
    height: float
    masses: float
    push: tuple[float, float]

    spatial = True

    def tensors(
        self, f: Forces, place: Smooth, phi: Smooth, made: dict[str, Smooth]
    ) -> tuple[dict[str, Tensor], dict[str, Floats]]:
        """Tensors of forces on the ground, of all bodies and of each, and effects of pushes."""
        parts, each = dict[str, Tensor](), []
        for b, (one, two, zero) in enumerate(f.wrenches):
            own = [
                product("ri,ijb->rjb", self.rows, one),
                even(product("ri,ijkb->rjkb", self.rows, two)),
                product("ri,ib->rb", self.rows, zero),
            ]
            each.append(own)
            parts |= {f"W{k}{b}": tensor(m) for k, m in zip((1, 2, 0), own, strict=True)}
        for k, name in enumerate(("W1", "W2", "W0")):
            parts[name] = tensor(total([own[k] for own in each]))
        if not any(self.push):
            return parts, {}
        metric = product("jib,jkb->ikb", f.rates, product("ijb,jkb->ikb", f.mass, f.rates))
        lever = product("ri,ijb->rjb", self.rows, self._levers(f.chain.hand))
        effect = product("ijb,jkb->ikb", lever, metric).bound
        pushed = [
            sum(
                push * np.sqrt((effect[own][:, rows] ** 2).sum(axis=(0, 1)))
                for push, rows in zip(self.push, ROWS, strict=True)
            )
            for own in self.parts
        ]
        return parts, {"pushed": np.array(pushed)}

    def _levers(self, hand: Smooth) -> Smooth:
        """From forces at the points of base and hand to force and moment about the axle, (6, 5)."""
        cells, n, level = hand.c.shape[-1], len(hand.g), np.eye(3)
        base = np.array([self.rover.lead, 0.0, self.rover.point_height])
        columns = []
        for e in level[:2]:
            values = np.concatenate([e, np.cross(base, e)])
            columns.append(constant(np.repeat(values[:, None], cells, axis=1), n))
        for e in level:
            # eps_ijk r_j e_k is r x e.
            moment = product("ij,jb->ib", LEVI @ e, hand)
            rest = constant(np.repeat(e[:, None], cells, axis=1), n)
            columns.append(stack([*(rest[i] for i in range(3)), *(moment[i] for i in range(3))]))
        return product("jib,kj->ikb", stack(columns), np.eye(5))

    def bounds(self, t: Table, sets: Sets) -> dict[str, Floats]:
        """Bounds of all quantities times their signs, (k, b), and the parts that halves reduce."""
        whole = force(t, ("W1", "W2", "W0"), sets, True)
        single = [
            force(t, (f"W1{b}", f"W2{b}", f"W0{b}"), sets, True)
            for b in range(len(self.rover.names) if self.masses else 0)
        ]
        most, loose = [], []
        for k, own in enumerate(self.parts):
            form, lines, rest = whole
            more, balls = form.parts(sets, own)
            every = [*more, *(v[own] for v in lines)]
            if len(own) == 1:
                reach = sum(np.abs(line[0]) for line in every) + rest[own[0]]
                for matrix, radius in balls:
                    reach = reach + np.sqrt((matrix[0] ** 2).sum(axis=0)) * radius
                value = reach - form.value[own[0]] + 1e-10 * np.abs(form.value[own[0]])
            else:
                value = norms(form.value[own], every, balls, rest[own])
            extra = np.sqrt((rest[own] ** 2).sum(axis=0))
            for form, lines, rest in single:
                more, balls = form.parts(sets, own)
                every = [*more, *(v[own] for v in lines)]
                value = value + self.masses * norms(form.value[own], every, balls, rest[own])
                extra = extra + self.masses * np.sqrt((rest[own] ** 2).sum(axis=0))
            if any(self.push):
                value = value + t.plain["pushed"][k]
            most.append(value + 1e-12 * np.abs(value))
            loose.append(extra)
        for k, own in enumerate(self.parts):
            if len(own) > 1:
                wheel = own[0] - (len(self.rows) - 3)
                load = -most[wheel]
                share = np.where(load > 0.0, most[k] / load * (1 + 1e-12), np.inf)
                least = np.maximum(most[k] - loose[k], 0.0) / np.abs(load + loose[wheel])
                most[k] = share
                loose[k] = np.where(np.isfinite(share), share - np.minimum(least, share), np.inf)
        return {"ground": np.array(most), "ground_rest": np.array(loose)}


def stand_of(robot: Any, rover: Rover, statement: Any) -> Stand:
    """Contacts of a statement; rejects those that are not of the robot's wheels."""
    ground = statement.ground
    wheels = [wheel.body for wheel in robot.wheels]
    bodies = {body.name: body for body in robot.bodies}
    places, names = np.array(ground.places, dtype=float), list(ground.names)
    sound = len(names) == len(places) and len(set(names)) == len(names) > 2
    require(sound and names[:2] == wheels, "ground: other contacts than wheels and supports")
    require(len(ground.least_load) == len(names), "ground: another number of least loads")
    own = [np.array(bodies[name].placement.translation) for name in wheels]
    same = np.abs(places[:2] - [at[:2] for at in own]).max() <= 1e-12
    heights = [at[2] - wheel.radius for at, wheel in zip(own, robot.wheels, strict=True)]
    same = same and np.abs(np.array(heights) - ground.height).max() <= 1e-9
    require(bool(same), "ground: wheels at other places than those of the robot")
    points = places + np.array([rover.ahead, 0.0])
    flat = np.linalg.svd(points - points.mean(axis=0))[1]
    require(bool(flat.min() > 1e-6 * flat.max()), "ground: contacts in one line")
    loose = len(names) > 3 and ground.compliance is None
    require(ground.axle == (0 if loose else 2), "ground: another number of wheels with friction")
    # About a point on the ground, h below the origin: M - o x F.
    shift = np.eye(6)
    shift[3, 1], shift[4, 0] = ground.height, -ground.height
    push = tuple(statement.push) or (0.0, 0.0)
    given = (ground.height, float(statement.masses), push)
    if loose:
        rows, entries = _edges(points, names, ground.tipping)
        return Stand(rover, entries, rows @ shift, [[k] for k in range(len(rows))], *given)
    n = len(points)
    soft = np.ones(n) if ground.compliance is None else np.array(ground.compliance, dtype=float)
    require(soft.shape == (n,) and bool((soft > 0.0).all()), "ground: no compliance of each")
    balance = np.array([np.ones(n), points[:, 1], points[:, 0]])
    weighted = balance / soft
    rows = np.zeros((n + 3, 6))
    rows[:n, 2:5] = np.linalg.solve(weighted @ balance.T, weighted).T * [1.0, 1.0, -1.0]
    along = np.linalg.inv(np.array([np.ones(2), points[:2, 1]]))
    rows[n : n + 2, 0], rows[n : n + 2, 5] = along[:, 0], -along[:, 1]
    rows[n + 2, 1] = 1.0
    loads = zip(names, ground.least_load, strict=True)
    entries = [("load", name, "N", -1.0, float(least)) for name, least in loads]
    entries += [("grip", name, "", 1.0, ground.grip) for name in wheels]
    parts = [*([k] for k in range(n)), [n, n + 2], [n + 1, n + 2]]
    return Stand(rover, entries, rows @ shift, parts, *given)


def _edges(points: Floats, names: list[str], least: float) -> tuple[Floats, list[Entry]]:
    """Moments about all edges: pairs with no other contact to the right of the way."""
    rows, entries = [], list[Entry]()
    for i, a in enumerate(points):
        for j, b in enumerate(points):
            way = b - a
            side = way[0] * (points[:, 1] - a[1]) - way[1] * (points[:, 0] - a[0])
            along = (points - a) @ way
            small = 1e-12 * np.abs(points).max() ** 2
            line = np.abs(side) <= small
            between = (along[line] >= -small) & (along[line] <= way @ way + small)
            if i != j and (side[~line] > 0.0).all() and between.all():
                x, y = np.array([-way[1], way[0]]) / np.hypot(*way)
                rows.append([0.0, 0.0, -(x * a[0] + y * a[1]), y, -x, 0.0])
                entries.append(("tipping", f"{names[i]} to {names[j]}", "N m", -1.0, float(least)))
    require(len(rows) > 2, "ground: contacts in one line")
    return np.array(rows), entries
