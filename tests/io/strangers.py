"""Strangers' robots: how many files load, load after `--fix` and with `--suggest`.

    python -m tests.io.strangers FOLDER

reads the packages of tests/io/strangers.txt, which are installed in FOLDER (`.ci/nightly`),
prints the table of docs/urdf.md with the reasons of the rest, and ends with 1 if the page has other
numbers or a robot differs from that of Pinocchio. Files without a link, and macros whose joints
lack their links, are parts of robots and not counted; copies count once.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from lxml import etree

import concur as cc
from concur.errors import ConcurError
from concur.io import repair_urdf, suggest_sidecar
from tests.io.test_urdf import compare

PAGE = Path(__file__).parents[2] / "docs" / "urdf.md"
PARTS = re.compile(r"at least one <link>|expected names of links|got `Start tag expected")
"""Errors of files that are no robots: nothing but macros, parts without what carries them."""

COLUMNS = ("parts of robots", "robots", "load", "after --fix", "with --suggest")


def files(folder: Path) -> Iterator[Path]:
    """Files of robots, each content once; 1000 bodies of random shape are left out."""
    seen: set[str] = set()
    for path in sorted((*folder.rglob("*.urdf"), *folder.rglob("*.xacro"))):
        key = hashlib.sha1(path.read_bytes()).hexdigest()
        if "random_urdfs" not in path.parts and key not in seen:
            seen.add(key)
            yield path


def trouble(act: Callable[[], object]) -> str:
    """Error of an act, in one line; empty if it ends well."""
    try:
        act()
    except ConcurError as error:
        return " ".join(str(error).split())
    return ""


def as_pinocchio_reads_it(path: Path, ours: cc.Mechanism) -> str:
    """Text without XML declaration; joints that carry no mass are fixed, as in our robot."""
    text = re.sub(r"<\?xml[^>]*\?>", "", path.read_text(encoding="utf-8-sig")).strip("\0 \n")
    root = etree.fromstring(text.encode(), etree.XMLParser(encoding="utf-8", recover=True))
    moving = {body.name for body in ours.bodies if body.joint.nv}
    for own in root.iterfind("joint"):
        if own.find("child").get("link") not in moving:
            own.set("type", "fixed")
    return etree.tostring(root, encoding="unicode")


def difference(copy: Path, side: Path) -> str | None:
    """How a repaired robot differs from that of Pinocchio; None if one of both cannot have it."""
    data = re.sub(rb"<mimic\b[^>]*(/>|>\s*</mimic>)", b"", copy.read_bytes())
    copy.write_bytes(data)
    for base in ("free", "fixed") if b'"world"' not in data else ("fixed",):
        side.write_text(f'base = "{base}"\ngravity = [0.5, -1.0, -9.81]\n')
        if not trouble(lambda: cc.load(copy, sidecar=side)):
            ours = cc.load(copy, sidecar=side)
            try:
                compare(as_pinocchio_reads_it(copy, ours), ours, 1, base, poses=False)
            except (ValueError, KeyError, SyntaxError):  # Pinocchio refuses the file
                return None
            except AssertionError as problem:
                return str(problem)[:300]
            return ""
    return None


def outcome(path: Path, folder: Path) -> tuple[str, str, str, str | None]:
    """Errors of a file as it is, after `--fix` and with `--suggest`, and the difference."""
    side, copy = folder / "side.toml", folder / "robot.urdf"

    def fixed() -> None:
        copy.write_bytes(repair_urdf(path)[0])
        cc.load(copy, sidecar=side)

    def suggested() -> None:
        text = suggest_sidecar(path)[1]
        side.write_text(re.sub(r"# radius = +# FILL IN.*", "radius = 0.1", text))
        cc.load(path, sidecar=side)

    side.write_text("")
    plain, after = trouble(lambda: cc.load(path, sidecar=side)), trouble(fixed)
    return plain, after, trouble(suggested), None if after else difference(copy, side)


def main(folder: Path) -> int:
    """Print the table and the reasons of the rest."""
    counts: dict[str, Counter[str]] = {"urdf": Counter(), "xacro": Counter()}
    rest: list[str] = []
    equal = different = 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in files(folder):
            found, count = outcome(path, Path(scratch)), counts[path.suffix[1:]]
            name = str(path.relative_to(folder))
            if found[2] and PARTS.search(found[2]):
                count["parts of robots"] += 1
                continue
            count["robots"] += 1
            for column, error in zip(COLUMNS[2:], found, strict=False):
                count[column] += not error
            equal += found[3] == ""
            different += bool(found[3])
            if found[2] or found[3]:
                text = (found[2] or f"differs from Pinocchio: {found[3]}").replace(str(path), "")
                rest.append(f"{name}: {text[:300]}")
    lines = [f"| files | {' | '.join(COLUMNS)} |", "| --- |" + " ---: |" * len(COLUMNS)]
    for kind, count in counts.items():
        lines.append(f"| {kind} | " + " | ".join(str(count[name]) for name in COLUMNS) + " |")
    print(*lines, *rest, f"{equal} robots are equal to those of Pinocchio", sep="\n")
    return int(bool(different) or "\n".join(lines) not in PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
