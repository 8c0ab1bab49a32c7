"""Suggested sidecars: what is taken for a wheel, from both sides of each threshold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.errors import DescriptionError
from concur.formats import suggest_sidecar
from tests.formats.test_urdf import SOLID, joint, link, robot


def wheel(name: str, x: float, y: float, z: float = 0.0, **more: object) -> str:
    """A wheel of radius 0.1 m on a continuous joint about y, with changes."""
    axis, kind = more.get("axis", "0 1 0"), str(more.get("kind", "continuous"))
    shape = f'<{more.get("shape", "cylinder")} radius="{more.get("radius", 0.1)}" length="0.05"/>'
    tag, at = more.get("tag", "collision"), more.get("at", "0 0 0")
    pose = f'<origin xyz="{at}" rpy="{more.get("turn", np.pi / 2)} 0 0"/>'
    solid = f"<{tag}>{pose}<geometry>{shape}</geometry></{tag}>"
    content = f'<origin xyz="{x} {y} {z}"/><axis xyz="{axis}"/>{more.get("mimic", "")}'
    parent = str(more.get("parent", "base"))
    return link(name, SOLID + solid) + joint(f"{name}_joint", kind, parent, name, content)


def suggested(folder: Path, *parts: str, base: str = SOLID) -> tuple[str, cc.Mechanism]:
    path = folder / "cart.urdf"
    path.write_text(robot(link("base", base), *parts))
    out, text = suggest_sidecar(path)
    assert out == folder / "cart.toml"
    out.write_text(text)
    return text, cc.load(path)


def rolling(folder: Path, **more: object) -> list[str]:
    """Wheels of a cart whose right wheel has changes."""
    return [
        w.body for w in suggested(folder, wheel("a", 0, 0.3), wheel("b", 0, -0.3, **more))[1].wheels
    ]


def test_cylinders_on_continuous_joints_are_wheels(tmp_path: Path) -> None:
    arm = link("arm") + joint("lift", "revolute", "base", "arm", '<origin xyz="0 0 1"/>')
    text, ours = suggested(tmp_path, wheel("a", 0, 0.3), wheel("b", 0, -0.3), arm)
    assert isinstance(ours.base.joint, cc.joints.Planar)
    assert ours.gravity == (0.0, 0.0, -9.81)
    assert [(w.body, w.radius, w.kind) for w in ours.wheels] == [
        ("a", 0.1, "disk"),
        ("b", 0.1, "disk"),
    ]
    assert ours.actuated == ("a", "b", "arm")
    assert ours.nf == 3
    assert "# `a_joint` is continuous, its axis (0, 1, 0) is parallel to the ground,\n" in text
    assert rolling(tmp_path, tag="visual") == ["a", "b"]
    assert rolling(tmp_path, kind="revolute") == ["a"]
    assert rolling(tmp_path, shape="sphere") == ["a"]
    assert rolling(tmp_path, radius=0.0) == rolling(tmp_path, radius=0.0, at="0.1 0 0") == ["a"]
    assert rolling(tmp_path, axis="0 0 1") == ["a"]
    assert rolling(tmp_path, at="0 0.05 0") == ["a", "b"]
    for away, count in ((0.9e-4, 2), (1.1e-4, 1)):
        assert len(rolling(tmp_path, at=f"{away} 0 0")) == count
    for lift, count in ((0.0019, 2), (0.0021, 1)):
        assert len(rolling(tmp_path, z=lift)) == count


def test_axes_parallel_to_the_ground_are_so_up_to_a_thousandth(tmp_path: Path) -> None:
    for sine, count in ((0.9e-3, 1), (1.1e-3, 0)):
        path = tmp_path / "cart.urdf"
        axis = f"0 {float(np.sqrt(1 - sine**2))} {sine}"
        path.write_text(robot(link("base"), wheel("a", 0, 0.3, axis=axis)))
        assert suggest_sidecar(path)[1].count("[[wheels]]") == count


def test_wheels_on_a_second_axle_skid_and_have_no_actuator(tmp_path: Path) -> None:
    pairs = [
        wheel(f"{a}{b}", x, y)
        for a, x in (("f", 0.5), ("r", -0.5))
        for b, y in (("l", 0.3), ("r", -0.3))
    ]
    text, ours = suggested(tmp_path, *pairs)
    assert [w.kind for w in ours.wheels] == ["disk", "disk", "omni", "omni"]
    assert ours.actuated == ("fl", "fr")
    assert "all joints that move independently, but wheels that skid" in text
    assert cc.reduce(ours).ns == 2


def test_wheels_that_would_be_refused_are_comments(tmp_path: Path) -> None:
    lean = '<origin xyz="0.5 0 0" rpy="0.1 0.1 0"/><axis xyz="0 0 1"/>'
    fork = link("fork") + joint("steer", "revolute", "base", "fork", lean)
    text, ours = suggested(
        tmp_path,
        fork,
        wheel("a", 0, 0, parent="fork", axis="0 0.995004 -0.0998334", turn=np.pi / 2 - 0.1),
    )
    assert ours.wheels == ()
    assert "# Wheels would be refused: " in text
    assert "\n# [[wheels]]\n" in text
    assert isinstance(ours.base.joint, cc.joints.Free)


def test_bases_without_wheels(tmp_path: Path) -> None:
    arm = link("arm") + joint("lift", "revolute", "base", "arm")
    assert isinstance(suggested(tmp_path, arm)[1].base.joint, cc.joints.Free)
    text, ours = suggested(tmp_path, arm, base="")
    assert isinstance(ours.base.joint, cc.joints.Fixed)
    assert 'base = "fixed"  # the root link `base` has no mass' in text
    path = tmp_path / "stand.urdf"
    path.write_text(robot(link("world", ""), link("arm"), joint("j", "revolute", "world", "arm")))
    out, text = suggest_sidecar(path)
    out.write_text(text)
    assert cc.load(path).actuated == ("arm",)
    assert "No base: the root link `world`" in text


def test_joints_that_follow_others_have_no_actuator(tmp_path: Path) -> None:
    arms = link("arm") + joint("lift", "revolute", "base", "arm")
    arms += link("tip") + joint("bend", "revolute", "arm", "tip", '<mimic joint="lift"/>')
    assert suggested(tmp_path, arms)[1].actuated == ("arm",)


def test_the_command_writes_the_sidecar(tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    text = robot(link("base"), wheel("left", 0, 0.3))
    path.write_text(text.replace('"left"', "'the \"left\"'"))
    run = CliRunner()
    result = run.invoke(main, ["check", str(path), "--suggest", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["out"] == str(tmp_path / "cart.toml")
    assert [w.body for w in cc.load(path).wheels] == ['the "left"']
    assert "a file that exists" in run.invoke(main, ["check", str(path), "--suggest"]).stderr
    again = run.invoke(main, ["check", str(path), "--suggest", "--overwrite"])
    assert (
        again.stdout
        == (tmp_path / "cart.toml").read_text() + f"\nwritten: {tmp_path / 'cart.toml'}\n"
    )
    both = run.invoke(main, ["check", str(path), "--suggest", "--fix", "a.urdf"])
    assert both.exit_code == 2
    assert "expected one of the options --fix and --suggest" in both.stderr


def test_robots_that_no_sidecar_saves_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(robot())
    with pytest.raises(DescriptionError, match="at least one <link>"):
        suggest_sidecar(path)
