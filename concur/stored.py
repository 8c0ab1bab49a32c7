"""Files of results, opened by what is in them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur.campaign import CampaignResult
from concur.certify import Status
from concur.checker import StoredTaskProof, is_task_proof, load_task_proof
from concur.control import JointLimits
from concur.documents import as_path, document_hash
from concur.errors import DescriptionError, shown
from concur.files import read_json
from concur.hdf5 import hdf5_file
from concur.io import recorded_robot
from concur.outputs import Output
from concur.results import Row, StoredResult, read_result, read_rows
from concur.robot import Mechanism
from concur.simulation import RunRecord

__all__ = ["load_result"]

ARRAYS = ("t", "q", "v", "u", "error", "margin", "q_range", "v_range", "u_range")
"""Arrays of a `RunRecord`."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """Robot, outputs and arrays of a recorded run; name and unit of each column by array."""

    name: str
    robot: Mechanism
    outputs: tuple[Output, ...]
    arrays: dict[str, np.ndarray]
    columns: dict[str, list[tuple[str, str]]]
    stopped: str  # why the run ended early
    judged: tuple[Row, ...]
    parameters: str  # of the law, in words


def load_result(
    path: str | PathLike[str],
) -> RunRecord | CampaignResult | StoredTaskProof | StoredResult:
    """Open a saved result of any kind: what is in the file decides.

    Parameters
    ----------
    path : str or path-like
        A run (run.h5, or the folder of its results), a campaign (campaign.h5), a proof of a task
        or a certificate (.json), or what `save` of another result or a command with ``--json`` has
        written.

    Returns
    -------
    RunRecord, CampaignResult, StoredTaskProof or StoredResult
        The result, with `status`, `rows` and `figures`. Proofs and certificates are UNVERIFIED,
        whatever their files state: `recheck` verifies them.

    Raises
    ------
    DescriptionError
        If the file cannot be read, or is no result.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> goal = cc.references.hold([0.3, 0.0])
    >>> run = cc.simulate(robot, servo, goal, 0.1, robot.neutral(), [0] * 5, dt=0.01)
    >>> path = run.save("run.h5")
    >>> cc.load_result(path).rows == run.rows
    True
    """
    file = as_path(path, "load_result")
    if is_run(str(file)):
        run = file / "run.h5" if file.is_dir() else file
        expected = "a run or a campaign"
        with hdf5_file(run, expected, "Name run.h5 or campaign.h5 of concur.") as opened:
            campaign = "campaign" in opened
        return CampaignResult.load(run) if campaign else read_run(str(run))
    if is_task_proof(file):
        return load_task_proof(file)
    data = read_json(file, "a result of concur", "Name a file that `save` of a result has written.")
    if isinstance(data, dict) and str(data.get("format", "")).startswith("concur "):
        return _certificate(file, data)
    return read_result(file)


def _certificate(path: Path, data: dict[str, Any]) -> StoredResult:
    """Status and rates of a certificate; a stated proof is UNVERIFIED."""
    try:
        sound = document_hash(data) == data["hash"]
        stated = Status[data["status"]]
    except (KeyError, TypeError, ValueError, RecursionError):
        sound, stated = False, Status.UNDECIDED
    if not sound:
        raise DescriptionError(
            str(path),
            expected="a certificate with its hash and its status",
            came="a file that was changed, or another one",
            cure="Write it again with `save` of the certificate.",
            file=str(path),
        )
    proved = stated is Status.PROVED
    units = {"rate": "1/s", "margin": "", "radius": ""}
    rows = tuple(
        Row(name, float(data[name]), unit=unit)
        for name, unit in units.items()
        if proved and isinstance(data.get(name), (int, float))
    )
    status = Status.UNVERIFIED if proved else stated
    return StoredResult(data["format"], str(data.get("robot", "")), status, rows)


def read_run(name: str) -> RunRecord:
    """Read a recorded run from its file, or from the folder of its results."""
    found = read_recorded(name, ARRAYS)
    limits = JointLimits.of(found.robot)
    return RunRecord(
        robot=found.robot, outputs=found.outputs, joint_limits=limits, name=found.name,
        stopped=found.stopped, judged=found.judged,
        parameters=found.parameters, **found.arrays,
    )  # fmt: skip


def is_run(name: str) -> bool:
    """Whether a name is that of a recorded run: of its file, or of the folder of its results."""
    return Path(name).is_dir() or Path(name).suffix == ".h5"


def read_recorded(name: str, arrays: Iterable[str]) -> Recorded:
    """Read arrays of a run from its file, or from the folder of its results."""
    path = Path(name) / "run.h5" if Path(name).is_dir() else Path(name)
    expected = "the file of a run with its robot, as this version of concur writes it"
    cure = "`concur track TASK` writes run.h5 into the folder of its results."
    with hdf5_file(path, expected, cure) as file:
        facts = file.attributes()
        if "plant" not in facts:
            file.refuse("another file (no attribute `plant`)")
        mechanism, made = recorded_robot(file)
        columns = {key: file.columns(key) for key in arrays}
        widths = {key: _width(key, mechanism, columns[key]) for key in columns}
        values = file.table(widths)
        try:
            judged = read_rows(json.loads(file.text("rows"))) if "rows" in file else ()
        except (ValueError, TypeError, RecursionError) as problem:
            file.refuse(f"another file ({shown(str(problem), 100)})", "rows")
    title, stopped = facts.get("task", "") or facts["plant"], facts.get("stopped", "")
    words = str(facts.get("law_parameters", ""))
    return Recorded(str(title), mechanism, made, values, columns, str(stopped), judged, words)


def _width(name: str, robot: Mechanism, columns: list[tuple[str, str]]) -> int | None:
    """Number of columns of an array; None for one number per row."""
    sizes = {"q": robot.nq, "v": robot.nv, "t": None, "margin": None}
    return sizes.get(name.removesuffix("_range"), len(columns))
