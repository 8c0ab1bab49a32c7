"""The viewers of runs and robots show what their sliders ask for."""

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import websockets.asyncio.server
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.errors import ConcurError
from concur.io import load_task
from concur.robot import Mimic
from concur.show.style import ARM, COM
from concur.show.viewer import Film, RobotViewer
from concur.show.viewer._scene import color
from concur.show.viewer._server import LOCAL, guarded_sockets
from tests.ports import free_port

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def task():
    return load_task(EXAMPLES / "rover_arm.toml")


@pytest.fixture(scope="module")
def run(task):
    start = task.q0, task.s0
    return cc.simulate(task.robot, task.servo, task.reference, 0.2, *start, dt=0.01)


def until(condition):
    """Wait for the thread of a viewer."""
    end = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < end, "the viewer did not follow"
        time.sleep(0.01)


def hand_of(robot, output, q):
    return (np.asarray(robot.pose(q, output.body)) @ [*output.point, 1.0])[:3]


def test_slider_of_time_moves_robot_references_and_curves(run):
    hand = run.servo.outputs[-1]
    with run.view(browser=False) as viewer:
        scene = viewer.scenes[0]
        for row in (7, 20, 0):
            viewer.slider.value = round(float(run.t[row]), 4)
            place = hand_of(run.robot, hand, run.q[row])
            until(lambda place=place: np.allclose(scene.hands[-1].position, place, atol=1e-9))
            until(lambda row=row: np.allclose(scene.demands[-1].position, run.reference[row, -3:]))
        path = np.array([hand_of(run.robot, hand, q) for q in run.q])
        np.testing.assert_allclose(scene.trails[-1].points[:, 0], path[:-1], atol=1e-6)
        np.testing.assert_allclose(
            scene.references[-1].points[0], run.reference[:2, -3:], atol=1e-6
        )
        viewer.slider.value = 0.1
        error = viewer.plots["Tracking error (mm, mrad)"]
        until(lambda: 0.0997 < error.handle.data[0][np.nanargmax(error.handle.data[-1])] < 0.1003)
        times, *curves, line = error.handle.data
        at = np.nanargmax(line)
        assert np.isfinite(line).sum() == 2
        assert np.ptp(times[np.isfinite(line)]) == 0.0
        expected = [np.interp(times[at], run.t, 1e3 * column) for column in run.error.T]
        np.testing.assert_allclose([curve[at] for curve in curves], expected)
        assert list(viewer.plots) == [
            "Tracking error (mm, mrad)",
            "Outputs (m)",
            "Torques (N m)",
            "Decoupling margin (1)",
        ]
        assert not scene.com.visible
        viewer.com.value = viewer.frames.value = True
        until(lambda: scene.com.visible and all(frame.visible for frame in scene.frames))
        masses = [body.inertia.mass for body in run.robot.bodies]
        centres = [
            (np.asarray(run.robot.pose(run.q[10], b.name)) @ [*b.inertia.com, 1.0])[:3]
            for b in run.robot.bodies
        ]
        np.testing.assert_allclose(scene.com.position, np.average(centres, 0, masses), atol=1e-9)


def test_play_runs_to_the_end_and_starts_again(run):
    with run.view(browser=False) as viewer:
        viewer.speed.value = "0.5"
        start = time.monotonic()
        viewer.toggle()
        assert (viewer.playing, viewer.play.label) == (True, "Pause")
        until(lambda: not viewer.playing)
        assert time.monotonic() - start > 0.9 * 0.2 / 0.5
        assert (viewer.now, viewer.play.label) == (run.t[-1], "Play")
        viewer.toggle()
        assert viewer.now < run.t[-1]


def test_a_second_run_is_a_ghost_or_beside(run):
    with run.view(run, browser=False) as viewer:
        first, second = viewer.scenes
        assert first.parts[0].opacity is None
        assert second.parts[0].opacity < 1.0
        np.testing.assert_array_equal(second.world.position, 0.0)
        viewer.beside.value = True
        until(lambda: np.linalg.norm(second.world.position) > 1.9 * second.size)
        assert len(viewer.plots["Outputs (m)"].handle.data) == 1 + 3 * run.pose.shape[1] + 1


def test_film_of_a_file_is_that_of_the_run(run, tmp_path):
    run.save(tmp_path / "run.h5")
    film, expected = Film.read(str(tmp_path)), Film.of(run)
    assert film.robot == run.robot
    assert film.outputs == tuple(run.servo.outputs)
    np.testing.assert_array_equal(film.q, run.q)
    for name, (values, columns) in expected.values.items():
        np.testing.assert_array_equal(film.values[name][0], values)
        assert list(film.values[name][1]) == list(columns)


def test_sliders_of_joints_move_the_robot(task):
    servo = task.servo
    with task.robot.view(task.q0, servo=servo, browser=False) as viewer:
        assert viewer.outputs == tuple(servo.outputs)
        assert len(viewer.sliders) == task.robot.nq
        for name, value in (("forearm", -0.75), ("chassis.heading", 1.25)):
            viewer.sliders[name].value = value
        q = task.q0.copy()
        q[task.robot.q_slice("forearm")] = -0.75
        q[2] = 1.25
        place = hand_of(task.robot, task.outputs[-1], q)
        until(lambda: np.allclose(viewer.scene.hands[-1].position, place, atol=2e-3))
        until(lambda: ", ".join(f"{x:.3f}" for x in place) in viewer.text.content)
        until(lambda: f"**Decoupling margin**: {servo.margin(q):.3g}" in viewer.text.content)
        viewer.show(task.q0)
        until(lambda: np.allclose(viewer.q, task.q0))


def test_warning_near_singular_and_outside_limits(task):
    servo = task.servo
    with RobotViewer(task.robot, task.q0, task.outputs, servo, browser=False) as viewer:
        assert not viewer.warnings(task.q0)
        straight = task.q0.copy()
        straight[task.robot.q_slice("forearm")] = 0.0  # upper arm and forearm in line
        for angle in np.geomspace(1e-4, 1.0, 30):
            straight[task.robot.q_slice("forearm")] = angle
            found = viewer.warnings(straight)
            assert bool(found) == (servo.margin(straight) < viewer.near)
            assert not found or ("near" in found[0]) == (
                servo.margin(straight) >= servo.margins.refused_below
            )
        viewer.sliders["forearm"].value = 0.0
        until(lambda: viewer.scene.bars[-1].color == color(COM))
        until(lambda: "⚠ singular" in viewer.text.content)
        viewer.show(task.q0)
        until(lambda: viewer.scene.bars[-1].color == color(ARM))
    arm = cc.robots.station_arm()
    limited = next(b for b in arm.bodies if b.joint.nq == 1 and np.isfinite(b.limits[0]).all())
    low, high = limited.limits[0]
    with arm.view(browser=False) as viewer:
        slider = viewer.sliders[limited.name]
        assert slider.min < low < high < slider.max
        q = arm.neutral()
        for value, outside in ((low - 1e-6, 1), (low, 0), (high, 0), (high + 1e-6, 1)):
            q[arm.q_slice(limited.name)] = value
            found = [line for line in viewer.warnings(q) if line.startswith(limited.name)]
            assert len(found) == outside


def test_free_spherical_and_following_joints():
    inertia = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    bodies = [
        cc.Body("base", cc.joints.Free(), inertia=inertia),
        cc.Body("ball", cc.joints.Spherical(), parent="base", inertia=inertia),
        cc.Body("a", cc.joints.Revolute((0, 0, 1)), parent="ball", inertia=inertia),
        cc.Body("b", cc.joints.Revolute((0, 0, 1)), parent="a", inertia=inertia),
    ]
    robot = cc.Mechanism("r", bodies, mimics=[Mimic("b", "a", -2.0, 0.5)])
    with robot.view(browser=False) as viewer:
        assert len(viewer.sliders) == 6 + 3 + 1
        for name, value in (("base.rx", 0.5), ("base.rz", -0.25), ("ball.ry", 1.0), ("a", 0.3)):
            viewer.sliders[name].value = value
        q = viewer.q
        expected = Rotation.from_rotvec([0.5, 0.0, -0.25]).as_matrix()
        np.testing.assert_allclose(robot.pose(q, "base")[:3, :3], expected, atol=1e-12)
        turned = expected @ Rotation.from_rotvec([0.0, 1.0, 0.0]).as_matrix()
        np.testing.assert_allclose(robot.pose(q, "ball")[:3, :3], turned, atol=1e-12)
        np.testing.assert_allclose(q[-2:], [0.3, -0.1])
        viewer.show(q)
        np.testing.assert_allclose(viewer.q, q, atol=1e-12)


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "neither a file nor a robot"),
        (["nothing.h5"], "no file of this name"),
        (["nothing.toml"], "no file"),
        (["rover_arm", "other.h5"], "expected a run, as a second one was given"),
        (["."], "no file of this name"),
        (["bad.h5"], "expected the file of a run"),
        (["rover_arm", "--port", "70000"], "free port"),
        (["rover_arm", "--still", "nowhere/a.png"], "a file that can be written"),
        (["rover_arm", "--still", "a.xyz"], "is not supported (supported formats"),
    ],
)
def test_bad_input_is_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.h5").write_text("no HDF5")
    done = CliRunner().invoke(main, ["view", "--no-browser", *words])
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_in_use_is_refused_and_free_after_close(run):
    with run.view(browser=False, port=free_port()) as viewer:
        port = viewer.server.get_port()
        with pytest.raises(ConcurError, match="free port"):
            run.view(browser=False, port=port)
    with run.view(browser=False, port=port) as viewer:
        assert viewer.url == f"http://127.0.0.1:{port}"


@pytest.mark.extended
def test_still_pictures(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run.save("run.h5")
    for subject in ("run.h5", str(EXAMPLES / "rover_arm.toml")):
        done = CliRunner().invoke(main, ["view", subject, "--still", "a.png"])
        assert done.exit_code == 0, done.stderr
        assert Path("a.png").read_bytes()[1:4] == b"PNG"
        Path("a.png").unlink()


@pytest.mark.extended
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is a signal there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_the_command_also_in_the_background(number):
    ignored = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "  # as shells do
    code = f"{ignored}from concur.cli import main; main()"
    command = [sys.executable, "-c", code, "view", "planar_floater", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            line = process.stdout.readline().decode()
            process.send_signal(number)
            assert process.wait(20.0) == 0, process.stderr.read()
        finally:
            process.kill()
    assert line.startswith("http://127.0.0.1:")
    assert "planar_floater" in line


# --- in a browser ---------------------------------------------------------------------------------


@contextlib.contextmanager
def page_of(browser, viewer):
    with contextlib.closing(browser.new_page(viewport={"width": 1400, "height": 800})) as page:
        page.set_default_timeout(60_000)
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda entry: faults.append(entry.text) if entry.type == "error" else None,
        )
        page.goto(viewer.url)
        yield page
        assert not faults


def picture(page):
    """Pixels beside the panel."""
    import io

    from matplotlib.image import imread

    shot = page.screenshot(clip={"x": 350, "y": 100, "width": 600, "height": 650})
    return imread(io.BytesIO(shot))[..., :3]


@pytest.mark.browser
def test_run_plays_in_a_browser(run, browser):
    with run.view(browser=False) as viewer, page_of(browser, viewer) as page:
        page.get_by_role("button", name="Play", exact=True).wait_for()
        page.locator(".uplot canvas").first.wait_for()
        for _ in range(30):
            page.wait_for_timeout(500)
            if np.unique(np.round(50 * picture(page)).reshape(-1, 3), axis=0).shape[0] > 50:
                break
        viewer.speed.value = "0.1"
        before = picture(page)
        page.get_by_role("button", name="Play", exact=True).click()
        page.get_by_role("button", name="Pause", exact=True).wait_for()
        page.get_by_role("button", name="Play", exact=True).wait_for()  # it reached the end
        assert viewer.now == run.t[-1]
        page.wait_for_timeout(500)
        assert (np.abs(picture(page) - before).max(axis=2) > 0.1).sum() > 50
        viewer.close()
        page.wait_for_timeout(200)
        with pytest.raises(Exception, match="ERR_CONNECTION_REFUSED"):
            page.goto(viewer.url)


@pytest.mark.browser
def test_slider_moves_the_robot_in_a_browser(task, browser):
    made = task.robot.view(task.q0, task.outputs, browser=False)
    with made as viewer, page_of(browser, viewer) as page:
        box = page.locator("input").last  # of the last joint, the forearm
        box.wait_for()
        page.wait_for_timeout(4000)
        before = picture(page)
        box.fill("2")
        box.press("Enter")
        until(lambda: viewer.sliders["forearm"].value == 2.0)
        page.wait_for_timeout(1500)
        assert (np.abs(picture(page) - before).max(axis=2) > 0.1).sum() > 200


def test_a_viewer_whose_requests_cannot_be_checked_is_not_served():
    serve = websockets.asyncio.server.serve
    with pytest.raises(ConcurError, match="viser"), guarded_sockets(LOCAL):
        pass
    assert websockets.asyncio.server.serve is serve
