"""The servo as a system of python-control: the law alone, or with the model behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from concur.codegen import Evaluator, attitude_error
from concur.control import TrackingLaw, attitudes, labels, loop_of, refusal, taken_velocities
from concur.errors import ConcurError
from concur.export._signals import law_signals
from concur.outputs import pose_quaternions

if TYPE_CHECKING:
    import control

INPUTS = ("q", "s", "pose", "twist", "acceleration")
"""Inputs of a law without a state, at the momentum of its model."""


def to_iosystem(servo: TrackingLaw, closed_loop: bool = False) -> control.NonlinearIOSystem:
    """Wrap the law, or the reduced closed loop, as a system of python-control.

    Signals carry the names of the model, with "_" for ".". Inputs of the law, in order:
    ``q[...]`` and ``s[...]``, configuration and shape velocities (m, rad, quaternions without
    unit; m/s, rad/s), with ``v[...]``, all velocities, if the servo takes measured ones;
    ``pose[...]``, ``twist[...]`` and ``acceleration[...]``, the flat reference as in
    `ReferenceSample` (m, rad; m/s, rad/s; m/s^2, rad/s^2). Outputs of the law: ``u[...]``, the
    controls (N, N m). It has no states.

    The closed loop has the states ``q[...]`` and ``s[...]``, the reference as inputs, and as
    outputs ``output[...]``, the flat output in the units of the pose, ``error[...]`` and
    ``velocity_error[...]``, x and ve (m, rad; m/s, rad/s), and ``u[...]``. It moves by the
    reduced model; `simulate` moves the full-order plant.

    Parameters
    ----------
    servo : TrackingLaw
        The law.
    closed_loop : bool
        Whether the model comes with the law.

    Returns
    -------
    control.NonlinearIOSystem
        The system, in continuous time. Evaluating it raises SingularConfigurationError where
        the law gives no torque, and NonFiniteError for numbers that are not finite. Only the law
        with q and velocities of exactly zero gives zero instead: `control.interconnect` asks for
        that before the state is known.

    Examples
    --------
    >>> import concur as cc, control, numpy as np
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=[4, 9], damping=[4, 6])
    >>> system = servo.to_iosystem(closed_loop=True)
    >>> system.nstates, system.ninputs, system.noutputs
    (13, 15, 20)
    >>> q, s = np.array([0, 0, 0, 0, 0, 0.1, 1.2, -1.6]), np.zeros(5)
    >>> reference = cc.references.hold(servo.output(q))
    >>> times = np.linspace(0.0, 1.0, 11)
    >>> inputs = np.hstack(reference.sample(times)).T
    >>> response = control.input_output_response(system, times, inputs, [*q, *s])
    >>> bool(np.abs(response.outputs[5:10]).max() < 1e-9)
    True
    """
    import control

    names = _names(servo)
    reference = [*names["pose"], *names["twist"], *names["acceleration"]]
    if not closed_loop:
        law = servo.buffered("law")
        ends = np.cumsum([servo.inputs[name] for name in INPUTS])[:-1]

        def torques(t: float, x: np.ndarray, inputs: np.ndarray, params: Any) -> np.ndarray:
            try:
                u, pivot, *_ = law(*np.split(inputs, ends))
                return _checked(servo, inputs[: servo.nq], u, pivot)
            except ConcurError:
                if inputs[: ends[1]].any() or not np.isfinite(inputs).all():
                    raise
                return np.zeros(servo.nu)

        return control.nlsys(
            None,
            torques,
            inputs=[*names["q"], *names["v" if servo.use_measured_velocity else "s"], *reference],
            outputs=names["u"],
            name="law",
        )
    # The state's quaternions drift in an integrator; only those of the reference are judged.
    loop, in_pose = _closed_loop(servo), pose_quaternions(servo.outputs)
    ends = np.cumsum([servo.nq, servo.ns, servo.pose_size, servo.twist_size])

    def evaluate(state: np.ndarray, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = np.split(np.concatenate([state, inputs]), ends)
        error = attitude_error(f"closed loop of `{servo.name}`", "pose", values[2], in_pose)
        if error is not None:
            raise error
        rates, outputs, u, pivot = loop(*values)
        return rates, np.concatenate([outputs, _checked(servo, state[: servo.nq], u, pivot)])

    return control.nlsys(
        lambda t, x, u, params: evaluate(x, u)[0],
        lambda t, x, u, params: evaluate(x, u)[1],
        inputs=reference,
        outputs=[*names["output"], *names["error"], *names["velocity_error"], *names["u"]],
        states=[*names["q"], *labels("s", servo.model.shape_names)],
        name="closed_loop",
    )


def _checked(servo: TrackingLaw, q: np.ndarray, u: np.ndarray, pivot: float) -> np.ndarray:
    """Controls, if the law vouches for them."""
    if not (np.isfinite(u).all() and pivot >= servo.singular_margin):
        raise refusal(servo, q, u, pivot)
    return u


def _closed_loop(servo: TrackingLaw) -> Evaluator:
    """Rates of the state, outputs, controls and pivot from state and reference."""
    model, sizes = servo.model, {**servo.inputs, "s": servo.ns, "u": servo.nu}
    symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    q, s, pose, twist, u = (symbols[name] for name in ("q", "s", "pose", "twist", "u"))
    v = model.velocity(q, s)
    w = taken_velocities(servo, v)
    motion = ca.Function(
        "motion", [q, s, u], [ca.vertcat(model.system.rate(q, v), model.acceleration(q, s, u))]
    )
    outputs = ca.vertcat(servo.output(q), *servo.errors(q, w, pose, twist))
    seen = ca.Function("seen", [q, s, pose, twist], [w, outputs])
    # Over MX, since torque limits make the law a function that cannot be expanded.
    inputs = [ca.MX.sym(name, sizes[name]) for name in INPUTS]
    unit, unit_pose, _ = attitudes(servo)(inputs[0], inputs[2])
    w, shown = seen(unit, inputs[1], unit_pose, inputs[3])
    given = {"q": unit, "s": w, "pose": unit_pose, "twist": inputs[3], "acceleration": inputs[4]}
    found = servo.results(given)
    results = [motion(unit, inputs[1], found["u"]), shown, found["u"], found["pivot"]]
    graph = ca.Function(
        "closed_loop",
        inputs,
        [*map(ca.densify, results)],
        [*INPUTS],
        ["rates", "outputs", "u", "pivot"],
    )
    shapes: list[tuple[int, ...]] = [(int(result.numel()),) for result in results[:3]]
    return Evaluator(graph, [*shapes, ()], f"closed loop of `{servo.name}`")


def _names(servo: TrackingLaw) -> dict[str, list[str]]:
    """Names of all signals, in the order of the arrays they stand for."""
    known, (errors, _) = law_signals(servo), loop_of(servo)
    entries = {name: [entry.name for entry in signal.entries] for name, signal in known.items()}
    named = {name: entries[name] for name in ("q", "pose", "twist", "acceleration", "u")} | {
        "v" if servo.use_measured_velocity else "s": entries["s"],
        "output": entries["pose"],
        "error": errors,
        "velocity_error": errors,
    }
    return {kind: labels(kind, names) for kind, names in named.items()}
