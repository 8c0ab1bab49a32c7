"""The assumptions of the theory, checked on a robot: CON1-CON9 and NHR1-NHR3.

Numbers follow section 5.1 (CON) and section 4.3 (NHR) of the thesis; DYN is the condition
that the law itself needs and that the others do not imply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import as_floats
from concur.errors import ShapeError
from concur.reduction._dependents import freedom_scales, rows_change
from concur.reduction._lift import STAGES_HINT, Lift
from concur.results import JsonResult, Row, show
from concur.robot import Mechanism, unknown_name
from concur.system import System

SAMPLES = 32
"""Configurations at which a condition is tested, the neutral one included."""


CON4 = "the reference is feasible (that it is C2 is taken on trust)"
"""Statement of CON4: the motion is followed, the smoothness of the reference is not tested."""


class AuditStatus(Enum):
    """Outcome of one check."""

    HOLDS = "holds"
    FAILS = "fails"
    NOT_NEEDED = "not needed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class AuditRow:
    """One condition and what was found.

    Parameters
    ----------
    id : str
        Number of the condition, like "CON3".
    statement : str
        The condition in a sentence.
    status : AuditStatus
        Whether it holds.
    why : str
        The evidence, with numbers.
    values : dict
        Those numbers.
    """

    id: str
    statement: str
    status: AuditStatus
    why: str
    values: dict[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, repr=False)
class Audit(JsonResult):
    """Rows of checked conditions.

    Parameters
    ----------
    conditions : tuple of AuditRow
        One per condition.
    """

    kind = "audit"

    conditions: tuple[AuditRow, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """Conditions as rows of a result: the evidence is their place."""
        marks = {AuditStatus.HOLDS: True, AuditStatus.FAILS: False}
        return tuple(
            Row(f"{c.id}: {c.statement}", c.status.value, place=c.why, holds=marks.get(c.status))
            for c in self.conditions
        )

    @property
    def applicable(self) -> tuple[AuditRow, ...]:
        """Rows that apply to the robot: all but unchecked ones among NHR1 to NHR3."""
        unchecked = AuditStatus.NOT_CHECKED
        return tuple(r for r in self if not (r.id.startswith("NHR") and r.status is unchecked))

    @property
    def details(self) -> list[dict[str, str]]:
        """Conditions for JSON."""
        return [
            {"id": r.id, "statement": r.statement, "status": r.status.value, "why": r.why}
            for r in self
        ]

    @property
    def holds(self) -> bool:
        """Whether no condition fails."""
        return all(row.status is not AuditStatus.FAILS for row in self.conditions)

    @property
    def failures(self) -> tuple[AuditRow, ...]:
        """Rows that fail."""
        return tuple(row for row in self.conditions if row.status is AuditStatus.FAILS)

    def __iter__(self) -> Iterator[AuditRow]:
        return iter(self.conditions)

    def __getitem__(self, id: str) -> AuditRow:
        known = {row.id: row for row in self.conditions}
        if id not in known:
            raise unknown_name("audit", "condition", id, list(known))
        return known[id]

    def __str__(self) -> str:
        return "\n".join(
            f"{row.id:<5} {row.status.value:<12} {row.statement}: {row.why}"
            for row in self.conditions
        )

    def __repr__(self) -> str:
        counts = Counter(row.status.value for row in self.conditions)
        parts = ", ".join(f"{number} {status}" for status, number in counts.items())
        return f"<audit of {len(self.conditions)} assumptions: {parts}>"

    def _repr_html_(self) -> str:

        return show("notebook.audit_html", self)

    def replace(self, *rows: AuditRow) -> Audit:
        """Copy with rows put in place of those with the same number, or appended.

        Parameters
        ----------
        *rows : AuditRow
            New rows.

        Returns
        -------
        Audit
            The copy.
        """
        new = {row.id: row for row in rows}
        kept = tuple(new.pop(row.id, row) for row in self.conditions)
        return Audit((*kept, *new.values()))


def audit(
    model: Lift, outputs: tuple[Any, ...] | None, working_set: ArrayLike | None = None
) -> Audit:
    """Check the assumptions at random configurations, NHR3 at the working set if there is one.

    For NHR1-NHR3 the configurations are within the limits of the joints.
    """
    rng, robot = np.random.default_rng(1), model.system
    samples = [robot.neutral(), *(robot.random(rng) for _ in range(SAMPLES - 1))]
    within = samples
    if _has_bodies(robot):
        within = [robot.coupled(np.clip(q, *robot.limits.T)) for q in samples]
    rows = [
        _invariance(model, samples, rng),
        _no_actuator_along_group(model, samples),
        _closed_basis(model),
        _not_checked("CON4", CON4, "no reference was given"),
        *_counts(model, outputs),
        _not_checked("CON7", "the initial state obeys wheels and momentum", "no state was given"),
        AuditRow(
            "CON8",
            "coordinates can be listed with the dependent ones first",
            AuditStatus.HOLDS,
            "by construction: the lift names its dependent and shape velocities",
        ),
        *_platform(model, within, _working_set(model, working_set)),
    ]
    if model.first.kind == "constrained":
        rows = [_waived(row) for row in rows]
    order = {f"CON{i}": i for i in range(1, 10)}
    return Audit(tuple(sorted(rows, key=lambda row: order.get(row.id, 99))))


def _row(id: str, statement: str, holds: bool, why: str, **values: float) -> AuditRow:
    status = AuditStatus.HOLDS if holds else AuditStatus.FAILS
    return AuditRow(id, statement, status, why, values)


def _waived(row: AuditRow) -> AuditRow:
    """A symmetry that fails takes nothing from a lift that does not rest on one."""
    if row.id not in ("CON1", "NHR2") or row.status is not AuditStatus.FAILS:
        return row
    why = f"it fails, but the lift is used without a symmetry group: {row.why}"
    return replace(row, status=AuditStatus.NOT_NEEDED, why=why)


def _not_checked(id: str, statement: str, why: str) -> AuditRow:
    return AuditRow(id, statement, AuditStatus.NOT_CHECKED, why)


def _invariance(model: Lift, samples: list[np.ndarray], rng: np.random.Generator) -> AuditRow:
    """CON1: nothing depends on the coordinates of the group; gravity does not push along it."""
    robot = model.system
    statement = "kinetic energy, potential and constraints are invariant under the group"
    group = [i for i in model.first.dependent if i not in _followers(robot)]
    if not group:
        why = "no velocity is dependent: the group is trivial"
        if model.dependent:
            why = "momenta of parts of joints were found constant when the stages were taken"
        return _row("CON1", statement, True, why)
    mass = rows = push = 0.0
    fall = _pull(robot, samples)
    for q in samples:
        moved = _moved(robot, q, group, rng)
        radii, changed = _mass_change(robot, q, moved)
        mass = max(mass, changed)
        turned = np.abs(np.asarray(robot.constraints(moved) - robot.constraints(q))) / radii
        rows = max(rows, turned.max(initial=0.0))
        weight = np.abs(np.asarray(robot.bias(q, np.zeros(robot.nv))) / radii)[group].max()
        push = max(push, weight / fall if fall else 0.0)
    worst = max(mass, rows, push)
    why = (
        f"change of the mass matrix {mass:.1e} relative, of the constraints {rows:.1e}, "
        f"{_forces(robot)[0]} along the group {push:.1e} of {_forces(robot)[1]}"
    )
    if mass >= 1e-9 and _has_bodies(robot):
        why += _unsymmetric(robot, group, samples)
    return _row(
        "CON1",
        statement,
        worst < 1e-9,
        why,
        mass_matrix=mass,
        constraints=rows,
        gravity=push,
    )


def _moved(
    robot: System, q: np.ndarray, freedoms: list[int], rng: np.random.Generator
) -> np.ndarray:
    """Configuration after a random displacement along some velocities."""
    displacement = np.zeros(robot.nv)
    displacement[freedoms] = rng.uniform(-1.0, 1.0, len(freedoms))
    along = getattr(robot, "factor_velocity", None)
    return np.asarray(robot.integrate(q, along(q, displacement) if along else displacement))


def _has_bodies(robot: System) -> TypeGuard[Mechanism]:
    """Whether a system is a tree of bodies."""
    return hasattr(robot, "bodies")


def _followers(robot: System) -> tuple[int, ...]:
    """Velocities of joints that follow others."""
    return robot.followers if _has_bodies(robot) else ()


def _forces(robot: System) -> tuple[str, str]:
    """Words for forces at rest and for their size."""
    if _has_bodies(robot) and not robot.springs:
        return "gravity", "the weight"
    return "forces of the potential", "the largest"


def _pull(robot: System, samples: list[np.ndarray]) -> float:
    """Size of the forces at rest: the weight, or the largest force per radius of gyration."""
    if _has_bodies(robot) and not robot.springs:
        return float(np.linalg.norm(robot.gravity)) * robot.total_mass
    still = np.zeros(robot.nv)
    forces = [np.asarray(robot.bias(q, still)) / _mass_change(robot, q, q)[0] for q in samples]
    return float(np.abs(forces).max(initial=0.0))


def _mass_change(robot: System, q: np.ndarray, moved: np.ndarray) -> tuple[np.ndarray, float]:
    """Radii of gyration, and largest change of the mass matrix relative to them and the mass."""
    inertia = np.asarray(robot.mass_matrix(q))
    mass = robot.total_mass if _has_bodies(robot) else float(np.diag(inertia).max())
    # Radii of gyration: with them all entries of a matrix are in one unit.
    radii = np.sqrt(np.maximum(np.diag(inertia), 0.0) / mass)
    radii = np.where(radii > 0.0, radii, radii.max())
    changed = np.abs(np.asarray(robot.mass_matrix(moved)) - inertia) / np.outer(radii, radii)
    return radii, float(changed.max() / mass)


def _unsymmetric(robot: Mechanism, group: list[int], samples: list[np.ndarray]) -> str:
    """Name the wheels of the group whose rotation alone changes the mass matrix."""
    found = []
    for wheel in robot.wheels:
        spins = set(robot.freedoms(wheel.body)) & set(group)
        if wheel.kind != "slider" and spins:
            turn = np.zeros(robot.nv)
            turn[list(spins)] = 1.0
            changes = [_mass_change(robot, q, robot.integrate(q, turn))[1] for q in samples[:3]]
            if max(changes) >= 1e-9:
                found.append(f"`{wheel.body}`")
    if not found:
        return ""
    return f"; not round about their axles: {', '.join(found)}; correct moments and axes there"


def _no_actuator_along_group(model: Lift, samples: list[np.ndarray]) -> AuditRow:
    """CON2, (5.1.1): the group is not driven, and the controls reach every shape velocity."""
    # Gears of a motor act on the shape through the lift, as its other joints do.
    robot = model.system
    driven = set(robot.actuated_freedoms) & set(model.dependent)
    driven -= set(_followers(robot))
    names = ", ".join(robot.freedom_names[i] for i in sorted(driven))
    least, direction = min((model.leverage(q) for q in samples), key=lambda found: found[0])
    condition = 1.0 / least if least else float("inf")
    why = f"driven along the group: {names or 'none'}; condition of H^T B {condition:.3g}"
    if condition >= 1e8:
        why += f": nothing pushes along {direction}" + _further(model)
    shared = model.nu > model.ns
    if driven and shared:
        why += "; through the lift they share the forces on the shape"
    return _row(
        "CON2",
        "no actuator acts along the group and the controls reach the shape",
        (shared or not driven) and condition < 1e8,
        why,
        condition=condition,
    )


def _closed_basis(model: Lift) -> AuditRow:
    """CON3: the controls are differentials of shape coordinates."""
    robot: Any = model.system
    shape = set(model.shape) & set(getattr(robot, "driven_freedoms", robot.actuated_freedoms))
    missing = [robot.freedom_names[i] for i in model.shape if i not in shape]
    why = "each shape velocity has its own motor"
    if getattr(robot, "motors", ()) or getattr(robot, "drives", ()):
        why = "a control acts on each shape velocity"
    if missing:
        why = f"no motor on {', '.join(missing)}{_further(model)}"
    return _row("CON3", "the controls have a closed basis on the shape", not missing, why)


def _further(model: Lift) -> str:
    """What to do about shape velocities without a motor, if a stage could take one."""
    if STAGES_HINT not in model.reason:
        return ""
    return '; reduce by what keeps its momentum: stages="auto", `concur check --stages auto`'


def _counts(model: Lift, outputs: tuple[Any, ...] | None) -> list[AuditRow]:
    """CON5, CON6 and CON9: how many outputs, and on which groups."""
    statements = {
        "CON5": "there are at least as many controls as outputs",
        "CON6": "each output lives on a Lie subgroup",
        "CON9": "there are exactly as many controls as outputs",
    }
    if outputs is None:
        return [_not_checked(i, text, "no outputs were given") for i, text in statements.items()]
    wanted, controls = sum(output.dim for output in outputs), model.nu
    count = f"{controls} controls, {wanted} output coordinates"
    closure = max((output.closure_residual() for output in outputs), default=0.0)
    return [
        _row("CON5", statements["CON5"], controls >= wanted, count),
        _row(
            "CON6",
            statements["CON6"],
            closure < 1e-12,
            f"brackets leave the algebra by {closure:.1e}",
            closure=closure,
        ),
        _row("CON9", statements["CON9"], controls == wanted, count),
    ]


def _working_set(model: Lift, values: ArrayLike | None) -> list[np.ndarray] | None:
    if values is None:
        return None
    where = "audit, `configurations`"
    array = np.atleast_2d(as_floats(values, f"robot `{model.name}`, {where}"))
    if array.ndim != 2 or not array.size or array.shape[1] != model.nq:
        raise ShapeError(
            f"robot `{model.name}`, {where}",
            expected=f"shape (k, {model.nq}): configurations, one in each row",
            came=f"shape {array.shape}",
            cure="Pass for example the configurations along the reference.",
        )
    return [model.system.check_configuration(q, where) for q in array]


def _platform(
    model: Lift, samples: list[np.ndarray], working_set: list[np.ndarray] | None
) -> list[AuditRow]:
    """NHR1-NHR3, (4.3.24): only the platform rolls, invariantly, and its base follows."""
    robot = model.system
    statements = {
        "NHR1": "only the mobile platform is nonholonomic",
        "NHR2": "the rolling constraints do not depend on the group's coordinates",
        "NHR3": "the rolling constraints determine the motion along the group",
    }
    if not _has_bodies(robot) and robot.nf:
        return [_not_checked("NHR1", statements["NHR1"], "the system has no bodies")] + [
            _row(key, statements[key].replace("rolling ", ""), *found)
            for key, found in _held(model, working_set or samples).items()
        ]
    if not _has_bodies(robot) or not robot.wheels:
        why = "the robot has no wheels"
        return [_not_checked(i, text, why) for i, text in statements.items()]
    platform = {robot.bodies[i].name for i in robot.platforms} | set(robot.below_platforms)
    arm = robot.freedoms(*(body.name for body in robot.bodies if body.name not in platform))
    rolling = robot.nf - len(robot.followers)  # rows of joints that follow others are the last
    on_arm = max(np.abs(robot.constraints(q)[:rolling, arm]).max(initial=0.0) for q in samples)
    dependent = model.wheel_dependents
    group = tuple(i for i in dependent if i not in robot.followers)
    moved = rows_change(robot, group, samples, seed=6)
    at, kind = (samples, "random") if working_set is None else (working_set, "given")
    ratio = min(spread(robot, dependent, q) for q in at)
    sides = {orientation(robot, dependent, q) for q in at}
    why = f"smallest over largest singular value {ratio:.3g} at {len(at)} {kind} configurations"
    if len(sides) > 1:
        why += "; the determinant changes its sign: singular configurations lie in between"
    return [
        _row("NHR1", statements["NHR1"], on_arm < 1e-12, f"largest arm column {on_arm:.1e}"),
        _row("NHR2", statements["NHR2"], moved < 1e-9, f"largest change {moved:.1e}", change=moved),
        _row(
            "NHR3",
            statements["NHR3"],
            ratio > 1e-6 and len(sides) == 1,
            why,
            ratio=ratio,
        ),
    ]


def _held(model: Lift, samples: list[np.ndarray]) -> dict[str, tuple[bool, str]]:
    """NHR2 and NHR3 of a system without bodies, by rows of unit length in velocities of unit mass.

    Each row keeps its direction where the dependent factors move, and their columns their rank.
    """
    robot, dependent = model.system, list(model.wheel_dependents)
    rng, changes, ratios, sides = np.random.default_rng(6), [0.0], list[float](), set[float]()

    def rows(q: np.ndarray) -> np.ndarray:
        scaled = np.asarray(robot.constraints(q)) / _mass_change(robot, q, q)[0]
        return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))

    for q in samples:
        moved = _moved(robot, q, dependent, rng)
        changes.append(float(np.abs(rows(moved) - rows(q)).max()))
        columns = rows(q)[:, dependent]
        least, largest = (np.linalg.svd(x, compute_uv=False) for x in (columns, rows(q)))
        ratios.append(float(least[-1] / largest[0]))
        sides.add(float(np.sign(np.linalg.det(columns))))
    why = f"smallest over largest singular value {min(ratios):.3g} at {len(samples)} configurations"
    if len(sides) > 1:
        why += "; the determinant changes its sign: singular configurations lie in between"
    return {
        "NHR2": (max(changes) < 1e-9, f"largest change {max(changes):.1e}"),
        "NHR3": (min(ratios) > 1e-6 and len(sides) == 1, why),
    }


def spread(robot: Mechanism, dependent: tuple[int, ...], q: np.ndarray) -> float:
    """Smallest singular value of the dependent columns, in metres, over the largest or 1."""
    columns = (robot.constraints(q) * freedom_scales(robot))[:, list(dependent)]
    values = np.linalg.svd(columns, compute_uv=False)
    return float(values[-1] / max(1.0, values[0]))


def orientation(robot: Mechanism, dependent: tuple[int, ...], q: np.ndarray) -> float:
    """Sign of the determinant of the dependent columns: a singular configuration changes it."""
    return float(np.sign(np.linalg.det(robot.constraints(q)[:, list(dependent)])))
