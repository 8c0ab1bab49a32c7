"""Exported servos, compiled to a library that tests call with arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from concur import robots
from concur.control import CFolder, Servo
from concur.outputs import Output
from concur.reduction import reduce
from tests.control._cases import case_study, two_links
from tests.control._floating_cases import CHECK_A_MOMENTUM
from tests.control._mecanum import FOUR, OUTPUTS, WEIGHTS
from tests.outputs.test_directions import made as directed

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)] or ["cc"]
NAME = "law1"


@cache
def servo(kind: str) -> Servo:
    """Servos of all kinds that are exported."""
    flyer = reduce(robots.free_flyer(), momentum=CHECK_A_MOMENTUM)
    hand = [Output("hand", "tool", "SE3")]
    if kind == "rover":
        return case_study()
    if kind == "rover, limited":
        return replace(case_study(), torque_limits=4.0)
    if kind == "free-flyer":
        return Servo(flyer, hand, 4.0, 2.8)
    if kind == "free-flyer, measured":
        return Servo(flyer, hand, 4.0, 2.8, use_measured_velocity=True)
    if kind == "free-flyer, limited":
        return Servo(flyer, hand, 4.0, 2.8, torque_limits=3.0)
    if kind == "free-flyer, redundant":
        return Servo(flyer, [Output("hand", "tool", "R3")], 4.0, 2.8)
    if kind == "free-flyer, redundant and limited":
        return Servo(flyer, [Output("hand", "tool", "R3")], 4.0, 2.8, torque_limits=2.0)
    if kind.startswith("two links"):
        options = {"torque_limits": 5.0} if "limited" in kind else {}
        return two_links(**options, **({"integral": 3.0} if "integral" in kind else {}))
    if kind.startswith("mecanum"):  # five motors for four shape velocities
        limits = [0.5, 0.5, 0.5, 0.5, 5.0] if "limited" in kind else None
        return Servo(FOUR, OUTPUTS, 4.0, 4.0, torque_limits=limits, torque_weights=WEIGHTS)
    if kind.startswith(("pendulum", "camera")):  # directions
        limits = {"torque_limits": 40.0} if "limited" in kind else {}
        return directed(kind.split(",")[0], **limits)
    assert kind == "tractor"
    robot = robots.tractor_trailers()
    ahead = Output("ahead", robot.bodies[0].name, "R2", point=(0.5, 0.0, 0.0))
    return Servo(reduce(robot), [ahead], 4.0, 4.0)


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def compile_replay(folder: Path, *command: str, law: str = f"{NAME}.c") -> None:
    """Compile what was exported and its replay, without a warning."""
    done = run(*command, law, "replay.c", "-o", "replay", "-lm", cwd=folder)
    assert done.returncode == 0, done.stderr[:2000]
    assert done.stderr == ""


_BATCH = """
#include "@.h"
static @_context context;
int batch(int n, int apart, const double *given, double *found, int *codes);
int batch(int n, int apart, const double *given, double *found, int *codes) {
  const int inputs = sizeof(@_input) / sizeof(@_real);
  const int outputs = OUTPUTS;
  int k, i;
  for (k = 0; k < n; ++k) {
    @_input input;
    @_output output;
    @_real *to = (@_real *)&input, *from = (@_real *)&output;
    for (i = 0; i < inputs; ++i) to[i] = (@_real)given[k * inputs + i];
    for (i = 0; i < outputs; ++i) from[i] = 7;
    if (apart) @_reset(&context);
    codes[k] = @_tick(&context, &input, &output);
    if (codes[k] != output.code) codes[k] = -1;
    for (i = 0; i < outputs; ++i) found[k * outputs + i] = (double)from[i];
  }
  return inputs;
}
void forge(int place, double value);
void forge(int place, double value) { context.before[place] = (@_real)value; }
double state(int place);
double state(int place) { return (double)context.before[place]; }
int missing(void);
int missing(void) {
  @_input input;
  @_output output;
  @_preset(&input);
  @_preset(0);
  output.u[0] = 7;
  if (@_tick(&context, &input, 0) != @@_FAILED) return 1;
  if (@_tick(0, &input, &output) != @@_FAILED || output.u[0] != 0) return 2;
  output.u[0] = 7;
  if (@_tick(&context, 0, &output) != @@_FAILED || output.u[0] != 0) return 3;
  return 0;
}
"""


@dataclass(frozen=True)
class Library:
    """Exported C as a library.

    Parameters
    ----------
    folder : CFolder
        What was exported.
    servo : Servo
        From what.
    path : Path
        Its library.
    """

    folder: CFolder
    servo: Servo
    path: Path

    @classmethod
    def build(cls, kind: str, directory: Path, **options: object) -> Library:
        # The longest ones take seconds to optimize.
        return cls.of(servo(kind), directory, "-O0" if "limited" in kind else "-O1", **options)

    @classmethod
    def of(cls, law: Servo, directory: Path, level: str = "-O1", **options: object) -> Library:
        exported = law.export(directory, name=NAME, **options)  # type: ignore[arg-type]
        outputs = law.nu + law.size + 2
        text = _BATCH.replace("@@", NAME.upper()).replace("@", NAME)
        (directory / "batch.c").write_text(text.replace("OUTPUTS", str(outputs)))
        flags = (level, "-fPIC")
        for names in (
            (*STRICT, "-c", f"{NAME}.c", "-o", "law.o"),
            ("-std=c99", "-shared", "law.o", "batch.c", "-o", "batch.so", "-lm"),
        ):
            done = run(COMPILERS[0], *flags, *names, cwd=directory)
            assert done.returncode == 0, done.stderr
            assert done.stderr == ""
        return cls(exported, law, directory / "batch.so")

    def __call__(self, states: np.ndarray, apart: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Outputs (k, m) and codes (k,) of states (k, n), each apart or one after the other."""
        states = np.ascontiguousarray(states, float)
        found = np.full((len(states), self.servo.nu + self.servo.size + 2), np.nan)
        codes = np.full(len(states), -2, np.int32)
        doubles, integers = (ctypes.POINTER(kind) for kind in (ctypes.c_double, ctypes.c_int))
        call = ctypes.CDLL(str(self.path)).batch
        inputs = call(
            len(states),
            int(apart),
            states.ctypes.data_as(doubles),
            found.ctypes.data_as(doubles),
            codes.ctypes.data_as(integers),
        )
        assert inputs == states.shape[1], "the test fills other inputs than the code has"
        return found, codes

    def forge(self, place: int, value: float) -> None:
        """Overwrite a number of the memory from tick to tick."""
        ctypes.CDLL(str(self.path)).forge(place, ctypes.c_double(value))

    def state(self, place: int) -> float:
        """A number of the memory from tick to tick."""
        call = ctypes.CDLL(str(self.path)).state
        call.restype = ctypes.c_double
        return float(call(place))

    def missing(self) -> int:
        return int(ctypes.CDLL(str(self.path)).missing())


def states(one: Servo, count: int, seed: int, spread: float = 0.8) -> np.ndarray:
    """Random states with references near them, as rows of inputs; the momentum is the model's."""
    rng, robot = np.random.default_rng(seed), one.model.robot
    rows = []
    for _ in range(count):
        q = robot.integrate(robot.neutral(), spread * rng.normal(size=robot.nv))
        speed = 10.0 ** rng.uniform(-2.0, 0.3)
        near = robot.integrate(q, 0.2 * speed * rng.normal(size=robot.nv))
        motion = speed * rng.normal(size=one.nw)
        rest = motion, one.output(near), *(speed * rng.normal(size=(2, one.size)))
        momentum = (
            ()
            if one.use_measured_velocity
            else one.model.momentum
            if one.model.takes_momentum
            else ()
        )
        rows.append(np.concatenate([q, *rest, momentum]))
    return np.array(rows)


def parts(one: Servo, row: np.ndarray) -> list[np.ndarray]:
    """The inputs q, s, pose, twist, acceleration and the momentum of a row."""
    sizes = (one.nq, one.nw, one.pose_size, one.size, one.size)
    return np.split(row, np.cumsum(sizes))
