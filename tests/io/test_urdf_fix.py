"""Nearest physical inertias of URDF files: the projection, the bytes and the command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.errors import DescriptionError, InertiaError
from concur.io import fix_inertias
from concur.io._urdf_fix import nearest_tensor

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


def test_a_file_with_physical_inertias_is_unchanged(tmp_path: Path) -> None:
    text = arm('ixx="0.02" iyy="0.03" izz="0.025" ixz="-0.002"').replace("\n", "\r\n")
    for data in (text.encode(), b"\xef\xbb\xbf" + text.encode()):
        assert fix_inertias(written(tmp_path, data)) == (data, ())


@pytest.mark.parametrize(("izz", "count"), [(2.0 * (1.0 + 0.9e-9), 0), (2.0 * (1.0 + 1.1e-9), 1)])
def test_the_triangle_inequality_has_a_tolerance(tmp_path: Path, izz: float, count: int) -> None:
    path = written(tmp_path, arm(f'ixx="1" iyy="1" izz="{izz!r}"'))
    assert len(fix_inertias(path)[1]) == count
    if count:
        with pytest.raises(InertiaError, match=r"--fix OUT\.urdf"):
            cc.load(path)
    else:
        cc.load(path)


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        # S is diag(-0.5, 1.5, 1.5): a half of sqrt(4.75)
        ('ixx="3" iyy="1" izz="1"', 'ixx="3" iyy="1.5" izz="1.5"', 0.5 / 4.75**0.5),
        ("ixx = '3' iyy='1e0' izz='1' ", "ixx = '3' iyy='1.5' izz='1.5' ", 0.5 / 4.75**0.5),
        # The text of another attribute is left alone.
        (
            """note=' iyy="1"' ixx="3" iyy="1" izz="1\"""",
            """note=' iyy="1"' ixx="3" iyy="1.5" izz="1.5\"""",
            0.5 / 4.75**0.5,
        ),
        ('ixx="3" iyy="-0.5" izz="2"', "", None),
    ],
)
def test_only_numbers_that_change_are_written(
    tmp_path: Path, old: str, new: str, change: float | None
) -> None:
    for head in ("", '<?xml version="0.0" ?>\r\n', "\ufeff"):
        data, (fixed,) = fix_inertias(written(tmp_path, head + arm(old)))
        text = data.decode()
        if change is not None:
            assert text == head + arm(new)
            assert fixed.change == pytest.approx(change, rel=1e-12)
        assert (fixed.link, fixed.line) == ("base", 2 + head.count("\n"))
        path = written(tmp_path, data)
        assert cc.load(path).base.inertia.principal_moments == pytest.approx(fixed.moments)
        assert fix_inertias(path) == (data, ())


@pytest.mark.parametrize("three", ["&#51;", "\u00a03"])
def test_numbers_written_otherwise_are_replaced(tmp_path: Path, three: str) -> None:
    data, _ = fix_inertias(written(tmp_path, arm(f'ixx="{three}" iyy="&#49;" izz="1"')))
    assert data.decode() == arm(f'ixx="{three}" iyy="1.5" izz="1.5"')


def test_the_change_does_not_depend_on_the_size(tmp_path: Path) -> None:
    """Squares of the smaller moments are below the smallest number."""
    for size in ("1e-290", "1e8"):
        _, (fixed,) = fix_inertias(written(tmp_path, arm(f'ixx="{size}" iyy="0" izz="0"')))
        assert fixed.change == pytest.approx(1 / 3**0.5, rel=1e-12)


def test_moments_off_the_diagonal_are_added_where_they_are_missing(tmp_path: Path) -> None:
    given = 'ixx="3" ixy="0.1" iyy="1" izz="1"'
    data, fixed = fix_inertias(written(tmp_path, arm(given)))
    tensor = np.array([[3.0, 0.1, 0.0], [0.1, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert fixed[0].moments == pytest.approx(np.linalg.eigvalsh(nearest_tensor(tensor)))
    assert b'ixy="0.1"' not in data
    assert data.count(b"ixz") == 0  # zero before and after
    skew = 'ixx="3" ixy="0.1" ixz="0.2" iyy="1" izz="1"'
    assert b' iyz="' in fix_inertias(written(tmp_path, arm(skew)))[0]


def test_links_without_mass_lose_their_moments_and_negative_masses_are_refused(
    tmp_path: Path,
) -> None:
    data, (fixed,) = fix_inertias(written(tmp_path, arm('ixx="1" iyy="1" izz="1"', "0")))
    assert data.decode() == arm('ixx="0.0" iyy="0.0" izz="0.0"', "0")
    assert (fixed.change, fixed.moments) == (1.0, (0.0, 0.0, 0.0))
    with pytest.raises(InertiaError, match=r"line 2, link `base`.*mass of zero or more"):
        fix_inertias(written(tmp_path, arm('ixx="1" iyy="1" izz="1"', "-2")))


def test_the_command_writes_a_new_file(tmp_path: Path) -> None:
    path, out = written(tmp_path, arm('ixx="3" iyy="1" izz="1"')), tmp_path / "out.urdf"
    run = CliRunner()
    result = run.invoke(main, ["check", str(path), "--fix", str(out)])
    assert result.exit_code == 0, result.output
    assert "line 2, link `base`: second moments changed by 0.23 of their norm" in result.stdout
    assert "1 inertias replaced" in result.stdout
    again = run.invoke(main, ["check", str(path), "--fix", str(out)])
    assert again.exit_code == 2
    assert "a file that exists" in again.stderr
    result = run.invoke(main, ["check", str(out), "--fix", str(out), "--overwrite", "--json"])
    answer = json.loads(result.stdout)
    assert (answer["out"], answer["fixed"], answer["files"]) == (str(out), [], [str(out)])
    assert "(.urdf) with --fix" in run.invoke(main, ["check", "rover_arm", "--fix", "a"]).stderr
    nowhere = run.invoke(main, ["check", str(path), "--fix", str(tmp_path / "no" / "a.urdf")])
    assert "expected a folder that can be written" in nowhere.stderr


def test_names_that_one_of_the_parsers_refuses(tmp_path: Path) -> None:
    text = arm('ixx="3" iyy="1" izz="1"').replace("</robot>", "<\U0001f4a5/></robot>")
    with pytest.raises(DescriptionError, match=r"line 3: .*not well-formed"):
        fix_inertias(written(tmp_path, text))
    sound = text.replace('ixx="3"', 'ixx="1"')
    assert fix_inertias(written(tmp_path, sound)) == (sound.encode(), ())


def test_files_that_are_no_urdf_are_refused(tmp_path: Path) -> None:
    for data in (b"\xff\xfe", b"<robot>", b"<a/>"):
        with pytest.raises(DescriptionError):
            fix_inertias(written(tmp_path, data))


def test_entries_across_the_diagonal_stay_equal(tmp_path: Path) -> None:
    given = 'ixx="1" ixy="0.5" iyx="0.5" iyy="1" izz="3"'
    data, (_,) = fix_inertias(written(tmp_path, arm(given)))
    (tmp_path / "arm.urdf").write_bytes(data)
    tensor = cc.load(tmp_path / "arm.urdf").bodies[0].inertia.tensor
    mirrored = [re.search(rb' %s="([^"]*)"' % name, data)[1] for name in (b"ixy", b"iyx")]
    assert mirrored[0] == mirrored[1]
    assert tensor[0, 1] != 0.0
