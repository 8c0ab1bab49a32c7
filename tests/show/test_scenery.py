"""Systems from energies in pictures: frames that they declare stand where the oracle puts them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from PIL import Image

import concur as cc
from concur.errors import (
    ConcurError,
    DescriptionError,
    NonFiniteError,
    ReductionError,
    ShapeError,
    UnknownNameError,
)
from concur.formulations import Factor
from concur.outputs import FunctionOutput
from concur.show import animate
from concur.show._drawing import Drawing
from concur.show.viewer import Film
from concur.show.viewer._scene import placed
from tests.formulations.textbook import LENGTHS, MASSES, G


def chain(drawn: bool = True) -> cc.LagrangianSystem:
    """Two links of a spherical pendulum, with a motor about each axis."""
    links = [Factor(f"link{k}", "S2", (0.0, 0.0, -1.0)) for k in range(2)]
    speed, place, kinetic, height = ca.SX(3, 1), ca.SX(3, 1), ca.SX(0), ca.SX(0)
    frames: dict[str, Any] = {"pivot": ca.SX(3, 1)}
    for k, (link, m, length) in enumerate(zip(links, MASSES, LENGTHS, strict=False)):
        speed, place = speed + length * link.qdot, place + length * link.q
        kinetic, height = kinetic + m * ca.sumsqr(speed) / 2, height + m * G * place[2]
        frames[f"bob{k}"] = place
    names = [name for link in links for name in link.freedom_names]
    options = {"drawn": frames} if drawn else {}
    return cc.LagrangianSystem(kinetic, height, links, inputs=names, name="chain", **options)


@pytest.fixture(scope="module")
def runs() -> list[cc.Run]:
    made = []
    for drawn in (True, False):
        system, q = chain(drawn), ca.SX.sym("q", 6)
        outputs = [
            FunctionOutput(f"d{k}", ca.Function("d", [q], [q[3 * k : 3 * k + 3]]), "S2")
            for k in range(2)
        ]
        servo = cc.Servo(cc.reduce(system), outputs, 9.0, 6.0)
        goal = cc.references.stack(
            *[cc.references.hold(point, group="S2") for point in ([0.6, 0, -0.8], [0.0, 0.6, -0.8])]
        )
        q0 = [0.0, 0.0, -1.0, 0.6, 0.0, -0.8]
        made.append(cc.simulate(system, servo, goal, 0.4, q0, np.zeros(6), dt=0.02))
    return made


def bobs(q: np.ndarray) -> np.ndarray:
    first = LENGTHS[0] * q[:3]
    return np.array([np.zeros(3), first, first + LENGTHS[1] * q[3:]])


def test_frames_and_bars_stand_where_the_links_are() -> None:
    system, rng = chain(), np.random.default_rng(3)
    drawing = Drawing(system, system.neutral())
    assert not drawing.heavy
    for _ in range(5):
        q = system.random(rng)
        at = drawing.at(q)
        expected = bobs(q)
        np.testing.assert_allclose(
            [at.poses[n][:3, 3] for n in ("pivot", "bob0", "bob1")], expected
        )
        np.testing.assert_allclose(at.bars, np.stack([expected[:-1], expected[1:]], axis=1))
        np.testing.assert_allclose(at.joints, expected[1:])


def test_poses_and_other_bars() -> None:
    """A hull with two arms: bars from the hull to each, its rotation as that of the factor."""
    hull = Factor("hull", "SE3")
    turn, at = hull.pose
    pose = ca.vertcat(ca.horzcat(turn, at), ca.SX([[0, 0, 0, 1]]))
    ends = [at + turn @ ca.DM(end) for end in ([0.5, 0, 0], [-0.5, 0.2, 0])]
    frames = {"hull": pose, "left": ends[0], "right": (ends[1], "hull")}
    body = cc.LagrangianSystem(ca.sumsqr(hull.v), 0.0, [hull], drawn=frames)
    assert body.drawn == (("hull", None), ("left", "hull"), ("right", "hull"))
    q = body.random(np.random.default_rng(0))
    found = Drawing(body, body.neutral()).at(q)
    np.testing.assert_allclose(found.bars[:, 0], np.tile(q[:3], (2, 1)))
    np.testing.assert_allclose(np.linalg.norm(found.bars[1, 1] - q[:3]), np.hypot(0.5, 0.2))
    expected = ca.Function("f", [hull.q], [turn])(q)
    np.testing.assert_allclose(body.pose(q, "hull")[:3, :3], np.array(expected))
    with pytest.raises(UnknownNameError, match="hul"):
        body.pose(q, "hul")


def test_the_viewer_moves_declared_frames_over_time(runs: list[cc.Run]) -> None:
    run = runs[0]
    with run.view(browser=False) as viewer:
        scene = viewer.scenes[0]
        for row in (11, 20, 0):
            viewer.slider.value = round(float(run.t[row]), 4)
            expected, end = bobs(run.q[row]), time.monotonic() + 10.0
            while not np.allclose(scene.joints[-1].position, expected[2], atol=1e-9):
                assert time.monotonic() < end, "the viewer did not follow"
                time.sleep(0.01)
            tube = placed(scene.bars[-1])
            along = expected[2] - expected[1]
            reach = (tube - expected[1]) @ along / np.linalg.norm(along)
            np.testing.assert_allclose([reach.min(), reach.max()], [0.0, LENGTHS[1]], atol=1e-6)
        viewer.com.value = True
        time.sleep(0.1)
        assert not scene.com.visible  # frames have no masses
        assert "Tracking error (mm, mrad)" in viewer.plots


@pytest.mark.extended
def test_animations_of_declared_frames(runs: list[cc.Run], tmp_path: Path) -> None:
    written = animate(runs[0], tmp_path / "run.gif", fps=5)
    with Image.open(written) as image:
        frames = [np.asarray(image.convert("RGB")).astype(int)]
        image.seek(image.n_frames - 1)
        frames.append(np.asarray(image.convert("RGB")).astype(int))
    assert (abs(frames[0] - frames[1]).max(axis=2) > 60).sum() > 100
    assert runs[0].animate(5).data[:3] == b"GIF"


def test_systems_without_frames_say_what_to_declare(runs: list[cc.Run], tmp_path: Path) -> None:
    run = runs[1]
    for ask in (lambda: run.view(browser=False), lambda: run.animate(5)):
        with pytest.raises(ReductionError, match="Declare frames as `drawn`"):
            ask()
    with pytest.raises(ConcurError, match="Declare frames as `drawn`"):
        Drawing(run.robot, run.q[0])


def test_files_of_runs_are_viewed_with_their_law(runs: list[cc.Run], tmp_path: Path) -> None:
    """A file without the robot says so; with its law it is viewed as before."""
    path = runs[0].save(tmp_path / "run.h5")
    for ask in (lambda: cc.Run.load(path), lambda: Film.read(str(path))):
        with pytest.raises(DescriptionError, match="`chain`, a system without bodies") as error:
            ask()
        assert "Run.load(path, servo)" in str(error.value)
    loaded = cc.Run.load(path, runs[0].servo)
    np.testing.assert_array_equal(loaded.q, runs[0].q)
    film = Film.of(loaded)
    np.testing.assert_allclose(film.robot.pose(loaded.q[-1], "bob1")[:3, 3], bobs(loaded.q[-1])[2])


ROD = Factor("rod", "S2")


@pytest.mark.parametrize(
    ("drawn", "kind", "text"),
    [
        ([ROD.q], DescriptionError, "frames by name"),
        (
            {"a": ca.SX(2, 1)},
            ShapeError,
            r"a position \(3,\) or a pose \(4, 4\), got shape \(2, 1\)",
        ),
        ({"a": ROD.v}, DescriptionError, "one of velocities"),
        ({"a": ca.SX.sym("x", 3)}, UnknownNameError, "symbols of the factors only"),
        ({"a": ROD.q, "b": (ROD.q, "c")}, UnknownNameError, r"a frame before it \(a\)"),
        ({"a": ROD.q, "b": (ROD.q, None)}, UnknownNameError, r"a frame before it \(a\)"),
        ({"a": (ROD.q, "b"), "b": ROD.q}, UnknownNameError, "no name: it is first, got b"),
        ({"a": (ROD.q, 5)}, UnknownNameError, "no name: it is first, got 5"),
        ({"a": 2 * ca.SX.eye(4)}, DescriptionError, "a rotation and a row"),
        ({"a": ca.diag(ca.SX([1, 1, -1, 1]))}, DescriptionError, "a rotation and a row"),
        ({"a": ca.log(ROD.q)}, NonFiniteError, "finite values"),
    ],
)
def test_frames_that_are_none_are_refused(drawn: Any, kind: type[ConcurError], text: str) -> None:
    with pytest.raises(kind, match=text):
        cc.LagrangianSystem(ca.sumsqr(ROD.qdot), 0.0, [ROD], drawn=drawn)


@pytest.mark.parametrize(("off", "refused"), [(1e-10, False), (1e-8, True)])
def test_rotations_to_rounding(off: float, refused: bool) -> None:
    drawn = {"a": ca.SX(np.diag([1.0, 1.0, 1.0 + off, 1.0]))}
    if not refused:
        assert cc.LagrangianSystem(ca.sumsqr(ROD.qdot), 0.0, [ROD], drawn=drawn).drawn
        return
    with pytest.raises(DescriptionError, match="a rotation and a row"):
        cc.LagrangianSystem(ca.sumsqr(ROD.qdot), 0.0, [ROD], drawn=drawn)
