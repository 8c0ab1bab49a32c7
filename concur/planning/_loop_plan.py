"""A planned loop of the shape: a reference for a law, torques, and what it reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from concur.errors import ReductionError, shown
from concur.outputs.references import Loop
from concur.planning._fibre import fibre_of
from concur.planning._phase import GeometricPhase
from concur.reduction import ReducedModel
from concur.results import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class LoopPlan:
    """A loop of the shape for a wanted displacement of the base.

    Made by `plan_loop`.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot.
    loop : Loop
        The loop: a reference of the shape joints, for `laws.ComputedTorque` and `laws.PD`.
    phase : GeometricPhase
        The displacement after the loop, integrated with small tolerances.
    wanted : numpy.ndarray
        Logarithm of the wanted displacement, or its rotation, m and rad.
    missed : numpy.ndarray
        Logarithm of the displacement that remains, in the same coordinates, m and rad.
    reached : bool
        Whether the largest entry of `missed` is within the tolerance.
    why : str
        Which displacements are possible, and what limits them.

    See Also
    --------
    plan_loop : makes one.

    Examples
    --------
    >>> import concur as cc
    >>> floater = cc.reduce(cc.robots.planar_floater())
    >>> cc.planning.plan_loop(floater, [1.0], limits=[[-0.3, 0.3]] * 2, cycles=1).reached
    False
    """

    model: ReducedModel
    loop: Loop
    phase: GeometricPhase
    wanted: np.ndarray
    missed: np.ndarray
    reached: bool
    why: str

    def __str__(self) -> str:
        cycles = abs(self.loop.cycles)
        kind = f"{cycles} cycle{'s' * (cycles > 1)} of {self.loop.duration / cycles:.3g} s"
        return f"loop of `{self.model.name}`, {kind}: {self.phase}; {self.why}"

    def __repr__(self) -> str:
        return f"<{shown(str(self), 300)}>"

    def start(self, q0: np.ndarray | None = None) -> np.ndarray:
        """Configuration at which the loop begins.

        Parameters
        ----------
        q0 : numpy.ndarray, optional
            Configuration of the base, shape (nq,); its shape is replaced. Default: neutral.

        Returns
        -------
        numpy.ndarray
            Shape (nq,).
        """
        q = np.array(self.model.system.neutral() if q0 is None else q0, dtype=float)
        q[list(self.model.shape_coordinates)] = self.loop.start
        return q

    @cached_property
    def torque(self) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
        """Controls u(t, q, s) that move the shape along the loop, for `forced_motion`.

        They are ``H^T B u = Mhat rddot + chat`` at the state, without feedback; of more controls
        than shape velocities the least are taken.

        Raises
        ------
        ReductionError
            If the robot has fewer controls than shape velocities.
        """
        model, loop = self.model, self.loop
        if model.nu < model.ns:
            raise ReductionError(
                f"torques of `{model.name}`",
                expected=f"a control for each of {', '.join(model.shape_names)}",
                came=f"{model.nu} controls",
                cure="Use `plan.loop` as a reference of a robot that has them.",
            )

        def controls(t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
            force = model.inverse_dynamics(q, s, loop(t).acceleration)
            return np.asarray(np.linalg.lstsq(model.input_matrix(q), force, rcond=None)[0])

        return controls

    def plot(self, coordinate: int | None = None) -> Figure:
        """Draw the curvature over two coordinates of the shape, with the loop.

        Parameters
        ----------
        coordinate : int, optional
            Which freedom of the body; default that with the largest part of the displacement by
            the area rule.

        Returns
        -------
        matplotlib.figure.Figure
            The curvature in the plane in which the loop has the largest effect, with the other
            coordinates at the centre of the loop.
        """
        fibre, loop = fibre_of(self.model, "plot", self.phase.body), self.loop
        areas = np.array([loop.areas[i, j] for i, j in fibre.pairs])
        effect = np.abs(np.array(fibre.curvature(loop.center)) * areas)
        row = int(np.argmax(effect.max(axis=1))) if coordinate is None else coordinate
        pair = fibre.pairs[int(np.argmax(effect[row]))]

        def curvature(places: np.ndarray) -> np.ndarray:
            values = np.array(fibre.curvature(places.T)).reshape(fibre.dim, len(places), -1)
            return np.asarray(values[row, :, fibre.pairs.index(pair)])

        efforts = self.model.system.effort_units
        first, second = (self.model.shape[k] for k in pair)
        own, *others = (
            "rad" if efforts[k] == "N m" else "m" for k in (fibre.rows.start + row, first, second)
        )
        units = own, others[0], others[1]
        return show("curvature_figure", self.model, loop, curvature, pair, fibre.names[row], units)
