"""Kinematics and Newton-Euler equations of a rover with an arm, for the checker of proofs.

In axes of the base. With the velocity y of both outputs (base 2, hand 3) and their acceleration nu,
every force of a motion is, as a function of the hand's position rho relative to the base point,

    F_b = A1_b(rho) nu + A2_b(rho)[y, y] + A0_b(rho),

for each body b, in coordinates (v, omega, three joint rates): v is the speed of the axle along the
base, and y = (v, l omega) at a point l ahead of the axle. So velocities and accelerations need no
further symbols. The prover uses graphs of shape velocities instead.

**What holds.** `solve` returns angles that contain the root over the whole cell, and only it within
`unique`; `dynamics` returns tensors that contain the true ones at that root, with slopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_numbers import LEVI, rotation
from concur.proofs._recheck_smooth import (
    UP,
    Floats,
    Smooth,
    constant,
    inverse,
    product,
    require,
    stack,
    symbols,
)

UNIQUE = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
"""Radii within which a root has to be the only one, tried in turn (rad)."""

ROUNDS = 3
"""Turns in which slopes of the angles make their remainders smaller."""


@dataclass(frozen=True, eq=False)
class Link:
    """A body of the arm: frame in the one before, axis, mass, centre of mass, inertia about it."""

    shift: Floats
    turn: Floats
    axis: Floats
    mass: float
    com: Floats
    inertia: Floats


@dataclass(frozen=True, eq=False)
class Rover:
    """Numbers of a planar base with wheels on one axle, and of an arm of three joints.

    Parameters
    ----------
    lead : float
        l, from the axle to the base's point (m).
    ahead : float
        From the axle to the origin of the base's frame (m).
    gravity : float
        Downwards (m/s^2).
    base : list
        Of base and wheels: mass, centre of mass from the axle (x, y, z), inertia about it.
    spins : list
        Of wheels: rates for (v, omega), and the moment about the axle.
    point_height : float
        Height of the base's point in the frame of the base (m).
    links : list of Link
        The arm.
    tip : numpy.ndarray
        Hand in the last link (m).
    names : list of str
        Bodies: base and wheels, then links.
    controls : numpy.ndarray
        Matrix from forces on (v, omega, joints) to controls in the order of the robot.
    speeds : numpy.ndarray
        Matrix from (v, omega, joint rates) to shape velocities.
    """

    lead: float
    ahead: float
    gravity: float
    base: list[tuple[float, Floats, Floats]]
    spins: list[tuple[Floats, float]]
    point_height: float
    links: list[Link]
    tip: Floats
    names: list[str]
    controls: Floats
    speeds: Floats


def rover_of(robot: Any, outputs: Any) -> Rover:
    """Read the numbers of a mechanism; reject what the checker does not cover."""

    def need(holds: bool, what: str) -> None:
        require(bool(holds), f"robot: the checker covers {what} only")

    bodies = {body.name: body for body in robot.bodies}
    root = robot.base
    # A motor without gear and rotor gives its torque to its joint, as a driven joint has it.
    direct = all(m.ratios == {m.name: 1.0} and not m.rotor for m in robot.motors)
    plain = direct and not (robot.mimics or robot.steering or robot.springs)
    need(plain, "robots without mimics, steering and springs, and motors without gear and rotor")
    need(type(root.joint).__name__ == "Planar", "a planar base")
    need(tuple(root.joint.normal) == (0.0, 0.0, 1.0), "a horizontal plane")
    still = np.any(root.placement.translation) or not np.array_equal(
        rotation(root.placement.rotation), np.eye(3)
    )
    need(not still, "a base in inertial axes")
    need(tuple(robot.gravity[:2]) == (0.0, 0.0), "vertical gravity")
    need([o.group for o in outputs] == ["R2", "R3"], "outputs R2 and R3")
    need(outputs[0].body == root.name, "an R2 output of the base")
    need(all(o.relative_to is None for o in outputs), "outputs in inertial axes")
    need(outputs[0].axes == "xy" and outputs[1].axes == "xyz", "outputs along x, y, z")
    need(outputs[0].point[1] == 0.0, "a base point in the middle plane")
    chain, at = list[Any](), bodies[outputs[1].body]
    while at.name != root.name:
        chain.insert(0, at)
        at = bodies[at.parent]
    wheels = [bodies[w.body] for w in robot.wheels]
    need(len(chain) == 3 and len(wheels) == 2, "two wheels and three joints")
    need(len(bodies) == 6 and len({b.name for b in [*chain, *wheels]}) == 5, "no other bodies")
    need(all(type(b.joint).__name__ == "Revolute" for b in [*chain, *wheels]), "revolute joints")
    joints = [b.joint_label for b in robot.bodies[1:]]
    need(joints == list(robot.control_names), "a motor for each joint")
    need(robot.bodies[0].name == root.name, "the base first")
    axle = wheels[0].placement.translation[0]
    own = np.array(root.inertia.com) - [axle, 0, 0]
    base = [(root.inertia.mass, own, np.array(root.inertia.tensor))]
    spins = []
    for disk, body in zip(robot.wheels, wheels, strict=True):
        place, tensor = np.array(body.placement.translation), body.inertia.tensor
        round_ = np.array_equal(tensor, np.diag(np.diag(tensor))) and tensor[0, 0] == tensor[2, 2]
        need(round_ and body.inertia.com[0] == body.inertia.com[2] == 0.0, "round wheels")
        plain = disk.kind == "disk" and disk.axis is None and not np.any(disk.center)
        need(plain and disk.ground is None and disk.support is None, "plain disks")
        need(
            np.array_equal(rotation(body.placement.rotation), np.eye(3)),
            "wheels in the base's axes",
        )
        need(body.parent == root.name and place[0] == axle, "wheels on one axle of the base")
        side = float(body.joint.axis[1])
        need(tuple(body.joint.axis) in ((0.0, 1.0, 0.0), (0.0, -1.0, 0.0)), "lateral axles")
        own = place - [axle, 0, 0] + np.array(body.inertia.com)
        base.append((body.inertia.mass, own, np.array(tensor)))
        spins.append((side / disk.radius * np.array([1.0, -place[1]]), float(tensor[1, 1])))
    sides = {float(body.placement.translation[1]) for body in wheels}
    need(len(sides) == 2, "wheels on both sides")
    links = [
        Link(
            np.array(b.placement.translation) - ([axle, 0, 0] if k == 0 else [0, 0, 0]),
            rotation(b.placement.rotation),
            np.array(b.joint.axis) / np.linalg.norm(b.joint.axis),
            b.inertia.mass,
            np.array(b.inertia.com),
            b.inertia.tensor,
        )
        for k, b in enumerate(chain)
    ]
    own = [b.joint_label for b in [*wheels, *chain]]
    order = [own.index(name) for name in robot.control_names]
    speeds = np.eye(5)
    speeds[:2, :2] = np.array([spin[0] for spin in spins])
    return Rover(
        float(outputs[0].point[0]) - axle,
        -axle,
        -float(robot.gravity[2]),
        base,
        spins,
        float(outputs[0].point[2]),
        links,
        np.array(outputs[1].point),
        [root.name, *own],
        np.linalg.inv(speeds).T[order],
        speeds[order],
    )


@dataclass(frozen=True, eq=False)
class Chain:
    """Frames of the links in axes of the base, from the axle."""

    origins: list[Smooth]
    turns: list[Smooth]
    axes: list[Smooth]
    hand: Smooth
    jacobian: Smooth


def cross(a: Smooth | Floats, b: Smooth) -> Smooth:
    """Cross product of vectors (3, b) with arrays (3, ..., b)."""
    first = product("ijk,jb->ikb", LEVI, a)
    rank = b.c.ndim - 2
    extra = "xyz"[:rank]
    return product(f"ikb,k{extra}b->i{extra}b", first, b)


def forward(rover: Rover, phi: Smooth) -> Chain:
    """Forward kinematics of angles (3, b)."""
    n, cells = len(phi.g), phi.c.shape[-1]
    turn = constant(np.repeat(np.eye(3)[:, :, None], cells, axis=2), n)
    place = constant(np.zeros((3, cells)), n)
    origins, turns, axes = [], [], []
    for k, link in enumerate(rover.links):
        place = place + product("ijb,j->ib", turn, link.shift)
        turn = product("ijb,jk->ikb", turn, link.turn)
        axes.append(product("ijb,j->ib", turn, link.axis))
        skew = LEVI.transpose(0, 2, 1) @ link.axis
        s, c = phi[k].sine(), phi[k].cosine()
        own = product("ij,b->ijb", skew, s) + product("ij,b->ijb", skew @ skew, 1.0 - c)
        turn = product("ijb,jkb->ikb", turn, own + np.eye(3)[:, :, None])
        origins.append(place)
        turns.append(turn)
    hand = place + product("ijb,j->ib", turn, rover.tip)
    columns = [cross(a, hand - o) for a, o in zip(axes, origins, strict=True)]
    jacobian = stack(columns)
    jacobian = product("jib,kj->ikb", jacobian, np.eye(3))
    return Chain(origins, turns, axes, hand, jacobian)


@dataclass(frozen=True, eq=False)
class Angles:
    """Angles over cells, and what is known of the root."""

    phi: Smooth
    radius: Floats
    unique: Floats
    solved: Floats

    def take(self, index: Floats) -> Angles:
        """Some of the cells."""
        own = (self.radius[:, index], self.unique[index], self.solved[index])
        return Angles(self.phi[:, index], *own)


def joined(parts: list[Angles]) -> Angles:
    """Angles over all cells of several."""
    phi = [np.concatenate(own, axis=-1) for own in zip(*(p.phi.parts for p in parts), strict=True)]
    rest = [
        np.concatenate([getattr(p, name) for p in parts], axis=-1)
        for name in ("radius", "unique", "solved")
    ]
    return Angles(Smooth(*phi), *rest)


def _relative(rover: Rover, place: Smooth) -> Smooth:
    """Position from the axle of a point at a position relative to the base's point."""
    return place + np.array([[rover.lead], [0.0], [0.0]])


def solve(rover: Rover, middle: Floats, half: Floats, guess: Floats) -> Angles:
    """Angles where the hand is at middle +- half (3, b) from the base's point; by Krawczyk."""
    place = symbols(middle, half)
    target = _relative(rover, place)
    phi = constant(guess, 3)
    with np.errstate(all="ignore"):
        for k in range(12):
            at = forward(rover, phi if k > 7 else constant(phi.c, 3))
            middle_slope = np.moveaxis(at.jacobian.c, -1, 0)
            sound = np.isfinite(middle_slope).all(axis=(1, 2))
            sound &= np.abs(np.linalg.det(np.where(sound[:, None, None], middle_slope, 0))) > 0
            y = np.moveaxis(
                np.linalg.inv(np.where(sound[:, None, None], middle_slope, np.eye(3))), 0, -1
            )
            off = product("ijb,jb->ib", y, at.hand - target)
            if k < 11:
                phi = phi - off
                phi = Smooth(phi.c, phi.g, phi.h, 0.0 * phi.r)
        defect = off.bound
        radius = np.full(phi.c.shape, np.inf)
        unique, solved = np.zeros(len(sound)), np.zeros(len(sound), dtype=bool)
        for size in UNIQUE:
            wide = np.zeros_like(phi.r)
            wide[0] = size
            turn = (
                product("ijb,jkb->ikb", -y, forward(rover, phi.widened(wide)).jacobian)
                + np.eye(3)[:, :, None]
            ).bound
            # Sizes alike in all angles: rows below 1, so that the map contracts in the largest.
            norm = turn.sum(axis=1).max(axis=0)
            good = sound & ~solved & (norm < 0.95) & (defect.max(axis=0) + norm * size <= size)
            tight = defect.max(axis=0) / (1 - norm) * (1 + 1e-9) + 1e-14
            good &= (defect.max(axis=0) + norm * tight <= tight) & (tight <= size)
            own = defect + turn.sum(axis=1) * tight
            radius[:, good] = own[:, good]
            unique[good], solved = size, solved | good
        # In the middle the error is at most `near`, elsewhere that and its slopes.
        near = (np.abs(off.c).max(axis=0) + 1e-12) * 20
        rest = np.zeros_like(phi.r)
        rest[0] = radius
        for _ in range(ROUNDS):
            slope = inverse(forward(rover, phi.widened(rest)).jacobian)
            slopes = product("ijb,jb->ijb", slope, half)
            rest[1:] = np.array([(slopes[:, i] - slope_of(phi, i)).bound for i in range(3)])
            rest[0] = np.minimum(rest[0], (near + rest[1:].sum(axis=0)) * UP)
        radius = rest[0]
    return Angles(phi.widened(rest), radius, unique, solved)


def slope_of(m: Smooth, i: int) -> Smooth:
    """Slope of the polynomial along a symbol."""
    n = len(m.g)
    pairs = [(a, b) for a in range(n) for b in range(a, n)]
    g = np.zeros_like(m.g)
    for k, (a, b) in enumerate(pairs):
        if a == i:
            g[b] += m.h[k]
        if b == i:
            g[a] += m.h[k]
    return Smooth(m.g[i], g, 0.0 * m.h, 0.0 * m.r)


@dataclass(frozen=True, eq=False)
class Forces:
    """Tensors over cells: the last axis counts cells.

    Parameters
    ----------
    rates : Smooth
        From y to (v, omega, joint rates), (5, 5, b).
    moved : Smooth
        From y to the rate of the relative position, (3, 5, b).
    linear, quadratic, fixed : list of Smooth
        A1 (5, 5, b), A2 (5, 5, 5, b), A0 (5, b) of each body.
    mass : Smooth
        Mass matrix for (v, omega, joint rates), (5, 5, b).
    chain : Chain
        Frames of the arm.
    wrenches : list of tuple of Smooth
        W1 (6, 5, b), W2 (6, 5, 5, b) and W0 (6, b) of each body: force and moment about the axle
        at the height of the base's origin, in axes of the base.
    """

    rates: Smooth
    moved: Smooth
    linear: list[Smooth]
    quadratic: list[Smooth]
    fixed: list[Smooth]
    mass: Smooth
    chain: Chain
    wrenches: list[tuple[Smooth, Smooth, Smooth]]


def dynamics(rover: Rover, place: Smooth, phi: Smooth, spatial: bool = False) -> Forces:
    """Tensors of all bodies at relative positions `place` (3, b) with their angles.

    Wrenches are computed if `spatial` is true.
    """
    cells, n, l = place.c.shape[-1], len(phi.g), rover.lead
    chain = forward(rover, phi)

    def plain(values: Any) -> Smooth:
        return constant(np.repeat(np.asarray(values, dtype=float)[..., None], cells, axis=-1), n)

    # rho' = L y: of y_hand - y_base - omega z x rho.
    moved = plain([[-1, 0, 1, 0, 0], [0, -1, 0, 1, 0], [0, 0, 0, 0, 1]])
    spin = np.zeros((3, 5, 3))
    spin[0, 1, 1], spin[1, 1, 0] = 1 / l, -1 / l
    moved = moved + product("ijk,kb->ijb", spin, place)
    joints = product("ijb,jkb->ikb", inverse(chain.jacobian), moved)
    lead = plain([[1, 0, 0, 0, 0], [0, 1 / l, 0, 0, 0]])
    rates = stack([lead[0], lead[1], joints[0], joints[1], joints[2]])
    # Accelerations with those of (v, omega, joints) zero: y0 y1 / l across, and turns.
    along = np.zeros((3, 5, 5))
    along[1, 0, 1] = 1 / l
    up = np.array([0.0, 0.0, 1.0])
    turning = product("i,jb->ijb", up, rates[1])
    carried, swing = plain(along), 0.0 * plain(along)
    at, spins, swings, points = plain(np.zeros(3)), [], [], []

    def across(point: Smooth, turn: Smooth, twist: Smooth) -> Smooth:
        """Acceleration of a point by turns and their rates: w x (w x r) + a x r."""
        # eps_ijk r_k w_j is w x r.
        arm = product("ijk,kb->ijb", LEVI, point)
        first = product("ijb,jxb->ixb", arm, turn)
        skew = product("ijk,jxb->ikxb", LEVI, turn)
        return product("ikxb,kyb->ixyb", skew, first) + product("ijb,jxyb->ixyb", arm, twist)

    for k in range(3):
        carried = carried + across(chain.origins[k] - at, turning, swing)
        at = chain.origins[k]
        own = product("ib,xb->ixb", chain.axes[k], joints[k])
        skew = product("ijk,jxb->ikxb", LEVI, turning)
        swing = swing + product("ikxb,kyb->ixyb", skew, own)
        turning = turning + own
        spins.append(turning)
        swings.append(swing)
        points.append(carried)
    hand = points[2] + across(chain.hand - at, turning, swing)
    bent = np.zeros((2, 5, 5))
    bent[0, 1, 1], bent[1, 0, 1] = 1 / l, -1 / l**2
    zero = plain(bent)
    lever = product("ijk,kb->ijb", LEVI, chain.hand)[:, 2]
    # The hand's acceleration also has vdot and omegadot of y itself.
    hand = hand + product("i,xyb->ixyb", np.eye(3)[0], zero[0])
    hand = hand + product("ib,xyb->ixyb", lever, zero[1])
    back = product("ijb,jxyb->ixyb", inverse(chain.jacobian), hand) * -1.0
    change = stack([zero[0], zero[1], back[0], back[1], back[2]])
    linear, quadratic, fixed, total, wrenches = [], [], [], None, []
    for b in range(6):
        if b < 3:
            mass, at_, moment = rover.base[b]
            left = plain(np.array([[1, -at_[1], 0, 0, 0], [0, at_[0], 0, 0, 0], [0, 0, 0, 0, 0]]))
            turns = plain(np.outer(up, [0, 1, 0, 0, 0]))
            tensor, centre = plain(moment), plain(at_)
            free = plain(along) + across(
                plain(at_), product("i,jb->ijb", up, rates[1]), 0.0 * plain(along)
            )
            twist, turn = 0.0 * plain(along), product("i,jb->ijb", up, rates[1])
        else:
            k = b - 3
            link = rover.links[k]
            mass, frame = link.mass, chain.turns[k]
            centre = chain.origins[k] + product("ijb,j->ib", frame, link.com)
            none = plain(np.zeros(3))
            lever = product("ijk,kb->ijb", LEVI, centre)[:, 2]
            axes = [chain.axes[j] if j <= k else none for j in range(3)]
            arms = [
                cross(chain.axes[j], centre - chain.origins[j]) if j <= k else none
                for j in range(3)
            ]
            left = columns_of([plain(np.eye(3)[0]), lever, *arms])
            turns = columns_of([none, plain(up), *axes])
            half = product("ijb,jk->ikb", frame, link.inertia)
            tensor = product("ijb,kjb->ikb", half, frame)
            twist, turn = swings[k], spins[k]
            free = points[k] + across(centre - chain.origins[k], turn, twist)
        loaded = product("ijb,jkb->ikb", tensor, turns)
        matrix = product("ijb,ikb->jkb", left, left) * mass + product("ijb,ikb->jkb", turns, loaded)
        if 0 < b < 3:
            rate, moment_y = rover.spins[b - 1]
            spun = np.zeros(5)
            spun[:2] = rate
            matrix = matrix + (moment_y * np.outer(spun, spun))[:, :, None]
        moment_ = product("ijb,jxb->ixb", tensor, turn)
        skew = product("ijk,jxb->ikxb", LEVI, turn)
        gyro = product("ikxb,kyb->ixyb", skew, moment_) + product("ijb,jxyb->ixyb", tensor, twist)
        bias = product("ijb,ixyb->jxyb", left, free) * mass + product("ijb,ixyb->jxyb", turns, gyro)
        linear.append(product("ijb,jkb->ikb", matrix, rates))
        quadratic.append(bias + product("ijb,jxyb->ixyb", matrix, change))
        fixed.append(left[2] * (mass * rover.gravity))
        if spatial:
            forces = [product("ijb,jkb->ikb", left, rates), product("ijb,jxyb->ixyb", left, change)]
            moments = [product("ijb,jkb->ikb", loaded, rates)]
            moments.append(product("ijb,jxyb->ixyb", loaded, change) + gyro)
            if 0 < b < 3:
                # A disk that spins about y of the base, which turns: L' = I (s' y - omega s x).
                own = rate * np.sign(rate[0])
                roll, bend = (
                    product("k,kjb->jb", own, rates[:2]),
                    product("k,kxyb->xyb", own, change[:2]),
                )
                turned = product("xb,yb->xyb", rates[1], roll)
                x, y = moment_y * np.eye(3)[:2]
                moments[0] = moments[0] + product("i,jb->ijb", y, roll)
                moments[1] = moments[1] + product("i,xyb->ixyb", y, bend)
                moments[1] = moments[1] - product("i,xyb->ixyb", x, turned)
            wrenches.append(_wrench(centre, [forces[0], forces[1] + free], moments, mass, rover))
        total = matrix if total is None else total + matrix
    assert total is not None
    return Forces(rates, moved, linear, quadratic, fixed, total, chain, wrenches)


def _wrench(
    centre: Smooth, accelerations: list[Smooth], moments: list[Smooth], mass: float, rover: Rover
) -> tuple[Smooth, Smooth, Smooth]:
    """Force and moment about the axle from accelerations of a centre of mass and moments about it.

    The ground carries the weight, too.
    """
    lever = product("ijk,jb->ikb", LEVI, centre)  # eps_ijk c_j f_k is c x f
    weight = np.array([0.0, 0.0, mass * rover.gravity])
    one, two = (a * mass for a in accelerations)
    turned = [product("ijb,jkb->ikb", lever, one) + moments[0]]
    turned.append(product("ijb,jxyb->ixyb", lever, two) + moments[1])
    still = product("ijb,j->ib", lever, weight)
    fixed = constant(np.repeat(weight[:, None], centre.c.shape[-1], axis=1), len(centre.g))
    return (
        stack([*(one[i] for i in range(3)), *(turned[0][i] for i in range(3))]),
        stack([*(two[i] for i in range(3)), *(turned[1][i] for i in range(3))]),
        stack([*(fixed[i] for i in range(3)), *(still[i] for i in range(3))]),
    )


def columns_of(parts: list[Smooth]) -> Smooth:
    """Vectors (3, b) as the columns of a matrix."""
    return product("jib,kj->ikb", stack(parts), np.eye(len(parts)))
