"""Frobenius' test of constraints: systems whose brackets are in textbooks."""

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.errors import ReductionError
from concur.formulations import Factor, integrability
from concur.groups import quaternion
from tests.formulations.textbook import chain, rolling_ball, rolling_disk, sleigh


def test_dimensions_of_brackets_are_those_of_textbooks():
    """Sleigh (2, 3); ball (3, 5) and disk (3, 4, 5) of 6, for heights are holonomic."""
    for system, growth, holonomic in (
        (sleigh(2.0, 0.3, 0.25), (2, 3), 0),
        (rolling_ball(1.5, 0.3, [0.04, 0.05, 0.06]), (3, 5), 1),
        (rolling_disk(1.2, 0.3, 0.054, 0.027), (3, 4, 5), 1),
        (rolling_disk(1.2, 0.3, 0.054, 0.027, point=True), (3, 4, 5), 0),
    ):
        found = integrability(system)
        assert (found.growth, found.holonomic) == (growth, holonomic), system.name
        assert not found.integrable
        assert f"{holonomic} of them holonomic" in str(found)


def test_holonomic_constraints_in_disguise_are_found():
    """Rates of a surface, times an integrating factor; a small bend breaks it."""
    x = Factor("x", "R3")
    surface = x.q[0] ** 2 + ca.sin(x.q[1]) * x.q[2]
    rate = ca.exp(x.q[2]) * ca.dot(ca.gradient(surface, x.q), x.v)
    for bend, integrable in ((0.0, True), (1e-3, False)):
        row = rate + bend * x.q[0] * x.v[1]
        system = cc.LagrangianSystem(ca.sumsqr(x.v), 0, [x], constraints={"surface": row})
        found = integrability(system)
        assert found.integrable == integrable
        assert found.holonomic == int(integrable)
        assert (np.abs(found.curvature).max() < 1e-10) == integrable
        assert ("holonomic: brackets" if integrable else "`surface` is broken most") in str(found)


def test_curvature_of_the_ball_is_that_of_its_hamel_coefficients():
    """(135): gamma^alpha_IJ = -eps_alpha k l rho_k eps_l I J, in the velocities of its frame."""
    radius = 0.3
    system = rolling_ball(1.5, radius, [0.04, 0.05, 0.06])
    q = np.concatenate([quaternion.exp([0.4, -0.2, 0.9]), [0.1, 0.2, radius]])
    found = integrability(system, q)
    rotation = np.asarray(quaternion.to_matrix(q[:4]))
    one, other = np.array([0.3, -0.5, 0.8]), np.array([-0.6, 0.2, 0.4])  # spatial velocities
    contact = radius * np.array([0.0, 0.0, 1.0])
    admissible = [np.concatenate([rotation.T @ w, np.cross(w, contact)]) for w in (one, other)]
    parts = [np.linalg.lstsq(found.motions, v, rcond=None)[0] for v in admissible]
    value = np.einsum("aij,i,j->a", found.curvature, *parts)
    assert value == pytest.approx(-np.cross(contact, np.cross(one, other)), abs=1e-12)


def test_rolling_robots_and_faults():
    rover = integrability(cc.robots.rover_arm())
    assert rover.growth[0] == 5
    assert rover.holonomic == 1  # the sum of both wheels' angles turns the chassis
    for system in (chain(1), cc.robots.free_flyer(), None):
        with pytest.raises(ReductionError, match="with constraints"):
            integrability(system)
