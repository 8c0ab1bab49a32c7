"""One law everywhere: torque, tick, C, FMU, simulation, python-control and rig say the same."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.fmi3 import FMU3Slave
from scipy.spatial.transform import Rotation

import concur as cc
from tests.contract._outputs import draw, motions
from tests.contract._robots import EXAMPLES, LAWS, Case, case
from tests.oracles import assert_close

EXACT = 1e-12
SAMPLES = 3
COMPILED = ("rover", "moving floater", "mecanum", "pendulum", "hull")
FIRST = ("rover", "moving floater", "hull")
"""Those that run by default where each case takes a second."""
SIMULATED = (*FIRST, *(x for x in LAWS if x not in FIRST))


def samples(one: Case, count: int = SAMPLES) -> list[tuple[np.ndarray, np.ndarray, Any]]:
    """Regular states with references near them, the same ones for every form of the law."""
    rng, found = np.random.default_rng(9), []
    while len(found) < count:
        q, s = one.state(rng)
        if one.servo.margin(q) > 0.05:
            v = one.model.velocity(q, s)
            found.append((q, s, draw(one, motions(one, q, v, np.zeros_like(v)), rng, 0.3)[0]))
    return found


@pytest.mark.by_default(9)
@pytest.mark.parametrize("name", LAWS)
def test_interpreted_tick_says_what_the_torque_is(name: str) -> None:
    one = case(name)
    tick = one.servo.compile(interpreted=True)
    for q, s, sample in samples(one):
        tick.reset()
        assert_close(tick(q, s, sample), one.servo.torque(q, s, sample), EXACT)
        buffers = tick.buffers
        buffers.u[:] = np.nan
        buffers.q[:], buffers.s[:], buffers.pose[:] = q, s, sample.flat_pose
        buffers.twist[:], buffers.acceleration[:] = sample.twist, sample.acceleration
        assert tick.run() == 0
        np.testing.assert_array_equal(buffers.u, tick(q, s, sample))


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_tick_says_what_the_torque_is(name: str, compiler: None) -> None:
    one = case(name)
    tick = one.servo.compile()
    for q, s, sample in samples(one):
        tick.reset()
        assert_close(tick(q, s, sample), one.servo.torque(q, s, sample), EXACT)
        np.testing.assert_array_equal(tick(q, s, sample), tick(q, s, sample))


# --- exported C -----------------------------------------------------------------------------------

_CALL = """
#include "law.h"
static law_context context;
int call(const double *given, double *u);
int call(const double *given, double *u) {
  law_input input;
  law_output output;
  int k, code;
  law_preset(&input);
  for (k = 0; k < COUNT; ++k) ((double *)&input)[k] = given[k];
  law_reset(&context);
  code = law_tick(&context, &input, &output);
  for (k = 0; k < CONTROLS; ++k) u[k] = output.u[k];
  return code;
}
"""


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["pendulum", "rover", "moving floater", "mecanum", "hull"])
def test_exported_c_says_what_the_torque_is(name: str, tmp_path: Path) -> None:
    one = case(name)
    servo = one.servo
    servo.export(tmp_path, target="c", name="law")
    given = [
        np.concatenate([q, s, sample.flat_pose, sample.twist, sample.acceleration])
        for q, s, sample in samples(one)
    ]
    text = _CALL.replace("COUNT", str(len(given[0]))).replace("CONTROLS", str(servo.nu))
    (tmp_path / "call.c").write_text(text)
    found = shutil.which("gcc") or shutil.which("cc")
    assert found
    command = [found, "-O0", "-fPIC", "-shared", "law.c", "call.c", "-o", "law.so", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    call = ctypes.CDLL(str(tmp_path / "law.so")).call
    pointer = ctypes.POINTER(ctypes.c_double)
    for numbers, (q, s, sample) in zip(given, samples(one), strict=True):
        u = np.full(servo.nu, np.nan)
        assert call(numbers.ctypes.data_as(pointer), u.ctypes.data_as(pointer)) == 0
        assert_close(u, servo.torque(q, s, sample), EXACT)


# --- FMU ------------------------------------------------------------------------------------------


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["pendulum", "rover", "moving floater"])
def test_fmu_says_what_the_torque_is(name: str, compiler: None, tmp_path: Path) -> None:
    one = case(name)
    archive = one.servo.export(tmp_path / "unit", target="fmu", fmi="3.0")
    description = fmpy.read_model_description(str(archive))
    folder = fmpy.extract(str(archive), str(tmp_path / "open"))
    reference = {v.name: v.valueReference for v in description.modelVariables}
    for q, s, sample in samples(one):
        # A new one for each: states that do not follow from each other count as a leap.
        unit = FMU3Slave(
            guid=description.instantiationToken,
            unzipDirectory=folder,
            modelIdentifier=description.coSimulation.modelIdentifier,
            instanceName="contract",
        )
        unit.instantiate()
        unit.enterInitializationMode()
        inputs = {"q": q, "s": s, "pose": sample.flat_pose}
        inputs |= {"twist": sample.twist, "acceleration": sample.acceleration}
        for key, values in inputs.items():
            unit.setFloat64([reference[key]], np.asarray(values, float).tolist())
        unit.exitInitializationMode()
        u = unit.getFloat64([reference["u"]], one.servo.nu)
        assert_close(u, one.servo.torque(q, s, sample), EXACT)


# --- python-control and simulation ----------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("name", LAWS)
def test_python_control_gets_the_torque(name: str) -> None:
    one = case(name)
    system = one.servo.to_iosystem()
    for q, s, sample in samples(one, 1):
        given = [q, s, sample.flat_pose, sample.twist, sample.acceleration]
        assert_close(
            system.output(0.0, [], np.concatenate(given)), one.servo.torque(q, s, sample), EXACT
        )


def _hold(one: Case, q: np.ndarray, s: np.ndarray) -> Any:
    """A reference that stands where the outputs are."""
    v = one.model.velocity(q, s)
    parts = []
    for motion in motions(one, q, v, np.zeros_like(v)):
        flat = motion.flat(motion.pose)
        group = motion.group if motion.group in ("SE3", "R3xSO3", "SO3") else None
        line = cc.references.hold(flat, group)
        parts.append(cc.references.planar(line) if motion.group == "SE2" else line)
    return cc.references.stack(*parts) if len(parts) > 1 else parts[0]


@pytest.mark.by_default(4)
@pytest.mark.parametrize(
    ("name", "way"),
    # Imperfections are those of a tree of bodies: the plant refuses other systems.
    [
        (n, w)
        for n in SIMULATED
        for w in ("ideal", "imperfect")
        if (n, w) != ("energies", "imperfect")
    ],
)
def test_simulated_torques_are_those_of_the_law_at_the_recorded_states(name: str, way: str) -> None:
    one = case(name)
    ((q, s, _),) = samples(one, 1)
    s = 0.1 * s
    reference = _hold(one, q, s)
    nothing = cc.simulation.RealPlant(imperfections=cc.simulation.Imperfections())
    plant = None if way == "ideal" else nothing
    run = cc.simulate(one.system or one.robot, one.servo, reference, 0.02, q, s, 5e-3, plant)
    assert len(run.t) == 5
    for k in range(4):
        expected = one.servo.torque(run.q[k], run.s[k], reference(run.t[k]))
        assert_close(run.u[k], expected, EXACT)
    v = [one.model.velocity(a, b) for a, b in zip(run.q, run.s, strict=True)]
    assert_close(run.v, v, 1e-7, name="velocities stay on the lift")


# --- rig ------------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("rig", ["rover_rig/rig.toml", "floater_rig/rig.toml"])
def test_rig_demands_the_torque_of_the_law(rig: str, tmp_path: Path) -> None:
    import hil

    command = [str(Path(sys.executable).with_name("concur-rig")), "drive", str(EXAMPLES / rig)]
    options = ["--mock", "--yes", "--duration", "0.5", "--out", str(tmp_path / "run"), "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip().startswith("{"), done.stderr
    assert json.loads(done.stdout)
    record = hil.Record.load(tmp_path / "run")
    servo = cc.load_task(EXAMPLES / rig.replace("rig.toml", "task.toml")).servo
    rows = np.flatnonzero(np.isfinite(record["q"]).all(axis=1))
    compared = 0
    for k in rows[:: max(len(rows) // 40, 1)]:
        demand = record["demand"][k]
        if not np.isfinite(demand).all() or not demand.any():
            continue  # a cycle before the first report, or one without a torque
        sample = cc.ReferenceSample(*(record[x][k] for x in ("pose", "twist", "acceleration")))
        u = servo.torque(record["q"][k], record["s"][k], sample)
        assert_close(demand, u, EXACT)
        compared += 1
    assert compared > 10


def test_quaternions_of_either_sign_are_one_pose() -> None:
    one = case("floater")
    q, s, sample = samples(one, 1)[0]
    turned = sample.flat_pose.copy()
    turned[3:] *= -1.0
    other = cc.ReferenceSample(turned, sample.twist, sample.acceleration)
    assert_close(one.servo.torque(q, s, other), one.servo.torque(q, s, sample), 1e-10)
    assert Rotation.from_quat(turned[3:]).approx_equal(Rotation.from_quat(sample.flat_pose[3:]))
