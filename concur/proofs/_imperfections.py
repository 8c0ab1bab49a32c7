"""Imperfections as disturbances: what they add to the acceleration of each output.

The true robot with inertias (1 + eps_b), |eps_b| <= e, torques u(t_k) held since t_k and errors du
obeys Mhat sdot + chat = u(t_k) + du - sum_b eps_b w_b(phi, s, sdot), w_b the forces that body b
needs for its motion (linear in its inertia; `task-proof`, section 4). With sdot the *true*
acceleration no inverse of the true mass matrix occurs:

    d = K (u(t_k) - u(t) + du - sum_b eps_b w_b(phi, s, sdot)),   K = J H Mhat^-1,

With e = u(t_k) - u(t) and H = h + delay, d(K e)/dt = -K udot + Kdot e gives
|K e| <= H sup |K udot| + H^2 sup |Kdot| sup |udot| over the last H seconds, which may reach into
segments before.

Where the acceleration of the reference jumps by J, the torques held from before are also wrong by a
jump du, which adds K du: |J| at that time, and at most |J| + H sup |Kdot| |du| for the time H.

A command that follows from a wrong reading is wrong by du: this adds at most |K du| at that time,
and H sup |Kdot| |du| as long as it is held.

**What holds.** If the states are in the cells and |d| <= D there, where D is the radius of the ball
of d in the cells, then |d| is at most the sum of these bounds. So if that is below D everywhere,
|d| < D (first exit in time, and continuity in the size of the errors).
"""

from __future__ import annotations

import numpy as np

from concur._polynomials import Floats
from concur.proofs._statement import Statement

JUMPS = "jumps of the reference"
"""Source of disturbances."""


def disturbances(statement: Statement, largest: dict[str, Floats]) -> dict[str, Floats]:
    """Bounds of |d| of both outputs by source over segments, shapes (2, segments).

    Torques of a segment may come from all segments before that are given.
    Of largest values over each segment's cells: of the acceleration of outputs for a relative error
    1, summed over bodies, `weights` (2, segments); of K by columns and its rate, `response` and
    `response_rate` (2, controls, segments); of `torque_rate` (controls, segments); of K udot,
    `held` (2, segments); if the reference jumps, of the `jump` of torques (controls, segments),
    whose |J| comes in addition; with errors of the measured state, of `read` (2, segments) and
    `read_torque` (controls, segments), see `_readings`.
    """
    weights, response = largest["weights"], largest["response"]
    count, period = weights.shape[-1], statement.period + statement.delay
    late = {
        name: np.maximum.accumulate(largest[name], axis=-1)
        for name in ("held", "response_rate", "torque_rate")
    }
    turned = np.einsum("cib,ib->cb", late["response_rate"], late["torque_rate"])
    errors = np.array(statement.torque_error or np.zeros(response.shape[1]))
    push = np.array(statement.push or (0.0, 0.0))
    found = {
        "masses": statement.masses * weights,
        "period and delay": period * late["held"] + period**2 * turned,
        "torque errors": np.einsum("cib,i->cb", response, errors),
        "push": np.repeat(push[:, None], count, axis=1),
    }
    if "read" in largest:
        read, torque = (
            np.maximum.accumulate(largest[name], axis=-1) for name in ("read", "read_torque")
        )
        turned = np.einsum("cib,ib->cb", late["response_rate"], torque)
        found["readings"] = read + period * turned
    if "jump" in largest:
        jump = np.maximum.accumulate(largest["jump"], axis=-1)
        found[JUMPS] = period * np.einsum("cib,ib->cb", late["response_rate"], jump)
    return {name: np.asarray(value * (1 + 1e-12)) for name, value in found.items()}
