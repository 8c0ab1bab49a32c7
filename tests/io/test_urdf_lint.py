"""Suspicious entries of URDF files: each threshold from both sides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.io import check, suspicious_urdf
from concur.robot import suspicious
from tests.io._wheeled import ROBOTS
from tests.io.test_urdf import ORIGIN, chain, joint, link, robot

INERTIA = '<mass value="2"/><inertia ixx="0.02" iyy="0.03" izz="0.025"/></inertial>'


def found(folder: Path, text: str, side: str = "") -> tuple[str, ...]:
    (folder / "arm.urdf").write_text(text)
    (folder / "arm.toml").write_text(side)
    cc.load(folder / "arm.urdf")
    return suspicious_urdf(folder / "arm.urdf")


def solid(com: object, *shapes: str) -> str:
    """One link with a centre of mass and collision shapes, each (pose, shape)."""
    at = " ".join(map(repr, np.asarray(com, dtype=float).tolist()))
    parts = "".join(f"<collision>{shape}</collision>" for shape in shapes)
    return robot(link("base", f'<inertial><origin xyz="{at}"/>{INERTIA}{parts}'))


def shape(kind: str, pose: str = "") -> str:
    return f"{pose}<geometry>{kind}</geometry>"


BOX = '<box size="0.2 0.4 0.6"/>'
CYLINDER = '<cylinder radius="0.1" length="0.4"/>'
SPHERE = '<sphere radius="0.1"/>'


@pytest.mark.parametrize(
    ("kind", "direction", "reach", "width"),
    [
        (BOX, (1, 0, 0), 0.1, 0.2),
        (BOX, (0, -1, 0), 0.2, 0.4),
        (CYLINDER, (0, 0, 1), 0.2, 0.4),
        (CYLINDER, (0.6, 0.8, 0), 0.1, 0.2),
        (SPHERE, (0.6, 0, -0.8), 0.1, 0.2),
    ],
)
def test_centres_of_mass_outside_of_a_shape(
    tmp_path: Path, kind: str, direction: tuple, reach: float, width: float
) -> None:
    pose = '<origin xyz="0.3 -0.2 0.1" rpy="0 0 1.5707963267948966"/>'
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for excess, count in ((0.0099, 0), (0.0101, 1)):
        away = reach + excess * width
        com = turn @ np.array(direction) * away + (0.3, -0.2, 0.1)
        texts = found(tmp_path, solid(com, shape(kind, pose)))
        assert len(texts) == count, texts
        if count:
            assert texts[0] == (
                "centre of mass outside the hull of the collision shapes: link `base` by "
                f"{excess * width:.3g} m"
            )


def test_the_hull_of_several_shapes_contains_what_lies_between(tmp_path: Path) -> None:
    pair = shape(SPHERE, '<origin xyz="1 0 0"/>'), shape(BOX, '<origin xyz="-1 0 0"/>')
    assert found(tmp_path, solid((0.0, 0.0, 0.0), *pair)) == ()
    assert found(tmp_path, solid((0.0, 0.5, 0.0), *pair)) != ()
    for other in ("<mesh filename='a.stl'/>", "<box size='1 1'/>", "<box/>", "<cone/>", ""):
        assert found(tmp_path, solid((0.0, 0.5, 0.0), *pair, shape(other))) == ()
    assert found(tmp_path, solid((0.0, 0.5, 0.0), "<origin/>")) == ()


@pytest.mark.parametrize(
    ("kind", "limit", "texts"),
    [
        ("revolute", 'lower="0" upper="0"', ["limits [0, 0] are read as no limits"]),
        ("prismatic", 'lower="0"', ["limits [0, 0] are read as no limits"]),
        ("revolute", 'lower="0" upper="0.001" effort="1e-3" velocity="1e-3"', []),
        ("continuous", 'lower="0" upper="0"', []),
        ("revolute", 'effort="0.0"', ["effort 0 is read as no limit"]),
        ("continuous", 'velocity="0"', ["velocity 0 is read as no limit"]),
        ("revolute", "", []),
    ],
)
def test_limits_of_zero(tmp_path: Path, kind: str, limit: str, texts: list[str]) -> None:
    came = found(tmp_path, chain(kind, f"<limit {limit}/>"))
    assert came == tuple(f"{text}: joint `j`" for text in texts)


def test_axes_that_are_not_of_unit_length(tmp_path: Path) -> None:
    for kind in ("revolute", "planar"):
        for length, count in ((1.0009, 0), (1.0011, 1), (0.9991, 0), (0.9989, 1)):
            text = chain(kind, f'<axis xyz="0 {0.6 * length} {0.8 * length}"/>')
            assert len(found(tmp_path, text)) == count
    assert found(tmp_path, chain("revolute", '<axis xyz="0 3 4"/>')) == (
        "axis not of unit length: joint `j`, length 5",
    )
    assert found(tmp_path, chain("fixed", '<axis xyz="0 3 4"/>')) == ()


def test_joints_that_are_held_are_named_up_to_eight(tmp_path: Path) -> None:
    ends = [joint(f"j{i}", "revolute", "base", f"l{i}") for i in range(10)]
    text = robot(link("base"), *(link(f"l{i}", "") for i in range(10)), *ends)
    (came,) = found(tmp_path, text)
    assert came.startswith("held at a constant coordinate, because the joint carries no mass: ")
    assert came.endswith("joint `j7` at 0 and 2 more")
    (came,) = found(tmp_path, text, "locked = {j0 = 0.1, j1 = 0.2, j9 = 0.1}")
    assert came.endswith("joint `j8` at 0")


def coaxial(inner: float) -> cc.Mechanism:
    """Two joints about one axis; the first body alone has a moment of inertia `inner`."""
    hub = cc.Inertia(1.0, moments=(inner, inner, inner))
    tip = cc.Inertia(1.0, moments=(1.0, 1.0, 1.0))
    hinge = cc.joints.Revolute((0, 0, 1))
    return cc.Mechanism(
        "pair",
        [
            cc.Body("base", cc.joints.Fixed()),
            cc.Body("hub", hinge, "base", inertia=hub),
            cc.Body("tip", hinge, "hub", cc.Pose((0, 0, 0.1)), tip),
        ],
    )


def test_mass_matrices_that_are_near_singular() -> None:
    # With unit diagonal the off-diagonal is 1 / sqrt(1 + x): the eigenvalue is x / 2.
    for inner, count in ((2.1e-7, 0), (1.9e-7, 1)):
        texts = [text for text in suspicious(coaxial(inner)) if "mass matrix" in text]
        assert len(texts) == count
    assert texts == [
        "mass matrix near singular at the neutral configuration: a motion of `hub`, `tip` moves "
        "9.5e-08 of the inertia that they move one by one"
    ]


def test_check_shows_them(tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(chain("revolute", ORIGIN + '<axis xyz="0 0 2"/>'))
    assert check(str(tmp_path / "arm.urdf")).warnings == (
        "axis not of unit length: joint `j`, length 2",
    )


def test_wheels_on_a_free_base_without_gravity(tmp_path: Path) -> None:
    (tmp_path / "cart.urdf").write_text(ROBOTS["turtle_drawn"].replace('"left', '"left_wheel'))
    for side, count in (
        ("", 1),
        ('base = "planar"', 0),
        ("gravity = [0, 0, -9.81]", 0),
        ('base = "free"', 1),
    ):
        (tmp_path / "cart.toml").write_text(side)
        found = [text for text in suspicious_urdf(tmp_path / "cart.urdf") if "wheels" in text]
        assert len(found) == count
