"""The torque bound in a certificate of the law, for comparison with the limits of the rig."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil._concur import read_json
from hil.errors import RigFileError

if TYPE_CHECKING:
    from hil.settings import Rig


@dataclass(frozen=True)
class TorqueBound:
    """Torque bound of an operating certificate."""

    path: Path
    status: str  # PROVED, REFUTED or UNDECIDED
    ranges: dict[str, tuple[float, float]]  # box of configurations of the bound, rad and m
    torque: dict[str, float]  # bound of each control, N m (N); infinite without a proved bound

    def exceeded(self, rig: Rig) -> list[str]:
        """Axes whose torque limit is below the bound."""
        return [a.name for a in rig.axes if not self.torque[a.name] <= a.torque_limit]


def load_bound(rig: Rig) -> TorqueBound | None:
    """Read the certificate of a rig file; None if it has none."""
    path = rig.certificate
    if path is None:
        return None

    def refusal(expected: str, came: str) -> RigFileError:
        return RigFileError(
            f"{rig.path}, `certificate`",
            expected=expected,
            came=came,
            cure="Name the operating.json that `concur certify` writes for the rig's task, whose "
            "table [operating] must contain ranges and speeds.",
        )

    try:
        document: Any = read_json(path, "an operating certificate", "Check the name.", RigFileError)
        robot, status = document["robot"], document["status"]
        names, lower, upper = document["controls"], document["lower"], document["upper"]
        ranges = {k: (float(v[0]), float(v[1])) for k, v in document["ranges"].items()}
        sizes = [
            math.inf if low is None or high is None else max(abs(float(low)), abs(float(high)))
            for low, high in zip(
                lower or [None] * len(names), upper or [None] * len(names), strict=True
            )
        ]
        torque = {str(name): size for name, size in zip(names, sizes, strict=True)}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise refusal("an operating certificate", f"{path}, an invalid file ({error})") from error
    if robot != rig.task.robot.name:
        raise refusal(f"a certificate of `{rig.task.robot.name}`", f"a certificate of `{robot}`")
    return TorqueBound(
        path, str(status), ranges, {a.name: torque.get(a.name, math.inf) for a in rig.axes}
    )
