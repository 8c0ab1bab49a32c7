"""A closed loop as two graphs: a tick of the law, a step of the plant.

The state x holds configuration and velocity, work, the law's memory, and the states of drives; the
numbers p of a world are those of its robot, followed by those of its uncertain imperfections. A
campaign runs both graphs by `codegen.Rollout`, `simulate` runs their ideal case by `advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import LONGEST_DELAY, finite_floats
from concur.control import KEPT, TrackingLaw, decoupling_margin, tick_function
from concur.errors import ShapeError, SimulationError, UnknownNameError, shown
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.robot import control_velocities, mapping
from concur.simulation._drives import Drives, check_stiffness, mobility_function
from concur.simulation._imperfections import Imperfections, Scalar, joint_places
from concur.simulation._latency import encoder_reading
from concur.simulation._plant import Plant
from concur.simulation._run_data import coordinate_signals, error_parts
from concur.simulation._step import MOVING, Step, split

FORCE_STATES = ("work", "torque", "load")
FORCE_UNIT = 2.0**40
"""Unit of these states, SI: no size of a robot makes them reach the bound of divergence.

A power of two, so that it changes no bit of the results."""


@dataclass(frozen=True, eq=False)
class Program:
    """A sampled closed loop with imperfections, as graphs for many worlds. Made by `loop_program`.

    Parameters
    ----------
    law : TrackingLaw
        The law, with its nominal model.
    plant : Plant
        Plant without friction.
    imperfections : Imperfections
        Fixed values.
    uncertain : tuple of (str, str)
        Kind and name of the imperfections that are inputs, in the order of their numbers in p.
    dt : float
        Step of integration, s.
    steps_per_tick : int
        Steps in a control period; 0: the law acts continuously.
    method : str
        "rk4" or "rkmk4".

    Attributes
    ----------
    tick : casadi.Function
        (x, p, r, n) to (x, u, y): the command u (nu,) for the state x (nx,), the numbers p (np,), a
        row r of `reference` and standard normal numbers n (noises,); the signals y begin with the
        status, a `TickStatus`.
    step : casadi.Function
        (x, p, u) to (x, y): a step with the command that has arrived.
    signals : tuple of str
        Names of the signals of both, those of the tick first; `tick_signals` is their number.
        Of a tick: "status"; "margin", the decoupling margin; "error:OUTPUT", m or rad, in
        two parts "error:OUTPUT:position" and "error:OUTPUT:rotation" where an output has both
        units; "torque:CONTROL", the command; "position:JOINT" of joints of one coordinate,
        "position:BODY.COORDINATE" of others and "base:COORDINATE"; "pivot", the margin bound of the
        law; "constraint", the residual of wheels that roll, m/s. Of a step: "speed:FREEDOM", and
        of wheels that may slip "slip:WHEEL", m/s, and, if loads are computed, "load:NAME", N, and
        "tipping:EDGE", the moment about an edge of the polygon of contacts, N m.
    states : dict of str to slice
        Parts of x; `FORCE_STATES` are in units of `FORCE_UNIT`, see `state`.
    noises : int
        Number of normal numbers in a tick.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.simulation import Imperfections, loop_program
    >>> robot = cc.robots.rover_arm()
    >>> servo = cc.Servo(cc.reduce(robot), [cc.Output("hand", "forearm", "R3")], 4.0, 4.0)
    >>> program = loop_program(servo, cc.Plant(robot), Imperfections.of(robot, viscous=0.1))
    >>> program.signals[:3]
    ('status', 'margin', 'error:hand')
    >>> program.method, program.noises
    ('rk4', 0)
    """

    law: TrackingLaw
    plant: Plant
    imperfections: Imperfections
    uncertain: tuple[Scalar, ...]
    dt: float
    steps_per_tick: int
    method: str

    @cached_property
    def states(self) -> dict[str, slice]:
        """Parts of x by name."""
        drives = self.drives
        sizes = {
            "q": self.plant.nq,
            "v": self.plant.nv,
            "work": 1,
            "law": KEPT + self.law.nz,
            "torque": len(drives.lagging),
            "spring": len(drives.flexible),
            "motor": len(drives.flexible),
            "load": self.plant.nl,
            "time": 1,
        }
        ends = np.cumsum([0, *sizes.values()]).tolist()
        return {name: slice(*ends[k : k + 2]) for k, name in enumerate(sizes)}

    @cached_property
    def noisy(self) -> list[tuple[str, int]]:
        """Kind and joint of each standard normal number of a tick."""
        kinds = ("noise", "velocity_noise")
        return [(kind, k) for kind in kinds for k in self.drives.acting(kind)]

    @property
    def noises(self) -> int:
        """Number of standard normal numbers of a tick."""
        return len(self.noisy)

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals, those of the tick first."""
        plant = self.plant
        kinds = {
            "speed": plant.robot.freedom_names,
            "slip": plant.wheel_names,
            "load": plant.load_names,
            "tipping": plant.edge_names,
        }
        of_step = (f"{kind}:{name}" for kind, names in kinds.items() for name in names)
        return (*self._of_tick, *of_step)

    @property
    def tick_signals(self) -> int:
        """Number of signals of the tick."""
        return len(self._of_tick)

    @cached_property
    def _of_tick(self) -> tuple[str, ...]:
        rolls = self.plant.slip is None and self.plant.nf
        return (
            *("status", "margin"),
            *("error:" + ":".join(name) for name, _, _ in error_parts(self.law.outputs)),
            *(f"torque:{name}" for name in self.law.model.control_names),
            *coordinate_signals(self.plant.tree),
            *("pivot", *(["constraint"] if rolls else [])),
        )

    def __reduce__(self) -> tuple[type[Program], tuple[Any, ...]]:
        return Program, tuple(getattr(self, entry.name) for entry in fields(self))

    @property
    def nx(self) -> int:
        """Length of the state x."""
        return int(self.states["time"].stop)

    @property
    def n_numbers(self) -> int:
        """Length of the numbers p."""
        return self.plant.n_numbers + len(self._inputs)

    @property
    def control_period(self) -> float:
        """Control period, s."""
        return self.dt * (self.steps_per_tick or 1)

    @property
    def momentum(self) -> np.ndarray:
        """True spatial momentum at the start, shape (6,), or (0,) unless the robot floats."""
        if not self.law.model.takes_momentum:
            return np.zeros(0)
        return np.array(self.law.model.momentum) + (self.imperfections.momentum_error or 0.0)

    def numbers(
        self,
        plant_numbers: ArrayLike | None = None,
        deviations: Mapping[Scalar, ArrayLike] | None = None,
    ) -> np.ndarray:
        """Numbers p of some worlds.

        Parameters
        ----------
        plant_numbers : array_like, optional
            Rows of `Plant.numbers`, shape (worlds, n) or (n,); default nominal.
        deviations : mapping, optional
            Deviations of uncertain imperfections from their fixed values by kind and name, numbers
            or shape (worlds,), SI units; those of "timing" belong to `delays` and are skipped.

        Returns
        -------
        numpy.ndarray
            Shape (worlds, n_numbers).

        Raises
        ------
        SimulationError
            If a value is out of range, or friction or springs are too stiff for the step; the
            number of the world is the attribute `world`.
        UnknownNameError
            If an imperfection is not uncertain.
        ShapeError, NonFiniteError
            If an array does not fit.
        """
        plant = self.plant
        if plant_numbers is None:
            plant_numbers = plant.numbers({}) if plant.n_numbers else np.zeros((1, 0))
        rows = self._table("plant_numbers", plant_numbers, plant.n_numbers)
        values = self._values(self._given(deviations))
        count = max(len(part) for part in (rows, *values))
        columns = [np.broadcast_to(column, (count,)) for column in values]
        rows = np.broadcast_to(rows, (count, rows.shape[1]))
        known = dict(zip(self._inputs, columns, strict=True))
        self.drives.check_range(self._where, known)
        if self.drives.rubs:
            check_stiffness(self._where, self._mobility(rows), self.drives.values(known), self.dt)
        # Of a lag the graph takes its decay in half a step.
        columns = [
            self.drives.decay(values) if kind == "lag" else values
            for (kind, _), values in known.items()
        ]
        return np.column_stack([rows, *columns])

    def delays(
        self, deviations: Mapping[Scalar, ArrayLike] | None = None, worlds: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """Latency and jitter of some worlds in control periods.

        Parameters
        ----------
        deviations : mapping, optional
            Deviations, s; only those of ("timing", "latency") and ("timing", "jitter") count.
        worlds : int
            Number of worlds.

        Returns
        -------
        delay, jitter : numpy.ndarray
            Shape (worlds,).

        Raises
        ------
        SimulationError
            If a time is negative, or both together exceed `LONGEST_DELAY` periods; the number of
            the world is the attribute `world`.
        """
        found = []
        given = self._given(deviations)
        for name in ("latency", "jitter"):
            deviation = finite_floats(given.get(("timing", name), 0.0), f"{self._where}, `{name}`")
            times = getattr(self.imperfections, name) + deviation
            for world in np.flatnonzero(~(times >= 0.0)):
                raise SimulationError(
                    f"{self._where}, world {world}, `{name}`",
                    expected="a time of zero or more, s",
                    came=f"{np.atleast_1d(times)[world]:.6g}",
                    cure="Narrow its interval.",
                    world=int(world),
                )
            found.append(np.array(np.broadcast_to(times / self.control_period, (worlds,))))
        longest = found[0] + found[1]
        for world in np.flatnonzero(longest > LONGEST_DELAY):
            raise SimulationError(
                f"{self._where}, world {world}, `latency` and `jitter`",
                expected=f"together at most {LONGEST_DELAY} control periods, "
                f"{LONGEST_DELAY * self.control_period:.6g} s",
                came=f"{longest[world] * self.control_period:.6g} s",
                cure="Shorten them, or take a longer control period.",
                world=int(world),
            )
        return found[0], found[1]

    def start(
        self,
        q0: ArrayLike,
        s0: ArrayLike,
        momentum: ArrayLike | None = None,
        p: ArrayLike | None = None,
    ) -> np.ndarray:
        """States x at the start: without slip, at the true momentum, drives in equilibrium.

        Parameters
        ----------
        q0, s0 : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,), or one row for each world.
        momentum : array_like, optional
            True spatial momentum, shape (6,) or (worlds, 6); default `momentum`.
        p : array_like, optional
            Rows of `numbers`, on which the velocities of an uncertain robot depend.

        Returns
        -------
        numpy.ndarray
            Shape (worlds, nx).

        Raises
        ------
        ShapeError, NonFiniteError
            If an array does not fit.
        ConcurError
            If a configuration is invalid.
        """
        model, plant = self.law.model, self.plant
        momenta = self.momentum if momentum is None else momentum
        sizes = {"q0": plant.nq, "s0": model.ns, "momentum": model.nm, "p": self.n_numbers}
        numbers = self.numbers() if p is None else p
        given = zip(sizes.items(), (q0, s0, momenta, numbers), strict=True)
        rows = [self._table(name, values, size) for (name, size), values in given]
        rows[0] = np.array([plant.robot.check_configuration(q, "`q0`") for q in rows[0]])
        count = max(len(table) for table in rows)
        rows = [np.broadcast_to(table, (count, table.shape[1])) for table in rows]
        rows[3] = rows[3][:, : plant.n_numbers]
        found = self._start.call([ca.DM(r.T) for r in rows])
        q, v, speeds, loads = (np.array(part).T for part in found)
        x = np.zeros((count, self.nx))
        x[:, self.states["q"]], x[:, self.states["v"]] = q, v
        x[:, self.states["motor"]] = speeds[:, self.drives.flexible]
        x[:, self.states["load"]] = loads / FORCE_UNIT
        return x

    def reference(
        self, reference: Reference | Callable[[float], ReferenceSample] | None, ticks: int
    ) -> np.ndarray:
        """Rows r of a reference, one for each tick.

        Parameters
        ----------
        reference : Reference or callable
            Reference of all outputs; None for a law that follows none.
        ticks : int
            Number of rows.

        Returns
        -------
        numpy.ndarray
            Shape (ticks, nr): the inputs `sampled` of the law, and the time, s.
        """
        known = reference_for(reference, self.law.outputs, self._where)
        times = np.arange(ticks) * self.control_period
        parts = (*known.sample(times), times[:, None])[: len(self.law.sampled)]
        return np.column_stack([*parts, times])

    def state(self, x: np.ndarray, name: str) -> np.ndarray:
        """Part of states x in SI units.

        Parameters
        ----------
        x : numpy.ndarray
            States, shape (..., nx).
        name : str
            One of `states`.

        Returns
        -------
        numpy.ndarray
            Shape (..., n).
        """
        return x[..., self.states[name]] * (FORCE_UNIT if name in FORCE_STATES else 1.0)

    @cached_property
    def tick(self) -> ca.Function:
        """Tick of the law."""
        law, plant, drives = self.law, self.plant, self.drives
        x, p, n = self._symbol("x"), self._symbol("p"), ca.MX.sym("n", self.noises)
        r, part = ca.MX.sym("r", sum(law.sampled.values()) + 1), self._parts(x)
        own, w = p[: plant.n_numbers, :], p[plant.n_numbers :, :]
        seen = self._measurement(part["q"], part["v"], w, n)
        u, pivot, _, _, status, part["law"] = self._law(seen, split(r, law.sampled), part["law"])
        part["time"] = r[-1]
        # Drives start with the first command as their torque.
        loaded = drives.loaded_function()(u, w)
        for name, start in zip(("torque", "spring"), loaded, strict=True):
            part[name] = ca.if_else(r[-1] <= 0.0, start, part[name])
        pose = r[: law.pose_size, :]
        rows = [status, *self._judged(part["q"], pose), u, part["q"], pivot]
        if plant.slip is None and plant.nf:
            rows.append(self._residual(part["q"], part["v"], own))
        return ca.Function(
            "tick",
            [x, p, r, n],
            [self._together(part), u, ca.vertcat(*rows)],
            ["x", "p", "r", "n"],
            ["x_next", "u", "y"],
        )

    @cached_property
    def step(self) -> ca.Function:
        """Step of the plant under a held command."""
        plant = self.plant
        x, p, u = self._symbol("x"), self._symbol("p"), ca.MX.sym("u", plant.nu)
        part, _ = self._stepped(self._parts(x), p, u, self.dt)
        own, signals = p[: plant.n_numbers, :], [part["v"]]
        if plant.slip is not None:
            signals += [plant.slip_speeds(part["q"], part["v"], own), part["load"]]
            signals += [plant.tipping(part["q"], part["load"], own)] if plant.edges else []
        return ca.Function(
            "step",
            [x, p, u],
            [self._together(part), ca.vertcat(*signals)],
            ["x", "p", "u"],
            ["x_next", "y"],
        )

    def advance(self, periods: int) -> ca.Function:
        """Several periods of the ideal loop, or steps where the law acts continuously.

        Parameters
        ----------
        periods : int
            Number of periods, or of steps.

        Returns
        -------
        casadi.Function
            From (x, p, h, r): the step h, s, and what the law takes as `sampled`, a column for each
            period; where it acts continuously three, for start, middle and end of each step; p and
            h have a column for each period too. To x after each step, and the law in each period
            (verdict, u, missed, scale): its `TickStatus`, or the smallest pivot of the step; and
            the smallest and the largest (q, v, u) of the stages of each step.
        """
        law, held = self.law, self.steps_per_tick
        x, p, h = self._symbol("x"), self._symbol("p"), ca.MX.sym("h")
        r, part = ca.MX.sym("r", sum(law.sampled.values()), 1 if held else 3), self._parts(x)
        if held:
            u = ca.MX.sym("u", self.plant.nu)
            after, step = self._stepped(part, p, u, h)
            kept = [self._together(after), *step.rows[-2:]]
            one = ca.Function("step", [x, p, h, u], kept)
            seen = part["q"], law.law_velocities(part["v"])
            found = self._law(seen, split(r, law.sampled), part["law"], held * h)
            torque, _, missed, scale, verdict, part["law"] = found
            columns = (ca.repmat(value, 1, held) for value in (p, h, torque))
            moved = one.mapaccum("steps", held, [0], [0], {})(self._together(part), *columns)
            rows = [moved[0], verdict, torque, missed, scale, *moved[1:]]
        else:
            after, step = self._stepped(part, p, r, h)
            rows = [self._together(after), *step.rows]
        names = ["x_next", "verdict", "u", "missed", "scale", "low", "high"]
        rows = [ca.densify(row) for row in rows]
        period = ca.Function("period", [x, p, h, r], rows, ["x", "p", "h", "r"], names)
        return period.mapaccum("advance", periods, ["x"], ["x_next"], {})

    def _stepped(
        self, part: dict[str, ca.MX], p: ca.MX, command: ca.MX, h: ca.MX | float
    ) -> tuple[dict[str, ca.MX], Step]:
        """Parts of a state after a step of length h, and the step."""
        drives, w = self.drives, p[self.plant.n_numbers :, :]
        part, acts = dict(part), not self.steps_per_tick
        step = Step(self.plant, drives, self.method, self.law if acts else None)
        if not acts:
            command, part["torque"] = drives.torque_function()(command, part["torque"], w)
        active = drives.active_function()(part["time"])
        memory = part["law"]
        part["z"] = memory[KEPT:, :] if acts else ca.MX(0, 1)
        state = [part[name] for name in MOVING]
        moved = step(state, h, lambda node: command[:, round(2 * node)], active, p)
        part |= dict(zip(MOVING, moved, strict=True))
        if acts:
            part["law"] = ca.vertcat(memory[:KEPT, :], part["z"])
        part["time"] = part["time"] + h
        return part, step

    def _law(
        self, seen: Any, sampled: list[ca.MX], memory: ca.MX, period: ca.MX | None = None
    ) -> list[ca.MX]:
        """Results of the law's tick (u, pivot, missed, scale, status), and its memory."""
        law = self.law
        others = [ca.MX(ca.DM(law.model.momentum))] if law.takes_momentum else []
        others += [ca.MX(self.control_period) if period is None else period] if law.nz else []
        # States stay below 1e6: the size of the answer, a sum of squares, is kept as its root.
        before = ca.vertcat(memory[0], memory[1] ** 2, memory[KEPT:, :])
        *found, after = tick_function(law, watched=True).call([*seen, *sampled, *others, before])
        return [*found, ca.vertcat(after[0], ca.sqrt(after[1]), after[KEPT:, :])]

    @property
    def _measurement(self) -> ca.Function:
        """Inputs of the law from (q, v), uncertain imperfections and noise: q, and velocities."""
        plant, drives = self.plant, self.drives
        places = list(joint_places(plant.robot).values())
        q, v = ca.SX.sym("q", plant.nq), ca.SX.sym("v", plant.nv)
        w, n = ca.SX.sym("w", len(self._inputs)), ca.SX.sym("n", self.noises)
        seen_q, seen_v = ca.SX(q), ca.SX(v)
        for number, (kind, k) in enumerate(self.noisy):
            at_q, at_v = places[k]
            own = drives.read(kind, w)[k] * n[number]
            if kind == "noise":
                seen_q[at_q] += own
            else:
                seen_v[at_v] += own
        for k in drives.acting("resolution"):
            at = places[k][0]
            seen_q[at] = encoder_reading(seen_q[at], drives.read("resolution", w)[k])
        results = [seen_q, self.law.law_velocities(seen_v)]
        return ca.Function("measurement", [q, v, w, n], results, {"cse": True})

    def _judged(self, q: ca.MX, pose: ca.MX) -> list[ca.MX]:
        """Decoupling margin, and norms of the errors of outputs, m and rad apart."""
        law, at, due = self.law, ca.SX.sym("q", q.shape[0]), ca.SX.sym("pose", pose.shape[0])
        x = law.pose_error(at, due) if law.size else ca.SX(0, 1)
        parts = [places.tolist() for _, _, places in error_parts(law.outputs)]
        norms = [ca.norm_2(x[places, :]) for places in parts]
        margin = ca.Function("margin", [at], [decoupling_margin(law, at)], {"cse": True})
        errors = ca.Function("errors", [at, due], [ca.vertcat(ca.SX(0, 1), *norms)])
        return [margin(q), errors(q, pose)]

    @property
    def _residual(self) -> ca.Function:
        """Largest residual of the constraints of wheels that roll, m/s, from (q, v, numbers)."""
        plant = self.plant
        sizes = {"q": plant.nq, "v": plant.nv, "p": plant.n_numbers}
        q, v, p = (ca.SX.sym(name, size) for name, size in sizes.items())
        rows = plant.symbolic(p).constraints(q)
        return ca.Function("residual", [q, v, p], [ca.norm_inf(rows @ v)])

    def _symbol(self, name: str) -> ca.MX:
        return ca.MX.sym(name, {"x": self.nx, "p": self.n_numbers}[name])

    def _parts(self, x: ca.MX) -> dict[str, ca.MX]:
        """Parts of a state in SI units."""
        parts = {name: x[span, :] for name, span in self.states.items()}
        return parts | {name: FORCE_UNIT * parts[name] for name in FORCE_STATES}

    def _together(self, parts: dict[str, ca.MX]) -> ca.MX:
        """State of its parts."""
        parts = parts | {name: parts[name] / FORCE_UNIT for name in FORCE_STATES}
        return ca.vertcat(*(parts[name] for name in self.states))

    @property
    def _where(self) -> str:
        return f"imperfect `{self.plant.name}`"

    @property
    def _inputs(self) -> tuple[Scalar, ...]:
        """Uncertain imperfections in the order of p."""
        return tuple(key for key in self.uncertain if key[0] != "timing")

    @cached_property
    def drives(self) -> Drives:
        """Drives of the robot as graphs."""
        return Drives(self.imperfections, self.plant.robot, self._inputs, self.dt)

    @cached_property
    def _start(self) -> ca.Function:
        """Configuration, velocity, speeds of the controls and loads, many worlds at once.

        From (q, s, momentum, numbers of the plant). The robot starts without slip, at the true
        momentum, and the loads are those of no acceleration. The momentum is that of the world's
        robot; a further stage keeps the shape velocities of the model.
        """
        model, plant = self.law.model, self.plant
        q, s = ca.SX.sym("q", plant.nq), ca.SX.sym("s", model.ns)
        momentum, p = ca.SX.sym("momentum", model.nm), ca.SX.sym("p", plant.n_numbers)
        robot = plant.symbolic(p)
        at = robot.normalize(q) if plant.n_numbers else q
        v = model.velocity(at, s, momentum)
        dependent, shape = list(model.first.dependent), list(model.first.shape)
        if (plant.n_numbers or plant.robot is not model.system) and dependent:
            if model.takes_momentum:
                carried = (model.robot.mass_matrix(at) @ v)[dependent]
                rows = robot.mass_matrix(at)[dependent, :]
            else:
                carried = ca.SX(len(dependent), 1)
                rows = robot.constraints(at)
            v = ca.SX(v)
            v[dependent] = ca.solve(rows[:, dependent], carried - rows[:, shape] @ v[shape])
        loads = plant.loads(at, v, ca.SX(plant.nv, 1), p) if plant.nl else ca.SX(0, 1)
        results = [at, v, control_velocities(robot, at, v), loads]
        return ca.Function("start", [q, s, momentum, p], [ca.densify(part) for part in results])

    @cached_property
    def _mobility(self) -> Callable[[np.ndarray], np.ndarray]:
        return mobility_function(self.plant)

    def _table(self, name: str, values: ArrayLike, size: int) -> np.ndarray:
        """One row of numbers for each world."""
        table = np.atleast_2d(finite_floats(values, f"{self._where}, `{name}`"))
        if table.shape[1] != size:
            raise ShapeError(
                f"{self._where}, `{name}`",
                expected=f"{size} numbers for each world",
                came=str(table.shape),
                cure="Give one row, or one for each world.",
            )
        return table

    def _given(self, deviations: Mapping[Scalar, ArrayLike] | None) -> Mapping[Scalar, ArrayLike]:
        return mapping(f"{self._where}, `deviations`", {} if deviations is None else deviations)

    def _values(self, deviations: Mapping[Scalar, ArrayLike]) -> list[np.ndarray]:
        """Values of the uncertain imperfections, one column each."""
        for key in deviations:
            if key not in self.uncertain:
                raise UnknownNameError(
                    f"{self._where}, `deviations`",
                    expected="imperfections that are uncertain: "
                    + (", ".join(map(" ".join, self.uncertain)) or "none"),
                    came=shown(key),
                    cure="Declare it with uncertain={(kind, name)}, or omit it.",
                )
        robot, real, found = self.plant.tree, self.imperfections, []
        for kind, name in self._inputs:
            fixed = real.values(kind, robot)[real.names(kind, robot).index(name)]
            given = deviations.get((kind, name), 0.0)
            deviation = finite_floats(given, f"{self._where}, `{kind}` of `{name}`")
            found.append(np.atleast_1d(fixed + deviation))
        return found
