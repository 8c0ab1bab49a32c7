"""The mutation runner changes what it says, once, and nothing that a test cannot see."""

from textwrap import dedent

import pytest

from tests.mutation.__main__ import ROOT, sample
from tests.mutation._mutants import mutants
from tests.mutation._report import killed_share
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


def test_sample_depends_on_its_seed_alone():
    first, again, other = (sample(ROOT, ["latch"], 20, seed) for seed in (0, 0, 1))
    assert first == again
    assert first != other
