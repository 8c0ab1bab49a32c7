"""Macros of xacro and packages of ROS, without ROS."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from concur.errors import DescriptionError, shown
from concur.files import read_text
from concur.tables import LARGEST_TOML

NEAR = 4
"""Folders above a file in which a package of that name is looked for where there is no checkout."""

_NAME = re.compile(r"<name>\s*([^<\s]+)\s*</name>")


@dataclass(frozen=True)
class Macros:
    """Arguments of xacro files, and folders of packages that are not found by their names."""

    arguments: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str | Path] = field(default_factory=dict)

    def over(self, arguments: Mapping[str, str], packages: Mapping[str, str], at: Path) -> Macros:
        """These entries, and others where these have none; their folders are relative to `at`."""
        folders = {name: at / folder for name, folder in packages.items()}
        return Macros({**arguments, **self.arguments}, {**folders, **self.packages})

    def folder(self, package: str, file: Path) -> Path | None:
        """Folder of a package: given, above or beside the file, in its checkout, or in ROS."""
        if package in self.packages:
            return Path(self.packages[package])
        above = list(file.resolve().parents)[:-1] or [file.resolve().parent]
        tops = [k for k, folder in enumerate(above) if (folder / ".git").exists()][:1]
        if not tops:  # a copy: the folder above the outermost package
            has = [k for k, folder in enumerate(above) if (folder / "package.xml").is_file()]
            tops = [min(max(has) + 1, len(above) - 1)] if has else []
        for k, folder in enumerate(above):
            found = folder if folder.name == package else folder / package
            if k > max(NEAR, *tops, 0) and found is not folder:
                continue
            if found.is_dir():
                return found
        if tops and package in (known := _packages(above[tops[0]])):
            return known[package]
        ros = [*_paths("ROS_PACKAGE_PATH", ""), *_paths("AMENT_PREFIX_PATH", "share")]
        return next((top / package for top in ros if (top / package).is_dir()), None)

    def file(self, uri: str, file: Path) -> Path | None:
        """Path of a mesh by its URI in a URDF file, if it exists."""
        if uri.startswith("package://"):
            package, _, rest = uri.removeprefix("package://").partition("/")
            folder = self.folder(package, file)
            path = None if folder is None else folder / rest
        else:
            path = file.parent / uri.removeprefix("file://")
        return path if path is not None and path.is_file() else None


@functools.lru_cache(16)
def _packages(top: Path) -> dict[str, Path]:
    """Folders of all packages in a checkout, by their names."""
    found = {}
    for path in sorted(top.rglob("package.xml")):
        name = _NAME.search(path.read_text(encoding="utf-8", errors="replace"))
        if name is not None:
            found[name[1]] = path.parent
    return found


def _paths(variable: str, below: str) -> list[Path]:
    words = os.environ.get(variable, "").split(os.pathsep)
    return [Path(word) / below for word in words if word]


def urdf_text(file: Path, macros: Macros) -> str:
    """Text of a URDF file, or of a xacro file with its macros expanded."""
    text = read_text(file, "a URDF file", "Check the path.", largest=LARGEST_TOML)
    if file.suffix.lower() != ".xacro":
        return text
    text = _expanded(file, macros)
    if len(text) > LARGEST_TOML:
        expected = f"at most {LARGEST_TOML // 2**20} MiB of URDF after the macros"
        came, cure = f"{len(text) / 2**20:.3g} MiB", "Remove the parts that do not move."
        raise DescriptionError(str(file), expected=expected, came=came, cure=cure, file=str(file))
    return text


def _expanded(file: Path, macros: Macros) -> str:
    try:
        import xacro
        from xacro import substitution_args
    except ImportError:
        raise DescriptionError(
            str(file),
            expected="the package xacro, which expands xacro files without ROS",
            came="an environment without it",
            cure="Run `python -m pip install xacro`; or expand the macros where ROS is: "
            "`xacro robot.urdf.xacro > robot.urdf`.",
            file=str(file),
        ) from None
    missing: list[str] = []

    def find(package: str) -> str:
        folder = macros.folder(package, file)
        if folder is None:
            missing.append(package)
            raise LookupError(f"package {package} not found")
        return str(folder)

    own, substitution_args._eval_find = substitution_args._eval_find, find
    try:
        with redirect_stderr(StringIO()):  # xacro prints warnings and traces
            document = xacro.process_file(str(file), mappings=dict(macros.arguments))
        return str(document.toprettyxml("  "))
    except Exception as error:  # macros raise errors of every kind
        came = f"`{shown(' '.join(str(error).split()), 200)}`"
        cure = "Correct the macros, or the files they include; give arguments that have no default "
        cure += "as `--xacro NAME:=VALUE`, or in the table `xacro` of the sidecar."
        if missing:
            came = f"the package `{shown(missing[0])}`, which is neither in its checkout nor in ROS"
            cure = f"Give its folder as `--xacro {shown(missing[0])}=FOLDER`, or in the table "
            cure += "`packages` of the sidecar."
        raise DescriptionError(
            str(file),
            expected="a xacro file that expands to a URDF file",
            came=came,
            cure=cure,
            file=str(file),
        ) from None
    finally:
        substitution_args._eval_find = own
