"""`concur verify`: the requirements of a task in many worlds, with a report."""

from __future__ import annotations

import os
import re
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from concur.cli._answer import Answer, Reply
from concur.cli._app import Overwrite, command
from concur.cli._folder import Results, foreign, results
from concur.errors import ConcurError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from concur.campaign import Campaign, CampaignResult, WorstFound
    from concur.certify import LoopCertificate

WORLDS = "worlds.h5"
"""Results file: a campaign continues from it."""

INTERRUPTED = f"interrupted: {WORLDS} contains the worlds so far; the same command continues"


@command(
    "Campaigns and controllers",
    "the requirements of a task in many worlds",
    "concur verify examples/rover_campaign.toml --samples 500",
    "0 all requirements hold in all worlds, 1 a world breaks one, 2 bad input.",
)
def verify(
    reply: Reply,
    task: Path,
    samples: Annotated[int, typer.Option(min=1)] = 1000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    search: Annotated[int, typer.Option(min=0)] = 0,
    jobs: Annotated[int | None, typer.Option(min=1)] = None,
    scheduler: Annotated[str | None, typer.Option(metavar="ADDRESS")] = None,
    proofs: Annotated[bool, typer.Option("--certify")] = False,
    disturbance: Annotated[float | None, typer.Option(min=0.0)] = None,
    out: Path | None = None,
    overwrite: Overwrite = False,
) -> Answer:
    """Simulate a task in many imperfect worlds; report what breaks its requirements.

    Worlds are drawn from the [uncertainty] of the task. The worst world of each requirement is
    written as a task file for `concur track`. In a folder with results of the same campaign the
    command continues; those of another one are refused. Results are samples, not proofs.

    Parameters
    ----------
    task : path
        Task file (.toml) with [uncertainty].
    samples : int
        Number of worlds that are drawn.
    seed : int
        Seed: the same worlds on any machine.
    search : int
        Then search the worst world of each requirement, with at most this number of worlds each;
        needs the extra `verify`.
    jobs : int, optional
        Number of processes; default threads of this process, one for each processor.
    scheduler : str, optional
        Dask scheduler whose workers are used; needs the extra `cluster`.
    proofs : bool
        Draw what `concur certify` proves: decay of the errors, tubes and the torques of
        [operating], each with its assumptions; needs the extra `certify`.
    disturbance : float, optional
        Bound of the unmodelled output acceleration for the tubes of --certify, in m/s^2; default
        the largest of the drawn runs, which proves nothing.
    out : path, optional
        Folder of the results; default out/<name of the file>/verify.
    """
    from concur.campaign import Campaign, CampaignReport, cluster, sampled_curves, workers
    from concur.certify import certify_task
    from concur.io import load_task, suspicious_task

    if jobs is not None and scheduler is not None:
        raise ConcurError(
            "options `--jobs` and `--scheduler`",
            expected="one of them",
            came="both",
            cure="Omit `--jobs`: the scheduler brings its workers.",
        )
    given, folder = load_task(task), out or Path("out") / task.stem / "verify"
    own: dict[str, Any] = {
        "name": given.name,
        "robot": given.robot.name,
        "warnings": suspicious_task(given),
    }
    with reply.warned(own["warnings"]):
        campaign = Campaign(given, seed)
    proved = None
    if proofs or disturbance is not None:
        with reply.progress("certifying") as report:
            proved = certify_task(given, progress=report)
    with ExitStack() as stack:
        kept = stack.enter_context(results(folder, "verify", overwrite, keep=(WORLDS,)))
        executor = None if scheduler is None else stack.enter_context(cluster(scheduler))
        pool = stack.enter_context(workers(jobs if executor is None else executor))
        began, file = time.perf_counter(), folder / WORLDS
        try:
            result, found = _sampled(campaign, samples, search, pool, file, reply)
        except KeyboardInterrupt:
            kept.end("partial", INTERRUPTED)
            return Answer(status="partial", problems=[INTERRUPTED], files=[file], **own)
        finally:
            kept.files += [file] * file.exists()
        taken = time.perf_counter() - began
        with reply.progress("writing the report"):
            bounds: tuple[Any, ...] = (None, disturbance, None)
            if proved is not None:
                bounds = (proved.decay, disturbance, proved.operating)
            page = CampaignReport(
                result,
                given.name,
                found,
                curves=sampled_curves(campaign, result, 12, *bounds),
                files=_worst(campaign, result, found, kept, overwrite),
                facts={"Task": str(task), "Time": f"{taken:.3g} s", **_proofs(proved)},
            )
            kept.publish([page.write(kept.staging), result.save(kept.staging / "campaign.h5")])
        answer = Answer.of(
            page,
            problems=() if page.passed else (page.sentence, *page.problems),
            files=(*kept.files, folder / "report.json"),
            verdict=f"{page.status}, {page.sentence}",
            listed=(),
            shown=[
                *page.tables,
                *page.notes,
                f"{len(result)} worlds in {taken:.3g} s; sampled, not proved",
                f"results in {folder}, start with {folder / 'report.html'}",
            ],
            **own,
        )
        kept.document(reply, answer, "report.json")
        return kept.close_with(answer)


def _sampled(
    campaign: Campaign, samples: int, search: int, pool: Executor, file: Path, reply: Reply
) -> tuple[CampaignResult, tuple[WorstFound, ...]]:
    """Evaluate worlds, then search the worst ones."""
    from concur.campaign import verify, worst_searches

    with reply.progress("compiling"):
        campaign.prepare()
    with reply.progress("simulating worlds") as report:
        result = verify(campaign, samples, pool, file=file, progress=report)
    if not search:
        return result, ()
    with reply.progress("searching") as report:
        return result, worst_searches(campaign, result, search, pool, report)


def _proofs(proved: LoopCertificate | None) -> dict[str, str]:
    """Facts on the proofs that were requested."""
    if proved is None:
        return {}
    decay, box = proved.decay, proved.operating
    reasons = [part.reason for part in decay.parts if part.status is not decay.status.PROVED]
    words = [decay.status.name, *dict.fromkeys(reasons), f"if {'; if '.join(decay.conditions)}"]
    facts = {"Certificate": " ".join(words)}
    return facts if box is None else facts | {"Operating box": f"{box.status.name}: {box.reason}"}


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
