"""Distances of capsules on bodies from each other, and from spheres, capsules and boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import casadi as ca
import numpy as np
from annotated_types import Len

from concur.codegen import constant, finite_floats
from concur.errors import OutputError, shown
from concur.robot._mechanism import Mechanism
from concur.robot._pose import Pose
from concur.robot._shapes import box_distance, segment_distance
from concur.tables import INTERNAL, Expected, NotNegative, Quaternion, Text, Vector3, one_of

FRAMES = ("world", "base")
"""Frames to which an obstacle may be fixed."""

Hundred = Annotated[Sequence[Text], Len(1, 100), Expected("a list of 1 to 100 names")]


@dataclass(frozen=True)
class Round:
    """All points within a radius of a segment: a capsule, or a sphere if both ends are equal.

    Parameters
    ----------
    name : str
        Its name.
    start, end : tuple of float
        Ends of the segment (m).
    radius : float
        Radius (m).

    Raises
    ------
    OutputError
        If the radius is negative.
    """

    name: str
    start: tuple[float, float, float]
    end: tuple[float, float, float]
    radius: float

    def __post_init__(self) -> None:
        where = f"{type(self).__name__.lower()} `{self.name}`"
        for name in ("start", "end"):
            place = finite_floats(getattr(self, name), f"{where}, `{name}`", (3,))
            object.__setattr__(self, name, tuple(place.tolist()))
        radius = float(finite_floats(self.radius, f"{where}, `radius`"))
        if radius < 0.0:
            raise OutputError(
                where, expected="a radius of zero or more, m", came=f"{radius:g}", cure="Change it."
            )
        object.__setattr__(self, "radius", radius)

    @property
    def ends(self) -> np.ndarray:
        """Different ends of the segment, (1 or 2, 3)."""
        return np.array([self.start] if self.start == self.end else [self.start, self.end])


@dataclass(frozen=True)
class Capsule(Round):
    """A capsule that moves with a body and contains a part of it; ends in the body's frame.

    Parameters
    ----------
    name : str
        Its name.
    start, end : tuple of float
        Ends of the segment in the frame of the body (m).
    radius : float
        Radius (m).
    body : str
        Name of the body.
    """

    body: str = ""

    @classmethod
    def of(
        cls,
        robot: Annotated[Mechanism, INTERNAL],
        body: Text,
        *,
        name: Text | None = None,
        start: Vector3 | None = None,
        end: Vector3 | None = None,
        radius: NotNegative | None = None,
    ) -> Capsule:
        """A capsule on a body, or that of the body's shape.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        body : str
            Body that carries the capsule.
        name : str, optional
            Name of the capsule. Default: that of the body.
        start : sequence of float, optional
            One end of the segment, in the frame of the body, shape (3,), m. Default: that of the
            shape, which has to be a sphere or a capsule.
        end : sequence of float, optional
            Other end of the segment, in the frame of the body, shape (3,), m. Default: that of the
            shape; a sphere, if `start` is given.
        radius : float, optional
            Largest distance of its points from the segment, m. Default: that of the shape.

        Returns
        -------
        Capsule
            The capsule.

        Raises
        ------
        UnknownNameError
            If the robot has no such body.
        OutputError
            If neither ends and radius nor a fitting shape are given.

        Examples
        --------
        >>> Capsule.of(cc.robots.rover_arm(), "forearm").radius
        0.025
        """
        shapes = robot.bodies[robot.index(body)].shape
        if start is None and end is None and radius is None and len(shapes) == 1:
            found = shapes[0].capsule
            if found is not None:
                first, last, own = found
                return cls(name or body, first, last, own, body)
        if start is None or radius is None:
            raise OutputError(
                f"capsule of `{body}`",
                expected="`start` and `radius`, or a body whose shape is a sphere or a capsule",
                came=f"the shapes {', '.join(s.kind for s in shapes)}" if shapes else "no shape",
                cure="Give both ends and a radius that contain the body.",
            )
        return cls(name or body, start, start if end is None else end, radius, body)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Obstacle(Round):
    """A sphere, capsule or box that the capsules of the robot have to keep away from.

    Parameters
    ----------
    name : str
        Its name.
    start, end : tuple of float
        Ends of the segment in its frame, of a box twice its centre (m).
    radius : float
        Radius (m); of a box, how far its points may be outside of its faces.
    frame : str
        "world", or "base": then it moves with the base, and stands for a part of it.
    distance : float
        Least distance (m).
    capsules : tuple of str, optional
        Capsules that keep it; default: all.
    box : tuple of float, optional
        Lengths of a box along its axes (m). Default: a sphere or capsule.
    rotation : tuple of float
        Unit quaternion x, y, z, w that maps coordinates of the box to those of its frame.

    Raises
    ------
    OutputError
        If a number is negative, a length of a box is zero or both ends differ, or the frame is
        unknown.
    """

    frame: str = "world"
    distance: float = 0.0
    capsules: tuple[str, ...] | None = None
    box: tuple[float, ...] | None = None
    rotation: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0)

    @classmethod
    def from_table(
        cls,
        name: Text,
        start: Vector3,
        radius: NotNegative | None = None,
        end: Vector3 | None = None,
        frame: Annotated[str, one_of(FRAMES)] = "world",
        distance: NotNegative = 0.0,
        capsules: Hundred | None = None,
        box: Vector3 | None = None,
        rotation: Quaternion | None = None,
        rpy_deg: Vector3 | None = None,
    ) -> Obstacle:
        """A sphere, capsule or box that capsules on bodies keep away from.

        Parameters
        ----------
        name : str
            Name of the obstacle.
        start : sequence of float
            Centre of a sphere or box, or one end of the segment of a capsule, shape (3,), m.
        radius : float, optional
            Radius, m, which spheres and capsules need. Default: none, with `box`.
        end : sequence of float, optional
            Other end of the segment, shape (3,), m. Default: a sphere or box.
        frame : str, optional
            Frame of the obstacle; `base` for a part of the base.
        distance : float, optional
            Least distance of the capsules, m.
        capsules : sequence of str, optional
            Names of the capsules that keep the distance. Default: all.
        box : sequence of float, optional
            Lengths of a box along its axes, shape (3,), m. Default: a sphere or capsule.
        rotation : sequence of float, optional
            Unit quaternion x, y, z, w, shape (4,), which maps coordinates of the box to those of
            the frame. Default: not turned.
        rpy_deg : sequence of float, optional
            Roll, pitch and yaw of the box, shape (3,), deg, in place of `rotation`. Default: none.

        Returns
        -------
        Obstacle
            The obstacle.

        Raises
        ------
        OutputError
            If a sphere or capsule has no radius, or is turned.

        Examples
        --------
        >>> Obstacle.from_table("ball", (2.0, 0.0, 0.0), 0.5).end
        (2.0, 0.0, 0.0)
        >>> Obstacle.from_table("table", (1.0, 0.0, 0.7), box=(0.6, 1.2, 0.04)).box
        (0.6, 1.2, 0.04)
        """
        turned = rotation is not None or rpy_deg is not None
        if box is None and (radius is None or turned):
            raise OutputError(
                f"obstacle `{name}`",
                expected="a `radius` of a sphere or capsule, or lengths of a `box`",
                came="a rotation without `box`" if turned else "neither",
                cure="Give one of them.",
            )
        own = Pose.from_table(rotation=rotation, rpy_deg=rpy_deg).rotation
        keeping = None if capsules is None else tuple(capsules)
        (x, y, z), last = start, start if end is None else end
        size, sides = radius or 0.0, None if box is None else tuple(box)
        ends = (x, y, z), (last[0], last[1], last[2])
        return cls(name, *ends, size, frame, distance, keeping, sides, tuple(own))

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"obstacle `{self.name}`"
        if self.frame not in FRAMES or not 0.0 <= self.distance < np.inf:
            raise OutputError(
                where,
                expected=f"`frame` out of {', '.join(FRAMES)} and a `distance` of zero or more, m",
                came=f"{shown(self.frame)} and {self.distance:g}",
                cure="Correct it.",
            )
        if self.box is None:
            return
        lengths = finite_floats(self.box, f"{where}, `box`", (3,))
        if not (lengths > 0.0).all() or self.start != self.end:
            raise OutputError(
                f"{where}, `box`",
                expected="three lengths above zero, m, and its centre as `start`",
                came="another `end`" if self.start != self.end else shown(lengths.tolist()),
                cure="Omit `end`." if self.start != self.end else "Correct them.",
            )
        object.__setattr__(self, "box", tuple(lengths.tolist()))
        object.__setattr__(self, "rotation", Pose(self.start, self.rotation).rotation)

    @property
    def turn(self) -> np.ndarray:
        """Rotation matrix of a box in its frame, shape (3, 3)."""
        return Pose(self.start, self.rotation).rotation_matrix

    def extent(self, way: np.ndarray) -> float:
        """How far it reaches from its segment along a direction (3,), at most, m."""
        sides = np.zeros(3) if self.box is None else np.array(self.box) / 2.0
        size = float(np.linalg.norm(way)) or 1.0
        return self.radius + float(sides @ np.abs(self.turn.T @ way)) / size


@dataclass(frozen=True)
class Clearance:
    """Pairs of capsules and obstacles, and of capsules on different bodies.

    Parameters
    ----------
    capsules : tuple of Capsule
        Capsules on bodies of the robot.
    obstacles : tuple of Obstacle
        What they keep away from.
    between : tuple of tuple of str
        Pairs of names of capsules that keep away from each other.
    distance : float
        Least distance of these (m).

    Raises
    ------
    OutputError
        If names are double or unknown, a pair is on one body, or no pair exists.
    """

    capsules: tuple[Capsule, ...]
    obstacles: tuple[Obstacle, ...] = ()
    between: tuple[tuple[str, str], ...] = ()
    distance: float = 0.0

    def __post_init__(self) -> None:
        names = [made.name for made in self.capsules]
        others = [made.name for made in self.obstacles]
        several = [names, [*names, *others] if self.between else others]
        if any(len(set(what)) < len(what) or not what for what in several):
            raise OutputError(
                "clearance",
                expected="one or more capsules and obstacles, each with another name",
                came=", ".join([*names, *others]) or "no names",
                cure="Add or rename one.",
            )
        least = float(finite_floats(self.distance, "clearance, `distance`"))
        if least < 0.0:
            raise OutputError(
                "clearance, `distance`",
                expected="zero or more, m",
                came=f"{least:g}",
                cure="Change it.",
            )
        for obstacle in self.obstacles:
            for name in obstacle.capsules or ():
                self._carrier(f"obstacle `{obstacle.name}`, `capsules`", name)
        for k, pair in enumerate(self.between):
            where = f"clearance, pair {k + 1} of capsules"
            if len(pair) != 2 or len({self._carrier(where, name) for name in pair}) < 2:
                raise OutputError(
                    where,
                    expected="two capsules on different bodies",
                    came=", ".join(map(str, pair)),
                    cure="Remove or correct the pair.",
                )

    def _carrier(self, where: str, name: str) -> str:
        """Body that carries a capsule."""
        bodies = {made.name: made.body for made in self.capsules}
        if name not in bodies:
            raise OutputError(
                where,
                expected=f"names out of {', '.join(bodies)}",
                came=shown(name),
                cure="Check the spelling.",
            )
        return bodies[name]

    @property
    def pairs(self) -> list[tuple[Capsule, Obstacle]]:
        """Each capsule with each obstacle that it has to keep away from."""
        return [
            (capsule, obstacle)
            for obstacle in self.obstacles
            for capsule in self.capsules
            if obstacle.capsules is None or capsule.name in obstacle.capsules
        ]

    @property
    def world(self) -> np.ndarray:
        """Ends of the obstacles in the world, (k, 3), in the order of the pairs."""
        own = [obstacle.ends for _, obstacle in self.pairs if obstacle.frame == "world"]
        return np.vstack([np.zeros((0, 3)), *own])

    @property
    def least(self) -> dict[str, float]:
        """Least distance of each pair by its name, m."""
        found = {f"{own.name} from {other.name}": other.distance for own, other in self.pairs}
        return found | {f"{own} from {other}": self.distance for own, other in self.between}

    def seen(self, robot: Any, q: ca.SX) -> ca.SX:
        """Distance of each pair in a configuration; below zero where they overlap.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        q : casadi.SX
            Its configuration, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (pairs,), m.
        """
        return ca.vertcat(*(parts[0] for parts in self.parts(robot, q)))

    def parts(self, robot: Any, q: ca.SX) -> list[ca.SX]:
        """Distance of each pair, and of parts whose nearest points move without jumps.

        A capsule along a face of a box is nearest with one end or the other. What keeps away from
        the box then keeps both away.

        Parameters
        ----------
        robot : Mechanism
            The robot.
        q : casadi.SX
            Its configuration, shape (nq,).

        Returns
        -------
        list of casadi.SX
            For each pair its distance, for a box and a capsule then those of both ends, m.
        """
        own = {made.name: made for made in self.capsules}
        poses = {"world": ca.SX.eye(4), "base": robot.pose(q, robot.base.name)}
        pairs: list[tuple[Capsule, Round, Any]] = [
            (capsule, obstacle, poses[obstacle.frame]) for capsule, obstacle in self.pairs
        ]
        pairs += [(own[a], own[b], robot.pose(q, own[b].body)) for a, b in self.between]

        def placed(made: Round, pose: Any) -> tuple[ca.SX, ca.SX]:
            turn, origin = pose[:3, :3], pose[:3, 3]
            return tuple(turn @ constant(np.array(at)) + origin for at in (made.start, made.end))

        found = []
        for one, other, pose in pairs:
            ends, room = placed(one, robot.pose(q, one.body)), one.radius + other.radius
            there = placed(other, pose)
            if isinstance(other, Obstacle) and other.box is not None:
                turn, half = pose[:3, :3] @ constant(other.turn), constant(np.array(other.box) / 2)
                segments = [ends] if one.start == one.end else [ends, ends[:1] * 2, ends[1:] * 2]
                parts = [box_distance(*part, there[0], turn, half) for part in segments]
            else:
                parts = [segment_distance(*ends, *there)]
            found.append(ca.vertcat(*parts) - room)
        return found
