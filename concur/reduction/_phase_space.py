"""The reduced phase space T*Qhat with its two-form, which need not be closed.

Written in the frame of the shape velocities s and momenta p. With E_a the derivative along shape
velocity a, ``[E_a, E_b] = c^d_ab E_d``, and ``L_ab = Xi_ab - c^d_ab p_d``,

    Omega = Omega_can - Xi,    iota_X Omega = dh:    s = dh/dp,    pdot = -E h + L dh/dp

so ``{f, h} = E f . dh/dp - df/dp . E h + df/dp^T L dh/dp``, (4.2.13). Xi is semi-basic, so that
Omega is never degenerate; it is closed where Xi is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import product

import casadi as ca
import numpy as np

from concur.codegen import Array, EvaluatedMethods, Matrix, Place, Vector, constant, evaluated
from concur.errors import ReductionError
from concur.reduction._model import ReducedModel, check_model
from concur.reduction._search import ROUNDING

SAMPLES = 6
"""Random states at which the reduced equations are tested."""


class PhaseSpace(EvaluatedMethods):
    """Coordinates q and momenta p of a reduced model; q is that of the whole robot."""

    def __init__(self, model: ReducedModel) -> None:
        self.model = model
        self.name, self.nq, self.ns, self.nu = model.name, model.nq, model.ns, model.nu
        self.momentum_names, self.control_names = model.shape_names, model.control_names
        sizes = [(body.joint_label, body.joint.nq) for body in model.robot.bodies]
        self.coordinate_names = tuple(
            name if count == 1 else f"{name}[{k}]" for name, count in sizes for k in range(count)
        )

    @property
    def quaternions(self) -> Mapping[Place, str]:
        return self.model.quaternions

    def energy(self, q: Vector, p: Vector) -> Array:
        """Hamiltonian, J."""
        return self.model.hamiltonian(q, p)

    def curvature(self, q: Vector, p: Vector) -> Array:
        """Xi in the frame, antisymmetric, shape (ns, ns)."""
        return self.model.two_form(q, p)

    def frame(self, q: Vector) -> Array:
        """Rates of the coordinates for each velocity, shape (nq, ns)."""
        model, units = self.model, self.model._on_shape()
        rates = [model.robot.rate(q, units[:, a]) for a in range(model.ns)]
        return ca.sparsify(ca.horzcat(ca.SX(model.nq, 0), *rates))

    def inputs(self, q: Vector) -> Array:
        """Forces on the momenta from each control, shape (ns, nu)."""
        return self.model.input_matrix(q)

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Random state, at velocities of order one: q (nq,) and p (ns,)."""
        drawn = [self.model.robot.random(rng) for _ in range(4)]
        q = max(drawn, key=lambda x: float(self.model.regularity(x)))
        return q, self.model.mass_matrix(q) @ rng.uniform(-1.0, 1.0, self.ns)

    def states(self, seed: int, count: int = SAMPLES) -> list[tuple[np.ndarray, np.ndarray]]:
        """Random states, the same for the same seed."""
        rng = np.random.default_rng(seed)
        return [self.draw(rng) for _ in range(count)]

    @cached_property
    def structure(self) -> np.ndarray:
        """Structure constants c^d_ab of the frame at [d, a, b], shape (ns, ns, ns)."""
        model, n, units = self.model, self.ns, self.model._on_shape()
        constants = np.zeros((n, n, n))
        for a, b in product(range(n), repeat=2):
            turned = model.robot.bracket(units[:, a], units[:, b])
            constants[:, a, b] = np.array(ca.DM(turned)).ravel()[list(model.shape)]
        return constants

    @cached_property
    def lines(self) -> Mapping[int, int]:
        """Coordinates whose rate is one of the velocities, and which."""
        rows = self.frame(ca.SX.sym("q", self.nq))
        found = {}
        for i in range(self.nq):
            row = ca.sparsify(rows[i, :])
            if row.nnz() == 1 and row.is_constant() and float(ca.DM(row).nonzeros()[0]) == 1.0:
                found[i] = int(row.sparsity().get_triplet()[1][0])
        return found

    @property
    def moving(self) -> tuple[int, ...]:
        """Coordinates that some velocity changes: those of the reduced configuration space."""
        rows = ca.sparsify(self.frame(ca.SX.sym("q", self.nq)))
        return tuple(i for i in range(self.nq) if rows[i, :].nnz())

    @evaluated("(nq),(ns)->(nq)")
    def rates(self, q: Vector, s: Vector) -> Vector:
        """Rates of the coordinates at velocities s."""
        return self.frame(q) @ s

    @evaluated("(nq),(ns)->(ns,ns)")
    def form(self, q: Vector, p: Vector) -> Matrix:
        """L_ab = Xi_ab - c^d_ab p_d, shape (ns, ns)."""
        total = ca.SX(self.curvature(q, p))
        for d, constants in enumerate(self.structure):
            if constants.any():
                total -= ca.sparsify(ca.SX(ca.DM(constants))) * p[d]
        return ca.sparsify(total)

    @evaluated("(nq),(ns)->(ns),(ns),(ns,ns),(ns,nu)")
    def slopes(self, q: Vector, p: Vector) -> tuple[Vector, Vector, Matrix, Matrix]:
        """E H, dH/dp, L and the inputs."""
        energy = self.energy(q, p)
        along_q, along_p = self.differential(energy, q, p)
        return along_q, along_p, self.form(q, p), self.inputs(q)

    def momenta(self, q: Vector, p: Vector) -> dict[str, Array]:
        """Momenta, by name, among whose combinations constants of motion are looked for.

        They are p, and as P those of larger joints in the axes of the frame they attach to.
        """
        found: dict[str, Array] = {f"p[{name}]": p[a] for a, name in enumerate(self.momentum_names)}
        robot = self.model.robot
        for body in robot.bodies:
            rows = robot.freedoms(body.name)
            if len(rows) > 1 and rows[0] in self.model.shape:
                basis = body.joint.basis
                own = p[[self.model.shape.index(i) for i in rows]]
                wrench = constant(np.linalg.pinv(basis).T) @ own
                rotation, translation = body.joint.pose(q[robot.q_slice(body.name)])
                force = rotation @ wrench[:3]
                torque = rotation @ wrench[3:] + ca.cross(translation, force)
                turned = constant(basis.T) @ ca.vertcat(force, torque)
                found |= {f"P[{robot.freedom_names[i]}]": turned[k] for k, i in enumerate(rows)}
        return found

    def differential(self, value: Array, q: Vector, p: Vector) -> tuple[Array, Array]:
        """Differential of an expression of the symbols q and p in the frame: E h and dh/dp."""
        return self.frame(q).T @ ca.gradient(value, q), ca.gradient(value, p)

    @evaluated("(nq),(ns),(ns),(ns)->(ns,ns),(ns,ns),(ns,ns)")
    def turning(self, q: Vector, p: Vector, w: Vector, y: Vector) -> tuple[Matrix, Matrix, Matrix]:
        """Derivatives of L along (w, y), and of L w at fixed w in the frame and in the momenta."""
        form = ca.densify(self.form(q, p))
        along = ca.jtimes(ca.vec(form), q, self.frame(q) @ w) + ca.jtimes(ca.vec(form), p, y)
        held = form @ w
        in_frame = (ca.jacobian(held, q) @ self.frame(q)).T
        return ca.reshape(along, self.ns, self.ns), in_frame, ca.jacobian(held, p)

    def contracted(self, q: np.ndarray, p: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Contraction of dOmega with the vector (w, y), on frame and momenta, (2 ns, 2 ns).

        ``dOmega(E_a, E_b, E_c) = -(E_a L_bc - c^d_ab L_dc) + cyclic`` and
        ``dOmega(E_a, E_b, d/dp_c) = -dL_ab/dp_c - c^c_ab``: the exterior derivative of -Xi.
        """
        n, c = self.ns, self.structure
        form = self.form(q, p)
        along, in_frame, in_momenta = self.turning(q, p, w, y)
        own = np.einsum("dab,a->db", c, w)  # bracket of the vector with E_b
        block = -along - in_frame + in_frame.T - np.einsum("abc,a->bc", c, y)
        block += own.T @ form - (own.T @ form).T + np.einsum("dbc,d->bc", c, form @ w)
        mixed = in_momenta - own.T
        return np.block([[block, mixed], [-mixed.T, np.zeros((n, n))]])


def phase_space(model: ReducedModel) -> PhaseSpace:
    """Phase space of a reduced model, tested to be one."""
    check_model(model, "constants of motion")
    _demand(
        model,
        model.ns > 0,
        "a model with shape velocities",
        "none: all its velocities follow from momentum or wheels",
    )
    for body in model.robot.bodies:
        own = len(set(model.robot.freedoms(body.name)) & set(model.shape))
        _demand(
            model,
            own in (0, body.joint.nv),
            "a shape made of whole joints",
            f"part of the velocity of `{body.joint_label}`, whose position is no shape coordinate",
        )
    space = PhaseSpace(model)
    rng = np.random.default_rng(21)
    still = np.zeros(model.nu)
    for _ in range(SAMPLES):
        q, p = space.draw(rng)
        along_q, s, form, _ = space.slopes(q, p)
        size = np.abs(along_q).max() + np.abs(form).max() * np.abs(s).max() + np.abs(p).max()
        elsewhere = q.copy()
        other, _ = space.draw(rng)
        elsewhere[_places(model)] = other[_places(model)]
        moved = space.slopes(elsewhere, p)
        change = max(
            np.abs(moved[0] - along_q).max(),
            np.abs(moved[2] - form).max() * np.abs(s).max(),
            np.abs(model.mass_matrix(q) @ (moved[1] - s)).max(),
        )
        _demand(
            model,
            change <= ROUNDING * size,
            "reduced equations that do not depend on the velocities left out",
            f"equations that depend on the position of what is left out ({change:.1e})",
        )
        _, pdot = model.vector_field(q, p, still)
        left = np.abs(pdot + along_q - form @ s).max()
        _demand(
            model,
            left <= ROUNDING * size,
            "forces that come from the Hamiltonian and the two-form",
            f"further forces of the drift ({left:.1e})",
        )
    return space


def _demand(model: ReducedModel, holds: bool, expected: str, came: str) -> None:
    if not holds:
        raise ReductionError(
            f"robot `{model.name}`, constants of motion",
            expected=expected,
            came=came,
            cure="Only wheels with a symmetry (Chaplygin), a floating base at zero momentum and a "
            "fixed base leave a phase space of the shape alone. `concur.symmetry` finds the "
            "constant momenta of any robot.",
        )


def _places(model: ReducedModel) -> list[int]:
    """Coordinates of the joints that follow from the others."""
    return [
        i
        for body in model.robot.bodies
        if not set(model.robot.freedoms(body.name)) & set(model.shape)
        for i in range(*model.robot.q_slice(body.name).indices(model.nq))
    ]
