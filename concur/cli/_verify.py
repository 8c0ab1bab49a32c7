"""`concur verify`: the requirements of a task in many worlds, with a report."""

from __future__ import annotations

import json
import os
import re
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur._progress import track
from concur.campaign import (
    Campaign,
    CampaignReport,
    CampaignResult,
    WorstFound,
    cluster,
    sampled_curves,
    verify,
    workers,
    worst_searches,
)
from concur.certify import (
    Certificate,
    OperatingCertificate,
    Status,
    certify,
    operating_bounds,
)
from concur.cli._answer import Answer
from concur.cli._results import Results, foreign, results
from concur.cli._tables import warned
from concur.cli._warnings import task_warnings
from concur.errors import ConcurError
from concur.io import load_task
from concur.tables import located

WORLDS = "worlds.h5"
"""Results file: a campaign continues from it."""


_INTERRUPTED = f"{WORLDS} contains the worlds so far; the same command continues"


def verify_task(
    path: Path,
    samples: int,
    folder: Path,
    console: Console,
    seed: int = 0,
    search: int = 0,
    jobs: int | None = None,
    scheduler: str | None = None,
    overwrite: bool = False,
    proofs: bool = False,
    disturbance: float | None = None,
) -> Answer:
    """Run a campaign and write its results into a folder.

    Worlds of an earlier run of the same campaign in the folder are not evaluated again. With
    `proofs` or a disturbance, m/s^2, the report has the bounds that `certify` proves.
    """
    if jobs is not None and scheduler is not None:
        raise ConcurError(
            "options `--jobs` and `--scheduler`",
            expected="one of them",
            came="both",
            cure="Omit `--jobs`: the scheduler brings its workers.",
        )
    task = load_task(path)
    warnings = task_warnings(task)
    with warned(warnings, console):
        campaign = Campaign(task, seed)
    certificate, operating = None, None
    if proofs or disturbance is not None:
        with console.status("certifying"):
            certificate = certify(task.servo)
            if task.operating is not None and not task.servo.nz:
                with located(task.path, "[operating]"):
                    operating = operating_bounds(
                        replace(task.servo, use_measured_velocity=False), **task.operating
                    )
    with ExitStack() as stack:
        kept = stack.enter_context(results(folder, "verify", overwrite, keep=(WORLDS,)))
        executor = None if scheduler is None else stack.enter_context(cluster(scheduler))
        pool = stack.enter_context(workers(jobs if executor is None else executor))
        shown, started = not console.quiet, time.perf_counter()
        with console.status("compiling"):
            campaign.prepare()
        try:
            result = verify(campaign, samples, pool, file=folder / WORLDS, progress=shown)
            found: tuple[WorstFound, ...] = ()
            if search:
                with track(shown, "searching", 1.0) as progress:
                    found = worst_searches(campaign, result, search, pool, progress)
        except KeyboardInterrupt:
            kept.end("partial", f"interrupted: {_INTERRUPTED}")
            return Answer(
                command="verify",
                passed=False,
                status="partial",
                name=task.name,
                robot=task.robot.name,
                problems=(f"interrupted: {_INTERRUPTED}",),
                warnings=warnings,
                files=(folder / WORLDS,),
            )
        finally:
            kept.files += [folder / WORLDS] * (folder / WORLDS).exists()
        taken = time.perf_counter() - started
        with console.status("writing the report"):
            report = CampaignReport(
                result,
                task.name,
                found,
                curves=sampled_curves(campaign, result, 12, certificate, disturbance, operating),
                files=_worst(campaign, result, found, kept, overwrite),
                facts={"Task": str(path), "Time": f"{taken:.3g} s"}
                | _proofs(certificate, operating),
            )
            staged = [report.write(kept.staging), result.save(kept.staging / "campaign.h5")]
        kept.publish(staged)
        verified = Answer(
            command="verify",
            passed=report.passed,
            status="passed" if report.passed else "failed",
            name=task.name,
            robot=task.robot.name,
            problems=() if report.passed else (report.status, *report.problems),
            warnings=warnings,
            files=(*kept.files, folder / "report.json"),
            rows=result.rows,
            own=report.as_dict(),
            verdict=f"{'passed' if report.passed else 'failed'}, {report.status}",
            table=_table(report),
            shown=[
                str(report.rates[0]),
                *(f"crashed: {crash}" for crash in report.crashes[:5]),
                f"{len(result)} worlds in {taken:.3g} s; sampled, not proved",
                f"results in {folder}, start with {folder / 'report.html'}",
            ],
        )
        text = json.dumps(verified.as_dict(), indent=2, allow_nan=False)
        (kept.staging / "report.json").write_text(text + "\n", encoding="utf-8")
        kept.publish([kept.staging / "report.json"])
        kept.end(verified.status, "; ".join(verified.problems))
    return replace(verified, files=(*kept.files, kept.manifest))


def _proofs(
    certificate: Certificate | None, operating: OperatingCertificate | None
) -> dict[str, str]:
    """Facts on the proofs that were requested."""
    facts = {}
    if certificate is not None:
        reasons = [part.reason for part in certificate.parts if part.status is not Status.PROVED]
        conditions = f"if {'; if '.join(certificate.conditions)}"
        facts["Certificate"] = " ".join(
            [certificate.status.name, *dict.fromkeys(reasons), conditions]
        )
    if operating is not None:
        facts["Operating box"] = f"{operating.status.name}: {operating.reason}"
    return facts


def _worst(
    campaign: Campaign,
    result: CampaignResult,
    found: tuple[WorstFound, ...],
    kept: Results,
    overwrite: bool,
) -> dict[str, str]:
    """Write the worst world of each requirement as a task file, for `concur track`."""
    searched = {one.requirement: one for one in found}
    files = {}
    for k, (name, _) in enumerate(result.columns):
        row = int(result.robustness[:, k].argmin())
        world, number = result.worlds[row], int(result.numbers[row])
        one = searched.get(name)
        if one is not None and one.value < result.robustness[row, k]:
            world, number = one.world, one.number
        slug = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
        target = kept.folder / f"worst_{k + 1}_{slug}.toml"
        if os.path.lexists(target) and not overwrite:
            raise foreign(kept.folder, [target.name])
        kept.files.append(target)
        kept.write_manifest()  # before the file: a killed run leaves none that no run lists
        campaign.task.write_world(target, world, number, result.seed)
        files[name] = target.name
    return files


def _table(report: CampaignReport) -> Table:
    """Requirements, their share of worlds and the worst world."""
    table = Table(title_justify="left")
    for title, side in (("requirement", "left"), ("pass", "right"), ("lowest robustness", "right"),
                        ("world", "right"), ("task file", "left")):  # fmt: skip
        table.add_column(title, justify=side, overflow="fold")  # type: ignore[arg-type]
    for rate, worst in zip(report.rates[1:], report.worst, strict=True):
        lowest = min([worst.value, *(o.value for o in report.found if o.requirement == rate.name)])
        good = rate.passed == rate.worlds and lowest > 0.0
        table.add_row(
            escape(rate.name),
            f"[{'green' if good else 'bold red'}]{rate.passed} of {rate.worlds}[/]",
            f"{lowest:.4g} {worst.unit}".removesuffix(" 1"),
            str(worst.number),
            escape(report.files.get(rate.name, "")),
        )
    return table
