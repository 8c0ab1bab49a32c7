"""A planned motion to a goal: reference, torques, limits and what it could not reach."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.documents import as_path, document_hash
from concur.errors import ConcurError, shown
from concur.files import replace_files
from concur.outputs import Output, references
from concur.outputs.references import Reference
from concur.reduction import ReducedModel
from concur.results import Figures, Row, answer, plain, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.planning._path_limits import Bounds

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MotionPlan:
    """A motion of a robot from a state to a goal within limits.

    Made by `plan`.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot.
    outputs : tuple of Output
        Outputs of the reference, in order.
    reached : bool
        Whether goal and limits hold in the dense check, at ten times as many points.
    why : str
        One sentence: what was reached, or which limits forbid the goal and what is nearest to it.
    t : numpy.ndarray
        Times, shape (n,), s.
    q : numpy.ndarray
        Configurations, shape (n, nq).
    s : numpy.ndarray
        Shape velocities, shape (n, ns), rad/s and m/s.
    a : numpy.ndarray
        Shape accelerations, shape (n, ns), rad/s^2 and m/s^2.
    u : numpy.ndarray
        Torques and forces of the controls, shape (n, nu), N m and N.
    samples : dict of str to tuple of numpy.ndarray
        Coordinates, velocities and accelerations of each output at the times.
    rows : tuple of Row
        Quantities with their limits; the closest first.
    starts : tuple of str
        What each guess led to.
    missed : dict of str to float
        Distance of each output from its goal, m and rad as one.
    limits : Bounds
        Limits of robot and plan as arrays.
    made_for : dict of str to str
        Digests of robot, momentum, outputs, start, goals, limits, obstacles and time. A task takes
        its references from the file of a plan only if all are its own.
    _again : callable, optional
        Plans again; of `again`.

    See Also
    --------
    plan : makes one.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.planar_floater())
    >>> hand = cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))
    >>> limits = cc.planning.PlanLimits(torques=5.0, speeds=2.0)
    >>> found = cc.plan(model, [hand], [0, 0, 0, 0.5, -1.0], {"hand": [1.3, 0.4]}, limits=limits)
    >>> found.reached, found.rows[1].holds
    (True, True)
    """

    model: ReducedModel
    outputs: tuple[Output, ...]
    reached: bool
    why: str
    t: Floats
    q: Floats
    s: Floats
    a: Floats
    u: Floats
    samples: Mapping[str, tuple[Floats, Floats, Floats]]
    rows: tuple[Row, ...]
    starts: tuple[str, ...]
    missed: Mapping[str, float]
    limits: Bounds
    made_for: Mapping[str, str] = field(default_factory=dict)
    _again: Callable[..., MotionPlan] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"plan of `{self.model.name}`, {self.duration:.4g} s: {self.why}"

    def __repr__(self) -> str:
        return f"<{shown(str(self), 300)}>"

    @property
    def status(self) -> str:
        """Return "passed" if the goal is reached within all limits, else "failed"."""
        return "passed" if self.reached else "failed"

    @property
    def duration(self) -> float:
        """Duration, s."""
        return float(self.t[-1])

    @cached_property
    def reference(self) -> Reference:
        """Reference of all outputs, in their order; it rests before and after the motion."""
        return references.stack(
            *[table_of(self.t, *self.samples[o.name], o.group) for o in self.outputs]
        )

    @property
    def figures(self) -> Figures:
        """Figure "plan": shape, speeds, torques and outputs over time."""
        return {"plan": self.plot}

    def plot(self) -> Figure:
        """Draw shape, speeds, torques and outputs over time, with their limits.

        Returns
        -------
        matplotlib.figure.Figure
            One panel for each.
        """
        figure: Figure = show("plan_figure", self)
        return figure

    def again(
        self,
        q: ArrayLike,
        s: ArrayLike | None = None,
        goals: Mapping[str, Any] | None = None,
        passed: int = 0,
        a: ArrayLike | None = None,
    ) -> MotionPlan:
        """Plan again from another state, beginning with this motion.

        A robot that moves needs its acceleration too, from the plan that it follows: else its
        torques jump.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like, optional
            Shape velocities, shape (ns,); default at rest.
        goals : mapping, optional
            Goals of the same outputs and kinds; default those of this plan.
        passed : int
            Number of goals on the way of this plan that are behind; the new plan has the others.
        a : array_like, optional
            Shape accelerations, shape (ns,); default zero.

        Returns
        -------
        MotionPlan
            The motion from there.

        Raises
        ------
        ConcurError
            As of `plan`; or if the goals are of other outputs or kinds.
        """
        if self._again is None:
            raise ConcurError(
                f"plan of `{self.model.name}`",
                expected="a plan that `concur.plan` made",
                came="a copy of its numbers",
                cure="Plan with `concur.plan` first.",
            )
        return self._again(q, s, goals, passed, a)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the motion as JSON with its hash, which tasks with [plan] and `load_result` read.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The file.
        """
        target = as_path(path, "MotionPlan.save")
        parts = ("poses", "twists", "accelerations")
        outputs = {
            o.name: {"group": o.group, **dict(zip(parts, self.samples[o.name], strict=True))}
            for o in self.outputs
        }
        motion = {"t": self.t, "q": self.q, "s": self.s, "u": self.u}
        document = answer(
            "plan",
            self.reached,
            self.status,
            name=self.model.name,
            robot=self.model.robot.name,
            problems=() if self.reached else (self.why,),
            rows=self.rows,
            own=plain({**motion, "outputs": outputs, "made_for": self.made_for}),
        )
        document["hash"] = document_hash(document)
        replace_files({target: (json.dumps(document) + "\n").encode()})
        return target


def table_of(
    t: Floats, poses: Floats, twists: Floats, accelerations: Floats, group: str
) -> Reference:
    """Reference of one output through the samples of a plan, on hold at its ends."""
    group = group if not group.startswith("R") or group == "R3xSO3" else ""
    if group in ("", None):
        return references.table(t, poses, twists, accelerations)
    return references.table(t, poses, twists, accelerations, group)
