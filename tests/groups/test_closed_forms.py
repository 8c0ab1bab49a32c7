"""Closed forms of section 2.4 of the thesis, its two slips, and where exponentials stop.

The formulas here divide by the angle, as printed; the package uses others that do not.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from concur.groups import classify, se2, se3, so3

from .oracles import bracket, conjugation, cross_matrix, integral, near, twist_matrix

E = np.eye(6)
GENERAL = np.array([0.4, -0.3, 0.2, 0.5, -0.7, 0.9])


def with_pitch(pitch):
    """A twist whose axis passes beside the origin, with w . v = pitch |w|^2."""
    w = np.array([0.5, -0.7, 0.9])
    return np.concatenate([np.cross([0.3, 0.8, -0.2], w) + pitch * w, w])


TWISTS = {
    "general": GENERAL,
    "rotation": np.array([0.0, 0.0, 0.0, 0.4, -0.5, 0.6]),
    "pitch 0": with_pitch(0.0),
    "pitch 1": with_pitch(1.0),
    "pitch -1": with_pitch(-1.0),
    "pitch 3": with_pitch(3.0),
    "half turn": np.array([1.0, 2.0, 3.0, 0.6 * np.pi, 0.0, -0.8 * np.pi]),
    "turn": np.array([1.0, 2.0, 3.0, 0.0, 2 * np.pi, 0.0]),
    "two turns nearly": np.array([-1.0, 0.5, 0.2, 7.0, 7.0, 7.0]),
}
every_twist = pytest.mark.parametrize("xi", TWISTS.values(), ids=TWISTS.keys())
angles = pytest.mark.parametrize("theta", [1e-3, -0.4, 1.0, 3.0, -3.0])


def parts(xi):
    """Linear and angular part, the angular one's matrix, the angle and the pitch."""
    v, w = xi[:3], xi[3:]
    return v, w, cross_matrix(w), np.linalg.norm(w), w @ v / (w @ w)


def rotation(xi):
    """R of (2.4.15)."""
    _, _, turn, angle, _ = parts(xi)
    return np.eye(3) + turn / angle * np.sin(angle) + turn @ turn / angle**2 * (1 - np.cos(angle))


def mean_rotation(xi):
    """M1 of (2.4.23)."""
    _, _, turn, angle, _ = parts(xi)
    return (
        np.eye(3)
        + turn / angle**2 * (1 - np.cos(angle))
        + turn @ turn / angle**2 * (1 - np.sin(angle) / angle)
    )


def offset(xi, matrix):
    """First term of the upper right blocks: [[skew(w), skew(v)], matrix] / |w|^2."""
    v, _, turn, angle, _ = parts(xi)
    shift = cross_matrix(v)
    commutator = turn @ shift - shift @ turn
    return (commutator @ matrix - matrix @ commutator) / angle**2


def blocks(diagonal, upper):
    return np.block([[diagonal, upper], [np.zeros((3, 3)), diagonal]])


def exponential_of_ad(xi):
    """(2.4.22) put right: the last factor is exp(skew(w))."""
    _, _, turn, _, pitch = parts(xi)
    return blocks(rotation(xi), offset(xi, rotation(xi)) + pitch * turn @ rotation(xi))


def integral_of_ad(xi):
    """(2.4.23) put right."""
    pitch = parts(xi)[-1]
    mean = mean_rotation(xi)
    return blocks(mean, offset(xi, mean) + pitch * (rotation(xi) - mean))


def printed_exponential_of_ad(xi):
    """(2.4.22) as printed, with exp(skew(w) w.v / |w|^2)."""
    _, _, turn, _, pitch = parts(xi)
    return blocks(rotation(xi), offset(xi, rotation(xi)) + pitch * turn @ expm(pitch * turn))


def printed_integral_of_ad(xi):
    """(2.4.23) as printed."""
    v, w, turn, angle, _ = parts(xi)
    across, f = w @ v, w @ v / angle
    second = (
        -turn / across
        + (turn / across - turn @ turn / angle**2) * np.cos(f)
        + (turn / angle + turn @ turn / (angle * across)) * np.sin(f)
    )
    mean = mean_rotation(xi)
    return blocks(mean, offset(xi, mean) + second)


# --- exponentials -----------------------------------------------------------------------------


@every_twist
def test_exponentials_and_their_integrals(xi):
    """Thesis: (2.3.9), (2.4.14), (2.4.15), (2.4.22), (2.4.23); Proposition 2.4.1.

    Also Proposition 2.4.5, of the exponential of ad.
    """
    v, w, turn, angle, _ = parts(xi)
    pose = np.eye(4)
    pose[:3, :3] = rotation(xi)
    pose[:3, 3] = ((np.eye(3) - pose[:3, :3]) @ turn @ v + w * (w @ v)) / angle**2
    near(pose, expm(twist_matrix(xi)))
    near(se3.exp(xi), pose)
    near(so3.exp(w), pose[:3, :3])
    near(exponential_of_ad(xi), expm(bracket(xi)))
    near(se3.adjoint(se3.exp(xi)), exponential_of_ad(xi))
    near(integral_of_ad(xi), integral(bracket(xi)))
    near(se3.dexp_spatial(xi), integral_of_ad(xi))
    near(so3.dexp_spatial(w), mean_rotation(xi))


@angles
def test_logarithm_in_the_plane(theta):
    """Thesis: (2.4.18)-(2.4.20)."""
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0, 0, theta]).as_matrix()
    pose[:2, 3] = h14, h24 = 0.7, -1.3
    half, cotangent = theta / 2, 1 / np.tan(theta / 2)
    a, b = half * (h24 + h14 * cotangent), half * (h24 * cotangent - h14)  # (2.4.19)
    xi = np.array([a, b, 0, 0, 0, theta])
    near(expm(twist_matrix(xi)), pose)
    near(se3.log(pose), xi)
    near(se2.log([h14, h24, theta]), [a, b, theta])
    sine, versine = np.sin(theta), 1 - np.cos(theta)
    forward = np.array([[versine, sine], [-sine, versine]])
    near(forward @ [[0, -1 / theta], [1 / theta, 0]] @ [a, b], [h14, h24])  # (2.4.20)


@angles
@pytest.mark.parametrize("pitch", [0.3, -2.0])
def test_exponential_of_a_screw(theta, pitch):
    """Thesis: (2.4.16), (2.4.17)."""
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0, 0, theta]).as_matrix()
    pose[2, 3] = pitch * theta  # (2.4.16)
    near(se3.exp([0, 0, pitch * theta, 0, 0, theta]), pose, 1e-15)
    near(expm(twist_matrix(np.array([0, 0, pitch * theta, 0, 0, theta]))), pose)


# --- the printed (2.4.22) and (2.4.23) --------------------------------------------------------


def test_printed_formulas_are_wrong_by_this_much():
    """Misprints 001-5, 001-6."""
    first = printed_exponential_of_ad(GENERAL) - expm(bracket(GENERAL))
    second = printed_integral_of_ad(GENERAL) - integral(bracket(GENERAL))
    assert np.abs(first).max() == pytest.approx(0.2477, abs=5e-5)
    assert np.abs(second).max() == pytest.approx(0.0794, abs=5e-5)


# --- rank of the differential on each subgroup at a full turn ---------------------------------

PITCH = 0.3
SCREW = E[5] + PITCH * E[2]

RANKS = {
    "SO(2)": (E[:, [5]], [1.0], 1),
    "H_p": (SCREW[:, None], [1.0], 1),
    "SO(2)xR": (E[:, [2, 5]], [0.4, 1.0], 2),
    "SO(3)": (E[:, 3:], [2 / 7, -3 / 7, 6 / 7], 1),
    "SE(2)": (E[:, [0, 1, 5]], [0.6, -0.2, 1.0], 1),
    "H_p x| R^2": (np.column_stack([E[0], E[1], SCREW]), [0.6, -0.2, 1.0], 1),
    "SE(2)xR": (E[:, [0, 1, 2, 5]], [0.6, -0.2, 0.5, 1.0], 2),
    "SE(3), w.v = 0": (E, [0.6, -0.2, 0.0, 0.0, 0.0, 1.0], 2),
    "SE(3), w.v > 0": (E, [0.6, -0.2, 0.5, 0.0, 0.0, 1.0], 4),
}


@pytest.mark.parametrize("case", RANKS)
def test_rank_of_the_differential_at_full_turns(case):
    canonical, direction, rank = RANKS[case]
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix()
    pose[:3, 3] = 0.4, -1.1, 0.7
    basis = conjugation(pose) @ canonical
    assert classify(basis).name == case.split(",")[0]

    def restricted(turns):
        differential = se3.dexp_body(basis @ np.array(direction) * (2 * np.pi * turns))
        inside = np.linalg.pinv(basis) @ differential @ basis
        near(basis @ inside, differential @ basis, 1e-12)  # D keeps the algebra
        return inside

    for turns in (1, -1, 2):
        values = np.linalg.svd(restricted(turns), compute_uv=False)
        assert np.sum(values > 1e-10) == rank
        if rank == len(direction) and len(direction) < 3:
            near(restricted(turns), np.eye(rank))
    theta = 2 * np.pi * 0.7
    once = 2 * (1 - np.cos(theta)) / theta**2
    power = {1: 0, 2: 0, 3: 1, 4: 1, 6: 2}[len(direction)]
    assert np.linalg.det(restricted(0.7)) == pytest.approx(once**power, rel=1e-12)


# --- H_p x| R^2: onto by two joints, not by the exponential -----------------------------------


def screw_and_slide(x, y, theta):
    """(2.4.21)."""
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec([0, 0, theta]).as_matrix()
    pose[:3, 3] = x, y, PITCH * theta
    return pose


SLIDING_SCREW = np.column_stack([E[0], E[1], SCREW])


def test_exponential_of_the_sliding_screw():
    """Thesis: (2.4.21)."""
    for a, b, theta in ((0.6, -0.2, 1.1), (-1.0, 3.0, -2.5), (0.3, 0.4, 7.0)):
        sine, versine = np.sin(theta) / theta, (1 - np.cos(theta)) / theta
        x, y = np.array([[sine, -versine], [versine, sine]]) @ [a, b]
        near(se3.exp(SLIDING_SCREW @ [a, b, theta]), screw_and_slide(x, y, theta), 1e-14)


def test_sliding_screw_has_no_logarithm_beside_a_full_turn():
    assert not classify(SLIDING_SCREW).exponential
    target = screw_and_slide(0.5, -0.3, 2 * np.pi)
    # Its height gives the angle by which a twist of the algebra would have to turn ...
    theta = target[2, 3] / PITCH
    rng = np.random.default_rng(2)
    for a, b in rng.uniform(-100, 100, (50, 2)):
        reached = expm(twist_matrix(SLIDING_SCREW @ [a, b, theta]))
        # ... and every twist with that angle comes back to the axis.
        near(reached, screw_and_slide(0, 0, 2 * np.pi), 1e-10)
        assert np.abs(reached - target).max() > 0.49
    # The logarithms in SE(3), without and with turns about the translation, are not in it.
    shift = target[:3, 3]
    near(se3.log(target), [*shift, 0, 0, 0], 1e-13)
    for turns in (0, 1, -1, 2):
        logarithm = np.concatenate([shift, 2 * np.pi * turns * shift / np.linalg.norm(shift)])
        near(expm(twist_matrix(logarithm)), target)
        assert np.linalg.matrix_rank(np.column_stack([SLIDING_SCREW, logarithm])) == 4
