"""Gains from a wish: a settling time, poles, or the weights of a quadratic cost.

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
from concur.control._output import Output
from concur.errors import ConcurError, OutputError, ShapeError
from concur.mechanism import unknown_name

METHODS = ("pole", "lqr")
BAND = 0.02
"""Half width of the band in which a step response has settled, relative to the step."""

_CHANNEL = np.array([[0.0, -1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
"""Error x and velocity error ve of one coordinate under the command nu = d/dt ve."""


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of a servo with what the closed loop does with them, made by `design_gains`.

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
    """Find gains for outputs; every coordinate of an output gets the same channel.

    What is asked for holds for small errors, where the error dynamics are linear, and on
    vector outputs for errors of any size. `concur.design_gains` knows one more method, which
    proves a rate for large errors. Each argument is one number for all outputs or a
    sequence of one per output.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, in the servo's order.
    settling_time : float or sequence of float, optional
        For "pole": time after which an error, at rest at first, stays below 2 %, s.
    damping_ratio : float or sequence of float, optional
        For "pole", with a settling time: damping ratio zeta above zero, default 0.8.
    method : str
        "pole": a settling time and a damping ratio, or `poles`; "lqr": least
        int(error_weight x^2 + rate_weight ve^2 + effort_weight nu^2) dt, where nu = d/dt ve.
    poles : sequence of complex, optional
        For "pole", instead of a settling time: two stable poles, real or conjugate, 1/s; or
        one such pair per output, shape (k, 2).
    error_weight : float or sequence of float, optional
        For "lqr", above zero, 1/m^2 or 1/rad^2.
    rate_weight : float or sequence of float, optional
        For "lqr", not below zero, default 0, s^2/m^2 or s^2/rad^2.
    effort_weight : float or sequence of float, optional
        For "lqr", above zero, default 1, s^4/m^2 or s^4/rad^2.
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
    UnknownNameError
        If the method does not exist.
    ShapeError
        If an argument does not fit the outputs.
    NonFiniteError
        If a number is NaN or infinite.
    OutputError
        If a number is out of its range, poles are unstable or no pair, or an argument belongs
        to another method.

    Examples
    --------
    >>> import concur as cc
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> gains = cc.design_gains([base, hand], settling_time=[3.0, 2.0])
    >>> gains.settling_time.round(6)
    array([3., 2.])
    >>> servo = cc.Servo(cc.reduce(cc.robots.rover_arm()), [base, hand], *gains)
    """
    checked = read_outputs(outputs)
    if not isinstance(method, str) or method not in METHODS:
        raise unknown_name("gains, `method`", "method", method, METHODS)
    for name, value, only in (
        ("settling_time", settling_time, "pole"),
        ("damping_ratio", damping_ratio, "pole"),
        ("poles", poles, "pole"),
        ("error_weight", error_weight, "lqr"),
        ("rate_weight", rate_weight, "lqr"),
        ("effort_weight", effort_weight, "lqr"),
    ):
        if method != only and value is not None:
            raise misplaced(name, f'method="{method}"', f'It is for method="{only}".')
    if method == "pole":
        channels = _place(checked, settling_time, damping_ratio, poles)
    else:
        channels = _regulate(checked, error_weight, rate_weight, effort_weight)
    metric = np.concatenate(
        [
            [each**2 if unit == "rad" else 1.0 for unit in output.coordinate_units]
            for output, each in zip(checked, read_each("length", length, checked), strict=True)
        ]
    )
    sizes = [output.dim for output in checked]
    matrices = [
        np.diag(metric * np.repeat(gain, sizes)) for gain in (*channels.T, np.ones(len(sizes)))
    ]
    pairs = np.array([_roots(np.sqrt(kp), kd / (2.0 * np.sqrt(kp))) for kp, kd in channels])
    for array in (*matrices, pairs):
        array.setflags(write=False)
    names = tuple(output.name for output in checked)
    return Gains(names, method, matrices[0], matrices[1], matrices[2], pairs)


def time_to_settle(natural_frequency: float, damping_ratio: float, band: float = BAND) -> float:
    """Time after which the step response of a channel stays within a band about its end.

    Exact, not by 4 / (zeta wn): the last root of |e(t)| = band is found, where e is the error
    of ``wn^2 / (s^2 + 2 zeta wn s + wn^2)``.

    Parameters
    ----------
    natural_frequency : float
        wn, rad/s.
    damping_ratio : float
        zeta, above zero.
    band : float
        Half width of the band, relative to the step, between 0 and 1.

    Returns
    -------
    float
        The time, s.
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
            raise misplaced("damping_ratio", "`poles`", "Poles say how they are damped.")
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

    if error_weight is None:
        raise OutputError(
            "gains, `error_weight`",
            expected="a weight above zero",
            came="no value",
            cure='method="lqr" needs error_weight; rate_weight and effort_weight have defaults.',
        )
    error = read_each("error_weight", error_weight, outputs)
    rate = read_each("rate_weight", 0.0 if rate_weight is None else rate_weight, outputs, zero=True)
    effort = read_each("effort_weight", 1.0 if effort_weight is None else effort_weight, outputs)
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
        The outputs.

    Returns
    -------
    tuple of Output
        The outputs.

    Raises
    ------
    OutputError
        If there is none, or something else among them.
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
        The numbers.
    outputs : sequence of Output
        The outputs.
    zero : bool
        Whether zero will do.

    Returns
    -------
    numpy.ndarray
        One for each output, shape (k,).

    Raises
    ------
    ShapeError
        If they do not fit the outputs.
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
    except (TypeError, ValueError):
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


def misplaced(name: str, beside: str, cure: str) -> ConcurError:
    """Build the error for an argument that belongs to another way of finding gains.

    Parameters
    ----------
    name : str
        Name of the argument.
    beside : str
        What it was given together with.
    cure : str
        What to know.

    Returns
    -------
    OutputError
        The error, to be raised.
    """
    return OutputError(
        f"gains, `{name}`", expected=f"no value together with {beside}", came="one", cure=cure
    )


def _pole_text(pair: np.ndarray) -> str:
    first, second = pair
    if first.imag == 0.0:
        return f"{first.real:.4g}, {second.real:.4g}"
    return f"{first.real:.4g} +- {abs(first.imag):.4g}j"
