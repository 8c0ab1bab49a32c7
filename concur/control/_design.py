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
import scipy

from concur.codegen import nonfinite_error
from concur.control._reading import read_each, read_outputs, unequal
from concur.errors import OutputError, ShapeError, shown
from concur.outputs import Output
from concur.robot import unknown_name

BAND = 0.02
"""Half width of the band in which a step response has settled, relative to the step."""

METHODS = {
    "pole": ("poles", {"settling_time": "damping_ratio", "poles": ""}),
    "lqr": ("error_weight", {"settling_time": "", "error_weight": "rate_weight"}),
}
"""Of each method: what it takes instead of a settling time, and what each of both may come with."""


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of a servo, with poles and settling times; made by `design_gains`.

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
    >>> gains = cc.design_gains([hand], settling_time=2.0)
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


def design_gains(
    outputs: Sequence[Output],
    settling_time: Any = None,
    damping_ratio: Any = None,
    method: str = "pole",
    *,
    poles: Any = None,
    error_weight: Any = None,
    rate_weight: Any = None,
    length: Any = 1.0,
) -> Gains:
    """Find gains from a settling time, from poles, or from the weights of a quadratic cost.

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
        With a settling time and "pole": damping ratio zeta above zero, default 0.8.
    method : str
        "pole" places poles; "lqr" minimizes the integral of
        error_weight x^2 + rate_weight ve^2 + nu^2 for small errors, with nu = d/dt ve. From a
        settling time "lqr" takes the error weight that makes it, without a rate weight.
    poles : sequence of complex, optional
        With "pole", instead of a settling time: two stable poles, real or conjugate, 1/s; or one
        such pair per output, shape (k, 2).
    error_weight : float or sequence of float, optional
        With "lqr", instead of a settling time: cost of errors over that of effort, above zero,
        1/s^4.
    rate_weight : float or sequence of float, optional
        With an error weight: cost of velocity errors over that of effort, not below zero, 1/s^2;
        default zero.
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
        If there is no such method.
    ShapeError
        If an argument does not fit the outputs.
    NonFiniteError
        If a number is NaN or infinite.
    OutputError
        If a number is out of its range, poles are unstable or no pair, or arguments contradict each
        other or the method.

    Examples
    --------
    >>> import concur as cc
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> gains = cc.design_gains([base, hand], settling_time=[3.0, 2.0])
    >>> gains.settling_time.round(6)
    array([3., 2.])
    >>> servo = cc.Servo(cc.reduce(cc.robots.rover_arm()), [base, hand], *gains)
    >>> cc.design_gains([hand], method="lqr", error_weight=16.0).natural_frequency
    array([2.])
    """
    checked = read_outputs(outputs)
    names = [output.name for output in checked]
    given = {
        "settling_time": settling_time, "damping_ratio": damping_ratio, "poles": poles,
        "error_weight": error_weight, "rate_weight": rate_weight,
    }  # fmt: skip
    if method not in METHODS:
        raise unknown_name("gains, `method`", "method", method, [*METHODS])
    main, with_it = METHODS[method]
    first = "settling_time" if settling_time is not None or given[main] is None else main
    if given[first] is None:
        raise OutputError(
            "gains",
            expected=f'`settling_time` or `{main}` with method="{method}"',
            came="neither",
            cure="Write for example settling_time=2.0, in s.",
        )
    for name, value in given.items():
        if value is not None and name not in (first, with_it[first]):
            raise OutputError(
                "gains" if name == main else f"gains, `{name}`",
                expected=f'no value together with `{first}` and method="{method}"',
                came=shown(value),
                cure="Leave it out.",
            )
    if first == "poles":
        pairs = _read_poles(poles, checked)
        channels = np.column_stack([pairs.prod(axis=1), -pairs.sum(axis=1)]).real
    elif first == "settling_time":
        times = read_each("gains, `settling_time`", settling_time, names)
        usual = 0.8 if method == "pole" else np.sqrt(0.5)
        damping_ratio = usual if damping_ratio is None else damping_ratio
        ratios = read_each("gains, `damping_ratio`", damping_ratio, names)
        frequencies = [time_to_settle(1.0, ratio) for ratio in ratios] / times
        channels = np.column_stack([frequencies**2, 2.0 * ratios * frequencies])
    else:
        # The Riccati equation of a double integrator has a closed form.
        stiffness = np.sqrt(read_each("gains, `error_weight`", error_weight, names))
        rate_weight = 0.0 if rate_weight is None else rate_weight
        rates = read_each("gains, `rate_weight`", rate_weight, names, zero=True)
        channels = np.column_stack([stiffness, np.sqrt(rates + 2.0 * stiffness)])
    return _gains(checked, method, channels, length)


def _gains(outputs: tuple[Output, ...], method: str, channels: np.ndarray, length: Any) -> Gains:
    """Gains of outputs from stiffness and damping of their channels, (k, 2)."""
    names = tuple(output.name for output in outputs)
    lengths = zip(outputs, read_each("gains, `length`", length, names), strict=True)
    metric = np.concatenate(
        [
            [each**2 if unit == "rad" else 1.0 for unit in output.coordinate_units]
            for output, each in lengths
        ]
    )
    sizes = [output.dim for output in outputs]
    gains = (*channels.T, np.ones(len(sizes)))
    stiffness, damping, inertia = (np.diag(metric * np.repeat(gain, sizes)) for gain in gains)
    pairs = np.array([_roots(np.sqrt(kp), kd / (2.0 * np.sqrt(kp))) for kp, kd in channels])
    for array in (stiffness, damping, inertia, pairs):
        array.setflags(write=False)
    return Gains(names, method, stiffness, damping, inertia, pairs)


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
        ends = 0.0, slow * (2.0 - np.log(band))
    else:
        # Overshoots come every half period and shrink: the last one above the band comes first,
        # after it the error falls through zero.
        half = np.pi / np.sqrt((1.0 - zeta) * (1.0 + zeta))
        last = np.ceil(-np.log(band) / (zeta * half)) - 1.0
        ends = last * half, (last + (np.pi - np.arccos(zeta)) / np.pi) * half
    return float(scipy.optimize.brentq(rest, *ends, xtol=1e-14)) / natural_frequency


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
        raise unequal(where, "pair of poles", [o.name for o in outputs], "output", numbers.shape)
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


def _pole_text(pair: np.ndarray) -> str:
    first, second = pair
    if first.imag == 0.0:
        return f"{first.real:.4g}, {second.real:.4g}"
    return f"{first.real:.4g} +- {abs(first.imag):.4g}j"
