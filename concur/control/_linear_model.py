"""A reduced model linearized at rest, for robots whose motors do not move everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.errors import OutputError
from concur.reduction import ReducedModel

if TYPE_CHECKING:
    import control

AT_REST = 1e-9
"""Acceleration that the controls leave, in parts of that of the bias, below which it is rest."""


def linear_model(model: ReducedModel, at: ArrayLike | None) -> control.StateSpace:
    """Linearize a reduced model at a configuration in which the controls hold it at rest."""
    import control

    where = f"linear loop of `{model.name}`, `at`"
    if at is None:
        raise OutputError(
            where,
            expected="the configuration in which the robot rests",
            came="None",
            cure="Write linear_loop(model, at=q).",
        )
    if not model.ns:
        raise OutputError(
            f"linear loop of `{model.name}`",
            expected="a model with shape velocities",
            came="none, so that nothing is left to be controlled",
            cure="Add a joint, or actuate the base.",
        )
    q = model.system.check_configuration(at, "`at`")
    still = np.zeros(model.ns)
    inputs, bias = model.input_matrix(q), model.bias(q, still)
    holding = np.linalg.lstsq(inputs, bias, rcond=None)[0]
    roots = np.sqrt(np.diag(model.mass_matrix(q)))  # forces as accelerations of like units
    left, size = (np.linalg.norm(x / roots) for x in (bias - inputs @ holding, bias))
    moving = np.abs(model.velocity(q, still)).max(initial=0.0)
    if left > AT_REST * size or moving > 0.0:
        raise OutputError(
            where,
            expected="a configuration in which the controls hold the robot at rest",
            came=f"an acceleration of {left:.3g}" if not moving else "a robot with a momentum",
            cure="Let loads hang straight down, and take the momentum as zero.",
        )
    x, s = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns)
    u = ca.SX.sym("u", model.nu)
    sdot = model.acceleration(x, s, u)
    horizontal = model.lift(x)[0]
    displaced = ca.horzcat(
        *[ca.jtimes(sdot, x, model.system.rate(x, horizontal[:, k])) for k in range(model.ns)]
    )
    parts = [displaced, ca.jacobian(sdot, s), ca.jacobian(sdot, u)]
    slopes = ca.Function("slopes", [x, s, u], [ca.densify(part) for part in parts], {"cse": True})
    springs, dampers, pushes = (np.array(part) for part in slopes(q, still, holding))
    n = model.ns
    names = [*labels("displacement", model.shape_names), *labels("s", model.shape_names)]
    return control.ss(
        np.block([[np.zeros((n, n)), np.eye(n)], [springs, dampers]]),
        np.vstack([np.zeros((n, model.nu)), pushes]),
        np.eye(2 * n),
        np.zeros((2 * n, model.nu)),
        inputs=labels("u", model.control_names),
        outputs=names,
        states=names,
        name="model",
    )


def labels(kind: str, names: Sequence[str]) -> list[str]:
    """Name signals for python-control, which keeps the point for a system and its signal."""
    return [f"{kind}[{name}]".replace(".", "_") for name in names]
