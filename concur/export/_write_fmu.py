"""Archives of co-simulation units (FMUs) for other simulators, in FMI 2.0 and 3.0."""

from __future__ import annotations

import hashlib
import platform
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from concur.codegen import CompilationError, CompilerWarning, find_compiler
from concur.errors import UnknownNameError
from concur.export._fmu import TOKEN, FmuModel, fmu_files
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
    texts = fmu_files(model, fmi)
    digest = hashlib.sha256()
    for name in sorted(texts):
        digest.update(f"{name}\0{texts[name]}\0".encode())
    token = f"{{{uuid.UUID(bytes=digest.digest()[:16])}}}"
    contents = {name: text.replace(TOKEN, token).encode() for name, text in texts.items()}
    with writing(target):  # before the compilation, which takes long
        target.mkdir(parents=True, exist_ok=True)
    if binary:
        contents |= _binary(model, fmi, contents)
    path = target / f"{model.identifier}.fmu"
    with writing(target), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
            archive.writestr(entry, contents[name])
    return path


def _binary(model: FmuModel, version: str, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """The library for this machine, by its path in the archive; empty without a compiler."""
    machine = _MACHINES.get(platform.machine().lower())
    system, suffix = _SYSTEMS.get(sys.platform, (None, None))
    folder: str | None = f"{machine}-{system}"
    if version == "2.0":
        folder = _OLD_NAMES.get(str(folder))
    compiler, library = find_compiler(), f"{model.identifier}{suffix}"
    if machine is None or system is None or folder is None:
        reason = f"FMI {version} has no name for this machine, {platform.machine()} {sys.platform}"
    elif compiler is None:
        reason = "no C compiler was found"
    else:
        sources = {
            Path(name).name: content
            for name, content in contents.items()
            if name.endswith((".c", ".h"))
        }
        level = "-O2" if sum(map(len, sources.values())) < _LONG else "-O1"
        with tempfile.TemporaryDirectory() as scratch:
            for name, content in sources.items():
                Path(scratch, name).write_bytes(content)
            units = sorted(name for name in sources if name.endswith(".c"))
            try:
                compiler.run([level, *FLAGS, *units, "-lm", "-o", library], Path(scratch))
                return {f"binaries/{folder}/{library}": Path(scratch, library).read_bytes()}
            except CompilationError as error:
                reason = f"`{' '.join(compiler.command)}` failed: {error}"
    warnings.warn(
        CompilerWarning(
            f"{model.identifier}.fmu holds sources only: {reason}. Use it with a tool that "
            "compiles FMUs from their sources, or write it on a machine with gcc or clang."
        ),
        stacklevel=3,
    )
    return {}
