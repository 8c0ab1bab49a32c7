"""Report of a record as an HTML page with figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil._concur import Marked, Section, write_page
from hil.reasons import Reason, State
from hil.record import Record
from hil.views.figures import CAPTIONS, FIGURES, _largest, _name, active_limits, reason_name

if TYPE_CHECKING:
    from hil.replay import ReplayReport


def quality_rows(record: Record) -> list[tuple[str, str, str, bool | None]]:
    """Loop statistics of a record: name, value, limit, and whether the limit is met.

    Parameters
    ----------
    record : Record
        A record.

    Returns
    -------
    list of (str, str, str, bool or None)
        Rows of the report's summary; None: there is no limit.
    """
    rows: list[tuple[str, str, str, bool | None]] = []
    reason = reason_name(record)
    rows.append(("ended because", reason, "the task is done", reason == Reason.END.sentence))
    end = record.manifest.get("end") or {}
    published = len(record) + int(end.get("unwritten", 0)) + int(end.get("lost", 0))
    rows.append(("cycles in the record", str(len(record)), f"all {published}", record.complete))
    run = record["state"] == State.RUN
    rows.append(("cycles in RUN", str(int(run.sum())), "", None))
    for name, what in (
        ("late", "late cycles"),
        ("lost", "missing reports"),
        ("clipped", "cycles with a limited torque"),
    ):
        values = record[name]
        rows.append((what, f"{values[-1]:.0f}" if len(values) else "0", "", None))
    limits = active_limits(record)
    if record.layout.limits:
        count = int(np.any([*limits.values(), np.zeros(len(record), np.bool_)], axis=0).sum())
        rows.append(("cycles with active limits of the law", str(count), "", None))
    for name, hit in limits.items():
        times = record.time[hit]
        words = f"{int(hit.sum())} cycles, from {times[0]:.4g} s to {times[-1]:.4g} s"
        rows.append((f"limit active: {name}", words, "", None))
    period = 1e6 / float(record.manifest.get("rate", np.nan))
    shares: list[tuple[str, NDArray[np.float64], float | None]] = [
        ("lateness", record["time"] - record["deadline"], None),
        ("compute", record["compute"], 1.0),
    ]
    for what, values, share in shares:
        microseconds = 1e6 * values[np.isfinite(values)]
        if not microseconds.size:
            continue
        quantiles = np.quantile(microseconds, (0.5, 0.999, 1.0))
        value = "median {:.3g}, 99.9 % {:.3g}, largest {:.4g} µs".format(*quantiles)
        limit = "" if share is None else f"median below the period, {period:.6g} µs"
        kept = None if share is None else bool(quantiles[0] < share * period)
        rows.append((what, value, limit, kept))
    error = record["error"][run]
    groups: dict[tuple[str, str], list[int]] = {}
    for i, (name, unit) in enumerate(record.columns("error")):
        groups.setdefault((name.rpartition(".")[0], unit), []).append(i)
    for (output, unit), members in groups.items():
        norm = np.linalg.norm(error[:, members], axis=1)
        if norm.size:
            rows.append((f"last error of {output}", f"{norm[-1]:.3g} {unit}", "", None))
    for i, (name, unit) in enumerate(record.columns("torque")):
        bound = float(record.manifest.get("limits", {}).get(name, {}).get("torque", np.nan))
        peak = _largest(np.abs(record["torque"][:, i]))
        rows.append(
            (
                f"largest torque of {name}",
                f"{peak:.3g} {unit}",
                f"{bound:.3g} {unit}",
                peak <= bound,
            )
        )
    return rows


def write_report(
    record: Record,
    directory: str | PathLike[str],
    figures: Mapping[str, Path] | None = None,
    replayed: ReplayReport | None = None,
) -> Path:
    """Write `report.html`: verdict, loop statistics, circumstances and figures on one page.

    Parameters
    ----------
    record : Record
        A record.
    directory : str or os.PathLike
        Target folder; created if it is missing.
    figures : mapping of str to pathlib.Path, optional
        PNG files from `save_figures`; default: draw the figures.
    replayed : ReplayReport, optional
        Result of a replay, to include in the page.

    Returns
    -------
    pathlib.Path
        The page. Figures are embedded; the page refers to no other files.

    Raises
    ------
    ConcurError
        If the page cannot be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> options = hil.SessionOptions(
    ...     hil.Mode.MOCK, duration=0.1, folder=Path("record"), heartbeat="auto")
    >>> result = hil.run_session(rig, options)
    >>> page = hil.write_report(hil.Record.load(result.folder), "report")
    >>> page.name
    'report.html'
    """
    rows = quality_rows(record)
    words = {None: "–", True: "✓ met", False: "✗ not met"}
    table = [Marked((*row, words[kept]), kept) for *row, kept in rows]
    files = figures or {}
    drawn = {
        name: (files.get(name) or draw(record), CAPTIONS.get(name, ""))
        for name, draw in FIGURES.items()
    }
    sections = [
        Section("Loop statistics", "", ("Quantity", "Value", "Limit", "Verdict"), table),
        Section("Notes", "\n".join(record.notes)) if record.notes else None,
        Section("Replay", rows=replayed.rows()) if replayed is not None else None,
        Section("Figures", figures=drawn),
        Section("Circumstances", rows=list(_facts(record)), folded=True),
    ]
    title, good, headline, reasons = _verdict(record, rows, replayed)
    return write_page(directory, title, good, headline, reasons, filter(None, sections))


def _verdict(
    record: Record,
    rows: Iterable[tuple[str, str, str, bool | None]],
    replayed: ReplayReport | None,
) -> tuple[str, bool, str, list[str]]:
    missed = [f"{label}: {value}." for label, value, _, kept in rows if kept is False]
    reasons = list(missed)
    if replayed is not None:
        other = ", ".join(f"another {name}" for name in replayed.forced)
        why = replayed.first or "; ".join(record.faults) or other or "no cycle was evaluated"
        reasons.append(
            "The replay reproduces every recorded cycle."
            if replayed.passed
            else f"The replay differs from the record: {why}."
        )
    bad = bool(missed) or (replayed is not None and not replayed.passed)
    headline = "Run failed" if bad else "Run passed"
    return f"Record of {_name(record)}", not bad, headline, reasons


def _facts(record: Record) -> Iterable[tuple[str, str]]:
    manifest = record.manifest
    yield "Started", str(manifest.get("started", ""))
    yield "Mode", str(manifest.get("mode", ""))
    yield "Duration", f"{record.duration:.6g} s, {len(record)} cycles"
    yield "Rig", str(manifest.get("rig_file", ""))
    for name, value in manifest.get("fingerprints", {}).items():
        yield f"Fingerprint of {name}", str(value or "none")
    certificate = manifest.get("certificate")
    if certificate:
        yield "Certificate", f"{certificate['file']}: {certificate['status']}"
    proof = manifest.get("proof")
    if proof:
        yield "Proof of the task", f"{proof['file']}: {proof['sentence']}"
    machine = manifest.get("machine", {})
    parts = [str(machine[name]) for name in ("node", "processor") if machine.get(name)]
    yield "Machine", ", ".join(parts)
    packages = [f"{name} {number}" for name, number in manifest.get("packages", {}).items()]
    yield "Software", ", ".join([f"Python {manifest.get('python', '')}", *packages])
