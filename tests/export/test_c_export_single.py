"""Exported C in single precision."""

from __future__ import annotations

import re

import pytest

from concur.errors import ConcurError
from tests.export._export import (
    COMPILERS,
    NAME,
    STRICT,
    compile_replay,
    run,
    servo,
)


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


def test_limits_in_single_precision_are_refused(tmp_path):
    with pytest.raises(ConcurError, match="torque limits") as caught:
        servo("rover, limited").export(tmp_path / "new", precision="single")
    assert "double" in caught.value.cure
    assert not (tmp_path / "new").exists()
