"""Lie groups of rigid motion: rotations, planar motions, rigid motions, quaternions.

One module per group, named after it: `so3`, `se2`, `se3`, `quaternion` for unit
quaternions as coordinates of SO(3), and `s2` for directions, on which SO(3) acts. Every
function takes NumPy arrays and returns ``float64`` arrays, or takes CasADi ``SX`` and
returns ``SX`` with its structural zeros kept. Numbers of a wrong shape raise
`concur.errors.ShapeError`, NaN and infinities `concur.errors.NonFiniteError`.
`classify` returns the displacement subgroup that twists given as numbers span.

Notes
-----
Conventions, the same everywhere:

- A twist is ``[v; w]``, linear part first, in m/s and rad/s (m and rad as the argument of
  an exponential). The basis twists E1..E6 are the columns of the 6x6 identity: unit
  translations along x, y, z, then unit rotations about x, y, z. A planar twist is
  ``(vx, vy, w)`` in body axes.
- A pose is the 4x4 matrix ``[[R, p], [0, 1]]`` from body to world coordinates; a planar
  pose is ``(x, y, theta)``. Quaternions are ``(x, y, z, w)`` of unit norm.
- Velocities are left-trivialised (body): ``r^-1 rdot``. There are two differentials of
  the exponential, with ``ad`` the adjoint operator of the argument `x` of ``r = exp(x)``::

      dexp_body     D(x) = int_0^1 exp(-tau ad) dtau,   r^-1 rdot = D(x) xdot    (2.1.4)
      dexp_spatial  F(x) = int_0^1 exp(+tau ad) dtau,   rdot r^-1 = F(x) xdot    (2.3.7)

  ``F(x) = D(-x) = Ad_exp(x) D(x)``. Both are invertible while the angle is no nonzero
  multiple of 2 pi.

All formulas are smooth functions of the squared angle: they and their derivatives of
every order that CasADi forms, forward and reverse, are finite at zero rotation. The
logarithms are two-valued at the angle pi and return one of the two values there.

Equation numbers are those of R. Chhabra's PhD thesis, Toronto 2014.
"""

from concur.groups import quaternion, s2, se2, se3, so3
from concur.groups._classify import Subgroup, classify
from concur.groups._isotropy import Isotropy, isotropy

__all__ = [
    "Isotropy",
    "Subgroup",
    "classify",
    "isotropy",
    "quaternion",
    "s2",
    "se2",
    "se3",
    "so3",
]
