"""Shapes of bodies: sizes, files, surfaces."""

import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull

import concur as cc
from concur.errors import DescriptionError, ShapeError
from concur.robot import Shape
from concur.show.shapes import surface, surfaces

TURN = (0.5, 0.5, 0.5, 0.5)
SHAPES = [
    Shape("box", (0.2, 0.4, 0.6), cc.Pose((1.0, 2.0, 3.0), TURN)),
    Shape("cylinder", (0.1, 0.5), cc.Pose((0.0, 0.0, 1.0))),
    Shape("sphere", (0.3,), cc.Pose((0.0, 1.0, 0.0), TURN)),
    Shape("capsule", (0.1, 0.5), cc.Pose((0.5, 0.0, 0.0), TURN)),
]
VOLUMES = [
    0.2 * 0.4 * 0.6,
    np.pi * 0.1**2 * 0.5,
    4 / 3 * np.pi * 0.3**3,
    np.pi * 0.1**2 * (0.5 + 4 / 3 * 0.1),
]


def robot(shape):
    inertia = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    return cc.Mechanism("r", [cc.Body("b", cc.joints.Free(), inertia=inertia, shape=shape)])


@pytest.mark.parametrize(("shape", "volume"), [*zip(SHAPES, VOLUMES, strict=True)])
def test_surface_encloses_the_volume(shape, volume):
    vertices, faces = surface(shape)
    assert faces.min() == 0
    assert faces.max() == len(vertices) - 1
    hull = ConvexHull(vertices)
    assert hull.volume == pytest.approx(volume, rel=0.03)
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert np.linalg.norm(normals, axis=1).sum() / 2 == pytest.approx(hull.area, rel=1e-9)
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    np.testing.assert_allclose(middle, shape.placement.translation, atol=1e-12)


def test_surfaces_are_those_of_all_shapes():
    vertices, faces = surfaces(SHAPES)
    assert len(vertices) == sum(len(surface(shape)[0]) for shape in SHAPES)
    last, own = surface(SHAPES[-1])
    np.testing.assert_array_equal(vertices[faces[-len(own) :]], last[own])


def test_files_keep_shapes(tmp_path):
    made = robot(SHAPES)
    for name in ("r.toml", "urdf/r.urdf", "r.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        made.save(tmp_path / name)
    assert cc.load(tmp_path / "r.toml") == made
    assert cc.load(tmp_path / "r.toml") != robot(SHAPES[:3])
    vertices = surfaces(SHAPES)[0]
    found = surfaces(cc.load(tmp_path / "urdf/r.urdf").bodies[0].shape)[0]
    for extreme in (np.min, np.max):
        # The balls at the ends of a capsule lack their equator by a part of their facets.
        np.testing.assert_allclose(extreme(found, 0), extreme(vertices, 0), atol=2e-3)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml"))
    assert model.body_mass[1] == 1.0
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for k, shape in enumerate(SHAPES):
        points = surface(shape)[0]
        away = (points - data.geom_xpos[k]) @ data.geom_xmat[k].reshape(3, 3)
        assert not model.geom_contype[k]
        reach = {
            "box": model.geom_size[k],
            "sphere": [model.geom_size[k, 0]] * 3,
            "cylinder": model.geom_size[k, [0, 0, 1]],
            "capsule": model.geom_size[k, [0, 0, 1]] + [0, 0, model.geom_size[k, 0]],
        }[shape.kind]
        np.testing.assert_allclose(np.abs(away).max(axis=0), reach, rtol=0.01)


def test_urdf_primitives_of_fixed_links_and_collisions_are_read(tmp_path):
    box = '<geometry><box size="1 1 1"/></geometry>'
    mesh = '<geometry><mesh filename="a.stl"/></geometry>'
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    (tmp_path / "r.urdf").write_text(
        f'<robot name="r"><link name="a">{inertia}<visual>{mesh}</visual>'
        f"<collision>{box}</collision></link>"
        '<link name="b"><visual><origin xyz="0 0 1"/><geometry><sphere radius="0.5"/></geometry>'
        f"</visual><collision>{box}</collision></link>"
        '<joint name="j" type="fixed"><parent link="a"/><child link="b"/><origin xyz="2 0 0"/>'
        "</joint></robot>"
    )
    (body,) = cc.load(tmp_path / "r.urdf").bodies
    assert body.shape == (
        Shape("box", (1.0, 1.0, 1.0)),
        Shape("sphere", (0.5,), cc.Pose((2.0, 0.0, 1.0))),
    )


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ('{ type = "mesh", size = 1.0 }', DescriptionError, "one of box, cylinder"),
        ('{ type = "box", size = [1.0, 1.0] }', ShapeError, "lengths along x, y and z"),
        ('{ type = "sphere", size = 0.0 }', DescriptionError, "above zero"),
        ('{ type = "sphere" }', DescriptionError, "size"),
        ("3", DescriptionError, "a table, or a list"),
    ],
)
def test_bad_shapes_are_refused_with_their_place(tmp_path, shape, error, message):
    (tmp_path / "r.toml").write_text(
        'name = "r"\n[[bodies]]\nname = "b"\njoint = { type = "Free" }\n'
        f"inertia = {{ mass = 1.0, moments = [1, 1, 1] }}\nshape = {shape}\n"
    )
    with pytest.raises(error, match=message) as caught:
        cc.load(tmp_path / "r.toml")
    assert "shape" in str(caught.value)
    with pytest.raises(DescriptionError, match="a Shape or a list"):
        robot([3])
