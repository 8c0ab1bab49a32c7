"""Everything a run is judged by, computed from its states afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from concur.codegen import Evaluator
from concur.control import TrackingLaw, decoupling_margins, side
from concur.robot import Mechanism
from concur.simulation._plant import Plant

TOGETHER = 200
"""Samples for which compiled functions are called at once."""

_NUMBERS = ("lyapunov", "constraint_residual", "energy")


class Recorder:
    """Functions of the state that are evaluated over many samples at once."""

    def __init__(
        self, servo: TrackingLaw, plant: Plant, compiled: Sequence[ca.Function] | None = None
    ) -> None:
        self._servo, self.plant = servo, plant
        self._compiled = [_Together(function) for function in compiled or ()]
        self._graphs = [] if compiled else [_states(servo, plant), _metric(servo)]

    def __call__(
        self, q: np.ndarray, v: np.ndarray, reference: tuple[np.ndarray, ...]
    ) -> dict[str, np.ndarray]:
        """Evaluate at states (k, nq) and (k, nv) beside the flat reference: one row per sample."""
        values = self._evaluated(0, q, v, *reference[:2])
        rows = dict(zip(_RECORDED, values, strict=False))
        return rows | {name: rows[name][:, 0] for name in _NUMBERS}

    def law(
        self, q: np.ndarray, v: np.ndarray, z: np.ndarray, reference: tuple[np.ndarray, ...]
    ) -> dict[str, np.ndarray]:
        """Evaluate the law at samples, with its state (k, nz): rows of u, missed and scale."""
        if len(self._graphs) == 2:
            self._graphs.append(self._servo.graph())
        given = [q, self._servo.law_velocities(v), *reference, *([z] if z.size else [])]
        u, _, missed, scale, *_ = self._evaluated(2, *given)
        return {"u": u, "acceleration_residual": missed, "scale": scale[:, 0]}

    def margins(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margin of the decoupling matrix at samples, as `Servo.margin`, and its orientation.

        The orientation is the law's side of singular configurations: where it changes, one was
        passed between two samples. Both are zero where the wheels leave no decoupling matrix.
        """
        size, ns, k = self._servo.size, self._servo.ns, q.shape[0]
        decoupling, mass, regularity, sides, actuation = self._evaluated(1, q)
        # Columns of a matrix lie one behind the other.
        rows = decoupling.reshape(k, ns, size).transpose(0, 2, 1)
        metric = mass.reshape(k, ns, ns)
        regular, model = regularity[:, 0], self._servo.model
        if size and not model.driven_directly:
            matrices = actuation.reshape(k, model.nu, ns).transpose(0, 2, 1)
            regular = np.minimum(regular, model.leverages(matrices))
        margins = decoupling_margins(self._servo.scales[0], rows, metric, regular)
        return margins, np.where(np.isfinite(rows).all(axis=(1, 2)), sides[:, 0], 0.0)

    def _evaluated(self, index: int, *tables: np.ndarray) -> list[np.ndarray]:
        if self._compiled:
            return self._compiled[index](*tables)
        values = self._graphs[index].call([ca.DM(table.T) for table in tables])
        return [np.array(value).T for value in values]


_RECORDED = (
    "error",
    "velocity_error",
    "lyapunov",
    "constraint_residual",
    "energy",
    "momentum",
    "inner_momentum",
    "pose",
    "slip_speed",
)
"""Results of `_states`; the last one where wheels may slip."""


def recorded_together(servo: TrackingLaw, plant: Plant, law: bool) -> list[ca.Function]:
    """Functions of a `Recorder` over `TOGETHER` samples, to be compiled; with `law` torques too."""
    graphs = [_states(servo, plant), _metric(servo), *([servo.graph()] if law else [])]
    return [graph.map(TOGETHER) for graph in graphs]


def _states(servo: TrackingLaw, plant: Plant) -> ca.Function:
    robot = plant.robot
    q, v = ca.SX.sym("q", servo.nq), ca.SX.sym("v", plant.nv)
    pose, twist = ca.SX.sym("pose", servo.pose_size), ca.SX.sym("twist", servo.size)
    s = servo.law_velocities(v)
    x, ve = servo.errors(q, s, pose, twist)
    residual = robot.constraints(q) @ v
    momenta = [ca.SX.nan(6)] * 2
    if isinstance(robot, Mechanism):
        moving = ca.SX(v)
        moving[: robot.base.joint.nv] = 0.0
        momenta = [robot.momentum(q, v), robot.momentum(q, moving)]
    results = [
        x,
        ve,
        servo.lyapunov_function(q, s, pose, twist),
        ca.norm_inf(residual) if plant.nf else ca.SX(0),
        robot.kinetic_energy(q, v) + robot.potential_energy(q),
        *momenta,
        servo.output(q),
        *([plant.slip_speeds(q, v, ca.SX(0, 1))] if plant.slip is not None else []),
    ]
    return ca.Function(
        "record", [q, v, pose, twist], [ca.densify(ca.SX(r)) for r in results], {"cse": True}
    )


def _metric(servo: TrackingLaw) -> ca.Function:
    """What margins are computed from; matrices as columns."""
    q = ca.SX.sym("q", servo.nq)
    model = servo.model
    parts = [servo.decoupling(q), model.mass_matrix(q), model.regularity(q), side(servo, q)]
    parts.append(ca.SX(0) if model.driven_directly else model.input_matrix(q))
    return ca.Function("metric", [q], [ca.vec(ca.densify(part)) for part in parts], {"cse": True})


class _Together:
    """Machine code for many samples, called through buffers."""

    def __init__(self, function: ca.Function) -> None:
        sizes = [function.size_out(i) for i in range(function.n_out())]
        self._evaluator = Evaluator(function, sizes, "record", can_fail=False)

    def __call__(self, *tables: np.ndarray) -> list[np.ndarray]:
        count = len(tables[0])
        inputs, outputs = self._evaluator.inputs, self._evaluator.outputs
        results = [np.empty((count, view.shape[0])) for view in outputs]
        for start in range(0, count, TOGETHER):
            width = min(TOGETHER, count - start)
            for view, table in zip(inputs, tables, strict=True):
                view[:, :width] = table[start : start + width].T
                # The remaining rows are filled with valid numbers.
                view[:, width:] = table[-1:].T
            self._evaluator.trigger()
            for result, view in zip(results, outputs, strict=True):
                result[start : start + width] = view[:, :width].T
        return results
