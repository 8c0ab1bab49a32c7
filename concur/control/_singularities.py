"""Singular configurations: output directions that are lost, and self-motions of the joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr

from concur.codegen import Evaluator, as_floats, shape_error
from concur.control._margins import SINGULAR
from concur.control._reading import positive
from concur.control._singularity import aligned_joints
from concur.errors import OutputError, ShapeError
from concur.outputs import Output, checked_outputs, free_bodies, freedoms, output_motion, twist_rows
from concur.reduction import ReducedModel
from concur.robot import Mechanism, robot_size

TASK = "singularities"


@dataclass(frozen=True, eq=False)
class SingularityReport:
    """Output directions that joints command, and that they lose, in one configuration.

    The matrix maps the motions of the joints to the velocities of the outputs, lengths counted
    in `length` on both sides, so that its numbers have no units.

    Parameters
    ----------
    robot : str
        Name of the robot.
    q : numpy.ndarray
        The configuration, shape (nq,).
    outputs : tuple of Output
        The outputs.
    motions : tuple of str
        Name of each motion, a freedom of a joint: the columns of `matrix`, n of them.
    matrix : numpy.ndarray
        Shape (m, n), m the dimension of all outputs; of a reduced robot the decoupling matrix.
    length : float
        Characteristic length, m.
    threshold : float
        Singular values below this share of the largest count as zero.
    singular_values : numpy.ndarray
        Shape (min(m, n),), the largest first. Of a reduced robot, each motion counted by its
        inertia: the column times 1 / sqrt(Mhat_ii), the largest factor set to one.
    rank : int
        Number of those that do not count as zero.
    lost : numpy.ndarray
        Output velocities that no motion makes: orthonormal columns, shape (m, m - rank).
    lost_twists : numpy.ndarray
        The same as twists of the outputs' points, [linear; angular] in the axes of their
        bodies, shape (m - rank, number of outputs, 6); lengths in `length`.
    idle : numpy.ndarray
        Motions that leave all outputs at rest, shape (n, n - rank), m/s and rad/s: columns of unit
        length with lengths counted in `length`.
    aligned : tuple of str
        In a singular configuration, a clause for each column of `idle` that names its joints.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> report = cc.singularities(robot, [hand], robot.neutral())
    >>> report.rank, report.lost.shape
    (3, (3, 0))
    """

    robot: str
    q: np.ndarray
    outputs: tuple[Output, ...]
    motions: tuple[str, ...]
    matrix: np.ndarray
    length: float
    threshold: float
    singular_values: np.ndarray
    rank: int
    lost: np.ndarray
    lost_twists: np.ndarray
    idle: np.ndarray
    aligned: tuple[str, ...] = ()

    @property
    def singular(self) -> bool:
        """Whether the rank is less than the size of the matrix allows."""
        return self.rank < self.singular_values.size

    @property
    def manipulability(self) -> float:
        """Product of the singular values, the measure of Yoshikawa."""
        return float(np.prod(self.singular_values))

    @property
    def condition(self) -> float:
        """Largest over smallest singular value; infinite where that is zero."""
        largest, smallest = self.singular_values[0], self.singular_values[-1]
        return float(largest / smallest) if smallest > 0.0 else float("inf")

    def summary(self) -> str:
        """Describe the configuration in a small table.

        Returns
        -------
        str
            Lines of text: numbers, lost directions, motions in vain.
        """
        shown = "  ".join(f"{value:.4g}" for value in self.singular_values)
        lines = [
            f"singularities of `{self.robot}`: {'SINGULAR' if self.singular else 'regular'}",
            f"  rank             {self.rank} ({self.matrix.shape[0]} output coordinates, "
            f"{self.matrix.shape[1]} motions)",
            f"  singular values  {shown}  (lengths in {self.length:.4g} m)",
            f"  condition        {self.condition:.4g}",
            f"  manipulability   {self.manipulability:.4g}",
        ]
        lines += [f"  lost             {self._loss(twists)}" for twists in self.lost_twists]
        lines += [f"  in vain          {self._motion(column)}" for column in self.idle.T]
        lines += [f"  aligned          {clause}" for clause in self.aligned]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _loss(self, twists: np.ndarray) -> str:
        clauses = []
        for output, twist in zip(self.outputs, twists, strict=True):
            parts = [
                f"{word} ({_row(part)})"
                for word, part in (("along", twist[:3]), ("about", twist[3:]))
                if np.linalg.norm(part) > 0.05
            ]
            if parts:
                clauses.append(
                    f"output `{output.name}` {' and '.join(parts)} of body `{output.body}`"
                )
        return " together with ".join(clauses)

    def _motion(self, column: np.ndarray) -> str:
        return ", ".join(
            f"{name} {value:+.3g}"
            for name, value in zip(self.motions, column, strict=True)
            if abs(value) > 1e-3
        )


@dataclass(frozen=True, eq=False)
class SingularityPath:
    """How near a path of configurations comes to singular ones.

    Parameters
    ----------
    q : numpy.ndarray
        The path, shape (k, nq).
    singular_values : numpy.ndarray
        Shape (k, min(m, n)), the largest of each configuration first.
    manipulability, condition : numpy.ndarray
        Product of the singular values, and largest over smallest; shape (k,).
    rank : numpy.ndarray
        Number of singular values that do not count as zero, shape (k,), whole numbers.
    nearest : int
        Index of the configuration with the smallest singular value.
    report : SingularityReport
        That configuration in full.
    drops : tuple of int
        Indices where the rank is less than elsewhere on the path, or, if it is the same on the
        whole path, less than the size of the matrix allows.
    crossings : tuple of int
        Indices i where the determinant of a square matrix changes its sign between i and
        i + 1: there the path goes through a singular configuration, sampled or not.

    Examples
    --------
    >>> import numpy as np
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> path = np.tile(robot.neutral(), (3, 1))
    >>> path[:, -1] = [-1.0, -0.5, 0.0]
    >>> found = cc.singularities(robot, [hand], path, fixed=("chassis",))
    >>> type(found).__name__, found.rank, found.nearest
    ('SingularityPath', array([3, 3, 2]), 2)
    """

    q: np.ndarray
    singular_values: np.ndarray
    manipulability: np.ndarray
    condition: np.ndarray
    rank: np.ndarray
    nearest: int
    report: SingularityReport
    drops: tuple[int, ...]
    crossings: tuple[int, ...]

    @property
    def singular(self) -> bool:
        """Whether the rank drops on the path, or between two of its configurations."""
        return bool(self.drops or self.crossings)

    def summary(self) -> str:
        """Describe the path in a small table.

        Returns
        -------
        str
            Lines of text: ranges over the path, where it is singular, the nearest configuration.
        """
        least = self.singular_values[:, -1]
        lines = [
            f"path of {len(self.q)} configurations: {'SINGULAR' if self.singular else 'regular'}",
            f"  smallest singular value  {least.min():.4g} at {self.nearest}, "
            f"{least.max():.4g} at best",
            f"  condition                {self.condition.min():.4g} to {self.condition.max():.4g}",
            f"  rank                     {self.rank.min()} to {self.rank.max()}",
        ]
        if self.drops:
            lines.append(f"  rank drops at            {_ranges(self.drops)}")
        if self.crossings:
            between = ", ".join(f"{i} and {i + 1}" for i in self.crossings)
            lines.append(f"  passes through between   {between}")
        return "\n".join([*lines, f"at {self.nearest}:", self.report.summary()])

    def __str__(self) -> str:
        return self.summary()


def singularities(
    robot: Mechanism,
    outputs: Sequence[Output],
    q: ArrayLike,
    model: ReducedModel | None = None,
    fixed: Sequence[str] = (),
    length: float | None = None,
    threshold: float = SINGULAR,
) -> SingularityReport | SingularityPath:
    """Report how well the joints command the outputs, and what is lost where they do not.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    outputs : sequence of Output
        Its outputs.
    q : array_like
        A configuration, shape (nq,), or a path of them, shape (k, nq).
    model : ReducedModel, optional
        The robot reduced: then the motions are its shape velocities and the matrix is the
        decoupling matrix J H. Without it all joints move as if each were actuated, a free base
        too.
    fixed : sequence of str
        Bodies that must not move: the joints between them and the inertial frame are locked.
        Not together with `model`, which has its own motions.
    length : float, optional
        Characteristic length, m; default the largest distance between joints and output points
        in the neutral configuration.
    threshold : float
        Singular values below this share of the largest count as zero. `Servo.margin` measures the
        smallest one against the kinetic energy instead, without a largest one to compare with.

    Returns
    -------
    SingularityReport or SingularityPath
        The first for one configuration, the second for a path.

    Raises
    ------
    OutputError
        If the outputs do not fit the robot, nothing moves them, or the model is another robot's.
    UnknownNameError
        If a body does not exist.
    ShapeError, NonFiniteError
        If a configuration, the length or the threshold is invalid.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> report = cc.singularities(robot, [hand], robot.neutral(), fixed=("chassis",))
    >>> report.rank
    2
    """
    outputs = checked_outputs(robot, outputs, TASK)
    where = f"{TASK} of `{robot.name}`"
    columns = _columns(where, robot, outputs, model, fixed)
    scale = (
        _characteristic_length(robot, outputs)
        if length is None
        else positive(f"{where}, `length`", length, error=ShapeError)
    )
    share = positive(f"{where}, `threshold`", threshold, error=ShapeError)
    path = as_floats(q, f"{where}, `q`")
    if path.ndim not in (1, 2) or (path.ndim == 2 and not len(path)):
        raise shape_error(f"{where}, `q`", (robot.nq,), path.shape)
    reports = [
        _report(robot, outputs, model, columns, scale, share, robot.check_configuration(row))
        for row in np.atleast_2d(path)
    ]
    return reports[0] if path.ndim == 1 else _along(reports)


def _columns(
    where: str,
    robot: Mechanism,
    outputs: tuple[Output, ...],
    model: ReducedModel | None,
    fixed: Sequence[str],
) -> list[int]:
    """Freedoms that the columns of the matrix stand for."""
    bodies = free_bodies(robot, outputs, fixed, TASK)
    if model is None:
        return freedoms(robot, bodies)
    if not isinstance(model, ReducedModel) or model.robot != robot:
        raise OutputError(
            f"{where}, `model`",
            expected="the reduced model of this robot",
            came=f"that of `{model.name}`"
            if isinstance(model, ReducedModel)
            else f"{type(model).__name__} {model!r:.40}",
            cure="Pass reduce(robot).",
        )
    if tuple(fixed):
        raise OutputError(
            f"{where}, `fixed`",
            expected="nothing fixed beside a model",
            came=", ".join(fixed),
            cure="The model's motions are its shape velocities: leave out one of the two.",
        )
    return list(model.shape)


def _report(
    robot: Mechanism,
    outputs: tuple[Output, ...],
    model: ReducedModel | None,
    columns: list[int],
    length: float,
    threshold: float,
    q: np.ndarray,
) -> SingularityReport:
    jacobian, twist_maps = _evaluator(robot, outputs)(q)
    jacobian = jacobian[:, columns] if model is None else jacobian @ model.lift(q)[0]
    units = [unit for output in outputs for unit in output.coordinate_units]
    freedom_units = [unit for body in robot.bodies for unit in body.joint.freedom_units]
    rows = np.where(np.array(units) == "m", 1.0 / length, 1.0)
    motions = np.where(np.array([freedom_units[i] for i in columns]) == "m", length, 1.0)
    matrix = rows[:, None] * jacobian * motions
    # A light wheel beside a heavy arm moves little per speed, but as much per energy.
    ease = np.ones(len(columns))
    if model is not None:
        ease = 1.0 / (motions * np.sqrt(np.diag(model.mass_matrix(q))))
        ease = ease / ease.max()
    left, values, right = np.linalg.svd(matrix * ease)
    rank = int(np.count_nonzero(values > threshold * values[0])) if values[0] > 0.0 else 0
    lost = _plain_basis(left[:, rank:])
    # Metres and radians count alike only with lengths in `length`.
    vain = ease[:, None] * _plain_basis(right[rank:].T)
    vain = vain / np.linalg.norm(vain, axis=0)
    names = tuple(robot.freedom_names[i] for i in columns)
    aligned = [aligned_joints(names, column) for column in vain.T]
    twists, start = np.zeros((lost.shape[1], len(outputs), 6)), 0
    for k, output in enumerate(outputs):
        span = slice(start, start + output.dim)
        twists[:, k] = lost[span].T @ twist_maps[span]
        start = span.stop
    return SingularityReport(
        robot=robot.name,
        q=q,
        outputs=outputs,
        motions=names,
        matrix=matrix,
        length=length,
        threshold=threshold,
        singular_values=values,
        rank=rank,
        lost=lost,
        lost_twists=twists,
        idle=motions[:, None] * vain,
        # Beside more motions than outputs, a joint that moves nothing is no singularity.
        aligned=tuple(
            clause
            for clause in aligned
            if rank < values.size
            and not (len(columns) > len(rows) and clause.endswith("moves no output"))
        ),
    )


def _along(reports: list[SingularityReport]) -> SingularityPath:
    values = np.array([report.singular_values for report in reports])
    ranks = np.array([report.rank for report in reports])
    nearest = int(np.argmin(values[:, -1]))
    usual = values.shape[1] if ranks.min() == ranks.max() else ranks.max()
    crossings: tuple[int, ...] = ()
    if reports[0].matrix.shape[0] == reports[0].matrix.shape[1]:
        signs = np.sign([np.linalg.det(report.matrix) for report in reports])
        crossings = tuple(int(i) for i in np.flatnonzero(signs[:-1] * signs[1:] < 0))
    return SingularityPath(
        q=np.array([report.q for report in reports]),
        singular_values=values,
        manipulability=np.array([report.manipulability for report in reports]),
        condition=np.array([report.condition for report in reports]),
        rank=ranks,
        nearest=nearest,
        report=reports[nearest],
        drops=tuple(int(i) for i in np.flatnonzero(ranks < usual)),
        crossings=crossings,
    )


def _evaluator(robot: Mechanism, outputs: tuple[Output, ...]) -> Evaluator:
    """Jacobian of all outputs, and the rows that make their velocities from twists."""
    kept: dict[Any, Any] = robot.__dict__.setdefault("_evaluators", {})
    key = (TASK, outputs)
    if key not in kept:
        q = ca.SX.sym("q", robot.nq)
        moved = output_motion(robot, outputs, q)
        twist_maps = [twist_rows(o, p) for o, p in zip(outputs, moved.poses, strict=True)]
        function = ca.Function(
            "outputs",
            [q],
            [moved.jacobian, ca.vertcat(*twist_maps)],
            ["q"],
            ["jacobian", "twist_maps"],
            {"cse": True},
        )
        size = sum(output.dim for output in outputs)
        where = f"{TASK} of `{robot.name}`"
        kept[key] = Evaluator(function, [(size, robot.nv), (size, 6)], where)
    evaluator: Evaluator = kept[key]
    return evaluator


def _characteristic_length(robot: Mechanism, outputs: tuple[Output, ...]) -> float:
    q = robot.neutral()
    points = [(robot.pose(q, output.body) @ [*output.point, 1.0])[:3] for output in outputs]
    return robot_size(robot, points)


def _plain_basis(basis: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the same space, each vector as near to one coordinate as it can be.

    A space of several dimensions has no distinguished basis: pivoting picks, one after the other,
    the coordinate that lies deepest in it, so that a wheel in the null space shows as a wheel.
    """
    count = basis.shape[1]
    if not count:
        return basis
    plain = qr(basis @ basis.T, pivoting=True)[0][:, :count]
    signs = np.sign(plain[np.argmax(np.abs(plain).round(9), axis=0), range(count)])
    return np.asarray(plain * signs)


def _row(vector: np.ndarray) -> str:
    return ", ".join(f"{x:.3g}" for x in np.round(vector, 4) + 0.0)


def _ranges(indices: tuple[int, ...]) -> str:
    """Write runs of whole numbers as "3 to 7"."""
    starts = [i for i in indices if i - 1 not in indices]
    ends = [i for i in indices if i + 1 not in indices]
    return ", ".join(f"{a} to {b}" if a < b else f"{a}" for a, b in zip(starts, ends, strict=True))
