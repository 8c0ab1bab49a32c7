"""The mutation runner changes what it says, once, and nothing that a test cannot see."""

import json
import os
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.mutation.__main__ import ROOT, sample
from tests.mutation._covering import Covering
from tests.mutation._mutants import Mutant, mutants
from tests.mutation._report import interval, killed_share
from tests.mutation._runner import Result
from tests.mutation._targets import GROUPS, files_for, modules


def changes(tmp_path, text):
    (tmp_path / "module.py").write_text(dedent(text), encoding="utf-8")
    found = mutants(tmp_path, "module.py")
    source = (tmp_path / "module.py").read_bytes()
    return {m.apply(source).decode().strip() for m in found}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("BAND = 1e-12", {"BAND = 1e-11", "BAND = 1e-13"}),
        ("x = 2.0 * y", {"x = 4.0 * y", "x = 1.0 * y"}),
        ("x = y < z", {"x = y > z", "x = y <= z"}),
        ("x = y < 1e-9", {"x = y > 1e-9", "x = y < 1e-08", "x = y < 1e-10"}),
        ("x = (é - y) - z", {"x = (é + y) - z", "x = (é - y) + z"}),
        ("x = (y + z) + 1", {f"x = (y {s} z)" for s in "+"} | {"x = (y - z) + 1"}
         | {f"x = (y + z) {s}" for s in ("- 1", "+ 2", "+ 0")}),
        ("x = np.maximum(y, z)", {"x = np.minimum(y, z)"}),
        ("x = y and not z", {"x = y or not z", "x = y and z"}),
        ("x = y % z", {"x = y"}),
        ("x += y", {"x -= y", "x += 0"}),
        ("x = -y", {"x = y"}),
        ("x = y[1:2] == z", {"x = y[1:2] != z"}),
    ],
)  # fmt: skip
def test_each_change_is_made_alone(tmp_path, line, expected):
    assert changes(tmp_path, line) == expected


def test_text_and_sizes_are_left_alone(tmp_path):
    text = '''
        """A module of 2 lines."""
        x: Shape[3] = np.zeros(3)
        def __repr__(self): return 1.0 < 2.0
        def f(x: Shape[3]) -> Shape[3]:
            assert 1 < 2
            report(done + 1)
            raise ShapeError(f"{1 + x}", came=1 + x)
        class Reason(IntEnum):
            STALE = 3
        z = f"{x + 1}" + "text"
        SAMPLES = 16
        rng = np.random.default_rng(5)
    '''
    assert changes(tmp_path, text) == set()


@pytest.mark.parametrize("group", GROUPS)
def test_each_module_has_tests_and_is_drawn_from(group):
    found = modules(ROOT, group)
    assert found
    assert all(files_for(ROOT, module) for module in found)
    assert {name for name, _ in sample(ROOT, [group], 3, seed=0)} == {group}


@pytest.mark.parametrize(("killed", "share"), [([], 0.0), (["", ""], 0.0), (["t", ""], 0.5)])
def test_share_of_killed_mutants(killed, share):
    results = [Result("law", "", "", 1, "", "", "", "", test, 1.0) for test in killed]
    assert killed_share(results) == share


@pytest.mark.parametrize(
    ("killed", "low", "high"),
    [(["t"] * 9 + [""], 0.5550, 0.9975), (["t"] * 10, 0.6915, 1.0), ([""] * 10, 0.0, 0.3085)],
)
def test_interval_is_that_of_the_tables(killed, low, high):
    results = [Result("law", "", "", 1, "", "", "", "", test, 1.0) for test in killed]
    assert interval(results) == pytest.approx((low, high), abs=5e-5)


def test_files_that_run_the_line_are_tried_within_the_budget():
    def one(line):
        return Mutant("concur/a.py", line, 0, 1, "1", "2")

    lines = {"slow": {"concur/a.py": frozenset({3})}, "quick": {"concur/a.py": frozenset({3, 4})}}
    runs = {"slow": (9.0, frozenset()), "quick": (1.0, frozenset())}
    assert Covering(lines, runs, 10.0).files(one(3)) == ["quick", "slow"]
    assert Covering(lines, runs, 9.9).files(one(3)) == ["quick"]
    assert Covering(lines, runs, 0.1).files(one(3)) == ["quick"]
    assert Covering(lines, runs, 10.0).files(one(4)) == ["quick"]
    assert Covering(lines, runs, 10.0).files(one(5)) == []


def test_tracer_notes_the_lines_that_a_test_runs(tmp_path):
    code = "def f(x):\n    if x:\n        return 1\n    return 2\n"
    test = "from concur import f\n\n\ndef test_f():\n    assert f(0) == 2\n"
    for name, text in (("concur/__init__.py", code), ("tests/test_f.py", test)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    job = [["-q", "tests/test_f.py"], 60, str(tmp_path / "log"), str(tmp_path / "lines.json")]
    program = "from tests.mutation import _nursery as n; n.LIBRARIES = ['pytest']; n.main()"
    paths = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)[0] == 0, (tmp_path / "log").read_text()
    assert json.loads((tmp_path / "lines.json").read_text()) == {"concur/__init__.py": [1, 2, 4]}


def test_sample_depends_on_its_seed_alone():
    first, again, other = (sample(ROOT, ["latch"], 20, seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
