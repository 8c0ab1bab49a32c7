"""Displacements along curves of the shape, as expressions: Magnus steps of order four.

A step from x to x + h takes the velocities k1, k2 at its two Gauss points and appends
``exp(h (k1 + k2) / 2 + (sqrt(3) / 12) h^2 [k1, k2])``.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from concur.codegen import Array
from concur.groups import se3
from concur.planning._fibre import Fibre

Curve = Callable[[Array], tuple[Array, Array]]
"""From the path parameter to the shape and its slope."""


def transport(fibre: Fibre, curve: Curve, unknowns: Array, steps: int) -> Callable[[ca.MX], ca.MX]:
    """Displacement (4, 4) over the path parameter from 0 to 1, as a function of unknowns.

    `curve` is an expression of the unknowns, over SX.
    """
    x, h = ca.SX.sym("x"), 1.0 / steps
    basis = ca.SX(ca.DM(fibre.joint.basis))

    def velocity(at: Array) -> Array:
        r, slope = curve(at)
        return -fibre.side * basis @ (fibre.connection(r) @ slope)

    first, second = (velocity(x + h * (0.5 + k * np.sqrt(3) / 6)) for k in (-1, 1))
    way = h / 2 * (first + second) + np.sqrt(3) / 12 * h**2 * se3.ad(first) @ second
    step = ca.Function("step", [unknowns, x], [ca.densify(se3.exp(way))], {"cse": True})
    poses = [ca.SX.sym(f"g{k}", 4, 4) for k in range(steps)]
    product = poses
    while len(product) > 1:
        joined = [a @ b for a, b in zip(product[::2], product[1::2], strict=False)]
        product = joined + product[len(product) - len(product) % 2 :]
    whole = product[0] if fibre.side > 0 else se3.inverse(product[0])
    chain = ca.Function("chain", [ca.horzcat(*poses)], [ca.densify(whole)])
    starts = ca.DM(np.arange(steps) / steps).T

    def displacement(values: ca.MX) -> ca.MX:
        each = step.map(steps)(values, ca.MX(starts))
        return chain(each)

    return displacement
