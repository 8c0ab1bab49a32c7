"""Plants as units for co-simulation: alone, and coupled with servos, as the package moves them."""

import numpy as np
import pytest
from fmpy import read_model_description
from fmpy.validation import validate_fmu
from numpy.testing import assert_allclose, assert_array_equal

from concur import robots
from concur.errors import SimulationError
from concur.export import write_fmu
from concur.reduction import reduce
from concur.simulation import Friction, Integrator, Plant, simulate
from concur.simulation._fmu import plant_fmu
from tests.control._cases import Q0, S0, case_study
from tests.control._floating_cases import CHECK_A_Q0, CHECK_A_S0
from tests.export._fmu_cases import CASES, EACH, FLYER, HOLD, INPUTS, flyer
from tests.export._units import DISCARD, OK, Unit, with_compiler
from tests.formulations.textbook import chain
from tests.oracles import Pinocchio
from tests.reduction._chains import AFTER, DIRECTIONS, ENERGY, TURNS


@pytest.mark.extended
@pytest.mark.parametrize(("case", "version"), EACH)
def test_unit_is_valid(workshop, case, version):
    assert validate_fmu(str(workshop.path("plant", case, version))) == []


@pytest.mark.extended
@pytest.mark.parametrize(
    ("case", "version"),
    [
        ("rover", "3.0"),
        ("rover", "2.0"),
        pytest.param("flyer", "3.0", marks=pytest.mark.slow),
        pytest.param("flyer", "2.0", marks=pytest.mark.slow),
    ],
)
def test_servo_and_plant_coupled_are_the_simulation_of_the_package(units, case, version):
    make, q0, s0, demand = CASES[case]
    servo, reference = make(), demand()
    law, plant = units("servo", case, version), units("plant", case, version)
    integrator = Integrator(dt=HOLD, control_period=HOLD)
    run = simulate(servo.model.robot, servo, reference, 2.0, q0, s0, dt=integrator)
    plant.start(q0=q0, s0=s0)
    law.start()
    times = np.arange(2001) * HOLD
    flat = reference.sample(times)
    q, v, u = [plant.get("q")], [plant.get("v")], []
    for k in range(2000):
        state = {"q": q[-1], "s": plant.get("s")}
        if case == "flyer":
            state["momentum"] = plant.get("momentum")
        law.set(**state, **{n: f[k] for n, f in zip(INPUTS[2:], flat, strict=True)})
        u.append(law.get("u"))
        plant.set(u=u[-1])
        assert (law.step(HOLD), plant.step(HOLD)) == (OK, OK)
        q.append(plant.get("q"))
        v.append(plant.get("v"))
    assert_allclose(q, run.q, atol=1e-9, rtol=0)
    assert_allclose(v, run.v, atol=1e-9, rtol=0)
    assert_allclose(u, run.u[:2000], atol=1e-7, rtol=1e-9)
    # It is a motion, and one that ends where it should.
    assert np.abs(run.q[-1] - q0).max() > 0.1


@pytest.mark.extended
@pytest.mark.parametrize(("case", "version"), EACH)
def test_energy_and_momentum_are_those_of_pinocchio(units, case, version):
    make, q0, s0, _ = CASES[case]
    servo, plant = make(), units("plant", case, version)
    oracle = Pinocchio(servo.model.robot)
    plant.start(q0=q0, s0=s0)
    plant.set(u=0.3 * np.arange(1, servo.nu + 1))
    for _ in range(5):
        q, v = plant.get("q"), plant.get("v")
        energy = oracle.kinetic_energy(q, v) + oracle.potential_energy(q)
        assert_allclose(plant.get("energy"), [energy], rtol=1e-12, atol=1e-12)
        assert_allclose(plant.get("momentum"), oracle.momentum(q, v), rtol=1e-11, atol=1e-11)
        assert_array_equal(plant.get("s"), v[list(servo.model.shape)])
        assert plant.step(0.1) == OK
    assert np.abs(plant.get("q") - q0).max() > 0.01


@pytest.mark.parametrize("version", FLYER)
def test_floating_plant_starts_with_the_momentum_that_is_asked_for(units, version):
    plant = units("plant", "flyer", version)
    momentum = np.array([0.5, -0.3, 0.2, 2.5, 0.8, 0.8])
    plant.start(q0=CHECK_A_Q0, s0=CHECK_A_S0, momentum0=momentum)
    assert_allclose(plant.get("momentum"), momentum, atol=1e-12)
    energy = plant.get("energy")
    for _ in range(20):
        assert plant.step(0.05) == OK
    assert_allclose(plant.get("momentum"), momentum, atol=1e-9)
    assert_allclose(plant.get("energy"), energy, rtol=1e-9)
    assert_allclose(np.linalg.norm(plant.get("q")[3:7]), 1.0, atol=1e-14)


@pytest.mark.parametrize("version", FLYER)
def test_plant_refuses_starts_and_torques_that_cannot_be(units, version):
    plant = units("plant", "flyer", version)
    plant.enter()
    for wrong in (2.0 * CHECK_A_Q0, np.full(13, np.nan), np.zeros(13)):
        plant.set(q0=wrong)
        assert plant.refused(plant.fmu.exitInitializationMode)
    plant.set(q0=CHECK_A_Q0)
    plant.fmu.exitInitializationMode()
    plant.set(u=[np.nan, 0, 0, 0, 0, 0])
    assert plant.step(HOLD) == DISCARD
    assert_allclose(plant.get("q"), CHECK_A_Q0, atol=1e-15)
    plant.set(u=np.zeros(6))
    assert plant.step(HOLD) == OK


@pytest.mark.extended
def test_plant_without_a_model_starts_from_all_velocities(tmp_path):
    servo = case_study()
    robot = servo.model.robot
    with with_compiler():
        unit = Unit(Plant(robot).export(tmp_path))
    v0 = servo.model.velocity(Q0, S0)
    unit.enter()
    unit.set(q0=Q0, v0=v0 + np.array([0.0, 0.1, 0, 0, 0, 0, 0, 0]))
    assert unit.refused(unit.fmu.exitInitializationMode)
    assert "without slip" in unit.messages[-1][1]
    unit.set(v0=v0)
    unit.fmu.exitInitializationMode()
    assert_array_equal(unit.get("v"), v0)
    assert unit.step(0.1) == OK
    assert "s" not in {v.name for v in unit.description.modelVariables}
    unit.close()


@pytest.mark.extended
@pytest.mark.parametrize("version", ["3.0", "2.0"])
def test_units_of_a_system_without_bodies(tmp_path, version):
    """A chain of source 002: after a second it is where the equations of the source lead."""
    system = chain(2)
    with with_compiler():
        plant = Unit(Plant(system).export(tmp_path, reduce(system), version))
    plant.start(q0=DIRECTIONS[:2].ravel(), s0=TURNS[:2].ravel())
    assert_allclose(plant.get("energy"), sum(ENERGY[2]), rtol=1e-12)
    for _ in range(10):
        assert plant.step(0.1) == OK
    for link, (direction, turning) in AFTER[2].items():
        place = slice(3 * link, 3 * link + 3)
        assert_allclose(plant.get("q")[place], direction, atol=1e-8)
        assert_allclose(plant.get("s")[place], turning, atol=1e-7)
    assert "momentum" not in {v.name.partition("[")[0] for v in plant.description.modelVariables}
    plant.close()


def test_starts_off_the_sphere_are_refused(tmp_path):
    with with_compiler():
        plant = Unit(Plant(chain(1)).export(tmp_path))
    plant.enter()
    plant.set(q0=[0.0, 0.0, -1.1], v0=np.zeros(3))
    assert plant.refused(plant.fmu.exitInitializationMode)
    assert "directions" in plant.messages[-1][1]
    plant.close()
    with pytest.raises(SimulationError, match="`model`: expected a reduced model of this robot"):
        Plant(chain(1)).export(tmp_path, reduce(chain(2)))


@pytest.mark.extended
def test_friction_sticks_in_a_unit_as_in_a_plant(tmp_path):
    robot = robots.rover_arm()
    plant = Plant(robot, friction=Friction.of(robot, 0.05, {"turret": 0.4, "upper_arm": 9.0}))
    with with_compiler():
        unit = Unit(plant.export(tmp_path))
    q, v = robot.neutral(), np.zeros(robot.nv)
    unit.start(q0=q, v0=v)
    step = plant.step_function()
    for torque in (0.39, 0.8, 0.0):
        u = np.array([0.3, 0.2, torque, 0.0, 0.0])
        unit.set(u=u)
        for _ in range(50):
            assert unit.step(1e-3) == OK
            q, v = (np.array(part).ravel() for part in step(q, v, u, 1e-3))
        assert_allclose(unit.get("q"), q, rtol=0, atol=1e-12)
        assert_allclose(unit.get("v"), v, rtol=0, atol=1e-11)
    unit.close()


def test_units_tell_what_each_number_is(tmp_path):
    plant = Plant(robots.free_flyer())
    model = plant_fmu(plant.tree, plant.step_function(), None, 1e-3)
    path = write_fmu(model, tmp_path, "2.0", binary=False)
    description = read_model_description(str(path))
    told = {v.name: v for v in description.modelVariables}
    assert [told[f"q[{k}]"].unit for k in range(1, 9)] == ["m"] * 3 + [None] * 4 + ["rad"]
    assert [told[f"v[{k}]"].unit for k in (1, 4, 7)] == ["m/s", "rad/s", "rad/s"]
    assert [told[f"u[{k}]"].unit for k in range(1, 7)] == ["N.m"] * 6
    assert [told[f"momentum[{k}]"].unit for k in (3, 4)] == ["kg.m/s", "kg.m2/s"]
    assert told["q[8]"].description.endswith("Entry: turret.")
    units = {u.name: u.baseUnit for u in description.unitDefinitions}
    powers = {name: (u.kg, u.m, u.s, u.rad) for name, u in units.items()}
    assert powers == {
        "m": (0, 1, 0, 0),
        "s": (0, 0, 1, 0),
        "rad": (0, 0, 0, 1),
        "m/s": (0, 1, -1, 0),
        "rad/s": (0, 0, -1, 1),
        "N.m": (1, 2, -2, 0),
        "J": (1, 2, -2, 0),
        "kg.m/s": (1, 1, -1, 0),
        "kg.m2/s": (1, 2, -1, 0),
    }


def test_options_that_do_not_fit_are_refused(tmp_path):
    plant = Plant(case_study().model.robot)
    with pytest.raises(SimulationError, match="`step`"):
        plant.export(tmp_path, step=0.0)
    with pytest.raises(SimulationError, match="`model`: expected a reduced model of this robot"):
        plant.export(tmp_path, flyer().model)
    assert not list(tmp_path.iterdir())
