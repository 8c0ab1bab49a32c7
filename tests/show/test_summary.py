"""Summaries of robots tell of every body and number."""

from __future__ import annotations

import re

import numpy as np

import concur as cc
from tests.show.test_robot_figure import J, every_joint, one_joint


def rows(text):
    """First cell of each line to the whole line, with single spaces; one table after another."""
    found = {}
    for line in text.splitlines():
        if line.strip():
            found.setdefault(line.split()[0], []).append(" ".join(line.split()))
    return found


def test_summary_tells_of_every_body_and_number():
    text = every_joint().summary()
    table = rows(text)
    assert "every_joint: 11 bodies, nq = 28, nv = 26, 20 driven freedoms" in text
    assert "total mass 40 kg, gravity (0, 0, -9.81) m/s^2" in text
    assert table["base"][0] == "base Free 7 6"
    assert table["base"][1] == "base 20 (0, 0, 0) 1, 1.5, 2"
    assert table["turning"][0] == "turning base Revolute (0, 0, 1) 1 1 yes -1.25 to 1.5 rad"
    assert table["turning"][1] == "turning 2 (0.1, 0, 0.05) 0.02, 0.03, 0.04"
    assert table["pushing"][0] == "pushing turning Prismatic (1, 0, 0) 1 1 yes 0 to 0.5 m"
    assert table["screwing"][0] == "screwing pushing Helical (0, 0, 1), 0.02 m/rad 1 1 yes"
    assert table["both"][0].endswith("(0, 1, 0) 2 2 yes travel -0.125 to 0.75 m")
    assert table["picker"][0].startswith(
        "picker gantry PlanarPrismatic (0, 0.707107, 0.707107) 4 4"
    )
    assert table["hook"][0] == "hook picker Fixed 0 0"
    assert all(len(table[body.name]) == 2 for body in every_joint().bodies)
    assert max(map(len, text.splitlines())) <= 100
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert "\x1b" not in text


def test_summary_tells_of_wheels_and_constraints():
    robot = cc.robots.rover_arm()
    text = robot.summary()
    assert rows(text)["left_wheel"][2] == "left_wheel disk 0.1 (0, 1, 0) (0, 0, 0)"
    assert "rolling constraints (3):" in text
    for name in robot.constraint_names:
        assert name in text
    assert rows(text)["chassis"][0] == "chassis Planar (0, 0, 1) 3 3"
    assert max(map(len, text.splitlines())) <= 100


def test_summary_without_wheels_gravity_or_mass_says_so():
    text = one_joint(J.Revolute((0, 0, 1))).summary()
    assert "no gravity" in text
    assert "wheel" not in text
    assert "1 driven freedom\n" in text
    nothing = cc.Mechanism("nothing", [cc.Body("alone", J.Fixed())]).summary()
    assert rows(nothing)["alone"] == ["alone Fixed 0 0", "alone 0"]
    assert "1 body, nq = 0, nv = 0, 0 driven freedoms" in nothing


def test_long_names_are_not_cut():
    name = "a_body_with_a_name_" * 6
    inertia = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    robot = cc.Mechanism("long", [cc.Body(name, J.Free(), inertia=inertia)])
    assert [line.partition(" ")[0] for line in robot.summary().splitlines()].count(name) == 2


def test_half_open_limits_are_shown():
    text = one_joint(J.Revolute((0, 0, 1)), limits=(-np.inf, 0.25)).summary()
    assert rows(text)["part"][0].endswith("-inf to 0.25 rad")


def test_limits_of_a_joint_stand_below_each_other():
    joint = one_joint(J.Revolute((0, 0, 1)), limits=(-1.0, 0.25), speed_limit=2.0).summary()
    assert "\\n" not in joint
    lines = joint.splitlines()
    (at,) = (k for k, line in enumerate(lines) if "-1 to 0.25 rad" in line)
    assert lines[at + 1].strip() == "up to 2 rad/s"
