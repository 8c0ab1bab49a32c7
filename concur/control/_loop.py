"""The linearised loop: its margins, and how its errors settle.

At zero error the loop is ``xdot = -ve``, ``vedot = I^-1 (KP x - KD ve)``. Cut at the output
acceleration that the law commands it is ``L(s) = I^-1 (KD s + KP) / s^2``, for scalar gains
``(kd s + kp) / s^2`` in every coordinate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.linalg import eigh, expm

from concur.control._design import BAND, time_to_settle
from concur.control._error_dynamics import ErrorDynamics
from concur.control._linear_model import labels, linear_model
from concur.control._tracking_law import TrackingLaw
from concur.errors import OutputError
from concur.reduction import ReducedModel
from concur.robot import scalar

if TYPE_CHECKING:
    import control

_PER_DECADE = 100
"""Frequencies in which crossings are looked for, before they are made exact."""

Loops = Callable[[Any], np.ndarray]
"""Scalar loops at frequencies (m,): complex, shape (m, k)."""


def linear_loop(
    servo: TrackingLaw | ErrorDynamics | ReducedModel,
    broken: bool = False,
    at: ArrayLike | None = None,
) -> control.StateSpace:
    """Linearise the error dynamics at zero error; exact where all outputs are vectors.

    Closed: inputs ``disturbance[...]``, an output acceleration beside the commanded one
    (m/s^2, rad/s^2); outputs the states. Broken at the output acceleration: inputs
    ``command[...]``, outputs ``demand[...]``, what the law would command, with its sign reversed,
    so that closing it by negative feedback gives the closed loop (m/s^2, rad/s^2).

    A robot with fewer motors than shape velocities, such as a crane with a load on a cable, has no
    servo. Its reduced model is linearized where the motors hold it at rest, without a law:
    inputs ``u[...]``, the controls less those that hold it (N, N m), and outputs the states.

    Parameters
    ----------
    servo : Servo, ErrorDynamics or ReducedModel
        The servo, its error dynamics, or a reduced model.
    broken : bool
        Whether the loop of a servo is cut open; that of a model is.
    at : array_like, optional
        For a reduced model only: the configuration of rest, shape (nq,).

    Returns
    -------
    control.StateSpace
        States ``error[...]`` and ``velocity_error[...]``, x and ve, (2 size,). Of a model
        ``displacement[...]``, integrals of the shape velocities, and ``s[...]``, (2 ns,); to first
        order the former are those entries of `robot.difference(at, q)` (m, rad; m/s, rad/s).

    Raises
    ------
    OutputError
        If it is none of these, a servo has integral action, or a model does not rest at `at`.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> cc.control.linear_loop(servo).nstates
    10
    """
    import control

    if isinstance(servo, ReducedModel):
        return linear_model(servo, at)
    names, dynamics = loop_of(servo)
    n, (stiffness, damping) = len(names), _feedback(dynamics)
    zero, states = np.zeros((n, n)), [*labels("error", names), *labels("velocity_error", names)]
    matrix, seen, words = _error_matrix(stiffness, damping), np.eye(2 * n), ("disturbance", states)
    if broken:
        matrix, seen = _error_matrix(zero, zero), np.hstack([-stiffness, damping])
        words = "command", labels("demand", names)
    return control.ss(
        matrix,
        np.vstack([zero, np.eye(n)]),
        seen,
        np.zeros((len(seen), n)),
        inputs=labels(words[0], names),
        outputs=words[1],
        states=states,
        name="broken_loop" if broken else "error_dynamics",
    )


@dataclass(frozen=True, eq=False)
class LoopMargins:
    """Stability margins of the linearized loop, from `loop_margins`.

    The margins of a coordinate are those of the loop cut in its commanded acceleration while
    the other coordinates stay closed; without coupling these do not matter.

    Parameters
    ----------
    names : tuple of str
        Name of each coordinate: output and component.
    crossover : numpy.ndarray
        Highest frequency at which the loop's gain is one, shape (size,), rad/s.
    gain_margin : numpy.ndarray
        Factor above one by which the gain may grow, shape (size,); infinite if without end.
    phase_margin : numpy.ndarray
        Phase that may be lost, shape (size,), degrees.
    delay_margin : numpy.ndarray
        Delay that may be added in one coordinate, shape (size,), s.
    common_delay_margin : float
        Delay that may be added in all coordinates at once, s.
    disk_margin : float
        Symmetric disk margin for simultaneous changes of gain and phase, each coordinate its
        own, without unit. For coupled coordinates a lower bound.
    hold_limit : float
        Period of a zero-order hold below which the sampled loop is stable, s. Exact without
        coupling; with it a lower bound.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> round(cc.control.loop_margins(servo).common_delay_margin, 4)
    0.3237
    """

    names: tuple[str, ...]
    crossover: np.ndarray
    gain_margin: np.ndarray
    phase_margin: np.ndarray
    delay_margin: np.ndarray
    common_delay_margin: float
    disk_margin: float
    hold_limit: float

    @property
    def disk_gain_margin(self) -> float:
        """Factor of gain, up or down, that every coordinate bears at the same time."""
        if self.disk_margin >= 2.0:
            return float("inf")
        return (2.0 + self.disk_margin) / (2.0 - self.disk_margin)

    @property
    def disk_phase_margin(self) -> float:
        """Phase, gained or lost, that every coordinate bears at the same time, degrees."""
        return float(np.degrees(2.0 * np.arctan(self.disk_margin / 2.0)))

    def __str__(self) -> str:
        width = max(len("coordinate"), *(len(name) for name in self.names))
        lines = [
            f"  {'coordinate':<{width}}  crossover [rad/s]  gain margin  phase margin [deg]"
            "  delay margin [s]"
        ]
        rows = zip(
            self.names,
            self.crossover,
            self.gain_margin,
            self.phase_margin,
            self.delay_margin,
            strict=True,
        )
        for name, crossover, gain, phase, delay in rows:
            lines.append(
                f"  {name:<{width}}  {crossover:17.4g}  {gain:11.4g}  {phase:18.1f}  {delay:16.4g}"
            )
        return "\n".join(
            [
                "margins of the loop, cut at the commanded output acceleration",
                *lines,
                f"  all at once: delay {self.common_delay_margin:.4g} s; disk margin "
                f"{self.disk_margin:.4g} (gain by {self.disk_gain_margin:.3g} or phase by "
                f"{self.disk_phase_margin:.1f} deg)",
                f"  torque held for less than {self.hold_limit:.4g} s",
            ]
        )


def loop_margins(servo: TrackingLaw | ErrorDynamics) -> LoopMargins:
    """Margins of the linearised loop, cut at the output acceleration that the law commands.

    Parameters
    ----------
    servo : Servo or ErrorDynamics
        The servo, or its error dynamics.

    Returns
    -------
    LoopMargins
        Margins of each coordinate and of all together.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4.0, damping=2.8)
    >>> margins = cc.control.loop_margins(servo)
    >>> margins.phase_margin.round(1)
    array([65.2, 65.2, 65.2, 65.2, 65.2])
    """
    names, dynamics = loop_of(servo)
    stiffness, damping = _feedback(dynamics)
    grid = _frequencies(dynamics)

    def whole(frequency: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.eigvals(_open(stiffness, damping, frequency)))

    channels = [_channel(stiffness, damping, i) for i in range(len(names))]
    crossings = [_crossings(channel, grid) for channel in channels]
    return LoopMargins(
        names,
        np.array([found[-1][0] for found in crossings]),
        np.array([_gain_margin(channel, grid) for channel in channels]),
        np.degrees([min((phase for _, phase in found), key=abs) for found in crossings]),
        np.array([_least_delay(found) for found in crossings]),
        _least_delay(_crossings(whole, grid)),
        _disk_margin(dynamics, grid),
        _hold_limit(dynamics),
    )


@dataclass(frozen=True, eq=False)
class LoopResponse:
    """Step and frequency response of the linearised loop, to be drawn; from `loop_response`.

    Parameters
    ----------
    names : tuple of str
        Name of each coordinate: output and component.
    t : numpy.ndarray
        Times, shape (k,), s.
    step : numpy.ndarray
        Each coordinate after a unit step of its reference alone, from rest, shape (k, size).
    settling_time : numpy.ndarray
        Time after which the coordinate stays within `band` about one, shape (size,), s.
    band : float
        Half width of that band.
    frequency : numpy.ndarray
        Frequencies, shape (m,), rad/s.
    loop : numpy.ndarray
        Frequency response of each coordinate's loop, the others closed, complex, (m, size).
    margins : LoopMargins
        The margins.
    """

    names: tuple[str, ...]
    t: np.ndarray
    step: np.ndarray
    settling_time: np.ndarray
    band: float
    frequency: np.ndarray
    loop: np.ndarray
    margins: LoopMargins


def loop_response(
    servo: TrackingLaw | ErrorDynamics, duration: float | None = None
) -> LoopResponse:
    """Step and frequency response of every coordinate of the linearised loop.

    Parameters
    ----------
    servo : Servo or ErrorDynamics
        The servo, or its error dynamics.
    duration : float, optional
        How long the step response is shown, s; default 1.4 times the longest settling time.

    Returns
    -------
    LoopResponse
        What `show.step_figure` and `show.margin_figure` draw.

    Raises
    ------
    OutputError
        If the duration is not above zero.
    """
    names, dynamics = loop_of(servo)
    stiffness, damping = _feedback(dynamics)
    settling = _settling_times(stiffness, damping)
    length = 1.4 * settling.max() if duration is None else scalar(duration, "`duration`")
    if not length > 0.0:
        raise OutputError(
            "loop response, `duration`",
            expected="a time above zero, s",
            came=f"{length:.6g}",
            cure="Leave it out to see every coordinate settle.",
        )
    t = np.linspace(0.0, length, 1001)
    frequency = _frequencies(dynamics)
    channels = [_channel(stiffness, damping, i)(frequency)[:, 0] for i in range(len(names))]
    return LoopResponse(
        names,
        t,
        1.0 - _own_errors(_error_matrix(stiffness, damping), t),
        settling,
        BAND,
        frequency,
        np.column_stack(channels),
        loop_margins(servo),
    )


def loop_of(servo: Any) -> tuple[tuple[str, ...], ErrorDynamics]:
    """Names of the coordinates, and error dynamics, of a law or of error dynamics themselves."""
    if isinstance(servo, ErrorDynamics):
        return tuple(f"{i}: {name}" for i, name in enumerate(servo.group.error_names)), servo
    if not isinstance(servo, TrackingLaw) or not servo.linearizes:
        raise OutputError(
            "linear loop",
            expected="a Servo or its error dynamics",
            came=f"{type(servo).__name__} {servo!r:.40}",
            cure="Pass the servo.",
        )
    if servo.nz:
        raise OutputError(
            "linear loop",
            expected="a law without a state",
            came="integral action",
            cure="Pass dataclasses.replace(servo, integral=None) for the loop without it.",
        )
    names = tuple(
        f"{output.name}[{name}]" for output in servo.outputs for name in output.coordinate_names
    )
    return names, servo.error_dynamics


def _feedback(dynamics: ErrorDynamics) -> tuple[np.ndarray, np.ndarray]:
    """I^-1 KP and I^-1 KD."""
    return (
        np.linalg.solve(dynamics.inertia, dynamics.stiffness),
        np.linalg.solve(dynamics.inertia, dynamics.damping),
    )


def _frequencies(dynamics: ErrorDynamics) -> np.ndarray:
    """Logarithmic grid that reaches far beyond every pole and every crossing."""
    squares = eigh(dynamics.stiffness, dynamics.inertia, eigvals_only=True)
    rates = eigh(dynamics.damping, dynamics.inertia, eigvals_only=True)
    # Where stiffness acts, where damping acts, and the slow pole of a strongly damped channel.
    corners = [*np.sqrt(squares[[0, -1]]), *rates[[0, -1]], squares[0] / rates[-1]]
    low, high = np.log10(min(corners)) - 2.0, np.log10(max(corners)) + 2.0
    return np.logspace(low, high, int((high - low) * _PER_DECADE) + 1)


def _open(stiffness: np.ndarray, damping: np.ndarray, frequency: Any) -> np.ndarray:
    """Frequency response L(jw) of the whole loop, shape (m, n, n)."""
    s = 1j * np.atleast_1d(frequency)[:, None, None]
    return np.asarray((stiffness + s * damping) / s**2)


def _channel(stiffness: np.ndarray, damping: np.ndarray, index: int) -> Loops:
    """Loop of one coordinate, the others closed: by 1 / (1 + L_i) = (1 + L)^-1_ii."""
    others = np.delete(np.arange(len(stiffness)), index)

    def loop(frequency: Any) -> np.ndarray:
        whole = _open(stiffness, damping, frequency)
        inner = whole[:, others[:, None], others]
        row, column = whole[:, [index]][:, :, others], whole[:, others][:, :, [index]]
        around = row @ np.linalg.solve(np.eye(others.size) + inner, column)
        return np.asarray(whole[:, index, index, None] - around[:, :, 0])

    return loop


def _crossings(loops: Loops, grid: np.ndarray) -> list[tuple[float, float]]:
    """Frequencies, ascending, at which a gain is one, with the phase there above -180 deg."""

    def sizes(log_frequency: float, rank: int) -> float:
        return float(np.log(np.sort(np.abs(loops(np.exp(log_frequency))[0]))[rank]))

    # Gains in order of size are continuous in the frequency even where eigenvalues swap.
    above = np.sort(np.abs(loops(grid)), axis=1) > 1.0
    found = []
    for k, rank in zip(*np.nonzero(above[1:] != above[:-1]), strict=True):
        ends = np.log(grid[k : k + 2])
        frequency = float(np.exp(scipy.optimize.brentq(sizes, *ends, args=(rank,), xtol=1e-14)))
        values = loops(frequency)[0]
        value = values[np.argsort(np.abs(values))[rank]]
        found.append((frequency, float(np.angle(-value))))
    return sorted(found)


def _least_delay(crossings: list[tuple[float, float]]) -> float:
    return min(phase % (2.0 * np.pi) / frequency for frequency, phase in crossings)


def _gain_margin(channel: Loops, grid: np.ndarray) -> float:
    """Least factor above one at which the loop passes through -1."""

    def height(log_frequency: float) -> float:
        return float(channel(np.exp(log_frequency))[0, 0].imag)

    signs = channel(grid)[:, 0].imag > 0.0
    factors = [float("inf")]
    for k in np.nonzero(signs[1:] != signs[:-1])[0]:
        frequency = np.exp(scipy.optimize.brentq(height, *np.log(grid[k : k + 2]), xtol=1e-14))
        crossing = channel(frequency)[0, 0].real
        if -1.0 < crossing < 0.0:
            factors.append(-1.0 / crossing)
    return min(factors)


def _disk_margin(dynamics: ErrorDynamics, grid: np.ndarray) -> float:
    """1 / sup |S - 1/2|, with coordinates scaled by the metric to a common unit."""
    stiffness, damping = _feedback(dynamics)
    scale = np.sqrt(np.diag(dynamics.inertia))
    n = scale.size

    def size(frequency: Any) -> np.ndarray:
        sensitivity = np.linalg.inv(np.eye(n) + _open(stiffness, damping, frequency))
        scaled = scale[:, None] * (sensitivity - np.eye(n) / 2.0) / scale
        return np.asarray(np.linalg.norm(scaled, 2, axis=(1, 2)))

    values = size(grid)
    peak = int(np.clip(values.argmax(), 1, grid.size - 2))
    refined = scipy.optimize.minimize_scalar(
        lambda log_frequency: -size(np.exp(log_frequency))[0],
        bounds=np.log(grid[[peak - 1, peak + 1]]),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return 1.0 / max(-float(refined.fun), float(values.max()))


def _hold_limit(dynamics: ErrorDynamics) -> float:
    """min(2/kd, 2kd/kp): for matrices with the largest eigenvalues of I^-1 KD and KD^-1 KP.

    With z = (1 + w)/(1 - w) the held loop is w^2 (4I - 2T KD) + w (2T KD - T^2 KP) + T^2 KP:
    stable where all three are positive definite.
    """
    rate = eigh(dynamics.damping, dynamics.inertia, eigvals_only=True)[-1]
    slowness = eigh(dynamics.stiffness, dynamics.damping, eigvals_only=True)[-1]
    return float(min(2.0 / rate, 2.0 / slowness))


def longest_latency(
    servo: TrackingLaw | ErrorDynamics, period: float, latency: float
) -> float | None:
    """Latency below which the sampled loop is stable, s; None: stable at `latency`.

    The commanded acceleration is held for a period. Zero if no latency is stable; integral action
    is left out.
    """
    if isinstance(servo, TrackingLaw) and servo.nz:
        servo = replace(servo, integral=None)
    dynamics = loop_of(servo)[1]
    stiffness, damping = _feedback(dynamics)
    n = len(stiffness)
    grid = _frequencies(dynamics)
    margin = _least_delay(
        _crossings(lambda w: np.linalg.eigvals(_open(stiffness, damping, w)), grid)
    )

    def is_stable(delay: float) -> bool:
        """By the roots of the characteristic polynomial: all are inside the unit circle.

        With z the step and delay = (d + f) period it is the determinant of
        ``(z - 1)^2 z^(d + 1) + KP (c + b (z - 1)) + KD c (z - 1)``, with c and b the speed and the
        way that a command gives in two steps. Its argument along the circle counts the roots.
        """
        d, f = divmod(delay / period, 1.0)
        fine = np.arange(0.0, min(np.pi, 20.0 * grid[-1] * period), 0.1 / (d + 2.0))
        angles = np.unique([*np.minimum(grid * period, np.pi), *fine[:100_000], 0.0, np.pi])

        def polynomial(angles: np.ndarray) -> np.ndarray:
            z = np.exp(1j * angles)[:, None, None]
            speed = period * ((1.0 - f) * z + f)
            way = period**2 * ((1.0 - f) ** 2 * z + f * (2.0 - f)) / 2.0
            fed = stiffness * (period * speed + way * (z - 1.0)) + damping * speed * (z - 1.0)
            return np.asarray((z - 1.0) ** 2 * np.eye(n) + fed * z ** -(d + 1.0))

        for _ in range(40):
            values = polynomial(angles)
            ratios = np.linalg.solve(values[:-1], values[1:])
            turns = np.angle(np.linalg.eigvals(ratios))
            coarse = np.flatnonzero(np.abs(turns).max(axis=1) > 0.5)
            if not coarse.size:
                break
            angles = np.sort([*angles, *(angles[coarse] + angles[coarse + 1]) / 2.0])
        return bool(abs(turns.sum() - 2.0 * np.pi * n) < 1.0)

    # Beyond twice the margin of the continuous loop no hold is stable.
    if latency < 2.0 * margin and is_stable(latency):
        return None
    if not is_stable(0.0):
        return 0.0
    low, high = 0.0, min(latency, 2.0 * margin)
    while high - low > 1e-3 * high:
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_stable(middle) else (low, middle)
    return low


def _own_errors(matrix: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Error of each coordinate after a unit error of itself alone, from rest, (k, n)."""
    n = matrix.shape[0] // 2
    step = expm(matrix * (t[1] - t[0]))
    state = np.vstack([np.eye(n), np.zeros((n, n))])
    errors = np.empty((t.size, n))
    for k in range(t.size):
        errors[k] = state[:n].diagonal()
        state = step @ state
    return errors


def _settling_times(stiffness: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Last time at which the error of each coordinate leaves the band."""
    n = stiffness.shape[0]
    coupled = np.abs(stiffness) + np.abs(damping)
    coupled -= np.diag(coupled.diagonal())
    times = np.empty(n)
    for i in range(n):
        if coupled[i].any() or coupled[:, i].any():
            times[i] = _coupled_settling(_error_matrix(stiffness, damping), i)
        else:
            frequency = np.sqrt(stiffness[i, i])
            times[i] = time_to_settle(frequency, damping[i, i] / (2.0 * frequency))
    return times


def _coupled_settling(matrix: np.ndarray, index: int) -> float:
    """The same for one coordinate among others: found on a grid, then made exact."""
    length = -10.0 / float(np.linalg.eigvals(matrix).real.max())
    while True:
        t = np.linspace(0.0, length, 4001)
        outside = np.nonzero(np.abs(_own_errors(matrix, t)[:, index]) > BAND)[0]
        if outside[-1] < t.size - 1:
            break
        length *= 2.0

    def rest(time: float) -> float:
        return abs(float(expm(matrix * time)[index, index])) - BAND

    return float(scipy.optimize.brentq(rest, t[outside[-1]], t[outside[-1] + 1], xtol=1e-12))


def _error_matrix(stiffness: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Matrix of the error dynamics on (x, ve)."""
    n = stiffness.shape[0]
    return np.block([[np.zeros((n, n)), -np.eye(n)], [stiffness, -damping]])
