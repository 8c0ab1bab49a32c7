"""The record of a motion of a reduced model, and what it must have kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from concur._version import __version__
from concur.codegen import Array
from concur.errors import SimulationError
from concur.reduction import ReducedModel
from concur.results import show
from concur.robot import Mechanism
from concur.simulation._run_data import momentum_drift
from concur.simulation._stored import (
    MOMENTUM_COLUMNS,
    Columns,
    Stored,
    check_identity,
    coordinate_columns,
    identity,
    read_arrays,
    velocity_columns,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Motion(Stored):
    """States and controls of a robot that was driven by torques, one row per time step.

    Made by `forced_motion`.

    Parameters
    ----------
    model : ReducedModel
        The reduced model that was integrated.
    arrays : mapping of str to numpy.ndarray
        The arrays below by name.
    method : str
        Integration method.
    seconds : float
        Time the integration took, s.

    Attributes
    ----------
    t : numpy.ndarray
        Times, shape (k,), s.
    q, v, s : numpy.ndarray
        Configuration, velocity and shape velocities, shapes (k, nq), (k, nv) and (k, ns).
    u : numpy.ndarray
        Control forces and torques, shape (k, nu), N and N m.
    energy, work : numpy.ndarray
        Kinetic and potential energy, and work of the controls since the start less that which
        dampers took, shape (k,), J; the work is integrated along with the state.

    See Also
    --------
    forced_motion : makes one.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> q0, s0 = model.robot.neutral(), [1, 1, 0, 0, 0]
    >>> motion = cc.simulation.forced_motion(model, None, 0.1, q0, s0, dt=0.05)
    >>> motion.q.shape
    (3, 8)
    """

    model: ReducedModel
    arrays: Mapping[str, np.ndarray]
    method: str
    seconds: float

    def __str__(self) -> str:
        return (
            f"motion of {self.model.name}: {self.t[-1]:g} s in steps of {self.dt:g} s by "
            f"{self.method}"
        )

    def _repr_html_(self) -> str:

        return show("notebook.motion_html", self)

    @property
    def robot(self) -> Mechanism:
        """The robot that moved, a tree of bodies; any other system is `model.system`."""
        return self.model.robot

    @property
    def momentum(self) -> np.ndarray:
        """Spatial momentum about the inertial origin, [linear; angular], shape (k, 6).

        Of a `LagrangianSystem` that of its symmetry group, shape (k, nb).
        """
        return self._momenta[0]

    @property
    def keeps_momentum(self) -> bool:
        """Whether the momentum is constant, as the robot floats or its system has a symmetry."""
        return self.model.keeps_momentum

    @cached_property
    def momentum_drift(self) -> np.ndarray:
        """Deviation from the constant momentum of the model, relative, shape (k,).

        Only what is constant counts: the momentum along the motions of the base's group,
        translations and the others apart. Each is divided by the larger of the momentum itself
        and the largest momentum that the joints move inside the robot.
        """
        model = self.model.first
        if not model.keeps_momentum:
            raise SimulationError(
                f"motion of `{model.name}`, `momentum_drift`",
                expected="a robot that floats freely",
                came=f"a reduction of kind {model.kind}",
                cure="Its momentum is not constant: use `energy_balance` instead.",
            )
        inner, demanded = self._momenta[1], np.array(model.momentum)
        return momentum_drift(model.system, self.momentum, inner, demanded)

    @property
    def control_units(self) -> tuple[str, ...]:
        """Unit of each control."""
        return self.model.control_units

    @property
    def shape_units(self) -> tuple[str, ...]:
        """Unit of each shape velocity."""
        units = velocity_columns(self.model.system)
        return tuple(units[i][1] for i in self.model.shape)

    def _facts(self) -> dict[str, Any]:
        model = self.model
        return {
            "concur_version": __version__,
            "robot": model.name,
            **identity(model.system, self.q[0]),
            "reduction": model.kind,
            "method": self.method,
            "dt": self.dt,
            "seconds": self.seconds,
            **({"momentum": np.array(model.momentum)} if model.keeps_momentum else {}),
        }

    @classmethod
    def load(cls, path: str | PathLike[str], model: ReducedModel) -> Motion:
        """Read a motion from a file that `save` has written.

        Parameters
        ----------
        path : str or path-like
            The file.
        model : ReducedModel
            The reduced model of the motion.

        Returns
        -------
        Motion
            The motion, with the arrays of the file.

        Raises
        ------
        DescriptionError
            If the file cannot be read, or belongs to another robot, reduction or momentum.
        """
        widths: dict[str, int | None] = {"t": None, "work": None, "q": model.nq, "s": model.ns}
        widths["u"] = len(model.control_names)
        arrays, facts = read_arrays(path, widths, {"method": str, "seconds": float})
        expected: dict[str, object] = {"reduction": model.kind}
        if model.keeps_momentum:
            expected["momentum"] = list(model.momentum)
        check_identity(path, facts, model.system, arrays["q"][0], expected)
        return motion_of(model, arrays, facts["method"], facts["seconds"])

    def _arrays(self) -> dict[str, tuple[np.ndarray, Columns]]:
        velocities = velocity_columns(self.model.system)
        columns: dict[str, Columns] = {
            "t": [("t", "s")],
            "q": coordinate_columns(self.model.system),
            "v": velocities,
            "s": [velocities[i] for i in self.model.shape],
            "u": list(zip(self.model.control_names, self.model.control_units, strict=True)),
            "energy": [("energy", "J")],
            "work": [("work", "J")],
        }
        if isinstance(self.model.system, Mechanism):
            columns["momentum"] = MOMENTUM_COLUMNS
        return {name: (getattr(self, name), own) for name, own in columns.items()}

    def plot(self) -> Figure:
        """Draw an overview of the motion.

        Returns
        -------
        matplotlib.figure.Figure
            Shape velocities, controls, position and rotation of the base, or the configuration of
            a system without bodies, energy and what must stay zero.
        """
        return show("motion_figure", self)

    @cached_property
    def _momenta(self) -> list[np.ndarray]:
        """Spatial momentum, and that of the shape velocities alone."""
        model: Any = self.model
        robot = model.system if model.keeps_momentum else model.robot

        def results(q: Array, s: Array) -> list[Array]:
            inner = ca.SX(model.nv, 1)
            inner[list(model.shape)] = s
            return [robot.momentum(q, model.velocity(q, s)), robot.momentum(q, inner)]

        return _over_samples(model, results, self.q, self.s)


def motion_of(
    model: ReducedModel, arrays: Mapping[str, np.ndarray], method: str, seconds: float
) -> Motion:
    """A motion with the velocities and energies that follow from its arrays."""
    system = model.system

    def results(q: Array, s: Array) -> list[Array]:
        v = model.velocity(q, s)
        return [v, system.kinetic_energy(q, v) + system.potential_energy(q)]

    v, energy = _over_samples(model, results, arrays["q"], arrays["s"])
    return Motion(model, {**arrays, "v": v, "energy": energy[:, 0]}, method, seconds)


def _over_samples(
    model: ReducedModel,
    results: Callable[[Array, Array], list[Array]],
    *rows: np.ndarray,
) -> list[np.ndarray]:
    """Results over SX of configurations and shape velocities, a row for each sample."""
    given = [ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns)]
    dense = [ca.densify(ca.SX(result)) for result in results(*given)]
    values = ca.Function("motion", given, dense, {"cse": True}).call([row.T for row in rows])
    return [np.array(x).T for x in values]
