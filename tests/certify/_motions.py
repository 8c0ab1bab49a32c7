"""Independent error maps and motions: closed forms in NumPy, vectorised over errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.integrate import solve_ivp

from concur.outputs.groups import (
    Angle,
    OutputGroup,
    PlanarPose,
    Pose,
    Product,
    Rotation,
    Vector,
)

_SERIES = 0.3
_TERMS = (1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000)


BY_NAME = {
    "R1": Vector("x"),
    "R2": Vector("xy"),
    "R3": Vector("xyz"),
    "SO2": Angle(),
    "SE2": PlanarPose(),
    "SO3": Rotation(),
    "SE3": Pose(),
}


def error_map(names: Sequence[str], x: np.ndarray) -> np.ndarray:
    """B of one error of a product of groups, by their names in certificates."""
    return error_maps([BY_NAME[name] for name in names], x[None])[0]


def factors_of(group: OutputGroup) -> list[OutputGroup]:
    return list(group.factors) if isinstance(group, Product) else [group]


def error_maps(factors: Sequence[OutputGroup], x: np.ndarray) -> np.ndarray:
    """B = ad_x / (exp(ad_x) - 1) at the rows of x, shape (k, n, n)."""
    size = x.shape[1]
    B = np.zeros((len(x), size, size))
    start = 0
    for factor in factors:
        own = slice(start, start + factor.dim)
        B[:, own, own] = _error_map(factor, x[:, own])
        start = own.stop
    return B


def brackets(factors: Sequence[OutputGroup], x: np.ndarray) -> np.ndarray:
    """Matrix of ad_x of one error, shape (n, n)."""
    ad = np.zeros((x.size, x.size))
    start = 0
    for factor in factors:
        own = slice(start, start + factor.dim)
        part = x[own]
        if isinstance(factor, Rotation):
            ad[own, own] = _skew(part)
        elif isinstance(factor, Pose):
            turn = _skew(part[3:])
            ad[own, own] = np.block([[turn, _skew(part[:3])], [np.zeros((3, 3)), turn]])
        elif isinstance(factor, PlanarPose):
            rx, ry, t = part
            ad[own, own] = [[0.0, -t, ry], [t, 0.0, -rx], [0.0, 0.0, 0.0]]
        start = own.stop
    return ad


def rates(dynamics, x: np.ndarray, ve: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rates of the errors in the rows of x and ve, each of shape (k, n)."""
    B = error_maps(factors_of(dynamics.group), x)
    push = np.einsum("kji,kj->ki", B, x @ dynamics.stiffness.T) - ve @ dynamics.damping.T
    return -np.einsum("kij,kj->ki", B, ve), np.linalg.solve(dynamics.inertia, push.T).T


def motions(dynamics, x: np.ndarray, ve: np.ndarray, times: np.ndarray) -> np.ndarray:
    """All motions from the rows of x and ve together, shape (times, k, 2 n)."""
    count, n = x.shape

    def slope(_: float, flat: np.ndarray) -> np.ndarray:
        z = flat.reshape(count, 2 * n)
        return np.hstack(rates(dynamics, z[:, :n], z[:, n:])).ravel()

    run = solve_ivp(
        slope,
        (times[0], times[-1]),
        np.hstack([x, ve]).ravel(),
        "DOP853",
        t_eval=times,
        rtol=1e-9,
        atol=1e-12,
    )
    assert run.success, run.message
    return run.y.T.reshape(len(times), count, 2 * n)


def _error_map(factor: OutputGroup, x: np.ndarray) -> np.ndarray:
    if isinstance(factor, (Vector, Angle)):
        return np.broadcast_to(np.eye(factor.dim), (len(x), factor.dim, factor.dim))
    if isinstance(factor, PlanarPose):
        rx, ry, t = x.T
        h, _ = _coefficients(t * t)
        B = np.zeros((len(x), 3, 3))
        B[:, 0, 0] = B[:, 1, 1] = 1.0 - h * t * t
        B[:, 0, 1], B[:, 1, 0] = t / 2, -t / 2
        B[:, 0, 2], B[:, 1, 2] = -ry / 2 + h * t * rx, rx / 2 + h * t * ry
        B[:, 2, 2] = 1.0
        return B
    phi = x[:, -3:]
    h, slope = (c[:, None, None] for c in _coefficients(np.einsum("ki,ki->k", phi, phi)))
    turn = _skews(phi)
    rotation = np.eye(3) - turn / 2 + h * (turn @ turn)
    if isinstance(factor, Rotation):
        return rotation
    assert isinstance(factor, Pose)
    rho = x[:, :3]
    move = _skews(rho)
    along = np.einsum("ki,ki->k", phi, rho)[:, None, None]
    mixed = -move / 2 + h * (turn @ move + move @ turn) + 2 * slope * along * (turn @ turn)
    return np.block([[rotation, mixed], [np.zeros_like(rotation), rotation]])


def _coefficients(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """h = (1 - (t/2) cot(t/2)) / t^2 and its derivative by u = t^2."""
    near = u < _SERIES**2
    t = np.sqrt(np.where(near, 1.0, u))
    half = t / 2
    cot = half / np.tan(half)
    far = (1.0 - cot) / t**2
    # d(t/2 cot(t/2))/du = (cot(t/2) - (t/2) / sin(t/2)^2) / (4 t).
    bend = (1.0 / np.tan(half) - half / np.sin(half) ** 2) / (4.0 * t)
    far_slope = -(bend + far) / t**2
    series = np.polynomial.Polynomial(_TERMS)
    return np.where(near, series(u), far), np.where(near, series.deriv()(u), far_slope)


def _skews(v: np.ndarray) -> np.ndarray:
    result = np.zeros((len(v), 3, 3))
    result[:, 0, 1], result[:, 0, 2], result[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return result - result.transpose(0, 2, 1)


def _skew(v: np.ndarray) -> np.ndarray:
    return _skews(v[None])[0]
