"""Macros of xacro and packages of ROS, without ROS."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from os import PathLike
from pathlib import Path
from typing import NoReturn

from concur.errors import ConcurError, DescriptionError, shown
from concur.files import is_file, read_bytes, read_text
from concur.io._sidecar import UrdfSidecar, sidecar_of
from concur.tables import LARGEST_TOML, build, file_named, read_toml

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


def read_sidecar(
    file: Path, sidecar: str | PathLike[str] | None, macros: Macros
) -> tuple[UrdfSidecar, Macros, Path, bool]:
    """The sidecar, all macros, the path of the sidecar, and whether there is one."""
    side = sidecar_of(file) if sidecar is None else file_named(sidecar)
    given = sidecar is not None or is_file(side)
    table = build(UrdfSidecar, read_toml(side) if given else {}, side)
    return table, macros.over(table.xacro or {}, table.packages or {}, side.parent), side, given


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
        _refuse(file, expected, came, cure)
    return text


def _expanded(file: Path, macros: Macros) -> str:
    try:
        import xacro
        from xacro import substitution_args
    except ImportError:
        expected = "the package xacro, which expands xacro files without ROS"
        cure = "Run `python -m pip install xacro`; or expand the macros where ROS is: "
        cure += "`xacro robot.urdf.xacro > robot.urdf`."
        _refuse(file, expected, "an environment without it", cure)
    missing: list[str] = []
    texts: list[str] = []

    def read(name: str, *_: object) -> BytesIO:
        at = name.find("package://")
        path = (macros.file(name[at:], file) if at >= 0 else None) or Path(name)
        data = read_bytes(path, "a file that macros include", "Check the path.")
        texts.append(data.decode("utf-8", "replace"))
        return BytesIO(data)

    def find(package: str) -> str:
        folder = macros.folder(package, file) or _with_files(package, file, texts)
        if folder is None:
            missing.append(package)
            raise LookupError(f"package {package} not found")
        return str(folder)

    own, substitution_args._eval_find = substitution_args._eval_find, find
    xacro.open = read  # its functions read no other files
    arguments = dict(macros.arguments)
    try:
        with redirect_stderr(StringIO()):  # xacro prints warnings and traces
            while True:
                try:
                    document = xacro.process_file(str(file), mappings=dict(arguments))
                    return str(document.toprettyxml("  "))
                except Exception as error:
                    name = _of_meshes(str(error), texts)
                    if not name or name in arguments:
                        raise
                    arguments[name] = ""
    except ConcurError:
        raise
    except Exception as error:  # macros raise errors of every kind
        came = f"`{shown(' '.join(str(error).split()), 200)}`"
        cure = "Correct the macros, or the files they include; give arguments that have no default "
        cure += "as `--xacro NAME:=VALUE`, or in the table `xacro` of the sidecar."
        if missing:
            came = f"the package `{shown(missing[0])}`, which is neither in its checkout nor in ROS"
            cure = f"Give its folder as `--xacro {shown(missing[0])}=FOLDER`, or in the table "
            cure += "`packages` of the sidecar."
        expected = "a xacro file that expands to a URDF file"
        _refuse(file, expected, came, cure)
    finally:
        substitution_args._eval_find = own
        del xacro.open


def _with_files(package: str, file: Path, texts: list[str]) -> Path | None:
    """A folder above a file, or beside these, that has the files that macros name in a package."""
    named = re.compile(re.escape(f"$(find {package})") + r"/?([^\s\"'<>$]+)")
    rests = [rest for text in texts for rest in named.findall(text)]
    above = list(file.resolve().parents)[: NEAR + 1]
    places = (*above[:-1], *(own for top in above[1:3] for own in sorted(top.iterdir())))
    fitting = (at for at in places if rests and all((at / rest).is_file() for rest in rests))
    return next(fitting, None)


def _of_meshes(message: str, texts: list[str]) -> str:
    """Name of an argument without a value that is a part of names of meshes alone."""
    found = re.search(r"Undefined substitution argument (\w+)", message)
    if found is None:
        return ""
    every = rf"\$\(arg {found[1]}\)"
    mesh = re.compile(rf"<mesh\b[^>]*{every}")
    used = sum(len(re.findall(every, text)) for text in texts)
    return found[1] if used == sum(len(mesh.findall(text)) for text in texts) else ""


def _refuse(file: Path, expected: str, came: str, cure: str) -> NoReturn:
    raise DescriptionError(
        str(file), expected=expected, came=came, cure=cure, file=str(file)
    ) from None
