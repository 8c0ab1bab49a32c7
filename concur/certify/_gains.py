"""Gains of the fastest certified rate within torque limits.

KP = kp I and KD = kd I on every block of metres or radians, so a channel is determined by its
frequency w, damping ratio zeta, and, in a pose, the ratio of angular to linear frequency. With time
in units of 1/w the error dynamics of a channel do not depend on w: the certified rate is w times a
factor that depends on (zeta, ratio), the angle, and the distance over the length. This rate per
frequency comes from linear theory, or for poses from the search for a Lyapunov function. Bisection
then gives the largest rate whose tube needs no more torque than the limits, with the least
frequency of every channel that reaches the rate. Only the best design is proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._certificate import Certificate
from concur.certify._certify import certify
from concur.certify._channels import Channel, split
from concur.certify._effort import Effort, Region
from concur.certify._recheck_conditions import texts
from concur.certify._region import region_level
from concur.certify._search import search
from concur.certify._status import ESTIMATE, Status
from concur.control import ErrorDynamics, Servo
from concur.errors import OutputError
from concur.outputs import Output
from concur.outputs.groups import Product
from concur.rounding import rounded_down

RATIOS = (0.95, 0.85, 0.75, 0.65)
"""Damping ratios tried. At 1 rates are a few percent higher, transient bounds a hundredfold."""

TURNS = (0.8, 1.0, 0.65, 1.25)
"""Ratios of angular to linear frequency tried for poses: slower rotation couples less."""

_KNOWN = 0.995
"""Fraction of the linearized rate proved for linear and isotropic rotational channels."""

_GAIN = 1.005
"""Factor by which another shape must be faster to be searched; tolerance of the bisection."""

_ROOM = 0.005
"""Reserve: fraction of the range from the torque at rest to the limits."""

_THOROUGH = (400, 40)
"""Random errors per configuration, and steps of each ascent, of the final test."""

_TRIALS = 50
"""Number of designs, each slower, that undergo the final test."""

_SLOWEST = 1e-4
"""Smallest rate that counts as a result, 1/s."""


@dataclass(frozen=True, eq=False)
class CertifiedGains:
    """Gains with a proved rate and sampled torques, made by `certified_gains`.

    Unpacks into the arguments of a servo: ``Servo(model, outputs, *gains)``.

    Parameters
    ----------
    outputs : tuple of str
        Names of the outputs.
    stiffness, damping, inertia : numpy.ndarray
        KP, KD and I on the outputs' algebra, shape (size, size). I is 1 on linear and length^2
        on angular coordinates, so that KP is in 1/s^2 and m^2/s^2, KD in 1/s and m^2/s.
    certificate : Certificate
        Proof of the rate; it uses no samples.
    channels : tuple of Channel
        Coupled outputs, with their gains.
    levels : tuple of float
        Bound of V_L in each channel, which defines the tube: V_L never grows.
    needed : numpy.ndarray
        Largest torque of each control input found over the tube and the configurations, shape
        (nu,), N and N m. Sampled, not proved.
    at_rest : numpy.ndarray
        Its part at zero error, shape (nu,), N and N m.
    limits : numpy.ndarray
        Lower and upper limits of the control inputs, shape (nu, 2), N and N m.
    controls, units : tuple of str
        Names and units of the control inputs.
    coordinates : tuple of tuple of str
        Output and unit (m or rad) of each coordinate.
    configurations, states : int
        Number of configurations, and of states evaluated in the final test.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> q = [0, 0, 0, 0, 0, -0.1, 1.0, -1.6]
    >>> gains = cc.certified_gains([hand], model, 20.0, q, distance=0.1, damping_ratio=0.8)
    >>> gains.controls
    ('left_wheel', 'right_wheel', 'turret', 'upper_arm', 'forearm')
    >>> bool((gains.needed <= 20.0).all())
    True
    """

    outputs: tuple[str, ...]
    stiffness: np.ndarray
    damping: np.ndarray
    inertia: np.ndarray
    certificate: Certificate
    channels: tuple[Channel, ...]
    levels: tuple[float, ...]
    needed: np.ndarray
    at_rest: np.ndarray
    limits: np.ndarray
    controls: tuple[str, ...]
    units: tuple[str, ...]
    coordinates: tuple[tuple[str, str], ...]
    configurations: int
    states: int

    @property
    def status(self) -> Status:
        """Status of the rate: PROVED."""
        return self.certificate.status

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions of the rate: those of its certificate, which is about the errors alone."""
        return self.certificate.conditions

    @property
    def rate(self) -> float:
        """Proved decay rate of the errors, 1/s."""
        return self.certificate.rate

    @property
    def natural_frequency(self) -> np.ndarray:
        """Natural frequency of each coordinate at small errors, shape (size,), rad/s."""
        return np.asarray(np.sqrt(np.diag(self.stiffness) / np.diag(self.inertia)))

    @property
    def damping_ratio(self) -> np.ndarray:
        """Damping ratio of each coordinate at small errors, shape (size,)."""
        rates = np.diag(self.damping) / np.diag(self.inertia)
        return np.asarray(rates / 2.0 / self.natural_frequency)

    def contains(self, x: ArrayLike, ve: ArrayLike) -> bool:
        """Whether a start is in the tube over which torques were sampled.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error, shape (size,).

        Returns
        -------
        bool
            Whether V_L is below its level in every channel, and the certificate covers the start.

        Raises
        ------
        ShapeError
            If an argument is not a vector of the outputs' dimension.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        if not self.certificate.contains(x, ve):
            return False
        pose, velocity = np.asarray(x, dtype=float), np.asarray(ve, dtype=float)
        for channel, level in zip(self.channels, self.levels, strict=True):
            own, speed = pose[channel.index], velocity[channel.index]
            twice = own @ channel.stiffness @ own + speed @ channel.inertia @ speed
            if not twice < 2.0 * level:
                return False
        return True

    def __iter__(self) -> Iterator[np.ndarray]:
        """Stiffness, damping and inertia, in the order of a servo's arguments."""
        return iter((self.stiffness, self.damping, self.inertia))

    def __str__(self) -> str:
        lines = [
            f"gains by certified rate: {rounded_down(self.rate, 4)} 1/s, {self.status.name}",
            f"  {'output':<20}  kp [1/s^2]  kd [1/s]  damping ratio",
        ]
        frequency, ratio = self.natural_frequency, self.damping_ratio
        for pair in dict.fromkeys(self.coordinates):
            k = self.coordinates.index(pair)
            name = f"{pair[0]}, {'position' if pair[1] == 'm' else 'rotation'}"
            gains = f"{frequency[k] ** 2:10.5g}  {2.0 * ratio[k] * frequency[k]:8.5g}"
            lines.append(f"  {name:<20}  {gains}  {ratio[k]:13.4g}")
        lines.append(
            f"  torques: the largest found in {self.states} states about {self.configurations} "
            f"configurations; {ESTIMATE}"
        )
        rows = zip(self.controls, self.units, self.needed, self.at_rest, self.limits, strict=True)
        for name, unit, need, still, (lower, upper) in rows:
            lines.append(
                f"  {name:<20}  {need:.4g} {unit}, {still:.4g} {unit} at zero error, "
                f"limits {lower:.4g} to {upper:.4g} {unit}"
            )
        return "\n".join([*lines, *(f"  {one}" for one in texts(self.conditions))])


@dataclass(frozen=True, eq=False)
class GainSpec:
    """Validated requirements of the gains.

    Parameters
    ----------
    servo : Servo
        A servo with the outputs, without torque limits; its gains do not matter.
    length : numpy.ndarray or None
        Length of each output, m; None to let poses reach angle and distance at once.
    angle, distance : float or None
        Largest errors covered, rad and m; None if the outputs have no error of the kind.
    limits : numpy.ndarray
        Limits of the control inputs, shape (nu, 2).
    configurations : numpy.ndarray
        Shape (k, nq).
    twist, acceleration : numpy.ndarray
        Reference at each configuration, shape (k, size).
    damping_ratio : numpy.ndarray or None
        Damping ratio of each output; None to search for one.
    """

    servo: Servo
    length: np.ndarray | None
    angle: float | None
    distance: float | None
    limits: np.ndarray
    configurations: np.ndarray
    twist: np.ndarray
    acceleration: np.ndarray
    damping_ratio: np.ndarray | None

    @property
    def outputs(self) -> Sequence[Output]:
        """The outputs, in the servo's order."""
        return self.servo.outputs

    @property
    def reach(self) -> float:
        """Angle for outputs of any kind; outputs without rotations ignore it."""
        return 1.0 if self.angle is None else self.angle


@dataclass(frozen=True, eq=False)
class _Shape:
    """Gains up to a time scale in each channel: positions have frequency one."""

    stiffness: np.ndarray
    damping: np.ndarray
    metric: np.ndarray
    channels: tuple[Channel, ...]


def fastest_gains(spec: GainSpec) -> CertifiedGains:
    """Find the gains of the fastest certified rate within torque limits, proved and tested."""
    limits = spec.limits
    effort = Effort(spec.servo, spec.configurations, spec.twist, spec.acceleration, limits)
    still = effort.at_rest()
    _check_rest(spec, still)
    # Keep a reserve between the torque at rest and the limits.
    rest = np.where(np.isfinite(limits), np.stack([still.min(1), still.max(1)], axis=1), 0.0)
    ends = (1.0 - _ROOM) * limits + _ROOM * rest
    designs = sorted(_designs(spec, effort, ends), key=lambda found: -found[0])
    for rate, shape, shares in designs:
        frequencies = np.array([rate / share for share in shares])
        found = _finished(spec, effort, shape, frequencies)
        if found is not None:
            return found
    raise OutputError(
        "gains, `torque_limits`",
        expected=f"limits that allow a proved rate above {_SLOWEST:g} 1/s",
        came=_shortage(spec, effort),
        cure="Raise the limits, or request a smaller `angle` or `distance`.",
    )


def _designs(
    spec: GainSpec, effort: Effort, limits: np.ndarray
) -> list[tuple[float, _Shape, list[float]]]:
    """Shapes to prove, with rates and rates per frequency; each faster than those before it."""
    found: list[tuple[float, _Shape, list[float]]] = []
    best = _SLOWEST
    for shape in _shapes(spec):
        # No proof exceeds the rate of linear theory: skip the search if that is too slow.
        hoped = [channel.true_rate * _KNOWN for channel in shape.channels]
        if not _fits(spec, effort, shape, hoped, best * _GAIN, limits):
            continue
        shares = [_share(spec, channel) for channel in shape.channels]
        if min(shares) <= 0.0 or not _fits(spec, effort, shape, shares, best * _GAIN, limits):
            continue
        best = _largest(spec, effort, shape, shares, best * _GAIN, limits)
        found.append((best, shape, shares))
    return found


def _shapes(spec: GainSpec) -> Iterator[_Shape]:
    sizes = [output.dim for output in spec.outputs]
    units = np.array([unit for output in spec.outputs for unit in output.coordinate_units])
    posed = np.repeat([output.group in ("SE3", "SE2") for output in spec.outputs], sizes)
    ratios: list[np.ndarray]
    if spec.damping_ratio is None:
        ratios = [np.full(len(units), ratio) for ratio in RATIOS]
    else:
        ratios = [np.repeat(spec.damping_ratio, sizes)]
    group = Product([output.lie for output in spec.outputs])
    # With a given length another ratio of frequencies would only shrink the tube.
    turns = TURNS if posed.any() and spec.length is None else (1.0,)
    for turn, ratio in product(turns, ratios):
        lengths = np.ones(len(units)) if spec.length is None else np.repeat(spec.length, sizes)
        if spec.length is None and spec.angle is not None and spec.distance is not None:
            # KP then weighs `distance` and `angle` the same: the tube reaches both.
            lengths[posed] = spec.distance / spec.angle / turn
        metric = np.where(units == "rad", lengths**2, 1.0)
        frequency = np.where(posed & (units == "rad"), turn, 1.0)
        stiffness = metric * frequency**2
        damping = metric * (2.0 * ratio * frequency)
        gains = [np.diag(gain) for gain in (stiffness, damping, metric)]
        channels = tuple(split(ErrorDynamics(group, *gains)))
        yield _Shape(stiffness, damping, metric, channels)


def _share(spec: GainSpec, channel: Channel) -> float:
    """Provable rate of a channel at frequency one; zero when none was found."""
    if channel.kind == "linear" or channel.scalar:
        return _KNOWN * channel.true_rate
    found = search(channel, spec.reach, spec.distance)
    return 0.0 if found is None else float(found.alpha)


def _region(spec: GainSpec, shape: _Shape, frequencies: np.ndarray) -> Region:
    """Tube of a shape with given frequencies of its channels."""
    each, level = np.zeros(len(shape.metric)), np.zeros(len(shape.metric))
    for channel, frequency in zip(shape.channels, frequencies, strict=True):
        each[channel.index] = frequency
        level[channel.index] = region_level(channel, spec.reach, spec.distance)
    return Region(
        stiffness=shape.stiffness / shape.metric * each**2,
        damping=shape.damping / shape.metric * each,
        metric=shape.metric,
        reach=np.sqrt(2.0 * level / shape.stiffness),
        speed=each * np.sqrt(2.0 * level / shape.metric),
        channels=tuple(channel.index for channel in shape.channels),
    )


def _fits(
    spec: GainSpec,
    effort: Effort,
    shape: _Shape,
    shares: Sequence[float],
    rate: float,
    limits: np.ndarray,
) -> bool:
    region = _region(spec, shape, rate / np.array(shares))
    return effort.extremes(region).within(limits)


def _largest(
    spec: GainSpec,
    effort: Effort,
    shape: _Shape,
    shares: Sequence[float],
    low: float,
    limits: np.ndarray,
) -> float:
    """Largest rate within the limits, by bisection from a feasible one."""
    high = 2.0 * low
    while _fits(spec, effort, shape, shares, high, limits):
        low, high = high, 2.0 * high
    while high > _GAIN * low:
        middle = float(np.sqrt(low * high))
        if _fits(spec, effort, shape, shares, middle, limits):
            low = middle
        else:
            high = middle
    return low


def _finished(
    spec: GainSpec, effort: Effort, shape: _Shape, frequencies: np.ndarray
) -> CertifiedGains | None:
    """Gains that passed the final test, with their proof, or None."""
    for _ in range(_TRIALS):
        region = _region(spec, shape, frequencies)
        extremes = effort.extremes(region, random=_THOROUGH[0], steps=_THOROUGH[1], seed=1)
        if extremes.within(spec.limits):
            break
        frequencies = 0.98 * frequencies
    else:
        return None
    group = Product([output.lie for output in spec.outputs])
    metric = shape.metric
    gains = [metric * region.stiffness, metric * region.damping, metric]
    matrices = [np.diag(gain) for gain in gains]
    for matrix in matrices:
        matrix.setflags(write=False)
    dynamics = ErrorDynamics(group, *matrices)
    certificate = certify(dynamics, spec.reach, spec.distance)
    if certificate.status is not Status.PROVED:
        return None
    channels = tuple(split(dynamics))
    model = spec.servo.model
    return CertifiedGains(
        outputs=tuple(output.name for output in spec.outputs),
        stiffness=matrices[0],
        damping=matrices[1],
        inertia=matrices[2],
        certificate=certificate,
        channels=channels,
        levels=tuple(region_level(c, spec.reach, spec.distance) for c in channels),
        needed=np.maximum(np.abs(extremes.lower), np.abs(extremes.upper)),
        at_rest=np.abs(effort.at_rest()).max(axis=1),
        limits=spec.limits,
        controls=model.control_names,
        units=model.control_units,
        coordinates=tuple(
            (output.name, unit) for output in spec.outputs for unit in output.coordinate_units
        ),
        configurations=effort.count,
        states=extremes.states,
    )


def _check_rest(spec: GainSpec, still: np.ndarray) -> None:
    """Reject limits that are too small for the robot at zero error."""
    names, units = spec.servo.model.control_names, spec.servo.model.control_units
    for name, unit, torques, (lower, upper) in zip(names, units, still, spec.limits, strict=True):
        strain = np.maximum(torques - upper, lower - torques)
        worst = int(strain.argmax())
        if not strain[worst] < 0.0:
            raise OutputError(
                f"gains, `torque_limits`, control `{name}`",
                expected=f"limits beyond {torques[worst]:.4g} {unit}, the torque at zero error at "
                f"configuration {worst} of `configurations`",
                came=f"{lower:.4g} to {upper:.4g} {unit}",
                cure="Raise the limit, or remove that configuration.",
            )


def _shortage(spec: GainSpec, effort: Effort) -> str:
    """Describe the control input with too little torque at a slow rate."""
    shape = next(_shapes(spec))
    slow = np.array([_SLOWEST / (_KNOWN * c.true_rate) for c in shape.channels])
    extremes = effort.extremes(_region(spec, shape, slow))
    strain = np.maximum(extremes.upper - spec.limits[:, 1], spec.limits[:, 0] - extremes.lower)
    k = int(strain.argmax())
    if not strain[k] > 0.0:
        return "sufficient limits, but no proof"
    most = max(abs(extremes.lower[k]), abs(extremes.upper[k]))
    model = spec.servo.model
    return (
        f"{spec.limits[k, 0]:.4g} to {spec.limits[k, 1]:.4g} {model.control_units[k]} for "
        f"`{model.control_names[k]}`, which needs {most:.4g} at configuration {extremes.where[k]}"
    )
