"""Figure of a motion under given torques, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from concur.show.errors import TIME
from concur.show.style import PALETTE, logarithmic, new_figure, side_legend, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.robot import Mechanism
    from concur.show.style import Floats


class MotionLike(Protocol):
    """A finished motion: arrays over time with the instants along the first axis."""

    @property
    def t(self) -> Floats: ...
    @property
    def q(self) -> Floats: ...
    @property
    def s(self) -> Floats: ...
    @property
    def u(self) -> Floats: ...
    @property
    def energy(self) -> Floats: ...
    @property
    def work(self) -> Floats: ...
    @property
    def energy_balance(self) -> Floats: ...
    @property
    def keeps_momentum(self) -> bool: ...
    @property
    def momentum_drift(self) -> Floats: ...
    @property
    def robot(self) -> Mechanism: ...
    @property
    def model(self) -> Any: ...
    @property
    def shape_units(self) -> Sequence[str]: ...
    @property
    def control_units(self) -> Sequence[str]: ...


def motion_figure(motion: MotionLike) -> Figure:
    """Draw a motion on one page.

    Parameters
    ----------
    motion : MotionLike
        A finished motion.

    Returns
    -------
    matplotlib.figure.Figure
        Six panels: shape velocities and control inputs; position of the base's frame and its
        rotation angle; energy, and residuals that must stay zero.

    Examples
    --------
    >>> motion_figure(motion).savefig("motion.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(15.0, 10.0)
        (speeds, controls), (place, turn), (energy, zero) = figure.subplots(3, 2, sharex=True)
        span = motion.t[-1] - motion.t[0]
        figure.suptitle(f"Motion of {motion.model.name}, {span:.3g} s")

        _draw_columns(speeds, motion.t, motion.s, motion.model.shape_names, motion.shape_units)
        speeds.set_title("Shape velocities")
        speeds.set_ylabel(f"velocity [{_all(motion.shape_units)}]")

        names, units = motion.model.control_names, motion.control_units
        _draw_columns(controls, motion.t, motion.u, names, units)
        controls.set_title("Controls")
        controls.set_ylabel(f"control [{_all(units)}]")

        if hasattr(motion.model.system, "bodies"):
            _draw_base(place, turn, motion)
        else:
            draw_configuration(place, motion.model.system, motion.t, motion.q)
            turn.set_axis_off()

        energy.plot(motion.t, motion.energy, color=PALETTE[0], linewidth=2.6, label="energy")
        explained = motion.energy[0] + motion.work
        energy.plot(motion.t, explained, "--", color="black", label="at the start + work")
        energy.set_title("Energy")
        energy.set_ylabel("energy [J]")
        side_legend(energy)
        _draw_zeros(zero, motion)
        for axes in (energy, zero):
            axes.set_xlabel(TIME)
        return figure


def _draw_base(place: Axes, turn: Axes, motion: MotionLike) -> None:
    base = motion.robot.bodies[0].name
    poses = np.array([motion.robot.pose(q, base) for q in motion.q])
    _draw_columns(place, motion.t, poses[:, :3, 3], "xyz", ("m",) * 3)
    place.set_title(f"Position of {base}")
    place.set_ylabel("position [m]")
    turn.plot(motion.t, _turned(poses[:, :3, :3]), color=PALETTE[3], label="angle [rad]")
    turn.set_title(f"Rotation of {base} from its orientation at the start")
    turn.set_ylabel("angle [rad]")
    side_legend(turn)


def draw_configuration(axes: Axes, system: Any, t: Floats, q: Floats) -> None:
    """Draw the coordinates of a system without bodies over time.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Axes.
    system : System
        Its members `coordinate_names` and `coordinate_units` are used, if it has them.
    t, q : ndarray
        Times, shape (k,), s, and configurations, shape (k, nq).
    """
    names = getattr(system, "coordinate_names", [f"q[{k}]" for k in range(q.shape[1])])
    units = getattr(system, "coordinate_units", ["1"] * len(names))
    _draw_columns(axes, t, q, names, units)
    axes.set_title("Configuration")
    axes.set_ylabel(f"q [{_all(units)}]")


def _draw_columns(
    axes: Axes, t: Floats, values: Floats, names: Sequence[str], units: Sequence[str]
) -> None:
    if not names:  # a body alone has no joints to draw
        return
    for column, (name, unit) in enumerate(zip(names, units, strict=True)):
        axes.plot(t, values[:, column], label=f"{name} [{unit}]")
    # A legend with more entries would be higher than its panel.
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        ncols=1 + (len(names) - 1) // 15,
    )


def _draw_zeros(axes: Axes, motion: MotionLike) -> None:
    balance = np.abs(motion.energy_balance)
    axes.plot(motion.t, balance, color=PALETTE[1], label=f"energy [J]\n  up to {balance.max():.2g}")
    title = "Residuals, ideally zero: energy − at the start − work"
    if motion.keeps_momentum:
        drift = motion.momentum_drift
        label = f"momentum [1]\n  up to {drift.max():.2g}"
        axes.plot(motion.t, drift, color=PALETTE[2], label=label)
        title += ",\nand the relative drift of the momentum"
    axes.set_title(title)
    axes.set_ylabel("residual [J, 1]" if motion.keeps_momentum else "residual [J]")
    logarithmic(axes)
    side_legend(axes)


def _turned(rotations: Floats) -> Floats:
    """Angle of each rotation from the first."""
    relative = rotations[0].T @ rotations
    # Use sine and cosine: the arc cosine alone is inaccurate for small angles.
    axial = relative - relative.transpose(0, 2, 1)
    sine = np.sqrt(axial[:, 2, 1] ** 2 + axial[:, 0, 2] ** 2 + axial[:, 1, 0] ** 2) / 2
    cosine = (np.trace(relative, axis1=1, axis2=2) - 1.0) / 2
    return np.asarray(np.arctan2(sine, cosine))


def _all(units: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(units))
