"""How a base with wheels stands: supports, the loads they share, and limits of load and grip.

`concur.reduction._ground` has the loads of a wrench, and the forces X_j along two wheels of one
axle with their common lateral force F_y, which is split between them in an unknown way. Neither
wheel slips, whatever the split, if |(X_j, F_y)| is at most the friction coefficient times N_j for
both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from concur._polynomials import Floats
from concur.errors import OutputError
from concur.proofs._quantity import Quantity, require_known
from concur.reduction import (
    DETERMINATE,
    axle_rows,
    contact_edges,
    contact_points,
    load_arms,
    load_shares,
    tipping_rows,
)
from concur.robot import Mechanism
from concur.simulation import Plant, Slip

LIFTED = 1e9
"""Friction coefficient of a wheel that has lifted off; it keeps no limit."""


@dataclass(frozen=True)
class Ground:
    """Wheels and supports of a base, and what their loads and friction have to keep.

    Make it with `Ground.of`, which reads the wheels from the robot.

    Parameters
    ----------
    names : tuple of str
        The wheels, then the supports, which carry no horizontal force.
    axle : int
        2 if friction is bounded, that of two disks on one axle with loads that are determined;
        else 0.
    places : tuple of tuple of float
        Contact points along x and y of the base, from its origin (m).
    height : float
        Height of the ground in the frame of the base (m).
    least_load : tuple of float
        Least load of each (N).
    compliance : tuple of float, optional
        Vertical compliance of each (m/N); only ratios matter. More than three share the load by
        it. Without one, their loads are not determined: `tipping` is bounded instead.
    tipping : float
        Least moment about each edge of the polygon of more than three supports without compliance,
        from the inside (N m).
    grip : float, optional
        Largest friction coefficient that a wheel may need.
    """

    names: tuple[str, ...]
    axle: int
    places: tuple[tuple[float, float], ...]
    height: float
    least_load: tuple[float, ...]
    compliance: tuple[float, ...] | None = None
    tipping: float = 0.0
    grip: float | None = None

    @classmethod
    def of(
        cls,
        robot: Mechanism,
        *,
        supports: Mapping[str, Sequence[float]] | None = None,
        compliance: float | Mapping[str, float] | None = None,
        least_load: float | Mapping[str, float] = 0.0,
        tipping: float = 0.0,
        grip: float | None = None,
    ) -> Ground:
        """Ground under a robot.

        Parameters
        ----------
        robot : Mechanism
            Robot with wheels.
        supports : mapping of str to sequence of float, optional
            Supports beside the wheels: by name the point of contact in the frame of the base,
            shape (3,), m; its height does not matter. Default: those of the robot.
        compliance : float or mapping of str to float, optional
            Vertical compliance of wheels and supports, m/N.
        least_load : float or mapping of str to float
            Least load of wheels and supports, N; 0 for names that a mapping lacks.
        tipping : float
            Least moment about each edge of the polygon of supports, N m.
        grip : float, optional
            Largest friction coefficient that a wheel may need.

        Returns
        -------
        Ground
            The ground.

        Raises
        ------
        OutputError
            If loads are not determined, or a number is negative.
        SimulationError, UnknownNameError
            If supports are in line, or names or numbers do not fit.

        Examples
        --------
        >>> ground = Ground.of(cc.robots.rover_arm(), supports={"caster": (0.5, 0.0, 0.0)})
        >>> ground.names
        ('left_wheel', 'right_wheel', 'caster')
        """
        where = f"ground under `{robot.name}`"
        slip = Slip.of(robot, 1.0, supports=supports, compliance=compliance)
        count = len(robot.wheels) + len(slip.supports)
        if count < DETERMINATE:
            raise OutputError(
                where,
                expected="three or more wheels and supports, whose loads the balance determines",
                came=f"{count}: the loads are not well posed",
                cure="Declare a support, such as a caster, in `supports` of [proof] or "
                "of the robot.",
            )
        shared = Slip.of(
            robot, 1.0, supports=slip.supports, compliance=1.0 if compliance is None else compliance
        )
        names = Plant(robot, slip=shared).load_names  # checks gravity, names and places
        arms = load_arms(robot, ca.SX.sym("q", robot.nq), slip.supports)
        if robot.base.placement.rotation_matrix.tolist() != np.eye(3).tolist() or (
            robot.ground_height is None or not arms.is_constant()
        ):
            raise OutputError(
                where,
                expected="a base in inertial axes, on wheels at fixed places",
                came="another base, or wheels that move against it",
                cure="Remove supports, loads and grip from the statement.",
            )
        points = contact_points(arms)
        disks = len(robot.wheels) == 2 and all(wheel.kind == "disk" for wheel in robot.wheels)
        (x, left), (behind, right) = points[:2]
        paired = disks and abs(x - behind) <= 1e-12 * abs(left - right)
        least = least_load if isinstance(least_load, Mapping) else dict.fromkeys(names, least_load)
        require_known(least, names, f"{where}, `least_load`")
        return cls(
            names,
            2 if paired and (count == DETERMINATE or compliance is not None) else 0,
            tuple(points),
            float(robot.ground_height),
            tuple(float(least.get(name, 0.0)) for name in names),
            shared.compliance if compliance is not None else None,
            float(tipping),
            None if grip is None else float(grip),
        )

    def __post_init__(self) -> None:
        given = [*self.least_load, self.tipping, *([] if self.grip is None else [self.grip])]
        if not all(np.isfinite(x) and x >= 0.0 for x in given):
            raise OutputError(
                "ground of a proof",
                expected="finite numbers that are not negative",
                came=str(given),
                cure="Give loads in N, moments in N m and a friction coefficient.",
            )
        if self.loose and (any(self.least_load) or self.grip is not None):
            raise OutputError(
                "ground of a proof",
                expected="the compliance of more than three wheels and supports",
                came=f"limits of load or grip of {len(self.names)} of them without it",
                cure="Give `compliance`, such as 1.0 if all yield alike; or limit `tipping`.",
            )
        if self.tipping and not self.loose:
            raise OutputError(
                "ground of a proof",
                expected="`least_load`, as the loads are determined",
                came="a limit of `tipping`",
                cure="Replace it.",
            )
        if self.grip is not None and not self.axle:
            raise OutputError(
                "ground of a proof",
                expected="two disks on one axle, whose longitudinal forces are determined",
                came="a limit of `grip` of other wheels",
                cure="Remove `grip`.",
            )

    @property
    def sentence(self) -> str:
        """The contacts, and how their loads follow."""
        names = ", ".join(self.names)
        if self.loose:
            how = "only the existence of loads is shown: their compliance is not given"
        elif self.compliance:
            how = "loads are shared by their compliance"
        else:
            how = "loads follow from the balance"
        return f"{names}; {how}"

    @property
    def loose(self) -> bool:
        """Whether the balance and the compliance leave loads open."""
        return len(self.names) > DETERMINATE and self.compliance is None

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        """Edges of the polygon of supports, counterclockwise."""
        return contact_edges(self.places)

    @cached_property
    def rows(self) -> Floats:
        """From the wrench [force; moment] about the base's origin to what is bounded, (k, 6).

        Loads, forces along both wheels and the lateral force; or the moments about all edges.
        """
        # About the point of the ground below the origin.
        down = np.eye(6)
        down[3, 1], down[4, 0] = self.height, -self.height
        x, y = np.array(self.places).T
        arms = np.vstack([np.ones(len(x)), y, -x])
        if self.loose:
            own = np.asarray(ca.DM(tipping_rows(ca.SX(arms), self.edges)))
        else:
            own = load_shares(arms, self.compliance)
        bounded = own @ down[2:5]
        return np.vstack([bounded, axle_rows(self.places)]) if self.axle else bounded

    def seen(self, wrench: ca.SX) -> ca.SX:
        """Loads and grips, or moments about edges, in a motion.

        Parameters
        ----------
        wrench : casadi.SX
            Force and moment on the base about its origin, in its axes, shape (6,), N and N m.

        Returns
        -------
        casadi.SX
            Values of `quantities`; 1e9 is the grip of a wheel without load.
        """
        found = ca.DM(self.rows) @ wrench
        count = len(self.quantities) - self.axle
        loads, forces = found[:count], found[count:]
        grips = [
            ca.if_else(
                loads[k] > 0.0,
                ca.fmin(ca.norm_2(ca.vertcat(forces[k], forces[2])) / loads[k], LIFTED),
                LIFTED,
            )
            for k in range(self.axle)
        ]
        return ca.vertcat(loads, *grips)

    @property
    def quantities(self) -> list[Quantity]:
        """Quantities that are bounded."""
        if self.loose:
            sides = [f"{self.names[i]} to {self.names[j]}" for i, j in self.edges]
            return [Quantity("tipping", name, "N m", -1.0) for name in sides]
        found = [Quantity("load", name, "N", -1.0) for name in self.names]
        return found + [Quantity("grip", name, "") for name in self.names[: self.axle]]

    @property
    def limits(self) -> dict[tuple[str, str], float]:
        """Limit of each quantity by its kind and name."""
        if self.loose:
            return {made.key: self.tipping for made in self.quantities}
        loads = zip(self.names, self.least_load, strict=True)
        found = {("load", name): least for name, least in loads}
        if self.grip is not None:
            found |= {("grip", name): self.grip for name in self.names[: self.axle]}
        return found
