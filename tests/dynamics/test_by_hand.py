"""Robots small enough for a formula on paper."""

from __future__ import annotations

import numpy as np
import pytest

from concur.robot import Body, Inertia, Mechanism, Pose, joints

FLOOR = Body("floor", joints.Fixed())
G = 9.81


def test_pendulum() -> None:
    # One freedom in all, which leaves empty parts for the fixed base.
    mass, length, moment = 2.0, 0.5, 0.1
    rod = Inertia(mass, com=(0, 0, -length), moments=(moment, moment, 0.01))
    robot = Mechanism(
        "pendulum",
        [FLOOR, Body("rod", joints.Revolute((0, 1, 0)), "floor", inertia=rod)],
        gravity=(0, 0, -G),
    )
    q, v = 0.3, 1.7
    about = moment + mass * length**2
    approx = pytest.approx
    assert robot.mass_matrix([q]) == approx(np.array([[about]]), abs=1e-14)
    assert robot.bias([q], [v]) == approx(np.array([mass * G * length * np.sin(q)]), abs=1e-13)
    assert robot.coriolis([q], [v]) == approx(np.zeros((1, 1)), abs=1e-14)
    assert robot.kinetic_energy([q], [v]) == approx(about * v**2 / 2, abs=1e-14)
    assert robot.potential_energy([q]) == approx(-mass * G * length * np.cos(q), abs=1e-13)
    # About +y by q the rod's end is at -length (sin q, 0, cos q).
    linear = -mass * length * v * np.array([np.cos(q), 0, -np.sin(q)])
    momentum = np.array([*linear, 0, about * v, 0])
    assert robot.momentum([q], [v]) == approx(momentum, abs=1e-13)
    assert robot.twist([q], [v], "rod") == approx(np.array([0, 0, 0, 0, v, 0]), abs=1e-15)
    assert robot.velocity_product([q], [v], "rod") == approx(np.zeros(6), abs=1e-15)
    assert robot.inverse_dynamics([q], [v], [2.0]) == approx(
        np.array([2.0 * about + mass * G * length * np.sin(q)]), abs=1e-13
    )


def test_two_links_in_the_plane() -> None:
    # The textbook arm: point masses at the ends of two links.
    m1, m2, l1, l2 = 1.5, 0.7, 0.6, 0.4
    z = joints.Revolute((0, 0, 1))
    robot = Mechanism(
        "two links",
        [
            FLOOR,
            Body("upper", z, "floor", inertia=Inertia(m1, (l1, 0, 0))),
            Body("fore", z, "upper", Pose((l1, 0, 0)), Inertia(m2, (l2, 0, 0))),
        ],
        gravity=(0, -G, 0),
    )
    q, v = np.array([0.4, -1.1]), np.array([0.9, -2.3])
    cos, sin = np.cos(q[1]), np.sin(q[1])
    coupling = m2 * l1 * l2 * cos
    last = m2 * l2**2
    mass = [
        [m1 * l1**2 + m2 * l1**2 + last + 2 * coupling, last + coupling],
        [last + coupling, last],
    ]
    np.testing.assert_allclose(robot.mass_matrix(q), mass, rtol=0, atol=1e-14)
    h = m2 * l1 * l2 * sin
    outer = m2 * G * l2 * np.cos(q[0] + q[1])
    bias = [
        -h * (2 * v[0] * v[1] + v[1] ** 2) + (m1 + m2) * G * l1 * np.cos(q[0]) + outer,
        h * v[0] ** 2 + outer,
    ]
    np.testing.assert_allclose(robot.bias(q, v), bias, rtol=0, atol=1e-13)


def test_free_body_obeys_eulers_equations() -> None:
    moments = np.array([1.0, 2.0, 2.5])
    body = Body("brick", joints.Free(), inertia=Inertia(3.0, moments=moments))
    robot = Mechanism("brick", [body])
    v, w = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.7])
    expected = np.concatenate([3.0 * np.cross(w, v), np.cross(w, moments * w)])
    bias = robot.bias(robot.neutral(), np.concatenate([v, w]))
    np.testing.assert_allclose(bias, expected, rtol=0, atol=1e-14)


def test_coordinates_that_are_all_fixed() -> None:
    robot = Mechanism("floor", [FLOOR])
    assert (robot.nq, robot.nv) == (0, 0)
    assert robot.mass_matrix([]).shape == (0, 0)
    np.testing.assert_array_equal(robot.pose([], "floor"), np.eye(4))
