"""Soundness of PROVED: random laws against motions, and laws that must not pass.

The motions are those of `_motions`: closed forms of B in NumPy, checked here against matrix
exponentials, so that nothing of the certificates is taken on trust.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm

from concur.certify import Certificate, ChannelCertificate, Status, certify, prove
from concur.checker import recheck
from concur.control import ErrorDynamics
from concur.outputs.groups import (
    Angle,
    OutputGroup,
    PlanarPose,
    Pose,
    Product,
    Rotation,
    Vector,
)
from tests.certify._channel import channel
from tests.certify._motions import brackets, error_maps, factors_of, motions, rates
from tests.certify._thesis_cases import positive

# --- random laws -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """A law with its certified domain."""

    kind: str
    dynamics: ErrorDynamics
    angle: float
    distance: float | None = None
    budget: int = 20_000


def law(group: OutputGroup, stiffness, damping, inertia=1.0) -> ErrorDynamics:
    gains = [np.asarray(gain, dtype=float) for gain in (stiffness, damping, inertia)]
    return ErrorDynamics(group, *(g if g.ndim == 2 else g * np.eye(group.dim) for g in gains))


def blocks(rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    return np.repeat(rng.uniform(low, high, 2), 3)


def scaled(rng: np.random.Generator, group: OutputGroup) -> ErrorDynamics:
    """Multiples of one inertia as gains, from underdamped to overdamped."""
    inertia, kp = rng.uniform(0.2, 5.0), rng.uniform(0.5, 12.0)
    kd = rng.uniform(0.25, 1.6) * 2.0 * np.sqrt(kp)
    return law(group, inertia * kp, inertia * kd, inertia)


def full(rng: np.random.Generator, group: OutputGroup, spread: float = 3.0) -> ErrorDynamics:
    n = group.dim
    return law(
        group,
        positive(rng, n, 3.0, 3.0 * spread),
        positive(rng, n, 2.5, 2.5 + spread),
        positive(rng, n, 0.8, 0.8 + 0.4 * spread),
    )


def angle_of(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.radians(rng.uniform(low, high)))


def poses(rng: np.random.Generator) -> Law:
    inertia = blocks(rng, 0.3, 3.0)
    kp, kd = inertia * blocks(rng, 2.0, 9.0), inertia * blocks(rng, 2.5, 6.0)
    reach = rng.uniform(0.1, 1.5) if rng.uniform() < 0.5 else None
    return Law("SE3", law(Pose(), kp, kd, inertia), angle_of(rng, 10.0, 170.0), reach)


def mixed(rng: np.random.Generator) -> Law:
    group = Product([Vector("xy"), Rotation(), Angle()])
    gains = [np.repeat(rng.uniform(a, b, 3), [2, 3, 1]) for a, b in ((1, 9), (1, 6), (0.5, 2))]
    return Law("R2 x SO3 x SO2", law(group, *gains), angle_of(rng, 20.0, 179.0))


def joined(rng: np.random.Generator) -> Law:
    """Gains that couple a position and a heading, beside a rotation that they leave alone."""
    group = Product([Vector("x"), Angle(), Rotation()])
    gains = []
    for low, high in ((3.0, 8.0), (2.0, 6.0), (0.5, 2.0)):
        gain = rng.uniform(low, high) * np.eye(5)
        gain[:2, :2] = positive(rng, 2, low, high)
        gains.append(gain)
    return Law("R x SO2 joined, SO3", law(group, *gains), angle_of(rng, 20.0, 170.0))


def turning(rng: np.random.Generator) -> Law:
    """Rotations with gains that depend on the direction, more or less."""
    spread = rng.uniform(0.02, 0.3)
    kp, kd = rng.uniform(3.0, 8.0), rng.uniform(2.0, 5.0)
    gains = (kp * rng.uniform(1.0, 1.0 + spread, 3), kd * rng.uniform(1.0, 1.0 + spread, 3))
    return Law("SO3", law(Rotation(), *gains), angle_of(rng, 5.0, 40.0), budget=60)


def planar(rng: np.random.Generator) -> Law:
    dynamics = scaled(rng, PlanarPose()) if rng.uniform() < 0.4 else full(rng, PlanarPose(), 1.5)
    return Law("SE2", dynamics, angle_of(rng, 10.0, 100.0))


KINDS = {
    "Rn full": lambda rng: Law("R3", full(rng, Vector("xyz")), 1.0),
    "Rn scaled": lambda rng: Law("R2", scaled(rng, Vector("xy")), 1.0),
    "SO2": lambda rng: Law("SO2", scaled(rng, Angle()), angle_of(rng, 10.0, 180.0)),
    "SO3 isotropic": lambda rng: Law("SO3", scaled(rng, Rotation()), angle_of(rng, 10.0, 179.9)),
    "R3 x SO3": lambda rng: Law(
        "R3 x SO3", scaled(rng, Product([Vector("xyz"), Rotation()])), angle_of(rng, 10.0, 179.9)
    ),
    "SE3 isotropic": poses,
    "SE2": planar,
    "mixed": mixed,
    "joined": joined,
    "SE3 full": lambda rng: Law("SE3", full(rng, Pose()), angle_of(rng, 10.0, 60.0)),
    "SO3": turning,
}

MANY = {
    "Rn full": 20, "Rn scaled": 15, "SO2": 15, "SO3 isotropic": 35, "R3 x SO3": 25,
    "SE3 isotropic": 30, "SE2": 20, "mixed": 15, "joined": 15, "SE3 full": 5, "SO3": 5,
}  # fmt: skip
"""Laws of each kind in the long run: 200."""

PROVABLE = {"Rn full", "Rn scaled", "SO2", "SO3 isotropic", "R3 x SO3", "mixed", "joined"}
"""Kinds of which every law is proved; of isotropic poses and of SE(2) at least half are."""


def draw(kind: str, k: int) -> Law:
    return KINDS[kind](np.random.default_rng([k, *kind.encode()]))


# --- claims of a certificate -------------------------------------------------------------


def errors(law_: Law, part: ChannelCertificate, rng, count: int) -> np.ndarray:
    """Pose errors of a channel's domain, shape (count, n): half of them on its boundary."""
    x = np.zeros((count, part.channel.size))
    start = 0
    for factor in part.channel.factors:
        units = np.array(factor.error_units)
        for unit, radius in (("m", part.distance or 1.0), ("rad", part.angle)):
            places = start + np.flatnonzero(units == unit)
            if places.size:
                direction = rng.normal(size=(count, places.size))
                direction /= np.linalg.norm(direction, axis=1)[:, None]
                inside = np.where(rng.uniform(size=count) < 0.5, 1.0, rng.uniform(size=count))
                x[:, places] = radius * inside[:, None] * direction
        start += factor.dim
    return x


def worst_velocities(part: ChannelCertificate, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Velocities at which the form decays most slowly, and by how much faster than claimed.

    With x given, -(d/dt z P z) / 2 - rate z P z is quadratic in ve: its least value over all ve.
    """
    owner, n = part.channel, part.channel.size
    B = error_maps(owner.factors, x)
    pull = np.linalg.solve(owner.inertia, B.transpose(0, 2, 1) @ owner.stiffness)
    drag = np.linalg.solve(owner.inertia, owner.damping)
    F = np.zeros((len(x), 2 * n, 2 * n))
    F[:, :n, n:], F[:, n:, :n], F[:, n:, n:] = -B, pull, -drag
    A = -part.P @ F - part.rate * part.P
    A = (A + A.transpose(0, 2, 1)) / 2
    ve_ve = A[:, n:, n:]
    scale = np.sqrt(np.diag(part.P)[n:])
    bends = np.linalg.eigvalsh(ve_ve / np.outer(scale, scale))[:, 0] / part.rate
    across = np.einsum("kij,kj->ki", A[:, n:, :n], x)
    ve = -np.linalg.solve(ve_ve, across[:, :, None])[:, :, 0]
    least = np.einsum("ki,kij,kj->k", x, A[:, :n, :n], x) + np.einsum("ki,ki->k", across, ve)
    margin = least / (part.rate * np.einsum("ki,ij,kj->k", x, part.P[:n, :n], x))
    # Where the quadratic bends down there is no least value, and decay fails for some velocity.
    return ve, np.where(bends > 0.0, margin, -np.abs(bends))


def starts(law_: Law, certificate: Certificate, rng, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts in the region, most of them at its edge: at rest, moving, and where decay is slow."""
    n = certificate.dynamics.size
    x, ve = np.zeros((2, count, n))
    for part in certificate.parts:
        index, owner = part.channel.index, part.channel
        own = errors(law_, part, rng, count)
        slow, margin = worst_velocities(part, own)
        assert margin.min() > -1e-9, (law_.kind, part.channel.name, margin.min())
        moving = rng.normal(size=own.shape) * rng.uniform(0.0, 3.0, count)[:, None]
        velocity = np.where(rng.uniform(size=count)[:, None] < 0.5, slow, moving)
        velocity[: count // 8] = 0.0
        level = (
            np.einsum("ki,ij,kj->k", own, owner.stiffness, own)
            + np.einsum("ki,ij,kj->k", velocity, owner.inertia, velocity)
        ) / 2
        inside = np.where(rng.uniform(size=count) < 0.7, 1.0 - 1e-9, rng.uniform(size=count))
        scale = np.sqrt(min(part.level, 50.0) * inside / level)[:, None]
        x[:, index], ve[:, index] = scale * own, scale * velocity
    return x, ve


def forms(part: ChannelCertificate, z: np.ndarray) -> np.ndarray:
    """weight z P z of a channel for the states of motions, shape (times, k)."""
    n = z.shape[2] // 2
    own = np.concatenate([part.channel.index, n + part.channel.index])
    return part.weight * np.einsum("tki,ij,tkj->tk", z[:, :, own], part.P, z[:, :, own])


def check_promises(law_: Law, certificate: Certificate, rng, count: int) -> None:
    """Simulate motions from the region and check every claim along them."""
    dynamics = certificate.dynamics
    n = dynamics.size
    assert 0.0 < certificate.rate <= certificate.true_rate
    x, ve = starts(law_, certificate, rng, count)
    for k in range(0, count, max(count // 5, 1)):
        assert certificate.contains(x[k], ve[k])
    times = np.linspace(0.0, 4.0 / certificate.true_rate, 25)
    z = motions(dynamics, x, ve, times)

    squares = sum(forms(part, z) for part in certificate.parts)
    for k in range(0, count, max(count // 5, 1)):
        norm = certificate.norm(z[3, k, :n], z[3, k, n:])
        assert norm == pytest.approx(np.sqrt(squares[3, k]), rel=1e-10)
    # The claim holds from every state of a motion, so the scaled norm must never grow.
    for square, rate in [
        (squares, certificate.rate),
        *((forms(part, z), part.rate) for part in certificate.parts),
    ]:
        held = np.sqrt(square) * np.exp(rate * times)[:, None]
        growth = (held[1:] - held[:-1]) / held[:-1]
        assert growth.max() < 1e-6, (law_.kind, growth.max())
        assert (held <= held[0] * (1.0 + 1e-6)).all()

    lengths = np.ones(n)
    for part in certificate.parts:
        metres = np.array([unit == "m" for unit in part.channel.units])
        lengths[part.channel.index[metres]] = part.channel.length
        own = z[:, :, part.channel.index]
        start = 0
        for factor in part.channel.factors:
            units = np.array(factor.error_units)
            for unit, limit in (("rad", part.angle), ("m", part.distance)):
                places = start + np.flatnonzero(units == unit)
                if limit is not None and places.size:
                    assert np.linalg.norm(own[:, :, places], axis=2).max() <= limit * (1 + 1e-8)
            start += factor.dim
    sizes = np.linalg.norm(z / np.tile(lengths, 2), axis=2)
    assert (sizes <= np.sqrt(squares) * (1.0 + 1e-9)).all()
    bound = certificate.transient_bound * np.exp(-certificate.rate * times)[:, None] * sizes[0]
    assert (sizes <= bound * (1.0 + 1e-6)).all()


def certify_law(law_: Law, method="tight") -> Certificate:
    return certify(law_.dynamics, law_.angle, law_.distance, method, budget=law_.budget)


# --- the closed forms themselves -------------------------------------------------------------

GROUPS = [Vector("xyz"), Angle(), PlanarPose(), Rotation(), Pose()]
ALL = Product(GROUPS)


@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.29, 0.31, 1.0, 3.14])
def test_error_maps_are_those_of_matrix_exponentials(size):
    """B^-1 is the integral of exp(s ad_x) over s from 0 to 1."""
    rng = np.random.default_rng(1)
    for group in [*GROUPS, ALL]:
        factors = factors_of(group)
        for _ in range(5):
            x = rng.normal(size=group.dim)
            x *= size / np.linalg.norm(x)
            ad, one = brackets(factors, x), np.eye(group.dim)
            flow = expm(np.block([[ad, one], [0 * ad, 0 * ad]]))
            B = error_maps(factors, x[None])[0]
            np.testing.assert_allclose(B @ flow[: group.dim, group.dim :], one, atol=1e-11)


def test_rates_are_those_of_the_law_that_runs():
    rng = np.random.default_rng(2)
    dynamics = full(rng, ALL)
    x, ve = rng.normal(size=(2, 20, ALL.dim))
    ours = rates(dynamics, x, ve)
    for k in range(20):
        for own, deployed in zip(ours, dynamics.rate(x[k], ve[k]), strict=True):
            np.testing.assert_allclose(own[k], deployed, atol=1e-10)


@pytest.mark.extended
def test_a_faster_rate_is_seen_to_be_broken():
    """The check of the claims can fail: by the margin at the slowest velocities alone."""
    certificate = certify(law(Pose(), 4.0, 2.8), np.radians(90))
    (part,) = certificate.parts
    x = errors(Law("SE3", certificate.dynamics, np.pi / 2), part, np.random.default_rng(3), 2000)
    assert worst_velocities(part, x)[1].min() > 0.0
    faster = replace(part, rate=1.1 * part.rate)
    assert worst_velocities(faster, x)[1].min() < -1e-3


# --- (a) no unsound claim --------------------------------------------------------------------

FEW = {
    "Rn full": 2, "Rn scaled": 2, "SO2": 2, "SO3 isotropic": 4, "R3 x SO3": 2,
    "SE3 isotropic": 1, "mixed": 1, "joined": 1, "SE3 full": 1,
}  # fmt: skip


@pytest.mark.by_default(4)
@pytest.mark.parametrize("kind", FEW)
def test_no_motion_breaks_a_proof(kind):
    for k in range(FEW[kind]):
        drawn = draw(kind, k)
        certificate = certify_law(drawn)
        assert certificate.status is not Status.REFUTED
        if kind == "SE3 full":
            # No argument for these is known; none may be pretended.
            assert certificate.status is Status.UNDECIDED
            continue
        assert certificate.status is Status.PROVED, (kind, k, str(certificate))
        check_promises(drawn, certificate, np.random.default_rng(k), 60)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MANY)
def test_no_motion_of_many_breaks_a_proof(kind, tmp_path):
    """Five hundred motions and more for each of 200 laws: 1e5 and more, and their files."""
    assert sum(MANY.values()) == 200
    proved = 0
    for k in range(MANY[kind]):
        drawn = draw(kind, k)
        certificate = certify_law(drawn)
        assert certificate.status is not Status.REFUTED
        assert kind not in PROVABLE or certificate.status is Status.PROVED, (kind, k)
        if certificate.status is Status.PROVED:
            proved += 1
            check_promises(drawn, certificate, np.random.default_rng(k), 600)
            certificate.save(tmp_path / "proof.json")
            assert recheck(tmp_path / "proof.json") is Status.PROVED, (kind, k)
    if kind in ("SE3 isotropic", "SE2"):
        assert 2 * proved >= MANY[kind]
    print(f"{kind}: {proved} of {MANY[kind]} proved, {600 * proved} motions")


@pytest.mark.by_default(5)
@pytest.mark.parametrize("kind", ["Rn scaled", "SO2", "SO3 isotropic", "R3 x SO3", "mixed"])
@pytest.mark.parametrize("seed", range(3))
def test_no_motion_breaks_the_theorem(kind, seed):
    drawn = draw(kind, seed)
    certificate = certify_law(drawn, "thesis")
    assert certificate.status is Status.PROVED
    check_promises(drawn, certificate, np.random.default_rng(seed), 60)


# --- (b) laws that must not pass -------------------------------------------------------------

GAINS = {
    "R3": (Vector("xyz"), np.diag([4.0, 6.0, 9.0]), np.diag([4.0, 5.0, 6.6])),
    "SO3": (Rotation(), 4.0 * np.eye(3), 2.8 * np.eye(3)),
    "SE2": (PlanarPose(), np.diag([4.0, 4.0, 5.0]), 2.8 * np.eye(3)),
    "SE3": (Pose(), 4.0 * np.eye(6), 2.8 * np.eye(6)),
    "SO3 + SO2": (
        Product([Rotation(), Angle()]),
        np.diag([4.0, 4.0, 4.0, 1.0]),
        np.diag([2.8, 2.8, 2.8, 2.0]),
    ),
}


def negative(matrix: np.ndarray) -> np.ndarray:
    return -matrix


def indefinite(matrix: np.ndarray) -> np.ndarray:
    spoilt = matrix.copy()
    spoilt[-1, -1] *= -0.1
    return spoilt


def coupled_too_much(matrix: np.ndarray) -> np.ndarray:
    """Diagonal above zero, determinant below."""
    spoilt = matrix.copy()
    spoilt[0, 1] = spoilt[1, 0] = 1.05 * np.sqrt(matrix[0, 0] * matrix[1, 1])
    return spoilt


def swapped(matrix: np.ndarray) -> np.ndarray:
    return matrix[[1, 0, *range(2, len(matrix))]]


def barely_negative(matrix: np.ndarray) -> np.ndarray:
    spoilt = matrix.copy()
    spoilt[0, 0] = -np.nextafter(0.0, 1.0)
    return spoilt


def singular(matrix: np.ndarray) -> np.ndarray:
    spoilt = matrix.copy()
    spoilt[:2, :2] = 1.0
    return spoilt


def askew(matrix: np.ndarray) -> np.ndarray:
    """Asymmetric by one unit in the last place."""
    spoilt = matrix.copy()
    spoilt[0, 1] = 5e-324
    return spoilt


SPOILERS = [
    negative, indefinite, coupled_too_much, swapped, barely_negative, singular, askew,
]  # fmt: skip
POSES, SLOW = ("SE2", "SE3"), pytest.mark.slow
UNSTABLE = [negative, indefinite, coupled_too_much, swapped]


@cache
def form_of_a_stable_law(name: str) -> np.ndarray:
    group, stiffness, damping = GAINS[name]
    parts = certify(ErrorDynamics(group, stiffness, damping, np.eye(group.dim)), 0.5).parts
    P, n = np.zeros((2 * group.dim, 2 * group.dim)), group.dim
    for part in parts:
        own = np.concatenate([part.channel.index, n + part.channel.index])
        P[np.ix_(own, own)] = part.weight * part.P
    return P


def abscissa(dynamics: ErrorDynamics) -> float:
    n = dynamics.size
    pull = np.linalg.solve(dynamics.inertia, np.hstack([dynamics.stiffness, -dynamics.damping]))
    F = np.vstack([np.hstack([np.zeros((n, n)), -np.eye(n)]), pull])
    return float(np.linalg.eigvals(F).real.max())


@pytest.mark.parametrize("method", ["tight", "thesis"])
@pytest.mark.parametrize("spoil", SPOILERS)
@pytest.mark.parametrize("name", GAINS)
def test_spoilt_gains_are_refuted(name, spoil, method):
    group, stiffness, damping = GAINS[name]
    inertia = np.eye(group.dim)
    for place in range(3):
        gains = [stiffness, damping, inertia]
        gains[place] = spoil(gains[place])
        certificate = certify(ErrorDynamics(group, *gains), 1.0, method=method)
        assert certificate.status is Status.REFUTED, (place, str(certificate))
        assert certificate.rate == 0.0
        assert certificate.counterexample is not None
        assert not certificate.contains(np.zeros(group.dim), np.zeros(group.dim))


@pytest.mark.parametrize("spoil", UNSTABLE)
@pytest.mark.parametrize("name", ["R3", "SO3", *(pytest.param(n, marks=SLOW) for n in POSES)])
def test_no_form_proves_an_unstable_law(name, spoil):
    """Straight at the proof, without the check of the gains, with forms of stable laws."""
    group, stiffness, damping = GAINS[name]
    n = group.dim
    rng = np.random.default_rng(5)
    cross = -0.5 * np.eye(n)
    tried = [
        form_of_a_stable_law(name),
        np.block([[4.0 * np.eye(n), cross], [cross, np.eye(n)]]),
        positive(rng, 2 * n, 0.5, 2.0),
    ]
    for gains in [(spoil(stiffness), damping), (stiffness, spoil(damping))]:
        dynamics = ErrorDynamics(group, *gains, np.eye(n))
        if abscissa(dynamics) <= 0.0:
            # Exchanged rows of a damping matrix may leave a law stable.
            assert spoil is swapped
            continue
        owner = channel(group, *gains)
        for P in tried:
            assert prove(owner, P, 1e-9, 0.5, 0.5, budget=20).status is not Status.PROVED, P


# --- (c) claims on the edge ------------------------------------------------------------------


def name_of(group: OutputGroup) -> str:
    return f"{type(group).__name__}{group.dim}"


EDGES = {"underdamped": 2.8, "nearly critical": 4.0 - 1e-9, "critical": 4.0, "overdamped": 5.0}


@pytest.mark.by_default(6)
@pytest.mark.parametrize("damping", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize(
    "group",
    [Vector("x"), Vector("xyz"), Angle(), Rotation(), pytest.param(Pose(), marks=SLOW)],
    ids=name_of,
)
def test_the_true_rate_itself_is_not_proved(group, damping):
    """Strict decay at the abscissa is true of no form, though by rounding errors only."""
    one = np.eye(group.dim)
    (part,) = certify(law(group, 4.0, damping), np.radians(60), 0.2).parts
    owner, tried = part.channel, [part.P]
    # The form that decays exactly as fast as the linear law when it is underdamped.
    tried.append(np.block([[4.0 * one, -damping / 2 * one], [-damping / 2 * one, one]]))
    # At critical damping this is the limit that forms run to: x and ve in the slow direction.
    tried.append(np.block([[4.0 * one, -2.0 * one], [-2.0 * one, (1.0 + 1e-12) * one]]))
    for P in tried:
        for rate in (np.nextafter(owner.true_rate, np.inf), 1.0000001 * owner.true_rate):
            proof = prove(owner, P, float(rate), np.radians(60), 0.2, budget=200)
            assert proof.status is not Status.PROVED, (rate, proof.reason)


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    "group",
    [Vector("xyz"), Angle(), Rotation(), pytest.param(Pose(), marks=SLOW)],
    ids=name_of,
)
@pytest.mark.parametrize("method", ["tight", "thesis"])
def test_critical_damping_is_claimed_below_its_rate_only(group, method):
    neighbours = [] if isinstance(group, Pose) else [np.nextafter(4.0, k) for k in (0.0, 5.0)]
    for damping in (4.0, *neighbours):
        certificate = certify(law(group, 4.0, damping), np.radians(60), 0.2, method)
        # The abscissa of 4 + e is 2 - sqrt(2 e) and less: 4e-8 below 2 for the least e.
        assert certificate.rate < 2.0 - 1e-6
        if certificate.status is Status.PROVED:
            drawn = Law("critical", certificate.dynamics, np.radians(60), 0.2)
            check_promises(drawn, certificate, np.random.default_rng(6), 40)


def test_the_exact_form_of_an_underdamped_law_is_on_the_edge():
    """Equality, exactly, in floats: 4, 2.5 and their halves carry no rounding error."""
    owner = channel(Vector("x"), 4.0, 2.5)
    P = np.array([[4.0, -1.25], [-1.25, 1.0]])
    assert owner.true_rate == 1.25
    assert prove(owner, P, 1.25, 1.0).status is not Status.PROVED
    assert prove(owner, P, float(np.nextafter(1.25, 2.0)), 1.0).status is not Status.PROVED
    assert prove(owner, P, 1.25 * (1.0 - 1e-9), 1.0).status is Status.PROVED


# --- (d) the numbers of reference ------------------------------------------------------------


@pytest.mark.by_default(3)
@pytest.mark.parametrize("damping", [0.5, 2.8, 4.0, 5.0, 12.0])
@pytest.mark.parametrize("degrees", [179.9, 30.0, 60.0, 90.0, 120.0, 150.0, 170.0, 179.0])
def test_rotations_are_proved_at_the_true_rate(degrees, damping):
    for group in (Rotation(), Product([Vector("xyz"), Rotation()])):
        drawn = Law("rotation", law(group, 4.0, damping), np.radians(degrees))
        certificate = certify_law(drawn)
        assert certificate.status is Status.PROVED, str(certificate)
        assert certificate.rate >= 0.99 * certificate.true_rate
