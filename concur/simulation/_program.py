"""Programs: closed loops with what goes into them in some worlds, and how they are made.

A campaign runs the graphs of a program in many worlds, `simulate` in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import LONGEST_DELAY, finite_floats
from concur.control import Law, TrackingLaw, tracking_law
from concur.errors import ShapeError, SimulationError, UnknownNameError, shown
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.robot import Mechanism, control_velocities, mapping, unknown_name
from concur.simulation._drives import check_stiffness, mobility_function
from concur.simulation._grid import Grid
from concur.simulation._imperfections import Imperfections, Scalar
from concur.simulation._integrator import FIXED_STEP, grid
from concur.simulation._loop import FORCE_UNIT, Loop
from concur.simulation._plant import Plant
from concur.simulation._slip import check_step


@dataclass(frozen=True, eq=False)
class Program(Loop):
    """A closed loop as graphs for many worlds. Made by `loop_program`.

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
        Steps in a control period; 0: the law acts continuously, and a tick is a step.
    method : str
        "rk4" or "rkmk4".
    ideal : bool
        Whether nothing is imperfect but the friction of the plant. The last number in p is then the
        step, s, so that one machine code serves all, and the signals are those of `simulate`.

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
        "tipping:EDGE", the moment about an edge of the polygon of contacts, N m;
        "motor_speed:MOTOR" of motors with several joints and a limit, rad/s, and "heat:MOTOR".
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

    def __reduce__(self) -> tuple[type[Program], tuple[Any, ...]]:
        return Program, tuple(getattr(self, entry.name) for entry in fields(self))

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
        steps = [np.full(count, self.dt)] if self.ideal else []
        return np.column_stack([rows, *columns, *steps])

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
            Shape (ticks, nr): the inputs `sampled` of the law, and the time, s. Where the law acts
            continuously they are those at the start, in the middle and at the end of the step; the
            last step stands still.
        """
        known = reference_for(reference, self.law.outputs, self._where)
        if not self.steps_per_tick:
            return self.steps(Grid.of(ticks - 1, self.dt, np.zeros(0)), known)
        times = np.arange(ticks) * self.control_period
        return np.column_stack([self._demands(known, times), times])

    def steps(self, grid: Grid, reference: Reference) -> np.ndarray:
        """Rows r of a reference for steps of a law that acts continuously.

        Parameters
        ----------
        grid : Grid
            The steps.
        reference : Reference
            Reference of all outputs.

        Returns
        -------
        numpy.ndarray
            Shape (steps + 1, nr), as of `reference`.
        """
        begin, middle, end = (self._demands(reference, times) for times in grid.nodes)
        last = self._demands(reference, grid.ends[-1:])
        rows = np.vstack([np.hstack([begin, middle, end]), np.hstack([last] * 3)])
        return np.column_stack([rows, grid.ends])

    def _demands(self, reference: Reference, times: np.ndarray) -> np.ndarray:
        """Inputs `sampled` of the law at some times, a row each."""
        parts = (*reference.sample(times), times[:, None])[: len(self.law.sampled)]
        return np.column_stack([np.zeros((len(times), 0)), *parts])

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
            if model.keeps_momentum:
                carried = (model.system.mass_matrix(at) @ v)[dependent]
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
        robot, real, found = self.plant.robot, self.imperfections, []
        for kind, name in self._inputs:
            fixed = real.values(kind, robot)[real.names(kind, robot).index(name)]
            given = deviations.get((kind, name), 0.0)
            deviation = finite_floats(given, f"{self._where}, `{kind}` of `{name}`")
            found.append(np.atleast_1d(fixed + deviation))
        return found


def loop_program(
    law: Law,
    plant: Plant,
    imperfections: Imperfections | None = None,
    uncertain: Iterable[Scalar] = (),
    dt: float = 1e-3,
    control_period: float | None = None,
    method: str = "rk4",
) -> Program:
    """Make the graphs of a sampled closed loop with imperfections.

    Parameters
    ----------
    law : Law
        The law: a `Servo`, or any other `concur.control.Law`.
    plant : Plant
        Plant; its friction acts unless the imperfections contain friction.
    imperfections : Imperfections, optional
        Fixed values of imperfections; default none, and ideal motors.
    uncertain : iterable of (str, str)
        Kind and name of the imperfections that differ between worlds, see `Imperfections.names`.
    dt : float
        Step of integration, s.
    control_period : float, optional
        Period of the law, s, a whole number of steps; default one step.
    method : str
        "rk4" or "rkmk4".

    Returns
    -------
    Program
        The program.

    Raises
    ------
    SimulationError
        If the numbers do not fit the robot, a step is too long for friction or springs, or plant
        and imperfections both have friction.
    UnknownNameError
        If there is no such imperfection or method.

    Notes
    -----
    Torque lag is exact: with E = exp(-h / 2 tau) the torque at the nodes of a Runge-Kutta step is
    ``u + (u0 - u) {1, E, E^2}`` for the command u and the torque u0 before.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.simulation import Imperfections, loop_program
    >>> robot = cc.robots.rover_arm()
    >>> servo = cc.Servo(cc.reduce(robot), [cc.Output("hand", "forearm", "R3")], 4.0, 4.0)
    >>> real = Imperfections.of(robot, viscous=0.1)
    >>> program = loop_program(servo, cc.Plant(robot), real, {("lag", "turret")})
    >>> program.numbers(deviations={("lag", "turret"): [0.004, 0.008]}).shape
    (2, 1)
    """
    known = tracking_law(law, "loop_program, `law`")
    real = Imperfections(motors=False) if imperfections is None else imperfections
    for name, value, wanted in (("plant", plant, Plant), ("imperfections", real, Imperfections)):
        if not isinstance(value, wanted):
            raise SimulationError(
                f"loop_program, `{name}`",
                expected=wanted.__name__,
                came=shown(value),
                cure="Write Plant(robot), and Imperfections.of(robot, viscous=0.1).",
            )
    where = f"imperfect `{plant.name}`"
    if method not in FIXED_STEP:
        raise unknown_name(where, "method", method, FIXED_STEP)
    period = dt if control_period is None else control_period
    _, per_tick = grid(where, period, dt, period)
    known.state_bounds.check_period(f"{where}, `control_period`", period)
    check_step(where, plant.slip, dt)
    if plant.friction is not None:
        if real.friction is not None:
            raise SimulationError(
                f"{where}, `friction`",
                expected="friction of the plant or of the imperfections",
                came="both",
                cure="Omit that of the plant.",
            )
        real, plant = replace(real, friction=plant.friction), replace(plant, friction=None)
    if real.momentum_error and not known.model.takes_momentum:
        raise SimulationError(
            f"{where}, `momentum_error`",
            expected="none, for a robot that does not float",
            came=shown(real.momentum_error),
            cure="Omit it.",
        )
    real, plant = _in_front(where, real, plant)
    found = _uncertain(where, real, plant, uncertain)
    made = Program(known, plant, real, found, float(dt), per_tick or 1, method)
    made.numbers()  # refuses what is too stiff
    return made


def _in_front(where: str, real: Imperfections, plant: Plant) -> tuple[Imperfections, Plant]:
    """Rotors of motors behind springs: inertias in front of these, no longer of the robot."""
    robot = plant.robot
    if not (isinstance(robot, Mechanism) and real.motors):
        return real, plant
    spring = np.isfinite(real.values("stiffness", robot))
    soft = {name for name, is_soft in zip(robot.control_names, spring, strict=True) if is_soft}
    rotors = {motor.name for motor in robot.motors if motor.rotor} & soft
    if not rotors:
        return real, plant
    for rotor in robot.terms.rotors:
        name = robot.motors[rotor.motor].name
        if name in rotors and rotor.carried:
            raise SimulationError(
                f"{where}, `stiffness` of `{name}`",
                expected="a rotor with its reflected inertia only, behind a spring",
                came=f"a `rotor` on a body that turns about its shaft, of motor `{name}`",
                cure="Leave the gyroscopic share out by shaft = [0, 0, 0], or omit the stiffness.",
            )
    real.check(robot)
    inertia = tuple(real.values("motor_inertia", robot).tolist())
    motors = [replace(m, rotor=0.0) if m.name in rotors else m for m in robot.motors]
    return replace(real, motor_inertia=inertia), replace(plant, robot=replace(robot, motors=motors))


def _uncertain(
    where: str, real: Imperfections, plant: Plant, given: Iterable[Scalar]
) -> tuple[Scalar, ...]:
    """Uncertain imperfections, sorted, after all checks."""
    robot, entries = plant.robot, list(given)
    for entry in entries:
        if not (isinstance(entry, tuple) and [*map(type, entry)] == [str, str]):
            raise SimulationError(
                f"{where}, `uncertain`",
                expected="pairs of kind and name",
                came=shown(entry),
                cure='Write {("lag", "turret")}.',
            )
    found = sorted(set(entries))
    for kind, name in found:
        names = real.names(kind, robot)
        if name not in names:
            raise unknown_name(f"{where}, uncertain `{kind}`", "name", name, names)
        fixed = real.values(kind, robot)[names.index(name)]
        if not np.isfinite(fixed):
            raise SimulationError(
                f"{where}, uncertain `{kind}` of `{name}`",
                expected="a finite fixed value, from which it deviates",
                came=f"{fixed}",
                cure=f"Give `{kind}` of `{name}` in the imperfections.",
            )
    return tuple(found)


def ideal_program(
    law: TrackingLaw, plant: Plant, method: str, dt: float, per_tick: int | None
) -> Program:
    """Loop without imperfections but the friction of the plant; continuous without `per_tick`."""
    real = Imperfections(friction=plant.friction, motors=False)
    bare = replace(plant, friction=None)
    return Program(law, bare, real, (), float(dt), per_tick or 0, method, ideal=True)
