"""The reduced equations in a chart of the coadjoint orbit: the thesis's form of the reduction.

The base's configuration is q1 = h chi_mu(zeta): h in the isotropy group G_mu of the momentum,
chi_mu a slice across it. The quotient by G_mu has the coordinates (zeta, shape, p) and the
two-form Omega_can - Xi_mu, theorem 3.3.6. That two-form is had here as the exterior derivative
of the shift alpha_mu = <mu, A>, with no bracket of the base's group and no curvature: an
independent formulation of `MomentumReduction`, which has no chart. Inertias and the connection
are those of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from concur.codegen import (
    Array,
    Matrix,
    Scalar,
    Vector,
    constant,
    evaluated,
)
from concur.robot import solve_positive_definite
from tests.oracles._antisymmetric import solve_antisymmetric
from tests.oracles._orbit_slice import REGULAR, OrbitSlice, unit

STEPS = 32
"""Steps in which `MomentumChart.split` walks from the identity to a configuration."""


@dataclass(frozen=True)
class MomentumChart(OrbitSlice):
    """A floating robot in a chart of its coadjoint orbit, theorem 3.3.6 and corollary 3.3.7.

    The chart is local: for simulation and control `MomentumReduction` is the better choice,
    and this one is what it can be checked with.

    Parameters
    ----------
    model : MomentumReduction
        The floating robot with its momentum mu.
    slice : callable, optional
        The slice chi_mu: takes coordinates zeta (`casadi.SX`, shape (nc,)) and gives the pose of
        the base's body in the frame of its joint, as a matrix (4, 4) or as rotation (3, 3) and
        translation (3,). It is the identity at zeta = 0 and crosses the isotropy group there.
        Default exp(S C zeta), with the basis S of the base's joint and the complement C of the
        isotropy algebra.

    Attributes
    ----------
    isotropy : Isotropy
        Isotropy group G_mu of the momentum, in the frame of the base's joint: its algebra N and
        the complement C. Without complement (G_mu = G) there are no zeta, corollary 3.3.7.

    """

    @property
    def ns(self) -> int:
        """Number of shape velocities."""
        return self.model.ns

    @property
    def nu(self) -> int:
        """Number of controls."""
        return self.model.nu

    @property
    def nj(self) -> int:
        """Number of coordinates of the other joints."""
        return self.model.nq - self.nh

    @property
    def no(self) -> int:
        """Size of `two_form`: coordinates zeta and shape velocities."""
        return self.nc + self.ns

    @evaluated("(nc),(nj)->(ni,ni)")
    def locked_inertia(self, zeta: Vector, joints: Vector) -> Matrix:
        """Locked inertia of the isotropy group at h = e, in its algebra: I^mu of (3.3.39).

        References
        ----------
        Thesis, (3.2.22).
        """
        body = self._isotropy_in_body(zeta)
        return body.T @ self.model.locked_inertia(self._at(joints)) @ body

    @evaluated("(nc),(nj)->(ni,no)")
    def connection(self, zeta: Vector, joints: Vector) -> Matrix:
        """Mechanical connection of the isotropy group on the chart at h = e: A~ of (3.3.39).

        It maps the rates of zeta and the shape velocities to the basis `isotropy.algebra`. The
        equations of motion do not need it: <mu, [eta, .]> is zero on the isotropy algebra.

        References
        ----------
        Thesis, (3.2.23), (3.3.39).
        """
        q = self._at(joints)
        moved = ca.horzcat(self.body_twists(zeta), self.model.connection(q))
        onto = self._isotropy_in_body(zeta).T @ self.model.locked_inertia(q)
        return solve_positive_definite(self.locked_inertia(zeta, joints), onto @ moved)

    @evaluated("(nc),(nj)->(no,no)")
    def two_form(self, zeta: Vector, joints: Vector) -> Matrix:
        """Two-form of the momentum on the chart: Xi_mu of (3.3.43) and (3.3.47).

        It is d alpha_mu on the slice h = e (lemma 3.2.6), with the shift alpha_mu of (3.3.40), for
        the coordinates zeta and the left-trivialised shape velocities.

        References
        ----------
        Thesis, Lemma 3.2.5, Lemma 3.2.6, (3.2.27), (3.2.28), Theorem 3.3.6, (3.3.43),
        (3.3.45), Corollary 3.3.7, (3.3.47).
        """
        z, x = ca.SX.sym("zeta", self.nc), ca.SX.sym("joints", self.nj)
        shift = self._shift(z, x)
        frame = ca.diagcat(ca.SX.eye(self.nc), self._frame(x))
        # slopes[i, j]: derivative of component i of the shift along the frame's field j.
        slopes = ca.jacobian(ca.densify(shift), ca.vertcat(z, x)) @ frame
        form = slopes.T - slopes
        turned = ca.SX(self.no, self.no)
        for a in range(self.ns):
            for b in range(self.ns):
                bracket = self._shape_bracket(unit(self.ns, a), unit(self.ns, b))
                turned[self.nc + a, self.nc + b] = ca.dot(shift[self.nc :], bracket)
        result = ca.sparsify(form - turned)
        return ca.Function("two_form", [z, x], [result])(zeta, joints)

    @evaluated("(nc),(nj),(ns)->()")
    def hamiltonian(self, zeta: Vector, joints: Vector, p: Vector) -> Scalar:
        """Reduced Hamiltonian on the chart, (3.3.42): the robot's energy, J.

        References
        ----------
        Thesis, (3.3.42), (3.3.46), (3.4.48).
        """
        momenta = self._momenta(zeta, joints, p)
        return ca.dot(momenta, self.velocity(zeta, joints, p)) / 2 + self._potential(joints)

    @evaluated("(nc),(nj),(ns)->(nv)")
    def velocity(self, zeta: Vector, joints: Vector, p: Vector) -> Vector:
        """Velocity of the robot from the state on the chart: FL^-1 after the shift (3.3.41).

        References
        ----------
        Thesis, (3.2.25), (3.3.40), (3.3.41).
        """
        mass = self.model.robot.mass_matrix(self._at(joints))
        return solve_positive_definite(mass, self._momenta(zeta, joints, p))

    def vector_field(
        self, zeta: Vector, joints: Vector, p: Vector, u: Vector
    ) -> tuple[Any, Any, Any]:
        """Reduced Hamilton equations on the chart, (3.3.44).

        ``Ups11 zetadot = dH/dzeta - Ups12 s`` and
        ``pdot = -D H + ad*_s p + Ups21 zetadot + Ups22 s + u``.

        Parameters
        ----------
        zeta : array_like
            Coordinates of the slice, shape (nc,).
        joints : array_like
            Coordinates of the joints after the base, shape (nj,).
        p : array_like
            Reduced momentum, shape (ns,).
        u : array_like
            Control forces and torques, shape (nu,), N and N m.

        Returns
        -------
        zetadot : numpy.ndarray or casadi.SX
            Rates of the slice's coordinates, shape (nc,).
        s : numpy.ndarray or casadi.SX
            Shape velocities, shape (ns,).
        pdot : numpy.ndarray or casadi.SX
            Rate of the reduced momentum, shape (ns,).


        References
        ----------
        Thesis, (3.2.26), (3.3.44).
        """
        zetadot, s, pdot, regular = self._vector_field(zeta, joints, p, u)
        self._refuse_singular(regular)
        return zetadot, s, pdot

    def reconstruction(self, zeta: Vector, joints: Vector, p: Vector) -> Array:
        """Velocity of h in the isotropy group: h^-1 hdot = eta.

        It is what Ad_chi v1, with the velocity v1 of the base, leaves for the isotropy algebra
        when it is split into that and the spatial twists of the slice.

        Parameters
        ----------
        zeta : array_like
            Coordinates of the slice, shape (nc,).
        joints : array_like
            Coordinates of the joints after the base, shape (nj,).
        p : array_like
            Reduced momentum, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            eta, shape (nb,), in the basis of the base's joint.
        """
        eta, regular = self._reconstruction(zeta, joints, p)
        self._refuse_singular(regular)
        return eta

    @evaluated("(nh),(nc),(nj)->(nq)")
    def configuration(self, h: Vector, zeta: Vector, joints: Vector) -> Vector:
        """Configuration of the robot with its base at h chi(zeta).

        Parameters
        ----------
        h : array_like
            Element of the isotropy group as coordinates of the base's joint, shape (nh,).
        zeta : array_like
            Coordinates of the slice, shape (nc,).
        joints : array_like
            Coordinates of the joints after the base, shape (nj,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Configuration, shape (nq,).
        """
        base = self.model.robot.base.joint.integrate(h, self._displacement(zeta))
        return ca.vertcat(base, joints)

    def split(
        self, q: ArrayLike, near: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Chart coordinates of a configuration: inverse of `configuration`.

        Since h keeps the momentum, zeta is where Ad*_chi(zeta) mu is the body momentum of the
        configuration: found by Newton's method on the way from the identity, or from nearby.

        Parameters
        ----------
        q : array_like
            Configuration of the robot, shape (nq,).
        near : array_like, optional
            zeta of a place nearby, shape (nc,), to begin with; default: walk from the identity.

        Returns
        -------
        h : numpy.ndarray
            Element of the isotropy group as coordinates of the base's joint, shape (nh,).
        zeta : numpy.ndarray
            Coordinates of the slice, shape (nc,).
        joints : numpy.ndarray
            Coordinates of the joints after the base, shape (nj,).
        """
        robot, values = self.model.robot, np.asarray(q, float)
        if near is None:
            start = np.concatenate([robot.neutral()[: self.nh], values[self.nh :]])
            way = robot.difference(start, values)
            stations = [robot.integrate(start, k / STEPS * way) for k in range(1, STEPS + 1)]
            zeta = np.zeros(self.nc)
        else:
            stations, zeta = [values], np.asarray(near, float)
        for station in stations:
            zeta = self._newton(zeta, self.model.body_momentum(station))
        # exp(-x) appended to h chi = q1 leaves h.
        h = self._behind(values, zeta)
        return h, zeta, values[self.nh :]

    def reconstruct(
        self,
        motion: Callable[[float], tuple[ArrayLike, ArrayLike, ArrayLike]],
        times: Sequence[float],
        start: ArrayLike | None = None,
        tolerance: float = 1e-11,
    ) -> np.ndarray:
        """Configurations of the robot along a motion on the chart: the base is h chi(zeta).

        Parameters
        ----------
        motion : callable
            Takes a time, s, and gives zeta, joints and p, for example from the dense output of
            an integrator.
        times : sequence of float
            Increasing times, s, at which configurations are wanted; h starts at the first.
        start : array_like, optional
            h at the first time as coordinates of the base's joint, shape (nh,); default the
            identity.
        tolerance : float
            Relative tolerance of the integration of hdot = h eta.

        Returns
        -------
        numpy.ndarray
            Configurations, shape (len(times), nq).
        """
        h0 = np.asarray(self.model.robot.base.joint.neutral if start is None else start, float)
        wanted = np.asarray(times, float)
        solution = solve_ivp(
            lambda t, h: self._rate_of_h(h, self.reconstruction(*motion(t))),
            (wanted[0], wanted[-1]),
            h0,
            method="DOP853",
            t_eval=wanted,
            rtol=tolerance,
            atol=1e-2 * tolerance,
        )
        assert solution.success, solution.message
        # Of one time, the integrator keeps nothing.
        elements = solution.y.T if wanted.size > 1 else h0[None]
        rows = []
        for t, h in zip(wanted, elements, strict=True):
            zeta, joints, _ = motion(t)
            rows.append(self.configuration(self._normalized(h), zeta, joints))
        return np.array(rows)

    @evaluated("(nc),(nj),(ns),(nu)->(nc),(ns),(ns),()")
    def _vector_field(
        self, zeta: Vector, joints: Vector, p: Vector, u: Vector
    ) -> tuple[Array, ...]:
        v = self.velocity(zeta, joints, p)
        s = v[self.nb :, :]
        by_zeta, by_shape = self._slopes(zeta, joints, p, v)
        form = self.two_form(zeta, joints)
        orbit, coupling = form[: self.nc, : self.nc], form[: self.nc, self.nc :]
        zetadot = solve_antisymmetric(orbit, by_zeta - coupling @ s)
        turned = [ca.dot(p, self._shape_bracket(s, unit(self.ns, b))) for b in range(self.ns)]
        pdot = ca.vertcat(ca.SX(0, 1), *turned) - by_shape - coupling.T @ zetadot
        pdot += form[self.nc :, self.nc :] @ s
        pdot += self.model.input_matrix(self._at(joints)) @ u
        return zetadot, s, pdot, self.regularity(zeta)

    @evaluated("(nc),(nj),(ns)->(nb),()")
    def _reconstruction(self, zeta: Vector, joints: Vector, p: Vector) -> tuple[Vector, Scalar]:
        moved = self.adjoint(zeta) @ self.velocity(zeta, joints, p)[: self.nb]
        across = self.spatial_twists(zeta)
        # <mu, [X1, .]> does not see the isotropy algebra: it gives the rates of zeta.
        onto = across.T @ constant(self.isotropy.form)
        zetadot = solve_antisymmetric(onto @ across, onto @ moved)
        return moved - across @ zetadot, self.regularity(zeta)

    @evaluated("(nh),(nb)->(nh)")
    def _rate_of_h(self, h: Vector, eta: Vector) -> Vector:
        return self.model.robot.base.joint.rate(h, eta)

    def _newton(self, zeta: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Newton's method for Pi(zeta) = target, least squares: it lies on the orbit."""
        miss = np.inf
        for _ in range(30):
            momentum, slope = self._momentum_and_slope(zeta)
            miss = float(np.linalg.norm(target - momentum))
            step = np.linalg.lstsq(slope, target - momentum, rcond=None)[0]
            if np.linalg.norm(step) <= 1e-13 * (1.0 + np.linalg.norm(zeta)):
                break
            zeta = zeta + step
        assert miss <= 1e-9 * np.linalg.norm(target), "the chart does not reach it"
        assert abs(float(self.regularity(zeta))) >= REGULAR, "the chart breaks there"
        return zeta

    def _refuse_singular(self, regular: Any) -> None:
        assert not isinstance(regular, float) or abs(regular) >= REGULAR, "the chart breaks there"

    def _at(self, joints: Vector) -> Array:
        """Any configuration with these joints: what is asked there does not depend on the base."""
        return ca.vertcat(constant(self.model.robot.base.joint.neutral), joints)

    def _potential(self, joints: Vector) -> Array:
        return self.model.robot.potential_energy(self._at(joints))

    def _frame(self, joints: Vector) -> Array:
        """Left-invariant fields of the joints in coordinates, shape (nj, ns)."""
        v = ca.SX.sym("v", self.model.nv)
        rate = self.model.robot.rate(self._at(joints), v)[self.nh :, :]
        return ca.jacobian(rate, v)[:, self.nb :]

    def _shape_bracket(self, first: Array, second: Array) -> Array:
        """Bracket of two shape velocities."""
        still = ca.SX(self.nb, 1)
        whole = self.model.robot.bracket(ca.vertcat(still, first), ca.vertcat(still, second))
        return whole[self.nb :, :]

    def _shift(self, zeta: Vector, joints: Vector) -> Array:
        """Shift alpha_mu of (3.3.40) on the slice h = e, for the fields of `two_form`."""
        moved = ca.horzcat(self.body_twists(zeta), self.model.connection(self._at(joints)))
        return moved.T @ self.momentum(zeta)

    def _momenta(self, zeta: Vector, joints: Vector, p: Vector) -> Array:
        """Momenta of the robot: Pi of the base, p + A^T Pi of the shape, Lemma 3.3.5, (3.3.41)."""
        momentum = self.momentum(zeta)
        carried = self.model.connection(self._at(joints)).T @ momentum
        return ca.vertcat(momentum, p + carried)

    def _slopes(self, zeta: Vector, joints: Vector, p: Vector, v: Vector) -> tuple[Array, Array]:
        """Derivatives of the Hamiltonian along zeta and the shape, at fixed p.

        H is the largest P v - v M v / 2 + V over v: the velocity can be held fixed.
        """
        z, x = ca.SX.sym("zeta", self.nc), ca.SX.sym("joints", self.nj)
        own, frozen = ca.SX.sym("p", self.ns), ca.SX.sym("v", self.model.nv)
        mass = self.model.robot.mass_matrix(self._at(x))
        height = (
            ca.dot(self._momenta(z, x, own), frozen)
            - ca.bilin(mass, frozen, frozen) / 2
            + self._potential(x)
        )
        slopes = [ca.gradient(height, z), self._frame(x).T @ ca.gradient(height, x)]
        by_zeta, by_shape = ca.Function("slopes", [z, x, own, frozen], slopes)(zeta, joints, p, v)
        return by_zeta, by_shape

    def _normalized(self, h: np.ndarray) -> np.ndarray:
        at = self.model.robot.base.joint.quaternion_at
        if at is not None:
            h = h.copy()
            h[at : at + 4] /= np.linalg.norm(h[at : at + 4])
        return h
