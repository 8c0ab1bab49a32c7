"""Certificates of laws with integral action: proofs, regions, motions, units and forged files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import concur as cc
from concur.certify import IntegralCertificate, Status, certify_integral, examine
from concur.certify._recheck_document import law_hash
from concur.checker import recheck
from concur.control import ErrorDynamics
from concur.documents import document_hash
from concur.errors import ConcurError, OutputError
from concur.outputs.groups import Angle, PlanarPose, Pose, Product, Rotation, Vector

KP, KD = 4.0, 3.0


def law(group: Any, ki: Any, kp: Any = KP, kd: Any = KD, inertia: float = 1.0) -> ErrorDynamics:
    one = np.eye(group.dim)
    return ErrorDynamics(group, kp * one, kd * one, inertia * one, ki * one)


def abscissa(kp: float, kd: float, ki: float) -> float:
    return float(-np.roots([1.0, kd, kp, ki]).real.max())


@pytest.fixture(scope="module")
def turned() -> IntegralCertificate:
    return certify_integral(law(Rotation(), 1.0), angle=2.0)


def rewritten(path: Path, found: IntegralCertificate, change: Callable[[dict], None]) -> Status:
    """Status of a file that was changed and given valid hashes again."""
    found.save(path)
    document = json.loads(path.read_text())
    change(document)
    gains = [document["law"][name] for name in ("stiffness", "damping", "inertia")]
    document["law"]["hash"] = law_hash(document["law"]["groups"], *gains)
    document["hash"] = document_hash(document)
    path.write_text(json.dumps(document))
    return recheck(path)


@pytest.mark.parametrize("group", [Vector("xyz"), Rotation()], ids=["R3", "SO3"])
def test_loops_at_and_beyond_routh_are_refuted(group: Any) -> None:
    for ki in (KP * KD, KP * KD + 1e-12, 2 * KP * KD):
        found = certify_integral(law(group, ki), angle=1.0)
        assert found.status is Status.REFUTED
        assert "s^" in found.reason
        assert not found.contains(*np.zeros((3, 3)))
        assert math.isnan(found.norm(*np.zeros((3, 3))))
    assert certify_integral(law(group, 11.9), angle=1.0).status is Status.PROVED


def test_linear_rate_is_nearly_the_true_one_and_not_above(tmp_path: Path) -> None:
    for kp, kd, ki in ((4, 3, 1), (4, 3, 11.9), (1, 3, 1), (3, 3, 1), (4, 4, 1e-4), (900, 60, 50)):
        found = certify_integral(law(Vector("xyz"), ki, kp, kd))
        true = abscissa(kp, kd, ki)
        assert found.status is Status.PROVED, (kp, kd, ki)
        assert len(found.parts) == 3
        assert 0.96 * true < found.rate < true
        path = tmp_path / "proof.json"
        assert rewritten(path, found, lambda document: None) is Status.PROVED

        def faster(document: dict, true: float = true) -> None:
            document["rate"] = 1.0001 * true
            for channel in document["channels"]:
                channel["rate"] = 1.0001 * true

        assert rewritten(path, found, faster) is Status.REFUTED


def test_coupled_gains_decay_as_proved() -> None:
    rng = np.random.default_rng(4)
    for _ in range(5):
        a, b, c = (m @ m.T + np.eye(3) for m in 0.5 * rng.normal(size=(3, 3, 3)))
        dynamics = ErrorDynamics(Vector("xyz"), 9.0 * a, 6.0 * b, c, 1.5 * np.eye(3))
        found = certify_integral(dynamics)
        assert found.status is Status.PROVED
        assert found.rate <= -np.linalg.eigvals(dynamics.matrix).real.max()
        for x, ve, z in rng.normal(size=(5, 3, 3)):
            assert found.contains(x, ve, z)
            for t in (0.1, 1.0, 5.0):
                end = expm(dynamics.matrix * t) @ np.concatenate([x, ve, z])
                now = found.norm(end[:3], end[3:6], end[6:])
                assert now <= found.norm(x, ve, z) * math.exp(-found.rate * t) * (1 + 1e-9)


def flow(_: float, state: np.ndarray) -> np.ndarray:
    """Rates of many (z, x, ve) on SO(3), each of three components, with unit inertia, KI = 1."""
    z, x, v = state.reshape(3, -1, 3)
    angle = np.linalg.norm(x, axis=1)[:, None] + 1e-9
    factor = (1 - angle / 2 / np.tan(angle / 2)) / angle**2
    turn = np.cross(x, v)
    xdot = -(v - turn / 2 + factor * np.cross(x, turn))
    return np.concatenate([x, xdot, KP * x - KD * v + z]).ravel()


def test_rotations_from_the_region_decay_as_proved(turned: IntegralCertificate) -> None:
    rng = np.random.default_rng(1)
    x, ve = rng.normal(size=(2, 3))
    z = np.array([0.2, 0.1, -0.3])
    rates = flow(0.0, np.array([z, x, ve]).ravel()).reshape(3, 3)
    xdot, vedot = turned.dynamics.rate(x, ve)
    assert_allclose(rates[1:], [xdot, vedot + z], atol=1e-8)

    (part,) = turned.parts
    assert turned.status is Status.PROVED
    assert repr(turned).startswith("<certificate with integral: PROVED, rate 0.")
    assert 0.4 * abscissa(KP, KD, 1.0) < turned.rate < abscissa(KP, KD, 1.0)
    starts = rng.normal(size=(50, 9))
    # The largest rotation errors of the region, and starts of large z and ve.
    starts[:10] = np.linalg.solve(part.P, np.eye(9)[:, 3:6] @ rng.normal(size=(3, 10))).T
    levels = np.einsum("ki,ij,kj->k", starts, part.P, starts)
    sizes = np.where(np.arange(50) < 30, 0.9999, rng.uniform(size=50)) * part.bound
    starts *= np.sqrt(sizes / levels)[:, None]
    for start, size in zip(starts, sizes, strict=True):
        z, x, ve = start.reshape(3, 3)
        assert turned.contains(x, ve, z)
        assert_allclose(turned.norm(x, ve, z) ** 2, size, rtol=1e-9)
        assert not turned.contains(*(1.0001 * math.sqrt(part.bound / size) * v for v in (x, ve, z)))
    assert np.linalg.norm(starts[:10, 3:6], axis=1).max() > 1.999
    times = np.linspace(0.0, 8.0, 41)
    packed = starts.reshape(50, 3, 3).transpose(1, 0, 2).ravel()
    run = solve_ivp(flow, (0.0, 8.0), packed, t_eval=times, rtol=1e-9, atol=1e-11)
    states = run.y.T.reshape(41, 3, 50, 3).transpose(0, 2, 1, 3).reshape(41, 50, 9)
    values = np.einsum("tki,ij,tkj->tk", states, part.P, states)
    allowed = sizes * np.exp(-2.0 * turned.rate * times)[:, None]
    assert (values <= allowed * (1 + 1e-6) + 1e-12).all()
    assert np.linalg.norm(states[:, :, 3:6], axis=2).max() < 2.0


def test_units_do_not_change_the_result(turned: IntegralCertificate) -> None:
    minute, millimetre = 60.0, 1e-6
    again = certify_integral(law(Rotation(), minute**3, KP * minute**2, KD * minute), angle=2.0)
    assert again.status is Status.PROVED
    assert_allclose(again.rate, minute * turned.rate, rtol=1e-3)
    plain = certify_integral(law(Vector("xyz"), 1.0))
    for unit, scale in ((minute, 1.0), (1.0, millimetre), (1 / minute, 1 / millimetre)):
        gains = (scale * unit**3, scale * KP * unit**2, scale * KD * unit, scale)
        again = certify_integral(law(Vector("xyz"), *gains))
        assert again.status is Status.PROVED
        assert_allclose(again.rate, unit * plain.rate, rtol=1e-9)


def test_groups_without_a_proof_are_undecided_with_the_reason(tmp_path: Path) -> None:
    straight = np.diag([1.0, 2.0, 3.0])
    singular = ErrorDynamics(Vector("xy"), *(np.eye(2) * [4, 3, 1][k] for k in range(3)),
                             np.ones((2, 2)))  # fmt: skip
    for dynamics, reason in (
        (law(Pose(), 1.0), "group"),
        (law(PlanarPose(), 1.0), "group"),
        (ErrorDynamics(Rotation(), 4 * straight, 3 * np.eye(3), np.eye(3), np.eye(3)), "multiples"),
        (singular, "singular"),
        (law(Rotation(), 11.99), "smaller angle"),
    ):
        found = certify_integral(dynamics, angle=math.pi)
        assert found.status is Status.UNDECIDED
        assert reason in found.reason
        assert reason in str(found)
        assert found.rate == 0.0
        assert not found.contains(*np.zeros((3, dynamics.size)))
        found.save(tmp_path / "proof.json")
        assert recheck(tmp_path / "proof.json") is Status.UNDECIDED


def test_products_angles_and_outputs_without_integral(tmp_path: Path) -> None:
    both = Product([Vector("xyz"), Rotation(), Angle()])
    for kinds in ([1, 0, 1], [0, 1, 0]):
        integral = np.diag(np.repeat(kinds, [3, 3, 1]) * 1.0)
        dynamics = ErrorDynamics(both, 4 * np.eye(7), 3 * np.eye(7), np.eye(7), integral)
        found = certify_integral(dynamics, angle=1.0)
        assert found.status is Status.PROVED
        assert [len(p.P) // len(p.places) for p in found.parts] == [
            2 + k for k in np.repeat(kinds, [3, 1, 1])
        ]
        path = tmp_path / "proof.json"
        found.save(path)
        assert examine(path).status is Status.PROVED, examine(path).reason
        still, far = np.zeros(7), np.zeros(7)
        far[:3] = 1e3
        assert found.contains(far, still, still)
        for place in (3, 6):
            for size, inside in ((1.01, False), (0.1, True)):
                off = np.zeros(7)
                off[place] = size
                assert found.contains(off, still, still) is inside


def test_forged_files_are_not_confirmed(turned: IntegralCertificate, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    assert rewritten(path, turned, lambda document: None) is Status.PROVED

    def channel(name: str, value: Any) -> Callable[[dict], None]:
        return lambda document: document["channels"][0].update({name: value})

    def larger_angle(document: dict) -> None:
        (own,) = document["channels"]
        own["angle"], own["bound"] = 3.0, own["bound"] * (3.0 / own["angle"]) ** 2 * (1 - 1e-9)

    def gains(name: str, factor: float) -> Callable[[dict], None]:
        return lambda d: d["law"].update({name: (factor * np.array(d["law"][name])).tolist()})

    def entry(i: int, j: int, add: float) -> Callable[[dict], None]:
        def change(document: dict) -> None:
            P = document["channels"][0]["P"]
            P[i][j] += add
            P[j][i] = P[i][j]

        return change

    bound, P = turned.parts[0].bound, turned.parts[0].P.tolist()
    for change in (
        larger_angle,
        channel("rate", 2.0),
        channel("rate", 0.0),
        channel("rate", 2.0**100),
        channel("bound", 1.001 * bound),
        channel("bound", -bound),
        channel("bound", None),
        channel("angle", None),
        channel("angle", 0.9),
        channel("angle", math.nextafter(math.pi, 4.0)),
        channel("P", (-np.array(P)).tolist()),
        channel("P", np.eye(9).tolist()),
        entry(4, 4, 1e3),
        channel("status", "UNDECIDED"),
        entry(0, 1, 1e-9),
        entry(3, 3, 1e-9),
        entry(0, 5, 1e-9),
        gains("integral", 20.0),
        gains("integral", -1.0),
        gains("damping", 0.1),
        gains("stiffness", 0.01),
        gains("inertia", -1.0),
        lambda document: document.update(rate=1.1 * turned.rate),
        lambda document: document.update(rate=None),
        lambda document: document.update(rate=-1.0),
        lambda document: document.update(status="UNDECIDED"),
        lambda document: document.update(channels=[]),
        lambda document: document.update(channels=2 * document["channels"]),
        lambda document: document["law"]["integral"][0].__setitem__(1, 0.1),
    ):
        assert rewritten(path, turned, change) is not Status.PROVED
    assert "not confirmed near" in _reason(path, turned, larger_angle)
    for change in (
        channel("rate", True),
        channel("rate", 10**50),
        channel("rate", 10**400),
        channel("bound", 1e300),
        channel("components", [0, 1]),
        channel("components", [0, 2, 1]),
        channel("P", P[:6]),
        lambda document: document["law"].update(groups=["SE3"]),
        lambda document: document["law"].pop("integral"),
        lambda document: document.update(format="concur certificates"),
    ):
        with pytest.raises(ConcurError):
            assert rewritten(path, turned, change) is Status.PROVED
    turned.save(path)
    path.write_text(path.read_text().replace('"rate": ', '"rate": NaN, "old": ', 1))
    with pytest.raises(ConcurError, match="NaN"):
        recheck(path)
    # A proof on R3 does not hold on SO3.
    flat = certify_integral(law(Vector("xyz"), 1.0))
    for group in ("SO3", "SE2"):

        def renamed(document: dict, group: str = group) -> None:
            document["law"]["groups"] = [group]

        with pytest.raises(ConcurError, match="components"):
            rewritten(path, flat, renamed)


def _reason(path: Path, found: IntegralCertificate, change: Callable[[dict], None]) -> str:
    rewritten(path, found, change)
    return examine(path).reason


def test_servos_are_compared_with_the_file(tmp_path: Path) -> None:
    model = cc.reduce(cc.robots.rover_arm())
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    servo = cc.Servo(model, [base], stiffness=4, damping=4, integral=1)
    path = tmp_path / "proof.json"
    certify_integral(servo).save(path)
    found = recheck(path, servo)
    assert (found.status, found.law, found.kind) == (Status.PROVED, True, "integral action")
    assert found.claims
    assert len(found.region) == 2
    for other in (replace(servo, integral=1.5), replace(servo, integral=None)):
        found = recheck(path, other)
        assert (found.status, found.law) == (Status.UNDECIDED, False)
    with pytest.raises(OutputError, match="a law with integral action"):
        certify_integral(replace(servo, integral=None))
    with pytest.raises(OutputError, match="angle"):
        certify_integral(law(Rotation(), 1.0))
