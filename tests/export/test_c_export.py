"""Exported C: warning-free, the servo's torques, and no torque in invalid states."""

from __future__ import annotations

import re

import numpy as np
import pytest

from concur.outputs import ReferenceSample
from tests.export._export import (
    COMPILERS,
    NAME,
    STRICT,
    Library,
    compile_replay,
    parts,
    run,
    servo,
    states,
)

KINDS = ["rover", "free-flyer", "mecanum, limited", "free-flyer, limited"]
OTHERS = ["free-flyer, measured", "free-flyer, redundant", "rover, limited", "tractor"]


def torque(one, row):
    q, s, *demand = parts(one, row)
    return one.torque(q, s, ReferenceSample(*demand[:3]))


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    "kind", [*KINDS, *(pytest.param(k, marks=pytest.mark.slow) for k in OTHERS)]
)
def test_replays_its_states(libraries, kind):
    library = libraries(kind)
    assert library.folder.states >= 100
    compile_replay(library.path.parent, COMPILERS[0], "-O0", *STRICT, law="law.o")
    done = run("./replay", cwd=library.path.parent)
    assert done.returncode == 0, done.stdout
    assert f"{NAME}: {library.folder.states} states, 0 wrong" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", [*KINDS, *OTHERS])
@pytest.mark.parametrize("level", ["-O0", "-O1", "-O2", "-O3"])
def test_replays_whatever_the_compiler_does(libraries, kind, compiler, level):
    library = libraries(kind)
    compile_replay(library.path.parent, compiler, level, *STRICT)
    done = run("./replay", cwd=library.path.parent)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["free-flyer", "rover, limited", "free-flyer, limited"])
def test_touches_no_memory_but_its_own(libraries, kind):
    library = libraries(kind)
    watched = ("-O0", *STRICT, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    compile_replay(library.path.parent, COMPILERS[0], *watched)
    done = run("./replay", cwd=library.path.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.extended
def test_gives_torques_within_limits(libraries):
    library = libraries("free-flyer, limited")
    one, rows = library.servo, states(library.servo, 150, seed=4)
    found, codes = library(rows)
    good = np.flatnonzero(codes == 0)
    scales = found[good, -1]
    # All cases are met: limits not active, the demand scaled, its direction lost.
    met = (scales == 1).sum(), ((scales > 0) & (scales < 1)).sum(), (scales == 0).sum()
    assert min(met) > 5, met
    assert np.abs(found[:, : one.nu]).max() <= 3.0
    for k in good:
        np.testing.assert_allclose(found[k, : one.nu], torque(one, rows[k]), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [*KINDS[:3], pytest.param(KINDS[3], marks=pytest.mark.slow)])
def test_no_torque_goes_with_a_code_and_none_is_not_finite(libraries, kind):
    library, rng = libraries(kind), np.random.default_rng(7)
    base = states(library.servo, 200, seed=8)
    count = 20_000 if "limited" in kind else 100_000
    rows = base[rng.integers(len(base), size=count)]
    # Some numbers of some states become what no sensor should give, or anything at all.
    bad = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-320, 1e18, -1e18, 1e150, 1e308, -1.7e308]
    spoilt = rng.random(rows.shape) < rng.choice([0.0, 0.02, 0.2, 1.0], size=(count, 1))
    rows = np.where(spoilt, rng.choice(bad, size=rows.shape), rows)
    wild = rng.integers(0, 2**64, size=rows.shape, dtype=np.uint64).view(np.float64)
    rows = np.where(rng.random(rows.shape) < 0.02, wild, rows)
    found, codes = library(rows)
    assert set(codes) <= set(range(8))
    assert np.isfinite(found).all()
    assert not found[codes != 0].any(), "torque with a code"
    assert (codes[~np.isfinite(rows).all(axis=1)] == 1).all()
    assert codes[(np.abs(rows) > 1e18).any(axis=1)].all(), "torque from what cannot be meant"
    assert (codes == 0).sum() > 100
    assert len(set(codes)) >= 3
    if library.servo.torque_limits is not None:
        u, limits = found[:, : library.servo.nu], library.servo.torque_limits
        assert (u >= limits[:, 0]).all()
        assert (u <= limits[:, 1]).all()


def test_missing_arguments_are_survived(libraries):
    assert libraries("rover").missing() == 0


def test_speeds_above_the_bound_are_refused(tmp_path):
    library = Library.build("rover", tmp_path, speed_limit=[2.0, 3.0, 4.0, 5.0, 6.0])
    rows = np.repeat(states(library.servo, 1, seed=9), 10, axis=0)
    limits = np.arange(2.0, 7.0)
    rows[:, 8:13] = 0.0
    for k in range(5):
        rows[k, 8 + k], rows[5 + k, 8 + k] = -0.999 * limits[k], -1.001 * limits[k]
    found, codes = library(rows)
    assert codes.tolist() == [0] * 5 + [7] * 5
    assert found[:5].any(axis=1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_allocates_nothing_and_has_no_data_of_its_own(libraries, kind):
    lines = run("nm", "law.o", cwd=libraries(kind).path.parent).stdout.splitlines()
    symbols = [(line.split()[-2], line.split()[-1]) for line in lines]
    outside = {name for kind, name in symbols if kind == "U"} - {"_GLOBAL_OFFSET_TABLE_"}
    mathematics = "sin cos sincos sqrt atan2 acos asin exp log pow tanh fmin fmax fabs copysign"
    assert outside <= {*mathematics.split(), "memset", "memcpy", "__stack_chk_fail"}
    assert not [s for s in symbols if s[0] in "BbDdCGgSs"], "data that can be written"
    entries = {f"{NAME}_{word}" for word in ("tick", "preset", "reset")}
    assert {name for kind, name in symbols if kind == "T"} == entries


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["rover", "free-flyer", "tractor"])
def test_single_precision_is_as_good_as_it_says(kind, tmp_path):
    exported = servo(kind).export(tmp_path, name=NAME, precision="single")
    for compiler in COMPILERS:
        compile_replay(tmp_path, compiler, "-O1", *STRICT, "-Wdouble-promotion")
        done = run("./replay", cwd=tmp_path)
        assert done.returncode == 0, done.stdout
        error = float(re.search(r", ([0-9.e+-]+) of the largest number", done.stdout)[1])
        assert 0.1 * exported.error.largest < error < 4.0 * exported.error.largest
    assert exported.error.states >= 100
    tolerance = re.search("#define TOLERANCE (.*)", (tmp_path / "replay.c").read_text())[1]
    assert float(tolerance) == pytest.approx(10.0 * exported.error.largest, rel=0.01)
    assert exported.states >= exported.error.states + 5  # refused ones too
    assert f"at most {exported.error.largest:.1e}" in (tmp_path / "README.md").read_text()
    assert "double" not in (tmp_path / f"{NAME}.c").read_text()
