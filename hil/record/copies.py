"""Copies of the source files of a record in its folder, so that the record needs no other files.

The folder `files` contains rig, task, robots, certificate, proof and drive modules with their
original relative paths, so that references between them stay valid. By default the copies are only
read: the code of drive modules runs only if the caller allows it explicitly. Hashes in the manifest
do not replace this permission.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from hil._concur import confined, is_file, is_python, read_bytes
from hil.errors import RecordError

if TYPE_CHECKING:
    from hil.settings import Rig

FOLDER = "files"
"""Folder of the copies, in the folder of the record."""

MODULE = "drive module"
"""Role of files whose code a rig runs."""

LARGEST_NUMBER = 100
"""Largest number of copies in a record."""


def sources(rig: Rig) -> list[tuple[str, Path]]:
    """Files that a rig was read from.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    list of (str, Path)
        Role and file: rig, task, robots, references, drive modules, certificate, proof.
    """
    task = rig.task
    found = [("rig", rig.path), (MODULE if is_python(task.path) else "task", task.path)]
    for role, name in (("robot", task.robot_file), ("plant", task.plant_file)):
        if name is not None:
            path = task.path.parent / name
            found.append((role, path))
            sidecar = path.with_suffix(".toml")
            if path.suffix.lower() == ".urdf" and is_file(sidecar):
                found.append((role, sidecar))
    if task.source is not None and task.source.path == task.path:
        if task.law_file is not None:
            found.append((MODULE, task.law_file))
        known = {os.path.normpath(path) for _, path in found}
        others = [name for name in task.source.files if name not in known]
        found += [("reference", Path(name)) for name in others]
    found += [(MODULE, path) for path in rig.drive_modules]
    if rig.certificate is not None:
        found.append(("certificate", rig.certificate))
    if rig.proof is not None:
        found.append(("proof", rig.proof))
    return found


def save_copies(rig: Rig, folder: Path) -> list[dict[str, str]]:
    """Copy the files that a rig was read from into the folder of a record.

    Parameters
    ----------
    rig : Rig
        The rig.
    folder : Path
        Folder of the record.

    Returns
    -------
    list of dict
        For the manifest, for each file: `role`, `file` (its path below `files`), `was` (its
        original path, for files that refer to it) and `sha256`. A file that can no longer be read
        is skipped.

    Raises
    ------
    RecordError
        If the copies cannot be written.
    """
    files = [(role, Path(os.path.abspath(path))) for role, path in sources(rig)]
    root = Path(os.path.commonpath([path.parent for _, path in files]))
    copies = []
    for role, path in files:
        try:
            data = path.read_bytes()
        except OSError:
            continue
        place = path.relative_to(root)
        target = folder / FOLDER / place
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise RecordError(
                str(target),
                expected="a file that can be written",
                came=error.strerror or str(error),
                cure="Set another `directory` in `[recorder]`, or free disk space.",
            ) from error
        digest = hashlib.sha256(data).hexdigest()
        copies.append({"role": role, "file": place.as_posix(), "was": str(path), "sha256": digest})
    return copies


def copied_modules(manifest: Mapping[str, Any]) -> list[dict[str, str]]:
    """Copies of files with code, as listed in the manifest.

    Parameters
    ----------
    manifest : mapping
        Manifest of the record.

    Returns
    -------
    list of dict
        Entries as from `save_copies`.
    """
    return [copy for copy in manifest.get("files", []) if copy["role"] == MODULE]


def recorded_rig(folder: Path, manifest: Mapping[str, Any], allow_code: bool = False) -> Rig:
    """Read the rig of a record from its copies; nothing outside of its folder is read.

    Parameters
    ----------
    folder : Path
        Folder of the record.
    manifest : mapping
        Its manifest.
    allow_code : bool
        Whether the copied drive modules may be run.

    Returns
    -------
    Rig
        The recorded rig.

    Raises
    ------
    RecordError
        If the record contains no copies, if they differ from those in the manifest, or if the
        record contains code that is not allowed to run.
    DescriptionError
        If a copy is invalid, or refers to a file outside of the record.
    """
    from hil.rig import load_rig

    copies = manifest.get("files", [])
    rigs = [copy for copy in copies if copy["role"] == "rig"]
    if len(rigs) != 1:
        raise RecordError(
            f"record {folder}",
            expected="one copy of the rig file of the run",
            came=f"{len(rigs)} copies in the manifest",
            cure="Pass the rig file with `--rig`.",
        )
    home = folder / FOLDER
    with confined(folder):
        for copy in copies:
            data = read_bytes(home / copy["file"], "a copy in a record", "Restore the record.")
            if hashlib.sha256(data).hexdigest() != copy["sha256"]:
                raise RecordError(
                    str(home / copy["file"]),
                    expected=f"the {copy['role']} file of the time of the recording",
                    came="a file with another hash",
                    cure="Restore the record from a backup, or pass the rig file with `--rig`.",
                )
        modules = copied_modules(manifest)
        if modules and not allow_code:
            raise RecordError(
                f"record {folder}",
                expected="a record without Python code",
                came=f"a record with Python code: {whose(manifest)}",
                cure="Read the code. If you would run it yourself, allow it with `--allow-code`; "
                "else pass your own rig file with `--rig`.",
            )
        allowed = {(home / module["file"]).resolve() for module in modules}
        with confined(folder, {copy["was"]: home / copy["file"] for copy in copies}):
            return load_rig(home / rigs[0]["file"], allowed=allowed)


def whose(manifest: Mapping[str, Any]) -> str:
    """Describe the code in a record and its claimed origin.

    Parameters
    ----------
    manifest : mapping
        Manifest of the record.

    Returns
    -------
    str
        Names and hashes of the files, and machine and time from the manifest.
    """
    files = ", ".join(
        f"`{copy['file']}` (SHA-256 {copy['sha256'][:16]})" for copy in copied_modules(manifest)
    )
    machine, started = manifest.get("machine", {}).get("node"), manifest.get("started")
    return f"{files}, recorded on `{machine}` at {started}, according to the record itself"


def valid_copies(found: object) -> bool:
    """Whether the copies in a manifest have the form of entries from `save_copies`.

    Parameters
    ----------
    found : object
        Entry `files` of a manifest.

    Returns
    -------
    bool
        False if a path is not below the folder of the copies, or is listed twice.
    """
    if not isinstance(found, list) or len(found) > LARGEST_NUMBER:
        return False
    places = set()
    for copy in found:
        if not (isinstance(copy, dict) and {"role", "file", "was", "sha256"} == set(copy)):
            return False
        if not all(isinstance(value, str) for value in copy.values()):
            return False
        place = PurePosixPath(copy["file"])
        plain = copy["file"].isprintable() and "\\" not in copy["file"]
        if not plain or place.is_absolute() or ".." in place.parts or not place.parts:
            return False
        if not re.fullmatch("[0-9a-f]{64}", copy["sha256"]):
            return False
        places.add((copy["role"], str(place)))
    return len(places) == len(found)
