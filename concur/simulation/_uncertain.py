"""Uncertain numbers of a robot as inputs of its graph, and their values in many worlds at once.

The recursions use regrouped masses of links, ways between link frames, radii and places of axles.
Those that an uncertain quantity can change are inputs; the others stay constants with their
structural zeros. The values of the inputs are computed outside the graph, in array code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from concur.codegen import Array, constant
from concur.errors import InertiaError, SimulationError
from concur.robot import (
    Body,
    Drive,
    Link,
    Mechanism,
    RobotNumbers,
    Seat,
    SymbolicRobot,
    Wheel,
    displaced,
    link_frames,
    link_numbers,
    robot_size,
    with_numbers,
    without_mass,
)
from concur.simulation._worlds import (
    PAIRS,
    RATIO,
    Deviations,
    centers,
    check_worlds,
    grips,
    inertias,
    radii,
    ratios,
    read_worlds,
    shape_of,
    supports,
)

CHANGED = 1e-13
"""Change of a number, in parts of the largest of its kind, below which it is rounding."""

LARGE = 1e-9
"""Change of a number that is no input, in parts of the largest of its kind, that is refused."""

DRAWN = 3
"""Worlds whose numbers show which of them can change."""


@dataclass(frozen=True, eq=False)
class Uncertain:
    """The uncertain numbers of a robot.

    Parameters
    ----------
    robot : Mechanism
        The robot with its nominal numbers.
    declared : mapping
        Uncertain quantities of bodies, by name.
    grip : tuple of float, optional
        Friction coefficients of wheels that may slip.
    """

    robot: Mechanism
    declared: Mapping[str, tuple[str, ...]]
    grip: tuple[float, ...] | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of each input: body or wheel, kind and index."""
        robot, (links, _) = self.robot, self._frames
        bodies = [body.name for body in robot.bodies]
        of_links = [bodies[link.body] for link in links]
        followers = [steering.wheel for steering in robot.steering]
        wheels = [wheel.body for wheel in robot.wheels]
        owners = {"place": bodies, "attitude": bodies, "axles": followers, "reach": followers}
        owners |= dict.fromkeys(
            ("radius", "center", "support_center", "support_radius", "grip"), wheels
        )
        owners["ratio"] = [drive.name for drive in robot.drives]
        return tuple(
            f"{owners.get(kind, of_links)[k]}: {kind}{rest or ''}"
            for kind, changed in self._changed.items()
            for k, *rest in np.argwhere(changed).tolist()
        )

    def values(self, worlds: Any) -> np.ndarray:
        """Values of the inputs in some worlds, shape (B, size), after all checks."""
        deviations = read_worlds(self.robot, self.declared, worlds)
        self._check(deviations)
        found = self._numbers(deviations)
        self._check_frames(found)
        parts = [found[kind][:, changed] for kind, changed in self._changed.items()]
        values = np.concatenate(parts, axis=1)
        self._check_motions(values)
        return values

    def rebuilt(self, world: Any) -> Mechanism:
        """The robot with the numbers of one world."""
        deviations = read_worlds(self.robot, self.declared, world)
        self._check(deviations)
        masses, coms, tensors = inertias(self.robot, deviations)
        if len(masses) != 1:
            raise SimulationError(
                f"world of `{self.robot.name}`",
                expected="one world",
                came=f"{len(masses)}",
                cure="Pass the deviations of one of them.",
            )

        turned = Rotation.from_rotvec(deviations["rotation"][0])

        def body(k: int, old: Body) -> Body:
            given, place = self.declared.get(old.name, ()), old.placement
            new = {"mass": masses[0, k], "com": coms[0, k], "moments": tensors[0, k]}
            new = {name: value for name, value in new.items() if name in given}
            if "position" in given:
                moved = np.array(place.translation) + deviations["position"][0, k]
                place = replace(place, translation=tuple(moved))
            if "rotation" in given:
                rotation = turned[k] * Rotation.from_quat(place.rotation)
                place = replace(place, rotation=tuple(rotation.as_quat()))
            return replace(old, inertia=replace(old.inertia, **new), placement=place)

        def wheel(k: int, old: Wheel) -> Wheel:
            given, support = self.declared.get(old.body, ()), old.support
            if support is not None and support.radius is not None:
                middles, reaches = (found[0, k] for found in supports(self.robot, deviations))
                if "support_center" in given:
                    support = replace(support, center=tuple(middles))
                if "support_radius" in given:
                    support = replace(support, radius=float(reaches))
            center = centers(self.robot, deviations)[0, k] if "center" in given else old.center
            radius = float(radii(self.robot, deviations)[0, k])
            return replace(old, radius=radius, center=tuple(center), support=support)

        def drive(k: int, old: Drive) -> Drive:
            if RATIO not in self.declared.get(old.name, ()) or old.joints is None:
                return old
            own = ratios(self.robot, deviations)[0, k]
            return replace(old, joints=dict(zip(old.joints, own.tolist(), strict=False)))

        robot = self.robot
        return with_numbers(
            robot,
            [body(k, old) for k, old in enumerate(robot.bodies)],
            [wheel(k, old) for k, old in enumerate(robot.wheels)],
            [drive(k, old) for k, old in enumerate(robot.drives)],
        )

    def grips_of(self, world: Any) -> tuple[float, ...]:
        """Friction coefficients of the wheels in one world."""
        deviations = read_worlds(self.robot, self.declared, world)
        self._check(deviations)
        return tuple(grips(self.robot, self.grip, deviations)[0].tolist())

    def grips(self, p: ca.SX) -> list[ca.SX]:
        """Friction coefficients of the wheels with the inputs p, shape (size,)."""
        return self._placed(p)["grip"]

    def robot_with(self, p: ca.SX) -> SymbolicRobot:
        """The robot with the inputs p, shape (size,), in place of its numbers."""
        found = self._placed(p)
        # A mass that is a number is tested for zero.
        masses = [m if ca.symvar(m) else float(m) for m in found["mass"]]
        seconds = []
        for entries in found["second"]:
            second = ca.SX(3, 3)
            for k, (i, j) in enumerate(PAIRS):
                second[i, j] = second[j, i] = entries[k]
            seconds.append(ca.sparsify(second))
        axles = [ca.reshape(entries, 2, 3) for entries in found["axles"]]

        def matrices(kind: str) -> list[Array]:
            """Matrices by rows; those without inputs as numbers, whose zeros are found."""
            rows = zip(found[kind], self._nominal[kind], self._changed[kind], strict=True)
            return [
                ca.reshape(entries, 3, 3).T if own.any() else values.reshape(3, 3)
                for entries, values, own in rows
            ]

        numbers = RobotNumbers(
            masses=masses,
            firsts=found["first"],
            seconds=seconds,
            offsets=found["offset"],
            turns=matrices("turn"),
            starts=[
                (entries[0], entries[1]) if own.any() else tuple(values.tolist())
                for entries, values, own in zip(
                    *(found["start"], self._nominal["start"], self._changed["start"]), strict=True
                )
            ],
            places=found["place"],
            attitudes=matrices("attitude"),
            ratios=[
                entries[: len(drive.joints or ())]
                for entries, drive in zip(found["ratio"], self.robot.drives, strict=True)
            ],
            radii=found["radius"],
            centers=found["center"],
            support_centers=found["support_center"],
            support_radii=found["support_radius"],
            axles=axles,
            reaches=found["reach"],
        )
        return SymbolicRobot(self.robot, numbers)

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
    def _frames(self) -> tuple[list[Link], list[Seat]]:
        return link_frames(self.robot)

    @cached_property
    def _nominal(self) -> dict[str, np.ndarray]:
        found = self._numbers(read_worlds(self.robot, self.declared, {}))
        return {kind: values[0] for kind, values in found.items()}

    @cached_property
    def _changed(self) -> dict[str, np.ndarray]:
        """Which numbers differ between worlds, by kind."""
        robot, rng = self.robot, np.random.default_rng(11)
        # Deviations so large that all they change stands out from rounding.
        size, mass = robot_size(robot), robot.total_mass
        units = {"mass": mass, "moments": mass * size**2, "rotation": 1.0, RATIO: 1.0}
        drawn = {
            name: {
                quantity: units.get(quantity, size)
                * rng.uniform(0.5, 1.0, (DRAWN, *shape_of(robot, name, quantity)))
                for quantity in quantities
            }
            for name, quantities in self.declared.items()
        }
        found = self._numbers(read_worlds(robot, self.declared, drawn))
        changes = {kind: np.abs(found[kind] - self._nominal[kind]) for kind in found}
        return {
            kind: (change > CHANGED * np.abs(found[kind]).max(initial=0.0)).any(axis=0)
            for kind, change in changes.items()
        }

    def _numbers(self, deviations: Deviations) -> dict[str, np.ndarray]:
        """All numbers that the recursions use, by kind, with a leading axis of worlds."""
        robot, (links, seats) = self.robot, self._frames
        shifts = deviations["position"]
        tilts = Rotation.from_rotvec(deviations["rotation"].reshape(-1, 3)).as_matrix()
        tilts = tilts.reshape(*shifts.shape, 3)
        frames = displaced(robot, links, seats, shifts, tilts)
        offsets, turns, starts = frames[:3]
        masses, coms, tensors = inertias(robot, deviations)
        tensors = tensors + (robot.tensors - [body.inertia.tensor for body in robot.bodies])
        masses, firsts, seconds = link_numbers(
            links, seats, masses, coms, tensors, offsets, turns, *frames[3:]
        )
        places = np.array([body.placement.translation for body in robot.bodies])
        attitudes = np.array([body.placement.rotation_matrix for body in robot.bodies])
        attitudes = attitudes + (tilts - np.eye(3)) @ attitudes
        middles, spheres = supports(robot, deviations)
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
            "offset": offsets,
            "turn": _flat(turns),
            "start": starts,
            "place": places + shifts,
            "attitude": _flat(attitudes),
            "ratio": ratios(robot, deviations),
            "radius": radii(robot, deviations),
            "center": centers(robot, deviations),
            "support_center": middles,
            "support_radius": spheres,
            "axles": axles,
            "reach": reaches,
            "grip": grips(robot, self.grip, deviations),
        }

    def _check(self, deviations: Deviations) -> None:
        check_worlds(self.robot, deviations, self.grip)
        self._check_axles(deviations)

    def _check_axles(self, deviations: Deviations) -> None:
        """Refuse a world in which an axle does not meet its steering axis."""
        robot, shifts = self.robot, deviations["position"]
        for linkage in robot.linkages:
            trailing = linkage.moved(lambda name: shifts[:, robot.index(name)])[2]
            for world in np.flatnonzero(trailing):
                raise SimulationError(
                    f"world {world} of `{robot.name}`, steering `{linkage.steering.wheel}`",
                    expected="axles that meet their steering axes",
                    came="a wheel that trails its steering axis",
                    cure="Shift steered wheels along their axles or steering axes only.",
                    world=int(world),
                )

    def _check_frames(self, found: Mapping[str, np.ndarray]) -> None:
        """Refuse a world in which an axis turns so far that no input describes it."""
        for kind in ("offset", "turn", "start", "first", "second"):
            change = np.abs(found[kind] - self._nominal[kind]) * ~self._changed[kind]
            large = change > LARGE * np.abs(found[kind]).max(initial=0.0)
            for world, k, *_ in np.argwhere(large):
                raise SimulationError(
                    f"world {world} of `{self.robot.name}`, body "
                    f"`{self.robot.bodies[self._frames[0][k].body].name}`, `rotation`",
                    expected="an axis that leans by less than 84 degrees, or more than 96",
                    came="an axis almost across its nominal direction",
                    cure="Narrow the interval of this rotation.",
                    world=int(world),
                )

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
            raise InertiaError(
                f"world {world} of `{self.robot.name}`",
                expected="a mass above zero behind every motion of a joint",
                came="a motion that moves no mass",
                cure="Narrow the intervals of masses, moments and centres of mass.",
                world=int(world),
            )


def _flat(matrices: np.ndarray) -> np.ndarray:
    """Matrices (..., 3, 3) as rows (..., 9)."""
    return matrices.reshape(*matrices.shape[:-2], 9)
