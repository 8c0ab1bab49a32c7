"""Shapes of bodies: sizes, files, surfaces."""

import os
import sys

import mujoco
import numpy as np
import pytest
import trimesh

import concur as cc
from concur.errors import DescriptionError, ShapeError
from concur.robot import Shape, _shapes, read_mesh
from concur.show._drawing import surface

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
    made = surface(shape)
    assert made.volume == pytest.approx(volume, rel=0.07)
    assert made.is_watertight
    np.testing.assert_allclose(made.bounds.mean(axis=0), shape.placement.translation, atol=1e-12)


def extremes(shapes):
    bounds = np.array([surface(shape).bounds for shape in shapes])
    return bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)


def test_files_keep_shapes(tmp_path):
    made = robot(SHAPES)
    for name in ("r.toml", "urdf/r.urdf", "r.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        made.save(tmp_path / name)
    assert cc.load(tmp_path / "r.toml") == made
    assert cc.load(tmp_path / "r.toml") != robot(SHAPES[:3])
    found = extremes(cc.load(tmp_path / "urdf/r.urdf").bodies[0].shape)
    # The balls at the ends of a capsule lack their equator by a part of their facets.
    np.testing.assert_allclose(found, extremes(SHAPES), atol=4e-3)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml"))
    assert model.body_mass[1] == 1.0
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    for k, shape in enumerate(SHAPES):
        points = surface(shape).vertices
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
    body, frame = cc.load(tmp_path / "r.urdf").bodies
    assert (frame.name, frame.shape) == ("b", ())
    assert body.shape == (
        Shape("box", (1.0, 1.0, 1.0)),
        Shape("sphere", (0.5,), cc.Pose((2.0, 0.0, 1.0))),
    )


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ('{ type = "cone", size = 1.0 }', DescriptionError, "one of box, cylinder"),
        ('{ type = "mesh", size = 1.0 }', DescriptionError, "the file of a mesh, got no file"),
        ('{ type = "mesh", size = [1, 0, 1], file = "a.stl" }', DescriptionError, "above zero"),
        ('{ type = "sphere", size = 1.0, file = "a.stl" }', DescriptionError, "no file"),
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


def test_meshes_of_urdf_files_are_shapes_and_lost_ones_are_listed(tmp_path):
    trimesh.creation.box((1.0, 2.0, 3.0)).export(tmp_path / "a.stl")
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    meshes = "".join(
        f'<visual><origin xyz="0 0 1"/><geometry><mesh filename="{file}" scale="1 -1 0.5"/>'
        "</geometry></visual>"
        for file in ("a.stl", "sub/lost.stl", "drawn.dae")
    )
    (tmp_path / "drawn.dae").write_text("<collada/>")
    (tmp_path / "r.urdf").write_text(
        f'<robot name="r"><link name="a">{inertia}{meshes}</link></robot>'
    )
    read = cc.load(tmp_path / "r.urdf")
    place = cc.Pose((0.0, 0.0, 1.0))
    wanted = Shape("mesh", (1.0, -1.0, 0.5), place, str((tmp_path / "a.stl").resolve()))
    assert read.bodies[0].shape == (wanted,)
    np.testing.assert_allclose(surface(wanted).bounds, [[-0.5, -1, 0.25], [0.5, 1, 1.75]])
    lines = [line for line in read.unread if line.startswith("`mesh`")]
    assert {line.rpartition(": ")[2] for line in lines} == {"drawn.dae", "lost.stl"}
    (tmp_path / "other").mkdir()
    for name in ("other/r.toml", "other/u.urdf"):
        read.save(tmp_path / name)
        assert cc.load(tmp_path / name).bodies[0].shape == (wanted,)
    read.save(tmp_path / "r.xml")  # MJCF keeps no meshes
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "r.xml")).ngeom == 0
    text = (tmp_path / "other" / "r.toml").read_text().replace(wanted.file, "../a.stl")
    (tmp_path / "other" / "near.toml").write_text(text)
    (near,) = cc.load(tmp_path / "other" / "near.toml").bodies[0].shape
    assert surface(near).volume == pytest.approx(3.0)


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes there")
def test_meshes_that_are_no_files_or_too_large_are_not_opened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe.stl")
    trimesh.creation.box().export(tmp_path / "box.stl")
    for name in ("pipe.stl", "lost.stl", "."):
        assert read_mesh(str(tmp_path / name)) is None
    size = (tmp_path / "box.stl").stat().st_size
    for most, read in ((size - 1, False), (size, True)):
        read_mesh.cache_clear()
        monkeypatch.setattr(_shapes, "LARGEST_MESH", most)
        assert (read_mesh(str(tmp_path / "box.stl")) is not None) == read
