"""The table of integrators in the manual: what it claims about a million steps."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("integrators", DOCS / "compare_integrators.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.slow
def test_group_integrator_keeps_directions_energy_and_momentum(script, compiler):
    group, plain, mujoco, equal, tight = script.table()
    assert group.steps == 1_000_000
    assert group.length < 1e-14
    assert group.energy < 1e-8
    assert group.momentum < 1e-9
    assert plain.length < 1e-14
    for other in (mujoco, equal):
        assert other.energy > 100.0 * group.energy
        assert other.momentum > 100.0 * group.momentum
    assert tight.seconds > group.seconds


def test_page_has_a_row_for_each_method(script):
    text = (DOCS / "lagrangian.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- table: written by .*?-->\n(.*?)<!-- end -->", text, re.DOTALL)[1]
    names = [line.split("|")[1].strip() for line in block.splitlines()[2:]]
    assert names[:3] == ['`"rkmk4"`', '`"rk4"`', "MuJoCo RK4"]
    assert all(name.startswith("SciPy DOP853") for name in names[3:])
    assert script.kept(script.Q0[None], script.V0[None])[0] == pytest.approx([-13.01644, 1.11672])
