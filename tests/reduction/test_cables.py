"""Links on cables and chains of round links: spins that are divided out.

Held against the equations on two-spheres, written out, and against Pinocchio.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur.control import Servo, linear_loop
from concur.errors import InertiaError, OutputError, ReductionError, SimulationError
from concur.outputs import Output
from concur.reduction import ReducedModel, reduce, symmetry
from concur.robot import Body, Inertia, Mechanism, Mimic, Motor, Pose, joints
from concur.robots import crane_car
from concur.simulation import Plant, forced_motion
from tests.oracles import Pinocchio, assert_close
from tests.reduction import _chains as chains
from tests.reduction._chains import DIRECTIONS, TURNS, chain, state, two_sphere_accelerations
from tests.reduction._staged import GENERIC, Lifted, check_against

DOWN = (0.0, 0.0, -9.81)


def in_space(
    model: ReducedModel, q: np.ndarray, v: np.ndarray, vdot: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions, angular velocities and angular accelerations of a chain's links, by Pinocchio."""
    oracle, parts = Pinocchio(model.robot), []
    for body in model.robot.bodies[1:]:
        turn = oracle.pose(q, body.name)[:3, :3]
        columns = oracle.jacobian(q, body.name)[3:]
        drifting = oracle.velocity_product(q, v, body.name)[3:]
        parts.append((-turn[:, 2], turn @ columns @ v, turn @ (columns @ vdot + drifting)))
    directions, turns, accelerations = (np.array(part) for part in zip(*parts, strict=True))
    return directions, turns, accelerations


def accelerated(model: ReducedModel, q: np.ndarray, s: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """All accelerations under generalised forces."""
    lift = model.lift(q)[0]
    sdot = np.linalg.solve(model.mass_matrix(q), lift.T @ tau - model.bias(q, s))
    return np.asarray(lift @ sdot + model.drift_acceleration(q, s))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_reference_numbers(count: int) -> None:
    """Accelerations, energies and motions of `two-spheres.md`, to the digits given."""
    model = reduce(chain(count))
    robot, oracle = model.robot, Pinocchio(model.robot)
    assert model.ns == 2 * count
    assert model.stages == tuple(robot.cables)
    q, v = state(robot, DIRECTIONS[:count], TURNS[:count])
    s = v[list(model.shape)]
    assert_close(model.velocity(q, s), v, 1e-15)
    energies = (robot.kinetic_energy(q, v), robot.potential_energy(q))
    assert_close(energies, chains.ENERGY[count], 1e-15)
    tip, first = f"link{count - 1}", oracle.pose(q, "link0")[:3, :3]
    turned = oracle.pose(q, tip)[:3, :3]
    arm = np.array([0.0, 0.0, -chains.LENGTHS[count - 1]])
    wrench = np.concatenate([turned.T @ chains.FORCE, np.cross(arm, turned.T @ chains.FORCE)])
    tau = oracle.jacobian(q, tip).T @ wrench
    tau += oracle.jacobian(q, "link0")[3:].T @ first.T @ chains.TORQUE
    for force, expected in ((0.0 * tau, chains.FREE), (tau, chains.FORCED)):
        found = in_space(model, q, v, accelerated(model, q, s, force))
        assert_close(found[0], DIRECTIONS[:count], 1e-15)
        assert_close(found[1], TURNS[:count], 1e-15)
        assert_close(found[2], expected[count], 1e-14)

    motion = forced_motion(model, None, 1.0, q, s, dt=0.1)
    assert np.ptp(motion.energy) < 1e-11 * abs(sum(energies))
    end = model.velocity(motion.q[-1], motion.s[-1])
    directions, turns, _ = in_space(model, motion.q[-1], end, 0.0 * end)
    for link, (direction, turn) in chains.AFTER[count].items():
        tolerance = 1e-8 if count == 3 else 1e-12  # three links are chaotic
        assert_close(directions[link], direction, tolerance)
        assert_close(turns[link], turn, tolerance)
    for k in (0, -1):
        vertical = robot.momentum(motion.q[k], model.velocity(motion.q[k], motion.s[k]))[5]
        assert vertical == pytest.approx(chains.VERTICAL[count], abs=1e-11)

    hanging = linear_loop(model, at=robot.neutral())
    squares = np.sort(-(hanging.poles() ** 2).real)
    assert_close(squares, np.repeat(np.sort(chains.FREQUENCIES[count]), 4), 1e-6)


def test_two_sphere_equations_at_random_states() -> None:
    """Also with a torque along the line, at the poles, and standing upright."""
    rng, model = np.random.default_rng(5), reduce(chain(3))
    oracle = Pinocchio(model.robot)
    for k in range(12):
        directions = rng.normal(size=(3, 3))
        if k < 2:
            directions[rng.integers(3)] = [0.0, 0.0, (-1.0) ** k]
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        turns = np.cross(directions, rng.normal(size=(3, 3)))
        torque = rng.normal(size=3)
        q, v = state(model.robot, directions, turns)
        first = oracle.pose(q, "link0")[:3, :3]
        tau = oracle.jacobian(q, "link0")[3:].T @ first.T @ torque
        found = in_space(model, q, v, accelerated(model, q, v[list(model.shape)], tau))
        assert_close(found[2], two_sphere_accelerations(directions, turns, torque), 1e-12)


def spin_rows(oracle: Pinocchio, lines: dict[str, np.ndarray], q: np.ndarray) -> np.ndarray:
    return np.array([line @ oracle.jacobian(q, name)[3:] for name, line in lines.items()])


def hung(robot: Mechanism, body: str, at: tuple[float, ...], length: float = 1.2) -> Mechanism:
    """Hang a point mass on a cable from a body, with another one below."""
    load = Body("load", joints.Spherical(), body, Pose(at), Inertia(40.0, (0.0, 0.0, -length)))
    hook = Pose((0.0, 0.0, -length), tuple(Rotation.from_euler("xyz", [0.3, 1, 2]).as_quat()))
    below = Body("below", joints.Spherical(), "load", hook, Inertia(5.0, (0.0, -0.7, 0.0)))
    return replace(robot, bodies=(*robot.bodies, load, below), gravity=DOWN)


@pytest.mark.extended
def test_on_wheels_plant_and_model_agree() -> None:
    """A crane car with two loads: accelerations of the full-order plant, energy, no servo."""
    robot = hung(crane_car(), "boom", (2.0, 0.0, 0.0))
    robot = replace(robot, actuated=crane_car().actuated)
    model = reduce(robot)
    assert model.stages == ("load", "below")
    assert model.first.kind == "chaplygin"
    rng, plant = np.random.default_rng(2), Plant(robot)
    for _ in range(3):
        q, s, u = robot.random(rng), rng.uniform(-1, 1, model.ns), 50 * rng.uniform(-1, 1, 4)
        v = model.velocity(q, s)
        vdot = model.lift(q)[0] @ model.acceleration(q, s, u) + model.drift_acceleration(q, s)
        assert_close(plant.acceleration(q, v, u)[0], vdot, 1e-10)
    motion = forced_motion(model, lambda t: [0, 20 * np.sin(t), 30.0, 0], 2.0, q, 0.3 * s)
    assert np.abs(motion.energy_balance).max() < 1e-8 * np.abs(motion.energy).max()
    output = Output("load", "load", "R3", point=(0.0, 0.0, -1.2))
    with pytest.raises(OutputError) as error:
        Servo(model, [output], 1.0, 2.0)
    assert "load[wx], load[wy], below[wx], below[wz]" in str(error.value)
    assert "linear_loop" in str(error.value)
    with pytest.raises(OutputError, match="hold the robot at rest"):
        linear_loop(model, at=q)
    with pytest.raises(OutputError, match="at=q"):
        linear_loop(model)


def test_on_a_floating_base() -> None:
    """Pinocchio with the spin as a constraint that takes no force; a massless link between."""
    cable = Body("cable", joints.Spherical(), "hull", Pose((0.5, 0.0, 0.1)))
    bodies = [
        Body("hull", joints.Free(), None, Pose(), Inertia(20.0, (0.1, 0.0, 0.0), GENERIC)),
        Body("vane", joints.Revolute((0, 0, 1)), "hull", Pose(), Inertia(1.0, (0.3, 0, 0))),
        cable,
        Body("load", joints.Spherical(), "cable", Pose((0.0, 0.9, 0.0)), Inertia(2.0, (0.1, 0, 0))),
        Body("clamp", joints.Fixed(), "load", Pose((0.1, 0, 0)), Inertia(1.0, (0.3, 0, 0))),
    ]
    robot = Mechanism("tug", bodies, actuated=("vane",))
    lines = {"cable": np.array([0.0, 1.0, 0.0]), "load": np.array([1.0, 0.0, 0.0])}
    assert list(robot.cables) == list(lines)
    for name, line in lines.items():
        assert_close(robot.cables[name].axis, line, 1e-12)
    assert robot.cables["cable"].moment == pytest.approx(3.0 * 0.81)
    model, oracle = reduce(robot), Pinocchio(robot)

    def equations(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        momenta = oracle.mass_matrix(q)[:6]  # along the axes of the hull: zero
        return np.vstack([momenta, spin_rows(oracle, lines, q)]), np.zeros(8)

    def accelerations(q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        rows = spin_rows(oracle, lines, q)
        drift = [x @ oracle.velocity_product(q, v, name)[3:] for name, x in lines.items()]
        whole = np.block([[oracle.mass_matrix(q), rows.T], [rows, np.zeros((2, 2))]])
        right = np.concatenate([tau - oracle.bias(q, v), -np.array(drift)])
        solved = np.linalg.solve(whole, right)
        assert np.abs(solved[-2:]).max() < 1e-8  # nothing holds the spins
        return solved[:-2]

    check_against(model, Lifted(oracle, equations, model.shape), accelerations, seed=4, states=5)


def test_what_is_a_link_on_a_cable() -> None:
    """Each condition on both sides."""
    assert list(chain(2, (0.1, 0.0)).cables) == ["link0", "link1"]
    for about, expected in ((5e-13, ["load"]), (2e-12, [])):  # across it is 0.74 kg m^2
        robot = one(Inertia(1.0, (0.0, 0.0, -0.8), (0.1, 0.1, about)))
        assert list(robot.cables) == expected
    point = Inertia(1.0, (0.0, 0.3, -0.4))
    assert_close(one(point).cables["load"].axis, [0.0, -0.6, 0.8], 1e-15)
    assert one(point).cables["load"].moment == pytest.approx(0.25)
    # A motor, a thruster, no mass away from the joint: the spin would take torque without mass.
    thrust = Motor("jet", body="load", wrench=(0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    for inertia, options in (
        (point, {"actuated": ("load",)}),
        (point, {"motors": (thrust,)}),
        (Inertia(1.0), {}),
    ):
        with pytest.raises(InertiaError, match="moves no mass"):
            one(inertia, **options)
    with pytest.raises(InertiaError, match="moves no mass"):  # the base has the whole momentum
        Mechanism("stone", [Body("stone", joints.Spherical(), None, Pose(), point)])
    # A body that hangs beside the line gives the spin an inertia.
    for beside, expected in ((0.0, ["link0", "link1"]), (0.01, ["link1"])):
        robot = chain(2)
        moved = replace(robot.bodies[2], placement=Pose((beside, 0.0, -0.8)))
        assert list(replace(robot, bodies=(*robot.bodies[:2], moved)).cables) == expected


def one(inertia: Inertia, **options: object) -> Mechanism:
    bodies = [Body("ceiling", joints.Fixed()), Body("load", joints.Spherical(), "ceiling")]
    bodies[1] = replace(bodies[1], inertia=inertia)
    return Mechanism("one", bodies, gravity=DOWN, **{"actuated": (), **options})


def test_uncertain_loads() -> None:
    """The mass of a load may be uncertain, not what turns its line away."""
    robot = chain(2)
    plant = Plant(robot, uncertain=["link1.inertia.mass", "link0.placement.translation"])
    world = plant.rebuilt({"link1.inertia.mass": 0.4})
    q, v = state(robot, DIRECTIONS[:2], TURNS[:2])
    assert world.total_mass == pytest.approx(2.1)
    (numbers,) = plant.numbers({"link1.inertia.mass": 0.4})
    found = plant.world_acceleration(q, v, np.zeros(0), numbers)[0]
    assert_close(found, Plant(world).acceleration(q, v, np.zeros(0))[0], 1e-12)
    for name in ("link1.inertia.com", "link0.inertia.moments", "link1.placement.translation"):
        with pytest.raises(SimulationError, match=name):
            Plant(robot, uncertain=[name])


def test_joints_that_follow_others_are_refused() -> None:
    pair = [
        Body("left", joints.Revolute((0, 0, 1)), "ceiling", Pose(), Inertia(1.0, (0.3, 0, 0))),
        Body("right", joints.Revolute((0, 0, 1)), "ceiling", Pose(), Inertia(1.0, (0.3, 0, 0))),
    ]
    robot = chain(1)
    with pytest.raises(ReductionError, match="links on cables: `link0`"):
        reduce(
            replace(
                robot,
                bodies=(*robot.bodies, *pair),
                actuated=("left",),
                mimics=(Mimic("right", "left"),),
            )
        )


@pytest.mark.extended
def test_symmetry_lists_spins_with_all_that_a_link_carries_turned_back() -> None:
    """Those of links on cables and of round links, which `reduce` divides out, and no others."""
    for moments in (None, (0.01, 0.02)):
        robot = chain(3) if moments is None else chain(3, moments)
        found = symmetry(robot)
        staged = reduce(robot, stages="auto")
        assert {row.joint for row in found.reducible} == set(staged.stages)
        for name in ("link0", "link1"):
            row = found[name]
            assert row.turned is not None
            assert_close(row.turned.twists[:, 0], [0, 0, 0, 0, 0, 1], 1e-12)
            assert row.partly
            assert "about z of the body, with all it carries turned back" in row.evidence
        assert found["link2"].turned is None
    assert str(found).count("1 SO(2)") == 4  # three spins and the vertical of the first link

    robot = chain(3, (0.01, 0.02))
    links = list(robot.bodies)
    for offset, kept in ((5e-10, True), (5e-9, False)):  # a joint beside the line
        beside = replace(links[2], placement=Pose((offset, 0.0, links[2].placement.translation[2])))
        row = symmetry(replace(robot, bodies=[*links[:2], beside, *links[3:]]))["link0"]
        assert (row.turned is not None) == kept
    flat = replace(links[1], inertia=replace(links[1].inertia, moments=(0.01, 0.03, 0.02)))
    row = symmetry(replace(robot, bodies=[links[0], flat, *links[2:]]))["link0"]
    assert row.turned is None
    assert symmetry(replace(robot, actuated=["link1"]))["link0"].turned is None
