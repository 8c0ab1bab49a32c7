"""References from files: smoothing against motions that are known, formats, and broken files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import ConcurError, DescriptionError
from concur.outputs.references import circle, from_file, hold, moving, planar, polynomial, table
from concur.outputs.references._file import WINDOW, _Fit
from concur.outputs.references._motions import logarithm

TIMES = np.arange(0.0, 4.0, 0.01)


def path(size: int, seed: int = 3) -> cc.outputs.references.Reference:
    """A smooth motion in R^n: a polynomial of the time."""
    scale = np.array([1.0, 0.4, 0.05, 8e-3, -4e-3, 3e-4])[:, None]
    return polynomial(np.random.default_rng(seed).normal(size=(6, size)) * scale)


TWIST = (0.02, 0.1, -0.05, 0.3, -0.2, 0.25)
MOTIONS = {
    "R": path(1),
    "R3": path(3),
    "SO2": path(1),
    "SE2": planar(path(3)),
    "SO3": moving(hold([0.1, 0.2, 0.3, 0.927361849549570], group="SO3"), TWIST),
    "SE3": moving(circle([0.1, 0.2, 0.3], 0.4, 5.0, attitude=(0, 0, 0, 1), group="SE3"), TWIST),
    "R3xSO3": moving(
        circle([0.1, 0.2, 0.3], 0.4, 5.0, attitude=(0, 0, 0, 1), group="R3xSO3"), TWIST
    ),
}


def written(folder: Path, exact: cc.outputs.references.Reference, digits: int) -> Path:
    file = folder / "path.csv"
    rows = np.column_stack([TIMES, exact.sample(TIMES)[0]])
    np.savetxt(file, rows, fmt=f"%.{digits}f", delimiter=",")
    return file


@pytest.mark.parametrize("group", MOTIONS)
def test_rounded_samples_give_the_motion_and_not_their_rounding(group: str, tmp_path: Path) -> None:
    exact = MOTIONS[group]
    file = written(tmp_path, exact, 5)
    smooth = from_file(file, group=group)
    inner = TIMES[40:-40] + 0.003
    truth, found = exact.sample(inner), smooth.sample(inner)
    ways = logarithm(truth[0], found[0], {"R": "R1"}.get(group, group))
    assert np.abs(ways).max() < 1e-5
    assert np.abs(found[2] - truth[2]).max() < 2e-3
    rows = np.loadtxt(file, delimiter=",")
    rough = table(rows[:, 0], rows[:, 1:], group=group).sample(inner)[2]
    noise = np.sqrt(np.mean(np.sum((rough - truth[2]) ** 2, axis=1)))
    # What is said of the noise is what it is, within a factor of two.
    told = np.linalg.norm(list(smooth.smoothing.noise_of_samples.values()))
    assert 0.5 < noise / told < 2.0
    left = np.sqrt(np.mean(np.sum((found[2] - truth[2]) ** 2, axis=1)))
    assert left < noise / 100
    assert len(smooth.pieces().knots) < len(TIMES) / 8


def test_samples_without_noise_are_kept(tmp_path: Path) -> None:
    exact = MOTIONS["R3"]
    found = from_file(written(tmp_path, exact, 16), group="R3")
    assert found.smoothing is None
    assert not found.notes
    assert np.abs(found.sample(TIMES)[0] - exact.sample(TIMES)[0]).max() < 1e-12


@pytest.mark.parametrize("tolerance", [1e-4, 1e-5, 6e-6])
def test_tolerance_holds_for_every_sample(tolerance: float, tmp_path: Path) -> None:
    file = written(tmp_path, MOTIONS["R"], 5)
    smooth = from_file(file, tolerance, group="R")
    times, places = np.loadtxt(file, delimiter=",").T
    far = np.abs(smooth.sample(times)[0][:, 0] - places).max()
    assert far <= 1.03 * tolerance
    assert smooth.smoothing.deviation["m"] <= tolerance


def test_tolerance_below_the_rounding_is_refused_with_what_is_possible(tmp_path: Path) -> None:
    file = written(tmp_path, MOTIONS["R"], 3)
    with pytest.raises(
        ConcurError, match=r"`smooth` = 1e-05 m .*, got one 0\.000\d+ m off at t = "
    ):
        from_file(file, 1e-5, group="R")


@pytest.mark.extended  # by default from rest to rest: `test_rounded_poses_at_100_hz_cost_no_torque`
def test_torque_is_that_of_the_motion(tmp_path: Path) -> None:
    """A law that follows rounded poses at 100 Hz needs the torque of the exact motion."""
    robot = cc.robots.free_flyer()
    model = cc.reduce(robot)
    servo = cc.Servo(model, [cc.Output("hand", "tool", "R3xSO3")], 9.0, 6.0)
    q = robot.neutral()
    q[7:13] = 0.3, 0.8, -1.2, 0.2, 0.7, 0.1
    place = robot.pose(q, "tool")
    start = [*place[:3, 3], *Rotation.from_matrix(place[:3, :3]).as_quat()]
    exact = polynomial(
        [
            np.zeros(6),
            np.zeros(6),
            (0.02, -0.03, 0.01, 0.02, 0.03, -0.04),
            (-0.002, 0.003, -0.001, 0.0, 0.0, 0.001),
        ],
        start=start,
        group="R3xSO3",
    )
    smooth = from_file(written(tmp_path, exact, 5), group="R3xSO3")
    peaks = []
    for reference in (exact, smooth):
        run = cc.simulate(robot, servo, reference, 3.0, q, np.zeros(model.ns), dt=5e-3)
        peaks.append(np.abs(run.u).max(axis=0))
    assert np.abs(peaks[1] / peaks[0] - 1.0).max() < 0.05


FORMATS = {
    "columns.csv": lambda t, x: (
        "z;t;x;y\n"
        + "".join(
            f"{c[2]!r};{s!r};{c[0]!r};{c[1]!r}\n"
            for s, c in zip(t.tolist(), x.tolist(), strict=True)
        )
    ),
    "bare.txt": lambda t, x: (
        "# a comment\n"
        + "".join(
            f"{s!r} {c[0]!r} {c[1]!r} {c[2]!r}\n"
            for s, c in zip(t.tolist(), x.tolist(), strict=True)
        )
    ),
    "tabs.csv": lambda t, x: (
        "time\tx\ty\tz\r\n"
        + "".join(
            f"{s!r}\t{c[0]!r}\t{c[1]!r}\t{c[2]!r}\r\n"
            for s, c in zip(t.tolist(), x.tolist(), strict=True)
        )
    ),
}


@pytest.mark.parametrize("name", [*FORMATS, "array.npy", "arrays.npz"])
def test_formats_give_the_same_motion(name: str, tmp_path: Path) -> None:
    exact, file = MOTIONS["R3"], tmp_path / name
    places = exact.sample(TIMES)[0]
    if name == "array.npy":
        np.save(file, np.column_stack([TIMES, places]))
    elif name == "arrays.npz":
        np.savez(file, poses=places, t=TIMES)
    else:
        file.write_text(FORMATS[name](TIMES, places), newline="")
    found = from_file(file, group="R3").sample(TIMES)[0]
    assert np.abs(found - places).max() < 1e-12


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    file = tmp_path / "both.csv"
    places = MOTIONS["R3"].sample(TIMES)[0]
    np.savetxt(file, np.column_stack([places, TIMES]), delimiter=",", header="a,b,c,s", comments="")
    found = from_file(file, columns=["s", "c", "a"]).sample(TIMES)[0]
    assert np.abs(found - places[:, [2, 0]]).max() < 1e-12


GOOD = "t,x\n0,0\n1,1\n2,4\n3,9\n"
BROKEN = {
    "no file": None,
    "empty": "",
    "names only": "t,x\n",
    "one row": "t,x\n0,0\n",
    "a word": GOOD.replace("4", "four"),
    "a row too short": GOOD.replace("2,4", "2"),
    "a decimal comma": GOOD.replace("2,4", "2,4,5"),
    "times that fall": GOOD.replace("2,4", "0.5,4"),
    "times twice": GOOD.replace("2,4", "1,4"),
    "nan": GOOD.replace("4", "nan"),
    "infinite": GOOD.replace("4", "1e400"),
    "too large": GOOD.replace("4", "1e12"),
    "too few columns": "t\n0\n1\n",
    "too many columns": "0,0,0\n1,1,1\n",
    "not text": b"\xff\xfe\x00",
    "a zip": b"PK\x03\x04",
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("ending", [".csv", ".npy", ".npz"])
def test_broken_files_are_refused_with_their_name(name: str, ending: str, tmp_path: Path) -> None:
    file, content = tmp_path / f"path{ending}", BROKEN[name]
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConcurError, match=r"from_file|path\."):
        from_file(file, group="R")


POSES = "# a comment\n\nt,x,y,z,qx,qy,qz,qw\n" + "".join(
    f"{0.01 * k:.2f},0,0,0,0,0,0,1\n" for k in range(60)
)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("0.05,0,", "0.05,nan,", r"finite numbers in line 9, got 0\.05, nan, 0,"),
        ("0.05,0,", "0.05,,", r"8 numbers in line 9, got an empty cell"),
        ("0.05,0,", "0.05,5m,", r"8 numbers in line 9, got 5m"),
        ("0.05,0,", "0.05,0,0,", r"8 numbers in line 9, got 9 columns"),
        ("0.05,0,", "0.03,0,", r"in line 9, got 0\.03 s after 0\.04 s"),
        ("0.05,0,", "0.0400009,0,", r"by at least 1e-06 s in line 9"),
        ("0.05,0,", "0.0400011,0,", ""),
        ("0.05,0,0,0,0,0,0,1\n", "0.05,0,0,0,0,0,0,1.0011\n", r"in line 9, got the norm 1\.0011"),
        ("0.05,0,0,0,0,0,0,1\n", "0.05,0,0,0,0,0,0,1.0009\n", ""),
        ("qx,qy,qz,qw", "rx,ry,rz,other", ""),  # in order
        (",qw\n", "\n", "as quaternions"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    file, text = tmp_path / "poses.csv", POSES.replace(old, new, 1)
    if new == "\n":  # rotation vectors in place of quaternions
        text = text.replace(",0,0,0,1\n", ",0,0,0\n")
    file.write_text(text)
    if not words:
        assert from_file(file, group="R3xSO3").span == (0.0, 0.59)
        return
    with pytest.raises(DescriptionError, match=rf"poses\.csv: expected .*{words}"):
        from_file(file, group="R3xSO3")


def test_a_sample_apart_from_all_others_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, MOTIONS["R3"], 5)
    lines = file.read_text().splitlines()
    cells = lines[220].split(",")
    lines[220] = ",".join([*cells[:2], str(float(cells[2]) + 0.2), cells[3]])
    file.write_text("\n".join(lines))
    with pytest.raises(DescriptionError, match=r"off at t = 2\.2 s \(line 221\)"):
        from_file(file, group="R3")


@pytest.mark.parametrize(("steps", "told"), [(9.9, False), (10.1, True)])
def test_gaps_between_samples_are_told(steps: float, told: bool, tmp_path: Path) -> None:
    t = TIMES + (steps - 1.0) * 0.01 * (TIMES > 1.0)
    file = tmp_path / "gap.npy"
    np.save(file, np.column_stack([t, np.sin(t)]))
    warnings = from_file(file, group="R").warnings
    assert bool(warnings) is told
    assert not told or warnings[0].startswith("no samples for 0.101 s after t = 1 s (row 101)")


@pytest.mark.by_default(1)
@pytest.mark.parametrize("seed", range(3))
def test_rounded_poses_at_100_hz_cost_no_torque(seed: int, tmp_path: Path) -> None:
    """From rest to rest, with samples that do not change at both ends: as planners write them."""
    rng = np.random.default_rng(seed)
    robot = cc.robots.free_flyer()
    model = cc.reduce(robot, momentum=rng.normal(size=6) * 0.1)
    law = cc.Servo(model, [cc.Output("hand", "tool", "R3xSO3")], 4.0, 4.0)
    q = robot.neutral()
    q[7:13] = 0.3, 0.8, -1.2, 0.2, 0.7, 0.1
    start = law.output(q)
    turn = Rotation.from_rotvec(rng.uniform(-0.2, 0.2, 3)) * Rotation.from_quat(start[3:])
    end = np.append(start[:3] + rng.uniform(-0.1, 0.1, 3), turn.as_quat())
    exact = cc.references.rest_to_rest(start, end, 5.0, begin=0.5, group="R3xSO3")
    times, file = np.arange(0.0, 6.005, 0.01), tmp_path / "hand.csv"
    rows = np.column_stack([times, exact.sample(times)[0]])
    np.savetxt(file, rows, "%.5f", ",", header="t,x,y,z,qx,qy,qz,qw", comments="")
    smooth = from_file(file, group="R3xSO3")
    assert np.abs(logarithm(exact.sample(times)[0], smooth.sample(times)[0], "R3xSO3")).max() < 2e-5
    found, peaks = law.start(exact, near=q), []
    for one in (exact, smooth):
        run = cc.simulate(robot, law, one, 6.0, found.q, found.s, dt=5e-3)
        peaks.append(np.abs(run.u).max(axis=0))
        rows_ = run.findings(cc.simulation.Tolerances(final_error=1e-4))
        assert not [row.quantity for row in rows_ if row.holds is False]
    assert np.abs(peaks[1] - peaks[0]).max() < 0.03 * peaks[0].max()


@pytest.mark.parametrize("pieces", [1, 7, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW])
def test_noise_of_a_long_spline_is_computed_on_a_window(pieces: int) -> None:
    """Against the whole operator from samples to acceleration, column by column."""
    times = np.arange(0.0, 10.0, 0.02)
    found = _Fit(times, np.sin(times)[:, None], "R1").noise(pieces)
    impulses = _Fit(times, np.eye(len(times)), f"R{len(times)}").spline(pieces)(times, 2)
    whole = np.sqrt(np.sum(impulses**2) / len(times))
    assert found == pytest.approx(whole, rel=1e-7 if pieces <= WINDOW else 0.02)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("seed", range(4))
def test_pieces_are_as_few_as_the_noise_allows(seed: int) -> None:
    """At most a fifth more than the fewest with which the acceleration lacks no more than noise."""
    rng = np.random.default_rng(seed)
    times = np.arange(0.0, 8.0, 0.01)
    rows = np.sin(np.outer(times, rng.uniform(2.0, 9.0, 2))) + rng.normal(0.0, 1e-4, (800, 2))
    fit = _Fit(times, rows, "R2")
    scatter = fit.scatter(100)
    first = 5
    found = fit.balanced(first, scatter, 200)
    good = [
        n for n in range(first, found + 1)
        if fit.bent(n, scatter)["m"] <= fit.noise(n) * scatter["m"]
    ]  # fmt: skip
    assert found in good
    assert good[0] <= found <= np.ceil(1.2 * good[0])
    assert fit.balanced(good[0], scatter, 200) == good[0]
    assert fit.balanced(first, scatter, good[0] - 1) == good[0] - 1


def test_task_follows_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "paths").mkdir()
    exact = MOTIONS["SE2"]
    written(tmp_path / "paths", exact, 5)
    task = tmp_path / "task.toml"
    task.write_text(TASK)
    loaded = cc.load_task(task)
    places = loaded.reference.sample(TIMES)[0], exact.sample(TIMES)[0]
    assert np.abs(logarithm(*places, "SE2")).max() < 1e-4
    assert loaded.reference.notes[0].startswith("pose: 400 samples")
    task.write_text(TASK.replace("path.csv", "no.csv"))
    with pytest.raises(ConcurError, match=r"no\.csv"):
        cc.load_task(task)


TASK = """
name = "file"
robot = "planar_floater"
[[outputs]]
name = "pose"
body = "BODY"
group = "SE2"
stiffness = 1.0
damping = 2.0
[reference.pose]
kind = "file"
file = "paths/path.csv"
smooth = 5e-5
[simulation]
duration = 1.0
""".replace("BODY", cc.robots.planar_floater().bodies[-1].name)


def test_fast_turns_are_followed_between_the_knots(tmp_path: Path) -> None:
    """A spin of a turn per second: pieces of the spline are longer than half a turn."""
    still = hold([0.1, 0.2, 0.3, 0.927361849549570], group="SO3")
    exact = moving(still, (0, 0, 0, 2.0, -4.0, 4.4))
    smooth = from_file(written(tmp_path, exact, 5), group="SO3")
    inner = TIMES[40:-40] + 0.003
    truth, found = exact.sample(inner), smooth.sample(inner)
    assert np.abs(logarithm(truth[0], found[0], "SO3")).max() < 2e-5
    assert np.abs(found[1] - truth[1]).max() < 1e-3


@pytest.mark.parametrize("speed", [1.0, 3.0, 6.0, 12.0])
@pytest.mark.parametrize("tolerance", [1e-3, 0.1, 0.3, 1.0])
def test_tolerance_of_turns_holds_for_every_sample(
    speed: float, tolerance: float, tmp_path: Path
) -> None:
    still = hold([0.1, 0.2, 0.3, 0.927361849549570], group="SO3")
    exact = moving(still, (0, 0, 0, 0.3 * speed, 0.5 * speed, 0.81 * speed))
    found = from_file(written(tmp_path, exact, 5), tolerance, group="SO3").sample(TIMES)[0]
    ways = np.linalg.norm(logarithm(exact.sample(TIMES)[0], found, "SO3"), axis=1)
    assert ways.max() <= 1.03 * tolerance


def test_noise_that_the_manual_states(tmp_path: Path) -> None:
    """Digits of 1e-5 m at 100 Hz are about 0.1 m/s^2."""
    smooth = from_file(written(tmp_path, MOTIONS["R"], 5), group="R")
    assert 0.09 < smooth.smoothing.noise_of_samples["m"] < 0.13


@pytest.mark.parametrize(("start", "shifted"), [(0.99e8, False), (1.01e8, True)])
def test_times_of_a_clock_count_from_the_first(start: float, shifted: bool, tmp_path: Path) -> None:
    t = np.arange(0.0, 2.0, 0.02)
    path = tmp_path / "hand.csv"
    np.savetxt(path, np.column_stack([t + start, np.sin(t)]), "%.6f", ",")
    first = 0.0 if shifted else start
    assert from_file(path)(first + 1.0).pose[0] == pytest.approx(np.sin(1.0), abs=1e-4)


W_FIRST = "t,px,py,pz,w,x,y,z"
"""Quaternions with w first, under names that say so."""


@pytest.mark.parametrize(
    ("names", "group", "taken"),
    [
        ("t [s],x [m],y [m],z [m],temperature_deg", "R3", True),
        ("time_s,x_m,y_m,z_m,other", "R3", True),
        ("t [h],x,y,z,other", "R3", False),
        ("t [m],x,y,z,other", "R3", False),
        ("t,x [in],y [mm],z [mm],other", "R3", False),
        ("t,x [m],y [rad],z [m],other", "R3", False),
        ("t,x,y,z,qx,qy,qz,qw_deg", "SE3", False),
        ("t,px,py,pz", "R3", True),
        (W_FIRST, "SE3", False),
        (W_FIRST.replace("w,x,y,z", "qx,qy,qz,qw"), "SE3", True),
    ],
)
def test_units_and_orders_that_the_names_tell(
    names: str, group: str, taken: bool, tmp_path: Path
) -> None:
    """Another unit, or another order than that of the coordinates, is refused, not followed."""
    t = np.arange(0.0, 2.0, 0.02)
    still = np.zeros_like(t)
    rows = np.column_stack([t, np.sin(t), np.cos(t), still, still, still, still, still + 1.0])
    width = len(names.split(","))
    path = tmp_path / "hand.csv"
    for start in (0.0, 1.7e9):  # seconds of a clock count from the first sample
        shifted = rows[:, :width] + start * (np.arange(width) == 0)
        np.savetxt(path, shifted, "%.6f", ",", header=names, comments="")
        if taken:
            place = cc.references.from_file(path, group=group)(1.0).pose
            assert place[:3] == pytest.approx([np.sin(1.0), np.cos(1.0), 0.0], abs=1e-4)
        else:
            with pytest.raises(
                DescriptionError, match=r"hand\.csv: expected (times|[yx]|qw|the columns) "
            ):
                cc.references.from_file(path, group=group)


@pytest.mark.parametrize(
    ("names", "group", "factors"),
    [
        ("t [ms],x [mm],y_cm,z (m)", "R3", (1e-3, 1e-3, 1e-2, 1.0)),
        ("time_us,x_mm,y_mm,theta [deg]", "SE2", (1e-6, 1e-3, 1e-3, np.pi / 180.0)),
        ("stamp_ns,y [cm],x [mm],heading_rad", "SE2", (1e-9, 1e-3, 1e-2, 1.0)),
        ("t_s,a_deg,b_mm", None, (1.0, np.pi / 180.0, 1e-3)),
    ],
)
@pytest.mark.parametrize("start", [0.0, 1.7e9])
def test_columns_are_read_in_their_units(
    names: str, group: str | None, factors: tuple[float, ...], start: float, tmp_path: Path
) -> None:
    t = np.arange(0.0, 2.0, 0.02)
    exact = np.column_stack([np.sin(t), np.cos(t), 0.3 * np.sin(2.0 * t)])[:, : len(factors) - 1]
    named = dict(zip(names.split(","), (t + start, *exact.T), strict=True))
    if "stamp_ns" in named:  # y comes before x
        named["y [cm]"], named["x [mm]"] = exact[:, 1], exact[:, 0]
        factors = (factors[0], factors[2], factors[1], factors[3])
    rows = np.column_stack([x / f for x, f in zip(named.values(), factors, strict=True)])
    np.savetxt(tmp_path / "hand.csv", rows, "%.9f", ",", header=names, comments="")
    found = from_file(tmp_path / "hand.csv", group=group)
    assert found.span == pytest.approx((0.0, t[-1]), abs=1e-5)
    middle = found(1.0).pose
    assert middle == pytest.approx(exact[50], abs=2e-4 if start else 1e-7)


def test_stated_noise_of_a_long_motion_is_the_noise_it_has(tmp_path: Path) -> None:
    """100 s with many pieces: the computation needs neither the time nor the memory of all."""
    t = np.arange(0.0, 100.0, 0.01)
    rows = np.column_stack([np.sin(3.0 * t), np.cos(2.0 * t)])
    rows += np.random.default_rng(2).normal(0.0, 1e-3, rows.shape)
    path = tmp_path / "long.npy"
    np.save(path, np.column_stack([t, rows]))
    motion = cc.references.from_file(path)
    assert motion.smoothing.pieces > 100
    _, _, found = motion.sample(t)
    off = found - np.column_stack([-9.0 * np.sin(3.0 * t), -4.0 * np.cos(2.0 * t)])
    # The scatter and the noise are those of both coordinates together.
    noise = np.sqrt(np.mean(np.sum(off**2, axis=1)))
    assert 0.5 < noise / motion.smoothing.noise["m"] < 1.7
    assert noise < 0.03  # 0.019 is the best of splines with any number of equal pieces


def test_a_coordinate_that_rests_is_followed_too(tmp_path: Path) -> None:
    """Its scatter is that of arithmetic alone, which is no tolerance."""
    t = np.arange(0.0, 8.0, 0.01)
    turn = np.array([-0.7688, -0.5722, -0.207, 0.1968])
    rows = np.column_stack([np.sin(t), np.cos(t), 0.1 * t, np.tile(turn, (len(t), 1))])
    path = tmp_path / "hand.csv"
    np.savetxt(path, np.column_stack([t, rows]), fmt="%.5f", delimiter=",")
    for group in ("SE3", "R3xSO3"):
        motion = cc.references.from_file(path, group=group)
        sample = motion(2.345)
        assert np.abs(sample.twist[3:]).max() < 1e-9
        assert np.abs(sample.acceleration[3:]).max() < 1e-7
    assert np.linalg.norm(sample.acceleration[:3]) == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize(("count", "smoothed"), [(39, False), (40, True)])
def test_few_samples_are_kept(count: int, smoothed: bool, tmp_path: Path) -> None:
    file = tmp_path / "few.csv"
    times = TIMES[:count]
    np.savetxt(file, np.column_stack([times, np.sin(times)]), fmt="%.4f", delimiter=",")
    assert (from_file(file, group="R").smoothing is not None) is smoothed


@pytest.mark.parametrize(("digits", "smoothed"), [(6, True), (9, False)])
def test_scatter_counts_where_it_is_felt(digits: int, smoothed: bool, tmp_path: Path) -> None:
    """Noise of the acceleration above a thousandth of the acceleration is smoothed."""
    exact = MOTIONS["R"]
    found = from_file(written(tmp_path, exact, digits), group="R")
    assert (found.smoothing is not None) is smoothed
    strength = np.sqrt(np.mean(exact.sample(TIMES)[2] ** 2))
    noise = 0.11 * 10.0 ** (5 - digits)
    assert bool(noise > 1e-3 * strength) is smoothed


@pytest.mark.parametrize(("digits", "smoothed"), [(9, True), (16, False)])
def test_a_straight_line_has_no_acceleration_to_compare_with(
    digits: int, smoothed: bool, tmp_path: Path
) -> None:
    file = tmp_path / "line.csv"
    times = np.linspace(0.0, 30.0, 301)
    rows = np.column_stack([times, times / 7.0, 0.0 * times])
    np.savetxt(file, rows, fmt=f"%.{digits}f", delimiter=",")
    found = from_file(file, group="R2")
    assert (found.smoothing is not None) is smoothed
    assert np.abs(found.sample(times)[0] - rows[:, 1:]).max() < 2e-9
