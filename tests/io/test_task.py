"""Tasks from TOML: their values, and errors with file, table, field and remedy."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur import io
from concur.errors import ConcurError, DescriptionError
from concur.files import given
from concur.io import load_task
from concur.outputs import references
from concur.reduction import StagedReduction
from concur.simulation import Tolerances

EXAMPLE = Path(__file__).parents[2] / "examples" / "rover_arm.toml"

TASK = """
name = "reach"
robot = "rover_arm"

[[outputs]]
name = "base"
body = "chassis"
group = "R2"
point = [0.25, 0.0, 0.0]
stiffness = [4.0, 5.0]
damping = 4

[[outputs]]
name = "hand"
body = "forearm"
group = "R3"
point = [0.0, 0.2, 0.0]
stiffness = 9.0
damping = 6.0

[reference.base]
kind = "polynomial"
coefficients = [[0.0, 0.0], [0.3, 0.0]]

[reference.hand]
kind = "circle"
relative_to = "base"
center = [0.15, 0.75, 0.15]
radius = 0.07
period = 10.0

[initial.q]
chassis = [-0.45, -0.1, 0.1]
upper_arm = 1.0

[initial.s]
left_wheel = 2.0

[simulation]
duration = 20.0
dt = 0.01
"""


def write(folder: Path, text: str, name: str = "reach.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def altered(old: str, new: str, text: str = TASK) -> str:
    assert text.count(old) >= 1, f"`{old}` is not in the text"
    return text.replace(old, new, 1)


def robot_text() -> str:
    return (Path(io.__file__).parents[1] / "robots" / "rover_arm.toml").read_text()


def test_a_task_is_read_as_written(tmp_path: Path) -> None:
    path = write(tmp_path, TASK)
    task = load_task(path)
    assert (task.name, task.path, task.robot.name) == ("reach", path, "rover_arm")
    assert [(o.name, o.body, o.group) for o in task.outputs] == [
        ("base", "chassis", "R2"),
        ("hand", "forearm", "R3"),
    ]
    np.testing.assert_array_equal(task.outputs[1].point, [0.0, 0.2, 0.0])
    np.testing.assert_array_equal(task.stiffness, np.diag([4.0, 5.0, 9.0, 9.0, 9.0]))
    np.testing.assert_array_equal(task.damping, np.diag([4.0, 4.0, 6.0, 6.0, 6.0]))
    np.testing.assert_array_equal(task.q0, [-0.45, -0.1, 0.1, 0.0, 0.0, 0.0, 1.0, 0.0])
    assert task.initial_velocities == {"left_wheel": 2.0}
    np.testing.assert_array_equal(task.s0, [2.0, 0.0, 0.0, 0.0, 0.0])
    assert (task.duration, task.dt, task.method, task.control_period) == (20.0, 0.01, "rk4", None)
    assert task.momentum is None
    assert task.plant is None
    assert task.tolerances == Tolerances(evaluate_after=10.0)


@pytest.mark.parametrize(
    ("extra", "limit"),
    [
        ("", 1e-6),
        ("control_period = 0.02\n", 1e-3),
        ("control_period = 0.02\n[tolerances]\nfinal_error = 2e-6\n", 2e-6),
        ("[imperfections]\nlag = 0.001\n", 1e-3),
    ],
)
def test_final_errors_of_held_torques_have_another_limit(
    extra: str, limit: float, tmp_path: Path
) -> None:
    text = TASK.replace("dt = 0.01\n", "dt = 0.01\n" + extra)
    assert load_task(write(tmp_path, text)).tolerances.final_error == limit


def test_a_task_travels_as_the_text_of_its_files(tmp_path: Path) -> None:
    """A worker has other files, or none, and makes the same task; changes travel too."""
    own = altered('robot = "rover_arm"', 'robot = "robot.toml"')
    robot, path = write(tmp_path, robot_text(), "robot.toml"), write(tmp_path, own)
    task = replace(load_task(path), duration=0.5)
    data = pickle.dumps(task)
    assert len(data) < len(TASK) + len(robot_text()) + 2000
    robot.write_text(altered("mass = 2.0", "mass = 3.0", robot_text()))
    for found in (pickle.loads(data), pickle.loads(pickle.dumps(pickle.loads(data)))):
        assert (found.duration, found.path) == (0.5, path)
        mass = found.robot.mass_matrix(found.q0)
        np.testing.assert_array_equal(mass, task.robot.mass_matrix(task.q0))
        sample = task.reference(0.1)
        q = task.robot.random(np.random.default_rng(0))
        torque = [one.servo.torque(q, one.s0, sample) for one in (task, found)]
        assert torque[0].tobytes() == torque[1].tobytes()
    assert load_task(path).robot.bodies != task.robot.bodies
    # The sidecar of a URDF file is one of its files; another one that is there meanwhile is not.
    column = """<robot name="a"><link name="b"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
    write(tmp_path, column, "a.urdf")
    output = altered('"rover_arm"', '"a.urdf"', TASK[: TASK.index("[[outputs]]")])
    floating = output + ONE_LINK
    data = pickle.dumps(load_task(write(tmp_path, floating)))
    for file in (path, robot, tmp_path / "a.urdf"):
        file.unlink()
    write(tmp_path, 'base = "fixed"\n', "a.toml")
    assert pickle.loads(data).robot.nv == 6
    with pytest.raises(DescriptionError, match="no file of this name"), given({}):
        load_task(tmp_path / "a.toml")


ONE_LINK = """
[[outputs]]
name = "pose"
body = "b"
group = "R3"
stiffness = 1.0
damping = 1.0

[reference.pose]
kind = "hold"
point = [0.0, 0.0, 0.0]

[simulation]
duration = 1.0
dt = 0.01
"""


def test_the_reference_is_the_sum_in_output_order(tmp_path: Path) -> None:
    reference = load_task(write(tmp_path, TASK)).reference
    base = references.polynomial([[0.0, 0.0], [0.3, 0.0]])
    circle = references.circle([0.15, 0.75, 0.15], 0.07, 10.0)
    for t in (0.0, 3.0, 20.0):
        sample, offset = reference(t), np.append(base(t).pose, 0.0)
        np.testing.assert_allclose(sample.pose[:2], base(t).pose)
        np.testing.assert_allclose(sample.pose[2:], circle(t).pose + offset)
        np.testing.assert_allclose(sample.twist[2:], circle(t).twist + 0.3 * np.eye(3)[0])


def test_everything_optional_is_read_too(tmp_path: Path) -> None:
    write(tmp_path, altered("mass = 1.0", "mass = 1.1", robot_text()), "heavy.toml")
    text = altered('robot = "rover_arm"', 'robot = "heavy.toml"\nmomentum = [0, 0, 0, 0, 0, 1]')
    text += """
    method = "dop853"
    control_period = 0.02
    [tolerances]
    evaluate_after = 5.0
    final_error = 1e-3
    deviation = 1e-2
    constraint = 1e-6
    margin = 1e-4
    [plant]
    file = "heavy.toml"
    """
    task = load_task(str(write(tmp_path, text)))
    assert task.robot.total_mass == pytest.approx(38.1)
    assert task.plant is not None
    assert task.plant.total_mass == pytest.approx(38.1)
    assert task.momentum is not None
    assert task.momentum.tolist() == [0, 0, 0, 0, 0, 1]
    assert (task.method, task.control_period) == ("dop853", 0.02)
    assert task.tolerances == Tolerances(5.0, 1e-3, 1e-2, 1e-6, 1e-4)


def crane_text(stages: str) -> str:
    """A crane on a car whose column turns freely."""
    return f"""
    name = "lift"
    robot = "crane.toml"
    {stages}
    [[outputs]]
    name = "nose"
    body = "steering"
    group = "R2"
    point = [0.5, 0.0, 0.0]
    stiffness = 4.0
    damping = 4.0
    [[outputs]]
    name = "tip"
    body = "boom"
    group = "R"
    axes = "z"
    point = [1.5, 0.0, 0.0]
    stiffness = 4.0
    damping = 4.0
    [reference.nose]
    kind = "hold"
    point = [0, 0]
    [reference.tip]
    kind = "hold"
    point = 2
    [initial.s]
    left_wheel = 1.0
    [simulation]
    duration = 1.0
    """


def free_column(folder: Path) -> None:
    robot = (Path(io.__file__).parents[1] / "robots" / "crane_car.toml").read_text()
    write(folder, altered('"steering", "column", ', '"steering", ', robot), "crane.toml")


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    ("stages", "read", "theta"),
    [
        ('stages = "auto"', "auto", 0.0),
        ('stages = ["column"]', ("column",), 0.0),
        ("stages = { column = -11.5 }", {"column": -11.5}, -11.5),
        ("stages = { column = [3] }", {"column": [3]}, 3.0),
        ("[stages]\ncolumn = 2", {"column": 2}, 2.0),
    ],
)
def test_stages_are_read_and_taken(tmp_path: Path, stages: str, read: object, theta: float) -> None:
    free_column(tmp_path)
    task = load_task(write(tmp_path, crane_text(stages)))
    assert task.stages == read
    model = task.servo.model
    assert isinstance(model, StagedReduction)
    assert (model.stages, model.theta) == (("column",), (theta,))
    assert model.shape_names == ("steering", "left_wheel", "boom")


def test_without_stages_the_robot_is_reduced_once(tmp_path: Path) -> None:
    free_column(tmp_path)
    task = load_task(write(tmp_path, crane_text("")))
    assert task.stages is None
    with pytest.raises(ConcurError, match="4 controls for the shape velocities"):
        _ = task.servo


def test_stages_that_cannot_be_taken_name_the_task(tmp_path: Path) -> None:
    free_column(tmp_path)
    for stages, words in (
        ('stages = ["boom"]', "its drive changes it"),
        ("stages = { column = [1, 2] }", "shape (1,)"),
        ('stages = ["chassis"]', "a shape joint"),
    ):
        task = load_task(write(tmp_path, crane_text(stages)))
        with pytest.raises(ConcurError) as caught:
            _ = task.servo
        assert words in str(caught.value)
        assert (caught.value.file, caught.value.field) == (str(task.path), "stages")


def test_a_stage_has_no_velocity_to_start_with(tmp_path: Path) -> None:
    free_column(tmp_path)
    text = altered("left_wheel = 1.0", "column = 1.0", crane_text('stages = "auto"'))
    with pytest.raises(DescriptionError, match="follows from the momentum of `column`") as caught:
        _ = load_task(write(tmp_path, text)).servo
    assert (caught.value.table, caught.value.field) == ("[initial.s]", "column")


def test_the_arrays_of_a_task_are_read_only(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, TASK))
    assert task.servo is task.servo  # built once
    for array in (task.q0, task.s0, task.stiffness, task.damping):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


KINDS = {
    "hold": 'kind = "hold"\npoint = [1, 2]',
    "rest_to_rest": 'kind = "rest_to_rest"\nstart = [0, 0]\nend = [1, 0]\nduration = 5\nbegin = 1',
    "circle": 'kind = "circle"\ncenter = [0, 0]\nradius = 1\nperiod = 20\nphase = 0.3',
    "waypoints": 'kind = "waypoints"\ntimes = [0, 9]\npoints = [[0, 0], [1, 0]]\nrates = '
    "[[1, 0], [1, 0]]",
    "table": 'kind = "table"\ntimes = [0, 9]\nposes = [[0, 0], [1, 0]]\ntwists = [[1, 0], [1, 0]]\n'
    "accelerations = [[0, 0.1], [0, 0]]",
}
BUILT = {
    "hold": references.hold([1.0, 2.0]),
    "rest_to_rest": references.rest_to_rest([0, 0], [1, 0], duration=5, begin=1),
    "circle": references.circle([0, 0], radius=1, period=20, phase=0.3),
    "waypoints": references.waypoints([0, 9], [[0, 0], [1, 0]], [[1, 0], [1, 0]]),
    "table": references.table([0, 9], [[0, 0], [1, 0]], [[1, 0], [1, 0]], [[0, 0.1], [0, 0]], "R2"),
}
POLYNOMIAL = 'kind = "polynomial"\ncoefficients = [[0.0, 0.0], [0.3, 0.0]]'


@pytest.mark.parametrize("group", ["R2", "SE2", "R3", "SO3", "SE3", "R3xSO3"])
def test_a_hold_without_a_point_is_where_the_output_is_at_the_start(
    group: str, tmp_path: Path
) -> None:
    posture = "[initial.q]\nchassis = [0.3, -0.2, 0.7]\nturret = 0.4\n"
    task = load_task(write(tmp_path, one_output(group, 'kind = "hold"') + posture))
    pose = task.robot.pose(task.q0, "forearm")
    place, turn = pose[:3, 3], Rotation.from_matrix(pose[:3, :3]).as_quat(canonical=True)
    expected = {"R2": place[:2], "SE2": [*place[:2], 1.1], "R3": place, "SO3": turn}
    point = expected.get(group, [*place, *turn])
    np.testing.assert_allclose(task.reference_tables["it"]["point"], point, atol=1e-12)
    np.testing.assert_allclose(task.reference(0.3).flat_pose, point, atol=1e-12)


@pytest.mark.parametrize(
    ("more", "start", "words"),
    [
        ("", 'initial.start = "on reference"', "a start on the reference"),
        ('relative_to = "it"', "", "`relative_to`"),
    ],
)
def test_a_hold_without_a_point_needs_a_place(
    more: str, start: str, words: str, tmp_path: Path
) -> None:
    text = f"{start}\n" + one_output("R2", f'kind = "hold"\n{more}')
    with pytest.raises(DescriptionError, match="relative_to") as caught:
        load_task(write(tmp_path, text))
    assert (caught.value.table, caught.value.field) == ("[reference.it]", "point")
    assert caught.value.came == words


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_reference_is_built(tmp_path: Path, kind: str) -> None:
    reference = load_task(write(tmp_path, altered(POLYNOMIAL, KINDS[kind]))).reference
    for t in (0.0, 2.0, 7.0):
        np.testing.assert_array_equal(reference(t).pose[:2], BUILT[kind](t).pose)
        np.testing.assert_array_equal(reference(t).acceleration[:2], BUILT[kind](t).acceleration)


def one_output(group: str, reference: str) -> str:
    return f"""
    name = "pose"
    robot = "rover_arm"
    [[outputs]]
    name = "it"
    body = "forearm"
    group = "{group}"
    stiffness = 4.0
    damping = 4.0
    [reference.it]
    {reference}
    [simulation]
    duration = 1.0
    """


def test_poses_move_on_screws(tmp_path: Path) -> None:
    screw = 'kind = "screw"\nstart_pose = { translation = [1, 2, 3] }\ntwist = [1, 0, 0, 0, 0, 2]'
    start = np.eye(4)
    start[:3, 3] = [1.0, 2.0, 3.0]
    for group in ("SE3", "R3xSO3"):
        reference = load_task(write(tmp_path, one_output(group, screw))).reference
        expected = references.screw(start, [1, 0, 0, 0, 0, 2], group)(0.7)
        np.testing.assert_array_equal(reference(0.7).pose, expected.pose)
        np.testing.assert_array_equal(reference(0.7).twist, expected.twist)


START, END = [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0, 0.6, 0.0, 0.8]
POSES = {
    "polynomial": (
        f'kind = "polynomial"\nstart = {START}\ncoefficients = [{[0] * 6}, {[1, 2, 3, 1, 0, 2]}]',
        lambda group: references.polynomial([[0] * 6, [1, 2, 3, 1, 0, 2]], START, group),
    ),
    "rest_to_rest": (
        f'kind = "rest_to_rest"\nstart = {START}\nend = {END}\nduration = 3\nbegin = 0.2',
        lambda group: references.rest_to_rest(START, END, 3.0, 0.2, group),
    ),
    "waypoints": (
        f'kind = "waypoints"\ntimes = [0, 2]\npoints = [{START}, {END}]\n'
        f"rates = [{[0] * 6}, {[1, 0, 0, 0, 0, 1]}]",
        lambda group: references.waypoints(
            [0, 2], [START, END], [[0] * 6, [1, 0, 0, 0, 0, 1]], group
        ),
    ),
    "circle": (
        'kind = "circle"\ncenter = [0, 0, 1]\nradius = 2\nperiod = 5\nphase = 0.1\n'
        "normal = [0, 1, 1]\nattitude = [0, 0.6, 0, 0.8]\nturning = true",
        lambda group: references.circle(
            [0, 0, 1], 2, 5, [0, 1, 1], 0.1, [0, 0.6, 0, 0.8], True, group
        ),
    ),
    "screw": (
        'kind = "screw"\nstart_pose = { translation = [1, 2, 3] }\ntwist = [1, 0, 0, 0, 0, 2]\n'
        'frame = "spatial"',
        lambda group: references.screw(
            [[1, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]],
            [1, 0, 0, 0, 0, 2],
            group,
            "spatial",
        ),
    ),
}


@pytest.mark.parametrize("kind", POSES)
@pytest.mark.parametrize("group", ["SE3", "R3xSO3"])
def test_poses_take_these_kinds(tmp_path: Path, kind: str, group: str) -> None:
    text, build = POSES[kind]
    reference = load_task(write(tmp_path, one_output(group, text))).reference
    assert reference.groups == ((7, 6, group),)
    for found, wanted in zip(reference.sample([0.7]), build(group).sample([0.7]), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_orientations_take_these_kinds(tmp_path: Path) -> None:
    turn = [[0, 0, 0, 1], [0, 0.6, 0, 0.8]]
    texts = {
        f'kind = "rest_to_rest"\nstart = {turn[0]}\nend = {turn[1]}\nduration = 2': (
            references.rest_to_rest(*turn, 2.0, group="SO3")
        ),
        f'kind = "waypoints"\ntimes = [0, 2]\npoints = {turn}': references.waypoints(
            [0, 2], turn, group="SO3"
        ),
        f'kind = "polynomial"\nstart = {turn[1]}\ncoefficients = [[0, 0, 0], [1, 2, 3]]': (
            references.polynomial([[0, 0, 0], [1, 2, 3]], turn[1], "SO3")
        ),
        'kind = "screw"\nstart_pose = {}\ntwist = [0, 0, 0, 1, 2, 3]': references.screw(
            np.eye(4), [0, 0, 0, 1, 2, 3], "SO3"
        ),
    }
    for text, wanted in texts.items():
        reference = load_task(write(tmp_path, one_output("SO3", text))).reference
        np.testing.assert_array_equal(reference(0.7).pose, wanted(0.7).pose)
        np.testing.assert_array_equal(reference(0.7).twist, wanted(0.7).twist)


def test_a_place_on_a_screw_is_an_output_in_space(tmp_path: Path) -> None:
    text = 'kind = "screw"\nstart_pose = { translation = [1, 0, 0] }\ntwist = [0, 0, 1, 0, 0, 2]'
    reference = load_task(write(tmp_path, one_output("R3", text))).reference
    np.testing.assert_allclose(reference(0.5).pose, [1.0, 0.0, 0.5], atol=1e-15)


def test_an_output_has_a_frame_and_a_plane(tmp_path: Path) -> None:
    text = one_output("SE3", 'kind = "hold"\npoint = [0, 0, 0, 0, 0, 0, 1]')
    text = altered('group = "SE3"', 'group = "SE3"\norientation = [0, 0.6, 0, 0.8]', text)
    assert load_task(write(tmp_path, text)).outputs[0].orientation == (0, 0.6, 0, 0.8)
    text = one_output("SE2", 'kind = "hold"\npoint = [0, 0, 0]')
    text = altered('group = "SE2"', 'group = "SE2"\nnormal = [0, 2, 0]', text)
    assert load_task(write(tmp_path, text)).outputs[0].normal == (0, 1, 0)


@pytest.mark.parametrize(
    ("group", "field"), [("R3", "orientation = [0, 0.6, 0, 0.8]"), ("SO3", "normal = [1, 0, 0]")]
)
def test_frames_that_do_not_fit_the_group(tmp_path: Path, group: str, field: str) -> None:
    text = one_output(group, 'kind = "hold"\npoint = [0, 0, 0]')
    path = write(tmp_path, altered("stiffness = 4.0", f"stiffness = 4.0\n{field}", text))
    with pytest.raises(ConcurError, match=f"none for group {group}") as caught:
        load_task(path)
    assert (caught.value.table, caught.value.field) == ('[[outputs]] "it"', field.split()[0])


SCREW = 'kind = "screw"\nstart_pose = { translation = [1, 2, 3] }\ntwist = [1, 0, 0, 0, 1, 2]\n'
DRIFT, TWIST = [0.1, -0.2, 0.3], [0.0, 0.1, 0.2, 0.3, -0.1, 0.4]
PLACED = np.array([[1, 0, 0, 1], [0, 1, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]])


@pytest.mark.parametrize("group", ["R3", "SE3", "R3xSO3"])
def test_references_are_carried_along(tmp_path: Path, group: str) -> None:
    own = references.screw(PLACED, [1, 0, 0, 0, 1, 2], group)
    texts = {
        f"drift = {DRIFT}": references.drifting(own, DRIFT),
        f"moving = {TWIST}": references.moving(own, TWIST),
        f"drift = {DRIFT}\nmoving = {TWIST}": references.drifting(
            references.moving(own, TWIST), DRIFT
        ),
    }
    for fields, wanted in texts.items():
        reference = load_task(write(tmp_path, one_output(group, SCREW + fields))).reference
        for found, right in zip(reference.sample([0.7]), wanted.sample([0.7]), strict=True):
            np.testing.assert_array_equal(found, right)


def test_orientations_move_but_do_not_drift(tmp_path: Path) -> None:
    text = one_output("SO3", f"{SCREW}moving = {TWIST}")
    wanted = references.moving(references.screw(PLACED, [1, 0, 0, 0, 1, 2], "SO3"), TWIST)
    reference = load_task(write(tmp_path, text)).reference
    np.testing.assert_array_equal(reference(0.7).twist, wanted(0.7).twist)
    for group, point in (("SO3", [0, 0, 0, 1]), ("SO2", 1.0)):
        text = one_output(group, f'kind = "hold"\npoint = {point}\ndrift = {DRIFT}')
        with pytest.raises(DescriptionError, match="cannot drift") as caught:
            load_task(write(tmp_path, text))
        assert (caught.value.table, caught.value.field) == ("[reference.it]", "drift")


def test_drift_is_taken_along_the_axes_of_the_output(tmp_path: Path) -> None:
    text = altered('group = "R2"', 'group = "R2"\naxes = "zx"')
    text = altered(POLYNOMIAL, f"{POLYNOMIAL}\ndrift = {DRIFT}", text)
    reference = load_task(write(tmp_path, text)).reference
    twist = reference(2.0).twist
    np.testing.assert_allclose(twist[:2], [0.3 + DRIFT[2], DRIFT[0]], atol=1e-15)
    # The hand is relative to the base: it drifts with it, and not along the third axis.
    circle = references.circle([0.15, 0.75, 0.15], 0.07, 10.0)
    np.testing.assert_allclose(twist[2:], circle(2.0).twist + np.array([0.1, 0.0, 0.6]), atol=1e-15)


def test_drift_of_a_planar_pose_is_in_its_plane(tmp_path: Path) -> None:
    text = one_output("SE2", f'kind = "hold"\npoint = [1, 2, {np.pi / 2}]\ndrift = {DRIFT}')
    text = altered('group = "SE2"', 'group = "SE2"\nnormal = [0, 1, 0]', text)
    sample = load_task(write(tmp_path, text)).reference(10.0)
    # The shortest turn from z to y takes x to x and y to -z.
    np.testing.assert_allclose(sample.pose[:2], [1.0 + 1.0, 2.0 - 3.0], atol=1e-14)
    np.testing.assert_allclose(sample.twist, [-0.3, -0.1, 0.0], atol=1e-15)


def test_a_moving_frame_needs_all_axes_in_order(tmp_path: Path) -> None:
    text = one_output("R3", f'kind = "hold"\npoint = [1, 2, 3]\nmoving = {TWIST}')
    path = write(tmp_path, altered('group = "R3"', 'group = "R3"\naxes = "zxy"', text))
    with pytest.raises(DescriptionError, match="got R3 zxy") as caught:
        load_task(path)
    assert caught.value.field == "moving"


def test_orientations_are_held(tmp_path: Path) -> None:
    text = one_output("SO3", 'kind = "hold"\npoint = [0.6, 0, 0, 0.8]')
    reference = load_task(write(tmp_path, text)).reference
    assert (reference.pose_size, reference.size) == (4, 3)


def test_planar_poses_have_rates_in_their_own_axes(tmp_path: Path) -> None:
    sideways = f'kind = "polynomial"\ncoefficients = [[0, 0, {np.pi / 2}], [0, 1, 0]]'
    reference = load_task(write(tmp_path, one_output("SE2", sideways))).reference
    np.testing.assert_allclose(reference(0.0).twist, [1.0, 0.0, 0.0], atol=1e-12)


def test_one_dimensional_outputs_take_plain_numbers(tmp_path: Path) -> None:
    text = one_output("R", 'kind = "waypoints"\ntimes = [0, 1]\npoints = [0.0, 2.0]')
    assert load_task(write(tmp_path, text)).reference(1.0).pose.tolist() == [2.0]


BASE, HAND = "[reference.base]", "[reference.hand]"
OUT_BASE, OUT_HAND = '[[outputs]] "base"', '[[outputs]] "hand"'

# fault: (text to replace, its replacement, table, field, further words of the message)
FAULTS: dict[str, tuple[str, str, str, str, list[str]]] = {
    "robot unknown": ('"rover_arm"', '"rover_am"', "", "robot", ["Did you mean `rover_arm`?"]),
    "stages number": ('"rover_arm"', '"rover_arm"\nstages = 3', "", "stages",
        ['"auto", a list of bodies, or a table of momenta', "got 3"]),
    "stages word": ('"rover_arm"', '"rover_arm"\nstages = "turret"', "", "stages", ['"turret"']),
    "stages body": ('"rover_arm"', '"rover_arm"\nstages = ["turet"]', "", "stages", ["`turret`?"]),
    "stages in table": ('"rover_arm"', '"rover_arm"\nstages = { turet = 1 }', "", "stages",
        ["a joint", "`turret`?"]),
    "stages momentum": ('"rover_arm"', '"rover_arm"\nstages = { turret = "1" }', "", "stages",
        ["momenta"]),
    "kind missing": ('kind = "circle"\n', "", HAND, "kind", ["polynomial", "no value"]),
    "kind unknown": ('"circle"', '"circel"', HAND, "kind", ["Did you mean `circle`?"]),
    "kind of a pose": ('"polynomial"', '"screw"', BASE, "kind", ["an output in R2"]),
    "moving in a plane": (POLYNOMIAL, POLYNOMIAL + "\nmoving = [0, 0, 0, 0, 0, 1]", BASE, "moving",
        ["an output in R3, SO3, SE3, R3xSO3", "got R2 xy"]),
    "reference incomplete": ("period = 10.0", "", HAND, "period", ["Add the field `period`"]),
    "reference not a table": (
        f"{BASE}\n{POLYNOMIAL}", "[reference]\nbase = 3", "[reference]", "base", ["got 3"]
    ),
    "reference size": (
        POLYNOMIAL, 'kind = "hold"\npoint = [1, 2, 3]', BASE, "", ["2 coordinates", "3 coordinates"]
    ),
    "reference missing": (f"{BASE}\n{POLYNOMIAL}", "", "[reference]", "base", ["[reference.base]"]),
    "reference of nothing": ("[initial.q]", "[reference.bass]\n[initial.q]", "[reference.bass]", "",
        ["an output", "Did you mean `base`?"]),
    "relative unknown": (
        'relative_to = "base"', 'relative_to = "bas"', HAND, "relative_to", ["`base`?"]
    ),
    "relative itself": (
        'relative_to = "base"', 'relative_to = "hand"', HAND, "relative_to", ["hand -> hand"]
    ),
    "relative circle": (
        POLYNOMIAL, POLYNOMIAL + '\nrelative_to = "hand"', BASE, "relative_to", ["xy relative to"]
    ),
    "components alone": (
        'relative_to = "base"', "components = [0]", HAND, "components", ["relative_to"]
    ),
    "start body": ("upper_arm = 1.0", "uper_arm = 1.0", "[initial.q]", "uper_arm", ["upper_arm"]),
    "start count": (
        "[-0.45, -0.1, 0.1]", "[-0.45]", "[initial.q]", "chassis", ["3 numbers", "a list of 1"]
    ),
    "start velocity": (
        "left_wheel = 2.0", "lefd_wheel = 2.0", "[initial.s]", "lefd_wheel", ["`left_wheel`?"]
    ),
    "components fraction": ('relative_to = "base"', 'relative_to = "base"\ncomponents = [0.5, 1]',
        HAND, "components[0]", ["a whole number", "got 0.5"]),
    "points text": (POLYNOMIAL, 'kind = "waypoints"\ntimes = [0]\npoints = [0, "end"]', BASE,
        "points[1]", ["a number or a list of numbers", '"end"']),
    "duration in steps": ("dt = 0.01", "dt = 0.03", "[simulation]", "duration",
        ["a whole number of steps of dt = 0.03 s", "got 20 s", "Write 20.01"]),
    "control period in steps": ("dt = 0.01", "dt = 0.01\ncontrol_period = 0.015",
        "[simulation]", "control_period",
        ["a whole number of steps", "got 0.015 s", "Write 0.02,"]),
    "control period below a step": ("dt = 0.01", "dt = 0.01\ncontrol_period = 0.001",
        "[simulation]", "control_period", ["a whole number of steps", "Write 0.01,"]),
    "settling after the end": ("[simulation]", "[tolerances]\nevaluate_after = 21\n[simulation]",
        "[tolerances]", "evaluate_after", ["within the duration of 20 s", "got 21 s"]),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_file_table_field_and_cure(tmp_path: Path, name: str) -> None:
    old, new, table, field, words = FAULTS[name]
    path = write(tmp_path, altered(old, new))
    with pytest.raises(DescriptionError) as caught:
        load_task(path)
    error = caught.value
    assert (error.file, error.table, error.field) == (str(path), table, field), str(error)
    message = str(error)
    assert message.startswith(str(path))
    for word in (table, field, *words):
        assert word in message, message
    for jargon in ("pydantic", "Input should", "validation", "extra_forbidden", "Traceback"):
        assert jargon not in message


def test_references_in_a_circle_are_shown(tmp_path: Path) -> None:
    text = altered('group = "R2"\npoint = [0.25, 0.0, 0.0]\nstiffness = [4.0, 5.0]',
                   'group = "R3"\nstiffness = 4.0')  # fmt: skip
    text = altered(POLYNOMIAL, 'kind = "hold"\npoint = [0, 0, 0]\nrelative_to = "hand"', text)
    with pytest.raises(DescriptionError, match="base -> hand -> base"):
        load_task(write(tmp_path, text))


# Faults that a constructor finds: its error, with the place put before it.
REFUSALS: dict[str, tuple[str, str, str, str]] = {
    "ragged": ("[[0.0, 0.0], [0.3, 0.0]]", "[[0.0, 0.0], [0.3]]", BASE, "array of numbers"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_constructor_refuses_is_located(tmp_path: Path, name: str) -> None:
    old, new, table, words = REFUSALS[name]
    path = write(tmp_path, altered(old, new))
    with pytest.raises(ConcurError) as caught:
        load_task(path)
    assert (caught.value.file, caught.value.table) == (str(path), table)
    assert str(caught.value).startswith(f"{path}, {table}")
    assert words in str(caught.value)


def test_sums_follow_the_axes_of_the_outputs(tmp_path: Path) -> None:
    text = altered('group = "R2"\npoint = [0.25, 0.0, 0.0]', 'group = "R2"\naxes = "zx"')
    reference = load_task(write(tmp_path, text)).reference
    circle = references.circle([0.15, 0.75, 0.15], 0.07, 10.0)
    np.testing.assert_allclose(reference(2.0).pose[2:], circle(2.0).pose + 0.6 * np.eye(3)[2])


def test_components_say_where_to_add(tmp_path: Path) -> None:
    text = altered('relative_to = "base"', 'relative_to = "base"\ncomponents = [1, 0]')
    reference = load_task(write(tmp_path, text)).reference
    circle = references.circle([0.15, 0.75, 0.15], 0.07, 10.0)
    np.testing.assert_allclose(reference(2.0).pose[2:], circle(2.0).pose + 0.6 * np.eye(3)[1])


def test_a_reference_is_not_relative_to_one_with_more_coordinates(tmp_path: Path) -> None:
    text = altered('relative_to = "base"\n', "")
    text = altered(POLYNOMIAL, POLYNOMIAL + '\nrelative_to = "hand"\ncomponents = [0, 1]', text)
    with pytest.raises(DescriptionError, match="2 coordinates relative to 3") as caught:
        load_task(write(tmp_path, text))
    assert (caught.value.table, caught.value.field) == (BASE, "components")


def test_axes_of_an_output_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path, altered("point = [0.25, 0.0, 0.0]", 'axes = "xx"'))
    with pytest.raises(ConcurError, match="different letters") as caught:
        load_task(path)
    assert (caught.value.table, caught.value.field) == (OUT_BASE, "axes")


def test_quaternions_of_holds_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path, one_output("SO3", 'kind = "hold"\npoint = [1, 0, 0, 1]'))
    with pytest.raises(ConcurError, match="unit quaternion") as caught:
        load_task(path)
    assert caught.value.table == "[reference.it]"


def test_only_positions_add(tmp_path: Path) -> None:
    text = altered('group = "R2"\npoint = [0.25, 0.0, 0.0]\nstiffness = [4.0, 5.0]',
                   'group = "SE2"\nstiffness = 4.0')  # fmt: skip
    text = altered("[[0.0, 0.0], [0.3, 0.0]]", "[[0, 0, 0], [0.3, 0, 0]]", text)
    with pytest.raises(DescriptionError, match="positions along the same axes"):
        load_task(write(tmp_path, text))


def test_the_robot_is_looked_for_beside_the_task(tmp_path: Path) -> None:
    path = write(tmp_path, altered('"rover_arm"', '"parts/rover.toml"'))
    with pytest.raises(DescriptionError, match="no file of this name") as caught:
        load_task(path)
    assert (caught.value.file, caught.value.field) == (str(path), "robot")
    assert str(tmp_path / "parts" / "rover.toml") in str(caught.value)


def test_a_missing_plant_names_the_task_and_the_nearest_file(tmp_path: Path) -> None:
    write(tmp_path, robot_text(), "heavy.toml")
    path = write(tmp_path, TASK + '\n[plant]\nfile = "hevy.toml"\n')
    with pytest.raises(DescriptionError, match=r"Did you mean `heavy\.toml`") as caught:
        load_task(path)
    where = (caught.value.file, caught.value.table, caught.value.field)
    assert where == (str(path), "[plant]", "file")


def test_a_robot_is_no_task(tmp_path: Path) -> None:
    path = write(tmp_path, robot_text())
    with pytest.raises(DescriptionError, match="expected a task file, got a robot file") as caught:
        load_task(path)
    assert f"concur check {path}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("chassis", ["follows from the wheels", "left_wheel"]),
        ("chassis[vx]", ["follows from the wheels"]),
        ("turret[angle]", ["Name its DOFs: turret."]),
    ],
)
def test_start_velocities_that_are_no_shape_velocities(
    tmp_path: Path, name: str, words: list[str]
) -> None:
    task = load_task(write(tmp_path, altered("left_wheel = 2.0", f'"{name}" = 2.0')))
    with pytest.raises(DescriptionError) as caught:
        _ = task.servo
    error = caught.value
    assert (error.file, error.table, error.field) == (str(task.path), "[initial.s]", name)
    for word in words:
        assert word in str(error)


def test_a_fault_in_the_robot_names_the_robots_file(tmp_path: Path) -> None:
    robot = write(tmp_path, altered("mass = 30.0", "mass = -30.0", robot_text()), "bad.toml")
    path = write(tmp_path, altered('"rover_arm"', '"bad.toml"'))
    with pytest.raises(ConcurError) as caught:
        load_task(path)
    assert caught.value.file == str(robot)
    assert caught.value.table == '[[bodies]] "chassis"'


def test_the_plant_has_the_bodies_of_the_robot(tmp_path: Path) -> None:
    text = robot_text().replace('"turret"', '"tower"')
    write(tmp_path, text, "other.toml")
    path = write(tmp_path, TASK + '\n[plant]\nfile = "other.toml"\n')
    with pytest.raises(DescriptionError, match=r"got `tower`.* without `turret`") as caught:
        load_task(path)
    assert (caught.value.table, caught.value.field) == ("[plant]", "file")


def test_the_plant_has_the_drives_of_the_robot(tmp_path: Path) -> None:
    drives = 'actuated = ["left_wheel", "right_wheel", "turret", "upper_arm"]\n'
    write(tmp_path, drives + robot_text(), "other.toml")
    path = write(tmp_path, TASK + '\n[plant]\nfile = "other.toml"\n')
    words = r"got `forearm` \(Revolute on upper_arm\) without `forearm` .*, driven\)"
    with pytest.raises(DescriptionError, match=words):
        load_task(path)


def test_a_singular_start_names_the_task(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, TASK))
    with pytest.raises(ConcurError, match="margin") as caught:
        task.simulate(task.servo)
    assert (caught.value.file, caught.value.table) == (str(task.path), "[initial.q]")


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, altered('robot = "rover_arm"', "robot = rover_arm"))
    with pytest.raises(DescriptionError, match="line 3: expected TOML") as caught:
        load_task(path)
    assert caught.value.file == str(path)


def test_the_example_starts_near_its_reference_and_keeps_the_arm_bent() -> None:
    task = load_task(EXAMPLE)
    first = task.reference(0.0).pose
    base = (task.robot.pose(task.q0, "chassis") @ [0.25, 0.0, 0.0, 1.0])[:2]
    hand = (task.robot.pose(task.q0, "forearm") @ [0.0, 0.2, 0.0, 1.0])[:3]
    assert 0.1 < np.linalg.norm(base - first[:2]) < 0.3
    assert 0.1 < np.linalg.norm(hand - first[2:]) < 0.3

    # Rolling without slip: the heading turns with the sideways speed of the point in front.
    times = np.linspace(0.0, task.duration, 4001)
    poses, twists, _ = task.reference.sample(times)
    heading = np.zeros(times.size)
    for i, step in enumerate(np.diff(times)):
        turn = -np.sin(heading[i]) * twists[i, 0] + np.cos(heading[i]) * twists[i, 1]
        heading[i + 1] = heading[i] + step * turn / 0.25
    ahead = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    turret = poses[:, :2] + 0.15 * ahead
    sideways = np.linalg.norm(poses[:, 2:4] - turret, axis=1)
    reach = np.hypot(sideways - 0.4, poses[:, 4])
    assert sideways.min() > 0.2
    # Links of 0.4 m and 0.2 m: folded at 0.2 m, stretched at 0.6 m.
    assert reach.min() > 0.27
    assert reach.max() < 0.53
    assert (np.sum(ahead * twists[:, :2], axis=1) > 0.1).all()


@pytest.mark.parametrize(
    ("servo", "table", "field", "words"),
    [
        ("torque_limits = { turet = 2 }", "[servo]", "torque_limits", "Did you mean `turret`?"),
        ("torque_limits = [1, 2]", "[servo]", "torque_limits", "one for each control"),
        ("torque_limits = -1", "[servo]", "torque_limits", "lower limit below"),
        ("torque_weights = { turet = 2 }", "[servo]", "torque_weights", "Did you mean `turret`?"),
        ("torque_weights = [1, 2]", "[servo]", "torque_weights", "one for each control"),
        ("torque_limits = { turret = [2, 1] }", "[servo]", "torque_limits", "`turret`"),
    ],
)
def test_a_fault_of_an_option_of_the_law_names_its_table(
    tmp_path: Path, servo: str, table: str, field: str, words: str
) -> None:
    task = load_task(write(tmp_path, f"{TASK}\n[servo]\n{servo}\n"))
    with pytest.raises(ConcurError) as caught:
        _ = task.servo
    error = caught.value
    assert (error.file, error.table, error.field) == (str(task.path), table, field)
    assert str(error).startswith(f"{task.path}, {table}, field `{field}`")
    assert words in str(error)


def test_a_fault_of_the_rule_for_internal_motion_names_its_table(tmp_path: Path) -> None:
    text = one_output("R3", 'kind = "hold"\npoint = [0.1, 0.8, 0.1]')
    rule = "\n[servo.redundancy]\nweight = [1, 2]\n"
    task = load_task(write(tmp_path, text + rule))
    with pytest.raises(ConcurError) as caught:
        _ = task.servo
    error = caught.value
    place = (error.file, error.table, error.field)
    assert place == (str(task.path), "[servo.redundancy]", "weight")


def test_a_fault_of_the_outputs_is_none_of_the_laws_options(tmp_path: Path) -> None:
    onto_axle = altered("point = [0.25, 0.0, 0.0]", "point = [0.0, 0.0, 0.0]")
    task = load_task(write(tmp_path, onto_axle + "\n[servo]\ntorque_limits = 50\n"))
    with pytest.raises(ConcurError, match="nothing moves output") as caught:
        _ = task.servo
    assert (caught.value.file, caught.value.table) == (str(task.path), "")
    assert "[servo]" not in str(caught.value)


def flyer_text(robot: str, more: str = "") -> str:
    """A satellite with an arm that keeps its tool's orientation."""
    return f"""
    name = "keep"
    robot = "{robot}"
    {more}
    [[outputs]]
    name = "tool"
    body = "tool"
    group = "SO3"
    stiffness = 4.0
    damping = 4.0
    [reference.tool]
    kind = "hold"
    point = [0, 0, 0, 1]
    [simulation]
    duration = 1.0
    """


@pytest.mark.parametrize("more", ["", 'stages = ["hand"]'])
def test_gravity_on_what_floats_is_a_fault_of_the_robots_file(tmp_path: Path, more: str) -> None:
    source = (Path(io.__file__).parents[1] / "robots" / "free_flyer.toml").read_text()
    text = altered('name = "free_flyer"', 'name = "faller"\ngravity = [0, 0, -9.81]', source)
    robot = write(tmp_path, text, "faller.toml")
    task = load_task(write(tmp_path, flyer_text("faller.toml", more)))
    assert task.robot_file == "faller.toml"
    with pytest.raises(ConcurError, match="no gravity along") as caught:
        _ = task.servo
    assert (caught.value.file, caught.value.field) == (str(robot), "gravity")


def test_a_momentum_that_wheels_do_not_keep_is_a_fault_of_the_task(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, "momentum = [0, 0, 0, 0, 0, 1]\n" + TASK))
    assert task.robot_file is None
    with pytest.raises(ConcurError, match="no momentum for a robot with wheels") as caught:
        _ = task.servo
    assert (caught.value.file, caught.value.field) == (str(task.path), "momentum")


@pytest.mark.parametrize(("wanted", "near"), [("sat.toml", "sta.toml"), ("cargo.toml", None)])
def test_only_files_of_a_similar_name_are_suggested(
    tmp_path: Path, wanted: str, near: str | None
) -> None:
    for name in ("sta.toml", "tl.toml", "my_robot.toml"):
        write(tmp_path, "", name)
    with pytest.raises(DescriptionError, match="no file of this name") as caught:
        load_task(tmp_path / wanted)
    if near is None:
        assert "Did you mean" not in str(caught.value)
    else:
        assert f"Did you mean `{near}`?" in str(caught.value)


TURNED = """
name = "turned"
robot = "free_flyer"

[[outputs]]
name = "hand"
body = "tool"
group = "SE3"
orientation = [ORIENTATION]
stiffness = 4
damping = 4

[reference.hand]
kind = "waypoints"
times = [0, 1]
points = [[1, 0, 0, REFERENCE], [1, 0, 0, REFERENCE]]

[initial.q]
spacecraft = [0, 0, 0, START]

[simulation]
duration = 1
dt = 0.01
"""


def test_quaternions_of_files_are_normalised_if_they_are_near_unit_norm(tmp_path: Path) -> None:
    names = ("ORIENTATION", "REFERENCE", "START")
    for wrong in names:
        for factor in (1.0 - 0.0009, 1.0009, 1.0 - 0.0011, 1.0011, 0.0):
            text = TURNED
            for name in names:
                scale = factor if name == wrong else 1.0
                text = text.replace(name, f"{0.28 * scale}, 0, 0, {0.96 * scale}")
            path = write(tmp_path, text)
            if abs(factor - 1.0) > 1e-3:
                with pytest.raises(ConcurError, match="norm"):
                    load_task(path)
                continue
            task = load_task(path)
            assert task.outputs[0].orientation is not None
            for quaternion in (
                task.outputs[0].orientation,
                task.reference(0.3).pose[3:],
                task.q0[3:7],
            ):
                np.testing.assert_allclose(quaternion, [0.28, 0, 0, 0.96], rtol=0, atol=1e-15)
