"""Exported laws with a reference inside: C with its table in constant memory, and units."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from concur.control import Servo
from concur.errors import ConcurError
from concur.export import FmuModel
from concur.export._law import law_fmu
from concur.outputs import ReferenceSample, references
from tests.control._cases import Q0, S0, case_study, refused
from tests.export._export import COMPILERS, NAME, STRICT, compile_replay, run

GUARDED = """
#include <stdio.h>
#include <stdlib.h>
#include "law1.c"
/* Memory behind w would be noticed. */
int main(void) {
  static law1_context context;
  static law1_input input;
  real_t *w = malloc(sizeof context.w);
  law1_preset(&input);
  context.arg[0] = input.t;
  context.arg[1] = input.q;
  context.arg[2] = input.s;
  context.arg[3] = context.before;
  context.res[0] = context.u;
  context.res[1] = context.pivot;
  context.res[2] = context.missed;
  context.res[3] = context.scale;
  context.res[4] = context.status;
  context.res[5] = context.after;
  law(context.arg, context.res, context.iw, w, context.more);
  printf("%zu", sizeof context.w / sizeof *w);
  free(w);
  return 0;
}
"""


@pytest.fixture(scope="module")
def servo() -> Servo:
    return case_study()


def table(servo: Servo, count: int) -> references.Reference:
    drawn = np.random.default_rng(4).normal(size=(count, servo.size)).cumsum(axis=0)
    place = servo.output(Q0) + 0.3 / count * drawn
    return references.waypoints(np.linspace(0.0, 20.0, count), place)


def sampled(servo: Servo) -> references.Reference:
    times = np.linspace(0.0, 20.0, 200)
    return references.table(times, *table(servo, 20).sample(times))


@pytest.mark.extended
def test_c_with_a_reference_replays_its_states(servo, tmp_path):
    limited = replace(servo, torque_limits=10.0)
    curve = references.polynomial([servo.output(Q0), np.full(5, 0.01)])
    laws = [servo, servo, servo, limited]
    demands = [curve, table(servo, 1000), sampled(servo), table(servo, 20)]
    for k, (law, reference) in enumerate(zip(laws, demands, strict=True)):
        folder = tmp_path / str(k)
        made = law.export(folder, name=NAME, reference=reference)
        compile_replay(folder, COMPILERS[0], "-O0", *STRICT)
        done = run("./replay", cwd=folder)
        assert done.returncode == 0, done.stdout
        assert f"{NAME}: {made.states} states, 0 wrong" in done.stdout
        (folder / "guarded.c").write_text(GUARDED)
        flags = ("-O0", "-fsanitize=address", "-w", "guarded.c", "-o", "guarded", "-lm")
        assert run(COMPILERS[0], *flags, cwd=folder).returncode == 0
        done = run("./guarded", cwd=folder)
        assert done.returncode == 0, done.stderr
        # The table of 26 numbers in each of a thousand rows takes no memory of the caller.
        assert int(done.stdout) < 2000


def test_the_time_is_an_input_in_place_of_the_reference(servo, tmp_path):
    made = servo.export(tmp_path / "c", name=NAME, reference=table(servo, 20))
    header = (tmp_path / "c" / f"{NAME}.h").read_text()
    found = re.findall(r"LAW1_N_(\w+) (\d+)", header)
    assert found[:4] == [("T", "1"), ("Q", "8"), ("S", "5"), ("U", "5")]
    assert "a state at rest, at time zero." in header
    assert "reference to stay" not in header
    replay = (tmp_path / "c" / "replay.c").read_text()
    assert replay.count("time out of range") >= 2
    assert made.error is None


@pytest.mark.parametrize("make", [lambda servo: table(servo, 20), sampled])
def test_units_with_a_reference_take_the_time(servo, make):
    reference = make(servo)
    model = law_fmu(servo, reference=reference)
    assert [s.name for s in model.signals if s.role == "input"] == ["t", "q", "s"]
    u = np.array(model.outputs(1.3, Q0, S0, np.zeros(kept(model)))[0])[:, 0]
    expected = servo.torque(Q0, S0, reference(1.3))
    np.testing.assert_allclose(u, expected, rtol=1e-9, atol=1e-9)


def kept(model: FmuModel) -> int:
    return int(model.outputs.size1_in(model.outputs.n_in() - 1))


def test_what_cannot_be_exported_is_refused(servo, tmp_path):
    still = ReferenceSample(servo.output(Q0), np.zeros(5), np.zeros(5))
    for target in ("c", "fmu"):
        refused(
            ConcurError,
            lambda target=target: servo.export(tmp_path, target, reference=lambda t: still),
            where="`reference`",
            came="custom Python function",
        )
    refused(
        ConcurError,
        lambda: servo.export(tmp_path, precision="single", reference=table(servo, 20)),
        where="`precision`",
        expected="references with tables",
    )
    curve = references.polynomial([servo.output(Q0), np.full(5, 0.01)])
    made = servo.export(tmp_path / "single", precision="single", reference=curve)
    assert made.error is not None
    assert made.error.largest < 1e-3
