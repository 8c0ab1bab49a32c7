"""What is written beside the rows: which rig, robot, law and certificate, on which machine."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concur import __version__
from concur.codegen import fingerprint
from concur.errors import shown
from concur.files import confined, read_json
from concur.simulation import coordinate_columns, velocity_columns
from hil.errors import RecordError
from hil.record._drain import MANIFEST_FILE, ROWS_FILE, end_manifest, reserve_end, write_json
from hil.record.copies import valid_copies
from hil.record.rows import SCALARS, Layout

if TYPE_CHECKING:
    from concur.control import TrackingLaw
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
VERSION = 1
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
    """Everything that is known when a run starts.

    Parameters
    ----------
    rig : Rig
        The rig.
    layout : Layout
        What stands in a row.
    servo : TrackingLaw
        Servo of the rig's task.
    clock : Clock, optional
        The loop's clock; the machine's monotonic clock if not given.
    mode : str
        In which mode the loop runs.
    ring : str
        Name of the ring in shared memory.
    files : sequence of mapping
        Copies that the record carries, as of `save_copies`.
    facts : mapping, optional
        What else is to be kept, such as what the operating system granted.

    Returns
    -------
    dict
        As JSON types.
    """
    now = time.monotonic() if clock is None else clock.now()
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": rig.name,
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
        "rig_file": str(rig.path.resolve()),  # where it stood, for people
        "files": list(files),
        "fingerprints": fingerprints(rig, servo),
        "certificate": _certificate(rig.certificate),
        "machine": machine(),
        "packages": _packages(),
        "python": sys.version.split()[0],
        "facts": dict(facts or {}),
    }


def fingerprints(rig: Rig, servo: TrackingLaw) -> dict[str, str | None]:
    """Digests that tell whether a record can be computed again.

    Parameters
    ----------
    rig : Rig
        The rig.
    servo : TrackingLaw
        Servo of its task.

    Returns
    -------
    dict of str to str or None
        `rig` and `task`: of the files; `driver`: of those that `drive_modules` names, None if there
        are none; `robot` and `law`: of all their numbers and of the code
        that uses them, None where these hold classes of a user's own; `code`: of that code alone.
    """
    return {
        "rig": file_hash(rig.path),
        "task": file_hash(rig.task.path),
        "driver": _driver_hash(rig),
        "robot": fingerprint("robot", servo.model.robot),
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
        What stands in a row.

    Returns
    -------
    dict of str to list of [str, str]
        For each name of the layout one pair for each number.
    """
    robot, axes = servo.model.robot, layout.axes
    rates = dict(velocity_columns(robot))
    errors = [
        (f"{output.name}.{name}", unit)
        for output in servo.outputs
        for name, unit in zip(output.coordinate_names, output.coordinate_units, strict=True)
    ]
    pose = [
        (f"{output.name}.{name}", _POSE_UNITS.get(name, "1"))
        for output in servo.outputs
        for name in output.lie.coordinate_names
    ]
    forces = dict(zip(servo.model.control_names, servo.model.control_units, strict=True))
    torques = [(axis, forces.get(axis, "N m")) for axis in axes]
    lengths = [(axis, "m" if unit == "N" else "rad") for axis, unit in torques]
    found: dict[str, list[tuple[str, str]]] = {
        "q": coordinate_columns(robot),
        "s": [(name, rates.get(name, "rad/s")) for name in servo.velocity_names],
        "pose": pose,
        "error": errors,
        "twist": [(name, f"{unit}/s") for name, unit in errors],
        "acceleration": [(name, f"{unit}/s^2") for name, unit in errors],
        "demand": torques,
        "torque": torques,
        "measured": torques,
        "position": lengths,
        "velocity": [(name, f"{unit}/s") for name, unit in lengths],
        "report_time": [(axis, "s") for axis in axes],
    }
    scalars = dict(SCALARS)
    told: dict[str, list[list[str]]] = {}
    for name, span in layout.spans.items():
        length = span.stop - span.start
        pairs = found.get(name, [(axis, "1") for axis in axes])
        if name in scalars:
            pairs = [(name, scalars[name] or "1")]
        if len(pairs) != length:
            pairs = [(f"{name}[{i}]", "1") for i in range(length)]
        told[name] = [list(pair) for pair in pairs]
    return told


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a record, and keep room for that of its end.

    Parameters
    ----------
    folder : Path
        Folder of the record.
    manifest : mapping
        As of `make_manifest`.

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
            cure="Name another `directory` in `[recorder]`, or free some space.",
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
        What `make_manifest` gave and, if the run was ended, how: `end`.

    Raises
    ------
    RecordError
        If there is none, or it is another kind of file.
    """
    path = folder / MANIFEST_FILE
    cure = "Name the folder of one run: one of those in `directory` of `[recorder]`."
    with confined(folder):
        found = read_json(path, "the manifest of a record", cure, RecordError)
    known = isinstance(found, dict) and found.get("format") == FORMAT
    if not known or found.get("version") != VERSION:
        came = f"{found.get('format')!r}, version {found.get('version')!r}" if known else "another"
        raise RecordError(
            str(path),
            expected=f"the manifest of a record, version {VERSION}",
            came=came,
            cure="Read it with the version of concur that wrote it: `packages` in it.",
        )
    for name, valid in _ENTRIES.items():
        if name in found and not valid(found[name]):
            raise RecordError(
                f"{path}, `{name}`",
                expected="what a recorder writes there",
                came=shown(repr(found[name]), 60),
                cure="Take the manifest from a copy.",
            )
    return dict(found)


def is_count(value: object) -> bool:
    """Whether an entry of a manifest is a number of rows."""
    return type(value) is int and 0 <= value <= 2**53


def _is_number(value: object) -> bool:
    """Whether an entry of a manifest is a number; JSON knows integers that no float can hold."""
    return type(value) is float or (type(value) is int and abs(value) <= 2**53)


def _is_pairs(found: object) -> bool:
    """Whether names and units of columns are lists of two texts each."""
    return isinstance(found, dict) and all(
        isinstance(pairs, list)
        and all(
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(x, str) for x in pair)
            for pair in pairs
        )
        for pairs in found.values()
    )


_END_TEXTS = "reason", "recorder", "note"


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
    "files": valid_copies,
    "end": _is_end,
}
"""What entries of a manifest must be: a record may be of anybody."""


def file_hash(path: Path) -> str | None:
    """SHA-256 of a file, hexadecimal; None if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _driver_hash(rig: Rig) -> str | None:
    """SHA-256 of all files that register drives, in their order; None if there are none."""
    hashes = [str(file_hash(path)) for path in rig.drive_modules]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest() if hashes else None


def machine() -> dict[str, str]:
    """Which machine this is: floating-point bits are compared on the same one only.

    Returns
    -------
    dict of str to str
        Name of the machine, of its processor and of its system.
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
    found = {"concur": __version__}
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
