"""One constant of motion of the reduced system: a function, its field, and what was found of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca

from concur.codegen import EvaluatedMethods, Matrix, Place, Scalar, Vector, evaluated
from concur.reduction._phase_space import PhaseSpace
from concur.reduction._search import ROUNDING


@dataclass(frozen=True, eq=False)
class ConstantOfMotion(EvaluatedMethods):
    """A function h(q, p) on the reduced phase space, tested; made by `constants_of_motion`.

    Parameters
    ----------
    name : str
        What it is called.
    space : PhaseSpace
        Where it lives.
    function : casadi.Function
        h of the configuration and the reduced momentum.
    rate : float
        Largest ``{h, H}``, its rate without forces, relative to the terms that have to cancel.
    bending : float
        How much the shape part of its field depends on the momenta, relative to its size.
    two_form_defect : float
        Largest ``iota_eta dXi`` on its own level sets, relative to the field and the momenta.
    steepness : float
        Smallest relative size of dh: zero where its values are not regular.
    controls : tuple of str
        Controls that change it.

    See Also
    --------
    constants_of_motion : makes them.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.planar_floater())
    >>> found = cc.reduction.constants_of_motion(model, {"energy": model.hamiltonian})
    >>> energy = found["energy"]
    >>> energy.conserved, energy.rate < 1e-9
    (True, True)
    >>> energy.controls
    ('upper_arm', 'forearm')
    """

    name: str
    space: PhaseSpace
    function: ca.Function
    rate: float
    bending: float
    two_form_defect: float
    steepness: float
    controls: tuple[str, ...]

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.space.nq

    @property
    def ns(self) -> int:
        """Number of shape velocities."""
        return self.space.ns

    @property
    def nu(self) -> int:
        """Number of controls."""
        return self.space.nu

    @property
    def quaternions(self) -> Mapping[Place, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        return self.space.quaternions

    @property
    def conserved(self) -> bool:
        """Whether it is constant while no control acts that changes it."""
        return self.rate <= ROUNDING

    @property
    def generator(self) -> bool:
        """Whether its field covers a motion of the shape, which needs h affine in the momenta."""
        return self.bending <= ROUNDING

    @property
    def basic(self) -> bool:
        """Whether its field preserves the two-form on the level sets."""
        return self.two_form_defect <= ROUNDING

    @property
    def reducible(self) -> bool:
        """Whether the reduced system can be reduced further by it alone (Proposition 4.2.16)."""
        return self.conserved and self.generator and self.basic and self.steepness > ROUNDING

    @property
    def why(self) -> str:
        """The evidence, with numbers."""
        unmet = {
            f"changes along the motion, {{h, H}} = {self.rate:.1e}": self.conserved,
            "not affine in the momenta: its field is no motion of the shape": self.generator,
            f"its field changes the two-form on the level set ({self.two_form_defect:.1e})": (
                self.basic
            ),
            "its differential vanishes somewhere": self.steepness > ROUNDING,
            f"changed by the controls {', '.join(self.controls)}": not self.controls,
        }
        texts = [text for text, holds in unmet.items() if not holds]
        return "; ".join(texts) or "constant, and its field generates motions that keep Omega"

    def __str__(self) -> str:
        verdict = "reduces" if self.reducible else "kept" if self.conserved else "no constant"
        return f"{self.name}: {verdict}, {self.why}"

    @evaluated("(nq),(ns)->()")
    def value(self, q: Vector, p: Vector) -> Scalar:
        """Value h of the constant.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        p : array_like
            Reduced momentum Mhat s, shape (ns,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return self.function(q, p)

    @evaluated("(nq),(ns)->(ns),(ns)")
    def field(self, q: Vector, p: Vector) -> tuple[Vector, Vector]:
        """Hamiltonian field eta of h, ``iota_eta Omega = dh``.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        p : array_like
            Reduced momentum Mhat s, shape (ns,).

        Returns
        -------
        velocity : numpy.ndarray or casadi.SX
            Shape velocities, dh/dp, shape (ns,).
        pdot : numpy.ndarray or casadi.SX
            Rate of the momenta, ``-E h + (Xi - c p) dh/dp``, shape (ns,).
        """
        along_q, along_p = self.space.differential(self.function(q, p), q, p)
        return along_p, self.space.form(q, p) @ along_p - along_q

    @evaluated("(nq),(ns)->()")
    def bracket(self, q: Vector, p: Vector) -> Scalar:
        """Rate of h without forces, ``{h, H}``: zero for a constant of motion.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        p : array_like
            Reduced momentum Mhat s, shape (ns,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        along_q, along_p = self.space.differential(self.function(q, p), q, p)
        slope, s, form, _ = self.space.slopes(q, p)
        return ca.dot(along_q, s) + ca.dot(along_p, form @ s - slope)

    @evaluated("(nq),(ns)->(ns,nu)")
    def turning(self, q: Vector, p: Vector) -> Matrix:
        """Lie derivative along eta of the one-form of each control's force.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        p : array_like
            Reduced momentum Mhat s, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns, nu).
        """
        _, velocity = self.space.differential(self.function(q, p), q, p)
        frame, inputs = self.space.frame(q), ca.densify(self.space.inputs(q))
        along = ca.reshape(ca.jtimes(ca.vec(inputs), q, frame @ velocity), *inputs.shape)
        own = ca.horzcat(
            *[ca.SX(ca.DM(constants.T)) @ velocity for constants in self.space.structure]
        )
        spreading = ca.jacobian(velocity, q) @ frame
        return along + (spreading.T - own) @ inputs

    @evaluated("(nq),(ns)->(ns),(ns),(ns,ns)")
    def slopes(self, q: Vector, p: Vector) -> tuple[Vector, Vector, Matrix]:
        """Differential of h and how it bends.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        p : array_like
            Reduced momentum Mhat s, shape (ns,).

        Returns
        -------
        along_shape : numpy.ndarray or casadi.SX
            E h, along each shape velocity, shape (ns,).
        along_momenta : numpy.ndarray or casadi.SX
            dh/dp, shape (ns,).
        bending : numpy.ndarray or casadi.SX
            Second derivative in the momenta, shape (ns, ns).
        """
        along_q, along_p = self.space.differential(self.function(q, p), q, p)
        return along_q, along_p, ca.jacobian(along_p, p)
