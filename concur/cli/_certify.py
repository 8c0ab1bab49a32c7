"""`concur certify`: proved decay rate and certified region of a task's servo."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, cast

from concur.cli._answer import Answer, Reply
from concur.cli._app import Out, Overwrite, TaskFile, command
from concur.cli._folder import results
from concur.cli._options import one_of, within

if TYPE_CHECKING:
    from concur.certify import Method
    from concur.results import Result


@command(
    "Prove",
    "a decay rate of the errors, with its region",
    "concur certify examples/free_floater.toml --angle 90 --out out/certificate",
)
def certify(
    reply: Reply,
    task: TaskFile,
    angle: float = 90.0,
    distance: float | None = None,
    method: str = "tight",
    disturbance: float | None = None,
    out: Out = None,
    overwrite: Overwrite = False,
) -> Answer:
    """Prove a decay rate of the errors of a task, with its certified region.

    Writes the proof to proof.json, verifies this file independently, and draws figures, which are
    also on the page certificate.html. The exit status is 0 only if all claims are proved; 1 if one
    is refuted or undecided.

    Parameters
    ----------
    angle : float
        Largest rotation error covered by the certificate, in degrees.
    distance : float, optional
        Largest position error covered where rotations act on it, in m; default: as far as the
        gains allow.
    method : str
        tight: a search with a proof; thesis: the constants of Theorem 5.4.2.
    disturbance : float, optional
        Bound of an unmodelled output acceleration, in m/s^2, with rotations scaled by the
        channel's length: prove and draw the tubes of the errors.
    """
    from concur.certify import certify_task
    from concur.io import load_task, task_facts
    from concur.show import write_result

    with results(out or Path("out") / task.stem, "certify", overwrite) as kept:
        within("angle", angle, 180.0, "degrees")
        within("distance", distance, unit="m")
        within("disturbance", disturbance, unit="m/s^2")
        one_of("method", method, ("tight", "thesis"))
        given = load_task(task)
        way = cast("Method", method)
        with reply.progress("certifying") as report:
            found = certify_task(given, math.radians(angle), distance, way, disturbance, report)
        found = found.save(kept.staging)
        kept.publish(kept.staging / name for name in found.files)
        kept.publish(kept.staging.glob("*.json"))  # the operating box
        drawn = kept.draw(reply, found.figures)
        title, made = f"Certificate of {given.name}", cast("Result", found)
        page = write_result(made, kept.staging, title, task_facts(given), drawn)
        kept.publish([page.rename(kept.staging / "certificate.html")])
        own = {"name": given.name, "robot": given.robot.name, "warnings": found.differences}
        return kept.close_with(Answer.of(found, **own))
