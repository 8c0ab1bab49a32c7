"""Gains of the fastest certified rate within torque limits.

KP = kp I and KD = kd I on every block of metres or radians, so that a channel is known by its
frequency w, damping ratio zeta, and the ratio of angular to linear frequency where both meet in a
pose. With time in units of 1/w the error dynamics of a channel do not depend on w: what is
certified is w times a share that belongs to (zeta, ratio), the angle and the distance over the
length. The shares come from linear theory, or for poses from the search for a quadratic form. For
given shares the largest rate whose tube needs no more torque than there is follows by bisection,
every channel having the frequency at which it just keeps that rate. Only the best is proved.
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
from concur.certify._region import region_level
from concur.certify._search import search
from concur.certify._status import ESTIMATE, Status
from concur.control import ErrorDynamics, Output, Servo
from concur.control.output_groups import Product
from concur.errors import OutputError

RATIOS = (0.95, 0.85, 0.75, 0.65)
"""Damping ratios tried. At one rates are a few percent higher, overshoots a hundredfold."""

TURNS = (0.8, 1.0, 0.65, 1.25)
"""Ratios of angular to linear frequency tried for poses: slower turning couples less."""

_KNOWN = 0.995
"""Share of the true rate that is proved of linear and isotropic rotational channels."""

_GAIN = 1.005
"""Factor by which another shape must be faster to be worth a search, and end of the bisection."""

_ROOM = 0.005
"""Part of the way from the torque at rest to the limits that is left free."""

_THOROUGH = (400, 40)
"""Random errors at each configuration, and steps of each climb, by which the result is tried."""

_TRIALS = 50
"""Slower and slower gains that are tried so."""

_SLOWEST = 1e-4
"""Rate below which there is none to speak of, 1/s."""


@dataclass(frozen=True, eq=False)
class CertifiedGains:
    """Gains whose rate is proved and whose torques were searched, made by `certified_gains`.

    Unpacks into the arguments of a servo: ``Servo(model, outputs, *gains)``.

    Parameters
    ----------
    outputs : tuple of str
        Names of the outputs.
    stiffness, damping, inertia : numpy.ndarray
        KP, KD and I on the outputs' algebra, shape (size, size). I is 1 on linear and length^2
        on angular coordinates, so that KP is in 1/s^2 and m^2/s^2, KD in 1/s and m^2/s.
    certificate : Certificate
        The proof of the rate; it rests on no sample.
    channels : tuple of Channel
        Outputs that influence one another, with their gains.
    levels : tuple of float
        Bound of V_L in each channel that makes the tube: V_L never grows.
    needed : numpy.ndarray
        Largest torque of each control found over the tube and the configurations, shape (nu,),
        N and N m. Sampled, not proved.
    at_rest : numpy.ndarray
        The part that is needed without error, shape (nu,), N and N m.
    limits : numpy.ndarray
        Lower and upper limits of the controls, shape (nu, 2), N and N m.
    controls, units : tuple of str
        Names and units of the controls.
    coordinates : tuple of tuple of str
        Output and unit (m or rad) of each coordinate.
    configurations, states : int
        Numbers of configurations, and of states looked at in the last trial.
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
    def rate(self) -> float:
        """Rate at which errors surely decay, 1/s."""
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
        """Whether a start is in the tube over which torques were searched.

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
            If an argument is no vector of the outputs' dimension.
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
        """Stiffness, damping and inertia, in the order in which a servo takes them."""
        return iter((self.stiffness, self.damping, self.inertia))

    def __str__(self) -> str:
        lines = [
            f"gains by certified rate: {self.rate:.4g} 1/s, {self.status.name}",
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
                f"  {name:<20}  {need:.4g} {unit}, {still:.4g} {unit} without error, "
                f"limits {lower:.4g} to {upper:.4g} {unit}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Wish:
    """What gains are wanted for, read and checked.

    Parameters
    ----------
    servo : Servo
        A servo with the outputs, without torque limits; its gains do not matter.
    length : numpy.ndarray or None
        Length of each output, m; None to let poses reach angle and distance at once.
    angle, distance : float or None
        Errors that must stay in reach, rad and m; None where there are none of the kind.
    limits : numpy.ndarray
        Limits of the controls, shape (nu, 2).
    configurations : numpy.ndarray
        Shape (k, nq).
    twist, acceleration : numpy.ndarray
        Demand at each configuration, shape (k, size).
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
        """Angle for outputs of any kind: those without rotations do not look at it."""
        return 1.0 if self.angle is None else self.angle


@dataclass(frozen=True, eq=False)
class _Shape:
    """Gains but for a time scale in each channel: at frequency one of positions."""

    stiffness: np.ndarray
    damping: np.ndarray
    metric: np.ndarray
    channels: tuple[Channel, ...]


def fastest_gains(wish: Wish) -> CertifiedGains:
    """Find the gains of the fastest certified rate within torque limits, proved and tried."""
    limits = wish.limits
    effort = Effort(wish.servo, wish.configurations, wish.twist, wish.acceleration, limits)
    still = effort.at_rest()
    _check_rest(wish, still)
    # Room is left on the way from where the controls are at rest to their limits.
    rest = np.where(np.isfinite(limits), np.stack([still.min(1), still.max(1)], axis=1), 0.0)
    ends = (1.0 - _ROOM) * limits + _ROOM * rest
    designs = sorted(_designs(wish, effort, ends), key=lambda found: -found[0])
    for rate, shape, shares in designs:
        frequencies = np.array([rate / share for share in shares])
        found = _finished(wish, effort, shape, frequencies)
        if found is not None:
            return found
    raise OutputError(
        "gains, `torque_limits`",
        expected=f"limits that allow a proved rate above {_SLOWEST:g} 1/s",
        came=_shortage(wish, effort),
        cure="Raise the limits, or ask for a smaller `angle` or `distance`.",
    )


def _designs(
    wish: Wish, effort: Effort, limits: np.ndarray
) -> list[tuple[float, _Shape, list[float]]]:
    """Shapes worth a proof, with their rates and shares; each faster than those before it."""
    found: list[tuple[float, _Shape, list[float]]] = []
    best = _SLOWEST
    for shape in _shapes(wish):
        # No form proves more than linear theory allows: without that there is no need to search.
        hoped = [channel.true_rate * _KNOWN for channel in shape.channels]
        if not _fits(wish, effort, shape, hoped, best * _GAIN, limits):
            continue
        shares = [_share(wish, channel) for channel in shape.channels]
        if min(shares) <= 0.0 or not _fits(wish, effort, shape, shares, best * _GAIN, limits):
            continue
        best = _largest(wish, effort, shape, shares, best * _GAIN, limits)
        found.append((best, shape, shares))
    return found


def _shapes(wish: Wish) -> Iterator[_Shape]:
    sizes = [output.dim for output in wish.outputs]
    units = np.array([unit for output in wish.outputs for unit in output.coordinate_units])
    posed = np.repeat([output.group in ("SE3", "SE2") for output in wish.outputs], sizes)
    ratios: list[np.ndarray]
    if wish.damping_ratio is None:
        ratios = [np.full(len(units), ratio) for ratio in RATIOS]
    else:
        ratios = [np.repeat(wish.damping_ratio, sizes)]
    group = Product([output.lie for output in wish.outputs])
    # With a length of the user's own another ratio of frequencies would only shrink the tube.
    turns = TURNS if posed.any() and wish.length is None else (1.0,)
    for turn, ratio in product(turns, ratios):
        lengths = np.ones(len(units)) if wish.length is None else np.repeat(wish.length, sizes)
        if wish.length is None and wish.angle is not None and wish.distance is not None:
            # KP then weighs `distance` and `angle` the same: the tube reaches both.
            lengths[posed] = wish.distance / wish.angle / turn
        metric = np.where(units == "rad", lengths**2, 1.0)
        frequency = np.where(posed & (units == "rad"), turn, 1.0)
        stiffness = metric * frequency**2
        damping = metric * (2.0 * ratio * frequency)
        gains = [np.diag(gain) for gain in (stiffness, damping, metric)]
        channels = tuple(split(ErrorDynamics(group, *gains)))
        yield _Shape(stiffness, damping, metric, channels)


def _share(wish: Wish, channel: Channel) -> float:
    """Rate of a channel that a proof will give, at frequency one; zero when none was found."""
    if channel.kind in ("linear", "SO3 isotropic"):
        return _KNOWN * channel.true_rate
    found = search(channel, wish.reach, wish.distance)
    return 0.0 if found is None else float(found.alpha)


def _region(wish: Wish, shape: _Shape, frequencies: np.ndarray) -> Region:
    """Tube of a shape whose channels run at given frequencies."""
    each, level = np.zeros(len(shape.metric)), np.zeros(len(shape.metric))
    for channel, frequency in zip(shape.channels, frequencies, strict=True):
        each[channel.index] = frequency
        level[channel.index] = region_level(channel, wish.reach, wish.distance)
    return Region(
        stiffness=shape.stiffness / shape.metric * each**2,
        damping=shape.damping / shape.metric * each,
        metric=shape.metric,
        reach=np.sqrt(2.0 * level / shape.stiffness),
        speed=each * np.sqrt(2.0 * level / shape.metric),
        channels=tuple(channel.index for channel in shape.channels),
    )


def _fits(
    wish: Wish,
    effort: Effort,
    shape: _Shape,
    shares: Sequence[float],
    rate: float,
    limits: np.ndarray,
) -> bool:
    region = _region(wish, shape, rate / np.array(shares))
    return effort.extremes(region).within(limits)


def _largest(
    wish: Wish,
    effort: Effort,
    shape: _Shape,
    shares: Sequence[float],
    low: float,
    limits: np.ndarray,
) -> float:
    """Largest rate that fits, by bisection from one that does."""
    high = 2.0 * low
    while _fits(wish, effort, shape, shares, high, limits):
        low, high = high, 2.0 * high
    while high > _GAIN * low:
        middle = float(np.sqrt(low * high))
        if _fits(wish, effort, shape, shares, middle, limits):
            low = middle
        else:
            high = middle
    return low


def _finished(
    wish: Wish, effort: Effort, shape: _Shape, frequencies: np.ndarray
) -> CertifiedGains | None:
    """Gains that stood the thorough trial, with their proof; None when there is none."""
    for _ in range(_TRIALS):
        region = _region(wish, shape, frequencies)
        extremes = effort.extremes(region, random=_THOROUGH[0], steps=_THOROUGH[1], seed=1)
        if extremes.within(wish.limits):
            break
        frequencies = 0.98 * frequencies
    else:
        return None
    group = Product([output.lie for output in wish.outputs])
    metric = shape.metric
    gains = [metric * region.stiffness, metric * region.damping, metric]
    matrices = [np.diag(gain) for gain in gains]
    for matrix in matrices:
        matrix.setflags(write=False)
    dynamics = ErrorDynamics(group, *matrices)
    certificate = certify(dynamics, wish.reach, wish.distance)
    if certificate.status is not Status.PROVED:
        return None
    channels = tuple(split(dynamics))
    model = wish.servo.model
    return CertifiedGains(
        outputs=tuple(output.name for output in wish.outputs),
        stiffness=matrices[0],
        damping=matrices[1],
        inertia=matrices[2],
        certificate=certificate,
        channels=channels,
        levels=tuple(region_level(c, wish.reach, wish.distance) for c in channels),
        needed=np.maximum(np.abs(extremes.lower), np.abs(extremes.upper)),
        at_rest=np.abs(effort.at_rest()).max(axis=1),
        limits=wish.limits,
        controls=model.control_names,
        units=model.control_units,
        coordinates=tuple(
            (output.name, unit) for output in wish.outputs for unit in output.coordinate_units
        ),
        configurations=effort.count,
        states=extremes.states,
    )


def _check_rest(wish: Wish, still: np.ndarray) -> None:
    """Refuse limits that do not even hold the robot without error."""
    names, units = wish.servo.model.control_names, wish.servo.model.control_units
    for name, unit, torques, (lower, upper) in zip(names, units, still, wish.limits, strict=True):
        strain = np.maximum(torques - upper, lower - torques)
        worst = int(strain.argmax())
        if not strain[worst] < 0.0:
            raise OutputError(
                f"gains, `torque_limits`, control `{name}`",
                expected=f"limits with room beyond {torques[worst]:.4g} {unit}, which it needs "
                f"without any error at configuration {worst} of `working_set`",
                came=f"{lower:.4g} to {upper:.4g} {unit}",
                cure="Raise the limit, or leave that configuration out of the working set.",
            )


def _shortage(wish: Wish, effort: Effort) -> str:
    """Which control is short of torque at a slow rate, in words."""
    shape = next(_shapes(wish))
    slow = np.array([_SLOWEST / (_KNOWN * c.true_rate) for c in shape.channels])
    extremes = effort.extremes(_region(wish, shape, slow))
    strain = np.maximum(extremes.upper - wish.limits[:, 1], wish.limits[:, 0] - extremes.lower)
    k = int(strain.argmax())
    if not strain[k] > 0.0:
        return "limits that do, but no proof"
    most = max(abs(extremes.lower[k]), abs(extremes.upper[k]))
    model = wish.servo.model
    return (
        f"{wish.limits[k, 0]:.4g} to {wish.limits[k, 1]:.4g} {model.control_units[k]} for "
        f"`{model.control_names[k]}`, which needs {most:.4g} at configuration {extremes.where[k]}"
    )
