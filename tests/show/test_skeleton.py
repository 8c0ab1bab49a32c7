from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from concur.errors import ShapeError, UnknownNameError
from concur.show._outputs import channels, nearest, positions
from concur.show.skeleton import Outline
from tests.show.fake import Body, Output, Planar, Revolute, Robot, flyer_run, rover_run


@pytest.mark.parametrize("make", [rover_run, flyer_run])
def test_hands_are_where_the_run_says(make):
    run = make()
    outline = Outline(run.robot, run.q[0], run.servo.outputs)
    for index in (0, 250, len(run.t) - 1):
        hands = outline.at(run.q[index]).hands
        for (actual, _), hand in zip(positions(run).values(), hands, strict=True):
            width = actual.shape[1]
            np.testing.assert_allclose(hand[:width], actual[index], atol=1e-12)


def test_wheels_stand_on_the_ground_and_turn_about_their_axis():
    run = rover_run()
    at = Outline(run.robot, run.q[0], run.servo.outputs).at(run.q[300])
    assert len(at.wheels) == 2
    heading = run.q[300, 2]
    lateral = np.array([-np.sin(heading), np.cos(heading), 0.0])
    for rims in at.wheels:
        centre = rims[:, :-1].reshape(-1, 3).mean(axis=0)
        assert centre[2] == pytest.approx(0.1)
        assert rims[..., 2].min() == pytest.approx(0.0, abs=0.01)
        across = np.cross(rims - centre, lateral)
        np.testing.assert_allclose(np.linalg.norm(across, axis=-1), 0.1, atol=1e-12)


def test_centre_of_mass_is_weighted_by_mass():
    bodies = (
        Body("base", Planar(), mass=3.0, com=(0.0, 0.0, 0.5)),
        Body("arm", Revolute((0, 0, 1)), "base", (1.0, 0.0, 0.0), 1.0, (0.4, 0.0, 0.0)),
    )
    robot = Robot("two bodies", bodies)
    q = np.array([2.0, 0.0, 0.0, np.pi / 2])
    np.testing.assert_allclose(Outline(robot, q).at(q).com, [2.25, 0.1, 0.375], atol=1e-15)


def test_box_lies_between_the_wheels_and_carries_the_arm():
    run = rover_run()
    q = np.zeros(8)
    box = Outline(run.robot, q, run.servo.outputs).at(q).chassis
    low, high = box.min(axis=0), box.max(axis=0)
    assert -0.25 < low[1] < -0.15
    assert 0.15 < high[1] < 0.25
    assert low[0] < 0.0 < 0.15 < high[0]
    assert (low[2], high[2]) == pytest.approx((0.1, 0.25))


def test_links_lead_to_hands_and_struts_to_wheels_and_to_the_arm():
    run = rover_run()
    at = Outline(run.robot, run.q[0], run.servo.outputs).at(run.q[0])
    assert (len(at.links), len(at.struts), len(at.frames)) == (3, 3, 2)
    np.testing.assert_allclose(at.links[-1][-1], at.hands[1])
    np.testing.assert_allclose(np.linalg.norm(np.diff(at.links[1], axis=0)), 0.45)
    np.testing.assert_allclose(np.linalg.norm(np.diff(at.links[2], axis=0)), 0.40)
    # No joint where the mount of the arm begins, on the axle.
    arm = ("turret", "upper_arm", "forearm")
    expected = [run.robot.pose(run.q[0], name)[:3, 3] for name in arm]
    np.testing.assert_allclose(at.joints, expected, atol=1e-15)
    base = run.robot.pose(run.q[0], "chassis")[:3, 3]
    np.testing.assert_allclose(at.struts[2], [base, expected[0]], atol=1e-15)


def test_steering_fork_is_a_strut_and_slider_on_the_base_is_drawn():
    bodies = (
        Body("frame", Planar()),
        Body("fork", Revolute((0, 0, 1)), "frame", (0.8, 0.0, 0.0)),
        Body("front", Revolute((0, 1, 0)), "fork", (0.0, 0.0, 0.2)),
    )
    wheels = (
        SimpleNamespace(body="front", radius=0.2, kind="disk"),
        SimpleNamespace(body="frame", radius=0.0, kind="slider", center=(-0.4, 0.0, 0.0)),
    )
    robot = Robot("bicycle", bodies, wheels, ground_height=0.0)
    at = Outline(robot, np.zeros(5)).at(np.zeros(5))
    assert (len(at.struts), len(at.links)) == (2, 0)
    centre = at.wheels[1][:, :-1].reshape(-1, 3).mean(axis=0)
    np.testing.assert_allclose(centre, [-0.4, 0.0, 0.0], atol=1e-15)
    assert np.ptp(at.wheels[1].reshape(-1, 3), axis=0).min() > 0


def test_drawn_wheel_rolls_with_its_joint():
    run = rover_run()
    outline = Outline(run.robot, run.q[0], run.servo.outputs)
    q = run.q[0].copy()
    before = outline.at(q).spokes[0]
    q[3] += np.pi
    after = outline.at(q).spokes[0]
    np.testing.assert_allclose(after[1] - after[0], before[0] - before[1], atol=1e-12)


def test_channels_never_mix_units():
    parts = channels(flyer_run())
    assert [(part.unit, part.columns) for part in parts] == [("m", (0, 1, 2)), ("rad", (3, 4, 5))]
    assert [part.columns for part in channels(rover_run())] == [(0, 1), (2, 3, 4)]


def test_nearest_sample():
    t = np.array([0.0, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(
        nearest(t, np.array([-1.0, 0.04, 0.06, 0.26, 9.0])), [0, 0, 1, 3, 3]
    )


def test_vector_outputs_are_placed_by_their_axes():
    outputs = [
        SimpleNamespace(name="height", group="R", axes="z"),
        SimpleNamespace(name="side", group="R2", axes="xz"),
        SimpleNamespace(name="floor", group="R2", axes="yx"),
        SimpleNamespace(name="turned", group="R3", axes="zxy"),
    ]
    pose = np.arange(8.0)[None, :]
    run = SimpleNamespace(pose=pose, reference=-pose, servo=SimpleNamespace(outputs=outputs))
    found = {name: actual[0].tolist() for name, (actual, _) in positions(run).items()}
    assert found == {"floor": [4.0, 3.0], "turned": [6.0, 7.0, 5.0]}


def test_poses_of_the_wrong_width_are_refused():
    run = replace_run(rover_run(), "reference", lambda table: table[:, :4])
    with pytest.raises(ShapeError, match=r"run\.reference: expected 5 columns.*\(1201, 4\)"):
        positions(run)


def test_unknown_group_is_refused():
    run = rover_run()
    run.servo.outputs = (replace(Output("a", "chassis", "R2"), group="E8"), run.servo.outputs[1])
    with pytest.raises(UnknownNameError, match="E8"):
        positions(run)


def replace_run(run, name, change):
    setattr(run, name, change(getattr(run, name)))
    return run
