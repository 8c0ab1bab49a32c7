"""Isotropy groups of momenta: Table 3.1, against matrix exponentials and brackets of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm, null_space
from scipy.spatial.transform import Rotation

from concur.errors import DescriptionError
from concur.groups import classify, isotropy

from . import oracles
from .oracles import bracket, conjugation, twist_matrix
from .test_classify import projector, random_change, random_pose

E = np.eye(6)
PITCH = 0.3

BASES = {
    "R": E[:, [2]],
    "SO(2)": E[:, [5]],
    "H_p": E[:, [5]] + PITCH * E[:, [2]],
    "R^2": E[:, [0, 1]],
    "SO(2)xR": E[:, [2, 5]],
    "R^3": E[:, [0, 1, 2]],
    "SO(3)": E[:, [3, 4, 5]],
    "SE(2)": E[:, [0, 1, 5]],
    "H_p x| R^2": np.column_stack([E[0], E[1], E[5] + PITCH * E[2]]),
    "SE(2)xR": E[:, [0, 1, 2, 5]],
    "SE(3)": E,
}
"""Canonical bases; their normal or axis is z."""

BOTH, ANGULAR, LINEAR, NONE, ALONG, ALONG_ONLY = (
    "mu_v, mu_w",
    "mu_w",
    "mu_v",
    "zero",
    "mu_v || n, mu_w",
    "mu_v || n",
)

# Table 3.1; a case that cannot occur has no entry.
TABLE = {
    "R": {LINEAR: "R", NONE: "R"},
    "SO(2)": {ANGULAR: "SO(2)", NONE: "SO(2)"},
    "H_p": {BOTH: "H_p", NONE: "H_p"},
    "R^2": {LINEAR: "R^2", NONE: "R^2"},
    "SO(2)xR": {BOTH: "SO(2)xR", ANGULAR: "SO(2)xR", LINEAR: "SO(2)xR", NONE: "SO(2)xR"},
    "R^3": {LINEAR: "R^3", NONE: "R^3"},
    "SO(3)": {ANGULAR: "SO(2)", NONE: "SO(3)"},
    "SE(2)": {BOTH: "R", ANGULAR: "SE(2)", LINEAR: "R", NONE: "SE(2)"},
    "H_p x| R^2": {BOTH: "R", ANGULAR: "H_p x| R^2", LINEAR: "R", NONE: "H_p x| R^2"},
    "SE(2)xR": {
        BOTH: "R^2",
        ANGULAR: "SE(2)xR",
        LINEAR: "R^2",
        NONE: "SE(2)xR",
        ALONG: "SE(2)xR",
        ALONG_ONLY: "SE(2)xR",
    },
    "SE(3)": {BOTH: "SO(2)xR", ANGULAR: "SE(2)xR", LINEAR: "SO(2)xR", NONE: "SE(3)"},
}

DIMENSIONS = {
    "R": 1,
    "SO(2)": 1,
    "H_p": 1,
    "R^2": 2,
    "SO(2)xR": 2,
    "R^3": 3,
    "SO(3)": 3,
    "SE(2)": 3,
    "H_p x| R^2": 3,
    "SE(2)xR": 4,
    "SE(3)": 6,
}

CELLS = [(name, case) for name, row in TABLE.items() for case in row]
every_cell = pytest.mark.parametrize(("name", "case"), CELLS)


def random_momentum(rng, name, case):
    """Spatial momentum of a cell in the canonical frame, and its part that the group sees."""
    basis = BASES[name]
    turning = basis[3:].any(axis=0)
    linear, angular = rng.normal(size=(2, 3))
    if case in {ANGULAR, NONE}:
        linear[:] = 0.0
    if case in {LINEAR, NONE}:
        angular[:] = 0.0
    if case in {ALONG, ALONG_ONLY}:
        linear[:2] = 0.0
    if case == ALONG_ONLY:
        angular[:] = 0.0
    # Components outside the group are arbitrary.
    if turning.all() and name != "H_p":
        linear = rng.normal(size=3)
    if not turning.any():
        angular = rng.normal(size=3)
    if name in {"SE(2)", "H_p x| R^2", "R^2"}:
        linear[2] = rng.normal()
        if case in {LINEAR, NONE} and name == "H_p x| R^2":
            angular[2] = -PITCH * linear[2]  # <mu, screw> = 0
        if case == NONE:
            linear[:2] = 0.0
    return np.concatenate([linear, angular])


def carried(pose, momentum):
    """Momentum in the frame that the pose leads from: Ad*_{pose^-1}."""
    return conjugation(np.linalg.inv(pose)).T @ momentum


def near(actual, expected, tolerance=1e-12):
    """`oracles.near`, for arrays without entries too."""
    assert np.shape(actual) == np.shape(expected)
    if np.size(expected):
        oracles.near(actual, expected, tolerance)


def unit_columns(columns):
    return columns / np.linalg.norm(columns, axis=0)


def form_of(basis, momentum):
    """<mu, [S_i, S_j]> from commutators of 4x4 matrices."""
    rows = [momentum @ bracket(twist) @ basis for twist in basis.T]
    return np.array(rows).reshape((basis.shape[1],) * 2)


def check(found, basis, momentum, tolerance=1e-11):
    """All that holds for each answer, by means that the package does not have."""
    d, size = basis.shape[1], np.linalg.norm(momentum)
    assert found.dim + found.orbit_dimension == d
    assert found.orbit_dimension % 2 == 0
    assert found.algebra.shape == (d, found.dim)
    assert found.complement.shape == (d, found.orbit_dimension)
    near(found.twists, basis @ found.algebra)
    near(found.complement_twists, basis @ found.complement)
    near(found.momentum, basis.T @ momentum)

    # Kernel of the coadjoint form, and a form that is regular on the complement.
    near(found.form, form_of(basis, momentum), tolerance)
    np.testing.assert_array_equal(found.form, -found.form.T)
    moved = form_of(np.column_stack([found.twists, basis]), momentum)[: found.dim, found.dim :]
    assert np.abs(moved).max(initial=0.0) <= tolerance * size * max(
        1.0, np.abs(basis).max() * np.abs(found.twists).max(initial=0.0)
    )
    orbit = found.complement.T @ found.form @ found.complement
    assert np.linalg.matrix_rank(orbit) == found.orbit_dimension
    together = np.column_stack([found.algebra, found.complement])
    assert np.linalg.matrix_rank(unit_columns(together)) == d

    # The group: Ad*_{exp eta} mu = mu on the algebra, and it is what it is called.
    rng = np.random.default_rng(1)
    for _ in range(3):
        eta = found.twists @ rng.normal(size=found.dim)
        moved = conjugation(expm(twist_matrix(eta))).T @ momentum
        near(basis.T @ moved, basis.T @ momentum, tolerance * (1 + size))
    assert found.subgroup.closed
    assert found.subgroup.dim == found.dim
    assert classify(found.twists).name == found.subgroup.name
    near(projector(found.subgroup.basis), projector(found.twists), tolerance)


# --- Table 3.1 --------------------------------------------------------------------------------


@every_cell
def test_cell_for_random_momenta_frames_and_bases(name, case):
    """Thesis: Table 3.1."""
    rng = np.random.default_rng(2)
    expected = TABLE[name][case]
    for _ in range(8):
        pose = random_pose(rng)
        basis = conjugation(pose) @ BASES[name] @ random_change(rng, BASES[name].shape[1])
        momentum = carried(pose, random_momentum(rng, name, case))
        found = isotropy(basis, momentum)
        assert found.group.name == name
        assert found.subgroup.name == expected
        assert found.dim == DIMENSIONS[expected]
        assert found.doubt == ""
        assert found.gap > 1e9
        check(found, basis, momentum)


@pytest.mark.parametrize("unit", [1e-3, 1e6])
@every_cell
def test_unit_of_length_does_not_matter_when_it_is_said(name, case, unit):
    rng = np.random.default_rng(6)
    pose = random_pose(rng)
    basis = conjugation(pose) @ BASES[name]
    momentum = carried(pose, random_momentum(rng, name, case))
    scale = np.repeat([unit, 1.0], 3)
    found = isotropy(basis, momentum)
    scaled = isotropy(scale[:, None] * basis, momentum / scale, length=unit)
    assert scaled.subgroup.name == found.subgroup.name == TABLE[name][case]
    near(projector(scaled.twists / scale[:, None]), projector(found.twists), 1e-9)
    near(projector(scaled.complement), projector(found.complement), 1e-9)


@every_cell
def test_conjugate_momentum_has_the_conjugate_group(name, case):
    rng = np.random.default_rng(8)
    for _ in range(5):
        momentum = random_momentum(rng, name, case)
        here = isotropy(BASES[name], momentum)
        # By a motion of the group itself: same algebra, another momentum on its orbit.
        inner = expm(twist_matrix(BASES[name] @ rng.normal(size=BASES[name].shape[1])))
        moved = isotropy(BASES[name], carried(inner, momentum))
        assert moved.subgroup.name == here.subgroup.name
        near(projector(moved.twists), projector(conjugation(inner) @ here.twists), 1e-9)
        # By any motion: the group is carried along.
        pose = random_pose(rng)
        there = isotropy(conjugation(pose) @ BASES[name], carried(pose, momentum))
        assert there.subgroup.name == here.subgroup.name
        near(projector(there.twists), projector(conjugation(pose) @ here.twists), 1e-9)
        near(there.form, here.form, 1e-11)


# --- SE(3) ------------------------------------------------------------------------------------


def test_case_study_of_the_thesis():
    found = isotropy(E, [0, 20, 0, 5, 0, 0])
    assert found.subgroup.name == "SO(2)xR"
    near(projector(found.twists), projector(np.column_stack([E[1], 0.25 * E[0] + E[4]])), 1e-14)
    near(found.subgroup.frame[:3, 3], [0, 0, -0.25], 1e-14)
    near(found.complement[[2, 3, 5]].max(axis=1), np.ones(3), 1e-14)  # E3, E4, E6 stand alone
    near(found.complement.T @ found.complement, np.eye(4), 1e-14)
    near(found.complement.T @ found.algebra, np.zeros((4, 2)), 1e-14)


# --- momenta near those with a larger group ---------------------------------------------------

AXES = {
    "across": ((1, 0, 0), (0, 0, 1)),
    "along": ((0, 0, 1), (0, 0, 1)),
    "oblique": ((0.6, 0, 0.8), (0.48, 0.64, 0.6)),
}
near_degenerate = pytest.mark.parametrize("axes", AXES)


@near_degenerate
@pytest.mark.parametrize("small", 3 * 10.0 ** np.arange(-10, 0))
def test_small_linear_momentum_that_is_told_apart(axes, small):
    # By the singular values of the form alone, "along" would be lost from 1e-5 on.
    linear, angular = np.array(AXES[axes], dtype=float)
    rng = np.random.default_rng(11)
    for _ in range(10):
        turn = Rotation.random(random_state=rng).as_matrix()
        v, w = small * turn @ linear, turn @ angular
        found = isotropy(E, [*v, *w])
        assert found.subgroup.name == "SO(2)xR"
        assert found.orbit_dimension == 4
        assert found.gap == pytest.approx(small / 3.55e-15, rel=0.1)
        assert bool(found.doubt) == (small < 1e-5)
        # A motion that keeps the momentum, part by part, and not just the larger part.
        for twist in found.twists.T:
            near(np.cross(v, twist[3:]) / small, np.zeros(3), 1e-12)
            moved = np.cross(twist[:3], v) + np.cross(twist[3:], w)
            near(moved, np.zeros(3), 1e-12)
        point = found.subgroup.frame[:3, 3]
        near(small * point, small * np.cross(v, w) / (v @ v), 1e-9)
        together = unit_columns(np.column_stack([found.algebra, found.complement]))
        assert np.linalg.cond(together) < 10


@near_degenerate
@pytest.mark.parametrize("small", [1e-11, 1e-13, 1e-15, 1e-30])
def test_linear_momentum_below_the_tolerance_is_taken_for_zero(axes, small):
    linear, angular = np.array(AXES[axes], dtype=float)
    found = isotropy(E, [*small * linear, *angular])
    assert found.subgroup.name == "SE(2)xR"
    assert found.orbit_dimension == 2
    near(projector(found.twists), projector(np.column_stack([E[:, :3], [0, 0, 0, *angular]])))
    assert bool(found.doubt) == (small > 4e-15)
    assert found.gap == pytest.approx(min(1 / small, 1 / 3.55e-15), rel=0.1)


@near_degenerate
def test_axis_at_any_distance_is_found(axes):
    linear, angular = np.array(AXES[axes], dtype=float)
    found = isotropy(E, [*1e-12 * linear, *angular], tolerance=1e-13)
    assert found.subgroup.name == "SO(2)xR"
    near(found.subgroup.frame[:3, 2], linear)
    near(1e-12 * found.subgroup.frame[:3, 3], np.cross(linear, angular), 1e-9)


def test_length_decides_whether_a_pitch_is_one():
    basis = np.column_stack([E[0], E[1], E[5] + 1e-7 * E[2]])
    assert isotropy(basis, np.ones(6)).group.name == "H_p x| R^2"
    assert isotropy(basis, np.ones(6), length=1e6).group.name == "SE(2)"


def test_length_decides_how_small_a_linear_momentum_is():
    momentum = [1e-12, 0, 0, 0, 0, 1]
    assert isotropy(E, momentum).subgroup.name == "SE(2)xR"
    assert isotropy(E, momentum, length=1e3).subgroup.name == "SO(2)xR"
    assert isotropy(E, [1e-9, 0, 0, 0, 0, 1]).subgroup.name == "SO(2)xR"
    assert isotropy(E, [1e-9, 0, 0, 0, 0, 1], length=1e-3).subgroup.name == "SE(2)xR"


def test_tolerance_is_the_users():
    momentum = [1e-5, 0, 0, 0, 0, 1]
    assert isotropy(E, momentum).subgroup.name == "SO(2)xR"
    assert isotropy(E, momentum, tolerance=1e-4).subgroup.name == "SE(2)xR"
    assert isotropy(E, [1e-12, 0, 0, 0, 0, 1], tolerance=1e-13).subgroup.name == "SO(2)xR"


def test_rounding_of_a_part_that_the_group_does_not_see_is_no_momentum():
    rng = np.random.default_rng(13)
    for name in ("SO(3)", "SE(2)", "SE(2)xR", "H_p x| R^2"):
        basis = conjugation(random_pose(rng)) @ BASES[name] @ random_change(rng, len(BASES[name].T))
        unseen = null_space(basis.T) @ rng.normal(size=6 - basis.shape[1])
        found = isotropy(basis, unseen)
        assert np.linalg.norm(found.momentum) > 0
        assert found.subgroup.name == name


# --- H_p x| R^2 -------------------------------------------------------------------------------


def test_full_turns_of_the_screw_keep_every_momentum():
    """Misprint 001-15."""
    rng = np.random.default_rng(14)
    pose = random_pose(rng)
    basis = conjugation(pose) @ BASES["H_p x| R^2"]
    momentum = rng.normal(size=6)
    found = isotropy(basis, momentum)
    assert found.subgroup.name == "R"
    assert not found.connected
    assert "full turns of the screw" in str(found)
    turn = expm(2 * np.pi * twist_matrix(basis[:, 2]))
    near(basis.T @ conjugation(turn).T @ momentum, basis.T @ momentum, 1e-12)
    # ... but they are no motion of the identity component, whose travel lies in the plane.
    near(turn[:3, :3], np.eye(3), 1e-12)
    near(turn[:3, 3], 2 * np.pi * PITCH * pose[:3, 2], 1e-12)
    near(pose[:3, 2] @ found.twists[:3], [0.0], 1e-12)
    half = expm(np.pi * twist_matrix(basis[:, 2]))
    assert np.linalg.norm(basis.T @ (conjugation(half).T @ momentum - momentum)) > 0.1


# --- what is returned, and what is refused ----------------------------------------------------


def test_no_momentum_is_kept_by_all_motions():
    for basis in BASES.values():
        found = isotropy(basis, np.zeros(6))
        assert found.subgroup is found.group
        assert np.isinf(found.gap)
        np.testing.assert_array_equal(found.twists, basis)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (E[:, [0, 5]], r"columns 0 and 1.*smallest subgroup.*SE\(2\)"),
        (E[:, [3, 4]], r"SO\(3\)"),
        (E[:, [0, 1, 2, 3, 4]], r"SE\(3\)"),
        (np.column_stack([E[0], E[1], E[3] + 0.1 * E[0]]), r"SE\(2\)xR"),
    ],
)
def test_span_that_is_no_subgroup_is_refused(basis, message):
    with pytest.raises(DescriptionError, match=r"(?s)isotropy, `basis`: .*" + message):
        isotropy(basis, np.ones(6))


@pytest.mark.parametrize(
    "basis",
    [E[:, [0, 0]], np.zeros(6), np.column_stack([E[:, :2], E[0] + E[1]]), np.ones((6, 7))],
)
def test_dependent_twists_are_refused(basis):
    with pytest.raises(DescriptionError, match="independent of each other"):
        isotropy(basis, np.ones(6))


@pytest.mark.parametrize(
    ("name", "bad"),
    [(name, bad) for name in ("length", "tolerance") for bad in (0.0, -1.0, np.nan)]
    + [("tolerance", 0.1)],
)
def test_length_and_tolerance_have_a_range(name, bad):
    with pytest.raises(DescriptionError, match=f"isotropy, `{name}`"):
        isotropy(E, np.ones(6), **{name: bad})
