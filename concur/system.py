"""What `reduce`, `Plant` and `forced_motion` need of a robot: a `Mechanism`, or any other system.

Functions that need a tree of bodies, wheels, a base or a momentum require a `Mechanism`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Place, Vector
from concur.errors import ConcurError


class System(Protocol):
    """A system with ``M(q) vdot + bias(q, v) = B u + C(q)^T lambda`` and ``C(q) v = 0``.

    Methods that take arrays take NumPy arrays or CasADi SX and return the same kind, as those
    decorated by `concur.codegen.evaluated` do. Units are SI. Everything downstream relies on an
    unchanging object: make it a frozen dataclass.
    """

    # Names and sizes.
    @property
    def name(self) -> str:
        """Name in messages and records."""

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""

    @property
    def nf(self) -> int:
        """Number of constraints, fewer than nv."""

    @property
    def freedom_names(self) -> tuple[str, ...]:
        """Name of each velocity coordinate, (nv,)."""

    @property
    def effort_units(self) -> tuple[str, ...]:
        """Unit of the force along each velocity coordinate, (nv,)."""

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Name of each constraint, (nf,)."""

    @property
    def actuated_freedoms(self) -> tuple[int, ...]:
        """Indices in v of the driven velocities."""

    @property
    def quaternions(self) -> Mapping[Place, str]:
        """Where unit quaternions start in q, or directions start and end, and whose they are."""

    # Configurations.
    def neutral(self) -> np.ndarray:
        """Configuration to start from, (nq,)."""

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a configuration, (nq,)."""

    def check_configuration(self, q: ArrayLike, where: str = ...) -> np.ndarray:
        """Configuration that a user gave, (nq,), checked; errors name `where`."""

    def rate(self, q: Vector, v: Vector) -> Vector:
        """Rate of the configuration for a velocity: qdot, (nq,)."""

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Configuration after a displacement (nv,), (nq,)."""

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        """Rate of the displacement dv of `integrate` that moves with v, (nv,)."""

    def normalize(self, coordinates: Array) -> Array:
        """Configuration nearest to coordinates that an integrator left, (nq,)."""

    # Dynamics.
    def mass_matrix(self, q: Vector) -> Array:
        """Mass matrix M, symmetric and positive definite, (nv, nv)."""

    def bias(self, q: Vector, v: Vector) -> Vector:
        """Coriolis, centrifugal and potential forces, (nv,)."""

    def inverse_dynamics(self, q: Vector, v: Vector, vdot: Vector) -> Vector:
        """Forces for an acceleration: M vdot + bias, (nv,)."""

    def constraints(self, q: Vector) -> Array:
        """Rows of the constraints C v = 0, (nf, nv), of full rank nearly everywhere."""

    def kinetic_energy(self, q: Vector, v: Vector) -> Array:
        """Kinetic energy, J."""

    def potential_energy(self, q: Vector) -> Array:
        """Potential energy, J."""


MEMBERS = tuple(name for name in vars(System) if not name.startswith("_"))
"""Names of all members of a `System`."""


def displacement_rate(system: System, q: Vector, dv: Vector, v: Vector) -> Array:
    """Rate of the displacement dv of `integrate` that leads to q and moves with v.

    Parameters
    ----------
    system : System
        Any system. If its velocities are not those along which `integrate` moves, its member
        `factor_velocity(q, v)` gives these.
    q : casadi.SX
        Configuration after the displacement, shape (nq,).
    dv, v : casadi.SX
        Displacement and velocity, each (nv,).

    Returns
    -------
    casadi.SX
        Shape (nv,).
    """
    along = getattr(system, "factor_velocity", None)
    return system.dexp_inverse(dv, v if along is None else along(q, v))


def check_system(candidate: object, where: str, kind: type[ConcurError]) -> None:
    """Demand a `System`.

    Parameters
    ----------
    candidate : object
        What a user gave.
    where : str
        Place named in the error.
    kind : type
        Class of the error.

    Raises
    ------
    ConcurError
        If a member of `System` is missing.
    """
    missing = [x for x in MEMBERS if isinstance(candidate, type) or not hasattr(candidate, x)]
    if missing:
        lacking = f" without {', '.join(missing)}" if len(missing) < len(MEMBERS) // 2 else ""
        raise kind(
            where,
            expected="a Mechanism, or another system with its members",
            came=f"{type(candidate).__name__} {candidate!r:.40}{lacking}",
            cure="Load a robot with concur.load(path), take one of concur.robots, or see "
            "concur.system.System.",
        )
