"""Everything a run is judged by, computed from its states afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import cast

import casadi as ca
import numpy as np

from concur.codegen import Evaluator
from concur.control import TrackingLaw, decoupling_margins, side, taken_velocities
from concur.outputs import Reference, ReferenceSample
from concur.robot import Mechanism
from concur.simulation._imperfections import Imperfections
from concur.simulation._motors import heat_of
from concur.simulation._plant import Plant
from concur.simulation._run import Run

TOGETHER = 200
"""Samples for which compiled functions are called at once."""

_NUMBERS = ("lyapunov", "constraint_residual", "energy")


class Recorder:
    """Functions of the state that are evaluated over many samples at once."""

    def __init__(
        self, servo: TrackingLaw, plant: Plant, compiled: Sequence[ca.Function] | None = None
    ) -> None:
        self.servo, self.plant = servo, plant
        self._compiled = [_Together(function) for function in compiled or ()]

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
        """Evaluate the law at samples, with its state (k, nz): its residual, scale and limits."""
        given = {"q": q, "s": taken_velocities(self.servo, v), "z": z}
        given |= dict(zip(self.servo.sampled, reference, strict=True))
        found = self.servo.results({name: ca.DM(table.T) for name, table in given.items()})
        names = ("missed", "scale", "active")
        missed, scale, active = (np.array(found[name]).T for name in names)
        return {"acceleration_residual": missed, "scale": scale.ravel(), "active": active}

    def rows(self, reference: Reference, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All arrays of a run by name, from those that `recorded_run` takes."""
        servo, plant, rows = self.servo, self.plant, dict(arrays)
        t, q, v, u = (rows[name] for name in "tqvu")
        demanded = (*reference.sample(t), t[:, None])[: len(servo.sampled)]
        rows |= self(q, v, demanded)
        if "scale" not in rows:
            # The residual stays that of the instant at which the torque was computed.
            z = rows.get("z", np.zeros((len(t), 0)))
            found = self.law(q[:-1], v[:-1], z[:-1], tuple(part[:-1] for part in demanded))
            kept = np.minimum(np.arange(len(t)), len(t) - 2)
            rows |= {name: values[kept] for name, values in found.items()}
        if "margin" not in rows:
            rows["margin"] = self.margins(q)[0]
        error, error_rate = rows["error"][0], rows["velocity_error"][0]
        solved = servo.error_dynamics.solve(error, error_rate, t)
        rows["ideal"] = _along_normals(servo, solved, rows["error"])
        if servo.size and not servo.linearizes:
            rows["ideal"] = np.full_like(rows["ideal"], np.nan)
        # No step leads to the first state, and where the law failed its torque is not finite.
        met = np.concatenate([q, v, u], axis=1)
        low = np.nanmin(np.vstack([met, rows.pop("low", met)[1:]]), axis=0)
        high = np.nanmax(np.vstack([met, rows.pop("high", met)[1:]]), axis=0)
        ends = np.cumsum([q.shape[1], v.shape[1]])
        ranges = np.split(np.stack([low, high]), ends, axis=1)
        rows |= zip(("q_range", "v_range", "u_range"), ranges, strict=True)
        rows["s"], rows["reference"] = v[:, list(servo.model.shape)], demanded[0]
        rows["heat"] = rows.get("heat", heat_of(plant.robot, t, u))
        load = rows.pop("load", np.zeros((len(t), 0)))
        rows.pop("z", None)
        if plant.slip is not None:
            constant = plant.slip.loads
            rows["wheel_load"] = load if constant is None else np.tile(constant, (len(t), 1))
        return rows

    def margins(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margin of the decoupling matrix at samples, as `Servo.margin`, and its orientation.

        The orientation is the law's side of singular configurations: where it changes, one was
        passed between two samples. Both are zero where the wheels leave no decoupling matrix.
        """
        size, ns, k = self.servo.size, self.servo.ns, q.shape[0]
        decoupling, mass, regularity, sides, actuation = self._evaluated(1, q)
        # Columns of a matrix lie one behind the other.
        rows = decoupling.reshape(k, ns, size).transpose(0, 2, 1)
        metric = mass.reshape(k, ns, ns)
        regular, model = regularity[:, 0], self.servo.model
        if size and not model.driven_directly:
            matrices = actuation.reshape(k, model.nu, model.nd).transpose(0, 2, 1)
            regular = np.minimum(regular, model.leverages(matrices))
        margins = decoupling_margins(self.servo.margins.scales[0], rows, metric, regular)
        return margins, np.where(np.isfinite(rows).all(axis=(1, 2)), sides[:, 0], 0.0)

    @cached_property
    def _graphs(self) -> list[ca.Function]:
        return [_states(self.servo, self.plant), _metric(self.servo)]

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


def recorded_together(servo: TrackingLaw, plant: Plant) -> list[ca.Function]:
    """Functions of a `Recorder` over `TOGETHER` samples, to be compiled."""
    return [graph.map(TOGETHER) for graph in (_states(servo, plant), _metric(servo))]


def _states(servo: TrackingLaw, plant: Plant) -> ca.Function:
    robot = plant.robot
    q, v = ca.SX.sym("q", servo.nq), ca.SX.sym("v", plant.nv)
    pose, twist = ca.SX.sym("pose", servo.pose_size), ca.SX.sym("twist", servo.twist_size)
    s = taken_velocities(servo, v)
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
        servo.lyapunov(q, s, ReferenceSample(pose, twist, twist * 0)),
        ca.norm_inf(residual) if plant.nf else ca.SX(0),
        robot.kinetic_energy(q, v) + robot.potential_energy(q),
        *momenta,
        servo.output(q),
        *([plant.slip_speeds(q, v, ca.SX(0, 1))] if plant.slip is not None else []),
    ]
    return ca.Function(
        "record", [q, v, pose, twist], [ca.densify(ca.SX(r)) for r in results], {"cse": True}
    )


def _along_normals(servo: TrackingLaw, ideal: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Ideal errors (k, size), those of directions along the normals that the errors have then."""
    found, start = ideal.copy(), 0
    for output in servo.outputs:
        span = slice(start, start + output.dim)
        start = span.stop
        if output.group == "S2":
            sizes, own = (np.linalg.norm(x[:, span], axis=1) for x in (ideal, error))
            moving = own > 0.0
            found[moving, span] = (
                error[moving, span] * (sizes / np.where(moving, own, 1.0))[moving, None]
            )
    return found


def _metric(servo: TrackingLaw) -> ca.Function:
    """What margins are computed from; matrices as columns."""
    q = ca.SX.sym("q", servo.nq)
    model = servo.model
    parts = [servo.decoupling(q), model.mass_matrix(q), model.regularity(q), side(servo, q)]
    parts.append(ca.SX(0) if model.driven_directly else model.effect(q))
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


def recorded_run(
    law: TrackingLaw,
    plant: Plant,
    reference: Reference,
    control_period: float | None,
    arrays: Mapping[str, np.ndarray],
    method: str,
    seconds: float,
    imperfections: Imperfections | None = None,
) -> Run:
    """Record the states of a closed loop that another program has integrated.

    Parameters
    ----------
    law : TrackingLaw
        The law.
    plant : Plant
        What moved.
    reference : Reference
        Reference of all outputs.
    control_period : float or None
        Period of the law, s; None: it acts continuously.
    arrays : mapping of str to numpy.ndarray
        Rows of the record by name, SI units: "t" (k,), equidistant times, "q" (k, nq), "v" (k, nv),
        "u" (k, nu), and "work" of the drives since the start (k,). If the law has a state, "z"
        (k, nz) before each tick; if wheels slip and loads are states of the plant, "load" (k, nl).
        What is computed if it is missing: "margin" (k,), "acceleration_residual" (k, size),
        "scale" (k,) and "active" (k, limits) of the law, and "heat" of motors, by torques that are
        held from row to row. "low" and "high", the smallest and the largest (q, v, u) of each step,
        are those of the rows by default.
    method : str
        Name of the integrator.
    seconds : float
        Time that the simulation took, s.
    imperfections : Imperfections, optional
        Imperfections of what moved.

    Returns
    -------
    Run
        The run.

    Examples
    --------
    >>> import numpy as np
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> rows = {"t": 0.01 * np.arange(3), "q": np.tile(robot.neutral(), (3, 1))}
    >>> rows |= {"v": np.zeros((3, robot.nv)), "u": np.zeros((3, 5)), "work": np.zeros(3)}
    >>> goal = cc.references.hold([0.3, 0.0])
    >>> run = cc.simulation.recorded_run(
    ...     servo, cc.Plant(robot), goal, 0.01, rows, method="another program", seconds=1.0)
    >>> run.t, run.error.round(3)
    (array([0.  , 0.01, 0.02]), array([[0.05, 0.  ],
           [0.05, 0.  ],
           [0.05, 0.  ]]))
    """
    recorder = Recorder(law, plant)
    rows = recorder.rows(reference, arrays)
    return run_of(recorder, rows, control_period, method, seconds, imperfections)


def run_of(
    recorder: Recorder,
    rows: Mapping[str, np.ndarray],
    control_period: float | None,
    method: str,
    seconds: float,
    imperfections: Imperfections | None = None,
) -> Run:
    """Make a run of the rows of a recorder."""
    plant = recorder.plant
    if imperfections is not None:
        # Commands beyond the limits of motors do not reach the robot.
        most = imperfections.values("torque_limit", plant.robot)
        rows = {**rows, "u_range": np.clip(rows["u_range"], -most, most)}
    return Run(
        robot=cast(Mechanism, plant.robot),
        servo=recorder.servo,
        arrays=rows,
        method=method,
        control_period=control_period,
        seconds=seconds,
        friction=imperfections.friction if imperfections else plant.friction,
        imperfections=imperfections,
        slip=plant.slip,
    )
