"""`concur check`: whether a robot is what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.cli._tables import audit_dict, audit_table
from concur.formats import load, load_shipped, shipped_names
from concur.multibody import Mechanism
from concur.reduction import Audit, ReducedModel, reduce


@dataclass(frozen=True)
class CheckResult:
    """A robot, its reduction, and the assumptions.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    model : ReducedModel
        Its reduction.
    audit : Audit
        The assumptions.
    """

    robot: Mechanism
    model: ReducedModel
    audit: Audit

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON.

        Returns
        -------
        dict
            Bodies with masses and principal moments, reduction and assumptions.
        """
        return {
            "robot": self.robot.name,
            "bodies": [
                {
                    "name": body.name,
                    "parent": body.parent,
                    "joint": type(body.joint).__name__,
                    "mass": body.inertia.mass,
                    "principal_moments": body.inertia.principal_moments.tolist(),
                }
                for body in self.robot.bodies
            ],
            "constraints": list(self.robot.constraint_names),
            "kind": self.model.kind,
            "reason": self.model.reason,
            "shape": list(self.model.shape_names),
            "audit": audit_dict(self.audit),
            "holds": self.audit.holds,
        }

    def show(self, console: Console) -> None:
        """Print the result.

        Parameters
        ----------
        console : rich.console.Console
            Where to.
        """
        table = Table(title=f"Robot {self.robot.name}", title_justify="left")
        for title in ("body", "parent", "joint", "driven", "mass [kg]", "moments [kg m^2]"):
            table.add_column(title)
        for body in self.robot.bodies:
            moments = ", ".join(f"{x:.4g}" for x in body.inertia.principal_moments)
            driven = "yes" if body.name in (self.robot.actuated or ()) else ""
            joint = type(body.joint).__name__
            mass = f"{body.inertia.mass:.4g}"
            table.add_row(body.name, body.parent or "", joint, driven, mass, moments)
        console.print(table)
        for name in self.robot.constraint_names:
            console.print(f"constraint: {name}", highlight=False)
        reason = f"reduction: {self.model.kind}: {self.model.reason}"
        console.print(escape(reason), highlight=False)
        console.print(f"shape velocities: {', '.join(self.model.shape_names)}")
        console.print(audit_table(self.audit))


def check_robot(robot: str) -> CheckResult:
    """Load, reduce and audit a robot.

    Parameters
    ----------
    robot : str
        File, or name of a shipped robot.

    Returns
    -------
    CheckResult
        What was found.

    Raises
    ------
    ConcurError
        If the robot cannot be read, built or reduced.
    """
    shipped = robot in shipped_names() and not Path(robot).is_file()
    mechanism = load_shipped(robot) if shipped else load(robot)
    model = reduce(mechanism)
    return CheckResult(mechanism, model, model.audit())
