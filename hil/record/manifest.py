"""Manifest of a record: rig, robot, law, certificate, proof, machine and software of a run."""

from __future__ import annotations

import hashlib
import json
import platform
import secrets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil._concur import (
    ConcurError,
    concur_version,
    confined,
    coordinate_columns,
    fingerprint,
    read_json,
    shown,
    velocity_columns,
)
from hil.errors import RecordError
from hil.record._drain import MANIFEST_FILE, ROWS_FILE, end_manifest, reserve_end, write_json
from hil.record.copies import valid_copies
from hil.record.rows import SCALARS, Layout

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil.clock import Clock
    from hil.settings import Rig

__all__ = [
    "FORMAT",
    "ROWS_FILE",
    "columns",
    "end_manifest",
    "fingerprints",
    "machine",
    "make_manifest",
    "read_manifest",
    "write_manifest",
]

FORMAT = "concur rig record"
VERSION = 3
PACKAGES = (
    "numpy",
    "casadi",
    "scipy",
    "python-can",
    "canopen",
    "msgpack",
    "pyzmq",
    "mcap",
    "h5py",
)

_POSE_UNITS = {"x": "m", "y": "m", "z": "m", "heading": "rad"}


def make_manifest(
    rig: Rig,
    layout: Layout,
    servo: TrackingLaw,
    *,
    clock: Clock | None = None,
    mode: str = "",
    ring: str = "",
    files: Sequence[Mapping[str, str]] = (),
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Collect the metadata of a run at its start.

    Parameters
    ----------
    rig : Rig
        The rig.
    layout : Layout
        Layout of the rows.
    servo : TrackingLaw
        Servo of the rig's task.
    clock : Clock, optional
        The loop's clock; default: the machine's monotonic clock.
    mode : str
        Mode of the loop.
    ring : str
        Name of the ring in shared memory.
    files : sequence of mapping
        Copies in the record, from `save_copies`.
    facts : mapping, optional
        Further entries, such as the granted real-time settings.

    Returns
    -------
    dict
        The manifest, of JSON types.
    """
    now = time.monotonic() if clock is None else clock.now()
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": rig.name,
        "run": secrets.token_hex(16),
        "mode": mode,
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "wall_minus_clock": time.time() - now,
        "clock_at_start": now,
        "rate": rig.loop.rate,
        "ring": ring,
        "layout": layout.to_dict(),
        "columns": columns(servo, layout),
        "limits": {
            axis.name: {"torque": axis.torque_limit, "speed": axis.speed_limit} for axis in rig.axes
        },
        "buses": [
            {
                "name": bus.name,
                "interface": bus.interface,
                "channel": bus.channel,
                "axes": [axis.name for axis in rig.on(k).axes],
            }
            for k, bus in enumerate(rig.buses)
        ],
        "rig_file": str(rig.path.resolve()),  # original path, for information
        "files": list(files),
        "fingerprints": fingerprints(rig, servo),
        "certificate": _certificate(rig.certificate),
        "proof": _proof(rig.proof),
        "machine": machine(),
        "packages": _packages(),
        "python": sys.version.split()[0],
        "facts": dict(facts or {}),
    }


def fingerprints(rig: Rig, servo: TrackingLaw) -> dict[str, str | None]:
    """Digests that show whether a record can be replayed.

    Parameters
    ----------
    rig : Rig
        The rig.
    servo : TrackingLaw
        Servo of its task.

    Returns
    -------
    dict of str to str or None
        `rig` and `task`: of the files; `driver`: of the files in `drive_modules`, None if there are
        none; `robot` and `law`: of all their numbers and of the code that uses them, None if they
        contain classes of the user; `code`: of the code alone.
    """
    return {
        "rig": file_hash(rig.path),
        "task": file_hash(rig.task.path),
        "driver": _driver_hash(rig),
        "robot": fingerprint("robot", servo.model.system),
        "law": fingerprint("tick", servo),
        "code": fingerprint("code", 0),
    }


def columns(servo: TrackingLaw, layout: Layout) -> dict[str, list[list[str]]]:
    """Name and unit of each number in a row.

    Parameters
    ----------
    servo : TrackingLaw
        Servo of the rig's task.
    layout : Layout
        Layout of the rows.

    Returns
    -------
    dict of str to list of [str, str]
        For each quantity of the layout, one pair for each number.
    """
    robot, axes = servo.model.system, layout.axes
    rates = dict(velocity_columns(robot))
    errors = [
        (f"{output.name}.{name}", unit)
        for output in servo.outputs
        for name, unit in zip(output.coordinate_names, output.coordinate_units, strict=True)
    ]
    twists = [
        (f"{output.name}.{name}", unit)
        for output in servo.outputs
        for name, unit in zip(
            output.lie.paths.error_names, output.lie.paths.error_units, strict=True
        )
    ]
    pose = [
        (f"{output.name}.{name}", _POSE_UNITS.get(name, "1"))
        for output in servo.outputs
        for name in output.lie.coordinate_names
    ]
    forces = dict(zip(servo.model.control_names, servo.model.control_units, strict=True))
    torques = [(axis, forces.get(axis, "N m")) for axis in axes]
    lengths = [(axis, "m" if unit == "N" else "rad") for axis, unit in torques]
    measured = servo.use_measured_velocity
    velocity_names = robot.freedom_names if measured else servo.model.shape_names
    found: dict[str, list[tuple[str, str]]] = {
        "q": coordinate_columns(robot),
        "s": [(name, rates.get(name, "rad/s")) for name in velocity_names],
        "pose": pose,
        "error": errors,
        "twist": [(name, f"{unit}/s") for name, unit in twists],
        "acceleration": [(name, f"{unit}/s^2") for name, unit in twists],
        "demand": torques,
        "torque": torques,
        "measured": torques,
        "residual": torques,
        "allowed": torques,
        "position": lengths,
        "velocity": [(name, f"{unit}/s") for name, unit in lengths],
        "report_time": [(axis, "s") for axis in axes],
        "active": [(name, "1") for name in layout.limits],
    }
    scalars = dict(SCALARS)
    named: dict[str, list[list[str]]] = {}
    for name, span in layout.spans.items():
        length = span.stop - span.start
        pairs = found.get(name, [(axis, "1") for axis in axes])
        if name in scalars:
            pairs = [(name, scalars[name] or "1")]
        if len(pairs) != length:
            pairs = [(f"{name}[{i}]", "1") for i in range(length)]
        named[name] = [list(pair) for pair in pairs]
    return named


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a record, and reserve disk space for the final manifest.

    Parameters
    ----------
    folder : Path
        Folder of the record.
    manifest : mapping
        The manifest, from `make_manifest`.

    Raises
    ------
    RecordError
        If it cannot be written.
    """
    try:
        write_json(folder / MANIFEST_FILE, manifest)
        reserve_end(folder, (folder / MANIFEST_FILE).stat().st_size)
    except OSError as error:
        raise RecordError(
            str(folder / MANIFEST_FILE),
            expected="a file that can be written",
            came=error.strerror or str(error),
            cure="Set another `directory` in `[recorder]`, or free disk space.",
        ) from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a record.

    Parameters
    ----------
    folder : Path
        Folder of the record.

    Returns
    -------
    dict
        Result of `make_manifest` and, if the run was ended, its `end`.

    Raises
    ------
    RecordError
        If the file is missing or is not a manifest.
    """
    path = folder / MANIFEST_FILE
    cure = "Name the folder of one run, which is in `directory` of `[recorder]`."
    with confined(folder):
        found = read_json(path, "the manifest of a record", cure, RecordError)
    known = isinstance(found, dict) and found.get("format") == FORMAT
    if not known or found.get("version") != VERSION:
        came = "a file of another format"
        if known:
            came = f"{found.get('format')!r}, version {found.get('version')!r}"
        raise RecordError(
            str(path),
            expected=f"the manifest of a record, version {VERSION}",
            came=came,
            cure="Read it with the version of concur that wrote it, see its entry `packages`.",
        )
    for name, valid in _ENTRIES.items():
        if name in found and not valid(found[name]):
            raise RecordError(
                f"{path}, `{name}`",
                expected="a value as written by a recorder",
                came=shown(repr(found[name]), 60),
                cure="Restore the manifest from a backup.",
            )
    return dict(found)


def is_count(value: object) -> bool:
    """Whether an entry of a manifest is a number of rows."""
    return type(value) is int and 0 <= value <= 2**53


def _is_number(value: object) -> bool:
    """Whether an entry of a manifest is a number that a float can represent."""
    return type(value) is float or (type(value) is int and abs(value) <= 2**53)


def _is_pairs(found: object) -> bool:
    """Whether an entry contains lists of pairs of name and unit."""
    return isinstance(found, dict) and all(
        isinstance(pairs, list)
        and all(
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)
            for pair in pairs
        )
        for pairs in found.values()
    )


_END_TEXTS = "reason", "recorder", "note", "link"


def _is_end(found: object) -> bool:
    return (
        isinstance(found, dict)
        and all(is_count(found[name]) for name in ("rows", "lost", "unwritten") if name in found)
        and all(isinstance(found[name], str) for name in _END_TEXTS if name in found)
        and isinstance(counters := found.get("counters", {}), dict)
        and all(map(_is_number, counters.values()))
        and isinstance(left := found.get("left", []), list)
        and all(isinstance(sentence, str) for sentence in left)
    )


_ENTRIES: dict[str, Callable[[Any], bool]] = {
    "name": lambda found: isinstance(found, str),
    "run": lambda found: isinstance(found, str),
    "mode": lambda found: isinstance(found, str),
    "wall_minus_clock": lambda found: type(found) in (int, float) and abs(found) < 1e12,
    "rate": lambda found: _is_number(found) and 0 < found < float("inf"),
    "columns": _is_pairs,
    "limits": lambda found: (
        isinstance(found, dict)
        and all(
            isinstance(limit, dict) and all(map(_is_number, limit.values()))
            for limit in found.values()
        )
    ),
    "fingerprints": lambda found: isinstance(found, dict),
    "machine": lambda found: isinstance(found, dict),
    "facts": lambda found: isinstance(found, dict),
    "packages": lambda found: isinstance(found, dict),
    "certificate": lambda found: (
        found is None or (isinstance(found, dict) and {"file", "status"} <= set(found))
    ),
    "proof": lambda found: (
        found is None or (isinstance(found, dict) and {"file", "sentence"} <= set(found))
    ),
    "files": valid_copies,
    "end": _is_end,
}
"""Checks of the entries of a manifest, as a record may come from an untrusted source."""


def file_hash(path: Path) -> str | None:
    """SHA-256 of a file, hexadecimal; None if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _driver_hash(rig: Rig) -> str | None:
    """SHA-256 of all files that register drives, in order; None if there are none."""
    hashes = [str(file_hash(path)) for path in rig.drive_modules]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest() if hashes else None


def machine() -> dict[str, str]:
    """Identify this machine: floating-point bits are compared only on the same machine.

    Returns
    -------
    dict of str to str
        Names of the machine, its processor and its system.
    """
    model = platform.processor()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "node": platform.node(),
        "machine": platform.machine(),
        "processor": model,
        "system": platform.platform(),
    }


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _packages() -> dict[str, str]:
    found = {"concur": concur_version}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _certificate(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    found: dict[str, Any] = {
        "file": str(path.resolve()),
        "sha256": file_hash(path),
        "status": "missing",
    }
    text = _text(path)
    if text is not None:
        try:
            document = json.loads(text)
            found["status"] = str(document["status"])
            found["format"] = str(document.get("format", ""))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            found["status"] = "no certificate"
    return found


def _proof(path: Path | None) -> dict[str, Any] | None:
    """File of the proof of the task, with its claim."""
    from hil._concur import load_task_proof  # heavy

    if path is None:
        return None
    try:
        sentence = load_task_proof(path).sentence
    except ConcurError as error:
        sentence = str(error)
    return {"file": str(path.resolve()), "sha256": file_hash(path), "sentence": sentence}
