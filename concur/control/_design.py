"""Gains from a specification: a settling time, poles, or the weights of a quadratic cost.

At zero error the closed loop is ``xdot = -ve``, ``vedot = I^-1 (KP x - KD ve)`` whatever the
robot. With KP = kp I and KD = kd I on every output each coordinate is a channel
``s^2 + kd s + kp`` with kp = wn^2 and kd = 2 zeta wn, so gains are found channel by channel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from concur.codegen import as_floats, nonfinite_error, shape_error
from concur.errors import ConcurError, OutputError, ShapeError, shown
from concur.outputs._output import Output
from concur.robot import unknown_name

BAND = 0.02
"""Half width of the band in which a step response has settled, relative to the step."""

_CHANNEL = np.array([[0.0, -1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
"""Error x and velocity error ve of one coordinate under the command nu = d/dt ve."""


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of a servo, with poles and settling times; made by `place_gains` and `lqr_gains`.

    Unpacks into the arguments of a servo: ``Servo(model, outputs, *gains)``.

    Parameters
    ----------
    outputs : tuple of str
        Names of the outputs.
    method : str
        How the gains were found.
    stiffness, damping, inertia : numpy.ndarray
        KP, KD and I on the outputs' algebra, shape (size, size). I is 1 on linear and length^2
        on angular coordinates, so that KP is in 1/s^2 and m^2/s^2, KD in 1/s and m^2/s.
    poles : numpy.ndarray
        Roots of s^2 + kd s + kp of each output, shape (k, 2), complex, 1/s.

    Examples
    --------
    >>> import concur as cc
    >>> hand = cc.Output("hand", "tool", "R3")
    >>> gains = cc.place_gains([hand], settling_time=2.0)
    >>> servo_gains = [*gains]
    >>> len(servo_gains)
    3
    """

    outputs: tuple[str, ...]
    method: str
    stiffness: np.ndarray
    damping: np.ndarray
    inertia: np.ndarray
    poles: np.ndarray

    @property
    def natural_frequency(self) -> np.ndarray:
        """Natural frequency of each output's channel, shape (k,), rad/s."""
        return np.asarray(np.sqrt(self.poles.prod(axis=1).real))

    @property
    def damping_ratio(self) -> np.ndarray:
        """Damping ratio of each output's channel, shape (k,)."""
        return np.asarray(-self.poles.sum(axis=1).real / 2.0 / self.natural_frequency)

    @property
    def settling_time(self) -> np.ndarray:
        """Time after which an error, at rest at first, stays below 2 %, shape (k,), s."""
        pairs = zip(self.natural_frequency, self.damping_ratio, strict=True)
        return np.array([time_to_settle(frequency, ratio) for frequency, ratio in pairs])

    def __iter__(self) -> Iterator[np.ndarray]:
        """Stiffness, damping and inertia, in the order in which a servo takes them."""
        return iter((self.stiffness, self.damping, self.inertia))

    def __str__(self) -> str:
        width = max(len("output"), *(len(name) for name in self.outputs))
        how = {"pole": "pole placement", "lqr": "linear-quadratic regulator"}[self.method]
        lines = [
            f"gains by {how}",
            f"  {'output':<{width}}  kp [1/s^2]  kd [1/s]  frequency [rad/s]  damping ratio"
            "  settling, 2 % [s]  poles [1/s]",
        ]
        rows = zip(
            self.outputs,
            self.poles,
            self.natural_frequency,
            self.damping_ratio,
            self.settling_time,
            strict=True,
        )
        for name, pair, frequency, ratio, settling in rows:
            lines.append(
                f"  {name:<{width}}  {frequency**2:10.5g}  {2 * ratio * frequency:8.5g}"
                f"  {frequency:17.5g}  {ratio:13.4g}  {settling:17.4g}  {_pole_text(pair)}"
            )
        return "\n".join(lines)


def place_gains(
    outputs: Sequence[Output],
    settling_time: Any = None,
    damping_ratio: Any = None,
    *,
    poles: Any = None,
    length: Any = 1.0,
) -> Gains:
    """Find gains from a settling time or from poles.

    Every coordinate of an output gets the same channel. The result holds for small errors, where
    the error dynamics are linear, and on vector outputs for errors of any size. Each argument is
    one number for all outputs or a sequence of one per output.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, in the servo's order.
    settling_time : float or sequence of float, optional
        Time after which an error, at rest at first, stays below 2 %, s.
    damping_ratio : float or sequence of float, optional
        With a settling time: damping ratio zeta above zero, default 0.8.
    poles : sequence of complex, optional
        Instead of a settling time: two stable poles, real or conjugate, 1/s; or one such pair per
        output, shape (k, 2).
    length : float or sequence of float
        Length l that makes an angle comparable with a distance, m: the metric I is l^2 on
        angular coordinates. In SE(3) and SE(2) it also sets how strongly large position errors
        act on the rotation; elsewhere the closed loop does not depend on it.

    Returns
    -------
    Gains
        Matrices for the servo, with the poles and the settling time reached.

    Raises
    ------
    ShapeError
        If an argument does not fit the outputs.
    NonFiniteError
        If a number is NaN or infinite.
    OutputError
        If a number is out of its range, or poles are unstable or no pair.

    Examples
    --------
    >>> import concur as cc
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> gains = cc.place_gains([base, hand], settling_time=[3.0, 2.0])
    >>> gains.settling_time.round(6)
    array([3., 2.])
    >>> servo = cc.Servo(cc.reduce(cc.robots.rover_arm()), [base, hand], *gains)
    """
    checked = read_outputs(outputs)
    return _gains(checked, "pole", _place(checked, settling_time, damping_ratio, poles), length)


def lqr_gains(
    outputs: Sequence[Output],
    error_weight: Any,
    rate_weight: Any = 0.0,
    effort_weight: Any = 1.0,
    *,
    length: Any = 1.0,
) -> Gains:
    """Find the gains that minimize a quadratic cost of small errors.

    The cost is int(error_weight x^2 + rate_weight ve^2 + effort_weight nu^2) dt with nu = d/dt ve.
    Every coordinate of an output gets the same channel. Each argument is one number for all outputs
    or a sequence of one per output.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, in the servo's order.
    error_weight : float or sequence of float
        Above zero, 1/m^2 or 1/rad^2.
    rate_weight : float or sequence of float
        Not below zero, s^2/m^2 or s^2/rad^2.
    effort_weight : float or sequence of float
        Above zero, s^4/m^2 or s^4/rad^2.
    length : float or sequence of float
        As of `place_gains`, m.

    Returns
    -------
    Gains
        Matrices for the servo, with the poles and the settling time reached.

    Raises
    ------
    ShapeError
        If an argument does not fit the outputs.
    NonFiniteError
        If a number is NaN or infinite.
    OutputError
        If a number is out of its range.

    Examples
    --------
    >>> import concur as cc
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> cc.lqr_gains([hand], error_weight=16.0).natural_frequency
    array([2.])
    """
    checked = read_outputs(outputs)
    channels = _regulate(checked, error_weight, rate_weight, effort_weight)
    return _gains(checked, "lqr", channels, length)


def design_gains(
    outputs: Sequence[Output],
    settling_time: Any = None,
    damping_ratio: Any = None,
    method: str = "pole",
    *,
    poles: Any = None,
    error_weight: Any = None,
    rate_weight: Any = None,
    effort_weight: Any = None,
    length: Any = 1.0,
) -> Gains:
    """Find gains by a method that is chosen by its name.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, in the servo's order.
    settling_time, damping_ratio : float or sequence of float, optional
        Time, s, and ratio of `place_gains`.
    method : str
        "pole" for `place_gains`, "lqr" for `lqr_gains`.
    poles : sequence of complex, optional
        Poles of `place_gains`, 1/s.
    error_weight, rate_weight, effort_weight : float or sequence of float, optional
        Weights of `lqr_gains`.
    length : float or sequence of float
        As of both, m.

    Returns
    -------
    Gains
        Matrices for the servo, with the poles and the settling time reached.

    Raises
    ------
    UnknownNameError
        If there is no such method.
    OutputError
        If an argument belongs to the other method, or as of the function.

    Examples
    --------
    >>> import concur as cc
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> float(cc.design_gains([hand], settling_time=2.0).settling_time[0].round(6))
    2.0
    >>> cc.design_gains([hand], method="lqr", error_weight=16.0).natural_frequency
    array([2.])
    """
    placed = {"settling_time": settling_time, "damping_ratio": damping_ratio, "poles": poles}
    weights = {
        "error_weight": error_weight, "rate_weight": rate_weight, "effort_weight": effort_weight
    }  # fmt: skip
    if method not in ("pole", "lqr"):
        raise unknown_name("gains, `method`", "method", method, ["pole", "lqr"])
    own, others = (placed, weights) if method == "pole" else (weights, placed)
    for name, value in others.items():
        if value is not None:
            raise OutputError(
                f"gains, `{name}`",
                expected=f'no value with method="{method}", which takes {", ".join(own)}',
                came=shown(value),
                cure="Leave it out, or take the other method.",
            )
    given = {name: value for name, value in own.items() if value is not None}
    return (place_gains if method == "pole" else lqr_gains)(outputs, **given, length=length)


def _gains(outputs: tuple[Output, ...], method: str, channels: np.ndarray, length: Any) -> Gains:
    """Gains of outputs from stiffness and damping of their channels, (k, 2)."""
    metric = np.concatenate(
        [
            [each**2 if unit == "rad" else 1.0 for unit in output.coordinate_units]
            for output, each in zip(outputs, read_each("length", length, outputs), strict=True)
        ]
    )
    sizes = [output.dim for output in outputs]
    matrices = [
        np.diag(metric * np.repeat(gain, sizes)) for gain in (*channels.T, np.ones(len(sizes)))
    ]
    pairs = np.array([_roots(np.sqrt(kp), kd / (2.0 * np.sqrt(kp))) for kp, kd in channels])
    for array in (*matrices, pairs):
        array.setflags(write=False)
    names = tuple(output.name for output in outputs)
    return Gains(names, method, matrices[0], matrices[1], matrices[2], pairs)


def time_to_settle(natural_frequency: float, damping_ratio: float, band: float = BAND) -> float:
    """Time after which the step response of a channel stays within a band about its end, s.

    Exact, not by 4 / (zeta wn): the last root of |e(t)| = band is found, where e is the error
    of ``wn^2 / (s^2 + 2 zeta wn s + wn^2)``, relative to the step.
    """
    zeta = damping_ratio

    def rest(tau: float) -> float:
        return abs(_step_error(tau, zeta)) - band

    if zeta >= 1.0:
        # The error falls like exp(-tau / slow) after at most one more such time.
        slow = zeta + np.sqrt((zeta - 1.0) * (zeta + 1.0))
        return float(brentq(rest, 0.0, slow * (2.0 - np.log(band)), xtol=1e-14)) / natural_frequency
    # Overshoots come every half period and shrink: the last one above the band comes first,
    # after it the error falls through zero.
    half = np.pi / np.sqrt((1.0 - zeta) * (1.0 + zeta))
    last = np.ceil(-np.log(band) / (zeta * half)) - 1.0
    zero = (last + (np.pi - np.arccos(zeta)) / np.pi) * half
    return float(brentq(rest, last * half, zero, xtol=1e-14)) / natural_frequency


def _step_error(tau: float, zeta: float) -> float:
    """Solution of e'' + 2 zeta e' + e = 0 from e = 1, e' = 0."""
    if zeta < 1.0:
        beta = np.sqrt((1.0 - zeta) * (1.0 + zeta))
        wave = np.cos(beta * tau) + zeta * tau * np.sinc(beta * tau / np.pi)
        return float(np.exp(-zeta * tau) * wave)
    root = np.sqrt((zeta - 1.0) * (zeta + 1.0))
    slow, gap = 1.0 / (zeta + root), 2.0 * root * tau
    # (1 - exp(-gap)) / gap, which also holds where the two poles meet.
    share = -np.expm1(-gap) / gap if gap > 0.0 else 1.0
    return float(np.exp(-slow * tau) * (1.0 + slow * tau * share))


def _roots(frequency: float, ratio: float) -> np.ndarray:
    """Poles of a channel; the one nearer to zero first, without loss of digits."""
    root = np.sqrt(complex((ratio - 1.0) * (ratio + 1.0)))
    # Rounding alone would tear a double pole apart by 1e-8.
    far = ratio + (root if abs(root) > 1e-7 else 0.0)
    return -frequency * np.array([1.0 / far, far])


def _place(
    outputs: Sequence[Output], settling_time: Any, damping_ratio: Any, poles: Any
) -> np.ndarray:
    """Stiffness and damping of each channel, (k, 2), from its poles."""
    import control

    if (settling_time is None) == (poles is None):
        raise OutputError(
            "gains",
            expected="either `settling_time` or `poles`",
            came="neither" if poles is None else "both",
            cure="Write for example settling_time=2.0, in s.",
        )
    if poles is not None:
        if damping_ratio is not None:
            raise OutputError(
                "gains, `damping_ratio`",
                expected="no value together with `poles`",
                came="a value",
                cure="The poles determine the damping: omit `damping_ratio`.",
            )
        pairs = _read_poles(poles, outputs)
    else:
        times = read_each("settling_time", settling_time, outputs)
        ratios = read_each(
            "damping_ratio", 0.8 if damping_ratio is None else damping_ratio, outputs
        )
        frequencies = [time_to_settle(1.0, zeta) for zeta in ratios] / times
        pairs = frequencies[:, None] * np.array([_roots(1.0, zeta) for zeta in ratios])
    # Ackermann's formula, because `control.place` refuses the double pole of critical damping.
    return np.array([_channel_gains(control.acker(*_CHANNEL, list(pair))) for pair in pairs])


def _regulate(
    outputs: Sequence[Output], error_weight: Any, rate_weight: Any, effort_weight: Any
) -> np.ndarray:
    """Stiffness and damping of each channel, (k, 2), from the weights of a quadratic cost."""
    import control

    error = read_each("error_weight", error_weight, outputs)
    rate = read_each("rate_weight", rate_weight, outputs, zero=True)
    effort = read_each("effort_weight", effort_weight, outputs)
    # A unit of time in which the three weights are near each other: the Riccati solver loses
    # digits where they are orders of magnitude apart.
    pace = (error / effort) ** 0.25
    found = []
    for speed, damped, price in zip(pace, rate, effort, strict=True):
        weights = np.diag([1.0, damped / price / speed**2])
        kp, kd = _channel_gains(control.lqr(*_CHANNEL, weights, np.eye(1))[0])
        found.append([kp * speed**2, kd * speed])
    return np.array(found)


def _channel_gains(feedback: np.ndarray) -> tuple[float, float]:
    """Stiffness and damping from the feedback matrix [-kp, kd] of nu = kp x - kd ve."""
    stiffness, damping = np.real(np.ravel(feedback))
    return -float(stiffness), float(damping)


def read_outputs(outputs: Any) -> tuple[Output, ...]:
    """Read the outputs that gains are for.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, or one output.

    Returns
    -------
    tuple of Output
        The outputs.

    Raises
    ------
    OutputError
        If there is no output, or an entry is not an `Output`.
    """
    listed = [outputs] if isinstance(outputs, Output) or not np.iterable(outputs) else [*outputs]
    if not listed or not all(isinstance(output, Output) for output in listed):
        raise OutputError(
            "gains, `outputs`",
            expected="a sequence of Output",
            came=repr(outputs)[:60],
            cure="Pass the outputs that the servo gets.",
        )
    return tuple(listed)


def read_each(
    name: str, value: Any, outputs: Sequence[Output], *, zero: bool = False
) -> np.ndarray:
    """Read one number for all outputs or one per output.

    Parameters
    ----------
    name : str
        Name of the argument.
    value : float or sequence of float
        The numbers, above zero.
    outputs : sequence of Output
        The outputs.
    zero : bool
        Whether zero is allowed.

    Returns
    -------
    numpy.ndarray
        One number for each output, shape (k,).

    Raises
    ------
    ShapeError
        If the numbers do not fit the outputs.
    NonFiniteError
        If one is NaN or infinite.
    OutputError
        If one is below its range.
    """
    where = f"gains, `{name}`"
    numbers = as_floats(value, where)
    if numbers.shape not in ((), (len(outputs),)):
        raise _unequal(where, "number", outputs, numbers.shape)
    if not np.isfinite(numbers).all():
        raise nonfinite_error(where, numbers)
    each = np.broadcast_to(numbers, (len(outputs),))
    for output, number in zip(outputs, each, strict=True):
        if number < 0.0 or (number == 0.0 and not zero):
            raise OutputError(
                f"{where}, output `{output.name}`",
                expected="a number not below zero" if zero else "a number above zero",
                came=f"{number:.6g}",
                cure="Give one for all outputs, or one for each.",
            )
    return each


def _read_poles(value: Any, outputs: Sequence[Output]) -> np.ndarray:
    where = "gains, `poles`"
    try:
        numbers = np.asarray(value, dtype=complex)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError(
            where,
            expected="two complex numbers, or two per output",
            came=repr(value)[:60],
            cure="Write for example poles=(-1.4 + 1.43j, -1.4 - 1.43j).",
        ) from None
    if numbers.shape not in ((2,), (len(outputs), 2)):
        raise _unequal(where, "pair of poles", outputs, numbers.shape)
    if not np.isfinite(numbers).all():
        raise nonfinite_error(where, numbers)
    pairs = np.broadcast_to(numbers, (len(outputs), 2))
    for output, pair in zip(outputs, pairs, strict=True):
        # Sum and product of roots are real exactly where their polynomial is.
        total, product, size = pair.sum(), pair.prod(), np.abs(pair).max()
        paired = abs(total.imag) <= 1e-9 * size and abs(product.imag) <= 1e-9 * size**2
        if paired and pair.real.max() < 0.0:
            continue
        raise OutputError(
            f"{where}, output `{output.name}`",
            expected="two poles with negative real parts, both real or conjugate to each other",
            came=" and ".join(f"{pole:.6g}" for pole in pair),
            cure="Move them into the left half plane." if paired else "Give -a + bj and -a - bj.",
        )
    return pairs


def _unequal(
    where: str, what: str, outputs: Sequence[Output], shape: tuple[int, ...]
) -> ConcurError:
    names = ", ".join(output.name for output in outputs)
    error = shape_error(where, (len(outputs),), shape)
    return ShapeError(
        where,
        expected=f"one {what}, or one for each of the {len(outputs)} outputs {names}",
        came=error.came,
        cure="Give them in the outputs' order.",
    )


def _pole_text(pair: np.ndarray) -> str:
    first, second = pair
    if first.imag == 0.0:
        return f"{first.real:.4g}, {second.real:.4g}"
    return f"{first.real:.4g} +- {abs(first.imag):.4g}j"
