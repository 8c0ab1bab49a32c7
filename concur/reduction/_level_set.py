"""Motion on a level set of constants, modulo their groups.

Theorem 4.2.18. The quotient of the level set h = nu by the groups is met by a slice: m
coordinates of the shape are held, q_J = const, and m momenta follow from h = nu, which is affine in
them. The Hamiltonian field X, brought back to the slice along the fields eta_i,

    X_nu = X - sum_i gdot_i eta_i,    gdot = (eta_J)^-1 qdot_J,

is the reduced one, in 2 m coordinates less; g is the displacement along the groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike

from concur.codegen import (
    Array,
    EvaluatedMethods,
    Scalar,
    Vector,
    constant,
    evaluated,
    finite_floats,
)
from concur.reduction._constant import ConstantOfMotion
from concur.reduction._phase_space import PhaseSpace


@dataclass(frozen=True, eq=False)
class LevelSet(EvaluatedMethods):
    """The motion on a level set of constants, divided by their groups (Theorem 4.2.18).

    Made by `ConstantsOfMotion.level_set`. The controls that remain are those that change neither
    the constants nor, by their forces, the groups' invariance; all others have to rest.

    Parameters
    ----------
    space : PhaseSpace
        The phase space before.
    constants : tuple of ConstantOfMotion
        The constants h_1..h_m.
    control_names : tuple of str
        Names of the controls that remain.
    values : tuple of float
        Their values nu.
    origin : tuple of float
        Configuration at the start, (nq,): holds what the slice holds.
    kept : tuple of int
        Indices in q of the coordinates that are left.
    held : tuple of int
        Indices in q of those that the slice holds.
    free : tuple of int
        Indices in p of the momenta that are left.
    solved : tuple of int
        Indices in p of those that follow from the constants.
    start : tuple of float
        The start in the coordinates that are left, (nx,).

    See Also
    --------
    constants_of_motion : finds the constants.

    References
    ----------
    Thesis, Theorem 4.2.18, (4.2.21).

    Examples
    --------
    >>> import concur as cc, numpy as np
    >>> robot = cc.robots.mecanum_arm()
    >>> model = cc.reduce(robot)
    >>> found = cc.reduction.constants_of_motion(model)
    >>> found.names, found.dimension_after
    (('p[hand]',), 18)
    >>> left = found.level_set(robot.neutral(), np.ones(model.ns))
    >>> left.nx, left.values
    (18, (1.0,))
    """

    space: PhaseSpace
    constants: tuple[ConstantOfMotion, ...]
    control_names: tuple[str, ...]
    values: tuple[float, ...]
    origin: tuple[float, ...]
    kept: tuple[int, ...]
    held: tuple[int, ...]
    free: tuple[int, ...]
    solved: tuple[int, ...]
    start: tuple[float, ...]

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.space.name

    @property
    def nx(self) -> int:
        """Number of coordinates x that are left: of q, then of p."""
        return len(self.kept) + len(self.free)

    @property
    def dimension(self) -> int:
        """Dimension of the quotient: that of x, less one for each quaternion in it."""
        return 2 * (self.ns - self.m)

    @property
    def m(self) -> int:
        """Number of constants."""
        return len(self.values)

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.space.nq

    @property
    def ns(self) -> int:
        """Number of shape velocities before."""
        return self.space.ns

    @property
    def nu(self) -> int:
        """Number of controls that remain."""
        return len(self.control_names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates x."""
        space = self.space
        return (
            *(space.coordinate_names[i] for i in self.kept),
            *(f"p[{space.momentum_names[i]}]" for i in self.free),
        )

    @evaluated("(nx)->(nq),(ns)")
    def state(self, x: Vector) -> tuple[Vector, Vector]:
        """State on the slice.

        Parameters
        ----------
        x : array_like
            Remaining coordinates, shape (nx,).

        Returns
        -------
        q, p : numpy.ndarray or casadi.SX
            Configuration and reduced momentum, shapes (nq,) and (ns,).
        """
        q = ca.SX(constant(np.array(self.origin)))
        p = ca.SX(self.ns, 1)
        count = len(self.kept)
        for k, i in enumerate(self.kept):
            q[i] = x[k]
        for k, i in enumerate(self.free):
            p[i] = x[count + k]
        # Affine in the momenta: h(q, p) = h(q, p0) + A (p - p0), p0 those that are left.
        missing, rows = [], []
        for one, value in zip(self.constants, self.values, strict=True):
            _, along_p, _ = one.slopes(q, p)
            missing.append(value - one.value(q, p))
            rows.append(along_p[list(self.solved), :].T)
        p[list(self.solved)] = ca.solve(ca.densify(ca.vertcat(*rows)), ca.vertcat(*missing))
        return ca.densify(q), ca.densify(p)

    @evaluated("(nx)->()")
    def hamiltonian(self, x: Vector) -> Scalar:
        """Reduced Hamiltonian: energy on the level set, J.

        Parameters
        ----------
        x : array_like
            Remaining coordinates, shape (nx,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return self.space.energy(*self.state(x))

    @evaluated("(nx),(nu)->(nx),(m)")
    def vector_field(self, x: Vector, u: Vector) -> tuple[Vector, Vector]:
        """Motion that is left, and that of the groups.

        Parameters
        ----------
        x : array_like
            Coordinates that are left, shape (nx,).
        u : array_like
            Forces of the controls that remain, `control_names`, shape (nu,), N and N m.

        Returns
        -------
        xdot : numpy.ndarray or casadi.SX
            Their rates, shape (nx,).
        gdot : numpy.ndarray or casadi.SX
            How fast the motion goes along each of the fields eta, shape (m,).
        """
        space = self.space
        q, p = self.state(x)
        slope, s, form, inputs = space.slopes(q, p)
        acting = [space.control_names.index(name) for name in self.control_names]
        frame, pdot = space.frame(q), form @ s - slope + inputs[:, acting] @ u
        fields = [one.field(q, p) for one in self.constants]
        along_q = frame @ ca.horzcat(*[velocity for velocity, _ in fields])
        along_p = ca.horzcat(*[rate for _, rate in fields])
        held = list(self.held)
        qdot = frame @ s
        gdot = ca.solve(ca.densify(along_q[held, :]), ca.densify(qdot[held, :]))
        left_q, left_p = qdot - along_q @ gdot, pdot - along_p @ gdot
        xdot = ca.vertcat(left_q[list(self.kept), :], left_p[list(self.free), :])
        return ca.densify(xdot), gdot

    @evaluated("(nx)->()")
    def regularity(self, x: Vector) -> Scalar:
        """How well the fields cross the slice.

        Determinant of the fields' rates of the held coordinates over its value at the start: zero
        where the slice fails, and another start has to be chosen.

        Parameters
        ----------
        x : array_like
            Remaining coordinates, shape (nx,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return self._crossing(x) / self._crossing(constant(np.array(self.start)))

    def _crossing(self, x: Vector) -> Array:
        q, p = self.state(x)
        velocities = ca.horzcat(*[one.field(q, p)[0] for one in self.constants])
        return ca.det(ca.densify((self.space.frame(q) @ velocities)[list(self.held), :]))

    def moved(self, x: ArrayLike, shift: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """State off the slice: the groups move a state on it by what was passed along them.

        Parameters
        ----------
        x : array_like
            Coordinates that are left, shape (nx,).
        shift : array_like
            Motion g along each of the fields, the integral of gdot, shape (m,).

        Returns
        -------
        q, p : numpy.ndarray
            Configuration and reduced momentum, shapes (nq,) and (ns,); the coordinates of joints
            that were reduced before stay where they were at the start.

        Raises
        ------
        ShapeError, NonFiniteError
            If the arguments have the wrong shapes or are not finite.
        """
        amount = finite_floats(shift, f"moved of `{self.name}`, argument `shift`", (self.m,))
        q, p = self.state(x)
        space = self.space

        def rate(_: float, y: np.ndarray) -> np.ndarray:
            at = y[: self.nq], y[self.nq :]
            velocity, pdot = np.zeros(self.ns), np.zeros(self.ns)
            for one, much in zip(self.constants, amount, strict=True):
                own = one.field(*at)
                velocity, pdot = velocity + much * own[0], pdot + much * own[1]
            return np.concatenate([space.rates(at[0], velocity), pdot])

        found = scipy.integrate.solve_ivp(
            rate, (0.0, 1.0), np.concatenate([q, p]), method="DOP853", rtol=1e-12, atol=1e-13
        )
        return found.y[: self.nq, -1], found.y[self.nq :, -1]
