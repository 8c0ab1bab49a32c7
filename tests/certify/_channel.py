"""Channels for tests of certificates, and the decay they really have."""

import numpy as np

from concur.certify._channels import split
from concur.control import ErrorDynamics


def channel(group, stiffness=4.0, damping=2.8, inertia=1.0):
    """The only channel of a group with gains given as numbers, diagonals or matrices."""
    matrices = []
    for gain in (stiffness, damping, inertia):
        gain = np.asarray(gain, dtype=float)
        matrices.append(gain if gain.ndim == 2 else gain * np.eye(group.dim))
    (only,) = split(ErrorDynamics(group, *matrices))
    return only


def slack(owner, P, alpha, x, ve):
    """-(Vdot + 2 alpha V) of V = z^T P z / 2, from the rates of the deployed error dynamics."""
    z = np.concatenate([x, ve])
    rate = np.concatenate(owner.dynamics.rate(x, ve))
    return -(z @ P @ rate) - alpha * (z @ P @ z)


def random_error(owner, rng, angle, distance):
    """A pose error of the domain, often on its boundary."""
    x = np.empty(owner.size)
    start = 0
    for factor in owner.factors:
        units = np.array(factor.error_units)
        for unit, radius in (("m", distance), ("rad", angle)):
            places = start + np.flatnonzero(units == unit)
            direction = rng.normal(size=places.size)
            length = np.linalg.norm(direction) if places.size else 1.0
            x[places] = direction / length * radius * rng.choice([1.0, rng.uniform()])
        start += factor.dim
    return x
