"""The look of a robot: surfaces, bars, joints and output points are where the robot has them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh

import concur as cc
from concur.errors import ConcurError
from concur.robot import Shape
from concur.show._drawing import Drawing, coarse
from concur.show._symbols import symbol
from tests.show.fake import body, flyer_run, rover_run

J = cc.joints
KINDS = {
    "fixed": J.Fixed(),
    "revolute": J.Revolute((1, 2, 2)),
    "prismatic": J.Prismatic((1, 2, 2)),
    "helical": J.Helical((1, 2, 2), 0.02),
    "cylindrical": J.Cylindrical((1, 2, 2)),
    "sliding": J.Sliding((1, 2, 2)),
    "planar": J.Planar((1, 2, 2)),
    "planar and prismatic": J.PlanarPrismatic((1, 2, 2)),
    "spherical": J.Spherical(),
    "Cartesian": J.Cartesian(),
}


def drawing(run, row=0):
    made = Drawing(run.robot, run.q[0], run.servo.outputs)
    return made, made.at(run.q[row])


@pytest.mark.parametrize("make", [rover_run, flyer_run])
def test_hands_are_where_the_run_says(make):
    run = make()
    for row in (0, 250, len(run.t) - 1):
        start = 0
        for output, hand in zip(run.servo.outputs, drawing(run, row)[1].hands, strict=True):
            width = min(output.pose_size, 3)
            np.testing.assert_allclose(
                hand[:width], run.pose[row, start : start + width], atol=1e-9
            )
            start += output.pose_size


def test_wheels_stand_on_the_ground_turn_about_their_axis_and_show_their_angle():
    run = rover_run()
    made, at = drawing(run, 300)
    heading = run.q[300, 2]
    lateral = np.array([-np.sin(heading), np.cos(heading), 0.0])
    wheels = [k for k, part in enumerate(made.surfaces) if part.role == "wheel"]
    assert len(wheels) == 2
    for k in wheels:
        points = at.surfaces[k]
        centre = points.mean(axis=0)
        assert centre[2] == pytest.approx(0.1)
        assert points[:, 2].min() == pytest.approx(0.0, abs=2e-3)
        radii = np.linalg.norm(np.cross(points - centre, lateral), axis=1)
        assert radii.max() == pytest.approx(0.1)
        (mark, _), body = made.surfaces[k].marks, made.surfaces[k].body
        assert abs(made.robot.wheel_axis(made.robot.wheels[0]) @ (mark[1] - mark[0])) < 1e-15
        assert body == made.robot.wheels[wheels.index(k)].body


def test_centre_of_mass_is_weighted_by_mass():
    bodies = [
        body("base", J.Planar(), mass=3.0, com=(0.0, 0.0, 0.5)),
        body("arm", J.Revolute((0, 0, 1)), "base", (1.0, 0.0, 0.0), 1.0, (0.4, 0.0, 0.0)),
    ]
    q = np.array([2.0, 0.0, 0.0, np.pi / 2])
    at = Drawing(cc.Mechanism("two", bodies), q).at(q)
    np.testing.assert_allclose(at.com, [2.25, 0.1, 0.375], atol=1e-15)


def test_box_lies_between_the_wheels_and_carries_the_arm():
    box = Drawing(rover_run().robot, np.zeros(8)).surfaces[0].points
    low, high = box.min(axis=0), box.max(axis=0)
    assert -0.25 < low[1] < -0.15
    assert 0.15 < high[1] < 0.25
    assert low[0] < 0.0 < 0.15 < high[0]
    assert (low[2], high[2]) == pytest.approx((0.1, 0.25))


def test_box_reaches_from_the_wheels_to_the_supports():
    """Supports at x = 0.9 m; the box is 0.88 times as long as from the axle to there."""
    points = {"left": (0.9, 0.1, 0.0), "right": (0.9, -0.1, 0.0)}
    box = Drawing(replace(rover_run().robot, supports=points), np.zeros(8)).surfaces[0].points
    low, high = box.min(axis=0), box.max(axis=0)
    assert (low[0], high[0]) == pytest.approx((0.054, 0.846))
    assert (low[2], high[2]) == pytest.approx((0.1, 0.25))  # the arm alone gives the height


def test_box_of_an_inertia_is_drawn_unless_the_body_has_a_shape(tmp_path):
    """A hull whose inertia is that of a box looks like it, also when the file is written again."""
    text = """
    name = "sat"
    [[bodies]]
    name = "hull"
    joint = { type = "Free" }
    inertia = { mass = 100.0, com = [0.1, 0.0, 0.3], box = [0.8, 1.5, 0.7] }
    [[bodies]]
    name = "tank"
    parent = "hull"
    joint = { type = "Revolute", axis = [0, 0, 1] }
    inertia = { mass = 5.0, box = [0.1, 0.2, 0.3] }
    shape = { type = "sphere", size = 0.05 }
    """
    (tmp_path / "a.toml").write_text(text)
    robot = cc.load(tmp_path / "a.toml")
    robot.save(tmp_path / "b.toml")
    again = cc.load(tmp_path / "b.toml")
    assert again == robot
    for one in (robot, again):
        hull, tank = Drawing(one, one.neutral()).surfaces
        np.testing.assert_allclose(np.ptp(hull.points, axis=0), [0.8, 1.5, 0.7])
        np.testing.assert_allclose(hull.points.mean(axis=0), [0.1, 0.0, 0.3], atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(tank.points, axis=1), 0.05, rtol=1e-6)


def test_box_of_a_base_is_not_drawn_around_wheels_of_a_vehicle_that_it_carries():
    """The hull of a crawler stays; the wheels drive away on it."""
    task = cc.load_task("examples/crawler.toml")
    made = Drawing(task.robot, task.q0)
    wheels = {wheel.body for wheel in task.robot.wheels}
    assert made.root not in {b.parent for b in task.robot.bodies if b.name in wheels}
    assert np.abs(made.surfaces[0].points).min() < 0.5 * np.abs(made.surfaces[0].points).max() + 1.0
    low, high = made.surfaces[0].points.min(axis=0), made.surfaces[0].points.max(axis=0)
    com = np.array(task.robot.base.inertia.com)
    np.testing.assert_allclose((low + high) / 2, com, atol=1e-12)


def test_bars_lead_from_joint_to_joint_to_hands_and_to_free_ends():
    run = rover_run()
    made, at = drawing(run)
    assert sorted(made.roles) == ["link"] * 3 + ["strut"] * 3
    assert made.framed == ("chassis", "forearm")
    places = {b.name: run.robot.pose(run.q[0], b.name)[:3, 3] for b in run.robot.bodies}
    # No joint where the mount of the arm begins, on the axle.
    arm = ("turret", "upper_arm", "forearm")
    np.testing.assert_allclose(at.joints, [places[name] for name in arm], atol=1e-15)
    links = at.bars[[role == "link" for role in made.roles]]
    chain = [places["turret"], places["upper_arm"], places["forearm"], at.hands[1]]
    np.testing.assert_allclose(links, np.stack([chain[:-1], chain[1:]], axis=1), atol=1e-15)
    crawler = cc.robots.orbital_crawler()
    q = crawler.neutral()
    free, one = Drawing(crawler, q), Drawing(crawler, q, [cc.Output("left", "left_tip", "R3")])
    assert (free.roles.count("stub"), one.roles.count("stub")) == (2, 1)
    stubs = free.at(q).bars[[role == "stub" for role in free.roles]]
    for name, stub in zip(("left_tip", "right_tip"), stubs, strict=True):
        pose = crawler.pose(q, name)
        np.testing.assert_allclose(stub, [pose[:3, 3], (pose @ [0.1, 0, 0, 1])[:3]], atol=1e-14)


def test_steering_fork_is_a_strut_and_a_slider_on_the_base_is_drawn():
    bodies = [
        body("frame", J.Planar()),
        body("fork", J.Revolute((0, 0, 1)), "frame", (0.8, 0.0, 0.0)),
        body("front", J.Revolute((0, 1, 0)), "fork", (0.0, 0.0, 0.2)),
    ]
    wheels = [
        cc.Wheel("front", 0.2),
        cc.Wheel("frame", 0.0, kind="slider", axis=(0, 1, 0), center=(-0.4, 0.0, 0.0)),
    ]
    made = Drawing(cc.Mechanism("bicycle", bodies, wheels), np.zeros(5))
    assert made.roles == ["strut", "strut"]
    slider = made.surfaces[2].points
    np.testing.assert_allclose(
        (slider.min(axis=0) + slider.max(axis=0)) / 2, [-0.4, 0, 0], atol=1e-15
    )
    assert np.ptp(slider, axis=0).min() > 0


def test_frames_are_drawn_at_ends_of_arms_and_where_an_output_is():
    def bars(*frames, outputs=()):
        far = [cc.Body(name, J.Fixed(), parent, cc.Pose((9, 0, 0))) for name, parent in frames]
        robot = cc.Mechanism("robot", [*arm, *far])
        made = Drawing(robot, robot.neutral(), outputs)
        return [{name for name, _ in bar} for bar in made.bars], made.size

    arm = [body("base", J.Planar()), body("arm", J.Revolute((0, 0, 1)), "base")]
    mark, tip, other = ("mark", "base"), ("tip", "arm"), ("other", "arm")
    assert bars(mark, tip)[0] == [{"arm", "base"}, {"arm", "tip"}]
    seen = [cc.Output("mark", "mark", "R3")]
    assert {"base", "mark"} in bars(mark, tip, outputs=seen)[0]
    found, size = bars(mark, tip, other)
    assert found == [{"arm", "base"}]
    assert size < 1.0


def test_a_system_without_bodies_is_refused():
    with pytest.raises(ConcurError, match="expected a robot with bodies"):
        Drawing(SimpleNamespace(name="pendulum"), np.zeros(1))


# --- meshes --------------------------------------------------------------------------------------


@pytest.fixture
def meshed(tmp_path):
    """An arm with a mesh on each link, of which the second has no file."""
    trimesh.creation.icosphere(4, 0.5).export(tmp_path / "link.stl")
    place = cc.Pose((0.25, 0.0, 0.0))

    def link(name, parent, file):
        inertia = cc.Inertia(1.0, com=(0.2, 0, 0), moments=(0.1, 0.1, 0.1))
        shape = Shape("mesh", (0.5, 0.1, -0.1), place, str(tmp_path / file))
        at = cc.Pose((0.5, 0.0, 0.0))
        return cc.Body(name, J.Revolute((0, 1, 0)), parent, at, inertia, shape=shape)

    links = [link("upper", "hull", "link.stl"), link("lower", "upper", "lost.stl")]
    return cc.Mechanism("meshed", [body("hull", J.Fixed()), *links])


def test_meshes_are_drawn_in_place_of_bars(meshed):
    q = np.array([0.3, -0.5])
    made = Drawing(meshed, q)
    assert [(part.body, part.role) for part in made.surfaces[1:]] == [("upper", "shape")]
    points = made.surfaces[1].points
    np.testing.assert_allclose(points.min(axis=0), [0.0, -0.05, -0.05], atol=1e-3)
    np.testing.assert_allclose(points.max(axis=0), [0.5, 0.05, 0.05], atol=1e-3)
    pose = meshed.pose(q, "upper")
    np.testing.assert_allclose(
        made.at(q).surfaces[1], points @ pose[:3, :3].T + pose[:3, 3], atol=1e-14
    )
    # The mount on the hull, and the link whose file is lost.
    assert made.roles == ["strut", "stub"]
    assert made.joints == ["lower"]


def test_a_coarse_surface_has_few_triangles_and_the_same_extent(meshed):
    part = Drawing(meshed, np.zeros(2)).surfaces[1]
    few = coarse(part)
    assert 100 < len(few.faces) < 0.6 * len(part.faces)
    np.testing.assert_allclose(np.ptp(few.points, axis=0), np.ptp(part.points, axis=0), rtol=0.2)
    box = Drawing(meshed, np.zeros(2)).surfaces[0]
    assert coarse(box) is box


def test_a_file_that_is_no_mesh_is_drawn_as_bars(tmp_path):
    (tmp_path / "bad.stl").write_text("no mesh")
    shape = Shape("mesh", (1, 1, 1), file=str(tmp_path / "bad.stl"))
    inertia = cc.Inertia(1.0, com=(0.2, 0, 0), moments=(0.1, 0.1, 0.1))
    arm = cc.Body("arm", J.Revolute((0, 1, 0)), "hull", inertia=inertia, shape=shape)
    made = Drawing(cc.Mechanism("r", [body("hull", J.Fixed()), arm]), np.zeros(1))
    assert [part.role for part in made.surfaces] == ["base"]
    assert made.roles == ["strut", "stub"]


# --- symbols of joints ---------------------------------------------------------------------------


def test_kinds_are_told_apart_by_name_colour_and_form():
    symbols = [symbol(joint) for joint in KINDS.values()]
    assert [this.kind for this in symbols] == list(KINDS)
    assert len({this.color for this in symbols}) == len(KINDS)
    for this in symbols:
        assert bool(this.lines) == (this.kind not in ("fixed", "spherical"))
        solid = ("fixed", "spherical", "sliding", "planar", "planar and prismatic")
        assert bool(len(this.faces)) == (this.kind in solid)
    assert symbol(J.Free()) is None


@pytest.mark.parametrize("axis", [(1, 2, 2), (0, 0, -1), (0, 0, 3), (-1, 0, 0)])
def test_lines_and_planes_of_symbols_follow_the_axis(axis):
    direction = np.array(axis) / np.linalg.norm(axis)
    for joint in (J.Revolute(axis), J.Helical(axis, 0.1)):
        line = symbol(joint).lines[0]
        np.testing.assert_allclose(line, [-direction, direction], atol=1e-14)
    for joint in (J.Planar(axis), J.Sliding(axis)):
        np.testing.assert_allclose(symbol(joint).faces @ direction, 0.0, atol=1e-14)


@pytest.mark.parametrize("pitch", [0.05, -0.05])
def test_thread_has_the_hand_of_the_screw(pitch):
    thread = symbol(J.Helical((0, 0, 1), pitch)).lines[-1]
    angle = np.unwrap(np.arctan2(thread[:, 1], thread[:, 0]))
    assert np.sign((angle[-1] - angle[0]) * (thread[-1, 2] - thread[0, 2])) == np.sign(pitch)
    assert abs(angle[-1] - angle[0]) == pytest.approx(7 * np.pi)
