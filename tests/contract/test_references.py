"""References: twists and accelerations are the derivatives of the poses, on every group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from tests.oracles import assert_close, difference_quotient

ref = cc.references
TURNED = [0.3, -0.2, 0.5, *Rotation.from_rotvec([0.4, -0.7, 0.2]).as_quat()]
AWAY = [0.8, 0.4, -0.3, *Rotation.from_rotvec([-0.5, 0.9, 0.6]).as_quat()]
THIRD = [0.1, 0.9, 0.2, *Rotation.from_rotvec([0.9, 0.3, -0.4]).as_quat()]


POSES = ("SE3", "R3xSO3", "SO3")


def _ends(group: str) -> list[list[float]]:
    cut = {"R3": lambda p: p[:3], "SO3": lambda p: p[3:]}.get(group, lambda p: p)
    return [cut(p) for p in (TURNED, AWAY, THIRD)]


def _named(group: str) -> dict[str, str]:
    return {"group": group} if group in POSES else {}


def _line(group: str) -> Any:
    return ref.rest_to_rest(*_ends(group)[:2], 3.0, **_named(group))


def _points(group: str) -> Any:
    return ref.waypoints([0.0, 1.4, 3.0], _ends(group), **_named(group))


def _screw(group: str, **options: Any) -> Any:
    start = cc.Pose(TURNED[:3], TURNED[3:]).matrix
    return ref.screw(start, [0.2, 0.1, -0.3, 0.5, 0.2, -0.4], group, **options)


REFERENCES: dict[str, tuple[str, Callable[[], Any]]] = {
    "hold": ("SE3", lambda: ref.hold(TURNED, "SE3")),
    "polynomial": ("R2", lambda: ref.polynomial([[0.1, -0.3], [0.0, 1.0], [0.2, -0.1]])),
    "circle": ("R3", lambda: ref.circle([0.1, 0.2, 0.3], 0.4, 3.0, normal=(0.2, 0.3, 1.0))),
    "circle that turns": (
        "SE3",
        lambda: ref.circle(
            TURNED[:3], 0.4, 3.0, (0.2, 0.3, 1.0), 0.4, TURNED[3:], turning=True, group="SE3"
        ),
    ),
    "plane": ("SE2", lambda: ref.planar(_line("R3"))),
    "drift": ("R3xSO3", lambda: ref.drifting(_line("R3xSO3"), [0.1, 0.2, -0.1])),
    "tumble": ("SE3", lambda: ref.moving(_line("SE3"), [0.1, 0.2, -0.1, 0.3, -0.2, 0.5], 0.3)),
    "nod in a drift": ("SE3", lambda: ref.composed(_line("R3"), _screw("SE3"), group="SE3")),
    "progress": ("SE3", lambda: _screw("SE3", progress=ref.rest_to_rest([0.0], [1.0], 3.0))),
    "spatial screw": ("R3xSO3", lambda: _screw("R3xSO3", frame="spatial")),
    **{f"line, {g}": (g, lambda g=g: _line(g)) for g in ("R3", *POSES)},
    **{f"waypoints, {g}": (g, lambda g=g: _points(g)) for g in ("R3", *POSES)},
    **{f"screw, {g}": (g, lambda g=g: _screw(g)) for g in ("R3", *POSES)},
}


def _velocity(group: str, pose: Any, t: float) -> np.ndarray:
    """Left-trivialised velocity of a curve of flat poses, by differences of matrices."""
    slope = difference_quotient(lambda h: np.asarray(pose(t + h)), 1e-3)
    now = np.asarray(pose(t))
    if group.startswith("R") and group != "R3xSO3":
        return slope
    if group == "SE2":
        c, s = np.cos(now[2]), np.sin(now[2])
        return np.array([c * slope[0] + s * slope[1], -s * slope[0] + c * slope[1], slope[2]])
    turn = Rotation.from_quat(now[-4:]).as_matrix()
    rate = difference_quotient(lambda h: Rotation.from_quat(pose(t + h)[-4:]).as_matrix(), 1e-3)
    spin = turn.T @ rate
    spin = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
    if group == "SO3":
        return spin
    linear = slope[:3] if group == "R3xSO3" else turn.T @ slope[:3]
    return np.concatenate([linear, spin])


@pytest.mark.parametrize("name", REFERENCES)
def test_twists_and_accelerations_are_derivatives(name: str) -> None:
    group, make = REFERENCES[name]
    reference = make()
    for t in (0.21, 1.1, 2.3):
        sample = reference(t)
        twist = _velocity(group, lambda x: reference(x).flat_pose, t)
        assert_close(sample.twist, twist, 1e-8, name="twist")
        slope = difference_quotient(lambda h, t=t: reference(t + h).twist, 1e-3)
        assert_close(sample.acceleration, slope, 1e-8, name="acceleration")


@pytest.mark.parametrize("group", ["R3", *POSES])
def test_paths_pass_through_their_points_and_rest_at_their_ends(group: str) -> None:
    points, path, line = _ends(group), _points(group), _line(group)
    for t, point in zip((0.0, 1.4, 3.0), points, strict=True):
        found = path(t).flat_pose
        linear = 0 if group == "SO3" else 3
        turned = np.sign(found[linear:] @ np.array(point)[linear:]) if group in POSES else 1.0
        assert_close(found[:linear], point[:linear], 1e-12)
        assert_close(turned * found[linear:], point[linear:], 1e-12)
    for t in (-1.0, 0.0, 3.0, 4.0):
        assert np.abs(line(t).twist).max() < 1e-12


def test_stack_and_relative_join_what_their_parts_give() -> None:
    one, two = ref.circle([0.1, 0.2, 0.3], 0.4, 0.9), ref.hold(TURNED, "SE3")
    both = ref.stack(one, two)(0.7)
    for part in ("flat_pose", "twist", "acceleration"):
        parts = [getattr(reference(0.7), part) for reference in (one, two)]
        assert_close(getattr(both, part), np.concatenate(parts), 0.0)
