"""Errors of the measured state over leaves, for the checker of proofs.

In axes of the base the law commands u = U1 nu + U2[y, y] + U0, tensors of the relative position
rho. With K = A1^-1 and forces A1, A2, A0 on (v, omega, joints), a change of what it reads adds

    K du = dnu + 2 Q2[y, dy] + sum_i drho_i (G1_i nu + G2_i[y, y] + G0_i)

to first order (`_recheck_leaves`). With Y from the rates w of (v, omega, joints) to y, and J the
slopes of the hand by angles: an error of w has dy = Y dw and dnu = -kd dy; one of the angle j has
drho = J_j, dy = (dY/dphi_j) w, dnu = -kp (0, J_j) - kd dy; one of the place dnu = -kp; one of the
heading dnu = -z x (nu + kd y + kp r) at both outputs, r from the base's origin.

**What holds.** Each bound is one for every point of the leaf and all y, nu in their sets. They
contain what the law reads if the ways that `moved` bounds are shorter than the room about the true
state, by which the sets are wider (first exit).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.proofs._recheck_arm import Forces, Rover, columns_of, cross
from concur.proofs._recheck_leaves import (
    ROWS,
    Sets,
    Table,
    Tensor,
    Z,
    even,
    force,
    norms,
    tensor,
    total,
)
from concur.proofs._recheck_smooth import Floats, Smooth, constant, product, require, stack


@dataclass(frozen=True, eq=False)
class Reading:
    """Errors of what the law reads.

    Parameters
    ----------
    rover : Rover
        Numbers of the robot.
    gains : numpy.ndarray
        kp and kd of base and hand, (2, 2).
    angles : tuple of float
        Errors of the arm's angles (rad).
    rates : numpy.ndarray
        Errors of speeds, each as rates of (v, omega, joints), (n, 5).
    place, heading : float
        Of the base (m, rad).
    """

    rover: Rover
    gains: Floats
    angles: tuple[float, ...]
    rates: Floats
    place: float
    heading: float

    spatial = False

    def tensors(
        self, f: Forces, place: Smooth, phi: Smooth, made: dict[str, Smooth]
    ) -> tuple[dict[str, Tensor], dict[str, Floats]]:
        """Tensors of K du for the error of each angle, rate and of the heading, and of ways."""
        cells, n = place.c.shape[-1], len(place.g)
        kp, kd = (np.repeat(g, (2, 3)) for g in self.gains)

        def plain(values: Floats) -> Smooth:
            return constant(np.repeat(values[..., None], cells, axis=-1), n)

        chain, up = f.chain, plain(np.eye(3)[2])
        ahead = np.array([[self.rover.ahead], [0.0], [0.0]])
        velocity = _velocities(self.rover, chain.hand, chain.jacobian, plain)
        found = dict[str, Smooth]()
        for k, rates in enumerate(self.rates):
            moved = product("ijb,j->ib", velocity, rates)
            found[f"V{k}"] = moved
            found[f"V0{k}"] = product("i,ib->ib", -kd, moved)
            found[f"V3{k}"] = product("ijkb,jb->ikb", made["Q2"], moved) * 2.0
        columns = [chain.jacobian[:, j] for j in range(3)]
        axes = [up, *chain.axes]
        for j, error in enumerate(self.angles):
            own = columns[j] * error
            turned = [cross(axes[k], own) for k in range(j + 2)]
            turned += [cross(chain.axes[j], columns[k]) * error for k in range(j + 1, 3)]
            # Of the speed v the hand's velocity does not turn with the arm.
            slope = columns_of([plain(np.zeros(3)), *turned])
            slope = product("ijb,jkb->ikb", slope, f.rates)
            whole = product("ij,jkb->ikb", np.eye(5)[:, 2:], slope)
            found[f"J{j}"] = own
            found[f"D{j}"] = whole
            parts = [
                total([product(f"b,{x}b->{x}b", own[i], made[f"G{m}{i}"]) for i in range(3)])
                for m, x in ((1, "ij"), (2, "ijk"), (0, "i"))
            ]
            bend = product("ijkb,jmb->imkb", made["Q2"], whole)
            found[f"R1{j}"], found[f"R2{j}"] = parts[0], even(parts[1]) + even(bend) * 2.0
            shift = product("ij,jb->ib", np.eye(5)[:, 2:], own)
            found[f"R0{j}"] = parts[2] - product("i,ib->ib", kp, shift)
            found[f"R3{j}"] = product("i,ijb->ijb", -kd, whole)
        lever = chain.hand - ahead
        base = plain(np.array([self.rover.lead - self.rover.ahead, 0.0]))
        levers = stack([base[0], base[1], lever[0], lever[1], lever[2]])
        turn = self.heading * Z
        found["T1"], found["T3"] = plain(-turn), plain(-turn * kd[None])
        found["T0"] = product("ij,jb->ib", -turn * kp[None], levers)
        found["levers"] = levers
        found["none"] = plain(np.zeros(5))
        found["one"] = plain(np.eye(5))
        return {name: tensor(m) for name, m in found.items()}, {}

    def bounds(self, t: Table, sets: Sets) -> dict[str, Floats]:
        """`read` (2, b), `read_torque` (ns, b), `moved` (4, b) and `read_rest` (2, b)."""
        b = sets.y.c.shape[-1]
        read, loose = (np.zeros((2, b)) for _ in range(2))
        way, rate = (np.zeros((2, b)) for _ in range(2))
        forms = [
            force(t, ("", "", f"V0{k}"), sets, False, f"V3{k}") for k in range(len(self.rates))
        ]
        forms += [
            force(t, (f"R1{j}", f"R2{j}", f"R0{j}"), sets, False, f"R3{j}")
            for j in range(len(self.angles))
        ]
        if self.heading:
            forms.append(force(t, ("T1", "", "T0"), sets, False, "T3"))
        for form, lines, rest in forms:
            for o, rows in enumerate(ROWS):
                more, balls = form.parts(sets, rows)
                every = [*more, *(v[rows] for v in lines)]
                read[o] += norms(form.value[rows], every, balls, rest[rows])
                loose[o] += np.sqrt((rest[rows] ** 2).sum(axis=0))
        read += (self.gains[0] * self.place)[:, None]
        for j in range(len(self.angles)):
            own = t.parts[f"J{j}"]
            way[1] += norms(own.c, list(own.g), [], own.rest)
            form, lines, rest = force(t, ("", "", "none"), sets, False, f"D{j}")
            more, balls = form.parts(sets, ROWS[1])
            every = [*more, *(v[ROWS[1]] for v in lines)]
            rate[1] += norms(form.value[ROWS[1]], every, balls, rest[ROWS[1]])
        speed, own_lines, own_rest = force(t, ("", "", "none"), sets, False, "one")
        levers = t.parts["levers"]
        for o, rows in enumerate(ROWS):
            flat = slice(rows.start, rows.start + 2)
            more, balls = speed.parts(sets, flat)
            every = [*more, *(v[flat] for v in own_lines)]
            rate[o] += self.heading * norms(speed.value[flat], every, balls, own_rest[flat])
            far = norms(levers.c[flat], list(levers.g[:, flat]), [], levers.rest[flat])
            way[o] += self.place + self.heading * far
            for k in range(len(self.rates)):
                own = t.parts[f"V{k}"]
                rate[o] += norms(own.c[rows], list(own.g[:, rows]), [], own.rest[rows])
        size = t.parts["U1"].size
        torque = sum(
            np.sqrt((size[:, r] ** 2).sum(axis=1)) * one for r, one in zip(ROWS, read, strict=True)
        )
        # K belongs to the true state: its change by the way of the relative position.
        turned = np.einsum("nikb,kb->nib", t.plain["response_rate"], torque)
        turned = np.sqrt(np.array([(turned[:, r] ** 2).sum(axis=1) for r in ROWS]))
        moved = sum(t.parts[f"J{j}"].size for j in range(len(self.angles))) + np.zeros((3, b))
        read = read + np.einsum("onb,nb->ob", turned, moved)
        found = {"read": read, "read_rest": loose, "read_torque": torque}
        found["moved"] = np.vstack([way, rate])
        return {name: values * (1 + 1e-10) for name, values in found.items()}


def _velocities(
    rover: Rover, hand: Smooth, jacobian: Smooth, plain: Callable[[Floats], Smooth]
) -> Smooth:
    """Velocities of the outputs for rates of (v, omega, joints), (5, 5, b)."""
    zero = plain(np.zeros(3))
    turning = cross(plain(np.eye(3)[2]), hand)
    columns = [plain(np.eye(3)[0]), turning, *(jacobian[:, j] for j in range(3))]
    base = [[1.0, 0.0], [0.0, rover.lead], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    made = []
    for at, column in zip(base, columns, strict=True):
        own = plain(np.array(at))
        made.append(stack([own[0], own[1], *((zero + column)[i] for i in range(3))]))
    return product("jib,kj->ikb", stack(made), np.eye(5))


def reading_of(
    reading: Any, rover: Rover, gains: Floats, joints: list[str], shape: list[str]
) -> Reading:
    """Errors of a statement by the order of the robot."""
    for given, names in ((reading.angles, joints), (reading.speeds or {}, shape)):
        require(set(given) <= set(names), "reading: an unknown name")
    angles = tuple(float(reading.angles.get(name, 0.0)) for name in joints)
    speeds = np.array([float((reading.speeds or {}).get(name, 0.0)) for name in shape])
    given = [*angles, *speeds.tolist(), reading.place, reading.heading]
    require(all(np.isfinite(x) and x >= 0.0 for x in given), "reading: a negative error")
    require(not any(angles) or reading.speeds is not None, "reading: no errors of speeds")
    rates = np.linalg.inv(rover.speeds) * speeds
    place, heading = float(reading.place), float(reading.heading)
    return Reading(rover, gains, angles, rates.T[speeds > 0.0], place, heading)
