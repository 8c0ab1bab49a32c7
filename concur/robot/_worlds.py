"""Free numbers of a robot: inputs of its graphs, and their values in many worlds at once.

The recursions use regrouped masses of links, ways between link frames, radii and places of axles.
Those that a free number can change are inputs; the others stay constants with their structural
zeros. The values of the inputs are computed outside the graph, in array code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from concur.codegen import Array, constant, finite_floats
from concur.errors import InertiaError, ShapeError, SimulationError, UnknownNameError, shown
from concur.robot._frames import displaced, handed_inwards
from concur.robot._inertia import Inertia, unphysical
from concur.robot._massless import without_mass
from concur.robot._mechanism import Mechanism
from concur.robot._numbers import (
    FIELDS,
    OF_MOTORS,
    OF_SPRINGS,
    PAIRS,
    RATIO,
    Pull,
    Rim,
    Terms,
    nominal,
    owners,
    split_name,
    tensor_of,
)
from concur.robot._spatial import Distribution

CHANGED = 1e-13
"""Change of a number, in parts of the largest of its kind, below which it is rounding."""

LARGE = 1e-9
"""Change of a number that is no input, in parts of the largest of its kind, that is refused."""

DRAWN = 3
"""Worlds whose numbers show which of them can change."""

Worlds: TypeAlias = Mapping[str, ArrayLike]
"""Deviations by the name of a number."""

Values: TypeAlias = dict[str, np.ndarray]
"""Numbers by field, with leading axes of worlds and owners."""


@dataclass(frozen=True, eq=False)
class FreeNumbers:
    """Numbers of a robot that are inputs of its graphs.

    Parameters
    ----------
    robot : Mechanism
        The robot with its nominal numbers.
    free : sequence of str
        Names of the free numbers.
    grip : tuple of float, optional
        Friction coefficients of wheels that may slip, which are numbers too: `left_wheel.grip`.
    where : str
        Place named in errors.

    Raises
    ------
    UnknownNameError
        If a name is not that of a number.
    SimulationError
        If a number cannot be free.
    """

    robot: Mechanism
    free: Sequence[str]
    grip: tuple[float, ...] | None = None
    where: str = "free numbers"

    def __post_init__(self) -> None:
        given = (self.free,) if isinstance(self.free, str) else self.free
        known = isinstance(given, tuple | list) and all(isinstance(name, str) for name in given)
        if not known or not given:
            raise SimulationError(
                self.where,
                expected="names of numbers",
                came=shown(self.free),
                cure='Write ["hand.inertia.mass", "hand.inertia.com"], or omit it.',
            )
        object.__setattr__(self, "free", tuple(dict.fromkeys(given)))
        for name in self.free:
            _check_free(self.robot, name, f"{self.where}, `{shown(name)}`", self.grip is not None)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each input: body or wheel, kind and index."""
        robot = self.robot
        bodies = [body.name for body in robot.bodies]
        links = [bodies[link.body] for link in robot.terms.links]
        wheels = [wheel.body for wheel in robot.wheels]
        followers = [steering.wheel for steering in robot.steering]
        owners_of = dict.fromkeys(self._changed, links)
        owners_of |= dict.fromkeys(("place", "attitude"), bodies)
        owners_of |= dict.fromkeys(("axles", "reach"), followers)
        of_wheels = ("radius", "center", "support_center", "support_radius", "grip")
        owners_of |= dict.fromkeys(of_wheels, wheels)
        owners_of |= {field: [motor.name for motor in robot.motors] for field in OF_MOTORS}
        owners_of |= {field: [spring.name for spring in robot.springs] for field in OF_SPRINGS}
        return tuple(
            f"{owners_of[kind][k]}: {kind}{rest or ''}"
            for kind, changed in self._changed.items()
            for k, *rest in np.argwhere(changed).tolist()
        )

    def values(self, worlds: Worlds) -> np.ndarray:
        """Values of the inputs in some worlds, shape (B, size), after all checks."""
        found = self._terms(self._checked(worlds))
        self._check_frames(found)
        parts = [found[kind][:, changed] for kind, changed in self._changed.items()]
        values = np.concatenate(parts, axis=1)
        self._check_motions(values)
        return values

    def rebuilt(self, world: Worlds) -> Mechanism:
        """The robot with the numbers of one world."""
        found, names = self._one(world), owners(self.robot)
        changes = {}
        for name in self.free:
            owner, field = split_name(name)
            at = names[field].index(owner)
            value = found[field][0, at]
            if field == "placement.rotation":
                before = Rotation.from_quat(self.robot.bodies[at].placement.rotation)
                value = (Rotation.from_rotvec(value) * before).as_quat()
            elif field == RATIO:
                value = value[: len(self.robot.motors[at].ratios)]
            if field != "grip":
                changes[name] = value
        return self.robot.with_numbers(changes)

    def grips_of(self, world: Worlds) -> tuple[float, ...]:
        """Friction coefficients of the wheels in one world."""
        return tuple(self._one(world)["grip"][0].tolist())

    def grips(self, p: ca.SX) -> list[ca.SX]:
        """Friction coefficients of the wheels with the inputs p, shape (size,)."""
        return self._placed(p)["grip"]

    def robot_with(self, p: ca.SX) -> Mechanism:
        """The robot with the inputs p, shape (size,), in place of its numbers.

        Its methods take and return expressions. Its description is the nominal one: functions that
        take numbers from it reject the robot.
        """
        robot, terms, found = self.robot, self.robot.terms, self._placed(p)

        def matrix(kind: str, k: int) -> Array:
            """A matrix by rows; one without inputs as numbers, whose zeros are found."""
            if self._changed[kind][k].any():
                return ca.reshape(found[kind][k], 3, 3).T
            return self._nominal[kind][k].reshape(3, 3)

        def number(kind: str, k: int) -> Any:
            """An input, or the number, which is tested for zero."""
            return found[kind][k] if self._changed[kind][k] else float(self._nominal[kind][k])

        def start(k: int) -> tuple[Any, ...]:
            own = found["start"][k] if self._changed["start"][k].any() else None
            return tuple(self._nominal["start"][k].tolist()) if own is None else (own[0], own[1])

        def mass(k: int) -> Distribution:
            second, of_link = ca.SX(3, 3), found["mass"][k]
            for entry, (i, j) in enumerate(PAIRS):
                second[i, j] = second[j, i] = found["second"][k][entry]
            # A mass that is a number is tested for zero.
            whole = of_link if ca.symvar(of_link) else float(of_link)
            return Distribution(whole, found["first"][k], ca.sparsify(second))

        links = tuple(
            replace(
                link,
                offset=found["offset"][k],
                turn=matrix("turn", k),
                start=start(k),
                mass=mass(k),
            )
            for k, link in enumerate(terms.links)
        )
        rims = [found[kind] for kind in ("radius", "center", "support_center", "support_radius")]
        linkages = zip(terms.linkages, found["axles"], found["reach"], strict=True)
        own = Terms(
            links=links,
            seats=terms.seats,
            placements=tuple(
                (constant(matrix("attitude", k)), place) for k, place in enumerate(found["place"])
            ),
            rims=tuple(Rim(*parts) for parts in zip(*rims, strict=True)),
            ratios=tuple(
                ratios[: len(motor.ratios)]
                for ratios, motor in zip(found["ratio"], robot.motors, strict=True)
            ),
            linkages=tuple(
                linkage.with_numbers(ca.reshape(places, 2, 3), reach)
                for linkage, places, reach in linkages
            ),
            rotors=tuple(
                replace(
                    rotor,
                    inertia=found["rotor"][rotor.motor],
                    ratios=found["ratio"][rotor.motor][: len(rotor.places)],
                )
                for rotor in terms.rotors
            ),
            springs=tuple(
                Pull(*(number(field, k) for field in OF_SPRINGS)) for k in range(len(robot.springs))
            ),
        )
        made = object.__new__(Mechanism)
        made.__dict__.update(robot.__getstate__(), terms=own, _bound=False)
        return made

    def _placed(self, p: ca.SX) -> dict[str, list[ca.SX]]:
        """All numbers by kind, inputs in place of those that can change."""
        found: dict[str, list[ca.SX]] = {}
        at = 0
        for kind, changed in self._changed.items():
            found[kind] = []
            for own, values in zip(changed, self._nominal[kind], strict=True):
                entries = constant(np.atleast_1d(values))
                for index in np.flatnonzero(own):
                    entries[int(index)] = p[at]
                    at += 1
                found[kind].append(entries)
        return found

    @cached_property
    def _nominal(self) -> Values:
        found = self._terms(self._read({}))
        return {kind: values[0] for kind, values in found.items()}

    @cached_property
    def _changed(self) -> Values:
        """Which numbers differ between worlds, by kind."""
        robot, rng = self.robot, np.random.default_rng(11)
        # Deviations so large that all they change stands out from rounding.
        size, mass = robot.size, robot.total_mass
        units = {"inertia.mass": mass, "inertia.moments": mass * size**2}
        units |= {"placement.rotation": 1.0, RATIO: 1.0, "rotor": mass * size**2}
        drawn = {
            name: units.get(split_name(name)[1], size)
            * rng.uniform(0.5, 1.0, (DRAWN, *self._shape(name)))
            for name in self.free
        }
        found = self._terms(self._read(drawn))
        changes = {kind: np.abs(found[kind] - self._nominal[kind]) for kind in found}
        return {
            kind: (change > CHANGED * np.abs(found[kind]).max(initial=0.0)).any(axis=0)
            for kind, change in changes.items()
        }

    def _shape(self, name: str) -> tuple[int, ...]:
        """Shape of the deviation of a number."""
        owner, field = split_name(name)
        if field != RATIO:
            return FIELDS[field]
        return next((len(m.ratios),) for m in self.robot.motors if m.name == owner)

    def _read(self, worlds: Worlds) -> Values:
        """Numbers in some worlds; deviations without a leading axis are of all, or the only one."""
        where = f"worlds of `{self.robot.name}`"
        given: dict[str, np.ndarray] = {}
        for name, value in mapping(where, worlds).items():
            place = f"{where}, `{shown(name)}`"
            if name not in self.free:
                raise UnknownNameError(
                    place,
                    expected=f"a number that is uncertain ({', '.join(self.free)})",
                    came="one that is certain or unknown",
                    cure="Add it to `uncertain` of the plant, or omit it.",
                )
            array, shape = finite_floats(value, place), self._shape(name)
            if array.shape not in (shape, (*array.shape[:1], *shape)):
                raise ShapeError(
                    place,
                    expected=f"shape {shape}, or {('worlds', *shape)} for several worlds",
                    came=str(array.shape),
                    cure="Give one deviation, or one for each world.",
                )
            given[name] = array
        several = {n: len(a) for n, a in given.items() if a.ndim > len(self._shape(n))}
        if len(set(several.values())) > 1:
            raise ShapeError(
                where,
                expected="the same number of worlds for all quantities",
                came=", ".join(f"{count} of {name}" for name, count in several.items()),
                cure="Give one deviation for each world, or one without a leading axis for all.",
            )
        count = next(iter(several.values()), 1)
        found = nominal(self.robot) | {"grip": np.array(self.grip or ())}
        found = {field: np.tile(rows, (count, *(1,) * rows.ndim)) for field, rows in found.items()}
        names = owners(self.robot)
        for name, array in given.items():
            owner, field = split_name(name)
            for k, other in enumerate(names[field]):
                if other == owner:
                    entry = found[field][:, k]
                    entry[..., : array.shape[-1] if self._shape(name) else None] += array
        return found

    def _checked(self, worlds: Worlds) -> Values:
        found = self._read(worlds)
        self._check_numbers(found)
        self._check_axles(found)
        return found

    def _one(self, world: Worlds) -> Values:
        """Numbers of one world."""
        found = self._checked(world)
        count = len(found["inertia.mass"])
        if count != 1:
            raise SimulationError(
                f"world of `{self.robot.name}`",
                expected="one world",
                came=f"{count}",
                cure="Pass the deviations of one of them.",
            )
        return found

    def _shifts(self, found: Values) -> np.ndarray:
        """Shifts of the placements of all bodies, shape (B, N, 3), m."""
        return np.asarray(
            found["placement.translation"]
            - [body.placement.translation for body in self.robot.bodies]
        )

    def _terms(self, found: Values) -> Values:
        """All numbers that the recursions use, by kind, with a leading axis of worlds."""
        robot, links, seats = self.robot, self.robot.terms.links, self.robot.terms.seats
        shifts = self._shifts(found)
        tilts = Rotation.from_rotvec(found["placement.rotation"].reshape(-1, 3)).as_matrix()
        tilts = tilts.reshape(*shifts.shape, 3)
        frames = displaced(robot, links, seats, shifts, tilts)
        tensors = tensor_of(found["inertia.moments"])
        tensors += robot.tensors - [body.inertia.tensor for body in robot.bodies]
        masses, firsts, seconds = handed_inwards(
            links, seats, frames, found["inertia.mass"], found["inertia.com"], tensors
        )
        attitudes = np.array([body.placement.rotation_matrix for body in robot.bodies])
        attitudes = attitudes + (tilts - np.eye(3)) @ attitudes
        axles, reaches = np.zeros((len(shifts), 0, 6)), np.zeros((len(shifts), 0))
        for linkage in robot.linkages:
            at, reach, _ = linkage.moved(lambda name: shifts[:, robot.index(name)])
            columns = np.swapaxes(at, 1, 2).reshape(-1, 1, 6)
            axles, reaches = np.append(axles, columns, 1), np.append(reaches, reach[:, None], 1)
        i, j = zip(*PAIRS, strict=True)
        symmetric = (seconds + np.swapaxes(seconds, -1, -2)) / 2
        return {
            "mass": masses,
            "first": firsts,
            "second": symmetric[..., i, j],
            "offset": frames.offsets,
            "turn": frames.turns.reshape(*frames.turns.shape[:-2], 9),
            "start": frames.starts,
            "place": found["placement.translation"],
            "attitude": attitudes.reshape(*attitudes.shape[:-2], 9),
            "ratio": found[RATIO],
            "rotor": found["rotor"],
            **{field: found[field] for field in OF_SPRINGS},
            "radius": found["radius"],
            "center": found["center"],
            "support_center": found["support.center"],
            "support_radius": found["support.radius"],
            "axles": axles,
            "reach": reaches,
            "grip": found["grip"],
        }

    def _refuse(
        self, world: Any, of: str, expected: str, came: str, kind: type = SimulationError
    ) -> NoReturn:
        """Raise the error for a number of a world that cannot be."""
        raise kind(
            f"world {world} of `{self.robot.name}`{of and f', {of}'}",
            expected=expected,
            came=came,
            cure="Narrow the interval of this number.",
            world=int(world),
        )

    def _check_numbers(self, found: Values) -> None:
        """Refuse a world with an impossible inertia, radius, grip or ratio."""
        robot = self.robot
        masses, tensors = found["inertia.mass"], tensor_of(found["inertia.moments"])
        for world, k in np.argwhere(unphysical(masses, tensors)):
            body = f"body `{robot.bodies[k].name}`"
            try:
                Inertia(masses[world, k], found["inertia.com"][world, k], tensors[world, k])
            except InertiaError as error:
                self._refuse(world, body, error.expected, error.came, InertiaError)
        spheres = [w.support is not None and w.support.radius is not None for w in robot.wheels]
        hollow = np.array([bool(w.support and w.support.hollow) for w in robot.wheels], dtype=bool)
        turns = np.array([wheel.kind != "slider" for wheel in robot.wheels], dtype=bool)
        least = np.where(hollow, found["radius"], 0.0)
        gears = [len(motor.ratios) for motor in robot.motors]
        exist = np.arange(found[RATIO].shape[-1]) < np.array(gears).reshape(-1, 1)
        wheels = [wheel.body for wheel in robot.wheels]
        between = np.array([spring.joint is None for spring in robot.springs], dtype=bool)
        for field, wrong, expected in (
            ("stiffness", found["stiffness"] < 0.0, "a stiffness of zero or more"),
            ("damping", found["damping"] < 0.0, "a damping of zero or more"),
            ("rest", (found["rest"] < 0.0) & between, "a length of zero or more"),
            ("radius", (found["radius"] <= 0.0) & turns, "a radius above zero"),
            ("grip", found["grip"] < 0.0, "a friction coefficient of zero or more"),
            ("rotor", found["rotor"] < 0.0, "an inertia of zero or more"),
            (
                "support.radius",
                (found["support.radius"] <= least) & np.array(spheres, dtype=bool),
                "a radius above zero, and in a hollow sphere above that of the wheel",
            ),
        ):
            for world, k in np.argwhere(wrong):
                came = f"{found[field][world, k]:.6g}"
                if field in OF_SPRINGS:
                    owner = f"spring `{robot.springs[k].name}`"
                elif field == "rotor":
                    owner = f"motor `{robot.motors[k].name}`"
                else:
                    owner = f"wheel `{wheels[k]}`"
                self._refuse(world, f"{owner}, `{field}`", expected, came)
        for world, k in np.argwhere(((found[RATIO] == 0.0) & exist).any(axis=-1)):
            place = f"motor `{robot.motors[k].name}`, `{RATIO}`"
            self._refuse(world, place, "ratios other than zero", "a ratio of zero")

    def _check_axles(self, found: Values) -> None:
        """Refuse a world in which an axle does not meet its steering axis."""
        robot, shifts = self.robot, self._shifts(found)
        for linkage in robot.linkages:
            trailing = linkage.moved(lambda name: shifts[:, robot.index(name)])[2]
            for world in np.flatnonzero(trailing):
                place = f"steering `{linkage.steering.wheel}`"
                came = "a wheel that trails: shift it along its axle or steering axis only"
                self._refuse(world, place, "axles that meet their steering axes", came)

    def _check_frames(self, found: Values) -> None:
        """Refuse a world in which an axis turns so far that no input describes it."""
        for kind in ("offset", "turn", "start", "first", "second"):
            change = np.abs(found[kind] - self._nominal[kind]) * ~self._changed[kind]
            large = change > LARGE * np.abs(found[kind]).max(initial=0.0)
            for world, k, *_ in np.argwhere(large):
                body = self.robot.bodies[self.robot.terms.links[k].body].name
                expected = "an axis that leans by less than 84 degrees, or more than 96"
                came = "an axis almost across its nominal direction"
                self._refuse(world, f"body `{body}`, `rotation`", expected, came)

    @cached_property
    def _masses(self) -> ca.Function:
        """Mass matrices at two configurations, as columns, from the inputs."""
        p, rng = ca.SX.sym("p", len(self.names)), np.random.default_rng(7)
        robot, places = self.robot_with(p), [self.robot.random(rng) for _ in range(2)]
        columns = [ca.vec(ca.densify(robot.mass_matrix(constant(q)))) for q in places]
        return ca.Function("masses", [p], [ca.vertcat(*columns)], {"cse": True})

    def _check_motions(self, values: np.ndarray) -> None:
        """Refuse a world in which a joint moves no mass."""
        nv = self.robot.nv
        if not values.size or not nv:
            return
        masses = np.array(self._masses(values.T)).T.reshape(len(values), 2, nv, nv)
        for world in np.flatnonzero(without_mass(masses).any(axis=1)):
            expected = "a mass above zero behind every motion of a joint"
            self._refuse(world, "", expected, "a motion that moves no mass", InertiaError)


def mapping(where: str, value: Any) -> Mapping[Any, Any]:
    """Deviations by name, or an error."""
    if isinstance(value, Mapping):
        return value
    raise SimulationError(
        where,
        expected="deviations by name",
        came=shown(value),
        cure='Write {"hand.inertia.mass": [0.1, -0.1]} for numbers of a robot, '
        '{("lag", "turret"): 0.01} for imperfections; {} is the nominal world.',
    )


def _check_free(robot: Mechanism, name: str, place: str, slips: bool) -> None:
    """Refuse a number that there is not, or that another part of the description fixes."""
    owner, field = split_name(name)
    wheels = [wheel for wheel in robot.wheels if wheel.body == owner]
    spheres = [wheel for wheel in wheels if wheel.support and wheel.support.radius is not None]
    of_wheels = field in ("radius", "grip")
    motors = {f"{m.name}.{RATIO}" for m in robot.motors if m.ratios}
    motors |= {f"{m.name}.rotor" for m in robot.motors if m.rotor}
    springs = field in OF_SPRINGS and name not in robot.numbers
    if not field or (field in OF_MOTORS and name not in motors) or springs:
        raise UnknownNameError(
            place,
            expected="the name of a body, motor or spring, and one of "
            f"{', '.join(FIELDS)}, {RATIO}",
            came=shown(name),
            cure='Write for example "hand.inertia.mass".',
        )
    index = 0 if field in (*OF_MOTORS, *OF_SPRINGS) else robot.index(owner)

    def refuse(wrong: Any, expected: str, came: str, cure: str) -> None:
        if wrong:
            raise SimulationError(place, expected=expected, came=came, cure=cure)

    refuse(
        field == "grip" and not slips,
        "wheels that may slip",
        "a plant without `slip`",
        "Write Plant(robot, uncertain=..., slip=Slip.of(robot, 0.8)).",
    )
    refuse(
        field.startswith("placement") and any(spring.body for spring in robot.springs),
        "a robot without springs between points, whose length it would change",
        "one with such springs",
        "Vary masses and moments of inertia, or use springs of joints.",
    )
    refuse(
        of_wheels and not wheels,
        f"a wheel among {', '.join(w.body for w in robot.wheels) or 'no wheels'}",
        "a body that is no wheel",
        "Name the body of a wheel.",
    )
    refuse(
        field.startswith("placement") and robot.parents[index] is None,
        "a body with a parent",
        "the base",
        "The initial configuration is the pose of the base.",
    )
    for steering in robot.steering if field in ("placement.rotation", "center") else ():
        # The directions of axles are constants.
        ways = [robot.paths[robot.index(w)] for w in (steering.wheel, *steering.guides)]
        shared = set.intersection(*map(set, ways))
        refuse(
            any(index in set(way) - shared for way in ways),
            "a body on no axle of `steering`",
            f"one on an axle of the steering of `{steering.wheel}`",
            "Declare the placement.translation of wheels and steering joints.",
        )
    refuse(
        field == "center" and not any(w.kind == "slider" or w.support for w in wheels),
        "a slider, or a wheel with a `support`",
        "a wheel whose centre is on the axis of its joint" if wheels else "no wheel",
        "Declare the placement.translation of the body.",
    )
    refuse(
        field.startswith("support.") and not spheres,
        "a wheel whose `support` is a sphere",
        "a plane, whose height does not enter the rows" if wheels else "no wheel",
        "Omit it.",
    )
    _check_cables(robot, index, field, refuse) if field not in OF_MOTORS and robot.cables else None


def _check_cables(robot: Mechanism, index: int, field: str, refuse: Any) -> None:
    """Refuse numbers that would give the spin of a link on a cable an inertia."""
    of_cables = {k for name in robot.cables for k in robot.welded(robot.index(name))}
    line = index in of_cables and field in ("inertia.com", "inertia.moments")
    refuse(
        line or (robot.parents[index] in of_cables and field.startswith("placement")),
        "a link on a cable that keeps its line: of the link its `inertia.mass`, and not the place "
        "of what hangs on it",
        f"`{field}` as a free number",
        "Give the link a moment about its line, if other numbers are free.",
    )
