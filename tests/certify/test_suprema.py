"""Bounds of Theorem 5.4.2 against B written down a second time, sampled over the region."""

import flint
import numpy as np
import pytest

from concur.certify._region import region_radius
from concur.certify._suprema import suprema
from concur.outputs.groups import Angle, Product, Rotation, Vector
from tests.certify._thesis_cases import (
    ball,
    channel,
    error_maps,
    positive,
    quadratic,
    rotation,
)

STEP = 1e-5


def norms(outputs, x, maps=error_maps):
    """|N|, its smallest singular value, |sym T| and |N D| at errors (k, n); T by differences."""
    B = maps(x)
    root = np.linalg.cholesky(outputs.stiffness).T
    scale = np.linalg.inv(np.linalg.cholesky(outputs.inertia))
    N = root @ B @ scale.T
    size = x.shape[1]
    T = np.empty_like(B)
    for j in range(size):
        moved = B[:, :, j] * STEP
        slope = (maps(x + moved) - maps(x - moved)) / (2 * STEP)
        T[:, :, j] = np.einsum("ki,kim->km", x @ outputs.stiffness, slope)
    T = scale @ (T + T.transpose(0, 2, 1)) @ scale.T / 2
    values = np.linalg.svd(N, compute_uv=False)
    turning = np.abs(np.linalg.eigvalsh(T)).max(axis=1)
    drag = scale @ outputs.damping @ scale.T
    return values[:, 0], values[:, -1], turning, np.linalg.norm(N @ drag, 2, axis=(1, 2))


def sampled(outputs, radius, count, seed=0, maps=error_maps):
    """Estimates of the bounds from random points: none may exceed the true ones."""
    x = ball(np.random.default_rng(seed), outputs.stiffness, radius, count, edge=0.7)
    most, least, turning, drag = norms(outputs, x, maps)
    length = np.sqrt(quadratic(outputs.stiffness, x))
    W5 = (turning / length)[length > 0.1 * radius].max() * radius
    return most.max(), least.min() ** 2, W5, drag.max()


@pytest.mark.parametrize("name", ["A", "B", "C"])
@pytest.mark.parametrize("degrees", [1e-3, 30, 90, 170, 180])
def test_closed_forms_bound_the_true_values_of_so3(name, degrees):
    """Thesis: (5.4.40)-(5.4.43)."""
    outputs = rotation(name)
    angle = float(np.radians(degrees))
    found = suprema(outputs, angle)
    assert found.exact
    kp, kd = outputs.stiffness[0, 0], outputs.damping[0, 0]
    with flint.ctx.workprec(200):
        u = flint.arb(angle) / 2
        stretch = u / u.sin()
        W12 = flint.arb(kp).sqrt() * stretch
        for bound, true in (
            (found.W12, W12),
            (found.W5, flint.arb(kp) * (stretch**2 - u * u.cot())),
            (found.W6, kd * W12),
        ):
            assert flint.arb(bound) > true
            assert float(bound) == pytest.approx(float(true.mid()), rel=1e-10, abs=1e-10)
        assert flint.arb(found.W3) <= kp
        assert flint.arb(found.W7) <= kd
    assert pytest.approx(kp, rel=1e-12) == found.W3
    assert pytest.approx(kd, rel=1e-12) == found.W7


@pytest.mark.parametrize("name", ["A", "B", "C"])
@pytest.mark.parametrize("degrees", [40, 120])
def test_closed_forms_are_reached_but_not_exceeded_on_so3(name, degrees):
    outputs = rotation(name)
    radius = region_radius(outputs, np.radians(degrees))
    found = suprema(outputs, np.radians(degrees))
    W12, W3, W5, W6 = sampled(outputs, radius, 400)
    for bound, seen in ((found.W12, W12), (found.W5, W5), (found.W6, W6)):
        assert bound * (1 - 1e-6) < seen <= bound * (1 + 1e-8)
    assert found.W3 * (1 - 1e-9) <= W3 < found.W3 * (1 + 1e-9)


def test_closed_forms_with_an_inertia():
    inertia = 0.3
    gains = np.eye(3) * 5.0, np.eye(3) * 2.0, np.eye(3) * inertia
    outputs = channel(Rotation(), *gains)
    radius = region_radius(outputs, 2.0)
    found = suprema(outputs, 2.0)
    assert found.exact
    np.testing.assert_allclose(
        (found.W12, found.W3, found.W5, found.W6), sampled(outputs, radius, 400), rtol=1e-6
    )
    assert pytest.approx(2.0 / inertia) == found.W7


@pytest.mark.parametrize("seed", range(4))
def test_abelian_outputs_with_any_gains(seed):
    rng = np.random.default_rng(seed)
    group = [Vector("xyz"), Angle(), Product([Vector("xy"), Angle()]), Vector("xz")][seed]
    gains = [positive(rng, group.dim) for _ in range(3)]
    outputs = channel(group, *gains)
    assert outputs.size == group.dim
    found = suprema(outputs, 1.0)
    assert found.exact
    assert found.W5 == 0.0
    x = np.zeros((1, group.dim))
    most, least, _, drag = norms(outputs, x, lambda x: np.eye(group.dim)[None])
    assert pytest.approx(most[0], rel=1e-9) == found.W12
    assert pytest.approx(least[0] ** 2, rel=1e-9) == found.W3
    assert pytest.approx(drag[0], rel=1e-9) == found.W6
    values = np.linalg.eigvals(np.linalg.solve(gains[2], gains[1])).real
    assert pytest.approx(values.min(), rel=1e-9) == found.W7
