"""All URDF files of two packages: each loads and equals Pinocchio, or is refused with the reason.

The packages are large; `.ci/nightly` installs them. The counts are those of docs/urdf.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
from lxml import etree

import concur as cc
from concur.errors import ConcurError
from concur.io import fix_inertias
from tests.io.test_urdf import compare

pytestmark = pytest.mark.packages

PAGE = Path(__file__).parents[2] / "docs" / "urdf.md"
PACKAGES = {"example-robot-data": "6.0.0", "pybullet": "3.2.7"}
REASONS = {
    "not XML": r"a URDF file: plain XML",
    "no link": r"at least one <link>",
    "an element twice": r"expected one element <",
    "not a number, or too many": r"expected `\w+`: (a number|\d numbers) within",
    "unknown joint type": r"expected a type among",
    "lower limit above the upper": r"expected `lower` below `upper`",
    "no rigid body has the inertia": r"<inertia>: Inertia: expected",
    "a free motion moves no mass": r"a motion that moves no mass",
    "an element that changes the motion": r"expected a robot without `",
}


def files(package: str) -> list[Path]:
    """URDF files of a package in the order of their names."""
    found = distribution(package)
    assert found.version == PACKAGES[package], "the counts are those of another version"
    return sorted(
        Path(str(found.locate_file(name)))
        for name in found.files or ()
        if str(name).endswith(".urdf")
    )


def reason(error: ConcurError) -> str:
    (name,) = (name for name, words in REASONS.items() if re.search(words, str(error)))
    return name


def independent(data: bytes) -> bytes:
    """File without mimic joints: each joint moves independently of all others."""
    return re.sub(rb"<mimic\b[^>]*(/>|>\s*</mimic>)", b"", data)


def outcomes(package: str, folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Each file with its outcome as it is and after `--fix`: "loads", or the reason."""
    path = folder / "robot.urdf"
    for file in files(package):
        path.write_bytes(independent(file.read_bytes()))
        found = []
        for fixed in (False, True):
            try:
                if fixed:
                    path.write_bytes(fix_inertias(path)[0])
                cc.load(path)
                found.append("loads")
            except ConcurError as error:
                found.append(reason(error))
        yield file, found[0], found[1]


def table(title: str) -> list[list[str]]:
    """Rows of the table after a heading of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)[2:]
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def test_the_counts_are_those_of_the_page(tmp_path: Path) -> None:
    counts = {}
    for package in PACKAGES:
        found = list(outcomes(package, tmp_path))
        before, after = Counter(row[1] for row in found), Counter(row[2] for row in found)
        counts[package] = before, after, len(found)
    rows = []
    for name in ("loads", *REASONS):
        rows.append([name, *(str(part[name]) for c in counts.values() for part in c[:2])])
    rows.append(["files", *(str(c[2]) for c in counts.values() for _ in range(2))])
    assert table("Files") == rows, "\n".join(" | ".join(row) for row in rows)


def inertias(file: Path) -> Iterator[tuple[bool, float, np.ndarray]]:
    """Whether a link moves, its mass and the eigenvalues of its tensor; 0 without <inertial>."""
    text = re.sub(r"<\?xml[^>]*\?>", "", file.read_text(encoding="utf-8-sig", errors="replace"))
    try:
        root = etree.fromstring(text.strip().encode(), etree.XMLParser(encoding="utf-8"))
    except etree.XMLSyntaxError:
        return
    kinds = {j.find("child").get("link"): j.get("type") for j in root.findall("joint")}
    for link in root.findall("link"):
        moves = kinds.get(link.get("name"), "fixed") != "fixed"
        inertial = link.find("inertial")
        if inertial is None:
            yield moves, 0.0, np.zeros(3)
            continue
        xx, xy, xz, yy, yz, zz = (
            float(inertial.find("inertia").get(name, "0"))
            for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        mass = float(inertial.find("mass").get("value"))
        yield moves, mass, np.linalg.eigvalsh(tensor)


def test_the_inertias_are_those_of_the_page() -> None:
    columns = []
    for package in PACKAGES:
        links = [row for file in files(package) for row in inertias(file) if row[0]]
        heavy = [values for _, mass, values in links if mass > 0.0]
        broken = [v for v in heavy if v[0] + v[1] < v[2] * (1.0 - 1e-9)]
        indefinite = [v for v in heavy if v[0] <= 0.0]
        either = [v for v in heavy if v[0] <= 0.0 or v[0] + v[1] < v[2] * (1.0 - 1e-9)]
        columns.append([len(links), len(heavy), len(indefinite), len(broken), len(either)])
    assert [list(map(int, row[1:])) for row in table("Inertias")] == list(
        map(list, zip(*columns, strict=True))
    ), columns


def as_pinocchio_reads_it(path: Path, ours: cc.Mechanism) -> str:
    """Text without XML declaration; joints that carry no mass are fixed, as in our robot."""
    text = re.sub(r"<\?xml[^>]*\?>", "", path.read_text(encoding="utf-8-sig")).strip()
    root = etree.fromstring(text.encode(), etree.XMLParser(encoding="utf-8"))
    moving = {body.name for body in ours.bodies}
    for own in root.iterfind("joint"):
        if own.find("child").get("link") not in moving:
            own.set("type", "fixed")
    for element in root.iter("origin"):
        for name, value in element.attrib.items():
            element.set(name, value.replace(",", " "))
    return etree.tostring(root, encoding="unicode")


@pytest.mark.parametrize("package", PACKAGES)
def test_each_robot_equals_that_of_pinocchio(package: str, tmp_path: Path) -> None:
    path, side = tmp_path / "robot.urdf", tmp_path / "side.toml"
    compared: Counter[str] = Counter()
    differences = []
    for file in files(package):
        path.write_bytes(independent(file.read_bytes()))
        try:
            path.write_bytes(fix_inertias(path)[0])
            has_world = '"world"' in path.read_text(encoding="utf-8")
        except ConcurError:
            continue
        for base in ("fixed",) if has_world else ("free", "planar", "fixed"):
            side.write_text(f'base = "{base}"\ngravity = [0.5, -1.0, -9.81]\n')
            try:
                ours = cc.load(path, sidecar=side)
            except ConcurError:
                continue
            if not ours.nv:
                continue
            try:
                compare(as_pinocchio_reads_it(path, ours), ours, 3, base)
                compared[base] += 1
            except (AssertionError, ValueError, KeyError) as problem:
                differences.append(f"{file.name}, {base}: {problem!s:.300}")
    assert not differences, "\n".join(differences)
    (row,) = [row for row in table("Comparison") if row[0] == package]
    assert row[1:] == [str(compared[base]) for base in ("free", "planar", "fixed")], compared
