from __future__ import annotations

import os
import stat
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from concur.errors import ConcurError, UnknownNameError
from concur.show import animate
from concur.show.style import output_color
from tests.show.fake import rover_run


@pytest.fixture(scope="module")
def run():
    return rover_run(duration=3.0)


@pytest.fixture(scope="module")
def film(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("film") / "deep" / "run.gif"
    calls = []
    written = animate(run, path, fps=8, speed=2.0, progress=lambda *call: calls.append(call))
    with Image.open(written) as image:
        frames, durations = [], []
        for number in range(image.n_frames):
            image.seek(number)
            durations.append(image.info["duration"])
            frames.append(np.asarray(image.convert("RGB")).copy())
    return written, frames, durations, calls


@pytest.mark.extended
def test_gif_has_a_frame_for_each_step(film):
    _, frames, durations, calls = film
    # 3 s at double speed and 8 frames per second: every 0.25 s, both ends included.
    assert len(frames) == 13
    assert calls == [(done, 13) for done in range(1, 14)]
    assert sum(durations) == pytest.approx(13 * 125, abs=10)


@pytest.mark.extended
def test_traces_have_the_colours_of_the_outputs(film):
    last = film[1][-1][30:-60].astype(int)
    for number in range(2):
        color = np.round(255 * np.array(to_rgb(output_color(number))))
        assert np.sum(np.all(np.abs(last - color) < 12, axis=-1)) > 100


@pytest.mark.extended
@pytest.mark.parametrize(("drive", "least", "most"), [(0.0, 15, 200), (8.0, 0, 15)])
def test_view_follows_the_robot_on_a_long_course_only(tmp_path, drive, least, most):
    run = rover_run(duration=4.0)
    for table, column in ((run.q, 0), (run.pose, 0), (run.pose, 2)):
        table[:, column] += drive * run.t
    run.reference[:, [0, 2]] += drive * run.t[:, None]
    centres = []
    with Image.open(animate(run, tmp_path / "run.gif", fps=2)) as image:
        for number in range(image.n_frames):
            image.seek(number)
            frame = np.asarray(image.convert("RGB"))[30:-60].astype(int)
            tyres = np.argwhere(np.all(frame < 60, axis=-1) & (np.ptp(frame, axis=-1) < 8))
            assert len(tyres) > 20
            centres.append(np.median(tyres, axis=0))
    moved = np.linalg.norm(np.diff(centres, axis=0), axis=1).mean()
    assert least <= moved < most


def test_unknown_suffix_is_refused(run, tmp_path):
    with pytest.raises(UnknownNameError, match=r"\.gif or \.mp4.*'\.avi'"):
        animate(run, tmp_path / "run.avi")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "value"), [("fps", 0), ("speed", -1.0), ("fps", float("nan"))])
def test_rates_must_be_positive(run, tmp_path, name, value):
    with pytest.raises(ConcurError, match=rf"`{name}`.*positive number"):
        animate(run, tmp_path / "run.gif", **{name: value})


def test_missing_ffmpeg_names_the_cure(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConcurError, match=r"Install ffmpeg .* or write a \.gif"):
        animate(run, tmp_path / "run.mp4")


@pytest.mark.extended
def test_mp4_hands_every_frame_to_ffmpeg(run, tmp_path, monkeypatch):
    # A stand-in that stores what it is given and its arguments.
    program = tmp_path / "ffmpeg"
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys, shutil\n"
        "open(sys.argv[-1] + '.args', 'w').write(' '.join(sys.argv[1:]))\n"
        "shutil.copyfileobj(sys.stdin.buffer, open(sys.argv[-1], 'wb'))\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + os.environ["PATH"])
    written = animate(run, tmp_path / "run.mp4", fps=2)
    frames = np.frombuffer(written.read_bytes(), dtype=np.uint8).reshape(7, -1, 640, 4)
    assert np.any(frames[0] != frames[-1])
    arguments = (tmp_path / "run.mp4.args").read_text()
    assert f"-s 640x{frames.shape[1]}" in arguments
    assert frames.shape[1] % 2 == 0
    assert "-framerate 2" in arguments
