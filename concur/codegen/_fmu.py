"""Functional mock-up units: archives for other simulators, in FMI 2.0 and 3.0."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from concur.codegen._compiler import CompilerWarning, find_compiler
from concur.codegen._fmu_description import fmu_description
from concur.codegen._fmu_model import FmuModel
from concur.codegen._fmu_sources import TOKEN, fmu_sources
from concur.errors import UnknownNameError
from concur.files import folder_named, writing

FMI_VERSIONS = ("3.0", "2.0")
"""Supported versions of FMI."""

FLAGS = ("-std=c99", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-w")
_LONG = 400_000  # characters of C above which compile time matters more than speed
_DATE = (1980, 1, 1, 0, 0, 0)  # fixed: the same contents give the same bytes

_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_SYSTEMS = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}
_OLD_NAMES = {
    "x86_64-linux": "linux64",
    "x86_64-darwin": "darwin64",
    "x86_64-windows": "win64",
}


def write_fmu(
    model: FmuModel, directory: str | PathLike[str], fmi: str = "3.0", binary: bool = True
) -> Path:
    """Write a functional mock-up unit (FMU) for co-simulation.

    It always contains C sources, and a binary for this machine if a compiler is found.

    Parameters
    ----------
    model : FmuModel
        Model of the FMU.
    directory : str or os.PathLike
        Folder of the archive; created if it does not exist.
    fmi : str
        Version of FMI, "3.0" or "2.0".
    binary : bool
        Whether to compile it for this machine.

    Returns
    -------
    pathlib.Path
        The archive, `<name>.fmu`.

    Raises
    ------
    UnknownNameError
        If the version is not supported.
    ConcurError
        If the archive cannot be written.

    Warns
    -----
    CompilerWarning
        If the archive has no binary because the compilation failed.
    """
    if fmi not in FMI_VERSIONS:
        raise UnknownNameError(
            f"unit `{model.name}`, `fmi`",
            expected=" or ".join(f'"{version}"' for version in FMI_VERSIONS),
            came=repr(fmi),
            cure='Omit it for 3.0, or pass "2.0" for tools that read 2.0 only.',
        )
    target = folder_named(directory, f"unit `{model.name}`")
    sources = fmu_sources(model, fmi)
    units = sorted(name for name in sources if name.endswith(".c"))
    files = fmu_description(model, fmi, units)
    files |= {f"sources/{name}": text for name, text in sources.items()}
    token = _token(files)
    texts = {name: text.replace(TOKEN, token) for name, text in files.items()}
    contents = {name: text.encode() for name, text in texts.items()}
    with writing(target):  # before the compilation, which takes long
        target.mkdir(parents=True, exist_ok=True)
    if binary:
        contents |= _binary(model, fmi, sources, token)
    path = target / f"{model.identifier}.fmu"
    with writing(target), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
            archive.writestr(entry, contents[name])
    return path


def _token(files: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{files[name]}\0".encode())
    return f"{{{uuid.UUID(bytes=digest.digest()[:16])}}}"


def _binary(
    model: FmuModel, version: str, sources: Mapping[str, str], token: str
) -> dict[str, bytes]:
    """The library for this machine, by its path in the archive; empty without a compiler."""
    machine = _MACHINES.get(platform.machine().lower())
    system, suffix = _SYSTEMS.get(sys.platform, (None, None))
    folder: str | None = f"{machine}-{system}"
    if version == "2.0":
        folder = _OLD_NAMES.get(str(folder))
    compiler = find_compiler()
    reason = ""
    if machine is None or system is None or folder is None:
        reason = f"FMI {version} has no name for this machine, {platform.machine()} {sys.platform}"
    elif compiler is None:
        reason = "no C compiler was found"
    else:
        library = f"{model.identifier}{suffix}"
        with tempfile.TemporaryDirectory() as scratch:
            for name, text in sources.items():
                Path(scratch, name).write_text(text.replace(TOKEN, token), encoding="utf-8")
            units = sorted(name for name in sources if name.endswith(".c"))
            level = "-O2" if sum(map(len, sources.values())) < _LONG else "-O1"
            done = subprocess.run(
                [*compiler.command, level, *FLAGS, *units, "-lm", "-o", library],
                cwd=scratch,
                capture_output=True,
                text=True,
                check=False,
            )
            if not done.returncode:
                return {f"binaries/{folder}/{library}": Path(scratch, library).read_bytes()}
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        reason = f"`{' '.join(compiler.command)}` failed: {' '.join(last)}"
    warnings.warn(
        CompilerWarning(
            f"{model.identifier}.fmu holds sources only: {reason}. Use it with a tool that "
            "compiles FMUs from their sources, or write it on a machine with gcc or clang."
        ),
        stacklevel=3,
    )
    return {}
