"""Displacement subgroups recognised from twists, against brackets of 4x4 matrices."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from concur.errors import DescriptionError
from concur.groups import classify
from concur.robot import joints

from .oracles import bracket, conjugation, near, often

E = np.eye(6)
PITCH = 0.3

CLASSES = {
    "identity": E[:, :0],
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
"""Canonical bases of Table 2.1."""

HELICAL = {"H_p", "H_p x| R^2"}

ON_AN_AXIS = {"SO(2)", "H_p", "SO(2)xR"}

every_class = pytest.mark.parametrize("name", CLASSES)


def random_pose(rng, reach=2.0):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=rng).as_matrix()
    pose[:3, 3] = rng.uniform(-reach, reach, 3)
    return pose


def random_change(rng, size):
    """A change of basis, regular with a condition number up to 100."""
    left, _ = np.linalg.qr(rng.normal(size=(size, size)))
    right, _ = np.linalg.qr(rng.normal(size=(size, size)))
    return left @ np.diag(10.0 ** rng.uniform(-1, 1, size)) @ right


def projector(columns):
    directions, _ = np.linalg.qr(columns)
    return directions @ directions.T


def rank(columns):
    return int(np.linalg.matrix_rank(columns, tol=1e-7)) if columns.size else 0


def generated(columns):
    """Basis of the algebra that twists generate: brackets are added until none is new."""
    while True:
        pairs = combinations(range(columns.shape[1]), 2)
        brackets = [bracket(columns[:, a]) @ columns[:, b] for a, b in pairs]
        directions, values, _ = np.linalg.svd(np.column_stack([columns, *brackets]))
        larger = directions[:, : int(np.sum(values > 1e-7))]
        if larger.shape[1] == rank(columns):
            return larger
        columns = larger


def revolute(axis, point=(0.0, 0.0, 0.0), pitch=0.0):
    axis = np.array(axis, dtype=float) / np.linalg.norm(axis)
    return np.concatenate([np.cross(point, axis) + pitch * axis, axis])


def translation(direction):
    return np.array([*direction, 0.0, 0.0, 0.0], dtype=float)


def check(found, name, twists, pitch=None, tolerance=1e-11):
    """The class is right, and the frame carries its canonical basis onto the twists' span."""
    assert found.name == name
    assert found.closed
    assert found.closure is None
    assert found.reason == ""
    assert found.dim == CLASSES[name].shape[1]
    assert (found.pitch is None) == (name not in HELICAL)
    canonical = CLASSES[name].copy()
    if name in HELICAL:
        assert found.pitch == pytest.approx(pitch, abs=tolerance)
        canonical[2, -1] = found.pitch
    near(found.frame[:3, :3] @ found.frame[:3, :3].T, np.eye(3), 1e-14)
    assert np.linalg.det(found.frame[:3, :3]) > 0
    carried = conjugation(found.frame) @ canonical
    size = np.abs(carried).max(initial=0.0)
    np.testing.assert_allclose(found.basis, carried, rtol=0, atol=1e-14 * (1 + size))
    near(projector(found.basis), projector(twists), tolerance)


# --- the twelve classes -----------------------------------------------------------------------


@pytest.mark.extended
@every_class
def test_class_is_invariant_under_conjugation_and_change_of_basis(name):
    """Thesis: Table 2.1, Proposition 2.1.3."""
    rng = np.random.default_rng(3)
    dim = CLASSES[name].shape[1]
    for _ in range(200):
        pose = random_pose(rng)
        carried = conjugation(pose) @ CLASSES[name]
        found = classify(carried @ random_change(rng, dim))
        check(found, name, carried, PITCH)
        offset = found.frame[:3, 3] - pose[:3, 3]
        if name in ON_AN_AXIS:
            near(np.cross(pose[:3, 2], offset), np.zeros(3), 1e-11)
        elif name == "SO(3)":
            near(offset, np.zeros(3), 1e-11)
        else:
            near(found.frame[:3, 3], np.zeros(3), 0.0)


@pytest.mark.parametrize("axis", [(1, -1, 0), (-1, 1, 1), (-1, 0, 1), (2, -1, -2)])
def test_rounding_does_not_turn_the_frame(axis):
    expected = classify(revolute(axis)).frame
    near(expected[:3, 2], np.sign(axis[0]) * np.array(axis) / np.linalg.norm(axis))
    for change in 1e-13 * np.vstack([np.eye(3), -np.eye(3)]):
        near(classify(revolute(axis + change)).frame, expected)
        near(classify(-revolute(axis + change)).frame, expected)


@every_class
def test_unit_of_length_does_not_matter_when_it_is_said(name):
    original = conjugation(random_pose(np.random.default_rng(7))) @ CLASSES[name]
    for unit in (1e-12, 1e-3, 1e6):
        scale = np.array([unit, unit, unit, 1.0, 1.0, 1.0])[:, None]
        found = classify(scale * original, length=unit)
        assert found.name == name
        if name in HELICAL:
            assert found.pitch == pytest.approx(PITCH * unit, rel=1e-12)
        near(projector(found.basis / scale), projector(original))


# --- pitch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(HELICAL))
@pytest.mark.parametrize("pitch", [1e-6, -1e-6, 0.02, -0.02, 5.0, -5.0, 1e4])
def test_pitch_keeps_its_sign_and_its_mirror_image_turns_it(name, pitch):
    rng = np.random.default_rng(9)
    canonical = CLASSES[name].copy()
    canonical[2, -1] = pitch
    for _ in range(20):
        carried = conjugation(random_pose(rng)) @ canonical
        found = classify(carried)
        assert found.name == name
        assert found.pitch == pytest.approx(pitch, rel=1e-9, abs=1e-14)
        near(projector(found.basis), projector(carried), 1e-10)
        assert classify(-carried).pitch == pytest.approx(pitch, rel=1e-9, abs=1e-14)
        normal = rng.normal(size=3)
        mirror = np.eye(3) - 2 * np.outer(normal, normal) / (normal @ normal)
        image = np.vstack([mirror @ carried[:3], -mirror @ carried[3:]])
        assert classify(image).name == name
        assert classify(image).pitch == pytest.approx(-pitch, rel=1e-9, abs=1e-14)


# --- the edge of the tolerance ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("twists", "name"),
    [
        ([revolute((0, 0, 1), pitch=1e-12)], "SO(2)"),
        ([revolute((0, 0, 1), pitch=-1e-7)], "H_p"),
        ([revolute((0, 0, 1), pitch=1e12)], "R"),
        ([E[0], E[1], revolute((0, 0, 1), pitch=1e-12)], "SE(2)"),
        ([E[0], E[1], revolute((1e-12, 0, 1))], "SE(2)"),
        ([E[0], E[1], revolute((1e-12, 0, 1), pitch=0.1)], "H_p x| R^2"),
        ([E[5], translation((1e-12, 0, 1))], "SO(2)xR"),
        ([E[5], revolute((0, 0, 1), (1e-12, 0, 0))], "SO(2)"),
        ([E[5], revolute((1e-12, 0, 1))], "SO(2)"),
        ([E[3], E[4], revolute((0, 0, 1), (1e-12, 0, 0))], "SO(3)"),
        ([E[3], E[4], revolute((0, 0, 1), pitch=1e-12)], "SO(3)"),
        ([E[0], E[0] + 1e-12 * E[1]], "R"),
        ([E[0], E[0] + 1e-6 * E[1]], "R^2"),
    ],
)
def test_nearly_degenerate_twists(twists, name):
    found = classify(np.column_stack(twists))
    assert found.closed
    assert found.name == name


@pytest.mark.parametrize(
    ("twists", "closure"),
    [
        ([E[5], revolute((0, 0, 1), (1e-7, 0, 0))], "SE(2)"),
        ([E[5], revolute((1e-7, 0, 1))], "SO(3)"),
        ([E[5], revolute((1e-7, 0, 1), (0, 0, 5))], "SO(3)"),
        ([E[5], revolute((1e-12, 0, 1), (1e-2, 0, 0))], "SE(2)"),
        ([E[5], revolute((1, 0, 0), (0, 1e-12, 0))], "SO(3)"),
        ([E[5], revolute((1, 0, 0), (0, 1e-7, 0))], "SE(3)"),
        ([E[3], E[4], revolute((0, 0, 1), (1e-7, 0, 0))], "SE(3)"),
        ([E[0], E[1], revolute((1e-7, 0, 1))], "SE(2)xR"),
        ([E[5], translation((1e-7, 0, 1))], "SE(2)xR"),
        ([E[5], translation((1, 0, 1e-7))], "SE(2)xR"),
        ([E[5], translation((1, 0, 1e-12))], "SE(2)"),
    ],
)
def test_small_offsets_beyond_the_tolerance_open_the_span(twists, closure):
    found = classify(np.column_stack(twists))
    assert not found.closed
    assert found.closure.name == closure


@pytest.mark.parametrize("tolerance", [1e-12, 1e-9, 1e-3])
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("pitch", [0.0, 0.3])
def test_axis_beyond_length_over_tolerance_is_at_infinity(tolerance, length, pitch):
    """The linear part has length one, as of a translation that rounding has turned a little."""
    rng = np.random.default_rng(13)
    for share in 10.0 ** np.arange(-20.0, 0.0):
        if share == pytest.approx(tolerance):
            continue
        axis, sideways = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
        distance = length / share
        point = distance * np.cross(axis, sideways)
        twist = revolute(axis, point, pitch * length) / distance
        found = classify(twist, tolerance, length)
        if share < tolerance:
            assert found.name == "R"
            near(found.frame[:3, 3], np.zeros(3), 0.0)
            near(np.cross(found.frame[:3, 2], twist[:3]), np.zeros(3), 1e-12)
        else:
            assert found.name in {"SO(2)", "H_p"}
            np.testing.assert_allclose(found.frame[:3, 3], point, atol=1e-9 * distance)


def test_rotations_at_rounding_level_do_not_count_beside_a_hinge():
    hinge = revolute((0, 0, 1), (1, 2, 0))
    for share in (1e-17, 1e-15, 1e-12):
        shifts = np.column_stack([E[0] + share * E[4], E[1] - share * E[3]])
        found = classify(np.column_stack([hinge, shifts]))
        check(found, "SE(2)", CLASSES["SE(2)"], tolerance=1e-11)


@pytest.mark.parametrize("tolerance", [1e-300, 1e-17, 1e-15, 1e-14])
def test_tolerance_below_rounding_counts_as_rounding(tolerance):
    rng = np.random.default_rng(16)
    for share in 10.0 ** np.arange(-320.0, 0.0, 5.0):
        found = classify([1, 0, 0, 0, 0, share], tolerance)
        assert found.name == ("R" if share < 1.4e-14 else "SO(2)")
        if share < 1.4e-14:
            several = np.vstack([rng.normal(size=(3, 4)), share * rng.normal(size=(3, 4))])
            assert classify(several, tolerance).name == "R^3"


# --- spans that are not closed ----------------------------------------------------------------

OPEN = {
    "helical axis tilted from the plane": (
        [E[0], E[1], revolute((0.3, 0, 1), pitch=0.1)],
        "SE(2)xR",
    ),
    "helical axis in the plane": ([E[0], E[1], revolute((1, 0, 0), pitch=0.1)], "SE(2)xR"),
    "revolute axis tilted from the plane": ([E[0], E[1], revolute((0, 0.3, 1))], "SE(2)xR"),
    "cylindrical joint with a tilted travel": ([E[5], translation((0.2, 0, 1))], "SE(2)xR"),
    "turn and travel across it": ([E[5], translation((0.2, 1, 0))], "SE(2)"),
    "screw and travel across it": ([revolute((0, 0, 1), pitch=0.1), E[0]], "H_p x| R^2"),
    "rolling in the plane": ([E[0], E[5]], "SE(2)"),
    "intersecting hinges": (
        [revolute((0, 0, 1), (1, 2, 3)), revolute((1, 0, 1), (1, 2, 3))],
        "SO(3)",
    ),
    "universal joint": ([revolute((1, 0, 0), (0, 0, 2)), revolute((0, 1, 0), (0, 0, 2))], "SO(3)"),
    "skew hinges": ([revolute((0, 0, 1)), revolute((1, 0, 0), (0, 1, 0))], "SE(3)"),
    "parallel hinges": ([revolute((0, 0, 1)), revolute((0, 0, 1), (1, 2, 0))], "SE(2)"),
    "three parallel hinges, two opposed": (
        [revolute((0, 0, 1)), revolute((0, 0, -1), (1, 2, 0)), revolute((0, 0, 1), (3, 6, 5))],
        "SE(2)",
    ),
    "parallel screws of one pitch": (
        [revolute((0, 0, 1), pitch=0.1), revolute((0, 0, 1), (1, 0, 0), 0.1)],
        "H_p x| R^2",
    ),
    "parallel screws of two pitches": (
        [revolute((0, 0, 1), pitch=0.1), revolute((0, 0, 1), (1, 0, 0), 0.2)],
        "SE(2)xR",
    ),
    "intersecting screw and hinge": ([revolute((0, 0, 1), pitch=0.1), E[3]], "SE(3)"),
    "screws of opposite pitch": (
        [revolute((0, 0, 1), pitch=0.1), revolute((0, 0, 1), (1, 0, 0), -0.1)],
        "SE(2)xR",
    ),
    "ball joint with one screw": ([E[3], E[4], revolute((0, 0, 1), pitch=0.1)], "SE(3)"),
    "screws of one pitch through a point": (
        [E[i] + 0.1 * E[i - 3] for i in (3, 4, 5)],
        "SE(3)",
    ),
    "ball joint on a slide": ([E[3], E[4], E[5], E[0]], "SE(3)"),
    "all but one translation": ([E[i] for i in (0, 1, 3, 4, 5)], "SE(3)"),
    "all but one rotation": ([E[i] for i in (0, 1, 2, 3, 4)], "SE(3)"),
    "two rotations in the plane of two slides": ([E[i] for i in (0, 1, 3, 4)], "SE(3)"),
}


@pytest.mark.parametrize("case", OPEN)
def test_open_span_is_refused_and_completed(case):
    twists, closure = OPEN[case]
    twists = np.column_stack(twists)
    larger = generated(twists)
    rng = np.random.default_rng(12)
    for _ in range(20):
        pose = conjugation(random_pose(rng))
        given = pose @ twists @ random_change(rng, twists.shape[1])
        found = classify(given)
        assert not found.closed
        assert found.name == "not a subgroup"
        assert found.joint is None
        assert not found.exponential
        assert found.dim == rank(twists)
        near(projector(found.basis), projector(np.linalg.svd(given)[0][:, : found.dim]), 1e-10)
        pitch = 0.1 if closure == "H_p x| R^2" else None
        check(found.closure, closure, pose @ larger, pitch)


@often
@given(st.integers(1, 4).flatmap(lambda k: arrays(int, (6, k), elements=st.integers(-1, 1))))
def test_closure_is_what_brackets_generate(twists):
    columns = twists.astype(float)
    found = classify(twists)
    larger = generated(columns)
    assert found.dim == rank(columns)
    assert found.closed == (larger.shape[1] == rank(columns))
    closure = found if found.closed else found.closure
    assert closure.dim == larger.shape[1]
    near(projector(closure.basis), projector(larger), 1e-9)


# --- normalisers, the last column of Table 2.1 ------------------------------------------------

TURN = Rotation.from_rotvec([0, 0, 0.7]).as_matrix()
FLIP = Rotation.from_rotvec([np.pi, 0, 0]).as_matrix()
TILT = Rotation.from_rotvec([0.4, 0.2, 0]).as_matrix()

AXIS, NORMAL, CENTRE, ALL = "axis", "normal", "centre", "all"
NORMALISERS = {
    "identity": ALL,
    "R": NORMAL,
    "SO(2)": AXIS,
    "H_p": AXIS,
    "R^2": NORMAL,
    "SO(2)xR": AXIS,
    "R^3": ALL,
    "SO(3)": CENTRE,
    "SE(2)": NORMAL,
    "H_p x| R^2": NORMAL,
    "SE(2)xR": NORMAL,
    "SE(3)": ALL,
}


@every_class
@pytest.mark.parametrize(
    ("rotation", "shift", "kept_by"),
    [
        (TURN, (0, 0, 0), {AXIS, NORMAL, CENTRE, ALL}),
        (FLIP, (0, 0, 0), {AXIS, NORMAL, CENTRE, ALL}),
        (TURN @ FLIP, (0, 0, 0.8), {AXIS, NORMAL, ALL}),
        (TURN, (0.5, -0.3, 0.8), {NORMAL, ALL}),
        (TILT, (0, 0, 0), {CENTRE, ALL}),
        (TILT, (0.5, -0.3, 0.8), {ALL}),
    ],
)
def test_normaliser_and_nothing_else_keeps_the_subgroup(name, rotation, shift, kept_by):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, shift
    found = classify(conjugation(pose) @ CLASSES[name])
    assert found.name == name
    kept = np.allclose(projector(found.basis), projector(CLASSES[name]), rtol=0, atol=1e-12)
    assert kept == (NORMALISERS[name] in kept_by)


# --- joints -----------------------------------------------------------------------------------

JOINTS = {
    "Fixed": ("identity", [joints.Fixed()]),
    "Revolute": ("SO(2)", [joints.Revolute((0, 0, 1)), joints.Revolute((1, -2, -2))]),
    "Prismatic": ("R", [joints.Prismatic((1, 0, 0)), joints.Prismatic((-1, 2, -2))]),
    "Helical": ("H_p", [joints.Helical((0, 1, 0), PITCH), joints.Helical((1, -2, -2), PITCH)]),
    "Cylindrical": ("SO(2)xR", [joints.Cylindrical((0, 0, -1)), joints.Cylindrical((1, 2, -2))]),
    "Sliding": ("R^2", [joints.Sliding((0, 0, 1)), joints.Sliding((1, 2, -2))]),
    "Cartesian": ("R^3", [joints.Cartesian()]),
    "Planar": ("SE(2)", [joints.Planar(), joints.Planar((-1, 2, -2))]),
    "PlanarPrismatic": ("SE(2)xR", [joints.PlanarPrismatic(), joints.PlanarPrismatic((1, -2, 2))]),
    "Spherical": ("SO(3)", [joints.Spherical()]),
    "Free": ("SE(3)", [joints.Free()]),
}


@pytest.mark.parametrize("joint", JOINTS)
def test_joint_is_classified_as_itself(joint):
    name, examples = JOINTS[joint]
    for example in examples:
        found = classify(example.basis)
        check(found, name, example.basis, getattr(example, "pitch", None), 1e-14)
        assert found.joint == type(example).__name__ == joint
        assert found.exponential
        near(found.frame[:3, 3], np.zeros(3), 1e-15)


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, -1e-9, 0.1, 1.0, np.nan, np.inf])
def test_tolerance_out_of_range_is_refused(bad):
    with pytest.raises(DescriptionError, match=r"`tolerance`: expected a number above 0 and below"):
        classify(E, tolerance=bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_length_out_of_range_is_refused(bad):
    with pytest.raises(DescriptionError, match=r"`length`: expected a number above 0"):
        classify(E, length=bad)
