"""Repairs of URDF files: what `load` reads with a change, what --fix writes and a sidecar asks for.

Pinocchio reads the repaired file as the package does; tensors are those of a semidefinite program.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.errors import DescriptionError, InertiaError
from concur.io import repair_urdf
from concur.io._urdf_repair import NAMES, ROUNDING, nearest_tensor
from concur.io._urdf_xml import MOST_PREFIXES
from tests.io.test_urdf import GRAVITY, ORIGIN, STAND, chain, compare, joint, link, load, robot

PLAIN = '<limit effort="30" velocity="4"/>'
LIMIT = '<limit lower="-1" upper="2" effort="30" velocity="4"/>'


def changes(robot: cc.Mechanism, element: str) -> list[str]:
    return [text for text in robot.unread if text.startswith(f"`{element}`: ")]


# --- prefixes without declaration ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("dirty", "listed"),
    [
        ('<limit drake:acceleration="3" effort="30" velocity="4"/>', "limit@drake:acceleration"),
        ('<limit effort="30" velocity="4" drake:effort="2"/>', "limit@drake:effort"),
        (f'{PLAIN}<drake:gear_ratio value="3"/>', "drake:gear_ratio"),
        (
            f'{PLAIN}<a:b><c:d e:f="1"><limit effort="2" velocity="4"/></c:d></a:b>',
            "a:b",
        ),
    ],
)
def test_undeclared_prefixes_are_those_of_extensions(tmp_path: Path, dirty: str, listed: str):
    clean = load(tmp_path, chain("revolute", ORIGIN + PLAIN))
    text = chain("revolute", ORIGIN + dirty)
    found = load(tmp_path, '<?xml version="1.0"?>\n<!-- <robot> -->\n' + text)
    assert found == clean
    assert changes(found, listed)
    declared = [text for text in found.unread if text.startswith("`xmlns:")]
    assert declared
    assert all("line 6" in text for text in declared)
    compare(chain("revolute", ORIGIN + PLAIN), found)


@pytest.mark.parametrize(
    ("element", "dirty"),
    [
        ("drake:rotor_inertia", '<drake:rotor_inertia value="0.1"/>'),
        ("dynamics", '<dynamics drake:armature="0.1"/>'),
        ("axis@a:xyz", '<axis xyz="0 0 1" a:xyz="1 0 0"/>'),
        ("a:mimic", '<a:mimic joint="j"/>'),
    ],
)
def test_undeclared_prefixes_hide_nothing_that_moves(tmp_path: Path, element: str, dirty: str):
    with pytest.raises(DescriptionError, match="changes its motion") as caught:
        load(tmp_path, chain("revolute", dirty))
    assert (caught.value.element, caught.value.line) == (element, 4)


def test_a_tensor_with_a_prefix_is_no_missing_tensor(tmp_path: Path) -> None:
    body = '<inertial><mass value="1"/><a:inertia ixx="1" iyy="1" izz="1"/></inertial>'
    with pytest.raises(DescriptionError) as caught:
        load(tmp_path, robot(link("base", body)))
    assert caught.value.element == "a:inertia"


def test_what_is_no_prefix_stays_an_error(tmp_path: Path) -> None:
    many = "".join(f"<p{i}:x/>" for i in range(MOST_PREFIXES + 1))
    shortest = many.removesuffix(f"<p{MOST_PREFIXES}:x/>")
    assert len(changes(load(tmp_path, chain("revolute", more=shortest)), "xmlns:p0")) == 1
    own = '<a:b a:c="1" a:c="2"/>', "<a:b:c/>", "<a:b></a:c>", "<a:b>", '<a xmlns:b=""/>', many
    for more in own:
        with pytest.raises(DescriptionError, match="plain XML"):
            load(tmp_path, chain("revolute", more=more))
    with pytest.raises(DescriptionError, match="macros of xacro"):
        load(tmp_path, chain("revolute", more="<xacro:solid/>"))


# --- several limits -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (LIMIT, ((-1, 2), 4, 30)),
        ('<limit lower="-3" upper="1" effort="30" velocity="4"/>', ((-1, 1), 4, 30)),
        ('<limit lower="-1" upper="2" effort="5" velocity="9"/>', ((-1, 2), 4, 5)),
        # Zeros and missing numbers are no limits.
        ('<limit lower="0" upper="0" effort="0" velocity="0"/>', ((-1, 2), 4, 30)),
        ("<limit/>", ((-1, 2), 4, 30)),
        (
            '<limit lower="0.5" upper="9" effort="7"/><limit lower="-9" upper="1" velocity="3"/>',
            ((0.5, 1), 3, 7),
        ),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_the_tightest_of_several_limits(tmp_path: Path, more: str, expected: tuple, first: bool):
    text = chain("revolute", ORIGIN + (LIMIT + more if first else more + LIMIT))
    found = load(tmp_path, text)
    body = found.bodies[1]
    assert (body.limits[0], body.speed_limit[0], body.torque_limit[0]) == expected
    (low, high), speed, torque = expected
    (text,) = changes(found, "limit")
    for part in ("line 4, joint `j`", f"lower {low:g}, upper {high:g}", f"effort {torque:g}"):
        assert part in text
    assert f"velocity {speed:g}" in text
    clean = f'<limit lower="{low}" upper="{high}" effort="{torque}" velocity="{speed}"/>'
    clean = chain("revolute", ORIGIN + clean)
    assert load(tmp_path, clean) == found
    compare(clean, found)


@pytest.mark.parametrize(("low", "overlap"), [(1.999, True), (2.0, False), (3.0, False)])
def test_limits_without_overlap_are_refused(tmp_path: Path, low: float, overlap: bool) -> None:
    text = chain("revolute", f'{LIMIT}\n<limit lower="{low}" upper="5"/>')
    if overlap:
        assert load(tmp_path, text).bodies[1].limits == ((low, 2.0),)
    else:
        with pytest.raises(DescriptionError, match="limits that overlap") as caught:
            load(tmp_path, text)
        assert caught.value.line == 4
    wrong = text.replace(f'lower="{low}"', 'lower="6"')
    with pytest.raises(DescriptionError, match="line 5, joint `j`, <limit>"):
        load(tmp_path, wrong)


def test_other_elements_twice_stay_an_error(tmp_path: Path) -> None:
    for element in ('<axis xyz="0 0 1"/>', ORIGIN):
        with pytest.raises(DescriptionError, match="expected one element"):
            load(tmp_path, chain("revolute", 2 * element))


# --- tensors ------------------------------------------------------------------------------------


def tensor_of(xx: float, yy: float, zz: float, xz: float = 0.0) -> str:
    off = f'ixy="0" ixz="{xz!r}" iyz="0"'
    return f'<inertia ixx="{xx!r}" iyy="{yy!r}" izz="{zz!r}" {off}/>'


ZERO = tensor_of(0.0, 0.0, 0.0)
HELD = GRAVITY + 'base = "fixed"'


def massive(tensor: str, mass: float = 2.0, at: str = "0.1 0.2 0.3") -> str:
    return f'<inertial><origin xyz="{at}"/><mass value="{mass}"/>{tensor}</inertial>'


def test_a_mass_without_tensor_is_a_point(tmp_path: Path) -> None:
    def arm(tensor: str) -> str:
        return robot(
            link("base"), link("tip", massive(tensor)), joint("j", "revolute", "base", "tip")
        )

    found = load(tmp_path, arm(""))
    assert found == load(tmp_path, arm(ZERO))
    assert not changes(load(tmp_path, arm(ZERO)), "inertia")
    (text,) = changes(found, "inertia")
    assert "point" in text
    assert "line 3, link `tip`" in text
    compare(arm(ZERO), found)
    compare(arm(""), found)  # Pinocchio reads a point, too
    empty = robot(link("base"), link("tip", massive("", 0.0)), joint("j", "fixed", "base", "tip"))
    assert load(tmp_path, empty).unread == ()
    with pytest.raises(InertiaError, match="mass of zero or more"):
        load(tmp_path, arm("").replace('mass value="2.0"', 'mass value="-2"'))


@pytest.mark.parametrize(
    "tensor", ["", tensor_of(0.0, 0.0, 0.0, 2.4e-35)], ids=["missing", "rounding"]
)
def test_points_that_leave_a_motion_without_mass_are_refused_and_mended(tmp_path, tensor):
    text = robot(
        link("base"),
        "\n" + link("tip", massive(tensor, 2.0, "0 0 0")),
        joint("j", "revolute", "base", "tip", '<axis xyz="0 0 1"/>'),
    )
    with pytest.raises(InertiaError, match="links read as points: tip") as caught:
        load(tmp_path, text)
    assert "--fix" in str(caught.value)
    path, out = tmp_path / "arm.urdf", tmp_path / "out.urdf"
    result = CliRunner().invoke(main, ["check", str(path), "--fix", str(out)])
    assert result.exit_code == 0, result.output
    data, (fixed,) = repair_urdf(path)
    assert (fixed.fault, fixed.place, fixed.line) == ("inertia", "line 4, link `tip`", 4)
    # A ball of 2 kg of water: 4/3 pi r^3 = 2e-3 m^3.
    expected = 0.4 * 2.0 * (2e-3 * 3.0 / (4.0 * math.pi)) ** (2.0 / 3.0)
    (tmp_path / "out.toml").write_text(GRAVITY)
    mended = cc.load(out)
    assert load(tmp_path, text, GRAVITY + 'repair = ["inertia"]') == mended
    assert np.allclose(mended.bodies[1].inertia.tensor, expected * np.eye(3), rtol=1e-12)
    assert mended.unread == ()
    assert repair_urdf(out) == (data, ())
    compare(data.decode(), mended)


def rounded(value: float, far: bool, size: float = 1.0, mass: float = 1.0) -> str:
    """Two links; the second moment -value of `tip` is invalid, with 1 the gyration of the robot.

    The size is that of `base`, or with `far` the distance of the centre of mass of `tip`.
    """
    gyration = 1e-9 if far else size
    moment = 2.0 * mass * gyration**2 / 3.0  # of a body whose second moments add up to m g^2
    base = tensor_of(moment, moment, moment)
    at = f"0 0 {size!r}" if far else f"0 0 {size * 1e-3!r}"
    tip = tensor_of(0.0, 0.0, 0.0, value)
    bodies = link("base", massive(base, mass)), link("tip", massive(tip, mass, at))
    return robot(*bodies, joint("j", "revolute", "base", "tip", '<axis xyz="0 1 0"/>'))


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize(("size", "mass"), [(1.0, 1.0), (1e3, 1e-3), (1e-3, 1e6)])
def test_rounding_is_relative_to_mass_and_size(tmp_path, far, size, mass):
    limit = ROUNDING * mass * size**2
    found = load(tmp_path, rounded(0.99 * limit, far, size, mass), HELD)
    assert np.array_equal(found.bodies[1].inertia.tensor, np.zeros((3, 3)))
    (text,) = changes(found, "inertia")
    assert "line 3, link `tip`" in text
    assert f"second moment of {-0.99 * limit:.3g} kg m^2" in text
    clean = load(tmp_path, rounded(0.0, far, size, mass), HELD)
    assert found == clean
    compare(rounded(0.0, far, size, mass), found, base="fixed")
    with pytest.raises(InertiaError, match=r"line 3, link `tip`.*no negative eigenvalue"):
        load(tmp_path, rounded(1.01 * limit, far, size, mass), HELD)


def test_rounding_of_a_larger_tensor_is_removed_alone(tmp_path: Path) -> None:
    """The moments 1e-9, 1e-9 and 2e-9 + d break the triangle inequality by d."""
    for d, sound in ((0.9e-14, True), (3e-14, False)):
        tensor = tensor_of(1e-9, 1e-9, 2e-9 + d)
        text = rounded(0.0, False).replace(ZERO, tensor)
        assert tensor in text
        if not sound:
            with pytest.raises(InertiaError, match="none exceeds the sum"):
                load(tmp_path, text)
            continue
        found = load(tmp_path, text)
        assert len(changes(found, "inertia")) == 1
        moments = found.bodies[1].inertia.principal_moments
        assert np.abs(moments - [1e-9, 1e-9, 2e-9 + d]).max() <= ROUNDING
        assert moments[0] + moments[1] >= moments[2] * (1.0 - 1e-12)


def test_a_tensor_without_mass_is_no_rounding(tmp_path: Path) -> None:
    tensor = tensor_of(1e-35, 1e-35, 1e-35)
    with pytest.raises(InertiaError, match="body without mass"):
        load(tmp_path, robot(link("base"), link("tip", massive(tensor, 0.0))))


def test_invalid_tensors_are_no_size(tmp_path: Path) -> None:
    """A slip of 1e9 in another link, which is refused too, is named first or not at all."""
    text = rounded(2.0 * ROUNDING, False)
    slip = massive(tensor_of(1e9, 1.0, 1.0))
    with pytest.raises(InertiaError, match="link `tip`"):
        load(tmp_path, text.replace("</robot>", link("slip", slip) + "</robot>"))


# --- a root named world -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "side", "count"), [("world", "", 1), ("map", "", 0)])
def test_a_root_named_world_is_listed(tmp_path: Path, name: str, side: str, count: int) -> None:
    stand = STAND.replace("world", name)
    arm = link("base"), link("tip"), joint("j", "revolute", "base", "tip", ORIGIN)
    text = robot(stand, *arm, joint("w", "fixed", name, "base", ORIGIN))
    found = load(tmp_path, text, side)
    assert len(changes(found, name)) == count
    assert isinstance(found.base.joint, cc.joints.Fixed if count else cc.joints.Free)
    assert load(tmp_path, text, 'base = "free"').unread == ()  # the sidecar decides
    leaf = robot(*arm, stand, joint("w", "fixed", "tip", name))
    assert load(tmp_path, leaf).unread == ()
    compare(text, load(tmp_path, text, 'base = "fixed"'), base="fixed")


# --- repairs that guess -------------------------------------------------------------------------

HEAD = '<robot name="arm"><!-- <inertia ixx="9"/> -->\n'


def arm(inertia: str, mass: str = "2") -> str:
    inertial = f'<inertial><origin rpy="0.4 0.5 0.6"/><mass value="{mass}"/><inertia {inertia}/>'
    return f'{HEAD}<link name="base">{inertial}</inertial></link>\n</robot>\n'


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "arm.urdf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_tensor_is_that_of_a_semidefinite_program() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        root = rng.normal(size=(3, 3))
        tensor = root + root.T + 2.0 * np.eye(3)
        pseudo = np.diag([0.0, 0.0, 0.0, 1.7])
        pseudo[:3, :3] = 0.5 * np.trace(tensor) * np.eye(3) - tensor
        assert np.linalg.eigvalsh(pseudo)[0] < 0.0
        found = cp.Variable((4, 4), PSD=True)
        cp.Problem(cp.Minimize(cp.sum_squares(found - pseudo))).solve(solver="CLARABEL")
        assert np.allclose(found.value[3], [0.0, 0.0, 0.0, 1.7], atol=1e-6)
        moments = found.value[:3, :3]
        expected = np.trace(moments) * np.eye(3) - moments
        assert np.abs(nearest_tensor(tensor) - expected).max() < 1e-5
        cc.Inertia(1.7, (0.0, 0.0, 0.0), nearest_tensor(tensor))


@pytest.mark.parametrize(("izz", "count"), [(2.0 * (1.0 + 0.9e-9), 0), (2.0 * (1.0 + 1.1e-9), 1)])
def test_the_triangle_inequality_has_a_tolerance(tmp_path: Path, izz: float, count: int) -> None:
    path = written(tmp_path, arm(f'ixx="1" iyy="1" izz="{izz!r}"'))
    assert len(repair_urdf(path)[1]) == count
    if count:
        with pytest.raises(InertiaError, match=r"--fix OUT\.urdf"):
            cc.load(path)
    else:
        cc.load(path)


SHARE = "changed by 0.23 of their norm"  # S is diag(-0.5, 1.5, 1.5): a half of sqrt(4.75)


@pytest.mark.parametrize("head", ["", '<?xml version="0.0" ?>\r\n', "\ufeff"])
@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ('ixx="3" iyy="1" izz="1"', 'ixx="3" iyy="1.5" izz="1.5"', SHARE),
        ("ixx = '3' iyy='1e0' izz='1' ", "ixx = '3' iyy='1.5' izz='1.5' ", SHARE),
        # The text of another attribute is left alone.
        (
            """note=' iyy="1"' ixx="3" iyy="1" izz="1\"""",
            """note=' iyy="1"' ixx="3" iyy="1.5" izz="1.5\"""",
            SHARE,
        ),
        ('ixx="&#51;" iyy="&#49;" izz="1"', 'ixx="&#51;" iyy="1.5" izz="1.5"', SHARE),
        ('ixx="\u00a03" iyy="1" izz="1"', 'ixx="\u00a03" iyy="1.5" izz="1.5"', SHARE),
        ('ixx="1" iyy="1" izz="1"', 'ixx="1" iyy="1" izz="1"', ""),
    ],
)
def test_only_numbers_that_change_are_written(
    tmp_path: Path, old: str, new: str, change: str, head: str
) -> None:
    path = written(tmp_path, head + arm(old))
    data, repairs = repair_urdf(path)
    assert data.decode() == head + arm(new)
    assert len(repairs) == bool(change)
    for fixed in repairs:
        assert (fixed.fault, fixed.line) == ("inertia", 2 + head.count("\n"))
        assert change in fixed.change
    assert repair_urdf(written(tmp_path, data)) == (data, ())
    cc.load(path)


def test_the_change_does_not_depend_on_the_size(tmp_path: Path) -> None:
    """Squares of the smaller moments are below the smallest number."""
    for size in ("1e-290", "1e8"):
        _, (fixed,) = repair_urdf(written(tmp_path, arm(f'ixx="{size}" iyy="0" izz="0"')))
        assert "changed by 0.58 of their norm" in fixed.change


def test_entries_across_the_diagonal_stay_equal(tmp_path: Path) -> None:
    path = written(tmp_path, arm('ixx="1" ixy="0.5" iyx="0.5" iyy="1" izz="3"'))
    data, _ = repair_urdf(path)
    path.write_bytes(data)
    tensor = cc.load(path).bodies[0].inertia.tensor
    assert tensor[0, 1] != 0.0
    assert b"iyx" not in data


def test_links_without_mass_lose_their_moments_and_negative_masses_are_refused(
    tmp_path: Path,
) -> None:
    data, _ = repair_urdf(written(tmp_path, arm('ixx="1" iyy="1" izz="1"', "0")))
    assert data.decode() == arm('ixx="0.0" iyy="0.0" izz="0.0"', "0")
    with pytest.raises(InertiaError, match=r"line 2, link `base`.*mass of zero or more"):
        repair_urdf(written(tmp_path, arm('ixx="1" iyy="1" izz="1"', "-2")))


MOVED = '<axis xyz="0 0 1"/>'
FAULTS = [  # repair, clean file, the same with the fault
    ("", ('xyz="0.1 -0.2 0.3"', 'xyz="0.1, -0.2,0.3"')),
    ("", ('ixy="0.001"', 'ixy="0.001" iyx="0.001"')),
    ("", ('iyz="0.003"', 'iyz="0.003" izy="0.003"')),
    ("number", ('xyz="0.1 -0.2 0.3"', 'xyz="0.1 -0.2 0.3 0.4"')),
    ("number", ('lower="-1"', 'lower="-1.0."')),
    ("macro", ('xyz="0.3 -0.1 0.2"', 'xyz="$(optenv PLACE 0.3 -0.1 0.2)"')),
    ("element", (MOVED, f'{MOVED}<axis xyz="1 0 0"/>')),
    ("bound", ('lower="-1" upper="2" ', 'lower="2" upper="-1" ')),
    ("bound", ('effort="30"', 'effort="-30"')),
    ("mimic", ('<mimic joint="long_name"/>', '<mimic joint="lnog_name"/>')),
    ("link", ('<link name="map"/>', "")),
    ("angle", (f'rpy="0.7 {math.pi / 2!r} 0"', 'rpy="0.7 1.5708 0"')),
]


@pytest.mark.parametrize(("fault", "texts"), FAULTS)
def test_a_fault_is_mended(fault: str, texts: tuple[str, str], tmp_path: Path) -> None:
    """By `load`, or where the sidecar asks for it; the copy of --fix is as good for all readers."""
    place = ORIGIN.replace("0.7 -1.1 2.3", f"0.7 {math.pi / 2!r} 0")
    text = robot(
        '<link name="map"/>',
        *(link(name) for name in ("base", "tip", "end")),
        joint("w", "fixed", "map", "base"),
        joint("long_name", "revolute", "base", "tip", place + MOVED + LIMIT),
        joint("k", "revolute", "tip", "end", '<mimic joint="long_name"/>'),
    )
    clean, dirty = texts
    assert clean in text
    damaged = text.replace(clean, dirty)
    side = GRAVITY + (f'repair = ["{fault}"]' if fault else "")
    found = load(tmp_path, damaged, side)
    if "upper" in clean:  # Bullet reads them as no bounds
        assert found.bodies[1].limits == ((-math.inf, math.inf),)
    else:
        assert found == load(tmp_path, text)
    (said,) = {line.partition(": ")[0] for line in found.unread}
    assert said.strip("`") in ((fault,) if fault else ("xyz", "iyx", "izy"))
    path = written(tmp_path, damaged)
    path.with_suffix(".toml").write_text(GRAVITY)
    data, repairs = repair_urdf(path)
    if fault == "angle":  # no fault where no wheels need it
        assert (data, repairs) == (damaged.encode(), ())
        return
    assert {repair.fault for repair in repairs} == {said.strip("`")}
    path.write_bytes(data)
    assert cc.load(path).unread == ()
    assert repair_urdf(path) == (data, ())
    without = text.replace('<mimic joint="long_name"/>', "")
    if clean in without and "upper" not in clean:
        compare(without, load(tmp_path, data.decode().replace('<mimic joint="long_name"/>', "")))
    if fault:
        with pytest.raises(DescriptionError):
            load(tmp_path, damaged)


@pytest.mark.parametrize(
    ("clean", "dirty"),
    [
        ('ixy="0.001"', 'ixy="0.001" iyx="0.002"'),
        ('xyz="0.1 -0.2 0.3"', 'xyz="0.1,, -0.2 0.3 1"'),
        ('xyz="0.1 -0.2 0.3"', 'xyz="0,1 3"'),
        ('xyz="0.1 -0.2 0.3"', 'xyz="3 0,1"'),
    ],
)
def test_a_fault_with_two_readings_is_refused(clean: str, dirty: str, tmp_path: Path) -> None:
    text = chain("revolute", ORIGIN + LIMIT).replace(clean, dirty)
    for side in (GRAVITY, f"repair = {json.dumps(NAMES)}"):
        with pytest.raises(DescriptionError):
            load(tmp_path, text, side)


def test_robots_without_any_mass_get_one(tmp_path: Path) -> None:
    shape = '<visual><geometry><sphere radius="1"/></geometry></visual>'
    text = robot(
        *(link(name, shape) for name in ("base", "tip")), joint("j", "revolute", "base", "tip")
    )
    with pytest.raises(InertiaError):
        load(tmp_path, text)
    found = load(tmp_path, text, GRAVITY + 'repair = ["mass"]')
    assert [body.inertia.mass for body in found.bodies] == [1.0, 1.0]
    data, repairs = repair_urdf(tmp_path / "arm.urdf")
    assert [repair.fault for repair in repairs] == ["mass", "mass"]
    assert load(tmp_path, data.decode()) == found
    compare(data.decode(), found)


@pytest.mark.parametrize(
    ("word", "exact"),
    [("1.57", True), ("3.14159", True), ("1.56", False), ("0.785", True), ("1.5", False)],
)
def test_angles_that_are_rounded(word: str, exact: bool, tmp_path: Path) -> None:
    """To its digits the number is a multiple of 45 degrees; others stay."""
    text = chain("revolute", f'<origin rpy="{word} 0 0"/>')
    found = load(tmp_path, text, GRAVITY + 'repair = ["angle"]')
    turn = found.bodies[1].placement.rotation_matrix
    angle = math.atan2(turn[2, 1], turn[1, 1])
    assert (abs(angle / (math.pi / 4) - round(angle / (math.pi / 4))) < 1e-12) == exact
    assert bool(changes(found, "angle")) == exact


def test_zeros_at_the_end_and_joints_of_bullet(tmp_path: Path) -> None:
    ball = load(tmp_path, chain("spherical", ORIGIN) + "\0\0")
    assert isinstance(ball.bodies[1].joint, cc.joints.Spherical)


def test_an_unknown_repair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="Did you mean `inertia`") as caught:
        load(tmp_path, chain("revolute"), 'repair = ["inertias"]')
    assert "arm.toml" in str(caught.value)


def test_the_command_writes_a_new_file(tmp_path: Path) -> None:
    path, out = written(tmp_path, arm('ixx="3" iyy="1" izz="1"')), tmp_path / "out.urdf"
    run = CliRunner()
    result = run.invoke(main, ["check", str(path), "--fix", str(out)])
    assert result.exit_code == 0, result.output
    assert SHARE in result.stdout
    again = run.invoke(main, ["check", str(path), "--fix", str(out)])
    assert again.exit_code == 2
    assert "a file that exists" in again.stderr
    result = run.invoke(main, ["check", str(out), "--fix", str(out), "--overwrite", "--json"])
    answer = json.loads(result.stdout)
    assert (answer["out"], answer["fixed"], answer["files"]) == (str(out), [], [str(out)])
    assert "(.urdf) with --fix" in run.invoke(main, ["check", "rover_arm", "--fix", "a"]).stderr
    nowhere = run.invoke(main, ["check", str(path), "--fix", str(tmp_path / "no" / "a.urdf")])
    assert "expected a folder that can be written" in nowhere.stderr


def test_files_that_cannot_be_repaired_are_refused(tmp_path: Path) -> None:
    for data in (b"\xff\xfe", b"<robot>", b"<a/>"):
        with pytest.raises(DescriptionError):
            repair_urdf(written(tmp_path, data))
    text = arm('ixx="3" iyy="1" izz="1"').replace("</robot>", "<\U0001f4a5/></robot>")
    with pytest.raises(DescriptionError, match=r"line 3: .*not well-formed"):
        repair_urdf(written(tmp_path, text))  # one of the parsers refuses the name
    sound = text.replace('ixx="3"', 'ixx="1"')
    assert repair_urdf(written(tmp_path, sound)) == (sound.encode(), ())
