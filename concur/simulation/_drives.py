"""What imperfections do, over expressions: to commands, to the robot, and to what the law sees.

A command passes torque limit and lag (`torque_function`), the line of speed and torque, ripple,
flexible joint and friction (`rate_function`, with disturbances and the heat of motors); the law
sees joints through encoders (`measured_function`). A new kind of `KINDS` gets its effect here.
Numbers that are certain are constants of the graphs; a number without effect leaves no trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import constant, normalised
from concur.errors import SimulationError
from concur.robot import (
    as_tree,
    control_velocities,
    controls,
    damping_forces,
    speed_torque_line,
)
from concur.simulation._disturbances import (
    GravityGradient,
    active_share,
    gradient_force,
    wrench_force,
    wrench_on_base,
)
from concur.simulation._friction import Sticking, dry_level
from concur.simulation._imperfections import KINDS, Imperfections, Scalar, scalar_joints
from concur.simulation._latency import encoder_reading
from concur.simulation._motors import motor_numbers, shared_encoders
from concur.system import System

FullOrder: TypeAlias = Any
"""A `Plant`, which is above this module, without friction."""

SHORTEST_LAG = 1e-12
"""Smallest time constant of a lag, s: a shorter one has no effect."""


class Drives:
    """Drives and encoders of a robot as graphs.

    Parameters
    ----------
    real : Imperfections
        Fixed values.
    robot : System
        The robot.
    inputs : tuple of (str, str)
        Imperfections that are inputs w, in this order.
    h : float, optional
        Step of integration, s; lags and disturbances with a beginning or an end need it.
    """

    def __init__(
        self, real: Imperfections, robot: System, inputs: tuple[Scalar, ...] = (), h: float = 0.0
    ) -> None:
        self._real, self._robot, self._inputs, self._h = real, robot, inputs, h
        self._controls = controls(robot)[0]
        real.check(robot)
        if real.disturbances:
            as_tree(robot, f"disturbances of `{robot.name}`")
        self.inputs, self.windows = len(inputs), len(real.wrenches)
        self.lagging = self.acting("lag")
        self.flexible = self.acting("stiffness")
        dry = ("coulomb", "stribeck", "efficiency")
        self.dry = sorted({k for kind in dry for k in self.acting(kind)})
        # Heat is a limit of the robot, also where its drives are ideal.
        self.heated = [self._controls.index(name) for name in motor_numbers("continuous", robot)]

    def acting(self, kind: str) -> list[int]:
        """Indices of the numbers of a kind that have an effect or are uncertain."""
        fixed, names = self._fixed(kind)
        given = {name for other, name in self._inputs if other == kind}
        return [k for k, name in enumerate(names) if fixed[k] != KINDS[kind].ideal or name in given]

    def read(self, kind: str, w: ca.SX) -> ca.SX:
        """Numbers of a kind: constants, and inputs where they are uncertain."""
        fixed, names = self._fixed(kind)
        found = ca.SX(ca.DM(fixed)) if len(fixed) else ca.SX(0, 1)
        for k, (other, name) in enumerate(self._inputs):
            if other == kind:
                found[names.index(name)] = w[k]
        return found

    def values(self, known: Mapping[Scalar, np.ndarray]) -> dict[str, Any]:
        """What stiffness depends on, each shape (worlds, nu), with names and speed."""
        found: dict[str, Any] = {"names": self._controls}
        for kind in ("viscous", "stiffness", "damping", "motor_inertia"):
            fixed, names = self._fixed(kind)
            columns = [
                known.get((kind, name), value) for name, value in zip(names, fixed, strict=True)
            ]
            found[kind] = np.stack(np.broadcast_arrays(np.zeros(1), *columns), axis=-1)[:, 1:]
        return found

    def check_range(self, where: str, known: Mapping[Scalar, np.ndarray]) -> None:
        """Refuse a world with a number out of range."""
        for (kind, name), values in known.items():
            positive, most = KINDS[kind].ideal or kind == "motor_inertia", KINDS[kind].most
            bad = (values <= 0.0 if positive else values < 0.0) | (values > most)
            if KINDS[kind].of == "wrench" or not bad.any():
                continue
            world = int(np.argmax(bad))
            wanted = "a number above zero" if positive else "a number of zero or more"
            raise SimulationError(
                f"{where}, world {world}, `{kind}` of `{name}`",
                expected=wanted if np.isinf(most) else f"{wanted}, at most {most:g}",
                came=f"{values[world]:.6g}",
                cure="Narrow its interval, or change the fixed value.",
                world=world,
            )

    @property
    def rubs(self) -> bool:
        """Whether there is friction or a spring that a step has to resolve."""
        return bool(self.acting("viscous") or self.flexible)

    def decay(self, lag: np.ndarray) -> np.ndarray:
        """E = exp(-h / 2 tau), which is 0 without lag."""
        return np.asarray(np.exp(-self._h / (2.0 * np.maximum(lag, SHORTEST_LAG))))

    @cached_property
    def noisy(self) -> list[tuple[str, int]]:
        """Kind and joint of each standard normal number of a tick."""
        return [(kind, k) for kind in ("noise", "velocity_noise") for k in self.acting(kind)]

    def measured_function(self) -> ca.Function:
        """Measured (q, v) from (q, v, w) and standard normal numbers."""
        robot, places = self._robot, list(scalar_joints(self._robot).values())
        q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
        w, n = ca.SX.sym("w", self.inputs), ca.SX.sym("n", len(self.noisy))
        seen = [ca.SX(q), ca.SX(v)]
        for number, (kind, k) in enumerate(self.noisy):
            rate = int(kind == "velocity_noise")
            seen[rate][places[k][rate]] += self.read(kind, w)[k] * n[number]
        for k in self.acting("resolution"):
            at = places[k][0]
            seen[0][at] = encoder_reading(seen[0][at], self.read("resolution", w)[k])
        shared = shared_encoders(robot) if self._real.motors else []
        if shared:
            # A motor with several joints turns by the sum of theirs, times its ratios.
            every = scalar_joints(robot)
            moved = list(dict.fromkeys(name for ratios, _ in shared for name in ratios))
            rows = np.array([[ratios.get(name, 0.0) for name in moved] for ratios, _ in shared])
            ats = [every[name][0] for name in moved]
            turned = ca.DM(rows) @ seen[0][ats]
            read = [encoder_reading(turned[k], step) for k, (_, step) in enumerate(shared)]
            seen[0][ats] += ca.DM(np.linalg.pinv(rows)) @ (ca.vertcat(*read) - turned)
        return ca.Function("measurement", [q, v, w, n], seen, {"cse": True})

    def loaded_function(self) -> ca.Function:
        """Torques and deflections of drives that bear a command in equilibrium."""
        u, w = self._symbols()
        limited = self._limited(u, w)
        k = self.read("stiffness", w)
        return ca.Function(
            "loaded", [u, w], [_picked(limited, self.lagging), _picked(limited / k, self.flexible)]
        )

    def torque_function(self) -> ca.Function:
        """Torques at the three nodes of a step, as columns, and those of lags at its end."""
        u, w = self._symbols()
        before = ca.SX.sym("before", len(self.lagging))
        limited = self._limited(u, w)
        nodes = ca.horzcat(limited, limited, limited)
        ends = ca.SX(len(self.lagging), 1)
        fixed, names = self._fixed("lag")
        for k, control in enumerate(self.lagging):
            key = ("lag", names[control])
            if key in self._inputs:
                decay = w[self._inputs.index(key)]
            else:
                decay = ca.SX(float(self.decay(fixed[control])))
            way = before[k] - limited[control]
            for node in range(3):
                nodes[control, node] += way * decay**node
            ends[k] = nodes[control, 2]
        return ca.Function("torque", [u, before, w], [ca.densify(nodes), ca.densify(ends)])

    def active_function(self) -> ca.Function:
        """Share of each wrench that acts at the three nodes of a step, as columns."""
        t = ca.SX.sym("t")
        parts = [active_share(entry, t, self._h) for entry in self._real.wrenches]
        rows = [ca.SX.ones(1, 3) if part is None else part for part in parts]
        return ca.Function("active", [t], [ca.densify(ca.vertcat(ca.SX(0, 3), *rows))])

    def rate_function(self, plant: FullOrder) -> ca.Function:
        """Rates of v, work, springs, motors, loads and heat.

        From (q, v, springs, motors, loads, heat, torque, active, share, p); the torque is that
        behind limit and lag, the loads are those of wheels that slip, the shares those of dry
        friction.
        """
        q, v = ca.SX.sym("q", plant.nq), ca.SX.sym("v", plant.nv)
        spring, motor = (ca.SX.sym(name, len(self.flexible)) for name in ("spring", "motor"))
        loads, heat = ca.SX.sym("loads", plant.nl), ca.SX.sym("heat", len(self.heated))
        torque, active = ca.SX.sym("u", plant.nu), ca.SX.sym("a", len(self._real.wrenches))
        share = ca.SX.sym("share", plant.nu)
        p = ca.SX.sym("p", plant.n_numbers + self.inputs)
        w = p[plant.n_numbers :, :]
        unit, _ = normalised(q, plant.quaternions)
        robot = plant.symbolic(p[: plant.n_numbers, :])
        joint_speeds = control_velocities(robot, unit, v)
        speeds = self.speeds(robot, unit, v, motor)
        given = self._available(torque, speeds, w)
        driven = self._rippled(given, unit, w)
        left = driven - self.read("viscous", w) * speeds - self.level(w, speeds, driven) * share
        own = self.flexible
        slip = motor - _picked(joint_speeds, own)
        stiffness, damping, inertia = (
            _picked(self.read(kind, w), own) for kind in ("stiffness", "damping", "motor_inertia")
        )
        load = stiffness * spring + damping * slip
        faster = (_picked(left, own) - load) / inertia
        felt, worked = ca.SX(left), ca.SX(driven)
        felt[own], worked[own] = load, load
        force, pushed = self._disturbance(robot, unit, active, w)
        if plant.slip is None:
            (vdot, _), rate = plant._acceleration(robot, unit, v, felt, force), ca.SX(0, 1)
        else:
            numbers = p[: plant.n_numbers, :]
            vdot, _, rate = plant._slipping(unit, v, loads, felt, numbers, force, pushed)
        most, time = (
            _picked(self.read(kind, w), self.heated) for kind in ("continuous", "thermal_time")
        )
        heating = ((_picked(given, self.heated) / most) ** 2 - heat) / time
        power = ca.dot(worked, joint_speeds) - ca.dot(v, damping_forces(robot, unit, v))
        results = [vdot, power, slip, faster, rate, heating]
        inputs = [q, v, spring, motor, loads, heat, torque, active, share, p]
        return ca.Function("rates", inputs, [ca.densify(part) for part in results], {"cse": True})

    def speeds(self, robot: Any, q: ca.SX, v: ca.SX, motor: ca.SX) -> ca.SX:
        """Speeds on which friction acts: of motors behind springs, else along the controls."""
        speeds = ca.SX(control_velocities(robot, q, v))
        speeds[self.flexible] = motor
        return speeds

    def level(self, w: ca.SX, speeds: ca.SX, driven: ca.SX) -> ca.SX:
        """Level of dry friction of each control, which grows with its torque."""
        given = self._real.stribeck_speed(self._robot)
        speed = given if isinstance(given, float) else ca.DM(given)
        level = ca.SX(dry_level(self.read("coulomb", w), self.read("stribeck", w), speeds, speed))
        lost = 1.0 - self.read("efficiency", w)
        for k in self.acting("efficiency"):
            level[k] += lost[k] * ca.fabs(driven[k])
        return level

    def sticking_functions(self, plant: FullOrder) -> tuple[ca.Function, ca.Function]:
        """Dry friction at the start and at the end of a step.

        The first one maps (q, v, motors, loads, torque, vdot, faster, p, h), with the accelerations
        of robot and motors without dry friction, to the shares of the levels, the accelerations of
        robot and motors by these, and the accelerations per control. The second one maps (q, v,
        motors, torque, p, share, h, jumps, coupled) to the jumps of v, of the motors and of the
        speeds of the controls.
        """
        own, nu = len(self.flexible), plant.nu
        sizes = {"q": plant.nq, "v": plant.nv, "motor": own, "loads": plant.nl, "torque": nu}
        sizes |= {"vdot": plant.nv, "faster": own, "h": 1, "share": nu}
        x = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
        x["p"] = ca.SX.sym("p", plant.n_numbers + self.inputs)
        jumps, coupled = ca.SX.sym("jumps", plant.nv, nu), ca.SX.sym("coupled", nu, nu)
        numbers, w, h = x["p"][: plant.n_numbers, :], x["p"][plant.n_numbers :, :], x["h"]
        robot = plant.symbolic(numbers)
        inertia = _picked(self.read("motor_inertia", w), self.flexible)
        speeds = self.speeds(robot, x["q"], x["v"], x["motor"])
        rates = self.speeds(robot, x["q"], x["vdot"], x["faster"])
        driven = self._rippled(self._available(x["torque"], speeds, w), x["q"], w)
        level = self.level(w, speeds, driven)
        per_control = _per_control(plant, x["q"], numbers, (x["v"], x["loads"], x["torque"]))
        found = ca.densify(per_control[0]), ca.densify(per_control[1])
        start = Sticking(self.dry, found[0], found[1], self.flexible, inertia)
        share = start.shares(speeds, rates, level, h)
        slowed, slower, _ = start.response(-share * level)
        last = Sticking(self.dry, jumps, coupled, self.flexible, inertia)
        ends = last.stopped(speeds, x["share"], level, h)
        given = ("q", "v", "motor", "loads", "torque", "vdot", "faster", "p", "h")
        last_ones = ("q", "v", "motor", "torque", "p", "share", "h")
        at_end = [*(x[name] for name in last_ones), jumps, coupled]
        results = map(ca.densify, (share, slowed, slower, *found))
        return (
            ca.Function("stick", [x[name] for name in given], list(results), {"cse": True}),
            ca.Function("stop", at_end, list(map(ca.densify, ends)), {"cse": True}),
        )

    def _disturbance(self, robot: Any, q: ca.SX, active: ca.SX, w: ca.SX) -> Any:
        """Generalised force (nv,) of disturbances, and the wrench (6,) of those with a force."""
        if not self._real.disturbances:
            return None, None
        total, pushed, k = ca.SX(self._robot.nv, 1), ca.SX(6, 1), 0
        force, torque = (self.read(kind, w) for kind in ("force", "torque"))
        for entry in self._real.disturbances:
            if isinstance(entry, GravityGradient):
                total += gradient_force(entry, robot, q)
            else:
                span = slice(3 * k, 3 * k + 3)
                share = 1.0 if active_share(entry, 0.0, self._h) is None else active[k]
                total += share * wrench_force(entry, robot, q, force[span], torque[span])
                pushed += share * wrench_on_base(entry, robot, q, force[span], torque[span])
                k += 1
        return total, pushed

    def _limited(self, u: ca.SX, w: ca.SX) -> ca.SX:
        limit, found = self.read("torque_limit", w), ca.SX(u)
        for k in self.acting("torque_limit"):
            found[k] = ca.fmax(ca.fmin(u[k], limit[k]), -limit[k])
        return found

    def _available(self, u: ca.SX, speeds: ca.SX, w: ca.SX) -> ca.SX:
        """Torques within the lines of speed and torque."""
        found, kinds = ca.SX(u), ("stall_torque", "no_load_speed")
        stall, fastest = (self.read(kind, w) for kind in kinds)
        for k in self.acting("no_load_speed"):
            low, high = speed_torque_line(stall[k], fastest[k], speeds[k])
            found[k] = ca.fmax(ca.fmin(u[k], high), low)
        return found

    def _rippled(self, u: ca.SX, q: ca.SX, w: ca.SX) -> ca.SX:
        ripple, found = self.read("ripple", w), ca.SX(u)
        places = scalar_joints(self._robot)
        for k in self.acting("ripple"):
            name = self._controls[k]
            if name not in places:
                raise SimulationError(
                    f"imperfections of `{self._robot.name}`, `ripple`",
                    expected="controls that are joints of one coordinate",
                    came=f"`{name}`",
                    cure="Omit it.",
                )
            turn = self._real.ripple_periods * q[places[name][0]]
            found[k] *= 1.0 + ripple[k] * ca.sin(turn)
        return found

    def _symbols(self) -> tuple[ca.SX, ca.SX]:
        return ca.SX.sym("u", len(self._controls)), ca.SX.sym("w", self.inputs)

    def _fixed(self, kind: str) -> tuple[np.ndarray, tuple[str, ...]]:
        return self._real.values(kind, self._robot), self._real.names(kind, self._robot)


def _picked(column: ca.SX, indices: list[int]) -> ca.SX:
    """Some entries, as a column."""
    return ca.vertcat(ca.SX(0, 1), *(column[k] for k in indices))


def _per_control(
    plant: FullOrder, q: ca.SX, p: ca.SX, at: tuple[ca.SX, ...] | None = None
) -> tuple[ca.SX, ca.SX]:
    """Accelerations of the robot and of its controls, shapes (nv, nu) and (nu, nu), per control.

    They depend on velocity, loads and controls where wheels may slip; without these wheels are
    free, the lightest for their motors.
    """
    u = ca.SX.sym("u", plant.nu)
    if plant.slip is None:
        vdot, _ = plant._acceleration(plant.symbolic(p), q, ca.SX.zeros(plant.nv), u)
        at = None
    elif at is not None:
        vdot, _, _ = plant.slip_acceleration(q, *at[:2], u, p)
    else:
        free = replace(plant.slip, loads=(0.0,) * len(plant.slip.grip))
        still = ca.SX.zeros(plant.nv)
        vdot, _, _ = replace(plant, slip=free).slip_acceleration(q, still, ca.SX(0, 1), u, p)
    moved = ca.jacobian(vdot, u)
    moved = moved if at is None else ca.substitute(moved, u, at[2])
    return moved, control_velocities(plant.symbolic(p), q, moved)


FASTEST_DECAY = 2.0
"""Largest rate of friction times step: friction held over a step overshoots rest beyond 1 and
chatters beyond 2; a Runge-Kutta step diverges beyond 2.785."""

FASTEST_SPRING = 1.0
"""Largest frequency of a spring times step: at 1 a Runge-Kutta step damps it by 0.6 %."""

CONFIGURATIONS = 8
"""Configurations at which the drives' mobility is computed."""


def mobility_function(plant: FullOrder) -> Callable[[np.ndarray], np.ndarray]:
    """Accelerations of the controls per control, from rows of numbers of the plant.

    Returns a function from (worlds, n_numbers) to (worlds, CONFIGURATIONS, nu, nu).
    """
    q, p = ca.SX.sym("q", plant.nq), ca.SX.sym("p", plant.n_numbers)
    rng = np.random.default_rng(5)
    _, coupled = _per_control(plant, q, p)
    moved = ca.densify(coupled)
    one = ca.Function("mobility", [q, p], [moved], {"cse": True})
    system = plant.robot
    places = [system.neutral(), *(system.random(rng) for _ in range(CONFIGURATIONS - 1))]
    p = ca.SX.sym("p", plant.n_numbers)
    columns = [ca.vec(one(constant(place), p)) for place in places]
    all_places = ca.Function("mobilities", [p], [ca.horzcat(*columns)])

    def evaluated(rows: np.ndarray) -> np.ndarray:
        found = np.array(all_places(ca.DM(rows.T))).T
        shape = len(rows), CONFIGURATIONS, plant.nu, plant.nu
        return np.swapaxes(found.reshape(shape), 2, 3)

    return evaluated


def check_friction(plant: FullOrder, dt: float) -> None:
    """Refuse friction of a plant that is too stiff for steps of integration.

    Parameters
    ----------
    plant : Plant
        The plant; without friction there is nothing to refuse.
    dt : float
        Length of the steps, s.

    Raises
    ------
    SimulationError
        If the step times the fastest rate of viscous friction, the largest eigenvalue of M^-1
        and the coefficients, is 2 or more at one of some configurations: explicit steps chatter
        then. It names the control and a step that suffices. Dry friction is never too stiff.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.simulation import Friction, check_friction
    >>> robot = cc.robots.rover_arm()
    >>> check_friction(cc.Plant(robot, friction=Friction.of(robot, 0.1, 0.1)), 1e-3)
    """
    drives = Drives(Imperfections(friction=plant.friction, motors=False), plant.robot)
    if not drives.rubs:
        return
    rows = plant.numbers({}) if plant.n_numbers else np.zeros((1, 0))
    where, mobility = f"plant of `{plant.name}`", mobility_function(plant)(rows)
    check_stiffness(where, mobility, drives.values({}), dt)


def check_stiffness(where: str, mobility: np.ndarray, values: Mapping[str, Any], h: float) -> None:
    """Refuse friction and springs that a step of length h does not resolve."""
    slope = np.asarray(values["viscous"])
    soft = np.isfinite(values["stiffness"])
    motor = np.zeros(soft.shape)
    if soft.any():
        motor[soft] = 1.0 / np.broadcast_to(values["motor_inertia"], soft.shape)[soft]
    spring = np.where(soft, values["stiffness"], 0.0)
    damping = np.where(soft, values["damping"], 0.0) if soft.any() else motor
    own = motor[:, None, :, None] * np.eye(motor.shape[1])
    for what, rates, power in (
        ("friction", mobility * np.where(soft, 0.0, slope)[:, None, None, :], 1),
        ("friction of the motor", own * slope[:, None, None, :], 1),
        ("stiffness", (mobility + own) * spring[:, None, None, :], 2),
        ("damping", (mobility + own) * damping[:, None, None, :], 1),
    ):
        if not rates.any():
            continue
        bound = FASTEST_SPRING if power == 2 else FASTEST_DECAY
        fastest = np.abs(np.linalg.eigvals(rates)).max(axis=-1) ** (1.0 / power)
        if (h * fastest).max() < bound:
            continue
        world, place = np.unravel_index(int(fastest.argmax()), fastest.shape)
        rate = float(fastest[world, place])
        among = f", world {world}" if len(fastest) > 1 else ""
        control = values["names"][int(np.argmax(np.diagonal(rates[world, place])))]
        raise SimulationError(
            f"{where}{among}, `{what}` of `{control}`",
            expected=f"a rate below {bound:g} per step of {h:g} s",
            came=f"{rate:.4g} 1/s, {h * rate:.3g} per step",
            cure=f"Take a step of {_rounded(0.95 * bound / rate):g} s or less, or less of it.",
            world=int(world),
            rate=rate,
        )


def _rounded(step: float) -> float:
    """A step with two digits, rounded down."""
    scale = 10.0 ** (math.floor(math.log10(step)) - 1)
    return math.floor(step / scale) * scale
